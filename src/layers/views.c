/* views: flatten and reshape. They change the shape; the values stay in place. */
#include "onnx/export_nodes.h"

#include <limits.h>

struct reshape_cfg { struct pm_ints shape; };

static const struct pm_opt no_opts[] = { { 0 } };
static const struct pm_opt reshape_opts[] = {
    PM_INTS(reshape_cfg, shape, "[0, -1]", -1, 1 << 30,
            "new sizes, outermost first; 0 keeps the input's size, one -1 is inferred"),
    { 0 },
};

static int flatten_infer(struct pm_node *n)
{
    struct pm_shape x = n->in[0]->out_shape;
    char text[64];

    if (x.rank < 1)
        return pm_fail(PM_ECONFIG, "%s: flatten needs an input with a batch axis, not %s", n->name,
                       pm_shape_text(x, text));
    n->out_shape = PM_SHAPE2(x.dim[0], (int)(pm_shape_count(x) / (size_t)x.dim[0]));
    n->out_type = n->in[0]->out_type;
    return PM_OK;
}

static int reshape_infer(struct pm_node *n)
{
    const struct reshape_cfg *cfg = n->cfg;
    struct pm_shape x = n->in[0]->out_shape, y = { .rank = cfg->shape.count };
    size_t known = 1, count = pm_shape_count(x);
    int rest = -1;
    char text[64];

    if (y.rank < 1 || y.rank > PM_MAX_RANK)
        return pm_fail(PM_ECONFIG, "%s: shape has %d sizes, not 1 to %d", n->name, y.rank,
                       PM_MAX_RANK);
    for (int i = 0; i < y.rank; i++) {
        int size = cfg->shape.v[i];

        if (size == 0 && i >= x.rank)
            return pm_fail(PM_ECONFIG, "%s: shape[%d] is 0, but the input %s has no such axis",
                           n->name, i, pm_shape_text(x, text));
        if (size == -1 && rest >= 0)
            return pm_fail(PM_ECONFIG, "%s: shape has more than one -1", n->name);
        if (size == -1)
            rest = i;
        y.dim[i] = size == 0 ? x.dim[i] : size == -1 ? 1 : size;
        known *= (size_t)y.dim[i];
    }
    if (rest >= 0 && known > 0 && count % known == 0 && count / known <= INT_MAX)
        y.dim[rest] = (int)(count / known);
    if (pm_shape_count(y) != count)
        return pm_fail(PM_ECONFIG, "%s: shape does not hold the %zu values of the input %s",
                       n->name, count, pm_shape_text(x, text));
    n->out_shape = y;
    n->out_type = n->in[0]->out_type;
    return PM_OK;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    return pm_export_reshape(g, pm_export_x(g, n, 0), n->in[0]->out_shape, n->out_shape);
}

const struct pm_layer pm_layer_flatten = {
    .name = "flatten", .help = "flattens all axes except the batch", .opts = no_opts, .cfg_size = 4,
    .view = true, .copies_values = true, .infer = flatten_infer, .onnx = onnx,
};
const struct pm_layer pm_layer_reshape = {
    .name = "reshape", .help = "changes the shape, keeps the values", .opts = reshape_opts,
    .cfg_size = sizeof(struct reshape_cfg), .view = true, .copies_values = true,
    .infer = reshape_infer, .onnx = onnx,
};
