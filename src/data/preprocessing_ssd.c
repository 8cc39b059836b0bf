/* ssd, ssd_means: preprocessing of detectors, after TensorFlow's Object Detection API. Values
 * become x * 2 / 255 - 1 (ssd) or lose their means (ssd_means, for the residual nets). One of the
 * API's resizers brings the picture to the input's size, after input.augment as well:
 *   fixed_shape        stretched to the input
 *   keep_aspect_ratio  scale = min(min_dimension / smaller side, max_dimension / larger side),
 *                      sides rounded, halves to even; padded below and at the right. Without
 *                      dimensions the largest size that fits into the input. Training may draw
 *                      min_dimension of a list, as Detectron does; evaluation takes the largest
 *   conditional        shrunk so that the larger side is size_threshold at most (greater), or
 *                      enlarged so that the smaller side is that at least (smaller); sides
 *                      truncated, corners aligned; padded
 *   pad_to_multiple    not resized; padded
 * Sizes are float32 products, like the original's, so one may be just below a whole number.
 * Training without input.augment changes nothing at random.
 *
 * The API's SSD normalises first. Weights of a resize add up to 1, so resizing first gives the same
 * numbers up to rounding, and normalises the pixels of the input only, not those of a photo. The
 * padding comes after it: pad_value is a normalised value.
 *
 * The API's Faster R-CNN pads first, with black pixels, then normalises. ssd_black and
 * ssd_means_black normalise like ssd and ssd_means; without pad_value they pad with black. */
#include <math.h>

#include "data/augment.h"

enum resizer { FIXED_SHAPE, KEEP_ASPECT_RATIO, CONDITIONAL, PAD_TO_MULTIPLE };
enum condition { GREATER, SMALLER };

struct ssd_cfg {
    int resizer, resize_method, min_dimension, max_dimension, condition, size_threshold, multiple;
    struct pm_ints min_dimensions;
    struct pm_floats pad_value;
};

static const struct pm_opt opts[] = {
    PM_ENUM(ssd_cfg, resizer, FIXED_SHAPE,
            "fixed_shape|keep_aspect_ratio|conditional|pad_to_multiple",
            "how pictures get the input's size; all but fixed_shape keep the aspect ratio and pad "
            "below and at the right"),
    PM_ENUM(ssd_cfg, resize_method, PM_RESIZE_BILINEAR, "bilinear|nearest|bicubic|area",
            "interpolation, as TensorFlow 1 computes it"),
    PM_INT(ssd_cfg, min_dimension, 0, 0, 16384,
           "keep_aspect_ratio: length of the smaller side; 0 = as the input allows"),
    PM_INTS(ssd_cfg, min_dimensions, NULL, 1, 16384,
            "keep_aspect_ratio: training draws the smaller side of each picture from this list; "
            "evaluation takes the largest; null = min_dimension"),
    PM_INT(ssd_cfg, max_dimension, 0, 0, 16384,
           "keep_aspect_ratio: largest length of the larger side; 0 = no limit"),
    PM_ENUM(ssd_cfg, condition, GREATER, "greater|smaller",
            "conditional: greater shrinks pictures with a side above size_threshold, smaller "
            "enlarges those with a side below it"),
    PM_INT(ssd_cfg, size_threshold, 300, 1, 16384, "conditional: pixels of a side"),
    PM_INT(ssd_cfg, multiple, 1, 1, 4096,
           "pad_to_multiple: with eval.resize=false both sides are padded to a multiple of this"),
    PM_FLOATS(ssd_cfg, pad_value, NULL, -1000, 1000,
              "value of the padding after normalisation, one number or one per channel; null = 0, "
              "or that of a black pixel with ssd_black and ssd_means_black"),
    { 0 },
};

#define RED 123.68f
#define GREEN 116.779f
#define BLUE 103.939f
#define GREY (0.2989f * RED + 0.5870f * GREEN + 0.1140f * BLUE)
static const float means[3] = { RED, GREEN, BLUE };

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    (void)cfg, (void)r, (void)s;
    *out = (struct pm_draws){ 0 };
}

