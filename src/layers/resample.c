/* resize: resizes images like ONNX's Resize and TensorFlow's resize_*. Along each axis, place o of
 * the output is place s of the input:
 *   half_pixel          (o + 1/2) in / out - 1/2
 *   pytorch_half_pixel  the same; 0 if out is 1
 *   align_corners       o (in - 1) / (out - 1)
 *   asymmetric          o in / out (TensorFlow's old rule)
 *   tf_half_pixel_for_nn  (o + 1/2) in / out
 * in / out is 1 / scale if scales are given. bilinear weighs the two neighbours, cubic four
 * neighbours; edges repeat. Backward: the transposed weights. */
#include "layers/resample.h"

#include <limits.h>
#include <string.h>

#include "onnx/export_nodes.h"
#include "layers/infer.h"
#include "device/pick.h"
#include "layers/vmath.h"
#include "resample.params.h"

/* ---- the row --------------------------------------------------------------------------- */

/* One axis of the lists. Target i has the taps row[i]..row[i + 1]-1, with their places and
 * weights. */
struct axis {
    const int *list, *place;
    const float *weight;
};

PM_INLINE struct axis axis_of(const struct pm_args *args, int buf, int targets)
{
    const int *list = args->buf[buf];
    return (struct axis){ list, list + targets + 1, args->buf[buf + 1] };
}

/* sum = or += weight x. Adding two taps at a time halves the memory traffic of sum. */
PM_INLINE void add_one(float *sum, const float *x, float weight, int n, bool first)
{
    for (int i = 0; i < n; i++)
        sum[i] = first ? weight * x[i] : sum[i] + weight * x[i];
}

PM_INLINE void add_two(float *sum, const float *x, float wx, const float *y, float wy, int n,
                       bool first)
{
    for (int i = 0; i < n; i++)
        sum[i] = first ? wx * x[i] + wy * y[i] : sum[i] + (wx * x[i] + wy * y[i]);
}

/* Sets sum to n values of the taps of target i. Places are `stride` apart. */
PM_INLINE void add_taps(struct axis a, int i, const float *x, size_t stride, int n, float *sum)
{
    const int begin = a.list[i], end = a.list[i + 1];
    int t = begin;

    if (begin == end)
        memset(sum, 0, sizeof *sum * (size_t)n);
    for (; t + 2 <= end; t += 2) {
        const float *first = x + (size_t)a.place[t] * stride,
                    *next = x + (size_t)a.place[t + 1] * stride;

        if (t == begin)
            add_two(sum, first, a.weight[t], next, a.weight[t + 1], n, true);
        else
            add_two(sum, first, a.weight[t], next, a.weight[t + 1], n, false);
    }
    if (t < end && t == begin)
        add_one(sum, x + (size_t)a.place[t] * stride, a.weight[t], n, true);
    else if (t < end)
        add_one(sum, x + (size_t)a.place[t] * stride, a.weight[t], n, false);
}

enum { LINE = 32768, PART = 2048, SIXTEEN = 16, TOGETHER = 8 };

/* Sums columns first..first+n-1 of the lines of x. */
PM_INLINE void add_lines(const struct resample_params *p, struct axis row, int oy, const float *x,
                         int first, int n, float *line)
{
    const size_t c = (size_t)p->c;
    const int values = n * p->c;

    for (int i = 0; i < values; i += PART)
        add_taps(row, oy, x + (size_t)first * c + i, (size_t)p->w * c,
                 values - i < PART ? values - i : PART, line + i);
}

/* Makes a line of y from lines of x that fit whole. With few channels, whole vectors are written.
 * They overlap the next pixel, as long as there is a next pixel. */
PM_INLINE void line_at_once(const struct resample_params *p, struct axis row, struct axis col,
                            int oy, const float *x, float *line, float *y)
{
    const int c = p->c, whole = (c + SIXTEEN - 1) / SIXTEEN * SIXTEEN;

    add_lines(p, row, oy, x, 0, p->w, line);
    memset(line + p->w * c, 0, SIXTEEN * sizeof *line);
    for (int i = 0; i < p->ow; i++) {
        const bool beyond = (size_t)(p->ow - i) * (size_t)c >= (size_t)whole;

        add_taps(col, i, line, (size_t)c, beyond ? whole : c, y + (size_t)i * (size_t)c);
    }
}

