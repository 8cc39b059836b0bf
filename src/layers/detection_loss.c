/* detection_loss: the losses of a detector with anchors (SSD, RetinaNet).
 *
 *     localization = localization_weight * sum of the anchors' localization losses / divisor
 *     classification = classification_weight * sum of their classification losses / divisor
 *
 * detection_loc.c and detection_cls.c state the losses of an anchor, box_coder.h the codes. N: the
 * anchors of all levels; M: the rows of an example's truth; C: scores of an anchor, which are its
 * classes and, with `background`, column 0 for the background. Inputs:
 *
 *     boxes_1 .. boxes_L      [n, h, w, A * codes]  predicted codes
 *     classes_1 .. classes_L  [n, h, w, A * C]      predicted scores
 *     anchors        [N, 4]          corners; levels one after another, then rows, columns, A
 *     matches        I32 [n, N]      row of the truth; -1: no object; -2: ignored
 *     truth_boxes    [n, M, 4]       corners
 *     truth_classes  I32 [n, M]      classes from 0, or F32 [n, M, C or C - 1]: targets
 *     truth_weights  [n, M]
 *     normalizer     [n], optional   divisor of the whole batch, the same number in each example;
 *                                    with normalize_per_image: divisor of the example, above 0
 *
 * With coder=rotated, anchors and true boxes are cy, cx, h, w, angle: [N, 5] and [n, M, 5].
 *
 * With a normalizer, the losses of the parts of a batch add up to that of the whole batch. Without
 * it, the divisor is max(sum of the weights of matched boxes, 1) of this plan's examples, or 1, and
 * the losses are multiplied by the share of the whole batch that these examples represent. With
 * normalize_per_image each example's losses are divided by its own number, and the loss is the mean
 * over the examples of the whole batch, as in the first stage of Faster R-CNN. There a matched
 * anchor has the weight 1 in the classification loss if its box's weight is above 0, because
 * TensorFlow's loss of objectness weighs all sampled anchors alike; the localization loss has the
 * box's weight.
 * normalize_loc_by_codesize also divides the localization loss by the number of codes. With
 * hard_example_miner only some anchors count (hard_examples.h); the divisor does not depend on it.
 * Two outputs of the plan, NAME/mined_positives and NAME/mined_negatives [n], then have the number
 * of matched and of unmatched anchors that count in each example.
 *
 * The losses are TensorFlow's Object Detection API's, with two differences: a class that does not
 * exist gives NaN, so the step is rejected; targets that do not add up to 1 have their true
 * gradient in the softmax. */
#include <pumice/plan.h>

#include <limits.h>

#include "layers/anchors.h"
#include "layers/box_coder.h"
#include "layers/concat.h"
#include "layers/decode_boxes.h"
#include "layers/detection_rows.h"
#include "layers/hard_examples.h"
#include "layers/infer.h"

#define NAMES                                                                                     \
    "anchors, matches, truth_boxes, truth_classes, truth_weights and, optionally, normalizer"

enum { LEVELS = PM_MAX_LEVELS };
enum { SAVED_FACTORS, SAVED_KEPT, SAVED_LSE }; /* SAVED_LSE + level */
_Static_assert(SAVED_LSE + LEVELS <= PM_MAX_SAVED && (int)LEVELS <= (int)PM_CONCAT_PARTS,
               "room for levels");

struct detection_cfg {
    int levels, coder, localization, classification;
    struct pm_floats coder_scales;
    float delta, logit_scale, gamma, alpha;
    bool hard_bootstrap, background, encode_background_as_zeros;
    float localization_weight, classification_weight, negative_class_weight;
    bool normalize_by_matches, normalize_per_image, normalize_loc_by_codesize, hard_example_miner;
    int num_hard_examples, loss_type, min_negatives_per_image;
    float iou_threshold, max_negatives_per_positive;
};

enum { SIGMOID, SOFTMAX, LOGITS_SOFTMAX, FOCAL, BOOTSTRAPPED };

