/* experiment_classes: inside of experiment.h: what is known of the data without opening a split. */
#ifndef PM_EXPERIMENT_CLASSES_H
#define PM_EXPERIMENT_CLASSES_H

#include "experiment/experiment.h"

/* Data that the program makes itself, where the config asks for them and data.folder is not
 * there. */
int pm_experiment_make_data(const struct pm_config *c);
/* e->data from the first that knows the classes: the checkpoint (may be NULL), the data folder,
 * whose splits do not matter. Where neither does, e->data is unchanged. PM_EDATA: one of them is
 * damaged. */
int pm_experiment_find_classes(struct pm_experiment *e, const struct pm_checkpoint *from);
/* Who does not say a value that the config leaves open, and what to do about it; for messages. */
const char *pm_experiment_silence(struct pm_experiment *e);
const char *pm_experiment_remedy(const struct pm_experiment *e);

#endif
