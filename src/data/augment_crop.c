/* Windows of the picture: random_crop, central_crop, crop_or_pad, pad.
 *
 * random_crop adds `padding` pixels on each side, then takes a window of the input's size. If the
 * padded picture is smaller than the input, padding below and at the right fills the rest. The
 * offset is drawn from all that fit. Draws: crop_y, crop_x. */
#include "data/augment.h"

#define FILL(tag)                      \
    PM_FLOATS(tag, fill, NULL, 0, 255, \
              "pixel of the padding, one number or three; null = input.preprocessing's")

int pm_check_fill(const struct pm_floats *fill, const char *where)
{
    if (fill->count == 0 || fill->count == 1 || fill->count == 3)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.fill: %d numbers; give one, or one each for red, green and blue",
                   where, fill->count);
}

void pm_fill_pixel(const struct pm_floats *fill, const struct pm_target *t, float pad[3])
{
    for (int c = 0; c < 3; c++)
        pad[c] = fill->count == 0 ? t->fill[c] : fill->v[fill->count == 1 ? 0 : c];
}

/* ---- random_crop ------------------------------------------------------------------------- */

static const struct pm_opt random_crop_opts[] = {
    PM_INT(random_crop_cfg, padding, 0, 0, 1024, "pixels added on each side before the crop"),
    FILL(random_crop_cfg),
    { 0 },
};

static int check_random_crop(const void *cfg, const char *where)
{
    return pm_check_fill(&((const struct random_crop_cfg *)cfg)->fill, where);
}

static void draw_random_crop(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                             struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->crop_y = pm_rng_uniform(r);
    out->crop_x = pm_rng_uniform(r);
}

static int offset(double part, int side, int crop)
{
    return side > crop ? (int)(part * (side - crop + 1)) : 0;
}

static int place_random_crop(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                             struct pm_geometry *g)
{
    const struct random_crop_cfg *c = cfg;
    const int height = pm_geometry_height(g) + 2 * c->padding;
    const int width = pm_geometry_width(g) + 2 * c->padding;
    float pad[3];

    pm_fill_pixel(&c->fill, t, pad);
    pm_geometry_window(g, offset(d->crop_y, height, t->height) - c->padding,
                       offset(d->crop_x, width, t->width) - c->padding, t->height, t->width, pad);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_crop = {
    .name = "random_crop",
    .help =
        "takes a window of the input's size at a random place; pads smaller pictures below and at "
        "the right",
    .opts = random_crop_opts,
    .cfg_size = sizeof(struct random_crop_cfg),
    .sizing = PM_SIZE_INPUT,
    .carries = PM_CARRIES_ALL,
    .check = check_random_crop,
    .draw = draw_random_crop,
    .place = place_random_crop,
};

/* ---- central_crop ------------------------------------------------------------------------ */

static const struct pm_opt central_crop_opts[] = {
    PM_FLOAT(central_crop_cfg, fraction, 0.875, 0.01, 1, "share of each side that is kept"),
    { 0 },
};

/* Pixels cut off at the start of a side of n. */
static int central_start(int n, double fraction)
{
    return (int)((n - n * fraction) / 2);
}

static int place_central_crop(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                              struct pm_geometry *g)
{
    const double fraction = (double)((const struct central_crop_cfg *)cfg)->fraction;
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);
    const int y = central_start(height, fraction), x = central_start(width, fraction);

    (void)d, (void)t;
    pm_geometry_window(g, y, x, height - 2 * y, width - 2 * x, NULL);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_central_crop = {
    .name = "central_crop",
    .help = "takes the middle of the picture",
    .opts = central_crop_opts,
    .cfg_size = sizeof(struct central_crop_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .place = place_central_crop,
};

/* ---- crop_or_pad ------------------------------------------------------------------------- */

static const struct pm_opt crop_or_pad_opts[] = { FILL(crop_or_pad_cfg), { 0 } };

static int check_crop_or_pad(const void *cfg, const char *where)
{
    return pm_check_fill(&((const struct crop_or_pad_cfg *)cfg)->fill, where);
}

/* The window's first element: floor of half the difference. Works for either sign of the
 * difference. */
static int middle(int side, int wanted)
{
    return side > wanted ? (side - wanted) / 2 : -((wanted - side) / 2);
}

static int place_crop_or_pad(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                             struct pm_geometry *g)
{
    float pad[3];

    (void)d;
    pm_fill_pixel(&((const struct crop_or_pad_cfg *)cfg)->fill, t, pad);
    pm_geometry_window(g, middle(pm_geometry_height(g), t->height),
                       middle(pm_geometry_width(g), t->width), t->height, t->width, pad);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_crop_or_pad = {
    .name = "crop_or_pad",
    .help =
        "takes the middle of the picture in the input's size; pads smaller pictures on all sides",
    .opts = crop_or_pad_opts,
    .cfg_size = sizeof(struct crop_or_pad_cfg),
    .sizing = PM_SIZE_INPUT,
    .carries = PM_CARRIES_ALL,
    .check = check_crop_or_pad,
    .place = place_crop_or_pad,
};

/* ---- pad --------------------------------------------------------------------------------- */

struct pad_cfg {
    int top, bottom, left, right;
    struct pm_floats fill;
};

static const struct pm_opt pad_opts[] = {
    PM_INT(pad_cfg, top, 0, 0, 4096, "pixels added above"),
    PM_INT(pad_cfg, bottom, 0, 0, 4096, "pixels added below"),
    PM_INT(pad_cfg, left, 0, 0, 4096, "pixels added at the left"),
    PM_INT(pad_cfg, right, 0, 0, 4096, "pixels added at the right"),
    FILL(pad_cfg),
    { 0 },
};

static int check_pad(const void *cfg, const char *where)
{
    return pm_check_fill(&((const struct pad_cfg *)cfg)->fill, where);
}

static int place_pad(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                     struct pm_geometry *g)
{
    const struct pad_cfg *c = cfg;
    float pad[3];

    (void)d;
    pm_fill_pixel(&c->fill, t, pad);
    pm_geometry_window(g, -c->top, -c->left, pm_geometry_height(g) + c->top + c->bottom,
                       pm_geometry_width(g) + c->left + c->right, pad);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_pad = {
    .name = "pad",
    .help = "adds padding of given widths",
    .opts = pad_opts,
    .cfg_size = sizeof(struct pad_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_pad,
    .place = place_pad,
};

/* ---- window ------------------------------------------------------------------------------ */

static int place_window(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                        struct pm_geometry *g)
{
    const struct window_cfg *c = cfg;

    (void)d;
    pm_geometry_window(g, c->y, c->x, c->height, c->width, t->fill);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_window = {
    .name = "window",
    .carries = PM_CARRIES_ALL,
    .place = place_window,
};
