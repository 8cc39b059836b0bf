/* ssd_rows: the named one-stage detectors of TensorFlow's Object Detection API. Defaults are those
 * of its published configurations for COCO. */
#include "nets/ssd.h"

#define ANCHORS                                                                                    \
    "{\"type\": \"ssd\", \"min_scale\": 0.2, \"max_scale\": 0.95,"                                 \
    " \"aspect_ratios\": [1, 2, 0.5, 3, 0.3333]}"
#define ANCHORS_OF_LEVELS                                                                          \
    "{\"type\": \"multiscale\", \"anchor_scale\": 4, \"aspect_ratios\": [1, 2, 0.5],"              \
    " \"scales_per_octave\": 2}"
#define ANCHORS_OF_POOLING                                                                         \
    "{\"type\": \"ssd\", \"min_scale\": 0.15, \"max_scale\": 0.95,"                                \
    " \"aspect_ratios\": [1, 2, 0.5, 3, 0.3333], \"reduce_boxes_in_lowest_layer\": false}"
/* rest: further members. */
#define HYPERPARAMS(init, rest) "{\"initializer\": \"" init "\"" rest "}"
#define CONVOLUTIONAL(rest) "{\"type\": \"convolutional\"" rest "}"
#define SHARED(rest)                                                                               \
    "{\"type\": \"weight_shared\", \"hyperparams\": {\"initializer\": \"normal(0.01)\"}" rest "}"
#define USUAL HYPERPARAMS("truncated(0.03)", "")
/* The fused kernel never uses a smaller epsilon; the original's ResNet asks for 1e-5. */
#define RESNET_EPSILON 1.001e-5
#define BESIDE_RESNET HYPERPARAMS("truncated(0.03)", ", \"batch_norm_epsilon\": 0.001")

#define UNWRAP(...) __VA_ARGS__
/* size: default of input.size. prep: preprocessing. decay: weight decay. fields: members of the
 * form, in parentheses. The options end in { 0 }. */
#define NET(id, text, size, prep, decay, fields, ...)                                              \
    static const struct pm_opt options_##id[] = { __VA_ARGS__ };                                   \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *options, struct pm_heads *heads)                            \
    {                                                                                              \
        static const struct pm_ssd_form form = { .name = #id, UNWRAP fields };                     \
                                                                                                   \
        pm_ssd_build(&form, net, images, num_classes, options, heads);                             \
    }                                                                                              \
    const struct pm_net_row pm_net_row_##id = {                                                    \
        .name = #id, .help = text, .task = "detection", .opts = options_##id,                      \
        .cfg_size = sizeof(struct pm_ssd_options), .default_size = size, .default_channels = 3,    \
        .preprocessing = prep, .weight_decay = decay, .build = build_##id,                         \
    }

/* ---- extra layers ---------------------------------------------------------------------------- */

/* Widths by the map's index; 0: a map of the classifier. */
static const int depths[] = { 0, 0, 512, 256, 256, 128 };
static const int depths_inception_v3[] = { 0, 0, 0, 512, 256, 128 };
static const int kernels_embedded[] = { 0, 0, 3, 3, 2 };

#define EXTRA_OPTIONS(width, epsilon, overrides, maps)                                             \
    PM_SSD_OPTIONS(width, 0.9997, epsilon, overrides, true), PM_SSD_LAYERS(maps),                  \
        PM_SSD_DEPTHWISE(false), PM_SSD_PADDING, { 0 }

NET(ssd_mobilenet_v1, "SSD: MobileNet v1 and four smaller maps", 300, "ssd", 4e-5f,
    (.extractor = &pm_extractor_mobilenet_v1, .anchors = ANCHORS, .depths = depths,
     .box_predictor = CONVOLUTIONAL(""), .hyperparams = USUAL, .regularize_depthwise = true),
    EXTRA_OPTIONS(1, 0.001, false, 6));
NET(ssd_mobilenet_v2, "SSD: MobileNet v2 and four smaller maps; SSDLite with use_depthwise", 300,
    "ssd", 4e-5f,
    (.extractor = &pm_extractor_mobilenet_v2, .anchors = ANCHORS, .depths = depths,
     .box_predictor = CONVOLUTIONAL(""), .hyperparams = USUAL),
    EXTRA_OPTIONS(1, 0.001, false, 6));
NET(ssd_inception_v2, "SSD: Inception v2 and four smaller maps", 300, "ssd", 4e-5f,
    (.extractor = &pm_extractor_inception_v2, .anchors = ANCHORS, .depths = depths,
     .box_predictor = CONVOLUTIONAL(", \"kernel_size\": 3"), .hyperparams = USUAL),
    EXTRA_OPTIONS(1, 0.001, true, 6));
NET(ssd_inception_v3, "SSD: Inception v3 and three smaller maps", 300, "ssd", 4e-5f,
    (.extractor = &pm_extractor_inception_v3, .anchors = ANCHORS, .depths = depths_inception_v3,
     .box_predictor = CONVOLUTIONAL(", \"kernel_size\": 3, \"hyperparams\": " USUAL),
     .hyperparams = HYPERPARAMS("truncated(0.1)", "")),
    EXTRA_OPTIONS(1, 0.01, true, 6));
