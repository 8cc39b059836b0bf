/* The backbones of segmentation nets: maps, the nodes that decoders read, and widths, at each
 * output stride. */
#include "base/golden_file.h"
#include "named_net.h"

#include "nets/deeplab.h"

/* ---- a backbone alone -------------------------------------------------------------------- */

/* The values that the table gives to options that a test does not set. */
static struct pm_deeplab_options options_of(int output_stride)
{
    return (struct pm_deeplab_options){
        .nets = {
            .output_stride = output_stride, .depth_multiplier = 1,
            .batch_norm_decay = 0.997, .batch_norm_epsilon = 0.001, .batch_norm_train = true,
        },
    };
}

static struct pm_deeplab_options searched(int output_stride, bool head, bool removed)
{
    struct pm_deeplab_options o = options_of(output_stride);

    o.nas_stem_filters = 20;
    o.nas_classification_head = head;
    o.nas_remove_os32_stride = removed;
    o.nets.drop_path_keep = 1;
    return o;
}

static struct pm_net *build(const struct pm_backbone *b, const struct pm_deeplab_options *o,
                            int height, int width, struct pm_node **last)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, height, width, 3), PM_F32);

    *last = b->build(net, images, o);
    if (net->error)
        fail_msg("%s at %dx%d: %s", b->name, height, width, pm_error_text());
    return net;
}

static bool option_is(const struct pm_node *n, const char *key, const char *text)
{
    cJSON *o = cJSON_CreateObject();

    pm_opts_dump(n->layer->opts, n->cfg, o, false);
    const bool same = strcmp(cJSON_GetObjectItem(o, key)->valuestring, text) == 0;
    cJSON_Delete(o);
    return same;
}

/* ---- maps -------------------------------------------------------------------------------- */

struct maps {
    const struct pm_backbone *backbone;
    int channels, low[3]; /* of the last map and of the maps for the decoder; 0: none */
};
static const struct maps all[] = {
    { &pm_backbone_mobilenet_v2, 320, { 144, 192, 576 } },
    { &pm_backbone_xception_41, 2048, { 256, 728, 1024 } },
    { &pm_backbone_xception_65, 2048, { 256, 728, 1024 } },
    { &pm_backbone_xception_71, 2048, { 256, 728, 1024 } },
    { &pm_backbone_mobilenet_v3_large_seg, 480, { 72, 120, 672 } },
    { &pm_backbone_mobilenet_v3_small_seg, 288, { 16, 88, 144 } },
    { &pm_backbone_mobilenet_edgetpu, 1280, { 0, 0, 0 } },
    { &pm_backbone_resnet_v1_18, 512, { 64, 128, 256 } },
    { &pm_backbone_resnet_v1_18_beta, 512, { 64, 128, 256 } },
    { &pm_backbone_resnet_v1_50, 2048, { 256, 512, 1024 } },
    { &pm_backbone_resnet_v1_50_beta, 2048, { 256, 512, 1024 } },
    { &pm_backbone_resnet_v1_101, 2048, { 256, 512, 1024 } },
    { &pm_backbone_resnet_v1_101_beta, 2048, { 256, 512, 1024 } },
};

static int reduced(int size, int stride)
{
    return (size - 1) / stride + 1;
}

static void expect_maps(const struct maps *m, int stride, int height, int width)
{
    const struct pm_deeplab_options o = options_of(stride);
    struct pm_node *last;
    struct pm_net *net = build(m->backbone, &o, height, width, &last);

    expect_shape(net, last->name, PM_SHAPE4(1, reduced(height, stride), reduced(width, stride),
                                            m->channels));
    for (int i = 0; i < 3; i++)
        if (m->low[i]) {
            const int s = 4 << i < stride ? 4 << i : stride;
            expect_shape(net, m->backbone->low[i],
                         PM_SHAPE4(1, reduced(height, s), reduced(width, s), m->low[i]));
        } else {
            assert_null(m->backbone->low[i]);
        }
    pm_net_destroy(&net);
}

/* Windows with strides pad symmetrically in the residual nets and Xception. The MobileNets pad
 * as SAME, which differs by one pixel at even sizes. */
