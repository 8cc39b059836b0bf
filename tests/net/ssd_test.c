/* One-stage detectors: numbers of trained variables, parameters and anchors of the original
 * definitions, the names and shapes of heads and variables, and options. */
#include "named_net.h"

#include "layers/anchors.h"

struct numbers { int variables, parameters, anchors; };

static struct numbers numbers_of(const struct pm_net *net, const struct pm_heads *heads)
{
    struct numbers n = { .anchors = pm_heads_find(heads, "anchors")->out_shape.dim[0] };

    for (int k = 0; k < net->var_count; k++)
        if (net->vars[k]->trainable) {
            n.variables++;
            n.parameters += (int)pm_shape_count(net->vars[k]->shape);
        }
    return n;
}

static struct pm_net *built(const char *name, int size, int classes, const char *options,
                            struct pm_heads *heads)
{
    struct pm_net *net = named_net(name, 2, size, size, classes, options, heads);

    if (net->error)
        fail_msg("%s at %d: %s", name, size, pm_error_text());
    return net;
}

/* The original definition, built by tf-object-detection 0.0.3 on TensorFlow 2.12, has these
 * numbers. */
static void counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int size, classes;
        const char *options;
        struct numbers want;
    } nets[] = {
        { "ssd_mobilenet_v1", 300, 90, NULL, { 129, 6819839, 1917 } },
        { "ssd_mobilenet_v2", 300, 90, NULL, { 204, 6066431, 1917 } },
        { "ssd_mobilenet_v2", 300, 3, NULL, { 204, 4643720, 1917 } },
        { "ssd_mobilenet_v2", 300, 90, "{\"use_depthwise\": true, \"box_predictor\": "
          "{\"use_depthwise\": true, \"kernel_size\": 3}}", { 252, 4500543, 1917 } },
        { "embedded_ssd_mobilenet_v1", 256, 3, NULL, { 119, 103560, 1278 } },
        { "ssd_inception_v2", 300, 90, NULL, { 256, 25030231, 1917 } },
        { "ssd_mobilenet_v1_fpn", 640, 90, NULL, { 191, 12080762, 51150 } },
        { "ssd_resnet_v1_50_fpn", 640, 90, NULL, { 269, 32840570, 51150 } },
        { "ssd_mobilenet_v2_fpn", 320, 90, "{\"use_depthwise\": true, "
          "\"additional_layer_depth\": 128, \"box_predictor\": {\"use_depthwise\": true, "
          "\"depth\": 128, \"share_prediction_tower\": true}}", { 232, 2165946, 12804 } },
    };

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = built(nets[i].name, nets[i].size, nets[i].classes, nets[i].options,
                                   &heads);
        const struct numbers have = numbers_of(net, &heads), *want = &nets[i].want;

        if (memcmp(&have, want, sizeof have) != 0)
            fail_msg("%s at %d: %d variables, %d parameters, %d anchors", nets[i].name,
                     nets[i].size, have.variables, have.parameters, have.anchors);
        pm_net_destroy(&net);
    }
}

