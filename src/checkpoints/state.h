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
/* ---- values only, from a checkpoint of any program: warm_start.c ------------------------ */

/* For eval and predict: loads every variable, or its average if `averages`. The log names each
 * variable that is missing or has another shape; then the call fails. PyTorch's names are
 * translated to the net's, also within `from`. where: "FILE: eval.checkpoint". */
int pm_values_load(struct pm_variables *v, struct pm_checkpoint *from, bool averages,
                   const char *where);
/* Checks the same without reading values: every variable must be there. v needs no memory. Free
 * with pm_match_free. */
struct pm_match;
int pm_values_find(const struct pm_variables *v, struct pm_checkpoint *from, bool averages,
                   const char *where, struct pm_match *out);
/* init.checkpoint: loads values by name, except names that begin with one of init.exclude_scopes.
 * The log names each variable that is excluded, missing or of another shape, and the checkpoint's
 * other tensors. A missing variable is an error unless init.ignore_missing is set; another shape is
 * always an error. A detector restores what init.type and init.load_all choose, by the rules of
 * init_rules.h; of these variables, missing and misshapen ones keep their initial values. After an
 * error nothing has changed. place: the config's name, for messages. */
int pm_values_warm_start(struct pm_variables *v, const struct pm_config_init *init,
                         const char *place);

/* Whether a checkpoint's moving averages are loaded instead of its variables. wanted: enum
 * pm_averages (config.h). place (the config's name) and key ("eval.averages") are for messages.
 * Fails with PM_EDATA if averages are wanted and the checkpoint has none. */
int pm_checkpoint_choose_averages(const struct pm_checkpoint *from, int wanted, const char *place,
                                  const char *key, bool *use);

#endif
