/* Recomputing: activations of nets at batch 32 fit into half the memory; a plan that computes
 * values again gives the same bits in loss, gradients and moving averages as one that keeps
 * them, on each device, with micro-batches, dropout, dropped paths, skips and auxiliary heads. */
#include "named_net.h"

#include <pumice/plan.h>

static struct pm_device *device;

static void check(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

/* ---- nets ------------------------------------------------------------------------------- */

/* Long and short skips, dropout, a dropped path, joined and added branches. */
static const char skips[] =
    "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"bias\": false},"
    " {\"name\": \"an\", \"layer\": \"batch_norm\", \"activation\": \"relu\"},"
    " {\"name\": \"b\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"activation\": "
    "\"relu\"}, {\"name\": \"bd\", \"layer\": \"dropout\", \"keep\": 0.7},"
    " {\"name\": \"c\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"bias\": false},"
    " {\"name\": \"cn\", \"layer\": \"batch_norm\", \"inputs\": [\"c\", \"an\"],"
    "  \"activation\": \"relu6\"},"
    " {\"name\": \"p\", \"layer\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"
    " {\"repeat\": 4, \"layers\": ["
    "  {\"name\": \"r%d\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"bias\": false},"
    "  {\"name\": \"n%d\", \"layer\": \"batch_norm\", \"activation\": \"hard_swish\"},"
    "  {\"name\": \"s%d\", \"layer\": \"add\", \"inputs\": [\"@previous\", \"@input\"]}]},"
    " {\"name\": \"up\", \"layer\": \"conv2d_transpose\", \"filters\": 8, \"kernel\": 2, "
    "\"stride\": 2}, {\"name\": \"j\", \"layer\": \"concat\", \"inputs\": [\"up\", \"bd\", "
    "\"an\"]}, {\"name\": \"l\", \"layer\": \"local_response_norm\"},"
    " {\"name\": \"m\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"activation\": "
    "\"relu\"}, {\"name\": \"md\", \"layer\": \"drop_path\", \"keep\": 0.6, \"inputs\": [\"m\", "
    "\"up\"]}, {\"name\": \"mc\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 1, "
    "\"activation\": \"relu\"}, {\"name\": \"q\", \"layer\": \"avg_pool\", \"kernel\": 2, "
    "\"stride\": 2}, {\"name\": \"g\", \"layer\": \"global_pool\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

static struct pm_net *build(const char *name, int batch, int size)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = name ? named_net(name, batch, size, size, 10, NULL, &heads)
                              : pm_net_create();

    if (!name) {
        struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(batch, size, size, 3),
                                              PM_F32);
        cJSON *list = cJSON_Parse(skips);

        assert_non_null(list);
        check(pm_net_from_json(net, images, list, "skips", &heads));
        cJSON_Delete(list);
    }
    check(net->error);
    add_head_losses(net, &heads);
    check(net->error);
    return net;
}

/* ---- memory ----------------------------------------------------------------------------- */

static struct pm_plan_memory memory_of(const char *name, int batch, int size, int micro_batches,
                                       enum pm_recompute recompute)
{
    struct pm_net *net = build(name, batch, size);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    struct pm_plan_memory m;

    check(pm_variables_create(device, net, true, NULL, &v));
    check(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = micro_batches, .recompute = recompute },
        &plan));
    m = pm_plan_memory(plan);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    return m;
}

