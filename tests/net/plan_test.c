/* The planner: the memory of activations is at most 1.15 times the largest sum of live values,
 * values that live at the same time share no bytes, and every value is written before it is
 * read. */
#include "named_net.h"

#include <pumice/plan.h>

static struct pm_device *device;

static void check(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

static struct pm_net *start(int batch, int size, struct pm_node **images)
{
    struct pm_net *net = pm_net_create();

    *images = pm_net_input(net, "images", PM_SHAPE4(batch, size, size, 3), PM_F32);
    return net;
}

static void add_loss(struct pm_net *net, struct pm_node *logits, int batch)
{
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(batch), PM_I32);

    pm_net_add_many(net, "loss", (struct pm_node *[]){ logits, labels }, 2,
                    "softmax_cross_entropy");
    check(net->error);
}

static struct pm_net *named(const char *name, int batch, int size)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, batch, size, size, 1000, NULL, &heads);

    add_loss(net, pm_heads_main(&heads), batch);
    return net;
}

/* A U-shaped net: the output of every level is read again on the way back. */
static struct pm_net *long_skips(void)
{
    struct pm_node *x, *skip[4];
    struct pm_net *net = start(4, 64, &x);
    char name[32];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "down%d", i);
        skip[i] = x =
            pm_net_add(net, name, x, "conv2d filters=%d kernel=3 activation=relu", 8 << i);
        snprintf(name, sizeof name, "pool%d", i);
        x = pm_net_add(net, name, x, "max_pool kernel=2 stride=2 padding=valid");
    }
    for (int i = 4; i-- > 0;) {
        snprintf(name, sizeof name, "up%d", i);
        x = pm_net_add(net, name, x, "conv2d_transpose filters=%d kernel=2 stride=2", 8 << i);
        snprintf(name, sizeof name, "join%d", i);
        x = pm_net_add_many(net, name, (struct pm_node *[]){ x, skip[i] }, 2, "concat");
        snprintf(name, sizeof name, "mix%d", i);
        x = pm_net_add(net, name, x, "conv2d filters=%d kernel=3 activation=relu", 8 << i);
    }
    x = pm_net_add(net, "mean", x, "global_pool");
    x = pm_net_add(net, "logits", x, "fully_connected units=10");
    add_loss(net, x, 4);
    return net;
}

static int root(const struct pm_value *v, int i)
{
    while (v[i].alias >= 0)
        i = v[i].alias;
    return i;
}

/* Whether all parts of a block are in their memory. */
static bool holds_parts(const struct pm_value *v, size_t values, int block, const int *holds)
{
    int parts = 0;

    for (size_t i = 0; i < values; i++) {
        if (v[i].within != block)
            continue;
        if (holds[i] != (int)i)
            return false;
        parts++;
    }
    return parts > 0;
}

static bool placed(const struct pm_value *v)
{
    return (v->kind == PM_VALUE_ACTIVATION || v->kind == PM_VALUE_SCRATCH ||
            v->kind == PM_VALUE_INPUT || v->kind == PM_VALUE_OUTPUT) &&
           v->alias < 0 && v->within < 0 && v->first >= 0;
}

static void check_overlaps(const struct pm_value *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; placed(&v[i]) && k < count; k++) {
            bool together = placed(&v[k]) && v[i].block == v[k].block &&
                            v[i].first <= v[k].last && v[k].first <= v[i].last;

            if (together && v[i].offset < v[k].offset + v[k].bytes &&
                v[k].offset < v[i].offset + v[i].bytes)
                fail_msg("%s and %s live at once and overlap", v[i].name, v[k].name);
        }
}

/* Checks that the parts of a block lie in it, apart from each other, and that it lives as long as
 * they do. Returns the number of parts. */
static int check_blocks(const struct pm_value *v, size_t count)
{
    int parts = 0;

    for (size_t i = 0; i < count; i++) {
        const struct pm_value *block = v[i].within < 0 ? NULL : &v[v[i].within];

        if (!block || v[i].first < 0)
            continue;
        parts++;
        assert_true(v[i].at % 256 == 0 && v[i].at + v[i].bytes <= block->bytes);
        assert_true(block->first <= v[i].first && block->last >= v[i].last);
        for (size_t k = 0; k < i; k++)
            assert_true(v[k].within != v[i].within || v[k].at + v[k].bytes <= v[i].at ||
                        v[i].at + v[i].bytes <= v[k].at);
    }
    return parts;
}

/* Walks through the calls in order and tracks which value each storage holds. A value that a call
 * reads or adds to must have been written before; inputs and values kept on the device are written
 * at the start. A storage merged in place must not be written before the last read of its value. */
