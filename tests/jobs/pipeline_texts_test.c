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
        cmocka_unit_test_setup_teardown(queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(model_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(texts_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queues_wrong, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
