/* Conversion of pipeline configs: every field of the protos has a row, values arrive at their keys,
 * and mistakes are named with their lines. */
#include "data/preprocessing_common.h"
#include "pipeline_run.h"

#include <pumice/train.h>

/* ---- the protos ------------------------------------------------------------------------------ */

static const struct {
    const char *kind;
    enum pm_pipeline_type type;
} kinds[] = {
    { "int", PM_PIPELINE_INT },       { "number", PM_PIPELINE_NUMBER },
    { "bool", PM_PIPELINE_BOOL },     { "text", PM_PIPELINE_TEXT },
    { "word", PM_PIPELINE_WORD },     { "ints", PM_PIPELINE_INTS },
    { "numbers", PM_PIPELINE_NUMBERS }, { "texts", PM_PIPELINE_TEXTS },
    { "message", PM_PIPELINE_MESSAGE }, { "messages", PM_PIPELINE_MESSAGE },
};

/* Checks the rows of a message and of those inside, as far as they are converted. */
static int walk(const cJSON *messages, const char *message, cJSON *seen)
{
    const cJSON *field;
    int fields = 0;

    if (cJSON_HasObjectItem(seen, message))
        return 0;
    cJSON_AddNullToObject(seen, message);
    cJSON_ArrayForEach(field, cJSON_GetObjectItemCaseSensitive(messages, message)) {
        const char *name = cJSON_GetArrayItem(field, 0)->valuestring;
        const char *kind = cJSON_GetArrayItem(field, 1)->valuestring;
        const char *of = cJSON_GetArrayItem(field, 2)->valuestring;
        const struct pm_pipeline_row *row = pm_pipeline_row(message, name);
        size_t k = 0;

        if (!row)
            fail_msg("%s.%s has no row", message, name);
        while (strcmp(kinds[k].kind, kind) != 0)
            k++;
        if (row->type != kinds[k].type)
            fail_msg("%s.%s is %s", message, name, kind);
        fields++;
        if (row->type != PM_PIPELINE_MESSAGE || row->how == PM_PIPELINE_LOST ||
            row->how == PM_PIPELINE_NONE)
            continue;
        assert_string_equal(row->of, of);
        fields += walk(messages, of, seen);
    }
    return fields;
}

static void every_field_has_a_row(void **state)
{
    size_t count;
    const struct pm_pipeline_row *rows = pm_pipeline_rows(&count);
    cJSON *golden = golden_file("pipeline_fields.json"), *seen = cJSON_CreateObject();

    (void)state;
    const int fields = walk(cJSON_GetObjectItem(golden, "messages"), "TrainEvalPipelineConfig",
                            seen);
    assert_in_range(fields, 530, 600);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(pm_pipeline_row(rows[i].message, rows[i].field), &rows[i]); /* once */
    cJSON_Delete(golden);
    cJSON_Delete(seen);
}

