/* faster_rcnn: Faster R-CNN (Ren et al. 2015). Its first stage proposes regions: the classifier up
 * to stride 16, a convolution with relu6, and a convolutional predictor of one class and the
 * background. So it is a detector with one map and is built as one (ssd.h). The second stage is in
 * second_stage.c. Names and defaults are those of TensorFlow's Object Detection API
 * (meta_architectures/faster_rcnn_meta_arch.py). The classifier's last block, which the API builds
 * in the first stage, too, without ever training it there, is built in the second stage only.
 *
 * Lists of layers can replace the classifier's layers in either stage (stage_lists.c). */
#include "nets/second_stage.h"

#define OPTIONS(decay, epsilon, crop, pool, ...)                                                   \
    {                                                                                              \
        PM_NETS_DEPTH(1, 16),                                                                      \
        PM_DOUBLE(pm_nets_options, batch_norm_decay, decay, 0, 1,                                  \
                  "decay of batch norm's moving averages"),                                        \
        PM_FLOAT(pm_nets_options, batch_norm_epsilon, epsilon, 0, 1,                               \
                 "added to batch norm's variance"),                                                \
        PM_BOOL(pm_nets_options, batch_norm_train, false,                                          \
                "normalise with the statistics of the batch; false: with the moving averages, "    \
                "which then do not change: start from a pretrained checkpoint"),                   \
        PM_JSON(pm_ssd_options, anchors, PM_SSD_HELP_ANCHORS),                                     \
        PM_INT(pm_ssd_options, first_stage_atrous_rate, 1, 1, 16,                                  \
               "dilation of the convolution before the first stage's predictor"),                  \
        PM_INT(pm_ssd_options, first_stage_box_predictor_kernel_size, 3, 1, 31,                    \
               "window of this convolution"),                                                      \
        PM_INT(pm_ssd_options, first_stage_box_predictor_depth, 512, 1, 1 << 16,                   \
               "channels of this convolution"),                                                    \
        PM_JSON(pm_ssd_options, box_predictor, PM_SSD_HELP_PREDICTOR),                             \
        PM_INT(pm_ssd_options, initial_crop_size, crop, 1, 1024,                                   \
               "height and width of the regions' crops, before the pool"),                         \
        PM_INT(pm_ssd_options, maxpool_kernel_size, pool, 1, 64, "window of the pool on crops"),   \
        PM_INT(pm_ssd_options, maxpool_stride, pool, 1, 64, "step of this pool"),                  \
        PM_JSON(pm_ssd_options, second_stage_box_predictor, PM_SECOND_HELP_PREDICTOR),             \
        PM_JSON(pm_ssd_options, hyperparams, PM_SSD_HELP_HYPERPARAMS),                             \
        PM_JSON(pm_ssd_options, first_stage_layers,                                                \
                "list of layers, as in model.layers, in the place of the classifier's layers up "  \
                "to the map that the first stage reads; the anchors' default stride is that of "   \
                "the list's last map"),                                                            \
        PM_JSON(pm_ssd_options, second_stage_layers,                                               \
                "list of layers in the place of the classifier's last ones: they read the crops "  \
                "(named crops in inputs) or, with rfcn, the whole map; [] = none"),                \
        __VA_ARGS__                                                                                \
    }
#define STRIDE                                                                                     \
    PM_INT(pm_ssd_options, first_stage_features_stride, 16, 8, 16,                                 \
           "pixels of the image for each cell of the map that the first stage reads: 16, or 8 "    \
           "for a finer map of dilated layers; the anchors have the same stride by default; not "  \
           "used with first_stage_layers")
#define ANCHORS                                                                                    \
    "{\"type\": \"grid\", \"scales\": [0.25, 0.5, 1, 2], \"aspect_ratios\": [0.5, 1, 2]}"
/* Of rotated boxes, as RBox-CNN: 84 in a cell. */
#define ROTATED_ANCHORS                                                                            \
    "{\"type\": \"grid\", \"scales\": [0.25, 0.5, 0.75, 1], \"aspect_ratios\": [3, 5, 7], "        \
    "\"angles\": [-1.57079633, -1.0471976, -0.5235988, 0, 0.5235988, 1.0471976, 1.57079633]}"
#define HYPERPARAMS                                                                                \
    "{\"initializer\": \"truncated(0.01)\", \"regularize\": false, \"batch_norm\": false}"

