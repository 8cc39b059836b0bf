#include "jobs/smaller_batch.h"
#include "jobs/check_findings.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

/* c->run.batch_size is already the number that was found for this machine. */
static bool is_auto(const struct pm_config *c)
{
    const cJSON *run = cJSON_GetObjectItemCaseSensitive(c->tree, "run");

    return cJSON_IsString(cJSON_GetObjectItemCaseSensitive(run, "batch_size"));
}

int pm_smaller_batch_of(const struct pm_config *c, int batch, struct pm_smaller_batch *out)
{
    bool plain;
    int err = PM_OK;

    *out = PM_SAME_BATCH;
    if (is_auto(c))
        goto out;
    PM_TRY(pm_check_plain_steps(c, &plain));
    out->steps = (double)c->run.batch_size / batch;
    out->rate = plain ? 1 / out->steps : 1;
out:
    return err;
}

double pm_smaller_batch_steps(const struct pm_smaller_batch *b, double steps)
{
    return round(steps * b->steps);
}

/* Returns a rate with three digits. */
static double scaled(const struct pm_smaller_batch *b, double rate)
{
    char text[32];

    snprintf(text, sizeof text, "%.3g", rate * b->rate);
    return b->rate < 1 ? atof(text) : rate;
}

/* Adds a member to the schedule if it is missing. Takes ownership of v. */
static void add_missing(cJSON *config, const char *key, cJSON *v)
{
    cJSON *schedule = cJSON_GetObjectItem(config, "schedule");

    if (!schedule)
        schedule = cJSON_AddObjectToObject(config, "schedule");
    if (cJSON_HasObjectItem(schedule, key))
        cJSON_Delete(v);
    else
        cJSON_AddItemToObject(schedule, key, v);
}

void pm_smaller_batch_schedule(const struct pm_smaller_batch *b, const struct pm_config_schedule *s,
                               cJSON *config)
{
    const bool ends = s->policy == PM_POLICY_POLYNOMIAL || s->policy == PM_POLICY_COSINE;
    const struct { const char *key; double own, adapted; } numbers[] = {
        { "base_lr", s->base_lr, scaled(b, s->base_lr) },
        { "end_lr", s->end_lr, ends ? scaled(b, s->end_lr) : s->end_lr },
        { "min_lr", s->min_lr, scaled(b, s->min_lr) },
        { "warmup_lr", s->warmup_lr, scaled(b, s->warmup_lr) },
        { "decay_steps", (double)s->decay_steps,
          pm_smaller_batch_steps(b, (double)s->decay_steps) },
        { "warmup_steps", (double)s->warmup_steps,
          pm_smaller_batch_steps(b, (double)s->warmup_steps) },
        { "hold_steps", (double)s->hold_steps, pm_smaller_batch_steps(b, (double)s->hold_steps) },
    };
    cJSON *list;

    for (size_t i = 0; i < PM_COUNT(numbers); i++)
        if (numbers[i].own != numbers[i].adapted)
            add_missing(config, numbers[i].key, cJSON_CreateNumber(numbers[i].adapted));
    if (b->steps > 1 && s->boundaries.count) {
        list = cJSON_CreateArray();
        for (int i = 0; i < s->boundaries.count; i++)
            cJSON_AddItemToArray(
                list, cJSON_CreateNumber(pm_smaller_batch_steps(b, s->boundaries.v[i])));
        add_missing(config, "boundaries", list);
    }
    if (b->rate < 1 && s->rates.count) {
        list = cJSON_CreateArray();
        for (int i = 0; i < s->rates.count; i++)
            cJSON_AddItemToArray(list, cJSON_CreateNumber(scaled(b, (double)s->rates.v[i])));
        add_missing(config, "rates", list);
    }
}

void pm_smaller_batch_describe(const struct pm_smaller_batch *b, const struct pm_config *c,
                               struct pm_str *out)
{
    const struct pm_config_schedule *s = &c->schedule;
    const bool has_steps = c->run.steps > 0 || s->warmup_steps > 0 || s->hold_steps > 0 ||
                           s->decay_steps > 0 || s->boundaries.count > 0;
    const char *before = "\n  ";

    if (b->steps > 1 && has_steps) {
        pm_str_add(out, "%sNumbers of steps are multiplied by %.3g.", before, b->steps);
        before = " ";
    }
    if (b->rate < 1)
        pm_str_add(out, "%sRates are divided by %.3g.", before, b->steps);
}
