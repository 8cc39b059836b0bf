/* nadam: adam with Nesterov's momentum, as TensorFlow's contrib has it (Dozat 2016, simplified):
 * alpha = lr * sqrt(1 - beta2^t) / (1 - beta1^t); m += (g - m) * (1 - beta1);
 * v += (g^2 - v) * (1 - beta2); w -= alpha * (beta1 * m + (1 - beta1) * g) / (sqrt(v) + epsilon).
 *
 * The step looks ahead: it takes the mean as it would be if the next gradient were g again. The
 * paper's and PyTorch's rules also correct the two terms by powers of beta1 of different steps;
 * TensorFlow's does not. Its slots have the names of adam's, so a training can change between the
 * two. */
#include "optim/adam.h"

#include "base/vector.h"

static const struct pm_opt opts[] = {
    ADAM_BETA_OPTS,
    PM_FLOAT(adam_cfg, epsilon, 1e-8, 0, 10, "added to the root of the mean of squares"),
    { 0 },
};

PM_CLONES
static void nadam_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_adam_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    float alpha = adam_alpha(o.step);
    float beta1 = p->beta1, one1 = 1 - beta1, one2 = 1 - p->beta2, epsilon = p->epsilon;
    float *restrict w = o.w, *restrict m = o.slot[0], *restrict v = o.slot[1];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    OPTIMIZER_LOOP(o, begin, end, {
        float x = g[i] * s;

        m[i] += (x - m[i]) * one1;
        v[i] += (x * x - v[i]) * one2;
        w[i] -= alpha * (beta1 * m[i] + one1 * x) / (sqrtf(v[i]) + epsilon);
    })
}

static const struct pm_kernel row = {
    .name = "optimizer_nadam",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:m u:v",
    .params_size = sizeof(struct optimizer_adam_params), .cpu = nadam_cpu, .grain = 4096,
};

const struct pm_optimizer pm_optimizer_nadam = {
    .name = "nadam", .help = "adam with Nesterov's momentum",
    .opts = opts, .cfg_size = sizeof(struct adam_cfg), .slots = { "Adam", "Adam_1" },
    .kernel = &row, .params = adam_params, .betas = adam_betas,
};