NET(embedded_ssd_mobilenet_v1, "SSD for small devices: MobileNet v1 and three smaller maps", 256,
    "ssd", 4e-5f,
    (.extractor = &pm_extractor_mobilenet_v1, .anchors = ANCHORS, .depths = depths,
     .kernels = kernels_embedded, .box_predictor = CONVOLUTIONAL(""), .hyperparams = USUAL),
    EXTRA_OPTIONS(0.125, 0.001, false, 5));

/* SSDLite of the MobileNet v3 paper. */
#define LITE(id, text, base)                                                                       \
    NET(id, text, 320, "ssd", 4e-5f,                                                               \
        (.extractor = &pm_extractor_##base, .anchors = ANCHORS, .depths = depths,                  \
         .box_predictor = CONVOLUTIONAL(", \"kernel_size\": 3, \"use_depthwise\": true,"           \
                                        " \"class_prediction_bias_init\": -4.6"),                  \
         .hyperparams = USUAL),                                                                \
        PM_SSD_OPTIONS(1, 0.97, 0.001, true, true), PM_SSD_LAYERS(6), PM_SSD_DEPTHWISE(true),      \
        PM_SSD_PADDING, { 0 })

LITE(ssd_mobilenet_v3_large, "SSDLite: MobileNet v3, large, and four smaller maps",
     mobilenet_v3_large);
LITE(ssd_mobilenet_v3_small, "SSDLite: MobileNet v3, small, and four smaller maps",
     mobilenet_v3_small);

/* ---- feature pyramids ------------------------------------------------------------------------ */

#define MOBILE_FPN(id, text, base)                                                                 \
    NET(id, text, 640, "ssd", 4e-5f,                                                               \
        (.extractor = &pm_extractor_##base, .pyramid = PM_SSD_TOP_DOWN,                            \
         .anchors = ANCHORS_OF_LEVELS, .box_predictor = SHARED(""), .hyperparams = USUAL),     \
        PM_SSD_OPTIONS(1, 0.997, 0.001, true, true), PM_SSD_FPN(256), PM_SSD_DEPTHWISE(false),     \
        PM_SSD_PADDING, { 0 })
#define RESNET_FPN(depth)                                                                          \
    NET(ssd_resnet_v1_##depth##_fpn, "ResNet " #depth " and a feature pyramid", 640, "ssd_means",  \
        4e-4f,                                                                                     \
        (.extractor = &pm_extractor_resnet_v1_##depth, .pyramid = PM_SSD_TOP_DOWN,                 \
         .anchors = ANCHORS_OF_LEVELS, .box_predictor = SHARED(""),                                \
         .hyperparams = BESIDE_RESNET),                                                            \
        PM_SSD_OPTIONS(1, 0.997, RESNET_EPSILON, true, true), PM_SSD_FPN(256), { 0 })

MOBILE_FPN(ssd_mobilenet_v1_fpn, "MobileNet v1 and a feature pyramid", mobilenet_v1);
MOBILE_FPN(ssd_mobilenet_v2_fpn, "MobileNet v2 and a feature pyramid; FPNLite with use_depthwise",
           mobilenet_v2);
RESNET_FPN(50);
RESNET_FPN(101);
RESNET_FPN(152);

/* ---- pooling pyramids ------------------------------------------------------------------------ */

#define POOLED                                                                                     \
    SHARED(", \"depth\": 512, \"num_layers_before_predictor\": 1, \"kernel_size\": 1,"             \
           " \"share_prediction_tower\": true")
#define RESNET_PPN(depth)                                                                          \
    NET(ssd_resnet_v1_##depth##_ppn, "ResNet " #depth " and a pooling pyramid", 300, "ssd_means",  \
        4e-5f,                                                                                     \
        (.extractor = &pm_extractor_resnet_v1_##depth, .pyramid = PM_SSD_POOLING, .pooled = 1024,  \
         .anchors = ANCHORS_OF_POOLING, .box_predictor = POOLED, .hyperparams = BESIDE_RESNET),    \
        PM_SSD_OPTIONS(1, 0.997, RESNET_EPSILON, true, true), PM_SSD_LAYERS(6), { 0 })

NET(ssd_mobilenet_v1_ppn, "MobileNet v1 and a pooling pyramid", 300, "ssd", 4e-5f,
    (.extractor = &pm_extractor_mobilenet_v1, .pyramid = PM_SSD_POOLING,
     .anchors = ANCHORS_OF_POOLING, .box_predictor = POOLED,
     .hyperparams = HYPERPARAMS("normal(0.01)", "")),
    PM_SSD_OPTIONS(1, 0.97, 0.001, true, true), PM_SSD_LAYERS(6), PM_SSD_PADDING, { 0 });
RESNET_PPN(50);
RESNET_PPN(101);
RESNET_PPN(152);