static void padding(void **state)
{
    static const struct { const struct pm_backbone *b; const char *node, *text; } nodes[] = {
        { &pm_backbone_mobilenet_v2, "MobilenetV2/Conv", "same" },
        { &pm_backbone_mobilenet_v2, "MobilenetV2/expanded_conv_1/depthwise", "same" },
        { &pm_backbone_xception_65, "xception_65/entry_flow/conv1_1", "explicit" },
        { &pm_backbone_xception_65, "xception_65/entry_flow/block1/unit_1/xception_module/"
          "separable_conv3_depthwise", "explicit" },
        { &pm_backbone_mobilenet_v3_small_seg, "MobilenetV3/expanded_conv/depthwise", "same" },
        { &pm_backbone_resnet_v1_101, "resnet_v1_101/conv1", "explicit" },
        { &pm_backbone_resnet_v1_50_beta, "resnet_v1_50/conv1_1", "explicit" },
        { &pm_backbone_resnet_v1_50_beta, "resnet_v1_50/pool1", "same" },
        { &pm_backbone_resnet_v1_50_beta, "resnet_v1_50/block1/unit_3/bottleneck_v1/conv2",
          "explicit" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nodes); i++) {
        const struct pm_deeplab_options o = options_of(16);
        struct pm_node *last;
        struct pm_net *net = build(nodes[i].b, &o, 512, 512, &last);

        if (!option_is(pm_net_find(net, nodes[i].node), "padding", nodes[i].text))
            fail_msg("%s has no padding %s", nodes[i].node, nodes[i].text);
        pm_net_destroy(&net);
    }
}

static void maps(void **state)
{
    static const int sizes[][2] = {
        { 513, 513 }, { 65, 65 }, { 129, 97 }, { 512, 512 }, { 1, 30 }
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(all); i++)
        for (int s = all[i].backbone->min_stride; s <= all[i].backbone->max_stride; s *= 2)
            for (size_t k = 0; k < PM_COUNT(sizes); k++)
                expect_maps(&all[i], s, sizes[k][0], sizes[k][1]);
}

static void strides_that_it_lacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(all); i++) {
        struct pm_deeplab_options o = options_of(12);
        struct pm_net *net = pm_net_create();
        struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, 65, 65, 3), PM_F32);

        all[i].backbone->build(net, images, &o);
        assert_int_equal(net->error, PM_ECONFIG);
        assert_contains(pm_error_text(), "model.output_stride: 12");
        assert_contains(pm_error_text(), all[i].backbone->name);
        pm_net_destroy(&net);
    }
}

/* ---- dilation in place of strides: backbone_rates_test.c ------------------------------------- */

/* Without multi_grid the layers of the last block have the same dilation. A multi_grid of
 * another length is refused. */
static void grid(void **state)
{
    static const int two[] = { 1, 2 };
    struct pm_deeplab_options o = options_of(8);
    struct pm_node *last;
    struct pm_net *net = build(&pm_backbone_xception_41, &o, 65, 65, &last);

    (void)state;
    for (int i = 1; i <= 3; i++)
        expect_option(net, pm_arena_printf(net->arena, "xception_41/exit_flow/block2/unit_1/"
                                           "xception_module/separable_conv%d_depthwise", i),
                      "dilation", 4);
    pm_net_destroy(&net);

    o.multi_grid = (struct pm_ints){ 2, two };
    net = pm_net_create();
    pm_backbone_xception_41.build(net, pm_net_input(net, "images", PM_SHAPE4(1, 65, 65, 3), PM_F32),
                                  &o);
    assert_int_equal(net->error, PM_ECONFIG);
    assert_contains(pm_error_text(),
                    "model.multi_grid: 2 numbers, but deeplab_xception_41 takes 3");
    pm_net_destroy(&net);
}

/* ---- bounded activation ------------------------------------------------------------------ */

