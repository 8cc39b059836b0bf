/* schedule: fixed, exponential, polynomial, cosine and piecewise constant learning rates, with a
 * warm-up. The order of the float32 operations is TensorFlow's. */
#include "optim/schedule.h"

#include <math.h>

#include "base/angles.h"

static int check_pieces(const struct pm_config_schedule *c)
{
    if (c->boundaries.count == 0 || c->boundaries.count != c->rates.count)
        return pm_fail(PM_ECONFIG,
                       "schedule: policy \"piecewise\" needs schedule.boundaries and as "
                       "many schedule.rates: %d and %d are given",
                       c->boundaries.count, c->rates.count);
    for (int i = 1; i < c->boundaries.count; i++)
        if (c->boundaries.v[i] <= c->boundaries.v[i - 1])
            return pm_fail(PM_ECONFIG, "schedule.boundaries: %d after %d; they must grow",
                           c->boundaries.v[i], c->boundaries.v[i - 1]);
    return PM_OK;
}

/* Refuses numbers that this policy would ignore. */
static int check_policy(const struct pm_config_schedule *c)
{
    if (c->hold_steps > 0 && c->policy != PM_POLICY_COSINE)
        return pm_fail(PM_ECONFIG, "schedule.hold_steps: %lld belongs to schedule.policy "
                       "\"cosine\", which this schedule does not have: remove it or change the "
                       "policy", (long long)c->hold_steps);
    if (c->min_lr > 0 && c->policy != PM_POLICY_EXPONENTIAL)
        return pm_fail(PM_ECONFIG, "schedule.min_lr: %g belongs to schedule.policy "
                       "\"exponential\", which this schedule does not have: remove it, or set "
                       "schedule.end_lr for polynomial and cosine", c->min_lr);
    return PM_OK;
}

/* Returns the whole steps of the warm-up. */
static int64_t ramp(const struct pm_schedule *s)
{
    return (int64_t)ceil(s->warmup_steps);
}

/* Returns the step from which the policy counts. */
static int64_t start(const struct pm_schedule *s)
{
    return (s->c->warmup_shift || s->c->hold_steps > 0 ? ramp(s) : 0) + s->c->hold_steps;
}

int pm_schedule_make(const struct pm_config_schedule *c, size_t examples, int batch, int clones,
                     int64_t total_steps, struct pm_schedule *out)
{
    double counted = c->epoch_count == PM_EPOCH_PER_CLONE ? (double)batch / clones : batch;
    double epoch = (double)examples / counted;
    const bool whole = c->policy == PM_POLICY_COSINE ||
                       (c->policy == PM_POLICY_POLYNOMIAL && c->num_epochs_per_decay == 0);

    *out = (struct pm_schedule){ .c = c, .decay_steps = c->decay_steps,
                                 .warmup_steps = (double)c->warmup_steps };
    if (check_policy(c) < 0)
        return PM_ECONFIG;
    if (c->warmup_steps == 0)
        out->warmup_steps = epoch * c->warmup_epochs;
    if (c->policy == PM_POLICY_PIECEWISE)
        return check_pieces(c);
    if (c->policy == PM_POLICY_FIXED)
        return PM_OK;
    if (out->decay_steps == 0)
        out->decay_steps = whole ? total_steps - start(out)
                                 : (int64_t)(epoch * c->num_epochs_per_decay);
    if (out->decay_steps < 1)
        return whole ? pm_fail(PM_ECONFIG,
                               "schedule.policy: \"%s\" has no length: set run.steps above "
                               "the steps of warm-up and hold_steps, or schedule.decay_steps to 1 "
                               "or more",
                               c->policy == PM_POLICY_COSINE ? "cosine" : "polynomial")
                     : pm_fail(PM_ECONFIG,
                               "schedule.num_epochs_per_decay: %g, times %zu examples over "
                               "%g a step, is less than one step: set it higher, or "
                               "schedule.decay_steps to 1 or more, or another schedule.policy",
                               c->num_epochs_per_decay, examples, counted);
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
    float done = fminf(t, length) / length;

    return end + (base - end) * (0.5f * (1 + cosf((float)PM_PI * done)));
}

static float piecewise(const struct pm_schedule *s, int64_t step)
{
    const struct pm_config_schedule *c = s->c;
    float rate = (float)c->base_lr;

    for (int i = 0; i < c->boundaries.count && step >= c->boundaries.v[i]; i++)
        rate = c->rates.v[i];
    return rate;
}

static float policy(const struct pm_schedule *s, int64_t step)
{
    switch ((enum pm_policy)s->c->policy) {
    case PM_POLICY_EXPONENTIAL:
        return exponential(s, (float)step);
    case PM_POLICY_POLYNOMIAL:
        return polynomial(s, (float)step);
    case PM_POLICY_COSINE:
        return cosine(s, (float)step);
    case PM_POLICY_PIECEWISE:
        return piecewise(s, step);
    case PM_POLICY_FIXED:
        break;
    }
    return (float)s->c->base_lr;
}

float pm_schedule_rate(const struct pm_schedule *s, int64_t step)
{
    const struct pm_config_schedule *c = s->c;
    bool warming = (double)step < s->warmup_steps;
    float from = (float)c->warmup_lr, base = (float)c->base_lr, lr;
    const int64_t first = start(s);

    lr = policy(s, step > first ? step - first : 0);
    if (warming && c->warmup_shape == PM_WARMUP_CONSTANT) {
        lr = from;
    } else if (warming) {
        float up = from + (base - from) * (float)step / (float)s->warmup_steps;

        lr = c->warmup_shift ? up : fminf(lr, up);
    }
    return fmaxf(lr, (float)c->min_lr);
}
