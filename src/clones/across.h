/* across: what several processes (replicas.h) exchange in a step: gradients, losses, moving
 * averages and words. The exchange `host` uses it after the sum of its own clones, and before
 * the update. */
#ifndef PM_ACROSS_H
#define PM_ACROSS_H

#include "clones/clones.h"
#include "clones/moving.h"

struct pm_across;
/* c: the clones of this process, complete. floats: number of all gradients. buckets: most calls of
 * pm_across_add in a step. sum [floats]: see pm_replica_sum_create. */
struct pm_across *pm_across_create(struct pm_clones *c, size_t floats, int buckets, float *sum);
void pm_across_destroy(struct pm_across **a);
/* Starts the sum of a step. pm_across_add adds a bucket of this process's gradients, which must not
 * change until pm_across_end. */
void pm_across_start(struct pm_across *a);
void pm_across_add(struct pm_across *a, size_t offset, size_t count, const float *part);
/* Copies the moving averages of this process's clones. Call it after pm_clones_finish. */
int pm_across_take(struct pm_across *a, struct pm_moving *m);
/* Exchanges words, losses and seconds; call it after pm_clones_finish. Sets the losses in r, and
 * the rates of rank 0 in step. PM_EFAIL: another rank is at another step. PM_ELOST: a word says
 * that a device was lost (pm_clones_lost_rank); r is not set. */
int pm_across_words(struct pm_across *a, int slot, struct pm_step *step, struct pm_step_result *r);
/* Computes the master's moving averages from what pm_across_take copied in all processes. Call
 * pm_moving_end after pm_across_end to write them: if a process is lost before, the master keeps
 * the values of one step. */
int pm_across_follow(struct pm_across *a, struct pm_moving *m);
/* Waits for the sum. It is valid until the next start. */
int pm_across_end(struct pm_across *a);
/* See pm_clones_word and pm_clones_word_of. */
struct pm_step_word *pm_across_word(struct pm_across *a);
const struct pm_step_word *pm_across_word_of(const struct pm_across *a, int rank);

#endif
