/* pools: max_pool and avg_pool.
 *
 * Windows follow TensorFlow's rules. Padding never counts: a maximum ignores it, and an average
 * divides by the cells in the image (or, optionally, by those in image and padding). ceil is the
 * rule of PyTorch and ONNX: a last window that extends beyond the padding is kept if it begins
 * before the padding's end. If several cells are equal, the first in row order is the maximum and
 * gets the gradient. The forward call saves its place. Backward calls gather: a pixel sums the
 * gradients of the windows that cover it, in the windows' order. */
#include "onnx/export_nodes.h"
#include "layers/infer.h"

#include <float.h>

#include "device/pick.h"
#include "layers/vmath.h"
#include "pool.params.h"

struct pool_cfg {
    struct pm_ints kernel, stride, dilation, pad;
    int padding;
    bool ceil, count_pad;
};

#define WINDOW_OPTIONS                                                                   \
    PM_INTS(pool_cfg, kernel, "[2, 2]", 1, 4096,                                         \
            "height and width of the window, or one for both"),                          \
        PM_INTS(pool_cfg, stride, "[2, 2]", 1, 4096,                                     \
                "rows and columns between windows, or one for both"),                    \
        PM_ENUM(pool_cfg, padding, PM_PAD_VALID, "same|valid|explicit",                  \
                "whether windows may extend beyond the image"),                          \
        PM_INTS(pool_cfg, pad, "[]", 0, 4096, "[top, bottom, left, right] if explicit"), \
        PM_BOOL(pool_cfg, ceil, false, "allow a last window beyond the padding; not with same")
static const struct pm_opt max_opts[] = {
    WINDOW_OPTIONS,
    PM_INTS(pool_cfg, dilation, "[1, 1]", 1, 4096, "distance between a window's cells, or one "
                                                   "number for both axes"),
    { 0 },
};
static const struct pm_opt avg_opts[] = {
    WINDOW_OPTIONS,
    PM_BOOL(pool_cfg, count_pad, false, "also count padding in the divisor"),
    { 0 },
};

/* ---- geometry -------------------------------------------------------------------------- */

struct range { int begin, end; };

/* Returns the taps inside the image of the window that begins at `first`. */
PM_INLINE struct range taps(int first, int kernel, int dilation, int size)
{
    int begin = first < 0 ? (dilation - 1 - first) / dilation : 0;
    int end = (size - first + dilation - 1) / dilation;

    return (struct range){ begin, kernel < end ? kernel : end };
}

/* Returns the windows that cover input position i. */
PM_INLINE struct range windows(int i, int before, int reach, int stride, int out)
{
    int last = i + before, first = last - reach + 1, end = last / stride + 1;

    return (struct range){ first <= 0 ? 0 : (first + stride - 1) / stride, end < out ? end : out };
}

/* Returns the divisor of the mean over the window at y0, x0. */
PM_INLINE float cells(const struct pool_params *p, int y0, int x0)
{
    struct range ky = taps(y0, p->kh, 1, p->h), kx = taps(x0, p->kw, 1, p->w);

    if (p->count_pad) {
        ky = taps(0, p->kh, 1, p->h + p->bottom - y0);
        kx = taps(0, p->kw, 1, p->w + p->right - x0);
    }
    return (float)((ky.end - ky.begin) * (kx.end - kx.begin));
}

static int pair(struct pm_ints v, int axis)
{
    return v.count ? v.v[axis ? v.count - 1 : 0] : 1;
}

/* Size and padding of axis 0 or 1 for an input of `in` cells. out is below 1 if no window fits. */
static struct pm_axis axis_of(const struct pool_cfg *cfg, int axis, int in)
{
    const int kernel = pair(cfg->kernel, axis), stride = pair(cfg->stride, axis);
    const int dilation = pair(cfg->dilation, axis);
    const int *pad = cfg->pad.count == 4 ? cfg->pad.v + 2 * axis : (const int[]){ 0, 0 };
    struct pm_axis a = pm_axis_of(in, kernel, stride, dilation, cfg->padding, pad[0], pad[1]);
    const int64_t room = (int64_t)in + a.before + a.after - (int64_t)(kernel - 1) * dilation - 1;

