/* conv2d_transpose: the data gradient of a convolution as a layer. Input [n][h][w][cin], output
 * [n][oh][ow][cout], weights [kh][kw][cout][cin] as in TensorFlow. These are the weights of a
 * convolution from the output to the input. With r = (kh - 1) * dilation + 1, SAME: oh = h *
 * stride; VALID: oh = h * stride + max(r - stride, 0); EXPLICIT, as in PyTorch: oh = (h - 1) *
 * stride + r - top - bottom + output_pad. Backward: dx is that convolution of dy; dw is its filter
 * gradient with dy as the image. */
#include "layers/conv_rows.h"
#include "onnx/export_nodes.h"

struct conv2d_transpose_cfg {
    int filters, padding, activation;
    struct pm_ints kernel, stride, dilation, pad, output_pad;
    bool bias, regularize, regularize_bias;
    float slope;
    const char *weights_init, *bias_init;
};

static const struct pm_opt opts[] = {
    PM_INT(conv2d_transpose_cfg, filters, 32, 1, 1 << 20, "output channels"),
    PM_INTS(conv2d_transpose_cfg, kernel, "[3]", 1, 4096, "window, one number or [height, width]"),
    PM_INTS(conv2d_transpose_cfg, stride, "[2]", 1, 64, "factor by which the output is larger"),
    PM_INTS(conv2d_transpose_cfg, dilation, "[1]", 1, 256, "distance between a window's cells"),
    PM_ENUM(conv2d_transpose_cfg, padding, PM_PAD_SAME, CONV_PADDINGS,
            "TensorFlow's rules, or pad"),
    PM_INTS(conv2d_transpose_cfg, pad, "[]", 0, 4096,
            "[top, bottom, left, right] removed from the output if explicit"),
    PM_INTS(conv2d_transpose_cfg, output_pad, "[0]", 0, 63,
            "additional rows and columns at the bottom and right if explicit; less than stride"),
    CONV_TAIL_OPTIONS(conv2d_transpose_cfg, "channel"),
    { 0 },
};

static struct conv_tail tail_of(const struct pm_node *n)
{
    const struct conv2d_transpose_cfg *cfg = n->cfg;

    return (struct conv_tail){ cfg->bias, cfg->activation, cfg->slope };
}

/* Returns the output size along an axis: 0 height, 1 width. */
static int larger(const struct conv2d_transpose_cfg *cfg, int axis, int in)
{
    const int kernel = cfg->kernel.v[axis < cfg->kernel.count ? axis : 0];
    const int stride = cfg->stride.v[axis < cfg->stride.count ? axis : 0];
    const int reach = (kernel - 1) * cfg->dilation.v[axis < cfg->dilation.count ? axis : 0] + 1;

    if (cfg->padding == PM_PAD_EXPLICIT)
        return (in - 1) * stride + reach - cfg->pad.v[2 * axis] - cfg->pad.v[2 * axis + 1] +
               cfg->output_pad.v[axis < cfg->output_pad.count ? axis : 0];
    return in * stride + (cfg->padding == PM_PAD_VALID && reach > stride ? reach - stride : 0);
}

static int check(const struct pm_node *n)
{
    const struct conv2d_transpose_cfg *cfg = n->cfg;

    if (cfg->kernel.count < 1 || cfg->stride.count < 1 || cfg->dilation.count < 1)
        return pm_fail(PM_ECONFIG,
                       "%s: kernel, stride and dilation take one number or [height, width]",
                       n->name);
    if (cfg->padding != PM_PAD_EXPLICIT)
        return PM_OK;
    if (cfg->pad.count != 4 || cfg->output_pad.count < 1)
        return pm_fail(PM_ECONFIG,
                       "%s: padding \"explicit\" takes pad [top, bottom, left, right] and "
                       "output_pad, one number or [height, width]",
                       n->name);
    for (int axis = 0; axis < 2; axis++) {
        const int more = cfg->output_pad.v[axis < cfg->output_pad.count ? axis : 0];
        const int stride = cfg->stride.v[axis < cfg->stride.count ? axis : 0];

        if (more >= stride)
            return pm_fail(PM_ECONFIG, "%s: output_pad %d must be less than the stride %d", n->name,
                           more, stride);
    }
    return PM_OK;
}

