/* Dilation in place of strides: every window of every DeepLab backbone at output strides 32, 16
 * and 8, with factors 1, 2 and 4 in the last block where the backbone supports them. A layer
 * whose stride is removed keeps the earlier dilation; only later layers get the doubled one. */
#include "named_net.h"

/* The properties of windows at output strides 32, 16 and 8. */
struct window {
    const char *format; /* name after the scope, with %d from first to last */
    int first, last;
    int stride[3], rate[3];
};
#define PLAIN { 1, 1, 1 }, { 1, 1, 1 }
#define HALVED { 2, 2, 2 }, { 1, 1, 1 }
#define END { NULL }

/* ---- MobileNets: layer n is expanded_conv_(n - 2) ------------------------------------------- */

#define V "expanded_conv_%d/depthwise"
static const struct window mobilenet_v2[] = {
    { "Conv", 0, 0, HALVED }, { "expanded_conv/depthwise", 0, 0, PLAIN },
    { V, 1, 1, HALVED },      { V, 2, 2, PLAIN },
    { V, 3, 3, HALVED },      { V, 4, 5, PLAIN },
    { V, 6, 6, { 2, 2, 1 }, { 1, 1, 1 } },   { V, 7, 12, { 1, 1, 1 }, { 1, 1, 2 } },
    { V, 13, 13, { 2, 1, 1 }, { 1, 1, 2 } }, { V, 14, 16, { 1, 1, 1 }, { 1, 2, 4 } }, END,
};
static const struct window mobilenet_v3_large[] = {
    { "Conv", 0, 0, HALVED }, { "expanded_conv/depthwise", 0, 0, PLAIN },
    { V, 1, 1, HALVED },      { V, 2, 2, PLAIN },
    { V, 3, 3, HALVED },      { V, 4, 5, PLAIN },
    { V, 6, 6, { 2, 2, 1 }, { 1, 1, 1 } },   { V, 7, 11, { 1, 1, 1 }, { 1, 1, 2 } },
    { V, 12, 12, { 2, 1, 1 }, { 1, 1, 2 } }, { V, 13, 14, { 1, 1, 1 }, { 1, 2, 4 } }, END,
};
static const struct window mobilenet_v3_small[] = {
    { "Conv", 0, 0, HALVED }, { "expanded_conv/depthwise", 0, 0, HALVED },
    { V, 1, 1, HALVED },      { V, 2, 2, PLAIN },
    { V, 3, 3, { 2, 2, 1 }, { 1, 1, 1 } },   { V, 4, 7, { 1, 1, 1 }, { 1, 1, 2 } },
    { V, 8, 8, { 2, 1, 1 }, { 1, 1, 2 } },   { V, 9, 10, { 1, 1, 1 }, { 1, 2, 4 } }, END,
};
/* Up to layer 10 the window is that of the expansion; layer 2 has no expansion. */
#define E "expanded_conv_%d/expand"
static const struct window mobilenet_edgetpu[] = {
    { "Conv", 0, 0, HALVED },
    { E, 1, 1, HALVED }, { E, 2, 4, PLAIN },
    { E, 5, 5, HALVED }, { E, 6, 8, PLAIN },
    { V, 9, 9, { 2, 2, 1 }, { 1, 1, 1 } },   { V, 10, 16, { 1, 1, 1 }, { 1, 1, 2 } },
    { V, 17, 17, { 2, 1, 1 }, { 1, 1, 2 } }, { V, 18, 21, { 1, 1, 1 }, { 1, 2, 4 } }, END,
};

/* ---- Xception ------------------------------------------------------------------------------- */

#define IN_UNIT_1 "/unit_1/xception_module/"
#define ENTRY "entry_flow/block%d" IN_UNIT_1
#define MIDDLE "middle_flow/block1/unit_%d/xception_module/separable_conv"
#define STEM { "entry_flow/conv1_%d", 1, 1, HALVED }, { "entry_flow/conv1_%d", 2, 2, PLAIN }
#define INNER(blocks)                                                                              \
    { ENTRY "separable_conv1_depthwise", 1, blocks, PLAIN },                                       \
    { ENTRY "separable_conv2_depthwise", 1, blocks, PLAIN }
/* The last convolution of a module and its shortcut, for blocks `from` to `to`. */
#define LAST(from, to, ...)                                                                        \
    { ENTRY "separable_conv3_depthwise", from, to, __VA_ARGS__ },                                  \
    { ENTRY "shortcut", from, to, __VA_ARGS__ }