    if (cfg->ceil && cfg->padding != PM_PAD_SAME && room >= 0 && room % stride != 0 &&
        (int64_t)a.out * stride < (int64_t)in + a.before)
        a.out++;
    return a;
}

static struct pool_params params_of(const struct pm_node *n, struct pm_shape x)
{
    const struct pool_cfg *cfg = n->cfg;
    struct pm_axis h = axis_of(cfg, 0, x.dim[1]), w = axis_of(cfg, 1, x.dim[2]);

    return (struct pool_params){
        .n = x.dim[0], .h = x.dim[1], .w = x.dim[2], .c = x.dim[3], .oh = h.out, .ow = w.out,
        .kh = pair(cfg->kernel, 0), .kw = pair(cfg->kernel, 1),
        .stride_h = pair(cfg->stride, 0), .stride_w = pair(cfg->stride, 1),
        .dilation_h = pair(cfg->dilation, 0), .dilation_w = pair(cfg->dilation, 1),
        .top = h.before, .left = w.before, .bottom = h.after, .right = w.after,
        .count_pad = cfg->count_pad,
    };
}

/* Whether every window has a cell in the image. */
static bool all_filled(int out, int stride, int before, int kernel, int dilation, int size)
{
    for (int o = 0; o < out; o++) {
        struct range k = taps(o * stride - before, kernel, dilation, size);

        if (k.begin >= k.end)
            return false;
    }
    return true;
}

static int check_pair(const struct pm_node *n, const char *key, struct pm_ints v)
{
    if (v.count < 1 || v.count > 2)
        return pm_fail(PM_ECONFIG, "%s: %s has %d numbers, not 1 or 2 (height and width)", n->name,
                       key, v.count);
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    const struct pool_cfg *cfg = n->cfg;
    struct pm_shape x = n->in[0]->out_shape;
    char text[64];
    int err = PM_OK;

    if (x.rank != 4)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: %s needs an input of rank 4 (n, h, w, c), not %s", n->name,
                       n->layer->name, pm_shape_text(x, text)));
    PM_TRY(check_pair(n, "kernel", cfg->kernel));
    PM_TRY(check_pair(n, "stride", cfg->stride));
    if (cfg->dilation.count)
        PM_TRY(check_pair(n, "dilation", cfg->dilation));
    if (cfg->pad.count != (cfg->padding == PM_PAD_EXPLICIT ? 4 : 0))
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: pad has %d numbers; padding \"explicit\" takes [top, bottom, "
                       "left, right], others none",
                       n->name, cfg->pad.count));
    struct pool_params p = params_of(n, x);
    if (p.oh < 1 || p.ow < 1)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: a window of %dx%d does not fit into %s: use padding=same, a "
                       "smaller kernel or a larger input",
                       n->name, p.kh, p.kw, pm_shape_text(x, text)));
    if (!all_filled(p.oh, p.stride_h, p.top, p.kh, p.dilation_h, p.h) ||
        !all_filled(p.ow, p.stride_w, p.left, p.kw, p.dilation_w, p.w))
        PM_TRY(pm_fail(
            PM_ECONFIG,
            "%s: a window of %dx%d would lie entirely in the padding of %s: use less padding",
            n->name, p.kh, p.kw, pm_shape_text(x, text)));
    n->out_shape = PM_SHAPE4(p.n, p.oh, p.ow, p.c);
    n->out_type = PM_F32;
    PM_TRY(pm_need_floats(n, 0, 0));
out:
    return err;
}

static double flops(const void *params, size_t count)
{
    const struct pool_params *p = params;
    return (double)count * p->kh * p->kw * p->c;
}

/* ---- max_pool -------------------------------------------------------------------------- */

/* Computes one output pixel; x: the image. NaN counts as the largest value, so that it
 * propagates. */
