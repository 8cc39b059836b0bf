/* unary: functions of one number, element by element, beside those of activations.c; most come with
 * models made elsewhere. unary.h has the functions and their derivatives, which take x. */
#include "layers/unary.h"

#include <pumice/layer.h>

#include "layers/pick.h"
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
    PM_ENUM(unary_cfg, approximate, 0, "none|tanh", "erf itself, or a formula with tanh near it"),
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

/* Runs CALL(kind) with kind as a constant, so that the loop in it is compiled for that one kind. */
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

/* Powers that have a shorter way. */
static int power_kind(float exponent)
{
    return exponent == 2 ? PM_UNARY_SQUARE : exponent == 3 ? PM_UNARY_CUBE
           : exponent == 0.5f ? PM_UNARY_SQRT : exponent == -1 ? PM_UNARY_RECIPROCAL
           : PM_UNARY_POWER;
}

static struct unary_params params_of(const struct pm_node *n)
{
    static const char *const names[PM_UNARY_KINDS] = {
        "elu", "celu", "selu", "softplus", "softsign", "exp", "log", "sqrt", "reciprocal", "abs",
        "neg", "gelu", "", "swish", "mish", "clip", "thresholded_relu", "affine", "", "", "power",
        "erf", "ceil", "floor", "round", "sign",
    };
    const struct unary_cfg *cfg = n->cfg;
    struct unary_params p = { .count = (int)pm_count(n->x), .a = cfg->a, .b = cfg->b };

    while (strcmp(names[p.kind], n->layer->name) != 0)
        p.kind++;
    if (p.kind == PM_UNARY_GELU && cfg->approximate)
        p.kind = PM_UNARY_GELU_TANH;
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

#define UNARY(id, options, text)                                                                   \
    const struct pm_layer pm_layer_##id = {                                                        \
        .name = #id, .help = text, .opts = options, .cfg_size = sizeof(struct unary_cfg),          \
        .infer = pm_infer_same, .forward = forward, .backward = backward,                          \
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
