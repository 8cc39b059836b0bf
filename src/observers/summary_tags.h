/* summary_tags: names of a run's values in TensorBoard: ours, or those of an original program
 * (run.summary_tags), so that the curves of both appear in one chart. */
#ifndef PM_SUMMARY_TAGS_H
#define PM_SUMMARY_TAGS_H

#include <pumice/config.h>

/* Appends the tag that the program gives to the value that we call `own`, or `own` itself if that
 * program has no such value. `out` is emptied first. */
void pm_summary_tag(enum pm_summary_tags program, const char *own, struct pm_str *out);

#endif
