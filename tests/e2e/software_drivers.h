/* software_drivers: the software Vulkan drivers that the tests use. VK_DRIVER_FILES lists those
 * that are installed. */
#ifndef SOFTWARE_DRIVERS_H
#define SOFTWARE_DRIVERS_H

#include "base/unit.h"

static inline bool has_driver(const char *part)
{
    const char *list = getenv("VK_DRIVER_FILES");

    return list && strstr(list, part);
}

static inline bool has_lavapipe(void)
{
    return has_driver("lvp_icd");
}

static inline bool has_both_drivers(void)
{
    return has_lavapipe() && has_driver("swiftshader");
}

/* Skip the test without lavapipe, or without lavapipe and SwiftShader. */
static inline void need_lavapipe(void)
{
    if (has_lavapipe())
        return;
    print_message("lavapipe is not installed\n");
    skip();
}

static inline void need_both_drivers(void)
{
    if (has_both_drivers())
        return;
    print_message("lavapipe and SwiftShader are not both installed\n");
    skip();
}

#endif