/* Adds to y the taps of pixel i in columns first..first+n-1. */
PM_INLINE void add_some(struct axis col, int i, int first, int n, const float *line, int c,
                        float *y)
{
    for (int t = col.list[i]; t < col.list[i + 1]; t++) {
        const int at = col.place[t] - first;
        const int next = t + 1 < col.list[i + 1] ? col.place[t + 1] - first : -1;

        if (at < 0 || at >= n)
            continue;
        if (next >= 0 && next < n) {
            add_two(y, line + (size_t)at * (size_t)c, col.weight[t],
                    line + (size_t)next * (size_t)c, col.weight[t + 1], c, false);
            t++;
        } else {
            add_one(y, line + (size_t)at * (size_t)c, col.weight[t], c, false);
        }
    }
}

/* The same for longer lines, in parts of some columns each. */
PM_INLINE void line_in_parts(const struct resample_params *p, struct axis row, struct axis col,
                             int oy, const float *x, float *line, float *y)
{
    const int each = LINE / p->c;

    memset(y, 0, sizeof *y * (size_t)p->ow * (size_t)p->c);
    for (int first = 0; first < p->w; first += each) {
        const int n = p->w - first < each ? p->w - first : each;

        add_lines(p, row, oy, x, first, n, line);
        for (int i = 0; i < p->ow; i++)
            add_some(col, i, first, n, line, p->c, y + (size_t)i * (size_t)p->c);
    }
}

/* Makes `count` lines of y from one pass over the lines of x, each resized to y's width first.
 * Neighbours in y share lines of x. If y is smaller than x, these are too many for the cache. */
PM_INLINE void lines_together(const struct resample_params *p, struct axis row, struct axis col,
                              int oy, int count, const float *x, float *line, float *y)
{
    const int c = p->c, values = p->ow * c;
    int next[TOGETHER]; /* next tap of each line */

    memcpy(next, row.list + oy, sizeof *next * (size_t)count);
    memset(y, 0, sizeof *y * (size_t)count * (size_t)values);
    for (;;) {
        int at = INT_MAX; /* the first line of x that is still needed */

        for (int i = 0; i < count; i++)
            if (next[i] < row.list[oy + i + 1] && row.place[next[i]] < at)
                at = row.place[next[i]];
        if (at == INT_MAX)
            return;
        for (int i = 0; i < p->ow; i++)
            add_taps(col, i, x + (size_t)at * (size_t)p->w * (size_t)c, (size_t)c, c, line + i * c);
        for (int i = 0; i < count; i++)
            for (; next[i] < row.list[oy + i + 1] && row.place[next[i]] == at; next[i]++)
                add_one(y + (size_t)i * (size_t)values, line, row.weight[next[i]], values, false);
    }
}

/* Whether lines are made together. It depends on the shape alone, because it changes the order of
 * sums. */
static bool together(const struct resample_params *p)
{
    return (size_t)p->w * (size_t)p->c > 2 * LINE && p->ow < p->w &&
           (size_t)p->ow * (size_t)p->c <= LINE;
}

/* Works pixel by pixel; the channels of one pixel exceed a part. */
PM_INLINE void line_directly(const struct resample_params *p, struct axis row, struct axis col,
                             int oy, const float *x, float *y)
{
    const size_t c = (size_t)p->c;

    memset(y, 0, sizeof *y * (size_t)p->ow * c);
    for (int a = row.list[oy]; a < row.list[oy + 1]; a++)
        for (int i = 0; i < p->ow; i++)
            for (int b = col.list[i]; b < col.list[i + 1]; b++)
                add_one(y + (size_t)i * c,
                        x + ((size_t)row.place[a] * (size_t)p->w + (size_t)col.place[b]) * c,
                        row.weight[a] * col.weight[b], p->c, false);
}

