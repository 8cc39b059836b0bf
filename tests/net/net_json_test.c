/* Layer lists: wiring, repeats, sharing and messages. A named net that is written as a list and
 * read again is the same net. */
#include <pumice/net.h>

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pm_net *start(struct pm_node **images, int size, int channels)
{
    struct pm_net *net = pm_net_create();

    *images = pm_net_input(net, "images", PM_SHAPE4(2, size, size, channels), PM_F32);
    return net;
}

/* text is a list in JSON with ' for ". */
static cJSON *parse(const char *text)
{
    char *copy = pm_strdup(text);

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    cJSON *list = cJSON_Parse(copy);
    if (!list)
        fail_msg("not JSON: %s", copy);
    pm_free(copy);
    return list;
}

static struct pm_net *read_net(const char *text, struct pm_heads *heads, int *err)
{
    struct pm_node *images;
    struct pm_net *net = start(&images, 16, 4);
    cJSON *list = parse(text);

    *err = pm_net_from_json(net, images, list, "x.json: model.layers", heads);
    cJSON_Delete(list);
    return net;
}

static struct pm_net *read_good(const char *text, struct pm_heads *heads)
{
    int err;
    struct pm_net *net = read_net(text, heads, &err);

    if (err)
        fail_msg("%s", pm_error_text());
    return net;
}

static void in_order(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = read_good("[{'name': 'a', 'layer': 'conv2d', 'filters': 8, 'kernel': 3},"
                                   " {'name': 'b', 'layer': 'relu'},"
                                   " {'name': 'c', 'layer': 'flatten'}]", &heads);

    assert_int_equal(net->count, 4);
    assert_ptr_equal(net->nodes[2]->in[0], net->nodes[1]);
    assert_ptr_equal(pm_heads_main(&heads), net->nodes[3]);
    assert_string_equal(net->vars[0]->name, "a/weights");
    pm_net_destroy(&net);
}

static void named_inputs(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = read_good(
        "[{'name': 'a', 'layer': 'relu'}, {'name': 'logits', 'layer': 'flatten', 'inputs': 'a'},"
        " {'name': 'c', 'layer': 'concat', 'inputs': ['images', 'a', 'images']},"
        " {'layer': 'flatten'}, {'layer': 'flatten', 'inputs': '@previous'}]", &heads);

    const struct pm_node *c = pm_net_find(net, "c");
    assert_int_equal(c->inputs, 3);
    assert_string_equal(c->in[1]->name, "a");
    assert_string_equal(c->in[2]->name, "images");
    assert_int_equal(c->out_shape.dim[3], 12);
    /* Layers without a name are numbered by kind; "logits" counts as the first flatten. */
    assert_ptr_equal(pm_net_find(net, "flatten_3")->in[0], pm_net_find(net, "flatten_2"));
    assert_string_equal(pm_heads_main(&heads)->name, "logits");
    pm_net_destroy(&net);
}

static void repeats(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = read_good(
        "[{'name': 'stem', 'layer': 'conv2d', 'filters': 6, 'kernel': 1},"
        " {'repeat': 3, 'layers': ["
        "   {'name': 'unit%d/conv', 'layer': 'conv2d', 'filters': 6, 'kernel': 3},"
        "   {'name': 'unit%d', 'layer': 'add', 'inputs': ['@previous', '@input']}]},"
        " {'name': 'last', 'layer': 'flatten', 'inputs': 'unit2'}]", &heads);

    assert_ptr_equal(pm_net_find(net, "unit1")->in[1], pm_net_find(net, "stem"));
    assert_ptr_equal(pm_net_find(net, "unit1/conv")->in[0], pm_net_find(net, "stem"));
    assert_ptr_equal(pm_net_find(net, "unit3")->in[0], pm_net_find(net, "unit3/conv"));
    assert_ptr_equal(pm_net_find(net, "unit3")->in[1], pm_net_find(net, "unit2"));
    assert_ptr_equal(pm_heads_main(&heads)->in[0], pm_net_find(net, "unit2"));
    assert_int_equal(net->var_count, 8);
    pm_net_destroy(&net);
}

static void nested_repeats(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = read_good(
        "[{'repeat': 2, 'as': '%b', 'layers': ["
        "   {'repeat': 2, 'layers': ["
        "     {'name': 'block%b/unit%d', 'layer': 'relu'},"
        "     {'name': 'sum%b_%d', 'layer': 'add', 'inputs': ['block%b/unit%d', '@input']}]},"
        "   {'name': 'block%b', 'layer': 'relu'}]}]", &heads);

    assert_int_equal(net->count, 1 + 10);
    assert_ptr_equal(pm_net_find(net, "block2/unit1")->in[0], pm_net_find(net, "block1"));
    assert_ptr_equal(pm_net_find(net, "sum2_2")->in[1], pm_net_find(net, "sum2_1"));
    assert_string_equal(pm_heads_main(&heads)->name, "block2");
    pm_net_destroy(&net);
}

