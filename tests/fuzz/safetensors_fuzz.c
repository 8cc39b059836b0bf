/* The first byte chooses: the rest is a whole file, or header text up to a NUL and then data.
 * For the second form the length is filled in, so that the fuzzer need not guess it. */
#include "fuzz_tensors.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *file, size_t size)
{
    struct pm_tensor_file *f = NULL;

    if (pm_safetensors_open_memory("fuzz", file, size, &f) == PM_OK)
        fuzz_read_tensors(f, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] & 1) {
        read_all(data + 1, size - 1);
        return 0;
    }
    const uint8_t *end = memchr(data + 1, 0, size - 1);
    uint64_t length = end ? (uint64_t)(end - data - 1) : size - 1;
    size_t rest = end ? size - 2 - (size_t)length : 0;
    uint8_t *file = pm_malloc(8 + (size_t)length + rest);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)(length >> 8 * i);
    memcpy(file + 8, data + 1, (size_t)length);
    if (rest)
        memcpy(file + 8 + length, end + 1, rest);
    read_all(file, 8 + (size_t)length + rest);
    pm_free(file);
    return 0;
}
