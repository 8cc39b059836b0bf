/* suppress: the detections among many scored boxes, TensorFlow's multiclass_non_max_suppression.
 * Inputs: boxes [n,N,4] (ymin, xmin, ymax, xmax), or [n,N,K,4] for each class its own, scores
 * [n,N,K]. Optional: windows [n,4]; count I32 [n], the number of valid boxes of each image. Later
 * boxes are padding.
 * Outputs, D = max_total_detections:
 *   0  boxes [n,D,4]      2  classes I32 [n,D], 0 to K-1      4  anchors I32 [n,D], 0 to N-1
 *   1  scores [n,D]       3  count I32 [n]
 * in the order of falling scores, 0 after the first `count`.
 *
 * Each class is suppressed by itself (suppress_rows.h) and keeps at most
 * max_detections_per_class boxes. Then the boxes of all classes are clipped to the image's window,
 * those without area dropped, and the best D remain. A window is the part of the input that the
 * picture fills. Without windows the picture fills the input; in an exported model that pads
 * pictures, the graph finds their part. change_coordinate_frame makes boxes relative to the input
 * windows. With use_class_agnostic_nms the boxes are suppressed once, by their best score, and each
 * kept box counts for its best max_classes_per_detection classes. If each class has its own box,
 * the box of the best class is suppressed and kept, and it counts for this class alone.
 *
 * Boxes may be rotated: cy, cx, h, w, angle, 5 numbers instead of 4 (rotated_overlap.h). They are
 * not clipped and have no windows. There is no gradient. */
#include "layers/detection_rows.h"
#include "layers/infer.h"
#include "layers/suppress_rotated.h"
#include "layers/suppress_rows.h"
#include "onnx/export_frame.h"
#include "onnx/export_nodes.h"

struct suppress_cfg {
    float score_threshold, iou_threshold, soft_nms_sigma;
    int max_detections_per_class, max_total_detections, max_classes_per_detection;
    bool use_class_agnostic_nms, change_coordinate_frame;
};

static const struct pm_opt opts[] = {
    PM_FLOAT(suppress_cfg, score_threshold, 0, -1e30, 1e30,
             "boxes with this score or a lower one are dropped"),
    PM_FLOAT(suppress_cfg, iou_threshold, 0.6, 0, 1,
             "boxes that overlap a better one by more are dropped"),
    PM_INT(suppress_cfg, max_detections_per_class, 100, 1, 1000000,
           "most detections of a class in an image"),
    PM_INT(suppress_cfg, max_total_detections, 100, 1, 1000000, "most detections of an image"),
    PM_BOOL(suppress_cfg, use_class_agnostic_nms, false,
            "boxes of different classes suppress each other"),
    PM_INT(suppress_cfg, max_classes_per_detection, 1, 1, 1000,
           "with use_class_agnostic_nms: classes of a box that count as detections"),
    PM_FLOAT(suppress_cfg, soft_nms_sigma, 0, 0, 1e6,
             "0: overlapping boxes are dropped; else their scores are multiplied by exp(-iou^2 / "
             "(2 sigma))"),
    PM_BOOL(suppress_cfg, change_coordinate_frame, true,
            "boxes are relative to the image's window; needs the input windows"),
    { 0 },
};

static int windows_input(const struct pm_node *n)
{
    return pm_optional_input(n, 2, PM_F32);
}

static int count_input(const struct pm_node *n)
{
    return pm_optional_input(n, 2, PM_I32);
}

static struct pm_tensor value_of(const struct pm_node *n, int input)
{
    return input < 0 ? PM_NO_TENSOR : n->xs[input];
}

static bool by_class(const struct pm_node *n)
{
    return n->in[0]->out_shape.rank == 4;
}

/* Numbers of a box: 4, or 5 for rotated ones. */
static int numbers_of(const struct pm_node *n)
{
    const struct pm_shape boxes = n->in[0]->out_shape;

    return boxes.dim[boxes.rank - 1];
}

