/* The anchor layers: the counts of known detectors, the order of anchors, other sizes, the
 * value in a plan, JSON and messages. tests/layers/anchors_test.c compares every value with a
 * reference. */
#include <pumice/plan.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "device/every_device.h"
#include "layers/anchors.h"

/* A net of the images and maps of these sizes, and an anchor layer "anchors". */
static struct pm_node *make(struct pm_net **net, int height, int width, const int (*map)[2],
                            int maps, const char *spec)
{
    struct pm_node *in[1 + PM_MAX_LEVELS];

    *net = pm_net_create();
    in[0] = pm_net_input(*net, "images", PM_SHAPE4(2, height, width, 3), PM_F32);
    for (int k = 0; k < maps; k++) {
        char name[8];

        snprintf(name, sizeof name, "map%d", k + 1);
        in[1 + k] = pm_net_input(*net, name, PM_SHAPE4(2, map[k][0], map[k][1], 8), PM_F32);
    }
    return pm_net_add_many(*net, "anchors", in, 1 + maps, "%s", spec);
}

static const int ssd_maps[][2] = { { 19, 19 }, { 10, 10 }, { 5, 5 }, { 3, 3 }, { 2, 2 }, { 1, 1 } };

static float *written(const struct pm_node *n)
{
    float *v = pm_malloc((size_t)n->out_shape.dim[0] * 4 * sizeof *v);

    pm_anchors_write(n, v);
    return v;
}

static void expect_near(float got, double want)
{
    if (!(fabs(got - want) < 1e-6))
        fail_msg("%.9g instead of %.9g", got, want);
}

/* SSD at 300x300: Liu et al.'s scales, as in TensorFlow's published configs. */
static void ssd_300(void **state)
{
    static const int per_cell[] = { 3, 6, 6, 6, 6, 6 };
    struct pm_net *net;
    struct pm_node *n = make(&net, 300, 300, ssd_maps, 6, "ssd_anchors");
    float *v;

    (void)state;
    ok(net->error);
    assert_int_equal(n->out_shape.dim[0], 1917);
    assert_int_equal(n->out_shape.dim[1], 4);
    assert_int_equal(n->out_rows, 0);
    for (int k = 0; k < 6; k++)
        assert_int_equal(pm_anchors_per_cell(n, k + 1), per_cell[k]);
    v = written(n);
    expect_near(v[0], 0.5 / 19 - 0.05);
    expect_near(v[1], 0.5 / 19 - 0.05);
    expect_near(v[2], 0.5 / 19 + 0.05);
    expect_near(v[3], 0.5 / 19 + 0.05);
    expect_near(v[4 * 3 + 1], 1.5 / 19 - 0.05); /* the next cell is to the right */
    expect_near(v[4 * 3 * 19], 1.5 / 19 - 0.05);
    /* Map 2 begins with ratio 1 at scale 0.2 + 0.75 / 5, then ratio 2; the last one is
     * sqrt(0.35 0.5). */
    expect_near(v[4 * 1083 + 2] - v[4 * 1083], 0.35);
    expect_near(v[4 * 1084 + 3] - v[4 * 1084 + 1], 0.35 * sqrt(2));
    expect_near(v[4 * 1084 + 2] - v[4 * 1084], 0.35 / sqrt(2));
    expect_near(v[4 * 1088 + 2] - v[4 * 1088], sqrt(0.35 * 0.5));
    expect_near(v[4 * 1916 + 2] - v[4 * 1916], sqrt(0.95));
    pm_free(v);
    pm_net_destroy(&net);
}

static void multiscale(void **state)
{
    static const int map640[][2] = { { 80, 80 }, { 40, 40 }, { 20, 20 }, { 10, 10 }, { 5, 5 } };
    static const int map320[][2] = { { 40, 40 }, { 20, 20 }, { 10, 10 }, { 5, 5 }, { 3, 3 } };
    struct pm_net *net;
    struct pm_node *n = make(&net, 640, 640, map640, 5, "multiscale_anchors");
    float *v;

    (void)state;
    ok(net->error);
    assert_int_equal(n->out_shape.dim[0], 51150);
    v = written(n);
    /* Sizes run fastest, then ratios: (32, 1), (32 sqrt 2, 1), (32, 2). */
    expect_near(v[0], (4 - 16) / 640.0);
    expect_near(v[6] - v[4], 32 * sqrt(2) / 640);
    expect_near(v[11] - v[9], 32 * sqrt(2) / 640);
    expect_near(v[10] - v[8], 32 / sqrt(2) / 640);
    pm_free(v);
    pm_net_destroy(&net);

    n = make(&net, 320, 320, map320, 5, "multiscale_anchors");
    ok(net->error);
    assert_int_equal(n->out_shape.dim[0], 12804);
    v = written(n);
    const float *last = v + 4 * (12804 - 9 * 6); /* 320 is no multiple of 128: centre 0 */
    expect_near((last[0] + last[2]) / 2, 0);
    pm_free(v);
    pm_net_destroy(&net);
}

