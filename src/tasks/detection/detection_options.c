/* detection_options: the task's part of the config: options and checks of combinations. The
 * objects' keys have the names of TensorFlow's Object Detection API. */
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_rotated.h"
#include "tasks/detection/detection_tiles.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* ---- defaults of the Object Detection API -------------------------------------------------- */

/* Its optimizers and learning rates have these defaults; it has none for their choice. */
const struct pm_task_default pm_detection_defaults[] = {
    { "optim.epsilon", "1e-8", "optim.name", "adam" },
    { "schedule.base_lr", "0.002" },
    { "schedule.decay_steps", "4000000", "schedule.policy", "exponential" },
    { "schedule.decay_factor", "0.95" },
    { "schedule.end_lr", "0", "schedule.policy", "cosine" },
    { "eval.interval_secs", "300" },
    { 0 },
};

/* ---- options ----------------------------------------------------------------------------- */

const struct pm_opt pm_detection_data_opts[] = {
    PM_STRING(pm_detection_data, label_map, NULL,
              "detection: file with the names and numbers of the classes: protobuf's text form "
              "(.pbtxt) or JSON; null = box_labels of dataset.json, label_map.pbtxt or labels.txt "
              "in the data folder"),
    PM_BOOL(pm_detection_data, class_agnostic, false,
            "detection: all objects have one class, \"object\"; the data's classes are not read"),
    PM_INT(pm_detection_data, max_boxes, 100, 1, 10000,
           "detection: most boxes of a training picture; if there are more, the largest are kept. "
           "Evaluation uses all"),
    PM_FLOAT(pm_detection_data, min_side, 0, 0, 10000,
             "detection: leave boxes out of training if a side has fewer pixels of the picture "
             "file; 0 = none"),
    PM_BOOL(pm_detection_data, swap_sides, false,
            "detection: rotated boxes: exchange height and width of each box, for data in which "
            "the angle is the direction of the height"),
    PM_DOUBLE(pm_detection_data, subtract_angle, 0, -7, 7,
              "detection: rotated boxes: radians that are subtracted from each angle, for data "
              "that count angles from another axis"),
    PM_INT(pm_detection_data, cutoff_boxes, 0, 0, 10000,
           "detection: rotated boxes: most objects of a training picture. If there are more, the "
           "widest ones fill half of this number, and random ones the rest. Dropped objects become "
           "black; 0 = any number"),
    PM_INT(pm_detection_data, num_keypoints, 0, 0, 1000,
           "detection: keypoints of an object that are read, checked and moved with the picture; a "
           "net that predicts keypoints (predict_keypoints in model.second_stage_box_predictor, "
           "or model.box_coder.type keypoint) needs them; 0 = none"),
    PM_BOOL(pm_detection_data, instance_masks, false,
            "detection: read and check the masks of objects, and move them with the picture; a net "
            "that predicts masks (predict_instance_masks in model.second_stage_box_predictor) "
            "needs them"),
    PM_BOOL(pm_detection_data, merge_multiple_label_boxes, false,
            "detection: equal boxes of a training picture are one object with all their classes; "
            "equal: each coordinate * 9999, without its fraction"),
    PM_BOOL(pm_detection_data, multiclass_scores, false,
            "detection: train with soft labels, a number for each class, from the key "
            "image/object/class/multiclass_scores; not together with merge_multiple_label_boxes"),
    { 0 },
};

