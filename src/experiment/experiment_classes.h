/* experiment_classes: private part of experiment.h: facts about the data without opening a
 * split. */
#ifndef PM_EXPERIMENT_CLASSES_H
#define PM_EXPERIMENT_CLASSES_H

#include "experiment/experiment.h"

/* Creates built-in data if the config asks for it and data.folder does not exist. */
int pm_experiment_make_data(const struct pm_config *c);
/* Fills e->data from the first source that knows the classes: the checkpoint (may be NULL), then
 * the data folder, from any split. If neither does, e->data is unchanged. PM_EDATA: a source is
 * damaged. */
int pm_experiment_find_classes(struct pm_experiment *e, const struct pm_checkpoint *from);
/* Returns text for messages: which sources lack a value that the config leaves open, and what to
 * do. */
const char *pm_experiment_silence(struct pm_experiment *e);
const char *pm_experiment_remedy(const struct pm_experiment *e);

#endif
