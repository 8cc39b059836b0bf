/* Code that layers share (text of initial values, geometry of windows), their messages about
 * invalid configurations, and invalid labels in softmax_cross_entropy. */
#include <pumice/plan.h>

#include <cjson/cJSON.h>

#include "base/unit.h"

/* ---- layers.c -------------------------------------------------------------------------- */

static void test_init_text(void **state)
{
    static const struct { const char *text; enum pm_init_kind kind; float a; } good[] = {
        { "truncated(0.1)", PM_INIT_TRUNCATED, 0.1f },
        { "normal(2)", PM_INIT_NORMAL, 2 },
        { "xavier", PM_INIT_XAVIER, 0 },
        { "constant(-0.5)", PM_INIT_CONSTANT, -0.5f },
        { "constant", PM_INIT_CONSTANT, 0 },
        { "variance_scaling", PM_INIT_VARIANCE_SCALING, 2 },
        { "variance_scaling(1)", PM_INIT_VARIANCE_SCALING, 1 },
        { "variance_scaling_fan_out(2)", PM_INIT_VARIANCE_FAN_OUT, 2 },
        { "variance_scaling_uniform(0.5)", PM_INIT_VARIANCE_UNIFORM, 0.5f },
        { "variance_scaling_uniform", PM_INIT_VARIANCE_UNIFORM, 1 },
        { "orthogonal", PM_INIT_ORTHOGONAL, 1 },
        { "orthogonal(0.5)", PM_INIT_ORTHOGONAL, 0.5f },
    };
    static const char *const bad[] = { "", "xavie", "normal", "normal()", "normal(1", "normal(1)x",
                                       "normal(-1)", "normal(nan)", "truncated(1e9)", "(1)",
                                       "values()", "values(1", "values(1,)", "values(1,2)x",
                                       "values(1,nan)", "values(1;2)", "values(,1)" };
    float numbers[3] = { 0 };
    struct pm_init init;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(good); i++) {
        assert_int_equal(pm_init_parse(good[i].text, &init, "here"), PM_OK);
        assert_int_equal(init.kind, good[i].kind);
        assert_true(init.a == good[i].a);
    }
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        assert_int_equal(pm_init_parse(bad[i], &init, "here"), PM_ECONFIG);
        assert_contains(pm_error_text(), "here: ");
    }
    assert_int_equal(pm_init_parse("values(-0.5,1e-3,7)", &init, "here"), PM_OK);
    assert_int_equal(init.kind, PM_INIT_GIVEN);
    assert_int_equal(init.count, 3);
    assert_int_equal(init.read(init.from, 0, 3, numbers), PM_OK);
    assert_true(numbers[0] == -0.5f && numbers[1] == 1e-3f && numbers[2] == 7);
    assert_int_equal(init.read(init.from, 2, 1, numbers), PM_OK);
    assert_true(numbers[0] == 7);
}

/* in, kernel, stride -> out, before, after: the examples of TensorFlow's SAME rule, then VALID. */
static void test_geometry(void **state)
{
    static const int same[][6] = {
        { 224, 3, 2, 112, 0, 1 }, { 224, 7, 2, 112, 2, 3 }, { 112, 3, 2, 56, 0, 1 },
        { 299, 3, 2, 150, 1, 1 }, { 7, 3, 2, 4, 1, 1 },     { 28, 5, 1, 28, 2, 2 },
        { 5, 1, 2, 3, 0, 0 },     { 1, 3, 1, 1, 1, 1 },
    };
    static const int valid[][4] = { { 28, 2, 2, 14 }, { 55, 3, 2, 27 }, { 3, 3, 1, 1 },
                                    { 2, 3, 1, 0 },   { 8, 3, 3, 2 } };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(same); i++) {
        const int *s = same[i];
        const struct pm_axis a = pm_axis_of(s[0], s[1], s[2], 1, PM_PAD_SAME, 0, 0);

        assert_int_equal(a.in, s[0]);
        assert_int_equal(a.out, s[3]);
        assert_int_equal(a.before, s[4]);
        assert_int_equal(a.after, s[5]);
    }
    for (size_t i = 0; i < PM_COUNT(valid); i++)
        assert_int_equal(
            pm_axis_of(valid[i][0], valid[i][1], valid[i][2], 1, PM_PAD_VALID, 0, 0).out,
            valid[i][3]);
    /* A dilated window spans (kernel - 1) * dilation + 1; explicit padding counts as part of the
     * image. */
    assert_int_equal(pm_axis_of(10, 3, 1, 4, PM_PAD_VALID, 0, 0).out, 2);
    assert_int_equal(pm_axis_of(10, 3, 1, 4, PM_PAD_SAME, 0, 0).before, 4);
    const struct pm_axis a = pm_axis_of(224, 7, 2, 1, PM_PAD_EXPLICIT, 3, 3);
    assert_int_equal(a.out, 112);
    assert_int_equal(a.before, 3);
}