static void expect_init(const struct pm_net *net, const char *name, enum pm_init_kind kind,
                        double a, bool regularize)
{
    const struct pm_variable *v = net_variable(net, name);

    if (v->init.kind != kind || (float)v->init.a != (float)a || v->regularize != regularize)
        fail_msg("%s begins with kind %d (%g), weight decay %d", name, v->init.kind,
                 (double)v->init.a, v->regularize);
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void heads_of_ssd(void **state)
{
    (void)state;
    static const int sides[] = { 19, 10, 5, 3, 2, 1 }, per_cell[] = { 3, 6, 6, 6, 6, 6 };
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("ssd_mobilenet_v2", 300, 3, NULL, &heads);

    assert_int_equal(heads.count, 13);
    for (int k = 0; k < 6; k++) {
        char name[32];

        snprintf(name, sizeof name, "boxes_%d", k + 1);
        assert_string_equal(heads.list[2 * k].name, name);
        assert_ptr_equal(heads.list[2 * k].node, pm_net_find(net, name));
        expect_shape(net, name, PM_SHAPE4(2, sides[k], sides[k], 4 * per_cell[k]));
        snprintf(name, sizeof name, "classes_%d", k + 1);
        assert_string_equal(heads.list[2 * k + 1].name, name);
        expect_shape(net, name, PM_SHAPE4(2, sides[k], sides[k], 4 * per_cell[k]));
    }
    assert_string_equal(heads.list[12].name, "anchors");
    assert_int_equal(heads.list[12].node->out_rows, 0);
    for (int i = 0; i < heads.count; i++)
        assert_int_equal(heads.list[i].role, PM_HEAD_OUTPUT);
    pm_net_destroy(&net);
    net = built("ssd_mobilenet_v2", 97, 1, "{\"background_class\": false, \"num_layers\": 2}",
                &heads);
    assert_int_equal(heads.count, 5);
    expect_shape(net, "classes_1", PM_SHAPE4(2, 7, 7, 3));
    expect_shape(net, "classes_2", PM_SHAPE4(2, 4, 4, 6));
    expect_shape(net, "anchors", PM_SHAPE2(7 * 7 * 3 + 4 * 4 * 6, 4));
    pm_net_destroy(&net);
}

/* Maps of odd sizes, which the original cannot enlarge. */
static void heads_of_a_pyramid(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("ssd_mobilenet_v1_fpn", 200, 3, NULL, &heads);
    static const int sides[] = { 25, 13, 7, 4, 2 };

    for (int k = 0; k < 5; k++) {
        char name[32];

        snprintf(name, sizeof name, "classes_%d", k + 1);
        expect_shape(net, name, PM_SHAPE4(2, sides[k], sides[k], 6 * 4));
    }
    pm_net_destroy(&net);
    net = built("ssd_resnet_v1_50_fpn", 129, 3, "{\"fpn_min_level\": 4, \"fpn_max_level\": 5}",
                &heads);
    assert_int_equal(heads.count, 5);
    expect_shape(net, "boxes_1", PM_SHAPE4(2, 9, 9, 24));
    expect_sized(net, "FeatureExtractor/resnet_v1_50/fpn/projection_2/weights",
                 PM_SHAPE4(1, 1, 2048, 256));
    pm_net_destroy(&net);
}

/* ---- variables ------------------------------------------------------------------------------- */

static void names_of_ssd(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("ssd_mobilenet_v2", 300, 3, NULL, &heads);
    static const char from[] = "FeatureExtractor/MobilenetV2/";
    char name[128];

    expect_sized(net, "FeatureExtractor/MobilenetV2/Conv/weights", PM_SHAPE4(3, 3, 3, 32));
    expect_sized(net, "FeatureExtractor/MobilenetV2/layer_19_1_Conv2d_2_1x1_256/weights",
                 PM_SHAPE4(1, 1, 1280, 256));
    expect_sized(net, "FeatureExtractor/MobilenetV2/layer_19_2_Conv2d_5_3x3_s2_128/BatchNorm/"
                 "moving_mean", PM_SHAPE1(128));
    expect_sized(net, "BoxPredictor_0/BoxEncodingPredictor/weights", PM_SHAPE4(1, 1, 576, 12));
    expect_sized(net, "BoxPredictor_5/ClassPredictor/biases", PM_SHAPE1(24));
    snprintf(name, sizeof name, "%sConv/weights", from);
    expect_init(net, name, PM_INIT_TRUNCATED, 0.09, true);
    snprintf(name, sizeof name, "%sexpanded_conv/depthwise/depthwise_weights", from);
    expect_init(net, name, PM_INIT_TRUNCATED, 0.09, false);
    snprintf(name, sizeof name, "%slayer_19_1_Conv2d_2_1x1_256/weights", from);
    expect_init(net, name, PM_INIT_TRUNCATED, 0.03, true);
    expect_init(net, "BoxPredictor_3/ClassPredictor/weights", PM_INIT_TRUNCATED, 0.03, true);
    expect_option(net, "FeatureExtractor/MobilenetV2/Conv/BatchNorm", "decay", 0.9997);
    pm_net_destroy(&net);
}

static void names_of_a_shared_predictor(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("ssd_resnet_v1_50_fpn", 160, 3, NULL, &heads);
#define W "WeightSharedConvolutionalBoxPredictor/"

    expect_sized(net, W "BoxPredictionTower/conv2d_3/weights", PM_SHAPE4(3, 3, 256, 256));
    expect_sized(net, W "ClassPredictionTower/conv2d_0/BatchNorm/feature_4/gamma",
                 PM_SHAPE1(256));
    expect_sized(net, W "BoxPredictor/biases", PM_SHAPE1(24));
    expect_init(net, W "ClassPredictor/biases", PM_INIT_CONSTANT, -4.6, false);
    expect_init(net, W "ClassPredictor/weights", PM_INIT_NORMAL, 0.01, true);
    expect_init(net, "FeatureExtractor/resnet_v1_50/conv1/weights", PM_INIT_TRUNCATED, 0.03, true);
    expect_init(net, "FeatureExtractor/resnet_v1_50/fpn/bottom_up_block6/weights",
                PM_INIT_TRUNCATED, 0.03, true);
    expect_sized(net, "FeatureExtractor/resnet_v1_50/fpn/smoothing_1/BatchNorm/beta",
                 PM_SHAPE1(256));
    expect_option(net, "FeatureExtractor/resnet_v1_50/conv1/BatchNorm", "epsilon", 1.001e-5);
    expect_option(net, W "BoxPredictionTower/conv2d_0/BatchNorm/feature_0", "epsilon", 1e-3);
    for (int k = 2; k <= 5; k++) {
        char name[32];

        snprintf(name, sizeof name, "boxes_%d", k);
        assert_int_equal(pm_net_find(net, name)->vars[0], pm_net_find(net, "boxes_1")->vars[0]);
    }
    pm_net_destroy(&net);
    net = built("ssd_mobilenet_v2_fpn", 160, 3, "{\"use_depthwise\": true, \"box_predictor\": "
                "{\"use_depthwise\": true}}", &heads);
    expect_sized(net, "FeatureExtractor/MobilenetV2/fpn/smoothing_2/pointwise_weights",
                 PM_SHAPE4(1, 1, 256, 256));
    expect_sized(net, "FeatureExtractor/MobilenetV2/fpn/bottom_up_Conv2d_21/depthwise_weights",
                 PM_SHAPE4(3, 3, 256, 1));
    expect_init(net, "FeatureExtractor/MobilenetV2/fpn/smoothing_2/depthwise_weights",
                PM_INIT_TRUNCATED, 0.03, true);
    expect_sized(net, W "BoxPredictor/depthwise_weights", PM_SHAPE4(3, 3, 256, 1));
    expect_sized(net, W "BoxPredictor/pointwise_weights", PM_SHAPE4(1, 1, 256, 24));
    expect_sized(net, W "ClassPredictionTower/conv2d_1/pointwise_weights",
                 PM_SHAPE4(1, 1, 256, 256));
    expect_sized(net, "FeatureExtractor/MobilenetV2/Conv_1/weights", PM_SHAPE4(1, 1, 320, 256));
#undef W
    pm_net_destroy(&net);
}

/* The detection form of MobileNet v3 is narrower at its end, after the expansion that the first map
 * is. */
static void narrow_ends(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("ssd_mobilenet_v3_large", 320, 90, NULL, &heads);
#define F "FeatureExtractor/MobilenetV3/"

    expect_shape(net, F "expanded_conv_12/expand/BatchNorm", PM_SHAPE4(2, 20, 20, 672));
    expect_sized(net, F "expanded_conv_12/project/weights", PM_SHAPE4(1, 1, 672, 80));
    expect_sized(net, F "Conv_1/weights", PM_SHAPE4(1, 1, 80, 480));
    expect_sized(net, "BoxPredictor_0/ClassPredictor_depthwise/depthwise_weights",
                 PM_SHAPE4(3, 3, 672, 1));
    expect_init(net, "BoxPredictor_0/ClassPredictor/biases", PM_INIT_CONSTANT, -4.6, false);
    assert_int_equal(numbers_of(net, &heads).anchors, 20 * 20 * 3 + 6 * (100 + 25 + 9 + 4 + 1));
    pm_net_destroy(&net);
    net = built("ssd_mobilenet_v3_small", 320, 90, NULL, &heads);
    expect_shape(net, F "expanded_conv_8/expand/BatchNorm", PM_SHAPE4(2, 20, 20, 288));
    expect_sized(net, F "Conv_1/weights", PM_SHAPE4(1, 1, 48, 288));
#undef F
    pm_net_destroy(&net);
}

/* keras-retinanet prints these numbers for one class: all parameters, and those of batch norm, of
 * which half are moving averages. */
static void retinanet(void **state)
{
    (void)state;
    static const struct { const char *name; int all, norms; } nets[] = {
        { "retinanet_50", 36382957, 106240 }, { "retinanet_101", 55427309, 210688 },
    };
    struct pm_heads heads = { 0 };
    struct pm_net *net;

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        net = built(nets[i].name, 256, 1, NULL, &heads);
        assert_int_equal(heads.count, 11);
        expect_shape(net, "boxes_1", PM_SHAPE4(2, 32, 32, 36));
        expect_shape(net, "classes_5", PM_SHAPE4(2, 2, 2, 9));
        assert_int_equal(numbers_of(net, &heads).anchors, 9 * (1024 + 256 + 64 + 16 + 4));
        assert_int_equal(numbers_of(net, &heads).parameters, nets[i].all - nets[i].norms / 2);
        pm_net_destroy(&net);
    }
    net = built("retinanet_50", 200, 3, "{\"upsampling\": \"transposed\", "
                "\"separate_heads\": true, \"background_class\": true}", &heads);
    expect_shape(net, "classes_1", PM_SHAPE4(2, 25, 25, 36));
    expect_sized(net, "FeatureExtractor/resnet_v1_50/fpn/P5_upsampled/weights",
                 PM_SHAPE4(4, 4, 256, 256));
    expect_sized(net, "WeightSharedConvolutionalBoxPredictor_4/BoxPredictor/weights",
                 PM_SHAPE4(3, 3, 256, 36));
    pm_net_destroy(&net);
}

