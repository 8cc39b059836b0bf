/* averages: moving averages of the variables, as in TensorFlow's ExponentialMovingAverage. Every
 * variable has one, trained or not. Batch norm's moving mean and variance also have one (so they
 * are averaged twice, as in Slim). That of a late variable is its value: the ranges of a quantised
 * net are averages that begin without a value. The averages use the values after a step's update,
 * in its last call. Their name in checkpoints is "VARIABLE/ExponentialMovingAverage".
 *
 * A run's averages begin with the values that training begins with. TensorFlow's begin with the
 * initial values, even if a warm start replaces these before the first step. With the ramp this
 * difference is gone after some tens of steps. Without it, random weights would stay in the
 * averages for thousands of steps. The average of a frozen variable is its value. */
#ifndef PM_AVERAGES_H
#define PM_AVERAGES_H

#include <pumice/config.h>
#include <pumice/plan.h>

#define PM_AVERAGE_SUFFIX "ExponentialMovingAverage"

/* Returns the decay of one update, in float32 as TensorFlow computes it: min(decay, (1 + step) /
 * (10 + step)), or decay without the ramp. step: updates done, including this one (1 for the
 * first). The weight of the new value is 1 minus the decay. */
float pm_averages_decay(const struct pm_config_optim *c, uint64_t step);
/* Whether evaluations during training use the moving averages. */
bool pm_averages_evaluated(const struct pm_config *c);
/* Appends the call that updates bytes from .. to-1 of the averages to a plan's update. Nothing
 * changes while flag is 0. */
void pm_averages_append(struct pm_calls *c, size_t from, size_t to, struct pm_tensor flag);

#endif
