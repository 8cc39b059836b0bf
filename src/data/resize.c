/* resize: resizing by a list of weighted taps per output coordinate. Methods: TensorFlow 1's
 * nearest, bicubic and area, and Pillow's bilinear with antialiasing. Bilinear without antialiasing
 * is in render.c.
 *
 * TensorFlow's legacy rule is src = dst * (in / out) in float32, without a half-pixel offset.
 *
 * Pillow's resize is reproduced bit for bit. The filter is a triangle as wide as an input pixel or,
 * when shrinking, as an output pixel. Weights have 22 bits. Rows are resized first and rounded to 8
 * bits, then columns. */
#include <math.h>
#include <string.h>

#include "data/render.h"

/* ---- TensorFlow's ------------------------------------------------------------------------ */

float pm_aligned_step(int in, int out)
{
    return out > 1 ? (float)(in - 1) / (float)(out - 1) : 0;
}

struct taps {
    int *first; /* [out + 1] into index and weight */
    int *index;
    float *weight;
};

/* Keys' cubic kernel with A = -0.75 at distance d >= 0. */
static float keys(float d)
{
    const float a = -0.75f;
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static int clamp(int v, int most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

static int taps_of(enum pm_resize method, int dst, int in, float scale, int *index, float *weight)
{
    const float src = (float)dst * scale;
    int n = 0;

    if (method == PM_RESIZE_NEAREST) {
        index[0] = clamp((int)floorf(src), in - 1);
        weight[0] = 1;
        return 1;
    }
    if (method == PM_RESIZE_BICUBIC) {
        const int base = (int)src;
        const float f = (float)lrintf((src - (float)base) * 1024) / 1024;
        const float w[4] = { keys(1 + f), keys(f), keys(1 - f), keys(2 - f) };
        for (; n < 4; n++) {
            index[n] = clamp(base - 1 + n, in - 1);
            weight[n] = w[n];
        }
        return n;
    }
    const float end = (float)(dst + 1) * scale;
    for (int i = (int)floorf(src); (float)i < end; i++, n++) {
        const float from = src > (float)i ? src : (float)i;
        const float to = end < (float)(i + 1) ? end : (float)(i + 1);
        index[n] = clamp(i, in - 1);
        weight[n] = (to - from) / scale;
    }
    return n;
}

static struct taps taps_make(enum pm_resize method, int in, int out)
{
    const float scale = (float)in / (float)out;
    const size_t most = (size_t)out * ((size_t)ceilf(scale) + 4);
    struct taps t = { pm_malloc(((size_t)out + 1) * sizeof(int)), pm_malloc(most * sizeof(int)),
                      pm_malloc(most * sizeof(float)) };
    t.first[0] = 0;
    for (int i = 0; i < out; i++)
        t.first[i + 1] =
            t.first[i] + taps_of(method, i, in, scale, t.index + t.first[i], t.weight + t.first[i]);
    return t;
}

static void taps_free(struct taps t)
{
    pm_free(t.first);
    pm_free(t.index);
    pm_free(t.weight);
}

/* The last four input rows, resized to the output's columns. Neighbouring output rows share
 * them. */
struct lines {
    struct pm_view8 in;
    const float *values; /* replaces the view's pixels; or NULL */
    struct taps taps;    /* index: element times channels */
    int width;
    float *line[4]; /* owned */
    int held[4];    /* their row numbers */
};

#define RESIZE_LINE(row)                                       \
    for (int x = 0; x < l->width; x++)                         \
        for (int c = 0; c < channels; c++) {                   \
            float sum = 0;                                     \
            for (int j = first[x]; j < first[x + 1]; j++)      \
                sum += weight[j] * (float)(row)[index[j] + c]; \
            *out++ = sum;                                      \
        }

static const float *line_of(struct lines *l, int y)
{
    const int *first = l->taps.first, *index = l->taps.index, channels = l->in.channels;
    const float *weight = l->taps.weight;
    float *out = l->line[y & 3];

    if (l->held[y & 3] == y)
        return out;
    l->held[y & 3] = y;
    if (l->values) {
        const float *values = l->values + (size_t)y * (size_t)l->in.width * (size_t)channels;
        RESIZE_LINE(values)
    } else {
        const uint8_t *bytes = l->in.pixels + (size_t)y * l->in.stride;
        RESIZE_LINE(bytes)
    }
    return l->line[y & 3];
}

void pm_resize_taps(struct pm_view8 in, const float *values, enum pm_resize method, int height,
                    int width, float *out)
{
    const struct taps down = taps_make(method, in.height, height);
    struct lines l = { .in = in,
                       .values = values,
                       .taps = taps_make(method, in.width, width),
                       .width = width,
                       .held = { -1, -1, -1, -1 } };
    const size_t row = (size_t)width * (size_t)in.channels;
    float *memory = pm_malloc(4 * row * sizeof *memory);

    for (int k = 0; k < 4; k++)
        l.line[k] = memory + (size_t)k * row;
    for (int j = 0; j < l.taps.first[width]; j++)
        l.taps.index[j] *= in.channels;
    for (int y = 0; y < height; y++, out += row) {
        memset(out, 0, row * sizeof *out);
        for (int i = down.first[y]; i < down.first[y + 1]; i++) {
            const float *line = line_of(&l, down.index[i]), weight = down.weight[i];

            for (size_t k = 0; k < row; k++)
                out[k] += weight * line[k];
        }
    }
    pm_free(memory);
    taps_free(l.taps);
    taps_free(down);
}

/* ---- Pillow's ---------------------------------------------------------------------------- */

enum { BITS = 22 };
/* Output i is the weighted sum of inputs first[i] .. first[i] + taps[i] - 1. */
struct axis {
    int *first, *taps; /* first is owned, with the others behind it */
    int32_t *weight;   /* [out][most] */
    int most;
};

/* Returns the weights of outputs begin .. begin + count - 1, for a resize from `in` to `out`. */
static struct axis axis_of(int in, int out, int begin, int count)
{
    const double scale = (double)in / out, wide = scale < 1 ? 1 : scale;
    const int most = (int)ceil(wide) * 2 + 1;
    struct axis a = { .most = most };
    double *w = pm_malloc((size_t)most * sizeof *w);

    a.first = pm_calloc((size_t)count * (size_t)(most + 2), sizeof *a.first);
    a.taps = a.first + count;
    a.weight = (int32_t *)(a.taps + count);
    for (int i = 0; i < count; i++) {
        const double center = (begin + i + 0.5) * scale;
        const int low = (int)(center - wide + 0.5), high = (int)(center + wide + 0.5);
        const int first = low < 0 ? 0 : low, taps = (high > in ? in : high) - first;
        double sum = 0;
        for (int k = 0; k < taps; k++) {
            const double x = fabs((first + k - center + 0.5) / wide);
            w[k] = x < 1 ? 1 - x : 0;
            sum += w[k];
        }
        a.first[i] = first;
        a.taps[i] = taps;
        for (int k = 0; k < taps; k++)
            a.weight[i * most + k] = (int32_t)(0.5 + w[k] / sum * (1 << BITS));
    }
    pm_free(w);
    return a;
}

static uint8_t mixed(const uint8_t *x, size_t step, const int32_t *weight, int taps)
{
    int32_t sum = 1 << (BITS - 1);

    for (int k = 0; k < taps; k++)
        sum += x[(size_t)k * step] * weight[k];
    return (uint8_t)(sum >> BITS > 255 ? 255 : sum >> BITS);
}

void pm_resize_antialias(struct pm_view8 in, int height, int width, int y, int x, int rows,
                         int cols, float *out)
{
    const int c = in.channels;
    struct axis v = axis_of(in.height, height, y, rows), h = axis_of(in.width, width, x, cols);
    const int top = v.first[0], end = v.first[rows - 1] + v.taps[rows - 1];
    const size_t line = (size_t)cols * (size_t)c;
    uint8_t *wide = pm_malloc((size_t)(end - top) * line);

    for (int i = top; i < end; i++)
        for (int j = 0; j < cols; j++)
            for (int k = 0; k < c; k++)
                wide[(size_t)(i - top) * line + (size_t)(j * c + k)] =
                    mixed(in.pixels + (size_t)i * in.stride + (size_t)(h.first[j] * c + k),
                          (size_t)c, h.weight + (size_t)j * (size_t)h.most, h.taps[j]);
    for (int i = 0; i < rows; i++)
        for (size_t j = 0; j < line; j++)
            out[(size_t)i * line + j] =
                (float)mixed(wide + (size_t)(v.first[i] - top) * line + j, line,
                             v.weight + (size_t)i * (size_t)v.most, v.taps[i]);
    pm_free(wide);
    pm_free(v.first);
    pm_free(h.first);
}
