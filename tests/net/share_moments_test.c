/* Convolutions compute the sums of the batch norm that follows them. The same net with two sign
 * changes between each convolution and its batch norm computes them in batch norm: loss, gradients
 * and moving averages must agree. The net has the cases that must stay apart: a bias, an activation
 * or another layer between the two, a view with other channels, frozen statistics. */
#include "tile_device.h"
#include "two_steps.h"

#include "net/share_moments.h"

#include <math.h>

static struct pm_device *device;

/* ---- nets ------------------------------------------------------------------------------- */

static struct pm_node *layer(struct pm_net *net, const char *name, struct pm_node *x,
                             const char *options)
{
    return pm_net_add(net, name, x, "%s", options);
}

/* Adds a layer and batch norm on it. apart: with two sign changes between them. */
static struct pm_node *pair(struct pm_net *net, bool apart, const char *name, struct pm_node *x,
                            const char *options, const char *norm)
{
    char names[3][32];

    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "%s_%s", name, (const char *[]){ "a", "b", "bn" }[i]);
    x = layer(net, name, x, options);
    if (apart)
        x = layer(net, names[1], layer(net, names[0], x, "neg"), "neg");
    return layer(net, names[2], x, norm);
}

static struct pm_net *build(bool apart)
{
    static const char relu[] = "batch_norm activation=relu";
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(2, 21, 19, 3), PM_F32), *y;
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(2), PM_I32);

    x = pair(net, apart, "stem", x, "conv2d filters=12 kernel=3 stride=2 bias=false", relu);
    x = pair(net, apart, "groups", x, "conv2d filters=20 kernel=3 groups=4 bias=false", relu);
    x = pair(net, apart, "odd", x, "conv2d filters=7 kernel=1 bias=false", relu);
    y = layer(net, "odd_again", x, "conv2d filters=7 kernel=3 bias=false");
    x = pm_net_add_many(net, "sum", (struct pm_node *[]){ y, x }, 2, "%s", relu);
    y = layer(net, "two", x, "conv2d filters=8 kernel=3 bias=false");
    if (apart)
        y = layer(net, "two_b", layer(net, "two_a", y, "neg"), "neg");
    x = pm_net_add_many(net, "two_sum", (struct pm_node *[]){
        layer(net, "two_bn", y, relu), layer(net, "two_bn_again", y, "batch_norm") }, 2, "add");
    x = pair(net, apart, "wide", x, "conv2d_transpose filters=8 kernel=3 stride=2 bias=false",
             relu);
    x = pair(net, apart, "depth", x, "depthwise_conv2d kernel=3 stride=2 bias=false", relu);
    x = pair(net, apart, "biased", x, "conv2d filters=8 kernel=1", relu);
    x = pair(net, apart, "active", x, "conv2d filters=8 kernel=1 bias=false activation=relu",
             relu);
    x = pair(net, apart, "frozen", x, "conv2d filters=8 kernel=1 bias=false",
             "batch_norm frozen=true");
    x = layer(net, "viewed", x, "conv2d filters=8 kernel=1 bias=false");
    x = layer(net, "view", x, "reshape shape=[-1,16]");
    x = layer(net, "view_bn", x, relu);
    x = layer(net, "back", x, "reshape shape=[2,-1]");
    pm_net_add_many(net, "loss", (struct pm_node *[]){
        layer(net, "logits", x, "fully_connected units=10"), labels }, 2, "softmax_cross_entropy");
    check(net->error);
    return net;
}

/* ---- calls ------------------------------------------------------------------------------ */

/* Counts the calls whose moments are handed over (giving) and taken. */
static void count_calls(struct pm_device *on, bool apart, enum pm_recompute recompute, int *gives,
                        int *takes)
{
    struct pm_net *net = build(apart);
    struct pm_plan *plan = NULL;
    const struct pm_planned_call *calls;
    size_t count;

    *gives = *takes = 0;
    check(pm_plan_create(
        net, on, NULL,
        &(struct pm_plan_options){ .train = true, .loss_share = 1, .recompute = recompute },
        &plan));
    calls = pm_plan_calls(plan, &count);
    for (size_t i = 0; i < count; i++) {
        const struct pm_kernel *k = calls[i].kernel;
        int flag = 0;

        if (k->moments)
            memcpy(&flag, (const char *)calls[i].params + k->moments - 1, sizeof flag);
        *(strcmp(k->name, "batch_norm_stats") == 0 ? takes : gives) += flag;
    }
    pm_plan_destroy(&plan);
    pm_net_destroy(&net);
}

/* stem, groups, odd, odd_again, two (two batch norms) and wide. A convolution that runs again
 * computes moments only for a batch norm that also runs again. The CPU does not connect calls. */
static void test_calls(void **state)
{
    struct tile_device tiles = tile_device(false);
    int gives, takes;

    (void)state;
    count_calls(&tiles.base, false, PM_RECOMPUTE_OFF, &gives, &takes);
    assert_int_equal(gives, 6);
    assert_int_equal(takes, 7);
    count_calls(&tiles.base, false, PM_RECOMPUTE_MOST, &gives, &takes);
    assert_true(takes >= 7 && gives - 6 <= takes - 7);
    count_calls(&tiles.base, true, PM_RECOMPUTE_OFF, &gives, &takes);
    assert_int_equal(gives, 1); /* odd_again, which both nets connect */
    assert_int_equal(takes, 1);
    count_calls(device, false, PM_RECOMPUTE_OFF, &gives, &takes);
    assert_int_equal(gives, 0);
    assert_int_equal(takes, 0);
}

/* ---- results ---------------------------------------------------------------------------- */

static struct two_steps run(bool apart, int micro_batches, enum pm_recompute recompute)
{
    struct pm_net *net = build(apart);
    struct two_steps r = two_steps(device, net, micro_batches, recompute);

    pm_net_destroy(&net);
    return r;
}

static void same(int micro_batches)
{
    struct two_steps want = run(true, micro_batches, PM_RECOMPUTE_OFF);
    struct two_steps got = run(false, micro_batches, PM_RECOMPUTE_OFF);
    struct two_steps again = run(false, micro_batches, PM_RECOMPUTE_MOST);

    assert_true(fabs(want.loss[0] - got.loss[0]) <= 1e-5 * want.loss[0]);
    same_results(want, got, again, 1e-5);
}

static void on_driver(const char *name, bool validate)
{
    struct pm_device *cpu = device;

    device = device_called(name, validate);
    if (!device) {
        device = cpu;
        skip();
    }
    same(1);
    same(2);
    pm_device_close(&device);
    device = cpu;
}

static void test_lavapipe(void **state)
{
    (void)state;
    on_driver("llvmpipe", false);
}

/* Structure S, whose kernels compute the moments themselves. */
static void test_tiles(void **state)
{
    (void)state;
    setenv("PM_VARIANT", "conv2d_fwd:s64x64x16", 1);
    on_driver("llvmpipe", true);
    unsetenv("PM_VARIANT");
}

static void test_swiftshader(void **state)
{
    (void)state;
    on_driver("SwiftShader", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_lavapipe),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_swiftshader),
    };
    int failed;

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
