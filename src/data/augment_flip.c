/* Mirrored and turned pictures: random_flip, random_vertical_flip, random_rotation90. Keypoints
 * change their names with the picture: a left hand becomes a right one. Draws: flip. */
#include "data/augment.h"

#define OPTS(tag, key, turned)                                                                    \
    PM_DOUBLE(tag, probability, 0.5, 0, 1, "share of the pictures that are " turned),             \
        PM_INTS(tag, key, NULL, 0, 100000,                                                        \
                "keypoints by their numbers from 0: point k becomes point number k of this list;" \
                " null = as the data says")

static const struct pm_opt flip_opts[] = {
    OPTS(random_flip_cfg, keypoint_flip_permutation, "mirrored"),
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

/* Every number of 0..count - 1 once. */
static bool is_permutation(const struct pm_ints *list)
{
    for (int i = 0; i < list->count; i++) {
        bool found = false;

        for (int k = 0; k < list->count; k++)
            found |= list->v[k] == i;
        if (!found)
            return false;
    }
    return true;
}

static int check_permutation(const struct pm_ints *list, const char *where, const char *key)
{
    if (is_permutation(list))
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.%s: the %d numbers must be 0..%d, each once", where, key,
                   list->count, list->count - 1);
}

static int check_flip(const void *cfg, const char *where)
{
    return check_permutation(&((const struct random_flip_cfg *)cfg)->keypoint_flip_permutation,
                             where, "keypoint_flip_permutation");
}

/* A sample with keypoints needs a permutation of as many, its own or the row's. */
static int accept_points(const struct pm_ints *list, const struct pm_sample *s, bool needed,
                         const char *where, const char *key)
{
    if (!s->keypoints || !s->points || (!list->count && (!needed || s->mirrored)) ||
        list->count == s->points)
        return PM_OK;
    if (list->count)
        return pm_fail(PM_ECONFIG, "%s: objects have %d keypoints, and %s of input.augment %d "
                       "numbers: give one per keypoint", where, s->points, key, list->count);
    return pm_fail(PM_ECONFIG, "%s: objects have %d keypoints, and input.augment does not say "
                   "which of them change places in a mirrored picture: set %s", where, s->points,
                   key);
}

static int accept_flip(const void *cfg, const struct pm_sample *s, const char *where)
{
    return accept_points(&((const struct random_flip_cfg *)cfg)->keypoint_flip_permutation, s, true,
                         where, "keypoint_flip_permutation");
}

static void rename_points(const struct pm_ints *list, const int *own, struct pm_scene_objects *o)
{
    const int *permutation = list->count ? list->v : own;

    if (permutation && o->sample->keypoints)
        pm_scene_permute(o, permutation);
}

static void flip_points(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    if (d->flip)
        rename_points(&((const struct random_flip_cfg *)cfg)->keypoint_flip_permutation,
                      o->sample->mirrored, o);
}

const struct pm_augmentation pm_augmentation_random_flip = {
    .name = "random_flip",
    .help = "mirrors left to right; left and right keypoints are exchanged",
    .opts = flip_opts,
    .cfg_size = sizeof(struct random_flip_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_flip,
    .accept = accept_flip,
    .draw = draw,
    .place = place,
    .objects = flip_points,
};

/* ---- random_vertical_flip ------------------------------------------------------------------ */

static const struct pm_opt vertical_opts[] = {
    OPTS(random_flip_cfg, keypoint_flip_permutation, "turned upside down"),
    { 0 },
};

static int place_vertical(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                          struct pm_geometry *g)
{
    (void)cfg, (void)t;
    if (d->flip)
        pm_geometry_flip(g);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_vertical_flip = {
    .name = "random_vertical_flip",
    .help = "mirrors top to bottom; left and right keypoints are exchanged",
    .opts = vertical_opts,
    .cfg_size = sizeof(struct random_flip_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_flip,
    .accept = accept_flip,
    .draw = draw,
    .place = place_vertical,
    .objects = flip_points,
};

/* ---- random_rotation90 --------------------------------------------------------------------- */

struct rotation_cfg {
    double probability;
    struct pm_ints keypoint_rot_permutation;
};

static const struct pm_opt rotation_opts[] = {
    PM_DOUBLE(rotation_cfg, probability, 0.5, 0, 1, "share of the pictures that are turned"),
    PM_INTS(rotation_cfg, keypoint_rot_permutation, NULL, 0, 100000,
            "keypoints by their numbers from 0: point k becomes point number k of this list; null "
            "= unchanged"),
    { 0 },
};

static int check_rotation(const void *cfg, const char *where)
{
    return check_permutation(&((const struct rotation_cfg *)cfg)->keypoint_rot_permutation, where,
                             "keypoint_rot_permutation");
}

static int accept_rotation(const void *cfg, const struct pm_sample *s, const char *where)
{
    return accept_points(&((const struct rotation_cfg *)cfg)->keypoint_rot_permutation, s, false,
                         where, "keypoint_rot_permutation");
}

static void draw_rotation(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                          struct pm_draws *out)
{
    (void)s;
    out->flip = pm_rng_uniform(r) < ((const struct rotation_cfg *)cfg)->probability;
}

static int place_rotation(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                          struct pm_geometry *g)
{
    (void)cfg, (void)t;
    if (d->flip)
        pm_geometry_turn(g);
    return PM_OK;
}

static void turn_points(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    if (d->flip)
        rename_points(&((const struct rotation_cfg *)cfg)->keypoint_rot_permutation, NULL, o);
}

const struct pm_augmentation pm_augmentation_random_rotation90 = {
    .name = "random_rotation90",
    .help = "turns by a quarter, counter-clockwise",
    .opts = rotation_opts,
    .cfg_size = sizeof(struct rotation_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_rotation,
    .accept = accept_rotation,
    .draw = draw_rotation,
    .place = place_rotation,
    .objects = turn_points,
};
