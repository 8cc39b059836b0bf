/* dispatches: helpers for pick() functions of tiled kernels. */
#ifndef PM_DISPATCHES_H
#define PM_DISPATCHES_H

#include <pumice/kernel.h>

#include <assert.h>

enum { PM_GRID_MAX = 65535 }; /* most groups along one dimension */

static inline uint32_t pm_ceil_div(size_t a, size_t b)
{
    assert(b > 0);
    return (uint32_t)((a + b - 1) / b);
}

/* Appends a dispatch with a workgroup of `lanes` x `lines` x 1 and no further constants. */
static inline struct pm_dispatch *pm_pick_add(struct pm_picks *out, const char *shader,
                                              uint32_t lanes, uint32_t lines)
{
    struct pm_dispatch *d = &out->d[out->count++];

    *d = (struct pm_dispatch){
        .shader = shader, .spec = { lanes, lines, 1 }, .specs = 3, .groups = { 1, 1, 1 },
    };
    return d;
}

/* Sets the next constant_id, starting at 3. */
static inline void pm_pick_constant(struct pm_dispatch *d, uint32_t value)
{
    d->spec[d->specs++] = value;
}

/* Spreads groups over dimensions `low` and `low` + 1. Shaders compute the group's number as
 * low + 65535 * high. */
static inline void pm_pick_spread(struct pm_dispatch *d, int low, size_t groups)
{
    d->groups[low] = groups > PM_GRID_MAX ? PM_GRID_MAX : (uint32_t)groups;
    d->groups[low + 1] = pm_ceil_div(groups, PM_GRID_MAX);
}

/* One item per invocation, numbered as by conv_item() of lib/conv.glsl. */
static inline struct pm_dispatch *pm_pick_items(struct pm_picks *out, const char *shader,
                                                size_t items)
{
    struct pm_dispatch *d = pm_pick_add(out, shader, 64, 1);

    pm_pick_spread(d, 0, pm_ceil_div(items, 64));
    return d;
}

/* The last level of a row: one item per invocation. */
static inline bool pm_pick_naive(struct pm_picks *out, const char *shader, size_t items)
{
    pm_pick_items(out, shader, items);
    out->variant = "naive";
    return true;
}

#endif
