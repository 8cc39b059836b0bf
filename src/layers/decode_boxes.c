/* decode_boxes: the boxes that a detector's codes stand for. Inputs: the maps of codes of levels 1
 * to L [n,h,w,A * code size], then the anchors [N,4]. Output: [n,N,4], ymin, xmin, ymax, xmax in
 * the anchors' unit; box_coder.h has the formulas. For evaluation: there is no gradient.
 *
 * With coder=rotated a box and an anchor are five numbers, cy, cx, h, w, angle, instead of four.
 *
 * Second stages have anchors of each picture. Inputs then: codes of K classes [n * R,K * code size]
 * and boxes [n,R,4]. Output: [n,R,K,4], or [n,R,4] if K is 1. */
#include <pumice/net.h>

#include "layers/decode_boxes.h"

#include "decode_boxes.params.h"
#include "layers/anchors.h"
#include "layers/infer.h"
#include "layers/levels.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"

struct decode_cfg {
    int coder;
    struct pm_floats coder_scales, box_encodings_clip_range;
};

static const struct pm_opt opts[] = {
    PM_BOX_CODER_OPTIONS(decode_cfg),
    PM_FLOATS(decode_cfg, box_encodings_clip_range, "[]", -1e6, 1e6,
              "least and greatest code; []: codes are not limited"),
    { 0 },
};

/* Limits a code and decodes it. NaN stays NaN. */
PM_INLINE void decode_one(const struct pm_box_coder *coder, float low, float high, const float *x,
                          const float *anchor, float *y)
{
    const int size = pm_box_coder_size(coder);
    float code[5];

    for (int k = 0; k < size; k++)
        code[k] = x[k] < low ? low : x[k] > high ? high : x[k];
    pm_box_decode_any(coder, code, anchor, y);
}

static void decode_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct decode_boxes_params *p = a->params;
    const struct pm_box_coder coder = { p->kind, { p->s0, p->s1, p->s2, p->s3, p->s4 } };
    const size_t size = (size_t)pm_box_coder_size(&coder), anchors = (size_t)p->anchors;
    const size_t numbers = (size_t)pm_box_coder_numbers(&coder);
    const int first[] = { 0, p->first2, p->first3, p->first4, p->first5, p->first6, p->first7,
                          p->anchors };
    float *y = a->buf[8];
    int level = 0;

    for (size_t i = begin; i < end; i++) {
        const int anchor = (int)(i % anchors);

        for (level = anchor == 0 ? 0 : level; anchor >= first[level + 1];)
            level++;
        const size_t at = i / anchors * (size_t)(first[level + 1] - first[level]) +
                          (size_t)(anchor - first[level]);

        decode_one(&coder, p->low, p->high, (const float *)a->buf[1 + level] + at * size,
                   (const float *)a->buf[0] + numbers * (size_t)anchor, y + numbers * i);
    }
}

static double decode_flops(const void *params, size_t count)
{
    (void)params;
    return 60.0 * (double)count;
}

static const struct pm_kernel decode = {
    .name = "decode_boxes",
    .bufs = "r:anchors r:x1 r?:x2 r?:x3 r?:x4 r?:x5 r?:x6 r?:x7 w:y",
    .params_size = sizeof(struct decode_boxes_params), .cpu = decode_cpu, .grain = 256,
    .flops = decode_flops,
};

static const struct pm_kernel decode_rotated = {
    .name = "decode_rotated",
    .bufs = "r:anchors r:x1 r?:x2 r?:x3 r?:x4 r?:x5 r?:x6 r?:x7 w:y",
    .params_size = sizeof(struct decode_boxes_params), .cpu = decode_cpu, .grain = 256,
    .flops = decode_flops,
};

/* ---- boxes of each picture ------------------------------------------------------------------- */

