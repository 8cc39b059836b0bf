/* Shared by the tests of clones: a check that a call succeeds, and the CPU device for clones. */
#ifndef PUMICE_TESTS_CLONES_SETUP_H
#define PUMICE_TESTS_CLONES_SETUP_H

#include <pumice/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline void check(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

static inline struct pm_device_info cpu(void)
{
    struct pm_device_info *list, info;
    size_t count, index;

    check(pm_device_list(&list, &count));
    check(pm_device_find(list, count, "cpu", "test", &index));
    info = list[index];
    pm_free(list);
    return info;
}

#endif
