/* channel: layers that multiply by or add variables that repeat along the leading axes. prelu: y =
 * x > 0 ? x : alpha x. scale: y = gamma x + beta; gamma or beta may be absent. Backward: dx = dy or
 * gamma dy. dgamma is the sum over the rows of dy x (prelu: if x <= 0). One row writes these terms
 * and bias_grad adds them. dbeta is the sum of dy. */
#include "onnx/export_nodes.h"
#include "layers/infer.h"

#include <limits.h>

#include "channel.params.h"
#include "layers/conv_rows.h"
#include "device/pick.h"
#include "layers/vmath.h"

enum { PRELU, SCALE, SHIFT, SCALE_SHIFT };

struct prelu_cfg {
    bool shared, regularize;
    const char *init;
};
struct scale_cfg {
    int axes;
    bool gamma, beta, regularize;
    const char *gamma_init, *beta_init;
};

static const struct pm_opt prelu_opts[] = {
    PM_BOOL(prelu_cfg, shared, false, "one slope for all channels"),
    PM_STRING(prelu_cfg, init, "constant(0.25)", "initial slopes"),
    PM_BOOL(prelu_cfg, regularize, false, "weight decay applies to the slopes"),
    { 0 },
};
static const struct pm_opt scale_opts[] = {
    PM_INT(scale_cfg, axes, 1, -1, PM_MAX_RANK,
           "number of trailing axes that the variables have; 0: a single number, -1: all except "
           "the batch"),
    PM_BOOL(scale_cfg, gamma, true, "multiply by a variable"),
    PM_BOOL(scale_cfg, beta, false, "add a variable"),
    PM_STRING(scale_cfg, gamma_init, "constant(1)", "initial factors"),
    PM_STRING(scale_cfg, beta_init, "constant(0)", "initial values of the added variable"),
    PM_BOOL(scale_cfg, regularize, false, "weight decay applies to both"),
    { 0 },
};

/* ---- rows ------------------------------------------------------------------------------ */

PM_INLINE float apply(int kind, float x, float gamma, float beta)
{
    return kind == PRELU ? (x > 0 ? x : gamma * x)
           : kind == SCALE ? gamma * x : kind == SHIFT ? x + beta : gamma * x + beta;
}

/* Computes count values of one row from channel c on. With k = 1 all values form one row. */
PM_INLINE void fwd_run(int kind, const float *x, const float *gamma, const float *beta, float *y,
                       size_t count, size_t step)
{
    PM_SIMD
    for (size_t i = 0; i < count; i++)
        y[i] = apply(kind, x[i], kind == SHIFT ? 0 : gamma[i * step],
                     kind == PRELU || kind == SCALE ? 0 : beta[i * step]);
}

PM_INLINE void bwd_run(int kind, const float *x, const float *gamma, const float *dy, float *dx,
                       float *terms, size_t count, size_t step)
{
    if (dx) {
        PM_SIMD
        for (size_t i = 0; i < count; i++)
            dx[i] = dy[i] * (kind == PRELU && x[i] > 0 ? 1 : gamma[i * step]);
    }
    if (terms) {
        PM_SIMD
        for (size_t i = 0; i < count; i++)
            terms[i] = dy[i] * (kind == PRELU && x[i] > 0 ? 0 : x[i]);
    }
}

/* Returns the number of values up to the end of the row, or of the range. */
PM_INLINE size_t run_length(const struct channel_params *p, size_t begin, size_t end)
{
    const size_t k = (size_t)p->k, left = k == 1 ? end - begin : k - begin % k;

    return left < end - begin ? left : end - begin;
}

