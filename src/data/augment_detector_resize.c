/* Sizes after TensorFlow's Object Detection API: random_resize_method,
 * random_downscale_to_target_pixels, random_square_crop_by_scale,
 * random_scale_crop_and_pad_to_square; and letterbox. Sizes are truncated float32 products, like
 * the original's. Draws: resize_method, side, box, window, crop_y, crop_x. */
#include <math.h>

#include "data/augment.h"

static int at_least_one(float side)
{
    return side < 1 ? 1 : (int)side;
}

/* ---- random_resize_method ---------------------------------------------------------------- */

static void draw_method(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                        struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->resize_method = (int)pm_rng_int(r, PM_RESIZE_BILINEAR, PM_RESIZE_AREA);
}

static int place_method(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                        struct pm_geometry *g)
{
    (void)cfg;
    pm_geometry_resize(g, t->height, t->width, (enum pm_resize)d->resize_method);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_resize_method = {
    .name = "random_resize_method",
    .help = "resizes to the input's size, bilinear, nearest, bicubic or by area at random",
    .sizing = PM_SIZE_INPUT,
    .carries = PM_CARRIES_ALL,
    .draw = draw_method,
    .place = place_method,
};

/* ---- random_downscale_to_target_pixels --------------------------------------------------- */

struct downscale_cfg {
    double random_coef;
    int min_target_pixels, max_target_pixels;
};

static const struct pm_opt downscale_opts[] = {
    PM_DOUBLE(downscale_cfg, random_coef, 0, 0, 1, "probability that the picture is not changed"),
    PM_INT(downscale_cfg, min_target_pixels, 300000, 1, 1 << 28, "smallest number of pixels"),
    PM_INT(downscale_cfg, max_target_pixels, 500000, 1, 1 << 28, "the number is below this"),
    { 0 },
};

static int check_downscale(const void *cfg, const char *where)
{
    const struct downscale_cfg *c = cfg;

    if (c->min_target_pixels <= c->max_target_pixels)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.min_target_pixels: %d is above %s.max_target_pixels, %d", where,
                   c->min_target_pixels, where, c->max_target_pixels);
}

static void draw_downscale(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                           struct pm_draws *out)
{
    const struct downscale_cfg *c = cfg;
    const int least = c->min_target_pixels, most = c->max_target_pixels;
    const double pixels = (double)s->height * s->width;
    const bool spared = pm_rng_uniform(r) < c->random_coef;
    const double target = (double)pm_rng_int(r, least, most > least ? most - 1 : least);

    out->side = spared || pixels <= target ? 1 : sqrt(target / pixels);
}

