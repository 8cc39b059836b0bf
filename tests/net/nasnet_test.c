/* Searched nets compared with published facts: sizes of maps, variables, which variables have
 * weight decay, which paths are dropped and how often. Also sizes of images, and plans of the
 * large nets. */
#include "named_net.h"

#include <pumice/plan.h>

/* Builds a net with a loss on each head; options is JSON text or NULL. The caller destroys it. */
static struct pm_net *build(const char *name, int batch, int height, int width, const char *options)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, batch, height, width, 10, options, &heads);

    if (net->error)
        return net;
    assert_true(pm_shape_equal(pm_heads_main(&heads)->out_shape, PM_SHAPE2(batch, 10)));
    if (pm_heads_find(&heads, "aux_logits")) {
        assert_true(pm_heads_weight(&heads, "aux_logits") == 0.4f);
        assert_true(pm_shape_equal(pm_heads_find(&heads, "aux_logits")->out_shape,
                                   PM_SHAPE2(batch, 10)));
    }
    add_head_losses(net, &heads);
    return net;
}

static struct pm_net *build_default(const char *name)
{
    const int size = pm_net_row_find(name)->default_size;
    struct pm_net *net = build(name, 1, size, size, NULL);

    if (net->error)
        fail_msg("%s: %s", name, pm_error_text());
    return net;
}

static void expect_cells(const struct pm_net *net, const char *kind, int first, int end, int size,
                         int width)
{
    char name[64];

    for (int i = first; i < end; i++) {
        snprintf(name, sizeof name, "%s_%d/cell_output", kind, i);
        expect_shape(net, name, PM_SHAPE4(1, size, size, width));
    }
}

static void maps(void **state)
{
    /* Sizes and widths of the maps of the three stages, and widths of the reduction cells. */
    static const struct {
        const char *name, *stem;
        int stem_size, stem_width, cells, size[3], width[3], reduction_width[2];
    } nets[] = {
        { "nasnet_cifar",
          "l1_stem_bn",
          32,
          96,
          18,
          { 32, 16, 8 },
          { 192, 384, 768 },
          { 256, 512 } },
        { "nasnet_mobile",
          "cell_stem_1/cell_output",
          28,
          88,
          12,
          { 28, 14, 7 },
          { 264, 528, 1056 },
          { 352, 704 } },
        { "nasnet_large",
          "cell_stem_1/cell_output",
          42,
          336,
          18,
          { 42, 21, 11 },
          { 1008, 2016, 4032 },
          { 1344, 2688 } },
        { "pnasnet_mobile",
          "cell_stem_1/cell_output",
          28,
          135,
          9,
          { 28, 14, 7 },
          { 270, 540, 1080 },
          { 0 } },
        { "pnasnet_large",
          "cell_stem_1/cell_output",
          42,
          540,
          12,
          { 42, 21, 11 },
          { 1080, 2160, 4320 },
          { 0 } },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_net *net = build_default(nets[i].name);
        const int third = nets[i].cells / 3;

        expect_shape(net, nets[i].stem, PM_SHAPE4(1, nets[i].stem_size, nets[i].stem_size,
                                                  nets[i].stem_width));
        for (int k = 0; k < 3; k++) {
            expect_cells(net, "cell", k * third, (k + 1) * third, nets[i].size[k],
                         nets[i].width[k]);
            if (k > 0 && nets[i].reduction_width[0])
                expect_cells(net, "reduction_cell", k - 1, k, nets[i].size[k],
                             nets[i].reduction_width[k - 1]);
        }
        expect_shape(net, "final_layer/global_pool", PM_SHAPE4(1, 1, 1, nets[i].width[2]));
        pm_net_destroy(&net);
    }
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Weights of convolutions, including depthwise ones, and of fully connected layers. Their
 * initial variance follows from their number of outputs. */
static void weights(void **state)
{
    static const struct { const char *name; int covered; float strength; } nets[] = {
        { "nasnet_cifar", 450, 5e-4f },  { "nasnet_mobile", 360, 4e-5f },
        { "nasnet_large", 492, 5e-5f },  { "pnasnet_mobile", 299, 4e-5f },
        { "pnasnet_large", 377, 4e-5f },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_net *net = build_default(nets[i].name);
        int covered = 0;

        for (int k = 0; k < net->var_count; k++) {
            const struct pm_variable *v = net->vars[k];

            assert_true(v->regularize == ends_with(v->name, "weights"));
            covered += v->regularize;
            if (v->regularize) {
                const int *d = v->shape.dim;

                assert_int_equal(v->init.kind, PM_INIT_VARIANCE_FAN_OUT);
                assert_true(v->init.a == 2);
                assert_int_equal(v->fan_out, v->shape.rank == 4 ? d[0] * d[1] * d[3] : d[1]);
            }
        }
        assert_int_equal(covered, nets[i].covered);
        assert_true(pm_net_row_find(nets[i].name)->weight_decay == nets[i].strength);
        pm_net_destroy(&net);
    }
}

/* ---- dropped paths ---------------------------------------------------------------------- */

/* The paths of a cell: how many can be dropped, and the keep probability at the end. */
static void expect_paths(const struct pm_net *net, const char *cell, int count, double keep,
                         int steps)
{
    const size_t length = strlen(cell);
    int found = 0;

    for (int i = 0; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];

        if (strncmp(n->name, cell, length) != 0 || n->name[length] != '/' ||
            strcmp(n->layer->name, "drop_path") != 0)
            continue;
        found++;
        if (fabs(option_of(n, "keep") - keep) > 1e-12 || option_of(n, "steps") != steps)
            fail_msg("%s keeps %g after %g steps, not %g after %d", n->name, option_of(n, "keep"),
                     option_of(n, "steps"), keep, steps);
    }
    if (found != count)
        fail_msg("%s has %d paths to drop, not %d", cell, found, count);
}

