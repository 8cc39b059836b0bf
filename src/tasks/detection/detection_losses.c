/* detection_losses: the loss layer of training, and of evaluation where the truths are fields. */
#include "tasks/detection/detection.h"

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

    cJSON_AddStringToObject(o, "localization", names[t->box_loss.type]);
    cJSON_AddNumberToObject(o, "localization_weight", (double)t->box_loss.weight);
    cJSON_AddNumberToObject(o, "delta", (double)t->box_loss.delta);
}

static void add_miner(const struct pm_task *t, struct cJSON *o)
{
    static const char *const types[] = { "both", "classification", "localization" };
    const struct pm_detection_miner *m = &t->miner;

    if (!m->on)
        return;
    cJSON_AddBoolToObject(o, "hard_example_miner", true);
    cJSON_AddNumberToObject(o, "num_hard_examples", m->num_hard_examples);
    cJSON_AddNumberToObject(o, "iou_threshold", (double)m->iou_threshold);
    cJSON_AddStringToObject(o, "loss_type", types[m->loss_type]);
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
    add_miner(t, o);
}

void pm_detection_add_loss(struct pm_net *net, const struct pm_heads *heads,
                           const struct pm_task *t)
{
    static const char *const fields[] = { "matches", "truth_boxes", "truth_classes",
                                          "truth_weights" };
    struct pm_node *in[PM_MAX_INPUTS];
    struct pm_detection_heads h;
    cJSON *options;
    int n;

    if (net->error)
        return;
    pm_detection_sort_heads(t, heads, &h);
    for (int l = 0; l < h.levels; l++) {
        in[l] = h.boxes[l];
        in[h.levels + l] = h.classes[l];
    }
    n = 2 * h.levels;
    in[n++] = pm_detection_anchor_boxes(net, &h, t, true);
    for (size_t i = 0; i < PM_COUNT(fields); i++)
        in[n++] = pm_net_find(net, fields[i]);
    if (pm_detection_has_normalizer(t))
        in[n++] = pm_net_find(net, "normalizer");
    options = cJSON_CreateObject();
    add_numbers(t, &h, options);
    pm_net_add_json(net, "loss", in, n, "detection_loss", options, NULL, "loss");
    cJSON_Delete(options);
}
