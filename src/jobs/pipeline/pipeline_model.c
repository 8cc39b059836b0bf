/* Calls of the model's rows: sizes, nets, hyperparameters. */
#include "jobs/pipeline/fields.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* height, width of fixed_shape_resizer: input.size. */
PM_PIPELINE_CALL(size)
{
    cJSON *side = NULL, *size = pm_pipeline_get(p, "input.size");
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &side));
    if (!size) {
        pm_pipeline_set(p, "input.size", cJSON_CreateIntArray((const int[]){ 300, 300 }, 2));
        size = pm_pipeline_get(p, "input.size");
    }
    cJSON_ReplaceItemInArray(size, strcmp(row->field, "width") == 0, side);
out:
    return err;
}

/* per_channel_pad_value, once for each channel. SSD pads after its normalisation, as is done here;
 * for two-stage detectors settle() in pipeline_stages.c normalises the values. */
PM_PIPELINE_CALL(pad_value)
{
    cJSON *value = NULL;
    int err = PM_OK;

    (void)object, (void)row;
    PM_TRY(pm_pipeline_value(p, PM_PIPELINE_NUMBER, f, &value));
    if (!pm_pipeline_get(p, "input.pad_value"))
        pm_pipeline_set(p, "input.pad_value", cJSON_CreateArray());
    cJSON_AddItemToArray(pm_pipeline_get(p, "input.pad_value"), value);
out:
    return err;
}

/* max_dimension of keep_aspect_ratio_resizer: the input is a square of the longer side. */
PM_PIPELINE_CALL(longer_side)
{
    cJSON *side = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &side));
    pm_pipeline_set(p, "input.size", side);
    pm_pipeline_set(p, "input.resizer", cJSON_CreateString("keep_aspect_ratio"));
out:
    return err;
}

/* size_threshold of conditional_shape_resizer: pictures are shrunk to it, so they fit into a square
 * of that side. */
PM_PIPELINE_CALL(threshold)
{
    cJSON *side = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &side));
    pm_pipeline_set(p, "input.size", cJSON_Duplicate(side, true));
    pm_pipeline_set(p, "input.size_threshold", side);
    pm_pipeline_set(p, "input.resizer", cJSON_CreateString("conditional"));
out:
    return err;
}

PM_PIPELINE_CALL(grey)
{
    cJSON *grey = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &grey));
    if (cJSON_IsTrue(grey))
        pm_pipeline_set(p, "input.channels", cJSON_CreateNumber(1));
out:
    cJSON_Delete(grey);
    return err;
}

/* Feature extractors and the nets that contain them. */
static const struct {
    const char *type, *net;
} nets[] = {
    { "ssd_mobilenet_v1", "ssd_mobilenet_v1" },
    { "ssd_mobilenet_v1_fpn", "ssd_mobilenet_v1_fpn" },
    { "ssd_mobilenet_v1_ppn", "ssd_mobilenet_v1_ppn" },
    { "ssd_mobilenet_v2", "ssd_mobilenet_v2" },
    { "ssd_mobilenet_v2_fpn", "ssd_mobilenet_v2_fpn" },
    { "ssd_mobilenet_v3_large", "ssd_mobilenet_v3_large" },
    { "ssd_mobilenet_v3_small", "ssd_mobilenet_v3_small" },
    { "ssd_inception_v2", "ssd_inception_v2" },
    { "ssd_inception_v3", "ssd_inception_v3" },
    { "ssd_resnet50_v1_fpn", "ssd_resnet_v1_50_fpn" },
    { "ssd_resnet101_v1_fpn", "ssd_resnet_v1_101_fpn" },
    { "ssd_resnet152_v1_fpn", "ssd_resnet_v1_152_fpn" },
    { "ssd_resnet50_v1_ppn", "ssd_resnet_v1_50_ppn" },
    { "ssd_resnet101_v1_ppn", "ssd_resnet_v1_101_ppn" },
    { "ssd_resnet152_v1_ppn", "ssd_resnet_v1_152_ppn" },
    { "embedded_ssd_mobilenet_v1", "embedded_ssd_mobilenet_v1" },
    { "faster_rcnn_mobilenet_v1", "faster_rcnn_mobilenet_v1" },
    { "faster_rcnn_inception_v2", "faster_rcnn_inception_v2" },
    { "faster_rcnn_inception_resnet_v2", "faster_rcnn_inception_resnet_v2" },
    { "faster_rcnn_resnet50", "faster_rcnn_resnet50" },
    { "faster_rcnn_resnet101", "faster_rcnn_resnet101" },
    { "faster_rcnn_resnet152", "faster_rcnn_resnet152" },
};

