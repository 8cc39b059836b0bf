/* Calls of the rows of detectors with two stages, and what their fields mean together. */
#include "jobs/pipeline/fields.h"

#include <pumice/net.h>

#include <cjson/cJSON.h>
#include <string.h>

#define PREDICTOR "model.second_stage_box_predictor"

static void drop(struct pm_pipeline *p, const char *object, const char *key)
{
    cJSON_DeleteItemFromObjectCaseSensitive(pm_pipeline_get(p, object), key);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Checks the number; settle() uses it. */
PM_PIPELINE_CALL(number_of_stages)
{
    cJSON *stages = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &stages));
    if (!(stages->valuedouble >= 1 && stages->valuedouble <= 3))
        PM_TRY(pm_pipeline_fail(p, f, "%.0f is outside 1..3", stages->valuedouble));
out:
    cJSON_Delete(stages);
    return err;
}

/* 16 is the stride of nets that have no option for it. */
PM_PIPELINE_CALL(features_stride)
{
    cJSON *stride = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &stride));
    if (stride->valuedouble != 16) {
        pm_pipeline_set(p, "model.first_stage_features_stride", stride);
        stride = NULL;
    }
out:
    cJSON_Delete(stride);
    return err;
}

PM_PIPELINE_CALL(clip_anchors)
{
    cJSON *clip = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &clip));
    pm_pipeline_set(p, "model.anchors_outside",
                    cJSON_CreateString(cJSON_IsTrue(clip) ? "clip" : "prune"));
out:
    cJSON_Delete(clip);
    return err;
}

/* mask_rcnn_box_predictor, rfcn_box_predictor. */
PM_PIPELINE_CALL(second_predictor)
{
    int err = PM_OK;

    if (!p->stages) {
        pm_pipeline_note(p, f, true, "belongs to detectors of two stages");
        goto out;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(object, "type");
    cJSON_AddStringToObject(object, "type",
                            strcmp(row->field, "rfcn_box_predictor") == 0 ? "rfcn" : "mask_rcnn");
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
out:
    return err;
}

/* The loss of the second stage's classes: a softmax here. */
PM_PIPELINE_CALL(second_loss)
{
    cJSON *loss = cJSON_CreateObject(), *scale;
    const char *type;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_fields(p, row->of, f, loss));
    type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(loss, "type"));
    scale = cJSON_DetachItemFromObjectCaseSensitive(loss, "logit_scale");
    if (type && strcmp(type, "weighted_softmax") != 0)
        pm_pipeline_note(p, f, true, "%s is not available in the second stage: weighted_softmax is "
                         "used", type);
    else if (scale) {
        pm_pipeline_set(p, "loss.second_stage.logit_scale", scale);
        scale = NULL;
    }
    cJSON_Delete(scale);
out:
    cJSON_Delete(loss);
    return err;
}

/* ---- fields together ------------------------------------------------------------------------- */

/* One stage: its boxes are the detections, of one class. The fields of the second stage have no
 * effect. */
static void settle_one_stage(struct pm_pipeline *p)
{
    pm_pipeline_set(p, "model.number_of_stages", cJSON_CreateNumber(1));
    pm_pipeline_set(p, "data.class_agnostic", cJSON_CreateTrue());
    drop(p, "model", "num_classes");
    drop(p, "model", "post_processing");
    drop(p, "model", "second_stage_box_predictor");
    drop(p, "loss", "proposal_sampler");
    drop(p, "loss", "second_stage");
    drop(p, "loss", "hard_example_miner");
}

static int settle_predictor(struct pm_pipeline *p, const struct pm_proto_text *f, double stages)
{
    const struct pm_proto_text *field = pm_pipeline_find(f, "second_stage_box_predictor");
    cJSON *predictor = pm_pipeline_get(p, PREDICTOR);
    const char *type =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(predictor, "type"));

    if (predictor && type && strcmp(type, "mask_rcnn") != 0 && strcmp(type, "rfcn") != 0)
        return pm_pipeline_fail(p, field, "mask_rcnn_box_predictor or rfcn_box_predictor is "
                                "needed, found: %s_box_predictor", type);
    if (stages == 2)
        cJSON_DeleteItemFromObjectCaseSensitive(predictor, "predict_instance_masks");
    return PM_OK;
}

