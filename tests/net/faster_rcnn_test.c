/* The first stage of Faster R-CNN: numbers of trained variables and parameters, names and shapes of
 * heads and variables, anchors, and options that are refused. */
#include "named_net.h"

#include "layers/anchors.h"
#include "tasks/detection/matching.h"

static struct pm_net *built(const char *name, int size, const char *options, struct pm_heads *heads)
{
    struct pm_net *net = named_net(name, 2, size, size, 5, options, heads); /* 5: not used */

    if (net->error)
        fail_msg("%s at %d: %s", name, size, pm_error_text());
    return net;
}

static void count(const struct pm_net *net, int *variables, int *parameters)
{
    *variables = *parameters = 0;
    for (int k = 0; k < net->var_count; k++)
        if (net->vars[k]->trainable) {
            ++*variables;
            *parameters += (int)pm_shape_count(net->vars[k]->shape);
        }
}

/* tf-object-detection's whole nets with 90 classes train 169 variables with 29,188,171 numbers
 * (ResNet 50) and 322 with 48,180,299 (ResNet 101). Block 4, of the second stage, has 10
 * convolutions with batch norm; its two heads have a weight and a bias each. */
static void counts(void **state)
{
    static const struct { const char *name; int variables, parameters; } nets[] = {
        { "faster_rcnn_resnet50", 169, 29188171 }, { "faster_rcnn_resnet101", 322, 48180299 },
    };
    const int shortcut = 1024 * 2048, wide = 512 * 512 * 9 + 512 * 2048;
    const int weights = 1024 * 512 + wide + shortcut + 2 * (2048 * 512 + wide);
    const int norms = 3 * 2 * (512 + 512 + 2048) + 2 * 2048;
    const int heads_of_second = (2048 + 1) * (4 * 90 + 91);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = built(nets[i].name, 320, NULL, &heads);
        int variables, parameters;

        count(net, &variables, &parameters);
        assert_int_equal(variables, nets[i].variables - 30 - 4);
        assert_int_equal(parameters, nets[i].parameters - weights - norms - heads_of_second);
        pm_net_destroy(&net);
    }
}

static void names(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("faster_rcnn_resnet50", 97, NULL, &heads);

    (void)state;
    assert_int_equal(heads.count, 3);
    expect_shape(net, "boxes_1", PM_SHAPE4(2, 7, 7, 12 * 4));
    expect_shape(net, "classes_1", PM_SHAPE4(2, 7, 7, 12 * 2));
    expect_shape(net, "anchors", PM_SHAPE2(7 * 7 * 12, 4));
    expect_sized(net, "FirstStageFeatureExtractor/resnet_v1_50/conv1/weights",
                 PM_SHAPE4(7, 7, 3, 64));
    expect_sized(net, "FirstStageFeatureExtractor/resnet_v1_50/block3/unit_6/bottleneck_v1/"
                      "conv3/BatchNorm/gamma", PM_SHAPE1(1024));
    expect_sized(net, "Conv/weights", PM_SHAPE4(3, 3, 1024, 512));
    expect_sized(net, "Conv/biases", PM_SHAPE1(512));
    expect_sized(net, "FirstStageBoxPredictor/BoxEncodingPredictor/weights",
                 PM_SHAPE4(1, 1, 512, 48));
    expect_sized(net, "FirstStageBoxPredictor/BoxEncodingPredictor/biases", PM_SHAPE1(48));
    expect_sized(net, "FirstStageBoxPredictor/ClassPredictor/weights", PM_SHAPE4(1, 1, 512, 24));
    expect_sized(net, "FirstStageBoxPredictor/ClassPredictor/biases", PM_SHAPE1(24));
    for (int k = 0; k < net->var_count; k++)
        assert_null(strstr(net->vars[k]->name, "block4"));
    assert_int_equal(net_variable(net, "Conv/weights")->init.kind, PM_INIT_TRUNCATED);
    assert_true((float)net_variable(net, "Conv/weights")->init.a == 0.01f);
    assert_false(net_variable(net, "Conv/weights")->regularize);
    pm_net_destroy(&net);
    net = built("faster_rcnn_mobilenet_v1", 97, "{\"depth_multiplier\": 0.5, "
                "\"first_stage_box_predictor_depth\": 64, "
                "\"first_stage_box_predictor_kernel_size\": 1}", &heads);
    expect_sized(net, "FirstStageFeatureExtractor/MobilenetV1/Conv2d_11_pointwise/weights",
                 PM_SHAPE4(1, 1, 256, 256));
    expect_sized(net, "Conv/weights", PM_SHAPE4(1, 1, 256, 64));
    for (int k = 0; k < net->var_count; k++)
        assert_null(strstr(net->vars[k]->name, "Conv2d_12"));
    pm_net_destroy(&net);
}

static double variable_count(const struct pm_net *net)
{
    double sum = 0;

    for (int k = 0; k < net->var_count; k++)
        sum += (double)pm_shape_count(net->vars[k]->shape);
    return sum;
}

