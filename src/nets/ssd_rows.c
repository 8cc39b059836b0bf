/* ssd_rows: the named one-stage detectors of TensorFlow's Object Detection API. Defaults are those
 * of its published configurations for COCO. */
#include "nets/ssd.h"

#define ANCHORS                                                                                    \
    "{\"type\": \"ssd\", \"min_scale\": 0.2, \"max_scale\": 0.95,"                                 \
    " \"aspect_ratios\": [1, 2, 0.5, 3, 0.3333]}"
#define ANCHORS_OF_LEVELS                                                                          \
    "{\"type\": \"multiscale\", \"anchor_scale\": 4, \"aspect_ratios\": [1, 2, 0.5],"              \
    " \"scales_per_octave\": 2}"
#define HYPERPARAMS(rest)                                                                          \
    "{\"activation\": \"relu6\", \"initializer\": \"truncated(0.03)\"" rest "}"
#define CONVOLUTIONAL(rest) "{\"type\": \"convolutional\"" rest "}"
#define SHARED(rest)                                                                               \
    "{\"type\": \"weight_shared\", \"hyperparams\": {\"initializer\": \"normal(0.01)\"}" rest "}"

/* size: default of input.size. prep: preprocessing. decay: weight decay. The options end in
 * { 0 }. */
#define NET(id, text, size, prep, decay, base, kind, boxes, predictor, settings,                   \
            extra_depths, extra_kernels, channels, ...)                                            \
    static const struct pm_opt options_##id[] = { __VA_ARGS__ };                                   \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *options, struct pm_heads *heads)                            \
    {                                                                                              \
        static const struct pm_ssd_form form = {                                                   \
            .name = #id, .extractor = &pm_extractor_##base, .pyramid = kind, .anchors = boxes,     \
            .box_predictor = predictor, .hyperparams = settings, .depths = extra_depths,           \
            .kernels = extra_kernels, .pooled = channels,                                          \
        };                                                                                         \
                                                                                                   \
        pm_ssd_build(&form, net, images, num_classes, options, heads);                             \
    }                                                                                              \
    const struct pm_net_row pm_net_row_##id = {                                                    \
        .name = #id, .help = text, .task = "detection", .opts = options_##id,                      \
        .cfg_size = sizeof(struct pm_ssd_options), .default_size = size, .default_channels = 3,    \
        .preprocessing = prep, .weight_decay = decay, .build = build_##id,                         \
    }

/* ---- extra layers ---------------------------------------------------------------------------- */

/* Depths by the map's index; 0: a map of the classifier. */
static const int depths[] = { 0, 0, 512, 256, 256, 128 };
static const int depths_inception_v3[] = { 0, 0, 0, 512, 256, 128 };

#define EXTRA_OPTIONS(depthwise, overrides)                                                        \
    PM_SSD_OPTIONS(0.9997, 0.001, overrides, true), PM_SSD_LAYERS(6), PM_SSD_DEPTHWISE(depthwise), \
        PM_SSD_PADDING, { 0 }
#define SSD(id, text, base, widths, predictor, ...)                                                \
    NET(id, text, 300, "ssd", 4e-5f, base, PM_SSD_EXTRA, ANCHORS, predictor, HYPERPARAMS(""),      \
        widths, NULL, 0, __VA_ARGS__)

SSD(ssd_mobilenet_v1, "SSD: MobileNet v1 and four smaller maps", mobilenet_v1, depths,
    CONVOLUTIONAL(""), EXTRA_OPTIONS(false, false));
SSD(ssd_mobilenet_v2, "SSD: MobileNet v2 and four smaller maps; SSDLite with use_depthwise",
    mobilenet_v2, depths, CONVOLUTIONAL(""), EXTRA_OPTIONS(false, false));
SSD(ssd_inception_v2, "SSD: Inception v2 and four smaller maps", inception_v2, depths,
    CONVOLUTIONAL(", \"kernel_size\": 3"), EXTRA_OPTIONS(false, true));
SSD(ssd_inception_v3, "SSD: Inception v3 and three smaller maps", inception_v3,
    depths_inception_v3, CONVOLUTIONAL(", \"kernel_size\": 3"), EXTRA_OPTIONS(false, true));

/* SSDLite of the MobileNet v3 paper, 320x320. */
#define LITE(id, text, base)                                                                       \
    NET(id, text, 320, "ssd", 4e-5f, base, PM_SSD_EXTRA, ANCHORS,                                  \
        CONVOLUTIONAL(", \"kernel_size\": 3, \"use_depthwise\": true,"                             \
                      " \"class_prediction_bias_init\": -4.6"), HYPERPARAMS(""), depths, NULL, 0,  \
        PM_SSD_OPTIONS(0.97, 0.001, true, true), PM_SSD_LAYERS(6), PM_SSD_DEPTHWISE(true),         \
        PM_SSD_PADDING, { 0 })

LITE(ssd_mobilenet_v3_large, "SSDLite: MobileNet v3, large, and four smaller maps",
     mobilenet_v3_large);
LITE(ssd_mobilenet_v3_small, "SSDLite: MobileNet v3, small, and four smaller maps",
     mobilenet_v3_small);

/* ---- feature pyramids ------------------------------------------------------------------------ */

#define FPN(id, text, prep, decay, base, epsilon, settings, ...)                                   \
    NET(id, text, 640, prep, decay, base, PM_SSD_TOP_DOWN, ANCHORS_OF_LEVELS, SHARED(""),          \
        settings, NULL, NULL, 0, PM_SSD_OPTIONS(0.997, epsilon, true, true), PM_SSD_FPN(256),      \
        __VA_ARGS__)
#define MOBILE_FPN(id, text, base)                                                                 \
    FPN(id, text, "ssd", 4e-5f, base, 0.001, HYPERPARAMS(""),                                      \
        PM_SSD_DEPTHWISE(false), PM_SSD_PADDING, { 0 })
/* The fused kernel never uses a smaller epsilon; the original's ResNet asks for 1e-5. */
#define RESNET_FPN(depth)                                                                          \
    FPN(ssd_resnet_v1_##depth##_fpn, "RetinaNet as an SSD: ResNet " #depth " and a feature "       \
        "pyramid", "ssd_means", 4e-4f, resnet_v1_##depth, 1.001e-5,                                \
        HYPERPARAMS(", \"batch_norm_epsilon\": 0.001"), { 0 })

MOBILE_FPN(ssd_mobilenet_v1_fpn, "MobileNet v1 and a feature pyramid", mobilenet_v1);
MOBILE_FPN(ssd_mobilenet_v2_fpn, "MobileNet v2 and a feature pyramid; FPNLite with use_depthwise",
           mobilenet_v2);
RESNET_FPN(50);
RESNET_FPN(101);
RESNET_FPN(152);
