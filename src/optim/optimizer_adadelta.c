/* adadelta: a = rho * a + (1 - rho) * g^2; d = sqrt(u + epsilon) / sqrt(a + epsilon) * g;
 * u = rho * u + (1 - rho) * d^2; w -= lr * d. d uses the old u. */
#include "optim/optimizer_args.h"

#include "base/vector.h"

#include <math.h>

struct adadelta_cfg {
    float rho, epsilon;
};
static const struct pm_opt opts[] = {
    PM_FLOAT(adadelta_cfg, rho, 0.95, 0, 1, "decay of the means of squares"),
    PM_FLOAT(adadelta_cfg, epsilon, 1.0, 1e-20, 10,
             "added to the means of squares under the roots; Slim uses 1, TensorFlow 1e-8"),
    { 0 },
};

PM_CLONES
static void adadelta_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_adadelta_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    float lr = o.step->lr, rho = p->rho, keep = 1 - p->rho, epsilon = p->epsilon;
    float *restrict w = o.w, *restrict square = o.slot[0], *restrict change = o.slot[1];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    OPTIMIZER_LOOP(o, begin, end, {
        float x = g[i] * s, d;

        square[i] = rho * square[i] + keep * x * x;
        d = sqrtf(change[i] + epsilon) / sqrtf(square[i] + epsilon) * x;
        change[i] = rho * change[i] + keep * d * d;
        w[i] -= lr * d;
    })
}

static const struct pm_kernel row = {
    .name = "optimizer_adadelta",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:a u:u",
    .params_size = sizeof(struct optimizer_adadelta_params), .cpu = adadelta_cpu, .grain = 4096,
};

static void params(const void *cfg, int count, void *out)
{
    const struct adadelta_cfg *c = cfg;

    *(struct optimizer_adadelta_params *)out = (struct optimizer_adadelta_params){
        .count = count, .rho = c->rho, .epsilon = c->epsilon };
}

const struct pm_optimizer pm_optimizer_adadelta = {
    .name = "adadelta", .help = "step sizes adapt to the running means of squared gradients and "
                                "updates",
    .opts = opts, .cfg_size = sizeof(struct adadelta_cfg), .slots = { "Adadelta", "Adadelta_1" },
    .kernel = &row, .params = params,
};
