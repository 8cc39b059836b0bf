/* ftrl (follow the regularised leader): with n' = n + g^2 and f(n) = n^-power,
 *   z += g - (f(n') - f(n)) / lr * w; n = n';
 *   w = 0 if |z| <= l1, else (sign(z) * l1 - z) / (f(n') / lr + 2 * l2).
 * power is negative: -0.5 makes f the root. z starts at 0, so the first step mostly forgets the
 * initial weights. A learning rate of 0 would divide by zero; then nothing changes. */
#include "optim/optimizer_args.h"

#include "base/vector.h"

#include <math.h>

struct ftrl_cfg {
    float power, initial, l1, l2;
};
static const struct pm_opt opts[] = {
    PM_FLOAT(ftrl_cfg, power, -0.5, -1, 0, "power of the sum of squares; -0.5 is the inverse root"),
    PM_FLOAT(ftrl_cfg, initial, 0.1, 1e-10, 1e6, "initial value of the sum of squares"),
    PM_FLOAT(ftrl_cfg, l1, 0, 0, 1e6, "L1 regularisation, which makes weights exactly zero"),
    PM_FLOAT(ftrl_cfg, l2, 0, 0, 1e6, "L2 regularisation"),
    { 0 },
};

static inline float root(float n, float power)
{
    return power == -0.5f ? sqrtf(n) : powf(n, -power);
}

static void ftrl_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_ftrl_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    float lr = o.step->lr;
    float *restrict w = o.w, *restrict n = o.slot[0], *restrict z = o.slot[1];
    const float *restrict g = o.g;

    if (!o.finite || lr == 0)
        return;
    OPTIMIZER_LOOP(o, begin, end, {
        float x = g[i] * s;
        float sum = n[i] + x * x, now = root(sum, p->power) / lr;
        float before = root(n[i], p->power) / lr;

        z[i] += x - (now - before) * w[i];
        n[i] = sum;
        w[i] = fabsf(z[i]) <= p->l1 ? 0
                                    : (copysignf(p->l1, z[i]) - z[i]) / (now + 2 * p->l2);
    })
}

static const struct pm_kernel row = {
    .name = "optimizer_ftrl",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:n u:z",
    .params_size = sizeof(struct optimizer_ftrl_params), .cpu = ftrl_cpu, .grain = 4096,
};

static void params(const void *cfg, int count, void *out)
{
    const struct ftrl_cfg *c = cfg;

    *(struct optimizer_ftrl_params *)out = (struct optimizer_ftrl_params){
        .count = count, .power = c->power, .l1 = c->l1, .l2 = c->l2 };
}

static void slot_init(const void *cfg, float init[PM_MAX_SLOTS])
{
    init[0] = ((const struct ftrl_cfg *)cfg)->initial;
}

const struct pm_optimizer pm_optimizer_ftrl = {
    .name = "ftrl", .help = "follow the regularised leader",
    .opts = opts, .cfg_size = sizeof(struct ftrl_cfg), .slots = { "Ftrl", "Ftrl_1" },
    .slot_init = slot_init, .kernel = &row, .params = params,
};