static const struct pm_opt model[] = {
    PM_ENUM(pm_detection_model, boxes, PM_BOXES_UPRIGHT, "upright|rotated",
            "detection: rotated = boxes are turned rectangles: cy, cx, h, w, angle. Records then "
            "need image/object/rbbox, and anchors the option angles; named nets set it by "
            "themselves"),
    PM_JSON(pm_detection_model, box_coder,
            "detection: how boxes are coded relative to anchors, an object with the keys below; "
            "null = their defaults"),
    PM_JSON(pm_detection_model, matcher,
            "detection: which anchors learn which boxes, an object with the keys below; null = "
            "their defaults with force_match_for_each_row; retinanet_50 and retinanet_101: the "
            "numbers of keras-retinanet"),
    PM_JSON(pm_detection_model, post_processing,
            "detection: scores and non-maximum suppression, an object with the keys below; null = "
            "their defaults; retinanet_50 and retinanet_101: the numbers of keras-retinanet"),
    PM_ENUM(pm_detection_model, anchors_outside, PM_OUTSIDE_AUTO, "auto|keep|prune|clip",
            "detection: anchors that are not wholly inside the input: keep; prune: losses ignore "
            "them, and prediction clips them to the input; clip: always clipped; auto = prune for "
            "faster_rcnn nets, else keep. Rotated anchors are never clipped: with prune, "
            "prediction leaves them out, too"),
    PM_INT(pm_detection_model, number_of_stages, NAN, 1, 2,
           "detection, only for faster_rcnn nets: 1 = propose regions, boxes of one class; 2 and "
           "null = name their classes and correct their boxes, too"),
    PM_JSON(pm_detection_model, proposals,
            "detection, faster_rcnn nets: which boxes the first stage proposes, an object with the "
            "keys below; null = their defaults"),
    { 0 },
};

static const struct pm_opt post[] = {
    PM_ENUM(pm_detection_post, score_converter, PM_CONVERT_AUTO, "auto|identity|sigmoid|softmax",
            "how logits become scores; auto = softmax if loss.classification is weighted_softmax "
            "or weighted_logits_softmax, else sigmoid"),
    PM_FLOAT(pm_detection_post, logit_scale, 1, 1e-6, 1e6, "divisor of the logits before that"),
    PM_FLOAT(pm_detection_post, score_threshold, 0, 0, 1,
             "drop detections whose score is not above this"),
    PM_FLOAT(pm_detection_post, iou_threshold, 0.6, 0, 1,
             "drop a detection whose IoU with a better one of its class is above this"),
    PM_INT(pm_detection_post, max_detections_per_class, 100, 1, 10000,
           "most detections of a class in a picture"),
    PM_INT(pm_detection_post, max_total_detections, 100, 1, 10000,
           "most detections in a picture"),
    PM_BOOL(pm_detection_post, use_class_agnostic_nms, false,
            "suppress over all classes together"),
    PM_INT(pm_detection_post, max_classes_per_detection, 1, 1, 1000,
           "use_class_agnostic_nms: classes of a box that are detections, those with the highest "
           "scores"),
    PM_FLOAT(pm_detection_post, soft_nms_sigma, 0, 0, 100,
             "above 0: soft suppression, which lowers scores instead of dropping detections"),
    { 0 },
};

static const struct pm_opt input[] = {
    PM_JSON(pm_detection_input, buckets,
            "detection: list of sizes of training pictures, each one side or [height, width]: a "
            "batch takes the smallest that holds its pictures, the first of equal ones, and pads "
            "them; needs input.resizer=keep_aspect_ratio, conditional or pad_to_multiple; null = "
            "only input.size"),
    { 0 },
};

