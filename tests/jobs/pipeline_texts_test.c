/* Conversion of pipeline configs of text recognition. */
#include "pipeline_run.h"

/* Whether a note names the field, and says that the run differs. */
static bool has_note(const char *field, bool differs)
{
    const cJSON *note;

    cJSON_ArrayForEach(note, p.notes)
        if (!strcmp(cJSON_GetObjectItem(note, "field")->valuestring, field) &&
            cJSON_IsTrue(cJSON_GetObjectItem(note, "differs")) == differs)
            return true;
    return false;
}

static const char texts_model[] =
    "model { multi_predictors_recognition_model {\n"
    "  spatial_transformer { convnet { stn_convnet { } } fc_hyperparams { op: FC }\n"
    "    localization_h: 32 localization_w: 64 output_w: 120 margin_x: 0 margin_y: 0\n"
    "    num_control_points: 20 init_bias_pattern: 'sine' activation: 'none'\n"
    "    summarize_activations: true }\n"
    "  feature_extractor { summarize_activations: false\n"
    "    convnet { crnn_net { net_type: SINGLE_BRANCH summarize_activations: false\n"
    "      conv_hyperparams { op: CONV regularizer { l2_regularizer { weight: 0.001 } }\n"
    "        initializer { variance_scaling_initializer { } } batch_norm { decay: 0.97 } } } }\n"
    "    bidirectional_rnn { static: true num_output_units: 128\n"
    "      rnn_regularizer { l2_regularizer { weight: 0.001 } } fc_hyperparams { op: FC }\n"
    "      fw_bw_rnn_cell { lstm_cell { num_units: 256 use_peepholes: false forget_bias: 1\n"
    "        initializer { } } } } }\n"
    "  predictor { name: 'Forward' attention_predictor { rnn_cell { lstm_cell {\n"
    "    num_units: 192 } } multi_attention: false\n"
    "    num_attention_units: 256 max_num_steps: 25 beam_width: 5 reverse: false sync: true\n"
    "    label_map { character_set { built_in_set: ALLCASES } label_offset: 2 }\n"
    "    loss { sequence_cross_entropy_loss { sequence_normalize: false\n"
    "      sample_normalize: true weight: 0.5 } } } } } }\n";

static void texts(void **state)
{
    (void)state;
    converted(texts_model);
    has("task", "\"recognition\"");
    has("model.name", "\"crnn\"");
    has("model.batch_norm_decay", "0.97");
    has("model.init", "\"variance_scaling(2)\"");
    has("optim.weight_decay", "0.001");
    has("model.transformer", "\"tps\"");
    has("model.spatial_transformer", "{\"localization_h\":32,\"localization_w\":64,"
        "\"output_w\":120,\"margin_x\":0,\"margin_y\":0,\"num_control_points\":20,"
        "\"init_bias_pattern\":\"sine\",\"activation\":\"none\"}");
    has("model.predictor", "\"attention\"");
    has("model.attention_direction", "\"forward\"");
    has("model.attention_units", "256");
    has("model.decoder_units", "192");
    has("model.beam_width", "5");
    has("data.charset", "\"allcases\"");
    has("data.max_num_steps", "25");
    assert_false(has_note("spatial_transformer", true) || has_note("attention_predictor", true));
    assert_true(has_note("num_output_units", true) && has_note("weight", true));
    assert_true(has_note("initializer", false) && !has_note("net_type", true));
    converted("model { multi_predictors_recognition_model {\n"
              "  feature_extractor { convnet { resnet { net_depth: RESNET_50 } } }\n"
              "  predictor { ctc_predictor { label_map { character_set {\n"
              "    text_file: 'a.txt' } } } } } }");
    has("data.charset", "\"allcases\""); /* of the first label map */
    has("model.name", "\"text_resnet50\"");
    assert_true(has_note("character_set", true) && !has_note("net_depth", true));
}

/* The loss of key points: the original's weight is 1, and without the message there is no loss. */
static void keypoint_loss(void **state)
{
    (void)state;
    converted("model { multi_predictors_recognition_model { spatial_transformer { }\n"
              "  predictor { ctc_predictor { loss { l2_regression_loss { } } } } } }");
    has("loss.keypoint_weight", "1");
    converted("model { multi_predictors_recognition_model { spatial_transformer { }\n"
              "  predictor { ctc_predictor { loss { l2_regression_loss { weight: 0.25 } } } } } }");
    has("loss.keypoint_weight", "0.25");
    assert_false(has_note("l2_regression_loss", true) || has_note("weight", true));
}

