/* Resizing and colour, by TensorFlow 1's rules, and the table of preprocessings.
 *
 * Legacy resize: src = dst * (in / out) in float32, with no half pixel; so enlarging repeats the
 * last row, and [0,1,2,3] to 6 gives 0, .667, 1.333, 2, 2.667, 3. */
#include <math.h>
#include <string.h>

#include "data/preprocess.h"

struct pm_view8 pm_view8_of(const struct pm_image8 *im)
{
    return (struct pm_view8){ im->pixels, im->height, im->width, im->channels,
                              (size_t)im->width * (size_t)im->channels };
}

struct pm_view8 pm_view_crop(struct pm_view8 v, int y, int x, int height, int width)
{
    v.pixels += (size_t)y * v.stride + (size_t)x * (size_t)v.channels;
    v.height = height;
    v.width = width;
    return v;
}

/* ---- where elements come from -------------------------------------------------------------- */

struct pm_lerp pm_lerp_at(int i, float step, int in, int stride)
{
    const float src = (float)i * step;
    const int lo = (int)src < in - 1 ? (int)src : in - 1;
    const int hi = lo + 1 < in ? lo + 1 : in - 1;
    return (struct pm_lerp){ lo * stride, hi * stride, src - (float)lo };
}

float pm_aligned_step(int in, int out)
{
    return out > 1 ? (float)(in - 1) / (float)(out - 1) : 0;
}

int pm_aligned_nearest(int i, int in, int out)
{
    const int at = (int)roundf((float)i * pm_aligned_step(in, out));
    return at < in - 1 ? at : in - 1;
}

/* ---- bilinear ------------------------------------------------------------------------------ */

static void bilinear_row(const uint8_t *top, const uint8_t *bottom, float fy,
                         const struct pm_lerp *x, int cols, int channels, float scale, float *out)
{
    for (int i = 0; i < cols; i++, out += channels)
        for (int c = 0; c < channels; c++) {
            const float tl = top[x[i].lo + c], tr = top[x[i].hi + c];
            const float bl = bottom[x[i].lo + c], br = bottom[x[i].hi + c];
            const float t = tl + (tr - tl) * x[i].f, b = bl + (br - bl) * x[i].f;
            out[c] = (t + (b - t) * fy) * scale;
        }
}

static void bilinear(struct pm_view8 in, int height, int width, int y, int x, int rows, int cols,
                     float scale, float *out)
{
    const float sy = (float)in.height / (float)height, sx = (float)in.width / (float)width;
    struct pm_lerp *taps = pm_malloc((size_t)cols * sizeof *taps);

    for (int i = 0; i < cols; i++)
        taps[i] = pm_lerp_at(x + i, sx, in.width, in.channels);
    for (int i = 0; i < rows; i++) {
        const struct pm_lerp v = pm_lerp_at(y + i, sy, in.height, 1);
        bilinear_row(in.pixels + (size_t)v.lo * in.stride, in.pixels + (size_t)v.hi * in.stride,
                     v.f, taps, cols, in.channels, scale,
                     out + (size_t)i * (size_t)cols * (size_t)in.channels);
    }
    pm_free(taps);
}

void pm_resize_window(struct pm_view8 in, int height, int width, int y, int x, int rows, int cols,
                      float *out)
{
    bilinear(in, height, width, y, x, rows, cols, 1, out);
}

/* ---- the other methods: a list of weighted taps an output coordinate, the same each way -------
 */

struct taps {
    int *first; /* [out + 1] into index and weight */
    int *index;
    float *weight;
};

