/* Depthwise convolution on the CPU: groups == c, and output channel k belongs to input channel k /
 * mult.
 *
 * Loops run over channels, 16 at a time in the compiler's vectors. With mult == 1, four
 * neighbouring columns share each load of a filter. One work item is an output row (forward), an
 * input row (data gradient) or a block of output rows (filter gradient), so threads share nothing.
 * Filter gradients use at most CHUNKS partial sums, added in order, so the bits do not depend on
 * the number of threads. */
#include <string.h>

#include <pumice/thread.h>

#include "base/vector.h"
#include "device/cpu/conv_cpu.h"

enum { LANES = 16, COLUMNS = 4, CHUNKS = 32, MOST_TAPS = 64 };
typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
#define VEC(p) (*(vec *)(p))
#define CVEC(p) (*(const vec *)(p))

struct depthwise {
    const struct conv2d_params *p;
    float *x, *w, *y, *t;
    int mult, chunks, accumulate;
};

/* ---- sums of taps: forward and data gradient ------------------------------------------- */

/* dst[column][k] = sum over taps of src[tap][column * step][k] * f[tap][k]. A full list is added to
 * dst and starts again. */
struct taps {
    const float *src[MOST_TAPS], *f[MOST_TAPS];
    int count;
    size_t step;        /* floats from one column of src to the next */
    float *dst;
    size_t dst_step;
    int channels;
    bool started;       /* the sums are added to dst */
};

/* columns and vecs are constants after inlining, so the sums stay in registers. */
PM_INLINE void add_block(const struct taps *t, int k, const int columns, const int vecs)
{
    vec sum[COLUMNS][2] = { 0 };

    for (int c = 0; c < columns; c++)
        for (int v = 0; v < vecs && t->started; v++)
            sum[c][v] = CVEC(t->dst + c * t->dst_step + k + v * LANES);
    for (int tap = 0; tap < t->count; tap++) {
        const float *src = t->src[tap] + k, *f = t->f[tap] + k;

        for (int c = 0; c < columns; c++)
            for (int v = 0; v < vecs; v++)
                sum[c][v] += CVEC(src + c * t->step + v * LANES) * CVEC(f + v * LANES);
    }
    for (int c = 0; c < columns; c++)
        for (int v = 0; v < vecs; v++)
            VEC(t->dst + c * t->dst_step + k + v * LANES) = sum[c][v];
}

PM_INLINE void add_columns(const struct taps *t, const int columns)
{
    int k = 0;

    for (; k + 2 * LANES <= t->channels; k += 2 * LANES)
        add_block(t, k, columns, 2);
    for (; k + LANES <= t->channels; k += LANES)
        add_block(t, k, columns, 1);
    if (k > 0 && k < t->channels && !t->started) {
        /* The last 16 channels at once. Some were written before, and get the same sums again. */
        add_block(t, t->channels - LANES, columns, 1);
        return;
    }
    for (; k < t->channels; k++)
        for (int c = 0; c < columns; c++) {
            float sum = t->started ? t->dst[c * t->dst_step + k] : 0;

            for (int tap = 0; tap < t->count; tap++)
                sum += t->src[tap][c * t->step + k] * t->f[tap][k];
            t->dst[c * t->dst_step + k] = sum;
        }
}

PM_INLINE void flush(struct taps *t, int columns)
{
    if (columns == COLUMNS)
        add_columns(t, COLUMNS);
    else
        add_columns(t, 1);
    t->count = 0;
    t->started = true;
}

PM_INLINE void push(struct taps *t, int columns, const float *src, const float *f)
{
    if (t->count == MOST_TAPS)
        flush(t, columns);
    t->src[t->count] = src;
    t->f[t->count++] = f;
}