static const struct pm_opt loss[] = {
    PM_JSON(pm_detection_loss, classification,
            "detection: loss of the classes, an object with the keys below; null = focal loss "
            "with alpha 0.25"),
    PM_JSON(pm_detection_loss, localization,
            "detection: loss of the boxes, an object with the keys below; null = their defaults; "
            "retinanet_50 and retinanet_101: the numbers of keras-retinanet"),
    PM_JSON(pm_detection_loss, hard_example_miner,
            "detection: take the loss of the hardest anchors only, in faster_rcnn nets of the "
            "hardest proposals, an object with the keys below; null = of all"),
    PM_JSON(pm_detection_loss, random_example_sampler,
            "detection: take the loss of the matched anchors and of a random part of the negative "
            "ones, an object with the key below; null = of all anchors"),
    PM_JSON(pm_detection_loss, minibatch_sampler,
            "detection: take the loss of a few random anchors of each picture, and divide it by "
            "their number, an object with the keys below; null = of all anchors. faster_rcnn nets "
            "always do this; there null = the defaults below"),
    PM_JSON(pm_detection_loss, proposal_sampler,
            "detection, faster_rcnn nets: which proposals train the second stage, an object with "
            "the keys below; null = their defaults"),
    PM_JSON(pm_detection_loss, second_stage,
            "detection, faster_rcnn nets: weights of the second stage's losses, an object with the "
            "keys below; null = their defaults. loss.classification and loss.localization are "
            "those of the first stage"),
    PM_ENUM(pm_detection_loss, normalize_over, PM_NORMALIZE_BATCH, "batch|clone",
            "detection: divide the loss by the matched anchors of the whole batch, or of each "
            "device's part, as in the original; with batch, devices of any shares learn the same. "
            "With two stages the key affects only the loss of masks: batch divides it by the "
            "matched boxes of each picture, clone by those of the device's part"),
    PM_BOOL(pm_detection_loss, normalize_by_matches, true,
            "detection: false = do not divide the loss by the number of matched anchors"),
    PM_BOOL(pm_detection_loss, normalize_loc_by_codesize, false,
            "detection: also divide the loss of the boxes by the number of codes of a box"),
    PM_BOOL(pm_detection_loss, encode_background_as_zeros, false,
            "detection: with a background class: negative anchors learn 0 in every column; false = "
            "1 in the background's"),
    PM_FLOAT(pm_detection_loss, negative_class_weight, 1, 0, 1e6,
             "detection: weight of negative anchors in the loss of the classes"),
    { 0 },
};

static const struct pm_opt class_loss[] = {
    PM_ENUM(pm_detection_class_loss, type, PM_CLASS_SIGMOID_FOCAL,
            "weighted_sigmoid|weighted_sigmoid_focal|weighted_softmax|weighted_logits_softmax|"
            "bootstrapped_sigmoid",
            "cross entropy of each class by itself; the same with less weight on easy examples; "
            "cross entropy of one class of all and the background; the same with the softmax of "
            "the targets, which are another net's logits (data.multiclass_scores); cross entropy "
            "with targets that the prediction corrects"),
    PM_FLOAT(pm_detection_class_loss, weight, 1, 0, 1e6, "weight of this loss"),
    PM_FLOAT(pm_detection_class_loss, gamma, 2, 0, 100,
             "weighted_sigmoid_focal: exponent of 1 - p, p being the probability of the truth"),
    PM_FLOAT(pm_detection_class_loss, alpha, NAN, 0, 1,
             "weighted_sigmoid_focal: weight of objects; 1 - alpha is that of the background; null "
             "= no such weights. bootstrapped_sigmoid: part of the true targets, required"),
    PM_FLOAT(pm_detection_class_loss, logit_scale, 1, 1e-6, 1e6,
             "weighted_softmax, weighted_logits_softmax: divisor of the logits"),
    PM_BOOL(pm_detection_class_loss, hard_bootstrap, false,
            "bootstrapped_sigmoid: correct by the predicted class instead of its probability"),
    { 0 },
};

static const struct pm_opt box_loss[] = {
    PM_ENUM(pm_detection_box_loss, type, 0,
            "weighted_smooth_l1|weighted_l2|weighted_iou|weighted_giou",
            "of the codes: Huber's loss, or half the squares; of the decoded boxes: 1 - IoU, or "
            "1 - GIoU"),
    PM_FLOAT(pm_detection_box_loss, weight, 1, 0, 1e6, "weight of this loss"),
    PM_FLOAT(pm_detection_box_loss, delta, 1, 1e-6, 1e6,
             "weighted_smooth_l1: difference from which the loss is linear"),
    { 0 },
};

static const struct pm_opt miner[] = {
    PM_INT(pm_detection_miner, num_hard_examples, 64, 0, 1000000,
           "most anchors of a picture that are kept; 0 = no limit"),
    PM_FLOAT(pm_detection_miner, iou_threshold, 0.7, 0, 1,
             "leave out anchors whose decoded box has a higher IoU with a harder one's"),
    PM_ENUM(pm_detection_miner, loss_type, 0, "both|classification|localization",
            "loss by which anchors are hard"),
    PM_INT(pm_detection_miner, max_negatives_per_positive, 0, 0, 1000000,
           "most negative anchors for each matched one; 0 = no limit"),
    PM_INT(pm_detection_miner, min_negatives_per_image, 0, 0, 1000000,
           "negative anchors that may be kept also without matched ones"),
    { 0 },
};

