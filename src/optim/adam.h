/* adam: what adam, adamw, nadam and lamb share. */
#ifndef PM_ADAM_H
#define PM_ADAM_H

#include <math.h>

#include "optim/optimizer_args.h"

struct adam_cfg {
    float beta1, beta2, epsilon;
};

/* The first rows of the options. epsilon's follows. */
#define ADAM_BETA_OPTS                                                                             \
    PM_FLOAT(adam_cfg, beta1, 0.9, 0, 0.9999, "decay of the mean of gradients"),                   \
    PM_FLOAT(adam_cfg, beta2, 0.999, 0, 0.999999, "decay of the mean of squared gradients")

/* pm_optimizer.params of adam and nadam; adamw calls it, too. */
static inline void adam_params(const void *cfg, int count, void *out)
{
    const struct adam_cfg *c = cfg;

    *(struct optimizer_adam_params *)out = (struct optimizer_adam_params){
        .count = count, .beta1 = c->beta1, .beta2 = c->beta2, .epsilon = c->epsilon };
}

/* Returns the length of a step of adam, adamw and nadam, corrected for means that start at 0. */
static inline float adam_alpha(const struct pm_step *s)
{
    return s->lr * sqrtf(1 - s->beta2_power) / (1 - s->beta1_power);
}

/* pm_optimizer.betas. */
static inline void adam_betas(const void *cfg, double *beta1, double *beta2)
{
    const struct adam_cfg *c = cfg;

    *beta1 = c->beta1;
    *beta2 = c->beta2;
}

#endif
