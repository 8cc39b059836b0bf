/* Twins: the functions of the same names in src/layers/rotated_crops.c. */
#include "lib/rotated_clip.h"
#include "lib/rotated_prepare.h"

/* Whether all five numbers have a magnitude of at most CROP_MOST_ROTATED. The comparison of bits
 * does not depend on a device's rules for NaN. */
bool usable(uint box)
{
    bool all = true;

    for (uint k = 0; k < 5; k++)
        all = all && (floatBitsToUint(boxes.v[5 * box + k]) & 0x7fffffffu) <=
                         floatBitsToUint(CROP_MOST_ROTATED);
    if (pm_has(1))
        all = all && int(box % uint(p.per_image)) < count.v[box / uint(p.per_image)];
    return all;
}

rotated box_of(uint box)
{
    return rotated_prepare(boxes.v[5 * box], boxes.v[5 * box + 1], boxes.v[5 * box + 2],
                           boxes.v[5 * box + 3], boxes.v[5 * box + 4]);
}
