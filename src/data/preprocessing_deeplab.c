/* deeplab, for pictures with a label map. If min_resize is set, the smaller side is resized to it;
 * the larger side gets at most max_resize. Both are rounded up to k * resize_factor + 1. In
 * training, a drawn scale then multiplies the sides. The picture is padded below and at the right
 * to the input's size. In training, a random crop of that size is taken and flipped.
 *
 * deeplab computes x * 2 / 255 - 1 and pads with 127.5. deeplab_means subtracts the means and pads
 * with them. deeplab_means_grey subtracts the means and pads with 127.5, as the original does for
 * resnet_v1_18.
 *
 * Resizing aligns corners: element i of out comes from s = i * ((in - 1) / (out - 1)), all in
 * float32. Pictures are interpolated bilinearly. Maps take element min(round(s), in - 1), halves
 * away from zero. (The rule for maps is TensorFlow 2.12's, verified for all of 1..199 to 43 sizes
 * of 1..295.) Sizes are truncated float32 products, so a product just below an integer gives one
 * pixel less.
 *
 * Rows are computed on demand, only for the columns in the window. Draws: side, crop_y, crop_x,
 * flip. */
#include <string.h>

#include "data/augment.h"

struct deeplab_cfg {
    int min_resize, max_resize, resize_factor;
    bool keep_aspect_ratio;
    double min_scale, max_scale, scale_step;
};

static const struct pm_opt opts[] = {
    PM_OPTS_RANGE(deeplab_cfg),
    PM_OPTS_SCALE(deeplab_cfg),
    { 0 },
};

static const float means[3] = { 123.15f, 115.90f, 103.06f };
static const float grey_mean = 0.2989f * 123.15f + 0.5870f * 115.90f + 0.1140f * 103.06f;

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    (void)cfg, (void)s;
    *out = (struct pm_draws){ .side = pm_rng_uniform(r),
                              .crop_y = pm_rng_uniform(r),
                              .crop_x = pm_rng_uniform(r) };
    out->flip = pm_rng_uniform(r) < 0.5;
}

/* ---- the list ---------------------------------------------------------------------------- */

static struct resize_to_range_cfg range_of(const struct deeplab_cfg *c)
{
    return (struct resize_to_range_cfg){ c->min_resize, c->max_resize, c->resize_factor,
                                         c->keep_aspect_ratio };
}

static struct random_scale_cfg scale_of(const struct deeplab_cfg *c)
{
    return (struct random_scale_cfg){ c->min_scale, c->max_scale, c->scale_step };
}

/* Evaluation keeps the whole picture. */
static int place_whole(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                       struct pm_geometry *g)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);

    (void)cfg, (void)d;
    if (height > t->height || width > t->width)
        return pm_fail(PM_EDATA,
                       "%s: an image of %d x %d, %d x %d when resized, is larger than the "
                       "input of %d x %d: set input.eval_size to at least that, a smaller "
                       "input.min_resize and input.max_resize, or eval.resize=false",
                       t->where, g->height, g->width, height, width, t->height, t->width);
    pm_geometry_window(g, 0, 0, t->height, t->width, t->fill);
    return PM_OK;
}

static const struct pm_augmentation whole = {
    .name = "whole", .sizing = PM_SIZE_INPUT, .carries = PM_CARRIES_ALL, .place = place_whole,
};

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    const struct resize_to_range_cfg range = range_of(cfg);
    const struct random_scale_cfg scale = scale_of(cfg);

    pm_augment_add(out, &pm_augmentation_resize_to_range, &range, sizeof range);
    if (!r->train) {
        pm_augment_add(out, &whole, NULL, 0);
        return PM_OK;
    }
    pm_augment_add(out, &pm_augmentation_random_scale, &scale, sizeof scale);
    PM_ADD(out, random_crop, .padding = 0);
    PM_ADD(out, random_flip, .probability = 0.5);
    return PM_OK;
}

static void values_half(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    (void)cfg, (void)r;
    PM_ADD(out, linear, .factor = 2.0f / 255, .add = { -1, -1, -1 });
}

static void values_means(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    struct linear_cfg less = { .factor = 1 };

    (void)cfg;
    for (int c = 0; c < 3; c++)
        less.add[c] = -(r->target->channels == 3 ? means[c] : grey_mean);
    pm_augment_add(out, &pm_augmentation_linear, &less, sizeof less);
}

/* ---- the three rows ------------------------------------------------------------------------ */

static const char fit[] =
    "resized so that the smaller side is min_resize and the larger max_resize at most, sides "
    "k * resize_factor + 1 (corners aligned; as it is without them), then padded below and at the "
    "right to the size with mean";
static const char fit_grey[] =
    "resized so that the smaller side is min_resize and the larger max_resize at most, sides "
    "k * resize_factor + 1 (corners aligned; as it is without them), then padded below and at the "
    "right to the size with 127.5";

/* pad: NULL: the mean. */
static int normal_padded(const struct deeplab_cfg *c, const float *pad, struct pm_normal *out)
{
    const struct resize_to_range_cfg range = range_of(c);
    const struct random_scale_cfg scale = scale_of(c);
    const int err = pm_check_range(&range, "input");

    memcpy(out->pad, pad ? pad : out->mean, sizeof out->pad);
    out->padded = true;
    out->range = (struct pm_resize_range){ c->min_resize, c->max_resize, c->resize_factor,
                                           !c->keep_aspect_ratio };
    return err < 0 ? err : pm_check_scale(&scale, "input");
}

static int normal_half(const void *cfg, int channels, struct pm_normal *out)
{
    const int err = pm_normal_half(127.5f, fit, "bilinear", out);

    (void)channels;
    return err < 0 ? err : normal_padded(cfg, NULL, out);
}

static int normal_of_means(const void *cfg, int channels, const float *pad, const char *how,
                           struct pm_normal *out)
{
    *out = (struct pm_normal){ .fit = how, .interpolation = "bilinear" };
    for (int c = 0; c < channels; c++)
        out->mean[c] = channels == 3 ? means[c] : grey_mean, out->std[c] = 1;
    return normal_padded(cfg, pad, out);
}

static int normal_means(const void *cfg, int channels, struct pm_normal *out)
{
    return normal_of_means(cfg, channels, NULL, fit, out);
}

static int normal_means_grey(const void *cfg, int channels, struct pm_normal *out)
{
    static const float grey[4] = { 127.5f, 127.5f, 127.5f, 127.5f };

    return normal_of_means(cfg, channels, grey, fit_grey, out);
}

#define ROW(text, explained, values_, normal_)                                                     \
    {                                                                                              \
        .name = text, .help = explained, .opts = opts, .cfg_size = sizeof(struct deeplab_cfg),     \
        .maps = true, .draw = draw, .list = list, .values = values_, .normal = normal_,            \
    }
const struct pm_preprocessing pm_preprocessing_deeplab =
    ROW("deeplab", "random scale, pad, crop, flip, also of the label map; values to -1..1",
        values_half, normal_half);
const struct pm_preprocessing pm_preprocessing_deeplab_means =
    ROW("deeplab_means", "like deeplab, but subtracts the means and pads with them", values_means,
        normal_means);
const struct pm_preprocessing pm_preprocessing_deeplab_means_grey =
    ROW("deeplab_means_grey", "like deeplab, but subtracts the means and pads with 127.5",
        values_means,
        normal_means_grey);
