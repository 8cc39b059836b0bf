/* Convolution as matrix products.
 *
 * The windows of a block of output pixels are copied into rows [pixels][kh][kw][c / groups]. Their
 * product with w [kh * kw * c / groups][k] is y. The data gradient works the other way: products
 * first, then each row of x gathers from them. It works for every shape; a pointwise convolution
 * needs no copy. Blocks depend on the shape only, and their sums are added in order, so the bits do
 * not depend on the number of threads here. */
#include <string.h>

#include <pumice/thread.h>

#include "device/cpu/conv_cpu.h"
#include "device/cpu/gemm.h"

enum { BLOCK_FLOATS = 1 << 20 }; /* floats of unfolded rows: 4 MiB fit in the outer caches */

struct unfold {
    const struct conv2d_params *p;
    int group, depth; /* depth: floats of an unfolded row */
    int cg, kg;       /* channels of a group */
    float *x, *rows;
    int image, first, last; /* output rows first..last-1 of this image are in `rows` */
    size_t begin;           /* first output pixel in `rows` */
};

static int pointwise(const struct conv2d_params *p)
{
    return p->kh == 1 && p->kw == 1 && p->stride_h == 1 && p->stride_w == 1 && p->top == 0 &&
           p->left == 0 && p->oh == p->h && p->ow == p->w;
}

static struct unfold unfold_of(const struct conv2d_params *p, float *x, float *rows)
{
    struct unfold u = { .p = p, .x = x, .rows = rows, .cg = p->c / p->groups };

    u.kg = p->k / p->groups;
    u.depth = p->kh * p->kw * u.cg;
    return u;
}

/* Returns the output pixels of a block (forward, filter), or the output rows of one image
 * (data). */
static size_t block_pixels(const struct conv2d_params *p, int depth)
{
    size_t all = (size_t)p->n * p->oh * p->ow, fit = BLOCK_FLOATS / (size_t)depth;

    fit = fit < 64 ? 64 : fit;
    return fit < all ? fit : all;
}
static int block_rows(const struct conv2d_params *p, int depth)
{
    size_t fit = BLOCK_FLOATS / ((size_t)depth * p->ow);

    return fit < 1 ? 1 : fit < (size_t)p->oh ? (int)fit : p->oh;
}

size_t pm_unfold_scratch(enum pm_conv_pass pass, const struct conv2d_params *p)
{
    const int depth = p->kh * p->kw * (p->c / p->groups);

    if (pointwise(p))
        return 0;
    if (pass == PM_CONV_BWD_DATA)
        return (size_t)block_rows(p, depth) * p->ow * depth * sizeof(float);
    return block_pixels(p, depth) * depth * sizeof(float);
}

/* Copies the windows of output pixels begin..end-1: rows[pixel - u->begin] = window. */
static void copy_windows(void *ctx, size_t begin, size_t end)
{
    const struct unfold *u = ctx;
    const struct conv2d_params *p = u->p;
    const size_t bytes = (size_t)u->cg * sizeof(float);

    for (size_t i = begin; i < end; i++) {
        const size_t pixel = u->begin + i;
        const int ow = pixel % p->ow, oh = pixel / p->ow % p->oh;
        const size_t n = pixel / p->ow / p->oh;
        float *row = u->rows + i * u->depth;

        for (int kh = 0; kh < p->kh; kh++) {
            const int h = oh * p->stride_h - p->top + kh * p->dilation_h;

            for (int kw = 0; kw < p->kw; kw++, row += u->cg) {
                const int w = ow * p->stride_w - p->left + kw * p->dilation_w;

                if (h < 0 || h >= p->h || w < 0 || w >= p->w)
                    memset(row, 0, bytes);
                else
                    memcpy(row, u->x + ((n * p->h + h) * p->w + w) * p->c + u->group * u->cg,
                           bytes);
            }
        }
    }
}

