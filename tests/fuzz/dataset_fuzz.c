/* The files beside the shards of a data folder. The first byte chooses labels.txt, dataset.json
 * or the cached index. For the index the input is added to the bytes of a valid one and the
 * checksum is corrected, so that the checks of size, time and checksum pass. With any index, a
 * record that is read lies inside its file. */
#include "fuzz.h"

#include <pumice/data.h>
#include <pumice/formats.h>

static char *index_path, *index_bytes;
static size_t index_size;

static void write_shard(void)
{
    struct pm_tfrecord_writer *w = NULL;

    if (pm_tfrecord_create(fuzz_path("x_train.tfrecord"), &w) < 0)
        abort();
    for (uint32_t i = 0; i < 5; i++)
        if (pm_tfrecord_write(w, "0123456789abcdef", 3 * i) < 0)
            abort();
    if (pm_tfrecord_finish(w) < 0)
        abort();
    pm_tfrecord_destroy(&w);
}

/* Makes a shard and, by opening it, its index. */
static void make_index(void)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_dataset *d = NULL;
    char **names;
    size_t count;

    write_shard();
    if (pm_dataset_open(fuzz_folder, "train", &d) < 0)
        abort();
    pm_dataset_close(&d);
    if (pm_glob(a, fuzz_path(".pumice-*.index"), &names, &count) < 0 || count != 1 ||
        pm_file_read(names[0], &index_bytes, &index_size) < 0)
        abort();
    index_path = pm_strdup(names[0]);
    pm_arena_destroy(&a);
}

static void put_index(const uint8_t *data, size_t size)
{
    size_t body = index_size - 4, length = body > size ? body : size;
    uint8_t *bytes = pm_calloc(1, length + 4);

    memcpy(bytes, index_bytes, body);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(bytes[i] + data[i]);
    const uint32_t crc = pm_crc32c(bytes, length);
    memcpy(bytes + length, &crc, 4);
    fuzz_write(index_path, bytes, length + 4);
    pm_free(bytes);
}

static void read_all(struct pm_dataset *d)
{
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;
    const struct pm_dataset_info *info = pm_dataset_get_info(d);

    for (size_t i = 0; i < info->count && i < 64; i++)
        if (pm_dataset_read(d, i, &buf, &capacity, &size) == PM_OK && size > 12)
            __builtin_trap();
    for (int i = 0; i < info->num_classes; i++)
        if (info->labels[i] && strlen(info->labels[i]) > 1 << 20)
            __builtin_trap();
    pm_free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "labels.txt", "dataset.json" };
    struct pm_dataset *d = NULL;

    if (size == 0)
        return 0;
    if (fuzz_begin())
        make_index();
    const int which = data[0] % 3;
    if (which == 2)
        put_index(data + 1, size - 1);
    else
        fuzz_write(fuzz_path(names[which]), data + 1, size - 1);
    if (pm_dataset_open(fuzz_folder, "train", &d) == PM_OK)
        read_all(d);
    pm_dataset_close(&d);
    if (which == 2)
        fuzz_write(index_path, index_bytes, index_size);
    else
        remove(fuzz_path(names[which]));
    return 0;
}