static void shared(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = read_good(
        "[{'name': 'a', 'layer': 'conv2d', 'filters': 4, 'kernel': 3},"
        " {'name': 'b', 'layer': 'conv2d', 'filters': 4, 'kernel': 3, 'share': 'a'}]", &heads);

    assert_int_equal(net->var_count, 2);
    assert_int_equal(pm_heads_main(&heads)->vars[0], 0);
    assert_int_equal(pm_heads_main(&heads)->vars[1], 1);
    cJSON *list = pm_net_to_json(net);
    const cJSON *share = cJSON_GetObjectItem(cJSON_GetArrayItem(list, 1), "share");
    assert_string_equal(share->valuestring, "a");
    cJSON_Delete(list);
    pm_net_destroy(&net);
}

static void messages(void **state)
{
    (void)state;
    static const struct { const char *list, *words[2]; } cases[] = {
        { "[{'layer': 'relu'}, {'layer': 'conv2', 'filters': 8}]",
          { "x.json: model.layers[1].layer", "conv2d" } },
        { "[{'layer': 'conv2d', 'filter': 8}]", { "x.json: model.layers[0].filter", "filters" } },
        { "[{'layer': 'conv2d', 'stride': 0}]", { "x.json: model.layers[0].stride: 0", "1..64" } },
        { "[{'name': 'first', 'layer': 'relu'}, {'layer': 'add', 'inputs': ['frist', 'images']}]",
          { "x.json: model.layers[1].inputs", "\"first\"" } },
        { "[{'repeat': 2, 'layers': [{'layer': 'relu'}, {'layer': 'conv2d', 'strid': 1}]}]",
          { "x.json: model.layers[0].layers[1].strid", "stride" } },
        { "[{'repeat': 2, 'layers': [{'name': 'a', 'layer': 'relu'}]}]",
          { "model.layers[0].layers[0].name: \"a\"", "placeholder" } },
        { "[{'repeat': 0, 'layers': [{'layer': 'relu'}]}]", { "model.layers[0].repeat", "1.." } },
        { "[{'repeat': 2.5, 'layers': [{'layer': 'relu'}]}]", { "model.layers[0].repeat", "1.." } },
        { "[{'repeat': 2}]", { "model.layers[0].layers", "list" } },
        { "[{'repeat': 2, 'layers': [{'layer': 'relu'}], 'name': 'x'}]",
          { "model.layers[0].name", "only" } },
        { "[{'repeat': 2, 'layers': [{'repeat': 2, 'layers': [{'layer': 'relu'}]}]}]",
          { "model.layers[0].layers[0].as", "placeholder" } },
        { "[{'layer': 'add', 'inputs': ['images', '@input']}]",
          { "model.layers[0].inputs", "inside a repeat" } },
        { "[{'layer': 'relu', 'inputs': []}]", { "model.layers[0].inputs", "1..24" } },
        { "[{'layer': 'relu', 'inputs': [3]}]", { "model.layers[0].inputs", "name" } },
        { "[{'name': 'a'}]", { "model.layers[0]", "\"layer\"" } },
        { "[{'name': '', 'layer': 'relu'}]", { "model.layers[0].name", "non-empty" } },
        { "['relu']", { "model.layers[0]", "object" } },
        { "[]", { "x.json: model.layers:", "at least one" } },
        { "{'layer': 'relu'}", { "x.json: model.layers:", "list" } },
        { "[{'name': 'a', 'layer': 'conv2d'}, {'layer': 'relu', 'share': 'a'}]",
          { "model.layers[1].share", "must be a relu layer" } },
        { "[{'name': 'a', 'layer': 'relu'}, {'layer': 'relu', 'share': 'a'}]",
          { "model.layers[1].share", "with variables" } },
        { "[{'name': 'a', 'layer': 'conv2d', 'filters': 8},"
          " {'layer': 'conv2d', 'filters': 8, 'share': 'a'}]",
          { "conv2d_2: it shares the variables of a", "needs" } },
        { "[{'layer': 'conv2d', 'filters': 1000000, 'kernel': 1024}]",
          { "conv2d_1: its weights have the shape 1024x1024x4x1000000", "2^31 - 1" } },
        { "[{'layer': 'conv2d', 'filters': 1000000}, {'layer': 'concat', 'inputs': ["
          "  '@previous', '@previous', '@previous', '@previous', '@previous']}]",
          { "concat_1: its output 2x16x16x5000000", "1..1048576" } },
        { "[{'layer': 'conv2d_transpose', 'stride': 64, 'filters': 1100}]",
          { "conv2d_transpose_1: its output 2x1024x1024x1100", "micro_batches" } },
        { "[{'name': 'a', 'layer': 'relu'}, {'layer': 'relu', 'share': 'bbb'}]",
          { "model.layers[1].share", "bbb" } },
    };

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_heads heads = { 0 };
        int err;
        struct pm_net *net = read_net(cases[i].list, &heads, &err);
        if (err != PM_ECONFIG)
            fail_msg("%s is accepted", cases[i].list);
        assert_int_equal(net->error, PM_ECONFIG);
        for (int k = 0; k < 2; k++)
            if (!strstr(pm_error_text(), cases[i].words[k]))
                fail_msg("\"%s\" does not say \"%s\"", pm_error_text(), cases[i].words[k]);
        pm_net_destroy(&net);
    }
}

