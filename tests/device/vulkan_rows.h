/* Opens a Vulkan device that has the shaders of shader_rows.h. */
#ifndef VULKAN_ROWS_H
#define VULKAN_ROWS_H

#include "device/drivers.h"
#include "device/shader_rows.h"

/* Opens a device that uses these shaders. */
static inline struct vk_device *open_with_shaders(const struct pm_device_info *info)
{
    struct vk_device *d = open_device(info);

    d->shared.pipelines.extra = test_shaders;
    return d;
}

#endif
