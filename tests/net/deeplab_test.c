/* DeepLab's heads: sizes, layers, names and initial values of the layers after a backbone, and
 * configurations that are refused. */
#include "deeplab_small.h"

#include <pumice/task.h>

static void expect_logits(const char *options, int height, int width, int h, int w)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = make(options, height, width, 5, &heads);

    if (net->error)
        fail_msg("%s: %s", options, pm_error_text());
    assert_int_equal(pm_heads_main(&heads)->out_shape.dim[0], 2);
    assert_int_equal(pm_heads_main(&heads)->out_shape.dim[1], h);
    assert_int_equal(pm_heads_main(&heads)->out_shape.dim[2], w);
    assert_int_equal(pm_heads_main(&heads)->out_shape.dim[3], 5);
    pm_net_destroy(&net);
}

static void expect_init(const struct pm_net *net, const char *variable, enum pm_init_kind kind,
                        double a, bool regularize)
{
    for (int k = 0; k < net->var_count; k++) {
        const struct pm_variable *v = net->vars[k];

        if (strcmp(v->name, variable) != 0)
            continue;
        if (v->init.kind != kind || (float)v->init.a != (float)a || v->regularize != regularize)
            fail_msg("%s begins otherwise", variable);
        return;
    }
    fail_msg("no variable %s", variable);
}

/* ---- sizes ------------------------------------------------------------------------------- */

static void sizes(void **state)
{
    (void)state;
    static const struct { int size; float scale; int want;
    } cases[] = {
        { 513, 1 / 16.f, 33 },  { 769, 1 / 16.f, 49 },   { 1025, 1 / 4.f, 257 },
        { 513, 1 / 4.f, 129 },  { 513, 1 / 8.f, 65 },    { 769, 1 / 4.f, 193 },
        { 1025, 1 / 16.f, 65 }, { 2049, 1 / 16.f, 129 }, { 2049, 1 / 4.f, 513 },
        { 512, 1 / 16.f, 32 },  { 1, 1 / 16.f, 1 },      { 513, 0.75f, 385 },
        { 241, 0.35f, 85 },     { 321, 1 / 16.f, 21 },
    };

    for (size_t i = 0; i < PM_COUNT(cases); i++)
        if (pm_deeplab_size(cases[i].size, cases[i].scale) != cases[i].want)
            fail_msg("%d by %g is %d, not %d", cases[i].size, (double)cases[i].scale,
                     pm_deeplab_size(cases[i].size, cases[i].scale), cases[i].want);
    expect_logits("{}", 513, 513, 33, 33);
    expect_logits("{\"output_stride\": 8}", 513, 513, 65, 65);
    expect_logits("{\"decoder_strides\": 4}", 513, 513, 129, 129);
    expect_logits("{\"decoder_strides\": [8, 4], \"output_stride\": 32}", 1025, 769, 257, 193);
    expect_logits("{\"decoder_strides\": 4, \"aspp_rates\": [6, 12, 18]}", 500, 334, 125, 84);
    expect_logits("{}", 1, 1, 1, 1);
}

/* ---- layers ------------------------------------------------------------------------------ */

