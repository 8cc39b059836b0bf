/* Moving averages of several batch norms: one call updates them, with the same bits as the formula
 * in float32, layer after layer. Some layers have other decays, more channels than a chunk of the
 * kernel's table, the variables of another layer, or constant averages. */
#include "two_steps.h"

static struct pm_device *device;

enum { BATCH = 2, MICRO = 2, MOST = 200 };

/* In the net `alone`, every layer has variables of its own, and decay 0 copies the step's mean and
 * variance to the averages. Otherwise "d" has the variables of "a". */
static struct pm_net *make_net(bool alone)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(BATCH), PM_I32);
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(BATCH, 5, 5, 3), PM_F32);
    struct pm_node *x = pm_net_add(net, "wide", images, "conv2d filters=70"), *a, *b, *d;
    cJSON *options = cJSON_Parse(alone ? "{\"decay\": 0}" : "{\"decay\": 0.75}");

    a = pm_net_add(net, "a", x, "batch_norm activation=relu decay=%g", alone ? 0 : 0.9);
    b = pm_net_add(net, "b", a, "batch_norm frozen=true");
    d = pm_net_add(net, "e", x, "conv2d filters=70 activation=relu");
    d = pm_net_add_json(net, "d", &d, 1, "batch_norm", options, alone ? NULL : a, "test");
    x = pm_net_add_many(net, "sum", (struct pm_node *[]){ b, d }, 2, "add");
    x = pm_net_add(net, "more", x, "conv2d filters=%d", MOST);
    x = pm_net_add(net, "c", x, "batch_norm moving_variance=biased scale=false decay=%g",
                   alone ? 0 : 0.5);
    x = pm_net_add(net, "logits", pm_net_add(net, "mean", x, "global_pool"),
                   "fully_connected units=10");
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2, "softmax_cross_entropy");
    check(net->error);
    net->batch = BATCH;
    cJSON_Delete(options);
    return net;
}

static float *variable(struct pm_variables *v, const char *layer, const char *suffix)
{
    static float out[4][MOST];
    static int next;
    float *to = out[next++ % 4];
    char name[64];

    snprintf(name, sizeof name, "%s/%s", layer, suffix);
    check(pm_variables_read(v, pm_variables_find(v, name), -1, to));
    return to;
}

/* Sets a variable that exists to first, first + step, ... */
static void set(struct pm_variables *v, const char *layer, const char *suffix, float first,
                float step)
{
    float values[MOST];
    char name[64];

    snprintf(name, sizeof name, "%s/%s", layer, suffix);
    for (int k = 0; k < MOST; k++)
        values[k] = first + step * (float)k;
    if (pm_variables_find(v, name) >= 0)
        check(pm_variables_write(v, pm_variables_find(v, name), -1, values));
}

static void no_update(struct pm_calls *c, void *ctx)
{
    static const uint32_t infinite = 0;

    (void)ctx;
    pm_calls_layer_updates(c, pm_calls_constant(c, "finite", &infinite, PM_SHAPE1(1), PM_U32));
}

/* Runs a step on variables whose averages begin at first, first + step, ... *calls: the calls that
 * update averages. */
static struct pm_variables *after_step(struct pm_net *net, float first, float step, bool finite,
                                       enum pm_recompute recompute, int *calls)
{
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    size_t count;

    check(pm_variables_create(device, net, true, NULL, &v));
    check(pm_variables_allocate(v));
    check(pm_variables_init(v, 5, NULL));
    for (const char *layer = "acd"; *layer; layer++) {
        const char name[2] = { *layer };

        set(v, name, "moving_mean", first, step);
        set(v, name, "moving_variance", first, step);
    }
    check(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = MICRO, .recompute = recompute,
        .update = finite ? update_averages : no_update, .slots = 1 }, &plan));
    check(pm_plan_load(plan));
    for (int m = 0; m < MICRO; m++)
        fill_micro_batch(plan, net, m);
    *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    check(pm_plan_submit(plan, 0));
    check(pm_plan_wait(plan, 0));
    const struct pm_planned_call *list = pm_plan_calls(plan, &count);
    *calls = 0;
    for (size_t i = 0; i < count; i++)
        *calls += strcmp(list[i].kernel->name, "batch_norm_update") == 0;
    pm_plan_destroy(&plan);
    return v;
}

/* The formula for one channel. copied: the average after a step with decay 0 from 0, which is the
 * mean, or the variance times factor. */
static float follow(float average, double decay, float copied)
{
    const float rate = (float)(1 - decay);

    return average - rate * (average - copied);
}

static void expect(struct pm_variables *v, struct pm_variables *copies, const char *suffix)
{
    const float *a = variable(v, "a", suffix), *of_a = variable(copies, "a", suffix);
    const float *of_d = variable(copies, "d", suffix);

    for (int k = 0; k < 70; k++) {
        const float first = 0.25f + 0.125f * (float)k;
        const float want = follow(follow(first, 0.9, of_a[k]), 0.75, of_d[k]);

        assert_memory_equal(&a[k], &want, sizeof want);
        assert_true(a[k] != first);
    }
    const float *c = variable(v, "c", suffix), *of_c = variable(copies, "c", suffix);
    for (int k = 0; k < MOST; k++) {
        const float want = follow(0.25f + 0.125f * (float)k, 0.5, of_c[k]);

        assert_memory_equal(&c[k], &want, sizeof want);
    }
    const float *b = variable(v, "b", suffix);
    for (int k = 0; k < 70; k++)
        assert_true(b[k] == (strcmp(suffix, "moving_mean") == 0 ? 0.0f : 1.0f));
}

/* "a" and "d" share variables, so a second call adds the statistics of "d". Those of the last
 * micro-batch count. */
static void test_bits(void **state)
{
    static const enum pm_recompute modes[] = { PM_RECOMPUTE_OFF, PM_RECOMPUTE_MOST };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(modes); i++) {
        struct pm_net *alone = make_net(true), *net = make_net(false);
        int calls;
        struct pm_variables *copies = after_step(alone, 0, 0, true, modes[i], &calls), *v;

        assert_int_equal(calls, 1);
        v = after_step(net, 0.25f, 0.125f, true, modes[i], &calls);
        assert_int_equal(calls, 2);
        expect(v, copies, "moving_mean");
        expect(v, copies, "moving_variance");
        pm_variables_destroy(&v);
        pm_variables_destroy(&copies);
        pm_net_destroy(&net);
        pm_net_destroy(&alone);
    }
}

static void test_not_finite(void **state)
{
    struct pm_net *net = make_net(false);
    int calls;
    struct pm_variables *v = after_step(net, 0.25f, 0.125f, false, PM_RECOMPUTE_OFF, &calls);

    (void)state;
    for (const char *layer = "ac"; *layer; layer++) {
        const char name[2] = { *layer };
        const float *mean = variable(v, name, "moving_mean");
        const float *variance = variable(v, name, "moving_variance");

        for (int k = 0; k < 70; k++) {
            assert_true(mean[k] == 0.25f + 0.125f * (float)k);
            assert_true(variance[k] == mean[k]);
        }
    }
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_not_finite),
    };
    static const char *const devices[] = { "cpu", "llvmpipe", "SwiftShader" };
    int failed = 0;

    for (size_t i = 0; i < PM_COUNT(devices); i++) {
        device = device_called(devices[i], false);
        if (device)
            failed += cmocka_run_group_tests_name(devices[i], tests, NULL, NULL);
        pm_device_close(&device);
    }
    return failed;
}