static const struct pm_opt opts[] = {
    PM_INT(detection_cfg, levels, 0, 0, LEVELS, "number of levels; 0: from the number of inputs"),
    PM_BOX_CODER_OPTIONS(detection_cfg),
    PM_ENUM(detection_cfg, localization, DETECTION_SMOOTH_L1,
            "weighted_smooth_l1|weighted_l2|l1|weighted_iou|weighted_giou",
            "loss of box codes, or of decoded boxes (weighted_iou, weighted_giou)"),
    PM_FLOAT(detection_cfg, delta, 1, 1e-6, 1e6,
             "weighted_smooth_l1: difference from which the loss is linear"),
    PM_ENUM(detection_cfg, classification, SIGMOID,
            "weighted_sigmoid|weighted_softmax|weighted_logits_softmax|weighted_sigmoid_focal|"
            "bootstrapped_sigmoid", "loss of class scores"),
    PM_FLOAT(detection_cfg, logit_scale, 1, 1e-6, 1e6,
             "weighted_softmax, weighted_logits_softmax: divisor of the scores, and of targets "
             "that are logits"),
    PM_FLOAT(detection_cfg, gamma, 2, 0, 100,
             "weighted_sigmoid_focal: exponent that lowers the weight of easy anchors"),
    PM_FLOAT(detection_cfg, alpha, NAN, 0, 1,
             "weighted_sigmoid_focal: weight of positive targets, 1 - alpha of negative ones; "
             "null: no weights. bootstrapped_sigmoid: part of the target that the label has"),
    PM_BOOL(detection_cfg, hard_bootstrap, false,
            "bootstrapped_sigmoid: the prediction counts as 0 or 1"),
    PM_FLOAT(detection_cfg, localization_weight, 1, 0, 1e6, "weight of the localization loss"),
    PM_FLOAT(detection_cfg, classification_weight, 1, 0, 1e6, "weight of the classification loss"),
    PM_BOOL(detection_cfg, background, true, "column 0 of the scores is the background"),
    PM_BOOL(detection_cfg, encode_background_as_zeros, false,
            "the target of unmatched anchors is 0 in all columns, also in the background's"),
    PM_FLOAT(detection_cfg, negative_class_weight, 1, 0, 1e6, "weight of unmatched anchors"),
    PM_DETECTION_DIVISOR_OPTIONS(detection_cfg),
    PM_BOOL(detection_cfg, normalize_loc_by_codesize, false,
            "divide the localization loss by the number of codes of a box"),
    PM_BOOL(detection_cfg, hard_example_miner, false,
            "only the anchors of each image with the largest losses count"),
    PM_INT(detection_cfg, num_hard_examples, 64, 0, INT_MAX,
           "hard_example_miner: most anchors of an image; 0: all"),
    PM_FLOAT(detection_cfg, iou_threshold, 0.7, 0, 1,
             "hard_example_miner: an anchor does not count if its predicted box overlaps that of "
             "an anchor with a larger loss by more than this"),
    PM_ENUM(detection_cfg, loss_type, PM_HARD_BOTH, PM_HARD_LOSS_TYPES,
            "hard_example_miner: the loss that orders the anchors"),
    PM_FLOAT(detection_cfg, max_negatives_per_positive, 0, 0, 1e6,
             "hard_example_miner: most unmatched anchors for each matched one; 0: no limit"),
    PM_INT(detection_cfg, min_negatives_per_image, 0, 0, INT_MAX,
           "hard_example_miner: unmatched anchors that an image may have in any case"),
    { 0 },
};

/* ---- inputs ------------------------------------------------------------------------------ */

/* Inputs after the maps. */
enum { ANCHORS, MATCHES, BOXES, CLASSES, WEIGHTS, OTHERS, NORMALIZER = OTHERS };

static int levels_of(const struct pm_node *n)
{
    return (n->inputs - OTHERS) / 2;
}

