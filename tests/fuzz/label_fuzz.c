/* Decodes PNGs as label maps. */
#include <pumice/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum; /* forces the numbers to be read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_label l = { 0 };

    if (pm_label_decode(data, size, 1 << 16, "fuzz", &l) < 0) {
        if (l.values)
            __builtin_trap();
        return 0;
    }
    if (l.height < 1 || l.width < 1)
        __builtin_trap();
    for (size_t i = 0; i < (size_t)l.height * (size_t)l.width; i++)
        sum += l.values[i];
    pm_label_free(&l);
    return 0;
}
