/* conv_pick: see conv_pick.h. The tiled kernels are in conv_tiles.h. The levels of a row are in the
 * order that the device class prefers. Every level accepts every shape, so parity tests run all
 * levels on every device. */
#include "conv_pick.h"

#include "conv_tiles.h"
#include "dispatches.h"

/* The tables of structure R come first; GPUs have none. Then come the ways of structure S. The
 * naive shader is last. */
static bool product_pick(const struct pm_caps *caps, const struct conv_product *m, int level,
                         const char *simple, size_t items, struct pm_picks *out)
{
    const struct conv_table_r *tables[PM_CONV_TABLES_R];
    struct conv_way_s ways[PM_CONV_WAYS_S];
    int count_r = pm_conv_tables_r(caps, tables), count_s = pm_conv_ways_s(caps, m, ways);

    *out = (struct pm_picks){ 0 };
    if (level < count_r)
        return pm_conv_run_r(caps, tables[level], m, out);
    level -= count_r;
    if (level < count_s)
        return pm_conv_run_s(&ways[level], m, out);
    if (level > count_s)
        return false;
    pm_pick_naive(out, simple, items);
    if (!m->filter)
        pm_conv_moments(out, m);
    return true;
}

bool pm_conv2d_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct conv2d_params *p = params;
    const struct conv_product m = pm_conv_product(p, false);

    (void)count;
    return product_pick(caps, &m, level, "conv2d_fwd_naive", (size_t)p->n * p->oh * p->ow * p->k,
                        out);
}

bool pm_conv2d_bwd_data_pick(const struct pm_caps *caps, const void *params, size_t count,
                             int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;
    const struct conv_product m = pm_conv_product(p, true);

    (void)count;
    return product_pick(caps, &m, level, "conv2d_bwd_data_naive", (size_t)p->n * p->h * p->w * p->c,
                        out);
}

bool pm_conv2d_bwd_filter_pick(const struct pm_caps *caps, const void *params, size_t count,
                               int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;
    const struct conv_product m = pm_conv_product_filter(p);

    (void)count;
    return product_pick(caps, &m, level, "conv2d_bwd_filter_naive", pm_conv_weights(p), out);
}