static const struct pm_opt sampler[] = {
    PM_FLOAT(pm_detection_sampler, positive_sample_fraction, 0.01, 1e-6, 1,
             "share of the matched anchors among those that count"),
    { 0 },
};

static const struct pm_opt eval[] = {
    PM_STRINGS(pm_detection_eval, metrics, "[\"coco\"]",
               "detection: sets of metrics: coco, voc (or weighted_voc, the same), open_images, "
               "open_images_challenge; coco_masks and voc_masks need a net that predicts masks; "
               "coco_keypoints needs one that predicts keypoints"),
    PM_FLOATS(pm_detection_eval, recall_range, "[0, 1]", 0, 1,
              "detection: lowest and highest recall of precision_at_recall, of the set voc"),
    PM_JSON(pm_detection_eval, score_threshold,
            "detection: predict and the report draw boxes with a score above this number of 0 to "
            "1; \"best\": in each class the score of the best F1 in the run's latest evaluation; "
            "null = 0.5"),
    PM_FLOATS(pm_detection_eval, keypoint_sigmas, "[]", 1e-6, 100,
              "detection: for coco_keypoints, how far apart annotators place each keypoint, in "
              "shares of the square root of the object's area; [] = COCO's, for its 17 points of "
              "a person"),
    PM_JSON(pm_detection_eval, keypoint_edges,
            "detection: lines that predict draws between keypoints, a list of pairs [from, to] "
            "of their numbers from 0; null = COCO's for 17 keypoints, else none"),
    PM_BOOL(pm_detection_eval, skip_unlabeled, false,
            "detection: if a record lists absent classes (image/neg_category_ids), drop detections "
            "of classes that it neither lists nor annotates"),
    { 0 },
};

static const struct pm_opt export[] = {
    PM_BOOL(pm_detection_export, nms, true,
            "detection: suppress overlapping boxes inside the model; false = only the outputs "
            "raw_detection_boxes and raw_detection_scores, for programs without "
            "NonMaxSuppression. With two stages these are the second stage's, proposals are still "
            "suppressed, and num_proposals is their number. Rotated boxes always have only the raw "
            "outputs, because ONNX cannot suppress them; with two stages they cannot be exported"),
    PM_BOOL(pm_detection_export, pad, true,
            "detection, if input.resizer pads: accept pictures of any size; the model resizes and "
            "pads them, and boxes are in 0..1 of the picture. false: only pictures of export.size, "
            "and boxes are in 0..1 of the padded picture"),
    PM_BOOL(pm_detection_export, proposals, false,
            "detection, faster_rcnn with two stages: also the outputs proposal_boxes and "
            "num_proposals, the boxes that the first stage gives to the second"),
    PM_ENUM(pm_detection_export, masks, PM_DETECTION_MASKS_BOX, "box|pasted",
            "detection, nets that predict masks: the output detection_masks has each mask in the "
            "frame of its box, as probabilities (box), or as pixels 0 and 1 of the picture that "
            "the model gets (pasted)"),
    { 0 },
};

const struct pm_task_section pm_detection_sections[] = {
    { "data", pm_detection_data_opts }, { "model", model },
    { "model.box_coder", pm_detection_coder_opts },
    { "model.matcher", pm_matcher_opts }, { "model.post_processing", post },
    { "model.proposals", pm_detection_proposals_opts }, { "input", input },
    { "loss", loss },
    { "loss.classification", class_loss }, { "loss.localization", box_loss },
    { "loss.hard_example_miner", miner }, { "loss.random_example_sampler", sampler },
    { "loss.minibatch_sampler", pm_detection_minibatch_opts },
    { "loss.proposal_sampler", pm_detection_proposal_sampler_opts },
    { "loss.second_stage", pm_detection_second_loss_opts },
    { "eval", eval }, { "predict", pm_detection_predict_opts }, { "export", export }, { 0 },
};

/* ---- reading ----------------------------------------------------------------------------- */

