/* activations: the functions of shaders/activation.def as element-wise layers. All of them share
 * the kernel rows. */
#include <pumice/layer.h>

#include "activation.params.h"
#include "layers/activation.h"
#include "onnx/export_nodes.h"
#include "device/pick.h"

#define PM_ACT_ROW(with, number, id, name, ...) extern const struct pm_layer pm_layer_##name;
PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW

struct leaky_relu_cfg { float slope; };

static const struct pm_opt no_opts[] = { { 0 } };
static const struct pm_opt leaky_relu_opts[] = {
    PM_FLOAT(leaky_relu_cfg, slope, 0.01, 1e-6, 1, "slope for negative inputs"),
    { 0 },
};

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct activation_params *p = a->params;
    const float *x = a->buf[0], slope = p->slope;
    float *y = a->buf[1];

#define LOOP(kind)                                                                                 \
    PM_SIMD                                                                                        \
    for (size_t i = begin; i < end; i++)                                                           \
        y[i] = pm_act(kind, slope, x[i])
    PM_ACT_SWITCH(p->kind, LOOP)
#undef LOOP
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct activation_params *p = a->params;
    const float *v = a->buf[0], *dy = a->buf[1], slope = p->slope;
    float *dx = a->buf[2];

#define LOOP(kind)                                                                                 \
    PM_SIMD                                                                                        \
    for (size_t i = begin; i < end; i++)                                                           \
        dx[i] = dy[i] * pm_act_slope(kind, slope, v[i])
    PM_ACT_SWITCH(p->kind, LOOP)
#undef LOOP
}

static bool pick(const char *name4, const char *name, const void *params, int level,
                 struct pm_picks *out)
{
    const struct activation_params *p = params;
    return pick_four(name4, name, p->count % 4 == 0, (size_t)p->count, (uint32_t)p->kind, level,
                     out);
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)count;
    return pick("activation_fwd4", "activation_fwd", params, level, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)count;
    return pick("activation_bwd4", "activation_bwd", params, level, out);
}

static const struct pm_kernel fwd = {
    .name = "activation_fwd", .bufs = "r:x w:y", .inplace = "y=x",
    .params_size = sizeof(struct activation_params), .cpu = fwd_cpu, .pick = fwd_pick,
};
/* v: y, or x if the derivative needs x. */
static const struct pm_kernel bwd = {
    .name = "activation_bwd", .bufs = "r:v r:dy w:dx", .inplace = "dx=dy",
    .params_size = sizeof(struct activation_params), .cpu = bwd_cpu, .pick = bwd_pick,
};

static int kind_of(const struct pm_node *n)
{
    static const struct pm_layer *const layers[PM_ACT_KINDS] = {
#define PM_ACT_ROW(with, number, id, name, ...) [id] = &pm_layer_##name,
        PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW
    };
    int kind = PM_ACT_NONE;

    while (layers[kind] != n->layer)
        kind++;
    return kind;
}

static struct activation_params params_of(const struct pm_node *n)
{
    struct activation_params p = { .count = (int)pm_count(n->x), .kind = kind_of(n) };

    if (p.kind == PM_ACT_LEAKY_RELU)
        p.slope = ((const struct leaky_relu_cfg *)n->cfg)->slope;
    return p;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct activation_params p = params_of(n);
    pm_call(c, &fwd, pm_count(n->x), &p, PM_BUFS(n->x, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct activation_params p = params_of(n);
    struct pm_tensor v = pm_act_takes_z(p.kind) ? n->x : n->y;

    if (pm_has(n->dx))
        pm_call(c, &bwd, pm_count(n->x), &p, PM_BUFS(v, n->dy, n->dx));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const int kind = kind_of(n);
    const struct leaky_relu_cfg *leaky = kind == PM_ACT_LEAKY_RELU ? n->cfg : NULL;

    return pm_export_activation(g, pm_export_x(g, n, 0), kind, leaky ? leaky->slope : 0);
}

const char *pm_export_activation(struct pm_export *g, const char *x, int kind, float slope)
{
    static const char *const ops[PM_ACT_KINDS] = {
#define PM_ACT_ROW(with, number, id, name, onnx, ...) [id] = #onnx,
        PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW
    };

    if (kind == PM_ACT_NONE)
        return x;
    if (kind == PM_ACT_RELU6)
        return pm_export_op(g, ops[kind], PM_VALUES(x, pm_export_number(g, 0),
                                                    pm_export_number(g, 6)));
    x = pm_export_op(g, ops[kind], PM_VALUES(x));
    if (kind == PM_ACT_LEAKY_RELU)
        pm_export_float(g, "alpha", slope);
    if (kind == PM_ACT_HARD_SIGMOID) {
        pm_export_float(g, "alpha", 1.0f / 6);
        pm_export_float(g, "beta", 0.5f);
    }
    return x;
}

#define ACTIVATION(id, text, ...)                                                                  \
    const struct pm_layer pm_layer_##id = {                                                        \
        .name = #id, .help = text, .infer = pm_infer_same, .forward = forward,                     \
        .backward = backward, .onnx = onnx, __VA_ARGS__                                            \
    }
#define PLAIN .opts = no_opts, .cfg_size = 4

ACTIVATION(relu, "max(x, 0)", PLAIN);
ACTIVATION(relu6, "x cut to 0..6", PLAIN);
ACTIVATION(leaky_relu, "rectifier with a small negative slope", .opts = leaky_relu_opts,
           .cfg_size = sizeof(struct leaky_relu_cfg));
ACTIVATION(sigmoid, "1 / (1 + exp(-x))", PLAIN);
ACTIVATION(tanh, "hyperbolic tangent", PLAIN);
ACTIVATION(hard_sigmoid, "x cut to -3..3, brought to 0..1", PLAIN);
ACTIVATION(hard_swish, "x * hard_sigmoid(x)", PLAIN);