/* Each queue of the original has a number of examples of each batch. */
static void queues(void **state)
{
    static const char readers[] =
        "train_input_reader { tf_record_input_reader { input_path: 'd/one' } }\n"
        "train_input_reader { num_readers: 4 tf_record_input_reader { input_path: 'e/two' } }\n";
    struct pm_str text = { 0 };

    (void)state;
    pm_str_add(&text, "%strain_config { batch_size: [24, 8]\n"
               "  data_augmentation_options { resize_image_random_method { target_height: 64\n"
               "    target_width: 256 } }\n"
               "  data_augmentation_options { image_to_float { } }\n"
               "  data_augmentation_options { string_filtering { lower_case: true\n"
               "    include_charset { built_in_set: ALLCASES } } }\n"
               "  optimizer { adadelta_optimizer { rho: 0.9 learning_rate {\n"
               "    constant_learning_rate { learning_rate: 0.5 } } } } }\n%s"
               "eval_input_reader { tf_record_input_reader { input_path: 'd/test' } }\n"
               "eval_config { metrics_set: 'recognition_metrics' eval_with_lexicon: true\n"
               "  only_visualize_incorrect: true\n"
               "  data_preprocessing_steps { resize_image { target_height: 64 } } }", texts_model,
               readers);
    converted(text.text);
    pm_str_free(&text);
    has("run.batch_size", "32");
    has("data.folders",
        "[{\"folder\":\"d\",\"split\":\"one\",\"batch\":24},"
        "{\"folder\":\"e\",\"split\":\"two\",\"batch\":8}]");
    has("data.folder", "\"d\"");
    has("data.train_split", "\"one\"");
    has("data.eval_split", "\"test\"");
    has("data.lower_case", "true");
    has("data.unk_label", "-1");
    has("input.size", "[64,256]");
    has("input.augment", "[{\"name\":\"random_resize_method\"}]");
    has("optim.name", "\"adadelta\"");
    has("optim.rho", "0.9");
    has("optim.epsilon", "1e-08");
    has("schedule.base_lr", "0.5");
    assert_null(pm_pipeline_get(&p, "eval.metrics"));
    assert_false(has_note("metrics_set", true) || has_note("include_charset", true));
}

/* The order of the fields has no meaning: the model may stand last. */
static void model_last(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    pm_str_add(&text, "train_input_reader { tf_record_input_reader { input_path: 'd/one' } }\n"
               "train_input_reader { tf_record_input_reader { input_path: 'e/two' } }\n"
               "train_config { batch_size: [24, 8] }\n%s", texts_model);
    converted(text.text);
    pm_str_free(&text);
    has("task", "\"recognition\"");
    has("run.batch_size", "32");
    has("data.folders",
        "[{\"folder\":\"d\",\"split\":\"one\",\"batch\":24},"
        "{\"folder\":\"e\",\"split\":\"two\",\"batch\":8}]");
    assert_false(has_note("train_input_reader", true) || has_note("batch_size", true));
}

/* The original's defaults, and the size after resizing. */
static void texts_size(void **state)
{
    (void)state;
    converted("model { multi_predictors_recognition_model { spatial_transformer { }\n"
              "  predictor { attention_predictor { reverse: true } }\n"
              "  predictor { attention_predictor { } } } }\n"
              "train_config { batch_size: 64 data_augmentation_options {\n"
              "  resize_image { target_width: 100 target_height: 32 method: AREA } } }\n"
              "train_input_reader { tf_record_input_reader { input_path: 'd/one' } }");
    has("input.size", "[32,100]");
    has("model.attention_direction", "\"both\"");
    has("model.decoder_units", "128");
    has("model.attention_units", "128");
    has("data.max_num_steps", "40");
    has("model.spatial_transformer", "{\"localization_h\":64,\"localization_w\":128,"
        "\"margin_x\":0.1,\"margin_y\":0.1}");
    has("run.batch_size", "64");
    assert_null(pm_pipeline_get(&p, "data.folders"));
}

/* Every field that the fork has, with values that are not its defaults: an unknown one would be an
 * error. What has no key is noted as a difference. */
