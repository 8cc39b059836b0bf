/* detection_rows: the kernel calls of the layer detection_loss (detection_loss.c). The calls of a
 * level read its map of codes or scores, [n, h, w, anchors x numbers], and give a loss for each
 * anchor, or the map's gradient. box_classifier_loss (box_classifier_loss.c) makes the same calls;
 * it has one level, whose anchors are the N boxes of each example. */
#ifndef PUMICE_DETECTION_ROWS_H
#define PUMICE_DETECTION_ROWS_H

#include <pumice/layer.h>

#include <math.h>

#include "detection_loss.params.h"

/* The ground truth of a batch of n examples; see detection_loss.c. */
struct pm_detection_truth {
    struct pm_tensor anchors;  /* [N, 4]; [n, N, 4] if params.own is 1. Rotated boxes: 5, not 4 */
    struct pm_tensor matches;  /* I32 [n, N] */
    struct pm_tensor boxes;    /* [n, M, 4] or [n, M, 5] */
    struct pm_tensor classes;  /* I32 [n, M] or F32 [n, M, labels] */
    struct pm_tensor weights;  /* [n, M] */
};

/* Checks a loss's inputs `first` to first + 2: the true boxes, their classes and their weights, in
 * the shapes above, with n = images. numbers: of a box, 4 or 5. columns: scores of an anchor. Soft
 * classes have as many targets, or, with a background, one less. Types have been checked. Returns
 * PM_ECONFIG with one line that names the node. */
int pm_detection_check_truth(const struct pm_node *n, int first, int images, int numbers,
                             int columns, bool background);
/* Checks a loss's last input, the optional normalizer: one number for each example. input: its
 * number. per_image: the option normalize_per_image, which needs it. Returns PM_ECONFIG with one
 * line that names the node. */
int pm_detection_check_normalizer(const struct pm_node *n, int input, int examples,
                                  bool per_image);

/* The loss of a code and its gradient: the first kinds of detection_loc.c. d: the code minus its
 * target, w: the weight of the matched box. Twin: shaders/lib/code_loss.glsl. */
static inline float pm_code_loss(int kind, float delta, float w, float d)
{
    const float size = fabsf(d);

    switch (kind) {
    case DETECTION_L2: return 0.5f * (w * d) * (w * d);
    case DETECTION_L1: return w * size;
    default: return w * (size <= delta ? 0.5f * d * d : delta * (size - 0.5f * delta));
    }
}

static inline float pm_code_slope(int kind, float delta, float w, float d)
{
    switch (kind) {
    case DETECTION_L2: return w * w * d;
    case DETECTION_L1: return w * ((float)(d > 0) - (float)(d < 0));
    default: return w * (d > delta ? delta : d < -delta ? -delta : d);
    }
}

/* The localization losses of a level's anchors: losses [n, per], not yet divided. */
void pm_detection_loc(struct pm_calls *c, const struct detection_loc_params *p,
                      struct pm_tensor codes, const struct pm_detection_truth *t,
                      struct pm_tensor losses);
/* Their gradient: that of each anchor times its example's factor. factors: F32 [n, 2], for each
 * example the factor of localization losses, then that of classification losses (pm_detection_sum).
 * kept: F32 [n, N], 1 for anchors that count, else 0, or PM_NO_TENSOR: all count. */
void pm_detection_loc_back(struct pm_calls *c, const struct detection_loc_params *p,
                           struct pm_tensor codes, const struct pm_detection_truth *t,
                           struct pm_tensor kept, struct pm_tensor factors,
                           struct pm_tensor dcodes);

/* The classification losses of a level's anchors: losses [n, per]. lse [n, per]: the logarithm of
 * the sum of exponentials of the softmax, for the gradient; PM_NO_TENSOR for other losses. */
void pm_detection_cls(struct pm_calls *c, const struct detection_cls_params *p,
                      struct pm_tensor logits, const struct pm_detection_truth *t,
                      struct pm_tensor losses, struct pm_tensor lse);
