/* summary_metrics: the metrics of an evaluation as scalars. summaries.h has the contract. */
#include "observers/summaries.h"

#include "observers/summary_tags.h"

#include <pumice/formats.h>
#include <pumice/task.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* Sets the tag of a metric, or of one class in a list; false: it has none. */
static bool tag_of(const struct pm_config *c, const char *metric, int class, struct pm_str *out)
{
    const struct pm_task_row *task = pm_task_find(c->task);
    const struct pm_metric_kind *kind = task->config.metrics;

    out->length = 0;
    if (task->tag)
        task->tag(c, metric, class, out);
    if (out->length || class >= 0)
        return out->length > 0;
    while (kind->name && strcmp(kind->name, metric) != 0)
        kind++;
    if (kind->tag)
        pm_str_add(out, "%s", kind->tag);
    else
        pm_str_add(out, "eval/%s", metric);
    return true;
}

/* Values that are not finite, for example of absent classes, get no scalar. */
void pm_summaries_metrics(struct pm_events *e, const struct pm_config *c,
                          const struct cJSON *metrics)
{
    struct pm_str tag = { 0 }, named = { 0 };
    const cJSON *m, *v;
    int k;

    cJSON_ArrayForEach(m, metrics)
    {
        if (cJSON_IsNumber(m) && isfinite(m->valuedouble) && tag_of(c, m->string, -1, &tag)) {
            pm_summary_tag((enum pm_summary_tags)c->run.summary_tags, tag.text, &named);
            pm_events_scalar(e, named.text, m->valuedouble);
        }
        if (!cJSON_IsArray(m))
            continue;
        k = 0;
        cJSON_ArrayForEach(v, m)
        {
            if (cJSON_IsNumber(v) && isfinite(v->valuedouble) && tag_of(c, m->string, k, &tag))
                pm_events_scalar(e, tag.text, v->valuedouble);
            k++;
        }
    }
    pm_str_free(&named);
    pm_str_free(&tag);
}
