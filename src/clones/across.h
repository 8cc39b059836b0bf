/* across: the part of a step that several processes share (replicas.h): the sum of their gradients,
 * their losses and moving averages, and their words. The exchange `host` uses it between the sum of
 * its own clones and the update. */
#ifndef PM_ACROSS_H
#define PM_ACROSS_H

#include "clones/clones.h"
#include "clones/moving.h"

struct pm_across;
/* c: its clones are made. floats: of the gradients. buckets: in which they are handed over. */
struct pm_across *pm_across_create(struct pm_clones *c, size_t floats, int buckets);
void pm_across_destroy(struct pm_across **a);
/* Starts the sum of a step; hands over a bucket of this process's sum, which must stay unchanged
 * until pm_across_end. */
void pm_across_start(struct pm_across *a);
void pm_across_add(struct pm_across *a, size_t offset, size_t count, const float *part);
/* Exchanges words and losses, after pm_clones_finish. Sets the losses in r, and in step the rates
 * of rank 0. PM_EFAIL: another rank is at another step. */
int pm_across_tell(struct pm_across *a, int slot, struct pm_step *step, struct pm_step_result *r);
/* Computes the master's moving averages from the clones of all processes. pm_moving_end then writes
 * them, once the sum is there: if a process is lost in the step, the master keeps all values. */
int pm_across_follow(struct pm_across *a, struct pm_moving *m);
/* Waits for the sum. It is valid until the next start. */
int pm_across_end(struct pm_across *a, const float **sum);
struct pm_step_word *pm_across_word(struct pm_across *a);
const struct pm_step_word *pm_across_word_of(const struct pm_across *a, int rank);

#endif