/* Input number `which` after the maps. */
static struct pm_node *other(const struct pm_node *n, int which)
{
    return n->in[2 * levels_of(n) + which];
}

static struct pm_tensor other_value(const struct pm_node *n, int which)
{
    const int i = 2 * levels_of(n) + which;

    return i < n->inputs ? n->xs[i] : PM_NO_TENSOR;
}

static struct pm_box_coder coder_of(const struct pm_node *n)
{
    const struct detection_cfg *cfg = n->cfg;
    struct pm_box_coder coder = { 0 };

    (void)pm_box_coder_make(cfg->coder, cfg->coder_scales, n->name, &coder); /* infer() checks it */
    return coder;
}

/* Anchors of a level's cell, and of the level. */
static int per_cell(const struct pm_node *n, int level)
{
    const struct pm_box_coder coder = coder_of(n);

    return n->in[level]->out_shape.dim[3] / pm_box_coder_size(&coder);
}

static int per_level(const struct pm_node *n, int level)
{
    const struct pm_shape s = n->in[level]->out_shape;

    return s.dim[1] * s.dim[2] * per_cell(n, level);
}

/* Scores of an anchor. */
static int columns_of(const struct pm_node *n)
{
    return n->in[levels_of(n)]->out_shape.dim[3] / per_cell(n, 0);
}

/* ---- checks ------------------------------------------------------------------------------ */

static int check_count(const struct pm_node *n)
{
    const struct detection_cfg *cfg = n->cfg;

    if (n->inputs < 2 + OTHERS || levels_of(n) > LEVELS ||
        (cfg->levels && cfg->levels != levels_of(n)))
        return pm_fail(PM_ECONFIG, "%s: %d inputs do not fit %d levels: there must be a map of "
                                   "boxes and one of classes per level (1 to %d levels), then "
                                   NAMES,
                       n->name, n->inputs, cfg->levels ? cfg->levels : levels_of(n), LEVELS);
    return PM_OK;
}

static int check_maps(const struct pm_node *n)
{
    const struct pm_box_coder coder = coder_of(n);
    const int codes = pm_box_coder_size(&coder), levels = levels_of(n);
    const int numbers = pm_box_coder_numbers(&coder);
    int anchors = 0;

    for (int i = 0; i < levels; i++) {
        const struct pm_shape b = n->in[i]->out_shape, s = n->in[levels + i]->out_shape;
        char text[2][64];

        if (b.rank != 4 || b.dim[3] % codes || s.rank != 4 || b.dim[0] != s.dim[0] ||
            b.dim[1] != s.dim[1] || b.dim[2] != s.dim[2] || s.dim[3] % (b.dim[3] / codes) ||
            s.dim[3] / (b.dim[3] / codes) != columns_of(n))
            return pm_fail(PM_ECONFIG,
                           "%s: level %d has boxes %s and classes %s: expected [n, h, w, A x %d] "
                           "and [n, h, w, A x C] with the same C in each level",
                           n->name, i + 1, pm_shape_text(b, text[0]), pm_shape_text(s, text[1]),
                           codes);
        anchors += per_level(n, i);
    }
    const struct pm_shape given = other(n, ANCHORS)->out_shape;
    if (given.rank != 2 || given.dim[0] != anchors || given.dim[1] != numbers) {
        char text[64];

        return pm_fail(PM_ECONFIG, "%s: anchors have shape %s, but the maps need %dx%d", n->name,
                       pm_shape_text(given, text), anchors, numbers);
    }
    return PM_OK;
}

