/* Which values of an imported model are trained, and which are shared. Values of initializers
 * are trained, also when they are sliced, joined or transposed. Values that the graph computes
 * are constants, and so are Constant nodes in a model with initializers. Layers that read the
 * same initializer share a variable; initializers filled with 0 or 1 give each layer its own.
 * Other passes of the net share its variables. A constant that an export wrote is imported as a
 * constant with the same name, any number of times. */
#include "import_common.h"

#include <pumice/export.h>

#include <unistd.h>

/* ---- trained values ------------------------------------------------------------------------ */

static const float numbers[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

/* A model x [2, 4] + c = y with an initializer w [3, 4]. The caller adds the nodes that compute
 * c. */
static struct pm_onnx_model *summed(void)
{
    struct pm_onnx_model *m = pm_onnx_make("g");

    m->producer = "pytorch";
    pm_onnx_add_tensor(m, "w", PM_DTYPE_F32, 2, (const int64_t[]){ 3, 4 }, numbers);
    pm_onnx_add_input(m, "x", PM_DTYPE_F32, 2, (const int64_t[]){ 2, 4 });
    pm_onnx_add_output(m, "y", PM_DTYPE_F32, 2, (const int64_t[]){ 2, 4 });
    return m;
}

static struct pm_onnx_node *op(struct pm_onnx_model *m, const char *name, const char *a,
                               const char *b, const char *y)
{
    const char *in[] = { a, b, NULL };

    return pm_onnx_add(m, name, y, in, (const char *[]){ y, NULL });
}

static void axes(struct pm_onnx_model *m, const char *name, int64_t begin, int64_t end)
{
    static int64_t stored[16];
    static int used;
    int64_t *v = &stored[used];

    used = (used + 2) % 16;
    v[0] = begin, v[1] = end;
    pm_onnx_add_tensor(m, pm_arena_printf(m->arena, "%s_from", name), PM_DTYPE_I64, 1,
                       (const int64_t[]){ 1 }, &v[0]);
    pm_onnx_add_tensor(m, pm_arena_printf(m->arena, "%s_to", name), PM_DTYPE_I64, 1,
                       (const int64_t[]){ 1 }, &v[1]);
}

/* Rows begin..end-1 of w. */
static void sliced(struct pm_onnx_model *m, const char *name, int64_t begin, int64_t end)
{
    const char *in[] = { "w", pm_arena_printf(m->arena, "%s_from", name),
                         pm_arena_printf(m->arena, "%s_to", name), NULL };

    axes(m, name, begin, end);
    pm_onnx_add(m, "Slice", name, in, (const char *[]){ name, NULL });
}

static struct pm_net *imported(struct pm_onnx_model *m, struct pm_import **import)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE2(2, 4), PM_F32), *y = NULL;

    ok(pm_import_open_model(m, import));
    ok(pm_import_graph(*import, net, &x, &(struct pm_import_options){ .whole = true }, &y));
    return net;
}

/* Checks the only variable of the net. */
static void only(struct pm_onnx_model *m, const char *name, bool trained)
{
    struct pm_import *import = NULL;
    struct pm_net *net;

    op(m, "Add", "x", "c", "y");
    net = imported(m, &import);
    assert_int_equal(net->var_count, 1);
    assert_string_equal(net->vars[0]->name, name);
    assert_int_equal(net->vars[0]->trainable, trained);
    pm_net_destroy(&net);
    pm_import_close(&import);
}

static void parts_of_initializers(void **state)
{
    struct pm_onnx_model *m = summed();

    (void)state;
    sliced(m, "c", 1, 2);
    only(m, "c", true);
    m = summed();
    sliced(m, "a", 0, 1);
    sliced(m, "b", 2, 3);
    pm_onnx_set_int(m, op(m, "Concat", "a", "b", "c"), "axis", 0);
    only(m, "c", true);
}

