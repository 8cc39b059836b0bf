/* unary: element-wise functions of one number that activations.c does not have. Most are needed for
 * imported models. unary.h has the functions and their derivatives, which take x. */
#include "layers/unary.h"

#include <pumice/layer.h>

#include "onnx/export_nodes.h"
#include "device/pick.h"
#include "unary.params.h"

struct unary_cfg {
    float a, b;
    int approximate;
};

#define NUMBER(name, field, d, lo, hi, h)                                                          \
    { .key = name, .type = PM_OPT_FLOAT, .offset = PM_FIELD_(unary_cfg, field, float), .def = d,   \
      .min = lo, .max = hi, .help = h }
static const struct pm_opt no_opts[] = { { 0 } };
static const struct pm_opt elu_opts[] = {
    NUMBER("alpha", a, 1, 0, 1e6, "what large negative values become, negated"), { 0 },
};
static const struct pm_opt celu_opts[] = {
    NUMBER("alpha", a, 1, 1e-6, 1e6, "what large negative values become, negated"), { 0 },
};
static const struct pm_opt selu_opts[] = {
    NUMBER("alpha", a, 1.67326319, 0, 1e6, "alpha of elu"),
    NUMBER("gamma", b, 1.05070102, 0, 1e6, "factor"),
    { 0 },
};
static const struct pm_opt gelu_opts[] = {
    PM_ENUM(unary_cfg, approximate, 0, "none|tanh", "exact erf, or the tanh approximation"),
    { 0 },
};
static const struct pm_opt swish_opts[] = {
    NUMBER("beta", a, 1, -1e6, 1e6, "factor of x inside the sigmoid"), { 0 },
};
static const struct pm_opt clip_opts[] = {
    NUMBER("min", a, -3e38, -3e38, 3e38, "least value"),
    NUMBER("max", b, 3e38, -3e38, 3e38, "largest value"),
    { 0 },
};
static const struct pm_opt thresholded_opts[] = {
    NUMBER("alpha", a, 1, -1e6, 1e6, "values up to this one become 0"), { 0 },
};
static const struct pm_opt affine_opts[] = {
    NUMBER("scale", a, 1, -3e38, 3e38, "factor"),
    NUMBER("shift", b, 0, -3e38, 3e38, "added to the product"),
    { 0 },
};
static const struct pm_opt power_opts[] = {
    NUMBER("exponent", a, 2, -1e3, 1e3, "powers of negative values need a whole one"), { 0 },
};

/* ---- rows ------------------------------------------------------------------------------ */

/* Runs CALL(kind) with kind as a constant, so that each loop is compiled for one kind. */
#define KIND(id, CALL) case PM_UNARY_##id: CALL(PM_UNARY_##id); break;
#define KIND_SWITCH(kind, CALL)                                                                    \
    switch (kind) {                                                                                \
    KIND(ELU, CALL) KIND(CELU, CALL) KIND(SELU, CALL) KIND(SOFTPLUS, CALL) KIND(SOFTSIGN, CALL)    \
    KIND(EXP, CALL) KIND(LOG, CALL) KIND(SQRT, CALL) KIND(RECIPROCAL, CALL) KIND(ABS, CALL)        \
    KIND(NEG, CALL) KIND(GELU, CALL) KIND(GELU_TANH, CALL) KIND(SWISH, CALL) KIND(MISH, CALL)      \
    KIND(CLIP, CALL) KIND(THRESHOLDED, CALL) KIND(AFFINE, CALL) KIND(SQUARE, CALL)                 \
    KIND(CUBE, CALL) KIND(POWER, CALL) KIND(ERF, CALL) KIND(CEIL, CALL) KIND(FLOOR, CALL)          \
    KIND(ROUND, CALL) KIND(SIGN, CALL)                                                             \
    }

PM_CLONES static void fwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct unary_params *p = args->params;
    const float *x = args->buf[0], a = p->a, b = p->b;
    float *y = args->buf[1];

#define LOOP(kind)                                                                                 \
    PM_SIMD                                                                                        \
    for (size_t i = begin; i < end; i++)                                                           \
        y[i] = pm_unary(kind, a, b, x[i])
    KIND_SWITCH(p->kind, LOOP)
#undef LOOP
}

PM_CLONES static void bwd_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct unary_params *p = args->params;
    const float *x = args->buf[0], *dy = args->buf[1], a = p->a, b = p->b;
    float *dx = args->buf[2];

#define LOOP(kind)                                                                                 \
    PM_SIMD                                                                                        \
    for (size_t i = begin; i < end; i++)                                                           \
        dx[i] = dy[i] * pm_unary_slope(kind, a, b, x[i])
    KIND_SWITCH(p->kind, LOOP)
