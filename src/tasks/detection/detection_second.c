/* detection_second: the layers between the two stages of a detector, and the second stage's losses,
 * as in TensorFlow's Object Detection API (meta_architectures/faster_rcnn_meta_arch.py). The first
 * stage's boxes become proposals. Training samples some of them and matches them with the true
 * boxes. An evaluation uses all. No gradient passes through proposals.
 *
 * Regions are upright or rotated boxes. */
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_rotated.h"

#include <cjson/cJSON.h>

enum { SAMPLED_BOXES, SAMPLED_MATCHES, SAMPLED_COUNT }; /* outputs of sample_proposals */

struct pm_node *pm_detection_propose(struct pm_net *net, const struct pm_detection_heads *h,
                                     const struct pm_task *t, bool train,
                                     struct pm_node *windows)
{
    struct pm_node *boxes = pm_detection_decode(net, "proposals/boxes", h, t, train);
    struct pm_node *scores = pm_detection_scores(net, "proposals/scores", h, &t->proposals, t,
                                                 train);

    return pm_detection_suppress(net, "proposal_boxes", &t->proposals, boxes, scores, windows,
                                 NULL);
}

/* ---- heads ------------------------------------------------------------------------------- */

static int check_second(const struct pm_task *t, const struct pm_detection_second *s, int rows)
{
    const int classes = t->facts.num_classes, codes = pm_detection_code_size(t);
    const struct pm_shape own = PM_SHAPE2(rows, classes * codes), shared = PM_SHAPE2(rows, codes);
    char text[64];

    if (!s->codes || !s->classes)
        return pm_fail(PM_ECONFIG, "the net's second stage lacks the head %s",
                       s->codes ? "box_classes" : "box_codes");
    if (!pm_shape_equal(s->classes->out_shape, PM_SHAPE2(rows, classes + 1)))
        return pm_fail(PM_ECONFIG, "the net's layer %s gives %s, but %d regions and %d classes "
                       "with a background need %dx%d", s->classes->name,
                       pm_shape_text(s->classes->out_shape, text), rows, classes, rows,
                       classes + 1);
    if (s->keypoints && (s->keypoints->out_shape.rank != 4 ||
                         s->keypoints->out_shape.dim[0] != rows ||
                         s->keypoints->out_shape.dim[3] != t->data.num_keypoints))
        return pm_fail(PM_ECONFIG, "the net's layer %s gives %s, but heatmaps of %d keypoints "
                       "(data.num_keypoints) of %d regions need %d x height x width x %d",
                       s->keypoints->name, pm_shape_text(s->keypoints->out_shape, text),
                       t->data.num_keypoints, rows, rows, t->data.num_keypoints);
    if (s->masks && (s->masks->out_shape.rank != 4 || s->masks->out_shape.dim[0] != rows ||
                     (s->masks->out_shape.dim[3] != 1 && s->masks->out_shape.dim[3] != classes)))
        return pm_fail(PM_ECONFIG, "the net's layer %s gives %s, but masks of %d regions need "
                       "%d x height x width x %d, or, for all classes together, 1 in the place of "
                       "%d", s->masks->name, pm_shape_text(s->masks->out_shape, text), rows, rows,
                       classes, classes);
    if (!pm_shape_equal(s->codes->out_shape, own) && !pm_shape_equal(s->codes->out_shape, shared))
        return pm_fail(PM_ECONFIG, "the net's layer %s gives %s, but %d codes of a box need %dx%d, "
                       "or, for all classes together, %dx%d", s->codes->name,
                       pm_shape_text(s->codes->out_shape, text), codes, rows, classes * codes,
                       rows, codes);
    return PM_OK;
}

void pm_detection_build_second(struct pm_net *net, const struct pm_net_maker *maker,
                               const struct pm_task *t, const struct pm_regions *regions,
                               struct pm_detection_second *out)
{
    struct pm_heads heads = { 0 };
    struct pm_regions of = *regions;

    *out = (struct pm_detection_second){ 0 };
    if (net->error)
        return;
    of.keypoints = t->data.num_keypoints;
    const int err = maker->second(maker->ctx, net, &of, &heads);

    if (err < 0 && !net->error)
        net->error = err;
    if (net->error)
        return;
    *out = (struct pm_detection_second){ pm_heads_find(&heads, "box_codes"),
                                         pm_heads_find(&heads, "box_classes"),
                                         pm_heads_find(&heads, "box_masks"),
                                         pm_heads_find(&heads, "box_keypoints") };
    net->error = check_second(t, out, regions->boxes->out_shape.dim[0] *
                                          regions->boxes->out_shape.dim[1]);
}

/* Builds the net for one picture, to see what the second stage predicts. */
static int build_trial(const struct pm_task *t, struct pm_frame frame,
                       const struct pm_net_maker *maker, struct pm_net *net,
                       struct pm_detection_second *out)
{
    const struct pm_shape shape = PM_SHAPE4(1, frame.height, frame.width, t->facts.channels);
    struct pm_heads heads = { 0 };
    struct pm_regions regions;
    int err = PM_OK;