static void computed(void **state)
{
    static const float one[1] = { 1 };
    static const int64_t shape[2] = { 2, 4 }, picks[2] = { 1, 1 };
    struct pm_onnx_model *m = summed();

    (void)state;
    sliced(m, "a", 0, 2);
    op(m, "Mul", "a", "a", "c");
    only(m, "c:number", false);
    m = summed();
    pm_onnx_add_tensor(m, "picks", PM_DTYPE_I64, 1, (const int64_t[]){ 2 }, picks);
    op(m, "Gather", "w", "picks", "c");
    only(m, "c:number", false);
    m = summed();
    pm_onnx_add_tensor(m, "shape", PM_DTYPE_I64, 1, (const int64_t[]){ 2 }, shape);
    pm_onnx_add_tensor(m, "one", PM_DTYPE_F32, 0, NULL, one);
    op(m, "Expand", "one", "shape", "a");
    sliced(m, "b", 0, 1);
    op(m, "Where", "a", "a", "c"); /* the condition is true everywhere */
    m->nodes[m->node_count - 1].in = (const char *[]){ "a", "a", "b" };
    m->nodes[m->node_count - 1].in_count = 3;
    only(m, "c:number", false);
    m = summed();
    sliced(m, "a", 0, 1);
    pm_onnx_add_tensor(m, "shape", PM_DTYPE_I64, 1, (const int64_t[]){ 2 },
                       (const int64_t[]){ 1, 4 });
    op(m, "ConstantOfShape", "shape", NULL, "b");
    pm_onnx_set_int(m, op(m, "Concat", "a", "b", "c"), "axis", 0);
    only(m, "c:number", false);
}

/* Constant nodes beside initializers, and in a model that stores all its weights in such nodes. */
static void constant_nodes(void **state)
{
    (void)state;
    for (int weights = 0; weights < 2; weights++) {
        struct pm_onnx_model *m = summed();
        struct pm_onnx_attr a = { .name = "value", .type = PM_ONNX_TENSOR };

        pm_onnx_add(m, "Constant", "c", (const char *[]){ NULL }, (const char *[]){ "c", NULL });
        struct pm_onnx_tensor *t = pm_arena_alloc(m->arena, sizeof *t);
        *t = m->tensors[0];
        t->name = "";
        a.t = t;
        m->nodes[0].attrs = &a, m->nodes[0].attr_count = 1;
        t->rank = 1, t->dim[0] = 4, t->count = 4, t->bytes = 16;
        if (weights)
            m->tensor_count = 0;
        only(m, weights ? "c" : "c:number", weights);
    }
}

/* ---- shared variables ---------------------------------------------------------------------- */

/* Imports x + v, then * v, then + v, and checks which variables it uses. */
static struct pm_net *thrice(const float *v, const char *producer, struct pm_import **import)
{
    struct pm_onnx_model *m = summed();

    m->producer = producer;
    pm_onnx_add_tensor(m, "v", PM_DTYPE_F32, 1, (const int64_t[]){ 4 }, v);
    op(m, "Add", "x", "v", "p");
    op(m, "Mul", "p", "v", "q");
    op(m, "Add", "q", "v", "y");
    return imported(m, import);
}

