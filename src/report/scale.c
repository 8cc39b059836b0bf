/* scale: scale.h has the contract. */
#include "report/scale.h"

#include <math.h>

double pm_scale_at(const struct pm_scale *s, double v)
{
    const double from = s->log ? log10(s->from) : s->from, to = s->log ? log10(s->to) : s->to;

    return 1000 * ((s->log ? log10(v) : v) - from) / (to - from);
}

static int linear_ticks(const struct pm_scale *s, int wanted, double out[PM_SCALE_TICKS])
{
    const double raw = (s->to - s->from) / wanted, power = pow(10, floor(log10(raw)));
    const double step = power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 :
                                 raw / power < 7.5 ? 5 : 10);
    int n = 0;

    for (double k = ceil(s->from / step - 1e-9);
         n < PM_SCALE_TICKS && k * step <= s->to + step * 1e-9; k++)
        out[n++] = k * step + 0.0; /* -0 becomes 0 */
    return n;
}

static int log_ticks(const struct pm_scale *s, double out[PM_SCALE_TICKS])
{
    static const double parts[] = { 1, 2, 5 };
    const double decades = log10(s->to / s->from);
    const int every = decades > 6 ? (int)ceil(decades / 6) : 1;
    int n = 0;

    for (int e = (int)floor(log10(s->from)); e <= (int)ceil(log10(s->to)); e += every)
        for (int k = 0; k < (decades > 2.2 ? 1 : 3); k++) {
            const double v = parts[k] * pow(10, e);
            if (v >= s->from && v <= s->to && n < PM_SCALE_TICKS)
                out[n++] = v;
        }
    return n > 1 ? n : linear_ticks(s, 4, out);
}

int pm_scale_ticks(const struct pm_scale *s, int wanted, double out[PM_SCALE_TICKS])
{
    return s->log ? log_ticks(s, out) : linear_ticks(s, wanted, out);
}