static int drop_paths(const struct pm_net *net)
{
    int count = 0;

    for (int i = 0; i < net->count; i++)
        count += strcmp(net->nodes[i]->layer->name, "drop_path") == 0;
    return count;
}

/* States that a cell passes through unchanged cannot be dropped: two in a normal cell, one in
 * the others. */
static void paths(void **state)
{
    struct pm_net *net = build_default("nasnet_cifar");

    (void)state;
    expect_paths(net, "cell_0", 8, 1 - 1 / 20.0 * 0.4, 937500);
    expect_paths(net, "reduction_cell_0", 9, 1 - 7 / 20.0 * 0.4, 937500);
    expect_paths(net, "cell_6", 8, 1 - 8 / 20.0 * 0.4, 937500);
    expect_paths(net, "reduction_cell_1", 9, 1 - 14 / 20.0 * 0.4, 937500);
    expect_paths(net, "cell_17", 8, 0.6, 937500);
    assert_int_equal(drop_paths(net), 18 * 8 + 2 * 9);
    pm_net_destroy(&net);

    net = build_default("nasnet_large");
    expect_paths(net, "cell_stem_0", 9, 1 - 1 / 22.0 * 0.3, 250000);
    expect_paths(net, "cell_stem_1", 9, 1 - 2 / 22.0 * 0.3, 250000);
    expect_paths(net, "cell_0", 8, 1 - 3 / 22.0 * 0.3, 250000);
    expect_paths(net, "reduction_cell_1", 9, 1 - 16 / 22.0 * 0.3, 250000);
    expect_paths(net, "cell_17", 8, 0.7, 250000);
    pm_net_destroy(&net);

    net = build_default("pnasnet_large");
    expect_paths(net, "cell_stem_1", 9, 1 - 2 / 14.0 * 0.4, 250000);
    expect_paths(net, "cell_4", 9, 1 - 7 / 14.0 * 0.4, 250000);
    expect_paths(net, "cell_11", 9, 0.6, 250000);
    pm_net_destroy(&net);

    net = build_default("nasnet_mobile");
    assert_int_equal(drop_paths(net), 0);
    pm_net_destroy(&net);
    net = build("pnasnet_mobile", 1, 96, 96, "{\"drop_path_keep\": 0.8, \"drop_path_steps\": 7}");
    expect_paths(net, "cell_8", 9, 0.8, 7);
    pm_net_destroy(&net);
}

enum { EXAMPLES = 20000 };

static struct pm_device *open_cpu(void)
{
    const struct pm_device_options options = { 0 };
    struct pm_device *device = NULL;
    struct pm_device_info *list;
    size_t count, index;

    if (pm_device_list(&list, &count) || pm_device_find(list, count, "cpu", "test", &index) ||
        pm_device_open(&list[index], &options, &device))
        fail_msg("%s", pm_error_text());
    pm_free(list);
    return device;
}

/* Runs one plan with another step number. Returns the share of examples that are kept. */
static double share_at(struct pm_plan *plan, uint32_t step, uint8_t *stays)
{
    const double ratio = step < 1000 ? step / 1000.0 : 1, keep = 1 - ratio * 0.4;
    int stayed = 0;

    *pm_plan_step(plan, 0) = (struct pm_step){ .step = step, .seed_low = 7, .loss_scale = 1 };
    if (pm_plan_submit(plan, 0) || pm_plan_wait(plan, 0))
        fail_msg("%s", pm_error_text());
    const float *y = pm_plan_output(plan, 0, "path", 0);
    for (int i = 0; i < EXAMPLES; i++) {
        stays[i] = y[2 * i] != 0;
        stayed += stays[i];
        for (int k = 0; k < 2; k++) {
            const double want = stays[i] ? (k + 1) / keep : 0;
            if (fabs(y[2 * i + k] - want) > 1e-6 * want)
                fail_msg("step %u, example %d: %.9g, not %.9g", step, i, (double)y[2 * i + k],
                         want);
        }
    }
    const double share = (double)stayed / EXAMPLES;
    const double bound = 5 * sqrt(keep * (1 - keep) / EXAMPLES);
    if (fabs(share - keep) > bound)
        fail_msg("at step %u %g of the examples stay, not %g", step, share, keep);
    return share;
}