/* The net has no relu, values without an activation are clipped, and sums pass through relu6. */
static void bounded(void **state)
{
    struct pm_deeplab_options o = options_of(16);
    struct pm_node *last;
    int clips = 0, sums = 0;

    (void)state;
    o.bounded_activation = true;
    struct pm_net *net = build(&pm_backbone_xception_65, &o, 66, 65, &last);
    for (int i = 0; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];
        const char *layer = n->layer->name;

        assert_string_not_equal(layer, "relu");
        clips += strcmp(layer, "clip") == 0;
        if (strcmp(layer, "batch_norm") == 0)
            assert_true(option_is(n, "activation", "relu6") || option_is(n, "activation", "none"));
        if (strcmp(layer, "batch_norm") == 0 && option_is(n, "activation", "none"))
            assert_non_null(pm_net_find(net, pm_arena_printf(net->arena, "%s/clip", n->name)));
        if (strcmp(layer, "add") == 0) {
            assert_true(option_is(n, "activation", "relu6"));
            sums++;
        }
    }
    assert_int_equal(sums, 20);
    /* Each sum's module has depthwise convolutions and a last pointwise one; in addition there
     * are four shortcuts and the three maps for a decoder. */
    assert_int_equal(clips, 20 * 4 + 4 + 3);
    for (int i = 0; i < 3; i++)
        assert_non_null(pm_net_find(net, pm_arena_printf(net->arena, "%s/clip",
                                                         pm_backbone_xception_65.low[i])));
    assert_true(option_is(pm_net_find(net, "xception_65/entry_flow/block1/unit_1/xception_module/"
                                      "separable_conv3_depthwise"), "padding", "same"));
    pm_net_destroy(&net);
}

/* ---- variables --------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *shape_text(struct pm_shape s, char text[64])
{
    int n = 0;

    for (int i = 0; i < s.rank; i++)
        n += snprintf(text + n, 64 - (size_t)n, "%s%d", i ? ", " : "[", s.dim[i]);
    snprintf(text + n, 64 - (size_t)n, "]");
    return text;
}

/* Lines as in tests/golden/deeplab_variables.py, sorted; text gets their SHA-256 in hexadecimal. */
static void digest(struct pm_net *net, char text[65])
{
    const char **lines = pm_arena_alloc(net->arena, (size_t)net->var_count * sizeof *lines);
    struct pm_sha256 sha;
    char shape[64];

    for (int i = 0; i < net->var_count; i++) {
        const struct pm_variable *v = net->vars[i];
        const char *role = !v->trainable ? "kept" : v->regularize ? "decayed" : "trained";
        lines[i] =
            pm_arena_printf(net->arena, "%s %s %s\n", v->name, shape_text(v->shape, shape), role);
    }
    qsort(lines, (size_t)net->var_count, sizeof *lines, by_bytes);
    pm_sha256_start(&sha);
    for (int i = 0; i < net->var_count; i++)
        pm_sha256_add(&sha, lines[i], strlen(lines[i]));
    pm_sha256_end(&sha, text);
}

static int golden_number(const cJSON *row, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(row, key);

    assert_true(cJSON_IsNumber(v));
    return (int)v->valuedouble;
}

static void expect_variables(const cJSON *row, const char *name, struct pm_net *net)
{
    int trained = 0, decayed = 0, elements = 0;
    char text[65];

    for (int i = 0; i < net->var_count; i++)
        if (net->vars[i]->trainable) {
            trained++;
            decayed += net->vars[i]->regularize;
            elements += (int)pm_shape_count(net->vars[i]->shape);
        }
    if (net->var_count != golden_number(row, "variables") ||
        trained != golden_number(row, "trained") || decayed != golden_number(row, "decayed") ||
        elements != golden_number(row, "elements"))
        fail_msg("%s: %d variables, %d trained, %d with weight decay, %d elements", name,
                 net->var_count, trained, decayed, elements);
    digest(net, text);
    if (strcmp(text, cJSON_GetObjectItem(row, "sha256")->valuestring) != 0)
        fail_msg("%s: names, shapes or roles of variables are others", name);
    pm_net_destroy(&net);
}

static void expect_of_backbone(const cJSON *row, const struct pm_backbone *b)
{
    struct pm_deeplab_options o = searched(golden_number(row, "output_stride"), false, false);
    struct pm_node *last;

    o.nets.depth_multiplier = cJSON_GetObjectItem(row, "depth_multiplier")->valuedouble;
    expect_variables(row, b->name, build(b, &o, 65, 65, &last));
}

static void expect_of_net(const cJSON *row)
{
    const char *name = cJSON_GetObjectItem(row, "net")->valuestring;
    char *options = cJSON_PrintUnformatted(cJSON_GetObjectItem(row, "options"));
    struct pm_heads heads = { 0 };
    struct pm_net *net =
        named_net(name, 1, 769, 769, golden_number(row, "classes"), options, &heads);

    free(options);
    if (net->error)
        fail_msg("%s: %s", name, pm_error_text());
    expect_variables(row, name, net);
}

