/* heatmap_points: the keypoints of detected boxes, from their heatmaps. Inputs: logits
 * [n * D,h,w,K] for K keypoints of D boxes; boxes [n,D,4], corners ymin, xmin, ymax, xmax; count
 * I32 [n], the number of valid boxes of each image. Outputs:
 *
 *     0  keypoints [n,D,K,2]  y, x in the unit of the boxes; in ONNX's order of axes [n,2,D,K]
 *     1  scores [n,D,K]       softmax of the heatmap at its largest value, above 0, at most 1
 *
 * A keypoint is at the centre of the place with the largest value, the first of equal ones, when
 * h x w equal places divide the box: y = ymin + (row + 1/2) / h * (ymax - ymin), x likewise.
 * torchvision's heatmaps_to_keypoints has the same rule after it has resized the heatmap to the
 * box's pixels; nothing is resized here, so the result does not depend on the picture's size. Both
 * outputs are 0 after the last valid box. A heatmap with NaN or +infinity has the score NaN; its
 * keypoint is then at the centre of any of its places, and devices may choose different ones. For
 * evaluation: there is no gradient. */
#include "heatmap_points.params.h"
#include "layers/infer.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"

enum { LOGITS, BOXES, COUNT, INPUTS };
#define NAMES "logits, boxes, count"
enum { MOST_PLACES = 1 << 24 }; /* the shader counts places in floats */

static const struct pm_opt no_opts[] = { { 0 } };

/* ---- kernel ---------------------------------------------------------------------------------- */

/* Returns the place of the largest of `count` values. stride: from value to value. */
static int place_of(const float *x, int count, size_t stride)
{
    int place = 0;

    for (int i = 1; i < count; i++)
        if (x[(size_t)i * stride] > x[(size_t)place * stride])
            place = i;
    return place;
}

/* Returns the centre of one of `cells` equal parts of low..high. */
static float bin_centre(float low, float high, int cell, int cells)
{
    return ((float)cell + 0.5f) / (float)cells * (high - low) + low;
}

/* Items: keypoints of all boxes. */
PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct heatmap_points_params *p = a->params;
    const size_t points = (size_t)p->points, places = (size_t)p->h * (size_t)p->w;
    float *y = a->buf[3], *scores = a->buf[4];

    for (size_t i = begin; i < end; i++) {
        const size_t row = i / points, per = (size_t)p->per;
        const float *x = (const float *)a->buf[0] + row * places * points + i % points;
        const float *box = (const float *)a->buf[1] + 4 * row;
        int place;

        y[2 * i] = y[2 * i + 1] = scores[i] = 0;
        if ((int)(row % per) >= ((const int *)a->buf[2])[row / per])
            continue;
        place = place_of(x, (int)places, points);
        y[2 * i] = bin_centre(box[0], box[2], place / p->w, p->h);
        y[2 * i + 1] = bin_centre(box[1], box[3], place % p->w, p->w);
        scores[i] = 1 / pm_exp_sum(x, (int)places, points, x[(size_t)place * points]);
    }
}

static double fwd_flops(const void *params, size_t count)
{
    const struct heatmap_points_params *p = params;

    return 20.0 * (double)count * p->h * p->w;
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("heatmap_points", 64, 64 * count, out);
}

static const struct pm_kernel fwd = {
    .name = "heatmap_points", .bufs = "r:x r:boxes r:count w:y w:scores",
    .params_size = sizeof(struct heatmap_points_params), .cpu = fwd_cpu, .grain = 4,
    .pick = fwd_pick, .flops = fwd_flops,
};

/* ---- the layer ------------------------------------------------------------------------------- */

static const enum pm_type types[] = { [LOGITS] = PM_F32, [BOXES] = PM_F32, [COUNT] = PM_I32 };

static int infer(struct pm_node *n)
{
    const struct pm_shape x = n->in[LOGITS]->out_shape, b = n->in[BOXES]->out_shape;
    char text[64];
    int err = PM_OK;

    PM_TRY(pm_need_types(n, types, -1, NAMES));
    PM_TRY(pm_need_box_maps(n, "K", "a heatmap for each keypoint"));
    if (!pm_input_is_shape(n, COUNT, PM_SHAPE1(b.dim[0])))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: count has shape %s instead of %d: give the number of "
                                   "boxes of each image", n->name,
                       pm_shape_text(n->in[COUNT]->out_shape, text), b.dim[0]));
    if ((int64_t)x.dim[1] * x.dim[2] > MOST_PLACES)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: heatmaps of %dx%d have more than %d places: make them "
                                   "smaller", n->name, x.dim[1], x.dim[2], MOST_PLACES));
    n->out_shape = PM_SHAPE4(b.dim[0], b.dim[1], x.dim[3], 2);
    n->out_rows = n->in[BOXES]->out_rows;
    n->out_type = PM_F32;
    PM_TRY(pm_node_output(n, PM_SHAPE3(b.dim[0], b.dim[1], x.dim[3]), PM_F32));
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_shape x = n->xs[LOGITS].shape, b = n->xs[BOXES].shape;
    const struct heatmap_points_params p = { .images = b.dim[0], .per = b.dim[1], .h = x.dim[1],
                                             .w = x.dim[2], .points = x.dim[3] };

    pm_call(c, &fwd, (size_t)x.dim[0] * (size_t)x.dim[3], &p,
            PM_BUFS(n->xs[LOGITS], n->xs[BOXES], n->xs[COUNT], n->ys[0], n->ys[1]));
}