/* Writes y[n][oh] for item = n * p->oh + oh, mult == 1. */
PM_CLONES static void forward_rows(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;
    const int reach = (p->kw - 1) * p->dilation_w; /* from a window's first column to its last */

    for (size_t item = begin; item < end; item++) {
        const int top = (int)(item % p->oh) * p->stride_h - p->top;
        const float *image = d->x + item / p->oh * p->h * p->w * p->c;

        for (int ow = 0, columns; ow < p->ow; ow += columns) {
            const int left = ow * p->stride_w - p->left;
            struct taps t = { .step = (size_t)p->stride_w * p->c, .dst_step = p->k,
                              .dst = d->y + (item * p->ow + ow) * p->k, .channels = p->k };

            columns = left >= 0 && ow + COLUMNS <= p->ow &&
                      left + (COLUMNS - 1) * p->stride_w + reach < p->w ? COLUMNS : 1;
            for (int kh = 0; kh < p->kh; kh++) {
                const int h = top + kh * p->dilation_h;

                for (int kw = 0; kw < p->kw && h >= 0 && h < p->h; kw++) {
                    const int w = left + kw * p->dilation_w;

                    if (w >= 0 && w < p->w)
                        push(&t, columns, image + ((size_t)h * p->w + w) * p->c,
                             d->w + (size_t)(kh * p->kw + kw) * p->k);
                }
            }
            flush(&t, columns);
        }
    }
}

/* Writes dx[n][h] for item = n * p->h + h, mult == 1. Columns that are stride_w apart use the same
 * taps. */
PM_CLONES static void data_rows(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;
    const int step = p->stride_w, reach = (p->kw - 1) * p->dilation_w;

    for (size_t item = begin; item < end; item++) {
        const int h = item % p->h;
        const float *image = d->y + item / p->h * p->oh * p->ow * p->k;

        for (int phase = 0; phase < step && phase < p->w; phase++)
            for (int w = phase, columns; w < p->w; w += columns * step) {
                struct taps t = { .step = p->k, .dst_step = (size_t)step * p->c,
                                  .dst = d->x + (item * p->w + w) * p->c, .channels = p->c,
                                  .started = d->accumulate };
                const int last = w + (COLUMNS - 1) * step;

                columns = w + p->left >= reach && last < p->w &&
                          last + p->left < p->ow * step ? COLUMNS : 1;
                for (int kh = 0; kh < p->kh; kh++) {
                    const int above = h + p->top - kh * p->dilation_h, oh = above / p->stride_h;

                    if (above < 0 || above % p->stride_h || oh >= p->oh)
                        continue;
                    for (int kw = 0; kw < p->kw; kw++) {
                        const int before = w + p->left - kw * p->dilation_w, ow = before / step;

                        if (before >= 0 && before % step == 0 && ow < p->ow)
                            push(&t, columns, image + ((size_t)oh * p->ow + ow) * p->k,
                                 d->w + (size_t)(kh * p->kw + kw) * p->k);
                    }
                }
                flush(&t, columns);
            }
    }
}

/* The same two for mult > 1, one channel after the other. */
PM_CLONES static void forward_rows_mult(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;

    memset(d->y + begin * p->ow * p->k, 0, (end - begin) * p->ow * p->k * sizeof(float));
    for (size_t item = begin; item < end; item++)
        for (int ow = 0; ow < p->ow; ow++)
            for (int tap = 0; tap < p->kh * p->kw; tap++) {
                const int h = (int)(item % p->oh) * p->stride_h - p->top +
                              tap / p->kw * p->dilation_h;
                const int w = ow * p->stride_w - p->left + tap % p->kw * p->dilation_w;
                const float *x = d->x + ((item / p->oh * p->h + h) * p->w + w) * p->c;
                const float *f = d->w + (size_t)tap * p->k;
                float *y = d->y + (item * p->ow + ow) * p->k;

                if (h < 0 || h >= p->h || w < 0 || w >= p->w)
                    continue;
                for (int c = 0; c < p->c; c++)
                    for (int m = 0; m < d->mult; m++)
                        y[c * d->mult + m] += x[c] * f[c * d->mult + m];
            }
}

