/* resample: images whose rows and columns are weighted sums of another's: resizing by any rule, padding
 * with what is there. Which rows, and with which weights, is worked out on the host and handed over
 * as constants, so devices cannot differ in it; the gradient is the same call with the lists turned
 * around. */
#ifndef PUMICE_RESAMPLE_H
#define PUMICE_RESAMPLE_H

#include <pumice/layer.h>

enum { PM_MOST_TAPS = 4 };

/* One axis: place `out` of the output is the sum of weight x input place at; unused taps weigh 0. */
struct pm_tap { int at[PM_MOST_TAPS]; float weight[PM_MOST_TAPS]; };
struct pm_taps {
    int in, out;
    struct pm_tap *tap; /* out of them, from pm_malloc */
};

/* y = x by the taps of height (0) and width (1); back: the gradients, from y's (first) to x's. */
void pm_resample(struct pm_calls *c, const struct pm_taps axis[2], bool back, struct pm_tensor from,
                 struct pm_tensor to);

#endif
