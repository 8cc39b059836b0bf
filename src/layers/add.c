/* add: y = act(x0 + scale (x1 + x2 + ..)), 2 to 8 inputs of one shape. scale is for residual units
 * that damp their branch. Backward: g = dy act'(y) goes to x0, scale g to the others. Nothing is
 * copied if g equals dy, or if one tensor serves several inputs. Two inputs of different but
 * compatible shapes use binary.c. */
#include <pumice/layer.h>

#include "add.params.h"
#include "layers/activation.h"
#include "layers/binary.h"
#include "onnx/export_nodes.h"
#include "device/pick.h"

struct add_cfg {
    int activation;
    float slope, scale;
};

static const struct pm_opt opts[] = {
    PM_ENUM(add_cfg, activation, PM_ACT_NONE, PM_ACTIVATIONS_OF_Y,
            "applied to the sum"),
    PM_FLOAT(add_cfg, slope, 0.01, 1e-6, 1, "leaky_relu's slope for negative values"),
    PM_FLOAT(add_cfg, scale, 1, -1e6, 1e6, "factor for all inputs except the first"),
    { 0 },
};

enum { INPUTS = PM_MAX_JOINED, Y = INPUTS };

PM_INLINE void fwd_loop(const struct pm_args *a, int act, int inputs, size_t begin, size_t end)
{
    const struct add_params *p = a->params;
    const float *x0 = a->buf[0], *x1 = a->buf[1];
    float *y = a->buf[Y], slope = p->slope, scale = p->scale;

    if (inputs == 2) {
        PM_SIMD
        for (size_t i = begin; i < end; i++)
            y[i] = pm_act(act, slope, x0[i] + scale * x1[i]);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        float others = x1[i];
        for (int k = 2; k < inputs; k++)
            others += ((const float *)a->buf[k])[i];
        y[i] = pm_act(act, slope, x0[i] + scale * others);
    }
}

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct add_params *p = a->params;

#define CALL(kind) fwd_loop(a, kind, p->inputs, begin, end)
    PM_ACT_SWITCH(p->act, CALL)
#undef CALL
}

