/* second_keypoints: the head of Mask R-CNN that predicts an object's keypoints, from the features
 * of its region: convolutions, a transposed convolution that doubles the size and has a channel for
 * each keypoint, and a bilinear resize to the size of the heatmaps. Names and defaults are those of
 * the keypoint head of TensorFlow's Object Detection API. The last convolution has neither batch
 * norm nor an activation, because its values are the logits of a softmax over places.
 *
 * If conv_hyperparams has no initializer, the weights are those of He et al. 2015. With
 * truncated(0.01), the mask head's default, the values become too small to learn from: each
 * convolution of 512 channels halves the values.
 *
 * - The convolutions have the variance 2 / fan_in, so any number of channels keeps the size of the
 *   values. torchvision has 2 / fan_out, which is the same for the convolutions from 512 to 512
 *   channels. In the first one it would double the values if the features have four times as many
 *   channels as the head.
 * - The transposed convolution has the variance 2 / fan_out, as in torchvision. Its weights are
 *   [2, 2, K, channels], so fan_out is 4 channels, and fan_in is 4 K. An output is a sum over the
 *   channels of one cell of the window: variance_scaling(2) would give logits that grow as the
 *   number of keypoints becomes smaller. */
#include "nets/second_stage.h"

#include <cjson/cJSON.h>

/* The hyperparameters of the head, with this initializer if none is given. */
static struct pm_hyperparams hyperparams_of(const struct pm_second_predictor *p,
                                            const char *initializer)
{
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(p->conv_hyperparams, "initializer");
    struct pm_hyperparams h = p->conv;

    if (!given || cJSON_IsNull(given))
        h.initializer = initializer;
    return h;
}

void pm_second_stage_keypoints(struct pm_second_stage *s, const struct pm_second_predictor *p,
                               struct pm_node *x)
{
    const struct pm_hyperparams h = hyperparams_of(p, "variance_scaling(2)");
    const struct pm_hyperparams last = hyperparams_of(p, "variance_scaling_fan_out(2)");
    struct pm_net *net = s->ssd.net;

    if (s->regions->keypoints == 0 && !net->error)
        net->error = pm_fail(PM_ECONFIG, "model.second_stage_box_predictor.predict_keypoints: "
                             "true, but objects have no keypoints: set data.num_keypoints to their "
                             "number");
    if (net->error)
        return;
    for (int i = 0; i < p->keypoint_prediction_num_conv_layers; i++)
        x = pm_unit_build(&s->ssd, &h, &(struct pm_unit){
            .name = pm_arena_printf(net->arena, PM_SECOND_SCOPE "conv_%d", i + 1),
            .filters = p->keypoint_prediction_conv_depth, .kernel = 3 }, x);
    x = pm_net_add(net, PM_SECOND_SCOPE "deconv1", x,
                   "conv2d_transpose filters=%d kernel=2 stride=2 weights_init=%s regularize=%s",
                   s->regions->keypoints, last.initializer, last.regularize ? "true" : "false");
    x = pm_net_add(net, PM_SECOND_SCOPE "upsample", x,
                   "resize size=[%d,%d] method=bilinear coordinates=align_corners",
                   p->keypoint_heatmap_height, p->keypoint_heatmap_width);
    pm_heads_add(net, s->heads, "box_keypoints", x);
}
