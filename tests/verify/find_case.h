/* find_case: finds a source of the verification, and a kernel among its results, by name. */
#ifndef FIND_CASE_H
#define FIND_CASE_H

#include "device/drivers.h"

#include <pumice/verify.h>

#include <string.h>

static inline void find_case(const char *name, struct pm_verify_source *s)
{
    for (size_t i = 0; pm_verify_case(i, s); i++)
        if (strcmp(s->name, name) == 0)
            return;
    fail_msg("no case %s", name);
}

static inline bool has_kernel(const struct pm_verify *v, const char *name)
{
    size_t count;
    const struct pm_verified *list = pm_verify_results(v, &count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].kernel, name) == 0)
            return true;
    return false;
}

#endif
