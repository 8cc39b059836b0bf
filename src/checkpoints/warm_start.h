/* warm_start: loads the values of a checkpoint of any program into a net's variables, without the
 * state of training. */
#ifndef PM_WARM_START_H
#define PM_WARM_START_H

#include <pumice/checkpoint.h>
#include <pumice/config.h>
#include <pumice/plan.h>

/* Translates PyTorch's names and layouts, the Inception trainer's names, and ONNX's layouts to the
 * net's. PM_EDATA: the file belongs to another net. */
int pm_values_translate(struct pm_checkpoint *c, const struct pm_variables *v);
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
