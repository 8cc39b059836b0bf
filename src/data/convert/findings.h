/* findings, inside data/convert: what would make training or evaluation worse in converted
 * pictures: equal pictures in two splits, and pictures that are nearly black or too small. */
#ifndef PUMICE_DATA_CONVERT_FINDINGS_H
#define PUMICE_DATA_CONVERT_FINDINGS_H

#include "data/convert/convert.h"

struct pm_findings;
struct pm_findings *pm_findings_create(void);
/* Takes a picture of a split and a class into account. The texts are borrowed until the report. Any
 * thread may call it. */
void pm_findings_add(struct pm_findings *f, const char *split, const char *class_name,
                     const char *path, const struct pm_picture *p);
/* Writes warnings for at most 20 findings of each kind, then the number of the others. Their order
 * does not depend on that of the calls. */
void pm_findings_report(struct pm_findings *f);
void pm_findings_destroy(struct pm_findings **f);

#endif
