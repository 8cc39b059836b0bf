/* Colours: random_brightness, random_contrast, random_saturation, random_hue, random_colors,
 * random_grey, clip. Pixels do not move. Values may leave 0..255 unless clip follows. Hue and
 * saturation change colour pictures only. Draws: brightness, contrast, saturation, hue,
 * color_ordering, grey. */
#include <math.h>

#include "data/augment.h"

/* ---- the operations ---------------------------------------------------------------------- */

void pm_add_all(float *x, size_t values, float delta)
{
    for (size_t i = 0; i < values; i++)
        x[i] += delta;
}

void pm_contrast(float *x, size_t count, int channels, float factor)
{
    for (int c = 0; c < channels; c++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += x[i * (size_t)channels + (size_t)c];
        const float mean = (float)(sum / (double)count);
        for (size_t i = 0; i < count; i++) {
            float *v = &x[i * (size_t)channels + (size_t)c];
            *v = (*v - mean) * factor + mean;
        }
    }
}

struct hsv {
    float h, s, v;
};

static struct hsv to_hsv(const float *p)
{
    const float r = p[0], g = p[1], b = p[2];
    const float most = fmaxf(r, fmaxf(g, b)), range = most - fminf(r, fminf(g, b));
    struct hsv out = { 0, most > 0 ? range / most : 0, most };

    if (range > 0) {
        const float norm = 1 / (6 * range);
        if (r == most)
            out.h = norm * (g - b);
        else if (g == most)
            out.h = norm * (b - r) + 2.0f / 6;
        else
            out.h = norm * (r - g) + 4.0f / 6;
        if (out.h < 0)
            out.h += 1;
    }
    return out;
}

