/* Nodes with several outputs: names, JSON lists, passes, quantisation. A plan copies out and
 * prints each output. A net with splits takes the same steps as the net with slices, whose
 * gradients are padded and added, on each device and with micro-batches. */
#include "two_steps.h"

#include <stdio.h>

static struct pm_device *device;

/* s:0 has two readers, s:1 has none, and t:0 and t:1 change places. */
static const char splits[] =
    "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 14, \"kernel\": 3},"
    " {\"name\": \"s\", \"layer\": \"split\", \"sizes\": [5, 3, 6]},"
    " {\"name\": \"b\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 3},"
    " {\"name\": \"c\", \"layer\": \"add\", \"inputs\": [\"b\", \"s:0\"], \"activation\": "
    "\"relu\"},"
    " {\"name\": \"t\", \"layer\": \"split\", \"inputs\": \"s:2\"},"
    " {\"name\": \"j\", \"layer\": \"concat\", \"inputs\": [\"t:1\", \"c\", \"t\"]},"
    " {\"name\": \"f\", \"layer\": \"flatten\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";
/* The same net without nodes that have several outputs. */
static const char slices[] =
    "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 14, \"kernel\": 3},"
    " {\"name\": \"s0\", \"layer\": \"slice\", \"begin\": [0, 0, 0, 0], \"size\": [-1, -1, -1, 5]},"
    " {\"name\": \"t0\", \"layer\": \"slice\", \"begin\": [0, 0, 0, 8], \"size\": [-1, -1, -1, 3],"
    "  \"inputs\": \"a\"},"
    " {\"name\": \"t1\", \"layer\": \"slice\", \"begin\": [0, 0, 0, 11], \"size\": [-1, -1, -1, 3],"
    "  \"inputs\": \"a\"},"
    " {\"name\": \"b\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 3, \"inputs\": \"s0\"},"
    " {\"name\": \"c\", \"layer\": \"add\", \"inputs\": [\"b\", \"s0\"], \"activation\": \"relu\"},"
    " {\"name\": \"j\", \"layer\": \"concat\", \"inputs\": [\"t1\", \"c\", \"t0\"]},"
    " {\"name\": \"f\", \"layer\": \"flatten\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

/* ---- the net ----------------------------------------------------------------------------- */

static void outputs_are_nodes(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = list_net(splits, 2, 6, 5, &heads);
    struct pm_node *s = pm_net_find(net, "s"), *c = pm_net_find(net, "c");

    check(net->error);
    assert_int_equal(s->outputs, 3);
    assert_ptr_equal(s->out[0], s);
    assert_ptr_equal(s->out[2], pm_net_find(net, "s:2"));
    assert_int_equal(s->out[2]->output, 2);
    assert_ptr_equal(s->out[2]->in[0], s);
    expect_shape(net, "s", PM_SHAPE4(2, 6, 5, 5));
    expect_shape(net, "s:1", PM_SHAPE4(2, 6, 5, 3));
    expect_shape(net, "s:2", PM_SHAPE4(2, 6, 5, 6));
    expect_shape(net, "t:1", PM_SHAPE4(2, 6, 5, 3));
    assert_ptr_equal(c->in[1], s);                          /* "s:0" */
    assert_ptr_equal(pm_net_find(net, "b")->in[0], s);      /* the layer before it */
    assert_ptr_equal(pm_net_find(net, "t")->in[0], s->out[2]);
    pm_net_destroy(&net);
}

/* A list written from the net and read again gives the same nodes, also in a pass. */
static void lists_name_outputs(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 }, again = { 0 };
    struct pm_net *net = list_net(splits, 2, 6, 5, &heads);
    cJSON *list = pm_net_to_json(net);
    char *text = cJSON_PrintUnformatted(list);
    struct pm_net *back = list_net(text, 2, 6, 5, &again);

    check(back->error);
    assert_int_equal(cJSON_GetArraySize(list), 8);
    assert_contains(text, "\"inputs\":[\"s:2\"]");
    assert_int_equal(back->count, net->count);
    for (int i = 0; i < net->count; i++) {
        assert_string_equal(back->nodes[i]->name, net->nodes[i]->name);
        for (int k = 0; k < net->nodes[i]->inputs; k++)
            assert_int_equal(back->nodes[i]->in[k]->index, net->nodes[i]->in[k]->index);
    }
    back->pass = "half";
    check(pm_net_from_json(back, back->nodes[0], list, "list", &again));
    assert_string_equal(pm_heads_main(&again)->name, "half/logits");
    assert_string_equal(pm_net_find(back, "t")->in[0]->name, "half/s:2");
    assert_int_equal(back->var_count, net->var_count);
    cJSON_free(text);
    cJSON_Delete(list);
    pm_net_destroy(&back);
    pm_net_destroy(&net);
}

