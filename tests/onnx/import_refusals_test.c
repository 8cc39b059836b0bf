/* Invalid and unsupported models are refused with a message that names the cause: Constants
 * whose attribute has another type than its name says, Where with missing inputs, unknown
 * operators, equations that are not a product of matrices, and nets of other tasks. */
#include "import_common.h"

/* Imports a model in which the node `bad` with output "c" is added to x. The error must contain
 * `says`. */
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
    if (!strstr(pm_error_text(), says))
        fail_msg("%s", pm_error_text());
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

/* What an LSTM has besides the layer's arithmetic. x is no sequence, so a node without any of it is
 * refused for that. */
static void lstm_with_more(void **state)
{
    static const float one[24] = { 1 };
    static const struct { const char *in[9], *attribute, *says; } cases[] = {
        { { "x", "w", "w" }, NULL, "an input with 2 axes, not 3" },
        { { "w", "w", "w" }, NULL, "an input that is a constant" },
        { { "x", "w", "w", "", "w" }, NULL, "lengths of the sequences" },
        { { "x", "w", "w", "", "", "w" }, NULL, "a first state other than zeros" },
        { { "x", "w", "w", "", "", "", "w" }, NULL, "a first state other than zeros" },
        { { "x", "w", "w", "", "", "", "", "w" }, NULL, "peepholes other than zeros" },
        { { "x", "w", "w" }, "clip", "the attribute clip" },
        { { "x", "w", "w" }, "input_forget", "the attribute input_forget" },
        { { "x", "w", "w" }, "layout", "the attribute layout" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_onnx_model *m = pm_onnx_make("g");
        struct pm_onnx_node *n;

        pm_onnx_add_tensor(m, "w", PM_DTYPE_F32, 3, (const int64_t[]){ 1, 4, 6 }, one);
        n = bad_node(m, "LSTM", cases[i].in);
        pm_onnx_set_int(m, n, "hidden_size", 1);
        if (cases[i].attribute)
            pm_onnx_set_int(m, n, cases[i].attribute, 1);
        refused(m, cases[i].says);
    }
}

/* Weights of other shapes than the input and hidden_size imply, and more of them than are read. */
static void lstm_shapes(void **state)
{
    enum { MANY = 2049 };
    static const struct { int units, rows, columns, recurrent; const char *says; } cases[] = {
        { 0, 4, 3, 1, "hidden_size 0, outside 1..65536" },
        { 2, 4, 3, 2, "weights of another shape than [1, 8, 3], which its input, hidden_size " },
        { 1, 4, 2, 1, "weights of another shape than [1, 4, 3]" },
        { 1, 4, 3, 2, "recurrent weights of another shape than [1, 4, 1]" },
        { MANY, 4 * MANY, 3, MANY, "recurrent weights of more than 16777216 numbers" },
    };
    float *v = pm_calloc(4 * MANY * MANY, sizeof *v);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_onnx_model *m = pm_onnx_make("g");
        struct pm_onnx_node *n;
        const int64_t w[] = { 1, cases[i].rows, cases[i].columns };
        const int64_t r[] = { 1, cases[i].rows, cases[i].recurrent };
        const int64_t shape[] = { 1, 1, 3 };

        pm_onnx_add_tensor(m, "w", PM_DTYPE_F32, 3, w, v);
        pm_onnx_add_tensor(m, "r", PM_DTYPE_F32, 3, r, v);
        pm_onnx_add_tensor(m, "shape", PM_DTYPE_I64, 1, (const int64_t[]){ 3 }, shape);
        pm_onnx_add(m, "Reshape", "view", (const char *[]){ "x", "shape", NULL },
                    (const char *[]){ "s", NULL });
        n = bad_node(m, "LSTM", (const char *[]){ "s", "w", "r", NULL });
        pm_onnx_set_int(m, n, "hidden_size", cases[i].units);
        refused(m, cases[i].says);
    }
    pm_free(v);
}

/* The activations that ONNX has by default may be named. x is no sequence, so a node whose
 * activations and direction are right is refused for that. */
