/* Named nets with other sizes and options: the nets that are built, and the messages of refused
 * ones. */
#include "named_net.h"

/* ---- sizes ------------------------------------------------------------------------------- */

static void other_sizes(void **state)
{
    (void)state;
    static const struct { const char *name; int height, width; const char *options; } nets[] = {
        { "lenet", 4, 9, NULL },         { "cifarnet", 5, 4, NULL },
        { "resnet_v1_50", 65, 33, NULL }, { "resnet_v1_50", 1, 1, NULL },
        { "mobilenet_v1", 33, 200, NULL }, { "mobilenet_v1", 256, 225, NULL },
        { "mobilenet_v1", 512, 300, "{\"global_pool\": true}" },
        { "mobilenet_v1", 1, 1, NULL },
        { "mobilenet_v1", 64, 64, "{\"output_stride\": 8, \"global_pool\": true}" },
        { "mobilenet_v3_large", 33, 80, NULL },
        { "resnet_v2_50", 33, 65, NULL },
        { "resnet_v1_50", 20, 17, "{\"root_block\": false}" },
        { "alexnet_v2", 260, 300, "{\"global_pool\": true}" },
        { "overfeat", 263, 231, "{\"global_pool\": true}" },
        { "vgg_16", 256, 300, "{\"global_pool\": true}" },
        { "vgg_19", 32, 32, "{\"fc_conv_padding\": \"same\"}" },
        { "vgg_a", 100, 70, "{\"fc_conv_padding\": \"same\", \"global_pool\": true}" },
        { "inception_v1", 300, 320, "{\"global_pool\": true}" },
        { "inception_v2", 300, 320, "{\"global_pool\": true}" },
        { "inception_v3", 331, 299, "{\"global_pool\": true}" },
        { "inception_v4", 331, 299, NULL },
        { "inception_resnet_v2", 299, 331, NULL },
    };

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(nets[i].name, 3, nets[i].height, nets[i].width, 7,
                                       nets[i].options, &heads);
        if (net->error)
            fail_msg("%s at %dx%d: %s", nets[i].name, nets[i].height, nets[i].width,
                     pm_error_text());
        assert_true(pm_shape_equal(pm_heads_main(&heads)->out_shape, PM_SHAPE2(3, 7)));
        pm_net_destroy(&net);
    }
}

static void refused_sizes(void **state)
{
    (void)state;
    expect_refusal("lenet", 3, NULL, "images of 3x3 are too small, at least 4x4");
    expect_refusal("cifarnet", 2, NULL, "images of 2x2 are too small, at least 4x4");
    expect_refusal("mobilenet_v1", 288, NULL, "the last map is 9x9");
    expect_refusal(
        "vgg_16", 256, NULL,
        "the last map is 2x2, which is too large for one "
        "prediction per picture: set model.global_pool to true, or a smaller input size");
    expect_refusal("vgg_16", 200, NULL, "images of 200x200 are too small, at least 224x224");
    expect_refusal("inception_v1", 256, NULL, "the last map is 8x8");
    expect_refusal("inception_v3", 400, NULL, "set model.global_pool");
}

/* A net that could not be built reports its first error only. */
static void tiny_sizes(void **state)
{
    static const int sizes[] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 75 };
    size_t rows, refused = 0;
    const struct pm_net_row *const *list = pm_net_rows(&rows);
    (void)state;

    for (size_t i = 0; i < rows * PM_COUNT(sizes); i++) {
        const char *name = list[i / PM_COUNT(sizes)]->name;
        const int size = sizes[i % PM_COUNT(sizes)];
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(name, 1, size, size, 10, NULL, &heads);
        const int error = net->error;

        if (!error && !pm_heads_main(&heads))
            fail_msg("%s at %d: neither logits nor an error", name, size);
        if (error) {
            char *said = pm_strdup(pm_error_text());
            struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(1), PM_I32);

            pm_net_add_many(net, "loss", (struct pm_node *[]){ pm_heads_main(&heads), labels }, 2,
                            "softmax_cross_entropy");
            pm_net_add(net, "aux", pm_heads_find(&heads, "aux_logits"), "softmax");
            assert_int_equal(net->error, error);
            assert_string_equal(pm_error_text(), said);
            pm_free(said);
            refused++;
        }
        pm_net_destroy(&net);
    }
    assert_true(refused > 0);
}

static void missing_input(void **state)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE2(1, 3), PM_F32);
    (void)state;

    pm_net_add_many(net, "sum", (struct pm_node *[]){ x, NULL }, 2, "add");
    assert_int_equal(net->error, PM_ECONFIG);
    assert_string_equal(pm_error_text(), "sum: its input 2 is missing");
    pm_net_destroy(&net);
}

/* ---- options ----------------------------------------------------------------------------- */