static void test_names(void **state)
{
    size_t count;
    const struct pm_layer *const *all = pm_layers(&count);

    (void)state;
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(pm_layer_find(all[i]->name), all[i]);
    assert_null(pm_layer_find("no_such_layer"));
}

/* ---- messages -------------------------------------------------------------------------- */

/* Adds one node on one or two inputs. It must fail with a message that contains `want`. */
static void refused(const char *spec, struct pm_shape x, enum pm_type type, struct pm_shape second,
                    const char *want)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[2] = { pm_net_input(net, "images", x, type), NULL };
    const int inputs = second.rank ? 2 : 1;

    if (second.rank)
        in[1] = pm_net_input(net, "other", second, PM_F32);
    pm_net_add_many(net, "node", in, inputs, "%s", spec);
    assert_int_equal(net->error, PM_ECONFIG);
    assert_contains(pm_error_text(), want);
    assert_contains(pm_error_text(), "node");
    pm_net_destroy(&net);
}

static void test_messages(void **state)
{
    const struct pm_shape image = PM_SHAPE4(2, 3, 4, 5), flat = PM_SHAPE2(2, 60), none = { 0 };

    (void)state;
    refused("max_pool", flat, PM_F32, none, "rank 4");
    refused("max_pool kernel=[1,2,3]", image, PM_F32, none, "3 numbers");
    refused("avg_pool kernel=9", image, PM_F32, none, "padding=same");
    refused("global_pool", flat, PM_F32, none, "rank 4");
    refused("relu", image, PM_U8, none, "uint8");
    refused("max_pool", image, PM_I32, none, "int32");
    refused("reshape shape=[7,-1]", image, PM_F32, none, "120 values");
    refused("reshape shape=[-1,-1]", image, PM_F32, none, "more than one -1");
    refused("reshape shape=[2,3,4,5,1,1,1]", image, PM_F32, none, "7 sizes");
    refused("batch_norm", image, PM_F32, flat, "residual");
    refused("batch_norm", PM_SHAPE1(4), PM_F32, none, "rank 2");
    refused("add", image, PM_F32, flat, "the sizes must be equal, or one of them 1");
    refused("add activation=relu", image, PM_F32, PM_SHAPE4(2, 3, 1, 5), "one shape");
    refused("add", image, PM_F32, none, "inputs");
    refused("concat", image, PM_F32, PM_SHAPE4(2, 3, 5, 5), "agree");
    refused("concat axis=3", flat, PM_F32, flat, "-2..1");
    refused("multiply", image, PM_F32, PM_SHAPE4(2, 1, 1, 4),
            "the sizes must be equal, or one of them 1");
    refused("slice begin=[0,3]", image, PM_F32, none, "begin 3");
    refused("slice size=[3]", image, PM_F32, none, "size 3");
    refused("pad pad=[1,2]", image, PM_F32, none, "four numbers");
    refused("argmax", PM_SHAPE1(4), PM_F32, none, "an axis beside the batch");
    refused("argmax", image, PM_I32, none, "int32");
    refused("flip axis=2", flat, PM_F32, none, "-2..1");
    refused("flip", image, PM_U8, none, "uint8");
    refused("local_response_norm", PM_SHAPE1(4), PM_F32, none, "channels");
    refused("softmax_cross_entropy", flat, PM_F32, PM_SHAPE1(3), "2 rows");
    refused("softmax_cross_entropy", flat, PM_F32, PM_SHAPE1(2), "int32");
    refused("softmax_cross_entropy label_weights=[1,2]", flat, PM_F32, PM_SHAPE1(2),
            "2 numbers, but there are 60 classes");
    refused("matting_cross_entropy", flat, PM_F32, PM_SHAPE1(2), "two classes");
    refused("matting_cross_entropy", PM_SHAPE2(30, 2), PM_F32, PM_SHAPE1(29), "30 rows");
    refused("squared_error", flat, PM_F32, PM_SHAPE2(2, 30), "the target has shape 2x30");
    refused("dropout keep=0", image, PM_F32, none, "keep");
    refused("drop_path keep=0", image, PM_F32, none, "keep");
    refused("drop_path", flat, PM_F32, image, "the second input has shape");
}

