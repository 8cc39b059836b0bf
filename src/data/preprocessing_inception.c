/* inception. Train: a box of the picture with random area and shape, resized to the input ignoring
 * the shape, flip, colour distortion, clip to 0..1, then (x - 0.5) * 2. Eval: central crop,
 * bilinear resize, (x - 0.5) * 2. fast_mode resizes bilinearly and distorts brightness, then
 * saturation (before February 2018 one of four orders was drawn there too, three of them saturation
 * first); otherwise one of four resize methods and one of four orders of all four colour
 * distortions is drawn. The whole picture is the one object of the box sampler.
 * A grey picture has no hue or saturation to distort; one that turns grey does after the clip.
 * Draws: box, flip, resize_method, color_ordering, brightness, contrast, saturation, hue. */
#include <math.h>

#include "data/preprocess.h"

struct inception_cfg {
    bool fast_mode, crop_image, before_2018;
    float central_fraction, area_min, area_max, aspect_min, aspect_max, min_object_covered;
};

static const struct pm_opt opts[] = {
    PM_BOOL(inception_cfg, fast_mode, true, "bilinear, brightness and saturation only"),
    PM_BOOL(inception_cfg, before_2018, false,
            "fast_mode draws an order, as the original's before February 2018"),
    PM_BOOL(inception_cfg, crop_image, true, "train on a random box; else on the whole picture"),
    PM_FLOAT(inception_cfg, central_fraction, 0.875, 0.01, 1, "part of each side kept in eval"),
    PM_OPTS_BOX_RULE(inception_cfg),
    { 0 },
};

static void draw(const void *cfg, struct pm_rng *r, const struct pm_sight *s, struct pm_draws *out)
{
    const struct inception_cfg *c = cfg;
    const struct pm_box_rule rule = { c->area_min, c->area_max, c->aspect_min, c->aspect_max,
                                      c->min_object_covered };

    *out = (struct pm_draws){ 0 };
    out->flip = pm_rng_uniform(r) < 0.5;
    out->resize_method = (int)pm_rng_int(r, 0, 3);
    out->color_ordering = (int)pm_rng_int(r, 0, 3);
    out->brightness = pm_rng_uniform(r);
    out->saturation = pm_rng_uniform(r);
    out->hue = pm_rng_uniform(r);
    out->contrast = pm_rng_uniform(r);
    if (c->crop_image)
        pm_sample_box(&rule, r, s, out->box);
}

/* ---- what inception_trainer does too --------------------------------------------------------- */

/* One of the distortions by its number in d: brightness by +-32/255, contrast and saturation times
 * 0.5..1.5, hue by +-0.2. A grey picture has no hue or saturation. */
static void distort(enum pm_distortion what, const struct pm_draws *d, size_t count, int channels,
                    float *x)
{
    const float most = 32.0f / 255;

    if (what == PM_BRIGHTNESS)
        pm_add_all(x, count * (size_t)channels, (float)(2 * d->brightness - 1) * most);
    else if (what == PM_CONTRAST)
        pm_contrast(x, count, channels, (float)(0.5 + d->contrast));
    else if (what == PM_SATURATION && channels == 3)
        pm_saturation(x, count, (float)(0.5 + d->saturation));
    else if (what == PM_HUE && channels == 3)
        pm_hue(x, count, (float)(0.4 * d->hue - 0.2));
}

static void apply_train(const struct pm_inception_way *way, const struct pm_image8 *im,
                        const struct pm_draws *d, int height, int width, float *out)
{
    const size_t count = (size_t)height * (size_t)width, values = count * (size_t)im->channels;
    struct pm_view8 in = pm_view8_of(im);

    if (d->box[2] > 0)
        in = pm_view_crop(in, d->box[0], d->box[1], d->box[2], d->box[3]);
    pm_resize(in, way->resize, 1.0f / 255, height, width, out);
    if (d->flip)
        pm_flip(out, height, width, in.channels);
    for (int i = 0; i < way->distortions; i++)
        distort(way->order[i], d, count, in.channels, out);
    for (size_t i = 0; i < values; i++)
        out[i] = fminf(fmaxf(out[i], 0), 1);
}

/* Pixels left off at the start of a side of n. */
static int central_start(int n, double fraction)
{
    return (int)((n - n * fraction) / 2);
}

static void apply_eval(const struct pm_inception_way *way, const struct pm_image8 *in, int height,
                       int width, float *out)
{
    const double fraction = (double)way->central_fraction;
    const int y = central_start(in->height, fraction), x = central_start(in->width, fraction);

    pm_resize(pm_view_crop(pm_view8_of(in), y, x, in->height - 2 * y, in->width - 2 * x),
              PM_RESIZE_BILINEAR, 1.0f / 255, height, width, out);
}

void pm_inception_apply(const struct pm_inception_way *way, const struct pm_image8 *in, bool train,
                        const struct pm_draws *d, int height, int width, int channels, float *out)
{
    const size_t count = (size_t)height * (size_t)width, values = count * (size_t)channels;
    float *work = pm_work(in, channels, count, out);

    if (train)
        apply_train(way, in, d, height, width, work);
    else
        apply_eval(way, in, height, width, work);
    pm_grey_settle(work, count, out);
    for (size_t i = 0; i < values; i++)
        out[i] = (out[i] - 0.5f) * 2;
}

int pm_inception_normal(const void *cfg, int channels, struct pm_normal *out)
{
    (void)cfg, (void)channels;
    return pm_normal_half(127.5f, "the middle, central_fraction of each side, resized to the size "
                          "whatever its shape", "bilinear", out);
}

/* ---- its own --------------------------------------------------------------------------------- */

static int apply(const void *cfg, const struct pm_image8 *in, bool train, const struct pm_draws *d,
                 int height, int width, int channels, float *out, const char *where)
{
    static const uint8_t orders[4][4] = {
        { PM_BRIGHTNESS, PM_SATURATION, PM_HUE, PM_CONTRAST },
        { PM_SATURATION, PM_BRIGHTNESS, PM_CONTRAST, PM_HUE },
        { PM_CONTRAST, PM_HUE, PM_BRIGHTNESS, PM_SATURATION },
        { PM_HUE, PM_SATURATION, PM_CONTRAST, PM_BRIGHTNESS },
    };
    static const struct pm_draws none; /* eval has no draws */
    const struct inception_cfg *c = cfg;

    (void)where;
    d = train ? d : &none;
    /* fast_mode has the first two of an order; three of four began with saturation. */
    const int fast = c->before_2018 && d->color_ordering > 0;
    const struct pm_inception_way way = {
        .resize = c->fast_mode ? PM_RESIZE_BILINEAR : (enum pm_resize)d->resize_method,
        .order = orders[c->fast_mode ? fast : d->color_ordering],
        .distortions = c->fast_mode ? 2 : 4,
        .central_fraction = c->central_fraction,
    };
    pm_inception_apply(&way, in, train, d, height, width, channels, out);
    return PM_OK;
}

const struct pm_preprocessing pm_preprocessing_inception = {
    .name = "inception",
    .help = "random box, resize, flip, colours; values to -1..1",
    .opts = opts,
    .cfg_size = sizeof(struct inception_cfg),
    .draw = draw,
    .apply = apply,
    .normal = pm_inception_normal,
};
