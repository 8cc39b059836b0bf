/* Named classifiers compared with published facts: numbers of parameters, variables, which
 * variables have weight decay, sizes of maps, initialisers. nets_options_test.c covers sizes and
 * options. */
#include "named_net.h"

#include <pumice/sample.h>

static struct pm_net *build_square(const char *name, int size, int classes)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, 2, size, size, classes, NULL, &heads);

    if (net->error)
        fail_msg("%s at %d: %s", name, size, pm_error_text());
    assert_int_equal(pm_heads_main(&heads)->out_shape.rank, 2);
    assert_int_equal(pm_heads_main(&heads)->out_shape.dim[0], 2);
    assert_int_equal(pm_heads_main(&heads)->out_shape.dim[1], classes);
    if (pm_heads_find(&heads, "aux_logits"))
        assert_int_equal(pm_heads_find(&heads, "aux_logits")->out_shape.dim[1], classes);
    return net;
}

static void counts(void **state)
{
    (void)state;
    static const struct { const char *name; int classes, trainable, variables; } nets[] = {
        { "lenet", 10, 3274634, 8 },
        { "cifarnet", 10, 1756426, 10 },
        { "resnet_v1_18", 1000, 11689512, 102 },
        { "resnet_v1_34", 1000, 21797672, 182 },
        { "resnet_v1_50", 1000, 25557032, 267 },
        { "resnet_v1_101", 1000, 44549160, 522 },
        { "resnet_v1_152", 1000, 60192808, 777 },
        { "resnet_v1_200", 1000, 64673832, 1017 },
        { "mobilenet_v1", 1001, 4233001, 137 },
        { "mobilenet_v1_075", 1001, 2586329, 137 },
        { "mobilenet_v1_050", 1001, 1332105, 137 },
        { "mobilenet_v1_025", 1001, 470329, 137 },
        { "alexnet_v2", 1000, 50303912, 16 },
        { "overfeat", 1000, 145704424, 16 },
        { "vgg_a", 1000, 132863336, 22 },
        { "vgg_16", 1000, 138357544, 32 },
        { "vgg_19", 1000, 143667240, 38 },
        { "inception_v1", 1001, 6618649, 230 },
        { "mobilenet_v3_large", 1001, 5484313, 266 },
        { "mobilenet_v3_small", 1001, 2543881, 210 },
        { "mobilenet_v3_large_minimalistic", 1001, 3925569, 234 },
        { "mobilenet_v3_small_minimalistic", 1001, 2045761, 174 },
        { "mobilenet_edgetpu", 1001, 4092713, 292 },
        { "mobilenet_edgetpu_075", 1001, 2989441, 292 },
        { "inception_v2", 1001, 11179361, 277 },
        { "inception_v4", 1001, 46009106, 608 },
        { "inception_resnet_v2", 1001, 59182258, 908 },
        { "inception_v3", 1001, 27145970, 388 },
        { "resnet_v2_50", 1001, 25570409, 272 },
        { "resnet_v2_101", 1001, 44579945, 544 },
        { "resnet_v2_152", 1001, 60238953, 816 },
        { "resnet_v2_200", 1001, 64728169, 1072 },
        { "mobilenet_v2", 1001, 3506153, 262 },
        { "mobilenet_v2_140", 1001, 6110569, 262 },
        { "mobilenet_v2_050", 1001, 1969961, 262 },
        { "mobilenet_v2_035", 1001, 1678409, 262 },
        { "nasnet_cifar", 10, 4978036, 1436 },
        { "nasnet_mobile", 1001, 7703044, 1138 },
        { "nasnet_large", 1001, 93325736, 1558 },
        { "pnasnet_mobile", 1001, 7479113, 945 },
        { "pnasnet_large", 1001, 90648974, 1191 },
    };
    size_t rows, classifiers = 0;
    const struct pm_net_row *const *list = pm_net_rows(&rows);

    for (size_t i = 0; i < rows; i++)
        classifiers += strcmp(list[i]->task, "classification") == 0;
    assert_int_equal(classifiers, PM_COUNT(nets));

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        const int size = pm_net_row_find(nets[i].name)->default_size;
        struct pm_net *net = build_square(nets[i].name, size, nets[i].classes);
        size_t trainable = 0;
        for (int k = 0; k < net->var_count; k++)
            if (net->vars[k]->trainable)
                trainable += pm_shape_count(net->vars[k]->shape);
        if (trainable != (size_t)nets[i].trainable || net->var_count != nets[i].variables)
            fail_msg("%s: %zu parameters in %d variables", nets[i].name, trainable,
                     net->var_count);
        pm_net_destroy(&net);
    }
}

