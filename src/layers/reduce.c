/* reduce_sum, reduce_mean, reduce_max, reduce_min: reductions over chosen axes. Backward: dx = dy,
 * divided by the number of terms for a mean. The gradient of a maximum or minimum goes in equal
 * parts to all terms that equal it. NaN is a maximum and a minimum on the CPU; drivers may lose
 * it. */
#include "layers/reduce.h"

#include <string.h>

#include "onnx/export_nodes.h"
#include "layers/infer.h"
#include "device/pick.h"
#include "layers/strided.h"
#include "layers/vmath.h"
#include "reduce.params.h"

/* ---- the sum's geometry ---------------------------------------------------------------- */

/* Splits the axes of x into reduced ones (1 in with_ones) and others, and joins neighbours of the
 * same kind. Of six axes there are at most three of each kind. The lists are filled from the
 * end. */
static struct reduce_params geometry(struct pm_shape x, struct pm_shape with_ones)
{
    struct reduce_params p = { .outputs = 1, .terms = 1, .scale = 1, .k = { 1, 1, 1 },
                               .r = { 1, 1, 1 } };
    int next[2] = { 3, 3 }, last = -1, step = 1;

    for (int i = x.rank - 1; i >= 0; i--) {
        const int reduced = with_ones.dim[i] != x.dim[i];
        int *size = reduced ? p.r : p.k, *stride = reduced ? p.rs : p.ks;

        if (x.dim[i] == 1)
            continue;
        if (reduced != last)
            stride[--next[reduced]] = step;
        size[next[reduced]] *= x.dim[i];
        *(reduced ? &p.terms : &p.outputs) *= x.dim[i];
        step *= x.dim[i];
        last = reduced;
    }
    return p;
}

/* ---- rows ------------------------------------------------------------------------------ */

PM_INLINE size_t input_at(size_t i, const int size[3], const int stride[3])
{
    size_t at = i % (size_t)size[2] * (size_t)stride[2];

    i /= (size_t)size[2];
    at += i % (size_t)size[1] * (size_t)stride[1];
    return at + i / (size_t)size[1] * (size_t)stride[0];
}

PM_INLINE float winner(int kind, float a, float b)
{
    return (a != a) | (kind == PM_REDUCE_MAX ? a > b : a < b) ? a : b;
}

enum { WIDTH = 64, BLOCK = 32 };

/* Computes `width` outputs that are neighbours in x and y: sums of BLOCK terms, then their sum. */
PM_INLINE void side_by_side(const struct reduce_params *p, int kind, const float *x, int width,
                            float *y, float *ties)
{
    float part[WIDTH] = { 0 };

    for (int k = 0; k < width; k++)
        y[k] = kind == PM_REDUCE_SUM ? 0 : x[k];
    for (int t = 0; t < p->terms; t++) {
        const float *from = x + input_at((size_t)t, p->r, p->rs);

        if (kind != PM_REDUCE_SUM) {
            for (int k = 0; k < width; k++)
                y[k] = winner(kind, from[k], y[k]);
            continue;
        }
        for (int k = 0; k < width; k++)
            part[k] += from[k];
        if ((t + 1) % BLOCK == 0 || t + 1 == p->terms)
            for (int k = 0; k < width; k++)
                y[k] += part[k], part[k] = 0;
    }
    for (int k = 0; k < width && kind == PM_REDUCE_SUM; k++)
        y[k] *= p->scale;
    for (int k = 0; k < width && ties; k++)
        ties[k] = 0;
    for (int t = 0; t < p->terms && ties; t++) {
        const float *from = x + input_at((size_t)t, p->r, p->rs);

        for (int k = 0; k < width; k++)
            ties[k] += from[k] == y[k];
    }
}

/* Returns the l-th line of an output's terms. */
PM_INLINE const float *line_of(const struct reduce_params *p, const float *x, int l)
{
    return x + (size_t)(l / p->r[1]) * (size_t)p->rs[0] + (size_t)(l % p->r[1]) * (size_t)p->rs[1];
}

/* Returns the winner of a line, comparing 16 terms in parallel. */
PM_INLINE float line_winner(int kind, const float *x, int n)
{
    float part[16], total = x[0];
    int i = 0;

    for (int k = 0; k < 16; k++)
        part[k] = x[0];
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            part[k] = winner(kind, x[i + k], part[k]);
    for (; i < n; i++)
        total = winner(kind, x[i], total);
    for (int k = 0; k < 16; k++)
        total = winner(kind, part[k], total);
    return total;
}

/* Computes one output whose terms are lines of x. */
PM_INLINE void lines(const struct reduce_params *p, int kind, const float *x, float *y, float *ties)
{
    const int length = p->r[2], lines = p->terms / length;
    float total = kind == PM_REDUCE_SUM ? 0 : x[0];
    int same = 0;

    for (int l = 0; l < lines; l++) {
        const float *from = line_of(p, x, l);

        if (kind == PM_REDUCE_SUM)
            total += pm_row_sum(from, length);
        else
            total = winner(kind, line_winner(kind, from, length), total);
    }
    *y = kind == PM_REDUCE_SUM ? p->scale * total : total;
    if (!ties)
        return;
    for (int l = 0; l < lines; l++) {
        const float *from = line_of(p, x, l);

        for (int i = 0; i < length; i++)
            same += from[i] == total;
    }
    *ties = (float)same;
}