/* Widths are cut, not rounded, and are at least 8. */
static void multiplier(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("mobilenet_v1", 1, 32, 32, 10, "{\"depth_multiplier\": 0.12}",
                                   &heads);

    assert_int_equal(net->error, PM_OK);
    expect_shape(net, "MobilenetV1/Conv2d_0", PM_SHAPE4(1, 16, 16, 8));
    expect_shape(net, "MobilenetV1/Conv2d_2_pointwise", PM_SHAPE4(1, 8, 8, 15));
    expect_shape(net, "MobilenetV1/Conv2d_13_pointwise", PM_SHAPE4(1, 1, 1, 122));
    pm_net_destroy(&net);
}

static bool has_variable(const struct pm_net *net, const char *name)
{
    for (int i = 0; i < net->var_count; i++)
        if (strcmp(net->vars[i]->name, name) == 0)
            return true;
    return false;
}

static void parts_left_out(void **state)
{
    (void)state;
    static const char *const with_head[] = { "inception_v3", "inception_v4",
                                             "inception_resnet_v2" };
    struct pm_heads heads = { 0 };
    struct pm_net *net;

    for (size_t i = 0; i < PM_COUNT(with_head); i++) {
        net = named_net(with_head[i], 1, 299, 299, 10, "{\"aux_head\": false}", &heads);
        assert_int_equal(net->error, PM_OK);
        assert_null(pm_heads_find(&heads, "aux_logits"));
        for (int k = 0; k < net->var_count; k++)
            assert_null(strstr(net->vars[k]->name, "AuxLogits"));
        pm_net_destroy(&net);
    }
    net = named_net("inception_v2", 1, 64, 64, 10, "{\"separable_conv\": false}", &heads);
    assert_true(has_variable(net, "InceptionV2/Conv2d_1a_7x7/BatchNorm/beta"));
    assert_false(has_variable(net, "InceptionV2/Conv2d_1a_7x7/depthwise_weights"));
    pm_net_destroy(&net);
    net = named_net("resnet_v2_50", 1, 64, 64, 10, "{\"root_block\": false}", &heads);
    assert_false(has_variable(net, "resnet_v2_50/conv1/weights"));
    expect_shape(net, "resnet_v2_50/postnorm", PM_SHAPE4(1, 8, 8, 2048));
    pm_net_destroy(&net);
}

/* The first layer keeps its width. */
static void resnet_depth(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("resnet_v1_50", 1, 64, 64, 10,
                                   "{\"depth_multiplier\": 0.1, \"min_depth\": 10}", &heads);

    assert_int_equal(net->error, PM_OK);
    expect_shape(net, "resnet_v1_50/conv1", PM_SHAPE4(1, 32, 32, 64));
    expect_shape(net, "resnet_v1_50/block1/unit_1/bottleneck_v1/conv1", PM_SHAPE4(1, 16, 16, 10));
    expect_shape(net, "resnet_v1_50/block4/unit_1/bottleneck_v1/conv3", PM_SHAPE4(1, 2, 2, 204));
    pm_net_destroy(&net);
}

static bool flag_of(const struct pm_node *n, const char *key)
{
    cJSON *o = cJSON_CreateObject();

    pm_opts_dump(n->layer->opts, n->cfg, o, false);
    const bool value = cJSON_IsTrue(cJSON_GetObjectItem(o, key));
    cJSON_Delete(o);
    return value;
}

static void batch_norm_options(void **state)
{
    (void)state;
    static const struct { const char *name, *node; } nets[] = {
        { "inception_v1", "InceptionV1/Mixed_3b/Branch_0/Conv2d_0a_1x1/BatchNorm" },
        { "resnet_v1_50", "resnet_v1_50/block1/unit_1/bottleneck_v1/conv3/BatchNorm" },
        { "resnet_v2_50", "resnet_v2_50/block1/unit_1/bottleneck_v2/preact" },
        { "mobilenet_v2", "MobilenetV2/expanded_conv/depthwise/BatchNorm" },
    };

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(nets[i].name, 1, 64, 64, 10,
                                       "{\"batch_norm_decay\": 0.5, "
                                       "\"batch_norm_epsilon\": 0.125, "
                                       "\"moving_variance\": \"biased\"}", &heads);
        const struct pm_node *n = pm_net_find(net, nets[i].node);
        cJSON *o = cJSON_CreateObject();

        assert_int_equal(net->error, PM_OK);
        expect_option(net, nets[i].node, "decay", 0.5);
        expect_option(net, nets[i].node, "epsilon", 0.125);
        pm_opts_dump(n->layer->opts, n->cfg, o, false);
        assert_string_equal(cJSON_GetObjectItem(o, "moving_variance")->valuestring, "biased");
        cJSON_Delete(o);
        pm_net_destroy(&net);
    }
}

/* The option of batch norm acts on every batch norm of every net that has it; other nets have no
 * batch norm. */
