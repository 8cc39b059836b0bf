/* Sizes: resize, random_side, resize_to_range, random_scale. All keep the aspect ratio, except
 * resize and resize_to_range with keep_aspect_ratio false.
 *
 * resize_to_range and random_scale are DeepLab's: corners are aligned, and sizes are truncated
 * float32 products. So a product just below an integer gives one pixel less. random_side is VGG's:
 * the smaller side is uniform in min..max, both ends included. Draws: side. */
#include <math.h>

#include "data/augment.h"

/* ---- resize ------------------------------------------------------------------------------ */

static const struct pm_opt resize_opts[] = {
    PM_ENUM(resize_cfg, method, PM_RESIZE_BILINEAR,
            "bilinear|nearest|bicubic|area|aligned|antialias",
            "TensorFlow 1's four, bilinear with aligned corners, or Pillow's antialiased bilinear"),
    { 0 },
};

static int place_resize(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                        struct pm_geometry *g)
{
    (void)d;
    pm_geometry_resize(g, t->height, t->width,
                       (enum pm_resize)((const struct resize_cfg *)cfg)->method);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_resize = {
    .name = "resize",
    .help = "resizes to the input's size; the ratio of the sides may change",
    .opts = resize_opts,
    .cfg_size = sizeof(struct resize_cfg),
    .sizing = PM_SIZE_INPUT,
    .carries = PM_CARRIES_ALL,
    .place = place_resize,
};

static int place_resized(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                         struct pm_geometry *g)
{
    const struct resized_cfg *c = cfg;

    (void)d, (void)t;
    pm_geometry_resize(g, c->height, c->width, (enum pm_resize)c->method);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_resized = {
    .name = "resized",
    .carries = PM_CARRIES_ALL,
    .place = place_resized,
};

/* ---- sizes ------------------------------------------------------------------------------- */

/* Sides up to this are exact in float32. */
static const float largest = 1 << 24;

static int whole(float side, const char *where, int *out)
{
    if (!(side >= 1 && side <= largest))
        return pm_fail(PM_EDATA,
                       "%s: a side of the image would be resized to %g pixels, allowed are "
                       "1..%g",
                       where, (double)side, (double)largest);
    *out = (int)side;
    return PM_OK;
}

/* Returns side if it is k * factor + 1, else the next larger k * factor + 1. */
static int to_factor(int side, int factor)
{
    return factor ? side + (factor - (side - 1) % factor) % factor : side;
}

/* Computes the sides from min_resize, max_resize, resize_factor and keep_aspect_ratio. */
static int resize_to_range(const struct resize_to_range_cfg *c, int height, int width,
                           const char *where, int *rows, int *cols)
{
    const float h = (float)height, w = (float)width;
    const int factor = c->resize_factor;
    int most = c->max_resize;
    int err = PM_OK;

    if (!c->min_resize) {
        *rows = height, *cols = width;
        return PM_OK;
    }
    if (most && factor)
        most -= (most - 1) % factor;
    const float up = (float)c->min_resize / fminf(h, w);
    const float down = (float)most / fmaxf(h, w);
    const bool over = most && floorf(fmaxf(h * up, w * up)) > (float)most;
    PM_TRY(whole(floorf(h * (over ? down : up)), where, rows));
    PM_TRY(whole(floorf(w * (over ? down : up)), where, cols));
    *rows = to_factor(*rows, factor);
    *cols = to_factor(*cols, factor);
    if (!c->keep_aspect_ratio)
        *rows = *cols = *rows > *cols ? *rows : *cols;
out:
    return err;
}

/* side: 0..1. The scales are those of TensorFlow's lin_space. */
static float scale_of(const struct random_scale_cfg *c, double side)
{
    const float min = (float)c->min_scale, max = (float)c->max_scale;

    if (c->min_scale == c->max_scale)
        return min;
    if (c->scale_step == 0)
        return min + (float)side * (max - min);
    const int count = (int)((c->max_scale - c->min_scale) / c->scale_step + 1);
    const int pick = (int)(side * count);
    if (pick == 0)
        return min;
    return pick == count - 1 ? max : min + (float)pick * ((max - min) / (float)(count - 1));
}

int pm_check_range(const struct resize_to_range_cfg *c, const char *where)
{
    if (!c->min_resize && (c->max_resize || c->resize_factor || !c->keep_aspect_ratio))
        return pm_fail(PM_ECONFIG,
                       "%s: max_resize, resize_factor and keep_aspect_ratio have an effect only "
                       "with min_resize, which is not set: set %s.min_resize",
                       where, where);
    return PM_OK;
}

int pm_check_scale(const struct random_scale_cfg *c, const char *where)
{
    if (c->max_scale < c->min_scale)
        return pm_fail(PM_ECONFIG, "%s.max_scale: %g is below %s.min_scale, %g", where,
                       c->max_scale, where, c->min_scale);
    if (c->scale_step > 0 && (c->max_scale - c->min_scale) / c->scale_step > 1e6)
        return pm_fail(PM_ECONFIG,
                       "%s.scale_step: %g makes more than a million scales of %g to %g: "
                       "0 takes any between",
                       where, c->scale_step, c->min_scale, c->max_scale);
    return PM_OK;
}

/* ---- resize_to_range --------------------------------------------------------------------- */

static const struct pm_opt range_opts[] = { PM_OPTS_RANGE(resize_to_range_cfg), { 0 } };

static int check_range(const void *cfg, const char *where)
{
    return pm_check_range(cfg, where);
}

static int place_range(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                       struct pm_geometry *g)
{
    int rows = 0, cols = 0;
    int err = PM_OK;

    (void)d;
    PM_TRY(
        resize_to_range(cfg, pm_geometry_height(g), pm_geometry_width(g), t->where, &rows, &cols));
    pm_geometry_resize(g, rows, cols, PM_RESIZE_ALIGNED);
out:
    return err;
}

const struct pm_augmentation pm_augmentation_resize_to_range = {
    .name = "resize_to_range",
    .help = "resizes: the smaller side to min_resize, the larger to max_resize at most",
    .opts = range_opts,
    .cfg_size = sizeof(struct resize_to_range_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_range,
    .place = place_range,
};

/* ---- random_scale ------------------------------------------------------------------------ */

static const struct pm_opt scale_opts[] = { PM_OPTS_SCALE(random_scale_cfg), { 0 } };

static int check_scale(const void *cfg, const char *where)
{
    return pm_check_scale(cfg, where);
}

static void draw_side(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                      struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->side = pm_rng_uniform(r);
}

static int place_scale(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                       struct pm_geometry *g)
{
    const float scale = scale_of(cfg, d->side);
    int rows = 0, cols = 0;
    int err = PM_OK;

    PM_TRY(whole((float)pm_geometry_height(g) * scale, t->where, &rows));
    PM_TRY(whole((float)pm_geometry_width(g) * scale, t->where, &cols));
    pm_geometry_resize(g, rows, cols, PM_RESIZE_ALIGNED);
out:
    return err;
}

const struct pm_augmentation pm_augmentation_random_scale = {
    .name = "random_scale",
    .help = "multiplies both sides by a random scale",
    .opts = scale_opts,
    .cfg_size = sizeof(struct random_scale_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_scale,
    .draw = draw_side,
    .place = place_scale,
};

/* ---- random_side ------------------------------------------------------------------------- */

static const struct pm_opt side_opts[] = {
    PM_INT(random_side_cfg, min, 256, 1, 16384,
           "smallest length of the smaller side after resizing"),
    PM_INT(random_side_cfg, max, 512, 1, 16384,
           "largest length of the smaller side after resizing"),
    { 0 },
};

static int check_side(const void *cfg, const char *where)
{
    const struct random_side_cfg *c = cfg;

    if (c->min <= c->max)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.min: %d is above %s.max, %d", where, c->min, where, c->max);
}

/* Halves round to even. */
int pm_rounded_side(int side, float scale, bool cut)
{
    return cut ? (int)((float)side * scale) : (int)rintf((float)side * scale);
}

static int place_side(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                      struct pm_geometry *g)
{
    const struct random_side_cfg *c = cfg;
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);
    const int side = c->min + (c->max > c->min ? (int)(d->side * (c->max - c->min + 1)) : 0);
    const float scale = (float)side / (float)(height < width ? height : width);
    const float longer = (float)(height > width ? height : width) * scale;

    if (!(longer < (float)(1 << 30)))
        return pm_fail(PM_EDATA,
                       "%s: a side of the image would be resized to %g pixels, allowed is less "
                       "than 2^30",
                       t->where, (double)longer);
    pm_geometry_resize(g, pm_rounded_side(height, scale, c->cut),
                       pm_rounded_side(width, scale, c->cut), PM_RESIZE_BILINEAR);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_side = {
    .name = "random_side",
    .help = "resizes the smaller side to a random length",
    .opts = side_opts,
    .cfg_size = sizeof(struct random_side_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_side,
    .draw = draw_side,
    .place = place_side,
};
