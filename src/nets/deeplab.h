/* deeplab: the parts of segmentation nets. A backbone gives a map at output_stride and names the
 * nodes whose maps a decoder joins. It is a file deeplab_BACKBONE.c, or the file of the classifier
 * that it is based on. deeplab.c adds pyramid pooling (deeplab_aspp.c), decoder (deeplab_decoder.c)
 * and logits. Variables have DeepLab's names. */
#ifndef PM_DEEPLAB_H
#define PM_DEEPLAB_H

#include "nets/nets.h"

/* ---- options ---------------------------------------------------------------------------- */

/* Options of model deeplab_BACKBONE, in addition to those that all nets share. Sizes are [height,
 * width]. */
struct pm_deeplab_options {
    struct pm_nets_options nets;        /* output_stride, depth_multiplier, batch norm ... */
    double head_batch_norm_decay;       /* of the layers after the backbone */
    struct pm_ints multi_grid;          /* dilations of the last block's units; empty: 1 */
    int nas_stem_filters;               /* width of searched cells at output stride 4 */
    bool nas_classification_head, nas_remove_os32_stride;
    bool bounded_activation;            /* use relu6, and clip sums to +-6 */
    struct pm_floats image_pyramid;     /* scales of the images; empty: 1 */
    int merge_method;                   /* enum: 0 max, 1 avg */
    int logits_kernel_size;
    struct pm_ints aspp_rates;
    int aspp_filters;
    bool aspp_batch_norm, aspp_separable, aspp_image_level, aspp_concat_projection;
    bool aspp_squeeze_excite, aspp_se_qsigmoid;
    struct pm_ints aspp_pooling_crop;   /* empty: the input's size */
    struct pm_ints aspp_pooling_stride;
    const char *dense_prediction_cell;  /* JSON file, replaces pyramid pooling; NULL: none */
    struct pm_ints decoder_strides;     /* in descending order; empty: no decoder */
    bool decoder_separable, decoder_sum_merge, decoder_is_logits;
    int decoder_filters;
    bool instance;                      /* also build heads for centres and offsets */
    struct pm_ints decoder_filters_instance;
    int edge_classes;                   /* classes of an edge head; 0: no edge head */
};

/* The options of every deeplab net. Batch norm's defaults are those of the backbone. */
#define PM_DEEPLAB_OPTIONS(stride, decay, epsilon)                                                 \
    PM_INT(pm_nets_options, output_stride, stride, 4, 32,                                          \
           "image size divided by the size of the backbone's last map, a power of 2; layers "      \
           "beyond it use dilation instead of stride"),                                            \
    PM_NETS_BATCH_NORM(decay, epsilon),                                                            \
    PM_DOUBLE(pm_deeplab_options, head_batch_norm_decay, 0.9997, 0, 1,                             \
              "decay of batch norm's moving averages in pyramid pooling and decoder; use a "       \
              "lower value for short runs"),                                                       \
    PM_BOOL(pm_deeplab_options, bounded_activation, false,                                         \
            "relu6 instead of relu, and in Xception also clipping of linear outputs to -6..6, "    \
            "for integer inference"),                                                              \
    PM_FLOAT(pm_nets_options, keep_prob, 0.9, 0.01, 1,                                             \
             "probability that dropout keeps an output of the pyramid pooling"),                   \
    PM_FLOATS(pm_deeplab_options, image_pyramid, "[1]", 0.1, 4,                                    \
              "scales of the input; the logits of all scales are merged"),                         \
    PM_ENUM(pm_deeplab_options, merge_method, 0, "max|avg", "how the logits of several scales "    \
                                                            "are merged"),                         \
    PM_INT(pm_deeplab_options, logits_kernel_size, 1, 1, 31,                                       \
           "kernel size of the logits if aspp_batch_norm=false"),                                  \
    PM_DEEPLAB_ASPP_OPTIONS, PM_DEEPLAB_DECODER_OPTIONS, PM_DEEPLAB_INSTANCE_OPTIONS,             \
    PM_DEEPLAB_EDGE_OPTIONS

