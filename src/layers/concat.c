/* concat: joins 2 to 8 inputs along one axis, by default the last (channels). Backward: each input
 * gets its part of dy. split (split.c) is the inverse and uses the same rows. */
#include "layers/concat.h"

#include "device/pick.h"
#include "layers/infer.h"
#include "onnx/export_nodes.h"

#include <string.h>

enum { PARTS = PM_CONCAT_PARTS };

struct concat_cfg { int axis; };

static const struct pm_opt opts[] = {
    PM_INT(concat_cfg, axis, -1, -PM_MAX_RANK, PM_MAX_RANK - 1,
           "axis along which the inputs are concatenated; negative counts from the last"),
    { 0 },
};

static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct concat_params *p = a->params;
    const int *width = &p->w0;
    float *y = (float *)a->buf[PARTS] + begin * p->total;

    for (size_t row = begin; row < end; row++)
        for (int i = 0; i < PARTS && width[i] > 0; y += width[i++])
            if (a->buf[i])
                memcpy(y, (const float *)a->buf[i] + row * width[i], sizeof *y * width[i]);
            else
                memset(y, 0, sizeof *y * width[i]);
}

static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct concat_params *p = a->params;
    const int *width = &p->w0;
    const float *dy = (const float *)a->buf[0] + begin * p->total;

    for (size_t row = begin; row < end; row++)
        for (int i = 0; i < PARTS && width[i] > 0; dy += width[i++])
            if (a->buf[i + 1])
                memcpy((float *)a->buf[i + 1] + row * width[i], dy, sizeof *dy * width[i]);
}

static bool all_fours(const struct concat_params *p)
{
    return (p->w0 | p->w1 | p->w2 | p->w3 | p->w4 | p->w5 | p->w6 | p->w7) % 4 == 0;
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct concat_params *p = params;
    (void)caps;
    return pick_four("concat_fwd4", "concat_fwd", all_fours(p), count * (size_t)p->total, 0, level,
                     out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct concat_params *p = params;
    (void)caps;
    return pick_four("concat_bwd4", "concat_bwd", all_fours(p), count * (size_t)p->total, 0, level,
                     out);
}

static double flops(const void *params, size_t count)
{
    const struct concat_params *p = params;
    return (double)count * p->total;
}

static const struct pm_kernel fwd = {
    .name = "concat_fwd", .bufs = "r?:a r?:b r?:c r?:d r?:e r?:f r?:g r?:h w:y",
    .params_size = sizeof(struct concat_params), .cpu = fwd_cpu, .grain = 32, .pick = fwd_pick,
    .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "concat_bwd", .bufs = "r:dy w?:da w?:db w?:dc w?:dd w?:de w?:df w?:dg w?:dh",
    .params_size = sizeof(struct concat_params), .cpu = bwd_cpu, .grain = 32, .pick = bwd_pick,
    .flops = flops,
};

int pm_concat_axis(const struct pm_node *n, int axis)
{
    const int rank = n->in[0]->out_shape.rank;
    char text[64];

    if (axis < -rank || axis >= rank)
        return pm_fail(PM_ECONFIG, "%s: axis %d is outside %d..%d of the input %s", n->name, axis,
                       -rank, rank - 1, pm_shape_text(n->in[0]->out_shape, text));
    return axis < 0 ? axis + rank : axis;
}

static int axis_of(const struct pm_node *n)
{
    return pm_concat_axis(n, ((const struct concat_cfg *)n->cfg)->axis);
}

static int infer(struct pm_node *n)
{
    struct pm_shape y = n->in[0]->out_shape;
    int axis = axis_of(n);
    char a[64], b[64];

    if (axis < 0)
        return axis;
    for (int i = 1; i < n->inputs; i++) {
        struct pm_shape x = n->in[i]->out_shape, first = n->in[0]->out_shape;
        int size = axis < x.rank ? x.dim[axis] : 0;

        x.dim[axis] = first.dim[axis];
        if (!pm_shape_equal(x, first))
            return pm_fail(PM_ECONFIG,
                           "%s: concat's inputs must agree but for axis %d: %s has %s, %s "
                           "has %s",
                           n->name, axis, n->in[0]->name, pm_shape_text(first, a), n->in[i]->name,
                           pm_shape_text(n->in[i]->out_shape, b));
        y.dim[axis] += size;
    }
    n->out_shape = y;
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, n->inputs - 1);
}