static void pyramid_pooling(void **state)
{
    (void)state;
    struct pm_net *net = built("{\"aspp_rates\": [6, 12], \"aspp_filters\": 32}", 65, 97);

    expect_shape(net, "image_pooling/average", PM_SHAPE4(2, 1, 1, 8));
    expect_shape(net, "image_pooling/resized", PM_SHAPE4(2, 5, 7, 32));
    expect_shape(net, "aspp_joined", PM_SHAPE4(2, 5, 7, 4 * 32));
    expect_shape(net, "concat_projection", PM_SHAPE4(2, 5, 7, 32));
    assert_string_equal(pm_net_find(net, "aspp_joined")->in[0]->name, "image_pooling/resized");
    assert_string_equal(pm_net_find(net, "aspp_joined")->in[1]->name, "aspp0/BatchNorm");
    assert_string_equal(pm_net_find(net, "aspp_joined")->in[3]->name, "aspp2_pointwise/BatchNorm");
    expect_option(net, "aspp1_depthwise", "dilation", 6);
    expect_option(net, "aspp2_depthwise", "dilation", 12);
    expect_option(net, "concat_projection_dropout", "keep", 0.9);
    for (int i = 0; i < net->count; i++)
        if (strcmp(net->nodes[i]->layer->name, "batch_norm") == 0) {
            expect_option(net, net->nodes[i]->name, "decay", 0.9997);
            expect_option(net, net->nodes[i]->name, "epsilon", 1.001e-5);
        }
    expect_init(net, "image_pooling/weights", PM_INIT_XAVIER, 0, true);
    expect_init(net, "aspp0/weights", PM_INIT_XAVIER, 0, true);
    expect_init(net, "aspp1_depthwise/depthwise_weights", PM_INIT_TRUNCATED, 0.33, false);
    expect_init(net, "aspp1_pointwise/weights", PM_INIT_TRUNCATED, 0.06, true);
    expect_init(net, "concat_projection/weights", PM_INIT_XAVIER, 0, true);
    expect_init(net, "logits/semantic/weights", PM_INIT_TRUNCATED, 0.01, true);
    expect_init(net, "logits/semantic/biases", PM_INIT_CONSTANT, 0, false);
    pm_net_destroy(&net);
}

static void without_parts(void **state)
{
    (void)state;
    struct pm_net *net = built("{\"aspp_rates\": [6, 12], \"aspp_separable\": false, "
                               "\"aspp_image_level\": false, \"aspp_concat_projection\": false}",
                               65, 65);

    assert_null(pm_net_find(net, "image_pooling"));
    assert_null(pm_net_find(net, "concat_projection"));
    expect_shape(net, "aspp_joined", PM_SHAPE4(2, 5, 5, 3 * 256));
    expect_option(net, "aspp2", "dilation", 12);
    expect_option(net, "aspp2", "kernel", 3);
    pm_net_destroy(&net);
}

static void decoder(void **state)
{
    (void)state;
    struct pm_net *net = built("{\"decoder_strides\": [8, 4], \"decoder_filters\": 32}", 65, 97);

    expect_shape(net, "decoder/feature_projection0", PM_SHAPE4(2, 9, 13, 48));
    expect_shape(net, "decoder/joined", PM_SHAPE4(2, 9, 13, 256 + 48));
    expect_shape(net, "decoder/decoder_conv1_pointwise", PM_SHAPE4(2, 9, 13, 32));
    expect_shape(net, "decoder/feature_projection0_1", PM_SHAPE4(2, 17, 25, 48));
    expect_shape(net, "decoder/joined_1", PM_SHAPE4(2, 17, 25, 32 + 48));
    expect_shape(net, "decoder/decoder_conv1_1_pointwise", PM_SHAPE4(2, 17, 25, 32));
    assert_string_equal(pm_net_find(net, "decoder/joined")->in[0]->name, "decoder/resized");
    expect_init(net, "decoder/feature_projection0/weights", PM_INIT_XAVIER, 0, true);
    expect_init(net, "decoder/decoder_conv0_depthwise/depthwise_weights", PM_INIT_TRUNCATED, 0.33,
                false);
    expect_init(net, "decoder/decoder_conv1_1_pointwise/weights", PM_INIT_TRUNCATED, 0.06, true);
    pm_net_destroy(&net);
    net = built("{\"decoder_strides\": [8, 4], \"decoder_separable\": false}", 65, 97);
    expect_shape(net, "decoder/decoder_conv0/decoder_conv0_2", PM_SHAPE4(2, 9, 13, 256));
    expect_shape(net, "decoder/decoder_conv0_1/decoder_conv0_1_2", PM_SHAPE4(2, 17, 25, 256));
    pm_net_destroy(&net);
}

