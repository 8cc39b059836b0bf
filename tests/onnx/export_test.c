/* The structure of exported graphs: every layer becomes its ONNX operators, names are defined
 * before they are read, no value is unused, the same net gives the same bytes, and options have
 * their effect. export_check.py compares the computed values with onnxruntime. */
#include "../net/named_net.h"

#include <pumice/export.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes arbitrary values; the variance of batch norm must be positive. */
static int read_variable(void *ctx, const struct pm_variable *v, float *data)
{
    const size_t count = pm_shape_count(v->shape);

    (void)ctx;
    for (size_t i = 0; i < count; i++)
        data[i] = 0.25f + (float)(i % 7) / 8;
    return PM_OK;
}

static struct pm_export *export(const struct pm_net *net, const struct pm_node *logits,
                                struct pm_export_options o)
{
    struct pm_export *g = NULL;

    o.read = read_variable;
    if (pm_export_create(net, logits, &o, &g) != PM_OK)
        fail_msg("%s", pm_error_text());
    return g;
}

/* ---- structure --------------------------------------------------------------------------- */

/* True when the name is defined before the node. An omitted input has no name. */
static bool is_before(const struct pm_onnx_model *m, size_t node, const char *value)
{
    if (!value[0])
        return true;
    for (size_t i = 0; i < m->input_count; i++)
        if (strcmp(m->inputs[i].name, value) == 0)
            return true;
    for (size_t i = 0; i < node; i++)
        if (strcmp(m->nodes[i].out[0], value) == 0)
            return true;
    return pm_onnx_tensor_find(m, value) != NULL;
}

static bool is_read(const struct pm_onnx_model *m, const char *value)
{
    for (size_t i = 0; i < m->output_count; i++)
        if (strcmp(m->outputs[i].name, value) == 0)
            return true;
    for (size_t i = 0; i < m->node_count; i++)
        for (int k = 0; k < m->nodes[i].in_count; k++)
            if (strcmp(m->nodes[i].in[k], value) == 0)
                return true;
    return false;
}

/* Every value that is read is defined before, under one name, and every defined value is read. */
static void expect_whole(const struct pm_onnx_model *m)
{
    for (size_t i = 0; i < m->node_count; i++) {
        const struct pm_onnx_node *n = &m->nodes[i];

        for (int k = 0; k < n->in_count; k++)
            if (!is_before(m, i, n->in[k]))
                fail_msg("%s reads %s, which is not there yet", n->name, n->in[k]);
        assert_int_equal(n->out_count, 1);
        if (!is_read(m, n->out[0]))
            fail_msg("nobody reads %s", n->out[0]);
        if (is_before(m, i, n->out[0]))
            fail_msg("%s is there twice", n->out[0]);
    }
    for (size_t i = 0; i < m->tensor_count; i++) {
        if (!is_read(m, m->tensors[i].name))
            fail_msg("nobody reads %s", m->tensors[i].name);
        if (pm_onnx_tensor_find(m, m->tensors[i].name) != &m->tensors[i])
            fail_msg("%s is there twice", m->tensors[i].name);
    }
}

static int count_of(const struct pm_onnx_model *m, const char *op)
{
    int count = 0;

    for (size_t i = 0; i < m->node_count; i++)
        count += strcmp(m->nodes[i].op, op) == 0;
    return count;
}

static int layers_of(const struct pm_net *net, const char *layer)
{
    int count = 0;

    for (int i = 0; i < net->count; i++)
        count += strcmp(net->nodes[i]->layer->name, layer) == 0;
    return count;
}

static void test_every_layer(void **state)
{
    size_t count;
    const struct pm_layer *const *all = pm_layers(&count);

    (void)state;
    for (size_t i = 0; i < count; i++)
        if (!all[i]->onnx != all[i]->loss)
            fail_msg("%s: a layer says what it is in ONNX, a loss does not", all[i]->name);
}

