/* equal_run: finds finished runs of the same experiment, by the identity in their run.json
 * (config_changes.h). */
#ifndef PM_EQUAL_RUN_H
#define PM_EQUAL_RUN_H

#include <pumice/config.h>

/* Searches the folders beside run.folder, at most 1,000 of them, for a run that has ended at its
 * last step and whose config trains the same values. Does not search in the folder of a study.
 * Returns its path, in the arena; NULL: there is none. */
const char *pm_equal_run(const struct pm_config *c, struct pm_arena *a);

#endif
