/* ssd: what the parts of a one-stage detector, or of the first stage of Faster R-CNN
 * (faster_rcnn.c), share while ssd_build.c builds it. An extractor
 * (extractors.h) gives maps, a pyramid (feature_pyramid.c) adds smaller ones or joins them, an
 * anchors layer puts boxes on each map, and a predictor (box_predictor.h) reads codes and class
 * logits from it.
 * Layers, names and defaults are those of TensorFlow's Object Detection API.
 *
 * Heads: boxes_1 [n,h,w,A*4] (with K coded keypoints A*(4 + 2 K), of rotated boxes A*5), classes_1
 * [n,h,w,A*C], boxes_2, classes_2, ..., and anchors [N,4], or rotated ones [N,5]. A is the level's
 * number of anchors per cell, C the number of classes, plus one if the background is a class; it is
 * then column 0. The nodes of heads have the same names as the heads. */
#ifndef PM_SSD_H
#define PM_SSD_H

#include "layers/anchors.h"
#include "nets/extractors.h"

/* ---- options ---------------------------------------------------------------------------- */

struct pm_ssd_options {
    struct pm_nets_options nets;  /* depth_multiplier, batch norm ... */
    /* Objects; NULL: the net's default. */
    const struct cJSON *anchors, *box_predictor, *hyperparams;
    bool override_base_feature_extractor_hyperparams;
    bool background_class;
    int num_layers;               /* maps of a pyramid of extra layers */
    bool use_depthwise;
    int fpn_min_level, fpn_max_level, additional_layer_depth;
    int upsampling;               /* of retinanet: UPSAMPLING_... in retinanet.c */
    bool separate_heads;          /* of retinanet: every level has a predictor of its own */
    /* Of faster_rcnn nets. */
    int first_stage_atrous_rate, first_stage_box_predictor_kernel_size,
        first_stage_box_predictor_depth;
    int first_stage_features_stride; /* 0: the extractor's own */
    const struct cJSON *first_stage_layers, *second_stage_layers; /* NULL, null: the extractor's */
    int initial_crop_size, maxpool_kernel_size, maxpool_stride;
    const struct cJSON *second_stage_box_predictor; /* as box_predictor */
};

#define PM_SSD_HELP_ANCHORS                                                                        \
    "boxes that the predicted codes refer to: {\"type\": \"ssd\", \"multiscale\", \"grid\" or "    \
    "\"flexible_grid\", and options of the layer TYPE_anchors}; missing members and null: the "    \
    "net's own"
#define PM_SSD_HELP_PREDICTOR                                                                      \
    "layers that predict boxes and classes: {\"type\": \"convolutional\" or \"weight_shared\", "   \
    "\"kernel_size\", \"num_layers_before_predictor\", \"use_depthwise\", \"use_dropout\", "       \
    "\"dropout_keep_probability\", \"class_prediction_bias_init\", \"box_encodings_clip_range\", " \
    "\"hyperparams\"}; convolutional has \"min_depth\" and \"max_depth\", weight_shared "          \
    "\"depth\" and \"share_prediction_tower\", and its tower keeps the net's activation; missing " \
    "members and null: the net's own"
#define PM_SSD_HELP_HYPERPARAMS                                                                    \
    "settings of the layers added to the classifier: {\"activation\", \"initializer\", "           \
    "\"regularize\", \"batch_norm\", \"batch_norm_scale\", \"batch_norm_center\", "                \
    "\"batch_norm_decay\", \"batch_norm_epsilon\"}; missing members and null: the net's own"

/* The options of all detectors here. Parameters are defaults. */
#define PM_SSD_OPTIONS(width, decay, epsilon, overrides, background)                               \
    PM_NETS_DEPTH(width, 16), PM_NETS_BATCH_NORM(decay, epsilon),                                  \
    PM_JSON(pm_ssd_options, anchors, PM_SSD_HELP_ANCHORS),                                         \
    PM_JSON(pm_ssd_options, box_predictor, PM_SSD_HELP_PREDICTOR),                                 \
    PM_JSON(pm_ssd_options, hyperparams, PM_SSD_HELP_HYPERPARAMS),                                 \
    PM_BOOL(pm_ssd_options, override_base_feature_extractor_hyperparams, overrides,                \
            "hyperparams apply to the classifier's layers, too"),                                  \
    PM_BOOL(pm_ssd_options, background_class, background,                                          \
            "predict the background as a class of its own, column 0 of the logits")
