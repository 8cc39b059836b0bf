/* study_board: a study in event files, for TensorBoard's HParams plugin. A file that cannot be
 * written is a warning. Not thread-safe. */
#ifndef PM_STUDY_BOARD_H
#define PM_STUDY_BOARD_H

#include "study/study_results.h"

/* Writes the keys and the metric into an event file of the study's folder, unless it has one. */
void pm_study_board_start(const struct pm_study *s);
/* Writes the values of the run, its state and its metric into an event file of its folder, which
 * exists. step: to which the run came. The process has ended, so the file is newer than its own. */
void pm_study_board_result(const struct pm_study *s, const struct pm_study_result *one,
                           const char *run, uint64_t step);

#endif
