/* inception. Train: a box of the picture with random area and shape, resized to the input ignoring
 * the shape, flip, colour distortion, clip to 0..1, then (x - 0.5) * 2. Eval: central crop,
 * bilinear resize, (x - 0.5) * 2. fast_mode resizes bilinearly and distorts brightness, then
 * saturation; otherwise one of four resize methods and one of four orders of all four colour
 * distortions is drawn. The box sampler is TensorFlow's with the whole picture as the one object,
 * so that at least min_object_covered of its area stays: the area's own least of 5 % never shows.
 * A grey picture has no hue or saturation to distort.
 * Draws: box, flip, resize_method, color_ordering, brightness, contrast, saturation, hue. */
#include <math.h>

#include "data/preprocess.h"

struct inception_cfg {
    bool fast_mode, crop_image;
    float central_fraction, area_min, area_max, aspect_min, aspect_max, min_object_covered;
};

static const struct pm_opt opts[] = {
    PM_BOOL(inception_cfg, fast_mode, true, "bilinear, brightness and saturation only"),
    PM_BOOL(inception_cfg, crop_image, true, "train on a random box; else on the whole picture"),
    PM_FLOAT(inception_cfg, central_fraction, 0.875, 0.01, 1, "part of each side kept in eval"),
    PM_FLOAT(inception_cfg, area_min, 0.05, 1e-6, 1, "least area of the box, of the picture's"),
    PM_FLOAT(inception_cfg, area_max, 1, 1e-6, 1, "most area of the box, of the picture's"),
    PM_FLOAT(inception_cfg, aspect_min, 0.75, 0.01, 100, "least width / height of the box"),
    PM_FLOAT(inception_cfg, aspect_max, 1.33, 0.01, 100, "most width / height of the box"),
    PM_FLOAT(inception_cfg, min_object_covered, 0.1, 0, 1, "part of the picture the box holds"),
    { 0 },
};

enum { ATTEMPTS = 100 };

/* One attempt: height and width of a box of the wanted area and shape, in float32 as the original,
 * since the roundings decide. */
static bool try_size(const struct inception_cfg *c, struct pm_rng *r, int height, int width,
                     int *rows, int *cols)
{
    const float aspect = (float)pm_rng_uniform(r) * (c->aspect_max - c->aspect_min) + c->aspect_min;
    const float least = c->area_min * (float)width * (float)height;
    const float most = c->area_max * (float)width * (float)height;
    int lo = (int)lrintf(sqrtf(least / aspect)), hi = (int)lrintf(sqrtf(most / aspect));

    if (lrintf((float)hi * aspect) > width)
        hi = (int)(((double)width + 0.5 - 1e-7) / (double)aspect);
    hi = hi < height ? hi : height;
    lo = lo < hi ? lo : hi;
    int h = (int)pm_rng_int(r, lo, hi), w = (int)lrintf((float)h * aspect);
    if ((float)w * (float)h < least)
        h++, w = (int)lrintf((float)h * aspect);
    if ((float)w * (float)h > most)
        h--, w = (int)lrintf((float)h * aspect);
    *rows = h;
    *cols = w;
    const float area = (float)w * (float)h;
    return area >= least && area <= most && h > 0 && w > 0 && h <= height && w <= width;
}

/* The last offset is never drawn, as in the original. */
static int offset_in(struct pm_rng *r, int room)
{
    return room > 0 ? (int)pm_rng_int(r, 0, room - 1) : 0;
}

static void sample_box(const struct inception_cfg *c, struct pm_rng *r, int height, int width,
                       int box[4])
{
    const double whole = (double)height * width;

    for (int i = 0; i < ATTEMPTS; i++) {
        int h = 0, w = 0;
        if (!try_size(c, r, height, width, &h, &w))
            continue;
        const int y = offset_in(r, height - h), x = offset_in(r, width - w);
        if ((double)h * w / whole < (double)c->min_object_covered)
            continue;
        box[0] = y, box[1] = x, box[2] = h, box[3] = w;
        return;
    }
    box[0] = box[1] = 0, box[2] = height, box[3] = width;
}

