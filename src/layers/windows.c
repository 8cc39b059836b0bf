/* windows: slice copies a box of values out of its input, pad puts its input into a constant. Each
 * is the other's gradient, so two rows serve both. The rows have four axes. Shapes of lower rank
 * get leading axes of 1. In shapes of higher rank, axes that are taken whole join the axis before
 * them. */
#include "onnx/export_nodes.h"
#include "layers/infer.h"

#include <string.h>

#include "device/pick.h"
#include "layers/resample.h"
#include "window.params.h"

struct slice_cfg { struct pm_ints begin, size; };
struct pad_cfg {
    struct pm_ints pad;
    int mode;
    float value;
};

enum pad_mode { CONSTANT, REFLECT, EDGE };

static const struct pm_opt slice_opts[] = {
    PM_INTS(slice_cfg, begin, "[0]", 0, 1 << 30, "first index along each axis"),
    PM_INTS(slice_cfg, size, "[-1]", -1, 1 << 30, "number of elements along each axis; -1: the "
                                                  "rest"),
    { 0 },
};
static const struct pm_opt pad_opts[] = {
    PM_INTS(pad_cfg, pad, "[0, 0, 0, 0]", 0, 4096,
            "padding at the top, bottom, left and right, in pixels"),
    PM_ENUM(pad_cfg, mode, CONSTANT, "constant|reflect|edge",
            "fill with value, mirror at the edge, or repeat the edge"),
    PM_FLOAT(pad_cfg, value, 0, -3e38, 3e38, "value for mode constant"),
    { 0 },
};

/* ---- rows ------------------------------------------------------------------------------ */

/* Lines of the box: (image, row, column). */
static void take_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct window_params *p = a->params;
    const float *big = a->buf[0];
    float *box = a->buf[1];

    for (size_t i = begin; i < end; i++) {
        size_t x = i % p->sw, y = i / p->sw % p->sh, n = i / p->sw / p->sh;
        size_t from = (((n + p->n0) * p->h + y + p->h0) * p->w + x + p->w0) * p->c + p->c0;

        memcpy(box + i * p->sc, big + from, sizeof *box * p->sc);
    }
}

/* Items: lines of the big tensor. */
static void put_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct window_params *p = a->params;
    const float *box = a->buf[0];
    float *big = a->buf[1];

    for (size_t i = begin; i < end; i++) {
        int x = (int)(i % p->w) - p->w0, y = (int)(i / p->w % p->h) - p->h0;
        int n = (int)(i / p->w / p->h) - p->n0;
        float *to = big + i * p->c;

        for (int k = 0; k < p->c; k++)
            to[k] = p->fill;
        if (n >= 0 && n < p->sn && y >= 0 && y < p->sh && x >= 0 && x < p->sw)
            memcpy(to + p->c0, box + (((size_t)n * p->sh + y) * p->sw + x) * p->sc,
                   sizeof *to * p->sc);
    }
}

static bool take_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct window_params *p = params;
    (void)caps;
    return level == 0 && pm_pick_elements("window_take", 64, count * (size_t)p->sc, out);
}

static bool put_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct window_params *p = params;
    (void)caps;
    return level == 0 && pm_pick_elements("window_put", 64, count * (size_t)p->c, out);
}

static double flops(const void *params, size_t count)
{
    const struct window_params *p = params;
    return (double)count * p->c;
}

static const struct pm_kernel take = {
    .name = "window_take", .bufs = "r:big w:box", .params_size = sizeof(struct window_params),
    .cpu = take_cpu, .grain = 64, .pick = take_pick, .flops = flops,
};
static const struct pm_kernel put = {
    .name = "window_put", .bufs = "r:box w:big", .params_size = sizeof(struct window_params),
    .cpu = put_cpu, .grain = 64, .pick = put_pick, .flops = flops,
};

/* ---- calls ----------------------------------------------------------------------------- */

/* Fills the params of the box, which begins at `first` of the big tensor. Returns false if the box
 * needs more than four axes. */
static bool params_of(struct pm_shape big, struct pm_shape box, const int *first,
                      struct window_params *out)
{
    int b[PM_MAX_RANK], s[PM_MAX_RANK], f[PM_MAX_RANK], n = PM_MAX_RANK; /* filled from the end */
    bool whole = false; /* the axis after this one is taken whole */