static void rows_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct decode_box_rows_params *p = a->params;
    const struct pm_box_coder coder = { p->kind, { p->s0, p->s1, p->s2, p->s3, p->s4 } };
    const size_t size = (size_t)pm_box_coder_size(&coder);
    const size_t numbers = (size_t)pm_box_coder_numbers(&coder);
    const float *boxes = a->buf[0], *codes = a->buf[1];
    float *y = a->buf[2];

    for (size_t i = begin; i < end; i++)
        decode_one(&coder, p->low, p->high, codes + i * size,
                   boxes + i / (size_t)p->classes * numbers, y + numbers * i);
}

static const struct pm_kernel decode_rows = {
    .name = "decode_box_rows", .bufs = "r:boxes r:codes w:y",
    .params_size = sizeof(struct decode_box_rows_params), .cpu = rows_cpu, .grain = 256,
    .flops = decode_flops,
};
static const struct pm_kernel rotated_rows = {
    .name = "decode_rotated_rows", .bufs = "r:boxes r:codes w:y",
    .params_size = sizeof(struct decode_box_rows_params), .cpu = rows_cpu, .grain = 256,
    .flops = decode_flops,
};

/* Whether the anchors are boxes of each picture. */
static bool has_rows(const struct pm_node *n)
{
    return n->in[0]->out_shape.rank == 2;
}

static int infer_rows(struct pm_node *n, int size, int numbers)
{
    const struct pm_shape codes = n->in[0]->out_shape, boxes = n->in[1]->out_shape;
    char text[2][64];

    if (n->inputs != 2 || boxes.rank != 3 || boxes.dim[2] != numbers || codes.dim[1] % size ||
        codes.dim[0] != boxes.dim[0] * boxes.dim[1])
        return pm_fail(PM_ECONFIG, "%s: codes of %s need one more input, boxes of n x R x %d with "
                       "n R = %d, and a multiple of %d codes in a row; the second input is %s",
                       n->name, pm_shape_text(codes, text[0]), numbers, codes.dim[0], size,
                       pm_shape_text(boxes, text[1]));
    n->out_shape = codes.dim[1] == size ? boxes
                                        : PM_SHAPE4(boxes.dim[0], boxes.dim[1],
                                                    codes.dim[1] / size, numbers);
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 1);
}

static void forward_rows(struct pm_node *n, struct pm_calls *c, const struct pm_box_coder *coder,
                         float low, float high)
{
    const struct decode_box_rows_params p = {
        .rows = (int)(pm_count(n->y) / (size_t)pm_box_coder_numbers(coder)),
        .classes = (int)(pm_count(n->y) / pm_count(n->xs[1])),
        .kind = coder->kind, .s0 = coder->scales[0], .s1 = coder->scales[1],
        .s2 = coder->scales[2], .s3 = coder->scales[3], .s4 = coder->scales[4], .low = low,
        .high = high,
    };

    pm_call(c, coder->kind == PM_CODER_ROTATED ? &rotated_rows : &decode_rows, (size_t)p.rows, &p,
            PM_BUFS(n->xs[1], n->x, n->y));
}

/* ---- the layer ------------------------------------------------------------------------------- */

static int infer(struct pm_node *n)
{
    const struct decode_cfg *cfg = n->cfg;
    const int levels = n->inputs - 1;
    const struct pm_floats range = cfg->box_encodings_clip_range;
    const struct pm_shape anchors = n->in[levels]->out_shape;
    int first[PM_MAX_LEVELS + 1], err = PM_OK;
    struct pm_box_coder coder;
    char text[64];

    PM_TRY(pm_box_coder_make(cfg->coder, cfg->coder_scales, n->name, &coder));
    const int numbers = pm_box_coder_numbers(&coder);
    if (range.count && (range.count != 2 || range.v[0] > range.v[1]))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: box_encodings_clip_range must be two numbers, the least "
                       "and the greatest code, or []", n->name));
    if (has_rows(n))
        return infer_rows(n, pm_box_coder_size(&coder), numbers);
    PM_TRY(pm_levels_read(n, 0, levels, pm_box_coder_size(&coder), first));
    if (anchors.rank != 2 || anchors.dim[1] != numbers || anchors.dim[0] != first[levels])
        PM_TRY(pm_fail(PM_ECONFIG, "%s: its last input must be the anchors of its maps, %dx%d, "
                       "not %s", n->name, first[levels], numbers, pm_shape_text(anchors, text)));
    n->out_shape = PM_SHAPE3(n->in[0]->out_shape.dim[0], first[levels], numbers);
    n->out_type = PM_F32;