#define KIND_SWITCH(kind, CALL)                                                                    \
    switch (kind) {                                                                                \
    case PRELU: CALL(PRELU); break;                                                                \
    case SCALE: CALL(SCALE); break;                                                                \
    case SHIFT: CALL(SHIFT); break;                                                                \
    default: CALL(SCALE_SHIFT); break;                                                             \
    }

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct channel_params *p = a->params;
    const float *x = a->buf[0], *gamma = a->buf[1], *beta = a->buf[2];
    float *y = a->buf[3];

    for (size_t n; begin < end; begin += n) {
        const size_t at = begin % (size_t)p->k;

        n = run_length(p, begin, end);
#define CALL(kind)                                                                                 \
        fwd_run(kind, x + begin, gamma ? gamma + at : NULL, beta ? beta + at : NULL, y + begin, n, \
                p->k > 1)
        KIND_SWITCH(p->kind, CALL)
#undef CALL
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct channel_params *p = a->params;
    const float *x = a->buf[0], *gamma = a->buf[1], *dy = a->buf[2];
    float *dx = a->buf[3], *terms = a->buf[4];

    for (size_t n; begin < end; begin += n) {
        const size_t at = begin % (size_t)p->k;

        n = run_length(p, begin, end);
#define CALL(kind)                                                                                 \
        bwd_run(kind, x + begin, gamma + at, dy + begin, dx ? dx + begin : NULL,                   \
                terms ? terms + begin : NULL, n, p->k > 1)
        KIND_SWITCH(p->kind, CALL)
#undef CALL
    }
}

static bool pick(const char *name4, const char *name, const void *params, int level,
                 struct pm_picks *out)
{
    const struct channel_params *p = params;

    return pick_four(name4, name, p->k % 4 == 0, (size_t)p->count, (uint32_t)p->kind, level, out);
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)count;
    return pick("channel_fwd4", "channel_fwd", params, level, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)count;
    return pick("channel_bwd4", "channel_bwd", params, level, out);
}

static const struct pm_kernel fwd = {
    .name = "channel_fwd", .bufs = "r:x r?:gamma r?:beta w:y", .inplace = "y=x",
    .params_size = sizeof(struct channel_params), .cpu = fwd_cpu, .pick = fwd_pick,
};
/* terms: the terms whose sum is gamma's gradient. */
static const struct pm_kernel bwd = {
    .name = "channel_bwd", .bufs = "r:x r:gamma r:dy w?:dx w?:terms",
    .params_size = sizeof(struct channel_params), .cpu = bwd_cpu, .pick = bwd_pick,
};

/* ---- calls ----------------------------------------------------------------------------- */

/* Indices of the variables in the node's list, or -1. */
static int gamma_at(int kind) { return kind == SHIFT ? -1 : 0; }
static int beta_at(int kind) { return kind == SHIFT ? 0 : kind == SCALE_SHIFT ? 1 : -1; }

static struct pm_tensor at(const struct pm_tensor *list, int place)
{
    return place < 0 ? PM_NO_TENSOR : list[place];
}

static void call_forward(struct pm_node *n, struct pm_calls *c, int kind)
{
    const struct channel_params p = { .count = (int)pm_count(n->x), .k = (int)pm_count(n->w[0]),
                                      .kind = kind };

    pm_call(c, &fwd, pm_count(n->x), &p,
            PM_BUFS(n->x, at(n->w, gamma_at(kind)), at(n->w, beta_at(kind)), n->y));
}

static void call_backward(struct pm_node *n, struct pm_calls *c, int kind)
{
    const struct channel_params p = { .count = (int)pm_count(n->x), .k = (int)pm_count(n->w[0]),
                                      .kind = kind };
    const struct pm_tensor dgamma = at(n->dw, gamma_at(kind)), dbeta = at(n->dw, beta_at(kind));
    struct pm_tensor terms = PM_NO_TENSOR;

    if (pm_has(dbeta))
        pm_add_rows(c, n->dy, dbeta);
    if (kind == SHIFT) {
        if (pm_has(n->dx))
            n->dxs[0] = n->dy;
        return;
    }
    if (pm_has(dgamma))
        terms = pm_temp(c, n->x.shape, PM_F32);
    if (pm_has(n->dx) || pm_has(terms))
        pm_call(c, &bwd, pm_count(n->x), &p, PM_BUFS(n->x, n->w[0], n->dy, n->dx, terms));
    if (pm_has(terms))
        pm_add_rows(c, terms, dgamma);
}

/* ---- prelu ----------------------------------------------------------------------------- */