PM_INLINE void max_pixel(const struct pool_params *p, const float *x, int y0, int x0, float *y,
                         int *arg)
{
    struct range ky = taps(y0, p->kh, p->dilation_h, p->h);
    struct range kx = taps(x0, p->kw, p->dilation_w, p->w);
    int c = p->c;

    for (int u = ky.begin; u < ky.end; u++)
        for (int v = kx.begin; v < kx.end; v++) {
            int place = (y0 + u * p->dilation_h) * p->w + x0 + v * p->dilation_w;
            const float *tap = x + (size_t)place * c;

            if (u == ky.begin && v == kx.begin) {
                memcpy(y, tap, sizeof *y * c);
                for (int k = 0; arg && k < c; k++)
                    arg[k] = place;
            } else if (arg) {
                PM_SIMD
                for (int k = 0; k < c; k++) {
                    int better = (tap[k] > y[k]) | (tap[k] != tap[k]);
                    y[k] = better ? tap[k] : y[k];
                    arg[k] = better ? place : arg[k];
                }
            } else {
                PM_SIMD
                for (int k = 0; k < c; k++)
                    y[k] = (tap[k] > y[k]) | (tap[k] != tap[k]) ? tap[k] : y[k];
            }
        }
}

PM_CLONES static void max_fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct pool_params *p = a->params;
    const float *x = a->buf[0];
    float *y = a->buf[1];
    int *arg = a->buf[2];

    for (size_t i = begin; i < end; i++) {
        int ox = (int)(i % p->ow), oy = (int)(i / p->ow % p->oh);
        size_t image = i / p->ow / p->oh;

        max_pixel(p, x + image * p->h * p->w * p->c, oy * p->stride_h - p->top,
                  ox * p->stride_w - p->left, y + i * p->c, arg ? arg + i * p->c : NULL);
    }
}

PM_CLONES static void max_bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct pool_params *p = a->params;
    const int *arg = a->buf[0];
    const float *dy = a->buf[1];
    float *dx = a->buf[2];
    int reach_h = (p->kh - 1) * p->dilation_h + 1, reach_w = (p->kw - 1) * p->dilation_w + 1;
    int c = p->c;

    for (size_t i = begin; i < end; i++) {
        int ix = (int)(i % p->w), iy = (int)(i / p->w % p->h), place = iy * p->w + ix;
        size_t image = i / p->w / p->h;
        struct range wy = windows(iy, p->top, reach_h, p->stride_h, p->oh);
        struct range wx = windows(ix, p->left, reach_w, p->stride_w, p->ow);
        float *out = dx + i * c;

        if (!p->accumulate)
            memset(out, 0, sizeof *out * c);
        for (int oy = wy.begin; oy < wy.end; oy++)
            for (int ox = wx.begin; ox < wx.end; ox++) {
                size_t o = ((image * p->oh + oy) * p->ow + ox) * c;

                PM_SIMD
                for (int k = 0; k < c; k++)
                    out[k] += arg[o + k] == place ? dy[o + k] : 0;
            }
    }
}

static bool max_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    const struct pool_params *p = params;
    (void)caps;
    return pick_four("max_pool_fwd4", "max_pool_fwd", p->c % 4 == 0, count * p->c,
                     0, level, out);
}

static bool max_bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    const struct pool_params *p = params;
    (void)caps;
    return pick_four("max_pool_bwd4", "max_pool_bwd", p->c % 4 == 0, count * p->c, 0, level, out);
}

/* arg: places of the maxima, row * w + column in the image. */
static const struct pm_kernel max_fwd = {
    .name = "max_pool_fwd", .bufs = "r:x w:y w?:arg", .params_size = sizeof(struct pool_params),
    .cpu = max_fwd_cpu, .grain = 16, .pick = max_fwd_pick, .flops = flops,
};
static const struct pm_kernel max_bwd = {
    .name = "max_pool_bwd", .bufs = "r:arg r:dy u:dx", .params_size = sizeof(struct pool_params),
    .accumulate = offsetof(struct pool_params, accumulate) + 1,
    .cpu = max_bwd_cpu, .grain = 16, .pick = max_bwd_pick, .flops = flops,
};

