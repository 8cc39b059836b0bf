/* Pixel values after TensorFlow's Object Detection API: random_distort_color,
 * random_pixel_value_scale, adjust_gamma, random_black_patches, random_patch_gaussian,
 * random_jpeg_quality. Results are limited to black..white. Draws: brightness, contrast,
 * saturation, hue, which, window, more, rng; numbers per pixel or per patch come from rng. */
#include <math.h>

#include "data/augment.h"

static float limited(float v, float white)
{
    return v < 0 ? 0 : v > white ? white : v;
}

static void limit(struct pm_pixel_values *x)
{
    const size_t values = x->count * (size_t)x->channels;

    for (size_t i = 0; i < values; i++)
        x->v[i] = limited(x->v[i], x->white);
}

/* ---- random_distort_color ---------------------------------------------------------------- */

struct distort_cfg {
    int color_ordering;
};

static const struct pm_opt distort_opts[] = {
    PM_INT(distort_cfg, color_ordering, 0, 0, 1,
           "0: brightness, saturation, hue, contrast; 1: brightness, contrast, saturation, hue"),
    { 0 },
};

static void draw_distort(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                         struct pm_draws *out)
{
    (void)cfg, (void)s;
    out->brightness = pm_rng_uniform(r);
    out->saturation = pm_rng_uniform(r);
    out->hue = pm_rng_uniform(r);
    out->contrast = pm_rng_uniform(r);
}

static void one_distortion(enum pm_distortion what, const struct pm_draws *d,
                           struct pm_pixel_values *x)
{
    if (what == PM_BRIGHTNESS)
        pm_add_all(x->v, x->count * (size_t)x->channels,
                   (float)(2 * d->brightness - 1) * 32 / 255 * x->white);
    else if (what == PM_CONTRAST)
        pm_contrast(x->v, x->count, x->channels, (float)(0.5 + d->contrast));
    else if (x->channels == 3 && what == PM_SATURATION)
        pm_saturation(x->v, x->count, (float)(0.5 + d->saturation));
    else if (x->channels == 3)
        pm_hue(x->v, x->count, (float)(0.4 * d->hue - 0.2));
}

static void distort(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    static const enum pm_distortion orders[2][4] = {
        { PM_BRIGHTNESS, PM_SATURATION, PM_HUE, PM_CONTRAST },
        { PM_BRIGHTNESS, PM_CONTRAST, PM_SATURATION, PM_HUE },
    };

    for (int i = 0; i < 4; i++) {
        one_distortion(orders[((const struct distort_cfg *)cfg)->color_ordering][i], d, x);
        limit(x);
    }
}

const struct pm_augmentation pm_augmentation_random_distort_color = {
    .name = "random_distort_color",
    .help = "changes brightness, contrast, saturation and hue in a fixed order",
    .opts = distort_opts,
    .cfg_size = sizeof(struct distort_cfg),
    .carries = PM_CARRIES_ALL,
    .draw = draw_distort,
    .values = distort,
};

/* ---- random_pixel_value_scale ------------------------------------------------------------ */

struct scale_cfg {
    double minval, maxval;
};

static const struct pm_opt scale_opts[] = {
    PM_DOUBLE(scale_cfg, minval, 0.9, 0, 10, "smallest factor"),
    PM_DOUBLE(scale_cfg, maxval, 1.1, 0, 10, "largest factor"),
    { 0 },
};

static int check_scale(const void *cfg, const char *where)
{
    const struct scale_cfg *c = cfg;

    if (c->minval <= c->maxval)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.minval: %g is above %s.maxval, %g", where, c->minval, where,
                   c->maxval);
}

/* A row that draws from rng only. */
static void draw_later(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                       struct pm_draws *out)
{
    (void)cfg, (void)r, (void)s, (void)out;
}

static void scale(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const struct scale_cfg *c = cfg;
    const size_t values = x->count * (size_t)x->channels;
    struct pm_rng r = d->rng;

    for (size_t i = 0; i < values; i++)
        x->v[i] *= (float)(c->minval + (c->maxval - c->minval) * pm_rng_uniform(&r));
    limit(x);
}

