/* Depthwise convolution on the CPU: groups == c, output channel k belongs to input channel
 * k / mult. Loops run over channels in blocks that stay in registers; each output row (forward),
 * input row (data gradient) or block of output rows (filter gradient) is one work item, so nothing
 * is shared between threads. Filter gradients: at most CHUNKS partial sums, added in order, so the
 * bits do not depend on the number of threads. */
#include <string.h>

#include <pumice/thread.h>

#include "base/vector.h"
#include "device/cpu/cpu_conv.h"

enum { LANES = 64, CHUNKS = 32 };

struct depthwise {
    const struct conv2d_params *p;
    float *x, *w, *y, *t;
    int mult, chunks, accumulate;
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* y[n][oh] for item = n * p->oh + oh */
PM_CLONES static void forward_rows(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;

    for (size_t item = begin; item < end; item++) {
        const int oh = item % p->oh;
        const size_t n = item / p->oh;

        for (int k0 = 0; k0 < p->k; k0 += LANES) {
            const int lanes = min(LANES, p->k - k0);
            int channel[LANES];

            for (int i = 0; i < lanes; i++)
                channel[i] = (k0 + i) / d->mult;
            for (int ow = 0; ow < p->ow; ow++) {
                float sum[LANES] = { 0 };

                for (int kh = 0; kh < p->kh; kh++) {
                    const int h = oh * p->stride_h - p->top + kh * p->dilation_h;

                    if (h < 0 || h >= p->h)
                        continue;
                    for (int kw = 0; kw < p->kw; kw++) {
                        const int w = ow * p->stride_w - p->left + kw * p->dilation_w;
                        const float *x = d->x + ((n * p->h + h) * p->w + w) * p->c;
                        const float *f = d->w + (size_t)(kh * p->kw + kw) * p->k + k0;

                        if (w < 0 || w >= p->w)
                            continue;
                        if (d->mult == 1 && lanes == LANES)
                            for (int i = 0; i < LANES; i++)
                                sum[i] += x[k0 + i] * f[i];
                        else
                            for (int i = 0; i < lanes; i++)
                                sum[i] += x[channel[i]] * f[i];
                    }
                }
                memcpy(d->y + ((n * p->oh + oh) * p->ow + ow) * p->k + k0, sum,
                       lanes * sizeof *sum);
            }
        }
    }
}

/* dx[n][h] for item = n * p->h + h */
PM_CLONES static void data_rows(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;

    for (size_t item = begin; item < end; item++) {
        const int h = item % p->h;
        const size_t n = item / p->h;

        for (int c0 = 0; c0 < p->c; c0 += LANES) {
            const int lanes = min(LANES, p->c - c0);

            for (int w = 0; w < p->w; w++) {
                float sum[LANES] = { 0 };

                for (int kh = 0; kh < p->kh; kh++) {
                    const int above = h + p->top - kh * p->dilation_h, oh = above / p->stride_h;

                    if (above < 0 || above % p->stride_h || oh >= p->oh)
                        continue;
                    for (int kw = 0; kw < p->kw; kw++) {
                        const int before = w + p->left - kw * p->dilation_w;
                        const int ow = before / p->stride_w;

                        if (before < 0 || before % p->stride_w || ow >= p->ow)
                            continue;
                        const float *dy = d->y + ((n * p->oh + oh) * p->ow + ow) * p->k;
                        const float *f = d->w + (size_t)(kh * p->kw + kw) * p->k;

                        if (d->mult == 1 && lanes == LANES)
                            for (int i = 0; i < LANES; i++)
                                sum[i] += dy[c0 + i] * f[c0 + i];
                        else
                            for (int i = 0; i < lanes; i++)
                                for (int m = 0; m < d->mult; m++)
                                    sum[i] += dy[(c0 + i) * d->mult + m] *
                                              f[(c0 + i) * d->mult + m];
                    }
                }
                memcpy(d->x + ((n * p->h + h) * p->w + w) * p->c + c0, sum, lanes * sizeof *sum);
            }
        }
    }
}

/* Adds one output row's terms of tap (kh, kw) to sum[k0 .. k0 + lanes - 1]. x: the input row. */
static inline void tap_terms(const struct depthwise *d, const float *x, const float *dy, int kw,
                             int k0, int lanes, float *sum)
{
    const struct conv2d_params *p = d->p;

    for (int ow = 0; ow < p->ow; ow++) {
        const int w = ow * p->stride_w - p->left + kw * p->dilation_w;

        if (w < 0 || w >= p->w)
            continue;
        const float *a = x + (size_t)w * p->c, *b = dy + (size_t)ow * p->k + k0;

        if (d->mult == 1 && lanes == LANES)
            for (int i = 0; i < LANES; i++)
                sum[i] += a[k0 + i] * b[i];
        else
            for (int i = 0; i < lanes; i++)
                sum[i] += a[(k0 + i) / d->mult] * b[i];
    }
}

/* Partial filter gradients t[chunk][kh][kw][k]; a chunk is a run of output rows n * p->oh + oh. */
PM_CLONES static void filter_chunks(void *ctx, size_t begin, size_t end)
{
    const struct depthwise *d = ctx;
    const struct conv2d_params *p = d->p;
    const size_t rows = (size_t)p->n * p->oh, taps = (size_t)p->kh * p->kw;

    for (size_t chunk = begin; chunk < end; chunk++) {
        float *part = d->t + chunk * taps * p->k;

        memset(part, 0, taps * p->k * sizeof *part);
        for (size_t row = chunk * rows / d->chunks; row < (chunk + 1) * rows / d->chunks; row++) {
            const int oh = row % p->oh;
            const size_t n = row / p->oh;
            const float *dy = d->y + row * p->ow * p->k;

            for (int kh = 0; kh < p->kh; kh++) {
                const int h = oh * p->stride_h - p->top + kh * p->dilation_h;
                const float *x = d->x + (n * p->h + h) * p->w * p->c;

                if (h < 0 || h >= p->h)
                    continue;
                for (int kw = 0; kw < p->kw; kw++)
                    for (int k0 = 0; k0 < p->k; k0 += LANES) {
                        const int lanes = min(LANES, p->k - k0);
                        float sum[LANES] = { 0 };

                        tap_terms(d, x, dy, kw, k0, lanes, sum);
                        for (int i = 0; i < lanes; i++)
                            part[(size_t)(kh * p->kw + kw) * p->k + k0 + i] += sum[i];
                    }
            }
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
        pm_parallel((size_t)p->n * p->oh, 1, forward_rows, &d);
    else if (pass == PM_CONV_BWD_DATA)
        pm_parallel((size_t)p->n * p->h, 1, data_rows, &d);
    else {
        pm_parallel(d.chunks, 1, filter_chunks, &d);
        pm_parallel((size_t)p->kh * p->kw * p->k, 256, add_chunks, &d);
    }
}
