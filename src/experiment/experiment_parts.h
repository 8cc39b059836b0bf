/* experiment_parts: what the files of an experiment share. experiment.c opens one,
 * experiment_scopes.c has the regular expressions of the config, experiment_nets.c builds nets and
 * keeps them. */
#ifndef PM_EXPERIMENT_PARTS_H
#define PM_EXPERIMENT_PARTS_H

#include "experiment/experiment.h"

/* Compiles optim.freeze, optim.multipliers and init.trainable_scopes into e->regexes. PM_ECONFIG
 * names the expression that is not valid. */
int pm_experiment_compile_scopes(struct pm_experiment *e);
/* Frees them; e->regexes may be NULL. */
void pm_experiment_free_scopes(struct pm_experiment *e);
/* PM_ECONFIG when no variable of the net is trained. Logs once the scopes that match no
 * variable. */
int pm_experiment_check_trainable(const struct pm_experiment *e, const struct pm_net *net);

/* How the model of model.onnx is imported. */
struct pm_import_options pm_experiment_import_options(const struct pm_experiment *e);
/* Lets the task read the facts that depend on the net, from a net with heads. Training continues
 * that net. */
int pm_experiment_settle(struct pm_experiment *e);
/* Destroys the experiment's nets. A net that somebody else holds lives on. */
void pm_experiment_free_nets(struct pm_experiment *e);

#endif
