/* second_stage: the second stage of Faster R-CNN (Ren et al. 2015), R-FCN (Dai et al. 2016) and
 * Mask R-CNN (He et al. 2017): it classifies the regions that the first stage (faster_rcnn.c)
 * proposes, and corrects their boxes. Layers, names and defaults are those of
 * TensorFlow's Object Detection API.
 *
 * Heads; n * R rows are those of the regions, C is the number of classes:
 *   box_codes    [n * R, C * 4], for each class its own, or [n * R, 4]; 5 instead of 4 if the
 *                regions are rotated boxes
 *   box_classes  [n * R, C + 1]: logits; column 0 is the background
 *   box_masks    [n * R, height, width, C or 1]: logits of the object's pixels; only with masks
 *   box_keypoints [n * R, height, width, K]: logits of the places of K keypoints; only with
 *                keypoints
 *
 * A kind of predictor is a file with a row, named in the table of second_stage.c. */
#ifndef PM_SECOND_STAGE_H
#define PM_SECOND_STAGE_H

#include "nets/ssd.h"

#define PM_SECOND_HELP_PREDICTOR                                                                   \
    "layers of the second stage that predict boxes and classes: {\"type\": \"mask_rcnn\" or "      \
    "\"rfcn\", \"hyperparams\"}; mask_rcnn has \"use_dropout\", \"dropout_keep_probability\", "    \
    "\"share_box_across_classes\", \"predict_instance_masks\", \"mask_height\", \"mask_width\", "  \
    "\"mask_prediction_num_conv_layers\", \"mask_prediction_conv_depth\", "                        \
    "\"masks_are_class_agnostic\", \"convolve_then_upsample_masks\", \"predict_keypoints\", "      \
    "\"keypoint_heatmap_height\", \"keypoint_heatmap_width\", "                                    \
    "\"keypoint_prediction_num_conv_layers\", \"keypoint_prediction_conv_depth\", "                \
    "\"conv_hyperparams\"; rfcn has \"num_spatial_bins_height\", \"num_spatial_bins_width\", "     \
    "\"depth\", \"crop_height\", \"crop_width\"; missing members and null: the net's own"

/* Options of all kinds; the table of a kind lists its own. */
struct pm_second_predictor {
    bool use_dropout, share_box_across_classes;
    float dropout_keep_probability;
    bool predict_instance_masks, masks_are_class_agnostic, convolve_then_upsample_masks;
    int mask_height, mask_width, mask_prediction_num_conv_layers, mask_prediction_conv_depth;
    bool predict_keypoints;
    int keypoint_heatmap_height, keypoint_heatmap_width, keypoint_prediction_num_conv_layers,
        keypoint_prediction_conv_depth;
    int num_spatial_bins_height, num_spatial_bins_width, depth, crop_height, crop_width;
    const struct cJSON *hyperparams, *conv_hyperparams;
    struct pm_hyperparams h, conv;
};

struct pm_second_stage {
    struct pm_ssd ssd;                /* form, options, and what builds convolutions */
    const struct pm_regions *regions;
    int classes;                      /* C */
    struct pm_heads *heads;
};

struct pm_second_predictor_row {
    const char *type;        /* "type" in model.second_stage_box_predictor */
    const struct pm_opt *opts;
    const char *hyperparams; /* its default: a JSON object */
    /* Adds layers and heads; sets the net's error if the options do not fit. */
    void (*build)(struct pm_second_stage *s, const struct pm_second_predictor *p);
};
extern const struct pm_second_predictor_row pm_second_predictor_mask_rcnn,
    pm_second_predictor_rfcn;

/* Builds the second stage of a net whose first stage has this form. */
void pm_second_stage_build(const struct pm_ssd_form *form, struct pm_net *net,
                           const struct pm_regions *regions, int num_classes,
                           const struct pm_ssd_options *o, struct pm_heads *heads);

/* ---- for the predictors ------------------------------------------------------------------- */

/* Beginning of the names of a predictor's layers. */
#define PM_SECOND_SCOPE "SecondStageBoxPredictor/"
/* Returns the map that the first stage of a built net reads: faster_rcnn.c. Works also after a
 * quantisation has replaced the nodes before it. */
struct pm_node *pm_first_stage_map(const struct pm_net *net);
/* Returns the numbers of a region's box: 4, or 5 of rotated ones. */
int pm_second_stage_numbers(const struct pm_second_stage *s);
/* Sets the net's error if the regions are rotated boxes. key: the member of
 * second_stage_box_predictor that needs upright ones, what: a sentence about it. */
bool pm_second_stage_upright(const struct pm_second_stage *s, const char *key, const char *what);
/* Returns the map of the first stage that regions are cropped from. */
struct pm_node *pm_second_stage_map(const struct pm_second_stage *s);
/* Builds the classifier's layers after this map, or model.second_stage_layers, on x, in the scope
 * SecondStageFeatureExtractor. */
struct pm_node *pm_second_stage_features(const struct pm_second_stage *s, struct pm_node *x);
/* Adds layer NAME that reads the map x and the regions: spec as in pm_net_add. */
struct pm_node *pm_second_stage_crop(const struct pm_second_stage *s, const char *name,
                                     struct pm_node *x, const char *spec);
/* Builds the mask head on features [n * R, h, w, channels]: second_masks.c. */
void pm_second_stage_masks(struct pm_second_stage *s, const struct pm_second_predictor *p,
                           struct pm_node *features);
/* Builds the keypoint head on the same features: second_keypoints.c. Sets the net's error if the
 * data has no keypoints. */
void pm_second_stage_keypoints(struct pm_second_stage *s, const struct pm_second_predictor *p,
                               struct pm_node *features);

#endif
