/* Shared by the fuzz targets of TensorFlow checkpoints. */
#ifndef FUZZ_TF_H
#define FUZZ_TF_H

#include "fuzz_tensors.h"

#include "formats/tensorflow/table.h"

/* Builds a table file from entries {u8 key size, u16 value size, key, value}. */
static inline void fuzz_tf_table(struct pm_str *out, const uint8_t *data, size_t size)
{
    struct pm_tf_table_writer w = { 0 };

    while (size >= 3) {
        const size_t room = size - 3, key = data[0] < room ? data[0] : room;
        const size_t wanted = (size_t)data[1] | (size_t)data[2] << 8;
        const size_t value = wanted < room - key ? wanted : room - key;

        pm_tf_table_add(&w, (const char *)data + 3, key, data + 3 + key, value);
        data += 3 + key + value;
        size -= 3 + key + value;
    }
    pm_tf_table_finish(&w);
    pm_str_bytes(out, w.out.text, w.out.length);
    pm_tf_table_free(&w);
}

/* Opens a file or folder of tensors and reads all of them. */
static inline void fuzz_tf_read(const char *path)
{
    struct pm_tensor_file *f = NULL;

    if (pm_tensor_file_open(path, &f) < 0)
        return;
    for (size_t i = 0; i < pm_tensor_file_count(f); i++)
        if (pm_tensor_file_get(f, i)->bytes > 256 * (pm_tensor_file_size(f) + 256))
            __builtin_trap(); /* claims more than the files can hold */
    fuzz_read_tensors(f, true);
}

#endif
