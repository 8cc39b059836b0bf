/* fully_connected: y[n][units] = f(b + x[n][...] w[in][units]). All axes of x except the first are
 * flattened in row-major order. The product is a 1x1 convolution of 1x1 images and uses the same
 * rows. */
#include "layers/conv_rows.h"
#include "onnx/export_nodes.h"

struct fully_connected_cfg {
    int units, activation;
    bool bias, regularize, regularize_bias;
    float slope;
    const char *weights_init, *bias_init;
};

static const struct pm_opt opts[] = {
    PM_INT(fully_connected_cfg, units, 32, 1, 1 << 24, "outputs"),
    CONV_TAIL_OPTIONS(fully_connected_cfg, "output"),
    { 0 },
};

static struct conv_tail tail_of(const struct pm_node *n)
{
    const struct fully_connected_cfg *cfg = n->cfg;

    return (struct conv_tail){ cfg->bias, cfg->activation, cfg->slope };
}

static struct conv2d_params params_of(const struct pm_node *n)
{
    const struct fully_connected_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;

    return (struct conv2d_params){
        .n = x.dim[0], .h = 1, .w = 1, .c = (int)(pm_shape_count(x) / (size_t)x.dim[0]),
        .oh = 1, .ow = 1, .k = cfg->units, .kh = 1, .kw = 1, .stride_h = 1, .stride_w = 1,
        .dilation_h = 1, .dilation_w = 1, .groups = 1,
    };
}

static int infer(struct pm_node *n)
{
    int err = PM_OK;
    const struct fully_connected_cfg *cfg = n->cfg;
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p;

    if (n->in[0]->out_shape.rank < 2)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: fully_connected takes an input of rank 2 or more, not %d",
                       n->name, n->in[0]->out_shape.rank));
    p = params_of(n);
    PM_TRY(pm_conv_variables(n, "weights", PM_SHAPE2(p.c, p.k), cfg->weights_init, cfg->regularize,
                             &t, p.k, cfg->bias_init, cfg->regularize_bias));
    n->out_shape = PM_SHAPE2(p.n, p.k);
    n->out_type = PM_F32;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct conv_tail t = tail_of(n);
    const struct conv2d_params p = params_of(n);
    const struct pm_tensor z = pm_conv_sums(n, c, &t);

    pm_conv_call(c, &pm_conv2d_fwd, &p, n->x, n->w[0], z);
    pm_conv_tail_forward(n, c, &t, z);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct conv_tail t = tail_of(n);
    const struct conv2d_params p = params_of(n);
    const struct pm_tensor dz = pm_conv_tail_backward(n, c, &t);

    if (pm_has(n->dw[0]))
        pm_conv_call(c, &pm_conv2d_bwd_filter, &p, n->x, n->dw[0], dz);
    if (pm_has(n->dx))
        pm_conv_call(c, &pm_conv2d_bwd_data, &p, n->dx, n->w[0], dz);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct conv_tail t = tail_of(n);
    const struct conv2d_params p = params_of(n);
    const char *y = pm_export_reshape(g, pm_export_x(g, n, 0), n->in[0]->out_shape,
                                      PM_SHAPE2(p.n, p.c));

    if (!t.activation)
        pm_export_fold(g, n);
    y = pm_export_op(g, "Gemm", PM_VALUES(y, pm_export_weights(g, n, false),
                                          pm_export_bias(g, n, t.bias)));
    return pm_export_activation(g, y, t.activation, t.slope);
}

const struct pm_layer pm_layer_fully_connected = {
    .name = "fully_connected", .help = "matrix product, bias, activation",
    .opts = opts, .cfg_size = sizeof(struct fully_connected_cfg),
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
    .accumulates = true,
};