static void refusals(void **state)
{
    (void)state;
    static const struct { const char *list, *words;
    } cases[] = {
        { "[{\"name\":\"s\",\"layer\":\"split\",\"parts\":3},{\"layer\":\"relu\",\"inputs\":\"s:"
          "3\"}]",
          "the outputs of the layer \"s\" are \"s:0\" to \"s:2\"" },
        { "[{\"name\":\"s\",\"layer\":\"relu\"},{\"layer\":\"relu\",\"inputs\":\"s:1\"}]",
          "\"s:0\" to \"s:0\"" },
        { "[{\"name\":\"s\",\"layer\":\"split\",\"parts\":3},{\"layer\":\"relu\",\"inputs\":\"p:"
          "1\"}]",
          "no layer \"p:1\"" },
        { "[{\"name\":\"s\",\"layer\":\"split\",\"parts\":2}]", "3 does not divide into 2" },
        { "[{\"name\":\"s\",\"layer\":\"split\",\"sizes\":[1,3]}]",
          "add up to 4, but the axis has 3" },
        { "[{\"name\":\"s\",\"layer\":\"split\",\"axis\":4}]", "-4..3" },
        { "[{\"name\":\"s\",\"layer\":\"split\",\"sizes\":[1,1,1,1,1,1,1,1,1]}]", "at most 8" },
        { "[{\"name\":\"s:1\",\"layer\":\"relu\"},{\"name\":\"s\",\"layer\":\"split\",\"parts\":3}"
          "]",
          "the task adds a layer of this name" },
    };

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = list_net(cases[i].list, 2, 4, 4, &heads);

        assert_int_equal(net->error, PM_ECONFIG);
        assert_contains(pm_error_text(), cases[i].words);
        pm_net_destroy(&net);
    }
}

/* The rewritten net keeps the order of nodes and the readers of every output. */
static void quantised(void **state)
{
    (void)state;
    struct pm_heads heads = { 0 };
    struct pm_net *net = list_net(splits, 2, 6, 5, &heads);

    check(pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads));
    for (int i = 0; i < net->count; i++)
        for (int k = 0; k < net->nodes[i]->inputs; k++)
            assert_true(net->nodes[i]->in[k]->index < i);
    assert_string_equal(pm_net_find(net, "b")->layer->name, "quantized_conv2d");
    assert_ptr_equal(pm_net_find(net, "b")->in[0], pm_net_find(net, "s"));
    assert_ptr_equal(pm_net_find(net, "t")->in[0], pm_net_find(net, "s:2"));
    add_head_losses(net, &heads);
    check(net->error);
    struct two_steps r = two_steps(device, net, 1, PM_RECOMPUTE_OFF);
    assert_true(isfinite(r.loss[1]) && r.loss[1] > 0);
    pm_free(r.bits);
    pm_net_destroy(&net);
}

/* ---- plans ------------------------------------------------------------------------------- */

static const char stages[] =
    "[{\"name\": \"j0\", \"layer\": \"conv2d\", \"filters\": 16, \"kernel\": 3},"
    " {\"repeat\": 4, \"layers\": ["
    "  {\"name\": \"half%d\", \"layer\": \"split\"},"
    "  {\"name\": \"r%d\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"bias\": false},"
    "  {\"name\": \"n%d\", \"layer\": \"batch_norm\", \"activation\": \"hard_swish\"},"
    "  {\"name\": \"j%d\", \"layer\": \"concat\", \"inputs\": [\"n%d\", \"half%d:1\"]}]},"
    " {\"name\": \"g\", \"layer\": \"global_pool\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

static size_t count_copied(const struct pm_plan *plan)
{
    size_t values, copied = 0;
    const struct pm_value *value = pm_plan_values(plan, &values);

    for (size_t i = 0; i < values; i++)
        copied += value[i].kind == PM_VALUE_OUTPUT && !value[i].loss;
    return copied;
}

/* Outputs are copied out by name, each once, also with recomputing. The second half of j0 passes
 * through several stages. */
