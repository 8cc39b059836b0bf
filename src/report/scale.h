/* scale: a linear or logarithmic axis of a figure, and the round values beside it. */
#ifndef PM_SCALE_H
#define PM_SCALE_H

#include <stdbool.h>

struct pm_scale {
    double from, to; /* from < to; positive for a logarithmic scale */
    bool log;
};
/* The place of a value: 0 at from, 1000 at to. */
double pm_scale_at(const struct pm_scale *s, double v);
/* Round values within the scale, about `wanted` on a linear one; on a logarithmic one the powers of
 * ten, with 2 and 5 between where they are few. Returns their number. */
enum { PM_SCALE_TICKS = 16 };
int pm_scale_ticks(const struct pm_scale *s, int wanted, double out[PM_SCALE_TICKS]);

#endif