/* What Faster R-CNN does unlike SSD. total: detections of an image. */
#define OBJECTS(total)                                                                             \
    {                                                                                              \
        { "model.anchors_outside", "prune" },                                                      \
        { "model.matcher", "matched_threshold=0.7 unmatched_threshold=0.3 "                        \
                           "force_match_for_each_row=true" },                                      \
        { "model.post_processing", "score_converter=softmax iou_threshold=0.6 "                    \
                                   "max_detections_per_class=100 max_total_detections=" #total },  \
        { "loss.classification", "type=weighted_softmax" },                                        \
        { "loss.minibatch_sampler", "" },                                                          \
        { 0 },                                                                                     \
    }
static const struct pm_object_default objects[] = OBJECTS(300);
static const struct pm_object_default inception_resnet_objects[] = OBJECTS(100);

/* RBox-CNN's, for model.boxes=rotated: of several boxes that claim an anchor the last gets it, and
 * all classes are suppressed together. */
static const struct pm_object_default rotated_objects[] = {
    { "model.anchors_outside", "prune" },
    { "model.matcher", "matched_threshold=0.6 unmatched_threshold=0.3 "
                       "force_match_for_each_row=true strict=true" },
    { "model.proposals", "iou_threshold=0.6 max_proposals=100" },
    { "model.post_processing", "score_converter=softmax score_threshold=0.01 iou_threshold=0.3 "
                               "use_class_agnostic_nms=true max_detections_per_class=100 "
                               "max_total_detections=100" },
    { "loss.classification", "type=weighted_softmax" },
    { "loss.localization", "weight=2" },
    { "loss.minibatch_sampler", "" },
    { "loss.proposal_sampler", "iou_threshold=0.4" },
    { "loss.second_stage", "localization_weight=2" },
    { 0 },
};

#define FIRST "Conv" /* the convolution that reads the first stage's map */

struct pm_node *pm_first_stage_map(const struct pm_net *net)
{
    return pm_net_find(net, FIRST)->in[0];
}

void pm_pyramid_first_stage(struct pm_ssd *s)
{
    const struct pm_extractor *e = s->form->extractor;
    struct pm_node *map =
        s->listed ? s->listed : pm_pyramid_map(s, e->crops.name ? &e->crops : &e->maps[0]);
    const struct pm_unit u = {
        .name = FIRST, .filters = s->o->first_stage_box_predictor_depth,
        .kernel = s->o->first_stage_box_predictor_kernel_size,
        .rate = s->o->first_stage_atrous_rate, .activation = "relu6",
    };

    s->maps[0] = pm_unit_build(s, &s->hyperparams, &u, map);
    s->count = 1;
}

static bool stride_fits(struct pm_net *net, int stride)
{
    if ((stride & (stride - 1)) != 0 && !net->error)
        net->error = pm_fail(PM_ECONFIG, "model.first_stage_features_stride: %d is not possible: "
                             "set it to 16 or 8", stride);
    return !net->error;
}

static void build(const struct pm_ssd_form *form, struct pm_net *net, struct pm_node *images,
                  int num_classes, const struct pm_ssd_options *o, struct pm_heads *heads)
{
    if (pm_stage_list_given(o->first_stage_layers) ||
        stride_fits(net, o->first_stage_features_stride))
        pm_ssd_build(form, net, images, num_classes, o, heads);
}

#define NET(id, base, text, prep, table, replaced, recipe)                                         \
    static const struct pm_ssd_form form_##id = {                                                  \
        .name = "faster_rcnn_" #id, .extractor = &pm_extractor_##base,                             \
        .pyramid = PM_SSD_FIRST_STAGE, .least = 33, .override = replaced,                          \
        .feature_scope = "FirstStageFeatureExtractor",                                             \
        .predictor_scope = "FirstStageBoxPredictor/", .anchors = ANCHORS,                          \
        .box_predictor = "{\"type\": \"convolutional\"}", .hyperparams = HYPERPARAMS,              \
        .rotated_anchors = ROTATED_ANCHORS,                                                        \
    };                                                                                             \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *options, struct pm_heads *heads)                            \
    {                                                                                              \
        build(&form_##id, net, images, num_classes, options, heads);                               \
    }                                                                                              \
    static void second_##id(struct pm_net *net, const struct pm_regions *regions, int num_classes, \
                            const void *options, struct pm_heads *heads)                           \
    {                                                                                              \
        pm_second_stage_build(&form_##id, net, regions, num_classes, options, heads);              \
    }                                                                                              \
    const struct pm_net_row pm_net_row_faster_rcnn_##id = {                                        \
        .name = "faster_rcnn_" #id, .help = "Faster R-CNN with " text,                             \
        .task = "detection", .opts = table, .cfg_size = sizeof(struct pm_ssd_options),             \
        .default_size = 600, .default_channels = 3, .preprocessing = prep, .objects = recipe,      \
        .rotated_objects = rotated_objects,                                                        \
        .build = build_##id, .second = second_##id,                                                \
    }

static const struct pm_opt plain_options[] = OPTIONS(0.9997, 0.001, 14, 2, { 0 });
/* The fused kernel never uses a smaller epsilon; the original asks for 1e-5. */
static const struct pm_opt resnet_options[] = OPTIONS(0.997, 1.001e-5, 14, 2, STRIDE, { 0 });

/* Its second stage starts with a strided layer, so crops need no pool. */
static const struct pm_opt inception_resnet_options[] =
    OPTIONS(0.9997, 0.001, 17, 1, STRIDE, { 0 });

/* The API gives Inception v2 a scale in batch norm, which its classifier does not have, and leaves
 * it the library's initial weights. */
static const struct pm_nets_override inception_v2 = { "xavier", "relu", true, true };

NET(mobilenet_v1, mobilenet_v1, "MobileNet v1", "ssd_black", plain_options, NULL, objects);
NET(resnet50, resnet_v1_50, "ResNet 50", "ssd_means_black", resnet_options, NULL, objects);
NET(resnet101, resnet_v1_101, "ResNet 101", "ssd_means_black", resnet_options, NULL, objects);
NET(resnet152, resnet_v1_152, "ResNet 152", "ssd_means_black", resnet_options, NULL, objects);
NET(inception_v2, inception_v2, "Inception v2", "ssd_black", plain_options, &inception_v2, objects);
NET(inception_resnet_v2, inception_resnet_v2, "Inception-ResNet v2", "ssd_black",
    inception_resnet_options, NULL, inception_resnet_objects);