/* Fills the params of the convolution from output to input. */
static int params_of(const struct pm_node *n, struct conv2d_params *p)
{
    int err = PM_OK;
    const struct conv2d_transpose_cfg *cfg = n->cfg;
    const struct conv_window v = { .kernel = cfg->kernel, .stride = cfg->stride,
                                   .dilation = cfg->dilation, .pad = cfg->pad,
                                   .padding = cfg->padding };
    const struct pm_shape x = n->in[0]->out_shape;

    if (x.rank != 4)
        return pm_fail(PM_ECONFIG, "%s: a convolution takes images [n, h, w, c], not rank %d",
                       n->name, x.rank);
    PM_TRY(check(n));
    const int oh = larger(cfg, 0, x.dim[1]), ow = larger(cfg, 1, x.dim[2]);
    if (oh < 1 || ow < 1)
        return pm_fail(PM_ECONFIG, "%s: pad leaves an output of %dx%d pixels: set a smaller pad",
                       n->name, oh, ow);
    p->n = x.dim[0];
    p->c = cfg->filters;
    p->k = x.dim[3];
    p->groups = 1;
    PM_TRY(pm_conv_geometry(n, &v, oh, ow, p));
out:
    return err;
}

static int infer(struct pm_node *n)
{
    int err = PM_OK;
    const struct conv2d_transpose_cfg *cfg = n->cfg;
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p = { 0 };

    PM_TRY(params_of(n, &p));
    PM_TRY(pm_conv_variables(n, "weights", PM_SHAPE4(p.kh, p.kw, p.c, p.k), cfg->weights_init,
                             cfg->regularize, &t, p.c, cfg->bias_init, cfg->regularize_bias));
    n->out_shape = PM_SHAPE4(p.n, p.h, p.w, p.c);
    n->out_type = PM_F32;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p = { 0 };
    const struct pm_tensor z = pm_conv_sums(n, c, &t);

    params_of(n, &p);
    pm_conv_call(c, &pm_conv2d_bwd_data, &p, z, n->w[0], n->x);
    pm_conv_tail_forward(n, c, &t, z);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p = { 0 };
    const struct pm_tensor dz = pm_conv_tail_backward(n, c, &t);

    params_of(n, &p);
    if (pm_has(n->dw[0]))
        pm_conv_call(c, &pm_conv2d_bwd_filter, &p, dz, n->dw[0], n->x);
    if (pm_has(n->dx))
        pm_conv_call(c, &pm_conv2d_fwd, &p, dz, n->w[0], n->dx);
}

/* If the output is smaller than stride * (in - 1) + reach, pads crop the difference. If it is
 * larger, the difference is added at the end. */
static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct conv_tail t = tail_of(n);
    struct conv2d_params p = { 0 };
    const char *y;

    params_of(n, &p);
    const int bottom = p.stride_h * (p.oh - 1) + (p.kh - 1) * p.dilation_h + 1 - p.h - p.top;
    const int right = p.stride_w * (p.ow - 1) + (p.kw - 1) * p.dilation_w + 1 - p.w - p.left;
    y = pm_export_op(g, "ConvTranspose", PM_VALUES(pm_export_x(g, n, 0),
                                                   pm_export_weights(g, n, false),
                                                   pm_export_bias(g, n, t.bias)));
    pm_export_ints(g, "kernel_shape", PM_INT64S(p.kh, p.kw));
    pm_export_ints(g, "strides", PM_INT64S(p.stride_h, p.stride_w));
    pm_export_ints(g, "dilations", PM_INT64S(p.dilation_h, p.dilation_w));
    pm_export_ints(g, "pads", PM_INT64S(p.top, p.left, bottom > 0 ? bottom : 0,
                                        right > 0 ? right : 0));
    pm_export_ints(g, "output_padding", PM_INT64S(bottom < 0 ? -bottom : 0,
                                                  right < 0 ? -right : 0));
    return pm_export_activation(g, y, t.activation, t.slope);
}

const struct pm_layer pm_layer_conv2d_transpose = {
    .name = "conv2d_transpose", .help = "transposed convolution (upsampling), bias, activation",
    .opts = opts, .cfg_size = sizeof(struct conv2d_transpose_cfg),
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
