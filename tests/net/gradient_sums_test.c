/* A value with several readers gets the sum of their gradients, and a layer whose calls accumulate
 * adds its own gradient to the sum so far. The same net with two sign changes before each such
 * layer writes every gradient to a value of its own: both nets must have the same gradients.
 * Shaders give the same bits; on the CPU a sum may start with the other readers' gradient. The net
 * has the cases in which a gradient is shared: layers that pass it on unchanged, views, one layer
 * that reads a value twice, several outputs. */
#include "two_steps.h"

#include <math.h>

static struct pm_device *device;

/* ---- nets ------------------------------------------------------------------------------- */

static struct pm_node *layer(struct pm_net *net, const char *name, struct pm_node *x,
                             const char *options)
{
    return pm_net_add(net, name, x, "%s", options);
}

static struct pm_node *join(struct pm_net *net, const char *name, struct pm_node *a,
                            struct pm_node *b, const char *options)
{
    return pm_net_add_many(net, name, (struct pm_node *[]){ a, b }, 2, "%s", options);
}

/* Adds a layer whose calls accumulate. apart: its input is a value that nothing else reads. */
static struct pm_node *adder(struct pm_net *net, bool apart, const char *name, struct pm_node *x,
                             const char *options)
{
    char first[32], second[32];

    snprintf(first, sizeof first, "%s_first", name);
    snprintf(second, sizeof second, "%s_second", name);
    if (apart)
        x = layer(net, second, layer(net, first, x, "neg"), "neg");
    return layer(net, name, x, options);
}

/* Five readers of one value; the sum of their outputs passes one gradient on to all. */
static struct pm_node *branches(struct pm_net *net, bool apart, struct pm_node *x)
{
    struct pm_node *list[] = {
        adder(net, apart, "most", x, "max_pool kernel=3 stride=1 padding=same"),
        adder(net, apart, "mean", x, "avg_pool kernel=3 stride=1 padding=same"),
        adder(net, apart, "one", x, "conv2d filters=8 kernel=1"),
        adder(net, apart, "depth", x, "depthwise_conv2d kernel=3"),
        adder(net, apart, "three", x, "conv2d filters=8 kernel=3 groups=2"),
    };

    return pm_net_add_many(net, "branches", list, 5, "add");
}

/* Residual units: the sum first (its gradient is also that of the convolution's output, so the
 * convolution must not add to it), then batch norms that write the residual's gradient and pass it
 * on. */
static struct pm_node *residuals(struct pm_net *net, bool apart, struct pm_node *x)
{
    struct pm_node *y;

    y = adder(net, apart, "plain", x, "conv2d filters=8 kernel=3");
    x = join(net, "plain_sum", x, y, "add");
    y = adder(net, apart, "deep", x, "conv2d filters=8 kernel=1 activation=relu");
    y = adder(net, apart, "deeper", y, "conv2d filters=8 kernel=3");
    x = join(net, "deep_sum", x, y, "add");
    y = adder(net, apart, "normal", x, "conv2d filters=8 kernel=3 bias=false");
    x = join(net, "normal_sum", y, x, "batch_norm activation=relu");
    y = adder(net, apart, "linear", x, "conv2d filters=8 kernel=3 bias=false");
    x = join(net, "linear_sum", y, x, "batch_norm");
    return x;
}

/* A value that one layer reads twice, a layer that passes its gradient on, views, and two parts of
 * the channels. */
static struct pm_node *odd(struct pm_net *net, bool apart, struct pm_node *x)
{
    struct pm_node *twice = join(net, "twice", x, x, "add"), *y, *flat, *a, *b;

