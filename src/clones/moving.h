/* moving: updates batch norm's moving averages by the batches of several clones
 * (run.batch_norm_update "all"), one after the other, as DeepLab's towers update shared variables:
 *
 *     m <- d m + (1 - d) b_0,   m <- d m + (1 - d) b_1,   ...
 *
 * Each clone computes c_i = d m + (1 - d) b_i from the m that it received. From these the host
 * computes the same result,
 *
 *     r = m,   r <- c_i + d (r - m)   for each clone in order.
 *
 * With "last", only the last clone joins, and the result is its c_i. The moving averages are the
 * values after the trainable part of the variables' block. */
#ifndef PM_MOVING_H
#define PM_MOVING_H

#include <pumice/device.h>
#include <pumice/net.h>
#include <pumice/plan.h>

struct pm_moving {
    struct pm_variables *master; /* borrowed */
    size_t offset, bytes;        /* in the block; bytes may be 0 */
    float *decay;                /* d of each; owned, as are the arrays below */
    float *before, *after;
    struct pm_program **pull;    /* [clones]: copies each clone's averages to the host */
    int clones;
};
/* Returns PM_ECONFIG and names the first node whose updates cannot be combined. all: over the
 * clones, because the host computes the moving averages. micro_batches > 1: over the parts of a
 * batch, because each part would round by its own range and only the last range would be kept. */
int pm_moving_check(const struct pm_net *net, bool all, int micro_batches);
/* Creates the state for at most so many clones of this net; pm_moving_join then adds each clone
 * whose moving averages count, in order. */
void pm_moving_create(const struct pm_net *net, struct pm_variables *master, int clones,
                      struct pm_moving *out);
int pm_moving_join(struct pm_moving *m, const struct pm_variables *clone);
/* Call it before the clones' devices are closed. */
void pm_moving_free(struct pm_moving *m);
/* Call it after every clone has done the step. Sets the master's moving averages to the combined
 * result. */
int pm_moving_follow(struct pm_moving *m);
/* The same in parts, if some of the clones belong to other processes: begin; the values of each
 * clone of this process that has joined, m->bytes long; add those of every clone of all processes,
 * in order; end. */
int pm_moving_begin(struct pm_moving *m);
int pm_moving_values(struct pm_moving *m, int i, const float **out);
void pm_moving_add(struct pm_moving *m, const float *clone);
int pm_moving_end(struct pm_moving *m);
/* pm_moving_follow without its end: m->after is the combined result, the master is unchanged. */
int pm_moving_combine(struct pm_moving *m);

#endif