/* The original's miner of the second stage does not know which proposals match. */
static void settle_miner(struct pm_pipeline *p, const struct pm_proto_text *f)
{
    const struct pm_proto_text *miner = pm_pipeline_find(f, "hard_example_miner");
    const struct pm_proto_text *limit =
        miner ? pm_pipeline_find(miner, "max_negatives_per_positive") : NULL;

    drop(p, "loss.hard_example_miner", "max_negatives_per_positive");
    drop(p, "loss.hard_example_miner", "min_negatives_per_image");
    if (limit)
        pm_pipeline_note(p, limit, false, "the second stage's miner does not limit background");
}

/* Padding comes before the normalisation: its pixels are normalised, too. The net chooses how. */
static void settle_padding(struct pm_pipeline *p)
{
    static const double means[3] = { 123.68, 116.779, 103.939 };
    const char *net = cJSON_GetStringValue(pm_pipeline_get(p, "model.name"));
    const struct pm_net_row *row = net ? pm_net_row_find(net) : NULL;
    const bool less_means = row && strcmp(row->preprocessing, "ssd_means_black") == 0;
    cJSON *value;
    int channel = 0;

    cJSON_ArrayForEach(value, pm_pipeline_get(p, "input.pad_value")) {
        const double v = value->valuedouble;

        cJSON_SetNumberValue(value, (double)(float)(less_means ? v - means[channel % 3]
                                                               : v * 2 / 255 - 1));
        channel++;
    }
}

static bool is_rotated(const struct pm_pipeline *p)
{
    const char *boxes = cJSON_GetStringValue(pm_pipeline_get(p, "model.boxes"));

    return boxes && strcmp(boxes, "rotated") == 0;
}

void pm_pipeline_settle_rotated(struct pm_pipeline *p)
{
    if (is_rotated(p) && pm_pipeline_get(p, "loss.proposal_sampler"))
        pm_pipeline_set(p, "loss.proposal_sampler.iou_threshold", cJSON_CreateNumber(0.4));
}

/* Rotated boxes have no position sensitive crops and no masks. */
static int check_rotated(struct pm_pipeline *p, const struct pm_proto_text *f)
{
    const struct pm_proto_text *field = pm_pipeline_find(f, "second_stage_box_predictor");
    const cJSON *predictor = pm_pipeline_get(p, PREDICTOR);
    const char *type =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(predictor, "type"));
    const cJSON *masks = cJSON_GetObjectItemCaseSensitive(predictor, "predict_instance_masks");

    if (!is_rotated(p))
        return PM_OK;
    if (type && strcmp(type, "rfcn") == 0)
        return pm_pipeline_fail(p, field, "rfcn_box_predictor crops upright boxes, but the boxes "
                                "are rotated: use mask_rcnn_box_predictor");
    if (cJSON_IsTrue(masks))
        return pm_pipeline_fail(p, field, "predict_instance_masks: masks need upright boxes, but "
                                "the boxes are rotated: set it to false");
    return PM_OK;
}

static int settle(struct pm_pipeline *p, const struct pm_proto_text *f)
{
    double stages = 0;
    int err = PM_OK;

    PM_TRY(pm_pipeline_number_of(p, f, "number_of_stages", 2, &stages));
    PM_TRY(settle_predictor(p, f, stages));
    PM_TRY(check_rotated(p, f));
    settle_padding(p);
    settle_miner(p, f);
    if (pm_pipeline_get(p, "loss.classification"))
        pm_pipeline_set(p, "loss.classification.type", cJSON_CreateString("weighted_softmax"));
    if (stages == 1)
        settle_one_stage(p);
    pm_pipeline_settle_rotated(p);
out:
    return err;
}

PM_PIPELINE_CALL(two_stages)
{
    int err = PM_OK;

    p->stages = true;
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
    PM_TRY(settle(p, f));
out:
    p->stages = false;
    return err;
}
