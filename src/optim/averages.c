/* averages: average -= (1 - decay) * (average - value), one call over the whole block. */
#include "optim/averages.h"

#include "averages.params.h"
#include "base/vector.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- the call --------------------------------------------------------------------------- */

PM_CLONES
static void update_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct averages_update_params *p = a->params;
    const struct pm_step *step = a->buf[1];
    const float *restrict w = a->buf[2];
    float *restrict average = a->buf[3];
    float rate = 1 - step->ema_decay;

    if (*(const uint32_t *)a->buf[0] == 0)
        return;
    for (size_t i = begin; i < end; i++)
        average[i] = p->copy ? w[i] : average[i] - rate * (average[i] - w[i]);
}

static bool update_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    (void)caps, (void)params;
    pm_pick_elements("averages_update", 64, count / 4, out); /* blocks are whole vectors of 4 */
    return level == 0;
}

bool pm_averages_evaluated(const struct pm_config *c)
{
    return c->optim.moving_average_decay > 0 && c->eval.averages != PM_AVERAGES_OFF;
}

static const struct pm_kernel row = {
    .name = "averages_update", .bufs = "r:flag r:step r:w u:average",
    .params_size = sizeof(struct averages_update_params), .cpu = update_cpu, .grain = 16384,
    .pick = update_pick,
};

static void append(struct pm_calls *c, size_t from, size_t to, bool copy, struct pm_tensor flag)
{
    struct averages_update_params p = { .count = (int)((to - from) / sizeof(float)), .copy = copy };

    if (from >= to)
        return;
    pm_calls_label(c, "moving averages");
    pm_call(c, &row, (size_t)p.count, &p,
            PM_BUFS(flag, pm_step_tensor(c), pm_calls_values_part(c, from, to),
                    pm_calls_averages_part(c, from, to)));
}

void pm_averages_append(struct pm_calls *c, size_t from, size_t to, struct pm_tensor flag)
{
    const size_t late = pm_calls_variables(c)->late_at;

    assert(pm_calls_variables(c)->average_bytes >= to);
    append(c, from, to < late ? to : late, false, flag);
    append(c, from > late ? from : late, to, true, flag);
}

float pm_averages_decay(const struct pm_config_optim *c, uint64_t step)
{
    float n = (float)step;

    if (!c->moving_average_ramp)
        return c->moving_average_decay;
    return fminf(c->moving_average_decay, (1 + n) / (10 + n));
}