/* Items: lines of y. */
PM_CLONES static void resample_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct resample_params *p = args->params;
    const struct axis row = axis_of(args, 1, p->oh), col = axis_of(args, 3, p->ow);
    const size_t c = (size_t)p->c, image = (size_t)p->h * (size_t)p->w * c;
    float line[LINE + SIXTEEN];

    for (size_t i = begin, lines; i < end; i += lines) {
        const float *x = (const float *)args->buf[0] + i / (size_t)p->oh * image;
        float *y = (float *)args->buf[5] + i * (size_t)p->ow * c;
        const int oy = (int)(i % (size_t)p->oh);

        lines = 1;
        if (together(p)) {
            lines = (size_t)(p->oh - oy) < end - i ? (size_t)(p->oh - oy) : end - i;
            lines = lines < TOGETHER ? lines : TOGETHER;
            lines_together(p, row, col, oy, (int)lines, x, line, y);
        } else if ((size_t)p->w * c <= LINE) {
            line_at_once(p, row, col, oy, x, line, y);
        } else if (c <= LINE) {
            line_in_parts(p, row, col, oy, x, line, y);
        } else {
            line_directly(p, row, col, oy, x, y);
        }
    }
}

static bool resample_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                          struct pm_picks *out)
{
    const struct resample_params *p = params;
    const size_t items = count * (size_t)p->ow * (size_t)((p->c + 3) / 4 * 4);

    (void)caps;
    return pick_four(p->c % 4 == 0 ? "resample4" : "resample_odd", "resample", p->c >= 4, items, 0,
                     level, out);
}

static double flops(const void *params, size_t count)
{
    const struct resample_params *p = params;
    return 4.0 * (double)count * p->ow * p->c;
}

static const struct pm_kernel resample = {
    .name = "resample", .bufs = "r:x r:row r:row_weight r:col r:col_weight w:y",
    .params_size = sizeof(struct resample_params), .cpu = resample_cpu, .grain = 1,
    .pick = resample_pick, .flops = flops,
};

/* ---- lists ----------------------------------------------------------------------------- */

struct lists { struct pm_tensor places, weights; };

/* Makes the taps of each place of the target in order, or of the input if the lists are
 * reversed. */
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
    for (int pass = 0; pass < 2; pass++) { /* the first pass counts, the second fills */
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
    made.weights =
        pm_calls_constant(c, "weights", weight, PM_SHAPE1(total > 0 ? total : 1), PM_F32);
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

    pm_call(c, &resample, (size_t)p.n * (size_t)p.oh, &p,
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
              "instead of size: factors for height and width, rounded down"),
    PM_ENUM(resize_cfg, method, BILINEAR, "nearest|bilinear|cubic", "interpolation"),
    PM_ENUM(resize_cfg, coordinates, HALF_PIXEL,
            "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn",
            "how output coordinates map to input coordinates (ONNX's names)"),
    PM_ENUM(resize_cfg, rounding, PREFER_FLOOR, "round_prefer_floor|round_prefer_ceil|floor|ceil",
            "rounding to the nearest neighbour"),
    PM_FLOAT(resize_cfg, cubic, -0.75, -2, 0, "coefficient of cubic"),
    { 0 },
};

/* Returns the size of axis 0 or 1 of the output; below 1 if it is invalid. */
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
        return pm_fail(PM_ECONFIG, "%s: resize needs an input of rank 4 (n, h, w, c), not %s",
                       n->name, pm_shape_text(x, text));
    if (cfg->size.count > 2 || cfg->scale.count > 2 || !cfg->size.count == !cfg->scale.count)
        return pm_fail(PM_ECONFIG,
                       "%s: resize takes either size or scale, one number or two (height "
                       "and width), not %d and %d",
                       n->name, cfg->size.count, cfg->scale.count);
    n->out_shape =
        PM_SHAPE4(x.dim[0], size_of(cfg, 0, x.dim[1]), size_of(cfg, 1, x.dim[2]), x.dim[3]);
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 0);
}

/* Computes with the given scale in floats, as other programs with a scale do. */
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

/* Keys' cubic: weights of the places from one before to two after, at t in 0..1 after the place. */
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
    .name = "resize", .help = "resizes images", .opts = opts,
    .cfg_size = sizeof(struct resize_cfg), .infer = infer, .forward = forward,
    .backward = backward, .onnx = onnx,
};