static float clip01(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static void from_hsv(struct hsv in, float *p)
{
    const float dh = in.h * 6;
    const float t[3] = { clip01(fabsf(dh - 3) - 1), clip01(2 - fabsf(dh - 2)),
                         clip01(2 - fabsf(dh - 4)) };
    for (int c = 0; c < 3; c++)
        p[c] = ((1 - in.s) + in.s * t[c]) * in.v;
}

void pm_saturation(float *x, size_t count, float factor)
{
    for (size_t i = 0; i < count; i++, x += 3) {
        struct hsv c = to_hsv(x);
        c.s = clip01(c.s * factor);
        from_hsv(c, x);
    }
}

void pm_hue(float *x, size_t count, float delta)
{
    for (size_t i = 0; i < count; i++, x += 3) {
        struct hsv c = to_hsv(x);
        c.h += delta;
        c.h -= floorf(c.h);
        from_hsv(c, x);
    }
}

static void brighten(const struct pm_draws *d, double most, struct pm_pixel_values *x)
{
    pm_add_all(x->v, x->count * (size_t)x->channels,
               (float)(2 * d->brightness - 1) * (float)(most * (double)x->white));
}

static float factor_of(double draw, double min, double max)
{
    return (float)(min + (max - min) * draw);
}

/* ---- brightness -------------------------------------------------------------------------- */

static const struct pm_opt brightness_opts[] = {
    PM_DOUBLE(random_brightness_cfg, max_delta, 0.125, 0, 1,
              "largest number that is added or subtracted; 1 is white"),
    { 0 },
};

static void draw_brightness(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                            struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->brightness = pm_rng_uniform(r);
}

static void brightness(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    brighten(d, ((const struct random_brightness_cfg *)cfg)->max_delta, x);
}

const struct pm_augmentation pm_augmentation_random_brightness = {
    .name = "random_brightness",
    .help = "adds one random number to all values",
    .opts = brightness_opts,
    .cfg_size = sizeof(struct random_brightness_cfg),
    .carries = PM_CARRIES_ALL,
    .draw = draw_brightness,
    .values = brightness,
};

/* ---- contrast and saturation ------------------------------------------------------------- */

static int check_factors(double min, double max, const char *where)
{
    if (min <= max)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.min: %g is above %s.max, %g", where, min, where, max);
}

static const struct pm_opt contrast_opts[] = {
    PM_DOUBLE(random_contrast_cfg, min, 0.5, 0, 10, "smallest factor"),
    PM_DOUBLE(random_contrast_cfg, max, 1.5, 0, 10, "largest factor"),
    { 0 },
};

static int check_contrast(const void *cfg, const char *where)
{
    const struct random_contrast_cfg *c = cfg;

    return check_factors(c->min, c->max, where);
}

static void draw_contrast(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                          struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->contrast = pm_rng_uniform(r);
}

static void contrast(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const struct random_contrast_cfg *c = cfg;

    pm_contrast(x->v, x->count, x->channels, factor_of(d->contrast, c->min, c->max));
}

const struct pm_augmentation pm_augmentation_random_contrast = {
    .name = "random_contrast",
    .help = "multiplies each value's distance from its channel's mean",
    .opts = contrast_opts,
    .cfg_size = sizeof(struct random_contrast_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_contrast,
    .draw = draw_contrast,
    .values = contrast,
};

static const struct pm_opt saturation_opts[] = {
    PM_DOUBLE(random_saturation_cfg, min, 0.5, 0, 10, "smallest factor"),
    PM_DOUBLE(random_saturation_cfg, max, 1.5, 0, 10, "largest factor"),
    { 0 },
};

static int check_saturation(const void *cfg, const char *where)
{
    const struct random_saturation_cfg *c = cfg;

    return check_factors(c->min, c->max, where);
}

static void draw_saturation(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                            struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->saturation = pm_rng_uniform(r);
}

static void saturation(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const struct random_saturation_cfg *c = cfg;

    if (x->channels == 3)
        pm_saturation(x->v, x->count, factor_of(d->saturation, c->min, c->max));
}

const struct pm_augmentation pm_augmentation_random_saturation = {
    .name = "random_saturation",
    .help = "multiplies the saturation",
    .opts = saturation_opts,
    .cfg_size = sizeof(struct random_saturation_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_saturation,
    .draw = draw_saturation,
    .values = saturation,
};

/* ---- hue --------------------------------------------------------------------------------- */

static const struct pm_opt hue_opts[] = {
    PM_DOUBLE(random_hue_cfg, max_delta, 0.2, 0, 0.5,
              "largest shift of the hue; 1 is the whole colour circle"),
    { 0 },
};

static void draw_hue(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                     struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->hue = pm_rng_uniform(r);
}

static void turn(const struct pm_draws *d, double most, struct pm_pixel_values *x)
{
    if (x->channels == 3)
        pm_hue(x->v, x->count, (float)(2 * most * d->hue - most));
}

static void hue(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    turn(d, ((const struct random_hue_cfg *)cfg)->max_delta, x);
}

const struct pm_augmentation pm_augmentation_random_hue = {
    .name = "random_hue",
    .help = "shifts the hue",
    .opts = hue_opts,
    .cfg_size = sizeof(struct random_hue_cfg),
    .carries = PM_CARRIES_ALL,
    .draw = draw_hue,
    .values = hue,
};

/* ---- all four ---------------------------------------------------------------------------- */

struct random_colors_cfg {
    double brightness, contrast, saturation, hue;
};

static const struct pm_opt colors_opts[] = {
    PM_DOUBLE(random_colors_cfg, brightness, 0.125, 0, 1,
              "largest number that is added or subtracted; 1 is white"),
    PM_DOUBLE(random_colors_cfg, contrast, 0.5, 0, 1, "factors from 1 minus this to 1 plus this"),
    PM_DOUBLE(random_colors_cfg, saturation, 0.5, 0, 1, "factors from 1 minus this to 1 plus this"),
    PM_DOUBLE(random_colors_cfg, hue, 0.2, 0, 0.5,
              "largest shift of the hue; 1 is the whole colour circle"),
    { 0 },
};

static void draw_colors(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                        struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->color_ordering = (int)pm_rng_int(r, 0, 3);
    out->brightness = pm_rng_uniform(r);
    out->saturation = pm_rng_uniform(r);
    out->hue = pm_rng_uniform(r);
    out->contrast = pm_rng_uniform(r);
}

static void distort(const struct random_colors_cfg *c, const struct pm_draws *d,
                    enum pm_distortion what, struct pm_pixel_values *x)
{
    if (what == PM_BRIGHTNESS)
        brighten(d, c->brightness, x);
    else if (what == PM_CONTRAST)
        pm_contrast(x->v, x->count, x->channels,
                    factor_of(d->contrast, 1 - c->contrast, 1 + c->contrast));
    else if (what == PM_HUE)
        turn(d, c->hue, x);
    else if (x->channels == 3)
        pm_saturation(x->v, x->count,
                      factor_of(d->saturation, 1 - c->saturation, 1 + c->saturation));
}

/* The Inception preprocessing's four orders of distortions, without fast_mode. */
const uint8_t pm_color_orders[4][4] = {
    { PM_BRIGHTNESS, PM_SATURATION, PM_HUE, PM_CONTRAST },
    { PM_SATURATION, PM_BRIGHTNESS, PM_CONTRAST, PM_HUE },
    { PM_CONTRAST, PM_HUE, PM_BRIGHTNESS, PM_SATURATION },
    { PM_HUE, PM_SATURATION, PM_CONTRAST, PM_BRIGHTNESS },
};

static void colors(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    for (int i = 0; i < 4; i++)
        distort(cfg, d, (enum pm_distortion)pm_color_orders[d->color_ordering][i], x);
}

const struct pm_augmentation pm_augmentation_random_colors = {
    .name = "random_colors",
    .help = "changes brightness, contrast, saturation and hue, in one of four random orders",
    .opts = colors_opts,
    .cfg_size = sizeof(struct random_colors_cfg),
    .carries = PM_CARRIES_ALL,
    .draw = draw_colors,
    .values = colors,
};

/* ---- grey -------------------------------------------------------------------------------- */

struct random_grey_cfg {
    double probability;
};

static const struct pm_opt grey_opts[] = {
    PM_DOUBLE(random_grey_cfg, probability, 0.1, 0, 1, "share of the pictures that turn grey"),
    { 0 },
};

static void draw_grey(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                      struct pm_draws *out)
{
    (void)s;
    out->grey = pm_rng_uniform(r) < ((const struct random_grey_cfg *)cfg)->probability;
}

static void grey(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    (void)cfg;
    for (float *v = x->v; d->grey && x->channels == 3 && v < x->v + 3 * x->count; v += 3)
        v[0] = v[1] = v[2] = pm_luma(v);
}

const struct pm_augmentation pm_augmentation_random_grey = {
    .name = "random_grey",
    .help = "removes the colours; the picture keeps three channels",
    .opts = grey_opts,
    .cfg_size = sizeof(struct random_grey_cfg),
    .carries = PM_CARRIES_ALL,
    .draw = draw_grey,
    .values = grey,
};

/* ---- clip -------------------------------------------------------------------------------- */

static void clip(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const size_t values = x->count * (size_t)x->channels;
    const float white = x->white;
    float *v = x->v;

    (void)cfg, (void)d;
    for (size_t i = 0; i < values; i++)
        v[i] = fminf(fmaxf(v[i], 0), white);
}

const struct pm_augmentation pm_augmentation_clip = {
    .name = "clip",
    .help = "limits values to black..white",
    .carries = PM_CARRIES_ALL,
    .values = clip,
};