#define PM_SSD_DEPTHWISE(yes)                                                                      \
    PM_BOOL(pm_ssd_options, use_depthwise, yes,                                                    \
            "depthwise separable convolutions in the layers added to the classifier")
#define PM_SSD_PADDING                                                                             \
    PM_BOOL(pm_nets_options, use_explicit_padding, false,                                          \
            "pad strided convolutions symmetrically for every size")
#define PM_SSD_LAYERS(most)                                                                        \
    PM_INT(pm_ssd_options, num_layers, most, 1, most, "number of maps that boxes are predicted "   \
                                                      "from")
#define PM_SSD_FPN(depth)                                                                          \
    PM_INT(pm_ssd_options, fpn_min_level, 3, 2, 5,                                                 \
           "finest map that boxes are predicted from; level k has stride 2^k"),                    \
    PM_INT(pm_ssd_options, fpn_max_level, 7, 2, 8, "coarsest map"),                                \
    PM_INT(pm_ssd_options, additional_layer_depth, depth, 1, 1 << 16,                              \
           "channels of the feature pyramid, before depth_multiplier")

/* ---- a net being built ------------------------------------------------------------------- */

enum pm_ssd_pyramid { PM_SSD_EXTRA, PM_SSD_TOP_DOWN, PM_SSD_POOLING, PM_SSD_RETINANET,
                      PM_SSD_FIRST_STAGE };

/* What distinguishes a net from others. Texts are JSON objects. */
struct pm_ssd_form {
    const char *name;                   /* "ssd_mobilenet_v2" */
    const struct pm_extractor *extractor;
    enum pm_ssd_pyramid pyramid;
    const int *depths, *kernels;        /* of the extra layers; kernels NULL: 3 */
    int pooled;                         /* channels before a pooling pyramid; 0: the map's own */
    bool regularize_depthwise;          /* the classifier's depthwise weights have weight decay also
                                         * without an override */
    int least;                          /* least height and width of the images; 0: the
                                         * extractor's */
    /* Settings of the classifier that replace its own while those of the hyperparams do not; NULL:
     * none. */
    const struct pm_nets_override *override;
    const char *feature_scope;          /* of the extractor's variables; NULL: FeatureExtractor */
    const char *predictor_scope;        /* of the predictor's variables, with its "/"; NULL: none */
    const char *tower_activation;       /* of a shared predictor's towers; NULL: relu6 */
    const char *anchors, *box_predictor, *hyperparams; /* the net's defaults */
    const char *rotated_anchors; /* anchors of rotated boxes; NULL: the same with angles added */
};

/* Settings of convolutions that are added to a classifier. */
struct pm_hyperparams {
    int activation;
    const char *initializer;
    bool regularize, batch_norm, batch_norm_scale, batch_norm_center;
    double batch_norm_decay;  /* NAN: the net's */
    float batch_norm_epsilon; /* NAN: the net's */
};

struct pm_ssd {
    struct pm_net *net;
    const struct pm_ssd_form *form;
    const struct pm_ssd_options *o;
    struct pm_nets_options nets;        /* o->nets and what the net adds to it */
    struct cJSON *hyperparams_json;     /* owned until the net is built */
    struct pm_hyperparams hyperparams;  /* of the pyramid */
    const char *scope;                  /* beginning of the pyramid's names, with its "/" */
    struct pm_node *images, *maps[PM_MAX_LEVELS], *anchors;
    struct pm_node *listed;             /* map of first_stage_layers; NULL: of the extractor */
    int count;                          /* of maps */
    int columns;                        /* C: logits per anchor */
};

/* Returns the options of the classifier's layers that both stages of a detector build. */
struct pm_nets_options pm_ssd_nets(const struct pm_ssd_options *o);
/* Builds the net of a form: `build` of the rows (ssd_build.c). */
void pm_ssd_build(const struct pm_ssd_form *form, struct pm_net *net, struct pm_node *images,
                  int num_classes, const struct pm_ssd_options *o, struct pm_heads *heads);
/* Returns `defaults`, a JSON object, with the members of `given` (NULL: none) in place of its own;
 * objects in it are merged the same way, null keeps the default. If given has another "type",
 * nothing of the defaults remains. Sets the net's error and returns the defaults if given is no
 * object. option: its name for messages. The caller frees it with cJSON_Delete. */
