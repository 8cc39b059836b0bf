/* export_try_masks: the sample for an exported model that pastes masks, and what the model's
 * operators must compute from it. */
#ifndef PM_EXPORT_TRY_MASKS_H
#define PM_EXPORT_TRY_MASKS_H

#include <pumice/net.h>

/* All arrays are the caller's. */
struct pm_try_masks {
    struct pm_shape masks; /* [n, h, w, D] */
    int height, width;     /* of the picture, in pixels */
};

/* Fills boxes [n, D, 4] in 0..1 of the picture and masks with random numbers. The boxes' sides are
 * at least 0.75 long. They lie in the middle between two pixels, or on the picture's border, so
 * that no rounding moves a pixel across them. */
void pm_try_masks_fill(const struct pm_try_masks *t, float *boxes, float *masks);
/* Returns how far a value computed with 32-bit floats may differ from pm_try_masks_expect, as part
 * of the largest value. With u = 2^-24, a place in the box errs by at most 4 u / 0.75, and in cells
 * by at most 5 u (cells - 1) / 0.75. Neighbouring cells differ by at most 1, so a value errs by as
 * much. Weights, differences, products and sums add less than 10 u. The bound is twice the sum,
 * because the largest value of masks minus 0.5 is only about 0.5. */
double pm_try_masks_bound(const struct pm_try_masks *t);
/* Computes in double precision, from the definition: rows [n, height, w, D], each mask minus 0.5 at
 * the height of the picture, 0 outside the box; and columns [n, w, width, D], the weights of the
 * mask's columns for each column of the picture, 0 outside the box. */
void pm_try_masks_expect(const struct pm_try_masks *t, const float *boxes, const float *masks,
                         float *rows, float *columns);

#endif
