/* backend: functions that backends call for any device: whether it counts as lost, whether a thread
 * is stuck in it, which variants it avoids. */
#include "device/backend.h"

#include <math.h>
#include <string.h>

static atomic_bool some_caught;

bool pm_device_caught(const struct pm_device *d)
{
    return d ? atomic_load(&d->caught) : atomic_load(&some_caught);
}

void pm_device_catch(struct pm_device *d)
{
    atomic_store(&some_caught, true);
    atomic_store(&d->caught, true);
    atomic_store(&d->hung, true);
    atomic_store(&d->lost, true);
}

void pm_timeout_start(struct pm_timeout *p, uint64_t progress)
{
    *p = (struct pm_timeout){ .seen = progress, .called = pm_seconds() };
}

double pm_hang_seconds(const struct pm_device *d)
{
    return d->options.hang_seconds > 0 ? d->options.hang_seconds : 300;
}

double pm_hang_limit(const struct pm_device *d)
{
    return fmax(pm_hang_seconds(d), 20 * atomic_load(&d->longest));
}

bool pm_timeout_passed(struct pm_timeout *p, double limit, uint64_t progress)
{
    double now = pm_seconds();

    p->idle += fmin(now - p->called, 1);
    p->called = now;
    if (progress != p->seen)
        p->idle = 0;
    p->seen = progress;
    return p->idle > limit;
}

int pm_device_alive(const struct pm_device *d)
{
    return atomic_load(&d->lost) ? pm_fail(PM_ELOST, "%s (%s) was lost before", d->info.address,
                                           d->info.name) : PM_OK;
}

bool pm_device_avoids(const struct pm_device *d, const char *kernel, const char *variant)
{
    for (size_t i = 0; i < d->avoided_count; i++)
        if (strcmp(d->avoided[i].kernel, kernel) == 0 &&
            strcmp(d->avoided[i].variant, variant) == 0)
            return true;
    return false;
}

void pm_device_avoid(struct pm_device *d, const char *kernel, const char *variant)
{
    if (pm_device_avoids(d, kernel, variant))
        return;
    PM_GROW(d->avoided, d->avoided_count, d->avoided_capacity);
    d->avoided[d->avoided_count++] = (struct pm_avoided){ pm_strdup(kernel), pm_strdup(variant) };
}
