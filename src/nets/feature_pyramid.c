/* feature_pyramid: the maps that a detector predicts boxes from, made of an extractor's maps.
 *   Extra layers (Liu et al. 2016): behind the last map, 1x1 convolutions to half the width and 3x3
 *     convolutions with stride 2.
 *   Top-down (Lin et al. 2017): the sum of each map's 1x1 projection and the coarser sum enlarged
 *     to its size, then a 3x3 convolution. The coarsest map is only projected. 3x3 convolutions
 *     with stride 2 make further maps. The sum that is carried down is not the convolved one.
 *   Pooling: one map and its 2x2 maxima, which all have the same channels. The classifier's layers
 *     after this map, which the original builds without using them, are not built.
 * Names are those of TensorFlow's Object Detection API. */
#include "nets/ssd.h"

static int depth_of(const struct pm_ssd *s, double width)
{
    const int scaled = (int)(width * s->nets.depth_multiplier);

    return scaled < s->nets.min_depth ? s->nets.min_depth : scaled;
}

static const char *name_of(const struct pm_ssd *s, const char *name)
{
    return pm_arena_printf(s->net->arena, "%s%s", s->scope, name);
}

const char *pm_pyramid_scope(const struct pm_ssd *s)
{
    return s->form->feature_scope ? s->form->feature_scope : "FeatureExtractor";
}

struct pm_node *pm_pyramid_map(const struct pm_ssd *s, const struct pm_extractor_map *m)
{
    return pm_net_find(s->net,
                       pm_arena_printf(s->net->arena, "%s/%s", pm_pyramid_scope(s), m->node));
}

/* ---- extra layers -------------------------------------------------------------------------- */

/* Builds extra map `index` of the layout on x. from: name of the extractor's last map. */
static struct pm_node *extra(const struct pm_ssd *s, const char *from, int index, struct pm_node *x)
{
    struct pm_arena *a = s->net->arena;
    const int width = s->form->depths[index], kernel = s->form->kernels ? s->form->kernels[index]
                                                                        : 3;
    const int narrow = depth_of(s, width / 2.0), wide = depth_of(s, width);
    const char *name = name_of(s, pm_arena_printf(a, "%s_1_Conv2d_%d_1x1_%d", from, index, narrow));
    struct pm_unit u = { .name = name, .filters = narrow, .kernel = 1 };

    x = pm_unit_build(s, &s->hyperparams, &u, x);
    name = name_of(s, pm_arena_printf(a, "%s_2_Conv2d_%d_%dx%d_s2_%d", from, index, kernel, kernel,
                                      wide));
    u = (struct pm_unit){ .name = name, .filters = wide, .kernel = kernel, .stride = 2 };
    if (!s->o->use_depthwise)
        return pm_unit_build(s, &s->hyperparams, &u, x);
    u.name = pm_arena_printf(a, "%s_depthwise", name);
    u.filters = 0;
    x = pm_unit_build(s, &s->hyperparams, &u, x);
    u = (struct pm_unit){ .name = name, .filters = wide, .kernel = 1 };
    return pm_unit_build(s, &s->hyperparams, &u, x);
}

void pm_pyramid_extra(struct pm_ssd *s)
{
    const struct pm_extractor *e = s->form->extractor;

    for (s->count = 0; s->count < s->o->num_layers; s->count++) {
        const int i = s->count;

        s->maps[i] = i < e->count ? pm_pyramid_map(s, &e->maps[i])
                                  : extra(s, e->maps[e->count - 1].name, i, s->maps[i - 1]);
    }
}

/* ---- top-down ------------------------------------------------------------------------------ */

struct pm_node *pm_pyramid_join(const struct pm_ssd *s, const char *name, struct pm_node *coarse,
                                struct pm_node *fine)
{
    const int *dim = fine->out_shape.dim;

    /* For maps of odd sizes this equals repeating each pixel twice and cropping. */
    coarse = pm_net_add(s->net, name, coarse, "resize size=[%d,%d] method=nearest "
                        "coordinates=asymmetric rounding=floor", dim[1], dim[2]);
    return pm_net_add_many(s->net, pm_arena_printf(s->net->arena, "%s/sum", name),
                           (struct pm_node *[]){ coarse, fine }, 2, "add");
}