PM_CLONES static void data_rows_mult(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;

    if (!d->accumulate)
        memset(d->x + begin * p->w * p->c, 0, (end - begin) * p->w * p->c * sizeof(float));
    for (size_t item = begin; item < end; item++)
        for (int w = 0; w < p->w; w++)
            for (int tap = 0; tap < p->kh * p->kw; tap++) {
                const int above = (int)(item % p->h) + p->top - tap / p->kw * p->dilation_h;
                const int before = w + p->left - tap % p->kw * p->dilation_w;
                const int oh = above / p->stride_h, ow = before / p->stride_w;
                const float *dy = d->y + ((item / p->h * p->oh + oh) * p->ow + ow) * p->k;
                const float *f = d->w + (size_t)tap * p->k;
                float *x = d->x + (item * p->w + w) * p->c;

                if (above < 0 || above % p->stride_h || oh >= p->oh || before < 0 ||
                    before % p->stride_w || ow >= p->ow)
                    continue;
                for (int c = 0; c < p->c; c++)
                    for (int m = 0; m < d->mult; m++)
                        x[c] += dy[c * d->mult + m] * f[c * d->mult + m];
            }
}

/* ---- filter gradient ------------------------------------------------------------------- */

/* Adds one output row's terms to part[tap][k] for `taps` neighbouring taps, from kw on. Handles 16
 * channels over all columns for which every tap is inside the image. The first `done` of these
 * channels keep their sums. */
PM_INLINE void row_block(const struct conv2d_params *p, const float *x, const float *dy,
                         float *part, int kw, int k, int done, int first, int last,
                         const int taps)
{
    vec sum[COLUMNS];

    for (int i = 0; i < taps; i++)
        sum[i] = CVEC(part + (size_t)i * p->k + k);
    for (int ow = first; ow < last; ow++) {
        const vec g = CVEC(dy + (size_t)ow * p->k + k);
        const float *at = x + (size_t)(ow * p->stride_w - p->left + kw * p->dilation_w) * p->c + k;

        for (int i = 0; i < taps; i++)
            sum[i] += CVEC(at + (size_t)i * p->dilation_w * p->c) * g;
    }
    for (int i = 0; i < taps; i++) {
        float *to = part + (size_t)i * p->k + k;

        if (done == 0)
            VEC(to) = sum[i];
        else
            memcpy(to + done, (const float *)&sum[i] + done, (LANES - done) * sizeof *to);
    }
}

/* The same for single columns and taps, any channels, any mult. */
PM_INLINE void cell(const struct depthwise *d, const float *x, const float *dy, float *part, int k)
{
    if (d->mult == 1)
        for (; k < d->p->k; k++)
            part[k] += x[k] * dy[k];
    else
        for (; k < d->p->k; k++)
            part[k] += x[k / d->mult] * dy[k];
}

/* Finds columns first..last-1: all their taps kw .. kw + taps - 1 are inside the image. */
static void inside(const struct conv2d_params *p, int kw, int taps, int *first, int *last)
{
    const int low = p->left - kw * p->dilation_w;
    const int high = p->w - 1 + p->left - (kw + taps - 1) * p->dilation_w;

    *first = low <= 0 ? 0 : (low + p->stride_w - 1) / p->stride_w;
    *last = high < 0 ? 0 : high / p->stride_w + 1;
    *last = *last < p->ow ? *last : p->ow;
    if (*first > *last)
        *first = *last;
}

