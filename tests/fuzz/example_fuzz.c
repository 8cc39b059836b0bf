/* The bytes of a record as tf.Example; every key is looked up with every type. */
#include <pumice/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum; /* forces the values to be read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = { "image/encoded", "image/class/label", "a", "" };
    struct pm_example *e = NULL;

    if (pm_example_parse(data, size, "fuzz", &e) < 0)
        return 0;
    for (size_t k = 0; k < PM_COUNT(keys); k++) {
        const uint8_t *bytes;
        const int64_t *ints;
        const float *floats;
        int64_t one;
        size_t count;
        if (pm_example_bytes(e, keys[k], &bytes, &count) == 1)
            for (size_t i = 0; i < count; i++)
                sum += bytes[i];
        if (pm_example_ints(e, keys[k], &ints, &count) == 1)
            for (size_t i = 0; i < count; i++)
                sum += (uint64_t)ints[i];
        if (pm_example_floats(e, keys[k], &floats, &count) == 1)
            for (size_t i = 0; i < count; i++)
                sum += floats[i] > 0;
        pm_example_int(e, keys[k], &one);
    }
    pm_example_destroy(&e);
    return 0;
}
