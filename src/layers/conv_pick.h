/* conv_pick: chooses the shaders of convolutions, depthwise convolutions and their gradients.
 * conv_tiles_r.c, conv_tiles_s.c and depthwise_pick.c know which tiles suit which device.
 *
 *     conv2d_fwd             "r:x r:w t:t w:y w?:moments"     struct conv2d_params
 *     conv2d_bwd_data        "r:dy r:w t:t u:dx w?:moments"   struct conv2d_params
 *     conv2d_bwd_filter      "r:x r:dy t:t u:dw z:done"       struct conv2d_params
 *     depthwise_fwd          "r:x r:w w:y"         struct conv2d_params
 *     depthwise_bwd_data     "r:dy r:w u:dx"       struct conv2d_params
 *     depthwise_bwd_filter   "r:x r:dy t:t u:dw z:done"
 *                                                 struct conv2d_params
 *     bias_grad              "r:dz t:t u:db"       struct bias_grad_params
 *
 * The functions are the .pick of these rows. Level 0 is the variant tuned for caps->device_class;
 * the last level accepts every shape. They return false beyond the last level. count is not read.
 * Scratch (transposed weights unless w is such a copy, partial sums) is requested in
 * out->scratch[2] ([1] for bias_grad), the counters `done` in out->scratch[4].
 * The order of sums depends on caps, params and level alone. */
#ifndef PM_CONV_PICK_H
#define PM_CONV_PICK_H

#include <pumice/kernel.h>

#include "conv2d.params.h"

/* Returns the size of the image that a forward pass or data gradient writes. */
struct pm_rows pm_conv_image(const struct conv2d_params *p, bool back);
bool pm_conv2d_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out);
bool pm_conv2d_bwd_data_pick(const struct pm_caps *caps, const void *params, size_t count,
                             int level, struct pm_picks *out);
bool pm_conv2d_bwd_filter_pick(const struct pm_caps *caps, const void *params, size_t count,
                               int level, struct pm_picks *out);
bool pm_depthwise_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                           struct pm_picks *out);
bool pm_depthwise_bwd_data_pick(const struct pm_caps *caps, const void *params, size_t count,
                                int level, struct pm_picks *out);
bool pm_depthwise_bwd_filter_pick(const struct pm_caps *caps, const void *params, size_t count,
                                  int level, struct pm_picks *out);
bool pm_bias_grad_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out);

#endif