/* The pooled map multiplies the concatenated map. */
static void squeeze_and_excite(void **state)
{
    (void)state;
    struct pm_net *net = built("{\"aspp_squeeze_excite\": true, \"aspp_rates\": 6, "
                               "\"aspp_filters\": 32}", 65, 97);

    assert_string_equal(pm_net_find(net, "image_pooling/gate")->layer->name, "sigmoid");
    expect_init(net, "image_pooling/biases", PM_INIT_CONSTANT, 0, false);
    assert_null(pm_net_find(net, "image_pooling/BatchNorm"));
    expect_shape(net, "aspp_joined", PM_SHAPE4(2, 5, 7, 2 * 32));
    assert_string_equal(pm_net_find(net, "aspp_excited")->in[0]->name, "concat_projection_dropout");
    assert_string_equal(pm_net_find(net, "logits/semantic")->in[0]->name, "aspp_excited");
    pm_net_destroy(&net);
    net = built("{\"aspp_squeeze_excite\": true, \"aspp_se_qsigmoid\": true, "
                "\"aspp_concat_projection\": false}", 65, 97);
    assert_string_equal(pm_net_find(net, "image_pooling/gate")->layer->name, "hard_sigmoid");
    assert_null(pm_net_find(net, "aspp_joined"));
    assert_string_equal(pm_net_find(net, "aspp_excited")->in[0]->name, "aspp0/BatchNorm");
    pm_net_destroy(&net);
}

/* The window has the size of the crop's map, also for larger pictures. */
static void pooling_windows(void **state)
{
    (void)state;
    struct pm_net *net = built("{\"aspp_pooling_crop\": [65, 33], \"aspp_pooling_stride\": [4, 5]}",
                               129, 257);

    expect_text(net, "image_pooling/average", "kernel", "[5,3]");
    expect_text(net, "image_pooling/average", "stride", "[4,5]");
    expect_shape(net, "image_pooling/average", PM_SHAPE4(2, 2, 3, 8));
    expect_shape(net, "image_pooling/resized", PM_SHAPE4(2, 9, 17, 256));
    pm_net_destroy(&net);
    net = built("{\"aspp_pooling_crop\": 129, \"image_pyramid\": [1, 0.5]}", 129, 129);
    assert_string_equal(pm_net_find(net, "image_pooling/average")->layer->name, "global_pool");
    assert_string_equal(pm_net_find(net, "scale_0.50/image_pooling/average")->layer->name,
                        "global_pool");
    pm_net_destroy(&net);
}

static void without_batch_norm(void **state)
{
    (void)state;
    struct pm_net *net = built("{\"aspp_batch_norm\": false, \"aspp_rates\": [6, 12], "
                               "\"logits_kernel_size\": 3, \"edge_classes\": 2}", 65, 65);

    assert_null(pm_net_find(net, "aspp0"));
    expect_option(net, "logits/semantic", "dilation", 6);
    expect_option(net, "logits/semantic_1", "dilation", 12);
    expect_option(net, "logits/semantic_1", "kernel", 3);
    expect_shape(net, "logits/semantic_sum", PM_SHAPE4(2, 5, 5, 5));
    expect_shape(net, "logits/edge_sum", PM_SHAPE4(2, 5, 5, 2));
    assert_string_equal(pm_net_find(net, "logits/semantic")->in[0]->name, "small/conv4");
    pm_net_destroy(&net);
}