static void lenet_maps(void **state)
{
    (void)state;
    struct pm_net *net = build_square("lenet", 28, 10);

    expect_shape(net, "LeNet/conv1", PM_SHAPE4(2, 28, 28, 32));
    expect_shape(net, "LeNet/pool1", PM_SHAPE4(2, 14, 14, 32));
    expect_shape(net, "LeNet/pool2", PM_SHAPE4(2, 7, 7, 64));
    expect_shape(net, "LeNet/Flatten", PM_SHAPE2(2, 3136));
    pm_net_destroy(&net);
}

static void cifarnet_maps(void **state)
{
    (void)state;
    struct pm_net *net = build_square("cifarnet", 32, 10);

    expect_shape(net, "CifarNet/norm1", PM_SHAPE4(2, 16, 16, 64));
    expect_shape(net, "CifarNet/pool2", PM_SHAPE4(2, 8, 8, 64));
    expect_shape(net, "CifarNet/Flatten", PM_SHAPE2(2, 4096));
    pm_net_destroy(&net);
}

/* The last unit of a block has the stride, in its 3x3 convolution. */
static void resnet_maps(void **state)
{
    (void)state;
    static const int units[] = { 3, 4, 6, 3 }, size[] = { 56, 28, 14, 7 };
    struct pm_net *net = build_square("resnet_v1_50", 224, 1000);

    expect_shape(net, "resnet_v1_50/conv1/BatchNorm", PM_SHAPE4(2, 112, 112, 64));
    expect_shape(net, "resnet_v1_50/pool1", PM_SHAPE4(2, 56, 56, 64));
    for (int b = 0; b < 4; b++)
        for (int u = 1; u <= units[b]; u++) {
            const int in = size[b], out = b < 3 && u == units[b] ? in / 2 : in;
            const int width = 64 << b;
            char name[96];
            const int end = snprintf(name, sizeof name,
                                     "resnet_v1_50/block%d/unit_%d/bottleneck_v1/", b + 1, u);
            snprintf(name + end, sizeof name - (size_t)end, "conv1");
            expect_shape(net, name, PM_SHAPE4(2, in, in, width));
            snprintf(name + end, sizeof name - (size_t)end, "conv2");
            expect_shape(net, name, PM_SHAPE4(2, out, out, width));
            snprintf(name + end, sizeof name - (size_t)end, "conv3/BatchNorm");
            expect_shape(net, name, PM_SHAPE4(2, out, out, 4 * width));
        }
    expect_shape(net, "resnet_v1_50/pool5", PM_SHAPE4(2, 1, 1, 2048));
    pm_net_destroy(&net);
}

static void mobilenet_maps(void **state)
{
    (void)state;
    static const int size[] = { 112, 56, 56, 28, 28, 14, 14, 14, 14, 14, 14, 7, 7 };
    static const int width[] = { 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024 };
    struct pm_net *net = build_square("mobilenet_v1", 224, 1001);

    for (int i = 0; i < 13; i++) {
        char name[64];
        snprintf(name, sizeof name, "MobilenetV1/Conv2d_%d_pointwise/BatchNorm", i + 1);
        expect_shape(net, name, PM_SHAPE4(2, size[i], size[i], width[i]));
    }
    expect_shape(net, "MobilenetV1/AvgPool_1a", PM_SHAPE4(2, 1, 1, 1024));
    pm_net_destroy(&net);
}

