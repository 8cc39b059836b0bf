/* inception. Training: a box of the picture with random area and aspect, resized to the input
 * without keeping the aspect; flip, colour distortion, clip to 0..1, then (x - 0.5) * 2.
 * Evaluation: central crop, bilinear resize, (x - 0.5) * 2.
 *
 * fast_mode resizes bilinearly and distorts brightness, then saturation. Before February 2018,
 * fast_mode also drew one of four orders; three of them begin with saturation. Without fast_mode,
 * one of four resize methods is drawn, and one of four orders of all four colour distortions. The
 * whole picture is the box sampler's only object.
 *
 * A grey picture has no hue or saturation to distort. If the input is grey, a colour picture turns
 * grey after the clip. Draws: box, flip, resize_method, color_ordering, brightness, contrast,
 * saturation, hue. */
#include "data/augment.h"

struct inception_cfg {
    bool fast_mode, crop_image, before_2018;
    float central_fraction, area_min, area_max, aspect_min, aspect_max, min_object_covered;
};

static const struct pm_opt opts[] = {
    PM_BOOL(inception_cfg, fast_mode, true, "bilinear, brightness and saturation only"),
    PM_BOOL(inception_cfg, before_2018, false,
            "fast_mode uses a random order of the colour changes, like the original before "
            "February 2018"),
    PM_BOOL(inception_cfg, crop_image, true, "train on a random box; false = on the whole picture"),
    PM_FLOAT(inception_cfg, central_fraction, 0.875, 0.01, 1,
             "share of each side that evaluation keeps"),
    PM_OPTS_BOX_RULE(inception_cfg),
    { 0 },
};

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
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

/* ---- shared with inception_trainer ---------------------------------------------------------- */

static void distort(enum pm_distortion what, struct pm_augment_rows *out)
{
    if (what == PM_BRIGHTNESS)
        PM_ADD(out, random_brightness, .max_delta = 32.0 / 255);
    else if (what == PM_CONTRAST)
        PM_ADD(out, random_contrast, .min = 0.5, .max = 1.5);
    else if (what == PM_SATURATION)
        PM_ADD(out, random_saturation, .min = 0.5, .max = 1.5);
    else
        PM_ADD(out, random_hue, .max_delta = 0.2);
}

void pm_inception_list(const struct pm_inception_way *way, const struct pm_request *r,
                       struct pm_augment_rows *out)
{
    if (r->train)
        pm_augment_add(out, &pm_augmentation_random_box_crop, NULL, 0);
    else
        PM_ADD(out, central_crop, .fraction = way->central_fraction);
    PM_ADD(out, resize, .method = r->train ? (int)way->resize : PM_RESIZE_BILINEAR);
    if (r->train)
        PM_ADD(out, random_flip, .probability = 0.5);
    pm_augment_add(out, &pm_row_unit, NULL, 0);
    if (!r->train)
        return;
    for (int i = 0; i < way->distortions; i++)
        distort((enum pm_distortion)way->order[i], out);
    pm_augment_add(out, &pm_augmentation_clip, NULL, 0);
}

void pm_inception_values(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    (void)cfg, (void)r;
    pm_augment_add(out, &pm_row_unit, NULL, 0);
    PM_ADD(out, linear, .factor = 2, .add = { -1, -1, -1 });
}

int pm_inception_normal(const void *cfg, int channels, struct pm_normal *out)
{
    (void)cfg, (void)channels;
    return pm_normal_half(127.5f, "the middle, central_fraction of each side, resized to the size "
                          "whatever its shape", "bilinear", out);
}

/* ---- its own --------------------------------------------------------------------------------- */

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    static const struct pm_draws none; /* eval has no draws */
    const struct pm_draws *d = r->train ? r->draws : &none;
    const struct inception_cfg *c = cfg;
    /* fast_mode applies the first two of an order; three of the four orders began with
     * saturation. */
    const int fast = c->before_2018 && d->color_ordering > 0;
    const struct pm_inception_way way = {
        .resize = c->fast_mode ? PM_RESIZE_BILINEAR : (enum pm_resize)d->resize_method,
        .order = pm_color_orders[c->fast_mode ? fast : d->color_ordering],
        .distortions = c->fast_mode ? 2 : 4,
        .central_fraction = c->central_fraction,
    };

    pm_inception_list(&way, r, out);
    return PM_OK;
}

const struct pm_preprocessing pm_preprocessing_inception = {
    .name = "inception",
    .help = "random box, resize, flip, colours; values to -1..1",
    .opts = opts,
    .cfg_size = sizeof(struct inception_cfg),
    .draw = draw,
    .list = list,
    .values = pm_inception_values,
    .normal = pm_inception_normal,
};