static void defaults_have_rows(void **state)
{
    size_t count;
    const struct pm_pipeline_row *rows = pm_pipeline_rows(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        size_t d = 0;
        for (const char *f; (f = pm_pipeline_default(rows[i].message, &d)) != NULL; d++)
            assert_non_null(pm_pipeline_row(rows[i].message, f));
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static void model(void **state)
{
    (void)state;
    converted("model { ssd { num_classes: 3\n"
              "  image_resizer { fixed_shape_resizer { height: 320 } }\n"
              "  feature_extractor { type: 'ssd_resnet50_v1_fpn'\n"
              "    conv_hyperparams { regularizer { l2_regularizer { weight: 0.0004 } }\n"
              "      initializer { truncated_normal_initializer { stddev: 0.03 } }\n"
              "      activation: RELU_6 batch_norm { decay: 0.997 } } }\n"
              "  anchor_generator { ssd_anchor_generator { aspect_ratios: [1, 0.3333] } }\n"
              "  loss { classification_loss { weighted_sigmoid_focal { gamma: 1.5 } } } } }");
    has("model.num_classes", "3");
    has("input.size", "[320,300]");
    has("model.name", "\"ssd_resnet_v1_50_fpn\"");
    has("optim.weight_decay", "0.0004");
    has("model.hyperparams",
        "{\"initializer\":\"truncated(0.03)\",\"batch_norm\":true,\"activation\":\"relu6\","
        "\"batch_norm_decay\":0.997,\"batch_norm_scale\":false,\"batch_norm_epsilon\":0.001}");
    has("model.anchors", "{\"type\":\"ssd\",\"aspect_ratios\":[1,0.3333],\"min_scale\":0.2,"
                         "\"max_scale\":0.95,\"reduce_boxes_in_lowest_layer\":true}");
    has("loss.classification", "{\"type\":\"weighted_sigmoid_focal\",\"gamma\":1.5}");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
}

static void training(void **state)
{
    (void)state;
    converted("train_config { batch_size: 24 num_steps: 200 bias_grad_multiplier: 2\n"
              "  fine_tune_checkpoint: 'C:/x\\model.ckpt' from_detection_checkpoint: true\n"
              "  freeze_variables: '.*conv1.*' freeze_variables: 'b'\n"
              "  data_augmentation_options { random_horizontal_flip { } }\n"
              "  data_augmentation_options { ssd_random_crop { operations { min_area: 0.5 } } }\n"
              "  optimizer { momentum_optimizer { learning_rate { manual_step_learning_rate {\n"
              "    initial_learning_rate: .0003 schedule { step: 9 learning_rate: .00003 }\n"
              "    schedule { step: 20 learning_rate: 3e-6 } warmup: true } } }\n"
              "    use_moving_average: false } }\n"
              "train_input_reader { tf_record_input_reader { input_path: '/d/a-[0-9]*-of-00010' }\n"
              "  label_map_path: '/d/m.pbtxt' sample_1_of_n_examples: 2 }\n"
              "eval_input_reader { tf_record_input_reader { input_path: '/d/b.record' }\n"
              "  label_map_path: '/d/m.pbtxt' sample_1_of_n_examples: 3 }\n"
              "eval_config { metrics_set: 'coco_detection_metrics' use_moving_averages: true\n"
              "  metrics_set: 'precision_at_recall_detection_metrics'\n"
              "  metrics_set: 'oid_challenge_detection_metrics'\n"
              "  skip_predictions_for_unlabeled_class: true recall_lower_bound: .25 }");
    has("eval.skip_unlabeled", "true");
    has("eval.recall_range", "[0.25,1]");
    has("eval.metrics", "[\"coco\",\"voc\",\"open_images_challenge\"]");
    has("data.sample_1_of_n", "2");
    has("run.batch_size", "24");
    has("optim.multipliers", "{\".*/biases\":2}");
    has("init.checkpoint", "\"C:/x\\\\model.ckpt\"");
    has("init.type", "\"detection\"");
    has("optim.freeze", "[\".*conv1.*\",\"b\"]");
    has("input.augment", "[{\"name\":\"random_flip\"},"
                         "{\"name\":\"ssd_random_crop\",\"operations\":[{\"min_area\":0.5}]}]");
    has("optim.name", "\"momentum\"");
    has("optim.moving_average_decay", "0");
    has("schedule.boundaries", "[11]");
    has("schedule.rates", "[3e-06]");
    has("schedule.base_lr", "3e-05");
    has("schedule.warmup_lr", "0.0003");
    has("schedule.warmup_steps", "9");
    has("schedule.warmup_shift", "true");
    has("data.folder", "\"/d\"");
    has("data.train_split", "\"a-[0-9]*-of-00010\"");
    has("data.eval_split", "\"b.record\"");
    has("eval.sample_1_of_n", "3");
    has("eval.averages", "\"on\"");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
    converted("model { ssd { loss { random_example_sampler { positive_sample_fraction: .25 }\n"
              "  classification_loss { weighted_logits_softmax { logit_scale: 2 } } } } }");
    has("loss.random_example_sampler", "{\"positive_sample_fraction\":0.25}");
    has("loss.classification", "{\"type\":\"weighted_logits_softmax\",\"logit_scale\":2}");
}

/* ---- two stages ------------------------------------------------------------------------------ */

/* Converts these fields of faster_rcnn into an empty config, without notes. */
static void stages(const char *fields)
{
    char whole[2048];

    cJSON_Delete(p.config);
    cJSON_Delete(p.notes);
    p.config = cJSON_CreateObject();
    p.notes = cJSON_CreateArray();
    snprintf(whole, sizeof whole, "model { faster_rcnn { %s } }", fields);
    converted(whole);
}

static void first_stage(void **state)
{
    (void)state;
    stages("num_classes: 90 feature_extractor { type: 'faster_rcnn_resnet101'\n"
           "  first_stage_features_stride: 16 batch_norm_trainable: true }\n"
           "first_stage_anchor_generator { grid_anchor_generator { scales: .5 aspect_ratios: 2\n"
           "  height_stride: 8 } } first_stage_atrous_rate: 2\n"
           "first_stage_box_predictor_kernel_size: 5 first_stage_box_predictor_depth: 64\n"
           "first_stage_box_predictor_conv_hyperparams { op: CONV\n"
           "  regularizer { l2_regularizer { weight: 0.0 } }\n"
           "  initializer { truncated_normal_initializer { stddev: 0.01 } } }\n"
           "first_stage_minibatch_size: 128 first_stage_positive_balance_fraction: .25\n"
           "first_stage_nms_score_threshold: .1 first_stage_nms_iou_threshold: .8\n"
           "first_stage_max_proposals: 100 first_stage_localization_loss_weight: 2\n"
           "first_stage_objectness_loss_weight: 3 clip_anchors_to_image: true");
    has("model.name", "\"faster_rcnn_resnet101\"");
    has("model.num_classes", "90");
    lacks("model.first_stage_features_stride");
    has("model.batch_norm_train", "true");
    has("model.anchors",
        "{\"type\":\"grid\",\"scales\":[0.5],\"aspect_ratios\":[2],\"height_stride\":8}");
    has("model.first_stage_atrous_rate", "2");
    has("model.first_stage_box_predictor_kernel_size", "5");
    has("model.first_stage_box_predictor_depth", "64");
    has("model.hyperparams", "{\"initializer\":\"truncated(0.01)\",\"batch_norm\":false}");
    has("optim.weight_decay", "0");
    has("loss.minibatch_sampler", "{\"batch_size\":128,\"positive_fraction\":0.25}");
    has("model.proposals",
        "{\"score_threshold\":0.1,\"iou_threshold\":0.8,\"max_proposals\":100}");
    has("loss.localization", "{\"weight\":2}");
    has("loss.classification", "{\"weight\":3,\"type\":\"weighted_softmax\"}");
    has("model.anchors_outside", "\"clip\"");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
    stages("feature_extractor { type: 'faster_rcnn_inception_resnet_v2'\n"
           "  first_stage_features_stride: 8 } clip_anchors_to_image: false");
    has("model.name", "\"faster_rcnn_inception_resnet_v2\"");
    has("model.first_stage_features_stride", "8");
    has("model.anchors_outside", "\"prune\"");
    lacks("loss.classification");
}

#define FC "op: FC initializer { variance_scaling_initializer { factor: 1 uniform: true\n" \
           "  mode: FAN_AVG } } regularizer { l2_regularizer { weight: 0 } }"

static void second_stage(void **state)
{
    (void)state;
    stages("initial_crop_size: 17 maxpool_kernel_size: 1 maxpool_stride: 1\n"
           "second_stage_box_predictor { mask_rcnn_box_predictor { use_dropout: false\n"
           "  dropout_keep_probability: 1 fc_hyperparams { " FC " }\n"
           "  share_box_across_classes: true } }\n"
           "second_stage_batch_size: 32 second_stage_balance_fraction: .5\n"
           "second_stage_post_processing { batch_non_max_suppression { iou_threshold: .6\n"
           "  max_total_detections: 300 } score_converter: SOFTMAX }\n"
           "second_stage_localization_loss_weight: 2 second_stage_classification_loss_weight: 3\n"
           "second_stage_mask_prediction_loss_weight: 4\n"
           "second_stage_classification_loss { weighted_softmax { logit_scale: 2 } }\n"
           "hard_example_miner { num_hard_examples: 9 loss_type: CLASSIFICATION }");
    has("model.initial_crop_size", "17");
    has("model.maxpool_kernel_size", "1");
    has("model.maxpool_stride", "1");
    has("model.second_stage_box_predictor",
        "{\"type\":\"mask_rcnn\",\"use_dropout\":false,\"dropout_keep_probability\":1,"
        "\"hyperparams\":{\"initializer\":\"xavier\"},\"share_box_across_classes\":true}");
    has("loss.proposal_sampler", "{\"batch_size\":32,\"positive_fraction\":0.5}");
    has("model.post_processing",
        "{\"iou_threshold\":0.6,\"max_total_detections\":300,\"score_threshold\":0,"
        "\"max_detections_per_class\":100,\"score_converter\":\"softmax\"}");
    has("loss.second_stage", "{\"localization_weight\":2,\"classification_weight\":3,"
                             "\"mask_weight\":4,\"logit_scale\":2}");
    has("loss.hard_example_miner",
        "{\"num_hard_examples\":9,\"loss_type\":\"classification\",\"iou_threshold\":0.7}");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
    stages("second_stage_box_predictor { rfcn_box_predictor { num_spatial_bins_height: 3\n"
           "  num_spatial_bins_width: 4 depth: 64 crop_height: 18 crop_width: 16\n"
           "  conv_hyperparams { initializer { random_normal_initializer { stddev: .5 } } } } }");
    has("model.second_stage_box_predictor",
        "{\"type\":\"rfcn\",\"num_spatial_bins_height\":3,\"num_spatial_bins_width\":4,"
        "\"depth\":64,\"crop_height\":18,\"crop_width\":16,\"hyperparams\":{\"initializer\":"
        "\"normal(0.5)\",\"batch_norm\":false,\"activation\":\"relu\"}}");
}

/* number_of_stages 3 predicts masks, 2 does not, whatever the predictor says; with 1 nothing of the
 * second stage has an effect. */
static void numbers_of_stages(void **state)
{
    static const char *const all =
        "num_classes: 3 second_stage_box_predictor { mask_rcnn_box_predictor {\n"
        "  predict_instance_masks: true mask_height: 33 mask_prediction_conv_depth: 0\n"
        "  conv_hyperparams { } } } second_stage_batch_size: 9 hard_example_miner { }\n"
        "second_stage_localization_loss_weight: 2 second_stage_post_processing { } %s";
    char text[1024];

    (void)state;
    snprintf(text, sizeof text, all, "number_of_stages: 3");
    stages(text);
    has("model.second_stage_box_predictor",
        "{\"type\":\"mask_rcnn\",\"predict_instance_masks\":true,\"mask_height\":33,"
        "\"mask_prediction_conv_depth\":0,\"conv_hyperparams\":{\"batch_norm\":false,"
        "\"activation\":\"relu\"}}");
    lacks("model.number_of_stages");
    for (int k = 0; k < 2; k++) { /* 2 is the default */
        snprintf(text, sizeof text, all, k ? "number_of_stages: 2" : "");
        stages(text);
        has("model.second_stage_box_predictor.mask_height", "33");
        lacks("model.second_stage_box_predictor.predict_instance_masks");
        lacks("data.class_agnostic");
    }
    snprintf(text, sizeof text, all, "number_of_stages: 1");
    stages(text);
    has("model", "{\"number_of_stages\":1}");
    has("data", "{\"class_agnostic\":true}");
    has("loss", "{}");
}

/* The padding of two stages is normalised after it, as the net's pictures are. */
static void padding(void **state)
{
    static const char *const form =
        "image_resizer { keep_aspect_ratio_resizer { pad_to_max_dimension: true\n"
        "  per_channel_pad_value: [255, 0, 127.5] } } feature_extractor { type: '%s' }";
    char text[512];

    (void)state;
    snprintf(text, sizeof text, form, "faster_rcnn_inception_v2");
    stages(text);
    has("input.pad_value", "[1,-1,0]");
    snprintf(text, sizeof text, form, "faster_rcnn_resnet50");
    stages(text);
    for (int c = 0; c < 3; c++) {
        static const double wanted[3] = { 255 - 123.68, -116.779, 127.5 - 103.939 };
        const cJSON *v = cJSON_GetArrayItem(pm_pipeline_get(&p, "input.pad_value"), c);

        assert_true(fabs(v->valuedouble - wanted[c]) < 1e-5); /* float32 of 131 at most */
    }
    has("input.size", "1024");
    converted("model { ssd { image_resizer { keep_aspect_ratio_resizer {\n"
              "  per_channel_pad_value: .5 } } } }");
    assert_int_equal(cJSON_GetArraySize(pm_pipeline_get(&p, "input.pad_value")), 4);
    assert_true(cJSON_GetArrayItem(pm_pipeline_get(&p, "input.pad_value"), 3)->valuedouble == .5);
}

/* One layer is regularised, the others are not. Two weights cannot both hold. */
static void stages_weight_decay(void **state)
{
    (void)state;
    stages("first_stage_box_predictor_conv_hyperparams {\n"
           "  regularizer { l2_regularizer { weight: 0.0 } } }\n"
           "second_stage_box_predictor { mask_rcnn_box_predictor { fc_hyperparams { op: FC\n"
           "  regularizer { l2_regularizer { weight: 0.25 } } } } }");
    has("optim.weight_decay", "0.25");
    has("model.hyperparams", "{\"batch_norm\":false}");
    has("model.second_stage_box_predictor.hyperparams", "{\"regularize\":true}");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
    noted("model { faster_rcnn { first_stage_box_predictor_conv_hyperparams {\n"
          "  regularizer { l2_regularizer { weight: 0.5 } } } } }", 2, "weight", true);
}

/* Converts one learning rate into an empty config. */
static void rate(const char *text)
{
    char whole[512];

    cJSON_Delete(p.config);
    p.config = cJSON_CreateObject();
    snprintf(whole, sizeof whole, "train_config { optimizer { rms_prop_optimizer {\n"
             "  learning_rate { %s } } } }", text);
    converted(whole);
}

static void augmentation(void **state)
{
    (void)state;
    converted("train_config { data_augmentation_options { random_adjust_contrast { } }\n"
              "  data_augmentation_options { random_image_scale { max_scale_ratio: 1.5 } }\n"
              "  data_augmentation_options { ssd_random_crop_pad { operations {\n"
              "    pad_color_g: 7 max_padded_size_ratio: [2, 3] } } }\n"
              "  data_augmentation_options { resize_image { method: NEAREST_NEIGHBOR } } }");
    has("input.augment",
        "[{\"name\":\"random_contrast\",\"min\":0.8,\"max\":1.25},{\"name\":\"clip\"},"
        "{\"name\":\"random_scale\",\"scale_step\":0,\"max_scale\":1.5},"
        "{\"name\":\"ssd_random_crop_pad\",\"operations\":[{\"pad_color\":[0,7,0],"
        "\"max_padded_size_ratio\":[2,3]}]},{\"name\":\"resize\",\"method\":\"nearest\"}]");
}

static void optimizers(void **state)
{
    (void)state;
    converted("train_config { optimizer { use_moving_average: false nadam_optimizer {\n"
              "  learning_rate { constant_learning_rate { learning_rate: 0.25 } } } } }");
    has("optim", "{\"moving_average_decay\":0,\"name\":\"nadam\"}");
    has("schedule", "{\"policy\":\"fixed\",\"base_lr\":0.25}");
}

static void rates(void **state)
{
    (void)state;
    rate("exponential_decay_learning_rate { burnin_steps: 5 }");
    has("schedule", "{\"policy\":\"exponential\",\"warmup_steps\":5,\"base_lr\":0.002,"
                    "\"decay_steps\":4000000,\"decay_factor\":0.95,\"warmup_shape\":\"constant\","
                    "\"warmup_shift\":true,\"warmup_lr\":0.002}");
    has("optim.moving_average_decay", "0.9999");
    rate("cosine_decay_learning_rate { learning_rate_base: 0.5 total_steps: 25000\n"
         "  warmup_steps: 2000 hold_base_rate_steps: 500 }");
    has("schedule", "{\"policy\":\"cosine\",\"base_lr\":0.5,\"warmup_steps\":2000,"
                    "\"hold_steps\":500,\"warmup_lr\":0.0002,\"decay_steps\":22500,"
                    "\"end_lr\":0,\"warmup_shift\":true}");
    rate("manual_step_learning_rate { initial_learning_rate: 0.5 warmup: true\n"
         "  schedule { step: 7 learning_rate: 0.25 } }");
    has("schedule", "{\"warmup_steps\":7,\"warmup_lr\":0.5,\"warmup_shift\":true,"
                    "\"base_lr\":0.25,\"policy\":\"fixed\"}");
    rate("manual_step_learning_rate { initial_learning_rate: 0.5\n"
         "  schedule { step: 7 learning_rate: 0.25 } }");
    has("schedule", "{\"policy\":\"piecewise\",\"base_lr\":0.5,\"boundaries\":[7],"
                    "\"rates\":[0.25]}");
}

/* ---- notes and mistakes ---------------------------------------------------------------------- */

static void notes(void **state)
{
    (void)state;
    noted("model { ssd {\n use_confidences_as_targets: true } }", 2, "use_confidences_as_targets",
          true);
    noted("train_config {\n\n batch_queue_capacity: 3 }", 3, "batch_queue_capacity", false);
    noted("model { ssd { feature_extractor { type: 'ssd_pnasnet' } } }", 1, "type", true);
    noted("eval_config { metrics_set: 'x' }", 1, "metrics_set", true);
    noted("model { ssd { box_predictor {\n mask_rcnn_box_predictor { } } } }", 2,
          "mask_rcnn_box_predictor", true);
    noted("model { faster_rcnn { feature_extractor {\n type: 'faster_rcnn_nas' } } }", 2, "type",
          true);
    noted("model { faster_rcnn { use_static_shapes: true } }", 1, "use_static_shapes", false);
    noted("model { faster_rcnn { use_partitioned_nms_in_first_stage: false } }", 1,
          "use_partitioned_nms_in_first_stage", false);
    noted("model { faster_rcnn { context_config { } } }", 1, "context_config", true);
    noted("model { faster_rcnn { hard_example_miner {\n max_negatives_per_positive: 3 } } }", 2,
          "max_negatives_per_positive", false);
    noted("model { faster_rcnn {\n second_stage_classification_loss { weighted_sigmoid { } } } }",
          2, "second_stage_classification_loss", true);
    noted("model { faster_rcnn { second_stage_box_predictor { mask_rcnn_box_predictor {\n"
          "  fc_hyperparams {\n op: CONV } } } } }", 3, "op", true);
    noted("model { ssd { feature_extractor { conv_hyperparams { op: FC } } } }", 1, "op", true);
    noted("model { ssd { feature_extractor { conv_hyperparams { initializer {\n"
          "  variance_scaling_initializer { mode: FAN_AVG } } } } } }", 2,
          "variance_scaling_initializer", true);
    converted("model { ssd { use_confidences_as_targets: false } }");
    assert_int_equal(cJSON_GetArraySize(p.notes), 1); /* without effect: no second note */
}

static void quantization(void **state)
{
    (void)state;
    converted("graph_rewriter { quantization { } }");
    has("model.quantize_delay", "500000");
    assert_null(pm_pipeline_get(&p, "model.quantize_symmetric"));
    converted("graph_rewriter { quantization { delay: 48000 weight_bits: 8 activation_bits: 8\n"
              "  symmetric: true } }");
    has("model.quantize_delay", "48000");
    has("model.quantize_symmetric", "true");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
}

static void refused(const char *text, int code, const char *wanted)
{
    if (pm_pipeline_text(&p, "p.config", text) != code || !strstr(pm_error_text(), wanted))
        fail_msg("%s: %s", text, pm_error_text());
}

static void mistakes(void **state)
{
    (void)state;
    refused("", PM_EDATA, "p.config:1: nothing is not a field of a pipeline config");
    refused("item { id: 1 }", PM_EDATA, "p.config:1: item is not a field of a pipeline config");
    refused("model { ssd {\n num_class: 3 } }", PM_EDATA,
            "p.config:2: num_class: Ssd has no such field (did you mean num_classes?)");
    refused("model { ssd { num_classes: 'x' } }", PM_EDATA,
            "p.config:1: num_classes: a whole number is needed, found: x");
    refused("model { ssd { num_classes: { } } }", PM_EDATA, "a whole number is needed, found: {");
    refused("model: 3", PM_EDATA, "p.config:1: model: '{' is needed, found: 3");
    refused("model { ssd { box_coder: 3 } }", PM_EDATA, "box_coder: '{' is needed, found: 3");
    refused("model { center_net: x }", PM_EDATA, "center_net: '{' is needed, found: x");
    refused("train_config { optimizer: 3 }", PM_EDATA, "optimizer: '{' is needed");
    refused("train_config: { fine_tune_checkpoint: 3 }", PM_EDATA, "a text in quotes is needed");
    refused("model { ssd { add_background_class: 2 } }", PM_EDATA, "true or false is needed");
    refused("model {\n faster_rcnn: 3 }", PM_EDATA, "p.config:2: faster_rcnn: '{' is needed");
    refused("model { faster_rcnn {\n number_of_stages: 4 } }", PM_EDATA,
            "p.config:2: number_of_stages: 4 is outside 1..3");
    refused("model { faster_rcnn { initial_crop: 14 } }", PM_EDATA,
            "FasterRcnn has no such field (did you mean initial_crop_size?)");
    refused("model { faster_rcnn { second_stage_box_predictor {\n"
            "  convolutional_box_predictor { } } } }", PM_EDATA,
            "p.config:1: second_stage_box_predictor: mask_rcnn_box_predictor or rfcn_box_predictor "
            "is needed, found: convolutional_box_predictor");
    refused("model { faster_rcnn { second_stage_classification_loss: 3 } }", PM_EDATA,
            "second_stage_classification_loss: '{' is needed");
    refused("model { faster_rcnn { clip_anchors_to_image: 2 } }", PM_EDATA,
            "true or false is needed");
    refused("graph_rewriter { quantization { weight_bits: 8\n activation_bits: 16 } }", PM_EDATA,
            "p.config:2: activation_bits: 16: training rounds to 8 bits only: set it to 8");
    refused("graph_rewriter { quantization { weight_bits: 4 } }", PM_EDATA,
            "p.config:1: weight_bits: 4: training rounds to 8 bits only: set it to 8");
    refused("graph_rewriter { quantization { weight_bits: x } }", PM_EDATA,
            "a whole number is needed");
    refused("model { ssd", PM_EDATA, "p.config:1: expected '{' or ':'");
}

static void parts(void **state)
{
    (void)state;
    converted("ssd { num_classes: 7 }");
    converted("batch_size: 5");
    converted("label_map_path: 'm.pbtxt'");
    converted("num_examples: 5");
    has("model.num_classes", "7");
    has("run.batch_size", "5");
    has("data.label_map", "\"m.pbtxt\"");
}

/* ---- real files ------------------------------------------------------------------------------ */

static void real(void **state)
{
    char **paths = NULL;
    size_t count = 0;
    const char *folder = shared_data("pipeline-configs");

    (void)state;
    assert_int_equal(pm_glob(p.arena, pm_arena_printf(p.arena, "%s/configs/*.config", folder),
                             &paths, &count), PM_OK);
    for (size_t i = 0; i < count; i++) {
        cJSON *config = NULL, *list = NULL;

        if (pm_convert_pipeline((const char *const *)&paths[i], 1, &config, &list) < 0)
            fail_msg("%s", pm_error_text());
        cJSON_Delete(config);
        cJSON_Delete(list);
    }
    assert_int_equal(count, 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_a_row),
        cmocka_unit_test(defaults_have_rows),
        cmocka_unit_test_setup_teardown(model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(training, set_up, tear_down),
        cmocka_unit_test_setup_teardown(first_stage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(second_stage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_of_stages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(padding, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stages_weight_decay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(augmentation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(optimizers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(notes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quantization, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mistakes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(real, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
