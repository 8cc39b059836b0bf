/* to_float: y = x + add, integers as float32. Integers beyond 2^24 are rounded. Exported detectors
 * name their classes and counts as floats. There is no gradient. */
#include "onnx/export_nodes.h"
#include "to_float.params.h"

struct to_float_cfg { float add; };

static const struct pm_opt opts[] = {
    PM_FLOAT(to_float_cfg, add, 0, -1e6, 1e6, "number that is added to each value"),
    { 0 },
};

static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct to_float_params *p = a->params;
    const int *x = a->buf[0];
    float *y = a->buf[1];

    for (size_t i = begin; i < end; i++)
        y[i] = (float)x[i] + p->add;
}

static const struct pm_kernel fwd = {
    .name = "to_float", .bufs = "r:x w:y", .cpu = fwd_cpu,
    .params_size = sizeof(struct to_float_params),
};

static int infer(struct pm_node *n)
{
    if (n->in[0]->out_type != PM_I32)
        return pm_fail(PM_ECONFIG, "%s: to_float needs integers, but %s holds other numbers",
                       n->name, n->in[0]->name);
    n->out_shape = n->in[0]->out_shape;
    n->out_type = PM_F32;
    return PM_OK;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct to_float_cfg *cfg = n->cfg;
    const struct to_float_params p = { .count = (int)pm_count(n->x), .add = cfg->add };

    pm_call(c, &fwd, (size_t)p.count, &p, PM_BUFS(n->x, n->y));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const float add = ((const struct to_float_cfg *)n->cfg)->add;
    const char *y = pm_export_cast(g, pm_export_x(g, n, 0), PM_EXPORT_FLOAT);

    return add == 0 ? y : pm_export_op(g, "Add", PM_VALUES(y, pm_export_number(g, add)));
}

const struct pm_layer pm_layer_to_float = {
    .name = "to_float", .help = "integers as floats, plus a number; no gradient",
    .opts = opts, .cfg_size = sizeof(struct to_float_cfg), .infer = infer, .forward = forward,
    .onnx = onnx,
};
