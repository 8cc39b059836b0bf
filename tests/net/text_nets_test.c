/* Nets that read words: their shapes and names, the number of convolutions, parameters counted by
 * hand, and what they refuse. */
#include "named_net.h"

enum { CLASSES = 37 };

/* The parameters of a 3x3 or 1x1 convolution with batch norm. */
static size_t conv(size_t kernel, size_t in, size_t out)
{
    return kernel * kernel * in * out + 2 * out;
}

static size_t dense(size_t in, size_t out)
{
    return in * out + out;
}

/* Both directions, with the dense layer behind them. */
static size_t recurrent(size_t in, size_t units)
{
    return 2 * 4 * units * (in + units + 1) + dense(2 * units, units);
}

static size_t resnet(const int units[5])
{
    size_t sum = conv(3, 3, 32), in = 32;

    for (int k = 0; k < 5; k++) {
        const size_t out = (size_t)32 << k;

        sum += 2 * conv(3, in, out) + conv(3, out, out);
        sum += (size_t)(units[k] - 1) * (conv(1, out, out) + conv(3, out, out));
        in = out;
    }
    return sum + recurrent(512, 256) + recurrent(256, 256) + dense(256, CLASSES);
}

static int count_of(const struct pm_net *net, const char *layer, const char *in_name)
{
    int count = 0;

    for (int i = 0; i < net->count; i++)
        count += strcmp(net->nodes[i]->layer->name, layer) == 0 &&
                 strstr(net->nodes[i]->name, in_name) != NULL;
    return count;
}

static void residual(void **state)
{
    static const struct { const char *name; int depth, units[5]; } nets[] = {
        { "text_resnet30", 30, { 2, 2, 3, 3, 2 } }, { "text_resnet50", 50, { 3, 4, 6, 6, 3 } },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(nets[i].name, 2, 32, 100, CLASSES, NULL, &heads);
        size_t parameters = 0;

        assert_int_equal(net->error, PM_OK);
        for (int k = 0; k < net->var_count; k++)
            parameters += net->vars[k]->trainable ? pm_shape_count(net->vars[k]->shape) : 0;
        assert_int_equal(parameters, resnet(nets[i].units));
        assert_int_equal(count_of(net, "conv2d", "/ResNet/"), nets[i].depth);
        assert_int_equal(count_of(net, "lstm", "FeatureExtractor/BidirectionalRnn_Branch_0_"), 4);
        assert_true(pm_shape_equal(
            pm_net_find(net, nets[i].depth == 50
                                 ? "FeatureExtractor/Convnet/ResNet/Block_5/Unit_3/add"
                                 : "FeatureExtractor/Convnet/ResNet/Block_5/Unit_2/add")->out_shape,
            PM_SHAPE4(2, 1, 25, 512)));
        assert_true(pm_net_find(net, "FeatureExtractor/Convnet/ResNet/Block_2/Unit_1/ShortCut") !=
                    NULL);
        assert_true(pm_net_find(net, "FeatureExtractor/Convnet/ResNet/Block_2/Unit_2/ShortCut") ==
                    NULL);
        assert_true(pm_shape_equal(pm_heads_main(&heads)->out_shape,
                                   PM_SHAPE4(2, 1, 25, CLASSES)));
        pm_net_destroy(&net);
    }
}

/* Seven convolutions, the last one 2x1. The second dense layer is the one of the logits. */
static void crnn(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("crnn", 2, 32, 100, CLASSES, NULL, &heads);
    const size_t expected = conv(3, 3, 64) + conv(3, 64, 128) + conv(3, 128, 256) +
                            conv(3, 256, 256) + conv(3, 256, 512) + conv(3, 512, 512) +
                            2 * 512 * 512 + 2 * 512 + recurrent(512, 256) + recurrent(256, 256) -
                            dense(512, 256) + dense(512, CLASSES);
    size_t parameters = 0;

    (void)state;
    assert_int_equal(net->error, PM_OK);
    for (int k = 0; k < net->var_count; k++)
        parameters += net->vars[k]->trainable ? pm_shape_count(net->vars[k]->shape) : 0;
    assert_int_equal(parameters, expected);
    assert_true(pm_shape_equal(pm_heads_main(&heads)->out_shape, PM_SHAPE4(2, 1, 25, CLASSES)));
    pm_net_destroy(&net);
}

static void refused(void **state)
{
    (void)state;
    expect_refusal("crnn", 48, NULL, "pictures have 48 rows, but it reads pictures of 32");
    expect_refusal("text_resnet50", 31, NULL, "set input.size to [32, WIDTH]");
    assert_contains(pm_net_refusal("text_resnet100"), "Choose text_resnet50");
    assert_null(pm_net_row_find("text_resnet100"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residual),
        cmocka_unit_test(crnn),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