PM_INLINE void reduce_range(const struct pm_args *a, int kind, size_t begin, size_t end)
{
    const struct reduce_params *p = a->params;
    const size_t line = (size_t)p->k[2];
    float *y = a->buf[1], *ties = a->buf[2];

    for (size_t width; begin < end; begin += width) {
        const float *x = (const float *)a->buf[0] + input_at(begin, p->k, p->ks);

        width = 1;
        if (p->rs[2] == 1) {
            lines(p, kind, x, y + begin, ties ? ties + begin : NULL);
            continue;
        }
        width = line - begin % line;
        width = width < end - begin ? width : end - begin;
        width = width < WIDTH ? width : WIDTH;
        side_by_side(p, kind, x, (int)width, y + begin, ties ? ties + begin : NULL);
    }
}

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    switch (((const struct reduce_params *)a->params)->kind) {
    case PM_REDUCE_SUM: reduce_range(a, PM_REDUCE_SUM, begin, end); break;
    case PM_REDUCE_MAX: reduce_range(a, PM_REDUCE_MAX, begin, end); break;
    default: reduce_range(a, PM_REDUCE_MIN, begin, end); break;
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct reduce_bwd_params *p = a->params;
    const float *x = a->buf[0], *y = a->buf[1], *dy = a->buf[2], *ties = a->buf[3];
    float *dx = a->buf[4];

    for (size_t n; begin < end; begin += n) {
        const size_t first = pm_axes_place(p->d, p->s, begin), step = (size_t)p->s[5];

        n = pm_axes_run(p->d, begin, end);
        for (size_t i = 0; i < n; i++) {
            const size_t at = first + i * step;
            dx[begin + i] = x[begin + i] == y[at] ? dy[at] / ties[at] : 0;
        }
    }
}

/* With few outputs, or lines of terms, each output gets a workgroup. */
static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct reduce_params *p = params;
    const bool wide = p->terms >= 32 && (p->rs[2] == 1 || p->outputs < 4096);

    (void)caps, (void)count;
    if (level > (wide ? 1 : 0))
        return false;
    if (wide && level == 0)
        pm_pick_elements("reduce_wide", 64, (size_t)p->outputs * 64, out);
    else
        pm_pick_elements("reduce", 64, (size_t)p->outputs, out);
    out->d[0].spec[3] = (uint32_t)p->kind;
    out->d[0].specs = 4;
    return true;
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct reduce_bwd_params *p = params;

    (void)caps;
    return pick_four("reduce_bwd", "reduce_bwd", false, count, pm_axes_rank(p->d), level, out);
}

static double flops(const void *params, size_t count)
{
    const struct reduce_params *p = params;

    (void)count;
    return (double)p->outputs * p->terms;
}

static const struct pm_kernel fwd = {
    .name = "reduce", .bufs = "r:x w:y w?:ties", .params_size = sizeof(struct reduce_params),
    .cpu = fwd_cpu, .grain = WIDTH, .pick = fwd_pick, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "reduce_bwd", .bufs = "r:x r:y r:dy r:ties w:dx",
    .params_size = sizeof(struct reduce_bwd_params), .cpu = bwd_cpu, .pick = bwd_pick,
};

/* Returns the largest divisor up to 256. */
static int chunk_of(int terms)
{
    int d = terms < 256 ? terms : 256;

    while (terms % d != 0)
        d--;
    return d;
}

static void call_sum(struct pm_calls *c, struct pm_tensor x, struct pm_shape with_ones, float scale,
                     struct pm_tensor y)
{
    struct reduce_params p = geometry(x.shape, with_ones);

    p.scale = scale;
    pm_call(c, &fwd, (size_t)p.outputs, &p, PM_BUFS(x, y, PM_NO_TENSOR));
}

void pm_reduce_sum(struct pm_calls *c, struct pm_tensor x, struct pm_shape with_ones, float scale,
                   struct pm_tensor y)
{
    const struct reduce_params p = geometry(x.shape, with_ones);
    const int chunk = chunk_of(p.terms), chunks = p.terms / chunk;

    if (p.ks[2] == 1 && p.r[1] == 1 && p.k[1] == 1 && chunk >= 16 && chunks >= 16) {
        /* With many rows of one matrix, chunks of rows are summed first, then the chunks' sums. */
        struct pm_tensor sums = pm_temp(c, PM_SHAPE2(chunks, p.outputs), PM_F32);

        call_sum(c, pm_view(x, PM_SHAPE3(chunks, chunk, p.outputs)),
                 PM_SHAPE3(chunks, 1, p.outputs), 1, sums);
        call_sum(c, sums, PM_SHAPE2(1, p.outputs), scale, y);
    } else {
        call_sum(c, x, with_ones, scale, y);
    }
}

/* ---- layers ---------------------------------------------------------------------------- */