#define PM_DEEPLAB_ASPP_OPTIONS                                                                    \
    PM_INTS(pm_deeplab_options, aspp_rates, "[]", 1, 256,                                          \
            "dilations of the pyramid pooling's 3x3 branches: [6, 12, 18] at output_stride 16, "   \
            "twice that at 8; empty: no such branches"),                                           \
    PM_INT(pm_deeplab_options, aspp_filters, 256, 1, 1 << 16, "channels of each branch of the "    \
                                                              "pyramid pooling"),                  \
    PM_BOOL(pm_deeplab_options, aspp_batch_norm, true,                                             \
            "false: no pyramid pooling; the logits are the sum of one convolution per rate"),      \
    PM_BOOL(pm_deeplab_options, aspp_separable, true,                                              \
            "3x3 branches are depthwise separable convolutions"),                                  \
    PM_BOOL(pm_deeplab_options, aspp_image_level, true,                                            \
            "add a branch with the average over the picture"),                                     \
    PM_INTS(pm_deeplab_options, aspp_pooling_crop, "[]", 1, 1 << 16,                               \
            "picture size [height, width], or one number for both, that sets the window of the "   \
            "average; empty: the window is the whole picture"),                                    \
    PM_INTS(pm_deeplab_options, aspp_pooling_stride, "[1, 1]", 1, 256,                             \
            "stride of that window [rows, columns], or one number for both"),                      \
    PM_BOOL(pm_deeplab_options, aspp_concat_projection, true,                                      \
            "a 1x1 convolution and dropout follow the concatenated branches"),                     \
    PM_BOOL(pm_deeplab_options, aspp_squeeze_excite, false,                                        \
            "the average over the picture scales the result instead of being a branch (squeeze "   \
            "and excite)"),                                                                        \
    PM_BOOL(pm_deeplab_options, aspp_se_qsigmoid, false,                                           \
            "the scale is relu6(x + 3) / 6 instead of the sigmoid"),                               \
    PM_STRING(pm_deeplab_options, dense_prediction_cell, NULL,                                     \
              "JSON file of a searched cell that replaces the pyramid pooling")

#define PM_DEEPLAB_DECODER_OPTIONS                                                                 \
    PM_INTS(pm_deeplab_options, decoder_strides, "[]", 4, 16,                                      \
            "strides (4, 8 or 16, descending) of the backbone's maps that the decoder merges "     \
            "with the pyramid pooling; empty: no decoder"),                                        \
    PM_BOOL(pm_deeplab_options, decoder_separable, true,                                           \
            "the decoder's 3x3 convolutions are depthwise separable"),                             \
    PM_BOOL(pm_deeplab_options, decoder_sum_merge, false,                                          \
            "the decoder adds the maps after one convolution; false: it concatenates them, then "  \
            "applies two"),                                                                        \
    PM_INT(pm_deeplab_options, decoder_filters, 256, 1, 1 << 16, "channels of the decoder"),       \
    PM_BOOL(pm_deeplab_options, decoder_is_logits, false,                                          \
            "the decoder's output is the logits; decoder_filters is then the number of classes")

#define PM_DEEPLAB_EDGE_OPTIONS                                                                    \
    PM_INT(pm_deeplab_options, edge_classes, 0, 0, 256,                                            \
           "classes of an additional output for the edges between classes: 2 = edge or not, "      \
           "more = also bands beside the edge; 0 = no such output")

#define PM_DEEPLAB_INSTANCE_OPTIONS                                                                \
    PM_BOOL(pm_deeplab_options, instance, false,                                                   \
            "add a second pyramid pooling and decoder that predict the instances' centres and "    \
            "the offsets to them"),                                                                \
    PM_INTS(pm_deeplab_options, decoder_filters_instance, "[128, 32]", 1, 1 << 16,                 \
            "channels of the instance decoder and of its two heads")

/* ---- backbones -------------------------------------------------------------------------- */

struct pm_backbone {
    const char *name;                   /* "mobilenet_v2" */
    int min_stride, max_stride;         /* limits of output_stride, powers of 2 */
    /* Builds the backbone on the given images, unchanged, and returns its last map. */
    struct pm_node *(*build)(struct pm_net *net, struct pm_node *images,
                             const struct pm_deeplab_options *o);
    /* Names of the nodes at strides 4, 8 and 16 for the decoder; NULL: none. With a bounded
     * activation, NODE/clip is used if the net has it. */
    const char *low[3];
};

/* Option depth_multiplier scales the widths. divisible_by 0 means 8, or 1 if the multiplier is not
 * 1. */
extern const struct pm_backbone pm_backbone_mobilenet_v2;
/* Option: depth_multiplier. */
extern const struct pm_backbone pm_backbone_mobilenet_v3_large_seg,
    pm_backbone_mobilenet_v3_small_seg, pm_backbone_mobilenet_edgetpu;
/* Options: multi_grid, three dilations in the last block; bounded_activation. */
extern const struct pm_backbone pm_backbone_xception_41, pm_backbone_xception_65,
    pm_backbone_xception_71;
/* Option: multi_grid, a dilation per unit of the last block: three, or two for resnet_v1_18. */
extern const struct pm_backbone pm_backbone_resnet_v1_18, pm_backbone_resnet_v1_18_beta,
    pm_backbone_resnet_v1_50, pm_backbone_resnet_v1_50_beta, pm_backbone_resnet_v1_101,
    pm_backbone_resnet_v1_101_beta;

/* Options: nas_..., drop_path_keep. */
extern const struct pm_backbone pm_backbone_nas_pnasnet, pm_backbone_nas_hnasnet;