/* The variables of every backbone and of some whole nets equal the original's. */
static void variables(void **state)
{
    cJSON *rows = read_golden("deeplab_variables.json");
    const cJSON *row;
    bool seen[PM_COUNT(all)] = { false };
    int searched_ones = 0, whole = 0;

    (void)state;
    assert_true(cJSON_IsArray(rows));
    cJSON_ArrayForEach(row, rows) {
        if (cJSON_HasObjectItem(row, "net")) {
            expect_of_net(row);
            whole++;
            continue;
        }
        const char *name = cJSON_GetObjectItem(row, "backbone")->valuestring;
        for (size_t i = 0; i < PM_COUNT(all); i++)
            if (strcmp(all[i].backbone->name, name) == 0) {
                expect_of_backbone(row, all[i].backbone);
                seen[i] = true;
            }
        const bool p = strcmp(name, "nas_pnasnet") == 0, h = strcmp(name, "nas_hnasnet") == 0;
        if (p || h)
            expect_of_backbone(row, p ? &pm_backbone_nas_pnasnet : &pm_backbone_nas_hnasnet);
        searched_ones += p || h;
    }
    assert_int_equal(searched_ones, 4);
    assert_int_equal(whole, 5);
    for (size_t i = 0; i < PM_COUNT(all); i++)
        assert_true(seen[i]);
    cJSON_Delete(rows);
}

/* ---- searched cells ---------------------------------------------------------------------- */

/* Sizes and widths of the last map and of the maps for a decoder, for pictures of 129 x 97. */
static void searched_maps(void **state)
{
    static const struct {
        const struct pm_backbone *b;
        int stride;
        bool head, removed;
        int last[2], low[3][2]; /* stride and channels */
    } cases[] = {
#define PNAS &pm_backbone_nas_pnasnet
#define HNAS &pm_backbone_nas_hnasnet
        { PNAS, 8, 0, 0, { 8, 200 }, { { 4, 128 }, { 8, 200 }, { 8, 200 } } },
        { PNAS, 16, 0, 0, { 16, 400 }, { { 4, 128 }, { 8, 200 }, { 16, 400 } } },
        { PNAS, 32, 0, 0, { 32, 800 }, { { 4, 128 }, { 8, 200 }, { 16, 400 } } },
        { PNAS, 32, 0, 1, { 16, 800 }, { { 4, 128 }, { 8, 200 }, { 16, 400 } } },
        { PNAS, 16, 1, 0, { 16, 2048 }, { { 4, 128 }, { 8, 200 }, { 16, 400 } } },
        { HNAS, 8, 0, 0, { 8, 200 }, { { 4, 100 }, { 8, 200 }, { 16, 400 } } },
        { HNAS, 8, 0, 1, { 8, 200 }, { { 4, 100 }, { 8, 200 }, { 16, 400 } } },
        { HNAS, 8, 1, 0, { 8, 2048 }, { { 4, 100 }, { 8, 200 }, { 16, 400 } } },
        { HNAS, 32, 1, 0, { 32, 2048 }, { { 4, 100 }, { 8, 200 }, { 16, 400 } } },
#undef PNAS
#undef HNAS
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const struct pm_deeplab_options o =
            searched(cases[i].stride, cases[i].head, cases[i].removed);
        const int *want = cases[i].last;
        struct pm_node *last;
        struct pm_net *net = build(cases[i].b, &o, 129, 97, &last);

        expect_shape(net, last->name, PM_SHAPE4(1, reduced(129, want[0]), reduced(97, want[0]),
                                                want[1]));
        for (int k = 0; k < 3; k++) {
            want = cases[i].low[k];
            expect_shape(net, cases[i].b->low[k],
                         PM_SHAPE4(1, reduced(129, want[0]), reduced(97, want[0]), want[1]));
        }
        pm_net_destroy(&net);
    }
}

