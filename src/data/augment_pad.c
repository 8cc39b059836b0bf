/* Random padding after TensorFlow's Object Detection API: random_pad_image,
 * random_absolute_pad_image. The padding has the mean colour of the picture, unless pad_color is
 * set. As in the original, the largest size and the last offset are never drawn. Draws: window. */
#include "data/augment_pad.h"

int pm_check_pad(const struct pm_floats *least, const struct pm_floats *most,
                 const struct pm_floats *color, const char *where)
{
    const struct pm_floats *const pairs[2] = { least, most };
    static const char *const names[2] = { "min_padded_size_ratio", "max_padded_size_ratio" };

    for (int k = 0; k < 2; k++)
        if (pairs[k]->count && pairs[k]->count != 2)
            return pm_fail(PM_ECONFIG, "%s.%s: %d numbers; give two, for height and width", where,
                           names[k], pairs[k]->count);
    for (int k = 0; least->count && k < 2; k++)
        if (least->v[k] > most->v[k])
            return pm_fail(PM_ECONFIG, "%s.min_padded_size_ratio: %g is above "
                           "%s.max_padded_size_ratio, %g", where, (double)least->v[k], where,
                           (double)most->v[k]);
    if (color->count && color->count != 1 && color->count != 3)
        return pm_fail(PM_ECONFIG, "%s.pad_color: %d numbers; give one, or one each for red, green "
                       "and blue", where, color->count);
    return PM_OK;
}

static int at_least(int v, int least)
{
    return v < least ? least : v;
}

void pm_draw_padding(struct pm_rng *r, const int sides[2], const int least[2], const int most[2],
                     int out[4])
{
    for (int k = 0; k < 2; k++) {
        const int low = at_least(least[k], sides[k]), high = at_least(most[k], sides[k]);

        out[2 + k] = high > low ? (int)pm_rng_int(r, low, high - 1) : high;
    }
    for (int k = 0; k < 2; k++) {
        const int room = out[2 + k] - sides[k];

        out[k] = room > 0 ? -(int)pm_rng_int(r, 0, room - 1) : 0;
    }
}

void pm_place_padding(const struct pm_floats *color, const int window[4], struct pm_geometry *g)
{
    float pad[3];

    if (!color->count) {
        pm_geometry_window_mean(g, window[0], window[1], window[2], window[3]);
        return;
    }
    for (int c = 0; c < 3; c++)
        pad[c] = color->v[color->count == 1 ? 0 : c];
    pm_geometry_window(g, window[0], window[1], window[2], window[3], pad);
}

static int check_color(const struct pm_floats *color, const char *where)
{
    const struct pm_floats none = { 0, NULL };

    return pm_check_pad(&none, &none, color, where);
}

/* ---- random_pad_image -------------------------------------------------------------------- */

struct pad_cfg {
    int min_image_height, min_image_width, max_image_height, max_image_width;
    struct pm_floats pad_color;
};

static const struct pm_opt pad_opts[] = {
    PM_INT(pad_cfg, min_image_height, 0, 0, 16384,
           "smallest height after padding; 0 = the picture's"),
    PM_INT(pad_cfg, min_image_width, 0, 0, 16384,
           "smallest width after padding; 0 = the picture's"),
    PM_INT(pad_cfg, max_image_height, 0, 0, 16384,
           "height after padding is below this; 0 = twice the picture's"),
    PM_INT(pad_cfg, max_image_width, 0, 0, 16384,
           "width after padding is below this; 0 = twice the picture's"),
    PM_OPTS_PAD_COLOR(pad_cfg),
    { 0 },
};

static int check_pad(const void *cfg, const char *where)
{
    const struct pad_cfg *c = cfg;

    if (c->max_image_height && c->min_image_height > c->max_image_height)
        return pm_fail(PM_ECONFIG, "%s.min_image_height: %d is above %s.max_image_height, %d",
                       where, c->min_image_height, where, c->max_image_height);
    if (c->max_image_width && c->min_image_width > c->max_image_width)
        return pm_fail(PM_ECONFIG, "%s.min_image_width: %d is above %s.max_image_width, %d", where,
                       c->min_image_width, where, c->max_image_width);
    return check_color(&c->pad_color, where);
}

static void draw_pad(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                     struct pm_draws *out)
{
    const struct pad_cfg *c = cfg;
    const int sides[2] = { s->height, s->width };
    const int least[2] = { c->min_image_height, c->min_image_width };
    const int most[2] = { c->max_image_height ? c->max_image_height : 2 * s->height,
                          c->max_image_width ? c->max_image_width : 2 * s->width };

    pm_draw_padding(r, sides, least, most, out->window);
}

static int place_pad(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                     struct pm_geometry *g)
{
    (void)t;
    pm_place_padding(&((const struct pad_cfg *)cfg)->pad_color, d->window, g);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_pad_image = {
    .name = "random_pad_image",
    .help = "puts the picture at a random place of a larger one; objects become smaller",
    .opts = pad_opts,
    .cfg_size = sizeof(struct pad_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_pad,
    .draw = draw_pad,
    .place = place_pad,
};

/* ---- random_absolute_pad_image ----------------------------------------------------------- */

struct absolute_cfg {
    int max_height_padding, max_width_padding;
    struct pm_floats pad_color;
};

static const struct pm_opt absolute_opts[] = {
    PM_INT(absolute_cfg, max_height_padding, 1, 1, 16384,
           "fewer rows than this are added, a random number"),
    PM_INT(absolute_cfg, max_width_padding, 1, 1, 16384,
           "fewer columns than this are added, a random number"),
    PM_OPTS_PAD_COLOR(absolute_cfg),
    { 0 },
};

static int check_absolute(const void *cfg, const char *where)
{
    return check_color(&((const struct absolute_cfg *)cfg)->pad_color, where);
}

static void draw_absolute(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                          struct pm_draws *out)
{
    const struct absolute_cfg *c = cfg;
    const int sides[2] = { s->height, s->width };
    const int most[2] = { s->height + c->max_height_padding, s->width + c->max_width_padding };

    pm_draw_padding(r, sides, sides, most, out->window);
}

static int place_absolute(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                          struct pm_geometry *g)
{
    (void)t;
    pm_place_padding(&((const struct absolute_cfg *)cfg)->pad_color, d->window, g);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_absolute_pad_image = {
    .name = "random_absolute_pad_image",
    .help = "adds a random number of rows and columns around the picture",
    .opts = absolute_opts,
    .cfg_size = sizeof(struct absolute_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check_absolute,
    .draw = draw_absolute,
    .place = place_absolute,
};