/* A small text must not build a huge net. */
static void bombs(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    int err;
    struct pm_net *net = read_net(
        "[{'repeat': 10000, 'as': '%a', 'layers': [{'repeat': 10000, 'as': '%b', 'layers': ["
        "  {'name': '%a/%b', 'layer': 'relu'}]}]}]", &heads, &err);

    assert_int_equal(err, PM_ECONFIG);
    pm_net_destroy(&net);
}

/* ---- named nets, written and read --------------------------------------------------------- */

static void expect_same_node(const struct pm_node *a, const struct pm_node *b)
{
    char *x, *y;
    cJSON *p = cJSON_CreateObject(), *q = cJSON_CreateObject();

    if (a->layer != b->layer || strcmp(a->name, b->name) || a->inputs != b->inputs ||
        a->index != b->index || !pm_shape_equal(a->out_shape, b->out_shape) ||
        a->out_type != b->out_type || a->var_count != b->var_count)
        fail_msg("%s (%s) became %s (%s)", a->name, a->layer->name, b->name, b->layer->name);
    for (int i = 0; i < a->inputs; i++)
        assert_int_equal(a->in[i]->index, b->in[i]->index);
    for (int i = 0; i < a->var_count; i++)
        assert_int_equal(a->vars[i], b->vars[i]);
    /* The option structs hold pointers, so their values are compared as text in full precision. */
    if (a->layer->opts) {
        pm_opts_dump(a->layer->opts, a->cfg, p, false);
        pm_opts_dump(b->layer->opts, b->cfg, q, false);
    }
    x = cJSON_PrintUnformatted(p);
    y = cJSON_PrintUnformatted(q);
    assert_string_equal(x, y);
    free(x);
    free(y);
    cJSON_Delete(p);
    cJSON_Delete(q);
}

static void expect_same_variable(const struct pm_variable *a, const struct pm_variable *b)
{
    if (strcmp(a->name, b->name) || !pm_shape_equal(a->shape, b->shape) ||
        a->init.kind != b->init.kind || memcmp(&a->init.a, &b->init.a, sizeof a->init.a) ||
        a->fan_in != b->fan_in || a->fan_out != b->fan_out || a->trainable != b->trainable ||
        a->regularize != b->regularize)
        fail_msg("variable %s became %s", a->name, b->name);
}

/* Writes the net as text and reads it again. */
static void eject(const char *name, int size, int classes)
{
    const struct pm_net_row *row = pm_net_row_find(name);
    struct pm_heads heads = { 0 }, again = { 0 };
    struct pm_node *images;
    struct pm_net *a = start(&images, size, row->default_channels);
    void *cfg = pm_arena_alloc(a->arena, row->cfg_size + 1);

    if (row->opts)
        pm_opts_defaults(row->opts, cfg, a->arena);
    row->build(a, images, classes, cfg, &heads);
    if (a->error)
        fail_msg("%s", pm_error_text());
    cJSON *list = pm_net_to_json(a);
    char *text = cJSON_Print(list);
    cJSON_Delete(list);
    list = cJSON_Parse(text);
    struct pm_net *b = start(&images, size, row->default_channels);
    if (pm_net_from_json(b, images, list, "layers", &again))
        fail_msg("%s: %s", name, pm_error_text());
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->var_count, b->var_count);
    for (int i = 1; i < a->count; i++)
        expect_same_node(a->nodes[i], b->nodes[i]);
    for (int i = 0; i < a->var_count; i++)
        expect_same_variable(a->vars[i], b->vars[i]);
    assert_int_equal(pm_heads_main(&heads)->index, pm_heads_main(&again)->index);
    free(text);
    cJSON_Delete(list);
    pm_net_destroy(&a);
    pm_net_destroy(&b);
}

static void ejected(void **state)
{
    (void)state;
    eject("lenet", 28, 10);
    eject("cifarnet", 32, 10);
    eject("resnet_v1_50", 224, 1000);
    eject("mobilenet_v1_075", 192, 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),       cmocka_unit_test(named_inputs),
        cmocka_unit_test(repeats),        cmocka_unit_test(nested_repeats),
        cmocka_unit_test(shared),         cmocka_unit_test(messages),
        cmocka_unit_test(bombs),          cmocka_unit_test(ejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
