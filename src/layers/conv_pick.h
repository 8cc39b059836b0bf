/* conv_pick: which shaders a convolution, a depthwise convolution and their gradients run as. The
 * only place that knows which tiles suit which device.
 *
 *     conv2d_fwd             "r:x r:w t:t w:y"     struct conv2d_params
 *     conv2d_bwd_data        "r:dy r:w t:t w:dx"   struct conv2d_params
 *     conv2d_bwd_filter      "r:x r:dy t:t u:dw"   struct conv2d_params
 *     depthwise_fwd          "r:x r:w w:y"         struct conv2d_params
 *     depthwise_bwd_data     "r:dy r:w w:dx"       struct conv2d_params
 *     depthwise_bwd_filter   "r:x r:dy t:t u:dw"   struct conv2d_params
 *     bias_grad              "r:dz t:t u:db"       struct bias_grad_params
 *
 * They are a row's .pick: level 0 is the variant tuned for caps->device_class, the last level takes every
 * shape; false beyond it. count is not read. Scratch (transposed weights, partial sums) is asked
 * for in out->scratch[2] ([1] for bias_grad). Sums are made in an order that depends on params and
 * level alone. */
#ifndef PM_CONV_PICK_H
#define PM_CONV_PICK_H

#include <pumice/kernel.h>

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
