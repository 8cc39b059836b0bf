/* momentum: m = mu * m + g; w -= lr * m, or with nesterov w -= lr * (g + mu * m). The learning rate
 * is outside the accumulator. */
#include "optim/optimizer_args.h"

#include "base/vector.h"

struct momentum_cfg {
    float momentum;
    bool nesterov;
};
static const struct pm_opt opts[] = {
    PM_FLOAT(momentum_cfg, momentum, 0.9, 0, 1, "decay of the sum of gradients"),
    PM_BOOL(momentum_cfg, nesterov, false, "use Nesterov momentum"),
    { 0 },
};

PM_CLONES
static void momentum_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_momentum_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    float lr = o.step->lr, mu = p->momentum, *restrict w = o.w, *restrict m = o.slot[0];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    if (p->nesterov)
        OPTIMIZER_LOOP(o, begin, end, {
            m[i] = mu * m[i] + g[i] * s;
            w[i] -= lr * (g[i] * s + mu * m[i]);
        })
    else
        OPTIMIZER_LOOP(o, begin, end, {
            m[i] = mu * m[i] + g[i] * s;
            w[i] -= lr * m[i];
        })
}

static const struct pm_kernel row = {
    .name = "optimizer_momentum",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:m",
    .params_size = sizeof(struct optimizer_momentum_params), .cpu = momentum_cpu, .grain = 4096,
};

static void params(const void *cfg, int count, void *out)
{
    const struct momentum_cfg *c = cfg;

    *(struct optimizer_momentum_params *)out = (struct optimizer_momentum_params){
        .count = count, .momentum = c->momentum, .nesterov = c->nesterov };
}

const struct pm_optimizer pm_optimizer_momentum = {
    .name = "momentum", .help = "gradient descent with momentum", .opts = opts,
    .cfg_size = sizeof(struct momentum_cfg), .slots = { "Momentum" }, .kernel = &row,
    .params = params,
};