/* ---- the resizers -------------------------------------------------------------------------- */

/* Options of the two rows below. */
struct resizer_cfg {
    struct ssd_cfg c;
    bool own_size;
};

static float smaller_of(float a, float b)
{
    return a < b ? a : b;
}

/* sides: [2] of the picture, replaced. */
static void keep_ratio(const struct resizer_cfg *r, const int input[2], int sides[2])
{
    const float h = (float)sides[0], w = (float)sides[1];
    const float shorter = smaller_of(h, w), longer = h < w ? w : h;
    const float low = (float)r->c.min_dimension, high = (float)r->c.max_dimension;
    float scale = low / shorter;

    if (!r->c.min_dimension && r->own_size)
        return;
    if (!r->c.min_dimension)
        scale = smaller_of((float)input[0] / h, (float)input[1] / w);
    if (r->c.max_dimension && rintf(longer * scale) > high)
        scale = high / longer;
    sides[0] = (int)fmaxf(rintf(h * scale), 1);
    sides[1] = (int)fmaxf(rintf(w * scale), 1);
}

static void by_condition(const struct ssd_cfg *c, int sides[2])
{
    const int shorter = sides[0] < sides[1] ? sides[0] : sides[1];
    const int longer = sides[0] < sides[1] ? sides[1] : sides[0];
    const int from = c->condition == GREATER ? longer : shorter;
    const bool change = c->condition == GREATER ? longer > c->size_threshold
                                                : shorter < c->size_threshold;
    const float scale = (float)c->size_threshold / (float)from;

    for (int k = 0; k < 2 && change; k++)
        sides[k] = (int)fmaxf((float)sides[k] * scale, 1);
}

static int place_resize(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                        struct pm_geometry *g)
{
    const struct resizer_cfg *r = cfg;
    const int input[2] = { t->height, t->width };
    int sides[2] = { pm_geometry_height(g), pm_geometry_width(g) };

    (void)d;
    if (r->c.resizer == FIXED_SHAPE && !r->own_size)
        sides[0] = input[0], sides[1] = input[1];
    else if (r->c.resizer == KEEP_ASPECT_RATIO)
        keep_ratio(r, input, sides);
    else if (r->c.resizer == CONDITIONAL)
        by_condition(&r->c, sides);
    if (sides[0] > input[0] || sides[1] > input[1])
        return pm_fail(PM_EDATA,
                       "%s: an image of %d x %d, %d x %d when resized, is larger than the input of "
                       "%d x %d: set input.size, in evaluation input.eval_size, to at least that, "
                       "or a smaller input.max_dimension, or another input.resizer",
                       t->where, g->height, g->width, sides[0], sides[1], t->height, t->width);
    pm_geometry_resize(g, sides[0], sides[1],
                       r->c.resizer == CONDITIONAL ? PM_RESIZE_ALIGNED
                                                   : (enum pm_resize)r->c.resize_method);
    return PM_OK;
}

static const struct pm_augmentation resizer = { .name = "resizer",
                                                .carries = PM_CARRIES_ALL,
                                                .place = place_resize };

static int place_pad(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                     struct pm_geometry *g)
{
    const struct pm_floats *pad = &((const struct resizer_cfg *)cfg)->c.pad_value;
    float value[3] = { 0 };

    (void)d;
    for (int c = 0; c < 3 && pad->count; c++)
        value[c] = pad->v[pad->count == 1 ? 0 : c];
    pm_geometry_window(g, 0, 0, t->height, t->width, value);
    return PM_OK;
}

static const struct pm_augmentation padding = { .name = "padding",
                                                .sizing = PM_SIZE_INPUT,
                                                .carries = PM_CARRIES_ALL,
                                                .place = place_pad };

/* ---- the rows ------------------------------------------------------------------------------ */

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    (void)cfg, (void)r, (void)out;
    return PM_OK;
}