out:
    return err;
}

void pm_decode_boxes(struct pm_calls *c, const struct pm_box_coder *coder, float low, float high,
                     int levels, const struct pm_tensor *codes, struct pm_tensor anchors,
                     struct pm_tensor y)
{
    const int images = y.shape.dim[0], size = pm_box_coder_size(coder);
    struct pm_tensor x[PM_MAX_LEVELS];
    int first[PM_MAX_LEVELS + 1] = { 0 };

    for (int k = 0; k < PM_MAX_LEVELS; k++) {
        x[k] = k < levels ? codes[k] : PM_NO_TENSOR;
        first[k + 1] = first[k] + (k < levels ? (int)pm_count(x[k]) / images / size : 0);
    }
    const struct decode_boxes_params p = {
        .rows = images * first[levels], .anchors = first[levels],
        .first2 = first[1], .first3 = first[2], .first4 = first[3], .first5 = first[4],
        .first6 = first[5], .first7 = first[6], .kind = coder->kind, .s0 = coder->scales[0],
        .s1 = coder->scales[1], .s2 = coder->scales[2], .s3 = coder->scales[3],
        .s4 = coder->scales[4], .low = low, .high = high,
    };

    pm_call(c, coder->kind == PM_CODER_ROTATED ? &decode_rotated : &decode, (size_t)p.rows, &p,
            PM_BUFS(anchors, x[0], x[1], x[2], x[3], x[4], x[5], x[6], y));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct decode_cfg *cfg = n->cfg;
    const struct pm_floats range = cfg->box_encodings_clip_range;
    const int levels = n->inputs - 1;
    struct pm_box_coder coder;
    const float low = range.count ? range.v[0] : -INFINITY;
    const float high = range.count ? range.v[1] : INFINITY;

    pm_box_coder_make(cfg->coder, cfg->coder_scales, n->name, &coder); /* infer() checked it */
    if (has_rows(n))
        forward_rows(n, c, &coder, low, high);
    else
        pm_decode_boxes(c, &coder, low, high, levels, n->xs, n->xs[levels], n->y);
}

/* ---- ONNX ----------------------------------------------------------------------------------- */

/* Splits the last axis of a value of rank 2 or 3 in two. */
static void halves(struct pm_export *g, const char *x, int first, int second, const char *out[2])
{
    const int64_t size[] = { first, second };

    pm_export_op_outputs(g, "Split", PM_VALUES(x, pm_export_integers(g, 2, size)), 2, out);
    pm_export_int(g, "axis", -1);
}

/* exp(min(code / scale, PM_BOX_MOST_LOG)) * side. */
static const char *grown(struct pm_export *g, const char *code, const char *scale,
                         const char *side)
{
    code = pm_export_op2(g, "Div", code, scale);
    code = pm_export_op2(g, "Min", code, pm_export_number(g, PM_BOX_MOST_LOG));
    return pm_export_op2(g, "Mul", pm_export_op(g, "Exp", PM_VALUES(code)), side);
}

/* Joins two values along the last axis. */
static const char *joined(struct pm_export *g, const char *a, const char *b)
{
    const char *out = pm_export_op(g, "Concat", PM_VALUES(a, b));

    pm_export_int(g, "axis", -1);
    return out;
}