static int place_downscale(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                           struct pm_geometry *g)
{
    const float scale = (float)d->side;

    (void)cfg, (void)t;
    if (d->side < 1)
        pm_geometry_resize(g, at_least_one((float)pm_geometry_height(g) * scale),
                           at_least_one((float)pm_geometry_width(g) * scale), PM_RESIZE_BILINEAR);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_downscale_to_target_pixels = {
    .name = "random_downscale_to_target_pixels",
    .help = "shrinks larger pictures to a random number of pixels",
    .opts = downscale_opts,
    .cfg_size = sizeof(struct downscale_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_downscale,
    .draw = draw_downscale,
    .place = place_downscale,
};

/* ---- random_square_crop_by_scale --------------------------------------------------------- */

struct square_cfg {
    int max_border, num_scales;
    float scale_min, scale_max;
};

static const struct pm_opt square_opts[] = {
    PM_INT(square_cfg, max_border, 128, 1, 16384,
           "distance of the square's middle from the picture's border; halved for small pictures"),
    PM_FLOAT(square_cfg, scale_min, 0.6, 0.01, 10,
             "smallest side of the square, as a share of the picture's larger side"),
    PM_FLOAT(square_cfg, scale_max, 1.3, 0.01, 10, "largest side"),
    PM_INT(square_cfg, num_scales, 8, 1, 1000, "number of different sides"),
    { 0 },
};

static int check_square(const void *cfg, const char *where)
{
    const struct square_cfg *c = cfg;

    if (c->scale_min <= c->scale_max)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.scale_min: %g is above %s.scale_max, %g", where,
                   (double)c->scale_min, where, (double)c->scale_max);
}

/* The middle along one axis: away from the border by max_border, halved until two of them fit. */
static int draw_middle(int most, struct pm_rng *r, int side)
{
    int border = most;

    while (border > 0 && 2 * border > side)
        border /= 2;
    return side - 2 * border > 0 ? (int)pm_rng_int(r, border, side - border - 1) : side / 2;
}

static void draw_square(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                        struct pm_draws *out)
{
    const struct square_cfg *c = cfg;
    const int pick = (int)pm_rng_int(r, 0, c->num_scales - 1);
    const float range = c->scale_max - c->scale_min;
    const float step = c->num_scales > 1 ? range / (float)(c->num_scales - 1) : 0;
    const float larger = (float)(s->height > s->width ? s->height : s->width);
    const int side = at_least_one((c->scale_min + (float)pick * step) * larger);

    out->window[0] = draw_middle(c->max_border, r, s->height) - side / 2;
    out->window[1] = draw_middle(c->max_border, r, s->width) - side / 2;
    out->window[2] = out->window[3] = side;
}

static int place_black(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                       struct pm_geometry *g)
{
    const float black[3] = { 0 };

    (void)cfg, (void)t;
    pm_geometry_window(g, d->window[0], d->window[1], d->window[2], d->window[3], black);
    return PM_OK;
}

static void retain_any(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    (void)cfg, (void)d;
    pm_scene_retain(o, 0, true);
}

const struct pm_augmentation pm_augmentation_random_square_crop_by_scale = {
    .name = "random_square_crop_by_scale",
    .help = "takes a square of random size around a random point, with black outside",
    .opts = square_opts,
    .cfg_size = sizeof(struct square_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_square,
    .draw = draw_square,
    .place = place_black,
    .objects = retain_any,
};

/* ---- random_scale_crop_and_pad_to_square ------------------------------------------------- */

struct to_square_cfg {
    int output_size;
    float scale_min, scale_max;
};

static const struct pm_opt to_square_opts[] = {
    PM_INT(to_square_cfg, output_size, 512, 1, 16384, "side of the resulting square"),
    PM_FLOAT(to_square_cfg, scale_min, 0.1, 0.001, 100,
             "smallest larger side of the resized picture, as a multiple of output_size"),
    PM_FLOAT(to_square_cfg, scale_max, 2, 0.001, 100, "largest larger side"),
    { 0 },
};

static int check_to_square(const void *cfg, const char *where)
{
    const struct to_square_cfg *c = cfg;

    if (c->scale_min <= c->scale_max)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.scale_min: %g is above %s.scale_max, %g", where,
                   (double)c->scale_min, where, (double)c->scale_max);
}

/* box: size after resizing in its last two; window: the square. */
static void draw_to_square(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                           struct pm_draws *out)
{
    const struct to_square_cfg *c = cfg;
    const float scale = c->scale_min + (float)pm_rng_uniform(r) * (c->scale_max - c->scale_min);
    const float goal = (float)c->output_size * scale;
    const float ratio = fminf(goal / (float)s->height, goal / (float)s->width);
    const int sides[2] = { s->height, s->width };

    for (int k = 0; k < 2; k++) {
        const int side = at_least_one((float)sides[k] * ratio), room = side - c->output_size;

        out->box[2 + k] = side;
        out->window[k] = room > 0 ? (int)(pm_rng_uniform(r) * (room + 1)) : 0;
        out->window[2 + k] = c->output_size;
    }
}

static int place_to_square(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                           struct pm_geometry *g)
{
    pm_geometry_resize(g, d->box[2], d->box[3], PM_RESIZE_BILINEAR);
    return place_black(cfg, d, t, g);
}

const struct pm_augmentation pm_augmentation_random_scale_crop_and_pad_to_square = {
    .name = "random_scale_crop_and_pad_to_square",
    .help = "resizes by a random scale, then crops or pads below and at the right to a square",
    .opts = to_square_opts,
    .cfg_size = sizeof(struct to_square_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_to_square,
    .draw = draw_to_square,
    .place = place_to_square,
    .objects = retain_any,
};

/* ---- letterbox --------------------------------------------------------------------------- */

struct letterbox_cfg {
    bool random;
    struct pm_floats fill;
};

static const struct pm_opt letterbox_opts[] = {
    PM_BOOL(letterbox_cfg, random, false, "random place of the picture; false = the middle"),
    PM_FLOATS(letterbox_cfg, fill, NULL, 0, 255,
              "pixel of the padding, one number or three; null = input.preprocessing's"),
    { 0 },
};

static int check_letterbox(const void *cfg, const char *where)
{
    const struct pm_floats *fill = &((const struct letterbox_cfg *)cfg)->fill;

    if (fill->count == 0 || fill->count == 1 || fill->count == 3)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.fill: %d numbers; give one, or one each for red, green and blue",
                   where, fill->count);
}

static void draw_letterbox(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                           struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->crop_y = pm_rng_uniform(r);
    out->crop_x = pm_rng_uniform(r);
}

static int place_letterbox(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                           struct pm_geometry *g)
{
    const struct letterbox_cfg *c = cfg;
    const float h = (float)pm_geometry_height(g), w = (float)pm_geometry_width(g);
    const float scale = fminf((float)t->height / h, (float)t->width / w);
    const int rows = at_least_one(rintf(h * scale)), cols = at_least_one(rintf(w * scale));
    const int down = t->height - rows, right = t->width - cols;
    float pad[3];

    for (int k = 0; k < 3; k++)
        pad[k] = c->fill.count ? c->fill.v[c->fill.count == 1 ? 0 : k] : t->fill[k];
    pm_geometry_resize(g, rows, cols, PM_RESIZE_BILINEAR);
    pm_geometry_window(g, -(c->random ? (int)(d->crop_y * (down + 1)) : down / 2),
                       -(c->random ? (int)(d->crop_x * (right + 1)) : right / 2), t->height,
                       t->width, pad);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_letterbox = {
    .name = "letterbox",
    .help = "resizes to fit into the input with the same aspect, and pads on both sides",
    .opts = letterbox_opts,
    .cfg_size = sizeof(struct letterbox_cfg),
    .sizing = PM_SIZE_INPUT,
    .carries = PM_CARRIES_ALL,
    .check = check_letterbox,
    .draw = draw_letterbox,
    .place = place_letterbox,
};