/* The layer list that is written from a net has the heads of the net. */
static void listed(void **state)
{
    static const char *const options[] = {
        "{}",
        "{\"edge_classes\": 3}",
        "{\"instance\": true, \"decoder_strides\": [8, 4]}",
        "{\"aspp_batch_norm\": false, \"aspp_rates\": [6, 12], \"edge_classes\": 2}",
        "{\"image_pyramid\": [1, 0.5], \"edge_classes\": 2}",
        "{\"image_pyramid\": [0.5, 0.75, 1], \"merge_method\": \"avg\", \"aspp_batch_norm\": "
        "false, "
        "\"aspp_rates\": [6, 12]}",
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(options); i++) {
        struct pm_heads made = { 0 }, read = { 0 };
        struct pm_net *net = make(options[i], 65, 65, 5, &made), *again = pm_net_create();
        cJSON *list = pm_net_to_json(net);

        if (net->error ||
            pm_net_from_json(again, pm_net_input(again, "images", net->nodes[0]->out_shape, PM_F32),
                             list, "list", &read))
            fail_msg("%s: %s", options[i], pm_error_text());
        pm_task_find("segmentation")->find_heads(again, &read);
        assert_string_equal(pm_heads_main(&made)->name, pm_heads_main(&read)->name);
        assert_int_equal(made.count, read.count);
        for (int k = 0; k < made.count; k++) {
            assert_string_equal(made.list[k].name, read.list[k].name);
            assert_int_equal(made.list[k].role, read.list[k].role);
            assert_string_equal(made.list[k].node->name, read.list[k].node->name);
        }
        assert_int_equal(net->var_count, again->var_count);
        for (int k = 0; k < net->var_count; k++)
            assert_string_equal(net->vars[k]->name, again->vars[k]->name);
        cJSON_Delete(list);
        pm_net_destroy(&again);
        pm_net_destroy(&net);
    }
}

static void sum_merge(void **state)
{
    (void)state;
    struct pm_net *net = built("{\"decoder_strides\": [8, 4], \"decoder_sum_merge\": true, "
                               "\"decoder_filters\": 32}", 65, 97);

    expect_shape(net, "decoder/feature_projection0_1", PM_SHAPE4(2, 17, 25, 32));
    expect_shape(net, "decoder/decoder_split_sep_conv0_pointwise", PM_SHAPE4(2, 9, 13, 32));
    assert_null(pm_net_find(net, "decoder/decoder_conv1_depthwise"));
    assert_string_equal(pm_net_find(net, "decoder/sum_1")->in[1]->name,
                        "decoder/feature_projection0_1/BatchNorm");
    pm_net_destroy(&net);
}

/* LR-ASPP has one branch, a factor from windows with strides, and a decoder that adds logits. */
static void output_is_logits(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = make("{\"output_stride\": 32, \"aspp_pooling_crop\": 769, "
                              "\"aspp_pooling_stride\": [4, 5], \"aspp_filters\": 128, "
                              "\"aspp_concat_projection\": false, \"aspp_squeeze_excite\": true, "
                              "\"aspp_se_qsigmoid\": true, \"decoder_strides\": 8, "
                              "\"decoder_sum_merge\": true, \"decoder_filters\": 19, "
                              "\"decoder_is_logits\": true}", 1025, 2049, 19, &heads);

    if (net->error)
        fail_msg("%s", pm_error_text());
    expect_shape(net, "image_pooling", PM_SHAPE4(2, 3, 9, 128));
    expect_shape(net, "decoder/decoder_conv0", PM_SHAPE4(2, 129, 257, 19));
    expect_option(net, "decoder/decoder_conv0", "kernel", 1);
    expect_init(net, "decoder/decoder_conv0/biases", PM_INIT_CONSTANT, 0, false);
    expect_init(net, "decoder/feature_projection0/biases", PM_INIT_CONSTANT, 0, false);
    assert_string_equal(pm_heads_main(&heads)->name, "decoder/sum");
    assert_null(pm_net_find(net, "logits/semantic"));
    pm_net_destroy(&net);
}

static const struct pm_node *scale_logits(const struct pm_heads *heads, int i)
{
    for (int k = 0; k < heads->count; k++)
        if (heads->list[k].role == PM_HEAD_SCALE && i-- == 0)
            return heads->list[k].node;
    fail_msg("there are too few scales");
    return NULL;
}

