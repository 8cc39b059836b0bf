/* torch: as torchvision's reference scripts prepare pictures. Eval: the smaller side is resized to
 * resize_side keeping the shape, central crop. Train: a box of random area and shape, resized to the
 * input, flip. Then x / 255 minus the mean, over std, each channel by itself. resize_side 0 takes the
 * input's side over 0.875: 256 for 224, 342 for 299.
 *
 * Resizing is Pillow's, to the bit: a triangle as wide as an input pixel or, making smaller, as an
 * output pixel; weights in 22 bits; along rows first, rounded to 8 bits, then along columns. Draws:
 * box, flip. */
#include <math.h>

#include "data/preprocess.h"

struct torch_cfg {
    int resize_side;
    float area_min, area_max, aspect_min, aspect_max;
    struct pm_floats mean, std;
};

static const struct pm_opt opts[] = {
    PM_INT(torch_cfg, resize_side, 0, 0, 16384, "smaller side after resizing, in eval; 0: input / 0.875"),
    PM_FLOAT(torch_cfg, area_min, 0.08, 1e-6, 1, "least area of the box, of the picture's"),
    PM_FLOAT(torch_cfg, area_max, 1, 1e-6, 1, "most area of the box, of the picture's"),
    PM_FLOAT(torch_cfg, aspect_min, 0.75, 0.01, 100, "least width / height of the box"),
    PM_FLOAT(torch_cfg, aspect_max, 1.3333334, 0.01, 100, "most width / height of the box"),
    PM_FLOATS(torch_cfg, mean, "[0.485, 0.456, 0.406]", -255, 255,
              "taken off each channel of 0..1, or one for all"),
    PM_FLOATS(torch_cfg, std, "[0.229, 0.224, 0.225]", 1e-6, 255,
              "what each channel is then divided by, or one for all"),
    { 0 },
};

/* ---- draws ------------------------------------------------------------------------------- */

static double between(struct pm_rng *r, double low, double high)
{
    return low + (high - low) * pm_rng_uniform(r);
}

/* The whole picture, cut to the nearest allowed shape. */
static void widest(const struct torch_cfg *c, int height, int width, int size[2])
{
    const double shape = (double)width / height;

    size[0] = height, size[1] = width;
    if (shape < (double)c->aspect_min)
        size[0] = (int)rint(width / (double)c->aspect_min);
    else if (shape > (double)c->aspect_max)
        size[1] = (int)rint(height * (double)c->aspect_max);
}

static void draw(const void *cfg, struct pm_rng *r, const struct pm_sight *s, struct pm_draws *out)
{
    enum { ATTEMPTS = 10 };
    const struct torch_cfg *c = cfg;
    int size[2];

    *out = (struct pm_draws){ .flip = pm_rng_uniform(r) < 0.5 };
    for (int i = 0; i < ATTEMPTS; i++) {
        const double area = (double)s->height * s->width *
                            between(r, (double)c->area_min, (double)c->area_max);
        const double shape =
            exp(between(r, log((double)c->aspect_min), log((double)c->aspect_max)));
        size[0] = (int)rint(sqrt(area / shape)), size[1] = (int)rint(sqrt(area * shape));
        if (size[0] < 1 || size[0] > s->height || size[1] < 1 || size[1] > s->width)
            continue;
        out->box[0] = (int)pm_rng_int(r, 0, s->height - size[0]);
        out->box[1] = (int)pm_rng_int(r, 0, s->width - size[1]);
        out->box[2] = size[0], out->box[3] = size[1];
        return;
    }
    widest(c, s->height, s->width, size);
    out->box[0] = (s->height - size[0]) / 2, out->box[1] = (s->width - size[1]) / 2;
    out->box[2] = size[0], out->box[3] = size[1];
}

/* ---- Pillow's resizing ------------------------------------------------------------------- */

enum { BITS = 22 };
/* Output i is made of inputs first[i] .. first[i] + taps[i] - 1 with these weights. */
struct axis {
    int *first, *taps; /* first is owned, with the others behind it */
    int32_t *weight;   /* [out][most] */
    int most;
};

/* Outputs begin .. begin + count - 1 of `out` made of `in`. */
static struct axis axis_of(int in, int out, int begin, int count)
{
    const double scale = (double)in / out, wide = scale < 1 ? 1 : scale;
    const int most = (int)ceil(wide) * 2 + 1;
    struct axis a = { .most = most };
    double *w = pm_malloc((size_t)most * sizeof *w);

    a.first = pm_calloc((size_t)count * (size_t)(most + 2), sizeof *a.first);
    a.taps = a.first + count;
    a.weight = (int32_t *)(a.taps + count);
    for (int i = 0; i < count; i++) {
        const double center = (begin + i + 0.5) * scale;
        const int low = (int)(center - wide + 0.5), high = (int)(center + wide + 0.5);
        const int first = low < 0 ? 0 : low, taps = (high > in ? in : high) - first;
        double sum = 0;
        for (int k = 0; k < taps; k++) {
            const double x = fabs((first + k - center + 0.5) / wide);
            w[k] = x < 1 ? 1 - x : 0;
            sum += w[k];
        }
        a.first[i] = first;
        a.taps[i] = taps;
        for (int k = 0; k < taps; k++)
            a.weight[i * most + k] = (int32_t)(0.5 + w[k] / sum * (1 << BITS));
    }
    pm_free(w);
    return a;
}

