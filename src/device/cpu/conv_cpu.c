/* Chooses the engine of a convolution on the CPU: conv_cpu.h has the contract. */
#include "device/cpu/conv_cpu.h"

#include <pumice/base.h>
#include <pumice/thread.h>

#include "base/vector.h"
#include "device/cpu/gemm.h"

struct pm_cpu_conv {
    enum pm_conv_pass pass;
    struct conv2d_params p;
    enum engine { DIRECT, LIBRARY, UNFOLD } engine;
    struct pm_dnnl_conv *dnnl; /* owned; NULL unless LIBRARY */
};

/* Rewrites a convolution whose only window is the whole picture, such as the first fully connected
 * layer of VGG, as one of 1x1 pictures: the layouts are the same. */
static struct conv2d_params plain_of(struct conv2d_params p)
{
    const bool whole = p.oh == 1 && p.ow == 1 && p.kh == p.h && p.kw == p.w && p.top == 0 &&
                       p.left == 0 && p.dilation_h == 1 && p.dilation_w == 1 && p.groups == 1;

    if (whole) {
        p.c *= p.h * p.w;
        p.h = p.w = p.kh = p.kw = p.stride_h = p.stride_w = 1;
    }
    return p;
}

/* Whether the pass is computed as one product of two matrices: rows of pixels, and the weights.
 * Products use the weights in their stored order. oneDNN's convolutions reorder them in every call,
 * which costs more than it gains if few pixels share large weights: fully connected layers, and the
 * last maps of classifiers. Its filter gradient is also slow if the outputs have many more channels
 * than the inputs. The bounds were measured on two cores with AVX-512. */
static bool is_product(enum pm_conv_pass pass, const struct conv2d_params *p)
{
    enum { FEW_PIXELS = 1024, LARGE_WEIGHTS = 1 << 18 };
    const bool plain = p->kh == 1 && p->kw == 1 && p->stride_h == 1 && p->stride_w == 1 &&
                       p->oh == p->h && p->ow == p->w && p->top == 0 && p->left == 0;
    const size_t pixels = (size_t)p->n * p->oh * p->ow, weights = (size_t)p->c * p->k;

    if (!plain || p->groups > 1)
        return false;
    if ((p->h == 1 && p->w == 1) || (pixels <= FEW_PIXELS && weights >= LARGE_WEIGHTS))
        return true;
    return pass == PM_CONV_BWD_FILTER && p->c >= 32 && p->k > 2 * p->c &&
           (pixels <= FEW_PIXELS || pixels >= 2 * (size_t)p->k);
}

int pm_cpu_conv_create(enum pm_conv_pass pass, const struct conv2d_params *params,
                       bool without_scratch, struct pm_cpu_conv **out)
{
    int err = PM_OK;
    struct pm_cpu_conv *c = pm_calloc(1, sizeof *c);
    const struct conv2d_params *p = &c->p;

    c->pass = pass;
    c->p = without_scratch ? *params : plain_of(*params);
    c->engine = without_scratch || (p->groups > 1 && p->groups == p->c) ? DIRECT : UNFOLD;
    if (c->engine == UNFOLD && !is_product(pass, p) && pm_dnnl_wanted())
        PM_TRY(pm_dnnl_conv_create(pass, p, &c->dnnl));
    if (c->dnnl)
        c->engine = LIBRARY;
    *out = c, c = NULL;
out:
    pm_cpu_conv_destroy(&c);
    return err;
}

void pm_cpu_conv_destroy(struct pm_cpu_conv **c)
{
    if (*c)
        pm_dnnl_conv_destroy(&(*c)->dnnl);
    pm_free(*c);
    *c = NULL;
}

/* Whether the result goes to scratch first: oneDNN cannot add to a data gradient. */
static bool adds_after(const struct pm_cpu_conv *c)
{
    return c->engine == LIBRARY && c->pass == PM_CONV_BWD_DATA && c->p.accumulate;
}

static size_t library_scratch(const struct pm_cpu_conv *c)
{
    return (pm_dnnl_conv_scratch(c->dnnl) + 63) / 64 * 64;
}

static size_t pixels_of(const struct conv2d_params *p)
{
    return (size_t)p->n * p->h * p->w;
}

size_t pm_cpu_conv_scratch(const struct pm_cpu_conv *c)
{
    if (c->engine == DIRECT)
        return pm_depthwise_scratch(c->pass, &c->p);
    if (adds_after(c))
        return library_scratch(c) + pixels_of(&c->p) * c->p.c * sizeof(float);
    if (c->engine == LIBRARY)
        return pm_dnnl_conv_scratch(c->dnnl);
    return pm_unfold_scratch(c->pass, &c->p);
}

struct addition {
    const float *from;
    float *to;
    size_t width;
};

/* Adds pixels begin..end-1. */
PM_CLONES static void add_pixels(void *ctx, size_t begin, size_t end)
{
    const struct addition *a = ctx;
    const float *from = a->from;
    float *to = a->to;

    PM_SIMD
    for (size_t i = begin * a->width; i < end * a->width; i++)
        to[i] += from[i];
}

static void run_and_add(const struct pm_cpu_conv *c, float *x, float *w, float *y, void *t)
{
    float *dx = (float *)((char *)t + library_scratch(c));
    struct addition a = { dx, x, (size_t)c->p.c };

    pm_dnnl_conv_run(c->dnnl, dx, w, y, t, 0);
    pm_parallel(pixels_of(&c->p), 64, add_pixels, &a);
}

void pm_cpu_conv_run(const struct pm_cpu_conv *c, float *x, float *w, float *y, void *t,
                     int accumulate)
{
    if (c->engine == DIRECT)
        pm_depthwise_run(c->pass, &c->p, x, w, y, t, accumulate);
    else if (adds_after(c))
        run_and_add(c, x, w, y, t);
    else if (c->engine == LIBRARY)
        pm_dnnl_conv_run(c->dnnl, x, w, y, t, accumulate);
    else
        pm_unfold_run(c->pass, &c->p, x, w, y, t, accumulate);
}

const char *pm_cpu_conv_engine(const struct pm_cpu_conv *c)
{
    static const char *const names[] = { "direct", "dnnl", "unfold" };

    return names[c->engine];
}
