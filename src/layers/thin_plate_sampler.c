/* thin_plate_sampler: straightens a picture with a thin-plate spline. The sampler is that of
 * Jaderberg et al., "Spatial Transformer Networks", 2015; the spline is that of Shi et al., "Robust
 * Scene Text Recognition with Automatic Rectification", 2016. Inputs: a picture [n,H,W,C], and
 * control points [n, 2 K]: x, y of K points of the picture in 0..1. Output: [n, height, width, C].
 * The first half of the points moves to the output's upper border, from left to right; the second
 * half moves to its lower border (thin_plate.h). Each sample's place is
 *
 *     x = W (sum of m_k x_k), y = H (sum of m_k y_k)
 *
 * where the factors m are constant. x is limited to 0..W - 2 and y to 0..H - 2, as in the text
 * recognition fork of TensorFlow's Object Detection API; 0 is the middle of the first pixel. The
 * value is the bilinear mean of the four pixels around it. A place that is NaN makes NaN.
 *
 * Gradients go to the points and to the picture. A limited place has the gradient 0. The picture's
 * gradient is a sum over all samples for each pixel, in the samples' order. That is slow, but the
 * picture is usually the input of a net, which gets no gradient.
 *
 * Places are computed without fused products (this file is compiled so), so that all devices choose
 * the same pixels. */
#include <limits.h>
#include <string.h>

#include "device/pick.h"
#include "layers/infer.h"
#include "layers/thin_plate.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"
#include "thin_plate.params.h"

enum { PICTURE, POINTS };
enum { SAVED_PLACE, SAVED_WEIGHT, SAVED_MATRIX };

struct thin_plate_cfg {
    struct pm_ints size;
    double margin_x, margin_y;
};

static const struct pm_opt opts[] = {
    PM_INTS(thin_plate_cfg, size, "[32, 100]", 1, 4096, "height and width of the output"),
    PM_DOUBLE(thin_plate_cfg, margin_x, 0, 0, PM_THIN_PLATE_MARGIN,
              "distance of the fixed points from the left and right side, in widths"),
    PM_DOUBLE(thin_plate_cfg, margin_y, 0, 0, PM_THIN_PLATE_MARGIN,
              "distance of the fixed points from the upper and lower border, in heights"),
    { 0 },
};

/* ---- places ---------------------------------------------------------------------------------- */

enum { BLOCK = 64 };

/* Writes the pixel before a place on an axis and the weight of the next pixel. The pixel's number
 * is -1 - pixel if the place was limited. */
PM_INLINE void put_place(float s, int size, int32_t *place, float *weight)
{
    const float last = (float)(size - 2);
    const bool inside = s >= 0 && s <= last;
    const float limited = inside ? s : s > last ? last : 0;
    const int at = (int)limited;

    *place = inside ? at : -1 - at;
    *weight = s != s ? s : limited - (float)at;
}

/* Items: samples of all pictures. */
static void places_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct thin_plate_params *p = a->params;
    const size_t samples = (size_t)p->samples, points = (size_t)p->points;
    float x[BLOCK], y[BLOCK];

    for (size_t i = begin, some; i < end; i += some) {
        const size_t first = i % samples, left = samples - first;
        const float *point = (const float *)a->buf[0] + i / samples * 2 * points;

        some = end - i < left ? end - i : left;
        some = some < BLOCK ? some : BLOCK;
        memset(x, 0, sizeof x), memset(y, 0, sizeof y);
        for (size_t k = 0; k < points; k++) {
            const float *m = (const float *)a->buf[1] + k * samples + first;

            for (size_t j = 0; j < some; j++) {
                x[j] += m[j] * point[2 * k];
                y[j] += m[j] * point[2 * k + 1];
            }
        }
        for (size_t j = 0; j < some; j++) {
            int32_t *place = (int32_t *)a->buf[2] + 2 * (i + j);
            float *weight = (float *)a->buf[3] + 2 * (i + j);

            put_place(x[j] * (float)p->w, p->w, place, weight);
            put_place(y[j] * (float)p->h, p->h, place + 1, weight + 1);
        }
    }
}

static double places_flops(const void *params, size_t count)
{
    const struct thin_plate_params *p = params;
    return 4.0 * (double)count * p->points;
}

static const struct pm_kernel places = {
    .name = "thin_plate_places", .bufs = "r:points r:matrix w:place w:weight",
    .params_size = sizeof(struct thin_plate_params), .cpu = places_cpu, .grain = 256,
    .flops = places_flops,
};

/* ---- values ---------------------------------------------------------------------------------- */

/* The four pixels around a sample, and its weights. */
struct corners {
    size_t pixel, right, below; /* the first pixel; distances, all in pixels */
    int x, y;
    float fx, fy;
};

