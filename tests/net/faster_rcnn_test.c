/* Both stages of Faster R-CNN: numbers of trained variables and parameters, names and shapes of
 * heads and variables, anchors, and options that are refused. */
#include "base/golden_file.h"
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

/* Builds both stages for two images with three regions each, and 90 classes. */
static struct pm_net *both(const char *name, int size, const char *options, struct pm_heads *heads)
{
    struct pm_net *net = built(name, size, options, heads);

    named_second(net, name, 3, 90, options, heads);
    if (net->error)
        fail_msg("%s at %d, second stage: %s", name, size, pm_error_text());
    return net;
}

#define MOBILENET "faster_rcnn_mobilenet_v1"
#define RFCN                                                                                       \
    "{\"second_stage_box_predictor\": {\"type\": \"rfcn\", \"crop_height\": 18, "                  \
    "\"crop_width\": 18}}"
#define MASKS                                                                                      \
    "{\"second_stage_box_predictor\": {\"predict_instance_masks\": true, "                         \
    "\"mask_prediction_conv_depth\": 0}}"

/* Trained variables and their numbers of tf-object-detection's nets with 90 classes, both stages
 * together. */
static void counts(void **state)
{
    static const struct { const char *name, *options; int variables, parameters; } nets[] = {
        { "faster_rcnn_resnet50", NULL, 169, 29188171 },
        { "faster_rcnn_resnet101", NULL, 322, 48180299 },
        { "faster_rcnn_inception_v2", NULL, 218, 13317219 },
        { "faster_rcnn_inception_resnet_v2", NULL, 498, 60020331 },
        { "faster_rcnn_inception_resnet_v2", "{\"first_stage_features_stride\": 8}", 498,
          60020331 },
        { "faster_rcnn_resnet101", RFCN, 324, 53514851 },
        { "faster_rcnn_resnet50", MASKS, 173, 34114469 },
        { "faster_rcnn_inception_v2", MASKS, 222, 15884221 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = both(nets[i].name, 320, nets[i].options, &heads);
        int variables, parameters;

        count(net, &variables, &parameters);
        if (variables != nets[i].variables || parameters != nets[i].parameters)
            fail_msg("%s %s: %d variables, %d parameters", nets[i].name,
                     nets[i].options ? nets[i].options : "", variables, parameters);
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

/* Checks the variables of a scope's object and returns their number. The API's own unused ones, "u"
 * and "n", must not exist here. */
static int expect_scope(const struct pm_net *net, const char *scope, const cJSON *object)
{
    const cJSON *v;
    int count = 0;

    cJSON_ArrayForEach(v, object) {
        const char *name = pm_arena_printf(net->arena, "%s%s%s", scope, *scope ? "/" : "",
                                           v->string);
        const int rank = cJSON_GetArraySize(v) - 1;

        if (cJSON_IsObject(v)) {
            count += expect_scope(net, name, v);
            continue;
        }
        const char *flags = cJSON_GetArrayItem(v, rank)->valuestring;
        struct pm_shape shape = { .rank = rank };

        for (int d = 0; d < rank; d++)
            shape.dim[d] = cJSON_GetArrayItem(v, d)->valueint;
        if (*flags == 'u' || *flags == 'n') {
            for (int k = 0; k < net->var_count; k++)
                assert_string_not_equal(net->vars[k]->name, name);
            continue;
        }
        expect_sized(net, name, shape);
        if (net_variable(net, name)->trainable != (*flags == 't'))
            fail_msg("%s: trained or not", name);
        count++;
    }
    return count;
}

/* Every net has the variables of the Object Detection API's, and no others. With MobileNet only the
 * first stage is compared. The second has the classifier's layers here, so that its checkpoint
 * fits; the API has two separable convolutions of 1024 channels for every multiplier. */
static void variables(void **state)
{
    static const struct { const char *golden, *name, *options; } nets[] = {
        { "faster_rcnn_resnet50", "faster_rcnn_resnet50", NULL },
        { "faster_rcnn_resnet101", "faster_rcnn_resnet101", NULL },
        { "faster_rcnn_resnet152", "faster_rcnn_resnet152", NULL },
        { "faster_rcnn_inception_v2", "faster_rcnn_inception_v2", NULL },
        { "faster_rcnn_inception_resnet_v2", "faster_rcnn_inception_resnet_v2", NULL },
        { "faster_rcnn_inception_resnet_v2_stride8", "faster_rcnn_inception_resnet_v2",
          "{\"first_stage_features_stride\": 8}" },
        { "faster_rcnn_mobilenet_v1", MOBILENET, NULL },
        { "faster_rcnn_mobilenet_v1_half", MOBILENET, "{\"depth_multiplier\": 0.5}" },
        { "rfcn_resnet101", "faster_rcnn_resnet101", RFCN },
        { "mask_rcnn_inception_v2", "faster_rcnn_inception_v2", MASKS },
        { "mask_rcnn_resnet50", "faster_rcnn_resnet50", MASKS },
    };
    cJSON *golden = read_golden("two_stage_variables.json"), *scopes;

    (void)state;
    assert_int_equal(cJSON_GetArraySize(golden), PM_COUNT(nets));
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        const cJSON *row = cJSON_GetObjectItem(golden, nets[i].golden);
        const bool first = strcmp(nets[i].name, MOBILENET) == 0;
        struct pm_heads heads = { 0 };
        struct pm_net *net = first ? built(nets[i].name, 320, nets[i].options, &heads)
                                   : both(nets[i].name, 320, nets[i].options, &heads);

        assert_non_null(row);
        scopes = cJSON_GetObjectItem(row, "variables");
        if (first) {
            cJSON_DeleteItemFromObject(scopes, "SecondStageFeatureExtractor");
            cJSON_DeleteItemFromObject(scopes, "SecondStageBoxPredictor");
        }
        if (expect_scope(net, "", scopes) != net->var_count)
            fail_msg("%s: more variables than the API's", nets[i].golden);
        pm_net_destroy(&net);
    }
    cJSON_Delete(golden);
}

/* Shapes of the maps between the stages, of 2 x 3 regions. */
static void inception_v2(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = both("faster_rcnn_inception_v2", 100, NULL, &heads);

    (void)state;
    expect_shape(net, "FirstStageFeatureExtractor/InceptionV2/Mixed_4e", PM_SHAPE4(2, 7, 7, 576));
    expect_shape(net, "SecondStageFeatureExtractor/InceptionV2/Mixed_5a",
                 PM_SHAPE4(6, 4, 4, 1024));
    expect_shape(net, "SecondStageFeatureExtractor/InceptionV2/Mixed_5c",
                 PM_SHAPE4(6, 4, 4, 1024));
    expect_shape(net, "SecondStageBoxPredictor/BoxEncodingPredictor", PM_SHAPE2(6, 360));
    expect_sized(net, "SecondStageFeatureExtractor/InceptionV2/Mixed_5a/Branch_1/Conv2d_0b_3x3/"
                      "BatchNorm/gamma", PM_SHAPE1(256));
    expect_sized(net, "FirstStageFeatureExtractor/InceptionV2/Conv2d_1a_7x7/pointwise_weights",
                 PM_SHAPE4(1, 1, 24, 64));
    assert_int_equal(net_variable(net, "SecondStageFeatureExtractor/InceptionV2/Mixed_5a/Branch_1/"
                                       "Conv2d_0b_3x3/weights")->init.kind, PM_INIT_XAVIER);
    pm_net_destroy(&net);
}

/* Maps have the sizes of the image divided by their strides. Crops of 17x17 have no pool; the layer
 * that follows keeps windows inside. */
static void inception_resnet_v2(void **state)
{
#define FIRST "FirstStageFeatureExtractor/InceptionResnetV2/"
#define SECOND "SecondStageFeatureExtractor/InceptionResnetV2/"
    static const char block17[] = FIRST "Repeat_1/block17_20/Branch_1/Conv2d_0b_1x7";
    struct pm_heads heads = { 0 }, again = { 0 };
    struct pm_net *net = both("faster_rcnn_inception_resnet_v2", 100, NULL, &heads);

    (void)state;
    expect_shape(net, FIRST "Conv2d_2a_3x3", PM_SHAPE4(2, 50, 50, 32));
    expect_shape(net, FIRST "MaxPool_5a_3x3", PM_SHAPE4(2, 13, 13, 192));
    expect_shape(net, FIRST "Repeat_1/block17_20/sum", PM_SHAPE4(2, 7, 7, 1088));
    expect_option(net, block17, "dilation", 1);
    expect_shape(net, SECOND "Mixed_7a", PM_SHAPE4(6, 8, 8, 2080));
    expect_shape(net, SECOND "Repeat/block8_9/sum", PM_SHAPE4(6, 8, 8, 2080));
    expect_shape(net, SECOND "Conv2d_7b_1x1", PM_SHAPE4(6, 8, 8, 1536));
    pm_net_destroy(&net);
    net = both("faster_rcnn_inception_resnet_v2", 100, "{\"first_stage_features_stride\": 8}",
               &again);
    expect_shape(net, FIRST "Mixed_6a", PM_SHAPE4(2, 13, 13, 1088));
    expect_shape(net, FIRST "Repeat_1/block17_20/sum", PM_SHAPE4(2, 13, 13, 1088));
    expect_option(net, FIRST "Mixed_6a/Branch_1/Conv2d_1a_3x3", "dilation", 1);
    expect_option(net, FIRST "Repeat_1/block17_1/Branch_1/Conv2d_0c_7x1", "dilation", 2);
    expect_option(net, block17, "dilation", 2);
    expect_option(net, "anchors", "width_stride", 8);
    expect_shape(net, SECOND "Mixed_7a", PM_SHAPE4(6, 8, 8, 2080));
    pm_net_destroy(&net);
}

/* Only added layers have weight decay, if their hyperparams say so. */
static void decay(void **state)
{
    static const char options[] =
        "{\"hyperparams\": {\"regularize\": true}, \"second_stage_box_predictor\": "
        "{\"hyperparams\": {\"regularize\": true}}}";
    static const char *const decayed[] = {
        "Conv/weights", "FirstStageBoxPredictor/BoxEncodingPredictor/weights",
        "FirstStageBoxPredictor/ClassPredictor/weights",
        "SecondStageBoxPredictor/BoxEncodingPredictor/weights",
        "SecondStageBoxPredictor/ClassPredictor/weights",
    };
    static const char *const nets[] = { "faster_rcnn_resnet50", "faster_rcnn_inception_v2",
                                        "faster_rcnn_inception_resnet_v2" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = both(nets[i], 100, options, &heads);
        size_t count = 0;

        for (int k = 0; k < net->var_count; k++)
            count += net->vars[k]->regularize;
        assert_int_equal(count, PM_COUNT(decayed));
        for (size_t k = 0; k < count; k++)
            assert_true(net_variable(net, decayed[k])->regularize);
        pm_net_destroy(&net);
        net = both(nets[i], 100, NULL, &heads);
        for (int k = 0; k < net->var_count; k++)
            assert_false(net->vars[k]->regularize);
        pm_net_destroy(&net);
    }
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

/* The original pads with black pixels before it normalises. */
static void black_padding(void **state)
{
    size_t count;
    const struct pm_net_row *const *all = pm_net_rows(&count);
    int seen = 0;

    (void)state;
    for (size_t i = 0; i < count; i++)
        if (strncmp(all[i]->name, "faster_rcnn_", 12) == 0) {
            assert_string_equal(all[i]->preprocessing, strstr(all[i]->name, "_resnet1") ||
                                                               strstr(all[i]->name, "_resnet5")
                                                           ? "ssd_means_black"
                                                           : "ssd_black");
            seen++;
        }
    assert_int_equal(seen, 6);
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

/* Builds both stages with this predictor. The caller destroys the net. */
static struct pm_net *with_predictor(const char *predictor)
{
    struct pm_heads heads = { 0 };
    struct pm_str options = { 0 };
    struct pm_net *net = named_net("faster_rcnn_mobilenet_v1", 1, 96, 96, 90, NULL, &heads);

    pm_str_add(&options, "{\"second_stage_box_predictor\": {%s}}", predictor);
    named_second(net, "faster_rcnn_mobilenet_v1", 3, 90, options.text, &heads);
    pm_str_free(&options);
    return net;
}

/* Depth 0: 2 to the power of (2 log2(1024) + 3 log2(90)) / 5 = 7.9, rounded, for the 1,024 channels
 * and 90 classes, also if one mask serves all classes. */
static void mask_depths(void **state)
{
    static const char *const agnostic[] = { "true", "false" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[200];
        struct pm_net *net;

        snprintf(text, sizeof text, "\"predict_instance_masks\": true, "
                 "\"mask_prediction_conv_depth\": 0, \"masks_are_class_agnostic\": %s",
                 agnostic[i]);
        net = with_predictor(text);
        assert_int_equal(net->error, PM_OK);
        assert_int_equal(pm_net_find(net, "SecondStageBoxPredictor/Conv")->out_shape.dim[3], 256);
        assert_int_equal(pm_net_find(net, "SecondStageBoxPredictor/Conv_1")->out_shape.dim[3],
                         i == 0 ? 1 : 90);
        pm_net_destroy(&net);
    }
}

static void refused_predictors(void **state)
{
    static const struct { const char *predictor, *words; } bad[] = {
        { "\"predict_instance_masks\": true, \"convolve_then_upsample_masks\": true, "
          "\"mask_height\": 3",
          "mask_height: 3, but with convolve_then_upsample_masks the features of a region have 4 "
          "already: set it to a multiple of 4" },
        { "\"hyperparams\": {\"batch_norm\": true}", "neither batch_norm nor an activation" },
        { "\"hyperparams\": {\"activation\": \"relu\"}",
          "neither batch_norm nor an activation" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        struct pm_net *net = with_predictor(bad[i].predictor);

        assert_int_equal(net->error, PM_ECONFIG);
        assert_contains(pm_error_text(), bad[i].words);
        pm_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),  cmocka_unit_test(names),    cmocka_unit_test(strides),
        cmocka_unit_test(anchors), cmocka_unit_test(touching), cmocka_unit_test(refused),
        cmocka_unit_test(inception_v2), cmocka_unit_test(inception_resnet_v2),
        cmocka_unit_test(decay),        cmocka_unit_test(variables),
        cmocka_unit_test(black_padding), cmocka_unit_test(mask_depths),
        cmocka_unit_test(refused_predictors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
