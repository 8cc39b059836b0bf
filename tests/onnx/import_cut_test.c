/* An import that is cut at a value does not convert what leads to it, so that unknown operators may
 * stand there; the value must exist; and a Clip of constants is computed. */
#include "import_common.h"
#include "tasks/planned.h"

enum { N = 2, C = 3, H = 2, W = 5, COUNT = N * C * H * W };

/* images -> Relu -> Unknown "mid" -> Neg "neg" -> Add with Clip(c, 0, 1) "y". */
static struct pm_onnx_model *make_model(void)
{
    static const float c[C] = { -2, 0.25f, 7 }, low = 0, high = 1;
    static const int64_t dim[] = { N, C, H, W }, per_channel[] = { 1, C, 1, 1 };
    struct pm_onnx_model *m = pm_onnx_make("g");

    m->producer = "somebody";
    m->opset = 17;
    pm_onnx_add_input(m, "images", PM_DTYPE_F32, 4, dim);
    pm_onnx_add_output(m, "y", PM_DTYPE_F32, 4, dim);
    pm_onnx_add_tensor(m, "c", PM_DTYPE_F32, 4, per_channel, c);
    pm_onnx_add_tensor(m, "low", PM_DTYPE_F32, 0, NULL, &low);
    pm_onnx_add_tensor(m, "high", PM_DTYPE_F32, 0, NULL, &high);
    pm_onnx_add(m, "Relu", "r", (const char *[]){ "images", NULL }, (const char *[]){ "r", NULL });
    pm_onnx_add(m, "Unknown", "u", (const char *[]){ "r", NULL }, (const char *[]){ "mid", NULL });
    pm_onnx_add(m, "Neg", "n", (const char *[]){ "mid", NULL }, (const char *[]){ "neg", NULL });
    pm_onnx_add(m, "Clip", "k", (const char *[]){ "c", "low", "high", NULL },
                (const char *[]){ "clipped", NULL });
    pm_onnx_add(m, "Add", "a", (const char *[]){ "neg", "clipped", NULL },
                (const char *[]){ "y", NULL });
    return m;
}

/* cuts: 1 to cut the graph at the value `name`, or 0. */
static int import(struct pm_import *i, struct pm_net *net, int cuts, const char *name,
                  struct pm_heads *heads)
{
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(N, H, W, C), PM_F32);
    const struct pm_import_cut cut = {
        name, pm_net_input(net, "middle", PM_SHAPE4(N, H, W, C), PM_F32)
    };

    return pm_import_net(i, net, images, &(struct pm_import_options){
        .any_shape = true, .cuts = &cut, .cut_count = cuts }, heads);
}

static void unknown_operator(void **state)
{
    struct pm_net *net = pm_net_create();
    struct pm_import *i = NULL;
    struct pm_heads heads = { 0 };

    (void)state;
    ok(pm_import_open_model(make_model(), &i));
    assert_int_equal(import(i, net, 0, "mid", &heads), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "\"u\" (Unknown): Pumice does not have this operator"));
    pm_net_destroy(&net);
    pm_import_close(&i);
}

/* y = clipped - mid, with the channels of maps last; what is before mid has no layers. */
static void from_there(void **state)
{
    static const float clipped[C] = { 0, 0.25f, 1 };
    struct pm_net *net = pm_net_create();
    struct pm_import *i = NULL;
    struct pm_heads heads = { 0 };

    (void)state;
    ok(pm_import_open_model(make_model(), &i));
    ok(import(i, net, 1, "mid", &heads));
    for (int k = 0; k < net->count; k++)
        assert_string_not_equal(net->nodes[k]->layer->name, "relu");
    struct planned p = planned(net, (const char *[]){ pm_heads_main(&heads)->name, NULL });
    float *mid = pm_plan_input(p.plan, 0, "middle", 0);
    for (int k = 0; k < COUNT; k++)
        mid[k] = (float)k / 4;
    run_plan(p.plan);
    const float *y = pm_plan_output(p.plan, 0, pm_heads_main(&heads)->name, 0);
    for (int k = 0; k < COUNT; k++)
        assert_true(y[k] == clipped[k % C] - (float)k / 4);
    drop_plan(&p);
    pm_net_destroy(&net);
    pm_import_close(&i);
}

/* An initializer is a value, but nothing leads to it. */
static void absent(void **state)
{
    static const char *const names[] = { "middle", "c", "" };
    struct pm_import *i = NULL;
    struct pm_heads heads = { 0 };

    (void)state;
    ok(pm_import_open_model(make_model(), &i));
    for (size_t k = 0; k < PM_COUNT(names); k++) {
        struct pm_net *net = pm_net_create();
        char text[160];

        snprintf(text, sizeof text, "g: \"%s\" is not a value of the model, so the graph cannot be "
                 "cut there: name an input, or a node's output", names[k]);
        assert_int_equal(import(i, net, 1, names[k], &heads), PM_ECONFIG);
        assert_string_equal(pm_error_text(), text);
        pm_net_destroy(&net);
    }
    pm_import_close(&i);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(unknown_operator),
                                        cmocka_unit_test(from_there), cmocka_unit_test(absent) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