PM_INLINE int pixel_of(int32_t place)
{
    return place < 0 ? -1 - place : place;
}

PM_INLINE struct corners corners_of(const struct pm_args *a, int place, int weight, size_t i)
{
    const struct thin_plate_params *p = a->params;
    const int32_t *at = (const int32_t *)a->buf[place] + 2 * i;
    const float *f = (const float *)a->buf[weight] + 2 * i;
    const int x = pixel_of(at[0]), y = pixel_of(at[1]);
    const size_t row = i / (size_t)p->samples * (size_t)p->h + (size_t)y, w = (size_t)p->w;

    return (struct corners){ row * w + (size_t)x, 1, w, x, y, f[0], f[1] };
}

/* Items: samples. */
static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct thin_plate_params *p = a->params;
    const size_t c = (size_t)p->c;

    for (size_t i = begin; i < end; i++) {
        const struct corners s = corners_of(a, 1, 2, i);
        const float *x = (const float *)a->buf[0] + s.pixel * c;
        float *y = (float *)a->buf[3] + i * c;

        for (size_t k = 0; k < c; k++)
            y[k] = (1 - s.fy) * ((1 - s.fx) * x[k] + s.fx * x[s.right * c + k]) +
                   s.fy * ((1 - s.fx) * x[s.below * c + k] +
                           s.fx * x[(s.right + s.below) * c + k]);
    }
}

static bool values_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct thin_plate_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("thin_plate_fwd", 64, count * (size_t)p->c, out);
}

static double flops(const void *params, size_t count)
{
    const struct thin_plate_params *p = params;
    return 10.0 * (double)count * p->c;
}

static const struct pm_kernel fwd = {
    .name = "thin_plate_fwd", .bufs = "r:x r:place r:weight w:y",
    .params_size = sizeof(struct thin_plate_params), .cpu = fwd_cpu, .grain = 64,
    .pick = values_pick, .flops = flops,
};

/* ---- gradient of the points ------------------------------------------------------------------ */

/* The gradient of each sample's place before the factors W and H are in it. Items: samples. */
static void slopes_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct thin_plate_params *p = a->params;
    const size_t c = (size_t)p->c;

    for (size_t i = begin; i < end; i++) {
        const struct corners s = corners_of(a, 2, 3, i);
        const int32_t *place = (const int32_t *)a->buf[2] + 2 * i;
        const float *x = (const float *)a->buf[0] + s.pixel * c;
        const float *below = x + s.below * c, *dy = (const float *)a->buf[1] + i * c;
        float *slope = (float *)a->buf[4] + 2 * i, across = 0, down = 0;

        for (size_t k = 0; k < c; k++) {
            const float top = x[s.right * c + k] - x[k];
            const float bottom = below[s.right * c + k] - below[k];
            const float left = below[k] - x[k], right = below[s.right * c + k] - x[s.right * c + k];

            across += dy[k] * ((1 - s.fy) * top + s.fy * bottom);
            down += dy[k] * ((1 - s.fx) * left + s.fx * right);
        }
        slope[0] = place[0] < 0 ? 0 : across * (float)p->w;
        slope[1] = place[1] < 0 ? 0 : down * (float)p->h;
    }
}

static const struct pm_kernel slopes = {
    .name = "thin_plate_slopes", .bufs = "r:x r:dy r:place r:weight w:slope",
    .params_size = sizeof(struct thin_plate_params), .cpu = slopes_cpu, .grain = 64,
    .flops = flops,
};

/* Items: points of all pictures. Sixteen partial sums can be vectorised, and their order is
 * fixed. */
static void points_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    enum { PARTS = 16 };
    const struct thin_plate_params *p = a->params;
    const size_t samples = (size_t)p->samples, points = (size_t)p->points;

    for (size_t i = begin; i < end; i++) {
        const float *slope = (const float *)a->buf[0] + i / points * 2 * samples;
        const float *m = (const float *)a->buf[1] + i % points * samples;
        float x[PARTS] = { 0 }, y[PARTS] = { 0 };
        float *dpoint = (float *)a->buf[2] + 2 * i;

        for (size_t s = 0; s < samples; s++) {
            x[s % PARTS] += m[s] * slope[2 * s];
            y[s % PARTS] += m[s] * slope[2 * s + 1];
        }
        dpoint[0] = pm_row_sum(x, PARTS);
        dpoint[1] = pm_row_sum(y, PARTS);
    }
}

/* A workgroup of 64 lanes for each point. */
static bool points_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("thin_plate_points", 64, 64 * count, out);
}

static double points_flops(const void *params, size_t count)
{
    const struct thin_plate_params *p = params;
    return 4.0 * (double)count * p->samples;
}