const char *pm_detection_place(const struct pm_config *c, const char *key)
{
    return pm_arena_printf(c->arena, "%s: %s", pm_config_origin(c, key), key);
}

const char *pm_detection_of_net(const struct pm_config *c, const char *key)
{
    const struct pm_object_default *o = c->model_row ? c->model_row->objects : NULL;

    while (o && o->key && strcmp(o->key, key) != 0)
        o++;
    return o ? o->text : NULL;
}

int pm_detection_read_object(const struct pm_config *c, const char *key, const struct cJSON *object,
                       const struct pm_opt *opts, void *out)
{
    if (object && !cJSON_IsObject(object))
        return pm_fail(PM_ECONFIG, "%s: an object { \"key\": value, ... } is needed",
                       pm_detection_place(c, key));
    if (!object && pm_detection_of_net(c, key))
        return pm_opts_parse_text(opts, pm_detection_of_net(c, key), out, c->arena,
                                  pm_detection_place(c, key));
    return pm_opts_parse(opts, object, NULL, out, c->arena, pm_detection_place(c, key));
}

static int read_model(const struct pm_config *c, struct pm_task *t)
{
    struct pm_detection_model m;
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "model", model, &m));
    t->rotated = m.boxes == PM_BOXES_ROTATED;
    PM_TRY(pm_detection_read_coder(c, m.box_coder, t->rotated, &t->coder));
    PM_TRY(pm_detection_read_object(c, "model.matcher", m.matcher, pm_matcher_opts, &t->matcher));
    PM_TRY(pm_matcher_check(&t->matcher, pm_detection_place(c, "model.matcher")));
    if (!m.matcher && !pm_detection_of_net(c, "model.matcher"))
        t->matcher.force_match_for_each_row = true;
    t->matcher.far_angles = t->rotated;
    PM_TRY(pm_detection_read_object(c, "model.post_processing", m.post_processing, post, &t->post));
    PM_TRY(pm_detection_read_stages(c, &m, t));
    if (t->post.max_detections_per_class > t->post.max_total_detections)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.max_detections_per_class: %d is more than "
                       "max_total_detections, %d: lower it",
                       pm_detection_place(c, "model.post_processing"),
                       t->post.max_detections_per_class, t->post.max_total_detections));
    if (t->post.max_classes_per_detection > 1 && !t->post.use_class_agnostic_nms)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.max_classes_per_detection: %d has an effect only with "
                       "use_class_agnostic_nms=true: set that, or remove the key",
                       pm_detection_place(c, "model.post_processing"),
                       t->post.max_classes_per_detection));
    if (t->post.soft_nms_sigma > 0 && t->post.use_class_agnostic_nms)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.soft_nms_sigma: %g is not possible together with "
                       "use_class_agnostic_nms: set it to 0",
                       pm_detection_place(c, "model.post_processing"),
                       (double)t->post.soft_nms_sigma));
out:
    return err;
}

bool pm_detection_is_softmax(const struct pm_task *t)
{
    return t->class_loss.type == PM_CLASS_SOFTMAX || t->class_loss.type == PM_CLASS_LOGITS_SOFTMAX;
}

