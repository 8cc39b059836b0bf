/* vgg (also for the residual nets): the smaller side is resized to S keeping the aspect ratio, then
 * a crop of the input's size, minus the means; no scaling. Training: S uniform in
 * resize_side_min..max, random crop, flip. Evaluation: S = resize_side_min, central crop.
 *
 * Only the crop's window of the resized picture is computed. For a grey picture, the luma of the
 * means is subtracted. Draws: side, crop_y, crop_x, flip. */
#include "data/augment.h"

struct vgg_cfg {
    int resize_side_min, resize_side_max;
    bool before_2018;
};

static const struct pm_opt opts[] = {
    PM_INT(vgg_cfg, resize_side_min, 256, 1, 16384,
           "smallest length of the smaller side after resizing; evaluation uses it"),
    PM_INT(vgg_cfg, resize_side_max, 512, 1, 16384,
           "largest length of the smaller side after resizing"),
    PM_BOOL(vgg_cfg, before_2018, false,
            "sizes after resizing are truncated, not rounded, like the original before "
            "February 2018"),
    { 0 },
};

static const float means[3] = { 123.68f, 116.78f, 103.94f };
static const float grey_mean = 0.2989f * 123.68f + 0.5870f * 116.78f + 0.1140f * 103.94f;

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    (void)cfg, (void)s;
    *out = (struct pm_draws){ .side = pm_rng_uniform(r),
                              .crop_y = pm_rng_uniform(r),
                              .crop_x = pm_rng_uniform(r) };
    out->flip = pm_rng_uniform(r) < 0.5;
}

/* The crop must lie in the resized picture. */
static int check_size(const struct vgg_cfg *v, int side, const struct pm_request *r)
{
    const struct pm_target *t = r->target;
    const int h = r->image_height, w = r->image_width;
    const float scale = (float)side / (float)(h < w ? h : w);
    const int rows = pm_rounded_side(h, scale, v->before_2018);
    const int cols = pm_rounded_side(w, scale, v->before_2018);

    if (rows >= t->height && cols >= t->width)
        return PM_OK;
    return pm_fail(PM_EDATA,
                   "%s: an image of %d x %d resized to %d x %d is smaller than the input of "
                   "%d x %d: set resize_side_min to at least %d",
                   t->where, h, w, rows, cols, t->height, t->width,
                   t->height > t->width ? t->height : t->width);
}

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    const struct vgg_cfg *v = cfg;
    const int spread = v->resize_side_max - v->resize_side_min;
    const int side = v->resize_side_min + (r->train ? (int)(r->draws->side * (spread + 1)) : 0);
    int err = PM_OK;

    PM_TRY(check_size(v, side, r));
    PM_ADD(out, random_side, .min = side, .max = side, .cut = v->before_2018);
    if (!r->train) {
        PM_ADD(out, crop_or_pad, .fill = { 0 });
        return PM_OK;
    }
    PM_ADD(out, random_crop, .padding = 0);
    PM_ADD(out, random_flip, .probability = 0.5);
out:
    return err;
}

static void values(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    struct linear_cfg less = { .factor = 1 };

    (void)cfg;
    for (int c = 0; c < 3; c++)
        less.add[c] = -(r->target->channels == 3 ? means[c] : grey_mean);
    pm_augment_add(out, &pm_augmentation_linear, &less, sizeof less);
}

static int normal(const void *cfg, int channels, struct pm_normal *out)
{
    const struct vgg_cfg *v = cfg;

    if (v->resize_side_max < v->resize_side_min)
        return pm_fail(PM_ECONFIG, "vgg: resize_side_min %d is above resize_side_max %d",
                       v->resize_side_min, v->resize_side_max);
    *out = (struct pm_normal){
        .fit = "the smaller side resized to resize_side_min, then the middle of the size cut out",
        .interpolation = "bilinear",
    };
    for (int c = 0; c < channels; c++)
        out->mean[c] = channels == 3 ? means[c] : grey_mean, out->std[c] = 1;
    return PM_OK;
}

const struct pm_preprocessing pm_preprocessing_vgg = {
    .name = "vgg",
    .help = "resize the smaller side, crop, flip, subtract the means",
    .opts = opts,
    .cfg_size = sizeof(struct vgg_cfg),
    .draw = draw,
    .list = list,
    .values = values,
    .normal = normal,
};
