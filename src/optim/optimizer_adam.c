/* adam: alpha = lr * sqrt(1 - beta2^t) / (1 - beta1^t); m += (g - m) * (1 - beta1);
 * v += (g^2 - v) * (1 - beta2); w -= alpha * m / (sqrt(v) + epsilon).
 *
 * epsilon is the paper's "epsilon hat": it is outside the root and not corrected. Its default is
 * that of Slim's flag, which adadelta and rmsprop use too. The libraries' own defaults are 1e-8
 * (adam, adadelta) and 1e-10 (rmsprop). */
#include "optim/adam.h"

#include "base/vector.h"

static const struct pm_opt opts[] = {
    ADAM_BETA_OPTS,
    PM_FLOAT(adam_cfg, epsilon, 1.0, 0, 10,
             "added to the root of the mean of squares; Slim uses 1, the paper 1e-8"),
    { 0 },
};

PM_CLONES
static void adam_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_adam_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    float alpha = adam_alpha(o.step);
    float one1 = 1 - p->beta1, one2 = 1 - p->beta2, epsilon = p->epsilon;
    float *restrict w = o.w, *restrict m = o.slot[0], *restrict v = o.slot[1];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    OPTIMIZER_LOOP(o, begin, end, {
        float x = g[i] * s;

        m[i] += (x - m[i]) * one1;
        v[i] += (x * x - v[i]) * one2;
        w[i] -= alpha * m[i] / (sqrtf(v[i]) + epsilon);
    })
}

static const struct pm_kernel row = {
    .name = "optimizer_adam",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:m u:v",
    .params_size = sizeof(struct optimizer_adam_params), .cpu = adam_cpu, .grain = 4096,
};

const struct pm_optimizer pm_optimizer_adam = {
    .name = "adam", .help = "steps from bias-corrected means of gradients and of their squares",
    .opts = opts, .cfg_size = sizeof(struct adam_cfg), .slots = { "Adam", "Adam_1" },
    .kernel = &row, .params = adam_params, .betas = adam_betas,
};
