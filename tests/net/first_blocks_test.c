/* The stem and first block of the classifiers that detectors are built on. */
#include "named_net.h"

#include "base/patterns.h"
#include "nets/first_blocks.h"

static bool is_detector(const struct pm_net_row *row)
{
    return row->task && strcmp(row->task, "detection") == 0;
}

/* Number of the net's variables that the expression matches. They must be its first ones, because
 * nets are built from the images on. */
static int first_ones(const char *name, const struct pm_net *net, const char *text)
{
    struct pm_patterns *p = NULL;
    int count = 0;

    assert_int_equal(pm_patterns_compile(&text, 1, "test", &p), PM_OK);
    for (int i = 0; i < net->var_count; i++)
        if (pm_patterns_one(p, 0, net->vars[i]->name)) {
            if (i != count)
                fail_msg("%s: %s is not among the first variables", name, net->vars[i]->name);
            count++;
        }
    pm_patterns_destroy(&p);
    return count;
}

/* In every detector these are some layers at the beginning, at most half of its variables. */
static void every_detector(void **state)
{
    size_t rows;
    const struct pm_net_row *const *list = pm_net_rows(&rows);
    int detectors = 0;

    (void)state;
    for (size_t i = 0; i < rows; i++) {
        struct pm_heads heads = { 0 };

        if (!is_detector(list[i]))
            continue;
        struct pm_net *net = named_net(list[i]->name, 1, 320, 320, 5, NULL, &heads);
        const char *text = pm_net_first_blocks(net, net->arena);

        assert_int_equal(net->error, PM_OK);
        if (!text)
            fail_msg("%s: not known", list[i]->name);
        const int count = first_ones(list[i]->name, net, text);
        if (count == 0 || 2 * count > net->var_count)
            fail_msg("%s: %d of %d variables", list[i]->name, count, net->var_count);
        detectors++;
        pm_net_destroy(&net);
    }
    assert_int_equal(detectors, 24);
}

/* The last layer of the part, and the first after it. */
static void limits(void **state)
{
    static const struct { const char *net, *last, *next; } nets[] = {
        { "faster_rcnn_resnet50",
          "FirstStageFeatureExtractor/resnet_v1_50/block1/unit_3/bottleneck_v1/conv3/weights",
          "FirstStageFeatureExtractor/resnet_v1_50/block2/unit_1/bottleneck_v1/conv1/weights" },
        { "faster_rcnn_mobilenet_v1",
          "FirstStageFeatureExtractor/MobilenetV1/Conv2d_1_pointwise/weights",
          "FirstStageFeatureExtractor/MobilenetV1/Conv2d_2_depthwise/depthwise_weights" },
        { "faster_rcnn_mobilenet_v1",
          "FirstStageFeatureExtractor/MobilenetV1/Conv2d_0/weights",
          "FirstStageFeatureExtractor/MobilenetV1/Conv2d_10_pointwise/weights" },
        { "ssd_mobilenet_v2", "FeatureExtractor/MobilenetV2/expanded_conv/project/weights",
          "FeatureExtractor/MobilenetV2/expanded_conv_1/expand/weights" },
        { "ssd_inception_v3",
          "FeatureExtractor/InceptionV3/Mixed_5b/Branch_0/Conv2d_0a_1x1/weights",
          "FeatureExtractor/InceptionV3/Mixed_5c/Branch_0/Conv2d_0a_1x1/weights" },
        { "faster_rcnn_inception_resnet_v2",
          "FirstStageFeatureExtractor/InceptionResnetV2/Repeat/block35_10/Conv2d_1x1/weights",
          "FirstStageFeatureExtractor/InceptionResnetV2/Mixed_6a/Branch_0/Conv2d_1a_3x3/weights" },
        { "retinanet_50",
          "FeatureExtractor/resnet_v1_50/block1/unit_1/bottleneck_v1/shortcut/weights",
          "FeatureExtractor/resnet_v1_50/block2/unit_1/bottleneck_v1/shortcut/weights" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(nets[i].net, 1, 320, 320, 5, NULL, &heads);
        const char *text = pm_net_first_blocks(net, net->arena);
        struct pm_patterns *p = NULL;

        assert_int_equal(pm_patterns_compile(&text, 1, "test", &p), PM_OK);
        assert_true(pm_patterns_one(p, 0, net_variable(net, nets[i].last)->name));
        assert_false(pm_patterns_one(p, 0, net_variable(net, nets[i].next)->name));
        pm_patterns_destroy(&p);
        pm_net_destroy(&net);
    }
}

/* A classifier has no such scope, nor has a list of other names. */
static void unknown(void **state)
{
    static const char *const nets[] = {
        "resnet_v1_50",
        "[{\"name\": \"FeatureExtractor/net/conv\", \"layer\": \"conv2d\", \"filters\": 4}]",
        "[{\"name\": \"MobilenetV1/Conv2d_0\", \"layer\": \"conv2d\", \"filters\": 4}]",
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(nets[i], 1, 224, 224, 5, NULL, &heads);

        assert_int_equal(net->error, PM_OK);
        assert_null(pm_net_first_blocks(net, net->arena));
        pm_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_detector), cmocka_unit_test(limits), cmocka_unit_test(unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
