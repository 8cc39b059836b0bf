/* bench_shapes: the products and convolutions that `bench kernels` measures: those of whole nets,
 * each different one once, with how often a training step has it. */
#ifndef PM_BENCH_SHAPES_H
#define PM_BENCH_SHAPES_H

#include <pumice/device.h>

#include "conv2d.params.h"

struct pm_bench_shape {
    const char *net;                /* "gemm", a net's name, "deeplab" */
    const struct pm_kernel *kernel; /* a row of convolutions */
    const char *pass;               /* "forward", "data", "filter" */
    struct conv2d_params p;
    int uses;                       /* calls like this in a step */
};
/* batch: of the nets; deeplab's large pictures take a quarter. Nets that exist are taken from
 * their plans on d (nothing is allocated there), the others from a table. In the arena. */
int pm_bench_shapes(struct pm_device *d, int batch, struct pm_arena *a,
                    struct pm_bench_shape **out, size_t *count);
/* "32x56x56x64 3x3/1 d2 -> 56x56x128"; a product "512x512x512". buf of 96 bytes. */
char *pm_bench_shape_text(const struct pm_bench_shape *s, char buf[96]);

#endif