    PM_TRY(maker->heads(maker->ctx, net, pm_net_input(net, "images", shape, PM_F32), &heads));
    regions = (struct pm_regions){
        .boxes = pm_net_input(net, "regions", PM_SHAPE3(1, 1, pm_detection_box_numbers(t)),
                              PM_F32),
        .count = pm_net_input(net, "regions_count", PM_SHAPE1(1), PM_I32) };
    pm_detection_build_second(net, maker, t, &regions, out);
    err = net->error;
out:
    return err;
}

/* Masks can be evaluated if the net predicts them and the data has them. */
static int check_masks(const struct pm_task *t)
{
    const bool metrics = t->sets & (PM_BOX_COCO_MASKS | PM_BOX_PASCAL_MASKS);

    if (metrics && t->mask_height == 0)
        return pm_fail(PM_ECONFIG, "%s: the net predicts no masks: remove coco_masks and "
                       "voc_masks, or set predict_instance_masks=true in "
                       "model.second_stage_box_predictor of a faster_rcnn net",
                       pm_detection_place(t->facts.config, "eval.metrics"));
    if (t->export.masks == PM_DETECTION_MASKS_PASTED && t->mask_height == 0)
        return pm_fail(PM_ECONFIG, "%s: pasted, but the net predicts no masks: remove the key, or "
                       "set predict_instance_masks=true in model.second_stage_box_predictor of a "
                       "faster_rcnn net", pm_detection_place(t->facts.config, "export.masks"));
    if (t->mask_height > 0 && !t->data.instance_masks)
        return pm_fail(PM_ECONFIG, "%s: false, but the net predicts masks: set it to true",
                       pm_detection_place(t->facts.config, "data.instance_masks"));
    return PM_OK;
}

/* A box that only one class has cannot count for several. */
static int check_classes(const struct pm_task *t)
{
    static const char key[] = "model.post_processing.max_classes_per_detection";

    if (t->boxes_each > 1 && t->post.max_classes_per_detection > 1)
        return pm_fail(PM_ECONFIG, "%s: %d, but the second stage has a box for each class: set it "
                       "to 1, or share_box_across_classes=true in "
                       "model.second_stage_box_predictor", pm_detection_place(t->facts.config, key),
                       t->post.max_classes_per_detection);
    return PM_OK;
}

int pm_detection_settle_second(struct pm_task *t, struct pm_frame frame,
                               const struct pm_net_maker *maker)
{
    struct pm_detection_second second = { 0 };
    struct pm_net *net = pm_net_create();
    int err = PM_OK;

    t->points = pm_detection_coded_points(t);
    if (t->stages == 2) {
        PM_TRY(build_trial(t, frame, maker, net, &second));
        t->boxes_each = second.codes->out_shape.dim[1] / pm_detection_code_size(t);
        PM_TRY(check_classes(t));
    }
    if (second.masks) {
        t->mask_height = second.masks->out_shape.dim[1];
        t->mask_width = second.masks->out_shape.dim[2];
    }
    if (second.keypoints) {
        t->points = second.keypoints->out_shape.dim[3];
        t->point_scores = true;
    }
    PM_TRY(check_masks(t));
    PM_TRY(pm_detection_check_points(t));
out:
    pm_net_destroy(&net);
    return err;
}

void pm_detection_shapes(struct pm_net *net, const struct pm_net_maker *maker,
                         const struct pm_task *t, const struct pm_detection_heads *h,
                         struct pm_node *kept, struct pm_detection_shapes *out)
{
    struct pm_node *boxes = kept->out[PM_OUT_BOXES], *count = kept->out[PM_OUT_COUNT];
    const struct pm_regions regions = { .boxes = boxes, .count = count };
    struct pm_detection_second second;

    if (h->points)
        out->keypoints = pm_detection_decode_points(net, t, h, kept);
    if (net->error || t->stages == 1 || (t->mask_height == 0 && t->points == 0))
        return;
    net->pass = "detected";
    pm_detection_build_second(net, maker, t, &regions, &second);
    net->pass = NULL;
    if (!net->error && second.masks)
        out->masks = pm_net_add_many(net, "detection_masks",
                                     (struct pm_node *[]){ second.masks, kept->out[PM_OUT_CLASSES],
                                                           count }, 3, "class_masks");
    if (!net->error && second.keypoints)
        out->keypoints = pm_net_add_many(net, "detection_keypoints",
                                         (struct pm_node *[]){ second.keypoints, boxes, count }, 3,
                                         "heatmap_points");
}

/* ---- losses ------------------------------------------------------------------------------ */