/* Length of the smaller side: drawn by a random number in training, else the largest. 0: none. */
static int min_dimension(const struct ssd_cfg *c, bool train, uint32_t number)
{
    const struct pm_ints *list = &c->min_dimensions;
    int most = c->min_dimension;

    if (train && list->count)
        return list->v[number % (uint32_t)list->count];
    for (int i = 0; i < list->count; i++)
        most = list->v[i] > most ? list->v[i] : most;
    return most;
}

static void add_rows(const struct ssd_cfg *c, const struct pm_request *r,
                     const struct linear_cfg *normalised, struct pm_augment_rows *out)
{
    struct resizer_cfg resize = { *c, r->own_size };

    resize.c.min_dimension = min_dimension(c, r->train, r->number);
    pm_augment_add(out, &resizer, &resize, sizeof resize);
    pm_augment_add(out, &pm_augmentation_linear, normalised, sizeof *normalised);
    pm_augment_add(out, &padding, &resize, sizeof resize);
}

static void values_half(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    add_rows(cfg, r, &(struct linear_cfg){ .factor = 2.0f / 255, .add = { -1, -1, -1 } }, out);
}

static void values_means(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    struct linear_cfg less = { .factor = 1 };

    for (int c = 0; c < 3; c++)
        less.add[c] = -(r->target->channels == 3 ? means[c] : GREY);
    add_rows(cfg, r, &less, out);
}

/* Returns the options, with this padding if they state none. */
static struct ssd_cfg padded_by(const void *cfg, struct pm_floats black)
{
    struct ssd_cfg c = *(const struct ssd_cfg *)cfg;

    if (!c.pad_value.count)
        c.pad_value = black;
    return c;
}

static struct ssd_cfg black_half(const void *cfg)
{
    static const float black[] = { -1 };

    return padded_by(cfg, (struct pm_floats){ 1, black });
}

static struct ssd_cfg black_means(const void *cfg, int channels)
{
    static const float colours[] = { -RED, -GREEN, -BLUE }, grey[] = { -GREY };

    return padded_by(cfg, channels == 3 ? (struct pm_floats){ 3, colours }
                                        : (struct pm_floats){ 1, grey });
}

static void values_black_half(const void *cfg, const struct pm_request *r,
                              struct pm_augment_rows *out)
{
    const struct ssd_cfg c = black_half(cfg);

    values_half(&c, r, out);
}

static void values_black_means(const void *cfg, const struct pm_request *r,
                               struct pm_augment_rows *out)
{
    const struct ssd_cfg c = black_means(cfg, r->target->channels);

    values_means(&c, r, out);
}

static const char *const fits[] = {
    [FIXED_SHAPE] = "stretched to the size",
    [KEEP_ASPECT_RATIO] = "resized to min_dimension and max_dimension with the same aspect ratio "
                          "(without them, to the largest that fits), then padded below and at the "
                          "right to the size with the pixel \"pad\"",
    [CONDITIONAL] = "resized to size_threshold if a side is beyond it, then padded below and at "
                    "the right to the size with the pixel \"pad\"",
    [PAD_TO_MULTIPLE] = "padded below and at the right to the size with the pixel \"pad\"",
};

/* Sets the pixel that becomes pad_value, and the rule of the sides before padding. */
static void set_padding(const struct ssd_cfg *c, int channels, struct pm_normal *out)
{
    const struct pm_floats *pad = &c->pad_value;

    out->padded = true;
    for (int k = 0; k < channels; k++)
        out->pad[k] = (pad->count ? pad->v[pad->count == 1 ? 0 : k] : 0) * out->std[k] +
                      out->mean[k];
    if (c->resizer == KEEP_ASPECT_RATIO)
        out->range = (struct pm_resize_range){ .min = min_dimension(c, false, 0),
                                               .max = c->max_dimension, .rule = PM_RULE_RATIO };
    if (c->resizer == CONDITIONAL)
        out->range = (struct pm_resize_range){ .min = c->size_threshold,
                                               .rule = c->condition == GREATER ? PM_RULE_SHRINK
                                                                               : PM_RULE_ENLARGE };
}

