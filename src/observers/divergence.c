/* divergence: divergence.h has the contract. */
#include "observers/divergence.h"

#include <pumice/options.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

enum { LEAST_STEPS = 100, TIMES_THE_START = 1000 };

static const char advice[] =
    "lower schedule.base_lr (pumice lr-find proposes a rate), or look for wrong labels";

void pm_divergence_start(struct pm_divergence *d, double uniform, double warmup_steps)
{
    *d = (struct pm_divergence){ .uniform = uniform, .warmup_steps = warmup_steps };
}

/* Returns the step after which a run of so many steps is compared; 0: never. */
static uint64_t due_of(const struct pm_divergence *d, int64_t steps)
{
    const double due = fmax(fmax((double)steps / 10, LEAST_STEPS), 2 * d->warmup_steps);

    return steps > 0 && due < (double)steps ? (uint64_t)due : 0;
}

static double main_part(const struct pm_step_result *r)
{
    for (int i = 0; i < r->part_count; i++)
        if (strcmp(r->parts[i].name, "loss") == 0)
            return r->parts[i].value;
    return NAN;
}

static void check_start(struct pm_divergence *d, uint64_t step, const struct pm_step_result *r)
{
    if (step == 1)
        d->now.first = r->loss;
    if (d->now.first > 0 && r->loss > TIMES_THE_START * fmax(d->now.first, 1)) {
        if (!d->quiet)
            PM_WARN("train", "step %llu: the loss is %.4g, at step 1 it was %.4g: the training "
                    "diverges; %s", (unsigned long long)step, r->loss, d->now.first, advice);
        d->now.warned = true;
    }
}

static void check_uniform(struct pm_divergence *d, uint64_t step, uint64_t due, double loss)
{
    if (step <= due / 2) {
        d->now.sum = 0, d->now.count = 0;
        return;
    }
    d->now.sum += loss;
    d->now.count++;
    if (step != due || d->now.sum < d->uniform * (double)d->now.count)
        return;
    d->now.warned = true;
    if (d->quiet)
        return;
    PM_WARN(
        "train",
        "step %llu: the mean loss of the last %lld steps is %.4g, not below %.4g, that of "
        "equal probabilities: the net has learned nothing so far; %s. With few pictures start from "
        "pretrained weights (init.checkpoint)",
        (unsigned long long)step, (long long)d->now.count, d->now.sum / (double)d->now.count,
        d->uniform, advice);
}

void pm_divergence_step(struct pm_divergence *d, uint64_t step, int64_t steps, double factor,
                        const struct pm_step_result *r)
{
    const uint64_t due = due_of(d, steps);
    const double loss = main_part(r) / factor;

    if (!d->now.warned)
        check_start(d, step, r);
    if (!d->now.warned && step <= due && isfinite(loss) && d->uniform > 0)
        check_uniform(d, step, due, loss);
}

void pm_divergence_keep(struct pm_divergence *d)
{
    d->snapshot = d->now;
}

void pm_divergence_restore(struct pm_divergence *d)
{
    d->now = d->snapshot;
}

void pm_divergence_print(const struct pm_divergence *d, struct pm_str *json)
{
    cJSON *object = cJSON_CreateObject();
    char *text;

    cJSON_AddNumberToObject(object, "first", d->snapshot.first);
    cJSON_AddNumberToObject(object, "sum", d->snapshot.sum);
    cJSON_AddNumberToObject(object, "count", (double)d->snapshot.count);
    cJSON_AddBoolToObject(object, "warned", d->snapshot.warned);
    text = pm_json_print(object); /* its numbers read back exactly */
    pm_str_add(json, "%s", text);
    pm_free(text);
    cJSON_Delete(object);
}

/* Returns a member that is a finite number, else 0. */
static double number_of(const cJSON *object, const char *key)
{
    const double v = cJSON_GetNumberValue(cJSON_GetObjectItem(object, key));

    return isfinite(v) ? v : 0;
}

void pm_divergence_read(struct pm_divergence *d, const struct cJSON *object)
{
    const double count = number_of(object, "count");

    d->snapshot = (struct pm_divergence_sums){
        .first = number_of(object, "first"), .sum = number_of(object, "sum"),
        .count = count > 0 && count < 0x1p53 ? (int64_t)count : 0,
        .warned = cJSON_IsTrue(cJSON_GetObjectItem(object, "warned")) };
}