static int read_loss(const struct pm_config *c, struct pm_task *t)
{
    const struct pm_detection_class_loss *l = &t->class_loss;
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "loss", loss, &t->loss));
    PM_TRY(pm_detection_read_object(c, "loss.classification", t->loss.classification,
                                    class_loss, &t->class_loss));
    PM_TRY(pm_detection_read_object(c, "loss.localization", t->loss.localization,
                                    box_loss, &t->box_loss));
    PM_TRY(pm_detection_read_object(c, "loss.hard_example_miner", t->loss.hard_example_miner,
                                    miner, &t->miner));
    t->miner.on = t->loss.hard_example_miner != NULL;
    PM_TRY(pm_detection_read_object(c, "loss.random_example_sampler",
                                    t->loss.random_example_sampler,
                                    sampler, &t->anchor_sampler));
    t->anchor_sampler.on = t->loss.random_example_sampler != NULL;
    PM_TRY(pm_detection_read_stage_losses(c, t));
    if (!t->loss.classification && !pm_detection_of_net(c, "loss.classification"))
        t->class_loss.alpha = 0.25f;
    if (l->type == PM_CLASS_BOOTSTRAPPED && isnan(l->alpha))
        PM_TRY(pm_fail(PM_ECONFIG, "%s.alpha: not set, but bootstrapped_sigmoid needs it, a number "
                       "of 0 to 1: 0.95 is usual", pm_detection_place(c, "loss.classification")));
    if (t->miner.on && l->type == PM_CLASS_SIGMOID_FOCAL)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: not together with loss.classification.type "
                       "weighted_sigmoid_focal, which weights easy anchors down by itself: remove "
                       "one of the two", pm_detection_place(c, "loss.hard_example_miner")));
    t->proposals.score_converter = pm_detection_is_softmax(t) ? PM_CONVERT_SOFTMAX
                                                              : PM_CONVERT_SIGMOID;
    if (t->post.score_converter == PM_CONVERT_AUTO)
        t->post.score_converter = t->proposals.score_converter;
out:
    return err;
}

static int read_sets(const struct pm_config *c, const struct pm_strings *names, unsigned *out)
{
    static const struct { const char *name; enum pm_box_set set; } known[] = {
        { "coco", PM_BOX_COCO }, { "voc", PM_BOX_PASCAL }, { "weighted_voc", PM_BOX_PASCAL },
        { "open_images", PM_BOX_OPEN_IMAGES },
        { "open_images_challenge", PM_BOX_OPEN_IMAGES_CHALLENGE },
        { "coco_masks", PM_BOX_COCO_MASKS }, { "voc_masks", PM_BOX_PASCAL_MASKS },
        { "coco_keypoints", PM_BOX_COCO_KEYPOINTS },
    };

    *out = 0;
    for (int i = 0; i < names->count; i++) {
        size_t k = 0;

        while (k < PM_COUNT(known) && strcmp(known[k].name, names->v[i]) != 0)
            k++;
        if (k == PM_COUNT(known))
            return pm_fail(PM_ECONFIG, "%s: \"%s\" is none of coco, voc, weighted_voc, "
                           "open_images, open_images_challenge, coco_masks, voc_masks, "
                           "coco_keypoints",
                           pm_detection_place(c, "eval.metrics"), names->v[i]);
        *out |= (unsigned)known[k].set;
    }
    if (!*out)
        return pm_fail(PM_ECONFIG, "%s: the list is empty: name at least one of coco, voc, "
                       "open_images, open_images_challenge", pm_detection_place(c, "eval.metrics"));
    return PM_OK;
}

static int read_eval(const struct pm_config *c, struct pm_task *t)
{
    struct pm_detection_eval e;
    const struct cJSON *least;
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "eval", eval, &e));
    PM_TRY(read_sets(c, &e.metrics, &t->sets));
    if (e.recall_range.count != 2 || e.recall_range.v[0] > e.recall_range.v[1])
        PM_TRY(pm_fail(PM_ECONFIG, "%s: two numbers of 0..1 are needed, the lower one first",
                       pm_detection_place(c, "eval.recall_range")));
    t->recall[0] = (double)e.recall_range.v[0];
    t->recall[1] = (double)e.recall_range.v[1];
    t->skip_unlabeled = e.skip_unlabeled;
    PM_TRY(pm_detection_read_points(c, &e, t));
    least = e.score_threshold;
    t->score_threshold = PM_DETECTION_SCORE;
    t->best_threshold = cJSON_IsString(least) && strcmp(least->valuestring, "best") == 0;
    if (!least || t->best_threshold)
        goto out;
    if (!cJSON_IsNumber(least) || !(least->valuedouble >= 0 && least->valuedouble <= 1))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: a number of 0 to 1 is needed, or \"best\"",
                       pm_detection_place(c, "eval.score_threshold")));
    t->score_threshold = least->valuedouble;
out:
    return err;
}

