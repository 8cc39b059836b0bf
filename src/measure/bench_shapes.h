/* bench_shapes: the products and convolutions that `bench kernels` measures: those of whole nets.
 * Each different one is listed once, with its number of uses in a training step. */
#ifndef PM_BENCH_SHAPES_H
#define PM_BENCH_SHAPES_H

#include <pumice/device.h>

#include "conv2d.params.h"

struct pm_bench_shape {
    const char *net;                /* "gemm", a net's name, "deeplab" */
    const struct pm_kernel *kernel; /* the kernel of a convolution */
    const char *pass;               /* "forward", "data", "filter" */
    struct conv2d_params p;
    int uses;                       /* number of such calls in a step */
};
/* Lists the shapes in the arena. batch: batch size of the nets; deeplab's large pictures use a
 * quarter. Shapes of implemented nets come from their plans on d (nothing is allocated there), the
 * others from a table. */
int pm_bench_shapes(struct pm_device *d, int batch, struct pm_arena *a,
                    struct pm_bench_shape **out, size_t *count);
/* Formats "32x56x56x64 3x3/1 d2 -> 56x56x128", or a product "512x512x512". buf has 96 bytes. */
char *pm_bench_shape_text(const struct pm_bench_shape *s, char buf[96]);

#endif
