/* random_flip: the picture is mirrored left to right with the given probability. Draws: flip. */
#include "data/augment.h"

static const struct pm_opt opts[] = {
    PM_DOUBLE(random_flip_cfg, probability, 0.5, 0, 1, "share of the pictures that are mirrored"),
    { 0 },
};

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    (void)s;
    out->flip = pm_rng_uniform(r) < ((const struct random_flip_cfg *)cfg)->probability;
}

static int place(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                 struct pm_geometry *g)
{
    (void)cfg, (void)t;
    if (d->flip)
        pm_geometry_mirror(g);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_flip = {
    .name = "random_flip",
    .help = "mirrors left to right; left and right keypoints are exchanged",
    .opts = opts,
    .cfg_size = sizeof(struct random_flip_cfg),
    .carries = PM_CARRIES_ALL,
    .draw = draw,
    .place = place,
};
