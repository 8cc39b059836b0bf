/* evaluate: one pass of a checkpoint over the evaluation split, on the config's first device. */
#include <pumice/train.h>

#include "train/evaluator.h"
#include "observers/per_class.h"
#include "observers/run_page.h"
#include "jobs/session.h"
#include "observers/summaries.h"

#include <cjson/cJSON.h>
#include <pumice/formats.h>
#include <stdlib.h>
#include <string.h>

/* Returns the part of a checkpoint's path below the run folder, even if the path reaches it by
 * another name. NULL: the checkpoint is not the run's own. */
static const char *below(const char *path, const char *folder)
{
    char *start = pm_strdup(path), *slash;
    const char *found = NULL;

    while (folder && !found && (slash = strrchr(start, '/')) != NULL) {
        *slash = '\0';
        if (pm_same_file(start, folder))
            found = path + (slash - start) + 1;
    }
    pm_free(start);
    return found;
}

int pm_evaluate(const struct pm_config *c, struct cJSON *report)
{
    struct pm_session s = { 0 };
    struct pm_evaluator *ev = NULL;
    struct cJSON *metrics = NULL, *detail = NULL, *rows, *stages;
    const char *in_run;
    double start = pm_seconds();
    uint64_t count, skipped;
    int err = PM_OK;

    PM_TRY(pm_session_open(c, true, (struct pm_net_want){ PM_USE_EVAL, c->eval.batch_size, 0, 0 },
                           &s));
    PM_INFO("eval", "evaluating %s (%s%s)", s.from->path, pm_tensor_file_format(s.from->tensors),
            s.averages ? ", its moving averages" : "");
    PM_TRY(pm_evaluator_create(s.e, s.device, s.variables, &ev));
    metrics = cJSON_CreateObject();
    detail = cJSON_CreateObject();
    in_run = below(s.from->path, c->run.folder);
    if (in_run) {
        char *folder = pm_evaluations_folder(c->run.folder, s.e->eval_split);

        pm_evaluator_write_to(ev, folder);
        pm_free(folder);
    }
    PM_TRY(pm_evaluator_run(ev, metrics, detail, &count, &skipped));
    if (in_run)
        pm_run_page_evaluated(c, &(struct pm_evaluated){
            .data = c->data.folder, .split = s.e->eval_split,
            .checkpoint = in_run, .averages = s.averages,
            .step = s.from->step, .count = count, .metrics = metrics, .detail = detail });
    pm_session_add_step(&s, report);
    cJSON_AddStringToObject(report, "split", s.e->eval_split);
    cJSON_AddNumberToObject(report, "count", (double)count);
    if (c->data.on_corrupt == PM_CORRUPT_SKIP)
        cJSON_AddNumberToObject(report, "skipped", (double)skipped);
    cJSON_AddItemToObject(report, "metrics", metrics);
    metrics = NULL;
    if ((rows = pm_per_class_rows(detail)) != NULL)
        cJSON_AddItemToObject(report, "per_class", rows);
    if ((stages = cJSON_DetachItemFromObject(detail, "stages")) != NULL)
        cJSON_AddItemToObject(report, "stages", stages);
    cJSON_AddStringToObject(report, "checkpoint", s.from->path);
    cJSON_AddBoolToObject(report, "averages", s.averages);
    cJSON_AddNumberToObject(report, "seconds", pm_seconds() - start);
out:
    cJSON_Delete(metrics);
    cJSON_Delete(detail);
    pm_evaluator_destroy(&ev);
    pm_session_close(&s);
    return err;
}

/* ---- the folder of an evaluation ---------------------------------------------------------- */

/* Returns RUN/eval_SPLIT, or for a checkpoint of another run or program a folder of its own in it,
 * so that it is not drawn into the run's curves: "RUN/eval_test/model.ckpt-157585-1a2b3c4d". The
 * hash of the path distinguishes files of one name. */
static char *folder_of(const struct pm_config *c, const char *split, const char *checkpoint)
{
    const char *slash = strrchr(checkpoint, '/'), *name = slash ? slash + 1 : checkpoint;
    struct pm_str s = { 0 };
    char *folder = pm_evaluations_folder(c->run.folder, split), *real;

    if (below(checkpoint, c->run.folder))
        return folder;
    real = realpath(checkpoint, NULL); /* fails for the prefix of several files */
    pm_str_add(&s, "%s/%s-%08x", folder, name,
               (unsigned)pm_hash(real ? real : checkpoint));
    free(real);
    pm_free(folder);
    return s.text;
}

/* Writes no START event, so that evaluations of other steps stay visible in any order. */
static int write_events(const char *folder, const struct pm_config *c, const cJSON *report,
                        uint64_t step, struct pm_events **events)
{
    int err = PM_OK;

    if (!*events)
        PM_TRY(pm_events_create(folder, events));
    pm_summaries_metrics(*events, c, cJSON_GetObjectItem(report, "metrics"));
    PM_TRY(pm_events_write(*events, step));
out:
    return err;
}

void pm_evaluation_keep(const struct pm_config *c, const struct cJSON *report,
                        struct pm_events **events)
{
    const cJSON *number = cJSON_GetObjectItem(report, "step"); /* null: the file has none */
    const uint64_t step = cJSON_IsNumber(number) ? (uint64_t)number->valuedouble : 0;
    const char *from = cJSON_GetStringValue(cJSON_GetObjectItem(report, "checkpoint"));
    const cJSON *rows = cJSON_GetObjectItem(report, "per_class");
    char *folder;
    int err = PM_OK;

    if (!c->run.folder)
        return;
    folder = folder_of(c, cJSON_GetStringValue(cJSON_GetObjectItem(report, "split")), from);
    PM_TRY(pm_make_folders(folder));
    PM_TRY(write_events(folder, c, report, step, events));
    if (rows)
        PM_TRY(pm_per_class_write(folder, step, rows));
out:
    if (err < 0)
        PM_WARN("eval", "%s; this evaluation is not stored in the run folder", pm_error_text());
    pm_free(folder);
}
