/* conv2d: y[n][oh][ow][k] = f(b[k] + sum over kh, kw, c of
 *     x[n][oh * stride - top + kh * dilation][...][c] * w[kh][kw][c][k]),
 * zero outside the image, with TensorFlow's padding rules (layer.h). With groups, output channels
 * of group g use input channels of group g. In depthwise_conv2d every channel is its own group, and
 * channel c gives outputs c * multiplier ... c * multiplier + multiplier - 1. Backward: the
 * gradients of x and w are convolutions with their own rows. */
#include "layers/conv_rows.h"
#include "onnx/export_nodes.h"

#include <assert.h>

struct conv2d_cfg {
    int filters, groups, multiplier, padding, activation;
    struct pm_ints kernel, stride, dilation, pad;
    bool bias, regularize, regularize_bias;
    float slope;
    const char *weights_init, *bias_init;
    const char *scope, *weights_name;
};

#define WINDOW                                                                                     \
    PM_INTS(conv2d_cfg, kernel, "[3]", 1, 4096, "window, one number or [height, width]"),          \
    PM_INTS(conv2d_cfg, stride, "[1]", 1, 64, "step between windows"),                             \
    PM_INTS(conv2d_cfg, dilation, "[1]", 1, 256, "distance between a window's cells"),             \
    PM_ENUM(conv2d_cfg, padding, PM_PAD_SAME, CONV_PADDINGS, "TensorFlow's rules, or pad"),        \
    PM_INTS(conv2d_cfg, pad, "[]", 0, 4096, "[top, bottom, left, right] if explicit")

static const struct pm_opt conv2d_opts[] = {
    PM_INT(conv2d_cfg, filters, 32, 1, 1 << 20, "output channels"),
    WINDOW,
    PM_INT(conv2d_cfg, groups, 1, 1, 1 << 20, "separate groups of channels"),
    CONV_TAIL_OPTIONS(conv2d_cfg, "channel"),
    PM_STRING(conv2d_cfg, scope, "", "prefix of the variables' names; empty: the layer's name"),
    PM_STRING(conv2d_cfg, weights_name, "weights",
              "suffix of the weights' name: pointwise_weights in a separable convolution"),
    { 0 },
};
static const struct pm_opt depthwise_opts[] = {
    WINDOW,
    PM_INT(conv2d_cfg, multiplier, 1, 1, 1024, "outputs per channel"),
    CONV_TAIL_OPTIONS(conv2d_cfg, "channel"),
    { 0 },
};

static struct conv_tail tail_of(const struct pm_node *n)
{
    const struct conv2d_cfg *cfg = n->cfg;

    return (struct conv_tail){ cfg->bias, cfg->activation, cfg->slope };
}

/* Fills params from the node's inputs and options. multiplier is 0 in conv2d, filters is 0 in
 * depthwise_conv2d. */
static int params_of(const struct pm_node *n, struct conv2d_params *p)
{
    const struct conv2d_cfg *cfg = n->cfg;
    const struct conv_window v = { cfg->kernel, cfg->stride, cfg->dilation, cfg->pad,
                                   cfg->padding };
    const struct pm_shape x = n->in[0]->out_shape;

    if (x.rank != 4)
        return pm_fail(PM_ECONFIG, "%s: a convolution takes images [n, h, w, c], not rank %d",
                       n->name, x.rank);
    p->n = x.dim[0];
    p->c = x.dim[3];
    p->groups = cfg->filters ? cfg->groups : p->c;
    p->k = cfg->filters ? cfg->filters : p->c * cfg->multiplier;
    if (p->c % p->groups || p->k % p->groups)
        return pm_fail(
            PM_ECONFIG,
            "%s: groups=%d must divide both the %d input channels and the %d output channels",
            n->name, p->groups, p->c, p->k);
    return pm_conv_geometry(n, &v, x.dim[1], x.dim[2], p);
}

static int infer(struct pm_node *n)
{
    int err = PM_OK;
    const struct conv2d_cfg *cfg = n->cfg;
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p = { 0 };

    PM_TRY(params_of(n, &p));
    assert(p.groups > 0);
    const int cg = p.c / p.groups;
    const bool depthwise = cfg->filters == 0;
    const struct pm_shape w = depthwise ? PM_SHAPE4(p.kh, p.kw, p.c, cfg->multiplier)
                                        : PM_SHAPE4(p.kh, p.kw, cg, p.k);
    if (!depthwise && cfg->scope[0])
        n->scope = cfg->scope;
    PM_TRY(pm_conv_variables(n, depthwise ? "depthwise_weights" : cfg->weights_name, w,
                             cfg->weights_init, cfg->regularize, &t, p.k, cfg->bias_init,
                             cfg->regularize_bias));
    n->out_shape = PM_SHAPE4(p.n, p.oh, p.ow, p.k);
    n->out_type = PM_F32;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct conv2d_cfg *cfg = n->cfg;
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p = { 0 };
    const struct pm_tensor z = pm_conv_sums(n, c, &t);

    params_of(n, &p);
    pm_conv_call(c, cfg->filters ? &pm_conv2d_fwd : &pm_depthwise_fwd, &p, n->x, n->w[0], z);
    pm_conv_tail_forward(n, c, &t, z);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct conv2d_cfg *cfg = n->cfg;
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p = { 0 };
    const struct pm_tensor dz = pm_conv_tail_backward(n, c, &t);

    params_of(n, &p);
    if (pm_has(n->dw[0]))
        pm_conv_call(c, cfg->filters ? &pm_conv2d_bwd_filter : &pm_depthwise_bwd_filter, &p, n->x,
                     n->dw[0], dz);
    if (pm_has(n->dx))
        pm_conv_call(c, cfg->filters ? &pm_conv2d_bwd_data : &pm_depthwise_bwd_data, &p, n->dx,
                     n->w[0], dz);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct conv2d_cfg *cfg = n->cfg;
    const struct conv_tail t = tail_of(n);
    const int *pad = cfg->pad.v;
    struct conv2d_params p = { 0 };
    const char *y;

    params_of(n, &p);
    struct pm_export_window w = {
        { p.kh, p.kw }, { p.stride_h, p.stride_w }, { p.dilation_h, p.dilation_w },
        (enum pm_padding)cfg->padding, { 0 }, { 0 },
    };
    for (int i = 0; i < 2 && cfg->pad.count == 4; i++)
        w.before[i] = pad[2 * i], w.after[i] = pad[2 * i + 1];
    if (!t.activation)
        pm_export_fold(g, n);
    y = pm_export_op(g, "Conv", PM_VALUES(pm_export_x(g, n, 0),
                                          pm_export_weights(g, n, cfg->filters == 0),
                                          pm_export_bias(g, n, t.bias)));
    pm_export_int(g, "group", p.groups);
    pm_export_window(g, n->in[0]->out_shape, &w);
    return pm_export_activation(g, y, t.activation, t.slope);
}

const struct pm_layer pm_layer_conv2d = {
    .name = "conv2d", .help = "convolution, bias, activation",
    .opts = conv2d_opts, .cfg_size = sizeof(struct conv2d_cfg),
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
    .accumulates = true,
};
const struct pm_layer pm_layer_depthwise_conv2d = {
    .name = "depthwise_conv2d", .help = "depthwise convolution, bias, activation",
    .opts = depthwise_opts, .cfg_size = sizeof(struct conv2d_cfg),
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
    .accumulates = true,
};