#undef LOOP
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct unary_params *p = params;

    (void)caps;
    return pick_four("unary_fwd4", "unary_fwd", count % 4 == 0, count, (uint32_t)p->kind, level,
                     out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct unary_params *p = params;

    (void)caps;
    return pick_four("unary_bwd4", "unary_bwd", count % 4 == 0, count, (uint32_t)p->kind, level,
                     out);
}

static const struct pm_kernel fwd = {
    .name = "unary_fwd", .bufs = "r:x w:y", .inplace = "y=x",
    .params_size = sizeof(struct unary_params), .cpu = fwd_cpu, .pick = fwd_pick,
};
static const struct pm_kernel bwd = {
    .name = "unary_bwd", .bufs = "r:x r:dy w:dx", .inplace = "dx=dy",
    .params_size = sizeof(struct unary_params), .cpu = bwd_cpu, .pick = bwd_pick,
};

/* ---- layers ---------------------------------------------------------------------------- */

/* Returns the kind for powers that have a faster formula. */
static int power_kind(float exponent)
{
    return exponent == 2 ? PM_UNARY_SQUARE : exponent == 3 ? PM_UNARY_CUBE
           : exponent == 0.5f ? PM_UNARY_SQRT : exponent == -1 ? PM_UNARY_RECIPROCAL
           : PM_UNARY_POWER;
}

static int kind_of(const struct pm_node *n)
{
    static const char *const names[PM_UNARY_KINDS] = {
        "elu", "celu", "selu", "softplus", "softsign", "exp", "log", "sqrt", "reciprocal", "abs",
        "neg", "gelu", "", "swish", "mish", "clip", "thresholded_relu", "affine", "", "", "power",
        "erf", "ceil", "floor", "round", "sign",
    };
    const struct unary_cfg *cfg = n->cfg;
    int kind = 0;

    while (strcmp(names[kind], n->layer->name) != 0)
        kind++;
    return kind == PM_UNARY_GELU && cfg->approximate ? PM_UNARY_GELU_TANH : kind;
}

static struct unary_params params_of(const struct pm_node *n)
{
    const struct unary_cfg *cfg = n->cfg;
    struct unary_params p = { .count = (int)pm_count(n->x), .kind = kind_of(n), .a = cfg->a,
                              .b = cfg->b };