const struct pm_augmentation pm_augmentation_random_pixel_value_scale = {
    .name = "random_pixel_value_scale",
    .help = "multiplies every value by its own random factor",
    .opts = scale_opts,
    .cfg_size = sizeof(struct scale_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_scale,
    .draw = draw_later,
    .values = scale,
};

/* ---- adjust_gamma ------------------------------------------------------------------------ */

struct gamma_cfg {
    double gamma, gain;
};

static const struct pm_opt gamma_opts[] = {
    PM_DOUBLE(gamma_cfg, gamma, 1, 0, 100, "exponent of values in 0..1"),
    PM_DOUBLE(gamma_cfg, gain, 1, 0, 100, "factor after the power"),
    { 0 },
};

static void adjust_gamma(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const struct gamma_cfg *c = cfg;
    const size_t values = x->count * (size_t)x->channels;

    (void)d;
    limit(x);
    for (size_t i = 0; i < values; i++)
        x->v[i] = (float)c->gain * powf(x->v[i] / x->white, (float)c->gamma) * x->white;
    limit(x);
}

const struct pm_augmentation pm_augmentation_adjust_gamma = {
    .name = "adjust_gamma",
    .help = "raises values in 0..1 to a power and multiplies them",
    .opts = gamma_opts,
    .cfg_size = sizeof(struct gamma_cfg),
    .carries = PM_CARRIES_ALL,
    .values = adjust_gamma,
};

/* ---- random_black_patches ---------------------------------------------------------------- */

struct patches_cfg {
    int max_black_patches;
    double probability;
    float size_to_image_ratio;
};

static const struct pm_opt patches_opts[] = {
    PM_INT(patches_cfg, max_black_patches, 10, 0, 1000, "number of patches that may be drawn"),
    PM_DOUBLE(patches_cfg, probability, 0.5, 0, 1, "probability of each patch"),
    PM_FLOAT(patches_cfg, size_to_image_ratio, 0.1, 0, 1,
             "side of a patch, as a share of the picture's smaller side"),
    { 0 },
};

static void fill_square(struct pm_pixel_values *x, int y, int left, int side)
{
    const size_t channels = (size_t)x->channels;

    for (int row = y; row < y + side && row < x->height; row++)
        for (int column = left; column < left + side && column < x->width; column++)
            for (size_t c = 0; c < channels; c++)
                x->v[((size_t)row * (size_t)x->width + (size_t)column) * channels + c] = 0;
}

static void patches(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const struct patches_cfg *c = cfg;
    const float room = 1 - c->size_to_image_ratio;
    const int smaller = x->height < x->width ? x->height : x->width;
    const int side = (int)((float)smaller * c->size_to_image_ratio);
    struct pm_rng r = d->rng;

    for (int i = 0; i < c->max_black_patches; i++) {
        const bool wanted = pm_rng_uniform(&r) < c->probability;
        const int y = (int)((float)pm_rng_uniform(&r) * room * (float)x->height);
        const int left = (int)((float)pm_rng_uniform(&r) * room * (float)x->width);

        if (wanted)
            fill_square(x, y, left, side);
    }
}

const struct pm_augmentation pm_augmentation_random_black_patches = {
    .name = "random_black_patches",
    .help = "draws black squares at random places",
    .opts = patches_opts,
    .cfg_size = sizeof(struct patches_cfg),
    .carries = PM_CARRIES_ALL,
    .draw = draw_later,
    .values = patches,
};

/* ---- random_patch_gaussian --------------------------------------------------------------- */

#define RANDOM_COEF(tag) \
    PM_DOUBLE(tag, random_coef, 0, 0, 1, "probability that the picture is not changed")

/* more[0] is below random_coef: the picture stays. */
static bool spared(double coef, const struct pm_draws *d)
{
    return d->more[0] < coef;
}

struct gaussian_cfg {
    double random_coef;
    int min_patch_size, max_patch_size;
    double min_gaussian_stddev, max_gaussian_stddev;
};

static const struct pm_opt gaussian_opts[] = {
    RANDOM_COEF(gaussian_cfg),
    PM_INT(gaussian_cfg, min_patch_size, 1, 1, 16384, "smallest side of the square, in pixels"),
    PM_INT(gaussian_cfg, max_patch_size, 250, 1, 16384, "the side is below this"),
    PM_DOUBLE(gaussian_cfg, min_gaussian_stddev, 0, 0, 10,
              "smallest standard deviation of the noise; 1 is white"),
    PM_DOUBLE(gaussian_cfg, max_gaussian_stddev, 1, 0, 10,
              "largest standard deviation of the noise"),
    { 0 },
};

static int check_gaussian(const void *cfg, const char *where)
{
    const struct gaussian_cfg *c = cfg;

    if (c->min_patch_size > c->max_patch_size)
        return pm_fail(PM_ECONFIG, "%s.min_patch_size: %d is above %s.max_patch_size, %d", where,
                       c->min_patch_size, where, c->max_patch_size);
    if (c->min_gaussian_stddev > c->max_gaussian_stddev)
        return pm_fail(PM_ECONFIG, "%s.min_gaussian_stddev: %g is above %s.max_gaussian_stddev, %g",
                       where, c->min_gaussian_stddev, where, c->max_gaussian_stddev);
    return PM_OK;
}

static void draw_gaussian(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                          struct pm_draws *out)
{
    const struct gaussian_cfg *c = cfg;
    const int most = c->max_patch_size > c->min_patch_size ? c->max_patch_size - 1
                                                           : c->min_patch_size;
    out->more[0] = pm_rng_uniform(r);
    const int side = (int)pm_rng_int(r, c->min_patch_size, most);
    out->more[1] = c->min_gaussian_stddev +
                   (c->max_gaussian_stddev - c->min_gaussian_stddev) * pm_rng_uniform(r);
    out->window[0] = (int)pm_rng_int(r, 0, s->height - 1) - side / 2;
    out->window[1] = (int)pm_rng_int(r, 0, s->width - 1) - side / 2;
    out->window[2] = out->window[3] = side;
}

/* Noise depends on the place in the square only, so it is drawn outside of the picture, too. */
static void gaussian(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const int *w = d->window;
    struct pm_rng r = d->rng;

    if (spared(((const struct gaussian_cfg *)cfg)->random_coef, d))
        return;
    for (int y = w[0]; y < w[0] + w[2] && y < x->height; y++)
        for (int left = w[1]; left < w[1] + w[3]; left++)
            for (int c = 0; c < x->channels; c++) {
                const float noise = (float)(d->more[1] * pm_rng_normal(&r)) * x->white;

                if (y < 0 || left < 0 || left >= x->width)
                    continue;
                float *v = &x->v[((size_t)y * (size_t)x->width + (size_t)left) *
                                     (size_t)x->channels + (size_t)c];
                *v = limited(*v + noise, x->white);
            }
}

const struct pm_augmentation pm_augmentation_random_patch_gaussian = {
    .name = "random_patch_gaussian",
    .help = "adds noise to one square of the picture",
    .opts = gaussian_opts,
    .cfg_size = sizeof(struct gaussian_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_gaussian,
    .draw = draw_gaussian,
    .values = gaussian,
};

/* ---- random_jpeg_quality ----------------------------------------------------------------- */

struct jpeg_cfg {
    double random_coef;
    int min_jpeg_quality, max_jpeg_quality;
};

static const struct pm_opt jpeg_opts[] = {
    RANDOM_COEF(jpeg_cfg),
    PM_INT(jpeg_cfg, min_jpeg_quality, 0, 0, 100, "smallest quality; 0 and 1 are the same"),
    PM_INT(jpeg_cfg, max_jpeg_quality, 100, 0, 100, "the quality is below this"),
    { 0 },
};

static int check_jpeg(const void *cfg, const char *where)
{
    const struct jpeg_cfg *c = cfg;

    if (c->min_jpeg_quality <= c->max_jpeg_quality)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.min_jpeg_quality: %d is above %s.max_jpeg_quality, %d", where,
                   c->min_jpeg_quality, where, c->max_jpeg_quality);
}

static void draw_jpeg(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                      struct pm_draws *out)
{
    const struct jpeg_cfg *c = cfg;
    const int least = c->min_jpeg_quality, most = c->max_jpeg_quality;

    (void)s;
    out->more[0] = pm_rng_uniform(r);
    out->which = (int)pm_rng_int(r, least, most > least ? most - 1 : least);
}

/* Writes the values as a JPEG and reads them back. A picture that cannot be written, of more than
 * 65,500 pixels a side, stays. */
static void jpeg(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const size_t values = x->count * (size_t)x->channels;
    struct pm_image8 im = { x->height, x->width, x->channels, NULL }, back = { 0 };
    uint8_t *file = NULL;
    size_t size = 0;

    if (spared(((const struct jpeg_cfg *)cfg)->random_coef, d))
        return;
    im.pixels = pm_malloc(values);
    for (size_t i = 0; i < values; i++)
        im.pixels[i] = (uint8_t)(limited(x->v[i] / x->white, 1) * 255 + 0.5f);
    if (pm_image_encode_jpeg(&im, d->which < 1 ? 1 : d->which, &file, &size) == PM_OK &&
        pm_image_decode(file, size, x->channels, 0, "augmentation", &back) == PM_OK)
        for (size_t i = 0; i < values; i++)
            x->v[i] = (float)back.pixels[i] * (x->white / 255);
    pm_free(file);
    pm_image_free(&back);
    pm_image_free(&im);
}

const struct pm_augmentation pm_augmentation_random_jpeg_quality = {
    .name = "random_jpeg_quality",
    .help = "adds the errors of a JPEG file of random quality",
    .opts = jpeg_opts,
    .cfg_size = sizeof(struct jpeg_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_jpeg,
    .draw = draw_jpeg,
    .values = jpeg,
};
