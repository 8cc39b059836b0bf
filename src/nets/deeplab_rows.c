/* deeplab_rows: the rows of the segmentation nets, one per backbone. */
#include "nets/deeplab.h"

#include <math.h>

/* Options of backbones. */
#define DEPTH                                                                                      \
    PM_DOUBLE(pm_nets_options, depth_multiplier, 1, 0.01, 4, "factor of the backbone's widths"),   \
    PM_INT(pm_nets_options, divisible_by, 0, 0, 1024,                                              \
           "scaled widths are multiples of this; 0: of 8, or as they come with a depth_multiplier "\
           "other than 1")
#define DEPTH_ALONE                                                                                \
    PM_DOUBLE(pm_nets_options, depth_multiplier, 1, 0.01, 4,                                       \
              "factor of the backbone's widths, which are multiples of 8")
#define GRID(layers)                                                                               \
    PM_INTS(pm_deeplab_options, multi_grid, "[]", 1, 64,                                           \
            "factors of the dilations in the backbone's last block, one for each of its " layers   \
            "; none: 1")

PM_DEEPLAB(mobilenet_v2, "DeepLab on inverted residuals with linear bottlenecks", "deeplab", 4e-5f,
           0.997, 0.001, DEPTH, { 0 });
PM_DEEPLAB(mobilenet_v3_large_seg, "DeepLab on mobilenet_v3_large with a narrower end", "deeplab",
           4e-5f, 0.997, 0.001, DEPTH_ALONE, { 0 });
PM_DEEPLAB(mobilenet_v3_small_seg, "DeepLab on mobilenet_v3_small with a narrower end", "deeplab",
           4e-5f, 0.997, 0.001, DEPTH_ALONE, { 0 });
PM_DEEPLAB(mobilenet_edgetpu, "DeepLab on mobilenet_edgetpu, without a decoder", "deeplab", 4e-5f,
           0.997, 0.001, DEPTH_ALONE, { 0 });

#define XCEPTION(layers)                                                                           \
    PM_DEEPLAB(xception_##layers, "DeepLab on separable convolutions, " #layers " layers",         \
               "deeplab", 4e-5f, 0.9997, 0.001, GRID("three convolutions"), { 0 })
XCEPTION(41);
XCEPTION(65);
XCEPTION(71);

#define NAS                                                                                        \
    PM_INT(pm_deeplab_options, nas_stem_filters, 20, 1, 1 << 12,                                   \
           "width of a cell's states at output stride 4, twice as many at 8 and so on"),           \
    PM_BOOL(pm_deeplab_options, nas_classification_head, false,                                    \
            "behind the cells convolutions down to output stride 32 and one to 2048 channels"),    \
    PM_BOOL(pm_deeplab_options, nas_remove_os32_stride, false,                                     \
            "cells of output stride 32 have the size of those of 16"),                             \
    PM_NETS_DROP_PATH_KEEP(1),                                                                     \
    PM_INT(pm_nets_options, drop_path_steps, NAN, 0, 1 << 30,                                      \
           "steps over which that probability falls from 1; 0: constant from the start; null: the "\
           "steps of the run, 30000 if it has no last step")
PM_DEEPLAB(nas_pnasnet, "DeepLab on 12 progressively searched cells", "deeplab", 4e-5f, 0.9997,
           0.001, NAS, { 0 });
PM_DEEPLAB_AT(8, nas_hnasnet,
              "DeepLab on 12 cells of a net searched as a whole; output_stride is 8", "deeplab",
              4e-5f, 0.9997, 0.001, NAS, { 0 });

/* TensorFlow's fused batch norm adds at least 1.001e-5 if the original asks for 1e-5. */
#define RESNET(id, text, source, units)                                                            \
    PM_DEEPLAB(resnet_##id, "DeepLab on a residual net of " text, source, 1e-4f, 0.95, 1.001e-5,   \
               GRID(units " units"), { 0 })
#define BETA " layers that begins with three 3x3 convolutions"
RESNET(v1_18, "18 layers", "deeplab_means_grey", "two");
RESNET(v1_18_beta, "18" BETA, "deeplab", "two");
RESNET(v1_50, "50 layers", "deeplab_means", "three");
RESNET(v1_50_beta, "50" BETA, "deeplab", "three");
RESNET(v1_101, "101 layers", "deeplab_means", "three");
RESNET(v1_101_beta, "101" BETA, "deeplab", "three");