    for (int i = big.rank - 1; i >= 0; i--) {
        if (whole) {
            f[n] = first[i] * b[n], s[n] *= box.dim[i], b[n] *= big.dim[i];
        } else {
            n--;
            f[n] = first[i], s[n] = box.dim[i], b[n] = big.dim[i];
        }
        whole = box.dim[i] == big.dim[i] && s[n] == b[n];
    }
    if (n < PM_MAX_RANK - 4)
        return false;
    while (n > PM_MAX_RANK - 4)
        n--, f[n] = 0, s[n] = b[n] = 1;
    *out = (struct window_params){ b[2], b[3], b[4], b[5], f[2], f[3], f[4], f[5],
                                   s[2], s[3], s[4], s[5] };
    return true;
}

static void call_take(struct pm_calls *c, const struct window_params *p, struct pm_tensor big,
                      struct pm_tensor box)
{
    pm_call(c, &take, (size_t)p->sn * p->sh * p->sw, p, PM_BUFS(big, box));
}

static void call_put(struct pm_calls *c, const struct window_params *p, struct pm_tensor box,
                     struct pm_tensor big)
{
    pm_call(c, &put, (size_t)p->n * p->h * p->w, p, PM_BUFS(box, big));
}

/* ---- slice ----------------------------------------------------------------------------- */

static bool slice_params(const struct pm_node *n, struct window_params *p)
{
    const struct slice_cfg *cfg = n->cfg;
    int first[PM_MAX_RANK] = { 0 };

    for (int i = 0; i < cfg->begin.count; i++)
        first[i] = cfg->begin.v[i];
    return params_of(n->in[0]->out_shape, n->out_shape, first, p);
}

static int slice_infer(struct pm_node *n)
{
    const struct slice_cfg *cfg = n->cfg;
    struct pm_shape x = n->in[0]->out_shape, y = x;
    struct window_params p;
    char text[64];

    if (cfg->begin.count > x.rank || cfg->size.count > x.rank || x.rank < 1)
        return pm_fail(PM_ECONFIG,
                       "%s: begin has %d numbers and size %d, but the input %s has %d axes",
                       n->name, cfg->begin.count, cfg->size.count, pm_shape_text(x, text), x.rank);
    for (int i = 0; i < x.rank; i++) {
        int begin = i < cfg->begin.count ? cfg->begin.v[i] : 0;
        int size = i < cfg->size.count ? cfg->size.v[i] : -1;

        if (begin >= x.dim[i] || size == 0 || size > x.dim[i] - begin)
            return pm_fail(PM_ECONFIG, "%s: begin %d and size %d of axis %d do not fit into %s",
                           n->name, begin, size, i, pm_shape_text(x, text));
        y.dim[i] = size < 0 ? x.dim[i] - begin : size;
    }
    n->out_shape = y;
    n->out_type = PM_F32;
    if (!slice_params(n, &p))
        return pm_fail(PM_ECONFIG, "%s: slice cuts more than four axes of %s: use two slices",
                       n->name, pm_shape_text(x, text));
    return pm_need_floats(n, 0, n->inputs - 1);
}

static void slice_forward(struct pm_node *n, struct pm_calls *c)
{
    struct window_params p;

    slice_params(n, &p);
    call_take(c, &p, n->x, n->y);
}

static void slice_backward(struct pm_node *n, struct pm_calls *c)
{
    struct window_params p;

    slice_params(n, &p);
    if (pm_has(n->dx))
        call_put(c, &p, n->dy, n->dx);
}

/* ---- pad ------------------------------------------------------------------------------- */

static int pad_infer(struct pm_node *n)
{
    const struct pad_cfg *cfg = n->cfg;
    struct pm_shape x = n->in[0]->out_shape;
    const int *pad = cfg->pad.v;
    char text[64];

    if (x.rank != 4 || cfg->pad.count != 4)
        return pm_fail(PM_ECONFIG,
                       "%s: pad needs four numbers (top, bottom, left, right) and an input "
                       "of rank 4, not %d numbers and %s",
                       n->name, cfg->pad.count, pm_shape_text(x, text));
    if (cfg->mode == REFLECT &&
        (pad[0] >= x.dim[1] || pad[1] >= x.dim[1] || pad[2] >= x.dim[2] || pad[3] >= x.dim[2]))
        return pm_fail(PM_ECONFIG,
                       "%s: pad of mode reflect must be smaller than the height and width of "
                       "%s",
                       n->name, pm_shape_text(x, text));
    n->out_shape = PM_SHAPE4(x.dim[0], x.dim[1] + pad[0] + pad[1], x.dim[2] + pad[2] + pad[3],
                             x.dim[3]);
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, n->inputs - 1);
}

static struct window_params pad_params(const struct pm_node *n)
{
    const int *pad = ((const struct pad_cfg *)n->cfg)->pad.v;
    const int first[4] = { 0, pad[0], pad[2], 0 };

