/* Recomputing: activations of nets at batch 32 fit into half the memory. A plan that recomputes
 * values gives the same bits in loss, gradients and moving averages as one that keeps them, on
 * each device, with micro-batches, dropout, dropped paths, skips and auxiliary heads. */
#include "two_steps.h"

static struct pm_device *device;

/* ---- nets ------------------------------------------------------------------------------- */

/* Long and short skips, dropout, a dropped path, concatenated and added branches. */
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

/* Three parts of the channels: one with two readers, one without a reader, one read by a dropout
 * layer. */
static const char parts[] =
    "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 24, \"kernel\": 3, \"bias\": false},"
    " {\"name\": \"an\", \"layer\": \"batch_norm\", \"activation\": \"relu\"},"
    " {\"name\": \"s\", \"layer\": \"split\", \"sizes\": [8, 4, 12]},"
    " {\"name\": \"c\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"inputs\": \"s:0\"},"
    " {\"name\": \"sum\", \"layer\": \"add\", \"inputs\": [\"c\", \"s\"]},"
    " {\"name\": \"d\", \"layer\": \"dropout\", \"keep\": 0.7, \"inputs\": \"s:2\"},"
    " {\"name\": \"h\", \"layer\": \"split\", \"parts\": 3},"
    " {\"name\": \"j\", \"layer\": \"concat\", \"inputs\": [\"h:2\", \"sum\", \"h:1\"]},"
    " {\"repeat\": 3, \"layers\": ["
    "  {\"name\": \"half%d\", \"layer\": \"split\"},"
    "  {\"name\": \"r%d\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"bias\": false},"
    "  {\"name\": \"n%d\", \"layer\": \"batch_norm\", \"activation\": \"hard_swish\"},"
    "  {\"name\": \"j%d\", \"layer\": \"concat\", \"inputs\": [\"half%d:1\", \"n%d\"]}]},"
    " {\"name\": \"g\", \"layer\": \"global_pool\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

/* ---- memory ----------------------------------------------------------------------------- */

static struct pm_plan_memory memory_of(const char *name, int batch, int size, int micro_batches,
                                       enum pm_recompute recompute)
{
    struct pm_net *net = net_with_losses(name, batch, size);
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
    /* floor: bytes that some calls need at once, more than half of the whole. VGG's second
     * convolution reads its input and the gradient of its output and writes that of its input:
     * 32 x 224 x 224 x 64 floats each. */
    static const struct { const char *name; int size; size_t floor; } nets[] = {
        { "resnet_v1_50", 224, 0 }, { "inception_v3", 299, 0 }, { "mobilenet_v2", 224, 0 },
        { "vgg_16", 224, (size_t)3 * 32 * 224 * 224 * 64 * sizeof(float) },
        { "resnet_v2_152", 224, 0 },
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
        if (nets[i].floor) {
            assert_true(half.activations > nets[i].floor);
            assert_true(half.activations - nets[i].floor <= nets[i].floor / 20);
        } else {
            assert_true(half.activations <= whole.activations / 2);
        }
        assert_true(most.activations <= half.activations);
        assert_true(half.again_work <= 0.25);
    }
}

/* With two micro-batches each recomputes the same values; memory grows only by the inputs. */
static void test_micro_batches(void **state)
{
    struct pm_plan_memory one = memory_of("resnet_v1_50", 4, 128, 1, PM_RECOMPUTE_HALF);
    struct pm_plan_memory two = memory_of("resnet_v1_50", 4, 128, 2, PM_RECOMPUTE_HALF);

    (void)state;
    assert_true(one.again > 0);
    assert_true(two.again > 0 && two.again % 2 == 0);
    assert_true(two.activations < one.activations + 2 * (4u * 128 * 128 * 3 * 4 + 4096));
}

/* When everything fits, nothing is recomputed. */
static void test_auto(void **state)
{
    struct pm_plan_memory m = memory_of("mobilenet_v2", 2, 64, 1, PM_RECOMPUTE_AUTO);

    (void)state;
    assert_int_equal(m.again, 0);
    assert_true(m.live_without_recompute == m.peak_live);
}

/* ---- the same bits ---------------------------------------------------------------------- */

static struct two_steps run(const char *name, int batch, int size, int micro_batches,
                            enum pm_recompute recompute)
{
    struct pm_net *net = net_with_losses(name, batch, size);
    struct two_steps r = two_steps(device, net, micro_batches, recompute);

    pm_net_destroy(&net);
    return r;
}

static void same(const char *name, int batch, int size, int micro_batches)
{
    static const enum pm_recompute modes[] = { PM_RECOMPUTE_HALF, PM_RECOMPUTE_MOST };
    struct two_steps without = run(name, batch, size, micro_batches, PM_RECOMPUTE_OFF);

    assert_int_equal(without.again, 0);
    assert_true(without.loss[0] > 0);
    for (size_t i = 0; i < PM_COUNT(modes); i++) {
        struct two_steps r = run(name, batch, size, micro_batches, modes[i]);

        print_message("%.12s: %d calls again\n", name, r.again);
        assert_true(r.again > 0);
        assert_memory_equal(r.loss, without.loss, sizeof r.loss);
        assert_int_equal(r.bytes, without.bytes);
        assert_memory_equal(r.bits, without.bits, r.bytes);
        pm_free(r.bits);
    }
    pm_free(without.bits);
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
    same(skips, 2, 32, 1);
    same(skips, 2, 32, 2);
    same(parts, 2, 16, 1);
    same(parts, 2, 16, 2);
}

static void on_driver(const char *name, void (*nets)(void))
{
    struct pm_device *cpu = device;

    device = device_called(name, false);
    if (!device) {
        device = cpu;
        skip();
    }
    nets();
    pm_device_close(&device);
    device = cpu;
}

static void lavapipe(void)
{
    same("lenet", 2, 28, 2);
    same("mobilenet_v2", 2, 64, 1);
    same(skips, 2, 32, 2);
    same(parts, 2, 16, 2);
}

static void swiftshader(void)
{
    same(skips, 2, 16, 1);
    same(parts, 2, 12, 1);
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

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