static void image_pyramid(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *one = built("{\"decoder_strides\": 4}", 65, 97);
    struct pm_net *net =
        make("{\"image_pyramid\": [0.5, 1, 1.5], \"decoder_strides\": 4}", 65, 97, 5, &heads);

    if (net->error)
        fail_msg("%s", pm_error_text());
    assert_int_equal(pm_heads_count(&heads, PM_HEAD_SCALE), 3);
    expect_shape(net, "scaled_images", PM_SHAPE4(2, 33, 49, 3));
    expect_shape(net, "scale_1.50/scaled_images", PM_SHAPE4(2, 97, 145, 3));
    expect_shape(net, "image_pooling/resized", PM_SHAPE4(2, 3, 4, 256));
    expect_shape(net, "scale_1.50/decoder/joined", PM_SHAPE4(2, 25, 37, 256 + 48));
    for (int i = 0; i < 3; i++)
        expect_shape(net, scale_logits(&heads, i)->name, PM_SHAPE4(2, 25, 37, 5));
    assert_string_equal(pm_heads_main(&heads)->layer->name, "maximum");
    assert_int_equal(net->var_count, one->var_count);
    assert_null(net->pass);
    pm_net_destroy(&net);
    net = make("{\"image_pyramid\": [1, 0.5], \"merge_method\": \"avg\"}", 65, 97, 5, &heads);
    expect_option(net, "merged_logits", "scale", 0.5);
    pm_net_destroy(&net);
    net = make("{\"image_pyramid\": 0.5}", 65, 97, 5, &heads);
    assert_int_equal(pm_heads_count(&heads, PM_HEAD_SCALE), 0);
    expect_shape(net, pm_heads_main(&heads)->name, PM_SHAPE4(2, 5, 7, 5));
    expect_shape(net, "logits/semantic", PM_SHAPE4(2, 3, 4, 5));
    pm_net_destroy(&net);
    pm_net_destroy(&one);
}

/* A pass over a net with several scales has all scales, with the same variables. */
static void pyramid_in_a_pass(void **state)
{
    (void)state;
    const char *text = "{\"image_pyramid\": [1, 0.5], \"decoder_strides\": 4}";
    const struct pm_net_row *row = &pm_net_row_deeplab_small;
    struct pm_heads heads = { 0 }, again = { 0 };
    struct pm_net *net = make(text, 65, 65, 5, &heads);
    cJSON *json = cJSON_Parse(text);
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size);
    const int before = net->var_count;

    assert_int_equal(pm_opts_parse(row->opts, json, NULL, cfg, net->arena, "model"), PM_OK);
    net->pass = "mirrored";
    row->build(net, net->nodes[0], 5, cfg, &again);
    if (net->error)
        fail_msg("%s", pm_error_text());
    assert_string_equal(net->pass, "mirrored");
    assert_string_equal(scale_logits(&again, 1)->name,
                        "mirrored/scale_0.50/logits/semantic_resized");
    assert_int_equal(net->var_count, before);
    cJSON_Delete(json);
    pm_net_destroy(&net);
}

/* ---- instances and edges ------------------------------------------------------------------ */

