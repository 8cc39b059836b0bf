/* state: copies variables, optimizer slots and moving averages between a device and checkpoints. */
#ifndef PM_STATE_H
#define PM_STATE_H

#include <pumice/checkpoint.h>
#include <pumice/config.h>
#include <pumice/plan.h>

/* Host memory for everything in a checkpoint; made once. */
struct pm_state;
struct pm_state *pm_state_create(const struct pm_variables *v);
void pm_state_destroy(struct pm_state **s);
/* Returns block i of its memory in *data, and its size in bytes; false after the last. The same
 * variables have the same blocks in every process. */
bool pm_state_block(struct pm_state *s, int i, void **data, size_t *bytes);
/* Returns the last read values of variable i. */
const float *pm_state_value(const struct pm_state *s, const struct pm_variables *v, int i);
/* Copies from device to host, and from host to device. v must have the layout of the variables that
 * s was created with. */
int pm_state_read(struct pm_state *s, struct pm_variables *v);
int pm_state_write(const struct pm_state *s, struct pm_variables *v);
int pm_state_save(const struct pm_state *s, const char *run, uint64_t step, const char *json,
                  const struct pm_keep *keep);
/* Loads a training checkpoint, slots included. Every tensor must be there. If the checkpoint has no
 * averages at all, they start as the values. */
int pm_state_load(struct pm_state *s, const struct pm_checkpoint *from);
/* Checks that a checkpoint of any program has the step and every value and slot. where: "FILE:
 * init.checkpoint". betas: the optimizer's, both 0 if it has none: warns if the file's powers of
 * them do not fit its step. PM_EDATA: something is missing. */
int pm_state_check(const struct pm_state *s, const struct pm_checkpoint *from, const char *where,
                   const double betas[2]);

#endif