#define BEHIND(units)                                                                              \
    { MIDDLE "1_depthwise", 1, units, { 1, 1, 1 }, { 1, 1, 2 } },                                  \
    { MIDDLE "2_depthwise", 1, units, { 1, 1, 1 }, { 1, 1, 2 } },                                  \
    { MIDDLE "3_depthwise", 1, units, { 1, 1, 1 }, { 1, 1, 2 } },                                  \
    { EXIT(1) "separable_conv%d_depthwise", 1, 2, { 1, 1, 1 }, { 1, 1, 2 } },                      \
    { EXIT(1) "separable_conv%d_depthwise", 3, 3, { 2, 1, 1 }, { 1, 1, 2 } },                      \
    { EXIT(1) "shortcut", 0, 0, { 2, 1, 1 }, { 1, 1, 1 } },                                        \
    { EXIT(2) "separable_conv%d_depthwise", 1, 1, { 1, 1, 1 }, { 1, 2, 4 } },                      \
    { EXIT(2) "separable_conv%d_depthwise", 2, 2, { 1, 1, 1 }, { 2, 4, 8 } },                      \
    { EXIT(2) "separable_conv%d_depthwise", 3, 3, { 1, 1, 1 }, { 4, 8, 16 } }, END
#define EXIT(block) "exit_flow/block" #block IN_UNIT_1
static const struct window xception_41[] = {
    STEM, INNER(3), LAST(1, 2, HALVED), LAST(3, 3, { 2, 2, 1 }, { 1, 1, 1 }), BEHIND(8),
};
static const struct window xception_65[] = {
    STEM, INNER(3), LAST(1, 2, HALVED), LAST(3, 3, { 2, 2, 1 }, { 1, 1, 1 }), BEHIND(16),
};
static const struct window xception_71[] = {
    STEM, INNER(5), LAST(1, 1, HALVED), LAST(2, 2, PLAIN), LAST(3, 3, HALVED), LAST(4, 4, PLAIN),
    LAST(5, 5, { 2, 2, 1 }, { 1, 1, 1 }), BEHIND(16),
};

/* ---- residual nets: a block's last unit has its stride --------------------------------------- */

#define ROOT { "conv1", 0, 0, HALVED }
#define BETA { "conv1_%d", 1, 1, HALVED }, { "conv1_%d", 2, 3, PLAIN }
#define CONV2 "/unit_%d/bottleneck_v1/conv2"
#define BOTTLENECKS(last)                                                                          \
    { "block1" CONV2, 1, 2, PLAIN }, { "block1" CONV2, 3, 3, HALVED },                             \
    { "block2" CONV2, 1, 3, PLAIN }, { "block2" CONV2, 4, 4, { 2, 2, 1 }, { 1, 1, 1 } },           \
    { "block3" CONV2, 1, last - 1, { 1, 1, 1 }, { 1, 1, 2 } },                                     \
    { "block3" CONV2, last, last, { 2, 1, 1 }, { 1, 1, 2 } },                                      \
    { "block4" CONV2, 1, 1, { 1, 1, 1 }, { 1, 2, 4 } },                                            \
    { "block4" CONV2, 2, 2, { 1, 1, 1 }, { 2, 4, 8 } },                                            \
    { "block4" CONV2, 3, 3, { 1, 1, 1 }, { 4, 8, 16 } }, END
#define LITE(unit) "/unit_" #unit "/lite_bottleneck_v1/conv%d"
#define LITE_UNITS                                                                                 \
    { "block1" LITE(1), 1, 2, PLAIN }, { "block1" LITE(2), 1, 1, PLAIN },                          \
    { "block1" LITE(2), 2, 2, HALVED },                                                            \
    { "block2" LITE(1), 1, 2, PLAIN }, { "block2" LITE(2), 1, 1, PLAIN },                          \
    { "block2" LITE(2), 2, 2, { 2, 2, 1 }, { 1, 1, 1 } },                                          \
    { "block3" LITE(1), 1, 2, { 1, 1, 1 }, { 1, 1, 2 } },                                          \
    { "block3" LITE(2), 1, 1, { 1, 1, 1 }, { 1, 1, 2 } },                                          \
    { "block3" LITE(2), 2, 2, { 2, 1, 1 }, { 1, 1, 2 } },                                          \
    { "block4" LITE(1), 1, 2, { 1, 1, 1 }, { 1, 2, 4 } },                                          \
    { "block4" LITE(2), 1, 2, { 1, 1, 1 }, { 2, 4, 8 } }, END
