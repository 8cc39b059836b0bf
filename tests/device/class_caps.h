/* class_caps: what a usual device of a class can do, for tests that pick variants without one. */
#ifndef CLASS_CAPS_H
#define CLASS_CAPS_H

#include <pumice/kernel.h>

static inline struct pm_caps class_caps(enum pm_class class)
{
    struct pm_caps c = {
        .runs_shaders = true, .last_group = true, .device_class = class, .subgroup_size = 32,
        .max_workgroup_size = { 1024, 1024, 64 }, .max_workgroup_invocations = 1024,
        .max_groups = { 65535, 65535, 65535 }, .shared_bytes = 32768,
    };

    if (class == PM_CLASS_LAVAPIPE)
        c.subgroup_size = 8, c.int64 = true;
    if (class == PM_CLASS_SWIFTSHADER)
        c.subgroup_size = 4;
    if (class == PM_CLASS_POCL)
        c.subgroup_size = 8, c.last_group = false;
    return c;
}

#endif
