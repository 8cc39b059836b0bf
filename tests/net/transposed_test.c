/* Transposed weights: on a device with shaders, the first call of a step makes one copy of every
 * variable that a data gradient needs, for all micro-batches. The results have the same bits as
 * with weights that each call transposes. */
#include "two_steps.h"

#include "conv2d.params.h"

static struct pm_device *device;

struct counts {
    int calls;             /* that transpose variables */
    int whole, transposed; /* data gradients that read the variable, or its copy */
    uint64_t activations;
};

static struct pm_plan *plan_of(struct pm_net *net, struct pm_variables **v, int micro_batches,
                               enum pm_recompute recompute)
{
    struct pm_plan *plan = NULL;

    check(pm_variables_create(device, net, true, NULL, v));
    check(pm_plan_create(net, device, *v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = micro_batches, .recompute = recompute,
        .update = update_averages, .slots = 1 }, &plan));
    return plan;
}

static struct counts count(const struct pm_plan *plan)
{
    struct counts r = { .activations = pm_plan_memory(plan).activations };
    size_t calls;
    const struct pm_planned_call *list = pm_plan_calls(plan, &calls);

    for (size_t i = 0; i < calls; i++) {
        struct conv2d_params p;

        if (strcmp(list[i].kernel->name, "transpose_weights") == 0) {
            assert_int_equal(i, 0);
            r.calls++;
        }
        if (strcmp(list[i].kernel->name, "conv2d_bwd_data") != 0)
            continue;
        memcpy(&p, list[i].params, sizeof p);
        r.whole += !p.transposed;
        r.transposed += p.transposed != 0;
    }
    return r;
}

static struct counts counts_of(const char *name, int batch, int size, int micro_batches,
                               enum pm_recompute recompute)
{
    struct pm_net *net = net_with_losses(name, batch, size);
    struct pm_variables *v;
    struct pm_plan *plan = plan_of(net, &v, micro_batches, recompute);
    const struct counts r = count(plan);

    print_message("%s: activations of %.1f MiB\n", name, (double)r.activations / 1048576);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    return r;
}

/* 53 convolutions and the logits; the image needs no gradient. */
static void one_call(void **state)
{
    const struct counts one = counts_of("resnet_v1_50", 2, 64, 1, PM_RECOMPUTE_OFF);
    const struct counts parts = counts_of("resnet_v1_50", 2, 64, 2, PM_RECOMPUTE_OFF);

    (void)state;
    assert_int_equal(one.calls, 1);
    assert_int_equal(one.transposed, 53);
    assert_int_equal(one.whole, 0);
    assert_int_equal(parts.calls, 1);
    assert_int_equal(parts.transposed, 106);
    assert_int_equal(parts.whole, 0);
}

/* A plan that saves memory keeps no copies. */
static void none_to_save_memory(void **state)
{
    static const enum pm_recompute modes[] = { PM_RECOMPUTE_HALF, PM_RECOMPUTE_MOST };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(modes); i++) {
        const struct counts r = counts_of("resnet_v1_50", 2, 64, 1, modes[i]);

        assert_int_equal(r.calls, 0);
        assert_int_equal(r.whole, 53);
    }
}

/* The copies of fc6 (411 MB) and fc7 would live for most of the step. */
static void large_weights_stay(void **state)
{
    const struct counts r = counts_of("vgg_16", 1, 224, 1, PM_RECOMPUTE_OFF);

    (void)state;
    assert_int_equal(r.calls, 1);
    assert_int_equal(r.whole, 2);
    assert_int_equal(r.transposed, 13);
}

/* Weights that the step computes are no variables. */
static void computed_weights_stay(void **state)
{
    static const char list[] =
        "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 8},"
        " {\"name\": \"b\", \"layer\": \"quantized_conv2d\", \"filters\": 8, \"bias\": false},"
        " {\"name\": \"c\", \"layer\": \"conv2d\", \"filters\": 8},"
        " {\"name\": \"g\", \"layer\": \"global_pool\"},"
        " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";
    const struct counts r = counts_of(list, 2, 8, 1, PM_RECOMPUTE_OFF);

    (void)state;
    assert_int_equal(r.calls, 1);
    assert_int_equal(r.whole, 1);
    assert_int_equal(r.transposed, 2);
}

static void same_bits(const char *name, int batch, int size, int micro_batches)
{
    struct pm_net *net = net_with_losses(name, batch, size);
    struct two_steps copies = two_steps(device, net, micro_batches, PM_RECOMPUTE_OFF);
    struct two_steps none = two_steps(device, net, micro_batches, PM_RECOMPUTE_MOST);

    assert_int_equal(copies.bytes, none.bytes);
    assert_memory_equal(copies.loss, none.loss, sizeof none.loss);
    assert_memory_equal(copies.bits, none.bits, none.bytes);
    pm_free(copies.bits);
    pm_free(none.bits);
    pm_net_destroy(&net);
}

/* Strides, groups, a transposed convolution, and two layers with the same variables. */
static void bits(void **state)
{
    static const char list[] =
        "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2},"
        " {\"name\": \"b\", \"layer\": \"conv2d\", \"filters\": 8, \"groups\": 2},"
        " {\"name\": \"c\", \"layer\": \"conv2d\", \"filters\": 8, \"groups\": 2,"
        "  \"share\": \"b\"},"
        " {\"name\": \"d\", \"layer\": \"conv2d_transpose\", \"filters\": 6},"
        " {\"name\": \"e\", \"layer\": \"batch_norm\", \"activation\": \"relu\"},"
        " {\"name\": \"f\", \"layer\": \"conv2d\", \"filters\": 35},"
        " {\"name\": \"g\", \"layer\": \"global_pool\"},"
        " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

    (void)state;
    for (int micro = 1; micro <= 2; micro++) {
        same_bits(list, 2, 9, micro);
        same_bits("lenet", 2, 28, micro);
    }
}

/* The CPU's library orders weights itself. */
static void none_on_the_cpu(void **state)
{
    const struct counts r = counts_of("resnet_v1_50", 2, 64, 1, PM_RECOMPUTE_OFF);

    (void)state;
    assert_int_equal(r.calls, 0);
    assert_int_equal(r.transposed, 0);
}

int main(void)
{
    const struct CMUnitTest gpu[] = {
        cmocka_unit_test(one_call),
        cmocka_unit_test(none_to_save_memory),
        cmocka_unit_test(large_weights_stay),
        cmocka_unit_test(computed_weights_stay),
        cmocka_unit_test(bits),
    };
    const struct CMUnitTest cpu[] = { cmocka_unit_test(none_on_the_cpu) };
    int failed;

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests_name("cpu", cpu, NULL, NULL);
    pm_device_close(&device);
    device = device_called("llvmpipe", true);
    if (device) {
        failed += cmocka_run_group_tests_name("llvmpipe", gpu, NULL, NULL);
        failed += pm_device_messages() != 0;
        pm_device_close(&device);
    }
    return failed;
}
