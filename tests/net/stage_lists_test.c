/* The stages of Faster R-CNN as lists of layers: the lists of a named net build the same net;
 * strides of anchors; batch norm of valid rows; quantisation; lists that are refused. */
#include "listed_stages.h"

#include "layers/anchors.h"

#define MOBILENET "faster_rcnn_mobilenet_v1"

/* ---- the lists of a named net ---------------------------------------------------------------- */

/* Builds both stages for two images with three regions each, and five classes. */
static struct pm_net *both(const char *name, int size, const char *options)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, 2, size, size, 5, options, &heads);

    if (net->error == PM_OK)
        named_second(net, name, 3, 5, options, &heads);
    return net;
}

static struct pm_net *both_right(const char *name, int size, const char *options)
{
    struct pm_net *net = both(name, size, options);

    if (net->error)
        fail_msg("%s %s: %s", name, options, pm_error_text());
    return net;
}

/* Nets of equal nodes and variables. Weight decay is not compared: the layers of a named net's
 * classifier have none, those of a list have what the list says. */
static void expect_same(const struct pm_net *a, const struct pm_net *b)
{
    cJSON *of_a = pm_net_to_json(a), *of_b = pm_net_to_json(b);

    assert_int_equal(a->count, b->count);
    assert_true(cJSON_Compare(of_a, of_b, true));
    assert_int_equal(a->var_count, b->var_count);
    for (int k = 0; k < a->var_count; k++) {
        const struct pm_variable *v = a->vars[k], *w = b->vars[k];

        assert_string_equal(v->name, w->name);
        assert_true(pm_shape_equal(v->shape, w->shape) && v->trainable == w->trainable);
        assert_true(v->init.kind == w->init.kind && v->init.a == w->init.a);
    }
    for (int i = 0; i < a->count; i++) {
        assert_string_equal(a->nodes[i]->name, b->nodes[i]->name);
        assert_true(pm_shape_equal(a->nodes[i]->out_shape, b->nodes[i]->out_shape));
    }
    cJSON_Delete(of_a);
    cJSON_Delete(of_b);
}

