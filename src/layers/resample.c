/* resize: images brought to another size, as ONNX's Resize and TensorFlow's resize_* do. A place o of
 * the output is, along each axis, place s of the input:
 *   half_pixel          (o + 1/2) in / out - 1/2
 *   pytorch_half_pixel  the same; 0 where out is 1
 *   align_corners       o (in - 1) / (out - 1)
 *   asymmetric          o in / out (TensorFlow's rule of old)
 *   tf_half_pixel_for_nn  (o + 1/2) in / out
 * where in / out is 1 / scale when scales are given. bilinear weighs the two neighbours, cubic four,
 * the edges repeat. Backward: the weights, transposed. */
#include "layers/resample.h"

#include <limits.h>
#include <string.h>

#include "net/export_nodes.h"
#include "layers/infer.h"
#include "layers/pick.h"
#include "layers/vmath.h"
#include "resample.params.h"

/* ---- the row --------------------------------------------------------------------------- */

/* Items: pixels of y. */
PM_CLONES static void resample_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct resample_params *p = args->params;
    const int *row = args->buf[1], *col = args->buf[3];
    const float *row_weight = args->buf[2], *col_weight = args->buf[4];
    const int c = p->c;

    for (size_t i = begin; i < end; i++) {
        const int ox = (int)(i % (size_t)p->ow), oy = (int)(i / (size_t)p->ow % (size_t)p->oh);
        const size_t image = i / (size_t)p->ow / (size_t)p->oh;
        float *y = (float *)args->buf[5] + i * (size_t)c;

        memset(y, 0, sizeof *y * (size_t)c);
        for (int a = row[oy]; a < row[oy + 1]; a++) {
            const size_t line = image * (size_t)p->h + (size_t)row[p->oh + 1 + a];

            for (int b = col[ox]; b < col[ox + 1]; b++) {
                const size_t at = line * (size_t)p->w + (size_t)col[p->ow + 1 + b];
                const float *x = (const float *)args->buf[0] + at * (size_t)c;
                const float weight = row_weight[a] * col_weight[b];

                PM_SIMD
                for (int k = 0; k < c; k++)
                    y[k] += weight * x[k];
            }
        }
    }
}

static bool resample_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                          struct pm_picks *out)
{
    const struct resample_params *p = params;

    (void)caps;
    return pick_four("resample4", "resample", p->c % 4 == 0, count * (size_t)p->c, 0, level, out);
}

static double flops(const void *params, size_t count)
{
    const struct resample_params *p = params;
    return 4.0 * (double)count * p->c;
}

static const struct pm_kernel resample = {
    .name = "resample", .bufs = "r:x r:row r:row_weight r:col r:col_weight w:y",
    .params_size = sizeof(struct resample_params), .cpu = resample_cpu, .grain = 16,
    .pick = resample_pick, .flops = flops,
};

/* ---- lists ----------------------------------------------------------------------------- */

struct lists { struct pm_tensor places, weights; };

/* Of each place of the target (of the input, when turned around) its taps, in order. */
static struct lists lists_of(struct pm_calls *c, const struct pm_taps *t, bool back)
{
    const int targets = back ? t->in : t->out;
    int total = 0, *list, *next;
    float *weight;
    struct lists made;

    for (int o = 0; o < t->out; o++)
        for (int k = 0; k < PM_MOST_TAPS; k++)
            total += t->tap[o].weight[k] != 0;
    list = pm_calloc((size_t)(targets + 1 + total) + 1, sizeof *list);
    next = pm_calloc((size_t)targets + 1, sizeof *next);
    weight = pm_calloc((size_t)total + 1, sizeof *weight);
    for (int pass = 0; pass < 2; pass++) { /* the first counts, the second fills */
        for (int o = 0; o < t->out; o++)
            for (int k = 0; k < PM_MOST_TAPS; k++) {
                const int at = t->tap[o].at[k], target = back ? at : o, source = back ? o : at;

                if (t->tap[o].weight[k] == 0)
                    continue;
                if (pass == 0) {
                    list[target + 1]++;
                } else {
                    weight[next[target]] = t->tap[o].weight[k];
                    list[targets + 1 + next[target]++] = source;
                }
            }
        for (int i = 0; i < targets && pass == 0; i++)
            list[i + 1] += list[i], next[i] = list[i];
    }
    made.places = pm_calls_constant(c, "places", list, PM_SHAPE1(targets + 1 + total), PM_I32);
    made.weights = pm_calls_constant(c, "weights", weight, PM_SHAPE1(total > 0 ? total : 1), PM_F32);
    pm_free(list);
    pm_free(next);
    pm_free(weight);
    return made;
}

