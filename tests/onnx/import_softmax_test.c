/* A final Softmax is removed only when it computes probabilities of classes. */
#include "import_common.h"

/* Imports [1, 3, height, 5] through Relu and a Softmax over this axis. Returns true when the
 * Softmax was removed. */
static bool is_left_out(int64_t opset, int height, int64_t axis)
{
    const int64_t dim[] = { 1, 3, height, height == 1 ? 1 : 5 };
    const struct pm_import_options options = { .any_shape = true };
    struct pm_onnx_model *m = pm_onnx_make("g");
    struct pm_import *import = NULL;
    struct pm_net *net = pm_net_create();
    struct pm_heads heads = { 0 };
    bool found = false;

    m->producer = "somebody";
    m->opset = opset;
    pm_onnx_add_input(m, "x", PM_DTYPE_F32, 4, dim);
    pm_onnx_add_output(m, "y", PM_DTYPE_F32, 4, dim);
    pm_onnx_add(m, "Relu", "r", (const char *[]){ "x", NULL }, (const char *[]){ "r", NULL });
    pm_onnx_set_int(m, pm_onnx_add(m, "Softmax", "s", (const char *[]){ "r", NULL },
                                   (const char *[]){ "y", NULL }), "axis", axis);
    ok(pm_import_open_model(m, &import));
    ok(pm_import_net(import, net,
                     pm_net_input(net, "images", PM_SHAPE4(1, height, (int)dim[3], 3), PM_F32),
                     &options, &heads));
    for (int i = 0; i < net->count; i++)
        found |= strcmp(net->nodes[i]->layer->name, "softmax") == 0;
    pm_net_destroy(&net);
    pm_import_close(&import);
    return !found;
}

static void over_classes_only(void **state)
{
    (void)state;
    assert_true(is_left_out(17, 4, 1));
    assert_true(is_left_out(17, 4, -3));
    assert_false(is_left_out(17, 4, 3));
    assert_false(is_left_out(17, 4, -1));
    assert_false(is_left_out(11, 4, 3));
    assert_false(is_left_out(11, 4, 1)); /* over 60 numbers */
    assert_true(is_left_out(11, 1, 1));  /* [1, 3, 1, 1] */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(over_classes_only) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