/* ---- variables --------------------------------------------------------------------------- */

static const struct pm_variable *variable(const struct pm_net *net, const char *name)
{
    for (int i = 0; i < net->var_count; i++)
        if (strcmp(net->vars[i]->name, name) == 0)
            return net->vars[i];
    fail_msg("no variable %s", name);
    return NULL;
}

static void expect_variable(const struct pm_net *net, const char *name, struct pm_shape shape,
                            enum pm_init_kind kind, double a, bool trainable, bool regularize)
{
    const struct pm_variable *v = variable(net, name);

    if (!pm_shape_equal(v->shape, shape) || v->init.kind != kind ||
        v->init.a != (float)a || v->trainable != trainable || v->regularize != regularize)
        fail_msg("%s: shape, initialiser (%d, %g), trainable %d or regularize %d is wrong", name,
                 v->init.kind, (double)v->init.a, v->trainable, v->regularize);
}

static void lenet_variables(void **state)
{
    (void)state;
    struct pm_net *net = build_square("lenet", 28, 10);

    expect_variable(net, "LeNet/conv1/weights", PM_SHAPE4(5, 5, 1, 32), PM_INIT_TRUNCATED, 0.1,
                    true, true);
    expect_variable(net, "LeNet/conv2/biases", PM_SHAPE1(64), PM_INIT_CONSTANT, 0, true, false);
    expect_variable(net, "LeNet/fc3/weights", PM_SHAPE2(3136, 1024), PM_INIT_TRUNCATED, 0.1, true,
                    true);
    expect_variable(net, "LeNet/fc4/weights", PM_SHAPE2(1024, 10), PM_INIT_TRUNCATED, 0.1, true,
                    true);
    pm_net_destroy(&net);
}

static void cifarnet_variables(void **state)
{
    (void)state;
    struct pm_net *net = build_square("cifarnet", 32, 10);

    expect_variable(net, "CifarNet/conv2/weights", PM_SHAPE4(5, 5, 64, 64), PM_INIT_TRUNCATED,
                    0.05, true, false);
    expect_variable(net, "CifarNet/conv2/biases", PM_SHAPE1(64), PM_INIT_CONSTANT, 0, true, false);
    expect_variable(net, "CifarNet/fc3/weights", PM_SHAPE2(4096, 384), PM_INIT_TRUNCATED, 0.04,
                    true, true);
    expect_variable(net, "CifarNet/fc4/biases", PM_SHAPE1(192), PM_INIT_CONSTANT, 0.1, true, false);
    expect_variable(net, "CifarNet/logits/weights", PM_SHAPE2(192, 10), PM_INIT_TRUNCATED,
                    1.0 / 192, true, false);
    pm_net_destroy(&net);
}

static void resnet_variables(void **state)
{
    (void)state;
    struct pm_net *net = build_square("resnet_v1_50", 224, 1000);
    const char *scope = "resnet_v1_50/block3/unit_6/bottleneck_v1/conv2";
    char name[128];

    snprintf(name, sizeof name, "%s/weights", scope);
    expect_variable(net, name, PM_SHAPE4(3, 3, 256, 256), PM_INIT_VARIANCE_SCALING, 2, true, true);
    assert_int_equal(variable(net, name)->fan_in, 9 * 256);
    snprintf(name, sizeof name, "%s/BatchNorm/gamma", scope);
    expect_variable(net, name, PM_SHAPE1(256), PM_INIT_CONSTANT, 1, true, false);
    snprintf(name, sizeof name, "%s/BatchNorm/beta", scope);
    expect_variable(net, name, PM_SHAPE1(256), PM_INIT_CONSTANT, 0, true, false);
    snprintf(name, sizeof name, "%s/BatchNorm/moving_mean", scope);
    expect_variable(net, name, PM_SHAPE1(256), PM_INIT_CONSTANT, 0, false, false);
    snprintf(name, sizeof name, "%s/BatchNorm/moving_variance", scope);
    expect_variable(net, name, PM_SHAPE1(256), PM_INIT_CONSTANT, 1, false, false);
    expect_variable(net, "resnet_v1_50/logits/weights", PM_SHAPE4(1, 1, 2048, 1000),
                    PM_INIT_VARIANCE_SCALING, 2, true, true);
    expect_variable(net, "resnet_v1_50/logits/biases", PM_SHAPE1(1000), PM_INIT_CONSTANT, 0, true,
                    false);
    pm_net_destroy(&net);
}