static int check_truth(const struct pm_node *n)
{
    const struct detection_cfg *cfg = n->cfg;
    const int batch = n->in[0]->out_shape.dim[0], anchors = other(n, ANCHORS)->out_shape.dim[0];
    const struct pm_node *matches = other(n, MATCHES);
    const int columns = columns_of(n);
    const struct pm_box_coder coder = coder_of(n);
    int err = PM_OK;
    char text[64];

    if (matches->out_type != PM_I32 ||
        pm_shape_count(matches->out_shape) != (size_t)batch * (size_t)anchors)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: matches are %s of shape %s instead of int32 of shape "
                                   "%dx%d. Give the row of the truth for each anchor", n->name,
                       pm_type_name(matches->out_type), pm_shape_text(matches->out_shape, text),
                       batch, anchors));
    if (columns <= cfg->background)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: an anchor has %d score, which is the background's: there "
                                   "must be a class, or set background to false",
                       n->name, columns));
    PM_TRY(pm_detection_check_truth(n, 2 * levels_of(n) + BOXES, batch,
                                    pm_box_coder_numbers(&coder), columns, cfg->background));
    PM_TRY(pm_detection_check_normalizer(n, 2 * levels_of(n) + NORMALIZER, batch,
                                         cfg->normalize_per_image));
out:
    return err;
}

static int check_types(const struct pm_node *n)
{
    for (int i = 0; i < n->inputs; i++) {
        const int which = i - 2 * levels_of(n);

        if (which != MATCHES && n->in[i]->out_type != PM_F32 &&
            !(which == CLASSES && n->in[i]->out_type == PM_I32))
            return pm_fail(PM_ECONFIG, "%s: input %d, %s, holds %s instead of float32%s. The "
                                       "inputs must be the boxes of each level, the classes of "
                                       "each level, " NAMES ", in this order",
                           n->name, i, n->in[i]->name, pm_type_name(n->in[i]->out_type),
                           which == CLASSES ? " or int32" : "");
    }
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    const struct detection_cfg *cfg = n->cfg;
    struct pm_box_coder coder;
    int err = PM_OK;

    PM_TRY(pm_box_coder_make(cfg->coder, cfg->coder_scales, n->name, &coder));
    if (coder.kind == PM_CODER_ROTATED && cfg->localization >= DETECTION_IOU)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: weighted_iou and weighted_giou compare upright boxes: with "
                                   "coder=rotated choose weighted_smooth_l1, weighted_l2 or l1",
                       n->name));
    if (cfg->classification == BOOTSTRAPPED && isnan(cfg->alpha))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: bootstrapped_sigmoid needs alpha, the part of the target "
                                   "that the label has, 0..1", n->name));
    if (cfg->classification == FOCAL && cfg->hard_example_miner)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: weighted_sigmoid_focal cannot be combined with "
                                   "hard_example_miner, because both lower the weight of easy "
                                   "anchors: remove one of them", n->name));
    PM_TRY(check_count(n));
    PM_TRY(check_types(n));
    PM_TRY(check_maps(n));
    PM_TRY(check_truth(n));
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
out:
    return err;
}

/* ---- calls ------------------------------------------------------------------------------- */

static struct pm_detection_truth truth_of(const struct pm_node *n)
{
    return (struct pm_detection_truth){
        .anchors = other_value(n, ANCHORS), .matches = other_value(n, MATCHES),
        .boxes = other_value(n, BOXES), .classes = other_value(n, CLASSES),
        .weights = other_value(n, WEIGHTS),
    };
}

/* Index of the level's first anchor. */
static int first_of(const struct pm_node *n, int level)
{
    int first = 0;

    for (int i = 0; i < level; i++)
        first += per_level(n, i);
    return first;
}

static struct detection_loc_params loc_params(const struct pm_node *n, int level)
{
    const struct detection_cfg *cfg = n->cfg;
    const struct pm_box_coder coder = coder_of(n);
    const struct pm_detection_truth t = truth_of(n);
    const int per = per_level(n, level);

