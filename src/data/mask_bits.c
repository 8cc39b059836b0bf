/* mask_bits: most words of a mask are 0, and 32 bytes that are all 0 are found with one test. */
#include "data/mask_bits.h"

#include <string.h>

#include "base/vector.h"

/* Packs 1 to 32 pixels. */
PM_INLINE uint32_t pack(const uint8_t *pixels, int count)
{
    uint32_t word = 0;

    for (int b = 0; b < count; b++)
        word |= (uint32_t)(pixels[b] != 0) << b;
    return word;
}

PM_INLINE bool is_empty(const uint8_t *pixels)
{
    uint64_t v[4];

    memcpy(v, pixels, sizeof v);
    return (v[0] | v[1] | v[2] | v[3]) == 0;
}

PM_CLONES bool pm_mask_pack(const uint8_t *mask, int height, int width, uint32_t *out)
{
    const int whole = width / 32, rest = width % 32;
    uint32_t any = 0;

    for (int y = 0; y < height; y++, mask += width, out += whole + (rest != 0)) {
        for (int k = 0; k < whole; k++) {
            out[k] = is_empty(mask + 32 * k) ? 0 : pack(mask + 32 * k, 32);
            any |= out[k];
        }
        if (rest)
            any |= out[whole] = pack(mask + 32 * whole, rest);
    }
    return any != 0;
}