/* Adds the terms of one output row dy and the image row x: part[kw][k] += terms. */
PM_INLINE void filter_row(const struct depthwise *d, const float *x, const float *dy, float *part)
{
    const struct conv2d_params *p = d->p;

    for (int kw = 0, taps; kw < p->kw; kw += taps) {
        int first, last, k = 0;
        float *to = part + (size_t)kw * p->k;

        taps = p->kw - kw >= 3 ? 3 : 1;
        inside(p, kw, taps, &first, &last);
        for (; k + LANES <= p->k && d->mult == 1; k += LANES)
            if (taps == 3)
                row_block(p, x, dy, to, kw, k, 0, first, last, 3);
            else
                row_block(p, x, dy, to, kw, k, 0, first, last, 1);
        if (k > 0 && k < p->k) { /* the last 16 channels; the loop above computed some of them */
            const int last_k = p->k - LANES;

            if (taps == 3)
                row_block(p, x, dy, to, kw, last_k, k - last_k, first, last, 3);
            else
                row_block(p, x, dy, to, kw, last_k, k - last_k, first, last, 1);
            k = p->k;
        }
        for (int i = 0; i < taps; i++)
            for (int ow = 0; ow < p->ow; ow++) {
                const int w = ow * p->stride_w - p->left + (kw + i) * p->dilation_w;

                if (w >= 0 && w < p->w)
                    cell(d, x + (size_t)w * p->c, dy + (size_t)ow * p->k, to + (size_t)i * p->k,
                         ow >= first && ow < last ? k : 0);
            }
    }
}

/* Computes partial filter gradients t[chunk][kh][kw][k]; a chunk is a run of output rows n * p->oh
 * + oh. */
PM_CLONES static void filter_chunks(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;
    const size_t rows = (size_t)p->n * p->oh, taps = (size_t)p->kh * p->kw;

    for (size_t chunk = begin; chunk < end; chunk++) {
        float *part = d->t + chunk * taps * p->k;

        memset(part, 0, taps * p->k * sizeof *part);
        for (size_t row = chunk * rows / d->chunks; row < (chunk + 1) * rows / d->chunks; row++)
            for (int kh = 0; kh < p->kh; kh++) {
                const int h = (int)(row % p->oh) * p->stride_h - p->top + kh * p->dilation_h;

                if (h >= 0 && h < p->h)
                    filter_row(d, d->x + (row / p->oh * p->h + h) * p->w * p->c,
                               d->y + row * p->ow * p->k, part + (size_t)kh * p->kw * p->k);
            }
    }
}

static void add_chunks(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const size_t size = (size_t)d->p->kh * d->p->kw * d->p->k;

    for (size_t i = begin; i < end; i++) {
        float sum = d->accumulate ? d->w[i] : 0;

        for (int chunk = 0; chunk < d->chunks; chunk++)
            sum += d->t[chunk * size + i];
        d->w[i] = sum;
    }
}

static int chunks_of(const struct conv2d_params *p)
{
    return p->n * p->oh < CHUNKS ? p->n * p->oh : CHUNKS;
}

size_t pm_depthwise_scratch(enum pm_conv_pass pass, const struct conv2d_params *p)
{
    if (pass != PM_CONV_BWD_FILTER)
        return 0;
    return (size_t)chunks_of(p) * p->kh * p->kw * p->k * sizeof(float);
}

void pm_depthwise_run(enum pm_conv_pass pass, const struct conv2d_params *p, float *x, float *w,
                      float *y, float *t, int accumulate)
{
    struct depthwise d = { .p = p, .x = x, .w = w, .y = y, .t = t, .mult = p->k / p->c,
                           .chunks = chunks_of(p), .accumulate = accumulate };

    if (pass == PM_CONV_FWD)
        pm_parallel((size_t)p->n * p->oh, 1, d.mult == 1 ? forward_rows : forward_rows_mult, &d);
    else if (pass == PM_CONV_BWD_DATA)
        pm_parallel((size_t)p->n * p->h, 1, d.mult == 1 ? data_rows : data_rows_mult, &d);
    else {
        pm_parallel(d.chunks, 1, filter_chunks, &d);
        pm_parallel((size_t)p->kh * p->kw * p->k, 256, add_chunks, &d);
    }
}