static const struct pm_kernel point_sums = {
    .name = "thin_plate_points", .bufs = "r:slope r:matrix w:dpoints",
    .params_size = sizeof(struct thin_plate_params), .cpu = points_cpu, .grain = 1,
    .pick = points_pick, .flops = points_flops,
};

/* ---- gradient of the picture ----------------------------------------------------------------- */

/* The weight of pixel `at` of an axis in a sample. */
PM_INLINE float weight_of(int pixel, float f, int at)
{
    return pixel == at ? 1 - f : f;
}

/* Items: rows of all pictures. */
static void picture_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct thin_plate_params *p = a->params;
    const size_t samples = (size_t)p->samples, c = (size_t)p->c, h = (size_t)p->h;
    const size_t line = (size_t)p->w * c;

    for (size_t i = begin; i < end; i++) {
        float *dx = (float *)a->buf[3] + i * line;
        const int row = (int)(i % h);

        memset(dx, 0, line * sizeof *dx);
        for (size_t s = i / h * samples; s < (i / h + 1) * samples; s++) {
            const struct corners at = corners_of(a, 1, 2, s);
            const float *dy = (const float *)a->buf[0] + s * c;
            const float down = weight_of(at.y, at.fy, row);
            float *to = dx + (size_t)at.x * c;

            if (row != at.y && row != at.y + 1)
                continue;
            for (size_t k = 0; k < c; k++) {
                to[k] += down * (1 - at.fx) * dy[k];
                to[c + k] += down * at.fx * dy[k];
            }
        }
    }
}

/* One invocation for each value. */
static bool picture_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    const struct thin_plate_params *p = params;

    (void)caps;
    return level == 0 && pm_pick_elements("thin_plate_picture", 64,
                                          count * (size_t)p->w * (size_t)p->c, out);
}

static double picture_flops(const void *params, size_t count)
{
    const struct thin_plate_params *p = params;
    return (double)count * p->w * p->c * p->samples;
}

static const struct pm_kernel picture = {
    .name = "thin_plate_picture", .bufs = "r:dy r:place r:weight w:dx",
    .params_size = sizeof(struct thin_plate_params), .cpu = picture_cpu, .grain = 1,
    .pick = picture_pick, .flops = picture_flops,
};

/* ---- the layer ------------------------------------------------------------------------------- */

static int side(const struct pm_node *n, int axis)
{
    const struct pm_ints size = ((const struct thin_plate_cfg *)n->cfg)->size;

    return size.v[axis < size.count ? axis : 0];
}

static struct thin_plate_params params_of(const struct pm_node *n)
{
    const int *x = n->in[PICTURE]->out_shape.dim;

    return (struct thin_plate_params){
        .n = x[0], .points = n->in[POINTS]->out_shape.dim[1] / 2,
        .samples = side(n, 0) * side(n, 1), .h = x[1], .w = x[2], .c = x[3],
    };
}

static int check_inputs(const struct pm_node *n)
{
    const struct pm_shape x = n->in[PICTURE]->out_shape, points = n->in[POINTS]->out_shape;
    char text[64];

    if (x.rank != 4 || x.dim[1] < 2 || x.dim[2] < 2)
        return pm_fail(PM_ECONFIG, "%s: the picture has shape %s instead of n x h x w x c with "
                       "sides of 2 or more", n->name, pm_shape_text(x, text));
    if (points.rank != 2 || points.dim[0] != x.dim[0] || points.dim[1] % 4 != 0 ||
        points.dim[1] < 2 * PM_THIN_PLATE_LEAST || points.dim[1] > 2 * PM_THIN_PLATE_MOST)
        return pm_fail(PM_ECONFIG, "%s: the points have shape %s instead of %d x 2 K. Give x and "
                       "y of K points, an even number from %d to %d", n->name,
                       pm_shape_text(points, text), x.dim[0], PM_THIN_PLATE_LEAST,
                       PM_THIN_PLATE_MOST);
    return pm_need_floats(n, PICTURE, POINTS);
}

static int infer(struct pm_node *n)
{
    int err = PM_OK;
    const struct pm_ints size = ((const struct thin_plate_cfg *)n->cfg)->size;
    struct thin_plate_params p;

    if (size.count != 1 && size.count != 2)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: size must be height and width, or one number for both, "
                       "not %d numbers", n->name, size.count));
    PM_TRY(check_inputs(n));
    p = params_of(n);
    if ((double)p.n * p.samples * (p.c > 2 ? p.c : 2) > INT_MAX)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: size: %d x %d for %d pictures needs more than 2^31 - 1 "
                       "numbers. Make the size or the batch smaller", n->name, side(n, 0),
                       side(n, 1), p.n));
    n->out_shape = PM_SHAPE4(p.n, side(n, 0), side(n, 1), p.c);
    n->out_type = PM_F32;