static void every_field(void **state)
{
    static const char *const differing[] = {
        "stn_convnet", "net_type", "num_output_units", "gru_cell", "num_units", "use_peepholes",
        "forget_bias", "fc_hyperparams", "multi_attention", "sync", "sample_normalize", "weight",
        "unk_label", "character_set",
    };

    (void)state;
    converted("model { multi_predictors_recognition_model {\n"
              "  spatial_transformer { convnet { stn_convnet { tiny: true } }\n"
              "    localization_h: 48 localization_w: 96 fc_hyperparams { op: FC }\n"
              "    output_h: 48 output_w: 160 margin_x: 0.05 margin_y: 0.2 num_control_points: 10\n"
              "    init_bias_pattern: 'slope' activation: 'sigmoid' summarize_activations: true }\n"
              "  feature_extractor { summarize_activations: true\n"
              "    convnet { crnn_net { net_type: TWO_BRANCHES tiny: true\n"
              "      conv_hyperparams { op: CONV } summarize_activations: true } }\n"
              "    convnet { resnet { net_type: TWO_BRANCHES net_depth: RESNET_30\n"
              "      conv_hyperparams { op: CONV } summarize_activations: true } }\n"
              "    convnet { stn_convnet { tiny: true } }\n"
              "    bidirectional_rnn { static: true num_output_units: 128\n"
              "      rnn_regularizer { l2_regularizer { weight: 0.001 } }\n"
              "      fc_hyperparams { op: FC } summarize_activations: true\n"
              "      fw_bw_rnn_cell { lstm_cell { num_units: 128 use_peepholes: true\n"
              "        forget_bias: 2 initializer { } } gru_cell { } } } }\n"
              "  predictor { name: 'Forward' attention_predictor {\n"
              "    rnn_cell { lstm_cell { num_units: 64 } }\n"
              "    rnn_regularizer { l2_regularizer { weight: 0.001 } } num_attention_units: 96\n"
              "    max_num_steps: 25 multi_attention: true beam_width: 3 sync: false\n"
              "    reverse: true\n"
              "    label_map { character_set { text_string: 'a b' delimiter: ' ' }\n"
              "      label_offset: 2 num_eos: 1 unk_label: 3 }\n"
              "    loss { sequence_cross_entropy_loss { sequence_normalize: true\n"
              "      sample_normalize: false weight: 0.25 } } } }\n"
              "  predictor { ctc_predictor { fc_hyperparams { } max_num_steps: 25\n"
              "    label_map { } loss { l2_regression_loss { } } } } } }\n"
              "train_config { batch_size: [2]\n"
              "  optimizer { use_moving_average: true nadam_optimizer { learning_rate {\n"
              "    manual_step_learning_rate {\n"
              "    initial_learning_rate: 1 schedule { step: 600000 learning_rate: 0.1 } } } } }\n"
              "  data_augmentation_options { normalize_image { } }\n"
              "  data_augmentation_options { subtract_channel_mean { means: [1, 2, 3] } }\n"
              "  data_augmentation_options { rgb_to_gray { three_channels: true } }\n"
              "  data_augmentation_options { random_pixel_value_scale { } }\n"
              "  data_augmentation_options { random_rgb_to_gray { } }\n"
              "  data_augmentation_options { random_adjust_brightness { } }\n"
              "  data_augmentation_options { random_distort_color { } }\n"
              "  batch_queue_capacity: 600 prefetch_queue_capacity: 100 save_summaries_steps: 10\n"
              "  save_checkpoint_secs: 60 keep_checkpoint_every_n_hours: 4 }\n"
              "train_input_reader { label_map_path: '' shuffle: true queue_capacity: 2000\n"
              "  min_after_dequeue: 1000 num_epochs: 0 num_readers: 8 load_instance_masks: false\n"
              "  tf_record_input_reader { input_path: 'd/one' } }\n"
              "eval_config { metrics_set: 'recognition_metrics' only_visualize_incorrect: true\n"
              "  eval_with_lexicon: true data_preprocessing_steps { image_to_float { } } }");
    has("model.spatial_transformer", "{\"localization_h\":48,\"localization_w\":96,"
        "\"output_h\":48,\"output_w\":160,\"margin_x\":0.05,\"margin_y\":0.2,"
        "\"num_control_points\":10,\"init_bias_pattern\":\"slope\",\"activation\":\"sigmoid\"}");
    has("model.attention_units", "96");
    has("model.beam_width", "3");
    has("data.max_num_steps", "25");
    has("optim.name", "\"nadam\"");
    for (size_t i = 0; i < PM_COUNT(differing); i++)
        if (!has_note(differing[i], true))
            fail_msg("nothing is said of %s", differing[i]);
}

static void queues_wrong(void **state)
{
    (void)state;
    assert_int_equal(pm_pipeline_text(&p, "p.config",
        "model { multi_predictors_recognition_model { } }\n"
        "train_config { batch_size: [1, 2] }\n"
        "train_input_reader { tf_record_input_reader { input_path: 'd/one' } }"), PM_EDATA);
    assert_contains(pm_error_text(),
                    "batch_size has 2 numbers, but the config has 1 train_input_reader: write");
    assert_null(strchr(pm_error_text(), '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keypoint_loss, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(model_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(texts_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_field, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queues_wrong, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
