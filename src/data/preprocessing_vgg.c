/* vgg (also the residual nets'): the smaller side is resized to S keeping the shape, then a crop of
 * the input's size, minus the means; no scaling. Train: S uniform in resize_side_min..max, random
 * crop, flip. Eval: S = resize_side_min, central crop.
 * Only the crop's window of the resized picture is computed. A grey picture has the means' luma
 * taken off. Draws: side, crop_y, crop_x, flip. */
#include <math.h>

#include "data/preprocess.h"

struct vgg_cfg {
    int resize_side_min, resize_side_max;
    bool before_2018;
};

static const struct pm_opt opts[] = {
    PM_INT(vgg_cfg, resize_side_min, 256, 1, 16384, "smaller side after resizing, least; in eval"),
    PM_INT(vgg_cfg, resize_side_max, 512, 1, 16384, "smaller side after resizing, most"),
    PM_BOOL(vgg_cfg, before_2018, false,
            "sizes after resizing are cut, not rounded, as the original's before February 2018"),
    { 0 },
};

static const float means[3] = { 123.68f, 116.78f, 103.94f };
static const float grey_mean = 0.2989f * 123.68f + 0.5870f * 116.78f + 0.1140f * 103.94f;

static void draw(const void *cfg, struct pm_rng *r, const struct pm_sight *s, struct pm_draws *out)
{
    (void)cfg, (void)s;
    *out = (struct pm_draws){ .side = pm_rng_uniform(r),
                              .crop_y = pm_rng_uniform(r),
                              .crop_x = pm_rng_uniform(r) };
    out->flip = pm_rng_uniform(r) < 0.5;
}

/* Halves round to even. */
static int resized(int side, float scale, const struct vgg_cfg *v)
{
    return v->before_2018 ? (int)((float)side * scale) : (int)rintf((float)side * scale);
}

static int apply(const void *cfg, const struct pm_image8 *in, bool train, const struct pm_draws *d,
                 int height, int width, int channels, float *out, const char *where)
{
    const struct vgg_cfg *v = cfg;
    const int spread = v->resize_side_max - v->resize_side_min;
    const int side = v->resize_side_min + (train ? (int)(d->side * (spread + 1)) : 0);
    const int smaller = in->height < in->width ? in->height : in->width;
    const float scale = (float)side / (float)smaller;
    const int rows = resized(in->height, scale, v), cols = resized(in->width, scale, v);
    const size_t count = (size_t)height * (size_t)width;

    if (spread < 0)
        return pm_fail(PM_ECONFIG, "vgg: resize_side_min %d is above resize_side_max %d",
                       v->resize_side_min, v->resize_side_max);
    if (rows < height || cols < width)
        return pm_fail(PM_EDATA,
                       "%s: an image of %d x %d resized to %d x %d is smaller than the input of "
                       "%d x %d: set resize_side_min to at least %d",
                       where, in->height, in->width, rows, cols, height, width,
                       height > width ? height : width);
    const int y = train ? (int)(d->crop_y * (rows - height + 1)) : (rows - height) / 2;
    const int x = train ? (int)(d->crop_x * (cols - width + 1)) : (cols - width) / 2;
    float *work = pm_work(in, channels, count, out);
    pm_resize_window(pm_view8_of(in), rows, cols, y, x, height, width, work);
    pm_grey_settle(work, count, out);
    if (train && d->flip)
        pm_flip(out, height, width, channels);
    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < channels; c++)
            out[i * (size_t)channels + (size_t)c] -= channels == 3 ? means[c] : grey_mean;
    return PM_OK;
}

static int normal(const void *cfg, int channels, struct pm_normal *out)
{
    (void)cfg;
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
    .apply = apply,
    .normal = normal,
};