static void instances(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net =
        make("{\"instance\": true, \"decoder_strides\": [8, 4], \"edge_classes\": 3, "
             "\"aspp_rates\": 6}",
             65, 97, 19, &heads);

    if (net->error)
        fail_msg("%s", pm_error_text());
    expect_shape(net, "decoder/joined", PM_SHAPE4(2, 9, 13, 256 + 64));
    expect_shape(net, "decoder/joined_1", PM_SHAPE4(2, 17, 25, 256 + 32));
    expect_option(net, "decoder/decoder_conv0_1_depthwise", "kernel", 5);
    expect_shape(net, "decoder/semantic_conv_pointwise", PM_SHAPE4(2, 17, 25, 256));
    expect_shape(net, "aspp1_instance_depthwise", PM_SHAPE4(2, 5, 7, 8));
    expect_shape(net, "decoder_instance/joined", PM_SHAPE4(2, 9, 13, 256 + 32));
    expect_shape(net, "decoder_instance/joined_1", PM_SHAPE4(2, 17, 25, 128 + 16));
    expect_shape(net, "decoder_instance/center_conv_pointwise", PM_SHAPE4(2, 17, 25, 32));
    expect_shape(net, pm_heads_find(&heads, "center")->name, PM_SHAPE4(2, 17, 25, 1));
    expect_shape(net, pm_heads_find(&heads, "offset")->name, PM_SHAPE4(2, 17, 25, 2));
    expect_shape(net, pm_heads_find(&heads, "edge")->name, PM_SHAPE4(2, 17, 25, 3));
    expect_shape(net, pm_heads_main(&heads)->name, PM_SHAPE4(2, 17, 25, 19));
    pm_net_destroy(&net);
}

/* ---- the rows ---------------------------------------------------------------------------- */

/* Numbers of parameters and of all variables, for 21 classes with the options of the published
 * models. */