/* Reads multi_grid as `count` numbers, all 1 if it is empty. Returns false and sets the net's error
 * if the list has another length. */
bool pm_backbone_grid(struct pm_net *net, const struct pm_backbone *b,
                      const struct pm_deeplab_options *o, int count, int *grid);

/* Defines the row of model deeplab_ID on pm_backbone_ID; deeplab_rows.c uses it. After the
 * backbone's batch norm (decay, epsilon) come its further options, ending in { 0 }. */
#define PM_DEEPLAB(id, text, source, weights_decay, decay, epsilon, ...)                           \
    PM_DEEPLAB_AT(16, id, text, source, weights_decay, decay, epsilon, __VA_ARGS__)
/* stride: default of output_stride. */
#define PM_DEEPLAB_AT(stride, id, text, source, weights_decay, decay, epsilon, ...)                \
    static const struct pm_opt options_##id[] = {                                                  \
        PM_DEEPLAB_OPTIONS(stride, decay, epsilon), __VA_ARGS__                                    \
    };                                                                                             \
    static void build_deeplab_##id(struct pm_net *net, struct pm_node *images, int num_classes,    \
                                   const void *options, struct pm_heads *heads)                    \
    {                                                                                              \
        pm_deeplab_build(net, images, num_classes, options, &pm_backbone_##id, heads);             \
    }                                                                                              \
    const struct pm_net_row pm_net_row_deeplab_##id = {                                            \
        .name = "deeplab_" #id, .help = text, .task = "segmentation", .opts = options_##id,        \
        .cfg_size = sizeof(struct pm_deeplab_options), .default_size = 513, .default_channels = 3, \
        .preprocessing = source, .weight_decay = weights_decay, .build = build_deeplab_##id,       \
    }

/* ---- the nets --------------------------------------------------------------------------- */

/* Returns scale_dimension of the originals: trunc((size - 1) scale + 1), in float32. */
int pm_deeplab_size(int size, float scale);

/* Builds a model deeplab_BACKBONE: `build` of the rows. */
void pm_deeplab_build(struct pm_net *net, struct pm_node *images, int num_classes,
                      const struct pm_deeplab_options *o, const struct pm_backbone *b,
                      struct pm_heads *heads);

/* ---- heads ------------------------------------------------------------------------------ */

/* The state for building the layers after the backbone. */
struct pm_deeplab {
    struct pm_net *net;
    const struct pm_deeplab_options *o;
    const struct pm_backbone *backbone;
    struct pm_nets_options norm; /* options of their batch norm */
    int classes;
    int size[2];                 /* size of the images at this scale */
    float scale;                 /* scale in the image pyramid */
    const char *instance;        /* "_instance" suffix of the second decoder's names, else "" */
};

/* Whether these options can be combined. Sets the net's error if not. */
bool pm_deeplab_check(struct pm_net *net, int num_classes, const struct pm_deeplab_options *o,
                      const struct pm_backbone *b);

/* Builds NAME and NAME/BatchNorm: a convolution with batch norm and an activation. */
struct pm_node *pm_deeplab_conv(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                                int filters, int kernel, int rate);
/* Builds NAME_depthwise and NAME_pointwise, each with batch norm and an activation. */
struct pm_node *pm_deeplab_separable(const struct pm_deeplab *d, const char *name,
                                     struct pm_node *x, int filters, int kernel, int rate);
/* Resizes bilinearly with aligned corners. Returns x itself if it already has that size. */
struct pm_node *pm_deeplab_resize(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                                  const int size[2]);
/* Averages over windows, with strides. The windows are the cells of a grid over maps of images of
 * the pooling crop's size. The output is smaller than x; the caller enlarges it to x's size after a
 * convolution. */
struct pm_node *pm_deeplab_average(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                                   const int grid[2], const int stride[2]);
/* Returns the height's (0) or width's (1) entry of a list of one or two numbers. */
int pm_deeplab_two(struct pm_ints v, int axis);
/* Returns the size of the map at a stride. */
void pm_deeplab_map(const struct pm_deeplab *d, int stride, int size[2]);

/* Builds pyramid pooling on the backbone's map, or the dense prediction cell that replaces it. */
struct pm_node *pm_deeplab_aspp(const struct pm_deeplab *d, struct pm_node *x);
struct pm_node *pm_deeplab_cell(const struct pm_deeplab *d, struct pm_node *x);
/* Builds the decoder on the pyramid pooling's map. */
struct pm_node *pm_deeplab_decoder(const struct pm_deeplab *d, struct pm_node *x);
/* Builds the 5x5 convolution between the decoder and an output's 1x1 convolution. Only nets for
 * instance segmentation have it. */
struct pm_node *pm_deeplab_output_conv(const struct pm_deeplab *d, const char *name,
                                       struct pm_node *x, int filters);

#endif
