/* model.conventions: with "torch" a net uses PyTorch's defaults for options that the config
 * omits, and PyTorch's preprocessing. A net that exists only with TensorFlow's conventions
 * refuses the key. */
#include "../base/unit.h"

#include <cjson/cJSON.h>
#include <pumice/train.h>

#include "net/named_net.h"

static int parse(struct pm_arena *a, const char *model, struct pm_config **out)
{
    const struct pm_open_sections open = pm_train_choices(a);

    return pm_config_parse("here.json", pm_arena_printf(a, "{\"model\": %s}", model), NULL, 0,
                           &open, out);
}

static void expect_defaults(const char *model, const char *preprocessing, double decay,
                            double epsilon)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;

    if (parse(a, model, &c))
        fail_msg("%s", pm_error_text());
    cJSON *all = pm_config_dump(c);
    const cJSON *o = cJSON_GetObjectItem(all, "model");
    assert_string_equal(c->input.preprocessing, preprocessing);
    assert_true(cJSON_GetObjectItem(o, "batch_norm_decay")->valuedouble == decay);
    assert_true((float)cJSON_GetObjectItem(o, "batch_norm_epsilon")->valuedouble == (float)epsilon);
    cJSON_Delete(all);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
}

static void defaults(void **state)
{
    (void)state;
    expect_defaults("{\"name\": \"resnet_v1_50\"}", "vgg", 0.997, 1.001e-5);
    expect_defaults("{\"name\": \"resnet_v1_50\", \"conventions\": \"tensorflow\"}", "vgg", 0.997,
                    1.001e-5);
    expect_defaults("{\"name\": \"resnet_v1_50\", \"conventions\": \"torch\"}", "torch", 0.9, 1e-5);
    expect_defaults("{\"name\": \"resnet_v1_18\"}", "torch", 0.9, 1e-5);
    expect_defaults("{\"name\": \"mobilenet_v2_140\", \"conventions\": \"torch\"}", "torch", 0.9,
                    1e-5);
    expect_defaults("{\"name\": \"mobilenet_v3_small\", \"conventions\": \"torch\"}", "torch", 0.99,
                    0.001);
    expect_defaults("{\"name\": \"inception_v3\", \"conventions\": \"torch\", "
                    "\"batch_norm_decay\": 0.5}", "torch", 0.5, 0.001);
}

static void nets_without(void **state)
{
    static const char *const models[] = {
        "{\"name\": \"lenet\", \"conventions\": \"torch\"}",
        "{\"name\": \"resnet_v2_50\", \"conventions\": \"torch\"}",
        "{\"name\": \"mobilenet_edgetpu\", \"conventions\": \"torch\"}",
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(models); i++) {
        struct pm_arena *a = pm_arena_create();
        struct pm_config *c = NULL;
        assert_int_equal(parse(a, models[i], &c), PM_ECONFIG);
        assert_contains(pm_error_text(), "model.conventions");
        assert_contains(pm_error_text(), "has no such option");
        pm_arena_destroy(&a);
    }
}

/* ---- built nets -------------------------------------------------------------------------- */

#define TORCH "{\"conventions\": \"torch\"}"

static struct pm_net *built(const char *name, int size, const char *options)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, 1, size, size, 10, options, &heads);

    if (net->error)
        fail_msg("%s: %s", name, pm_error_text());
    return net;
}

static void strides(void **state)
{
    (void)state;
    struct pm_net *net = built("resnet_v1_50", 64, TORCH);

    expect_shape(net, "resnet_v1_50/block1/unit_3/bottleneck_v1/conv2", PM_SHAPE4(1, 16, 16, 64));
    expect_shape(net, "resnet_v1_50/block2/unit_1/bottleneck_v1/conv1", PM_SHAPE4(1, 16, 16, 128));
    expect_shape(net, "resnet_v1_50/block2/unit_1/bottleneck_v1/conv2", PM_SHAPE4(1, 8, 8, 128));
    expect_shape(net, "resnet_v1_50/block4/unit_1/bottleneck_v1/conv2", PM_SHAPE4(1, 2, 2, 512));
    pm_net_destroy(&net);
    net = built("resnet_v1_50", 64, NULL);
    expect_shape(net, "resnet_v1_50/block1/unit_3/bottleneck_v1/conv2", PM_SHAPE4(1, 8, 8, 64));
    expect_shape(net, "resnet_v1_50/block2/unit_1/bottleneck_v1/conv2", PM_SHAPE4(1, 8, 8, 128));
    pm_net_destroy(&net);
    net = built("resnet_v1_18", 64, "{\"output_stride\": 8}");
    expect_shape(net, "resnet_v1_18/block4/unit_2/basic_v1/conv2", PM_SHAPE4(1, 8, 8, 512));
    expect_option(net, "resnet_v1_18/block3/unit_1/basic_v1/conv1", "dilation", 1);
    expect_option(net, "resnet_v1_18/block3/unit_2/basic_v1/conv1", "dilation", 2);
    expect_option(net, "resnet_v1_18/block4/unit_2/basic_v1/conv2", "dilation", 4);
    pm_net_destroy(&net);
}

/* TensorFlow's fused batch norm raises epsilon, PyTorch's does not. */
static void epsilons(void **state)
{
    (void)state;
    struct pm_net *net = built("mobilenet_v2", 32, "{\"batch_norm_epsilon\": 1e-6}");
    expect_option(net, "MobilenetV2/Conv/BatchNorm", "epsilon", 1.001e-5);
    pm_net_destroy(&net);
    net = built("mobilenet_v2", 32, "{\"batch_norm_epsilon\": 1e-6, \"conventions\": \"torch\"}");
    expect_option(net, "MobilenetV2/Conv/BatchNorm", "epsilon", 1e-6);
    pm_net_destroy(&net);
}

static void vgg_sizes(void **state)
{
    (void)state;
    struct pm_net *net = built("vgg_a", 448, TORCH);

    expect_shape(net, "vgg_a/avgpool", PM_SHAPE4(1, 7, 7, 512));
    pm_net_destroy(&net);
    net = built("vgg_a", 224, TORCH);
    assert_null(pm_net_find(net, "vgg_a/avgpool"));
    pm_net_destroy(&net);
    net = built("vgg_a", 256, "{\"conventions\": \"torch\", \"global_pool\": true}");
    pm_net_destroy(&net);
    expect_refusal("vgg_a", 256, TORCH, "the last map is 8x8, but PyTorch's conventions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults), cmocka_unit_test(nets_without), cmocka_unit_test(strides),
        cmocka_unit_test(epsilons), cmocka_unit_test(vgg_sizes),
    };

    return cmocka_run_group_tests_name("conventions", tests, NULL, NULL);
}