/* Sums rows h of x (of one image) from the unfolded products. */
static void fold_rows(void *ctx, size_t begin, size_t end)
{
    const struct unfold *u = ctx;
    const struct conv2d_params *p = u->p;

    for (size_t h = begin; h < end; h++) {
        float *line = u->x + ((size_t)u->image * p->h + h) * p->w * p->c + u->group * u->cg;

        for (int kh = 0; kh < p->kh; kh++) {
            const int above = (int)h + p->top - kh * p->dilation_h, oh = above / p->stride_h;

            if (above < 0 || above % p->stride_h || oh < u->first || oh >= u->last)
                continue;
            for (int ow = 0; ow < p->ow; ow++) {
                const float *row = u->rows + ((size_t)(oh - u->first) * p->ow + ow) * u->depth +
                                   (size_t)kh * p->kw * u->cg;
                for (int kw = 0; kw < p->kw; kw++, row += u->cg) {
                    const int w = ow * p->stride_w - p->left + kw * p->dilation_w;

                    if (w < 0 || w >= p->w)
                        continue;
                    for (int c = 0; c < u->cg; c++)
                        line[(size_t)w * p->c + c] += row[c];
                }
            }
        }
    }
}

static void forward(const struct conv2d_params *p, float *x, float *w, float *y, float *t)
{
    struct unfold u = unfold_of(p, x, t);
    const size_t all = (size_t)p->n * p->oh * p->ow;
    const size_t block = pointwise(p) ? all : block_pixels(p, u.depth);

    for (u.group = 0; u.group < p->groups; u.group++)
        for (u.begin = 0; u.begin < all; u.begin += block) {
            const size_t pixels = all - u.begin < block ? all - u.begin : block;
            struct pm_gemm g = { .m = (int)pixels, .n = u.kg, .k = u.depth, .lda = u.depth,
                                 .ldb = p->k, .ldc = p->k };
            const float *rows = t;

            if (pointwise(p))
                rows = x + u.group * u.cg, g.lda = p->c;
            else
                pm_parallel(pixels, 16, copy_windows, &u);
            pm_gemm(&g, rows, w + u.group * u.kg, y + u.begin * p->k + u.group * u.kg);
        }
}

static void backward_data(const struct conv2d_params *p, float *x, float *w, float *y, float *t,
                          int accumulate)
{
    struct unfold u = unfold_of(p, x, t);
    const int band = block_rows(p, u.depth);

    if (!pointwise(p) && !accumulate)
        memset(x, 0, (size_t)p->n * p->h * p->w * p->c * sizeof *x);
    for (u.group = 0; u.group < p->groups; u.group++) {
        struct pm_gemm g = { .n = u.depth, .k = u.kg, .b_across = true, .lda = p->k,
                             .ldb = p->k, .ldc = u.depth };
        const float *dy = y + u.group * u.kg, *weights = w + u.group * u.kg;

        if (pointwise(p)) {
            g.m = p->n * p->oh * p->ow, g.ldc = p->c, g.add = accumulate;
            pm_gemm(&g, dy, weights, x + u.group * u.cg);
            continue;
        }
        for (u.image = 0; u.image < p->n; u.image++)
            for (u.first = 0; u.first < p->oh; u.first += band) {
                u.last = u.first + band < p->oh ? u.first + band : p->oh;
                g.m = (u.last - u.first) * p->ow;
                pm_gemm(&g, dy + ((size_t)u.image * p->oh + u.first) * p->ow * p->k, weights, t);
                pm_parallel(p->h, 1, fold_rows, &u);
            }
    }
}

static void backward_filter(const struct conv2d_params *p, float *x, float *w, float *y, float *t,
                            int accumulate)
{
    struct unfold u = unfold_of(p, x, t);
    const size_t all = (size_t)p->n * p->oh * p->ow, block = block_pixels(p, u.depth);

    for (u.group = 0; u.group < p->groups; u.group++)
        for (u.begin = 0; u.begin < all; u.begin += block) {
            const size_t pixels = all - u.begin < block ? all - u.begin : block;
            struct pm_gemm g = { .m = u.depth, .n = u.kg, .k = (int)pixels, .a_across = true,
                                 .add = accumulate || u.begin > 0, .lda = u.depth, .ldb = p->k,
                                 .ldc = p->k };
            const float *rows = t;

            if (pointwise(p))
                rows = x + u.begin * p->c + u.group * u.cg, g.lda = p->c;
            else
                pm_parallel(pixels, 16, copy_windows, &u);
            pm_gemm(&g, rows, y + u.begin * p->k + u.group * u.kg, w + u.group * u.kg);
        }
}

void pm_unfold_run(enum pm_conv_pass pass, const struct conv2d_params *p, float *x, float *w,
                   float *y, float *t, int accumulate)
{
    if (pass == PM_CONV_FWD)
        forward(p, x, w, y, t);
    else if (pass == PM_CONV_BWD_DATA)
        backward_data(p, x, w, y, t, accumulate);
    else
        backward_filter(p, x, w, y, t, accumulate);
}
