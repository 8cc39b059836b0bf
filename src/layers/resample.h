/* resample: makes images whose rows and columns are weighted sums of another image's. It serves
 * resizing by any rule, and padding that repeats the image's values. The host computes which rows,
 * and with which weights. It passes them as constants, so devices cannot differ. The gradient is
 * the same call with the lists reversed. */
#ifndef PUMICE_RESAMPLE_H
#define PUMICE_RESAMPLE_H

#include <pumice/layer.h>

enum { PM_MOST_TAPS = 4 };

/* A place of one axis: `out` is the sum of weight x input place at. Unused taps have weight 0. */
struct pm_tap { int at[PM_MOST_TAPS]; float weight[PM_MOST_TAPS]; };
struct pm_taps {
    int in, out;
    struct pm_tap *tap; /* [out], from pm_malloc */
};

/* y = x by the taps of height (0) and width (1). back: gradients, from y's (first) to x's. */
void pm_resample(struct pm_calls *c, const struct pm_taps axis[2], bool back, struct pm_tensor from,
                 struct pm_tensor to);

#endif
