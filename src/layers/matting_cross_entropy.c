/* matting_cross_entropy: the loss of two classes, background and foreground. A label is an alpha
 * value in 0..1, the degree of foreground. The target of logits (z0, z1) is (1 - label, label).
 *
 *     l = log sum exp(z) - (1 - label) z0 - label z1 = log(1 + exp(d)) - label d,  d = z1 - z0
 *     loss = weight * share * sum of w l / count of rows with w != 0
 *
 * ignore_label, weights, share and mining work as in softmax_cross_entropy. A label that is neither
 * in 0..1 nor ignored gives NaN, as there. Backward: (label - q, q - label) w factor, where q is
 * the foreground's probability. */
#include "layers/cross_entropy.h"
#include "layers/infer.h"
#include "layers/mining.h"
#include "layers/vmath.h"
#include "matting.params.h"

struct matting_cfg {
    float weight, ignore_label, top_k_percent;
    int mining_steps;
};

static const struct pm_opt opts[] = {
    PM_FLOAT(matting_cfg, weight, 1, 0, 1e6, "weight of the loss"),
    PM_FLOAT(matting_cfg, ignore_label, NAN, -1e6, 1e6, "label of ignored rows; null: none"),
    PM_MINING_OPTIONS(matting_cfg),
    { 0 },
};

/* ---- rows ------------------------------------------------------------------------------ */

static void rows_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct matting_params *p = a->params;
    const float *z = a->buf[0], *labels = a->buf[1], *weights = a->buf[2];
    float *prob = a->buf[3], *losses = a->buf[4], *used = a->buf[5];

    for (size_t i = begin; i < end; i++) {
        const float label = labels[i], d = z[2 * i + 1] - z[2 * i];
        const float e = pm_expf(d < 0 ? d : -d), sum = 1 + e;
        const float w = p->ignores && label == p->ignore ? 0 : weights ? weights[i] : 1;
        const bool valid = label >= 0 && label <= 1;

        prob[i] = (d < 0 ? e : 1) / sum;
        losses[i] = w == 0 ? 0 : !valid ? NAN : w * (logf(sum) + (d < 0 ? 0 : d) - label * d);
        used[i] = w;
    }
}

static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const float *prob = a->buf[0], *labels = a->buf[1], *used = a->buf[2], *factor = a->buf[3];
    const struct pm_step *step = a->buf[4];
    const float scale = *factor * step->loss_scale;
    float *dz = a->buf[5];

    for (size_t i = begin; i < end; i++) {
        const float g =
            used[i] == 0 && scale == scale ? 0 : (prob[i] - labels[i]) * (used[i] * scale);

        dz[2 * i] = -g;
        dz[2 * i + 1] = g;
    }
}

static double flops(const void *params, size_t count)
{
    (void)params;
    return 24.0 * (double)count;
}

static const struct pm_kernel rows = {
    .name = "matting_rows", .bufs = "r:logits r:labels r?:weights w:prob w:losses w:used",
    .params_size = sizeof(struct matting_params), .cpu = rows_cpu, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "matting_bwd", .bufs = "r:prob r:labels r:used r:factor r:step w:dz",
    .params_size = sizeof(struct matting_params), .cpu = bwd_cpu,
};

/* ---- the layer ------------------------------------------------------------------------- */

static int infer(struct pm_node *n)
{
    static const char *const names[] = { "logits", "labels", "weights" };
    const struct pm_shape logits = n->in[0]->out_shape;
    const size_t count = pm_shape_count(logits) / 2;
    char a[64], b[64];

    if (logits.rank < 2 || logits.dim[logits.rank - 1] != 2)
        return pm_fail(PM_ECONFIG, "%s: logits have shape %s, but there must be two classes, "
                       "background and foreground", n->name, pm_shape_text(logits, a));
    for (int i = 1; i < n->inputs; i++)
        if (pm_shape_count(n->in[i]->out_shape) != count)
            return pm_fail(PM_ECONFIG, "%s: %s have shape %s, but the logits %s have %zu rows",
                           n->name, names[i], pm_shape_text(n->in[i]->out_shape, a),
                           pm_shape_text(logits, b), count);
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, n->inputs - 1);
}

static struct matting_params params_of(const struct pm_node *n)
{
    const float ignore = ((const struct matting_cfg *)n->cfg)->ignore_label;

    return (struct matting_params){
        .rows = (int)(pm_count(n->x) / 2), .ignores = !isnan(ignore),
        .ignore = isnan(ignore) ? 0 : ignore,
    };
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct matting_cfg *cfg = n->cfg;
    const struct matting_params p = params_of(n);
    const struct pm_shape shape = PM_SHAPE1(p.rows);
    const bool mines = cfg->top_k_percent < 1;
    struct pm_tensor prob = pm_save(c, n, 0, shape, PM_F32);
    struct pm_tensor factor = pm_save(c, n, 1, (struct pm_shape){ 0 }, PM_F32);
    struct pm_tensor losses = pm_temp(c, shape, PM_F32);
    struct pm_tensor used = mines ? pm_temp(c, shape, PM_F32) : pm_save(c, n, 2, shape, PM_F32);

    pm_call(c, &rows, (size_t)p.rows, &p,
            PM_BUFS(n->x, n->xs[1], n->inputs > 2 ? n->xs[2] : PM_NO_TENSOR, prob, losses, used));
    if (mines) {
        struct pm_tensor mined = pm_save(c, n, 2, shape, PM_F32);
        struct pm_tensor mined_losses = pm_temp(c, shape, PM_F32);

        pm_mine(c, (struct pm_mining){ cfg->top_k_percent, cfg->mining_steps }, losses, used, mined,
                mined_losses);
        losses = mined_losses, used = mined;
    }
    pm_rows_mean(c, losses, used, cfg->weight * pm_loss_share(c), pm_loss_scalar(c, n->name),
                 factor);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct matting_params p = params_of(n);

    if (pm_has(n->dx))
        pm_call(c, &bwd, (size_t)p.rows, &p,
                PM_BUFS(n->saved[0], n->xs[1], n->saved[2], n->saved[1], pm_step_tensor(c), n->dx));
}

const struct pm_layer pm_layer_matting_cross_entropy = {
    .name = "matting_cross_entropy",
    .help = "loss of two classes: inputs logits [.., 2], labels (alpha values, float32, 0..1) and, "
            "optionally, weights",
    .opts = opts,
    .cfg_size = sizeof(struct matting_cfg),
    .min_inputs = 2,
    .max_inputs = 3,
    .loss = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
