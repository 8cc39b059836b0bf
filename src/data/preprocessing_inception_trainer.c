/* inception_trainer: the preprocessing of the older multi-GPU Inception trainer. It differs from
 * inception in two ways. The records' own boxes (image/object/bbox/...) are the box sampler's
 * objects. The original chose the resize method and the colour order (always all four distortions)
 * by the number of the thread that made the example. Here the example's number in the batch
 * chooses, so that nothing depends on threads. Method: number mod 4. Order: even numbers
 * brightness, saturation, hue, contrast; odd numbers brightness, contrast, saturation, hue. Draws:
 * box, flip, resize_method, color_ordering (0 or 1), brightness, contrast, saturation, hue. */
#include "data/augment.h"

struct inception_trainer_cfg {
    float central_fraction, area_min, area_max, aspect_min, aspect_max, min_object_covered;
};

static const struct pm_opt opts[] = {
    PM_FLOAT(inception_trainer_cfg, central_fraction, 0.875, 0.01, 1,
             "share of each side that evaluation keeps"),
    PM_OPTS_BOX_RULE(inception_trainer_cfg),
    { 0 },
};

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    const struct inception_trainer_cfg *c = cfg;
    const struct pm_box_rule rule = { c->area_min, c->area_max, c->aspect_min, c->aspect_max,
                                      c->min_object_covered };

    *out = (struct pm_draws){ .resize_method = (int)(s->example % 4),
                              .color_ordering = (int)(s->example % 2) };
    out->flip = pm_rng_uniform(r) < 0.5;
    out->brightness = pm_rng_uniform(r);
    out->saturation = pm_rng_uniform(r);
    out->hue = pm_rng_uniform(r);
    out->contrast = pm_rng_uniform(r);
    pm_sample_box(&rule, r, s, out->box);
}

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    static const uint8_t orders[2][4] = {
        { PM_BRIGHTNESS, PM_SATURATION, PM_HUE, PM_CONTRAST },
        { PM_BRIGHTNESS, PM_CONTRAST, PM_SATURATION, PM_HUE },
    };
    static const struct pm_draws none; /* eval has no draws */
    const struct pm_draws *d = r->train ? r->draws : &none;
    const struct inception_trainer_cfg *c = cfg;
    const struct pm_inception_way way = { (enum pm_resize)d->resize_method,
                                          orders[d->color_ordering & 1], 4, c->central_fraction };

    pm_inception_list(&way, r, out);
    return PM_OK;
}

const struct pm_preprocessing pm_preprocessing_inception_trainer = {
    .name = "inception_trainer",
    .help = "inception with the records' boxes; resize methods and colour orders take turns",
    .opts = opts,
    .cfg_size = sizeof(struct inception_trainer_cfg),
    .wants_boxes = true,
    .draw = draw,
    .list = list,
    .values = pm_inception_values,
    .normal = pm_inception_normal,
};
