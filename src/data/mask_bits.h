/* mask_bits, internal to data/ and tasks/: masks of objects as one bit a pixel, as devices get
 * them. A mask of 800 x 1333 pixels has 134 kB. */
#ifndef PUMICE_DATA_MASK_BITS_H
#define PUMICE_DATA_MASK_BITS_H

#include <pumice/base.h>

/* Words of a row of `width` pixels. */
static inline int pm_mask_words(int width)
{
    return width / 32 + (width % 32 != 0);
}
/* Packs a mask: bit b of word k of a row is 1 if the byte of column 32 k + b is not 0. Bits after
 * the last column are 0. mask: [height][width]; out: [height][pm_mask_words(width)]. Returns
 * whether a bit is 1. */
bool pm_mask_pack(const uint8_t *mask, int height, int width, uint32_t *out);

#endif
