/* state: variables, optimizer slots and moving averages between a device and checkpoints. */
#ifndef PM_STATE_H
#define PM_STATE_H

#include <pumice/checkpoint.h>
#include <pumice/config.h>
#include <pumice/plan.h>

/* Host memory for everything that a checkpoint holds; made once. */
struct pm_state;
struct pm_state *pm_state_create(const struct pm_variables *v);
void pm_state_destroy(struct pm_state **s);
/* Variable i's values as last read. */
const float *pm_state_value(const struct pm_state *s, const struct pm_variables *v, int i);
/* Device to host, host to device. v has the layout of the variables it was created with. */
int pm_state_read(struct pm_state *s, struct pm_variables *v);
int pm_state_write(const struct pm_state *s, struct pm_variables *v);
int pm_state_save(const struct pm_state *s, const char *run, uint64_t step, const char *json,
                  const struct pm_keep *keep);
/* A training checkpoint, slots included: everything must be there, but for averages where it has
 * none at all; then they begin as the values. */
int pm_state_load(struct pm_state *s, const struct pm_checkpoint *from);
/* ---- values only, from a checkpoint of any program: warm_start.c ------------------------ */

/* For eval and predict: every variable, or its average where `averages`. Each that is missing there
 * or of another shape is named in the log, then all of them fail. PyTorch's names become ours, in
 * from too. where: "FILE: eval.checkpoint". */
int pm_values_load(struct pm_variables *v, struct pm_checkpoint *from, bool averages,
                   const char *where);
/* The same without reading them: every variable is there. v needs no memory. pm_match_free frees. */
struct pm_match;
int pm_values_find(const struct pm_variables *v, struct pm_checkpoint *from, bool averages,
                   const char *where, struct pm_match *out);
/* init.checkpoint: values by name, but for names that begin with one of init.exclude_scopes. Each
 * variable that is excluded, missing in the checkpoint or of another shape there is named in the
 * log, and so is what it holds beside them. A missing one fails unless init.ignore_missing, another
 * shape always; nothing is then changed. place: the config's name, for messages. */
int pm_values_warm_start(struct pm_variables *v, const struct pm_config_init *init,
                         const char *place);

/* Whether a checkpoint's moving averages are taken instead of its variables. wanted: enum pm_averages
 * (config.h). place (the config's name) and key ("eval.averages") stand in messages. Fails with PM_EDATA
 * where averages are wanted and the checkpoint has none. */
int pm_checkpoint_choose_averages(const struct pm_checkpoint *from, int wanted, const char *place,
                                  const char *key, bool *use);

#endif
