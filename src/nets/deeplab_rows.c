/* deeplab_rows: the segmentation nets, a row per backbone. */
#include "nets/deeplab.h"

/* Options of backbones. */
#define DEPTH                                                                                      \
    PM_DOUBLE(pm_nets_options, depth_multiplier, 1, 0.01, 4, "factor of the backbone's widths"),   \
    PM_INT(pm_nets_options, divisible_by, 0, 0, 1024,                                              \
           "scaled widths are multiples of this; 0: of 8, or as they come with a depth_multiplier "\
           "other than 1")

PM_DEEPLAB(mobilenet_v2, "DeepLab on inverted residuals with linear bottlenecks", "deeplab", 4e-5f,
           0.997, 0.001, DEPTH, { 0 });