static void check_order(const struct pm_planned_call *calls, size_t count,
                        const struct pm_value *v, size_t values)
{
    int *holds = malloc(values * sizeof *holds); /* the value that each storage holds */

    for (size_t i = 0; i < values; i++)
        holds[i] = -1;
    for (size_t i = 0; i < count; i++) {
        struct pm_buf_spec spec[PM_MAX_BUFS];
        int bufs = pm_call_bufs(calls[i].kernel, calls[i].params, spec);

        for (int k = 0; k < bufs; k++) {
            int value = calls[i].buf[k];

            if (value < 0 || v[value].kind != PM_VALUE_ACTIVATION)
                continue;
            if ((spec[k].access == 'r' || spec[k].access == 'u') &&
                holds[root(v, value)] != value && !holds_parts(v, values, value, holds))
                fail_msg("call %zu, %s of %s: %s is read, but its memory holds another value", i,
                         calls[i].kernel->name, calls[i].label, spec[k].name);
        }
        for (int k = 0; k < bufs; k++)
            if (calls[i].buf[k] >= 0 && spec[k].access == 'w')
                holds[root(v, calls[i].buf[k])] = calls[i].buf[k];
    }
    free(holds);
}

static void update_averages(struct pm_calls *c, void *ctx)
{
    static const uint32_t finite = 1;

    (void)ctx;
    pm_calls_layer_updates(c, pm_calls_constant(c, "finite", &finite, PM_SHAPE1(1), PM_U32));
}

static int batch_norms(const struct pm_net *net)
{
    int count = 0;

    for (int i = 0; i < net->count; i++)
        count += strcmp(net->nodes[i]->layer->name, "batch_norm") == 0;
    return count;
}

static int calls_of(const struct pm_planned_call *calls, size_t count, const char *kernel)
{
    int found = 0;

    for (size_t i = 0; i < count; i++)
        found += strcmp(calls[i].kernel->name, kernel) == 0;
    return found;
}

/* One call updates the moving averages of all batch norms. It reads means and variances as one
 * block. */
static void check_plan(struct pm_net *net, int micro_batches, enum pm_recompute recompute)
{
    struct pm_variables *vars = NULL;
    struct pm_plan *plan = NULL;
    struct pm_plan_memory m;
    const struct pm_planned_call *calls;
    const struct pm_value *values;
    size_t call_count, value_count;

    check(pm_variables_create(device, net, true, NULL, &vars));
    check(pm_plan_create(net, device, vars, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = micro_batches, .recompute = recompute,
        .update = update_averages }, &plan));
    m = pm_plan_memory(plan);
    calls = pm_plan_calls(plan, &call_count);
    values = pm_plan_values(plan, &value_count);
    check_overlaps(values, value_count);
    assert_int_equal(check_blocks(values, value_count), 2 * batch_norms(net));
    assert_int_equal(calls_of(calls, call_count, "batch_norm_update"), batch_norms(net) > 0);
    check_order(calls, call_count, values, value_count);
    print_message("%zu calls, %.1f MiB of activations, %.3f of the peak\n", call_count,
                  (double)m.activations / 1048576, (double)m.activations / (double)m.peak_live);
    assert_true((double)m.activations <= 1.15 * (double)m.peak_live);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&vars);
    pm_net_destroy(&net);
}

static void test_resnet(void **state)
{
    (void)state;
    check_plan(named("resnet_v1_50", 8, 224), 1, PM_RECOMPUTE_OFF);
}

static void test_mobilenet(void **state)
{
    (void)state;
    check_plan(named("mobilenet_v1", 16, 224), 1, PM_RECOMPUTE_OFF);
}

static void test_long_skips(void **state)
{
    (void)state;
    check_plan(long_skips(), 1, PM_RECOMPUTE_OFF);
}

/* The activations of a micro-batch end before the next one begins. So memory grows only by the
 * inputs, which are all present from the start. */
static void test_micro_batches(void **state)
{
    struct pm_plan_memory m[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pm_net *net = named("mobilenet_v1", 4, 96);
        struct pm_variables *vars = NULL;
        struct pm_plan *plan = NULL;

        check(pm_variables_create(device, net, true, NULL, &vars));
        check(pm_plan_create(net, device, vars, &(struct pm_plan_options){
            .train = true, .loss_share = 1, .micro_batches = i ? 4 : 1 }, &plan));
        m[i] = pm_plan_memory(plan);
        pm_plan_destroy(&plan);
        pm_variables_destroy(&vars);
        pm_net_destroy(&net);
    }
    assert_true(m[1].activations < m[0].activations + 4 * (4u * 96 * 96 * 3 * 4 + 4096));
    check_plan(named("mobilenet_v1", 4, 96), 4, PM_RECOMPUTE_OFF);
}