static void mobilenet_variables(void **state)
{
    (void)state;
    struct pm_net *net = build_square("mobilenet_v1", 224, 1001);

    expect_variable(net, "MobilenetV1/Conv2d_0/weights", PM_SHAPE4(3, 3, 3, 32), PM_INIT_TRUNCATED,
                    0.09, true, true);
    expect_variable(net, "MobilenetV1/Conv2d_3_depthwise/depthwise_weights",
                    PM_SHAPE4(3, 3, 128, 1), PM_INIT_TRUNCATED, 0.09, true, false);
    variable(net, "MobilenetV1/Conv2d_3_depthwise/BatchNorm/moving_variance");
    expect_variable(net, "MobilenetV1/Conv2d_13_pointwise/weights", PM_SHAPE4(1, 1, 1024, 1024),
                    PM_INIT_TRUNCATED, 0.09, true, true);
    expect_variable(net, "MobilenetV1/Logits/Conv2d_1c_1x1/weights", PM_SHAPE4(1, 1, 1024, 1001),
                    PM_INIT_TRUNCATED, 0.09, true, true);
    pm_net_destroy(&net);
}

/* Constants too small to affect the gradients of a step. */
static void constants(void **state)
{
    (void)state;
    struct pm_net *net = build_square("cifarnet", 32, 10);
    for (int i = 1; i <= 2; i++) {
        const char *node = i == 1 ? "CifarNet/norm1" : "CifarNet/norm2";
        expect_option(net, node, "radius", 4);
        expect_option(net, node, "bias", 1);
        expect_option(net, node, "alpha", 0.001 / 9);
        expect_option(net, node, "beta", 0.75);
    }
    expect_option(net, "CifarNet/dropout3", "keep", 0.5);
    pm_net_destroy(&net);
    net = build_square("lenet", 28, 10);
    expect_option(net, "LeNet/dropout3", "keep", 0.5);
    pm_net_destroy(&net);
    net = build_square("resnet_v1_50", 64, 10);
    expect_option(net, "resnet_v1_50/conv1/BatchNorm", "epsilon", 1.001e-5);
    expect_option(net, "resnet_v1_50/conv1/BatchNorm", "decay", 0.997);
    pm_net_destroy(&net);
    net = build_square("mobilenet_v1", 64, 10);
    expect_option(net, "MobilenetV1/Conv2d_5_depthwise/BatchNorm", "epsilon", 0.001);
    expect_option(net, "MobilenetV1/Conv2d_5_depthwise/BatchNorm", "decay", 0.9997);
    expect_option(net, "MobilenetV1/Dropout_1b", "keep", 0.999);
    pm_net_destroy(&net);
}

/* Number of variables with weight decay. No depthwise weight, bias or batch norm is among them. */
static void weight_decay(void **state)
{
    (void)state;
    static const struct { const char *name; int covered; float strength; } nets[] = {
        { "lenet", 4, 0 }, { "cifarnet", 2, 0.004f }, { "resnet_v1_50", 54, 1e-4f },
        { "mobilenet_v1", 15, 4e-5f },
    };

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        const struct pm_net_row *row = pm_net_row_find(nets[i].name);
        struct pm_net *net = build_square(nets[i].name, row->default_size, 10);
        int covered = 0;
        for (int k = 0; k < net->var_count; k++)
            if (net->vars[k]->regularize) {
                const char *last = strrchr(net->vars[k]->name, '/');
                assert_string_equal(last, "/weights");
                covered++;
            }
        assert_int_equal(covered, nets[i].covered);
        assert_true(row->weight_decay == nets[i].strength);
        pm_net_destroy(&net);
    }
}

