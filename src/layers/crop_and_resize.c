/* crop_and_resize: crops of a map, each resized to the same size. Inputs: map [n,H,W,C], boxes
 * [n,R,4] and, optionally, count I32 [n]; crops.h describes them. Output: [n R, height, width, C].
 * Row i R + r is box r of image i. Each value is the bilinear mean of the four cells around its
 * sample.
 *
 * Only the map gets a gradient. Each of its cells sums over the samples that touch it, boxes and
 * samples in order, so the same bits come in every run. crop_spans lists for each row and column of
 * the map the rows or columns of each box's samples that touch it. */
#include "layers/crops.h"

#include <string.h>

#include "device/pick.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"

struct crop_cfg { struct pm_ints size; };

static const struct pm_opt opts[] = {
    PM_INTS(crop_cfg, size, "[14]", 1, PM_CROP_MOST_SIDE,
            "height and width of a crop, or one for both"),
    { 0 },
};

/* ---- forward --------------------------------------------------------------------------------- */

/* y = the weighted sum of two neighbours in each of two rows. */
PM_INLINE void blend(const float *top, const float *bottom, int right, float fy, float fx, int c,
                     float *y)
{
    const float a = (1 - fy) * (1 - fx), b = (1 - fy) * fx, d = fy * (1 - fx), e = fy * fx;
    const float *top_next = top + right, *bottom_next = bottom + right;

    PM_SIMD
    for (int k = 0; k < c; k++)
        y[k] = a * top[k] + b * top_next[k] + d * bottom[k] + e * bottom_next[k];
}

/* Items: rows of all crops. */
PM_CLONES static void fwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct crop_params *p = args->params;
    const size_t rows = (size_t)p->rows, cols = (size_t)p->cols, c = (size_t)p->c;
    const size_t line = (size_t)p->w * c, per_image = (size_t)p->per_image;

    for (size_t i = begin; i < end; i++) {
        const size_t box = i / rows, row = box * (rows + cols) + i % rows;
        const int32_t *place = args->buf[1], *col = place + box * (rows + cols) + rows;
        const float *weight = args->buf[2], *fx = weight + box * (rows + cols) + rows;
        const size_t at =
            box / per_image * (size_t)p->h + (size_t)(place[row] < 0 ? 0 : place[row]);
        const float *x = (const float *)args->buf[0] + at * line;
        float *y = (float *)args->buf[3] + i * cols * c;

        for (size_t j = 0; j < cols; j++, y += c) {
            const float *top = x + (size_t)(col[j] < 0 ? 0 : col[j]) * c;

            if (place[row] < 0 || col[j] < 0)
                memset(y, 0, c * sizeof *y);
            else
                blend(top, place[row] + 1 < p->h ? top + line : top,
                      col[j] + 1 < p->w ? (int)c : 0, weight[row], fx[j], (int)c, y);
        }
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct crop_params *p = params;

    (void)caps;
    return pick_four("crop_fwd4", "crop_fwd", p->c % 4 == 0,
                     count * (size_t)p->cols * (size_t)p->c, 0, level, out);
}

static double flops(const void *params, size_t count)
{
    const struct crop_params *p = params;

    (void)count;
    return 8.0 * p->boxes * p->rows * p->cols * p->c;
}

static const struct pm_kernel fwd = {
    .name = "crop_fwd", .bufs = "r:x r:place r:weight w:y",
    .params_size = sizeof(struct crop_params), .cpu = fwd_cpu, .grain = 1, .pick = fwd_pick,
    .flops = flops,
};

/* ---- backward -------------------------------------------------------------------------------- */

/* Items: (image, row or column of the map, box), rows first. A span is 65536 begin + end, and 0 if
 * the box has no sample there: samples begin..end-1 touch the row. They follow each other because
 * places rise or fall along a box. */
static void spans_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct crop_params *p = args->params;
    const size_t each = (size_t)p->per_image, axes = (size_t)(p->h + p->w);
    int32_t *span = args->buf[1];

    for (size_t i = begin; i < end; i++) {
        const size_t box = i / each / axes * each + i % each;
        const int at = (int)(i / each % axes), column = at >= p->h;
        const int cell = at - (column ? p->h : 0), samples = column ? p->cols : p->rows;
        const int32_t *place = (const int32_t *)args->buf[0] + box * (size_t)(p->rows + p->cols) +
                               (column ? p->rows : 0);
        int first = 0, last = 0;

        for (int k = 0; k < samples; k++)
            if (place[k] >= 0 && (place[k] == cell || place[k] + 1 == cell)) {
                first = last == 0 ? k : first;
                last = k + 1;
            }
        span[i] = first << 16 | last;
    }
}

static double spans_flops(const void *params, size_t count)
{
    const struct crop_params *p = params;
    return (double)count * (p->rows + p->cols);
}

static const struct pm_kernel spans = {
    .name = "crop_spans", .bufs = "r:place w:span", .params_size = sizeof(struct crop_params),
    .cpu = spans_cpu, .grain = 256, .flops = spans_flops,
};

/* Adds the gradient of one sample, times w, to the cells at `to` and `to` + next, which have the
 * weights x0 and x1. */
PM_INLINE void add_one(const float *dy, float w, float x0, float x1, int c, float *to, int next)
{
    const float a = x0 * w, d = x1 * w;
    float *right = to + next;

    if (next == 0) { /* the map's only column */
        PM_SIMD
        for (int k = 0; k < c; k++)
            to[k] += a * dy[k];
        return;
    }
    PM_SIMD
    for (int k = 0; k < c; k++) {
        to[k] += a * dy[k];
        right[k] += d * dy[k];
    }
}