static const struct window resnet_v1_18[] = { ROOT, LITE_UNITS };
static const struct window resnet_v1_18_beta[] = { BETA, LITE_UNITS };
static const struct window resnet_v1_50[] = { ROOT, BOTTLENECKS(6) };
static const struct window resnet_v1_50_beta[] = { BETA, BOTTLENECKS(6) };
static const struct window resnet_v1_101[] = { ROOT, BOTTLENECKS(23) };
static const struct window resnet_v1_101_beta[] = { BETA, BOTTLENECKS(23) };

/* ---- all windows ---------------------------------------------------------------------------- */

static const struct {
    const char *net, *scope, *grid;
    const struct window *windows;
} backbones[] = {
    { "deeplab_mobilenet_v2", "MobilenetV2/", NULL, mobilenet_v2 },
    { "deeplab_mobilenet_v3_large_seg", "MobilenetV3/", NULL, mobilenet_v3_large },
    { "deeplab_mobilenet_v3_small_seg", "MobilenetV3/", NULL, mobilenet_v3_small },
    { "deeplab_mobilenet_edgetpu", "MobilenetEdgeTPU/", NULL, mobilenet_edgetpu },
    { "deeplab_xception_41", "xception_41/", "[1, 2, 4]", xception_41 },
    { "deeplab_xception_65", "xception_65/", "[1, 2, 4]", xception_65 },
    { "deeplab_xception_71", "xception_71/", "[1, 2, 4]", xception_71 },
    { "deeplab_resnet_v1_18", "resnet_v1_18/", "[1, 2]", resnet_v1_18 },
    { "deeplab_resnet_v1_18_beta", "resnet_v1_18/", "[1, 2]", resnet_v1_18_beta },
    { "deeplab_resnet_v1_50", "resnet_v1_50/", "[1, 2, 4]", resnet_v1_50 },
    { "deeplab_resnet_v1_50_beta", "resnet_v1_50/", "[1, 2, 4]", resnet_v1_50_beta },
    { "deeplab_resnet_v1_101", "resnet_v1_101/", "[1, 2, 4]", resnet_v1_101 },
    { "deeplab_resnet_v1_101_beta", "resnet_v1_101/", "[1, 2, 4]", resnet_v1_101_beta },
};

static bool is_window(const struct pm_node *n)
{
    const char *layer = n->layer->name;

    return (strcmp(layer, "conv2d") == 0 || strcmp(layer, "depthwise_conv2d") == 0) &&
           option_of(n, "kernel") > 1;
}

/* Checks the nodes of a line of the table and marks them as covered. */
static void expect_line(const struct pm_net *net, const char *scope, const struct window *w, int s,
                        bool *seen)
{
    for (int k = w->first; k <= w->last; k++) {
        char name[256];
        const int n = snprintf(name, sizeof name, "%s", scope);

        snprintf(name + n, sizeof name - (size_t)n, w->format, k);
        expect_option(net, name, "stride", w->stride[s]);
        expect_option(net, name, "dilation", w->rate[s]);
        for (int i = 0; i < net->count; i++)
            seen[i] |= strcmp(net->nodes[i]->name, name) == 0;
    }
}

static void rates(void **state)
{
    (void)state;
    for (size_t b = 0; b < PM_COUNT(backbones); b++)
        for (int s = 0; s < 3; s++) {
            const char *grid = backbones[b].grid;
            char options[128];
            struct pm_heads heads = { 0 };

            snprintf(options, sizeof options, "{\"output_stride\": %d%s%s}", 32 >> s,
                     grid ? ", \"multi_grid\": " : "", grid ? grid : "");
            struct pm_net *net = named_net(backbones[b].net, 1, 65, 65, 5, options, &heads);
            bool *seen = pm_arena_alloc(net->arena, (size_t)net->count);
            assert_int_equal(net->error, PM_OK);
            memset(seen, 0, (size_t)net->count);
            for (const struct window *w = backbones[b].windows; w->format; w++)
                expect_line(net, backbones[b].scope, w, s, seen);
            for (int i = 0; i < net->count; i++)
                if (is_window(net->nodes[i]) && !seen[i])
                    fail_msg("%s is not in the table", net->nodes[i]->name);
            pm_net_destroy(&net);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),
    };

    return cmocka_run_group_tests_name("backbone_rates", tests, NULL, NULL);
}