static void lstm_activations(void **state)
{
    static const float one[24] = { 1 };
    static const char *const right[] = { "Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Tanh" };
    static const char *const swapped[] = { "Sigmoid", "Tanh", "Sigmoid" };
    static const char *const second[] = { "Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Relu" };
    static const char idle[] = "an input with 2 axes", other[] = "activations other than Sigmoid";
    static const struct {
        const char *direction, *const *list;
        int count;
        const char *says;
    } cases[] = {
        { NULL, right, 3, idle },
        { "forward", right, 3, idle },
        { "reverse", right, 3, idle },
        { "bidirectional", right, 6, idle },
        { "bidirectional", right, 3, other },
        { "reverse", right, 6, other },
        { "forward", right, 2, other },
        { "forward", swapped, 3, other },
        { "bidirectional", second, 6, other },
        { "Reverse", right, 3, "the direction \"Reverse\", which is none of forward, reverse" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_onnx_model *m = pm_onnx_make("g");
        struct pm_onnx_node *n;

        pm_onnx_add_tensor(m, "w", PM_DTYPE_F32, 3, (const int64_t[]){ 1, 4, 6 }, one);
        n = bad_node(m, "LSTM", (const char *[]){ "x", "w", "w", NULL });
        pm_onnx_set_int(m, n, "hidden_size", 1);
        if (cases[i].direction)
            pm_onnx_set_text(m, n, "direction", cases[i].direction);
        pm_onnx_set_ints(m, n, "activations", 1, (const int64_t[]){ 0 });
        struct pm_onnx_attr *a = &n->attrs[n->attr_count - 1];

        a->type = PM_ONNX_STRINGS;
        a->strings = cases[i].list;
        a->count = cases[i].count;
        refused(m, cases[i].says);
    }
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

static void named_operators(void **state)
{
    static const char *const equations[] = { "ab,ab->ab",   "aa,ab->ab", "ab,ac",
                                             "ab,cd->abcd", "a,b->ab",   "...ab,bc->ac",
                                             "ab,bc->adc" };
    const char *const two[] = { "x", "x", NULL };
    struct pm_onnx_model *m = pm_onnx_make("g");

    (void)state;
    bad_node(m, "NonMaxSuppression", two);
    refused(m, "node 0 \"bad\" (NonMaxSuppression): Pumice does not have this operator");
    for (size_t i = 0; i < PM_COUNT(equations); i++) {
        m = pm_onnx_make("g");
        pm_onnx_set_text(m, bad_node(m, "Einsum", two), "equation", equations[i]);
        refused(m, equations[i]);
    }
}

/* Equal nodes are reported as one entry; others have their own entry. */
static void counted(void **state)
{
    struct pm_onnx_model *m = pm_onnx_make("g");
    const char *before = "x";

    (void)state;
    for (int i = 0; i < 30; i++) {
        const char *name = pm_arena_printf(m->arena, "n%d", i), *in[] = { before, NULL };

        pm_onnx_add(m, i % 2 ? "NonZero" : "Tile", name, in, (const char *[]){ name, NULL });
        before = name;
    }
    bad_node(m, "TopK", (const char *[]){ before, NULL });
    refused(
        m, "node 0 \"n0\" (Tile): Pumice does not have this operator (and 14 more); node 1 \"n1\" "
           "(NonZero): Pumice does not have this operator (and 14 more); node 30 \"bad\" (TopK): ");
}

/* The outputs of PyTorch's segmentation nets and detectors are refused for classification. Two
 * last layers are refused, too. */
static void other_tasks(void **state)
{
    static const struct {
        const char *model;
        struct pm_import_options options;
        const char *says;
    } cases[] = {
        { "lraspp_narrow", { 0 }, "the shape 4x5x64x64, the output of a segmentation net" },
        { "ssdlite_narrow", { 0 }, "which is not that of logits [n, classes] for a batch of 4" },
        { "lraspp_narrow", { .any_shape = true, .new_head = 7 },
          "model.onnx_new_head: two last layers, \"node_conv2d_" },
    };
    const char *source = getenv("PUMICE_SOURCE");
    struct pm_str path = { 0 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_import *import = NULL;
        struct pm_net *net = pm_net_create();
        struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(4, 64, 64, 3), PM_F32);
        struct pm_heads heads = { 0 };

        pm_str_free(&path);
        pm_str_add(&path, "%s/tests/golden/onnx/%s.onnx", source ? source : ".", cases[i].model);
        ok(pm_import_open(path.text, &import));
        assert_int_equal(pm_import_net(import, net, images, &cases[i].options, &heads), PM_ECONFIG);
        if (!strstr(pm_error_text(), cases[i].says) || strchr(pm_error_text(), '\n'))
            fail_msg("%s", pm_error_text());
        pm_net_destroy(&net);
        pm_import_close(&import);
    }
    pm_str_free(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_of_another_type),
        cmocka_unit_test(lstm_with_more),
        cmocka_unit_test(lstm_shapes),
        cmocka_unit_test(lstm_activations),
        cmocka_unit_test(where_without_its_inputs),
        cmocka_unit_test(named_operators),
        cmocka_unit_test(counted),
        cmocka_unit_test(other_tasks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
