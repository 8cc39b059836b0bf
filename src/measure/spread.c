/* spread: see spread.h. */
#include "measure/spread.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct pm_spread pm_spread_of(double *v, size_t count)
{
    if (count == 0)
        return (struct pm_spread){ 0 };
    qsort(v, count, sizeof *v, ascending);
    return (struct pm_spread){ v[0], (v[(count - 1) / 2] + v[count / 2]) / 2, v[count - 1] };
}

void pm_spread_json(struct cJSON *object, const char *name, struct pm_spread s, double scale)
{
    cJSON *o = cJSON_AddObjectToObject(object, name);

    cJSON_AddNumberToObject(o, "min", s.min * scale);
    cJSON_AddNumberToObject(o, "median", s.median * scale);
    cJSON_AddNumberToObject(o, "max", s.max * scale);
}