#define WHOLE "{\"aspp_rates\": [6, 12, 18], \"decoder_strides\": 4}"
static void rows(void **state)
{
    (void)state;
    static const struct { const char *name, *options; int trainable, variables; } nets[] = {
        { "deeplab_mobilenet_v2", "{}", 2113557, 272 },
        { "deeplab_mobilenet_v2", WHOLE, 2725573, 327 },
        { "deeplab_xception_65", "{}", 39053893, 677 },
        { "deeplab_xception_65", WHOLE, 41055413, 732 },
        { "deeplab_xception_41", "{}", 26107141, 437 },
        { "deeplab_xception_41", WHOLE, 28108661, 492 },
        { "deeplab_xception_71", "{}", 41476317, 747 },
        { "deeplab_xception_71", WHOLE, 43477837, 802 },
        { "deeplab_mobilenet_v3_small_seg", "{}", 676037, 223 },
        { "deeplab_mobilenet_v3_small_seg", WHOLE, 1256277, 278 },
        { "deeplab_mobilenet_v3_large_seg", "{}", 1762949, 279 },
        { "deeplab_mobilenet_v3_large_seg", WHOLE, 2499669, 334 },
    };

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(nets[i].name, 1, 65, 65, 21, nets[i].options, &heads);
        size_t trainable = 0;

        if (net->error)
            fail_msg("%s: %s", nets[i].name, pm_error_text());
        for (int k = 0; k < net->var_count; k++)
            if (net->vars[k]->trainable)
                trainable += pm_shape_count(net->vars[k]->shape);
        if (trainable != (size_t)nets[i].trainable || net->var_count != nets[i].variables)
            fail_msg("%s %s: %zu parameters in %d variables", nets[i].name, nets[i].options,
                     trainable, net->var_count);
        assert_string_equal(pm_net_row_find(nets[i].name)->task, "segmentation");
        pm_net_destroy(&net);
    }
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void refusals(void **state)
{
    (void)state;
    expect_error("{\"decoder_strides\": 16}",
                 "model.decoder_strides: deeplab_small has no map with stride 16 for a decoder");
    expect_error("{\"decoder_strides\": 5}",
                 "with stride 5 for a decoder; allowed are 4, 8 and 16");
    expect_error(
        "{\"output_stride\": 12}",
        "model.output_stride: 12 is not possible for deeplab_small; allowed are 4, 8, 16 and 32");
    expect_error("{\"logits_kernel_size\": 3}",
                 "model.logits_kernel_size: is only for summed logits");
    expect_error("{\"logits_kernel_size\": 3, \"aspp_batch_norm\": false}",
                 "set model.aspp_batch_norm");
    expect_error("{\"aspp_rates\": [1, 2, 3, 4, 5, 6, 7]}",
                 "model.aspp_rates: has more than 6 rates");
    expect_error("{\"aspp_rates\": 6, \"dense_prediction_cell\": \"x.json\"}",
                 "model.aspp_rates: cannot be combined with model.dense_prediction_cell");
    expect_error("{\"aspp_batch_norm\": false, \"dense_prediction_cell\": \"x.json\"}",
                 "model.aspp_batch_norm: excludes model.dense");
    expect_error("{\"dense_prediction_cell\": \"/nowhere/x.json\"}",
                 "model.dense_prediction_cell: /nowhere/x.json is not there");
    expect_error("{\"dense_prediction_cell\": \"/nowhere/x.json\", \"output_stride\": 32}",
                 "set model.output_stride to 16 or 8");
    expect_error("{\"aspp_squeeze_excite\": true, \"aspp_image_level\": false}",
                 "model.aspp_squeeze_excite: needs the average over the picture");
    expect_error("{\"aspp_squeeze_excite\": true, \"aspp_concat_projection\": false, "
                 "\"aspp_rates\": 6}", "set model.aspp_concat_projection to true");
    expect_error("{\"aspp_se_qsigmoid\": true}",
                 "model.aspp_se_qsigmoid: needs model.aspp_squeeze_excite");
    expect_error("{\"aspp_pooling_crop\": [65, 65, 65]}",
                 "model.aspp_pooling_crop: takes a height");
    expect_error("{\"aspp_pooling_stride\": []}", "model.aspp_pooling_stride: takes");
    expect_error(
        "{\"aspp_pooling_crop\": 129}",
        "model.aspp_pooling_crop: image_pooling/average averages windows of 9 along an axis of "
        "5: the pictures, 65 pixels, must be at least as large as the crop, 129");
    expect_error("{\"decoder_strides\": [4, 8]}",
                 "model.decoder_strides: must go from the coarsest map");
    expect_error("{\"decoder_sum_merge\": true}", "model.decoder_sum_merge: needs a decoder");
    expect_error("{\"decoder_is_logits\": true}", "model.decoder_is_logits: needs a decoder");
    expect_error("{\"decoder_is_logits\": true, \"decoder_strides\": 4}",
                 "model.decoder_filters: 256, but with model.decoder_is_logits it is the number of "
                 "classes: set it to 5");
    expect_error("{\"decoder_is_logits\": true, \"decoder_strides\": 4, \"edge_classes\": 2}",
                 "model.decoder_is_logits: excludes other heads");
    expect_error("{\"instance\": true}", "model.instance: needs a decoder");
    expect_error("{\"instance\": true, \"decoder_strides\": 4, \"decoder_sum_merge\": true}",
                 "model.instance: needs model.aspp_batch_norm=true");
    expect_error("{\"instance\": true, \"decoder_strides\": 4, \"image_pyramid\": [1, 0.5]}",
                 "model.instance: does not work with merged scales");
    expect_error("{\"instance\": true, \"decoder_strides\": 4, \"decoder_filters_instance\": 3}",
                 "model.decoder_filters_instance: takes two numbers");
    expect_error("{\"edge_classes\": 1}",
                 "model.edge_classes: is 1, but edges need at least two classes");
    expect_error("{\"image_pyramid\": [1, 0.5, 1]}",
                 "model.image_pyramid: takes up to 8 different scales");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),              cmocka_unit_test(pyramid_pooling),
        cmocka_unit_test(without_parts),      cmocka_unit_test(decoder),
        cmocka_unit_test(squeeze_and_excite), cmocka_unit_test(pooling_windows),
        cmocka_unit_test(without_batch_norm), cmocka_unit_test(listed), cmocka_unit_test(sum_merge),
        cmocka_unit_test(output_is_logits),   cmocka_unit_test(image_pyramid),
        cmocka_unit_test(pyramid_in_a_pass),  cmocka_unit_test(instances),
        cmocka_unit_test(rows),               cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
