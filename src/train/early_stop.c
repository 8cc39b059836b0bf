/* early_stop: early_stop.h has the contract. */
#include "train/early_stop.h"

#include "experiment/experiment.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <string.h>

int pm_metric_choose(const struct pm_experiment *e, const char *key, const char *name,
                     const struct pm_metric_kind **out)
{
    struct pm_metric_list metrics = { 0 };
    const struct pm_metric_kind *kind = e->task_row->config.metrics;
    struct pm_str all = { 0 };
    int err = PM_OK;

    *out = NULL;
    e->task_row->metrics(e->task, &metrics);
    for (size_t i = 0; i < metrics.count; i++) {
        if (!*out && (strcmp(name, "auto") == 0 || strcmp(name, metrics.list[i]->name) == 0))
            *out = metrics.list[i];
        pm_str_add(&all, "%s%s", i ? ", " : "", metrics.list[i]->name);
    }
    while (!*out && kind->name && strcmp(kind->name, name) != 0)
        kind++;
    if (!*out)
        err = pm_fail(PM_ECONFIG, "%s: %s: '%s' is not a metric of this net's evaluation%s%s (%s)",
                      pm_config_source(e->config, key), key, name, kind->needs ? ": it needs " : "",
                      kind->needs ? kind->needs : "", all.text);
    pm_str_free(&all);
    pm_free(metrics.list);
    return err;
}

static const struct pm_early_stop_state nothing = { .counted_step = UINT64_MAX, .best = NAN };

int pm_early_stop_open(struct pm_early_stop *s, const struct pm_experiment *e)
{
    const struct pm_config_early_stop *c = e->config->early_stop;
    int err = PM_OK;

    *s = (struct pm_early_stop){ .now = nothing, .snapshot = nothing };
    if (!c)
        return PM_OK;
    PM_TRY(pm_metric_choose(e, "run.early_stop.metric", c->metric, &s->metric));
    s->patience = c->patience;
    s->min_delta = c->min_delta;
out:
    return err;
}

static bool is_better(const struct pm_early_stop *s, double value)
{
    if (!isfinite(value))
        return false;
    if (isnan(s->now.best))
        return true;
    return s->metric->higher_is_better ? value > s->now.best + s->min_delta
                                       : value < s->now.best - s->min_delta;
}

void pm_early_stop_count(struct pm_early_stop *s, uint64_t step, const struct cJSON *metrics)
{
    if (!s->metric || s->now.counted_step == step)
        return;
    const double value =
        cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(metrics, s->metric->name));

    s->now.counted_step = step;
    if (is_better(s, value)) {
        s->now.best = value;
        s->now.best_step = step;
        s->now.waited = 0;
    } else {
        s->now.waited++;
    }
}

bool pm_early_stop_due(const struct pm_early_stop *s)
{
    return s->metric && s->now.waited >= s->patience;
}

void pm_early_stop_keep(struct pm_early_stop *s)
{
    s->snapshot = s->now;
}

void pm_early_stop_restore(struct pm_early_stop *s)
{
    s->now = s->snapshot;
}

void pm_early_stop_print(const struct pm_early_stop *s, struct pm_str *json)
{
    const struct pm_early_stop_state *now = &s->snapshot;

    if (!s->metric || now->counted_step == UINT64_MAX)
        return;
    pm_str_add(json, ", \"early_stop\": {\"metric\": \"%s\", \"step\": %llu, \"waited\": %d",
               s->metric->name, (unsigned long long)now->counted_step, now->waited);
    if (isfinite(now->best))
        pm_str_add(json, ", \"best\": %.17g, \"best_step\": %llu", now->best,
                   (unsigned long long)now->best_step);
    pm_str_add(json, "}");
}

static bool read_step(const cJSON *object, const char *key, uint64_t *out)
{
    const double n = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));

    if (!(n >= 0 && n < 0x1p53))
        return false;
    *out = (uint64_t)n;
    return true;
}

void pm_early_stop_read(struct pm_early_stop *s, const struct cJSON *object)
{
    const char *metric =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "metric"));
    const double best = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, "best"));
    struct pm_early_stop_state read = nothing;
    uint64_t waited;

    s->snapshot = nothing;
    if (!s->metric || !metric || strcmp(metric, s->metric->name) != 0 ||
        !read_step(object, "step", &read.counted_step) || !read_step(object, "waited", &waited) ||
        waited > INT_MAX)
        return;
    read.waited = (int)waited;
    if (isfinite(best) && read_step(object, "best_step", &read.best_step))
        read.best = best;
    s->snapshot = read;
}

void pm_early_stop_reason(const struct pm_early_stop *s, struct pm_str *out)
{
    if (isnan(s->now.best))
        pm_str_add(out, "no value of %s", s->metric->name);
    else
        pm_str_add(out, "no better %s than %g (step %llu)", s->metric->name, s->now.best,
                   (unsigned long long)s->now.best_step);
    pm_str_add(out, " in %d evaluation%s", s->now.waited, s->now.waited == 1 ? "" : "s");
}