    if (p.kind == PM_UNARY_POWER)
        p.kind = power_kind(p.a);
    return p;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct unary_params p = params_of(n);
    pm_call(c, &fwd, pm_count(n->x), &p, PM_BUFS(n->x, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct unary_params p = params_of(n);

    if (pm_has(n->dx))
        pm_call(c, &bwd, pm_count(n->x), &p, PM_BUFS(n->x, n->dy, n->dx));
}

/* ---- ONNX ------------------------------------------------------------------------------ */

static const char *times(struct pm_export *g, const char *x, float factor)
{
    return pm_export_op(g, "Mul", PM_VALUES(x, pm_export_number(g, factor)));
}

/* x sigmoid(beta u) */
static const char *gated(struct pm_export *g, const char *x, const char *u, float beta)
{
    u = pm_export_op(g, "Sigmoid", PM_VALUES(beta == 1 ? u : times(g, u, beta)));
    return pm_export_op(g, "Mul", PM_VALUES(x, u));
}

static const char *gelu(struct pm_export *g, const char *x, bool approximate)
{
    const char *u;

    if (approximate) {
        u = pm_export_op(g, "Mul", PM_VALUES(x, x));
        u = times(g, pm_export_op(g, "Mul", PM_VALUES(u, x)), PM_GELU_B);
        return gated(g, x, pm_export_op(g, "Add", PM_VALUES(x, u)), 2 * PM_GELU_A);
    }
    u = pm_export_op(g, "Erf", PM_VALUES(times(g, x, 0.70710678f)));
    u = pm_export_op(g, "Add", PM_VALUES(u, pm_export_number(g, 1)));
    return times(g, pm_export_op(g, "Mul", PM_VALUES(x, u)), 0.5f);
}

static const char *plain(struct pm_export *g, const char *x, int kind, const struct unary_cfg *cfg)
{
    static const struct { const char *op, *a, *b; } ops[PM_UNARY_KINDS] = {
        [PM_UNARY_ELU] = { "Elu", "alpha", NULL },
        [PM_UNARY_CELU] = { "Celu", "alpha", NULL },
        [PM_UNARY_SELU] = { "Selu", "alpha", "gamma" },
        [PM_UNARY_SOFTPLUS] = { "Softplus", NULL, NULL },
        [PM_UNARY_SOFTSIGN] = { "Softsign", NULL, NULL },
        [PM_UNARY_EXP] = { "Exp", NULL, NULL },
        [PM_UNARY_LOG] = { "Log", NULL, NULL },
        [PM_UNARY_SQRT] = { "Sqrt", NULL, NULL },
        [PM_UNARY_RECIPROCAL] = { "Reciprocal", NULL, NULL },
        [PM_UNARY_ABS] = { "Abs", NULL, NULL },
        [PM_UNARY_NEG] = { "Neg", NULL, NULL },
        [PM_UNARY_THRESHOLDED] = { "ThresholdedRelu", "alpha", NULL },
        [PM_UNARY_ERF] = { "Erf", NULL, NULL },
        [PM_UNARY_CEIL] = { "Ceil", NULL, NULL },
        [PM_UNARY_FLOOR] = { "Floor", NULL, NULL },
        [PM_UNARY_ROUND] = { "Round", NULL, NULL },
        [PM_UNARY_SIGN] = { "Sign", NULL, NULL },
    };

    if (!ops[kind].op)
        pm_export_refuse(g, "no operator of opset 17 is named for it");
    x = pm_export_op(g, ops[kind].op ? ops[kind].op : "Identity", PM_VALUES(x));
    if (ops[kind].a)
        pm_export_float(g, ops[kind].a, cfg->a);
    if (ops[kind].b)
        pm_export_float(g, ops[kind].b, cfg->b);
    return x;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct unary_cfg *cfg = n->cfg;
    const char *x = pm_export_x(g, n, 0), *y;
    const int kind = kind_of(n);

    switch (kind) {
    case PM_UNARY_GELU:
    case PM_UNARY_GELU_TANH:
        return gelu(g, x, kind == PM_UNARY_GELU_TANH);
    case PM_UNARY_SWISH:
        return gated(g, x, x, cfg->a);
    case PM_UNARY_MISH:
        y = pm_export_op(g, "Softplus", PM_VALUES(x));
        return pm_export_op(g, "Mul", PM_VALUES(x, pm_export_op(g, "Tanh", PM_VALUES(y))));
    case PM_UNARY_CLIP:
        return pm_export_op(g, "Clip", PM_VALUES(x, pm_export_number(g, cfg->a),
                                                 pm_export_number(g, cfg->b)));
    case PM_UNARY_AFFINE:
        return pm_export_op(g, "Add", PM_VALUES(times(g, x, cfg->a), pm_export_number(g, cfg->b)));
    case PM_UNARY_POWER:
        return pm_export_op(g, "Pow", PM_VALUES(x, pm_export_number(g, cfg->a)));
    default:
        return plain(g, x, kind, cfg);
    }
}

#define UNARY(id, options, text)                                                                   \
    const struct pm_layer pm_layer_##id = {                                                        \
        .name = #id, .help = text, .opts = options, .cfg_size = sizeof(struct unary_cfg),          \
        .infer = pm_infer_same, .forward = forward, .backward = backward, .onnx = onnx,            \
    }

UNARY(elu, elu_opts, "x, or alpha (e^x - 1) where x is negative");
UNARY(celu, celu_opts, "x, or alpha (e^(x / alpha) - 1) where x is negative");
UNARY(selu, selu_opts, "gamma times elu, by constants that keep mean and variance");
UNARY(softplus, no_opts, "log(1 + e^x)");
UNARY(softsign, no_opts, "x / (1 + |x|)");
UNARY(exp, no_opts, "e^x");
UNARY(log, no_opts, "natural logarithm");
UNARY(sqrt, no_opts, "square root");
UNARY(reciprocal, no_opts, "1 / x");
UNARY(abs, no_opts, "|x|");
UNARY(neg, no_opts, "-x");
UNARY(gelu, gelu_opts, "x times the normal distribution's share below x");
UNARY(swish, swish_opts, "x sigmoid(beta x); also known as silu");
UNARY(mish, no_opts, "x tanh(softplus(x))");
UNARY(clip, clip_opts, "x cut to min..max");
UNARY(thresholded_relu, thresholded_opts, "x where it is above alpha, else 0");
UNARY(affine, affine_opts, "scale x + shift, by numbers that do not learn");
UNARY(power, power_opts, "x raised to a constant");
UNARY(erf, no_opts, "error function");
UNARY(ceil, no_opts, "next whole number above; its gradient is 0");
UNARY(floor, no_opts, "next whole number below; its gradient is 0");
UNARY(round, no_opts, "nearest whole number, halves to the even one; its gradient is 0");
UNARY(sign, no_opts, "-1, 0 or 1; its gradient is 0");
