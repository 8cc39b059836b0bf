/* The first byte chooses: the rest is a whole file, or header text up to a NUL and data after it, to
 * which the length is supplied: so the fuzzer need not guess a length that fits. */
#include <pumice/tensor_file.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *file, size_t size)
{
    struct pm_tensor_file *s = NULL;
    float floats[64];
    double doubles[64];
    char shape[96];

    if (pm_safetensors_open_memory("fuzz", file, size, &s) < 0)
        return;
    for (size_t i = 0; i < pm_tensor_file_count(s); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(s, i);
        size_t n = t->count < 64 ? (size_t)t->count : 64;
        pm_file_tensor_shape(t, shape);
        if (pm_tensor_file_find(s, t->name) != t)
            __builtin_trap();
        if (t->type == PM_DTYPE_OTHER)
            continue;
        if (pm_tensor_file_floats(s, t, t->count - n, n, floats) < 0 ||
            pm_tensor_file_doubles(s, t, 0, n, doubles) < 0)
            __builtin_trap();
    }
    pm_tensor_file_close(&s);
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
