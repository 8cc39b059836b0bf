/* schedule: the learning rate of a step. */
#ifndef PM_SCHEDULE_H
#define PM_SCHEDULE_H

#include <pumice/config.h>

/* A schedule with its lengths converted to steps. */
struct pm_schedule {
    const struct pm_config_schedule *c; /* borrowed */
    int64_t decay_steps;
    double warmup_steps; /* not rounded to whole steps */
};
/* Makes a schedule. examples: of the training split, 0 if unknown (then epochs cannot be used).
 * batch: whole batch. clones: for epoch_count "per_clone", which counts each clone's own batches,
 * as in Slim: an epoch is examples / (batch / clones) steps; decay_steps is that times the epochs,
 * truncated to a whole number. total_steps: of the run: the default length of cosine, and of
 * polynomial with num_epochs_per_decay 0. If warmup_shift or hold_steps starts the schedule after
 * the warm-up, these lengths exclude the warm-up and hold_steps. */
int pm_schedule_make(const struct pm_config_schedule *c, size_t examples, int batch, int clones,
                     int64_t total_steps, struct pm_schedule *out);
/* Returns the learning rate in float32, as TensorFlow computes it. During the warm-up it is at most
 * the warm-up's ramp (with warmup_shift the ramp itself, which may fall), or its constant rate;
 * never below min_lr. step: updates done before this one. */
float pm_schedule_rate(const struct pm_schedule *s, int64_t step);

#endif