static void batch_norm_train(void **state)
{
    size_t rows;
    const struct pm_net_row *const *row = pm_net_rows(&rows);
    int with = 0;

    (void)state;
    for (size_t i = 0; i < rows; i++)
        for (int frozen = 0; frozen < 2; frozen++) {
            const bool has = row[i]->opts && pm_opts_find(row[i]->opts, "batch_norm_train") >= 0;
            struct pm_heads heads = { 0 };
            const char *options = !has     ? NULL
                                  : frozen ? "{\"batch_norm_train\": false}"
                                           : "{\"batch_norm_train\": true}";
            struct pm_net *net = named_net(row[i]->name, 1, row[i]->default_size,
                                           row[i]->default_size, 10, options, &heads);
            int norms = 0;

            assert_int_equal(net->error, PM_OK);
            for (int k = 0; k < net->count; k++)
                if (strcmp(net->nodes[k]->layer->name, "batch_norm") == 0) {
                    norms++;
                    if (flag_of(net->nodes[k], "frozen") != (bool)frozen)
                        fail_msg("%s: %s", row[i]->name, net->nodes[k]->name);
                }
            assert_int_equal(norms > 0, has);
            with += has;
            pm_net_destroy(&net);
        }
    assert_true(with > 0);
}

/* Dilation in place of strides: the last map has the size asked for, and the layers after each
 * removed stride are dilated to read the same pixels. */
static void output_stride(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("mobilenet_v2", 1, 32, 64, 10, "{\"output_stride\": 8}", &heads);

    assert_int_equal(net->error, PM_OK);
    expect_shape(net, "MobilenetV2/expanded_conv_3/depthwise", PM_SHAPE4(1, 4, 8, 144));
    expect_shape(net, "MobilenetV2/Conv_1", PM_SHAPE4(1, 4, 8, 1280));
    expect_option(net, "MobilenetV2/expanded_conv_3/depthwise", "dilation", 1);
    expect_option(net, "MobilenetV2/expanded_conv_6/depthwise", "dilation", 1);
    expect_option(net, "MobilenetV2/expanded_conv_7/depthwise", "dilation", 2);
    expect_option(net, "MobilenetV2/expanded_conv_13/depthwise", "dilation", 2);
    expect_option(net, "MobilenetV2/expanded_conv_14/depthwise", "dilation", 4);
    pm_net_destroy(&net);

    net = named_net("resnet_v2_50", 1, 65, 64, 10, "{\"output_stride\": 8}", &heads);
    assert_int_equal(net->error, PM_OK);
    expect_shape(net, "resnet_v2_50/postnorm", PM_SHAPE4(1, 9, 8, 2048));
    expect_option(net, "resnet_v2_50/block2/unit_4/bottleneck_v2/conv2", "dilation", 1);
    expect_option(net, "resnet_v2_50/block3/unit_1/bottleneck_v2/conv2", "dilation", 2);
    expect_option(net, "resnet_v2_50/block3/unit_6/bottleneck_v2/conv2", "dilation", 2);
    expect_option(net, "resnet_v2_50/block4/unit_1/bottleneck_v2/conv2", "dilation", 4);
    pm_net_destroy(&net);

    net = named_net("mobilenet_v3_small", 1, 64, 64, 10, "{\"output_stride\": 16}", &heads);
    assert_int_equal(net->error, PM_OK);
    expect_shape(net, "MobilenetV3/Conv_1", PM_SHAPE4(1, 4, 4, 576));
    expect_option(net, "MobilenetV3/expanded_conv_8/depthwise", "dilation", 1);
    expect_option(net, "MobilenetV3/expanded_conv_9/depthwise", "dilation", 2);
    pm_net_destroy(&net);
}

static void refused_strides(void **state)
{
    (void)state;
    static const struct { const char *name, *options, *words;
    } cases[] = {
        { "mobilenet_v1", "{\"output_stride\": 12}",
          "output_stride: 12 is not possible for mobilenet_v1" },
        { "resnet_v1_50", "{\"output_stride\": 2}", "the powers of 2 from 4 to 32, and 0" },
        { "resnet_v2_50", "{\"output_stride\": 16, \"root_block\": false}", "from 1 to 8" },
    };

    for (size_t i = 0; i < PM_COUNT(cases); i++)
        expect_refusal(cases[i].name, 64, cases[i].options, cases[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_sizes),   cmocka_unit_test(refused_sizes),
        cmocka_unit_test(tiny_sizes),    cmocka_unit_test(missing_input),
        cmocka_unit_test(multiplier),    cmocka_unit_test(parts_left_out),
        cmocka_unit_test(resnet_depth),  cmocka_unit_test(batch_norm_options),
        cmocka_unit_test(batch_norm_train),
        cmocka_unit_test(output_stride), cmocka_unit_test(refused_strides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