    return (struct detection_loc_params){
        .rows = n->xs[0].shape.dim[0] * per, .per = per, .first = first_of(n, level),
        .anchors = t.anchors.shape.dim[0], .m = t.boxes.shape.dim[1], .kind = cfg->localization,
        .coder = coder.kind, .s0 = coder.scales[0],
        .s1 = coder.scales[1], .s2 = coder.scales[2], .s3 = coder.scales[3],
        .s4 = coder.scales[4], .delta = cfg->delta,
    };
}

static bool is_softmax(const struct detection_cfg *cfg)
{
    return cfg->classification == SOFTMAX || cfg->classification == LOGITS_SOFTMAX;
}

static struct detection_cls_params cls_params(const struct pm_node *n, int level)
{
    static const int kinds[] = {
        [SIGMOID] = DETECTION_SIGMOID, [SOFTMAX] = DETECTION_SOFTMAX,
        [LOGITS_SOFTMAX] = DETECTION_SOFTMAX,
        [FOCAL] = DETECTION_FOCAL, [BOOTSTRAPPED] = DETECTION_BOOTSTRAPPED,
    };
    const struct detection_cfg *cfg = n->cfg;
    const struct pm_detection_truth t = truth_of(n);
    const int per = per_level(n, level);

    return (struct detection_cls_params){
        .rows = n->xs[0].shape.dim[0] * per, .per = per, .first = first_of(n, level),
        .anchors = t.anchors.shape.dim[0], .m = t.boxes.shape.dim[1], .columns = columns_of(n),
        .labels = t.classes.type == PM_F32 ? t.classes.shape.dim[2] : 0,
        .flags = (cfg->background ? DETECTION_BACKGROUND : 0) |
                 (cfg->encode_background_as_zeros ? DETECTION_ZEROS : 0) |
                 (cfg->classification == LOGITS_SOFTMAX ? DETECTION_LOGITS : 0) |
                 (cfg->normalize_per_image ? DETECTION_EQUAL : 0),
        .kind = cfg->classification == BOOTSTRAPPED && cfg->hard_bootstrap
                    ? DETECTION_BOOTSTRAPPED_HARD
                    : kinds[cfg->classification],
        .negative = cfg->negative_class_weight,
        .a = is_softmax(cfg)                  ? 1 / cfg->logit_scale
             : cfg->classification == FOCAL ? cfg->gamma
                                            : cfg->alpha,
        .b = isnan(cfg->alpha) ? -1 : cfg->alpha,
    };
}

/* Joins the levels' parts, [n, per] or [n, per, 4], to [n, N] or [n, N, 4]. */
static struct pm_tensor joined(struct pm_calls *c, int levels, const struct pm_tensor *part,
                               struct pm_shape whole)
{
    struct pm_tensor t;

    if (levels == 1)
        return part[0];
    t = pm_temp(c, whole, PM_F32);
    pm_concat_columns(c, levels, part, t);
    return t;
}

static struct pm_tensor level_losses(struct pm_node *n, struct pm_calls *c, bool classes)
{
    const struct detection_cfg *cfg = n->cfg;
    const struct pm_detection_truth t = truth_of(n);
    const int levels = levels_of(n), batch = n->xs[0].shape.dim[0];
    struct pm_tensor part[LEVELS];

    for (int i = 0; i < levels; i++) {
        const struct pm_shape shape = PM_SHAPE2(batch, per_level(n, i));

        part[i] = pm_temp(c, shape, PM_F32);
        if (classes) {
            const struct detection_cls_params p = cls_params(n, i);
            const struct pm_tensor lse = is_softmax(cfg)
                                             ? pm_save(c, n, SAVED_LSE + i, shape, PM_F32)
                                             : PM_NO_TENSOR;

            pm_detection_cls(c, &p, n->xs[levels + i], &t, part[i], lse);
        } else {
            const struct detection_loc_params p = loc_params(n, i);

            pm_detection_loc(c, &p, n->xs[i], &t, part[i]);
        }
    }
    return joined(c, levels, part, PM_SHAPE2(batch, t.anchors.shape.dim[0]));
}

