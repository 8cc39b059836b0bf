/* evaluations: the files of a run folder that keep what evaluations saw, for report.html.
 *
 *     RUN/evaluation.json                          the last one while training
 *     RUN/eval_SPLIT/evaluation-CHECKPOINT-HASH.json  those of pumice eval: one for each checkpoint, data
 *                                                  folder and split; the newest PM_EVALUATIONS_KEPT stay
 *
 * An evaluation is identified by checkpoint, data folder and split: one of the same replaces the former. */
#ifndef PM_EVALUATIONS_H
#define PM_EVALUATIONS_H

#include <pumice/config.h>

struct cJSON;

enum { PM_EVALUATIONS_KEPT = 32 }; /* report/page.h has room for them and that of training */
struct pm_evaluated {
    const char *data, *split;     /* the data folder as the config names it, and the split in it */
    const char *checkpoint;       /* path below the run folder: "checkpoints/best-000600.safetensors" */
    bool averages;                /* the values are moving averages */
    bool training;                /* made while training */
    uint64_t step, count;         /* of the checkpoint; pictures */
    const struct cJSON *metrics, *detail; /* the task's, the evaluator's; borrowed */
};

/* RUN/eval_SPLIT of the config's evaluation split, where a file pattern's other characters become "_".
 * Freed with pm_free. */
char *pm_evaluations_folder(const struct pm_config *c);
/* Writes RUN/evaluation.json of an evaluation while training, else a file in folder, which is made, and
 * removes the oldest of run beyond those that stay. PM_EFAIL: what could not be written. */
int pm_evaluations_write(const char *run, const char *folder, const struct pm_evaluated *e);
/* A new run begins in the folder: removes all of them. What cannot be removed stays. */
void pm_evaluations_forget(const char *run);

#endif
