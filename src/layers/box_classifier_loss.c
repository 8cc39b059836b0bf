/* box_classifier_loss: the losses of a detector's second stage (Faster R-CNN), which classifies
 * boxes and corrects them. TensorFlow's Object Detection API names it BoxClassifierLoss.
 *
 *     localization = localization_weight / n * sum over examples (sum of the rows' smooth L1 losses
 *                    (delta 1) / max(count, 1))
 *     classification = the same with classification_weight and the rows' softmax cross entropies
 *
 * n is the number of examples of the whole batch. Absent ones, which the last batch of an
 * evaluation may have, are those whose first truth_weights is below 0: the loss is the mean over
 * the others, if all are in one plan. detection_loc.c and detection_cls.c state the losses of a
 * row, box_coder.h the codes. R: boxes of an example, C: classes, M: rows of its truth. Inputs:
 *
 *     codes          [n * R, C * codes]  predicted codes of each class, or [n * R, codes]: shared
 *     logits         [n * R, C + 1]      column 0 is the background
 *     boxes          [n, R, 4]           corners; the anchors of the codes
 *     matches        I32 [n, R]          row of the truth; -1: background; -2: padding
 *     count          I32 [n]             rows that are not padding
 *     truth_boxes    [n, M, 4]           corners
 *     truth_classes  I32 [n, M]          classes from 0, or F32 [n, M, C or C + 1]: targets
 *     truth_weights  [n, M]              below 0 in the first row: the example is absent
 *
 * The layer sample_proposals makes boxes, matches and count. A matched row has the weight of its
 * true box in both losses; its codes are those of the true class, or of the class with the largest
 * target. Background has the weight 1 in the classification loss, padding has none.
 *
 * Rotated regions may have any angle. A rectangle is the same after half a turn, so the target of a
 * matched row is the angle of the true box that is within a quarter of a turn of the region's.
 * (RBox-CNN subtracts the angles: for a region at 85 degrees of a box at -85 degrees it learns 170
 * degrees instead of 10.)
 *
 * There is no gradient through boxes. With hard_example_miner only some rows of each example count
 * (hard_examples.h), by their boxes, without a limit on background; the divisor does not depend on
 * it. (TensorFlow's miner uses the first example alone.) */
#include <limits.h>

#include "layers/box_coder.h"
#include "layers/detection_rows.h"
#include "layers/hard_examples.h"
#include "layers/infer.h"

enum { SAVED_FACTORS, SAVED_KEPT, SAVED_LSE, SAVED_CODES };
enum { CODES, LOGITS, BOXES, MATCHES, COUNT, TRUTH_BOXES, TRUTH_CLASSES, TRUTH_WEIGHTS, INPUTS };
#define NAMES "codes, logits, boxes, matches, count, truth_boxes, truth_classes, truth_weights"

struct box_classifier_cfg {
    int coder;
    struct pm_floats coder_scales;
    float localization_weight, classification_weight, logit_scale;
    bool hard_example_miner;
    int num_hard_examples, loss_type;
    float iou_threshold;
};

static const struct pm_opt opts[] = {
    PM_BOX_CODER_OPTIONS(box_classifier_cfg),
    PM_FLOAT(box_classifier_cfg, localization_weight, 1, 0, 1e6, "weight of the localization loss"),
    PM_FLOAT(box_classifier_cfg, classification_weight, 1, 0, 1e6,
             "weight of the classification loss"),
    PM_FLOAT(box_classifier_cfg, logit_scale, 1, 1e-6, 1e6, "divisor of the logits"),
    PM_BOOL(box_classifier_cfg, hard_example_miner, false,
            "only the boxes of each image with the largest losses count"),
    PM_INT(box_classifier_cfg, num_hard_examples, 64, 0, INT_MAX,
           "hard_example_miner: most boxes of an image; 0: all"),
    PM_FLOAT(box_classifier_cfg, iou_threshold, 0.7, 0, 1,
             "hard_example_miner: a box does not count if it overlaps one with a larger loss by "
             "more than this"),
    PM_ENUM(box_classifier_cfg, loss_type, PM_HARD_BOTH, PM_HARD_LOSS_TYPES,
            "hard_example_miner: the loss that orders the boxes"),
    { 0 },
};

static struct pm_box_coder coder_of(const struct pm_node *n)
{
    const struct box_classifier_cfg *cfg = n->cfg;
    struct pm_box_coder coder = { 0 };