/* Keys' kernel with A = -0.75 at distance d >= 0. */
static float keys(float d)
{
    const float a = -0.75f;
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static int clamp(int v, int most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

static int taps_of(enum pm_resize method, int dst, int in, float scale, int *index, float *weight)
{
    const float src = (float)dst * scale;
    int n = 0;

    if (method == PM_RESIZE_NEAREST) {
        index[0] = clamp((int)floorf(src), in - 1);
        weight[0] = 1;
        return 1;
    }
    if (method == PM_RESIZE_BICUBIC) {
        const int base = (int)src;
        const float f = (float)lrintf((src - (float)base) * 1024) / 1024;
        const float w[4] = { keys(1 + f), keys(f), keys(1 - f), keys(2 - f) };
        for (; n < 4; n++) {
            index[n] = clamp(base - 1 + n, in - 1);
            weight[n] = w[n];
        }
        return n;
    }
    const float end = (float)(dst + 1) * scale;
    for (int i = (int)floorf(src); (float)i < end; i++, n++) {
        const float from = src > (float)i ? src : (float)i;
        const float to = end < (float)(i + 1) ? end : (float)(i + 1);
        index[n] = clamp(i, in - 1);
        weight[n] = (to - from) / scale;
    }
    return n;
}

static struct taps taps_make(enum pm_resize method, int in, int out)
{
    const float scale = (float)in / (float)out;
    const size_t most = (size_t)out * ((size_t)ceilf(scale) + 4);
    struct taps t = { pm_malloc(((size_t)out + 1) * sizeof(int)), pm_malloc(most * sizeof(int)),
                      pm_malloc(most * sizeof(float)) };
    t.first[0] = 0;
    for (int i = 0; i < out; i++)
        t.first[i + 1] =
            t.first[i] + taps_of(method, i, in, scale, t.index + t.first[i], t.weight + t.first[i]);
    return t;
}

static void taps_free(struct taps t)
{
    pm_free(t.first);
    pm_free(t.index);
    pm_free(t.weight);
}

static void tapped(struct pm_view8 in, enum pm_resize method, float scale, int height, int width,
                   float *out)
{
    const struct taps ty = taps_make(method, in.height, height);
    const struct taps tx = taps_make(method, in.width, width);
    const int channels = in.channels;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, out += channels)
            for (int c = 0; c < channels; c++) {
                float sum = 0;
                for (int i = ty.first[y]; i < ty.first[y + 1]; i++) {
                    const uint8_t *row = in.pixels + (size_t)ty.index[i] * in.stride + c;
                    float line = 0;
                    for (int j = tx.first[x]; j < tx.first[x + 1]; j++)
                        line += tx.weight[j] * (float)row[tx.index[j] * channels];
                    sum += ty.weight[i] * line;
                }
                out[c] = sum * scale;
            }
    taps_free(ty);
    taps_free(tx);
}

void pm_resize(struct pm_view8 in, enum pm_resize method, float scale, int height, int width,
               float *out)
{
    if (method == PM_RESIZE_BILINEAR || (in.height == height && in.width == width))
        bilinear(in, height, width, 0, 0, height, width, scale, out);
    else
        tapped(in, method, scale, height, width, out);
}

void pm_crop_or_pad(struct pm_view8 in, int height, int width, float *out)
{
    const int cut_y = in.height > height ? (in.height - height) / 2 : 0;
    const int cut_x = in.width > width ? (in.width - width) / 2 : 0;
    const int pad_y = height > in.height ? (height - in.height) / 2 : 0;
    const int pad_x = width > in.width ? (width - in.width) / 2 : 0;
    const int rows = in.height < height ? in.height : height;
    const int values = (in.width < width ? in.width : width) * in.channels;

    memset(out, 0, (size_t)height * (size_t)width * (size_t)in.channels * sizeof *out);
    for (int y = 0; y < rows; y++) {
        const uint8_t *from =
            in.pixels + (size_t)(cut_y + y) * in.stride + (size_t)cut_x * (size_t)in.channels;
        float *to =
            out + ((size_t)(pad_y + y) * (size_t)width + (size_t)pad_x) * (size_t)in.channels;
        for (int i = 0; i < values; i++)
            to[i] = from[i];
    }
}

float *pm_work(const struct pm_image8 *in, int channels, size_t count, float *out)
{
    return in->channels == channels ? out : pm_malloc(count * (size_t)in->channels * sizeof *out);
}

void pm_grey_settle(float *work, size_t count, float *out)
{
    if (work == out)
        return;
    for (size_t i = 0; i < count; i++)
        out[i] = 0.2989f * work[3 * i] + 0.5870f * work[3 * i + 1] + 0.1140f * work[3 * i + 2];
    pm_free(work);
}

void pm_flip(float *x, int height, int width, int channels)
{
    for (int y = 0; y < height; y++) {
        float *row = x + (size_t)y * (size_t)width * (size_t)channels;
        for (int l = 0, r = width - 1; l < r; l++, r--)
            for (int c = 0; c < channels; c++) {
                const float kept = row[l * channels + c];
                row[l * channels + c] = row[r * channels + c];
                row[r * channels + c] = kept;
            }
    }
}

/* ---- colour -------------------------------------------------------------------------------- */

void pm_add_all(float *x, size_t values, float delta)
{
    for (size_t i = 0; i < values; i++)
        x[i] += delta;
}

void pm_contrast(float *x, size_t count, int channels, float factor)
{
    for (int c = 0; c < channels; c++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += x[i * (size_t)channels + (size_t)c];
        const float mean = (float)(sum / (double)count);
        for (size_t i = 0; i < count; i++) {
            float *v = &x[i * (size_t)channels + (size_t)c];
            *v = (*v - mean) * factor + mean;
        }
    }
}

struct hsv {
    float h, s, v;
};

static struct hsv to_hsv(const float *p)
{
    const float r = p[0], g = p[1], b = p[2];
    const float most = fmaxf(r, fmaxf(g, b)), range = most - fminf(r, fminf(g, b));
    struct hsv out = { 0, most > 0 ? range / most : 0, most };

    if (range > 0) {
        const float norm = 1 / (6 * range);
        if (r == most)
            out.h = norm * (g - b);
        else if (g == most)
            out.h = norm * (b - r) + 2.0f / 6;
        else
            out.h = norm * (r - g) + 4.0f / 6;
        if (out.h < 0)
            out.h += 1;
    }
    return out;
}

static float clip01(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static void from_hsv(struct hsv in, float *p)
{
    const float dh = in.h * 6;
    const float t[3] = { clip01(fabsf(dh - 3) - 1), clip01(2 - fabsf(dh - 2)),
                         clip01(2 - fabsf(dh - 4)) };
    for (int c = 0; c < 3; c++)
        p[c] = ((1 - in.s) + in.s * t[c]) * in.v;
}

void pm_saturation(float *x, size_t count, float factor)
{
    for (size_t i = 0; i < count; i++, x += 3) {
        struct hsv c = to_hsv(x);
        c.s = clip01(c.s * factor);
        from_hsv(c, x);
    }
}

void pm_hue(float *x, size_t count, float delta)
{
    for (size_t i = 0; i < count; i++, x += 3) {
        struct hsv c = to_hsv(x);
        c.h += delta;
        c.h -= floorf(c.h);
        from_hsv(c, x);
    }
}

void pm_standardise(float *x, size_t values)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < values; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    const double n = (double)values, mean = sum / n;
    const double deviation = sqrt(fmax(squares / n - mean * mean, 0));
    const float scale = (float)(1 / fmax(deviation, 1 / sqrt(n)));
    for (size_t i = 0; i < values; i++)
        x[i] = (x[i] - (float)mean) * scale;
}

int pm_normal_half(float half, const char *fit, const char *interpolation, struct pm_normal *out)
{
    *out = (struct pm_normal){ .fit = fit, .interpolation = interpolation };
    for (size_t c = 0; c < PM_COUNT(out->mean); c++)
        out->mean[c] = out->std[c] = half;
    return PM_OK;
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct pm_preprocessing *const rows[] = {
#define PM_PREPROCESSING(name) &pm_preprocessing_##name,
#include "preprocessings.def"
#undef PM_PREPROCESSING
};

const struct pm_preprocessing *const *pm_preprocessings(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

const struct pm_preprocessing *pm_preprocessing_find(const char *name)
{
    for (int k = 0; name && k < 2; k++, name = pm_preprocessing_of_net(name))
        for (size_t i = 0; i < PM_COUNT(rows); i++)
            if (!strcmp(rows[i]->name, name))
                return rows[i];
    return NULL;
}

/* TF-Slim's table, with the nets that it has no preprocessing for, and DeepLab's; the beginnings of
 * names, the first that fits. */
const char *pm_preprocessing_of_net(const char *net)
{
    static const char *const table[][2] = {
        { "alexnet_v2", "vgg" },         { "overfeat", "vgg" },
        { "vgg_", "vgg" },               { "resnet_v1_", "vgg" },
        { "resnet_v2_", "vgg" },         { "inception_v", "inception" },
        { "inception_resnet_v2", "inception" }, { "mobilenet_", "inception" },
        { "nasnet_cifar", "cifarnet" },  { "nasnet_", "inception" },
        { "pnasnet_", "inception" },
        { "deeplab_resnet_v1_18_beta", "deeplab" }, { "deeplab_resnet_v1_18", "deeplab_means_grey" },
        { "deeplab_resnet_v1_50_beta", "deeplab" }, { "deeplab_resnet_v1_50", "deeplab_means" },
        { "deeplab_resnet_v1_101_beta", "deeplab" }, { "deeplab_resnet_v1_101", "deeplab_means" },
        { "deeplab_", "deeplab" },
    };

    for (size_t i = 0; i < PM_COUNT(table); i++)
        if (!strncmp(net, table[i][0], strlen(table[i][0])))
            return table[i][1];
    return NULL;
}
