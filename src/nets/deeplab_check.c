/* deeplab_check: checks combinations of options of the segmentation nets. Options that would be
 * silently ignored, or fail deep in the net, are rejected here by the name of their key. */
#include "nets/deeplab.h"

static bool is_pyramid(const struct pm_floats scales)
{
    for (int i = 0; i < scales.count; i++)
        for (int k = 0; k < i; k++)
            if (scales.v[i] == scales.v[k])
                return false;
    return scales.count <= PM_MAX_JOINED; /* of the layer that merges them */
}

static bool descends(const struct pm_ints strides)
{
    for (int i = 1; i < strides.count; i++)
        if (strides.v[i] >= strides.v[i - 1])
            return false;
    return true;
}

/* Checks the options that pyramid pooling and logits need. Returns the problem, or NULL. */
static const char *aspp_problem(const struct pm_deeplab_options *o, const char **key)
{
    *key = "logits_kernel_size";
    if (o->logits_kernel_size > 1 && (o->aspp_batch_norm || !o->aspp_rates.count))
        return "is only for summed logits: set it to 1, or set model.aspp_batch_norm to false and "
               "model.aspp_rates";
    *key = "aspp_rates";
    if (o->aspp_rates.count > PM_MAX_JOINED - 2)
        return "has more than 6 rates: remove some";
    if (o->aspp_rates.count && o->dense_prediction_cell)
        return "cannot be combined with model.dense_prediction_cell: remove one of them";
    *key = "aspp_batch_norm";
    if (!o->aspp_batch_norm && o->dense_prediction_cell)
        return "excludes model.dense_prediction_cell: set it to true";
    *key = "aspp_squeeze_excite";
    if (o->aspp_squeeze_excite && (!o->aspp_image_level || !o->aspp_batch_norm ||
                                   o->dense_prediction_cell))
        return "needs the average over the picture: set model.aspp_image_level and "
               "model.aspp_batch_norm to true, without model.dense_prediction_cell";
    if (o->aspp_squeeze_excite && !o->aspp_concat_projection && o->aspp_rates.count)
        return "needs a map of model.aspp_filters channels, but several branches have more: set "
               "model.aspp_concat_projection to true or remove model.aspp_rates";
    *key = "aspp_se_qsigmoid";
    if (o->aspp_se_qsigmoid && !o->aspp_squeeze_excite)
        return "needs model.aspp_squeeze_excite: set that to true, too";
    *key = "aspp_pooling_crop";
    if (o->aspp_pooling_crop.count > 2)
        return "takes a height and a width, or one number for both";
    *key = "aspp_pooling_stride";
    return o->aspp_pooling_stride.count < 1 || o->aspp_pooling_stride.count > 2
               ? "takes one number for rows and one for columns, or one for both" : NULL;
}

static const char *decoder_problem(const struct pm_deeplab_options *o, const char **key)
{
    const bool decoder = o->decoder_strides.count > 0;

    *key = "decoder_strides";
    if (!descends(o->decoder_strides))
        return "must go from the coarsest map to the finest: 16, 8, 4";
    *key = "decoder_sum_merge";
    if (o->decoder_sum_merge && !decoder)
        return "needs a decoder: set model.decoder_strides";
    *key = "decoder_is_logits";
    if (o->decoder_is_logits && !decoder)
        return "needs a decoder: set model.decoder_strides";
    if (o->decoder_is_logits && (o->instance || o->edge_classes))
        return "excludes other heads: set model.instance to false and model.edge_classes to 0";
    return NULL;
}

static const char *instance_problem(const struct pm_deeplab_options *o, const char **key)
{
    if (!o->instance)
        return NULL;
    *key = "decoder_filters_instance";
    if (o->decoder_filters_instance.count != 2)
        return "takes two numbers, one for the decoder and one for its heads";
    *key = "instance";
    if (!o->decoder_strides.count)
        return "needs a decoder: set model.decoder_strides ([8, 4] in the publication)";
    if (!o->aspp_batch_norm || o->decoder_sum_merge)
        return "needs model.aspp_batch_norm=true and model.decoder_sum_merge=false";
    return o->image_pyramid.count > 1 ? "does not work with merged scales: set model.image_pyramid "
                                        "to [1]"
                                      : NULL;
}

static const char *edge_problem(const struct pm_deeplab_options *o, const char **key)
{
    *key = "edge_classes";
    return o->edge_classes == 1 ? "is 1, but edges need at least two classes, edge and not: set it "
                                  "to 2, or to 0 for a net without edges" : NULL;
}

bool pm_deeplab_check(struct pm_net *net, int num_classes, const struct pm_deeplab_options *o,
                      const struct pm_backbone *b)
{
    const int stride = o->nets.output_stride;
    const char *key = NULL, *problem = aspp_problem(o, &key);

    if (!problem)
        problem = decoder_problem(o, &key);
    if (!problem)
        problem = instance_problem(o, &key);
    if (!problem)
        problem = edge_problem(o, &key);
    if (!problem && !is_pyramid(o->image_pyramid))
        key = "image_pyramid", problem = "takes up to 8 different scales";
    if (net->error)
        return false;
    if (problem)
        net->error = pm_fail(PM_ECONFIG, "model.%s: %s", key, problem);
    else if (stride < b->min_stride || stride > b->max_stride || stride & (stride - 1))
        net->error = pm_fail(
            PM_ECONFIG,
            "model.output_stride: %d is not possible for deeplab_%s; allowed are %s%s16 and 32",
            stride, b->name, b->min_stride < 8 ? "4, " : "", b->min_stride < 16 ? "8, " : "");
    else if (o->decoder_is_logits && o->decoder_filters != num_classes)
        net->error = pm_fail(PM_ECONFIG,
                             "model.decoder_filters: %d, but with model.decoder_is_logits "
                             "it is the number of classes: set it to %d",
                             o->decoder_filters, num_classes);
    return !net->error;
}
