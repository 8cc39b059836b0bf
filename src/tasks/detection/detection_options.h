/* detection_options: the options of the config's sections that detection adds. detection_options.c
 * and the files it names read them; the names are those of the keys. Pointers lead into the
 * config. */
#ifndef PM_DETECTION_OPTIONS_H
#define PM_DETECTION_OPTIONS_H

#include <pumice/options.h>

/* model.box_coder */
enum pm_coder_type {
    PM_CODER_TYPE_AUTO, PM_CODER_TYPE_FASTER_RCNN, PM_CODER_TYPE_MEAN_STDDEV, PM_CODER_TYPE_SQUARE,
    PM_CODER_TYPE_CORNERS, PM_CODER_TYPE_ROTATED,
    PM_CODER_TYPE_KEYPOINT, /* 4 + 2 * num_keypoints codes; the first 4 as FASTER_RCNN */
};
struct pm_detection_coder {
    int type;           /* enum pm_coder_type; after opening never AUTO */
    float y_scale, x_scale, height_scale, width_scale, length_scale, angle_scale;
    float stddev;       /* after opening never NAN */
    int num_keypoints;  /* after opening data.num_keypoints with KEYPOINT */
};
/* model.post_processing */
enum pm_score_converter {
    PM_CONVERT_AUTO, PM_CONVERT_IDENTITY, PM_CONVERT_SIGMOID, PM_CONVERT_SOFTMAX,
};
struct pm_detection_post {
    int score_converter; /* enum pm_score_converter; after opening never AUTO */
    float logit_scale, score_threshold, iou_threshold;
    int max_detections_per_class, max_total_detections;
    bool use_class_agnostic_nms;
    int max_classes_per_detection;
    float soft_nms_sigma;
};
/* loss.classification, loss.localization, loss.hard_example_miner */
enum pm_class_loss {
    PM_CLASS_SIGMOID, PM_CLASS_SIGMOID_FOCAL, PM_CLASS_SOFTMAX, PM_CLASS_LOGITS_SOFTMAX,
    PM_CLASS_BOOTSTRAPPED,
};
struct pm_detection_class_loss {
    int type;            /* enum pm_class_loss */
    float weight, gamma, alpha, logit_scale;
    bool hard_bootstrap;
};
enum pm_box_loss { PM_BOX_SMOOTH_L1, PM_BOX_L2, PM_BOX_IOU, PM_BOX_GIOU };
struct pm_detection_box_loss {
    int type;            /* enum pm_box_loss */
    float weight, delta;
};
struct pm_detection_miner {
    bool on;             /* loss.hard_example_miner is an object */
    int num_hard_examples;
    float iou_threshold;
    int loss_type;
    int max_negatives_per_positive, min_negatives_per_image;
};
struct pm_detection_sampler {
    bool on;             /* loss.random_example_sampler is an object */
    float positive_sample_fraction;
};
/* loss.minibatch_sampler: first_stage_minibatch_size and first_stage_positive_balance_fraction of
 * the API's Faster R-CNN */
struct pm_detection_minibatch {
    bool on;             /* loss.minibatch_sampler is an object */
    int batch_size;      /* most anchors of a picture that count */
    float positive_fraction; /* at most this share of batch_size is matched */
};
/* model.proposals: the boxes that the first stage of a faster_rcnn net gives to the second. */
struct pm_detection_proposals {
    float score_threshold, iou_threshold;
    int max_proposals;
};
/* loss.proposal_sampler: the proposals of a picture that train the second stage. */
struct pm_detection_proposal_sampler {
    int batch_size;
    float positive_fraction, iou_threshold;
    bool append_truth;
};
/* loss.second_stage: weights of its losses. */
struct pm_detection_second_loss {
    float classification_weight, localization_weight, mask_weight, keypoint_weight;
    float logit_scale;
};
/* model.anchors_outside: what happens to anchors that are not wholly inside the input. */
enum pm_anchors_outside {
    PM_OUTSIDE_AUTO,  /* as the net's recipe says, else KEEP */
    PM_OUTSIDE_KEEP,  /* nothing */
    PM_OUTSIDE_PRUNE, /* losses ignore them; in outputs upright ones are clipped to the
                       * input, and rotated ones have score 0 */
    PM_OUTSIDE_CLIP,  /* they are clipped to the input */
};
enum pm_normalize_over { PM_NORMALIZE_BATCH, PM_NORMALIZE_CLONE };

struct pm_detection_data {
    const char *label_map; /* NULL: the data's */
    bool class_agnostic;   /* one class; label_map and the data's are not read */
    int max_boxes;         /* M: most boxes of a training picture */
    float min_side;        /* pixels of the file; see struct pm_object_filter */
    bool swap_sides; double subtract_angle; int cutoff_boxes; /* detection_input_steps.h */
    int num_keypoints;     /* of an object; 0: none are read */
    bool instance_masks;   /* masks are read */
    bool merge_multiple_label_boxes, multiclass_scores; /* not both */
};
struct pm_detection_model {
    int boxes;             /* enum pm_box_form (detection_rotated.h) */
    const struct cJSON *box_coder, *matcher, *post_processing;
    int anchors_outside;   /* enum pm_anchors_outside */
    int number_of_stages;  /* of faster_rcnn nets; PM_UNSET: 2 */
    const struct cJSON *proposals;
};
struct pm_detection_input { const struct cJSON *buckets; /* as in the config */ };
struct pm_detection_loss {
    const struct cJSON *classification, *localization, *hard_example_miner,
        *random_example_sampler, *minibatch_sampler, *proposal_sampler, *second_stage;
    int normalize_over;    /* enum pm_normalize_over */
    bool normalize_by_matches, normalize_loc_by_codesize, encode_background_as_zeros;
    float negative_class_weight;
};
struct pm_detection_eval {
    struct pm_strings metrics;    /* names of metric sets */
    struct pm_floats recall_range;
    const struct cJSON *score_threshold;
    bool skip_unlabeled;
    struct pm_floats keypoint_sigmas; /* [data.num_keypoints]; empty: COCO's, if there are 17 */
    const struct cJSON *keypoint_edges;
};
/* export.masks: the output has a mask in the frame of its box, or as pixels of the picture. */
enum { PM_DETECTION_MASKS_BOX, PM_DETECTION_MASKS_PASTED };
struct pm_detection_export {
    bool nms, pad, proposals;
    int masks; /* PM_DETECTION_MASKS_... */
};

#endif