static int prelu_infer(struct pm_node *n)
{
    const struct prelu_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;
    struct pm_init init;
    int err = PM_OK, k;

    if (x.rank < 1)
        PM_TRY(
            pm_fail(PM_ECONFIG, "%s: prelu needs an input with channels, not a scalar", n->name));
    k = cfg->shared ? 1 : x.dim[x.rank - 1];
    PM_TRY(pm_init_parse(cfg->init, &init, n->name));
    PM_TRY(pm_node_variable(n, "alpha", PM_SHAPE1(k), init, k, k, true, cfg->regularize));
    PM_TRY(pm_infer_same(n));
out:
    return err;
}

static void prelu_forward(struct pm_node *n, struct pm_calls *c)
{
    call_forward(n, c, PRELU);
}

static void prelu_backward(struct pm_node *n, struct pm_calls *c)
{
    call_backward(n, c, PRELU);
}

/* ---- scale ----------------------------------------------------------------------------- */

static int scale_infer(struct pm_node *n)
{
    const struct scale_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;
    const int axes = cfg->axes < 0 ? x.rank - 1 : cfg->axes;
    struct pm_shape shape = { .rank = axes };
    struct pm_init init;
    char text[64];
    int err = PM_OK, fan;

    if (axes < 0 || axes > x.rank)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: axes is %d, but the input %s has %d", n->name, cfg->axes,
                       pm_shape_text(x, text), x.rank));
    if (!cfg->gamma && !cfg->beta)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: scale with neither gamma nor beta does nothing", n->name));
    for (int i = 0; i < axes; i++)
        shape.dim[i] = x.dim[x.rank - axes + i];
    if (axes == 0)
        shape = PM_SHAPE1(1);
    fan = pm_shape_count(shape) > INT_MAX ? INT_MAX : (int)pm_shape_count(shape);
    PM_TRY(pm_init_parse(cfg->gamma_init, &init, n->name));
    if (cfg->gamma)
        PM_TRY(pm_node_variable(n, "gamma", shape, init, fan, fan, true, cfg->regularize));
    PM_TRY(pm_init_parse(cfg->beta_init, &init, n->name));
    if (cfg->beta)
        PM_TRY(pm_node_variable(n, "beta", shape, init, fan, fan, true, cfg->regularize));
    PM_TRY(pm_infer_same(n));
out:
    return err;
}

static int scale_kind(const struct pm_node *n)
{
    const struct scale_cfg *cfg = n->cfg;
    return cfg->gamma && cfg->beta ? SCALE_SHIFT : cfg->gamma ? SCALE : SHIFT;
}

static void scale_forward(struct pm_node *n, struct pm_calls *c)
{
    call_forward(n, c, scale_kind(n));
}

static void scale_backward(struct pm_node *n, struct pm_calls *c)
{
    call_backward(n, c, scale_kind(n));
}

static const char *prelu_onnx(const struct pm_node *n, struct pm_export *g)
{
    return pm_export_op(g, "PRelu", PM_VALUES(pm_export_x(g, n, 0),
                                              pm_export_trailing(g, n, 0, n->out_shape.rank)));
}

static const char *scale_onnx(const struct pm_node *n, struct pm_export *g)
{
    const int rank = n->out_shape.rank, kind = scale_kind(n);
    const char *y = pm_export_x(g, n, 0);

    if (gamma_at(kind) >= 0)
        y = pm_export_op(g, "Mul", PM_VALUES(y, pm_export_trailing(g, n, gamma_at(kind), rank)));
    if (beta_at(kind) >= 0)
        y = pm_export_op(g, "Add", PM_VALUES(y, pm_export_trailing(g, n, beta_at(kind), rank)));
    return y;
}

const struct pm_layer pm_layer_prelu = {
    .name = "prelu", .help = "rectifier with a learnt slope for negative inputs",
    .opts = prelu_opts, .cfg_size = sizeof(struct prelu_cfg), .infer = prelu_infer,
    .forward = prelu_forward, .backward = prelu_backward, .onnx = prelu_onnx,
};
const struct pm_layer pm_layer_scale = {
    .name = "scale", .help = "multiplication by a variable and addition of another, per channel or "
                             "position",
    .opts = scale_opts, .cfg_size = sizeof(struct scale_cfg), .infer = scale_infer,
    .forward = scale_forward, .backward = scale_backward, .onnx = scale_onnx,
};
