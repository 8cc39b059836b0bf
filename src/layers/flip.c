/* flip: mirrors the input along one axis, y[.., i, ..] = x[.., size - 1 - i, ..]. Backward: dy is
 * mirrored along the same axis. */
#include <string.h>

#include "flip.params.h"
#include "layers/infer.h"
#include "device/pick.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"

struct flip_cfg { int axis; };

static const struct pm_opt opts[] = {
    PM_INT(flip_cfg, axis, 2, -PM_MAX_RANK, PM_MAX_RANK - 1,
           "axis to mirror (2 = width); negative counts from the last"),
    { 0 },
};

/* ---- the row --------------------------------------------------------------------------- */

/* Items: lines of c values. */
PM_CLONES static void flip_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct flip_params *p = a->params;
    const size_t size = (size_t)p->size, c = (size_t)p->c;
    const float *x = a->buf[0];
    float *y = a->buf[1];

    if (c == 1) {
        for (size_t i = begin; i < end; i++)
            y[i] = x[i - i % size + (size - 1 - i % size)];
        return;
    }
    for (size_t i = begin; i < end; i++)
        memcpy(y + i * c, x + (i - i % size + (size - 1 - i % size)) * c, c * sizeof *y);
}

static bool flip_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct flip_params *p = params;

    (void)caps;
    return pick_four("flip4", "flip", p->c % 4 == 0, count * (size_t)p->c, 0, level, out);
}

static double flops(const void *params, size_t count)
{
    return (double)count * ((const struct flip_params *)params)->c;
}

static const struct pm_kernel flip = {
    .name = "flip", .bufs = "r:x w:y", .params_size = sizeof(struct flip_params), .cpu = flip_cpu,
    .grain = 64, .pick = flip_pick, .flops = flops,
};

/* ---- the layer ------------------------------------------------------------------------- */

static int axis_of(const struct pm_node *n)
{
    const int axis = ((const struct flip_cfg *)n->cfg)->axis;

    return axis < 0 ? axis + n->in[0]->out_shape.rank : axis;
}

static int infer(struct pm_node *n)
{
    const struct pm_shape x = n->in[0]->out_shape;
    char text[64];

    if (axis_of(n) < 0 || axis_of(n) >= x.rank)
        return pm_fail(PM_ECONFIG, "%s: axis is %d, which is outside %d..%d of the input %s",
                       n->name, ((const struct flip_cfg *)n->cfg)->axis, -x.rank, x.rank - 1,
                       pm_shape_text(x, text));
    return pm_infer_same(n);
}

static void call(const struct pm_node *n, struct pm_calls *c, struct pm_tensor from,
                 struct pm_tensor to)
{
    const struct pm_shape s = n->out_shape;
    struct flip_params p = { 1, s.dim[axis_of(n)], 1 };

    for (int i = 0; i < s.rank; i++)
        *(i < axis_of(n) ? &p.blocks : &p.c) *= i == axis_of(n) ? 1 : s.dim[i];
    pm_call(c, &flip, (size_t)p.blocks * (size_t)p.size, &p, PM_BUFS(from, to));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    call(n, c, n->x, n->y);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    if (pm_has(n->dx))
        call(n, c, n->dy, n->dx);
}

/* Exports a slice from the last index to before the first in steps of -1. */
static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const int axis = pm_export_axis(n->out_shape.rank, axis_of(n));

    return pm_export_op(g, "Slice", PM_VALUES(pm_export_x(g, n, 0),
                                              pm_export_integers(g, PM_INT64S(-1)),
                                              pm_export_integers(g, PM_INT64S(INT64_MIN)),
                                              pm_export_integers(g, PM_INT64S(axis)),
                                              pm_export_integers(g, PM_INT64S(-1))));
}

const struct pm_layer pm_layer_flip = {
    .name = "flip", .help = "mirrors the input along an axis", .opts = opts,
    .cfg_size = sizeof(struct flip_cfg), .copies_values = true, .infer = infer, .forward = forward,
    .backward = backward, .onnx = onnx,
};