    struct window_params p;

    params_of(n->out_shape, n->in[0]->out_shape, first, &p);
    return p;
}

/* Taps of one axis of an image of `in` cells for a padding that repeats or mirrors the image. */
static struct pm_taps pad_taps(enum pad_mode mode, int in, int before, int after)
{
    struct pm_taps t = { in, in + before + after, NULL };

    t.tap = pm_calloc((size_t)t.out, sizeof *t.tap);
    for (int o = 0; o < t.out; o++) {
        const int i = o - before;

        t.tap[o].weight[0] = 1;
        if (mode == REFLECT)
            t.tap[o].at[0] = i < 0 ? -i : i < in ? i : 2 * (in - 1) - i;
        else
            t.tap[o].at[0] = i < 0 ? 0 : i < in ? i : in - 1;
    }
    return t;
}

static void pad_resample(const struct pm_node *n, struct pm_calls *c, bool back,
                         struct pm_tensor from, struct pm_tensor to)
{
    const struct pad_cfg *cfg = n->cfg;
    const int *d = n->x.shape.dim, *pad = cfg->pad.v;
    const enum pad_mode mode = (enum pad_mode)cfg->mode;
    const struct pm_taps axis[2] = { pad_taps(mode, d[1], pad[0], pad[1]),
                                     pad_taps(mode, d[2], pad[2], pad[3]) };

    pm_resample(c, axis, back, from, to);
    pm_free(axis[0].tap);
    pm_free(axis[1].tap);
}

static void pad_forward(struct pm_node *n, struct pm_calls *c)
{
    const struct pad_cfg *cfg = n->cfg;
    struct window_params p = pad_params(n);

    p.fill = cfg->value;
    if (cfg->mode == CONSTANT)
        call_put(c, &p, n->x, n->y);
    else
        pad_resample(n, c, false, n->x, n->y);
}

static void pad_backward(struct pm_node *n, struct pm_calls *c)
{
    const struct window_params p = pad_params(n);

    if (!pm_has(n->dx))
        return;
    if (((const struct pad_cfg *)n->cfg)->mode == CONSTANT)
        call_take(c, &p, n->dy, n->dx);
    else
        pad_resample(n, c, true, n->dy, n->dx);
}

/* ---- ONNX ------------------------------------------------------------------------------ */

static const char *slice_onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct slice_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;
    int64_t from[PM_MAX_RANK], to[PM_MAX_RANK], axes[PM_MAX_RANK];
    int count = 0;

    for (int i = 0; i < x.rank; i++) {
        const int begin = i < cfg->begin.count ? cfg->begin.v[i] : 0;
        const int size = i < cfg->size.count ? cfg->size.v[i] : -1;

        if (begin == 0 && (size < 0 || size == x.dim[i]))
            continue;
        from[count] = begin;
        to[count] = size < 0 ? INT64_MAX : begin + size;
        axes[count++] = pm_export_axis(x.rank, i);
    }
    if (count == 0)
        return pm_export_x(g, n, 0);
    return pm_export_op(g, "Slice", PM_VALUES(pm_export_x(g, n, 0),
                                              pm_export_integers(g, count, from),
                                              pm_export_integers(g, count, to),
                                              pm_export_integers(g, count, axes)));
}

static const char *pad_onnx(const struct pm_node *n, struct pm_export *g)
{
    static const char *const modes[] = { "constant", "reflect", "edge" };
    const struct pad_cfg *cfg = n->cfg;
    const int *pad = cfg->pad.v;
    const char *pads = pm_export_integers(g, PM_INT64S(0, 0, pad[0], pad[2], 0, 0, pad[1], pad[3]));
    const char *y =
        pm_export_op(g, "Pad",
                     PM_VALUES(pm_export_x(g, n, 0), pads,
                               cfg->value != 0 ? pm_export_number(g, cfg->value) : NULL));

    if (cfg->mode != CONSTANT)
        pm_export_text(g, "mode", modes[cfg->mode]);
    return y;
}

const struct pm_layer pm_layer_slice = {
    .name = "slice", .help = "selects a box of the input", .opts = slice_opts,
    .cfg_size = sizeof(struct slice_cfg), .copies_values = true, .infer = slice_infer,
    .forward = slice_forward, .backward = slice_backward, .onnx = slice_onnx,
};
const struct pm_layer pm_layer_pad = {
    .name = "pad", .help = "pads images", .opts = pad_opts,
    .cfg_size = sizeof(struct pad_cfg), .infer = pad_infer, .forward = pad_forward,
    .backward = pad_backward, .onnx = pad_onnx,
};