static int check(const struct ssd_cfg *c, int channels, struct pm_normal *out)
{
    static const char *const methods[] = { "bilinear", "nearest", "bicubic", "area" };
    const int count = c->pad_value.count, least = min_dimension(c, false, 0);
    const char *const key = c->min_dimensions.count ? "min_dimensions" : "min_dimension";

    if (c->min_dimension && c->min_dimensions.count)
        return pm_fail(PM_ECONFIG, "input.min_dimension: %d, but input.min_dimensions is set, too: "
                       "remove one of the keys", c->min_dimension);
    if (c->max_dimension && !least)
        return pm_fail(PM_ECONFIG, "input.max_dimension: %d has an effect only with "
                       "input.min_dimension or input.min_dimensions: set one of them",
                       c->max_dimension);
    if (least > c->max_dimension && c->max_dimension)
        return pm_fail(PM_ECONFIG, "input.%s: %d is above input.max_dimension, %d", key, least,
                       c->max_dimension);
    if (least && c->resizer != KEEP_ASPECT_RATIO)
        return pm_fail(PM_ECONFIG, "input.%s: %d has an effect only with "
                       "input.resizer=keep_aspect_ratio", key, least);
    if (c->resizer == CONDITIONAL && c->resize_method != PM_RESIZE_BILINEAR)
        return pm_fail(PM_ECONFIG, "input.resize_method: input.resizer=conditional is possible "
                       "with bilinear only");
    if (count && count != 1 && count != channels)
        return pm_fail(PM_ECONFIG, "input.pad_value: %d numbers; give one, or %d, one per channel",
                       count, channels);
    out->choices = c->min_dimensions.count;
    out->fit = fits[c->resizer];
    out->interpolation = methods[c->resize_method];
    out->multiple = c->resizer == PAD_TO_MULTIPLE ? c->multiple : 0;
    if (c->resizer != FIXED_SHAPE)
        set_padding(c, channels, out);
    return PM_OK;
}

static int normal_half(const void *cfg, int channels, struct pm_normal *out)
{
    const int err = pm_normal_half(127.5f, NULL, NULL, out);

    return err < 0 ? err : check(cfg, channels, out);
}

static int normal_means(const void *cfg, int channels, struct pm_normal *out)
{
    *out = (struct pm_normal){ 0 };
    for (int c = 0; c < channels; c++)
        out->mean[c] = channels == 3 ? means[c] : GREY, out->std[c] = 1;
    return check(cfg, channels, out);
}

static int normal_black_half(const void *cfg, int channels, struct pm_normal *out)
{
    const struct ssd_cfg c = black_half(cfg);

    return normal_half(&c, channels, out);
}

static int normal_black_means(const void *cfg, int channels, struct pm_normal *out)
{
    const struct ssd_cfg c = black_means(cfg, channels);

    return normal_means(&c, channels, out);
}

#define ROW(text, explained, values_, normal_)                                                 \
    {                                                                                          \
        .name = text, .help = explained, .opts = opts, .cfg_size = sizeof(struct ssd_cfg),     \
        .resizes = true, .draw = draw, .list = list, .values = values_, .normal = normal_,     \
    }
const struct pm_preprocessing pm_preprocessing_ssd =
    ROW("ssd", "a resizer of TensorFlow's detectors; values to -1..1; input.augment is free",
        values_half, normal_half);
const struct pm_preprocessing pm_preprocessing_ssd_means =
    ROW("ssd_means", "like ssd, but subtracts the means", values_means, normal_means);
const struct pm_preprocessing pm_preprocessing_ssd_black =
    ROW("ssd_black", "like ssd, but the padding is black, as in Faster R-CNN", values_black_half,
        normal_black_half);
const struct pm_preprocessing pm_preprocessing_ssd_means_black =
    ROW("ssd_means_black", "like ssd_means, but the padding is black", values_black_means,
        normal_black_means);