/* Adds the gradients of two samples, one below the other. Weights w belong to the samples, x to the
 * cells. A missing second sample is no pair with the weight 0, because 0 times infinity is NaN. */
PM_INLINE void add_pair(const float *dy, const float *below, float w0, float w1, float x0, float x1,
                        int c, float *to, int next)
{
    const float a = x0 * w0, b = x0 * w1, d = x1 * w0, e = x1 * w1;
    float *right = to + next;

    if (next == 0) { /* the map's only column */
        PM_SIMD
        for (int k = 0; k < c; k++)
            to[k] += a * dy[k] + b * below[k];
        return;
    }
    PM_SIMD
    for (int k = 0; k < c; k++) {
        to[k] += a * dy[k] + b * below[k];
        right[k] += d * dy[k] + e * below[k];
    }
}

/* Adds the gradients of a box's samples to row `row` of the map. `down`: its span there. */
PM_INLINE void add_box(const struct pm_args *args, size_t box, int row, int32_t down, float *dx)
{
    const struct crop_params *p = args->params;
    const size_t rows = (size_t)p->rows, cols = (size_t)p->cols, c = (size_t)p->c;
    const int32_t *place = (const int32_t *)args->buf[1] + box * (rows + cols);
    const float *weight = (const float *)args->buf[2] + box * (rows + cols);
    const float *dy = (const float *)args->buf[0] + box * rows * cols * c;
    const int begin = down >> 16, end = down & 0xffff;

    for (size_t j = 0; j < cols; j++) {
        const int col = place[rows + j], next = col + 1 < p->w ? (int)c : 0;
        const float fx = weight[rows + j];

        for (int i = begin; i < end && col >= 0; i += 2) {
            const float *first = dy + ((size_t)i * cols + j) * c;
            const float w = pm_crops_weight(place[i], weight[i], row);
            float *to = dx + (size_t)col * c;

            if (i + 1 < end)
                add_pair(first, first + cols * c, w,
                         pm_crops_weight(place[i + 1], weight[i + 1], row), 1 - fx, fx, (int)c, to,
                         next);
            else
                add_one(first, w, 1 - fx, fx, (int)c, to, next);
        }
    }
}

/* Items: rows of the map. */
PM_CLONES static void bwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct crop_params *p = args->params;
    const size_t each = (size_t)p->per_image, h = (size_t)p->h;
    const size_t line = (size_t)p->w * (size_t)p->c;

    for (size_t i = begin; i < end; i++) {
        const size_t image = i / h;
        const int32_t *span = (const int32_t *)args->buf[3] +
                              (image * (size_t)(p->h + p->w) + i % h) * each;
        float *dx = (float *)args->buf[4] + i * line;

        memset(dx, 0, line * sizeof *dx);
        for (size_t r = 0; r < each; r++)
            if (span[r] != 0)
                add_box(args, image * each + r, (int)(i % h), span[r], dx);
    }
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct crop_params *p = params;

    (void)caps;
    return pick_four("crop_bwd4", "crop_bwd", p->c % 4 == 0, count * (size_t)p->w * (size_t)p->c, 0,
                     level, out);
}

static const struct pm_kernel bwd = {
    .name = "crop_bwd", .bufs = "r:dy r:place r:weight r:span w:dx",
    .params_size = sizeof(struct crop_params), .cpu = bwd_cpu, .grain = 1, .pick = bwd_pick,
    .flops = flops,
};

/* ---- the layer ------------------------------------------------------------------------------- */

static int read(const struct pm_node *n, struct crop_params *p)
{
    return pm_crops_read(n, 4, ((const struct crop_cfg *)n->cfg)->size, NULL, p);
}

static int infer(struct pm_node *n)
{
    return pm_crops_infer(n, 4, ((const struct crop_cfg *)n->cfg)->size);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct crop_params p;

    if (read(n, &p)) /* infer() checked it */
        return;
    pm_crops_places(n, c, &p, n->xs[1], pm_crops_count(n));
    pm_call(c, &fwd, (size_t)p.boxes * (size_t)p.rows, &p,
            PM_BUFS(n->x, n->saved[0], n->saved[1], n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct crop_params p;
    struct pm_tensor span;

    n->dxs[1] = PM_NO_TENSOR;
    if (read(n, &p) || !pm_has(n->dx))
        return;
    span = pm_temp(c, PM_SHAPE3(p.boxes / p.per_image, p.h + p.w, p.per_image), PM_I32);
    pm_call(c, &spans, pm_count(span), &p, PM_BUFS(n->saved[0], span));
    pm_call(c, &bwd, (size_t)(p.boxes / p.per_image) * (size_t)p.h, &p,
            PM_BUFS(n->dy, n->saved[0], n->saved[1], span, n->dx));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    struct crop_params p;

    if (read(n, &p))
        return NULL;
    return pm_crops_onnx_apart(g, pm_crops_onnx(n, g, &p), p.c, p.per_image, p.rows, p.cols);
}

const struct pm_layer pm_layer_crop_and_resize = {
    .name = "crop_and_resize",
    .help = "crops of a map, all resized to one size; inputs map, boxes, count of boxes",
    .opts = opts, .cfg_size = sizeof(struct crop_cfg), .min_inputs = 2, .max_inputs = 3,
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