static void copied_out(void **state)
{
    static const char *const names[] = { "j0", "half1:1", "half2:1", "half3:1", "half4:1", NULL };
    static const enum pm_recompute modes[] = { PM_RECOMPUTE_OFF, PM_RECOMPUTE_MOST };
    enum { SIDE = 12, PLACES = 2 * SIDE * SIDE, WHOLE = 16, HALF = 8 };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(modes); k++) {
        struct pm_net *net = net_with_losses(stages, 2, SIDE);
        struct pm_variables *v = NULL;
        struct pm_plan *plan = NULL;

        check(pm_variables_create(device, net, true, NULL, &v));
        check(pm_variables_allocate(v));
        check(pm_variables_init(v, 5, NULL));
        check(pm_plan_create(net, device, v, &(struct pm_plan_options){
            .train = true, .loss_share = 1, .micro_batches = 1, .outputs = names, .slots = 1,
            .recompute = modes[k] }, &plan));
        check(pm_plan_load(plan));
        fill_micro_batch(plan, net, 0);
        check(pm_plan_submit(plan, 0));
        check(pm_plan_wait(plan, 0));
        for (size_t i = 1; names[i]; i++) {
            const float *whole = pm_plan_output(plan, 0, "j0", 0);
            const float *part = pm_plan_output(plan, 0, names[i], 0);

            for (int at = 0; at < PLACES * HALF; at++)
                assert_true(part[at] == whole[at / HALF * WHOLE + HALF + at % HALF]);
        }
        assert_int_equal(count_copied(plan), 5);
        assert_true((pm_plan_memory(plan).again > 0) == (modes[k] != PM_RECOMPUTE_OFF));
        pm_plan_destroy(&plan);
        pm_variables_destroy(&v);
        pm_net_destroy(&net);
    }
}

static void printed(void **state)
{
    (void)state;
    struct pm_net *net = net_with_losses(splits, 2, 6);
    struct pm_plan *plan = NULL;
    char text[16384];
    FILE *f = fmemopen(text, sizeof text, "w");

    check(pm_plan_create(net, device, NULL, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = 1 }, &plan));
    pm_plan_print(plan, f, true);
    fclose(f);
    assert_contains(text, " s\n");   /* one value for each */
    assert_contains(text, " s:1\n");
    assert_contains(text, " s:2\n");
    assert_contains(text, " t:1\n");
    pm_plan_destroy(&plan);
    pm_net_destroy(&net);
}

/* Copies of the same floats, and sums of the same two. -0 + 0 is 0, so values are compared, not
 * bits. */
static void same_steps(int micro_batches)
{
    struct pm_net *net = net_with_losses(splits, 4 / micro_batches, 6);
    struct pm_net *plain = net_with_losses(slices, 4 / micro_batches, 6);
    struct two_steps r = two_steps(device, net, micro_batches, PM_RECOMPUTE_OFF);
    struct two_steps want = two_steps(device, plain, micro_batches, PM_RECOMPUTE_OFF);

    assert_true(want.loss[0] > 0);
    assert_memory_equal(r.loss, want.loss, sizeof r.loss);
    assert_int_equal(r.bytes, want.bytes);
    for (size_t i = 0; i < r.bytes / 4; i++)
        assert_true(((float *)(void *)r.bits)[i] == ((float *)(void *)want.bits)[i]);
    pm_free(r.bits);
    pm_free(want.bits);
    pm_net_destroy(&net);
    pm_net_destroy(&plain);
}

static void same_as_slices(void **state)
{
    (void)state;
    same_steps(1);
    same_steps(2);
}

static void same_on(const char *driver)
{
    struct pm_device *cpu = device, *gpu = device_called(driver, true);

    if (!gpu)
        skip();
    device = gpu;
    same_steps(2);
    assert_int_equal(pm_device_messages(), 0);
    pm_device_close(&device);
    device = cpu;
}

static void same_on_lavapipe(void **state)
{
    (void)state;
    same_on("llvmpipe");
}

static void same_on_swiftshader(void **state)
{
    (void)state;
    same_on("SwiftShader");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_nodes), cmocka_unit_test(lists_name_outputs),
        cmocka_unit_test(refusals),          cmocka_unit_test(quantised),
        cmocka_unit_test(copied_out),        cmocka_unit_test(printed),
        cmocka_unit_test(same_as_slices),    cmocka_unit_test(same_on_lavapipe),
        cmocka_unit_test(same_on_swiftshader),
    };
    int failed;

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
