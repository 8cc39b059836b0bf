/* The first byte chooses: the rest is a whole file, or a pickle that is put into an archive
 * beside a storage "0" of 256 bytes. The archive has no checksum, so that the fuzzer need not
 * guess one. */
#include "fuzz_tensors.h"

#include <string.h>

#include "formats/torch/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *file, size_t size)
{
    struct pm_tensor_file *f = NULL;

    if (pm_torch_open_memory("fuzz", file, size, &f) == PM_OK)
        fuzz_read_tensors(f, false);
}

static void little(struct pm_str *s, uint64_t v, int bytes)
{
    for (; bytes > 0; bytes--, v >>= 8)
        pm_str_bytes(s, &(uint8_t){ (uint8_t)v }, 1);
}

static void entry(struct pm_str *file, struct pm_str *directory, const char *name, const void *data,
                  size_t size)
{
    size_t at = file->length, length = strlen(name);

    pm_str_bytes(file, "PK\3\4", 4);
    little(file, 0, 22), little(file, length, 4);
    pm_str_bytes(file, name, length);
    pm_str_bytes(file, data, size);
    pm_str_bytes(directory, "PK\1\2", 4);
    little(directory, 0, 16), little(directory, size, 4), little(directory, size, 4);
    little(directory, length, 14), little(directory, at, 4);
    pm_str_bytes(directory, name, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_str file = { 0 }, directory = { 0 };
    static const uint8_t storage[256] = { 1, 2, 3 };

    if (size == 0)
        return 0;
    if (data[0] & 1) {
        read_all(data + 1, size - 1);
        return 0;
    }
    entry(&file, &directory, "x/data.pkl", data + 1, size - 1);
    entry(&file, &directory, "x/data/0", storage, sizeof storage);
    size_t at = file.length;
    pm_str_bytes(&file, directory.text, directory.length);
    pm_str_bytes(&file, "PK\5\6", 4);
    little(&file, 0, 4), little(&file, 2, 2), little(&file, 2, 2);
    little(&file, directory.length, 4), little(&file, at, 4), little(&file, 0, 2);
    read_all((const uint8_t *)file.text, file.length);
    pm_str_free(&file);
    pm_str_free(&directory);
    return 0;
}
