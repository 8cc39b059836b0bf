/* schedule: the learning rate of a step. */
#ifndef PM_SCHEDULE_H
#define PM_SCHEDULE_H

#include <pumice/config.h>

/* A schedule with its steps worked out. */
struct pm_schedule {
    const struct pm_config_schedule *c; /* borrowed */
    int64_t decay_steps;
    double warmup_steps; /* not cut to whole ones */
};
/* examples: of the training split, 0 when unknown (then epochs cannot be used). batch: whole batch.
 * clones: for epoch_count "per_clone", where an epoch is counted as each clone's own batches, as in
 * Slim: examples / (batch / clones) steps; decay_steps is that times the epochs, cut to a whole
 * number. total_steps: of the run: the cosine's length when none is given, and the polynomial's with
 * num_epochs_per_decay 0, both less the warm-up where warmup_shift has them start behind it. */
int pm_schedule_make(const struct pm_config_schedule *c, size_t examples, int batch, int clones,
                     int64_t total_steps, struct pm_schedule *out);
/* In float32, as TensorFlow computes it; while the warm-up lasts, not more than its ramp, or its
 * constant rate. step: updates done before this one. */
float pm_schedule_rate(const struct pm_schedule *s, int64_t step);

#endif