static void fills_are_split(void **state)
{
    static const float zeros[4] = { 0 }, ones[4] = { 1, 1, 1, 1 }, twos[4] = { 2, 2, 2, 2 };
    static const struct { const float *v; const char *producer; int variables; } cases[] = {
        { zeros, "pytorch", 3 }, { ones, "", 3 }, { twos, "pytorch", 1 }, { numbers, "pytorch", 1 },
        { zeros, "pumice", 1 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_import *import = NULL;
        struct pm_net *net = thrice(cases[i].v, cases[i].producer, &import);

        assert_int_equal(net->var_count, cases[i].variables);
        assert_string_equal(net->vars[0]->name, "v");
        for (int k = 0; k < net->var_count; k++)
            assert_true(net->vars[k]->trainable);
        if (net->var_count == 3)
            assert_string_equal(net->vars[2]->name, "v_3");
        pm_net_destroy(&net);
        pm_import_close(&import);
    }
}

/* Beta and moving mean, or gamma and moving variance, that share an initializer become separate
 * variables. */
static void statistics_are_apart(void **state)
{
    static const float twos[4] = { 2, 2, 2, 2 };
    static const char *const in[] = { "x", "v", "v", "v", "v", NULL };
    struct pm_import *import = NULL;
    struct pm_onnx_model *m = summed();

    (void)state;
    pm_onnx_add_tensor(m, "v", PM_DTYPE_F32, 1, (const int64_t[]){ 4 }, twos);
    pm_onnx_add(m, "BatchNormalization", "bn", in, (const char *[]){ "y", NULL });
    struct pm_net *net = imported(m, &import);
    assert_int_equal(net->var_count, 2);
    assert_true(net->vars[0]->trainable);
    assert_false(net->vars[1]->trainable);
    pm_net_destroy(&net);
    pm_import_close(&import);
}

/* Another pass of the same net over other images (net.h: pass) has no variables of its own, also
 * with a new head. */
static void passes_share(void **state)
{
    const char *source = getenv("PUMICE_SOURCE");
    struct pm_str path = { 0 };

    (void)state;
    pm_str_add(&path, "%s/tests/golden/onnx/deeplab_mobilenet_narrow.onnx", source ? source : ".");
    for (int classes = 0; classes < 8; classes += 7) {
        const struct pm_import_options options = { .any_shape = true, .new_head = classes };
        struct pm_import *import = NULL;
        struct pm_net *net = pm_net_create();
        struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(2, 64, 64, 3), PM_F32);
        struct pm_heads heads = { 0 };

        ok(pm_import_open(path.text, &import));
        ok(pm_import_net(import, net, x, &options, &heads));
        const int variables = net->var_count, nodes = net->count;
        net->pass = "mirrored";
        x = pm_net_add(net, "images_mirrored", x, "flip");
        ok(pm_import_net(import, net, x, &options, &heads));
        assert_int_equal(net->var_count, variables);
        assert_int_equal(net->count, 2 * nodes);
        for (int i = 0; i + 1 < nodes; i++) {
            const struct pm_node *a = net->nodes[i + 1], *b = net->nodes[nodes + i + 1];

            assert_int_equal(a->var_count, b->var_count);
            for (int k = 0; k < a->var_count; k++)
                assert_int_equal(a->vars[k], b->vars[k]);
        }
        pm_net_destroy(&net);
        pm_import_close(&import);
    }
    pm_str_free(&path);
}

/* A new last layer has a new bias, on either side of the model's sum. A sum of a layer with
 * itself has one last layer. */
static void fresh_heads(void **state)
{
    static const char *const sums[][2] = { { "p", "b" }, { "b", "p" }, { "p", "p" } };
    static const float w[12 * 3], b[3];
    const struct pm_import_options options = { .new_head = 5 };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(sums); k++) {
        struct pm_onnx_model *m = pm_onnx_make("g");
        struct pm_import *import = NULL;
        struct pm_net *net = pm_net_create();
        struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(2, 2, 2, 3), PM_F32);
        struct pm_heads heads = { 0 };

        m->producer = "pytorch";
        pm_onnx_add_tensor(m, "w", PM_DTYPE_F32, 2, (const int64_t[]){ 12, 3 }, w);
        pm_onnx_add_tensor(m, "b", PM_DTYPE_F32, 1, (const int64_t[]){ 3 }, b);
        pm_onnx_add_input(m, "x", PM_DTYPE_F32, 4, (const int64_t[]){ 2, 3, 2, 2 });
        pm_onnx_add_output(m, "y", PM_DTYPE_F32, 2, (const int64_t[]){ 2, 3 });
        pm_onnx_add(m, "Flatten", "f", (const char *[]){ "x", NULL },
                    (const char *[]){ "f", NULL });
        op(m, "MatMul", "f", "w", "p");
        op(m, "Add", sums[k][0], sums[k][1], "y");
        ok(pm_import_open_model(m, &import));
        ok(pm_import_net(import, net, x, &options, &heads));
        assert_int_equal(pm_heads_main(&heads)->out_shape.dim[1], 5);
        assert_int_equal(net->var_count, k == 2 ? 1 : 2);
        assert_int_equal(net->vars[0]->shape.dim[1], 5);
        pm_net_destroy(&net);
        pm_import_close(&import);
    }
}

