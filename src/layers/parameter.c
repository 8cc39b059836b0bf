/* parameter: y = a variable of this shape. Its input only fixes its place in the net and must be
 * the net's own input. Backward: the variable's gradient is dy. The input's gradient, if requested,
 * is 0. */
#include "layers/conv_rows.h"
#include "onnx/export_nodes.h"
#include "layers/strided.h"

struct parameter_cfg {
    struct pm_ints shape;
    bool regularize;
    const char *init;
};

static const struct pm_opt opts[] = {
    PM_INTS(parameter_cfg, shape, "[1]", 1, 1 << 30, "sizes, outermost first"),
    PM_STRING(parameter_cfg, init, "constant(0)", "initial values"),
    PM_BOOL(parameter_cfg, regularize, false, "weight decay applies"),
    { 0 },
};

static int infer(struct pm_node *n)
{
    int err = PM_OK;
    const struct parameter_cfg *cfg = n->cfg;
    struct pm_shape y = { .rank = cfg->shape.count };
    struct pm_init init;

    if (y.rank < 1 || y.rank > PM_MAX_RANK)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: shape has %d sizes, not 1 to %d", n->name, y.rank,
                       PM_MAX_RANK));
    if (n->in[0]->inputs > 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: the input of a parameter layer must be an input of the net, such as "
                       "\"images\", not %s",
                       n->name, n->in[0]->name));
    for (int i = 0; i < y.rank; i++)
        y.dim[i] = cfg->shape.v[i];
    const int last = y.dim[y.rank - 1];
    PM_TRY(pm_init_parse(cfg->init, &init, n->name));
    PM_TRY(pm_node_variable(n, "values", y, init, last, last, true, cfg->regularize));
    n->out_shape = y;
    n->out_type = PM_F32;
    n->out_rows = 0;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const int count = (int)pm_count(n->y);
    const struct bias_act_params p = { .count = count,
                                       .channels = count,
                                       .activation = PM_ACT_NONE };

    pm_call(c, &pm_bias_act_fwd, (size_t)count, &p, PM_BUFS(n->w[0], PM_NO_TENSOR, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    if (pm_has(n->dw[0]))
        pm_add_rows(c, n->dy, n->dw[0]);
    if (pm_has(n->dx)) {
        const int count = (int)pm_count(n->x), one = 1;
        const struct pm_axes axes = pm_axes_make(1, &count, &one, NULL);

        pm_strided_copy(c, &axes, 0, n->x, n->dx);
    }
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    return pm_export_nchw(g, pm_export_variable(g, n, 0), n->out_shape);
}

const struct pm_layer pm_layer_parameter = {
    .name = "parameter", .help = "a variable as a value, an input for other layers",
    .opts = opts, .cfg_size = sizeof(struct parameter_cfg), .infer = infer, .forward = forward,
    .backward = backward, .onnx = onnx,
};
