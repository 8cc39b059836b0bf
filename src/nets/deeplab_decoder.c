/* deeplab_decoder: finer maps of the backbone are joined with what comes out of the pyramid pooling.
 * Each stage projects one of them (feature_projection0), brings both to the size that its stride says
 * and puts two 3x3 convolutions upon them, joined. */
#include "nets/deeplab.h"

#include <string.h>

enum { PROJECTED = 48 };

/* The backbone's map at a stride; NULL, with the net's error set, when it has none. */
static struct pm_node *low_level(const struct pm_deeplab *d, int stride)
{
    const int index = stride == 4 ? 0 : stride == 8 ? 1 : stride == 16 ? 2 : -1;
    const char *name = index < 0 ? NULL : d->backbone->low[index];
    struct pm_node *x = name ? pm_net_find(d->net, name) : NULL, *clip = NULL;

    if (x && d->o->bounded_activation)
        clip = pm_net_find(d->net, pm_arena_printf(d->net->arena, "%s/clip", name));
    if (clip)
        return clip;
    if (!x && !d->net->error)
        d->net->error = pm_fail(PM_ECONFIG, "model.decoder_strides: deeplab_%s has no map for a "
                                "decoder at stride %d: strides are 4, 8 and 16, or [] for no decoder",
                                d->backbone->name, stride);
    return x;
}

static const char *name_of(const struct pm_deeplab *d, const char *what, int stage)
{
    return stage ? pm_arena_printf(d->net->arena, "%s/%s_%d", d->scope, what, stage)
                 : pm_arena_printf(d->net->arena, "%s/%s", d->scope, what);
}

/* Two 3x3 convolutions; the plain ones are named as a repeated layer's are. */
static struct pm_node *refine(const struct pm_deeplab *d, struct pm_node *x, int stage)
{
    const int filters = d->o->decoder_filters;
    const char *plain = name_of(d, "decoder_conv0", stage), *last = plain + strlen(d->scope) + 1;

    if (d->o->decoder_separable) {
        x = pm_deeplab_separable(d, name_of(d, "decoder_conv0", stage), x, filters, 3, 1);
        return pm_deeplab_separable(d, name_of(d, "decoder_conv1", stage), x, filters, 3, 1);
    }
    for (int i = 1; i <= 2; i++)
        x = pm_deeplab_conv(d, pm_arena_printf(d->net->arena, "%s/%s_%d", plain, last, i), x, filters,
                            3, 1);
    return x;
}

static struct pm_node *stage_of(const struct pm_deeplab *d, struct pm_node *x, int stage)
{
    const int stride = d->o->decoder_strides.v[stage];
    const int size[2] = { pm_deeplab_size(d->size[0], 1 / (float)stride),
                          pm_deeplab_size(d->size[1], 1 / (float)stride) };
    struct pm_node *low = low_level(d, stride), *both[2];

    if (!low)
        return x;
    low = pm_deeplab_conv(d, name_of(d, "feature_projection0", stage), low, PROJECTED, 1, 1);
    both[0] = pm_deeplab_resize(d, name_of(d, "resized", stage), x, size);
    both[1] = pm_deeplab_resize(d, name_of(d, "projection_resized", stage), low, size);
    x = pm_net_add_many(d->net, name_of(d, "joined", stage), both, 2, "concat");
    return refine(d, x, stage);
}

struct pm_node *pm_deeplab_decoder(const struct pm_deeplab *d, struct pm_node *x)
{
    for (int i = 0; i < d->o->decoder_strides.count; i++)
        x = stage_of(d, x, i);
    return x;
}