static void schedule(void **state)
{
    static const uint32_t steps[] = { 0, 1, 250, 500, 999, 1000, 1001, 4000000000u };
    static uint8_t stays[PM_COUNT(steps)][EXAMPLES], again[EXAMPLES];
    const char *outputs[] = { "path", NULL };
    const struct pm_plan_options o = { .train = true, .loss_share = 1, .micro_batches = 1,
                                       .outputs = outputs, .slots = 1, .name = "paths" };
    struct pm_device *device = open_cpu();
    struct pm_net *net = pm_net_create();
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE2(EXAMPLES, 2), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(EXAMPLES), PM_I32);

    (void)state;
    x = pm_net_add(net, "path", x, "drop_path keep=0.6 steps=1000");
    x = pm_net_add(net, "logits", x, "fully_connected units=2");
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2, "softmax_cross_entropy");
    if (net->error || pm_variables_create(device, net, true, NULL, &v) ||
        pm_variables_allocate(v) || pm_plan_create(net, device, v, &o, &plan) ||
        pm_plan_load(plan))
        fail_msg("%s", pm_error_text());
    float *images = pm_plan_input(plan, 0, "images", 0);
    for (int i = 0; i < 2 * EXAMPLES; i++)
        images[i] = (float)(i % 2 + 1);
    memset(pm_plan_input(plan, 0, "labels", 0), 0, EXAMPLES * sizeof(int32_t));
    for (size_t i = 0; i < PM_COUNT(steps); i++)
        share_at(plan, steps[i], stays[i]);
    share_at(plan, 500, again);
    assert_memory_equal(again, stays[3], EXAMPLES);
    assert_memory_not_equal(stays[5], stays[6], EXAMPLES);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    pm_device_close(&device);
}

/* ---- sizes ------------------------------------------------------------------------------ */

static void sizes(void **state)
{
    static const struct { const char *name; int height, width; const char *options; } nets[] = {
        { "nasnet_cifar", 9, 34, NULL },    { "nasnet_cifar", 3, 5, "{\"aux_head\": false}" },
        { "nasnet_mobile", 67, 98, NULL },  { "nasnet_mobile", 33, 19, "{\"aux_head\": false}" },
        { "pnasnet_mobile", 101, 67, NULL }, { "pnasnet_mobile", 19, 64, "{\"aux_head\": false}" },
    };
    static const struct { const char *name, *options, *words; int size; } refused[] = {
        { "nasnet_cifar", NULL, "nasnet_cifar: images of 8x8 are too small, at least 9x9", 8 },
        { "nasnet_large", NULL, "images of 66x66 are too small, at least 67x67", 66 },
        { "pnasnet_mobile", "{\"aux_head\": false}", "at least 19x19", 18 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_net *net = build(nets[i].name, 3, nets[i].height, nets[i].width, nets[i].options);
        if (net->error)
            fail_msg("%s at %dx%d: %s", nets[i].name, nets[i].height, nets[i].width,
                     pm_error_text());
        pm_net_destroy(&net);
    }
    for (size_t i = 0; i < PM_COUNT(refused); i++)
        expect_refusal(refused[i].name, refused[i].size, refused[i].options, refused[i].words);
}

/* Plans a training step without allocating its memory. */
static void plans(void **state)
{
    static const struct { const char *name; int batch; } nets[] = {
        { "nasnet_large", 1 }, { "pnasnet_large", 1 }, { "pnasnet_large", 32 },
    };
    const struct pm_plan_options o = { .train = true, .loss_share = 1, .micro_batches = 1,
                                       .slots = 1, .name = "large" };
    struct pm_device *device = open_cpu();

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_net *net = build(nets[i].name, nets[i].batch, 331, 331, NULL);
        struct pm_variables *v = NULL;
        struct pm_plan *plan = NULL;

        if (net->error || pm_variables_create(device, net, true, NULL, &v) ||
            pm_plan_create(net, device, v, &o, &plan))
            fail_msg("%s: %s", nets[i].name, pm_error_text());
        pm_plan_destroy(&plan);
        pm_variables_destroy(&v);
        pm_net_destroy(&net);
    }
    pm_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps),     cmocka_unit_test(weights), cmocka_unit_test(paths),
        cmocka_unit_test(schedule), cmocka_unit_test(sizes),   cmocka_unit_test(plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
