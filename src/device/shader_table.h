/* The embedded SPIR-V modules, by name; the table ends with a NULL name. */
#ifndef PM_SHADER_TABLE_H
#define PM_SHADER_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct pm_shader {
    const char *name;
    const uint32_t *words;
    size_t bytes;
};
extern const struct pm_shader pm_shader_table[];

#endif
