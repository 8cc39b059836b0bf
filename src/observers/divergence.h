/* divergence: warns once in a run that training diverges or does not learn, in two cases:
 *
 *     the loss of a step is above 1000 times that of step 1. A smaller loss than 1 at step 1 counts
 *     as 1.
 *     after a tenth of the run the main part of the loss ("loss") is not below that of a prediction
 *     with equal probabilities, which ignores the picture (pm_task_row.uniform_loss). The loss is
 *     the mean over the second half of this tenth. A tenth has at least 100 steps, and twice the
 *     steps of the warm-up. Runs without an end, or with fewer steps, are not checked.
 *
 * The best constant prediction has the classes' frequencies as probabilities. Its loss is at most
 * that of equal probabilities, which depends on no data. The comparison with the latter never warns
 * of a net that has learnt the frequencies.
 *
 * The sums are part of a checkpoint's .json, so a resumed run warns at the same step, and once. */
#ifndef PM_DIVERGENCE_H
#define PM_DIVERGENCE_H

#include "clones/clones.h"

struct cJSON;

struct pm_divergence_sums {
    double first;  /* loss of step 1; 0: not known */
    double sum;    /* of the main part of the loss */
    int64_t count; /* steps in it */
    bool warned;
};
struct pm_divergence {
    double uniform;      /* loss of equal probabilities; NAN: not known; 0: one class */
    double warmup_steps; /* of the schedule */
    bool quiet;          /* the warning is not logged; false after the start */
    struct pm_divergence_sums now, snapshot;
};
/* Starts a run. uniform, warmup_steps: see the members. */
void pm_divergence_start(struct pm_divergence *d, double uniform, double warmup_steps);
/* Takes the result of a step: its number from 1, the run's number of steps (0: no end), and the
 * factor of its losses, 1 if they are means over the batch. */
void pm_divergence_step(struct pm_divergence *d, uint64_t step, int64_t steps, double factor,
                        const struct pm_step_result *r);
/* The sums as part of a run's state. Keep copies them. Restore returns to the copy. */
void pm_divergence_keep(struct pm_divergence *d);
void pm_divergence_restore(struct pm_divergence *d);
/* Appends the copy as a JSON object, and reads one (NULL: none) into the copy. */
void pm_divergence_print(const struct pm_divergence *d, struct pm_str *json);
void pm_divergence_read(struct pm_divergence *d, const struct cJSON *object);

#endif
