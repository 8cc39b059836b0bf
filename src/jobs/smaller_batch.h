/* smaller_batch: how the numbers of a config change if its batch becomes smaller. Lengths in steps
 * grow by the batch's factor, so that training reads as many pictures as before. Plain gradient
 * steps take a rate in proportion to the batch (Goyal et al. 2017). For other optimizers there is
 * no such rule, so their rates stay. */
#ifndef PM_SMALLER_BATCH_H
#define PM_SMALLER_BATCH_H

#include <pumice/config.h>

struct cJSON;
struct pm_str;

struct pm_smaller_batch {
    double steps; /* lengths in steps are multiplied by this; 1 or more */
    double rate;  /* learning rates are multiplied by this; 1 or less */
};
#define PM_SAME_BATCH ((struct pm_smaller_batch) { 1, 1 })

/* Finds the factors for a batch that is smaller than the config's. Both are 1 if the config has the
 * batch "auto", because its numbers were not chosen for a batch. Fails with PM_ECONFIG if the
 * options of the optimizer are wrong. */
int pm_smaller_batch_of(const struct pm_config *c, int batch, struct pm_smaller_batch *out);
/* Returns a length in whole steps. */
double pm_smaller_batch_steps(const struct pm_smaller_batch *b, double steps);
/* Adds to config.schedule the numbers that change. Members that it has already stay. */
void pm_smaller_batch_schedule(const struct pm_smaller_batch *b, const struct pm_config_schedule *s,
                               struct cJSON *config);
/* Appends a line that states the changes of this config. Appends nothing if there are none. */
void pm_smaller_batch_describe(const struct pm_smaller_batch *b, const struct pm_config *c,
                               struct pm_str *out);

#endif
