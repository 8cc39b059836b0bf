/* rmsprop: ms += (g^2 - ms) * (1 - decay); mom = mu * mom + lr * g / sqrt(ms + epsilon); w -= mom.
 * ms starts at 1, epsilon is inside the root, the rate inside mom. */
#include "train/optimizer_args.h"

#include "base/vector.h"

#include <math.h>

struct rmsprop_cfg {
    float decay, momentum, epsilon;
};
static const struct pm_opt opts[] = {
    PM_FLOAT(rmsprop_cfg, decay, 0.9, 0, 1, "decay of the mean of squared gradients"),
    PM_FLOAT(rmsprop_cfg, momentum, 0.9, 0, 1, "decay of the sum of updates"),
    PM_FLOAT(rmsprop_cfg, epsilon, 1.0, 0, 10, "added to the mean of squares under the root"),
    { 0 },
};

PM_CLONES
static void rmsprop_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_rmsprop_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    float lr = o.step->lr, keep = 1 - p->decay, mu = p->momentum, epsilon = p->epsilon;
    float *restrict w = o.w, *restrict ms = o.slot[0], *restrict mom = o.slot[1];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    OPTIMIZER_LOOP(o, begin, end, {
        float x = g[i] * s;

        ms[i] += (x * x - ms[i]) * keep;
        mom[i] = mu * mom[i] + lr * x / sqrtf(ms[i] + epsilon);
        w[i] -= mom[i];
    })
}

static const struct pm_kernel row = {
    .name = "optimizer_rmsprop",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:ms u:mom",
    .params_size = sizeof(struct optimizer_rmsprop_params), .cpu = rmsprop_cpu, .grain = 4096,
};

static void params(const void *cfg, int count, void *out)
{
    const struct rmsprop_cfg *c = cfg;

    *(struct optimizer_rmsprop_params *)out = (struct optimizer_rmsprop_params){
        .count = count, .decay = c->decay, .momentum = c->momentum, .epsilon = c->epsilon };
}

static void slot_init(const void *cfg, float init[PM_MAX_SLOTS])
{
    (void)cfg;
    init[0] = 1;
}

const struct pm_optimizer pm_optimizer_rmsprop = {
    .name = "rmsprop", .help = "steps divided by the root of the mean squared gradient",
    .opts = opts, .cfg_size = sizeof(struct rmsprop_cfg), .slots = { "RMSProp", "RMSProp_1" },
    .slot_init = slot_init, .kernel = &row, .params = params,
};
