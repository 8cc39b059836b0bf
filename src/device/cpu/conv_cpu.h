/* conv_cpu: the three passes of a convolution on the CPU. Layouts and params as
 * shaders/conv2d.params.h: x [n][h][w][c], w [kh][kw][c / groups][k], y [n][oh][ow][k].
 *
 * Three engines, chosen when the call is prepared, by the shape alone, so that one config always
 * takes the same path on one machine:
 *   direct   depthwise (as many groups as channels): loops over channels     depthwise_cpu.c
 *   library  oneDNN, where it is built in and has an optimised form          dnnl_conv.c
 *   unfold   windows copied into rows, then products (gemm.h); any shape      unfold.c
 * PM_NO_DNNL=1 leaves oneDNN out. */
#ifndef PM_CONV_CPU_H
#define PM_CONV_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "conv2d.params.h"

enum pm_conv_pass {
    PM_CONV_FWD,        /* y from x, w */
    PM_CONV_BWD_DATA,   /* x from y, w: the gradient of x, wholly written */
    PM_CONV_BWD_FILTER, /* w from x, y: the gradient of w, added to when p->accumulate */
};

/* The engine of a pass, made once; scratch bytes that run() wants in t; run() allocates nothing. */
struct pm_cpu_conv;
/* without_scratch: only engines whose forward and data passes need none (depthwise rows have no t). */
int pm_cpu_conv_create(enum pm_conv_pass pass, const struct conv2d_params *p, bool without_scratch,
                       struct pm_cpu_conv **out);
void pm_cpu_conv_destroy(struct pm_cpu_conv **c);
size_t pm_cpu_conv_scratch(const struct pm_cpu_conv *c);
/* accumulate: filter pass only. t: of pm_cpu_conv_scratch bytes, 64-byte aligned. */
void pm_cpu_conv_run(const struct pm_cpu_conv *c, float *x, float *w, float *y, void *t,
                     int accumulate);
const char *pm_cpu_conv_engine(const struct pm_cpu_conv *c); /* for logs: "dnnl", "unfold", ... */

/* ---- engines (for conv_cpu.c) ---------------------------------------------------------- */

size_t pm_unfold_scratch(enum pm_conv_pass pass, const struct conv2d_params *p);
void pm_unfold_run(enum pm_conv_pass pass, const struct conv2d_params *p, float *x, float *w,
                   float *y, float *t, int accumulate);

/* groups == c. */
size_t pm_depthwise_scratch(enum pm_conv_pass pass, const struct conv2d_params *p);
void pm_depthwise_run(enum pm_conv_pass pass, const struct conv2d_params *p, float *x, float *w,
                      float *y, float *t, int accumulate);

struct pm_dnnl_conv;
/* *out is NULL when the library has no optimised form of this pass; then no error. */
int pm_dnnl_conv_create(enum pm_conv_pass pass, const struct conv2d_params *p,
                        struct pm_dnnl_conv **out);
void pm_dnnl_conv_destroy(struct pm_dnnl_conv **c);
size_t pm_dnnl_conv_scratch(const struct pm_dnnl_conv *c);
void pm_dnnl_conv_run(const struct pm_dnnl_conv *c, float *x, float *w, float *y, void *t,
                      int accumulate);

#endif