/* Chooses the anchors that count. */
static void mine(struct pm_node *n, struct pm_calls *c, struct pm_tensor loc, struct pm_tensor cls)
{
    const struct detection_cfg *cfg = n->cfg;
    const struct pm_detection_truth t = truth_of(n);
    const struct pm_box_coder coder = coder_of(n);
    const int batch = n->xs[0].shape.dim[0], anchors = t.anchors.shape.dim[0];
    struct pm_hard_examples h = {
        .most = cfg->num_hard_examples, .iou_threshold = cfg->iou_threshold,
        .ratio = cfg->max_negatives_per_positive, .min_negatives = cfg->min_negatives_per_image,
    };
    const struct pm_tensor boxes = pm_temp(c, PM_SHAPE3(batch, anchors, t.anchors.shape.dim[1]),
                                           PM_F32);
    const struct pm_mined out = pm_mined_make(c, n, SAVED_KEPT, batch, anchors);

    pm_decode_boxes(c, &coder, -INFINITY, INFINITY, levels_of(n), n->xs, t.anchors, boxes);
    pm_hard_examples_order(&h, cfg->loss_type, cfg->localization_weight,
                           cfg->classification_weight);
    pm_hard_examples(c, h, loc, cls, boxes, t.matches, &out);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct detection_cfg *cfg = n->cfg;
    const struct pm_detection_truth t = truth_of(n);
    const struct pm_box_coder coder = coder_of(n);
    const struct pm_tensor normalizer = other_value(n, NORMALIZER);
    const struct pm_tensor loc = level_losses(n, c, false), cls = level_losses(n, c, true);
    const int batch = t.boxes.shape.dim[0];
    const struct pm_tensor factors = pm_save(c, n, SAVED_FACTORS, PM_SHAPE2(batch, 2), PM_F32);
    const int divisor = pm_detection_divisor(cfg->normalize_per_image, pm_has(normalizer),
                                             cfg->normalize_by_matches);
    const float share = pm_detection_share(c, divisor, batch);
    const struct detection_sum_params p = {
        .rows = (int)pm_count(t.matches), .anchors = t.anchors.shape.dim[0],
        .m = t.boxes.shape.dim[1], .divisor = divisor,
        .loc_scale = cfg->localization_weight * share /
                     (float)(cfg->normalize_loc_by_codesize ? pm_box_coder_size(&coder) : 1),
        .cls_scale = cfg->classification_weight * share,
    };

    if (cfg->hard_example_miner)
        mine(n, c, loc, cls);
    struct pm_tensor loss[2];

    pm_detection_scalars(n, c, loss);
    pm_detection_sum(c, &p, loc, cls, &t, normalizer, n->saved[SAVED_KEPT], loss, factors);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_detection_truth t = truth_of(n);
    const int levels = levels_of(n);

    for (int i = levels - 1; i >= 0; i--) {
        const struct detection_loc_params loc = loc_params(n, i);
        const struct detection_cls_params cls = cls_params(n, i);

        if (pm_has(n->dxs[levels + i]))
            pm_detection_cls_back(c, &cls, n->xs[levels + i], &t, n->saved[SAVED_LSE + i],
                                  n->saved[SAVED_KEPT], n->saved[SAVED_FACTORS],
                                  n->dxs[levels + i]);
        if (pm_has(n->dxs[i]))
            pm_detection_loc_back(c, &loc, n->xs[i], &t, n->saved[SAVED_KEPT],
                                  n->saved[SAVED_FACTORS], n->dxs[i]);
    }
}

const struct pm_layer pm_layer_detection_loss = {
    .name = "detection_loss",
    .help = "losses of a detector with anchors: inputs boxes of each level, classes of each level, "
            NAMES,
    .opts = opts,
    .cfg_size = sizeof(struct detection_cfg),
    .min_inputs = 2 + OTHERS,
    .max_inputs = 2 * LEVELS + OTHERS + 1,
    .loss = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
