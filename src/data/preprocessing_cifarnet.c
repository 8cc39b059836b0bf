/* cifarnet. Training: zero padding on each side, random crop, flip, brightness +-63, contrast
 * 0.2..1.8, standardisation. Evaluation: central crop or padding, standardisation. Draws: crop_y,
 * crop_x, flip, brightness, contrast. */
#include "data/augment.h"

struct cifarnet_cfg {
    int padding;
};

static const struct pm_opt opts[] = {
    PM_INT(cifarnet_cfg, padding, 4, 0, 1024, "zeros added on each side before the random crop"),
    { 0 },
};

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    (void)cfg, (void)s;
    *out = (struct pm_draws){ .crop_y = pm_rng_uniform(r), .crop_x = pm_rng_uniform(r) };
    out->flip = pm_rng_uniform(r) < 0.5;
    out->brightness = pm_rng_uniform(r);
    out->contrast = pm_rng_uniform(r);
}

static int list_train(int padding, const struct pm_request *r, struct pm_augment_rows *out)
{
    static const float zero;
    const struct pm_target *t = r->target;

    if (r->image_height + 2 * padding < t->height || r->image_width + 2 * padding < t->width)
        return pm_fail(PM_EDATA,
                       "%s: an image of %d x %d with %d pixels of padding is smaller than the "
                       "input of %d x %d: raise the padding, or use another preprocessing",
                       t->where, r->image_height, r->image_width, padding, t->height, t->width);
    PM_ADD(out, random_crop, .padding = padding, .fill = { 1, &zero });
    pm_augment_add(out, &pm_row_grey, NULL, 0);
    PM_ADD(out, random_flip, .probability = 0.5);
    PM_ADD(out, random_brightness, .max_delta = 63.0 / 255);
    PM_ADD(out, random_contrast, .min = 0.2, .max = 1.8);
    return PM_OK;
}

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    static const float zero;

    if (r->train)
        return list_train(((const struct cifarnet_cfg *)cfg)->padding, r, out);
    PM_ADD(out, crop_or_pad, .fill = { 1, &zero });
    return PM_OK;
}

static void values(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    (void)cfg, (void)r;
    pm_augment_add(out, &pm_row_standardise, NULL, 0);
}

static int normal(const void *cfg, int channels, struct pm_normal *out)
{
    (void)cfg, (void)channels;
    *out = (struct pm_normal){ .fit = "the middle, cut or padded with zeros to the size",
                               .interpolation = "none", .own = true };
    return PM_OK;
}

const struct pm_preprocessing pm_preprocessing_cifarnet = {
    .name = "cifarnet",
    .help = "random crop, flip, brightness, contrast; standardised",
    .opts = opts,
    .cfg_size = sizeof(struct cifarnet_cfg),
    .draw = draw,
    .list = list,
    .values = values,
    .normal = normal,
};
