/* augment_auto: the operations of AutoAugment on pixels. Values are whole numbers 0..255, before
 * and after: each operation truncates its result, as TensorFlow's on 8-bit pictures. */
#ifndef PM_AUGMENT_AUTO_H
#define PM_AUGMENT_AUTO_H

#include "data/augment.h"

/* Padding pixel of the operations, and of what they cut out. */
#define PM_AUTO_FILL 128

/* A picture, or the rectangle of a box in it. */
struct pm_area {
    float *v;                    /* of its first pixel */
    int height, width, channels; /* 1 or 3 channels */
    size_t stride;               /* values from row to row */
    struct pm_arena *arena;      /* borrowed: room for copies of the area */
};
/* Makes whole numbers 0..255 of all values. */
void pm_area_truncate(struct pm_area a);
/* The operations change an area in place. */
void pm_area_autocontrast(struct pm_area a);
void pm_area_equalize(struct pm_area a);
/* Keeps the upper bits, 1..8. */
void pm_area_posterize(struct pm_area a, int bits);
/* Inverts values of the threshold and above. */
void pm_area_solarize(struct pm_area a, int threshold);
/* Adds a number to values below 128. */
void pm_area_solarize_add(struct pm_area a, int add);
/* Blends: factor 0 gives a grey, uniform, black or smoothed picture, 1 the picture itself; above 1
 * the difference grows. */
void pm_area_color(struct pm_area a, float factor);
void pm_area_contrast(struct pm_area a, float factor);
void pm_area_brightness(struct pm_area a, float factor);
void pm_area_sharpness(struct pm_area a, float factor);
/* Fills rows y - rows .. y + rows - 1 of columns x - columns .. x + columns - 1. */
void pm_area_cut(struct pm_area a, int y, int x, int rows, int columns);
/* Moves the pixels as PM_MOVE_WARP does. */
void pm_area_warp(struct pm_area a, const float warp[6]);

#endif
