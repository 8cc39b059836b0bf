/* print_evaluation: the output of `pumice eval` on a terminal. */
#ifndef PRINT_EVALUATION_H
#define PRINT_EVALUATION_H

#include <pumice/base.h>

struct cJSON;

/* Adds a report of pm_evaluate as lines of text. unit: of the counts per class, "pictures".
 * classes: with the table of classes. */
void app_evaluation_text(const struct cJSON *report, const char *unit, bool classes,
                         struct pm_str *out);

#endif
