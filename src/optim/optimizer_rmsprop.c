/* rmsprop: ms += (g^2 - ms) * (1 - decay); mom = mu * mom + lr * g / sqrt(ms + epsilon); w -= mom.
 * ms starts at 1, epsilon is inside the root, the learning rate inside mom. Centered: mg += (g -
 * mg) * (1 - decay), and the root is of ms - mg^2 + epsilon. */
#include "optim/optimizer_args.h"

#include "base/vector.h"

#include <math.h>

struct rmsprop_cfg {
    float decay, momentum, epsilon;
    bool centered;
};
static const struct pm_opt opts[] = {
    PM_FLOAT(rmsprop_cfg, decay, 0.9, 0, 1, "decay of the mean of squared gradients"),
    PM_FLOAT(rmsprop_cfg, momentum, 0.9, 0, 1, "decay of the sum of updates"),
    PM_FLOAT(rmsprop_cfg, epsilon, 1.0, 0, 10,
             "added to the mean of squares under the root; Slim uses 1, TensorFlow 1e-10"),
    PM_BOOL(rmsprop_cfg, centered, false,
            "divide by the root of the gradients' variance instead of their mean square"),
    { 0 },
};

/* Updates the row's slots and weights. The slot mg exists only if centered. */
PM_INLINE void steps(const struct pm_args *a, size_t begin, size_t end, bool centered)
{
    const struct optimizer_rmsprop_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    float lr = o.step->lr, keep = 1 - p->decay, mu = p->momentum, epsilon = p->epsilon;
    float *restrict w = o.w, *restrict ms = o.slot[0];
    float *restrict mg = centered ? o.slot[1] : NULL, *restrict mom = o.slot[centered ? 2 : 1];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    OPTIMIZER_LOOP(o, begin, end, {
        float x = g[i] * s, variance;

        variance = ms[i] += (x * x - ms[i]) * keep;
        if (centered) {
            mg[i] += (x - mg[i]) * keep;
            variance -= mg[i] * mg[i];
        }
        mom[i] = mu * mom[i] + lr * x / sqrtf(variance + epsilon);
        w[i] -= mom[i];
    })
}

PM_CLONES
static void rmsprop_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    steps(a, begin, end, false);
}

PM_CLONES
static void centered_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    steps(a, begin, end, true);
}

static const struct pm_kernel row = {
    .name = "optimizer_rmsprop",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:ms u:mom",
    .params_size = sizeof(struct optimizer_rmsprop_params), .cpu = rmsprop_cpu, .grain = 4096,
};
static const struct pm_kernel centered_row = {
    .name = "optimizer_rmsprop_centered",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:ms u:mg u:mom",
    .params_size = sizeof(struct optimizer_rmsprop_params), .cpu = centered_cpu, .grain = 4096,
};

static void append(struct pm_calls *c, const void *cfg, const struct pm_update_parts *u)
{
    const struct rmsprop_cfg *o = cfg;
    struct optimizer_rmsprop_params p = { .count = u->floats, .decay = o->decay,
                                          .momentum = o->momentum, .epsilon = o->epsilon };
    struct pm_tensor bufs[] = { u->g,    u->owner, u->scale,   u->result,  u->flag,
                                u->step, u->w,     u->slot[0], u->slot[1], u->slot[2] };

    pm_call(c, o->centered ? &centered_row : &row, (size_t)p.count, &p, o->centered ? 10 : 9, bufs);
}

/* Returns the slots in the order in which TensorFlow creates them. */
static const char *const *slots_of(const void *cfg)
{
    static const char *const plain[] = { "RMSProp", "RMSProp_1", NULL };
    static const char *const centered[] = { "RMSProp", "RMSProp_1", "RMSProp_2", NULL };

    return ((const struct rmsprop_cfg *)cfg)->centered ? centered : plain;
}

static void slot_init(const void *cfg, float init[PM_MAX_SLOTS])
{
    (void)cfg;
    init[0] = 1;
}

const struct pm_optimizer pm_optimizer_rmsprop = {
    .name = "rmsprop", .help = "steps divided by the root of the mean squared gradient",
    .opts = opts, .cfg_size = sizeof(struct rmsprop_cfg),
    .other = "centered=true", .slots_of = slots_of, .slot_init = slot_init, .append = append,
};
