/* Conversion of pipeline configs of rotated boxes: fields, defaults, names of nets, and what is not
 * available. */
#include "pipeline_run.h"

static void input_steps(void **state)
{
    (void)state;
    converted("train_input_reader {\n"
              "  preprocess_input_options { swap_height_width_of_rboxes { } }\n"
              "  preprocess_input_options { subtract_angle_of_rboxes { angle: 1.5 } }\n"
              "  preprocess_input_options { cutoff_max_gts { } } }");
    has("data.swap_sides", "true");
    has("data.subtract_angle", "1.5");
    has("data.cutoff_boxes", "100");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
    noted("train_input_reader {\n  preprocess_input_options {\n    normalize_tiff { } } }", 3,
          "normalize_tiff", true);
    noted("train_input_reader { preprocess_input_options { cutoff_max_gts { max_gts: 7 } }\n"
          "preprocess_input_options { swap_height_width_of_rboxes { } } }", 2,
          "swap_height_width_of_rboxes", true);
    has("data.cutoff_boxes", "7");
}

/* Evaluation counts every object. */
static void evaluation(void **state)
{
    (void)state;
    converted("eval_input_reader {\n"
              "  preprocess_input_options { swap_height_width_of_rboxes { } }\n"
              "  preprocess_input_options { cutoff_max_gts { max_gts: 9 } } }");
    has("data.swap_sides", "true");
    lacks("data.cutoff_boxes");
}

static void augmentation(void **state)
{
    (void)state;
    converted("train_config {\n"
              "  data_augmentation_options { random_horizontal_flip_rbox { } }\n"
              "  data_augmentation_options { random_vertical_flip_rbox { } }\n"
              "  data_augmentation_options { random_rotate_rbox { by_90: true } }\n"
              "  data_augmentation_options { random_rotate_rbox {\n"
              "    min_value: -1.5707963267948966 max_value: 0.25 } } }");
    has("input.augment", "[{\"name\":\"random_flip\"},{\"name\":\"random_vertical_flip\"},"
                         "{\"name\":\"random_rotate\",\"grow\":false,\"quarters\":true},"
                         "{\"name\":\"random_rotate\",\"grow\":false,\"min_degrees\":-90,"
                         "\"max_degrees\":14.323945}]");
    assert_int_equal(cJSON_GetArraySize(p.notes), 0);
}

static void anchors(void **state)
{
    (void)state;
    converted("model { ssd { anchor_generator { grid_rbbox_anchor_generator {\n"
              "  height: 128 height_stride: 8 } } } }");
    has("model.anchors",
        "{\"type\":\"grid\",\"scales\":[0.25,0.5,0.75,1],\"aspect_ratios\":[3,5,7],"
        "\"angles\":[-1.57079633,-1.0471976,-0.5235988,0,0.5235988,1.0471976,1.57079633],"
        "\"height\":128,\"height_stride\":8}");
    converted("model { ssd { anchor_generator { grid_rbbox_anchor_generator {\n"
              "  scales: 2 angles: [-90, 45] aspect_ratios: [2, 4] } } } }");
    has("model.anchors.angles", "[-1.57079633,0.7853982]");
    has("model.anchors.scales", "[2]");
    has("model.anchors.aspect_ratios", "[2,4]");
}

static void nets(void **state)
{
    (void)state;
    converted("model { ssd { feature_extractor { type: 'rssd_mobilenet_v2' }\n"
              "  box_predictor { convolutional_box_predictor { box_code_size: 5 } }\n"
              "  post_processing { batch_non_max_suppression {\n"
              "    handle_as_single_class: true box_type: RBBOX } } } is_rbbox: true }");
    has("model.name", "\"ssd_mobilenet_v2\"");
    has("model.boxes", "\"rotated\"");
    has("model.post_processing.use_class_agnostic_nms", "true");
    noted("model { ssd { box_predictor { convolutional_box_predictor { box_code_size: 6 } } } }", 1,
          "box_code_size", true);
    converted("model { ssd { box_predictor { convolutional_box_predictor { box_code_size: 4 } } } "
              "is_rbbox: false }");
    if (pm_pipeline_text(&p, "p.config", "model { faster_rcnn {\n feature_extractor {\n"
                         "type: 'rfaster_rcnn_resnet101' } } }") != PM_EDATA)
        fail_msg("rfaster_rcnn_resnet101 is converted");
    assert_contains(pm_error_text(), "p.config:3: ");
    assert_contains(pm_error_text(), "\"rfaster_rcnn_resnet101\": two-stage detectors find "
                                     "upright boxes only");
}

/* Every field of the fork has a row: an unknown one would be an error. */
static void every_field(void **state)
{
    (void)state;
    converted("model { is_rbbox: true ssd {\n"
              "  anchor_generator { grid_rbbox_anchor_generator { height: 128 width: 64\n"
              "    height_stride: 8 width_stride: 4 height_offset: 2 width_offset: 1\n"
              "    scales: [0.5] aspect_ratios: [4] angles: [-45, 45] } }\n"
              "  box_predictor { convolutional_box_predictor { box_code_size: 5 } }\n"
              "  post_processing { batch_non_max_suppression { box_type: RBBOX\n"
              "    handle_as_single_class: true score_threshold: 0.01 iou_threshold: 0.3\n"
              "    max_detections_per_class: 100 max_total_detections: 100 } } } }\n"
              "train_config { gradient_clipping_by_norm: 10\n"
              "  data_augmentation_options { random_rotate_rbox { min_value: -0.25\n"
              "    max_value: 0.5 by_90: false } } }\n"
              "train_input_reader {\n"
              "  preprocess_input_options { subtract_angle_of_rboxes { angle: -0.5 } }\n"
              "  preprocess_input_options { cutoff_max_gts { max_gts: 3 } } }");
    has("model.anchors",
        "{\"type\":\"grid\",\"height\":128,\"width\":64,\"height_stride\":8,"
        "\"width_stride\":4,\"height_offset\":2,\"width_offset\":1,\"scales\":[0.5],"
        "\"aspect_ratios\":[4],\"angles\":[-0.7853982,0.7853982]}");
    has("input.augment", "[{\"name\":\"random_rotate\",\"grow\":false,"
                         "\"min_degrees\":-14.323945,\"max_degrees\":28.64789,"
                         "\"quarters\":false}]");
    has("data.subtract_angle", "-0.5");
    has("data.cutoff_boxes", "3");
    has("model.post_processing.iou_threshold", "0.3");
    assert_int_equal(cJSON_GetArraySize(p.notes), 1); /* box_type follows from model.boxes */
    assert_false(cJSON_IsTrue(cJSON_GetObjectItem(p.notes->child, "differs")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(input_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(evaluation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(augmentation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(anchors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_field, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
