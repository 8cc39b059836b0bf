/* suppress: the detections among many scored boxes, TensorFlow's multiclass_non_max_suppression.
 * Inputs: boxes [n,N,4] (ymin, xmin, ymax, xmax), scores [n,N,K], and perhaps windows [n,4].
 * Outputs, D = max_total_detections:
 *   0  boxes [n,D,4]      2  classes I32 [n,D], 0 to K-1      4  anchors I32 [n,D], 0 to N-1
 *   1  scores [n,D]       3  count I32 [n]
 * in the order of falling scores, 0 after the first `count`.
 *
 * Each class is suppressed by itself (suppress_rows.h) and keeps at most
 * max_detections_per_class boxes. Then the boxes of all classes are clipped to the image's window,
 * those without area dropped, and the best D remain. A window is the part of the input that the
 * picture fills; without windows it is 0, 0, 1, 1. change_coordinate_frame makes boxes relative to
 * it. With use_class_agnostic_nms the boxes are suppressed once, by their best score, and each kept
 * box counts for its best max_classes_per_detection classes. There is no gradient. */
#include "layers/infer.h"
#include "layers/suppress_rows.h"
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

static int check_inputs(const struct pm_node *n)
{
    const struct pm_shape boxes = n->in[0]->out_shape, scores = n->in[1]->out_shape;
    char have[64], other[64];

    if (boxes.rank != 3 || boxes.dim[2] != 4 || scores.rank != 3 ||
        boxes.dim[0] != scores.dim[0] || boxes.dim[1] != scores.dim[1])
        return pm_fail(PM_ECONFIG, "%s: suppress needs boxes of n x N x 4 and scores of n x N x K, "
                       "not %s and %s", n->name, pm_shape_text(boxes, have),
                       pm_shape_text(scores, other));
    if (n->inputs > 2 && (n->in[2]->out_shape.rank != 2 || n->in[2]->out_shape.dim[1] != 4 ||
                          n->in[2]->out_shape.dim[0] != boxes.dim[0]))
        return pm_fail(PM_ECONFIG, "%s: windows must be %dx4, not %s", n->name, boxes.dim[0],
                       pm_shape_text(n->in[2]->out_shape, have));
    return pm_need_floats(n, 0, 2);
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
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    const struct suppress_cfg *cfg = n->cfg;
    const int images = n->in[0]->out_shape.dim[0], most = cfg->max_total_detections;
    int err = PM_OK;

    PM_TRY(check_inputs(n));
    PM_TRY(check_options(n));
    n->out_shape = PM_SHAPE3(images, most, 4);
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
    pm_suppress(c, s, n->xs[0], best, kept, kept_scores);
    pm_suppress_classes(c, s.score_threshold, n->xs[1], kept, kept_scores, entry_scores,
                        entry_classes);
    pm_suppress_merge(c, n->xs[0], kept, entry_scores, entry_classes, n->xs[2],
                      cfg->change_coordinate_frame, n->ys);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct suppress_cfg *cfg = n->cfg;
    const struct pm_suppress s = { cfg->score_threshold, cfg->iou_threshold, cfg->soft_nms_sigma };
    const struct pm_shape x = n->xs[1].shape;
    const int most = least(cfg->max_detections_per_class, x.dim[1]);

    if (n->inputs < 3)
        n->xs[2] = PM_NO_TENSOR;
    if (cfg->use_class_agnostic_nms) {
        forward_agnostic(n, c, s);
        return;
    }
    const struct pm_tensor kept = pm_temp(c, PM_SHAPE3(x.dim[0], x.dim[2], most), PM_I32);
    const struct pm_tensor kept_scores = pm_temp(c, kept.shape, PM_F32);

    pm_suppress(c, s, n->xs[0], n->xs[1], kept, kept_scores);
    pm_suppress_merge(c, n->xs[0], kept, kept_scores, PM_NO_TENSOR, n->xs[2],
                      cfg->change_coordinate_frame, n->ys);
}

const struct pm_layer pm_layer_suppress = {
    .name = "suppress",
    .help = "detections: of boxes that overlap only the best remain; outputs boxes, scores, "
            "classes, count, anchors; no gradient",
    .opts = opts, .cfg_size = sizeof(struct suppress_cfg), .min_inputs = 2, .max_inputs = 3,
    .infer = infer, .forward = forward,
};
