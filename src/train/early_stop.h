/* early_stop: ends a run whose metric no longer improves (run.early_stop), and the metric that
 * selects the best checkpoint (run.keep_best). */
#ifndef PM_EARLY_STOP_H
#define PM_EARLY_STOP_H

#include <pumice/task.h>

struct cJSON;

/* What a resumed run continues with; a checkpoint's .json has it. */
struct pm_early_stop_state {
    uint64_t counted_step;  /* the last evaluation that was counted */
    uint64_t best_step;     /* the evaluation with the best value */
    double best;            /* NAN: no value yet */
    int waited;             /* evaluations since best_step */
};
struct pm_early_stop {
    const struct pm_metric_kind *metric; /* borrowed from the task; NULL: off */
    int patience;
    double min_delta;
    struct pm_early_stop_state now, snapshot;
};

/* Finds a metric of the experiment's net by name; "auto" is the first one. key: the key that names
 * it, for the message. PM_ECONFIG if the net has no such metric. */
struct pm_experiment;
int pm_metric_choose(const struct pm_experiment *e, const char *key, const char *name,
                     const struct pm_metric_kind **out);
/* Reads run.early_stop; everything stays zero without it. PM_ECONFIG. */
int pm_early_stop_open(struct pm_early_stop *s, const struct pm_experiment *e);
/* Counts an evaluation. Ignores the step that was counted last, because a resumed run may repeat
 * its evaluation. */
void pm_early_stop_count(struct pm_early_stop *s, uint64_t step, const struct cJSON *metrics);
/* Whether run.early_stop.patience evaluations brought no better value. */
bool pm_early_stop_due(const struct pm_early_stop *s);
/* Copies the state to the snapshot, and back. */
void pm_early_stop_keep(struct pm_early_stop *s);
void pm_early_stop_restore(struct pm_early_stop *s);
/* Appends the snapshot as a member of a checkpoint's .json: ", \"early_stop\": {...}"; nothing if
 * it is off. */
void pm_early_stop_print(const struct pm_early_stop *s, struct pm_str *json);
/* Reads the snapshot from such an object. It begins anew without one, or if its metric is
 * another. */
void pm_early_stop_read(struct pm_early_stop *s, const struct cJSON *object);
/* Appends why the run ends: "no better accuracy than 0.91 (step 400) in 3 evaluations". */
void pm_early_stop_reason(const struct pm_early_stop *s, struct pm_str *out);

#endif