static void pooling_pyramids(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("ssd_mobilenet_v1_ppn", 300, 90, NULL, &heads);

    assert_int_equal(numbers_of(net, &heads).anchors, 6 * (361 + 100 + 25 + 9 + 4 + 1));
    expect_shape(net, "FeatureExtractor/MobilenetV1/MaxPool2d_4_2x2", PM_SHAPE4(2, 1, 1, 512));
    expect_sized(net, "WeightSharedConvolutionalBoxPredictor/PredictionTower/conv2d_0/weights",
                 PM_SHAPE4(1, 1, 512, 512));
    pm_net_destroy(&net);
    net = built("ssd_resnet_v1_50_ppn", 160, 3, NULL, &heads);
    expect_sized(net, "FeatureExtractor/resnet_v1_50/Base_Conv2d_1x1_1024/weights",
                 PM_SHAPE4(1, 1, 1024, 1024));
    expect_shape(net, "classes_1", PM_SHAPE4(2, 10, 10, 24));
    pm_net_destroy(&net);
    net = built("embedded_ssd_mobilenet_v1", 256, 3, NULL, &heads);
    expect_shape(net, "boxes_5", PM_SHAPE4(2, 1, 1, 24));
    expect_sized(net, "FeatureExtractor/MobilenetV1/Conv2d_13_pointwise_2_Conv2d_4_2x2_s2_32/"
                 "weights", PM_SHAPE4(2, 2, 16, 32));
    pm_net_destroy(&net);
}