/* ---- ONNX ------------------------------------------------------------------------------------ */

/* The softmax of each heatmap of x [n,D,K,h w] at its largest value: [n,D,K]. */
static const char *scores_onnx(struct pm_export *g, const char *x)
{
    const int64_t axis = 3;
    const char *most = pm_export_op(g, "ReduceMax", PM_VALUES(x)), *sum;

    pm_export_ints(g, "axes", PM_INT64S(3));
    sum = pm_export_op(g, "Exp", PM_VALUES(pm_export_op2(g, "Sub", x, most)));
    sum = pm_export_op2(g, "ReduceSum", sum, pm_export_integers(g, 1, &axis));
    pm_export_int(g, "keepdims", 0);
    return pm_export_op2(g, "Div", pm_export_number(g, 1), sum);
}

/* Row or column of the places [n,D,K] as floats [n,D,K,1]. */
static const char *cells(struct pm_export *g, const char *op, const char *place, int64_t w)
{
    place = pm_export_op2(g, op, place, pm_export_integers(g, 1, &w));
    return pm_export_unsqueeze(g, pm_export_cast(g, place, PM_EXPORT_FLOAT), 3);
}

/* The keypoints [n,D,K,2] of places [n,D,K]. */
static const char *points_onnx(const struct pm_node *n, struct pm_export *g, const char *place)
{
    const struct pm_shape x = n->in[LOGITS]->out_shape;
    const float size[] = { (float)x.dim[1], (float)x.dim[2] };
    const int64_t two[] = { 2, 2 };
    const char *corner[2], *at, *low;

    at = pm_export_op2(g, "Concat", cells(g, "Div", place, x.dim[2]),
                       cells(g, "Mod", place, x.dim[2]));
    pm_export_int(g, "axis", -1);
    at = pm_export_op2(g, "Div", pm_export_op2(g, "Add", at, pm_export_number(g, 0.5f)),
                       pm_export_numbers(g, 2, size));
    pm_export_op_outputs(g, "Split",
                         PM_VALUES(pm_export_x(g, n, BOXES), pm_export_integers(g, 2, two)), 2,
                         corner);
    pm_export_int(g, "axis", -1);
    low = pm_export_unsqueeze(g, corner[0], 2);
    at = pm_export_op2(g, "Mul", at,
                       pm_export_op2(g, "Sub", pm_export_unsqueeze(g, corner[1], 2), low));
    return pm_export_op2(g, "Add", at, low);
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct pm_shape x = n->in[LOGITS]->out_shape;
    const int64_t flat[] = { -1, n->out_shape.dim[1], x.dim[3], (int64_t)x.dim[1] * x.dim[2] };
    const char *of = pm_export_view(g, pm_export_x(g, n, LOGITS), 4, flat);
    const char *is = pm_export_below(g, pm_export_x(g, n, COUNT), 3, 1, n->out_shape.dim[1]);
    const char *zero = pm_export_number(g, 0), *place, *y;

    pm_export_output(g, n, 1,
                     pm_export_op(g, "Where", PM_VALUES(is, scores_onnx(g, of), zero)));
    place = pm_export_op(g, "ArgMax", PM_VALUES(of));
    pm_export_int(g, "axis", 3);
    pm_export_int(g, "keepdims", 0);
    y = pm_export_op(g, "Where", PM_VALUES(pm_export_unsqueeze(g, is, 3),
                                           points_onnx(n, g, place), zero));
    y = pm_export_op(g, "Transpose", PM_VALUES(y));
    pm_export_ints(g, "perm", PM_INT64S(0, 3, 1, 2));
    return y;
}

const struct pm_layer pm_layer_heatmap_points = {
    .name = "heatmap_points",
    .help = "keypoints of detected boxes: inputs " NAMES "; outputs keypoints, scores; no gradient",
    .opts = no_opts, .cfg_size = 4, .min_inputs = INPUTS, .max_inputs = INPUTS, .infer = infer,
    .forward = forward, .onnx = onnx,
};