    y = adder(net, apart, "beside_twice", x, "conv2d filters=8 kernel=1");
    x = join(net, "odd_sum", twice, y, "add");
    y = layer(net, "kept", x, "dropout keep=1");
    a = adder(net, apart, "on_kept", y, "conv2d filters=8 kernel=1");
    b = adder(net, apart, "beside_kept", x, "conv2d filters=8 kernel=5 stride=2");
    b = layer(net, "wide", b, "conv2d_transpose filters=8 kernel=2 stride=2");
    x = pm_net_add_many(net, "kept_sum", (struct pm_node *[]){ y, a, b }, 3, "add");
    y = layer(net, "halves", x, "split parts=2");
    a = adder(net, apart, "low", y, "conv2d filters=4 kernel=1");
    b = adder(net, apart, "high", y->out[1], "conv2d filters=4 kernel=1");
    a = pm_net_add_many(net, "four", (struct pm_node *[]){ y, y->out[1], a, b }, 4, "concat");
    flat = layer(net, "flat", a, "flatten");
    y = adder(net, apart, "dense", flat, "fully_connected units=12");
    flat = adder(net, apart, "dense_again", flat, "fully_connected units=12");
    a = adder(net, apart, "beside_flat", a, "conv2d filters=12 kernel=3");
    a = layer(net, "global", a, "global_pool");
    return pm_net_add_many(net, "dense_sum",
                           (struct pm_node *[]){ y, flat, layer(net, "row", a, "flatten") }, 3,
                           "add");
}

static struct pm_net *build(bool apart)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(2, 12, 12, 3), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(2), PM_I32);

    x = layer(net, "stem", x, "conv2d filters=8 kernel=3 activation=relu");
    x = odd(net, apart, residuals(net, apart, branches(net, apart, x)));
    join(net, "loss", layer(net, "logits", x, "fully_connected units=10"), labels,
         "softmax_cross_entropy");
    check(net->error);
    return net;
}

/* ---- calls ------------------------------------------------------------------------------ */

struct counts { int add2, accumulating; };

static struct counts count_calls(bool apart)
{
    struct pm_net *net = build(apart);
    struct pm_plan *plan = NULL;
    struct counts n = { 0 };
    const struct pm_planned_call *calls;
    size_t count;

    check(pm_plan_create(net, device, NULL, &(struct pm_plan_options){
        .train = true, .loss_share = 1 }, &plan));
    calls = pm_plan_calls(plan, &count);
    for (size_t i = 0; i < count; i++) {
        const struct pm_kernel *k = calls[i].kernel;
        int adds = 0;

        n.add2 += strcmp(k->name, "add2") == 0;
        if (k->accumulate && (strstr(k->name, "bwd_data") || strstr(k->name, "pool_bwd")))
            memcpy(&adds, (const char *)calls[i].params + k->accumulate - 1, sizeof adds);
        n.accumulating += adds;
    }
    pm_plan_destroy(&plan);
    pm_net_destroy(&net);
    return n;
}

/* 16 gradients are added to others, 10 of them by the layers themselves. Of the other 6, "plain"
 * and "on_kept" read the gradient that they would add to, and 4 belong to layers whose calls do not
 * accumulate: "kept", "four" and, for both inputs, "twice". */
static void test_calls(void **state)
{
    struct counts together = count_calls(false), apart = count_calls(true);

    (void)state;
    print_message("together: %d add2, %d accumulate; apart: %d add2, %d accumulate\n",
                  together.add2, together.accumulating, apart.add2, apart.accumulating);
    assert_int_equal(apart.accumulating, 0);
    assert_int_equal(together.accumulating, 10);
    assert_int_equal(together.add2, 6);
    assert_int_equal(apart.add2, 16);
}

/* ---- gradients -------------------------------------------------------------------------- */

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

    same_results(want, got, again, pm_device_caps(device)->runs_shaders ? 0 : 1e-6);
}

static void test_cpu(void **state)
{
    (void)state;
    same(1);
    same(2);
}

static void on_driver(const char *name)
{
    struct pm_device *cpu = device;

    device = device_called(name, true);
    if (!device) {
        device = cpu;
        skip();
    }
    same(1);
    pm_device_close(&device);
    device = cpu;
}

static void test_lavapipe(void **state)
{
    (void)state;
    on_driver("llvmpipe");
}

static void test_swiftshader(void **state)
{
    (void)state;
    on_driver("SwiftShader");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_lavapipe),
        cmocka_unit_test(test_swiftshader),
    };
    int failed;

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
