/* print_evaluation: the output of `pumice eval` on a terminal. */
#ifndef PRINT_EVALUATION_H
#define PRINT_EVALUATION_H

#include <pumice/base.h>

struct cJSON;

/* Adds a report of pm_evaluate as lines of text. classes: with the table of classes. */
void app_evaluation_text(const struct cJSON *report, bool classes, struct pm_str *out);

#endif
