/* sgd: w -= lr * g. */
#include "optim/optimizer_args.h"

#include "base/vector.h"

struct sgd_cfg {
    int unused;
};
static const struct pm_opt opts[] = { { 0 } };

PM_CLONES
static void sgd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    struct optimizer_args o = optimizer_args_of(a);
    float lr = o.step->lr, *restrict w = o.w;
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    OPTIMIZER_LOOP(o, begin, end, { w[i] -= lr * (g[i] * s); })
}

static const struct pm_kernel row = {
    .name = "optimizer_sgd", .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w",
    .params_size = sizeof(struct optimizer_sgd_params), .cpu = sgd_cpu, .grain = 4096,
};

static void params(const void *cfg, int count, void *out)
{
    (void)cfg;
    *(struct optimizer_sgd_params *)out = (struct optimizer_sgd_params){ .count = count };
}

const struct pm_optimizer pm_optimizer_sgd = {
    .name = "sgd", .help = "plain gradient descent", .opts = opts,
    .cfg_size = sizeof(struct sgd_cfg), .kernel = &row, .params = params,
};
