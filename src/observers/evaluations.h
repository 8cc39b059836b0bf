/* evaluations: the files of a run folder that keep the results of evaluations for report.html.
 *
 *     RUN/evaluation.json
 *         the last evaluation during training
 *     RUN/eval_SPLIT/evaluation-CHECKPOINT-HASH.json
 *         by pumice eval: one per checkpoint, data folder and split; the newest
 *         PM_EVALUATIONS_KEPT are kept
 *
 * An evaluation is identified by checkpoint, data folder and split. It replaces an earlier
 * evaluation of the same three. */
#ifndef PM_EVALUATIONS_H
#define PM_EVALUATIONS_H

#include <pumice/config.h>

struct cJSON;

enum { PM_EVALUATIONS_KEPT = 32 }; /* report/page.h has room for them and training's */
struct pm_evaluated {
    const char *data, *split;     /* the data folder as in the config, and its split */
    const char *checkpoint;   /* path below the run folder: "checkpoints/best-000600.safetensors" */
    bool averages;                /* the values are the moving averages */
    bool training;                /* made during training */
    uint64_t step, count;         /* step of the checkpoint; number of pictures */
    const struct cJSON *metrics, *detail; /* the task's metrics, the evaluator's detail; borrowed */
};

/* Returns RUN/eval_SPLIT. In a file pattern, characters not allowed in a folder's name become "_".
 * Freed with pm_free. */
char *pm_evaluations_folder(const char *run, const char *split);
/* Writes RUN/evaluation.json for an evaluation during training, else a file in folder, which is
 * created. An evaluation.json of another split or data folder becomes such a file before. Then
 * removes the oldest evaluations of the run beyond PM_EVALUATIONS_KEPT. PM_EFAIL: the file could
 * not be written. */
int pm_evaluations_write(const char *run, const char *folder, const struct pm_evaluated *e);
/* Removes all evaluations, because a new run begins in the folder. Files that cannot be removed are
 * left. */
void pm_evaluations_forget(const char *run);

#endif