/* In a plan: no call, contents equal to pm_anchors_write, readable as an output on every device. */
static void expect_constant(struct pm_device *d)
{
    static const char *const outputs[] = { "anchors", "y", NULL };
    const struct pm_plan_options options = { .outputs = outputs, .slots = 1, .loss_share = 1,
                                             .micro_batches = 2 };
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    struct pm_net *net;
    struct pm_node *n = make(&net, 300, 300, ssd_maps, 6, "ssd_anchors");
    float *v = written(n);
    size_t calls;

    pm_net_add(net, "y", n, "affine scale=2");
    ok(net->error);
    ok(pm_variables_create(d, net, false, NULL, &variables));
    ok(pm_plan_create(net, d, variables, &options, &plan));
    pm_plan_calls(plan, &calls);
    assert_int_equal(calls, 2); /* the layer y, once per micro-batch */
    ok(pm_plan_load(plan));
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    for (int m = 0; m < 2; m++) {
        const float *anchors = pm_plan_output(plan, 0, "anchors", m);
        const float *y = pm_plan_output(plan, 0, "y", m);

        assert_memory_equal(anchors, v, 1917 * 4 * sizeof *v);
        for (int i = 0; i < 1917 * 4; i++)
            assert_float_equal(y[i], 2 * v[i], 1e-6);
    }
    assert_null(pm_plan_output(plan, 0, "nothing", 0));
    pm_free(v);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
}

static void constant(void **state)
{
    struct every_device e = { 0 };

    (void)state;
    while (next_device(&e))
        expect_constant(e.d);
}

static const char layers[] =
    "[{\"name\": \"map1\", \"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 3, \"stride\": 8},"
    " {\"name\": \"map2\", \"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 3, \"stride\": 2},"
    " {\"name\": \"anchors\", \"layer\": \"%s\", \"inputs\": [\"images\", \"map1\", \"map2\"]%s}]";

static struct pm_net *read_net(int height, int width, const cJSON *list)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, height, width, 3), PM_F32);
    struct pm_heads heads = { 0 };

    ok(pm_net_from_json(net, images, list, "x.json: model.layers", &heads));
    return net;
}

/* A list prints and reads back as the same anchors, also for another size of the images. */
static void json(void **state)
{
    static const char *const cases[][2] = {
        { "ssd_anchors", ", \"scales\": [0.1, 0.7], \"aspect_ratios\": [1, 0.3333], "
                         "\"height_offset\": [1, 2], \"width_offset\": [3, 4]" },
        { "multiscale_anchors", ", \"max_level\": 4, \"anchor_scale\": 2.5" },
        { "flexible_grid_anchors", ", \"base_sizes\": [8, 16, 32], \"aspect_ratios\": [1, 2, 0.5], "
                                   "\"anchors_per_cell\": [1, 2], \"height_stride\": [8, 16], "
                                   "\"width_stride\": [8, 16]" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        for (int size = 32; size <= 64; size += 32) {
            struct pm_str text = { 0 };

            pm_str_add(&text, layers, cases[i][0], cases[i][1]);
            cJSON *list = cJSON_Parse(text.text);
            struct pm_net *a = read_net(32, 32, list);
            cJSON *printed = pm_net_to_json(a);
            struct pm_net *one = read_net(size, 2 * size, list);
            struct pm_net *two = read_net(size, 2 * size, printed);
            const struct pm_node *n = pm_net_find(one, "anchors"), *m = pm_net_find(two, "anchors");
            float *v = written(n), *w = written(m);

            assert_true(pm_shape_equal(n->out_shape, m->out_shape));
            assert_memory_equal(v, w, pm_shape_count(n->out_shape) * sizeof *v);
            pm_free(v);
            pm_free(w);
            pm_net_destroy(&a);
            pm_net_destroy(&one);
            pm_net_destroy(&two);
            cJSON_Delete(list);
            cJSON_Delete(printed);
            pm_str_free(&text);
        }
}

static void messages(void **state)
{
    static const int map[][2] = { { 8, 8 }, { 4, 4 } };
    static const char *const cases[][2] = {
        { "ssd_anchors num_layers=6", "anchors: num_layers is 6, but the layer has 2 maps; set it "
                                      "to 2 or 0" },
        { "ssd_anchors scales=[0.1]", "anchors: scales has 1 numbers; give one for each of the 2 "
                                      "maps" },
        { "ssd_anchors height_stride=[8,16]", "anchors: height_stride has 2 numbers and "
                                              "width_stride has 0" },
        { "ssd_anchors aspect_ratios=[] interpolated_scale_aspect_ratio=0",
          "aspect_ratios is empty: give at least one ratio" },
        { "ssd_anchors aspect_ratios=[0]", "aspect_ratios: 0 is outside 0.001..1000" },
        { "multiscale_anchors", "anchors: min_level=3 and max_level=7 are 5 levels, but the layer "
                                "has 2 maps" },
        { "grid_anchors", "a grid_anchors layer takes 2 to 2 inputs, not 3" },
        { "flexible_grid_anchors base_sizes=[1,2]", "anchors: base_sizes has 2 numbers, but "
                                                    "aspect_ratios has 0" },
        { "flexible_grid_anchors base_sizes=[1,2,3] aspect_ratios=[1,1,1]",
          "anchors: anchors_per_cell has 0 numbers; give one for each of the 2 maps, which share 3 "
          "base_sizes" },
        { "flexible_grid_anchors base_sizes=[1,2] aspect_ratios=[1,1] anchors_per_cell=[2,1]",
          "anchors: anchors_per_cell adds up to 3, but base_sizes has 2 numbers" },
        { "flexible_grid_anchors base_sizes=[1,2] aspect_ratios=[1,1]",
          "anchors: height_stride and width_stride are required" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_net *net;
        const struct pm_node *n = make(&net, 64, 64, map, 2, cases[i][0]);

        assert_int_equal(net->error, PM_ECONFIG);
        if (!strstr(pm_error_text(), cases[i][1]))
            fail_msg("%s: %s", cases[i][0], pm_error_text());
        assert_int_equal(pm_anchors_per_cell(n, 1), 1); /* builders may go on */
        pm_net_destroy(&net);
    }
}

int main(void)
{
    use_software_drivers();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ssd_300), cmocka_unit_test(multiscale), cmocka_unit_test(constant),
        cmocka_unit_test(json),    cmocka_unit_test(messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
