/* study_parts: private parts of study.h, used by the files of src/study. */
#ifndef PM_STUDY_PARTS_H
#define PM_STUDY_PARTS_H

#include "study/study.h"

/* study_vary.c: the value of a key for the coordinates u, in [0, 1), one for each part of the
 * study. The caller frees it with cJSON_Delete. */
struct cJSON *pm_study_value(const struct pm_study *s, int key, const double *u);
/* Whether the study varies this key. */
bool pm_study_varies(const struct pm_study *s, const char *key);
/* Whether one dotted key is the other, or lies inside it. */
bool pm_study_overlap(const char *a, const char *b);
/* study_name.c: names the points by the values that vary. No two have the same name. */
void pm_study_name_points(struct pm_study *s);

#endif
