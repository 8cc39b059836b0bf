/* moving: batch norm's moving averages after the batches of every clone (run.batch_norm_update "all"),
 * one after the other, as DeepLab's towers update shared variables:
 *
 *     m <- d m + (1 - d) b_0,   m <- d m + (1 - d) b_1,   ...
 *
 * Every clone makes c_i = d m + (1 - d) b_i of the m that it was given; of these the host makes the same,
 *
 *     r = m,   r <- c_i + d (r - m)   for each clone in order.
 *
 * They are what lies behind the trainable part of the variables' block. */
#ifndef PM_MOVING_H
#define PM_MOVING_H

#include <pumice/device.h>
#include <pumice/net.h>
#include <pumice/plan.h>

struct pm_moving {
    struct pm_variables *master; /* borrowed */
    size_t offset, bytes;        /* in the block; bytes may be 0 */
    float *decay;                /* d of each; owned, as are the others */
    float *before, *after;
    struct pm_program **pull;    /* each clone's to the host */
    int clones;
};
/* Fails with a line naming the first node whose updates cannot be put together so (all), or of the
 * parts that a batch is cut into: each would round by its own range, and the last one's be kept. */
int pm_moving_check(const struct pm_net *net, bool all, int micro_batches);
/* Of clones of this net, none yet; then each in order. */
void pm_moving_create(const struct pm_net *net, struct pm_variables *master, int clones,
                      struct pm_moving *out);
int pm_moving_join(struct pm_moving *m, const struct pm_variables *clone);
/* Before the clones' devices are closed. */
void pm_moving_free(struct pm_moving *m);
/* The step being done on every clone: the master's become what they come to. */
int pm_moving_follow(struct pm_moving *m);

#endif
