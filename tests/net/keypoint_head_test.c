/* The keypoint head of two-stage nets: its variables, their initial weights, the sizes of its maps
 * and its error messages. The expected numbers are computed by hand, because no recipe of the
 * Object Detection API has this head. */
#include "named_net.h"

#include <pumice/layer.h>

enum { ROWS = 3, KEYPOINTS = 17 };

static struct pm_net *with_head(const char *predictor, int keypoints, struct pm_heads *heads)
{
    char options[512];

    snprintf(options, sizeof options, "{\"second_stage_box_predictor\": {%s}}", predictor);
    struct pm_net *net = named_net("faster_rcnn_resnet50", 2, 320, 320, 90, options, heads);

    assert_int_equal(net->error, PM_OK);
    named_second_with(net, "faster_rcnn_resnet50", ROWS, keypoints, 90, options, heads);
    return net;
}

/* fan: the one that the initializer divides by. */
static void expect_initial(struct pm_net *net, const char *name, enum pm_init_kind kind, int fan)
{
    const struct pm_variable *v = net_variable(net, name);

    assert_int_equal(v->init.kind, kind);
    assert_float_equal(v->init.a, 2, 0);
    assert_int_equal(kind == PM_INIT_VARIANCE_FAN_OUT ? v->fan_out : v->fan_in, fan);
}

#define HEAD "\"predict_keypoints\": true"

/* 9,437,696 parameters of a convolution from 2,048 to 512 channels, 2,359,808 of each of seven from
 * 512 to 512, and 34,833 of the transposed one, in addition to those of Faster R-CNN. */
static void default_head(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = with_head(HEAD, KEYPOINTS, &heads);
    size_t parameters = 0;
    int trained = 0;

    (void)state;
    assert_int_equal(net->error, PM_OK);
    for (int i = 0; i < net->var_count; i++)
        if (net->vars[i]->trainable) {
            trained++;
            parameters += pm_shape_count(net->vars[i]->shape);
        }
    assert_int_equal(trained, 169 + 18);
    assert_int_equal(parameters, 29188171 + 9437696 + 7 * 2359808 + 34833);
    expect_sized(net, "SecondStageBoxPredictor/conv_1/weights", PM_SHAPE4(3, 3, 2048, 512));
    expect_sized(net, "SecondStageBoxPredictor/conv_8/biases", PM_SHAPE1(512));
    expect_sized(net, "SecondStageBoxPredictor/deconv1/weights", PM_SHAPE4(2, 2, KEYPOINTS, 512));
    expect_shape(net, "SecondStageBoxPredictor/conv_8", PM_SHAPE4(2 * ROWS, 7, 7, 512));
    expect_shape(net, "SecondStageBoxPredictor/deconv1", PM_SHAPE4(2 * ROWS, 14, 14, KEYPOINTS));
    assert_true(pm_shape_equal(pm_heads_find(&heads, "box_keypoints")->out_shape,
                               PM_SHAPE4(2 * ROWS, 56, 56, KEYPOINTS)));
    expect_initial(net, "SecondStageBoxPredictor/conv_1/weights", PM_INIT_VARIANCE_SCALING,
                   3 * 3 * 2048);
    expect_initial(net, "SecondStageBoxPredictor/conv_8/weights", PM_INIT_VARIANCE_SCALING,
                   3 * 3 * 512);
    expect_initial(net, "SecondStageBoxPredictor/deconv1/weights", PM_INIT_VARIANCE_FAN_OUT,
                   2 * 2 * 512);
    pm_net_destroy(&net);
}

/* Options, masks beside keypoints, and hyperparams of both heads. */
static void other_heads(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = with_head(
        HEAD ", \"predict_instance_masks\": true, \"keypoint_prediction_num_conv_layers\": 1, "
        "\"keypoint_prediction_conv_depth\": 24, \"keypoint_heatmap_height\": 20, "
        "\"keypoint_heatmap_width\": 12, \"conv_hyperparams\": {\"batch_norm\": true, "
        "\"initializer\": \"truncated(0.02)\"}", 5, &heads);

    (void)state;
    assert_int_equal(net->error, PM_OK);
    expect_sized(net, "SecondStageBoxPredictor/conv_1/BatchNorm/gamma", PM_SHAPE1(24));
    assert_true(pm_shape_equal(pm_heads_find(&heads, "box_keypoints")->out_shape,
                               PM_SHAPE4(2 * ROWS, 20, 12, 5)));
    assert_non_null(pm_heads_find(&heads, "box_masks"));
    assert_int_equal(net_variable(net, "SecondStageBoxPredictor/conv_1/weights")->init.kind,
                     PM_INIT_TRUNCATED);
    assert_int_equal(net_variable(net, "SecondStageBoxPredictor/deconv1/weights")->init.kind,
                     PM_INIT_TRUNCATED);
    pm_net_destroy(&net);
    net = with_head(HEAD ", \"keypoint_prediction_num_conv_layers\": 0", 1, &heads);
    assert_int_equal(net->error, PM_OK);
    expect_sized(net, "SecondStageBoxPredictor/deconv1/weights", PM_SHAPE4(2, 2, 1, 2048));
    expect_initial(net, "SecondStageBoxPredictor/deconv1/weights", PM_INIT_VARIANCE_FAN_OUT,
                   2 * 2 * 2048);
    pm_net_destroy(&net);
}

static void refusals(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = with_head(HEAD, 0, &heads);

    (void)state;
    assert_int_equal(net->error, PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "predict_keypoints: true, but objects have no "
                                            "keypoints: set data.num_keypoints"));
    pm_net_destroy(&net);
    net = with_head(HEAD ", \"keypoint_heatmap_height\": 2000", KEYPOINTS, &heads);
    assert_int_equal(net->error, PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "keypoint_heatmap_height: 2000 is outside 1..1024"));
    pm_net_destroy(&net);
    net = with_head("\"type\": \"rfcn\", " HEAD, KEYPOINTS, &heads);
    assert_int_equal(net->error, PM_ECONFIG);
    if (!strstr(pm_error_text(), "predict_keypoints"))
        fail_msg("%s", pm_error_text());
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_head), cmocka_unit_test(other_heads), cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