static void test_half(void **state)
{
    static const struct { const char *name; int size; } nets[] = {
        { "resnet_v1_50", 224 }, { "inception_v3", 299 }, { "mobilenet_v2", 224 },
        { "vgg_16", 224 }, { "resnet_v2_152", 224 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_plan_memory whole = memory_of(nets[i].name, 32, nets[i].size, 1,
                                                PM_RECOMPUTE_OFF);
        struct pm_plan_memory half = memory_of(nets[i].name, 32, nets[i].size, 1,
                                               PM_RECOMPUTE_HALF);
        struct pm_plan_memory most = memory_of(nets[i].name, 32, nets[i].size, 1,
                                               PM_RECOMPUTE_MOST);

        print_message("%s: %.0f MiB; half %.0f, %d calls again, %.2f of the work; most %.0f, %d, "
                      "%.2f\n", nets[i].name, (double)whole.activations / 1048576,
                      (double)half.activations / 1048576, half.again, half.again_work,
                      (double)most.activations / 1048576, most.again, most.again_work);
        assert_int_equal(whole.again, 0);
        assert_true(half.again > 0 && half.calls == whole.calls + half.again);
        assert_true(half.live_without_recompute == whole.peak_live);
        assert_true(half.activations <= whole.activations / 2);
        assert_true(most.activations <= half.activations);
        assert_true(half.again_work <= 0.25);
    }
}

/* With two micro-batches the same is computed again in each; memory grows by the inputs alone. */
static void test_micro_batches(void **state)
{
    struct pm_plan_memory one = memory_of("resnet_v1_50", 4, 128, 1, PM_RECOMPUTE_HALF);
    struct pm_plan_memory two = memory_of("resnet_v1_50", 4, 128, 2, PM_RECOMPUTE_HALF);

    (void)state;
    assert_true(one.again > 0);
    assert_true(two.again > 0 && two.again % 2 == 0);
    assert_true(two.activations < one.activations + 2 * (4u * 128 * 128 * 3 * 4 + 4096));
}

/* Where everything fits, nothing is computed again. */
static void test_auto(void **state)
{
    struct pm_plan_memory m = memory_of("mobilenet_v2", 2, 64, 1, PM_RECOMPUTE_AUTO);

    (void)state;
    assert_int_equal(m.again, 0);
    assert_true(m.live_without_recompute == m.peak_live);
}

/* ---- the same bits ---------------------------------------------------------------------- */

struct results {
    double loss[2];
    char *bits;     /* gradients, then all variables */
    size_t bytes;
    int again;
};

static void update(struct pm_calls *c, void *ctx)
{
    static const uint32_t finite = 1;

    (void)ctx;
    pm_calls_layer_updates(c, pm_calls_constant(c, "finite", &finite, PM_SHAPE1(1), PM_U32));
}

static void fill(struct pm_plan *p, const struct pm_net *net, int m)
{
    size_t count = pm_shape_count(pm_net_find(net, "images")->out_shape);
    float *images = pm_plan_input(p, 0, "images", m);
    int32_t *labels = pm_plan_input(p, 0, "labels", m);

    for (size_t i = 0; i < count; i++)
        images[i] = (float)((i * 2654435761u + (size_t)m * 97) % 1000) / 500 - 1;
    for (int i = 0; i < net->batch; i++)
        labels[i] = (i + m) % 10;
}

static struct results run(const char *name, int batch, int size, int micro_batches,
                          enum pm_recompute recompute)
{
    struct pm_net *net = build(name, batch, size);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    struct results r = { 0 };
    struct pm_step *step;

    check(pm_variables_create(device, net, true, NULL, &v));
    check(pm_variables_allocate(v));
    check(pm_variables_init(v, 5, NULL));
    check(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = micro_batches, .recompute = recompute,
        .update = update, .slots = 1 }, &plan));
    check(pm_plan_load(plan));
    for (uint32_t i = 0; i < 2; i++) {
        for (int m = 0; m < micro_batches; m++)
            fill(plan, net, m);
        step = pm_plan_step(plan, 0);
        if (step)
            *step = (struct pm_step){ .step = i, .seed_low = 3, .loss_scale = 1 };
        check(pm_plan_submit(plan, 0));
        check(pm_plan_wait(plan, 0));
        r.loss[i] = pm_plan_loss(plan, 0);
    }
    r.again = pm_plan_memory(plan).again;
    r.bytes = v->gradient_bytes + v->bytes;
    r.bits = pm_malloc(r.bytes);
    check(pm_buffer_read(device, v->grads, 0, r.bits, v->gradient_bytes));
    check(pm_buffer_read(device, v->values, 0, r.bits + v->gradient_bytes, v->bytes));
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    return r;
}

static void same(const char *name, int batch, int size, int micro_batches)
{
    static const enum pm_recompute modes[] = { PM_RECOMPUTE_HALF, PM_RECOMPUTE_MOST };
    struct results kept = run(name, batch, size, micro_batches, PM_RECOMPUTE_OFF);

    assert_int_equal(kept.again, 0);
    assert_true(kept.loss[0] > 0);
    for (size_t i = 0; i < PM_COUNT(modes); i++) {
        struct results r = run(name, batch, size, micro_batches, modes[i]);

        print_message("%s: %d calls again\n", name ? name : "skips", r.again);
        assert_true(r.again > 0);
        assert_memory_equal(r.loss, kept.loss, sizeof r.loss);
        assert_int_equal(r.bytes, kept.bytes);
        assert_memory_equal(r.bits, kept.bits, r.bytes);
        pm_free(r.bits);
    }
    pm_free(kept.bits);
}

/* False: this machine lacks the device. */
static bool open_device(const char *name)
{
    struct pm_device_info *list;
    size_t count, index;
    bool found;

    check(pm_device_list(&list, &count));
    found = pm_device_find(list, count, name, "recompute_test", &index) == PM_OK;
    if (found)
        check(pm_device_open(&list[index], &(struct pm_device_options){ .threads = 2 }, &device));
    else
        print_message("%s\n", pm_error_text());
    pm_free(list);
    return found;
}

static void test_cpu(void **state)
{
    (void)state;
    same("lenet", 4, 28, 1);
    same("lenet", 2, 28, 3);
    same("cifarnet", 4, 32, 1);
    same("resnet_v1_50", 2, 33, 1);
    same("inception_v3", 2, 107, 1);
    same("mobilenet_v2", 2, 64, 2);
    same("mobilenet_v3_small", 2, 64, 1);
    same(NULL, 2, 32, 1);
    same(NULL, 2, 32, 2);
}

static void on_driver(const char *name, void (*nets)(void))
{
    struct pm_device *cpu = device;

    if (!open_device(name))
        skip();
    nets();
    pm_device_close(&device);
    device = cpu;
}

static void lavapipe(void)
{
    same("lenet", 2, 28, 2);
    same("mobilenet_v2", 2, 64, 1);
    same(NULL, 2, 32, 2);
}

static void swiftshader(void)
{
    same(NULL, 2, 16, 1);
}

static void test_lavapipe(void **state)
{
    (void)state;
    on_driver("llvmpipe", lavapipe);
}

static void test_swiftshader(void **state)
{
    (void)state;
    on_driver("SwiftShader", swiftshader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half),      cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_auto),      cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_lavapipe),  cmocka_unit_test(test_swiftshader),
    };
    int failed;

    if (!open_device("cpu"))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