out:
    return err;
}

/* Returns the factors [points][samples]; free with pm_free. */
static float *matrix_of(const struct pm_node *n)
{
    const struct thin_plate_cfg *cfg = n->cfg;
    const struct thin_plate_params p = params_of(n);
    float *m = pm_malloc((size_t)p.points * (size_t)p.samples * sizeof *m);

    pm_thin_plate_matrix(p.points, side(n, 0), side(n, 1), cfg->margin_x, cfg->margin_y, m);
    return m;
}

static struct pm_tensor matrix_constant(const struct pm_node *n, struct pm_calls *c)
{
    const struct thin_plate_params p = params_of(n);
    float *m = matrix_of(n);
    const struct pm_tensor t =
        pm_calls_constant(c, "thin_plate", m, PM_SHAPE2(p.points, p.samples), PM_F32);

    pm_free(m);
    return t;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct thin_plate_params p = params_of(n);
    const size_t samples = (size_t)p.n * (size_t)p.samples;
    const struct pm_shape shape = PM_SHAPE3(p.n, p.samples, 2);
    const struct pm_tensor place = pm_save(c, n, SAVED_PLACE, shape, PM_I32);
    const struct pm_tensor weight = pm_save(c, n, SAVED_WEIGHT, shape, PM_F32);

    n->saved[SAVED_MATRIX] = matrix_constant(n, c);
    pm_call(c, &places, samples, &p,
            PM_BUFS(n->xs[POINTS], n->saved[SAVED_MATRIX], place, weight));
    pm_call(c, &fwd, samples, &p, PM_BUFS(n->xs[PICTURE], place, weight, n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct thin_plate_params p = params_of(n);
    const struct pm_tensor place = n->saved[SAVED_PLACE], weight = n->saved[SAVED_WEIGHT];

    if (pm_has(n->dxs[POINTS])) {
        const struct pm_tensor slope = pm_temp(c, PM_SHAPE3(p.n, p.samples, 2), PM_F32);

        pm_call(c, &slopes, (size_t)p.n * (size_t)p.samples, &p,
                PM_BUFS(n->xs[PICTURE], n->dy, place, weight, slope));
        pm_call(c, &point_sums, (size_t)p.n * (size_t)p.points, &p,
                PM_BUFS(slope, n->saved[SAVED_MATRIX], n->dxs[POINTS]));
    }
    if (pm_has(n->dxs[PICTURE]))
        pm_call(c, &picture, (size_t)p.n * (size_t)p.h, &p,
                PM_BUFS(n->dy, place, weight, n->dxs[PICTURE]));
}

/* ---- export ---------------------------------------------------------------------------------- */

/* The places are limited before GridSample, so its own rule for places outside does not matter. */
static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct thin_plate_params p = params_of(n);
    const float sides[] = { (float)p.w, (float)p.h };
    const float last[] = { sides[0] - 2, sides[1] - 2 };
    const float unit[] = { 2 / (sides[0] - 1), 2 / (sides[1] - 1) };
    const int64_t dim[] = { p.points, p.samples }, two[] = { 0, p.points, 2 };
    const int64_t grid[] = { 0, side(n, 0), side(n, 1), 2 };
    float *m = matrix_of(n);
    const char *s = pm_export_tensor(g, "matrix", PM_DTYPE_F32, 2, dim, m);

    pm_free(m);
    s = pm_export_op(g, "Transpose", PM_VALUES(s));
    s = pm_export_op2(g, "MatMul", s, pm_export_view(g, pm_export_x(g, n, POINTS), 3, two));
    s = pm_export_op2(g, "Mul", s, pm_export_numbers(g, 2, sides));
    s = pm_export_op2(g, "Max", s, pm_export_number(g, 0));
    s = pm_export_op2(g, "Min", s, pm_export_numbers(g, 2, last));
    s = pm_export_op2(g, "Mul", s, pm_export_numbers(g, 2, unit));
    s = pm_export_op2(g, "Sub", s, pm_export_number(g, 1));
    s = pm_export_op2(g, "GridSample", pm_export_x(g, n, PICTURE), pm_export_view(g, s, 4, grid));
    pm_export_text(g, "mode", "bilinear");
    pm_export_text(g, "padding_mode", "border");
    pm_export_int(g, "align_corners", 1);
    return s;
}

const struct pm_layer pm_layer_thin_plate_sampler = {
    .name = "thin_plate_sampler",
    .help = "straightens a picture with a thin-plate spline; inputs picture, control points",
    .opts = opts, .cfg_size = sizeof(struct thin_plate_cfg), .min_inputs = 2, .max_inputs = 2,
    .infer = infer, .forward = forward, .backward = backward, .onnx = onnx,
};
