/* deeplab: what the segmentation nets are made of. A backbone (a file deeplab_BACKBONE.c, or that of
 * the classifier it is) gives a map at output_stride and names the nodes whose maps a decoder joins;
 * deeplab.c puts pyramid pooling, decoder and logits upon it. Names of variables are DeepLab's. */
#ifndef PM_DEEPLAB_H
#define PM_DEEPLAB_H

#include "nets/nets.h"

/* Options of model deeplab_BACKBONE, beside those that the nets share. Sizes [height, width]. */
struct pm_deeplab_options {
    struct pm_nets_options nets;        /* output_stride, depth_multiplier, batch norm ... */
    struct pm_ints multi_grid;          /* dilations of the last block's units; none: 1 */
    bool bounded_activation;            /* relu6, and sums clipped to +-6 */
    struct pm_floats image_pyramid;     /* scales; none: 1 */
    int merge_method;                   /* enum: 0 max, 1 avg */
    int logits_kernel_size;
    struct pm_ints aspp_rates;
    int aspp_filters;
    bool aspp_batch_norm, aspp_separable, aspp_image_level, aspp_concat_projection;
    bool aspp_squeeze_excite, aspp_se_qsigmoid;
    struct pm_ints aspp_pooling_crop;   /* none: the input's size */
    struct pm_ints aspp_pooling_stride;
    const char *dense_prediction_cell;  /* JSON file, in place of the pyramid pooling; NULL: none */
    struct pm_ints decoder_strides;     /* descending; none: no decoder */
    bool decoder_separable, decoder_sum_merge, decoder_is_logits;
    int decoder_filters;
    bool instance;                      /* heads of centres and offsets too */
    struct pm_ints decoder_filters_instance;
    int edge_classes;                   /* of an edge head; 0: none */
};

struct pm_backbone {
    const char *name;                   /* "mobilenet_v2" */
    int min_stride, max_stride;         /* of output_stride, a power of 2 */
    /* The last map, of images as they come. */
    struct pm_node *(*build)(struct pm_net *net, struct pm_node *images,
                             const struct pm_deeplab_options *o);
    /* Nodes at strides 4, 8 and 16 for the decoder; NULL: none. With a bounded activation it is
     * NODE/clip where the net has that. */
    const char *low[3];
};

/* depth_multiplier scales the widths; divisible_by 0: 8, or 1 with a multiplier other than 1. */
extern const struct pm_backbone pm_backbone_mobilenet_v2;
/* multi_grid: three dilations in the last block; bounded_activation. */
extern const struct pm_backbone pm_backbone_xception_41, pm_backbone_xception_65,
    pm_backbone_xception_71;

/* multi_grid as `count` numbers, 1 where none are given; false, with the net's error set, when others
 * are. */
bool pm_backbone_grid(struct pm_net *net, const struct pm_backbone *b,
                      const struct pm_deeplab_options *o, int count, int *grid);

/* scale_dimension of the originals: trunc((size - 1) scale + 1), in float32. */
int pm_deeplab_size(int size, float scale);

/* build of the rows: model deeplab_BACKBONE. */
void pm_deeplab_build(struct pm_net *net, struct pm_node *images, int num_classes,
                      const struct pm_deeplab_options *o, const struct pm_backbone *b,
                      struct pm_heads *heads);

#endif