/* Builds the 1x1 projection of one of the extractor's maps; k counts from 1. */
static struct pm_node *projection(const struct pm_ssd *s, const struct pm_extractor_map *m, int k,
                                  int depth)
{
    const struct pm_unit u = {
        .name = name_of(s, pm_arena_printf(s->net->arena, "fpn/projection_%d", k)),
        .filters = depth, .kernel = 1, .plain = true,
    };

    return pm_unit_build(s, &s->hyperparams, &u, pm_pyramid_map(s, m));
}

/* Builds a 3x3 convolution of the pyramid. */
static struct pm_node *convolved(const struct pm_ssd *s, const char *name, int stride, int depth,
                                 struct pm_node *x)
{
    const struct pm_unit u = {
        .name = name_of(s, pm_arena_printf(s->net->arena, "fpn/%s", name)), .filters = depth,
        .kernel = 3, .stride = stride, .separable = s->o->use_depthwise,
    };

    return pm_unit_build(s, &s->hyperparams, &u, x);
}

/* Builds the convolution that makes the k-th map above the extractor's, k = 0, 1, ... */
static struct pm_node *coarser(const struct pm_ssd *s, int k, int top, int depth, struct pm_node *x)
{
    const struct pm_extractor *e = s->form->extractor;

    return convolved(s, pm_arena_printf(s->net->arena, "%s%d", e->coarse,
                                        (e->first ? e->first : top) + k), 2, depth, x);
}

void pm_pyramid_top_down(struct pm_ssd *s)
{
    const struct pm_extractor *e = s->form->extractor;
    const int least = s->o->fpn_min_level, most = s->o->fpn_max_level, top = most < 5 ? most : 5;
    const int depth = depth_of(s, s->o->additional_layer_depth), levels = top - least + 1;
    struct pm_arena *a = s->net->arena;
    struct pm_node *x = NULL;

    if (!s->net->error && (least > most || most - least >= PM_MAX_LEVELS))
        s->net->error = pm_fail(PM_ECONFIG, "model.fpn_max_level: %d is outside %d..%d, which "
                                "model.fpn_min_level %d allows", most, least,
                                least + PM_MAX_LEVELS - 1, least);
    if (s->net->error)
        return;
    for (int i = levels - 1; i >= 0; i--) {
        struct pm_node *p = projection(s, &e->levels[least - 2 + i], i + 1, depth);

        x = x ? pm_pyramid_join(s, name_of(s, pm_arena_printf(a, "fpn/top_down_%d", i + 1)), x, p)
              : p;
        s->maps[i] = i == levels - 1 ? x : convolved(s, pm_arena_printf(a, "smoothing_%d", i + 1),
                                                     1, depth, x);
    }
    for (s->count = levels; s->count <= most - least; s->count++)
        s->maps[s->count] = coarser(s, s->count - levels, top, depth, s->maps[s->count - 1]);
}

/* ---- pooling ------------------------------------------------------------------------------- */

void pm_pyramid_pooling(struct pm_ssd *s)
{
    struct pm_arena *a = s->net->arena;
    struct pm_node *x = pm_pyramid_map(s, &s->form->extractor->maps[0]);
    const int depth = s->form->pooled;
    const struct pm_unit u = {
        .name = name_of(s, pm_arena_printf(a, "Base_Conv2d_1x1_%d", depth)), .filters = depth,
        .kernel = 1,
    };

    s->maps[0] = depth ? pm_unit_build(s, &s->hyperparams, &u, x) : x;
    for (s->count = 1; s->count < s->o->num_layers; s->count++)
        s->maps[s->count] = pm_net_add(
            s->net, name_of(s, pm_arena_printf(a, "MaxPool2d_%d_2x2", s->count - 1)),
            s->maps[s->count - 1], "max_pool kernel=2 stride=2 padding=same");
}