/* ---- options --------------------------------------------------------------------------------- */

static void objects_are_merged(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = built(
        "ssd_mobilenet_v1", 128, 2,
        "{\"anchors\": {\"aspect_ratios\": [1], \"interpolated_scale_aspect_ratio\": 0,"
        " \"reduce_boxes_in_lowest_layer\": false}, \"hyperparams\": {\"batch_norm_decay\": 0.9,"
        " \"initializer\": \"normal(0.1)\", \"activation\": \"swish\"}, \"box_predictor\":"
        " {\"num_layers_before_predictor\": 1, \"max_depth\": 64, \"use_dropout\": true,"
        " \"box_encodings_clip_range\": [-5, 6], \"hyperparams\": {\"activation\": \"relu\"}}}",
        &heads);

    expect_shape(net, "boxes_1", PM_SHAPE4(2, 8, 8, 4));
    expect_shape(net, "classes_1", PM_SHAPE4(2, 8, 8, 3));
    assert_string_equal(pm_net_find(net, "boxes_1")->layer->name, "clip");
    expect_option(net, "boxes_1", "min", -5);
    expect_shape(net, "BoxPredictor_0/Conv2d_0_1x1_64", PM_SHAPE4(2, 8, 8, 64));
    expect_init(net, "BoxPredictor_0/Conv2d_0_1x1_64/weights", PM_INIT_NORMAL, 0.1, true);
    expect_option(net, "BoxPredictor_0/Dropout", "keep", 0.8);
    expect_option(net, "BoxPredictor_0/Conv2d_0_1x1_64/BatchNorm", "decay", 0.9);
    expect_option(net, "FeatureExtractor/MobilenetV1/Conv2d_0/BatchNorm", "decay", 0.9997);
    pm_net_destroy(&net);
    /* Without batch norm there are biases; swish is then a layer of its own. */
    net = built("ssd_mobilenet_v1", 128, 2, "{\"hyperparams\": {\"batch_norm\": false, "
                "\"activation\": \"swish\"}}", &heads);
    expect_sized(net, "FeatureExtractor/MobilenetV1/Conv2d_13_pointwise_1_Conv2d_2_1x1_256/"
                 "biases", PM_SHAPE1(256));
    assert_non_null(pm_net_find(net, "FeatureExtractor/MobilenetV1/"
                                "Conv2d_13_pointwise_1_Conv2d_2_1x1_256/activation"));
    pm_net_destroy(&net);
    /* Shared weights on SSD's maps, which differ in their channels. */
    net = built("ssd_mobilenet_v1", 128, 2, "{\"anchors\": {\"reduce_boxes_in_lowest_layer\": "
                "false}, \"box_predictor\": {\"type\": \"weight_shared\", \"depth\": 32,"
                " \"num_layers_before_predictor\": 1, \"share_prediction_tower\": true}}", &heads);
    expect_sized(net, "WeightSharedConvolutionalBoxPredictor/ProjectionLayer/conv2d_5/weights",
                 PM_SHAPE4(1, 1, 128, 512));
    expect_shape(net, "WeightSharedConvolutionalBoxPredictor/ProjectionLayer/conv2d_0/BatchNorm",
                 PM_SHAPE4(2, 8, 8, 512));
    expect_sized(net, "WeightSharedConvolutionalBoxPredictor/PredictionTower/conv2d_0/weights",
                 PM_SHAPE4(3, 3, 512, 32));
    pm_net_destroy(&net);
}

