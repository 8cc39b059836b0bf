/* best_scores: eval.score_threshold "best": in each class the score of the best F1, as found by the
 * latest evaluation of the run. Evaluations leave it in their files for the report. */
#include "tasks/detection/detection.h"

#include <cjson/cJSON.h>
#include <pumice/report.h>
#include <math.h>
#include <string.h>

static const cJSON *best_of(const cJSON *evaluation)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(evaluation, "per_class"), "best_score");
}

static const char *written(const cJSON *evaluation)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(evaluation, "written"));

    return text ? text : "";
}

/* Replaces *latest if the file is a later evaluation of boxes with these classes. Times are text
 * of one form, so their order is that of the text. */
static void read_evaluation(const char *run, const char *name, int classes, cJSON **latest)
{
    struct pm_str path = { 0 };
    char *text = NULL;
    cJSON *e = NULL;

    pm_str_add(&path, "%s/%s", run, name);
    if (pm_text_read(path.text, PM_MOST_TEXT, &text) == PM_OK)
        e = cJSON_Parse(text);
    if (cJSON_GetArraySize(best_of(e)) == classes &&
        (!*latest || strcmp(written(e), written(*latest)) > 0)) {
        cJSON_Delete(*latest);
        *latest = e, e = NULL;
    }
    cJSON_Delete(e);
    pm_free(text);
    pm_str_free(&path);
}

bool pm_detection_best_scores(const char *run, int classes, double *scores)
{
    struct pm_arena *a = pm_arena_create();
    const char **names;
    const size_t count = pm_report_evaluations(a, run, &names);
    cJSON *latest = NULL;
    const cJSON *v, *all;
    double other;

    read_evaluation(run, "evaluation.json", classes, &latest);
    for (size_t i = 0; i < count; i++)
        read_evaluation(run, names[i], classes, &latest);
    all = cJSON_GetObjectItem(cJSON_GetObjectItem(latest, "metrics"), "best_score");
    other = cJSON_IsNumber(all) ? all->valuedouble : PM_DETECTION_SCORE;
    v = best_of(latest);
    v = v ? v->child : NULL;
    for (int c = 0; c < classes && latest; c++, v = v ? v->next : NULL)
        scores[c] = cJSON_IsNumber(v) ? v->valuedouble : other;
    pm_arena_destroy(&a);
    const bool found = latest != NULL;

    cJSON_Delete(latest);
    return found;
}
