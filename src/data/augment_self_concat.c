/* random_self_concat_image, after TensorFlow's Object Detection API: the picture is joined with
 * itself, below or at the right or both, so that it has more and smaller objects. Draws: flip
 * (below), grey (at the right). Maps of labels are not carried: two objects would have one number
 * in an instance map. */
#include "data/augment.h"

struct concat_cfg {
    double concat_vertical_probability, concat_horizontal_probability;
};

static const struct pm_opt concat_opts[] = {
    PM_DOUBLE(concat_cfg, concat_vertical_probability, 0.1, 0, 1,
              "share of the pictures that get a copy below"),
    PM_DOUBLE(concat_cfg, concat_horizontal_probability, 0.1, 0, 1,
              "share of the pictures that get a copy at the right"),
    { 0 },
};

static void draw_concat(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                        struct pm_draws *out)
{
    const struct concat_cfg *c = cfg;

    (void)s;
    out->flip = pm_rng_uniform(r) < c->concat_vertical_probability;
    out->grey = pm_rng_uniform(r) < c->concat_horizontal_probability;
}

static int place_concat(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                        struct pm_geometry *g)
{
    (void)cfg, (void)t;
    pm_geometry_repeat(g, (1 + d->flip) * pm_geometry_height(g),
                       (1 + d->grey) * pm_geometry_width(g));
    return PM_OK;
}

static void concat_objects(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    (void)cfg;
    pm_scene_repeat(o, 1 + d->flip, 1 + d->grey);
}

const struct pm_augmentation pm_augmentation_random_self_concat_image = {
    .name = "random_self_concat_image",
    .help = "joins the picture with a copy of itself, below, at the right, or both",
    .opts = concat_opts,
    .cfg_size = sizeof(struct concat_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL & ~PM_CARRIES_MAPS,
    .draw = draw_concat,
    .place = place_concat,
    .objects = concat_objects,
};
