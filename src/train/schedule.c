/* schedule: fixed, exponential, polynomial and cosine rates, with a linear warm-up. */
#include "train/schedule.h"

#include <math.h>

int pm_schedule_make(const struct pm_config_schedule *c, size_t examples, int batch, int clones,
                     int64_t total_steps, struct pm_schedule *out)
{
    double epoch = (double)examples / batch;

    if (c->epoch_count == PM_EPOCH_PER_CLONE)
        epoch *= clones;
    *out = (struct pm_schedule){ .c = c, .decay_steps = c->decay_steps,
                                 .warmup_steps = c->warmup_steps };
    if (out->warmup_steps == 0)
        out->warmup_steps = (int64_t)(epoch * c->warmup_epochs);
    if (c->policy == PM_POLICY_FIXED)
        return PM_OK;
    if (out->decay_steps == 0)
        out->decay_steps = c->policy == PM_POLICY_COSINE
                               ? total_steps
                               : (int64_t)(epoch * c->num_epochs_per_decay);
    if (out->decay_steps < 1)
        return pm_fail(PM_ECONFIG, "schedule: this policy needs its length: set "
                       "schedule.decay_steps, or for cosine run.steps, or for the others "
                       "schedule.num_epochs_per_decay so that it is at least one step");
    return PM_OK;
}

static float exponential(const struct pm_schedule *s, float t)
{
    float x = t / (float)s->decay_steps;

    return (float)s->c->base_lr * powf((float)s->c->decay_factor, s->c->staircase ? floorf(x) : x);
}

static float polynomial(const struct pm_schedule *s, float t)
{
    float length = (float)s->decay_steps, base = (float)s->c->base_lr, end = (float)s->c->end_lr;

    if (s->c->cycle)
        length *= t > 0 ? ceilf(t / length) : 1;
    else
        t = fminf(t, length);
    return (base - end) * powf(1 - t / length, (float)s->c->power) + end;
}

static float cosine(const struct pm_schedule *s, float t)
{
    float length = (float)s->decay_steps, base = (float)s->c->base_lr, end = (float)s->c->end_lr;

    return end + (base - end) * 0.5f *
                     (1 + cosf(3.14159265f * fminf(t, length) / length));
}

float pm_schedule_rate(const struct pm_schedule *s, int64_t step)
{
    float t = (float)step, lr = (float)s->c->base_lr, from = (float)s->c->warmup_lr;

    if (s->c->policy == PM_POLICY_EXPONENTIAL)
        lr = exponential(s, t);
    else if (s->c->policy == PM_POLICY_POLYNOMIAL)
        lr = polynomial(s, t);
    else if (s->c->policy == PM_POLICY_COSINE)
        lr = cosine(s, t);
    if (step < s->warmup_steps)
        lr = fminf(lr, from + ((float)s->c->base_lr - from) * (t / (float)s->warmup_steps));
    return lr;
}
