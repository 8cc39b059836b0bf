/* axes: how a metric of several points depends on the keys in which they differ. Points are those
 * of a study, or runs that are compared. Each key is an axis: numbers on a linear or logarithmic
 * scale, anything else as evenly spaced names. */
#ifndef PM_AXES_H
#define PM_AXES_H

#include "report/chart.h"

#include <cjson/cJSON.h>

struct pm_axis {
    char *name;                /* owned: the key */
    bool numbers;              /* else names */
    struct pm_scale scale;     /* of the numbers */
    char **labels;             /* owned: the names; of numbers: each value if there are few */
    double *ticks;             /* owned, [labels]: their places, as at */
    int labels_count, capacity;
    double *at;                /* owned, [points]: place of each, 0..1000 */
};
struct pm_axes {
    int points;
    const char *const *names;          /* [points], borrowed */
    const double *mean, *spread;       /* [points], borrowed: of the metric; NAN: none */
    const char *thing, *things;        /* what a point is: "point", "points"; borrowed */
    const char *metric;                /* borrowed */
    bool higher;                       /* is better */
    int best;                          /* the point that is drawn on top; -1: none */
    struct pm_axis *list;              /* owned */
    int count, capacity;
};

/* PM_AXIS_AUTO: logarithmic if the numbers are positive and span more than a factor of 10. */
enum pm_axis_kind { PM_AXIS_AUTO, PM_AXIS_LINEAR, PM_AXIS_LOG };
/* Adds an axis. values: [points]; NULL: the point does not have the key. entries: the list from
 * which objects come, whose name is enough if it is the only one in the list; or NULL. */
void pm_axes_add(struct pm_axes *a, const char *key, const cJSON *const *values,
                 enum pm_axis_kind kind, const cJSON *entries);
/* Frees the axes. */
void pm_axes_free(struct pm_axes *a);

/* axes_charts.c: writes the parallel coordinates of all axes and the metric, and a small chart of
 * the metric for each axis, as figures of a <div class="charts">. Writes nothing without a point
 * that has the metric. */
void pm_axes_write(struct pm_str *html, const struct pm_axes *a);

#endif
