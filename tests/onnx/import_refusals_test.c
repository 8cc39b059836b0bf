/* Models that lie or break the rules are refused by name: Constants whose attribute is of another
 * type than its name says, Where without all of its inputs. */
#include "import_common.h"

/* An import of the model that a node `bad` with output "c" is made in, added to x. */
static void refused(struct pm_onnx_model *m, const char *says)
{
    struct pm_import *import = NULL;
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE2(1, 3), PM_F32), *y = NULL;
    const struct pm_import_options options = { .whole = true };
    const char *const in[] = { "x", "c", NULL }, *const out[] = { "y", NULL };
    const int64_t dim[] = { 1, 3 };

    pm_onnx_add(m, "Add", "sum", in, out);
    pm_onnx_add_input(m, "x", PM_DTYPE_F32, 2, dim);
    pm_onnx_add_output(m, "y", PM_DTYPE_F32, 2, dim);
    assert_int_equal(pm_import_open_model(m, &import), PM_OK);
    assert_int_equal(pm_import_graph(import, net, &x, &options, &y), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "bad"));
    assert_non_null(strstr(pm_error_text(), says));
    pm_net_destroy(&net);
    pm_import_close(&import);
}

static struct pm_onnx_node *bad_node(struct pm_onnx_model *m, const char *op, const char *const *in)
{
    return pm_onnx_add(m, op, "bad", in, (const char *[]){ "c", NULL });
}

static void constants_of_another_type(void **state)
{
    static const char *const names[] = { "value_floats", "value_float", "value_int" };
    const int64_t numbers[] = { 1, 2, 3 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        struct pm_onnx_model *m = pm_onnx_make("g");
        struct pm_onnx_node *n = bad_node(m, "Constant", (const char *[]){ NULL });
        pm_onnx_set_ints(m, n, names[i], PM_COUNT(numbers), numbers);
        refused(m, names[i]);
    }
    struct pm_onnx_model *m = pm_onnx_make("g");
    pm_onnx_set_float(m, bad_node(m, "Constant", (const char *[]){ NULL }), "value_int", 2.5f);
    refused(m, "value_int");
}

static void where_without_its_inputs(void **state)
{
    static const float one[1] = { 1 };
    struct pm_onnx_model *m = pm_onnx_make("g");

    (void)state;
    pm_onnx_add_tensor(m, "one", PM_DTYPE_F32, 1, (const int64_t[]){ 1 }, one);
    bad_node(m, "Where", (const char *[]){ "one", "one", NULL });
    refused(m, "do not fit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_of_another_type),
        cmocka_unit_test(where_without_its_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