/* ---- the list ---------------------------------------------------------------------------- */

/* Every net has a config: configs/imagenet/NET.json, or configs/NET...json for other data. */
static void each_has_a_config(void **state)
{
    const char *source = getenv("PUMICE_SOURCE");
    struct pm_arena *a = pm_arena_create();
    size_t rows;
    const struct pm_net_row *const *list = pm_net_rows(&rows);
    (void)state;

    for (size_t i = 0; i < rows; i++) {
        char **paths;
        size_t count = 0;
        if (list[i]->task)
            continue; /* tests/net/deeplab_test.c covers these */
        for (int place = 0; place < 2 && count == 0; place++)
            assert_int_equal(pm_glob(a, pm_arena_printf(a, "%s/configs/%s%s%s.json",
                                                        source ? source : ".",
                                                        place ? "" : "imagenet/", list[i]->name,
                                                        place ? "*" : ""), &paths, &count), 0);
        if (count == 0)
            fail_msg("no config for %s: write configs/imagenet/%s.json", list[i]->name,
                     list[i]->name);
    }
    pm_arena_destroy(&a);
}

static void unknown_name(void **state)
{
    (void)state;
    assert_null(pm_net_row_find("resnet_v1_51"));
}

/* A net's name as input.preprocessing selects the preprocessing of TF-Slim or DeepLab for that
 * net. */
static void preprocessings(void **state)
{
    static const char *const nets[][2] = {
        { "resnet_v1_50", "vgg" },           { "resnet_v2_200", "vgg" },
        { "vgg_16", "vgg" },                 { "alexnet_v2", "vgg" },
        { "overfeat", "vgg" },               { "mobilenet_v2_140", "inception" },
        { "mobilenet_edgetpu", "inception" }, { "inception_v1", "inception" },
        { "inception_resnet_v2", "inception" }, { "nasnet_cifar", "cifarnet" },
        { "nasnet_large", "inception" },     { "pnasnet_mobile", "inception" },
        { "deeplab_mobilenet_v2", "deeplab" }, { "deeplab_xception_65", "deeplab" },
        { "deeplab_resnet_v1_50_beta", "deeplab" }, { "deeplab_resnet_v1_101", "deeplab_means" },
        { "deeplab_resnet_v1_50", "deeplab_means" }, { "deeplab_resnet_v1_18_beta", "deeplab" },
        { "deeplab_resnet_v1_18", "deeplab_means_grey" },
    };
    size_t count;
    const struct pm_net_row *const *all = pm_net_rows(&count);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++)
        assert_string_equal(pm_net_preprocessing(nets[i][0]), nets[i][1]);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(pm_preprocessing_find(all[i]->preprocessing));
        assert_non_null(pm_preprocessing_find(pm_net_preprocessing(all[i]->name)));
        if (all[i]->torch)
            assert_non_null(pm_preprocessing_find(all[i]->torch->preprocessing));
    }
    assert_null(pm_net_preprocessing("nothing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),          cmocka_unit_test(lenet_maps),
        cmocka_unit_test(cifarnet_maps),   cmocka_unit_test(resnet_maps),
        cmocka_unit_test(mobilenet_maps),  cmocka_unit_test(lenet_variables),
        cmocka_unit_test(cifarnet_variables), cmocka_unit_test(resnet_variables),
        cmocka_unit_test(mobilenet_variables), cmocka_unit_test(weight_decay),
        cmocka_unit_test(constants),       cmocka_unit_test(each_has_a_config),
        cmocka_unit_test(unknown_name),    cmocka_unit_test(preprocessings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
