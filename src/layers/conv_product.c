/* conv_product: sizes of the products that convolutions compute, and the addition of their parts;
 * see conv_tiles.h. */
#include "conv_pick.h"
#include "conv_tiles.h"

#include "dispatches.h"

size_t pm_conv_weights(const struct conv2d_params *p)
{
    return (size_t)p->kh * p->kw * (p->c / p->groups) * p->k;
}

struct pm_rows pm_conv_image(const struct conv2d_params *p, bool back)
{
    const size_t n = (size_t)p->n;

    return back ? (struct pm_rows){ n * p->h * p->w, p->c } : (struct pm_rows){ n * p->oh * p->ow,
                                                                              p->k };
}

struct conv_product pm_conv_product(const struct conv2d_params *p, bool back)
{
    return (struct conv_product){
        .p = p,
        .back = back,
        .terms = (back ? p->k : p->c) / p->groups,
        .columns = (back ? p->c : p->k) / p->groups,
        .rows = (size_t)p->n * (back ? pm_ceil_div(p->h, p->stride_h) : (uint32_t)p->oh)
              * (back ? pm_ceil_div(p->w, p->stride_w) : (uint32_t)p->ow),
        .phases = back ? p->stride_h * p->stride_w : 1,
    };
}

struct conv_product pm_conv_product_filter(const struct conv2d_params *p)
{
    return (struct conv_product){
        .p = p,
        .filter = true,
        .terms = p->c / p->groups,
        .columns = p->k / p->groups,
        .rows = (size_t)p->kh * p->kw * (p->c / p->groups),
        .phases = 1,
    };
}

size_t pm_conv_result_bytes(const struct conv_product *m)
{
    const struct conv2d_params *p = m->p;

    return sizeof(float) * (m->filter ? pm_conv_weights(p)
                          : m->back   ? (size_t)p->n * p->h * p->w * p->c
                                      : (size_t)p->n * p->oh * p->ow * p->k);
}

void pm_conv_combine(struct pm_picks *out, const struct conv_product *m, uint32_t parts)
{
    size_t bytes = pm_conv_result_bytes(m);

    if (parts == 1)
        return;
    const char *shader = m->filter ? "conv2d_combine" : "conv2d_combine_image";
    struct pm_dispatch *d = pm_pick_items(out, shader, bytes / sizeof(float));
    pm_pick_constant(d, parts);
    if (!m->filter)
        pm_pick_constant(d, m->back);
    out->scratch[2] += bytes * parts;
}

void pm_conv_moments(struct pm_picks *out, const struct conv_product *m)
{
    const struct conv2d_params *p = m->p;
    const struct pm_rows image = pm_conv_image(p, m->back);
    const bool four = image.channels % 4 == 0;
    const size_t items = pm_moment_chunks(image) * (size_t)image.channels / (four ? 4 : 1);
    const size_t groups = (items + 63) / 64;

    if (!p->moments)
        return;
    struct pm_dispatch *d =
        pm_pick_add(out, four ? "conv2d_moments4" : "conv2d_moments", 64, 1);
    pm_pick_constant(d, m->back);
    d->groups[0] = groups > PM_GRID_MAX ? PM_GRID_MAX : (uint32_t)groups;
}