static void test_lenet(void **state)
{
    static const char *const ops[] = { "Conv", "Relu", "MaxPool", "Conv", "Relu", "MaxPool",
                                       "Transpose", "Reshape", "Gemm", "Relu", "Gemm" };
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("lenet", 1, 28, 28, 10, NULL, &heads);
    struct pm_export *g =
        export(net, pm_heads_main(&heads), (struct pm_export_options){ .any_batch = true });
    const struct pm_onnx_model *m = pm_export_model(g);

    (void)state;
    expect_whole(m);
    assert_int_equal(m->opset, 17);
    assert_int_equal(m->node_count, PM_COUNT(ops));
    for (size_t i = 0; i < PM_COUNT(ops); i++)
        assert_string_equal(m->nodes[i].op, ops[i]);
    assert_string_equal(m->nodes[1].out[0], "LeNet/conv1");
    assert_string_equal(m->nodes[0].in[1], "LeNet/conv1/weights");
    const struct pm_onnx_tensor *w = pm_onnx_tensor_find(m, "LeNet/conv2/weights");
    assert_int_equal(w->dim[0], 64);
    assert_int_equal(w->dim[1], 32);
    assert_int_equal(w->dim[2], 5);
    assert_string_equal(m->inputs[0].name, "images");
    assert_int_equal(m->inputs[0].dim[0], -1);
    assert_string_equal(m->inputs[0].dim_name[0], "N");
    assert_int_equal(m->inputs[0].dim[1], 1);
    assert_int_equal(m->inputs[0].dim[2], 28);
    assert_string_equal(m->outputs[0].name, "logits");
    assert_int_equal(m->outputs[0].dim[1], 10);
    pm_export_destroy(&g);
    pm_net_destroy(&net);
}

/* Exports every named net at its own size, the smallest that its tests use. */
static void test_all_nets(void **state)
{
    size_t count;
    const struct pm_net_row *const *rows = pm_net_rows(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const int size = rows[i]->default_size;
        struct pm_heads heads = { 0 };
        struct pm_net *net = named_net(rows[i]->name, 1, size, size, 10, NULL, &heads);
        struct pm_export *g = export(net, pm_heads_main(&heads), (struct pm_export_options){ 0 });

        expect_whole(pm_export_model(g));
        pm_export_destroy(&g);
        pm_net_destroy(&net);
    }
}

/* ---- options ----------------------------------------------------------------------------- */

static void test_fold(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("mobilenet_v2_035", 1, 96, 96, 10, NULL, &heads);
    struct pm_export *plain = export(net, pm_heads_main(&heads), (struct pm_export_options){ 0 });
    struct pm_export *folded =
        export(net, pm_heads_main(&heads), (struct pm_export_options){ .fold_batch_norm = true });
    const struct pm_onnx_model *m = pm_export_model(folded);

    (void)state;
    assert_int_equal(count_of(pm_export_model(plain), "BatchNormalization"),
                     layers_of(net, "batch_norm"));
    assert_int_equal(count_of(m, "BatchNormalization"), 0);
    assert_int_equal(count_of(m, "Conv"), layers_of(net, "conv2d") +
                                              layers_of(net, "depthwise_conv2d"));
    expect_whole(m);
    assert_non_null(pm_export_difference(plain, folded));
    pm_export_destroy(&plain);
    pm_export_destroy(&folded);
    pm_net_destroy(&net);
}

/* resnet_v2's units begin with batch norm. It is not folded after a sum, nor when its input has
 * other readers. */
static void test_fold_what_can_be(void **state)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(1, 8, 8, 3), PM_F32);
    struct pm_node *a = pm_net_add(net, "a", x, "conv2d filters=4");
    struct pm_node *b = pm_net_add(net, "b", a, "batch_norm");
    struct pm_node *c = pm_net_add(net, "c", b, "conv2d filters=4 activation=relu");
    struct pm_node *d = pm_net_add(net, "d", c, "batch_norm");
    struct pm_node *e = pm_net_add(net, "e", d, "conv2d filters=4 bias=false");
    struct pm_node *f =
        pm_net_add_many(net, "f", (struct pm_node *[]){ e, a }, 2, "batch_norm activation=relu");
    struct pm_export *g;

    (void)state;
    assert_int_equal(net->error, PM_OK);
    g = export(net, f, (struct pm_export_options){ .fold_batch_norm = true });
    expect_whole(pm_export_model(g));
    /* a is read by f too, and c has an activation between. Only e can take its batch norm. */
    assert_int_equal(count_of(pm_export_model(g), "BatchNormalization"), 2);
    assert_null(pm_onnx_tensor_find(pm_export_model(g), "e/weights"));
    assert_non_null(pm_onnx_tensor_find(pm_export_model(g), "a/weights"));
    pm_export_destroy(&g);
    pm_net_destroy(&net);
}

static void test_aux_head_is_left_out(void **state)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("inception_v3", 1, 299, 299, 10, NULL, &heads);
    struct pm_export *g = export(net, pm_heads_main(&heads), (struct pm_export_options){ 0 });

    (void)state;
    assert_non_null(pm_heads_find(&heads, "aux_logits"));
    for (size_t i = 0; i < pm_export_model(g)->tensor_count; i++)
        assert_null(strstr(pm_export_model(g)->tensors[i].name, "Aux"));
    pm_export_destroy(&g);
    pm_net_destroy(&net);
}