struct reduce_cfg {
    struct pm_ints axes;
    bool keepdims;
};

static const struct pm_opt opts[] = {
    PM_INTS(reduce_cfg, axes, "[1, 2]", -PM_MAX_RANK, PM_MAX_RANK - 1,
            "axes to reduce; negative counts from the last"),
    PM_BOOL(reduce_cfg, keepdims, true, "keep the reduced axes with size 1"),
    { 0 },
};

/* Returns x's shape with 1 along the reduced axes. */
static struct pm_shape with_ones_of(const struct pm_node *n)
{
    const struct pm_ints axes = ((const struct reduce_cfg *)n->cfg)->axes;
    struct pm_shape s = n->in[0]->out_shape;

    for (int i = 0; i < axes.count; i++)
        s.dim[axes.v[i] < 0 ? axes.v[i] + s.rank : axes.v[i]] = 1;
    return s;
}

static int infer(struct pm_node *n)
{
    const struct reduce_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;
    unsigned seen = 0;
    char text[64];

    for (int i = 0; i < cfg->axes.count; i++) {
        const int axis = cfg->axes.v[i] < 0 ? cfg->axes.v[i] + x.rank : cfg->axes.v[i];

        if (axis < 0 || axis >= x.rank || (seen >> axis & 1))
            return pm_fail(
                PM_ECONFIG,
                "%s: axes[%d] is %d, which is outside %d..%d of the input %s, or listed twice",
                n->name, i, cfg->axes.v[i], -x.rank, x.rank - 1, pm_shape_text(x, text));
        seen |= 1u << axis;
    }
    n->out_shape = with_ones_of(n);
    if (!cfg->keepdims) {
        n->out_shape.rank = 0;
        for (int i = 0; i < x.rank; i++)
            if (!(seen >> i & 1))
                n->out_shape.dim[n->out_shape.rank++] = x.dim[i];
    }
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 0);
}

static bool is_layer(const struct pm_node *n, const char *name)
{
    return strcmp(n->layer->name, name) == 0;
}

static struct reduce_params params_of(const struct pm_node *n)
{
    struct reduce_params p = geometry(n->x.shape, with_ones_of(n));

    p.kind = is_layer(n, "reduce_max")   ? PM_REDUCE_MAX
             : is_layer(n, "reduce_min") ? PM_REDUCE_MIN : PM_REDUCE_SUM;
    if (is_layer(n, "reduce_mean"))
        p.scale = 1.0f / (float)p.terms;
    return p;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct reduce_params p = params_of(n);
    struct pm_tensor ties = PM_NO_TENSOR;

    if (n->train && p.kind != PM_REDUCE_SUM)
        ties = pm_save(c, n, 0, n->y.shape, PM_F32);
    pm_call(c, &fwd, (size_t)p.outputs, &p, PM_BUFS(n->x, n->y, ties));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct reduce_params p = params_of(n);
    struct reduce_bwd_params b = { .count = (int)pm_count(n->x) };
    int stride[PM_MAX_RANK];
    struct pm_axes axes;

    if (!pm_has(n->dx))
        return;
    pm_axes_strides(with_ones_of(n), stride);
    axes = pm_axes_make(n->x.shape.rank, n->x.shape.dim, stride, NULL);
    if (p.kind == PM_REDUCE_SUM) {
        pm_strided_copy(c, &axes, p.scale, n->dy, n->dx);
        return;
    }
    memcpy(b.d, axes.size, sizeof b.d);
    memcpy(b.s, axes.a, sizeof b.s);
    pm_call(c, &bwd, pm_count(n->x), &b, PM_BUFS(n->x, n->y, n->dy, n->saved[0], n->dx));
}

/* ReduceSum takes its axes as an input. The others take them as an attribute until opset 18. */
static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct pm_ints axes = ((const struct reduce_cfg *)n->cfg)->axes;
    const int rank = n->in[0]->out_shape.rank;
    const bool sum = is_layer(n, "reduce_sum");
    const char *op = sum ? "ReduceSum" : is_layer(n, "reduce_mean") ? "ReduceMean"
                     : is_layer(n, "reduce_max") ? "ReduceMax" : "ReduceMin";
    const char *x = pm_export_x(g, n, 0), *y;
    int64_t list[PM_MAX_RANK];

    for (int i = 0; i < axes.count; i++)
        list[i] = pm_export_axis(rank, axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i]);
    y = pm_export_op(g, op, PM_VALUES(x, sum ? pm_export_integers(g, axes.count, list) : NULL));
    if (!sum)
        pm_export_ints(g, "axes", axes.count, list);
    return pm_export_reshape(g, y, with_ones_of(n), n->out_shape);
}

#define REDUCE(id, text)                                                                           \
    const struct pm_layer pm_layer_##id = {                                                        \
        .name = #id, .help = text, .opts = opts, .cfg_size = sizeof(struct reduce_cfg),            \
        .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,                    \
    }

REDUCE(reduce_sum, "sum over axes");
REDUCE(reduce_mean, "mean over axes");
REDUCE(reduce_max, "largest value over axes");
REDUCE(reduce_min, "smallest value over axes");
