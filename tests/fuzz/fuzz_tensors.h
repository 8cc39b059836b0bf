/* Shared by the fuzz targets of tensor files: finds every tensor by name and reads it in pieces. */
#ifndef FUZZ_TENSORS_H
#define FUZZ_TENSORS_H

#include <pumice/tensor_file.h>

/* Reads all tensors and closes f. sums: the format has checksums, so a listed tensor may be
 * refused when it is read, but then all of it. */
static inline void fuzz_read_tensors(struct pm_tensor_file *f, bool sums)
{
    double doubles[64];
    float floats[64];
    uint8_t bytes[64];
    char shape[96];

    for (size_t i = 0; i < pm_tensor_file_count(f); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(f, i);
        const size_t n = t->count < 64 ? (size_t)t->count : 64;
        const size_t some = t->bytes < sizeof bytes ? (size_t)t->bytes : sizeof bytes;

        pm_file_tensor_shape(t, shape);
        if (pm_tensor_file_find(f, t->name) != t)
            __builtin_trap();
        if (t->type == PM_DTYPE_OTHER && !sums)
            continue;
        if (pm_tensor_file_bytes(f, t, (t->bytes - some) / 2, some, bytes) < 0) {
            if (!sums)
                __builtin_trap();
            continue;
        }
        if (t->type == PM_DTYPE_OTHER)
            continue;
        if (pm_tensor_file_floats(f, t, t->count - n, n, floats) < 0 ||
            pm_tensor_file_doubles(f, t, 0, n, doubles) < 0)
            __builtin_trap();
    }
    pm_tensor_file_close(&f);
}

#endif