/* Each stage, and both, of every kind of classifier. */
static void same_as_named(void **state)
{
    static const struct { const char *name; int size; const char *options; } nets[] = {
        { MOBILENET, 97, "{}" },
        { MOBILENET, 128, "{\"batch_norm_train\": true, \"depth_multiplier\": 0.5}" },
        { "faster_rcnn_inception_v2", 128, "{\"batch_norm_train\": true}" },
        { "faster_rcnn_resnet50", 128, "{\"batch_norm_train\": true}" },
        { "faster_rcnn_resnet50", 97, "{\"first_stage_features_stride\": 8}" },
        { "faster_rcnn_inception_resnet_v2", 130, "{\"batch_norm_train\": true}" },
        { "faster_rcnn_resnet50", 128, "{\"batch_norm_train\": true, "
          "\"second_stage_box_predictor\": {\"type\": \"rfcn\", \"depth\": 16}}" },
        { MOBILENET, 128, "{\"batch_norm_train\": true, \"second_stage_box_predictor\": "
                          "{\"predict_instance_masks\": true}}" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_net *named = both_right(nets[i].name, nets[i].size, nets[i].options);
        cJSON *layers = pm_net_to_json(named);
        cJSON *first = list_of(layers, FIRST), *second = list_of(layers, SECOND);

        for (int which = 1; which <= 3; which++) {
            char *options = with_lists(nets[i].options, which & 1 ? first : NULL,
                                       which & 2 ? second : NULL);
            struct pm_net *net = both_right(nets[i].name, nets[i].size, options);

            expect_same(net, named);
            pm_net_destroy(&net);
            cJSON_free(options);
        }
        cJSON_Delete(first);
        cJSON_Delete(second);
        cJSON_Delete(layers);
        pm_net_destroy(&named);
    }
}

/* ---- strides --------------------------------------------------------------------------------- */

/* Distance of the first two anchors' centres along an axis, in pixels. */
static double stride_of(const struct pm_net *net, int axis, int size)
{
    const struct pm_node *n = pm_net_find(net, "anchors");
    const int *cells = n->in[1]->out_shape.dim;
    const int per_cell = n->out_shape.dim[0] / (cells[1] * cells[2]);
    const int next = (axis ? 1 : cells[2]) * per_cell;
    float *boxes = pm_malloc((size_t)n->out_shape.dim[0] * 4 * sizeof *boxes);

    pm_anchors_write(n, boxes);
    const double first = (double)boxes[axis] + boxes[2 + axis];
    const double second = (double)boxes[4 * next + axis] + boxes[4 * next + 2 + axis];

    pm_free(boxes);
    return (second - first) / 2 * size;
}

#define LISTS(first) "{\"first_stage_layers\": [" first "], \"second_stage_layers\": []"

/* Anchors have the stride of the list, whatever the padding and the images' size, or the one that
 * the config sets. Coordinates are below 2, so each is rounded by at most 2^-24, and half the sum
 * of four by 2^-23: 128 * 2^-23 = 1.6e-5 pixels. */
static void strides(void **state)
{
    static const struct { const char *options; int size, height, width; } cases[] = {
        { LISTS("{\"layer\": \"conv2d\", \"filters\": 4, \"stride\": 4}") "}", 96, 4, 4 },
        { LISTS("{\"layer\": \"conv2d\", \"filters\": 4, \"stride\": 4}") "}", 65, 4, 4 },
        { LISTS("{\"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 9, \"stride\": 8, "
                "\"padding\": \"valid\"}") "}", 65, 8, 8 },
        { LISTS("{\"layer\": \"conv2d\", \"filters\": 4, \"stride\": [2, 4]}, "
                "{\"layer\": \"max_pool\", \"kernel\": 3, \"stride\": 3}") "}", 91, 6, 12 },
        { LISTS("{\"repeat\": 5, \"layers\": [{\"layer\": \"conv2d\", \"filters\": 4, "
                "\"stride\": 2}]}") "}", 128, 32, 32 },
        { LISTS("{\"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 3, \"dilation\": 2}") "}", 40,
          1, 1 },
        { LISTS("{\"layer\": \"conv2d\", \"filters\": 4, \"stride\": 4}")
          ", \"anchors\": {\"height_stride\": 5}}", 96, 5, 4 },
        { LISTS("{\"layer\": \"resize\", \"size\": [12, 12]}")
          ", \"anchors\": {\"height_stride\": 8, \"width_stride\": 8}}", 96, 8, 8 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_net *net = both_right(MOBILENET, cases[i].size, cases[i].options);

        assert_float_equal(stride_of(net, 0, cases[i].size), cases[i].height, 2e-5);
        assert_float_equal(stride_of(net, 1, cases[i].size), cases[i].width, 2e-5);
        pm_net_destroy(&net);
    }
}

/* ---- what the lists read --------------------------------------------------------------------- */

#define MAP "\"first_stage_layers\": [{\"layer\": \"conv2d\", \"filters\": 6, \"stride\": 8}]"
#define NORMS                                                                                      \
    "\"second_stage_layers\": [{\"name\": \"Conv\", \"layer\": \"conv2d\", \"filters\": 6},"       \
    " {\"name\": \"norm\", \"layer\": \"batch_norm\", \"inputs\": [\"Conv\", \"crops\"]},"         \
    " {\"name\": \"frozen\", \"layer\": \"batch_norm\", \"frozen\": true}]"

static bool reads(const struct pm_net *net, const char *node, const char *input)
{
    const struct pm_node *n = pm_net_find(net, node);

    assert_non_null(n);
    for (int i = 0; i < n->inputs; i++)
        if (strcmp(n->in[i]->name, input) == 0)
            return true;
    return false;
}

/* Batch norm counts the valid rows of crops, and all of R-FCN's map. Names of the first stage are
 * free in the list. */
static void inputs(void **state)
{
    struct pm_net *net = both_right(MOBILENET, 96, "{" MAP ", " NORMS "}");

    (void)state;
    expect_shape(net, SECOND "Conv", PM_SHAPE4(6, 7, 7, 6));
    assert_true(reads(net, SECOND "Conv", "SecondStageCrops/MaxPool2D"));
    assert_true(reads(net, SECOND "norm", "SecondStageCrops/MaxPool2D"));
    assert_true(reads(net, SECOND "norm", "count"));
    assert_false(reads(net, SECOND "frozen", "count"));
    assert_true(reads(net, "SecondStageBoxPredictor/AvgPool", SECOND "frozen"));
    assert_true(reads(net, "SecondStageCrops", FIRST "conv2d_1"));
    assert_true(reads(net, "Conv", FIRST "conv2d_1"));
    expect_sized(net, FIRST "conv2d_1/weights", PM_SHAPE4(3, 3, 3, 6));
    pm_net_destroy(&net);
    net = both_right(MOBILENET, 96, "{" MAP ", " NORMS ", "
                     "\"second_stage_box_predictor\": {\"type\": \"rfcn\", \"depth\": 16}}");
    expect_shape(net, SECOND "Conv", PM_SHAPE4(2, 12, 12, 6));
    assert_false(reads(net, SECOND "norm", "count"));
    assert_true(reads(net, SECOND "norm", FIRST "conv2d_1"));
    pm_net_destroy(&net);
    net = both_right(MOBILENET, 96, "{" MAP ", \"second_stage_layers\": [], "
                     "\"second_stage_box_predictor\": {\"type\": \"rfcn\", \"depth\": 16}}");
    assert_true(reads(net, "SecondStageBoxPredictor/reduce_depth", FIRST "conv2d_1"));
    pm_net_destroy(&net);
    net = both_right("faster_rcnn_resnet50", 96, "{" MAP ", \"second_stage_layers\": null}");
    expect_sized(net, SECOND "resnet_v1_50/block4/unit_1/bottleneck_v1/conv1/weights",
                 PM_SHAPE4(1, 1, 6, 512));
    pm_net_destroy(&net);
}

/* The second stage finds the map of a first stage whose nodes a quantisation has replaced. */
static void quantized(void **state)
{
    static const char *const options[] = {
        "{\"batch_norm_train\": false}",
        "{" MAP ", \"second_stage_layers\": [{\"layer\": \"conv2d\", \"filters\": 6}]}",
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(options); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(MOBILENET, 2, 96, 96, 5, options[i], &heads);
        int after;

        assert_int_equal(pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads), PM_OK);
        after = net->count;
        named_second(net, MOBILENET, 3, 5, options[i], &heads);
        assert_int_equal(net->error, PM_OK);
        assert_ptr_equal(pm_net_find(net, "SecondStageCrops")->in[0],
                         pm_net_find(net, "Conv")->in[0]);
        assert_int_equal(pm_net_quantize(net, after, &(struct pm_quantization){ 0 }, &heads),
                     PM_OK);
        pm_net_destroy(&net);
    }
}

#define RESIZE "{\"layer\": \"resize\", \"size\": [12, 12]}"

/* A list that fits the config's image, but not the larger ones that show the stride: the message
 * has the layer, with its name in the list. */
static void one_size(void **state)
{
    struct pm_net *net = both(
        MOBILENET, 96, "{\"first_stage_layers\": [{\"name\": \"small\", \"layer\": \"conv2d\", "
        "\"filters\": 3, \"stride\": 8}, " RESIZE ", {\"layer\": \"add\", \"inputs\": "
        "[\"small\", \"@previous\"]}]}");

    (void)state;
    assert_int_equal(net->error, PM_ECONFIG);
    assert_contains(pm_error_text(), "because the layers do not fit larger images: set "
                    "height_stride in model.anchors (model.first_stage_layers[2]");
    pm_net_destroy(&net);
}

/* 6720 pixels more give 14 cells with a stride of 480, and sometimes also with one of 512.
 * 961 * 2^-23 = 1.1e-4 pixels is the rounding, as in strides(). */
static void large_strides(void **state)
{
    static const char options[] =
        "{\"first_stage_layers\": [{\"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 1, "
        "\"stride\": 32}, {\"layer\": \"max_pool\", \"kernel\": 1, \"stride\": %d}], "
        "\"second_stage_layers\": []}";
    char text[512];
    struct pm_net *net;

    (void)state;
    snprintf(text, sizeof text, options, 15);
    net = both_right(MOBILENET, 961, text);
    assert_float_equal(stride_of(net, 0, 961), 480, 2e-4);
    pm_net_destroy(&net);
    snprintf(text, sizeof text, options, 16);
    net = both(MOBILENET, 1000, text);
    assert_int_equal(net->error, PM_ECONFIG);
    assert_contains(pm_error_text(), "6720 pixels more give 16 cells instead of 2: set "
                    "height_stride in model.anchors");
    pm_net_destroy(&net);
}

static void refused(void **state)
{
    static const struct { const char *options, *message; } bad[] = {
        { "{\"first_stage_layers\": []}",
          "model.first_stage_layers: must be a list of at least one layer" },
        { "{\"first_stage_layers\": 3}",
          "model.first_stage_layers: must be a list of at least one layer" },
        { "{\"second_stage_layers\": {}}",
          "model.second_stage_layers: must be a list of at least one layer" },
        { "{\"first_stage_layers\": [{\"layer\": \"flatten\"}]}",
          "model.first_stage_layers: the last layer gives 2x27648 of float32, but a map [2, "
          "height, width, channels] of float32 is needed: end the list with a layer that gives "
          "a map" },
        { "{" MAP ", \"second_stage_layers\": [{\"layer\": \"global_pool\"}, "
          "{\"layer\": \"flatten\"}]}",
          "model.second_stage_layers: the last layer gives 6x6 of float32, but a map [6, height, "
          "width, channels] of float32 is needed" },
        { "{" MAP ", \"second_stage_layers\": [{\"layer\": \"conv2d\", \"filters\": 4}, "
          "{\"layer\": \"conv2d\", \"filters\": 4, \"inputs\": \"crop\"}]}",
          "model.second_stage_layers[1].inputs: there is no layer \"crop\" before this one "
          "(nearest is \"crops\")" },
        { "{" MAP ", \"second_stage_layers\": [{\"name\": \"first\", \"layer\": \"conv2d\", "
          "\"filters\": 4}, {\"layer\": \"conv2d\", \"filters\": 4, \"inputs\": \"firts\"}]}",
          "there is no layer \"firts\" before this one (nearest is \"first\")" },
        { "{" MAP ", \"second_stage_layers\": [{\"layer\": \"relu\", \"inputs\": \"@input\"}]}",
          "use \"crops\" or a layer's name" },
        { "{" MAP ", \"second_stage_layers\": [{\"layer\": \"conv2d\", \"filter\": 4}]}",
          "model.second_stage_layers[0].filter: unknown key, did you mean 'filters'?" },
        { "{" MAP ", \"second_stage_layers\": [{\"name\": \"a\", \"layer\": \"relu\"}, "
          "{\"name\": \"a\", \"layer\": \"relu\"}]}",
          "model.second_stage_layers[1].name: \"a\" is the name of an earlier layer" },
        { "{" MAP ", \"second_stage_layers\": [{\"name\": \"crops\", \"layer\": \"relu\"}]}",
          "model.second_stage_layers[0].name: \"crops\" is the name of the list's input" },
        { "{\"first_stage_layers\": [{\"name\": \"images\", \"layer\": \"relu\"}]}",
          "model.first_stage_layers[0].name: \"images\" is the name of the list's input" },
        { "{\"first_stage_layers\": [" RESIZE "]}",
          "the rows of the map is not known: 6720 pixels more give 12 cells instead of 12: set "
          "height_stride in model.anchors" },
        { "{\"first_stage_layers\": [" RESIZE "], \"anchors\": {\"height_stride\": 8}}",
          "the columns of the map is not known: 6720 pixels more give 12 cells instead of 12: set "
          "width_stride in model.anchors" },
        { "{\"first_stage_layers\": [{\"layer\": \"conv2d\", \"filters\": 4, \"stride\": "
          "[2, 11]}]}",
          "the columns of the map is not known: 6720 pixels more give 620 cells instead of 9: set "
          "width_stride in model.anchors" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        struct pm_net *net = both(MOBILENET, 96, bad[i].options);

        if (net->error != PM_ECONFIG)
            fail_msg("%s: not refused", bad[i].options);
        assert_contains(pm_error_text(), bad[i].message);
        pm_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_named), cmocka_unit_test(strides), cmocka_unit_test(inputs),
        cmocka_unit_test(quantized),     cmocka_unit_test(one_size),
        cmocka_unit_test(large_strides), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