PM_PIPELINE_CALL(net)
{
    (void)row, (void)object;
    if (f->kind != PM_PROTO_TEXT_STRING)
        return pm_pipeline_fail(p, f, "a text in quotes is needed, found: %.40s",
                                f->kind == PM_PROTO_TEXT_MESSAGE ? "{" : f->value);
    /* "rssd_mobilenet_v2" is ssd_mobilenet_v2 with rotated boxes. */
    const bool rotated =
        strncmp(f->value, "rssd_", 5) == 0 || strncmp(f->value, "rfaster_rcnn_", 13) == 0;

    for (size_t i = 0; i < PM_COUNT(nets); i++)
        if (strcmp(nets[i].type, f->value + rotated) == 0) {
            pm_pipeline_set(p, "model.name", cJSON_CreateString(nets[i].net));
            if (rotated)
                pm_pipeline_set(p, "model.boxes", cJSON_CreateString("rotated"));
            return PM_OK;
        }
    pm_pipeline_note(p, f, true, "\"%s\" is not among the nets here: set model.name", f->value);
    return PM_OK;
}

/* The weight of an L2 regulariser. optim.weight_decay holds for the whole net: the first weight,
 * which is the feature extractor's or the predictor's, is used. In two-stage detectors it holds for
 * the layers with "regularize" only. */
PM_PIPELINE_CALL(weight_decay)
{
    const cJSON *set = pm_pipeline_get(p, "optim.weight_decay");
    cJSON *weight = NULL;
    int err = PM_OK;

    PM_TRY(pm_pipeline_value(p, row->type, f, &weight));
    const double was = cJSON_GetNumberValue(set), is = cJSON_GetNumberValue(weight);

    if (p->stages && is != 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(object, "regularize");
        cJSON_AddTrueToObject(object, "regularize");
    }
    if (!set || (p->stages && was == 0)) {
        pm_pipeline_set(p, "optim.weight_decay", weight);
        weight = NULL;
    } else if (was != is && !(p->stages && is == 0)) {
        pm_pipeline_note(p, f, true, "optim.weight_decay is already %g: one value holds for the "
                         "whole net", was);
    }
out:
    cJSON_Delete(weight);
    return err;
}

static bool is_named(const struct pm_proto_text *message, const char *name)
{
    return message->name && strcmp(message->name, name) == 0;
}

/* The kind of layers that hyperparameters are for. For another kind they have no effect in the
 * original. */
PM_PIPELINE_CALL(op)
{
    const char *const wanted = is_named(p->tree, "fc_hyperparams") ? "FC" : "CONV";
    cJSON *op = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &op));
    if (strcmp(f->value, wanted) != 0)
        pm_pipeline_note(p, f, true, "%s: the original ignores these settings, because its layers "
                         "are of kind %s. Pumice applies them", f->value, wanted);
out:
    cJSON_Delete(op);
    return err;
}

/* Every message of hyperparameters has an activation, also by default, so here is the place to say
 * whether it has batch norm. */
PM_PIPELINE_CALL(activation)
{
    cJSON *activation = NULL;
    int err = PM_OK;

    PM_TRY(pm_pipeline_value(p, row->type, f, &activation));
    if (is_named(p->tree, "fc_hyperparams"))
        goto out;
    cJSON_DeleteItemFromObjectCaseSensitive(object, "batch_norm");
    cJSON_AddBoolToObject(object, "batch_norm", pm_pipeline_find(p->tree, "batch_norm") != NULL);
    if (is_named(p->tree, "first_stage_box_predictor_conv_hyperparams"))
        goto out;
    cJSON_DeleteItemFromObjectCaseSensitive(object, row->field);
    cJSON_AddItemToObject(object, row->field, activation);
    activation = NULL;
out:
    cJSON_Delete(activation);
    return err;
}

