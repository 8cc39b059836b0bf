/* spread: repeated measurements as their smallest, middle and largest. */
#ifndef PM_SPREAD_H
#define PM_SPREAD_H

#include <stddef.h>

struct cJSON;

struct pm_spread {
    double min, median, max;
};
/* Sorts v; all zero without values. */
struct pm_spread pm_spread_of(double *v, size_t count);
/* Adds {"min":, "median":, "max":} as member name, each value times scale. */
void pm_spread_json(struct cJSON *object, const char *name, struct pm_spread s, double scale);

#endif