PM_INLINE void bwd_loop(const struct pm_args *a, int act, size_t begin, size_t end)
{
    const struct add_params *p = a->params;
    const float *y = a->buf[0], *dy = a->buf[1];
    float *first = a->buf[2], *others = a->buf[3], slope = p->slope, scale = p->scale;

    if (others) {
        PM_SIMD
        for (size_t i = begin; i < end; i++) {
            float g = act ? dy[i] * pm_act_slope(act, slope, y[i]) : dy[i];
            if (first)
                first[i] = g;
            others[i] = scale * g;
        }
    } else {
        PM_SIMD
        for (size_t i = begin; i < end; i++)
            first[i] = act ? dy[i] * pm_act_slope(act, slope, y[i]) : dy[i];
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct add_params *p = a->params;

#define CALL(kind) bwd_loop(a, kind, begin, end)
    PM_ACT_SWITCH(p->act, CALL)
#undef CALL
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct add_params *p = params;

    (void)caps;
    return pick_four("add_fwd4", "add_fwd", count % 4 == 0, count, (uint32_t)p->act, level, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct add_params *p = params;

    (void)caps;
    return pick_four("add_bwd4", "add_bwd", count % 4 == 0, count, (uint32_t)p->act, level, out);
}

static double flops(const void *params, size_t count)
{
    const struct add_params *p = params;
    return (double)p->inputs * (double)count;
}

static const struct pm_kernel fwd = {
    .name = "add_fwd", .bufs = "r:a r:b r?:c r?:d r?:e r?:f r?:g r?:h w:y", .inplace = "y=a,y=b",
    .params_size = sizeof(struct add_params), .cpu = fwd_cpu, .pick = fwd_pick, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "add_bwd", .bufs = "r?:y r:dy w?:dfirst w?:dothers", .inplace = "dfirst=dy",
    .params_size = sizeof(struct add_params), .cpu = bwd_cpu, .pick = bwd_pick,
};

/* Whether the node only adds two inputs of different shapes. */
static bool spreads(const struct pm_node *n)
{
    const struct add_cfg *cfg = n->cfg;

    return n->inputs == 2 && cfg->activation == PM_ACT_NONE && cfg->scale == 1 &&
           !pm_shape_equal(n->in[0]->out_shape, n->in[1]->out_shape);
}

static int infer(struct pm_node *n)
{
    struct pm_shape x = n->in[0]->out_shape;
    char a[64], b[64];

    if (spreads(n))
        return pm_binary_infer(n);
    for (int i = 1; i < n->inputs; i++)
        if (!pm_shape_equal(x, n->in[i]->out_shape))
            return pm_fail(PM_ECONFIG,
                           "%s: the inputs of add with scale, activation or more than two "
                           "inputs must have one shape: %s has %s, %s has %s",
                           n->name, n->in[0]->name, pm_shape_text(x, a), n->in[i]->name,
                           pm_shape_text(n->in[i]->out_shape, b));
    return pm_infer_same(n);
}

static struct add_params params_of(const struct pm_node *n)
{
    const struct add_cfg *cfg = n->cfg;

    return (struct add_params){ .count = (int)pm_count(n->x), .inputs = n->inputs,
                                .act = cfg->activation, .slope = cfg->slope, .scale = cfg->scale };
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct add_params p = params_of(n);
    struct pm_tensor b[INPUTS + 1];

    if (spreads(n)) {
        pm_binary_forward(n, c, PM_BINARY_ADD);
        return;
    }
    for (int i = 0; i < INPUTS; i++)
        b[i] = i < n->inputs ? n->xs[i] : PM_NO_TENSOR;
    b[Y] = n->y;
    pm_call(c, &fwd, (size_t)p.count, &p, INPUTS + 1, b);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct add_params p = params_of(n);
    bool same = p.scale == 1, plain = p.act == PM_ACT_NONE;
    struct pm_tensor first = PM_NO_TENSOR, others = PM_NO_TENSOR; /* gradients to write */

    if (spreads(n)) {
        pm_binary_backward(n, c, PM_BINARY_ADD);
        return;
    }
    for (int i = 0; i < n->inputs; i++) {
        struct pm_tensor *to = i == 0 || same ? &first : &others;

        if (!pm_has(n->dxs[i]))
            continue;
        if (plain && to == &first)
            n->dxs[i] = n->dy;
        else if (pm_has(*to))
            n->dxs[i] = *to;
        else
            *to = n->dxs[i];
    }
    if (pm_has(first) || pm_has(others))
        pm_call(c, &bwd, (size_t)p.count, &p,
                PM_BUFS(plain ? PM_NO_TENSOR : n->y, n->dy, first, others));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct add_cfg *cfg = n->cfg;
    const char *x[INPUTS + 1] = { NULL }, *y;

    for (int i = 0; i < n->inputs; i++)
        x[i] = pm_binary_export(n, g, i);
    if (cfg->scale != 1) {
        y = n->inputs > 2 ? pm_export_op(g, "Sum", x + 1) : x[1];
        y = pm_export_op(g, "Mul", PM_VALUES(y, pm_export_number(g, cfg->scale)));
        y = pm_export_op(g, "Add", PM_VALUES(x[0], y));
    } else {
        y = pm_export_op(g, n->inputs > 2 ? "Sum" : "Add", x);
    }
    return pm_export_activation(g, y, cfg->activation, cfg->slope);
}

const struct pm_layer pm_layer_add = {
    .name = "add", .help = "sum of 2 to 8 inputs, then an activation", .opts = opts,
    .cfg_size = sizeof(struct add_cfg), .min_inputs = 2, .max_inputs = INPUTS, .infer = infer,
    .forward = forward, .backward = backward, .onnx = onnx,
};