static int check_optional(const struct pm_node *n, int images)
{
    const int windows = windows_input(n), count = count_input(n);
    char have[64];

    if ((windows >= 0) + (count >= 0) < n->inputs - 2 || (count >= 0 && windows > count))
        return pm_fail(PM_ECONFIG, "%s: after boxes and scores suppress takes windows (floats) and "
                       "count (int32), each at most once, in this order", n->name);
    if (windows >= 0 && numbers_of(n) == PM_ROTATED_BOX)
        return pm_fail(PM_ECONFIG, "%s: rotated boxes are not clipped: remove the input windows",
                       n->name);
    if (windows >= 0 && !pm_shape_equal(n->in[windows]->out_shape, PM_SHAPE2(images, 4)))
        return pm_fail(PM_ECONFIG, "%s: windows must be %dx4, not %s", n->name, images,
                       pm_shape_text(n->in[windows]->out_shape, have));
    if (count >= 0 && !pm_shape_equal(n->in[count]->out_shape, PM_SHAPE1(images)))
        return pm_fail(PM_ECONFIG, "%s: count must be %d, not %s", n->name, images,
                       pm_shape_text(n->in[count]->out_shape, have));
    return PM_OK;
}

static int check_inputs(const struct pm_node *n)
{
    const struct pm_shape boxes = n->in[0]->out_shape, scores = n->in[1]->out_shape;
    const int last = boxes.rank - 1;
    char have[64], other[64];

    if (boxes.rank < 3 || boxes.rank > 4 ||
        (boxes.dim[last] != 4 && boxes.dim[last] != PM_ROTATED_BOX) || scores.rank != 3 ||
        boxes.dim[0] != scores.dim[0] || boxes.dim[1] != scores.dim[1] ||
        (last == 3 && boxes.dim[2] != scores.dim[2]))
        return pm_fail(PM_ECONFIG, "%s: suppress needs boxes of n x N x 4, or n x N x K x 4 "
                       "(rotated ones: 5 instead of 4), and scores of n x N x K, not %s and %s",
                       n->name, pm_shape_text(boxes, have), pm_shape_text(scores, other));
    const int err = check_optional(n, boxes.dim[0]);

    return err < 0 ? err : pm_need_floats(n, 0, 1);
}