/* Part i has node[i]'s shape. */
static struct concat_params params_of(struct pm_shape whole, int axis, int count,
                                      struct pm_node *const *node)
{
    struct concat_params p = { .outer = 1 };
    int *width = &p.w0;

    for (int i = 0; i < axis; i++)
        p.outer *= whole.dim[i];
    for (int i = 0; i < count; i++) {
        /* cppcheck-suppress objectIndex; w0 to w7 are of one type and adjacent */
        p.total += width[i] = (int)(pm_shape_count(node[i]->out_shape) / (size_t)p.outer);
    }
    return p;
}

void pm_concat_join(struct pm_calls *c, int axis, int count, struct pm_node *const *node,
                    const struct pm_tensor *part, struct pm_tensor whole)
{
    const struct concat_params p = params_of(whole.shape, axis, count, node);
    struct pm_tensor b[PARTS + 1];

    for (int i = 0; i < PARTS; i++)
        b[i] = i < count ? part[i] : PM_NO_TENSOR;
    b[PARTS] = whole;
    pm_call(c, &fwd, (size_t)p.outer, &p, PARTS + 1, b);
}

void pm_concat_columns(struct pm_calls *c, int count, const struct pm_tensor *part,
                       struct pm_tensor whole)
{
    struct concat_params p = { .outer = whole.shape.dim[0] };
    struct pm_tensor b[PARTS + 1];
    int *width = &p.w0;

    for (int i = 0; i < PARTS; i++)
        b[i] = i < count ? part[i] : PM_NO_TENSOR;
    for (int i = 0; i < count; i++)
        /* cppcheck-suppress objectIndex; w0 to w7 are of one type and adjacent */
        p.total += width[i] = (int)(pm_count(part[i]) / (size_t)p.outer);
    b[PARTS] = whole;
    pm_call(c, &fwd, (size_t)p.outer, &p, PARTS + 1, b);
}

void pm_concat_take(struct pm_calls *c, int axis, int count, struct pm_node *const *node,
                    const struct pm_tensor *part, struct pm_tensor whole)
{
    const struct concat_params p = params_of(whole.shape, axis, count, node);
    struct pm_tensor b[PARTS + 1] = { whole };
    bool wanted = false;

    for (int i = 0; i < PARTS; i++) {
        b[i + 1] = i < count ? part[i] : PM_NO_TENSOR;
        wanted |= pm_has(b[i + 1]);
    }
    if (wanted)
        pm_call(c, &bwd, (size_t)p.outer, &p, PARTS + 1, b);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    pm_concat_join(c, axis_of(n), n->inputs, n->in, n->xs, n->y);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    pm_concat_take(c, axis_of(n), n->inputs, n->in, n->dxs, n->dy);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const int rank = n->out_shape.rank;
    const char *x[PARTS + 1] = { NULL }, *y;

    for (int i = 0; i < n->inputs; i++)
        x[i] = pm_export_x(g, n, i);
    y = pm_export_op(g, "Concat", x);
    pm_export_int(g, "axis", pm_export_axis(rank, axis_of(n)));
    return y;
}

const struct pm_layer pm_layer_concat = {
    .name = "concat", .help = "concatenates 2 to 8 inputs along an axis", .opts = opts,
    .cfg_size = sizeof(struct concat_cfg), .min_inputs = 2, .max_inputs = PARTS, .infer = infer,
    .forward = forward, .backward = backward, .onnx = onnx,
};
