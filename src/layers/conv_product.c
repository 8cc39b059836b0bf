/* conv_product: sizes of the products that convolutions compute, and the split of filter gradients
 * into parts; see conv_tiles.h. */
#include "conv_tiles.h"

#include "dispatches.h"

size_t pm_conv_weights(const struct conv2d_params *p)
{
    return (size_t)p->kh * p->kw * (p->c / p->groups) * p->k;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
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

uint32_t pm_conv_parts(const struct conv_product *m, size_t groups, size_t wanted, size_t most)
{
    const struct conv2d_params *p = m->p;
    size_t pixels = (size_t)p->n * p->oh * p->ow, bytes = pm_conv_weights(p) * sizeof(float);
    uint32_t parts = 1;

    most = min_size(most, 8192);
    while (parts < 1024 && (groups * parts < wanted || pixels / parts > most)
           && pixels / (2 * parts) >= 64 && 2 * parts * bytes <= (size_t)64 << 20)
        parts *= 2;
    return parts;
}

void pm_conv_combine(struct pm_picks *out, const struct conv_product *m, uint32_t parts)
{
    if (parts == 1)
        return;
    pm_pick_constant(pm_pick_items(out, "conv2d_combine", pm_conv_weights(m->p)), parts);
    out->scratch[2] = pm_conv_weights(m->p) * sizeof(float) * parts;
}