/* Adds the loss of a second stage over sampled proposals. */
static void add_loss(struct pm_net *net, const struct pm_task *t, struct pm_node *sampled,
                     const struct pm_detection_second *second)
{
    const struct pm_detection_second_loss *l = &t->second_loss;
    cJSON *o = cJSON_CreateObject();

    if (!net->error) {
        struct pm_node *in[] = { second->codes, second->classes, sampled->out[SAMPLED_BOXES],
                                 sampled->out[SAMPLED_MATCHES], sampled->out[SAMPLED_COUNT],
                                 pm_net_find(net, "truth_boxes"),
                                 pm_net_find(net, "truth_classes"),
                                 pm_net_find(net, "truth_weights") };

        pm_detection_add_coder(t, o);
        cJSON_AddNumberToObject(o, "classification_weight", (double)l->classification_weight);
        cJSON_AddNumberToObject(o, "localization_weight", (double)l->localization_weight);
        cJSON_AddNumberToObject(o, "logit_scale", (double)l->logit_scale);
        if (t->miner.on)
            pm_detection_add_miner(&t->miner, o);
        pm_net_add_json(net, "second_stage_loss", in, PM_COUNT(in), "box_classifier_loss", o, NULL,
                        "loss.second_stage");
    }
    cJSON_Delete(o);
}

/* Adds the loss of the masks of sampled proposals. */
static void add_mask_loss(struct pm_net *net, const struct pm_task *t, struct pm_node *sampled,
                          struct pm_node *masks)
{
    struct pm_node *in[] = { masks, sampled->out[SAMPLED_BOXES], sampled->out[SAMPLED_MATCHES],
                             pm_net_find(net, "truth_masks"), pm_net_find(net, "truth_classes"),
                             pm_net_find(net, "truth_mask_weights") };

    if (!net->error)
        pm_net_add_many(net, "mask_loss", in, PM_COUNT(in),
                        "mask_loss weight=%.9g width=%d normalize_over=%s",
                        (double)t->second_loss.mask_weight, net->nodes[0]->out_shape.dim[2],
                        t->loss.normalize_over == PM_NORMALIZE_CLONE ? "batch" : "image");
}

/* Adds the loss of the keypoints of sampled proposals. */
static void add_keypoint_loss(struct pm_net *net, const struct pm_task *t, struct pm_node *sampled,
                              struct pm_node *heatmaps)
{
    struct pm_node *in[] = { heatmaps, sampled->out[SAMPLED_BOXES], sampled->out[SAMPLED_MATCHES],
                             pm_net_find(net, "truth_keypoints") };

    if (!net->error)
        pm_net_add_many(net, "keypoint_loss", in, PM_COUNT(in),
                        "keypoint_loss weight=%.9g normalize_over=%s",
                        (double)t->second_loss.keypoint_weight,
                        t->loss.normalize_over == PM_NORMALIZE_CLONE ? "batch" : "image");
}

/* Adds the layer that finds the true boxes of proposals. draw: it samples them. */
static struct pm_node *sample(struct pm_net *net, const struct pm_task *t, struct pm_node *kept,
                              bool draw)
{
    const struct pm_detection_proposal_sampler *s = &t->proposal_sampler;
    struct pm_node *in[] = { kept->out[PM_OUT_BOXES], kept->out[PM_OUT_COUNT],
                             pm_net_find(net, "truth_boxes"), pm_net_find(net, "truth_weights") };

    return pm_net_add_many(net, "proposals/sampled", in, PM_COUNT(in),
                           "sample_proposals batch=%d positive_fraction=%.9g iou_threshold=%.9g "
                           "append_truth=%s draw=%s", s->batch_size, (double)s->positive_fraction,
                           (double)s->iou_threshold, draw && s->append_truth ? "true" : "false",
                           draw ? "true" : "false");
}

void pm_detection_train_second(struct pm_net *net, const struct pm_detection_heads *h,
                               const struct pm_net_maker *maker, const struct pm_task *t)
{
    struct pm_node *kept = pm_detection_propose(net, h, t, true, pm_net_find(net, "windows"));
    struct pm_detection_second second;
    struct pm_node *sampled;
    struct pm_regions regions;

    if (net->error)
        return;
    sampled = sample(net, t, kept, !t->miner.on);
    if (net->error)
        return;
    regions = (struct pm_regions){ .boxes = sampled->out[SAMPLED_BOXES],
                                   .count = sampled->out[SAMPLED_COUNT] };
    pm_detection_build_second(net, maker, t, &regions, &second);
    add_loss(net, t, sampled, &second);
    if (second.masks)
        add_mask_loss(net, t, sampled, second.masks);
    if (second.keypoints)
        add_keypoint_loss(net, t, sampled, second.keypoints);
}

void pm_detection_evaluate_second(struct pm_net *net, const struct pm_task *t,
                                  struct pm_node *kept, const struct pm_detection_second *second)
{
    if (!net->error)
        add_loss(net, t, sample(net, t, kept, false), second);
}
