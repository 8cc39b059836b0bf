/* second_predictor_rfcn: R-FCN builds the rest of the classifier once on the whole map. Two
 * convolutions predict codes and classes in every cell, in a group of channels for each bin of a
 * region; a region's value is the mean of what its bins find in their groups. */
#include "nets/second_stage.h"

static const struct pm_opt opts[] = {
    PM_INT(pm_second_predictor, num_spatial_bins_height, 3, 1, 64, "rows of bins of a region"),
    PM_INT(pm_second_predictor, num_spatial_bins_width, 3, 1, 64, "columns of bins"),
    PM_INT(pm_second_predictor, depth, 1024, 1, 1 << 16,
           "channels of the convolution before the predicting ones"),
    PM_INT(pm_second_predictor, crop_height, 12, 1, 1024,
           "rows of samples of a region, a multiple of the bins"),
    PM_INT(pm_second_predictor, crop_width, 12, 1, 1024,
           "columns of samples, a multiple of the bins"),
    PM_JSON(pm_second_predictor, hyperparams, "of the convolutions: see model.hyperparams"),
    { 0 },
};

static bool divides(struct pm_net *net, const char *axis, int crop, int bins)
{
    if (crop % bins != 0 && !net->error)
        net->error = pm_fail(PM_ECONFIG, "model.second_stage_box_predictor.crop_%s: %d samples are "
                             "not divisible by %d bins: set it to %d", axis, crop, bins,
                             (crop / bins + 1) * bins);
    return !net->error;
}

/* Adds a head: a linear 1x1 convolution of bins * `values` channels, and the regions' means. */
static void predict(struct pm_second_stage *s, const struct pm_second_predictor *p,
                    const char *head, const char *name, int values, struct pm_node *x)
{
    const int bins[] = { p->num_spatial_bins_height, p->num_spatial_bins_width };
    const struct pm_unit u = { .name = name, .filters = bins[0] * bins[1] * values, .kernel = 1,
                               .plain = true };
    struct pm_net *net = s->ssd.net;

    x = pm_unit_build(&s->ssd, &p->h, &u, x);
    x = pm_second_stage_crop(s, pm_arena_printf(net->arena, "%s/regions", name), x,
                             pm_arena_printf(net->arena, "sensitive_crops bins=[%d,%d] "
                                             "size=[%d,%d]", bins[0], bins[1], p->crop_height,
                                             p->crop_width));
    pm_heads_add(net, s->heads, head, x);
}

static void build(struct pm_second_stage *s, const struct pm_second_predictor *p)
{
    const struct pm_unit reduce = { .name = PM_SECOND_SCOPE "reduce_depth", .filters = p->depth,
                                    .kernel = 1 };
    struct pm_node *x;

    if (!pm_second_stage_upright(s, "type: rfcn", "its crops are upright, choose mask_rcnn") ||
        !divides(s->ssd.net, "height", p->crop_height, p->num_spatial_bins_height) ||
        !divides(s->ssd.net, "width", p->crop_width, p->num_spatial_bins_width))
        return;
    x = pm_second_stage_features(s, pm_second_stage_map(s));
    x = pm_unit_build(&s->ssd, &p->h, &reduce, x);
    predict(s, p, "box_codes", PM_SECOND_SCOPE "refined_locations", 4 * s->classes, x);
    predict(s, p, "box_classes", PM_SECOND_SCOPE "class_predictions", s->classes + 1, x);
}

const struct pm_second_predictor_row pm_second_predictor_rfcn = {
    .type = "rfcn", .opts = opts,
    .hyperparams = "{\"activation\": \"relu\", \"initializer\": \"truncated(0.01)\", "
                   "\"regularize\": false, \"batch_norm\": false}",
    .build = build,
};