/* ---- round trips --------------------------------------------------------------------------- */

static int no_values(void *ctx, const struct pm_variable *v, float *data)
{
    (void)ctx;
    for (size_t i = 0; i < pm_shape_count(v->shape); i++)
        data[i] = 1;
    return PM_OK;
}

/* Writes the net's logits to a file and imports that file. */
static struct pm_net *again(struct pm_net *net, struct pm_node *logits,
                            const struct pm_export_pixels *pixels, struct pm_import **import,
                            struct pm_heads *heads)
{
    char path[] = "/tmp/import_trained_XXXXXX";
    struct pm_net *out = pm_net_create();
    struct pm_export *g = NULL;

    close(mkstemp(path));
    ok(pm_export_create(net, logits, &(struct pm_export_options){
        .any_batch = true, .pixels = pixels, .read = no_values }, &g));
    ok(pm_onnx_write(pm_export_model(g), path, false, NULL));
    ok(pm_import_open(path, import));
    unlink(path); /* the open file stays readable */
    ok(pm_import_net(*import, out, pm_net_input(out, "images", PM_SHAPE4(1, 8, 8, 3), PM_F32),
                     &(struct pm_import_options){ 0 }, heads));
    pm_export_destroy(&g);
    return out;
}

static void constants_come_back(void **state)
{
    static const struct pm_export_pixels pixels = { .mean = { 1, 2, 3 }, .std = { 4, 5, 6 } };
    struct pm_net *nets[3] = { pm_net_create() };
    struct pm_import *imports[3] = { NULL };
    struct pm_heads heads = { 0 };
    int constants = 0;

    (void)state;
    struct pm_node *x = pm_net_input(nets[0], "images", PM_SHAPE4(1, 8, 8, 3), PM_F32);
    x = pm_net_add(nets[0], "bn", x, "batch_norm scale=false");
    pm_heads_add(nets[0], &heads, "logits",
                 pm_net_add(nets[0], "fc", x, "fully_connected units=4"));
    ok(nets[0]->error);
    nets[1] = again(nets[0], pm_heads_main(&heads), &pixels, &imports[1], &heads);
    nets[2] = again(nets[1], pm_heads_main(&heads), NULL, &imports[2], &heads);
    assert_int_equal(nets[1]->var_count, nets[0]->var_count + 2);
    assert_int_equal(nets[2]->var_count, nets[1]->var_count);
    for (int i = 0; i < nets[1]->var_count; i++) {
        const struct pm_variable *a = nets[1]->vars[i], *b = nets[2]->vars[i];

        assert_string_equal(a->name, b->name);
        assert_int_equal(a->trainable, b->trainable);
        constants += strstr(a->name, "images:numbers") && !a->trainable;
    }
    assert_int_equal(constants, 2);
    for (int i = 0; i < 3; i++) {
        pm_net_destroy(&nets[i]);
        pm_import_close(&imports[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_initializers), cmocka_unit_test(computed),
        cmocka_unit_test(constant_nodes),        cmocka_unit_test(fills_are_split),
        cmocka_unit_test(statistics_are_apart),  cmocka_unit_test(passes_share),
        cmocka_unit_test(fresh_heads),           cmocka_unit_test(constants_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
