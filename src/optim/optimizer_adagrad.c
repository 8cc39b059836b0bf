/* adagrad: a += g^2; w -= lr * g / sqrt(a). a starts at `initial`, and there is no epsilon. */
#include "optim/optimizer_args.h"

#include "base/vector.h"

#include <math.h>

struct adagrad_cfg {
    float initial;
};
static const struct pm_opt opts[] = {
    PM_FLOAT(adagrad_cfg, initial, 0.1, 1e-10, 1e6, "initial value of the sum of squares"),
    { 0 },
};

PM_CLONES
static void adagrad_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    struct optimizer_args o = optimizer_args_of(a);
    float lr = o.step->lr;
    float *restrict w = o.w, *restrict sum = o.slot[0];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    OPTIMIZER_LOOP(o, begin, end, {
        float x = g[i] * s;

        sum[i] += x * x;
        w[i] -= lr * x / sqrtf(sum[i]);
    })
}

static const struct pm_kernel row = {
    .name = "optimizer_adagrad",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:a",
    .params_size = sizeof(struct optimizer_adagrad_params), .cpu = adagrad_cpu, .grain = 4096,
};

static void params(const void *cfg, int count, void *out)
{
    (void)cfg;
    *(struct optimizer_adagrad_params *)out = (struct optimizer_adagrad_params){ .count = count };
}

static void slot_init(const void *cfg, float init[PM_MAX_SLOTS])
{
    init[0] = ((const struct adagrad_cfg *)cfg)->initial;
}

const struct pm_optimizer pm_optimizer_adagrad = {
    .name = "adagrad", .help = "steps divided by the root of the sum of squared gradients",
    .opts = opts, .cfg_size = sizeof(struct adagrad_cfg), .slots = { "Adagrad" },
    .slot_init = slot_init, .kernel = &row, .params = params,
};