/* One of the initialisers: "initializer" of the hyperparameters, in the form of struct pm_init. */
PM_PIPELINE_CALL(initializer)
{
    const struct pm_proto_text *mode = pm_pipeline_find(f, "mode");
    const struct pm_proto_text *uniform = pm_pipeline_find(f, "uniform");
    const bool scaling = strcmp(row->field, "variance_scaling_initializer") == 0;
    const char *kind = strcmp(row->field, "random_normal_initializer") ? "truncated" : "normal";
    double value = 0, mean = 0;
    bool flat = false;
    char text[64], number[32];
    int err = PM_OK;

    PM_TRY(pm_pipeline_number_of(p, f, scaling ? "factor" : "stddev", scaling ? 2 : 1, &value));
    PM_TRY(pm_pipeline_number_of(p, f, "mean", 0, &mean));
    if (mean != 0)
        pm_pipeline_note(p, f, true, "weights start around 0, not around %g", mean);
    if (uniform && !pm_proto_text_bool(uniform, &flat))
        PM_TRY(pm_pipeline_fail(p, uniform, "true or false is needed"));
    const bool average =
        scaling && mode && mode->kind == PM_PROTO_TEXT_WORD && !strcmp(mode->value, "FAN_AVG");
    const bool xavier = average && flat && value == 1;
    if (average && !xavier)
        pm_pipeline_note(p, f, true, "mode FAN_AVG is available only as uniform with factor 1: "
                         "FAN_IN is used");
    if (scaling)
        kind = flat ? "variance_scaling_uniform"
               : mode && mode->kind == PM_PROTO_TEXT_WORD && !strcmp(mode->value, "FAN_OUT")
                   ? "variance_scaling_fan_out"
                   : "variance_scaling";
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if ((float)strtod(number, NULL) == (float)value)
            break;
    }
    if (xavier)
        snprintf(text, sizeof text, "xavier");
    else
        snprintf(text, sizeof text, "%s(%s)", kind, number);
    cJSON_DeleteItemFromObjectCaseSensitive(object, "initializer");
    cJSON_AddStringToObject(object, "initializer", text);
out:
    return err;
}

PM_PIPELINE_CALL(freeze_batchnorm)
{
    cJSON *frozen = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &frozen));
    if (cJSON_IsTrue(frozen))
        pm_pipeline_set(p, "model.batch_norm_train", cJSON_CreateFalse());
out:
    cJSON_Delete(frozen);
    return err;
}

/* batch_norm { train: false }: the same for the whole net. */
PM_PIPELINE_CALL(batch_norm_train)
{
    cJSON *train = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &train));
    if (cJSON_IsFalse(train))
        pm_pipeline_set(p, "model.batch_norm_train", cJSON_CreateFalse());
out:
    cJSON_Delete(train);
    return err;
}

/* weight_bits, activation_bits of quantised training. */
PM_PIPELINE_CALL(quantize_bits)
{
    cJSON *bits = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &bits));
    if (bits->valuedouble != 8)
        PM_TRY(pm_pipeline_fail(p, f, "%.0f: training rounds to 8 bits only: set it to 8, or "
                                "remove graph_rewriter to train with floats", bits->valuedouble));
out:
    cJSON_Delete(bits);
    return err;
}

/* box_encodings_clip_range: a list of its two numbers. */
PM_PIPELINE_CALL(clip_range)
{
    double min = 0, max = 0;
    cJSON *range;
    int err = PM_OK;

    PM_TRY(pm_pipeline_number_of(p, f, "min", 0, &min));
    PM_TRY(pm_pipeline_number_of(p, f, "max", 0, &max));
    cJSON_DeleteItemFromObjectCaseSensitive(object, row->field);
    range = cJSON_AddArrayToObject(object, row->field);
    cJSON_AddItemToArray(range, pm_pipeline_number(min));
    cJSON_AddItemToArray(range, pm_pipeline_number(max));
out:
    return err;
}