    (void)pm_box_coder_make(cfg->coder, cfg->coder_scales, n->name, &coder); /* infer() checks it */
    return coder;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const enum pm_type types[] = {
    [CODES] = PM_F32, [LOGITS] = PM_F32,      [BOXES] = PM_F32,         [MATCHES] = PM_I32,
    [COUNT] = PM_I32, [TRUTH_BOXES] = PM_F32, [TRUTH_CLASSES] = PM_F32, [TRUTH_WEIGHTS] = PM_F32,
};

static int check_rows(const struct pm_node *n)
{
    const struct pm_box_coder coder = coder_of(n);
    const struct pm_shape x = n->in[CODES]->out_shape, z = n->in[LOGITS]->out_shape;
    const struct pm_shape b = n->in[BOXES]->out_shape;
    const int codes = pm_box_coder_size(&coder), numbers = pm_box_coder_numbers(&coder);
    char text[3][64];

    if (b.rank != 3 || b.dim[2] != numbers)
        return pm_fail(PM_ECONFIG, "%s: boxes have shape %s instead of n x R x %d. Give %s of R "
                                   "boxes for each of n images", n->name,
                       pm_shape_text(b, text[0]), numbers,
                       numbers == 5 ? "cy, cx, h, w, angle" : "the corners");
    if (z.rank != 2 || z.dim[1] < 2 || z.dim[0] != b.dim[0] * b.dim[1])
        return pm_fail(PM_ECONFIG, "%s: logits have shape %s instead of %d x (C + 1), with at "
                                   "least one class and the background",
                       n->name, pm_shape_text(z, text[0]), b.dim[0] * b.dim[1]);
    if (x.rank != 2 || x.dim[0] != z.dim[0] ||
        (x.dim[1] != codes && x.dim[1] != codes * (z.dim[1] - 1)))
        return pm_fail(PM_ECONFIG, "%s: codes have shape %s; for logits of %s they must be %dx%d, "
                                   "or, shared by all classes, %dx%d",
                       n->name, pm_shape_text(x, text[0]), pm_shape_text(z, text[1]), z.dim[0],
                       codes * (z.dim[1] - 1), z.dim[0], codes);
    if (!pm_input_is_shape(n, MATCHES, PM_SHAPE2(b.dim[0], b.dim[1])) ||
        !pm_input_is_shape(n, COUNT, PM_SHAPE1(b.dim[0])))
        return pm_fail(PM_ECONFIG, "%s: matches have shape %s and count %s; for boxes of %s they "
                                   "must be %dx%d and %d",
                       n->name, pm_shape_text(n->in[MATCHES]->out_shape, text[0]),
                       pm_shape_text(n->in[COUNT]->out_shape, text[1]), pm_shape_text(b, text[2]),
                       b.dim[0], b.dim[1], b.dim[0]);
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    const struct box_classifier_cfg *cfg = n->cfg;
    struct pm_box_coder coder;
    int err = PM_OK;

    PM_TRY(pm_box_coder_make(cfg->coder, cfg->coder_scales, n->name, &coder));
    PM_TRY(pm_need_types(n, types, TRUTH_CLASSES, NAMES));
    PM_TRY(check_rows(n));
    PM_TRY(pm_detection_check_truth(n, TRUTH_BOXES, n->in[BOXES]->out_shape.dim[0],
                                    pm_box_coder_numbers(&coder), n->in[LOGITS]->out_shape.dim[1],
                                    true));
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
out:
    return err;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct pm_detection_truth truth_of(const struct pm_node *n)
{
    return (struct pm_detection_truth){
        .anchors = n->xs[BOXES], .matches = n->xs[MATCHES], .boxes = n->xs[TRUTH_BOXES],
        .classes = n->xs[TRUTH_CLASSES], .weights = n->xs[TRUTH_WEIGHTS],
    };
}

static int labels_of(const struct pm_node *n)
{
    const struct pm_tensor t = n->xs[TRUTH_CLASSES];

    return t.type == PM_F32 ? t.shape.dim[2] : 0;
}

static struct detection_loc_params loc_params(const struct pm_node *n)
{
    const struct pm_box_coder coder = coder_of(n);
    const int per = n->xs[BOXES].shape.dim[1];

    return (struct detection_loc_params){
        .rows = n->xs[LOGITS].shape.dim[0], .per = per, .anchors = per, .own = 1,
        .m = n->xs[TRUTH_BOXES].shape.dim[1], .kind = DETECTION_SMOOTH_L1, .coder = coder.kind,
        .s0 = coder.scales[0], .s1 = coder.scales[1],
        .s2 = coder.scales[2], .s3 = coder.scales[3], .s4 = coder.scales[4], .delta = 1,
    };
}

static struct detection_cls_params cls_params(const struct pm_node *n)
{
    const struct box_classifier_cfg *cfg = n->cfg;
    const int per = n->xs[BOXES].shape.dim[1];

    return (struct detection_cls_params){
        .rows = n->xs[LOGITS].shape.dim[0], .per = per, .anchors = per,
        .m = n->xs[TRUTH_BOXES].shape.dim[1], .columns = n->xs[LOGITS].shape.dim[1],
        .labels = labels_of(n), .flags = DETECTION_BACKGROUND, .kind = DETECTION_SOFTMAX,
        .negative = 1, .a = 1 / cfg->logit_scale,
    };
}

static struct class_codes_params codes_params(const struct pm_node *n)
{
    const struct pm_box_coder coder = coder_of(n);
    const int codes = pm_box_coder_size(&coder);

    return (struct class_codes_params){
        .rows = n->xs[CODES].shape.dim[0], .per = n->xs[BOXES].shape.dim[1],
        .m = n->xs[TRUTH_BOXES].shape.dim[1], .classes = n->xs[CODES].shape.dim[1] / codes,
        .codes = codes, .labels = labels_of(n),
    };
}

/* The codes that are compared with the targets, [n * R, codes]. */
static struct pm_tensor row_codes(struct pm_node *n, struct pm_calls *c,
                                  const struct pm_detection_truth *t)
{
    const struct class_codes_params p = codes_params(n);

    if (p.classes == 1)
        return n->xs[CODES];
    const struct pm_tensor y = pm_save(c, n, SAVED_CODES, PM_SHAPE2(p.rows, p.codes), PM_F32);

    pm_class_codes(c, &p, n->xs[CODES], t, y);
    return y;
}

/* Chooses the boxes that count. */
static void mine(struct pm_node *n, struct pm_calls *c, struct pm_tensor loc, struct pm_tensor cls)
{
    const struct box_classifier_cfg *cfg = n->cfg;
    const struct pm_shape b = n->xs[BOXES].shape;
    struct pm_hard_examples h = {
        .most = cfg->num_hard_examples, .iou_threshold = cfg->iou_threshold,
    };
    const struct pm_mined out = pm_mined_make(c, n, SAVED_KEPT, b.dim[0], b.dim[1]);

    pm_hard_examples_order(&h, cfg->loss_type, cfg->localization_weight,
                           cfg->classification_weight);
    pm_hard_examples(c, h, loc, cls, n->xs[BOXES], n->xs[MATCHES], &out);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct box_classifier_cfg *cfg = n->cfg;
    const struct pm_detection_truth t = truth_of(n);
    const struct detection_loc_params loc_p = loc_params(n);
    const struct detection_cls_params cls_p = cls_params(n);
    const int images = n->xs[BOXES].shape.dim[0];
    const struct pm_shape rows = PM_SHAPE2(images, loc_p.per);
    const struct pm_tensor loc = pm_temp(c, rows, PM_F32), cls = pm_temp(c, rows, PM_F32);
    const struct pm_tensor lse = pm_save(c, n, SAVED_LSE, rows, PM_F32);
    const struct pm_tensor factors = pm_save(c, n, SAVED_FACTORS, PM_SHAPE2(images, 2), PM_F32);
    const float share = pm_loss_share(c) / (float)images;
    const struct detection_sum_params p = {
        .rows = loc_p.rows, .anchors = loc_p.per, .m = loc_p.m, .divisor = DETECTION_BY_COUNT,
        .loc_scale = cfg->localization_weight * share,
        .cls_scale = cfg->classification_weight * share,
    };
    struct pm_tensor loss[2];

    pm_detection_loc(c, &loc_p, row_codes(n, c, &t), &t, loc);
    pm_detection_cls(c, &cls_p, n->xs[LOGITS], &t, cls, lse);
    if (cfg->hard_example_miner)
        mine(n, c, loc, cls);
    pm_detection_scalars(n, c, loss);
    pm_detection_sum(c, &p, loc, cls, &t, n->xs[COUNT], n->saved[SAVED_KEPT], loss, factors);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_detection_truth t = truth_of(n);
    const struct detection_loc_params loc = loc_params(n);
    const struct detection_cls_params cls = cls_params(n);
    const struct class_codes_params codes = codes_params(n);
    const struct pm_tensor kept = n->saved[SAVED_KEPT], factors = n->saved[SAVED_FACTORS];

    if (pm_has(n->dxs[LOGITS]))
        pm_detection_cls_back(c, &cls, n->xs[LOGITS], &t, n->saved[SAVED_LSE], kept, factors,
                              n->dxs[LOGITS]);
    if (!pm_has(n->dxs[CODES]))
        return;
    if (codes.classes == 1) {
        pm_detection_loc_back(c, &loc, n->xs[CODES], &t, kept, factors, n->dxs[CODES]);
        return;
    }
    const struct pm_tensor d = pm_temp(c, PM_SHAPE2(codes.rows, codes.codes), PM_F32);

    pm_detection_loc_back(c, &loc, n->saved[SAVED_CODES], &t, kept, factors, d);
    pm_class_codes_back(c, &codes, d, &t, n->dxs[CODES]);
}

const struct pm_layer pm_layer_box_classifier_loss = {
    .name = "box_classifier_loss",
    .help = "losses of a detector's second stage: inputs " NAMES,
    .opts = opts,
    .cfg_size = sizeof(struct box_classifier_cfg),
    .min_inputs = INPUTS,
    .max_inputs = INPUTS,
    .loss = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
