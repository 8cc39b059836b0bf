/* spirv: reads and rewrites the embedded modules, for every backend that runs shaders. */
#ifndef PM_SPIRV_H
#define PM_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Properties of a module, with its specialization constants fixed. */
struct pm_module_info {
    uint32_t local[3];      /* workgroup size */
    uint32_t push_bytes;    /* bytes used of the push block; 0: none */
    uint32_t shared_bytes;  /* workgroup memory */
    bool uses_group_count;  /* reads gl_NumWorkGroups: a dispatch must not be split */
    bool reads_presence;    /* declares the constant PM_PRESENCE */
    bool int64, int16, float64, float16, storage16, subgroup_arithmetic, coopmat;
};
/* Constant id of shaders/lib/presence.glsl; above the ids that a pick() sets. */
enum { PM_PRESENCE = 31 };
/* Whether a module declares the constant PM_PRESENCE. */
bool pm_spirv_reads_presence(const uint32_t *in, size_t words);
/* Copies a module and replaces its specialization constants with plain ones: spec[i] for constant
 * id i, `present` for id PM_PRESENCE (bit i: the row's buffer i is present), its default for an id
 * >= specs. Some drivers unroll and fold less around specialization constants. *out (pm_free) has
 * *out_words words. */
int pm_spirv_freeze(const uint32_t *in, size_t words, const uint32_t *spec, int specs,
                    uint32_t present, uint32_t **out, size_t *out_words,
                    struct pm_module_info *info);

#endif