static void test_any_size(void **state)
{
    const struct pm_export_options any = { .any_batch = true, .any_size = true };
    struct pm_heads heads = { 0 };

    (void)state;
    for (int pool = 0; pool < 2; pool++) {
        const char *const name = pool ? "mobilenet_v1_025" : "resnet_v1_50";
        const char *const options = pool ? "{\"global_pool\": true}" : NULL;
        struct pm_net *a = named_net(name, 1, 64, 64, 10, options, &heads);
        struct pm_export *g = export(a, pm_heads_main(&heads), any);
        struct pm_net *b = named_net(name, 1, 97, 113, 10, options, &heads);
        struct pm_export *h = export(b, pm_heads_main(&heads), any);

        assert_null(pm_export_difference(g, h));
        assert_int_equal(pm_export_model(g)->inputs[0].dim[2], -1);
        assert_string_equal(pm_export_model(g)->inputs[0].dim_name[3], "W");
        pm_export_destroy(&g);
        pm_export_destroy(&h);
        pm_net_destroy(&a);
        pm_net_destroy(&b);
    }
    struct pm_net *a = named_net("lenet", 1, 28, 28, 10, NULL, &heads);
    struct pm_export *g = export(a, pm_heads_main(&heads), any);
    struct pm_net *b = named_net("lenet", 1, 40, 40, 10, NULL, &heads);
    struct pm_export *h = export(b, pm_heads_main(&heads), any);
    assert_non_null(pm_export_difference(g, h));
    pm_export_destroy(&g);
    pm_export_destroy(&h);
    pm_net_destroy(&a);
    pm_net_destroy(&b);
}

static void test_pixels(void **state)
{
    const struct pm_export_pixels half = { false, { 127.5f, 127.5f, 127.5f },
                                           { 127.5f, 127.5f, 127.5f } };
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("mobilenet_v1_025", 2, 96, 80, 10, NULL, &heads);
    struct pm_export *g = export(net, pm_heads_main(&heads), (struct pm_export_options){
        .pixels = &half, .end = PM_END_SOFTMAX });
    const struct pm_onnx_model *m = pm_export_model(g);

    (void)state;
    expect_whole(m);
    assert_int_equal(m->inputs[0].type, PM_DTYPE_U8);
    assert_int_equal(m->inputs[0].dim[0], 2);
    assert_int_equal(m->inputs[0].dim[1], 96);
    assert_int_equal(m->inputs[0].dim[3], 3);
    assert_string_equal(m->outputs[0].name, "probabilities");
    assert_string_equal(m->nodes[m->node_count - 1].op, "Softmax");
    pm_export_destroy(&g);
    pm_net_destroy(&net);
}

/* ---- files ------------------------------------------------------------------------------- */

/* The values are written to their places, for any size of the pieces; the values of one layer at
 * a time are in memory. */
static void test_values(void **state)
{
    char path[] = "/tmp/export_test_XXXXXX", *data = NULL;
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("lenet", 1, 28, 28, 10, NULL, &heads);
    struct pm_onnx_model *m = NULL;
    char *bytes[2] = { NULL };
    size_t size[2];
    const int fd = mkstemp(path);

    (void)state;
    close(fd);
    for (int beside = 0; beside < 3; beside++) {
        struct pm_export *g = export(net, pm_heads_main(&heads), (struct pm_export_options){ 0 });

        assert_int_equal(pm_onnx_write(pm_export_model(g), path, beside == 2, &data), PM_OK);
        pm_export_destroy(&g);
        if (beside < 2)
            assert_int_equal(pm_file_read(path, &bytes[beside], &size[beside]), PM_OK);
        assert_int_equal(pm_onnx_read(path, &m), PM_OK);
        const struct pm_onnx_tensor *w = pm_onnx_tensor_find(m, "LeNet/conv2/weights");
        assert_non_null(w);
        float *v = malloc((size_t)w->bytes);
        assert_int_equal(pm_onnx_floats(w, 0, (size_t)w->count, v), PM_OK);
        /* The values [h][w][i][o] are exported as [o][i][h][w]: 64 outputs of 32 inputs, 5x5. */
        for (int o = 0; o < 64; o += 9)
            for (int i = 0; i < 32; i += 5)
                for (int p = 0; p < 25; p++)
                    assert_true(v[(o * 32 + i) * 25 + p] ==
                                0.25f + (float)(((p * 32 + i) * 64 + o) % 7) / 8);
        free(v);
        pm_onnx_close(&m);
    }
    assert_non_null(data);
    assert_true(pm_file_exists(data));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    pm_free(bytes[0]);
    pm_free(bytes[1]);
    unlink(path);
    unlink(data);
    pm_free(data);
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layer),
        cmocka_unit_test(test_lenet),
        cmocka_unit_test(test_all_nets),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_fold_what_can_be),
        cmocka_unit_test(test_aux_head_is_left_out),
        cmocka_unit_test(test_any_size),
        cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