/* Codes that are distances of corners; corners: relative to the anchor's sides. */
static const char *decoded_corners(struct pm_export *g, const struct pm_box_coder *coder,
                                   const char *codes, const char *anchors)
{
    const char *corner[2], *side;

    codes = pm_export_op2(g, "Mul", codes, pm_export_number(g, coder->scales[0]));
    if (coder->kind == PM_CODER_CORNERS) {
        halves(g, anchors, 2, 2, corner);
        side = pm_export_op2(g, "Sub", corner[1], corner[0]);
        codes = pm_export_op2(g, "Mul", codes, joined(g, side, side));
    }
    return pm_export_op2(g, "Add", codes, anchors);
}

/* Splits the five numbers of rotated boxes, or their codes, into 2, 2 and 1. */
static void parts(struct pm_export *g, const char *x, const char *out[3])
{
    const int64_t size[] = { 2, 2, 1 };

    pm_export_op_outputs(g, "Split", PM_VALUES(x, pm_export_integers(g, 3, size)), 3, out);
    pm_export_int(g, "axis", -1);
}

/* Sets out to cosine and sine of the anchors' angles, [N,1] each: constants for an anchor layer. */
static void directions(struct pm_export *g, const struct pm_node *anchors, const char *angle,
                       const char *out[2])
{
    const int64_t count = anchors->out_shape.dim[0], dim[] = { count, 1 };
    float *v, *turns;

    if (!pm_is_anchors(anchors)) {
        out[0] = pm_export_op(g, "Cos", PM_VALUES(angle));
        out[1] = pm_export_op(g, "Sin", PM_VALUES(angle));
        return;
    }
    v = pm_malloc(5 * (size_t)count * sizeof *v);
    turns = pm_malloc(2 * (size_t)count * sizeof *turns);
    pm_anchors_write(anchors, v);
    for (int64_t i = 0; i < count; i++)
        pm_box_direction(v[5 * i + 4], &turns[i], &turns[count + i]);
    out[0] = pm_export_tensor(g, "cosines", PM_DTYPE_F32, 2, dim, turns);
    out[1] = pm_export_tensor(g, "sines", PM_DTYPE_F32, 2, dim, turns + count);
    pm_free(v);
    pm_free(turns);
}

/* node: of the anchors. */
static const char *decoded_rotated(struct pm_export *g, const struct pm_box_coder *coder,
                                   const struct pm_node *node, const char *codes,
                                   const char *anchors)
{
    const char *a[3], *code[3], *d[2], *turn[2], *c, *s, *y, *x, *sides;

    parts(g, anchors, a);
    parts(g, codes, code);
    code[0] = pm_export_op2(g, "Div", code[0], pm_export_numbers(g, 2, coder->scales));
    halves(g, pm_export_op2(g, "Mul", code[0], a[1]), 1, 1, d);
    directions(g, node, a[2], turn);
    c = turn[0], s = turn[1];
    y = pm_export_op2(g, "Add", pm_export_op2(g, "Mul", c, d[0]), pm_export_op2(g, "Mul", s, d[1]));
    x = pm_export_op2(g, "Sub", pm_export_op2(g, "Mul", c, d[1]), pm_export_op2(g, "Mul", s, d[0]));
    sides = grown(g, code[1], pm_export_numbers(g, 2, coder->scales + 2), a[1]);
    code[2] = pm_export_op2(g, "Mul", code[2],
                            pm_export_number(g, PM_QUARTER_TURN / coder->scales[4]));
    return joined(g, joined(g, pm_export_op2(g, "Add", a[0], joined(g, y, x)), sides),
                  pm_export_op2(g, "Add", a[2], code[2]));
}

