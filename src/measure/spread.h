/* spread: repeated measurements as minimum, median and maximum. */
#ifndef PM_SPREAD_H
#define PM_SPREAD_H

#include <stddef.h>

struct cJSON;

struct pm_spread {
    double min, median, max;
};
/* Sorts v; all values are zero if count is 0. */
struct pm_spread pm_spread_of(double *v, size_t count);
/* Adds {"min":, "median":, "max":} as the member `name`, each value multiplied by scale. */
void pm_spread_json(struct cJSON *object, const char *name, struct pm_spread s, double scale);

#endif
