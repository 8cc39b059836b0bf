/* A device with fixed capabilities, for plans: those of a GPU with tile kernels (an RX 7900 XTX
 * under RADV). It chooses variants and counts a program as a Vulkan device does, without a driver.
 * It runs nothing. */
#ifndef TILE_DEVICE_H
#define TILE_DEVICE_H

#include "device/arrangement.h"
#include "device/backend.h"

#include <string.h>

struct tile_device {
    struct pm_device base;
    bool prints; /* each dispatch, while a program is counted */
};

static inline bool tile_pick(const struct pm_device *d, const struct pm_kernel *k,
                             const void *params, size_t count, int level, struct pm_picks *out)
{
    memset(out, 0, sizeof *out);
    if (k->pick)
        return k->pick(&d->info.caps, params, count, level, out);
    return level == 0 && pm_pick_elements(k->shader ? k->shader : k->name, 64, count, out);
}

static inline int tile_scratch(const struct pm_device *d, const struct pm_kernel *k,
                               const void *params, size_t count, int level,
                               size_t bytes[PM_MAX_BUFS])
{
    static struct pm_picks picks;

    if (!tile_pick(d, k, params, count, level, &picks))
        return pm_fail(PM_EDEVICE, "%s has no level %d", k->name, level);
    memcpy(bytes, picks.scratch, sizeof picks.scratch);
    return PM_OK;
}

static inline void tile_print(const struct pm_program_desc *desc, const struct pm_picks *picks,
                              const struct pm_arrangement *a)
{
    printf("dispatch,call,kernel,layer,variant,shader,groups,barrier,bytes\n");
    for (size_t i = 0; i < a->count; i++) {
        const struct pm_arranged *x = &a->list[i];
        const struct pm_bound_call *c = &desc->calls[x->call];
        const struct pm_dispatch *d = &picks[x->call].d[x->dispatch];

        printf("%zu,%zu,%s,%s,%s,%s,%ux%ux%u,%d,%llu\n", i, x->call, c->kernel->name, c->label,
               picks[x->call].variant, d->shader, x->groups[0], x->groups[1], x->groups[2],
               x->barrier,
               x->begins ? (unsigned long long)pm_call_bytes(c, picks[x->call].scratch) : 0);
    }
}

static inline int tile_count(struct pm_device *d, const struct pm_program_desc *desc,
                             struct pm_counts *out)
{
    const size_t n = desc->calls_count;
    struct pm_picks *picked = pm_calloc(n + 1, sizeof *picked);
    const struct pm_picks **picks = pm_calloc(n + 1, sizeof *picks);
    bool (*whole)[PM_MAX_DISPATCHES] = pm_calloc(n + 1, sizeof *whole);
    const struct pm_arrange_input in = { .desc = desc, .picks = picks, .whole = whole,
                                         .flops = 2e12, .bytes = 1e11, .segment_seconds = 0.1 };
    struct pm_arrangement a;
    int err = PM_OK;

    for (size_t i = 0; i < n; i++) {
        const struct pm_bound_call *c = &desc->calls[i];

        picks[i] = &picked[i];
        if (!tile_pick(d, c->kernel, c->params, c->count, 0, &picked[i]))
            PM_TRY(pm_fail(PM_EDEVICE, "%s has no level 0", c->kernel->name));
    }
    pm_arrange(&in, &a);
    *out = a.counts;
    if (((struct tile_device *)d)->prints)
        tile_print(desc, picked, &a);
    pm_arrangement_free(&a);
out:
    pm_free(picked);
    pm_free(picks);
    pm_free(whole);
    return err;
}

static inline struct tile_device tile_device(bool prints)
{
    static const struct pm_device_ops ops = { .call_scratch = tile_scratch,
                                              .program_count = tile_count };

    return (struct tile_device){
        .base = { .ops = &ops,
                  .info = { .address = "tiles",
                            .name = "tile device",
                            .driver = "none",
                            .kind = PM_KIND_DISCRETE,
                            .usable = true,
                            .caps = { .runs_shaders = true, .last_group = true,
                                      .timed_by_queries = true,
                                      .device_class = PM_CLASS_AMD_RDNA,
                                      .subgroup_size = 64,
                                      .compute_units = 96,
                                      .max_workgroup_size = { 1024, 1024, 1024 },
                                      .max_workgroup_invocations = 1024,
                                      .max_groups = { UINT32_MAX, 65535, 65535 },
                                      .shared_bytes = 65536,
                                      .max_buffer_bytes = 4294967292,
                                      .int64 = true,
                                      .float16 = true,
                                      .storage16 = true,
                                      .subgroup_arithmetic = true,
                                      .coopmat = { 16, 16, 16 } } } },
        .prints = prints,
    };
}

#endif
