/* averages: moving averages of the variables, as TensorFlow's ExponentialMovingAverage keeps them:
 * of every variable, trained or not, batch norm's moving mean and variance too (so these are
 * averaged twice, as in Slim). They take the values after a step's update, as its last call, and
 * stand in checkpoints as "VARIABLE/ExponentialMovingAverage".
 *
 * A run's averages begin as the values that training begins with. TensorFlow's begin as the initial
 * values also where a warm start replaces these before the first step; with the ramp nothing is left
 * of the difference after some tens of steps, and without it nobody wants random weights averaged in
 * for thousands of steps. An average of a frozen variable is its value. */
#ifndef PM_AVERAGES_H
#define PM_AVERAGES_H

#include <pumice/config.h>
#include <pumice/plan.h>

#define PM_AVERAGE_SUFFIX "ExponentialMovingAverage"

/* The decay in the update that makes step `step` the number of updates done (1 for the first), in
 * float32 as TensorFlow computes it: min(decay, (1 + step) / (10 + step)), or decay without the
 * ramp. Its weight of the new value is 1 minus this. */
float pm_averages_decay(const struct pm_config_optim *c, uint64_t step);
/* Whether evaluations while training are of the moving averages. */
bool pm_averages_evaluated(const struct pm_config *c);
/* Of a plan's update: the call that brings the bytes from .. to-1 of the averages up to their
 * values; nothing changes while flag is 0. */
void pm_averages_append(struct pm_calls *c, size_t from, size_t to, struct pm_tensor flag);

#endif