static void overrides(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("ssd_mobilenet_v2", 96, 2, "{\"override_base_feature_extractor_"
                               "hyperparams\": true, \"hyperparams\": {\"batch_norm_decay\": 0.9}}",
                               &heads);

    expect_init(net, "FeatureExtractor/MobilenetV2/Conv/weights", PM_INIT_TRUNCATED, 0.03, true);
    expect_init(net, "FeatureExtractor/MobilenetV2/expanded_conv/depthwise/depthwise_weights",
                PM_INIT_TRUNCATED, 0.03, true);
    expect_option(net, "FeatureExtractor/MobilenetV2/Conv/BatchNorm", "decay", 0.9);
    pm_net_destroy(&net);
    net = built("ssd_mobilenet_v1", 96, 2, NULL, &heads);
    expect_init(net, "FeatureExtractor/MobilenetV1/Conv2d_1_depthwise/depthwise_weights",
                PM_INIT_TRUNCATED, 0.09, true);
    pm_net_destroy(&net);
}

static void refusals(void **state)
{
    (void)state;
    expect_refusal("ssd_mobilenet_v2", 32, NULL, "at least 33x33");
    expect_refusal("ssd_resnet_v1_50_fpn", 128, NULL, "at least 129x129");
    expect_refusal("retinanet_50", 128, NULL, "at least 129x129"); /* P7 would be 1x1 */
    expect_refusal("ssd_mobilenet_v2", 64, "{\"anchors\": {\"type\": \"sdd\"}}",
                   "model.anchors.type: must be \"ssd\"");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"anchors\": [1]}",
                   "model.anchors: must be an object");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"anchors\": {\"min_scal\": 1}}", "min_scale");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"anchors\": {\"min_scale\": 0.9, \"max_scale\": "
                   "0.2}}", "min_scale, 0.9, is above max_scale, 0.2");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"anchors\": {\"aspect_ratios\": []}}",
                   "aspect_ratios is empty");
    expect_refusal("ssd_mobilenet_v1_fpn", 64, "{\"box_predictor\": {\"hyperparams\": "
                   "{\"activation\": \"swish\"}}}", "always have relu6: remove the key");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"hyperparams\": {\"initializer\": \"normal\"}}",
                   "model.hyperparams.initializer");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"hyperparams\": {\"activation\": \"relu7\"}}",
                   "model.hyperparams.activation");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"box_predictor\": {\"use_depthwise\": true}}",
                   "model.box_predictor.kernel_size: 1 is not possible");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"box_predictor\": {\"depth\": 3}}",
                   "model.box_predictor.depth");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"box_predictor\": {\"type\": \"weight_shared\"}}",
                   "reduce_boxes_in_lowest_layer");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"box_predictor\": {\"type\": \"mask\"}}",
                   "model.box_predictor.type: must be");
    expect_refusal("ssd_mobilenet_v2", 64, "{\"box_predictor\": {\"box_encodings_clip_range\": "
                   "[1]}}", "two numbers are needed");
    expect_refusal("ssd_mobilenet_v1_fpn", 64, "{\"fpn_min_level\": 5, \"fpn_max_level\": 4}",
                   "model.fpn_max_level: 4 is outside 5..11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(heads_of_ssd),
        cmocka_unit_test(heads_of_a_pyramid),
        cmocka_unit_test(names_of_ssd),
        cmocka_unit_test(names_of_a_shared_predictor),
        cmocka_unit_test(narrow_ends),
        cmocka_unit_test(retinanet),
        cmocka_unit_test(pooling_pyramids),
        cmocka_unit_test(objects_are_merged),
        cmocka_unit_test(overrides),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
