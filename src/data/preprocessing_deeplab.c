/* deeplab, for pictures with a map of labels: where min_resize is given the smaller side is brought to
 * it (the larger to max_resize at most, both to k * resize_factor + 1); in training the sides are
 * multiplied by a drawn scale; the picture is padded below and at the right to the input's size, in
 * training a crop of that size is taken at random and flipped. deeplab makes x * 2 / 255 - 1 of it and
 * pads with 127.5, deeplab_means takes the means off and pads with them, deeplab_means_grey takes them
 * off and pads with 127.5 (the original does so for resnet_v1_18).
 *
 * Resizing aligns corners: element i of out comes from s = i * ((in - 1) / (out - 1)), all in float32;
 * pictures bilinearly, maps from element min(round(s), in - 1), halves away from zero. (That rule of
 * maps is TensorFlow 2.12's, found equal for all of 1..199 to 43 sizes of 1..295.) Sizes are float32
 * products that are cut, so one that comes out just below an integer is one less.
 *
 * Rows are made as they are needed, of the columns in the window only. Draws: side, crop_y, crop_x,
 * flip. */
#include <math.h>
#include <string.h>

#include "data/preprocess.h"

struct deeplab_cfg {
    int min_resize, max_resize, resize_factor;
    bool keep_aspect_ratio;
    double min_scale, max_scale, scale_step; /* double: the number of steps is a quotient of them */
};

static const struct pm_opt opts[] = {
    PM_INT(deeplab_cfg, min_resize, 0, 0, 16384, "smaller side after resizing; 0: not resized"),
    PM_INT(deeplab_cfg, max_resize, 0, 0, 16384, "most of the larger side; 0: no limit"),
    PM_INT(deeplab_cfg, resize_factor, 0, 0, 1024,
           "sides after resizing become k * factor + 1; 0: any"),
    PM_BOOL(deeplab_cfg, keep_aspect_ratio, true, "false: resized to a square of the larger side"),
    PM_DOUBLE(deeplab_cfg, min_scale, 0.5, 0.01, 16, "least random scale, in training"),
    PM_DOUBLE(deeplab_cfg, max_scale, 2, 0.01, 16, "largest random scale"),
    PM_DOUBLE(deeplab_cfg, scale_step, 0.25, 0, 16, "from scale to scale; 0: any between"),
    { 0 },
};

static const float means[3] = { 123.15f, 115.90f, 103.06f };
static const float grey_mean = 0.2989f * 123.15f + 0.5870f * 115.90f + 0.1140f * 103.06f;