struct cJSON *pm_ssd_merged(struct pm_net *net, const char *option, const struct cJSON *defaults,
                            const struct cJSON *given);
/* Returns the index of an object's "type" in the list types [count], or -1 after setting the net's
 * error. option: the object's name for messages. */
int pm_ssd_type(struct pm_net *net, const char *option, const struct cJSON *object, size_t count,
                const char *const *types);
/* Takes weight decay from the variables of the net from number `first` on: Faster R-CNN's
 * classifiers have none in either stage. */
void pm_ssd_clear_decay(struct pm_net *net, int first);
/* Adds the anchors, predictor and heads to maps that exist. */
void pm_ssd_finish(struct pm_ssd *s, struct pm_heads *heads);

/* ---- convolutions (hyperparams.c) ---------------------------------------------------------- */

/* Reads hyperparams; sets the net's error if they are wrong. where: place for messages. */
void pm_hyperparams_read(struct pm_net *net, const struct cJSON *object, const char *where,
                         struct pm_hyperparams *out);
/* Returns the name of an activation. */
const char *pm_hyperparams_activation(const struct pm_hyperparams *h);

/* A convolution of a detector. */
struct pm_unit {
    const char *name;        /* scope of its variables */
    int filters;             /* 0: a depthwise convolution of as many channels as the input has */
    int kernel, stride;      /* stride 0 is 1 */
    int rate;                /* dilation of a full convolution; 0 is 1 */
    bool separable;          /* a depthwise window, then 1x1, with nothing between them */
    bool linear;             /* no activation */
    bool plain;              /* neither batch norm nor activation, but a bias */
    const char *activation;  /* NULL: that of the hyperparams */
    const char *bias_init;   /* NULL: 0 */
    /* 0: its weights are its own. k: level k uses the weights of level 1, with a batch norm
     * NAME/BatchNorm/feature_(k - 1) of its own. Level 1 is built first. */
    int level;
    const char *node;        /* name of the last convolution's node; NULL: derived from `name` */
    const char *first;       /* node of level 1; needed if node is set and level is above 1 */
};
/* Builds it and returns its last node. */
struct pm_node *pm_unit_build(const struct pm_ssd *s, const struct pm_hyperparams *h,
                              const struct pm_unit *u, struct pm_node *x);

/* ---- pyramids (feature_pyramid.c) ---------------------------------------------------------- */

/* Fill s->maps and s->count. */
void pm_pyramid_extra(struct pm_ssd *s);
void pm_pyramid_top_down(struct pm_ssd *s);
void pm_pyramid_pooling(struct pm_ssd *s);
void pm_pyramid_retinanet(struct pm_ssd *s);   /* retinanet.c */
void pm_pyramid_first_stage(struct pm_ssd *s); /* faster_rcnn.c */
/* Returns the scope of the extractor's variables. */
const char *pm_pyramid_scope(const struct pm_ssd *s);
/* Returns the node of an extractor's map. */
struct pm_node *pm_pyramid_map(const struct pm_ssd *s, const struct pm_extractor_map *m);
/* Returns coarse enlarged to fine's size by repeating pixels, plus fine. NAME is the enlarged map's
 * name, NAME/sum that of the sum. */
struct pm_node *pm_pyramid_join(const struct pm_ssd *s, const char *name, struct pm_node *coarse,
                                struct pm_node *fine);

/* ---- stages as lists of layers (stage_lists.c) --------------------------------------------- */

/* Whether an option is set: not missing and not null. */
bool pm_stage_list_given(const struct cJSON *list);
/* Builds the list, the value of model.KEY, on x, which it calls `input`, with names in this scope.
 * Returns the last layer's map, of as many rows as x. Sets the net's error if the list is wrong. */
struct pm_node *pm_stage_list_build(struct pm_net *net, const char *scope, const char *key,
                                    const struct cJSON *list, const char *input,
                                    struct pm_node *x);
/* Returns the pixels between the rows (axis 0) or columns (1) of the map that first_stage_layers
 * makes of these images in this scope, found by building the list for larger ones. Returns 0 and
 * sets the net's error if they cannot be found. */
int pm_stage_list_stride(struct pm_net *net, const char *scope, const struct cJSON *list,
                         const struct pm_node *images, const struct pm_node *map, int axis);

#endif
