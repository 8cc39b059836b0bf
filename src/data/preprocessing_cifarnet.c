/* cifarnet. Train: zero padding on each side, random crop, flip, brightness +-63, contrast
 * 0.2..1.8, standardisation. Eval: centred crop or padding, standardisation. Draws: crop_y, crop_x,
 * flip, brightness, contrast. */
#include <string.h>

#include "data/preprocess.h"

struct cifarnet_cfg {
    int padding;
};

static const struct pm_opt opts[] = {
    PM_INT(cifarnet_cfg, padding, 4, 0, 1024, "zeros added on each side before the random crop"),
    { 0 },
};

static void draw(const void *cfg, struct pm_rng *r, const struct pm_sight *s, struct pm_draws *out)
{
    (void)cfg, (void)s;
    *out = (struct pm_draws){ .crop_y = pm_rng_uniform(r), .crop_x = pm_rng_uniform(r) };
    out->flip = pm_rng_uniform(r) < 0.5;
    out->brightness = pm_rng_uniform(r);
    out->contrast = pm_rng_uniform(r);
}

/* The window [y, y+height) x [x, x+width) of the picture with its padding. */
static void padded_crop(struct pm_view8 in, int padding, int y, int x, int height, int width,
                        float *out)
{
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++, out += in.channels) {
            const int sy = y + i - padding, sx = x + j - padding;
            const bool inside = sy >= 0 && sy < in.height && sx >= 0 && sx < in.width;
            const uint8_t *from = in.pixels + (inside ? (size_t)sy * in.stride : 0) +
                                  (inside ? (size_t)sx * (size_t)in.channels : 0);
            for (int c = 0; c < in.channels; c++)
                out[c] = inside ? from[c] : 0;
        }
}

static int apply(const void *cfg, const struct pm_image8 *in, bool train, const struct pm_draws *d,
                 int height, int width, int channels, float *out, const char *where)
{
    const int padding = ((const struct cifarnet_cfg *)cfg)->padding;
    const int room_y = in->height + 2 * padding - height, room_x = in->width + 2 * padding - width;
    const size_t count = (size_t)height * (size_t)width, values = count * (size_t)channels;
    float *work;

    if (!train) {
        work = pm_work(in, channels, count, out);
        pm_crop_or_pad(pm_view8_of(in), height, width, work);
        pm_grey_settle(work, count, out);
        pm_standardise(out, values);
        return PM_OK;
    }
    if (room_y < 0 || room_x < 0)
        return pm_fail(PM_EDATA,
                       "%s: an image of %d x %d with %d pixels of padding is smaller than the "
                       "input of %d x %d: raise the padding or take another preprocessing",
                       where, in->height, in->width, padding, height, width);
    work = pm_work(in, channels, count, out);
    padded_crop(pm_view8_of(in), padding, (int)(d->crop_y * (room_y + 1)),
                (int)(d->crop_x * (room_x + 1)), height, width, work);
    pm_grey_settle(work, count, out);
    if (d->flip)
        pm_flip(out, height, width, channels);
    pm_add_all(out, values, (float)(-63 + 126 * d->brightness));
    pm_contrast(out, count, channels, (float)(0.2 + 1.6 * d->contrast));
    pm_standardise(out, values);
    return PM_OK;
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
    .apply = apply,
    .normal = normal,
};
