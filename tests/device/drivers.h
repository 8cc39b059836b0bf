/* The software drivers for device tests. */
#ifndef DRIVERS_H
#define DRIVERS_H

#include "base/unit.h"
#include "device/ok.h"
#include "device/vulkan/device_vk.h"

/* Makes the loader use the installed software drivers, unless the environment names others. */
static inline void use_software_drivers(void)
{
    static const char *const known[] = {
        "/usr/share/vulkan/icd.d/lvp_icd.json",
        "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
        "/usr/share/vulkan/icd.d/lvp_icd.aarch64.json",
        "/usr/lib/chromium/vk_swiftshader_icd.json",
    };
    struct pm_str s = { 0 };

    if (getenv("VK_DRIVER_FILES") || getenv("VK_ICD_FILENAMES"))
        return;
    for (size_t i = 0; i < PM_COUNT(known); i++)
        if (access(known[i], R_OK) == 0)
            pm_str_add(&s, "%s%s", s.length ? ":" : "", known[i]);
    if (s.text) {
        setenv("VK_DRIVER_FILES", s.text, 1);
        setenv("VK_ICD_FILENAMES", s.text, 1); /* loaders older than 1.3.207 */
    }
    pm_str_free(&s);
}

/* One of the program's own shaders, by name. */
static inline const struct pm_shader *shader_named(const char *name)
{
    for (const struct pm_shader *s = pm_shader_table; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    fail_msg("no shader %s", name);
    return NULL;
}

/* Opens a device, with validation when the layer is installed. */
static inline struct vk_device *open_device(const struct pm_device_info *info)
{
    struct pm_device_options options = { .validate = true };
    struct pm_device *d = NULL;

    if (pm_device_open(info, &options, &d) < 0) {
        options.validate = false;
        if (pm_device_open(info, &options, &d) < 0)
            fail_msg("%s", pm_error_text());
        print_message("(without the validation layer)\n");
    }
    return (struct vk_device *)d;
}

static inline void close_device(struct vk_device *v)
{
    struct pm_device *d = &v->shared.base;

    pm_device_close(&d);
}

#endif