static void draw(const void *cfg, struct pm_rng *r, int height, int width, struct pm_draws *out)
{
    const struct inception_cfg *c = cfg;

    *out = (struct pm_draws){ 0 };
    out->flip = pm_rng_uniform(r) < 0.5;
    out->resize_method = (int)pm_rng_int(r, 0, 3);
    out->color_ordering = (int)pm_rng_int(r, 0, 3);
    out->brightness = pm_rng_uniform(r);
    out->saturation = pm_rng_uniform(r);
    out->hue = pm_rng_uniform(r);
    out->contrast = pm_rng_uniform(r);
    if (c->crop_image)
        sample_box(c, r, height, width, out->box);
}

enum { BRIGHTNESS, SATURATION, HUE, CONTRAST };
static const uint8_t orders[4][4] = {
    { BRIGHTNESS, SATURATION, HUE, CONTRAST },
    { SATURATION, BRIGHTNESS, CONTRAST, HUE },
    { CONTRAST, HUE, BRIGHTNESS, SATURATION },
    { HUE, SATURATION, CONTRAST, BRIGHTNESS },
};

static void distort(int what, const struct pm_draws *d, size_t count, int channels, float *x)
{
    const float most = 32.0f / 255;

    if (what == BRIGHTNESS)
        pm_add_all(x, count * (size_t)channels, (float)(2 * d->brightness - 1) * most);
    else if (what == CONTRAST)
        pm_contrast(x, count, channels, (float)(0.5 + d->contrast));
    else if (what == SATURATION && channels == 3)
        pm_saturation(x, count, (float)(0.5 + d->saturation));
    else if (what == HUE && channels == 3)
        pm_hue(x, count, (float)(0.4 * d->hue - 0.2));
}

static void apply_train(const struct inception_cfg *c, struct pm_view8 in, const struct pm_draws *d,
                        int height, int width, float *out)
{
    const size_t count = (size_t)height * (size_t)width, values = count * (size_t)in.channels;

    if (d->box[2] > 0)
        in = pm_view_crop(in, d->box[0], d->box[1], d->box[2], d->box[3]);
    pm_resize(in, c->fast_mode ? PM_RESIZE_BILINEAR : (enum pm_resize)d->resize_method, 1.0f / 255,
              height, width, out);
    if (d->flip)
        pm_flip(out, height, width, in.channels);
    const int ordering = c->fast_mode ? 0 : d->color_ordering;
    for (int i = 0; i < (c->fast_mode ? 2 : 4); i++)
        distort(orders[ordering][i], d, count, in.channels, out);
    for (size_t i = 0; i < values; i++)
        out[i] = fminf(fmaxf(out[i], 0), 1);
}

/* Pixels left off at the start of a side of n. */
static int central_start(int n, double fraction)
{
    return (int)((n - n * fraction) / 2);
}

static int apply(const void *cfg, const struct pm_image8 *in, bool train, const struct pm_draws *d,
                 int height, int width, float *out, const char *where)
{
    const struct inception_cfg *c = cfg;
    const size_t values = (size_t)height * (size_t)width * (size_t)in->channels;

    (void)where;
    if (train) {
        apply_train(c, pm_view8_of(in), d, height, width, out);
    } else {
        const int y = central_start(in->height, (double)c->central_fraction);
        const int x = central_start(in->width, (double)c->central_fraction);
        pm_resize(pm_view_crop(pm_view8_of(in), y, x, in->height - 2 * y, in->width - 2 * x),
                  PM_RESIZE_BILINEAR, 1.0f / 255, height, width, out);
    }
    for (size_t i = 0; i < values; i++)
        out[i] = (out[i] - 0.5f) * 2;
    return PM_OK;
}

const struct pm_preprocessing pm_preprocessing_inception = {
    .name = "inception",
    .help = "random box, resize, flip, colours; values to -1..1",
    .opts = opts,
    .cfg_size = sizeof(struct inception_cfg),
    .draw = draw,
    .apply = apply,
};