static void max_forward(struct pm_node *n, struct pm_calls *c)
{
    struct pool_params p = params_of(n, n->x.shape);
    struct pm_tensor arg = n->train ? pm_save(c, n, 0, n->y.shape, PM_I32) : PM_NO_TENSOR;
    pm_call(c, &max_fwd, (size_t)p.n * p.oh * p.ow, &p, PM_BUFS(n->x, n->y, arg));
}

static void max_backward(struct pm_node *n, struct pm_calls *c)
{
    struct pool_params p = params_of(n, n->x.shape);

    if (pm_has(n->dx))
        pm_call(c, &max_bwd, (size_t)p.n * p.h * p.w, &p, PM_BUFS(n->saved[0], n->dy, n->dx));
}

/* ---- avg_pool -------------------------------------------------------------------------- */

PM_CLONES static void avg_fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct pool_params *p = a->params;
    const float *x = a->buf[0];
    float *y = a->buf[1];
    int c = p->c;

    for (size_t i = begin; i < end; i++) {
        int ox = (int)(i % p->ow), oy = (int)(i / p->ow % p->oh);
        int y0 = oy * p->stride_h - p->top, x0 = ox * p->stride_w - p->left;
        struct range ky = taps(y0, p->kh, 1, p->h), kx = taps(x0, p->kw, 1, p->w);
        const float *image = x + i / p->ow / p->oh * p->h * p->w * c;
        float *out = y + i * c, divisor = cells(p, y0, x0);

        memset(out, 0, sizeof *out * c);
        for (int u = ky.begin; u < ky.end; u++)
            for (int v = kx.begin; v < kx.end; v++) {
                const float *tap = image + ((size_t)(y0 + u) * p->w + x0 + v) * c;

                PM_SIMD
                for (int k = 0; k < c; k++)
                    out[k] += tap[k];
            }
        PM_SIMD
        for (int k = 0; k < c; k++)
            out[k] /= divisor;
    }
}

PM_CLONES static void avg_bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct pool_params *p = a->params;
    const float *dy = a->buf[0];
    float *dx = a->buf[1];
    int c = p->c;

    for (size_t i = begin; i < end; i++) {
        int ix = (int)(i % p->w), iy = (int)(i / p->w % p->h);
        size_t image = i / p->w / p->h;
        struct range wy = windows(iy, p->top, p->kh, p->stride_h, p->oh);
        struct range wx = windows(ix, p->left, p->kw, p->stride_w, p->ow);
        float *out = dx + i * c;

        if (!p->accumulate)
            memset(out, 0, sizeof *out * c);
        for (int oy = wy.begin; oy < wy.end; oy++)
            for (int ox = wx.begin; ox < wx.end; ox++) {
                const float *from = dy + ((image * p->oh + oy) * p->ow + ox) * c;
                float scale =
                    1.0f / cells(p, oy * p->stride_h - p->top, ox * p->stride_w - p->left);

                PM_SIMD
                for (int k = 0; k < c; k++)
                    out[k] += from[k] * scale;
            }
    }
}

static bool avg_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    const struct pool_params *p = params;
    (void)caps;
    return pick_four("avg_pool_fwd4", "avg_pool_fwd", p->c % 4 == 0, count * p->c, 0, level, out);
}

static bool avg_bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    const struct pool_params *p = params;
    (void)caps;
    return pick_four("avg_pool_bwd4", "avg_pool_bwd", p->c % 4 == 0, count * p->c, 0, level, out);
}

static const struct pm_kernel avg_fwd = {
    .name = "avg_pool_fwd", .bufs = "r:x w:y", .params_size = sizeof(struct pool_params),
    .cpu = avg_fwd_cpu, .grain = 16, .pick = avg_fwd_pick, .flops = flops,
};
static const struct pm_kernel avg_bwd = {
    .name = "avg_pool_bwd", .bufs = "r:dy u:dx", .params_size = sizeof(struct pool_params),
    .accumulate = offsetof(struct pool_params, accumulate) + 1,
    .cpu = avg_bwd_cpu, .grain = 16, .pick = avg_bwd_pick, .flops = flops,
};

