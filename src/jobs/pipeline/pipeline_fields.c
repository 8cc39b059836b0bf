/* The rows of all fields, and the defaults that differ from Pumice's. */
#include "jobs/pipeline/fields.h"

#include <pumice/train.h>

#include <string.h>

#define V(m, f, t, h, to) { #m, #f, PM_PIPELINE_##t, NULL, PM_PIPELINE_##h, to, NULL, NULL },
#define S(m, f, of, h, to) \
    { #m, #f, PM_PIPELINE_MESSAGE, #of, PM_PIPELINE_##h, to, NULL, NULL },
#define C(m, f, t, call, what) \
    { #m, #f, PM_PIPELINE_##t, NULL, PM_PIPELINE_CALL_OF, what, NULL, pm_pipeline_##call },
#define CS(m, f, of, call, what) \
    { #m, #f, PM_PIPELINE_MESSAGE, #of, PM_PIPELINE_CALL_OF, what, NULL, pm_pipeline_##call },
#define USED(m, f, t) { #m, #f, PM_PIPELINE_##t, NULL, PM_PIPELINE_USED, NULL, NULL, NULL },
#define NONE(m, f, t, same, why) \
    { #m, #f, PM_PIPELINE_##t, NULL, PM_PIPELINE_NONE, why, same, NULL },
#define LOST(m, f, t, same, why) \
    { #m, #f, PM_PIPELINE_##t, NULL, PM_PIPELINE_LOST, why, same, NULL },

static const struct pm_pipeline_row rows[] = {
#include "jobs/pipeline/model.def"

#include "jobs/pipeline/two_stages.def"

#include "jobs/pipeline/train.def"

#include "jobs/pipeline/augment.def"

#include "jobs/pipeline/texts.def"
};

const struct pm_pipeline_row *pm_pipeline_rows(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

const struct pm_pipeline_row *pm_pipeline_row(const char *message, const char *field)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i].message, message) == 0 && strcmp(rows[i].field, field) == 0)
            return &rows[i];
    return NULL;
}

/* Values of the protos' fields when the file does not have them, where Pumice's own default may
 * differ. */
static const struct {
    const char *message, *field, *value;
} defaults[] = {
    { "FixedShapeResizer", "height", "300" },
    { "FixedShapeResizer", "width", "300" },
    { "KeepAspectRatioResizer", "min_dimension", "600" },
    { "KeepAspectRatioResizer", "max_dimension", "1024" },
    { "ConditionalShapeResizer", "size_threshold", "300" },
    { "SsdFeatureExtractor", "min_depth", "16" },
    { "SsdFeatureExtractor", "override_base_feature_extractor_hyperparams", "false" },
    { "Hyperparams", "activation", "RELU" },
    { "BatchNorm", "decay", "0.999" },
    { "BatchNorm", "scale", "false" },
    { "BatchNorm", "epsilon", "0.001" },
    { "L2Regularizer", "weight", "1" },
    { "ArgMaxMatcher", "force_match_for_each_row", "false" },
    { "ConvolutionalBoxPredictor", "use_dropout", "true" },
    { "ConvolutionalBoxPredictor", "dropout_keep_probability", "0.8" },
    { "ConvolutionalBoxPredictor", "kernel_size", "1" },
    { "WeightSharedConvolutionalBoxPredictor", "num_layers_before_predictor", "0" },
    { "WeightSharedConvolutionalBoxPredictor", "depth", "0" },
    { "WeightSharedConvolutionalBoxPredictor", "kernel_size", "3" },
    { "WeightSharedConvolutionalBoxPredictor", "class_prediction_bias_init", "0" },
    { "SsdAnchorGenerator", "min_scale", "0.2" },
    { "SsdAnchorGenerator", "max_scale", "0.95" },
    { "SsdAnchorGenerator", "reduce_boxes_in_lowest_layer", "true" },
    { "PostProcessing", "score_converter", "IDENTITY" },
    { "BatchNonMaxSuppression", "score_threshold", "0" },
    { "BatchNonMaxSuppression", "iou_threshold", "0.6" },
    { "BatchNonMaxSuppression", "max_detections_per_class", "100" },
    { "BatchNonMaxSuppression", "max_total_detections", "100" },
    { "HardExampleMiner", "num_hard_examples", "64" },
    { "HardExampleMiner", "iou_threshold", "0.7" },
    { "HardExampleMiner", "loss_type", "BOTH" },
    { "HardExampleMiner", "max_negatives_per_positive", "0" },
    { "HardExampleMiner", "min_negatives_per_image", "0" },
    { "CutoffMaxGts", "max_gts", "100" },
    { "RandomAdjustBrightness", "max_delta", "0.2" },
    { "RandomAdjustContrast", "min_delta", "0.8" },
    { "RandomAdjustContrast", "max_delta", "1.25" },
    { "RandomAdjustSaturation", "min_delta", "0.8" },
    { "RandomAdjustSaturation", "max_delta", "1.25" },
    { "RandomAdjustHue", "max_delta", "0.02" },
    { "AdamOptimizer", "epsilon", "1e-8" },
    { "ConstantLearningRate", "learning_rate", "0.002" },
    { "ExponentialDecayLearningRate", "initial_learning_rate", "0.002" },
    { "ExponentialDecayLearningRate", "decay_steps", "4000000" },
    { "ExponentialDecayLearningRate", "decay_factor", "0.95" },
    { "ManualStepLearningRate", "initial_learning_rate", "0.002" },
    { "LearningRateSchedule", "learning_rate", "0.002" },
    { "CosineDecayLearningRate", "learning_rate_base", "0.002" },
    { "CosineDecayLearningRate", "total_steps", "4000000" },
    { "CosineDecayLearningRate", "warmup_learning_rate", "0.0002" },
    { "CosineDecayLearningRate", "warmup_steps", "10000" },
    { "TrainConfig", "num_steps", "0" },
    { "AttentionPredictor", "max_num_steps", "40" },
    { "AttentionPredictor", "num_attention_units", "128" },
    { "AttentionPredictor", "beam_width", "1" },
    { "L2RegressionLoss", "weight", "1" },
    { "SpatialTransformer", "localization_h", "64" },
    { "SpatialTransformer", "localization_w", "128" },
    { "SpatialTransformer", "margin_x", "0.1" },
    { "SpatialTransformer", "margin_y", "0.1" },
    { "ResizeImageRandomMethod", "target_height", "512" },
    { "ResizeImageRandomMethod", "target_width", "512" },
    { "Quantization", "delay", "500000" },
};

const char *pm_pipeline_default(const char *message, size_t *i)
{
    for (; *i < PM_COUNT(defaults); ++*i)
        if (strcmp(defaults[*i].message, message) == 0)
            return defaults[*i].field;
    return NULL;
}

const char *pm_pipeline_default_value(size_t i)
{
    return defaults[i].value;
}

/* ---- the table of docs/migrating.md ---------------------------------------------------------- */

/* Appends what becomes of a field. */
static void add_place(struct pm_str *s, const struct pm_pipeline_row *r)
{
    const char *name = r->to ? r->to : r->field;

    switch (r->how) {
    case PM_PIPELINE_KEY: pm_str_add(s, "`%s`", name); break;
    case PM_PIPELINE_MEMBER: pm_str_add(s, "member `%s`", name); break;
    case PM_PIPELINE_CALL_OF: pm_str_add(s, "%s", name); break;
    case PM_PIPELINE_USED: pm_str_add(s, "part of the value above"); break;
    case PM_PIPELINE_THROUGH: pm_str_add(s, "the fields of %s", r->of); break;
    case PM_PIPELINE_AT: pm_str_add(s, "object `%s`: the fields of %s", name, r->of); break;
    case PM_PIPELINE_INSIDE: pm_str_add(s, "member `%s`: the fields of %s", name, r->of); break;
    case PM_PIPELINE_TYPE:
        pm_str_add(s, "member `type`: \"%s\"; the fields of %s", name, r->of);
        break;
    case PM_PIPELINE_WORD_OF:
        pm_str_add(s, "member `similarity`: \"%s\"; the fields of %s", name, r->of);
        break;
    case PM_PIPELINE_STEP:
        pm_str_add(s, "`input.augment`: \"%s\"; the fields of %s", name, r->of);
        break;
    case PM_PIPELINE_ITEM: pm_str_add(s, "list `%s`: the fields of %s", name, r->of); break;
    case PM_PIPELINE_NONE: pm_str_add(s, "not needed: %s", name); break;
    case PM_PIPELINE_LOST: pm_str_add(s, "not converted: %s", name); break;
    }
}

bool pm_convert_pipeline_has(const char *name)
{
    const char *last = strrchr(name, '.');

    last = last ? last + 1 : name;
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i].field, last) == 0)
            return true;
    return false;
}

char *pm_convert_pipeline_markdown(void)
{
    struct pm_str s = { 0 };
    const char *message = "";

    pm_str_add(&s, "\n## Fields of pipeline configs\n\n"
                   "`pumice config convert` reads pipeline configs of TensorFlow's Object "
                   "Detection API. \"member\" is a member of the object that the message "
                   "becomes.\n");
    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        if (strcmp(rows[i].message, message) != 0)
            pm_str_add(&s, "\n### %s\n\n| field | here |\n|---|---|\n", rows[i].message);
        message = rows[i].message;
        pm_str_add(&s, "| `%s` | ", rows[i].field);
        add_place(&s, &rows[i]);
        pm_str_add(&s, " |\n");
    }
    return s.text;
}
