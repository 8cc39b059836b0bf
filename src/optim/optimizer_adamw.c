/* adamw: adam with the weight decay beside the step instead of in the gradient: w -= alpha * m /
 * (sqrt(v) + epsilon) + lr * weight_decay * w. alpha, m and v are those of adam. optim.weight_decay
 * applies to the variables that the net regularises and is not part of the loss. */
#include "optim/adam.h"

#include "base/vector.h"

static const struct pm_opt opts[] = {
    ADAM_BETA_OPTS,
    PM_FLOAT(adam_cfg, epsilon, 1e-8, 0, 10, "added to the root of the mean of squares"),
    { 0 },
};

PM_CLONES
static void adamw_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_adam_params *p = a->params;
    struct optimizer_args o = optimizer_args_of(a);
    const float *decay = a->buf[9];
    float lr = o.step->lr, one1 = 1 - p->beta1, one2 = 1 - p->beta2, epsilon = p->epsilon;
    float alpha = adam_alpha(o.step);
    float *restrict w = o.w, *restrict m = o.slot[0], *restrict v = o.slot[1];
    const float *restrict g = o.g;

    if (!o.finite)
        return;
    for (size_t at = begin; at < end; at += 64) {
        size_t last = at + 64 < end ? at + 64 : end;
        float s = optimizer_scale(&o, at), shrink = lr * decay[2 * o.owner[at / 64]];

        for (size_t i = at; i < last; i++) {
            float x = g[i] * s;

            m[i] += (x - m[i]) * one1;
            v[i] += (x * x - v[i]) * one2;
            w[i] -= alpha * m[i] / (sqrtf(v[i]) + epsilon) + shrink * w[i];
        }
    }
}

static const struct pm_kernel row = {
    .name = "optimizer_adamw",
    .bufs = "r:g r:owner r:scale r:result r:flag r:step u:w u:m u:v r:decay",
    .params_size = sizeof(struct optimizer_adam_params), .cpu = adamw_cpu, .grain = 4096,
};

static void append(struct pm_calls *c, const void *cfg, const struct pm_update_parts *u)
{
    struct optimizer_adam_params p;

    adam_params(cfg, u->floats, &p);
    pm_call(c, &row, (size_t)u->floats, &p,
            PM_BUFS(u->g, u->owner, u->scale, u->result, u->flag, u->step, u->w, u->slot[0],
                    u->slot[1], u->decay));
}

const struct pm_optimizer pm_optimizer_adamw = {
    .name = "adamw", .help = "adam with decoupled weight decay",
    .opts = opts, .cfg_size = sizeof(struct adam_cfg), .slots = { "Adam", "Adam_1" },
    .append = append, .decoupled = true, .betas = adam_betas,
};