int pm_detection_read_config(const struct pm_config *c, struct pm_task *t)
{
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "data", pm_detection_data_opts, &t->data));
    if (t->data.multiclass_scores && t->data.merge_multiple_label_boxes)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: true is not possible together with "
                       "data.merge_multiple_label_boxes: set one of the two to false",
                       pm_detection_place(c, "data.multiclass_scores")));
    if ((t->data.num_keypoints || t->data.instance_masks) && t->data.merge_multiple_label_boxes)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: true is not possible together with data.num_keypoints or "
                       "data.instance_masks, because a merged box has several objects: set it to "
                       "false, or remove those keys",
                       pm_detection_place(c, "data.merge_multiple_label_boxes")));
    if (t->data.class_agnostic && c->model.num_classes > 1)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: %d, but with data.class_agnostic there is one class: "
                       "remove the key, or set it to 1",
                       pm_detection_place(c, "model.num_classes"), c->model.num_classes));
    if (t->data.class_agnostic && t->data.multiclass_scores)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: true is not possible together with data.class_agnostic, "
                       "because soft labels are scores of classes: set one of the two to false",
                       pm_detection_place(c, "data.multiclass_scores")));
    PM_TRY(read_model(c, t));
    PM_TRY(read_loss(c, t));
    PM_TRY(pm_detection_check_coded_points(c, t));
    PM_TRY(pm_detection_check_rotated(c, t));
    PM_TRY(read_eval(c, t));
    PM_TRY(pm_config_read(c, "export", export, &t->export));
    t->export.nms &= !t->rotated; /* ONNX has no suppression of rotated boxes */
    if (t->export.proposals && t->stages == 1)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: true, but the net has no second stage: remove the key",
                       pm_detection_place(c, "export.proposals")));
    if (t->export.masks == PM_DETECTION_MASKS_PASTED && !t->export.nms)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: pasted, but with export.nms=false the model has no "
                       "detections, whose masks it could paste: remove one of the two",
                       pm_detection_place(c, "export.masks")));
out:
    return err;
}

int pm_detection_check_config(const struct pm_config *c)
{
    struct pm_task t = { .data = { 0 } };
    struct pm_tiling tiling;
    const int err = pm_detection_read_tiling(c, &tiling);

    return err < 0 ? err : pm_detection_read_config(c, &t);
}

int pm_detection_export_notes(const struct pm_task *t, struct cJSON *object)
{
    cJSON_AddStringToObject(object, "boxes", t->rotated ? PM_DETECTION_ROTATED_UNITS
                            : "ymin, xmin, ymax, xmax in 0..1 of the picture that the model gets");
    cJSON_AddBoolToObject(object, "nms", t->export.nms);
    if (t->rotated)
        cJSON_AddStringToObject(object, "suppression", PM_DETECTION_ROTATED_RULE);
    if (t->mask_height > 0 && t->export.nms)
        cJSON_AddStringToObject(object, "masks",
                                t->export.masks == PM_DETECTION_MASKS_PASTED ? "pasted" : "box");
    pm_opts_dump(post, &t->post, cJSON_AddObjectToObject(object, "post_processing"), false);
    if (t->stages == 2)
        pm_opts_dump(post, &t->proposals, cJSON_AddObjectToObject(object, "proposals"), false);
    return pm_detection_add_threshold(t, object);
}

double pm_detection_threshold(const struct pm_task *t, int label)
{
    return t->best_scores ? t->best_scores[label] : t->score_threshold;
}

int pm_detection_add_threshold(const struct pm_task *t, struct cJSON *object)
{
    const struct pm_config *c = t->facts.config;

    if (t->best_threshold && !t->best_scores)
        return pm_fail(PM_ECONFIG, "%s: best needs an evaluation with these %d classes in %s: run "
                       "pumice eval first, or set a number of 0 to 1",
                       pm_detection_place(c, "eval.score_threshold"), t->facts.num_classes,
                       c->run.folder ? c->run.folder : "run.folder, which is not set");
    if (t->best_scores)
        cJSON_AddItemToObject(object, "score_threshold",
                              cJSON_CreateDoubleArray(t->best_scores, t->facts.num_classes));
    else
        cJSON_AddNumberToObject(object, "score_threshold", t->score_threshold);
    return PM_OK;
}