/* With a stride of 8, the layers that follow it are dilated instead: no variable changes. */
static void strides(void **state)
{
    static const char unit[] = "FirstStageFeatureExtractor/resnet_v1_50/%s/bottleneck_v1/conv2";
    static const struct { const char *unit; int stride, dilation; } units[] = {
        { "block1/unit_3", 2, 1 }, { "block2/unit_4", 1, 1 }, { "block3/unit_1", 1, 2 },
        { "block3/unit_6", 1, 2 },
    };
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("faster_rcnn_resnet50", 97, NULL, &heads);
    const double count = variable_count(net);
    char name[160];

    (void)state;
    snprintf(name, sizeof name, unit, "block2/unit_4");
    expect_option(net, name, "stride", 2);
    snprintf(name, sizeof name, unit, "block3/unit_6");
    expect_option(net, name, "stride", 1);
    expect_option(net, name, "dilation", 1);
    pm_net_destroy(&net);
    net = built("faster_rcnn_resnet50", 97, "{\"first_stage_features_stride\": 8}", &heads);
    expect_shape(net, "boxes_1", PM_SHAPE4(2, 13, 13, 12 * 4));
    expect_option(net, "anchors", "height_stride", 8);
    expect_option(net, "anchors", "width_stride", 8);
    assert_true(variable_count(net) == count);
    for (size_t i = 0; i < PM_COUNT(units); i++) {
        snprintf(name, sizeof name, unit, units[i].unit);
        expect_option(net, name, "stride", units[i].stride);
        expect_option(net, name, "dilation", units[i].dilation);
    }
    pm_net_destroy(&net);
    net = built("faster_rcnn_resnet50", 97, "{\"first_stage_features_stride\": 8, \"anchors\": "
                "{\"height_stride\": 4}}", &heads);
    expect_option(net, "anchors", "height_stride", 4);
    expect_option(net, "anchors", "width_stride", 8);
    pm_net_destroy(&net);
}

/* A cell's anchors are those of the ratio 0.5 with the sizes 64, 128, 256, 512, then 1, then 2. The
 * first centre is at 0, the next one 16 pixels on. */
static void anchors(void **state)
{
    static const double ratios[] = { 0.5, 1, 2 };
    struct pm_heads heads = { 0 };
    struct pm_net *net = built("faster_rcnn_mobilenet_v1", 160, NULL, &heads);
    float boxes[10 * 10 * 12][4];

    (void)state;
    pm_anchors_write(pm_heads_find(&heads, "anchors"), boxes[0]);
    for (int i = 0; i < 10 * 10 * 12; i++) {
        const double y = i / 120 * 16, x = i / 12 % 10 * 16, ratio = ratios[i % 12 / 4];
        const double h = (64 << i % 4) / sqrt(ratio), w = (64 << i % 4) * sqrt(ratio);
        const double want[] = { y - h / 2, x - w / 2, y + h / 2, x + w / 2 };

        for (int k = 0; k < 4; k++)
            assert_float_equal(boxes[i][k], (float)(want[k] / 160), 2e-7);
    }
    pm_net_destroy(&net);
}

/* Pruning keeps the anchors that are inside in whole pixels, also those that touch the border. */
static void touching(void **state)
{
    static const struct { int size, side; } cases[] = {
        { 224, 160 }, { 448, 160 }, { 256, 160 }, { 384, 160 }, { 450, 192 }, { 650, 192 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const int size = cases[i].size, cells = (size + 15) / 16;
        struct pm_heads heads = { 0 };
        char options[100];
        int inside = 0;

        snprintf(options, sizeof options, "{\"anchors\": {\"scales\": [%g], "
                 "\"aspect_ratios\": [1]}}", cases[i].side / 256.0);
        struct pm_net *net = built("faster_rcnn_mobilenet_v1", size, options, &heads);
        float *boxes = pm_malloc((size_t)cells * (size_t)cells * 4 * sizeof *boxes);

        pm_anchors_write(pm_heads_find(&heads, "anchors"), boxes);
        struct pm_anchor_index *x = pm_anchor_index_create(boxes, cells * cells);
        for (int k = 0; k < cells; k++)
            inside += 16 * k - cases[i].side / 2 >= 0 && 16 * k + cases[i].side / 2 <= size;
        assert_int_equal(pm_anchor_index_prune(x), inside * inside);
        pm_anchor_index_destroy(&x);
        pm_free(boxes);
        pm_net_destroy(&net);
    }
}

static void refused(void **state)
{
    (void)state;
    expect_refusal("faster_rcnn_resnet50", 32, NULL,
                   "images of 32x32 are too small, at least 33x33 are");
    expect_refusal("faster_rcnn_mobilenet_v1", 97, "{\"anchors\": {\"type\": \"square\"}}",
                   "model.anchors.type");
    expect_refusal("faster_rcnn_resnet101", 97, "{\"first_stage_features_stride\": 12}",
                   "model.first_stage_features_stride: 12 is not possible: set it to 16 or 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),  cmocka_unit_test(names),    cmocka_unit_test(strides),
        cmocka_unit_test(anchors), cmocka_unit_test(touching), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
