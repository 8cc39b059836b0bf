/* split: splits x along one axis, by default the last (channels); each part is an output. It is the
 * inverse of concat. Backward: joins the outputs' gradients, with zeros for an output without
 * readers. */
#include "layers/concat.h"
#include "layers/infer.h"
#include "onnx/export_nodes.h"

struct split_cfg {
    int parts, axis;
    struct pm_ints sizes;
};

static const struct pm_opt opts[] = {
    PM_INT(split_cfg, parts, 2, 1, PM_MAX_NODE_OUTPUTS,
           "number of equal parts; unused when sizes is given"),
    PM_INTS(split_cfg, sizes, "[]", 1, 1 << 30, "size of each part along the axis"),
    PM_INT(split_cfg, axis, -1, -PM_MAX_RANK, PM_MAX_RANK - 1,
           "axis along which the parts follow each other; negative counts from the last"),
    { 0 },
};

static int axis_of(const struct pm_node *n)
{
    return pm_concat_axis(n, ((const struct split_cfg *)n->cfg)->axis);
}

/* Fills the size of each part and returns the number of parts. */
static int sizes_of(const struct pm_node *n, int whole, int size[PM_MAX_NODE_OUTPUTS])
{
    const struct split_cfg *cfg = n->cfg;
    int64_t sum = 0;

    if (cfg->sizes.count == 0) {
        for (int i = 0; i < cfg->parts; i++)
            size[i] = whole / cfg->parts;
        if (whole % cfg->parts)
            return pm_fail(PM_ECONFIG, "%s: an axis of %d does not divide into %d equal parts; set "
                           "sizes", n->name, whole, cfg->parts);
        return cfg->parts;
    }
    if (cfg->sizes.count > PM_MAX_NODE_OUTPUTS)
        return pm_fail(PM_ECONFIG, "%s: sizes has %d numbers, at most %d are possible", n->name,
                       cfg->sizes.count, PM_MAX_NODE_OUTPUTS);
    for (int i = 0; i < cfg->sizes.count; i++)
        sum += size[i] = cfg->sizes.v[i];
    if (sum != whole)
        return pm_fail(PM_ECONFIG, "%s: sizes add up to %lld, but the axis has %d", n->name,
                       (long long)sum, whole);
    return cfg->sizes.count;
}

static int infer(struct pm_node *n)
{
    int err = pm_need_floats(n, 0, 0), size[PM_MAX_NODE_OUTPUTS], axis, count;
    struct pm_shape y = n->in[0]->out_shape;

    PM_TRY(err);
    PM_TRY(axis = axis_of(n));
    PM_TRY(count = sizes_of(n, y.dim[axis], size));
    n->out_type = PM_F32;
    for (int i = 0; i < count; i++) {
        y.dim[axis] = size[i];
        if (i == 0)
            n->out_shape = y;
        else
            PM_TRY(pm_node_output(n, y, PM_F32));
    }
out:
    return err < 0 ? err : PM_OK;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    pm_concat_take(c, axis_of(n), n->outputs, n->out, n->ys, n->x);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    if (pm_has(n->dx))
        pm_concat_join(c, axis_of(n), n->outputs, n->out, n->dys, n->dx);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const int axis = axis_of(n);
    const char *y[PM_MAX_NODE_OUTPUTS];
    int64_t size[PM_MAX_NODE_OUTPUTS];

    for (int i = 0; i < n->outputs; i++)
        size[i] = n->out[i]->out_shape.dim[axis];
    pm_export_op_outputs(g, "Split", PM_VALUES(pm_export_x(g, n, 0),
                                               pm_export_integers(g, n->outputs, size)),
                         n->outputs, y);
    pm_export_int(g, "axis", pm_export_axis(n->out_shape.rank, axis));
    for (int i = 1; i < n->outputs; i++)
        pm_export_output(g, n, i, y[i]);
    return y[0];
}

const struct pm_layer pm_layer_split = {
    .name = "split",
    .help = "the parts of the input along an axis, each an output: NAME:0, NAME:1, ...",
    .opts = opts, .cfg_size = sizeof(struct split_cfg), .copies_values = true, .infer = infer,
    .forward = forward, .backward = backward, .onnx = onnx,
};