/* The head dilates beyond output_stride. A searched net that ends at stride 8 refuses others. */
static void searched_head(void **state)
{
    struct pm_deeplab_options o = searched(8, true, false);
    struct pm_node *last;
    struct pm_net *net = build(&pm_backbone_nas_hnasnet, &o, 129, 97, &last);

    (void)state;
    expect_option(net, "hnasnet/downsample_os16_conv", "dilation", 2);
    expect_option(net, "hnasnet/downsample_os32_conv", "dilation", 4);
    expect_shape(net, "hnasnet/downsample_os32_conv", PM_SHAPE4(1, 17, 13, 1024));
    pm_net_destroy(&net);
    o = searched(16, true, false);
    net = build(&pm_backbone_nas_hnasnet, &o, 129, 97, &last);
    expect_option(net, "hnasnet/downsample_os16_conv", "stride", 2);
    expect_option(net, "hnasnet/downsample_os32_conv", "dilation", 2);
    pm_net_destroy(&net);
    expect_refusal("deeplab_nas_hnasnet", 65, "{\"output_stride\": 16}",
                   "model.output_stride: deeplab_nas_hnasnet has an output stride of 8, not 16");
}

/* The same net over other pictures creates no new variables. */
static void searched_passes(void **state)
{
    const struct pm_deeplab_options o = searched(8, false, false);
    struct pm_node *last;
    struct pm_net *net = build(&pm_backbone_nas_hnasnet, &o, 65, 65, &last);
    const int variables = net->var_count, nodes = net->count;
    struct pm_node *images = pm_net_input(net, "half", PM_SHAPE4(1, 33, 33, 3), PM_F32);

    (void)state;
    net->pass = "half";
    last = pm_backbone_nas_hnasnet.build(net, images, &o);
    assert_int_equal(net->error, PM_OK);
    net->pass = NULL;
    assert_int_equal(net->var_count, variables);
    assert_int_equal(net->count, 2 * nodes);
    expect_shape(net, last->name, PM_SHAPE4(1, 5, 5, 200));
    pm_net_destroy(&net);
}

/* ---- maps for a decoder ------------------------------------------------------------------ */

/* The maps that ResNets and Xception give to decoders have no activation. */
static void low_activations(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(all); i++) {
        const struct pm_deeplab_options o = options_of(16);
        const bool mobile = strstr(all[i].backbone->name, "mobilenet") != NULL;
        struct pm_node *last;
        struct pm_net *net = build(all[i].backbone, &o, 65, 65, &last);

        for (int k = 0; k < 3 && all[i].low[k]; k++) {
            const struct pm_node *n = pm_net_find(net, all[i].backbone->low[k]);
            assert_string_equal(n->layer->name, "batch_norm");
            assert_int_equal(n->inputs, 1);
            if (option_is(n, "activation", "none") == mobile)
                fail_msg("activation of %s", n->name);
        }
        pm_net_destroy(&net);
    }
}

/* ---- widths ------------------------------------------------------------------------------ */

/* With multipliers below and above 1 widths are not rounded to multiples of 8, except those of
 * expansions. */
static void multiplied_widths(void **state)
{
    (void)state;
    static const struct { double factor; int divisible, first, second, wide, last; } cases[] = {
        { 1, 0, 32, 16, 96, 320 },  { 0.5, 0, 16, 8, 48, 160 }, { 0.35, 0, 11, 6, 40, 112 },
        { 0.35, 8, 16, 8, 48, 112 }, { 1.3, 0, 42, 21, 128, 416 }, { 1, 1, 32, 16, 96, 320 },
    };

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_deeplab_options o = options_of(16);
        struct pm_node *last;
        o.nets.depth_multiplier = cases[i].factor;
        o.nets.divisible_by = cases[i].divisible;
        struct pm_net *net = build(&pm_backbone_mobilenet_v2, &o, 65, 65, &last);

        expect_shape(net, "MobilenetV2/Conv", PM_SHAPE4(1, 33, 33, cases[i].first));
        expect_shape(net, "MobilenetV2/expanded_conv/project",
                     PM_SHAPE4(1, 33, 33, cases[i].second));
        expect_shape(net, "MobilenetV2/expanded_conv_1/expand",
                     PM_SHAPE4(1, 33, 33, cases[i].wide));
        expect_shape(net, last->name, PM_SHAPE4(1, 5, 5, cases[i].last));
        pm_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps),
        cmocka_unit_test(padding),
        cmocka_unit_test(strides_that_it_lacks),
        cmocka_unit_test(grid),
        cmocka_unit_test(bounded),
        cmocka_unit_test(variables),
        cmocka_unit_test(searched_maps),
        cmocka_unit_test(searched_head),
        cmocka_unit_test(searched_passes),
        cmocka_unit_test(low_activations),
        cmocka_unit_test(multiplied_widths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