/* Recomputed values are also written before they are read. */
static void test_recomputed(void **state)
{
    static const enum pm_recompute modes[] = { PM_RECOMPUTE_HALF, PM_RECOMPUTE_MOST };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(modes); i++) {
        check_plan(named("resnet_v1_50", 8, 224), 1, modes[i]);
        check_plan(named("inception_v3", 4, 299), 1, modes[i]);
        check_plan(named("mobilenet_v2", 4, 224), 2, modes[i]);
        check_plan(named("vgg_16", 2, 224), 1, modes[i]);
        check_plan(long_skips(), 1, modes[i]);
    }
}

/* Variables are shared by name: a batch norm without gamma uses the other one's moving averages,
 * not the variables at the same places of its list. */
static void test_shares_by_name(void **state)
{
    struct pm_node *x, *first, *second;
    struct pm_net *net = start(2, 8, &x);
    cJSON *options = cJSON_Parse("{\"scale\": false}");

    (void)state;
    first = pm_net_add(net, "first", x, "batch_norm");
    second = pm_net_add_json(net, "second", &first, 1, "batch_norm", options, first, "test");
    check(net->error);
    assert_int_equal(first->var_count, 4);
    assert_int_equal(second->var_count, 3);
    for (int i = 0; i < 3; i++) {
        const char *name = net->vars[second->vars[i]]->name;

        assert_null(strstr(name, "gamma"));
        assert_ptr_equal(strstr(name, "first/"), name);
    }
    assert_int_not_equal(second->vars[1], second->vars[2]);
    cJSON_Delete(options);
    pm_net_destroy(&net);
}

/* Whether a call of this node is in a plan with these outputs. */
static bool is_computed(struct pm_net *net, bool train, const char *const *outputs,
                        const char *name)
{
    const struct pm_plan_options o = { .train = train, .loss_share = 1, .micro_batches = 1,
                                       .outputs = outputs };
    const struct pm_planned_call *calls;
    struct pm_variables *variables;
    struct pm_plan *plan;
    bool found = false;
    size_t count;

    check(pm_variables_create(device, net, train, NULL, &variables));
    check(pm_plan_create(net, device, variables, &o, &plan));
    calls = pm_plan_calls(plan, &count);
    for (size_t i = 0; i < count && !found; i++)
        found = strcmp(calls[i].label, name) == 0;
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    return found;
}

/* A plan computes only what its outputs and losses read, and in training what has moving averages.
 * Without both it computes all. */
static void test_computes_what_is_needed(void **state)
{
    static const char *const logits[] = { "logits", NULL }, *const both[] = { "logits", "side",
                                                                              NULL };
    struct pm_node *x, *a;
    struct pm_net *net = start(2, 8, &x);

    (void)state;
    a = pm_net_add(net, "a", x, "conv2d filters=4 kernel=3");
    x = pm_net_add(net, "before", a, "conv2d filters=4 kernel=3");
    pm_net_add(net, "side", x, "batch_norm");
    pm_net_add(net, "after", pm_net_find(net, "side"), "relu");
    x = pm_net_add(net, "logits", pm_net_add(net, "mean", a, "global_pool"),
                   "fully_connected units=3");
    check(net->error);
    assert_true(is_computed(net, false, logits, "a") && is_computed(net, false, logits, "logits"));
    assert_false(is_computed(net, false, logits, "before"));
    assert_false(is_computed(net, false, logits, "side"));
    assert_true(is_computed(net, false, both, "before"));
    assert_false(is_computed(net, false, both, "after"));
    assert_true(is_computed(net, false, NULL, "after"));
    add_loss(net, x, 2);
    assert_true(is_computed(net, false, NULL, "loss"));
    assert_false(is_computed(net, false, NULL, "before"));
    assert_true(is_computed(net, true, NULL, "before") && is_computed(net, true, NULL, "side"));
    assert_false(is_computed(net, true, NULL, "after"));
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnet),
        cmocka_unit_test(test_mobilenet),
        cmocka_unit_test(test_long_skips),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_recomputed),
        cmocka_unit_test(test_shares_by_name),
        cmocka_unit_test(test_computes_what_is_needed),
    };
    struct pm_device_info *list;
    size_t count, index;
    int failed;

    if (pm_device_list(&list, &count) < 0 ||
        pm_device_find(list, count, "cpu", "test", &index) < 0 ||
        pm_device_open(&list[index], NULL, &device) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    pm_free(list);
    return failed;
}