static uint8_t mixed(const uint8_t *x, size_t step, const int32_t *weight, int taps)
{
    int32_t sum = 1 << (BITS - 1);

    for (int k = 0; k < taps; k++)
        sum += x[(size_t)k * step] * weight[k];
    return (uint8_t)(sum >> BITS > 255 ? 255 : sum >> BITS);
}

/* A window of rows x cols from (y, x) on of the picture resized to height x width, over 255. */
static void resize(struct pm_view8 in, int height, int width, int y, int x, int rows, int cols,
                   float *out)
{
    const int c = in.channels;
    struct axis v = axis_of(in.height, height, y, rows), h = axis_of(in.width, width, x, cols);
    const int top = v.first[0], end = v.first[rows - 1] + v.taps[rows - 1];
    const size_t line = (size_t)cols * (size_t)c;
    uint8_t *wide = pm_malloc((size_t)(end - top) * line);

    for (int i = top; i < end; i++)
        for (int j = 0; j < cols; j++)
            for (int k = 0; k < c; k++)
                wide[(size_t)(i - top) * line + (size_t)(j * c + k)] =
                    mixed(in.pixels + (size_t)i * in.stride + (size_t)(h.first[j] * c + k), (size_t)c,
                          h.weight + (size_t)j * (size_t)h.most, h.taps[j]);
    for (int i = 0; i < rows; i++)
        for (size_t j = 0; j < line; j++)
            out[(size_t)i * line + j] =
                (float)mixed(wide + (size_t)(v.first[i] - top) * line + j, line,
                             v.weight + (size_t)i * (size_t)v.most, v.taps[i]) / 255;
    pm_free(wide);
    pm_free(v.first);
    pm_free(h.first);
}

/* ---- the whole --------------------------------------------------------------------------- */

static int resize_eval(const struct torch_cfg *c, const struct pm_image8 *in, int height, int width,
                       float *out, const char *where)
{
    const int larger = height > width ? height : width;
    const int side = c->resize_side ? c->resize_side : (int)(larger / 0.875 + 0.5);
    const bool tall = in->height > in->width;
    const double longer = tall ? (double)side * in->height / in->width
                               : (double)side * in->width / in->height;
    const int rows = tall ? (int)longer : side, cols = tall ? side : (int)longer;

    if (rows < height || cols < width)
        return pm_fail(PM_EDATA, "%s: an image of %d x %d resized to %d x %d is smaller than the input "
                       "of %d x %d: set resize_side to at least %d", where, in->height, in->width, rows,
                       cols, height, width, larger);
    resize(pm_view8_of(in), rows, cols, (int)rint((rows - height) / 2.0),
           (int)rint((cols - width) / 2.0), height, width, out);
    return PM_OK;
}

static int check_lists(const struct torch_cfg *c, int channels)
{
    const struct pm_floats *lists[] = { &c->mean, &c->std };

    for (int i = 0; i < 2; i++)
        if (lists[i]->count != 1 && lists[i]->count != channels)
            return pm_fail(PM_ECONFIG, "input.%s: %d numbers for images of %d channels: give one, or "
                           "one for each", i ? "std" : "mean", lists[i]->count, channels);
    return PM_OK;
}

static int apply(const void *cfg, const struct pm_image8 *in, bool train, const struct pm_draws *d,
                 int height, int width, int channels, float *out, const char *where)
{
    const struct torch_cfg *c = cfg;
    const size_t count = (size_t)height * (size_t)width;
    float *work = pm_work(in, channels, count, out);
    int err = PM_OK;

    PM_TRY(check_lists(c, channels));
    if (train)
        resize(pm_view_crop(pm_view8_of(in), d->box[0], d->box[1], d->box[2], d->box[3]), height,
               width, 0, 0, height, width, work);
    else
        PM_TRY(resize_eval(c, in, height, width, work, where));
out:
    pm_grey_settle(work, count, out);
    if (err < 0)
        return err;
    if (train && d->flip)
        pm_flip(out, height, width, channels);
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < channels; k++) {
            float *x = &out[i * (size_t)channels + (size_t)k];
            *x = (*x - c->mean.v[c->mean.count == 1 ? 0 : k]) / c->std.v[c->std.count == 1 ? 0 : k];
        }
    return PM_OK;
}

static int normal(const void *cfg, int channels, struct pm_normal *out)
{
    const struct torch_cfg *c = cfg;
    int err = PM_OK;

    PM_TRY(check_lists(c, channels));
    *out = (struct pm_normal){
        .fit = "the smaller side resized to resize_side (0: the size / 0.875), then the middle of the "
               "size cut out",
        .interpolation = "bilinear, antialiased",
    };
    for (int k = 0; k < channels; k++) {
        out->mean[k] = 255 * c->mean.v[c->mean.count == 1 ? 0 : k];
        out->std[k] = 255 * c->std.v[c->std.count == 1 ? 0 : k];
    }
out:
    return err;
}

const struct pm_preprocessing pm_preprocessing_torch = {
    .name = "torch",
    .help = "torchvision's: random box or smaller side and crop, flip, mean and deviation",
    .channels = 3,
    .opts = opts,
    .cfg_size = sizeof(struct torch_cfg),
    .draw = draw,
    .apply = apply,
    .normal = normal,
};
