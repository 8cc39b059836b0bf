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
}

#define TWO_STAGES                                                                                 \
    "  first_stage_anchor_generator { grid_rbbox_anchor_generator { } }\n"                         \
    "  first_stage_nms_iou_threshold: 0.6 first_stage_max_proposals: 100\n"                        \
    "  first_stage_localization_loss_weight: 2 second_stage_batch_size: 32\n"                      \
    "  initial_crop_size: 14 maxpool_kernel_size: 2 maxpool_stride: 2\n"                           \
    "  second_stage_post_processing { batch_non_max_suppression { score_threshold: 0.01\n"         \
    "    iou_threshold: 0.3 max_detections_per_class: 100 max_total_detections: 100\n"             \
    "    handle_as_single_class: true box_type: RBBOX } score_converter: SOFTMAX }\n"

/* RBox-CNN. The matcher is that of the net's recipe, which the config's model.boxes chooses. */
static void two_stages(void **state)
{
    static const char upright[] = "model { faster_rcnn {\n"
                                  "  feature_extractor { type: 'faster_rcnn_resnet101' }\n"
                                  TWO_STAGES "} }";

    (void)state;
    converted("model { faster_rcnn {\n"
              "  feature_extractor { type: 'rfaster_rcnn_resnet101' }\n" TWO_STAGES
              "  second_stage_box_predictor { mask_rcnn_box_predictor { box_code_size: 5 } } }\n"
              "  is_rbbox: true }");
    has("model.name", "\"faster_rcnn_resnet101\"");
    has("model.boxes", "\"rotated\"");
    has("model.anchors.aspect_ratios", "[3,5,7]");
    lacks("model.matcher");
    has("model.proposals.max_proposals", "100");
    has("loss.localization.weight", "2");
    has("loss.proposal_sampler.iou_threshold", "0.4");
    has("loss.proposal_sampler.batch_size", "32");
    has("model.post_processing.use_class_agnostic_nms", "true");
    has("model.post_processing.iou_threshold", "0.3");
    assert_int_equal(cJSON_GetArraySize(p.notes), 1); /* box_type is not needed */
    tear_down(state);
    set_up(state);
    converted(upright);
    lacks("loss.proposal_sampler.iou_threshold");
    converted("model { faster_rcnn {\n"
              "  feature_extractor { type: 'faster_rcnn_resnet101' }\n" TWO_STAGES "}\n"
              "  is_rbbox: true }");
    has("loss.proposal_sampler.iou_threshold", "0.4");
}

static void refused(const char *predictor, const char *message)
{
    char text[1024];

    snprintf(text, sizeof text, "model { faster_rcnn { number_of_stages: 3\n"
             "  feature_extractor { type: 'rfaster_rcnn_resnet101' }\n" TWO_STAGES
             "  second_stage_box_predictor { %s } } }", predictor);
    if (pm_pipeline_text(&p, "p.config", text) != PM_EDATA)
        fail_msg("%s is converted", predictor);
    assert_contains(pm_error_text(), message);
}

static void masks(void **state)
{
    (void)state;
    refused("mask_rcnn_box_predictor { predict_instance_masks: true }",
            "predict_instance_masks: masks need upright boxes, but the boxes are rotated");
}

static void rfcn(void **state)
{
    (void)state;
    refused("rfcn_box_predictor { }", "rfcn_box_predictor crops upright boxes, but the boxes are "
                                      "rotated");
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
        cmocka_unit_test_setup_teardown(two_stages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(masks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rfcn, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