static void avg_forward(struct pm_node *n, struct pm_calls *c)
{
    struct pool_params p = params_of(n, n->x.shape);

    pm_call(c, &avg_fwd, (size_t)p.n * p.oh * p.ow, &p, PM_BUFS(n->x, n->y));
}

static void avg_backward(struct pm_node *n, struct pm_calls *c)
{
    struct pool_params p = params_of(n, n->x.shape);

    if (pm_has(n->dx))
        pm_call(c, &avg_bwd, (size_t)p.n * p.h * p.w, &p, PM_BUFS(n->dy, n->dx));
}

/* ---- ONNX ------------------------------------------------------------------------------ */

/* Whether the padding is at least the kernel's size, which dilated windows allow. Runtimes require
 * less padding than the kernel has cells. */
static bool is_far_padded(const struct pool_params *p)
{
    return p->top >= p->kh || p->bottom >= p->kh || p->left >= p->kw || p->right >= p->kw;
}

static const char *pad_lowest(struct pm_export *g, const char *x, const struct pool_params *p)
{
    return pm_export_op(g, "Pad",
                        PM_VALUES(x, pm_export_integers(g, PM_INT64S(0, 0, p->top, p->left, 0, 0,
                                                                     p->bottom, p->right)),
                                  pm_export_number(g, -FLT_MAX)));
}

static const char *export_windows(const struct pm_node *n, struct pm_export *g, const char *op)
{
    const struct pool_cfg *cfg = n->cfg;
    const struct pool_params p = params_of(n, n->in[0]->out_shape);
    struct pm_shape x = n->in[0]->out_shape;
    struct pm_export_window w = {
        { p.kh, p.kw }, { p.stride_h, p.stride_w }, { p.dilation_h, p.dilation_w },
        (enum pm_padding)cfg->padding, { 0 }, { 0 },
    };
    const char *y = pm_export_x(g, n, 0);

    for (int i = 0; i < 2 && cfg->pad.count == 4; i++)
        w.before[i] = cfg->pad.v[2 * i], w.after[i] = cfg->pad.v[2 * i + 1];
    if (is_far_padded(&p)) {
        y = pad_lowest(g, y, &p);
        x.dim[1] += p.top + p.bottom, x.dim[2] += p.left + p.right;
        w.padding = PM_PAD_VALID;
    }
    y = pm_export_op(g, op, PM_VALUES(y));
    pm_export_window(g, x, &w);
    if (cfg->ceil && cfg->padding != PM_PAD_SAME)
        pm_export_int(g, "ceil_mode", 1);
    if (cfg->count_pad)
        pm_export_int(g, "count_include_pad", 1);
    return y;
}

static const char *max_onnx(const struct pm_node *n, struct pm_export *g)
{
    return export_windows(n, g, "MaxPool");
}

static const char *avg_onnx(const struct pm_node *n, struct pm_export *g)
{
    return export_windows(n, g, "AveragePool");
}

/* ---- rows ------------------------------------------------------------------------------ */

const struct pm_layer pm_layer_max_pool = {
    .name = "max_pool", .help = "largest value of each window", .opts = max_opts,
    .cfg_size = sizeof(struct pool_cfg), .copies_values = true, .infer = infer,
    .forward = max_forward, .backward = max_backward, .onnx = max_onnx,
    .accumulates = true,
};
const struct pm_layer pm_layer_avg_pool = {
    .name = "avg_pool",
    .help = "mean of each window's cells that are in the image",
    .opts = avg_opts,
    .cfg_size = sizeof(struct pool_cfg),
    .infer = infer,
    .forward = avg_forward,
    .backward = avg_backward,
    .onnx = avg_onnx,
    .accumulates = true,
};