static void draw(const void *cfg, struct pm_rng *r, const struct pm_sight *s, struct pm_draws *out)
{
    (void)cfg, (void)s;
    *out = (struct pm_draws){ .side = pm_rng_uniform(r),
                              .crop_y = pm_rng_uniform(r),
                              .crop_x = pm_rng_uniform(r) };
    out->flip = pm_rng_uniform(r) < 0.5;
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* Sides stay exact as float32. */
static const float largest = 1 << 24;

static int whole(float side, const char *where, int *out)
{
    if (!(side >= 1 && side <= largest))
        return pm_fail(PM_EDATA, "%s: a side of the image would be resized to %g pixels, allowed are "
                       "1..%g", where, (double)side, (double)largest);
    *out = (int)side;
    return PM_OK;
}

/* side, or the next larger k * factor + 1. */
static int to_factor(int side, int factor)
{
    return factor ? side + (factor - (side - 1) % factor) % factor : side;
}

/* The sides after min_resize, max_resize, resize_factor and keep_aspect_ratio. */
static int resize_to_range(const struct deeplab_cfg *c, int height, int width, const char *where,
                           int *rows, int *cols)
{
    const float h = (float)height, w = (float)width;
    const int factor = c->resize_factor;
    int most = c->max_resize;
    int err = PM_OK;

    if (!c->min_resize) {
        *rows = height, *cols = width;
        return PM_OK;
    }
    if (most && factor)
        most -= (most - 1) % factor;
    const float up = (float)c->min_resize / fminf(h, w);
    const float down = (float)most / fmaxf(h, w);
    const bool over = most && floorf(fmaxf(h * up, w * up)) > (float)most;
    PM_TRY(whole(floorf(h * (over ? down : up)), where, rows));
    PM_TRY(whole(floorf(w * (over ? down : up)), where, cols));
    *rows = to_factor(*rows, factor);
    *cols = to_factor(*cols, factor);
    if (!c->keep_aspect_ratio)
        *rows = *cols = *rows > *cols ? *rows : *cols;
out:
    return err;
}

/* side: 0..1. The scales are TensorFlow's lin_space. */
static float scale_of(const struct deeplab_cfg *c, double side)
{
    const float min = (float)c->min_scale, max = (float)c->max_scale;

    if (c->min_scale == c->max_scale)
        return min;
    if (c->scale_step == 0)
        return min + (float)side * (max - min);
    const int count = (int)((c->max_scale - c->min_scale) / c->scale_step + 1);
    const int pick = (int)(side * count);
    if (pick == 0)
        return min;
    return pick == count - 1 ? max : min + (float)pick * ((max - min) / (float)(count - 1));
}

static int settings(const struct deeplab_cfg *c)
{
    if (!c->min_resize && (c->max_resize || c->resize_factor || !c->keep_aspect_ratio))
        return pm_fail(PM_ECONFIG, "input: max_resize, resize_factor and keep_aspect_ratio say how "
                       "min_resize resizes, which is not set: set input.min_resize");
    if (c->max_scale < c->min_scale)
        return pm_fail(PM_ECONFIG, "input.max_scale: %g is below input.min_scale, %g", c->max_scale,
                       c->min_scale);
    if (c->scale_step > 0 && (c->max_scale - c->min_scale) / c->scale_step > 1e6)
        return pm_fail(PM_ECONFIG, "input.scale_step: %g makes more than a million scales of %g to %g: "
                       "0 takes any between", c->scale_step, c->min_scale, c->max_scale);
    return PM_OK;
}

static int offset(double part, int side, int crop)
{
    return side > crop ? (int)(part * (side - crop + 1)) : 0;
}

static int place(const void *cfg, int image_height, int image_width, bool train,
                 const struct pm_draws *d, int height, int width, struct pm_framing *out,
                 const char *where)
{
    const struct deeplab_cfg *c = cfg;
    int err = PM_OK;

    *out = (struct pm_framing){ 0 };
    PM_TRY(settings(c));
    PM_TRY(resize_to_range(c, image_height, image_width, where, &out->resized_height,
                           &out->resized_width));
    out->height = out->resized_height;
    out->width = out->resized_width;
    if (train) {
        const float scale = scale_of(c, d->side);
        PM_TRY(whole((float)out->height * scale, where, &out->height));
        PM_TRY(whole((float)out->width * scale, where, &out->width));
        out->y = offset(d->crop_y, out->height, height);
        out->x = offset(d->crop_x, out->width, width);
        out->flip = d->flip;
    } else if (out->height > height || out->width > width) {
        PM_TRY(pm_fail(PM_EDATA, "%s: an image of %d x %d, %d x %d when resized, is larger than the "
                       "input of %d x %d: set input.eval_size to at least that, or a smaller "
                       "input.min_resize and input.max_resize", where, image_height, image_width,
                       out->height, out->width, height, width));
    }
out:
    return err;
}

/* The rows and columns of the input that the picture covers; the rest is padding. */
static int covered(int side, int crop)
{
    return side < crop ? side : crop;
}

/* ---- pictures ------------------------------------------------------------------------------ */

/* One resizing, row by row: of bytes, or of the rows of another one. A row of the input, brought to
 * the columns, is kept until its parity comes again, so that neighbours share it. */
struct stage {
    struct stage *below; /* NULL: bytes */
    struct pm_view8 bytes;
    int in_height, values; /* values: of a row, columns x channels */
    float step;
    struct pm_lerp *taps;  /* owned; of each value */
    float *row[2], *in; /* owned; resized rows; a row of below */
    int held[2];        /* their numbers in the input */
};

static void stage_row(struct stage *s, int y, float *out);

static const float *across(struct stage *s, int y)
{
    float *out = s->row[y & 1];

    if (s->held[y & 1] == y)
        return out;
    s->held[y & 1] = y;
    if (s->below) {
        stage_row(s->below, y, s->in);
        for (int i = 0; i < s->values; i++) {
            const struct pm_lerp t = s->taps[i];
            out[i] = s->in[t.lo] + (s->in[t.hi] - s->in[t.lo]) * t.f;
        }
        return out;
    }
    const uint8_t *in = s->bytes.pixels + (size_t)y * s->bytes.stride;
    for (int i = 0; i < s->values; i++) {
        const struct pm_lerp t = s->taps[i];
        out[i] = (float)in[t.lo] + (float)(in[t.hi] - in[t.lo]) * t.f;
    }
    return out;
}

static void stage_row(struct stage *s, int y, float *out)
{
    const struct pm_lerp v = pm_lerp_at(y, s->step, s->in_height, 1);
    const float *top = across(s, v.lo), *bottom = across(s, v.hi);

    for (int i = 0; i < s->values; i++)
        out[i] = top[i] + (bottom[i] - top[i]) * v.f;
}

/* Columns first .. first + cols - 1, the last one first where they are flipped, of width made of
 * in_width, of whose rows the elements from column in_first on are there. */
static struct pm_lerp *taps_of(int in_width, int width, int first, int cols, bool flip,
                               int in_first, int channels)
{
    const float step = pm_aligned_step(in_width, width);
    struct pm_lerp *taps = pm_malloc((size_t)cols * (size_t)channels * sizeof *taps);

    for (int i = 0; i < cols; i++) {
        const struct pm_lerp t = pm_lerp_at(first + (flip ? cols - 1 - i : i), step, in_width, 1);
        for (int c = 0; c < channels; c++)
            taps[i * channels + c] = (struct pm_lerp){ (t.lo - in_first) * channels + c,
                                                       (t.hi - in_first) * channels + c, t.f };
    }
    return taps;
}

static void stage_begin(struct stage *s, int in_height, int height, struct pm_lerp *taps,
                        int values)
{
    s->in_height = in_height;
    s->step = pm_aligned_step(in_height, height);
    s->taps = taps;
    s->values = values;
    s->held[0] = s->held[1] = -1;
    for (int i = 0; i < 2; i++)
        s->row[i] = pm_malloc((size_t)values * sizeof(float));
    if (s->below)
        s->in = pm_malloc((size_t)s->below->values * sizeof(float));
}

static void stage_end(struct stage *s)
{
    pm_free(s->taps);
    pm_free(s->row[0]);
    pm_free(s->row[1]);
    pm_free(s->in);
}

/* x = pixel * factor + add of each channel; pad is a pixel's value. */
struct scaling {
    float factor, add[3], pad[3];
};

static void scale_row(float *x, int values, int channels, const struct scaling *n)
{
    if (channels == 3)
        for (int i = 0; i < values; i += 3)
            for (int c = 0; c < 3; c++)
                x[i + c] = x[i + c] * n->factor + n->add[c];
    else
        for (int i = 0; i < values; i++)
            x[i] = x[i] * n->factor + n->add[0];
}

static void pad_row(float *x, int values, int channels, const struct scaling *n)
{
    for (int i = 0; i < values; i++)
        x[i] = n->pad[i % channels] * n->factor + n->add[i % channels];
}

/* The window in the input, with padding. */
static void paint(struct stage *s, const struct pm_framing *p, int height, int width, int channels,
                  const struct scaling *n, float *out)
{
    const int rows = covered(p->height, height), cols = covered(p->width, width);
    const int values = width * channels, used = cols * channels;
    float *from = out + (p->flip ? values - used : 0);
    float *pad = out + (p->flip ? 0 : used);

    for (int y = 0; y < rows; y++, from += values, pad += values) {
        stage_row(s, p->y + y, from);
        scale_row(from, used, channels, n);
        pad_row(pad, values - used, channels, n);
    }
    for (int y = rows; y < height; y++)
        pad_row(out + (size_t)y * (size_t)values, values, channels, n);
}

static void picture(const struct pm_image8 *in, const struct pm_framing *p, int height, int width,
                    const struct scaling *n, float *out)
{
    const int cols = covered(p->width, width), channels = in->channels;
    const bool once = p->height == p->resized_height && p->width == p->resized_width;
    struct stage low = { .bytes = pm_view8_of(in) }, high = { .below = &low };

    if (once) {
        stage_begin(&low, in->height, p->height,
                    taps_of(in->width, p->width, p->x, cols, p->flip, 0, channels), cols * channels);
        paint(&low, p, height, width, channels, n, out);
    } else {
        const float step = pm_aligned_step(p->resized_width, p->width);
        const int first = pm_lerp_at(p->x, step, p->resized_width, 1).lo;
        const int last = pm_lerp_at(p->x + cols - 1, step, p->resized_width, 1).hi;
        const int between = last - first + 1;
        stage_begin(&low, in->height, p->resized_height,
                    taps_of(in->width, p->resized_width, first, between, false, 0, channels),
                    between * channels);
        stage_begin(&high, p->resized_height, p->height,
                    taps_of(p->resized_width, p->width, p->x, cols, p->flip, first, channels),
                    cols * channels);
        paint(&high, p, height, width, channels, n, out);
    }
    stage_end(&high);
    stage_end(&low);
}

static int apply(const void *cfg, const struct pm_image8 *in, bool train, const struct pm_draws *d,
                 int height, int width, int channels, const struct scaling *n, float *out,
                 const char *where)
{
    const size_t count = (size_t)height * (size_t)width;
    struct pm_framing p;
    int err = PM_OK;

    PM_TRY(place(cfg, in->height, in->width, train, d, height, width, &p, where));
    if (in->channels == channels) {
        picture(in, &p, height, width, n, out);
        return PM_OK;
    }
    struct scaling colour = { .factor = 1 };
    for (int c = 0; c < 3; c++)
        colour.pad[c] = n->pad[0] / 0.9999f; /* the luma's weights sum up to this */
    float *work = pm_work(in, channels, count, out);
    picture(in, &p, height, width, &colour, work);
    pm_grey_settle(work, count, out);
    scale_row(out, (int)count, 1, n);
out:
    return err;
}

static int apply_numbers(const void *cfg, const struct pm_image8 *in, bool train,
                         const struct pm_draws *d, int height, int width, float *out,
                         const char *where)
{
    static const struct scaling none = { .factor = 1 };
    struct pm_framing p;
    const int err = place(cfg, in->height, in->width, train, d, height, width, &p, where);

    if (err == PM_OK)
        picture(in, &p, height, width, &none, out);
    return err;
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* The element of the map that row or column dst of the scaled one comes from, by way of the resized. */
static int origin(int dst, int in, int resized, int scaled)
{
    return pm_aligned_nearest(pm_aligned_nearest(dst, resized, scaled), in, resized);
}

static int apply_map(const void *cfg, const struct pm_label *in, const struct pm_image8 *im,
                     bool train, const struct pm_draws *d, int height, int width, int32_t fill,
                     int32_t *out, const char *where)
{
    struct pm_framing p;
    int *from = NULL;
    int err = PM_OK;

    if (in->height != im->height || in->width != im->width)
        return pm_fail(PM_EDATA, "%s: the image is %d x %d and its label is %d x %d: they must be of "
                       "one size", where, im->height, im->width, in->height, in->width);
    PM_TRY(place(cfg, in->height, in->width, train, d, height, width, &p, where));
    const int rows = covered(p.height, height), cols = covered(p.width, width);
    const int shift = p.flip ? width - cols : 0;
    from = pm_malloc((size_t)cols * sizeof *from);
    for (int x = 0; x < cols; x++)
        from[x] = origin(p.x + (p.flip ? cols - 1 - x : x), in->width, p.resized_width, p.width);
    for (int y = 0; y < height; y++, out += width) {
        for (int x = 0; x < width && (y >= rows || cols < width); x++)
            out[x] = fill;
        if (y >= rows)
            continue;
        const uint16_t *row = in->values + (size_t)origin(p.y + y, in->height, p.resized_height,
                                                          p.height) * (size_t)in->width;
        for (int x = 0; x < cols; x++)
            out[shift + x] = row[from[x]];
    }
out:
    pm_free(from);
    return err;
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

static int apply_half(const void *cfg, const struct pm_image8 *in, bool train,
                      const struct pm_draws *d, int height, int width, int channels, float *out,
                      const char *where)
{
    static const struct scaling half = { 2.0f / 255, { -1, -1, -1 }, { 127.5f, 127.5f, 127.5f } };
    return apply(cfg, in, train, d, height, width, channels, &half, out, where);
}

static struct scaling less_means(int channels)
{
    struct scaling n = { .factor = 1 };
    for (int c = 0; c < 3; c++) {
        n.pad[c] = channels == 3 ? means[c] : grey_mean;
        n.add[c] = -n.pad[c];
    }
    return n;
}

static int apply_means(const void *cfg, const struct pm_image8 *in, bool train,
                       const struct pm_draws *d, int height, int width, int channels, float *out,
                       const char *where)
{
    const struct scaling n = less_means(channels);
    return apply(cfg, in, train, d, height, width, channels, &n, out, where);
}

static int apply_means_grey(const void *cfg, const struct pm_image8 *in, bool train,
                            const struct pm_draws *d, int height, int width, int channels,
                            float *out, const char *where)
{
    struct scaling n = less_means(channels);
    for (int c = 0; c < 3; c++)
        n.pad[c] = 127.5f;
    return apply(cfg, in, train, d, height, width, channels, &n, out, where);
}

/* pad: NULL: the mean. */
static int normal_padded(const struct deeplab_cfg *c, const float *pad, struct pm_normal *out)
{
    memcpy(out->pad, pad ? pad : out->mean, sizeof out->pad);
    out->padded = true;
    out->range = (struct pm_resize_range){ c->min_resize, c->max_resize, c->resize_factor,
                                           !c->keep_aspect_ratio };
    return settings(c);
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

#define ROW(text, explained, apply_, normal_)                                                      \
    {                                                                                              \
        .name = text, .help = explained, .opts = opts, .cfg_size = sizeof(struct deeplab_cfg),     \
        .draw = draw, .apply = apply_, .place = place, .apply_map = apply_map,                     \
        .apply_numbers = apply_numbers, .normal = normal_,                                         \
    }
const struct pm_preprocessing pm_preprocessing_deeplab =
    ROW("deeplab", "random scale, pad, crop, flip, with the map of labels; values to -1..1", apply_half,
        normal_half);
const struct pm_preprocessing pm_preprocessing_deeplab_means =
    ROW("deeplab_means", "the same with the means subtracted, padded with them", apply_means,
        normal_means);
const struct pm_preprocessing pm_preprocessing_deeplab_means_grey =
    ROW("deeplab_means_grey", "the same with the means subtracted, padded with 127.5",
        apply_means_grey, normal_means_grey);
