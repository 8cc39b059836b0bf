/* fit_clock: relates a device's clock to the host's.
 *
 * Three facts limit the fit: a run begins after its submission, it has ended when a wait for it
 * returns, and it does not overlap the run before it. At first the fit is too early by the time a
 * submission takes; later runs only improve it. If a run is read after one that followed it (LATE
 * seconds at most), it uses the later run's fit. */
#include "device/pipelines.h"

enum { LATE = 10 };

double pm_fit_clock(struct pm_clock_fit *f, double since, double seconds, uint64_t end,
                    double submitted, double now)
{
    double at = f->seconds + since;

    if (f->seconds > 0 && since < 0 && at > submitted - LATE)
        return at;
    if (at < submitted || f->seconds == 0)
        at = submitted;
    if (at + seconds > now)
        at = now - seconds;
    if (at < f->seconds && since >= 0)
        at = f->seconds;
    f->stamp = end;
    f->seconds = at + seconds;
    return at;
}
