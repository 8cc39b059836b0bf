/* conv_cpu: the three passes of a convolution on the CPU. Layouts and params are those of
 * shaders/conv2d.params.h: x [n][h][w][c], w [kh][kw][c / groups][k], y [n][oh][ow][k].
 *
 * There are three engines. The choice is made when the call is prepared, by the shape alone, so one
 * config always takes the same path on one machine:
 *   direct   depthwise (as many groups as channels): loops over channels     depthwise_cpu.c
 *   library  oneDNN, if it is built in and has an optimised form             dnnl_conv.c
 *   unfold   windows copied into rows, then products (gemm.h); any shape.     unfold.c
 *            The product alone: pointwise convolutions with few pixels and many weights,
 *            pointwise filter gradients with many more outputs than inputs, and convolutions
 *            whose window is the whole picture
 * PM_NO_DNNL=1 disables oneDNN. */
#ifndef PM_CONV_CPU_H
#define PM_CONV_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "conv2d.params.h"

enum pm_conv_pass {
    PM_CONV_FWD,        /* y from x, w */
    PM_CONV_BWD_DATA,   /* x from y, w: the gradient of x, added to x if p->accumulate */
    PM_CONV_BWD_FILTER, /* w from x, y: the gradient of w, added to w if p->accumulate */
};

/* The engine of one pass, made once. run() allocates nothing: its scratch is t. */
struct pm_cpu_conv;
/* Creates the engine of a pass. without_scratch: only engines whose forward and data passes need no
 * scratch (depthwise rows have no t). */
int pm_cpu_conv_create(enum pm_conv_pass pass, const struct conv2d_params *p, bool without_scratch,
                       struct pm_cpu_conv **out);
void pm_cpu_conv_destroy(struct pm_cpu_conv **c);
size_t pm_cpu_conv_scratch(const struct pm_cpu_conv *c);
/* Runs the pass. accumulate: that of the params, for gradients. t: pm_cpu_conv_scratch bytes,
 * 64-byte aligned. */
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
/* Creates oneDNN's form of a pass. *out is NULL, without error, if the library has no optimised
 * form. */
int pm_dnnl_conv_create(enum pm_conv_pass pass, const struct conv2d_params *p,
                        struct pm_dnnl_conv **out);
void pm_dnnl_conv_destroy(struct pm_dnnl_conv **c);
size_t pm_dnnl_conv_scratch(const struct pm_dnnl_conv *c);
void pm_dnnl_conv_run(const struct pm_dnnl_conv *c, float *x, float *w, float *y, void *t,
                      int accumulate);

#endif