/* Their gradient, with the same factors. */
void pm_detection_cls_back(struct pm_calls *c, const struct detection_cls_params *p,
                           struct pm_tensor logits, const struct pm_detection_truth *t,
                           struct pm_tensor lse, struct pm_tensor kept, struct pm_tensor factors,
                           struct pm_tensor dlogits);

/* The class with the largest of a true box's targets, the first of equal ones; -1: the background.
 * labels: number of targets; one more than `count`, the number of classes, if the first is that of
 * the background. Otherwise the background has the target 0, as in TensorFlow's Object Detection
 * API. Twin: shaders/lib/target_class.glsl. */
static inline int pm_target_class(const float *targets, int labels, int count)
{
    int found = 0;

    for (int i = 1; i < labels; i++)
        if (targets[i] > targets[found])
            found = i;
    if (labels == count && !(targets[found] > 0))
        return -1;
    return found - (labels - count);
}

/* The codes of each row's class: y [n, N, codes] of x [n, N, classes, codes]. The class is that of
 * the row's matched box, or the first of its largest targets. The codes are 0 if there is no match,
 * or if the background has the largest target. */
void pm_class_codes(struct pm_calls *c, const struct class_codes_params *p, struct pm_tensor x,
                    const struct pm_detection_truth *t, struct pm_tensor y);
/* Its gradient: dy for the row's class, 0 for other classes. */
void pm_class_codes_back(struct pm_calls *c, const struct class_codes_params *p,
                         struct pm_tensor dy, const struct pm_detection_truth *t,
                         struct pm_tensor dx);

/* The sums of both losses over all examples, and the factors of the gradients:
 *
 *     loss = scale * sum of the anchors' losses, each divided by its example's divisor
 *
 * p->divisor chooses the divisor. loc, cls [n, N]. kept: see above. normalizer [n]: F32, or I32 for
 * DETECTION_BY_COUNT; PM_NO_TENSOR for DETECTION_BY_NOTHING and DETECTION_BY_MATCHES. loss[0..1]:
 * scalars, localization and classification. factors F32 [n, 2]. Losses that are not finite give
 * NaN in both losses and in all factors. */
void pm_detection_sum(struct pm_calls *c, const struct detection_sum_params *p,
                      struct pm_tensor loc, struct pm_tensor cls,
                      const struct pm_detection_truth *t, struct pm_tensor normalizer,
                      struct pm_tensor kept, const struct pm_tensor loss[2],
                      struct pm_tensor factors);
/* Options of a loss that is divided by pm_detection_divisor. */
#define PM_DETECTION_DIVISOR_OPTIONS(tag)                                                          \
    PM_BOOL(tag, normalize_by_matches, true,                                                       \
            "without a normalizer: divide by the sum of the weights of matched boxes"),            \
        PM_BOOL(tag, normalize_per_image, false,                                                   \
                "divide each image's losses by its own number of the normalizer, and take the "    \
                "mean of the images")
/* The divisor of the sums, DETECTION_BY_..., for these options. normalizer: whether the loss has
 * this input. */
int pm_detection_divisor(bool per_image, bool normalizer, bool by_matches);
/* The factor of the sums with this divisor, before the loss's weight: this plan's share of the
 * batch. For DETECTION_BY_IMAGE it is divided by `examples`, the number of this plan's examples.
 * For DETECTION_BY_FIRST it is 1, because the normalizer is a number of the whole batch. */
float pm_detection_share(const struct pm_calls *c, int divisor, int examples);
/* Makes an output of the plan, NAME/which F32 [examples]: a number of each example. */
struct pm_tensor pm_example_output(const struct pm_node *n, struct pm_calls *c, const char *which,
                                   int examples);
/* Whether an example does not exist: the first weight of its true boxes [n, M] is below 0. The last
 * batch of an evaluation may have such examples. Twins: is_absent() in lib/detection_sum.glsl and
 * is_candidate() in sample_proposals.comp, both in shaders/. */
static inline bool pm_example_is_absent(const float *weights, int m, size_t example)
{
    return weights[example * (size_t)m] < 0;
}
/* Makes the scalars of both losses, NAME/localization_loss and NAME/classification_loss. */
void pm_detection_scalars(const struct pm_node *n, struct pm_calls *c, struct pm_tensor loss[2]);

#endif