void pm_resample(struct pm_calls *c, const struct pm_taps axis[2], bool back, struct pm_tensor from,
                 struct pm_tensor to)
{
    const int *d = from.shape.dim, *e = to.shape.dim;
    const struct resample_params p = { d[0], d[1], d[2], d[3], e[1], e[2] };
    const struct lists row = lists_of(c, &axis[0], back), col = lists_of(c, &axis[1], back);

    pm_call(c, &resample, pm_count(to) / (size_t)p.c, &p,
            PM_BUFS(from, row.places, row.weights, col.places, col.weights, to));
}

/* ---- resize ---------------------------------------------------------------------------- */

enum method { NEAREST, BILINEAR, CUBIC };
enum coordinates { HALF_PIXEL, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, TF_HALF_PIXEL };
enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };

struct resize_cfg {
    struct pm_ints size;
    struct pm_floats scale;
    int method, coordinates, rounding;
    float cubic;
};

static const struct pm_opt opts[] = {
    PM_INTS(resize_cfg, size, "[]", 1, 1 << 20, "height and width of the output, or one for both"),
    PM_FLOATS(resize_cfg, scale, "[]", 1e-3, 1e3,
              "instead: how many times higher and wider it is, rounded down"),
    PM_ENUM(resize_cfg, method, BILINEAR, "nearest|bilinear|cubic", "how many neighbours count"),
    PM_ENUM(resize_cfg, coordinates, HALF_PIXEL,
            "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn",
            "which place of the input a place of the output is"),
    PM_ENUM(resize_cfg, rounding, PREFER_FLOOR, "round_prefer_floor|round_prefer_ceil|floor|ceil",
            "which neighbour is nearest"),
    PM_FLOAT(resize_cfg, cubic, -0.75, -2, 0, "coefficient of cubic"),
    { 0 },
};

/* Size of axis 0 or 1 of the output; below 1 when there is none. */
static int size_of(const struct resize_cfg *cfg, int axis, int in)
{
    double size;

    if (cfg->size.count)
        return cfg->size.v[axis < cfg->size.count ? axis : 0];
    size = floor((double)((float)in * cfg->scale.v[axis < cfg->scale.count ? axis : 0]));
    return size > INT_MAX ? 0 : (int)size;
}

static int infer(struct pm_node *n)
{
    const struct resize_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[0]->out_shape;
    char text[64];

    if (x.rank != 4)
        return pm_fail(PM_ECONFIG, "%s: resize needs an input of rank 4 (n, h, w, c), not %s", n->name,
                       pm_shape_text(x, text));
    if (cfg->size.count > 2 || cfg->scale.count > 2 || !cfg->size.count == !cfg->scale.count)
        return pm_fail(PM_ECONFIG, "%s: resize takes either size or scale, one number or two (height "
                       "and width), not %d and %d", n->name, cfg->size.count, cfg->scale.count);
    n->out_shape = PM_SHAPE4(x.dim[0], size_of(cfg, 0, x.dim[1]), size_of(cfg, 1, x.dim[2]), x.dim[3]);
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 0);
}

/* By the given scale in floats, as the programs that take one do. */
static double place_of(const struct resize_cfg *cfg, int axis, int in, int out, int o)
{
    const bool scaled = cfg->scale.count > 0;
    const float scale = scaled ? cfg->scale.v[axis < cfg->scale.count ? axis : 0] : 1;
    const double half = (o + 0.5) * in / out;

    switch (cfg->coordinates) {
    case ALIGN_CORNERS:
        return out == 1 ? 0 : (double)o * (in - 1) / (out - 1);
    case ASYMMETRIC:
        return scaled ? (double)((float)o / scale) : (double)o * in / out;
    case PYTORCH_HALF_PIXEL:
        if (out == 1)
            return 0;
        /* fall through */
    case HALF_PIXEL:
        return scaled ? (double)(((float)o + 0.5f) / scale - 0.5f) : half - 0.5;
    default:
        return scaled ? (double)(((float)o + 0.5f) / scale) : half;
    }
}

