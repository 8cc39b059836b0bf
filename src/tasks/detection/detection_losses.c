/* detection_losses: the loss layer of anchors in training, and in evaluation where the truths are
 * fields. detection_second.c has those of a second stage. */
#include "tasks/detection/detection_points.h"

#include <cjson/cJSON.h>
#include <math.h>

static void add_class_loss(const struct pm_task *t, struct cJSON *o)
{
    static const char *const names[] = { "weighted_sigmoid", "weighted_sigmoid_focal",
                                         "weighted_softmax", "weighted_logits_softmax",
                                         "bootstrapped_sigmoid" };
    const struct pm_detection_class_loss *l = &t->class_loss;

    cJSON_AddStringToObject(o, "classification", names[l->type]);
    cJSON_AddNumberToObject(o, "classification_weight", (double)l->weight);
    if (l->type == PM_CLASS_SIGMOID_FOCAL)
        cJSON_AddNumberToObject(o, "gamma", (double)l->gamma);
    if (!pm_detection_is_softmax(t) && !isnan(l->alpha))
        cJSON_AddNumberToObject(o, "alpha", (double)l->alpha);
    if (pm_detection_is_softmax(t))
        cJSON_AddNumberToObject(o, "logit_scale", (double)l->logit_scale);
    if (l->type == PM_CLASS_BOOTSTRAPPED)
        cJSON_AddBoolToObject(o, "hard_bootstrap", l->hard_bootstrap);
}

static void add_box_loss(const struct pm_task *t, struct cJSON *o)
{
    static const char *const names[] = { "weighted_smooth_l1", "weighted_l2", "weighted_iou",
                                         "weighted_giou" };

    double weight = (double)t->box_loss.weight;

    /* The layer divides by the four codes that it gets. With keypoints a box has more. */
    if (pm_detection_coded_points(t) && t->loss.normalize_loc_by_codesize)
        weight *= 4.0 / pm_detection_code_size(t);
    cJSON_AddStringToObject(o, "localization", names[t->box_loss.type]);
    cJSON_AddNumberToObject(o, "localization_weight", weight);
    cJSON_AddNumberToObject(o, "delta", (double)t->box_loss.delta);
}

void pm_detection_add_miner(const struct pm_detection_miner *m, struct cJSON *o)
{
    static const char *const types[] = { "both", "classification", "localization" };

    cJSON_AddBoolToObject(o, "hard_example_miner", true);
    cJSON_AddNumberToObject(o, "num_hard_examples", m->num_hard_examples);
    cJSON_AddNumberToObject(o, "iou_threshold", (double)m->iou_threshold);
    cJSON_AddStringToObject(o, "loss_type", types[m->loss_type]);
}

/* With two stages the miner chooses among the proposals. */
static void add_anchor_miner(const struct pm_task *t, struct cJSON *o)
{
    const struct pm_detection_miner *m = &t->miner;

    if (!m->on || t->stages == 2)
        return;
    pm_detection_add_miner(m, o);
    cJSON_AddNumberToObject(o, "max_negatives_per_positive", m->max_negatives_per_positive);
    cJSON_AddNumberToObject(o, "min_negatives_per_image", m->min_negatives_per_image);
}

static void add_numbers(const struct pm_task *t, const struct pm_detection_heads *h, cJSON *o)
{
    cJSON_AddNumberToObject(o, "levels", h->levels);
    cJSON_AddBoolToObject(o, "background", h->background);
    cJSON_AddBoolToObject(o, "normalize_by_matches", t->loss.normalize_by_matches);
    if (t->minibatch.on)
        cJSON_AddBoolToObject(o, "normalize_per_image", true);
    cJSON_AddBoolToObject(o, "normalize_loc_by_codesize", t->loss.normalize_loc_by_codesize);
    cJSON_AddBoolToObject(o, "encode_background_as_zeros", t->loss.encode_background_as_zeros);
    cJSON_AddNumberToObject(o, "negative_class_weight", (double)t->loss.negative_class_weight);
    pm_detection_add_coder(t, o);
    add_class_loss(t, o);
    add_box_loss(t, o);
    add_anchor_miner(t, o);
}

/* The classes of the true boxes. A second stage names them; for the first there is one. */
static struct pm_node *classes_of(struct pm_net *net, const struct pm_task *t)
{
    struct pm_node *weights = pm_net_find(net, "truth_weights"), *one;

    if (t->stages == 1)
        return pm_net_find(net, "truth_classes");
    /* The index of the largest of one number: 0. */
    one = pm_net_add(net, "objects/columns", weights, "reshape shape=[0,0,1]");
    return pm_net_add(net, "objects", one, "argmax");
}

void pm_detection_add_anchor_loss(struct pm_net *net, const struct pm_detection_heads *h,
                                  const struct pm_task *t)
{
    struct pm_node *in[PM_MAX_INPUTS];
    cJSON *options = cJSON_CreateObject();
    int n = 2 * h->levels;

    for (int l = 0; l < h->levels; l++) {
        in[l] = h->boxes[l];
        in[h->levels + l] = h->classes[l];
    }
    in[n++] = pm_detection_anchor_boxes(net, h, t, true);
    in[n++] = pm_net_find(net, "matches");
    in[n++] = pm_net_find(net, "truth_boxes");
    in[n++] = classes_of(net, t);
    in[n++] = pm_net_find(net, "truth_weights");
    if (pm_detection_has_normalizer(t))
        in[n++] = pm_net_find(net, "normalizer");
    add_numbers(t, h, options);
    pm_net_add_json(net, "loss", in, n, "detection_loss", options, NULL, "loss");
    cJSON_Delete(options);
}

void pm_detection_add_loss(struct pm_net *net, const struct pm_heads *heads,
                           const struct pm_net_maker *maker, const struct pm_task *t)
{
    struct pm_detection_heads h;

    if (net->error)
        return;
    pm_detection_sort_heads(t, heads, &h);
    pm_detection_split_codes(net, t, &h);
    pm_detection_add_anchor_loss(net, &h, t);
    pm_detection_add_code_loss(net, t, &h);
    if (t->stages == 2)
        pm_detection_train_second(net, &h, maker, t);
}
