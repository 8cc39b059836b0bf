/* DeepLab's heads: sizes, layers, names and initial values of what stands behind a backbone, and what
 * is refused. The backbone here is a small one with the strides of the real ones. */
#include "named_net.h"

#include "nets/deeplab.h"

/* Maps of 8 channels at strides 2, 4, 8 and 16, or dilated from output_stride on. */
static struct pm_node *small(struct pm_net *net, struct pm_node *x,
                             const struct pm_deeplab_options *o)
{
    struct pm_nets_atrous atrous;

    if (!pm_nets_atrous_begin(net, "small", &o->nets, 4, 32, &atrous))
        return x;
    for (int i = 0; i < 5; i++) {
        int stride = 2, rate;

        pm_nets_atrous_step(&atrous, &stride, &rate);
        x = pm_net_add(net, pm_arena_printf(net->arena, "small/conv%d", i), x,
                       "conv2d filters=8 kernel=3 stride=%d dilation=%d activation=relu", stride,
                       rate);
    }
    return x;
}

static const struct pm_backbone pm_backbone_small = {
    .name = "small", .min_stride = 4, .max_stride = 32, .build = small,
    .low = { "small/conv1", "small/conv2", NULL },
};

PM_DEEPLAB(small, "a small one", "deeplab", 4e-5f, 0.9, 1e-3f, { 0 });

static struct pm_net *make(const char *options, int height, int width, int classes,
                           struct pm_heads *heads)
{
    const struct pm_net_row *row = &pm_net_row_deeplab_small;
    cJSON *json = cJSON_Parse(options);
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, height, width, 3), PM_F32);
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size);

    assert_non_null(json);
    if (pm_opts_parse(row->opts, json, NULL, cfg, net->arena, "model") != PM_OK)
        fail_msg("%s", pm_error_text());
    *heads = (struct pm_heads){ 0 };
    row->build(net, images, classes, cfg, heads);
    cJSON_Delete(json);
    return net;
}

static struct pm_net *built(const char *options, int height, int width)
{
    struct pm_heads heads;
    struct pm_net *net = make(options, height, width, 5, &heads);

    if (net->error)
        fail_msg("%s: %s", options, pm_error_text());
    return net;
}

static void expect_logits(const char *options, int height, int width, int h, int w)
{
    struct pm_heads heads;
    struct pm_net *net = make(options, height, width, 5, &heads);

    if (net->error)
        fail_msg("%s: %s", options, pm_error_text());
    assert_int_equal(heads.logits->out_shape.dim[0], 2);
    assert_int_equal(heads.logits->out_shape.dim[1], h);
    assert_int_equal(heads.logits->out_shape.dim[2], w);
    assert_int_equal(heads.logits->out_shape.dim[3], 5);
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
    static const struct { int size; float scale; int want; } cases[] = {
        { 513, 1 / 16.f, 33 },  { 769, 1 / 16.f, 49 },   { 1025, 1 / 4.f, 257 }, { 513, 1 / 4.f, 129 },
        { 513, 1 / 8.f, 65 },   { 769, 1 / 4.f, 193 },   { 1025, 1 / 16.f, 65 }, { 2049, 1 / 16.f, 129 },
        { 2049, 1 / 4.f, 513 }, { 512, 1 / 16.f, 32 },   { 1, 1 / 16.f, 1 },     { 513, 0.75f, 385 },
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
    expect_shape(net, "aspp/joined", PM_SHAPE4(2, 5, 7, 4 * 32));
    expect_shape(net, "concat_projection", PM_SHAPE4(2, 5, 7, 32));
    assert_string_equal(pm_net_find(net, "aspp/joined")->in[0]->name, "image_pooling/resized");
    assert_string_equal(pm_net_find(net, "aspp/joined")->in[1]->name, "aspp0/BatchNorm");
    assert_string_equal(pm_net_find(net, "aspp/joined")->in[3]->name, "aspp2_pointwise/BatchNorm");
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
    expect_shape(net, "aspp/joined", PM_SHAPE4(2, 5, 5, 3 * 256));
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

/* ---- the rows ---------------------------------------------------------------------------- */

/* Parameters, and all variables, of 21 classes with the options of the published models. */
static void rows(void **state)
{
    (void)state;
    static const struct { const char *name, *options; int trainable, variables; } nets[] = {
        { "deeplab_mobilenet_v2", "{}", 2113557, 272 },
        { "deeplab_mobilenet_v2", "{\"aspp_rates\": [6, 12, 18], \"decoder_strides\": 4}", 2725573,
          327 },
    };

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads;
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
    static const struct { const char *options, *words; } cases[] = {
        { "{\"decoder_strides\": 16}", "model.decoder_strides: deeplab_small has no map for a decoder "
          "at stride 16" },
        { "{\"decoder_strides\": 5}", "at stride 5: strides are 4, 8 and 16" },
        { "{\"output_stride\": 12}", "model.output_stride: 12 is none that deeplab_small has: 4, 8, 16 "
          "or 32" },
    };

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_heads heads;
        struct pm_net *net = make(cases[i].options, 65, 65, 5, &heads);

        if (net->error != PM_ECONFIG)
            fail_msg("%s is taken", cases[i].options);
        assert_contains(pm_error_text(), cases[i].words);
        pm_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),         cmocka_unit_test(pyramid_pooling),
        cmocka_unit_test(without_parts), cmocka_unit_test(decoder),
        cmocka_unit_test(rows),          cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