/* ---- invalid labels ---------------------------------------------------------------------- */

enum { ROWS = 3, CLASSES = 4 };

/* The loss of ROWS rows of zeros with these labels, in a plan on the CPU. */
static double loss_of(const char *spec, const int32_t labels[ROWS])
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[2] = { pm_net_input(net, "logits", PM_SHAPE2(ROWS, CLASSES), PM_F32),
                              pm_net_input(net, "labels", PM_SHAPE1(ROWS), PM_I32) };
    const struct pm_plan_options options = { .loss_share = 1, .micro_batches = 1 };
    const struct pm_device_options device_options = { .threads = 1 };
    struct pm_device_info *list = NULL;
    struct pm_device *device = NULL;
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    size_t count, index;
    double loss;

    pm_net_add_many(net, "loss", in, 2, "%s", spec);
    assert_int_equal(net->error, PM_OK);
    assert_int_equal(pm_device_list(&list, &count), PM_OK);
    assert_int_equal(pm_device_find(list, count, "cpu", "test", &index), PM_OK);
    assert_int_equal(pm_device_open(&list[index], &device_options, &device), PM_OK);
    assert_int_equal(pm_variables_create(device, net, false, NULL, &variables), PM_OK);
    assert_int_equal(pm_plan_create(net, device, variables, &options, &plan), PM_OK);
    assert_int_equal(pm_plan_load(plan), PM_OK);
    memset(pm_plan_input(plan, 0, "logits", 0), 0, ROWS * CLASSES * sizeof(float));
    memcpy(pm_plan_input(plan, 0, "labels", 0), labels, ROWS * sizeof *labels);
    assert_int_equal(pm_plan_submit(plan, 0), PM_OK);
    assert_int_equal(pm_plan_wait(plan, 0), PM_OK);
    loss = pm_plan_loss(plan, 0);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_device_close(&device);
    pm_free(list);
    pm_net_destroy(&net);
    return loss;
}

static void test_labels(void **state)
{
    const char *plain = "softmax_cross_entropy",
               *ignoring = "softmax_cross_entropy ignore_label=255";
    const int32_t good[ROWS] = { 0, 3, 1 }, high[ROWS] = { 0, 4, 1 }, low[ROWS] = { -1, 2, 1 };
    const int32_t some[ROWS] = { 255, 3, 255 }, all[ROWS] = { 255, 255, 255 };

    (void)state;
    assert_true(fabs(loss_of(plain, good) - log(CLASSES)) < 1e-6);
    assert_true(isnan(loss_of(plain, high)));
    assert_true(isnan(loss_of(plain, low)));
    assert_true(isnan(loss_of(plain, some)));
    assert_true(isnan(loss_of(ignoring, high)));
    assert_true(fabs(loss_of(ignoring, some) - log(CLASSES)) < 1e-6);
    assert_true(loss_of(ignoring, all) == 0);
}

/* A list with one number for each of many classes. */
static void test_long_spec(void **state)
{
    enum { MANY = 500 };
    struct pm_net *net = pm_net_create();
    struct pm_node *x[] = { pm_net_input(net, "x", PM_SHAPE2(2, MANY), PM_F32),
                            pm_net_input(net, "labels", PM_SHAPE1(2), PM_I32) };
    struct pm_str list = { 0 };

    (void)state;
    for (int i = 0; i < MANY; i++)
        pm_str_add(&list, "%s%.9g", i ? "," : "", 1 + i / 1024.0);
    struct pm_node *n = pm_net_add_many(net, "loss", x, 2, "softmax_cross_entropy "
                                        "label_weights=[%s] weight=3", list.text);
    assert_int_equal(net->error, PM_OK);
    cJSON *o = cJSON_CreateObject();
    pm_opts_dump(n->layer->opts, n->cfg, o, false);
    const cJSON *weights = cJSON_GetObjectItem(o, "label_weights");
    assert_int_equal(cJSON_GetArraySize(weights), MANY);
    assert_true((float)cJSON_GetArrayItem(weights, MANY - 1)->valuedouble ==
                1 + (MANY - 1) / 1024.0f);
    assert_true(cJSON_GetObjectItem(o, "weight")->valuedouble == 3);
    cJSON_Delete(o);
    pm_str_free(&list);
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_text), cmocka_unit_test(test_geometry),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_messages),
        cmocka_unit_test(test_labels),    cmocka_unit_test(test_long_spec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