static int clamp(int i, int in)
{
    return i < 0 ? 0 : i < in ? i : in - 1;
}

static int nearest(const struct resize_cfg *cfg, double s)
{
    switch (cfg->rounding) {
    case PREFER_FLOOR: return (int)ceil(s - 0.5);
    case PREFER_CEIL: return (int)floor(s + 0.5);
    case FLOOR: return (int)floor(s);
    default: return (int)ceil(s);
    }
}

/* Keys' cubic: weights of the places one before to two behind, at t in 0..1 behind. */
static void cubic_weights(double a, double t, float weight[4])
{
    const double far = 1 + t, near = 1 - t, last = 2 - t;

    weight[0] = (float)(((a * far - 5 * a) * far + 8 * a) * far - 4 * a);
    weight[1] = (float)(((a + 2) * t - (a + 3)) * t * t + 1);
    weight[2] = (float)(((a + 2) * near - (a + 3)) * near * near + 1);
    weight[3] = (float)(((a * last - 5 * a) * last + 8 * a) * last - 4 * a);
}

static struct pm_tap tap_of(const struct resize_cfg *cfg, double s, int in)
{
    struct pm_tap t = { .at = { 0 } };
    double low;

    if (cfg->method == NEAREST) {
        t.at[0] = clamp(nearest(cfg, s), in);
        t.weight[0] = 1;
        return t;
    }
    if (cfg->method == BILINEAR)
        s = s < 0 ? 0 : s < in - 1 ? s : in - 1;
    low = floor(s);
    if (cfg->method == BILINEAR) {
        t.at[0] = (int)low, t.at[1] = clamp((int)low + 1, in);
        t.weight[0] = (float)(1 - (s - low)), t.weight[1] = (float)(s - low);
        return t;
    }
    for (int k = 0; k < 4; k++)
        t.at[k] = clamp((int)low - 1 + k, in);
    cubic_weights(cfg->cubic, s - low, t.weight);
    return t;
}

static void call(const struct pm_node *n, struct pm_calls *c, bool back, struct pm_tensor from,
                 struct pm_tensor to)
{
    const struct resize_cfg *cfg = n->cfg;
    struct pm_taps axis[2];

    for (int i = 0; i < 2; i++) {
        const int in = n->x.shape.dim[1 + i], out = n->out_shape.dim[1 + i];

        axis[i] = (struct pm_taps){ in, out, pm_malloc((size_t)out * sizeof *axis[i].tap) };
        for (int o = 0; o < out; o++)
            axis[i].tap[o] = tap_of(cfg, place_of(cfg, i, in, out, o), in);
    }
    pm_resample(c, axis, back, from, to);
    pm_free(axis[0].tap);
    pm_free(axis[1].tap);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    call(n, c, false, n->x, n->y);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    if (pm_has(n->dx))
        call(n, c, true, n->dy, n->dx);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    static const char *const methods[] = { "nearest", "linear", "cubic" };
    static const char *const coordinates[] = { "half_pixel", "pytorch_half_pixel", "align_corners",
                                               "asymmetric", "tf_half_pixel_for_nn" };
    static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor",
                                             "ceil" };
    const struct resize_cfg *cfg = n->cfg;
    const struct pm_floats s = cfg->scale;
    const char *in[] = { pm_export_x(g, n, 0), "", "", NULL, NULL }, *out;

    if (s.count)
        in[2] = pm_export_numbers(g, 4, (const float[]){ 1, 1, s.v[0], s.v[s.count - 1] });
    else
        in[3] = pm_export_shape(g, in[0], n->out_shape);
    out = pm_export_op(g, "Resize", in);
    pm_export_text(g, "mode", methods[cfg->method]);
    pm_export_text(g, "coordinate_transformation_mode", coordinates[cfg->coordinates]);
    if (cfg->method == NEAREST)
        pm_export_text(g, "nearest_mode", roundings[cfg->rounding]);
    if (cfg->method == CUBIC)
        pm_export_float(g, "cubic_coeff_a", cfg->cubic);
    return out;
}

const struct pm_layer pm_layer_resize = {
    .name = "resize", .help = "images at another size", .opts = opts,
    .cfg_size = sizeof(struct resize_cfg), .infer = infer, .forward = forward,
    .backward = backward, .onnx = onnx,
};