static int check_options(const struct pm_node *n)
{
    const struct suppress_cfg *cfg = n->cfg;

    if (cfg->max_detections_per_class > cfg->max_total_detections)
        return pm_fail(PM_ECONFIG, "%s: max_detections_per_class=%d is above "
                       "max_total_detections=%d; lower it or raise the total", n->name,
                       cfg->max_detections_per_class, cfg->max_total_detections);
    if (cfg->max_classes_per_detection > 1 && !cfg->use_class_agnostic_nms)
        return pm_fail(PM_ECONFIG, "%s: max_classes_per_detection=%d needs "
                       "use_class_agnostic_nms=true", n->name, cfg->max_classes_per_detection);
    if (cfg->max_classes_per_detection > 1 && by_class(n))
        return pm_fail(PM_ECONFIG, "%s: max_classes_per_detection=%d needs boxes that all classes "
                       "share, n x N x %d: set it to 1, or share the boxes", n->name,
                       cfg->max_classes_per_detection, numbers_of(n));
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    const struct suppress_cfg *cfg = n->cfg;
    const int images = n->in[0]->out_shape.dim[0], most = cfg->max_total_detections;
    int err = PM_OK;

    PM_TRY(check_inputs(n));
    PM_TRY(check_options(n));
    n->out_shape = PM_SHAPE3(images, most, numbers_of(n));
    n->out_type = PM_F32;
    PM_TRY(pm_node_output(n, PM_SHAPE2(images, most), PM_F32));
    PM_TRY(pm_node_output(n, PM_SHAPE2(images, most), PM_I32));
    PM_TRY(pm_node_output(n, PM_SHAPE1(images), PM_I32));
    PM_TRY(pm_node_output(n, PM_SHAPE2(images, most), PM_I32));
out:
    return err;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the box of the best class of each row, [n,N,4 or 5]. best: its score. */
static struct pm_tensor best_boxes(struct pm_node *n, struct pm_calls *c, struct pm_tensor best)
{
    const struct pm_shape x = n->xs[1].shape;
    const struct pm_tensor scores = pm_temp(c, best.shape, PM_F32);
    const struct pm_tensor y = pm_temp(c, PM_SHAPE3(x.dim[0], x.dim[1], numbers_of(n)), PM_F32);
    const struct class_codes_params p = {
        .rows = x.dim[0] * x.dim[1], .per = x.dim[1], .m = x.dim[1], .classes = x.dim[2],
        .codes = numbers_of(n),
    };
    int32_t *rows = pm_malloc((size_t)p.rows * sizeof *rows);
    struct pm_detection_truth t = { .classes = pm_temp(c, best.shape, PM_I32) };

    for (int i = 0; i < p.rows; i++)
        rows[i] = i % p.per;
    t.matches = pm_calls_constant(c, "rows", rows, best.shape, PM_I32);
    pm_free(rows);
    pm_suppress_classes(c, -INFINITY, n->xs[1], t.matches, best, scores, t.classes);
    pm_class_codes(c, &p, n->xs[0], &t, y);
    return y;
}

/* Suppresses all classes together. */
static void forward_agnostic(struct pm_node *n, struct pm_calls *c, struct pm_suppress s)
{
    const struct suppress_cfg *cfg = n->cfg;
    const struct pm_shape x = n->xs[1].shape;
    const int most = least(cfg->max_total_detections, x.dim[1]);
    const struct pm_shape entries =
        PM_SHAPE3(x.dim[0], most, least(cfg->max_classes_per_detection, x.dim[2]));
    const struct pm_tensor best = pm_temp(c, PM_SHAPE2(x.dim[0], x.dim[1]), PM_F32);
    const struct pm_tensor kept = pm_temp(c, PM_SHAPE2(x.dim[0], most), PM_I32);
    const struct pm_tensor kept_scores = pm_temp(c, kept.shape, PM_F32);
    const struct pm_tensor entry_scores = pm_temp(c, entries, PM_F32);
    const struct pm_tensor entry_classes = pm_temp(c, entries, PM_I32);

    pm_suppress_best(c, n->xs[1], best);
    const struct pm_tensor boxes = by_class(n) ? best_boxes(n, c, best) : n->xs[0];

    pm_suppress(c, s, boxes, best, value_of(n, count_input(n)), kept, kept_scores);
    pm_suppress_classes(c, s.score_threshold, n->xs[1], kept, kept_scores, entry_scores,
                        entry_classes);
    pm_suppress_merge(c, boxes, kept, entry_scores, entry_classes,
                      value_of(n, windows_input(n)), cfg->change_coordinate_frame, n->ys);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct suppress_cfg *cfg = n->cfg;
    const struct pm_suppress s = { cfg->score_threshold, cfg->iou_threshold, cfg->soft_nms_sigma };
    const struct pm_shape x = n->xs[1].shape;
    const int most = least(cfg->max_detections_per_class, x.dim[1]);

    if (cfg->use_class_agnostic_nms) {
        forward_agnostic(n, c, s);
        return;
    }
    const struct pm_tensor kept = pm_temp(c, PM_SHAPE3(x.dim[0], x.dim[2], most), PM_I32);
    const struct pm_tensor kept_scores = pm_temp(c, kept.shape, PM_F32);

    pm_suppress(c, s, n->xs[0], n->xs[1], value_of(n, count_input(n)), kept, kept_scores);
    pm_suppress_merge(c, n->xs[0], kept, kept_scores, PM_NO_TENSOR, value_of(n, windows_input(n)),
                      cfg->change_coordinate_frame, n->ys);
}

/* ---- ONNX -----------------------------------------------------------------------------------
 * NonMaxSuppression gives (image, class, box) of all kept boxes. Their scores are scattered into
 * [n,K,N] of LOWEST, so that a TopK of each image finds the best: its ties go by class, then by
 * box, as ours do, and an image with few detections gets entries of LOWEST, which become 0. */

#define LOWEST (-3.4e38f)

static const char *swapped(struct pm_export *g, const char *x)
{
    x = pm_export_op(g, "Transpose", PM_VALUES(x));
    pm_export_ints(g, "perm", PM_INT64S(0, 2, 1));
    return x;
}

static const char *integer(struct pm_export *g, int64_t v)
{
    return pm_export_integers(g, 1, &v);
}

/* Replaces the values of absent boxes. */
static const char *masked(struct pm_export *g, const char *is, const char *x, const char *zero)
{
    return pm_export_op(g, "Where", PM_VALUES(is, x, zero));
}

/* Scores [n,K,N] with LOWEST for the boxes after the image's count. */
static const char *without_padding(const struct pm_node *n, struct pm_export *g,
                                   const char *scores)
{
    const int count = count_input(n), boxes = n->in[0]->out_shape.dim[1];
    const char *is;

    if (count < 0)
        return scores;
    is = pm_export_below(g, pm_export_x(g, n, count), 3, 2, boxes);
    return masked(g, is, scores, pm_export_number(g, LOWEST));
}

/* Whether boxes of each class are suppressed by themselves. */
static bool apart(const struct pm_node *n)
{
    return by_class(n) && !((const struct suppress_cfg *)n->cfg)->use_class_agnostic_nms;
}

/* The box of the best class of each row, [n,N,4]. In the graph, rank 4 has the last axis second. */
static const char *best_boxes_onnx(const struct pm_node *n, struct pm_export *g)
{
    const int64_t each[] = { 1, 4, 1, 1 };
    const char *best = pm_export_op(g, "ArgMax", PM_VALUES(pm_export_x(g, n, 1)));

    pm_export_int(g, "axis", 2);
    best = pm_export_op2(g, "Expand", pm_export_unsqueeze(g, best, 1),
                         pm_export_integers(g, 4, each));
    best = pm_export_op2(g, "GatherElements", pm_export_x(g, n, 0), best);
    pm_export_int(g, "axis", 3);
    return swapped(g, pm_export_op2(g, "Squeeze", best, integer(g, 3)));
}

/* Boxes [n,K,N,4] of each class. In the graph, rank 4 has the last axis second. */
static const char *boxes_by_class(const struct pm_node *n, struct pm_export *g)
{
    const char *x = pm_export_op(g, "Transpose", PM_VALUES(pm_export_x(g, n, 0)));

    pm_export_ints(g, "perm", PM_INT64S(0, 3, 2, 1));
    return x;
}

/* Scores [n,K,N] of the kept boxes, LOWEST for the others. boxes: [n,N,4] or [n,K,N,4]; in the
 * second case each list becomes an image of one class. */
static const char *kept_scores(const struct pm_node *n, struct pm_export *g, const char *boxes,
                               const char *scores)
{
    const struct suppress_cfg *cfg = n->cfg;
    const int most = cfg->use_class_agnostic_nms ? cfg->max_total_detections
                                                 : cfg->max_detections_per_class;
    const struct pm_shape x = n->in[1]->out_shape;
    const float lowest = LOWEST;
    const char *chosen, *values, *shape;

    if (apart(n)) {
        boxes =
            pm_export_op2(g, "Reshape", boxes, pm_export_integers(g, PM_INT64S(-1, x.dim[1], 4)));
        scores =
            pm_export_op2(g, "Reshape", scores, pm_export_integers(g, PM_INT64S(-1, 1, x.dim[1])));
    }
    shape = pm_export_op(g, "Shape", PM_VALUES(scores));
    chosen = pm_export_op(g, "NonMaxSuppression",
                          PM_VALUES(boxes, scores, integer(g, most),
                                    pm_export_numbers(g, 1, &cfg->iou_threshold),
                                    pm_export_numbers(g, 1, &cfg->score_threshold)));
    values = pm_export_op2(g, "GatherND", scores, chosen);
    scores =
        pm_export_op(g, "ScatterND",
                     PM_VALUES(pm_export_op2(g, "Expand", pm_export_numbers(g, 1, &lowest), shape),
                               chosen, values));
    if (apart(n))
        scores = pm_export_op2(g, "Reshape", scores,
                               pm_export_integers(g, PM_INT64S(-1, x.dim[2], x.dim[1])));
    return scores;
}

/* The corners of the windows, [n,1,4] each: high twice, and low twice. */
static void window_corners(const struct pm_node *n, struct pm_export *g, const char *out[2])
{
    const int64_t two[] = { 2, 2 };
    const char *corner[2];

    pm_export_op_outputs(g, "Split",
                         PM_VALUES(pm_export_unsqueeze(g, pm_export_x(g, n, windows_input(n)), 1),
                                   pm_export_integers(g, 2, two)), 2, corner);
    pm_export_int(g, "axis", -1);
    for (int k = 0; k < 2; k++) {
        out[k] = pm_export_op2(g, "Concat", corner[k], corner[k]);
        pm_export_int(g, "axis", -1);
    }
}

/* Clips boxes to the window with these corners; NULL: to the picture. */
static const char *clip(struct pm_export *g, const char *boxes, const char *const corner[2])
{
    const char *zero = pm_export_number(g, 0), *part;

    if (corner)
        return pm_export_op2(g, "Max", pm_export_op2(g, "Min", boxes, corner[1]), corner[0]);
    part = pm_export_frame_part(g);
    if (part)
        return pm_export_op2(g, "Max", pm_export_op2(g, "Min", boxes, part), zero);
    return pm_export_op(g, "Clip", PM_VALUES(boxes, zero, pm_export_number(g, 1)));
}

/* Whether each box has an area, [n,1,N]. */
static const char *have_area(struct pm_export *g, const char *boxes)
{
    const int64_t two[] = { 2, 2 };
    const char *corner[2], *above;

    pm_export_op_outputs(g, "Split", PM_VALUES(boxes, pm_export_integers(g, 2, two)), 2, corner);
    pm_export_int(g, "axis", -1);
    above = pm_export_cast(g, pm_export_op2(g, "Greater", corner[1], corner[0]), PM_EXPORT_FLOAT);
    above = pm_export_op(g, "ReduceMin", PM_VALUES(above));
    pm_export_ints(g, "axes", PM_INT64S(-1));
    return swapped(g, pm_export_op2(g, "Greater", above, pm_export_number(g, 0)));
}

/* Adds rows of 0 after the first `rows`, up to max_total_detections. */
static const char *padded(const struct pm_node *n, struct pm_export *g, const char *x, int rank,
                          int rows)
{
    const int missing = ((const struct suppress_cfg *)n->cfg)->max_total_detections - rows;
    int64_t pads[6] = { 0 };

    pads[rank + 1] = missing;
    return missing == 0 ? x : pm_export_op2(g, "Pad", x, pm_export_integers(g, 2 * rank, pads));
}

/* The classes of the boxes `anchor`: the lists, or the best of each box. */
static const char *classes_of(const struct pm_node *n, struct pm_export *g, const char *place,
                              const char *anchor)
{
    const struct suppress_cfg *cfg = n->cfg;
    const char *best;

    if (!cfg->use_class_agnostic_nms)
        return pm_export_op2(g, "Div", place, integer(g, n->in[0]->out_shape.dim[1]));
    best = pm_export_op(g, "ArgMax", PM_VALUES(pm_export_x(g, n, 1)));
    pm_export_int(g, "axis", 2);
    pm_export_int(g, "keepdims", 0);
    best = pm_export_op(g, "GatherElements", PM_VALUES(best, anchor));
    pm_export_int(g, "axis", 1);
    return best;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct suppress_cfg *cfg = n->cfg;
    const int boxes = n->in[0]->out_shape.dim[1];
    const int lists = cfg->use_class_agnostic_nms ? 1 : n->in[1]->out_shape.dim[2];
    const int64_t all = (int64_t)lists * boxes, flat[] = { 0, all }, axis = 1;
    const int rows = all < cfg->max_total_detections ? (int)all : cfg->max_total_detections;
    const bool windows = windows_input(n) >= 0;
    const char *scores = pm_export_x(g, n, 1), *corner[2];
    const char *clipped = apart(n)      ? boxes_by_class(n, g)
                          : by_class(n) ? best_boxes_onnx(n, g)
                                        : pm_export_x(g, n, 0);
    const char *top[2], *is, *anchor, *y;

    if (numbers_of(n) == PM_ROTATED_BOX)
        pm_export_refuse(g, "it has no suppression of rotated boxes. Export without suppression");
    if (cfg->soft_nms_sigma > 0)
        pm_export_refuse(g, "it has no soft suppression. Set soft_nms_sigma to 0, or export "
                            "without suppression");
    if (cfg->max_classes_per_detection > 1)
        pm_export_refuse(g, "it has no max_classes_per_detection above 1");
    if (cfg->use_class_agnostic_nms) {
        scores = pm_export_op(g, "ReduceMax", PM_VALUES(scores));
        pm_export_ints(g, "axes", PM_INT64S(2));
    }
    y = kept_scores(n, g, clipped, without_padding(n, g, swapped(g, scores)));
    if (apart(n)) /* [n,K N,4], a row for each entry of y */
        clipped = pm_export_op2(g, "Reshape", clipped, pm_export_integers(g, PM_INT64S(0, all, 4)));
    if (windows)
        window_corners(n, g, corner);
    clipped = clip(g, clipped, windows ? corner : NULL);
    is = have_area(g, clipped); /* [n,1,N], or [n,1,K N] */
    if (apart(n))
        y = pm_export_op2(g, "Reshape", y, pm_export_integers(g, PM_INT64S(0, 1, all)));
    y = masked(g, is, y, pm_export_number(g, LOWEST));
    y = pm_export_op2(g, "Reshape", y, pm_export_integers(g, 2, flat));
    pm_export_op_outputs(g, "TopK", PM_VALUES(y, integer(g, rows)), 2, top);
    is = pm_export_op2(g, "Greater", top[0], pm_export_number(g, LOWEST));
    anchor = pm_export_op2(g, "Mod", top[1], integer(g, boxes));
    y = pm_export_op2(g, "GatherND", clipped,
                      pm_export_unsqueeze(g, apart(n) ? top[1] : anchor, 2));
    pm_export_int(g, "batch_dims", 1);
    if (windows && cfg->change_coordinate_frame)
        y = pm_export_op2(g, "Div", pm_export_op2(g, "Sub", y, corner[0]),
                          pm_export_op2(g, "Sub", corner[1], corner[0]));
    y = padded(n, g, masked(g, pm_export_unsqueeze(g, is, 2), y, pm_export_number(g, 0)), 3, rows);

    top[0] = masked(g, is, top[0], pm_export_number(g, 0));
    pm_export_output(g, n, 1, padded(n, g, top[0], 2, rows));
    top[1] = masked(g, is, classes_of(n, g, top[1], anchor), integer(g, 0));
    pm_export_output(g, n, 2, padded(n, g, pm_export_cast(g, top[1], PM_EXPORT_INT32), 2, rows));
    anchor = masked(g, is, anchor, integer(g, 0));
    pm_export_output(g, n, 4, padded(n, g, pm_export_cast(g, anchor, PM_EXPORT_INT32), 2, rows));
    is = pm_export_op2(g, "ReduceSum", pm_export_cast(g, is, PM_EXPORT_INT64),
                       pm_export_integers(g, 1, &axis));
    pm_export_int(g, "keepdims", 0);
    pm_export_output(g, n, 3, pm_export_cast(g, is, PM_EXPORT_INT32));
    return y;
}

const struct pm_layer pm_layer_suppress = {
    .name = "suppress",
    .help = "detections: of boxes that overlap only the best remain; outputs boxes, scores, "
            "classes, count, anchors; no gradient",
    .opts = opts, .cfg_size = sizeof(struct suppress_cfg), .min_inputs = 2, .max_inputs = 4,
    .infer = infer, .forward = forward, .onnx = onnx,
};
