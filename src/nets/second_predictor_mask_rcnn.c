/* second_predictor_mask_rcnn: crops the regions from the first stage's map and builds the rest of
 * the classifier on each crop. Its average gives codes and classes through fully connected layers;
 * the mask head (second_masks.c) and the keypoint head (second_keypoints.c) read the same features
 * before the average. */
#include "nets/second_stage.h"

#include <string.h>

static const struct pm_opt opts[] = {
    PM_BOOL(pm_second_predictor, use_dropout, false, "dropout before codes and classes"),
    PM_FLOAT(pm_second_predictor, dropout_keep_probability, 0.5, 0.01, 1,
             "probability that this dropout keeps a value"),
    PM_BOOL(pm_second_predictor, share_box_across_classes, false,
            "one box of a region for all classes"),
    PM_BOOL(pm_second_predictor, predict_instance_masks, false, "predict a mask of each object"),
    PM_INT(pm_second_predictor, mask_height, 15, 1, 256, "rows of a predicted mask"),
    PM_INT(pm_second_predictor, mask_width, 15, 1, 256, "columns of a predicted mask"),
    PM_INT(pm_second_predictor, mask_prediction_num_conv_layers, 2, 1, 64,
           "convolutions of the mask head"),
    PM_INT(pm_second_predictor, mask_prediction_conv_depth, 256, 0, 1 << 16,
           "channels of these convolutions; 0: computed from the numbers of channels and classes"),
    PM_BOOL(pm_second_predictor, masks_are_class_agnostic, false, "one mask for all classes"),
    PM_BOOL(pm_second_predictor, convolve_then_upsample_masks, false,
            "enlarge the features after the convolutions instead of before, by a whole factor: "
            "mask_height and mask_width are rounded down to a multiple of the features'"),
    PM_BOOL(pm_second_predictor, predict_keypoints, false,
            "predict the keypoints of each object, data.num_keypoints of them"),
    PM_INT(pm_second_predictor, keypoint_heatmap_height, 56, 1, 1024,
           "rows of a keypoint's heatmap"),
    PM_INT(pm_second_predictor, keypoint_heatmap_width, 56, 1, 1024,
           "columns of a keypoint's heatmap"),
    PM_INT(pm_second_predictor, keypoint_prediction_num_conv_layers, 8, 0, 64,
           "convolutions of the keypoint head, before the one that doubles the size"),
    PM_INT(pm_second_predictor, keypoint_prediction_conv_depth, 512, 1, 1 << 16,
           "channels of these convolutions"),
    PM_JSON(pm_second_predictor, hyperparams,
            "of the fully connected layers: \"initializer\" and \"regularize\""),
    PM_JSON(pm_second_predictor, conv_hyperparams,
            "of the mask head and the keypoint head: see model.hyperparams"),
    { 0 },
};

/* Returns the layer that crops: upright boxes, or rotated ones along their sides. The anchors read
 * the images, whose sides say how far x goes. */
static const char *crop_layer(const struct pm_second_stage *s)
{
    struct pm_net *net = s->ssd.net;
    const int size = s->ssd.o->initial_crop_size;
    const struct pm_node *anchors = pm_net_find(net, "anchors");

    if (pm_second_stage_numbers(s) == 4)
        return pm_arena_printf(net->arena, "crop_and_resize size=%d", size);
    const struct pm_shape images = anchors->in[0]->out_shape;

    return pm_arena_printf(net->arena, "rotated_crops size=%d width=%.9g", size,
                           (double)images.dim[2] / images.dim[1]);
}

/* Crops the regions, and shrinks the crops by a pool. */
static struct pm_node *crops_of(const struct pm_second_stage *s)
{
    const struct pm_ssd_options *o = s->ssd.o;
    struct pm_net *net = s->ssd.net;
    struct pm_node *x =
        pm_second_stage_crop(s, "SecondStageCrops", pm_second_stage_map(s), crop_layer(s));

    if (o->maxpool_kernel_size == 1 && o->maxpool_stride == 1)
        return x;
    return pm_net_add(net, "SecondStageCrops/MaxPool2D", x,
                      "max_pool kernel=%d stride=%d padding=valid", o->maxpool_kernel_size,
                      o->maxpool_stride);
}

/* Builds a fully connected layer on the averages, after a dropout of its own. */
static struct pm_node *predict(const struct pm_second_stage *s, const struct pm_second_predictor *p,
                               const char *name, int units, struct pm_node *x)
{
    struct pm_net *net = s->ssd.net;

    if (p->use_dropout)
        x = pm_net_add(net, pm_arena_printf(net->arena, "%s/dropout", name), x, "dropout keep=%.9g",
                       (double)p->dropout_keep_probability);
    return pm_net_add(net, name, x, "fully_connected units=%d weights_init=%s regularize=%s", units,
                      p->h.initializer, p->h.regularize ? "true" : "false");
}

/* The API's fully connected layers have neither batch norm nor an activation. */
static void check_hyperparams(struct pm_net *net, const struct pm_hyperparams *h)
{
    if (!net->error && (h->batch_norm || strcmp(pm_hyperparams_activation(h), "none") != 0))
        net->error = pm_fail(PM_ECONFIG, "model.second_stage_box_predictor.hyperparams: the fully "
                             "connected layers have neither batch_norm nor an activation: remove "
                             "these members");
}

static void build(struct pm_second_stage *s, const struct pm_second_predictor *p)
{
    const int boxes = p->share_box_across_classes ? 1 : s->classes;
    struct pm_net *net = s->ssd.net;
    struct pm_node *features, *x;

    check_hyperparams(net, &p->h);
    if ((p->predict_instance_masks &&
         !pm_second_stage_upright(s, "predict_instance_masks: true", "masks need upright boxes, "
                                  "remove the member")) ||
        (p->predict_keypoints &&
         !pm_second_stage_upright(s, "predict_keypoints: true", "keypoints need upright boxes, "
                                  "remove the member")))
        return;
    net->valid_rows = s->regions->count;
    features = pm_second_stage_features(s, crops_of(s));
    x = pm_net_add(net, PM_SECOND_SCOPE "AvgPool", features, "global_pool");
    x = pm_net_add(net, PM_SECOND_SCOPE "flatten", x, "flatten");
    pm_heads_add(net, s->heads, "box_codes",
                 predict(s, p, PM_SECOND_SCOPE "BoxEncodingPredictor",
                         pm_second_stage_numbers(s) * boxes, x));
    pm_heads_add(net, s->heads, "box_classes",
                 predict(s, p, PM_SECOND_SCOPE "ClassPredictor", s->classes + 1, x));
    if (p->predict_instance_masks)
        pm_second_stage_masks(s, p, features);
    if (p->predict_keypoints)
        pm_second_stage_keypoints(s, p, features);
    net->valid_rows = NULL;
}

const struct pm_second_predictor_row pm_second_predictor_mask_rcnn = {
    .type = "mask_rcnn", .opts = opts,
    .hyperparams = "{\"activation\": \"none\", \"initializer\": \"xavier\", \"regularize\": false, "
                   "\"batch_norm\": false}",
    .build = build,
};