static const char *decoded(struct pm_export *g, const struct pm_box_coder *coder,
                           const struct pm_node *node, const char *codes, const char *anchors)
{
    const bool square = coder->kind == PM_CODER_SQUARE;
    const char *corner[2], *code[2], *side, *middle, *half, *two;

    if (coder->kind == PM_CODER_MEAN_STDDEV || coder->kind == PM_CODER_CORNERS)
        return decoded_corners(g, coder, codes, anchors);
    if (coder->kind == PM_CODER_ROTATED)
        return decoded_rotated(g, coder, node, codes, anchors);
    two = pm_export_number(g, 2);
    halves(g, anchors, 2, 2, corner);
    halves(g, codes, 2, square ? 1 : 2, code);
    side = pm_export_op2(g, "Sub", corner[1], corner[0]);
    middle = pm_export_op2(g, "Add", corner[0], pm_export_op2(g, "Div", side, two));
    if (square) {
        const char *sides[2];

        halves(g, side, 1, 1, sides);
        side = pm_export_op(g, "Sqrt", PM_VALUES(pm_export_op2(g, "Mul", sides[0], sides[1])));
    }
    code[0] = pm_export_op2(g, "Div", code[0], pm_export_numbers(g, 2, coder->scales));
    middle = pm_export_op2(g, "Add", pm_export_op2(g, "Mul", code[0], side), middle);
    half = grown(g, code[1], pm_export_numbers(g, square ? 1 : 2, coder->scales + 2), side);
    half = pm_export_op2(g, "Div", half, two);
    corner[0] = pm_export_op2(g, "Sub", middle, half);
    corner[1] = pm_export_op2(g, "Add", middle, half);
    return joined(g, corner[0], corner[1]);
}

/* Codes [n,R,K,size] of each picture's boxes, and boxes [n,R,1,4]; without K if it is 1. */
static const char *rows_onnx(const struct pm_node *n, struct pm_export *g, int size,
                             const char **boxes)
{
    const struct pm_shape b = n->in[1]->out_shape, y = n->out_shape;
    const int64_t shape[] = { -1, b.dim[1], y.dim[2], size };
    const char *codes = pm_export_x(g, n, 0);

    if (y.rank == 3)
        return pm_export_op2(g, "Reshape", codes,
                             pm_export_integers(g, PM_INT64S(-1, b.dim[1], size)));
    *boxes = pm_export_unsqueeze(g, *boxes, 2);
    return pm_export_op2(g, "Reshape", codes, pm_export_integers(g, 4, shape));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct decode_cfg *cfg = n->cfg;
    const struct pm_floats range = cfg->box_encodings_clip_range;
    const int levels = n->inputs - 1;
    struct pm_box_coder coder;
    const char *codes, *anchors = pm_export_x(g, n, levels);

    pm_box_coder_make(cfg->coder, cfg->coder_scales, n->name, &coder);
    codes = has_rows(n) ? rows_onnx(n, g, pm_box_coder_size(&coder), &anchors)
                        : pm_levels_onnx(n, g, 0, levels, pm_box_coder_size(&coder));
    if (range.count)
        codes = pm_export_op(g, "Clip", PM_VALUES(codes, pm_export_number(g, range.v[0]),
                                                  pm_export_number(g, range.v[1])));
    codes = decoded(g, &coder, n->in[has_rows(n) ? 1 : levels], codes, anchors);
    if (n->out_shape.rank == 4) { /* in the graph, rank 4 has the last axis second */
        codes = pm_export_op(g, "Transpose", PM_VALUES(codes));
        pm_export_ints(g, "perm", PM_INT64S(0, 3, 1, 2));
    }
    return codes;
}

const struct pm_layer pm_layer_decode_boxes = {
    .name = "decode_boxes",
    .help = "boxes of a detector's codes and anchors, or of codes by class and each picture's "
            "boxes; no gradient",
    .opts = opts, .cfg_size = sizeof(struct decode_cfg), .min_inputs = 2,
    .max_inputs = 1 + PM_MAX_LEVELS, .infer = infer, .forward = forward, .onnx = onnx,
};
