/* Plans for several sizes. Training sizes are planned once, share one block of activations, and
 * take the same steps as plans with their own memory. Other sizes are planned on demand, and the
 * last 8 are kept. Each gives the results of a plan of its own, also after the shared memory has
 * moved. */
#include "two_steps.h"

#include "net/sizes.h"

static struct pm_device *device;

enum { BATCH = 2, KEEP = 8 };

/* A net for pictures of any size. */
static const char list[] =
    "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"bias\": false},"
    " {\"name\": \"an\", \"layer\": \"batch_norm\", \"activation\": \"relu\"},"
    " {\"name\": \"b\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3, \"stride\": 2},"
    " {\"name\": \"g\", \"layer\": \"global_pool\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

struct maker {
    struct pm_variables *v;
    bool train;
};

static int make(void *ctx, int height, int width, struct pm_shared_memory *shared,
                struct pm_sized *out)
{
    static const char *const outputs[] = { "logits", NULL };
    const struct maker *m = ctx;
    struct pm_heads heads = { 0 };
    int err = PM_OK;

    out->net = list_net(list, BATCH, height, width, &heads);
    check(out->net->error);
    if (m->train)
        add_head_losses(out->net, &heads);
    PM_TRY(pm_plan_create(out->net, device, m->v, &(struct pm_plan_options){
        .train = m->train, .loss_share = 1, .outputs = outputs, .slots = 1, .shared = shared,
        .update = m->train ? update_averages : NULL }, &out->plan));
out:
    return err;
}

static void release(void *ctx, struct pm_net *net)
{
    (void)ctx;
    pm_net_destroy(&net);
}

static struct pm_variables *variables(void)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = list_net(list, BATCH, 8, 8, &heads);
    struct pm_variables *v = NULL;

    check(pm_variables_create(device, net, true, NULL, &v));
    check(pm_variables_allocate(v));
    check(pm_variables_init(v, 5, NULL));
    pm_net_destroy(&net);
    return v;
}

static struct pm_sizes *sizes(struct maker *m)
{
    return pm_sizes_create(&(struct pm_sizes_options){
        .device = device, .keep = KEEP, .make = make, .release = release, .ctx = m });
}

static void run(struct pm_sized *s, bool train)
{
    const size_t count = pm_shape_count(pm_net_find(s->net, "images")->out_shape);
    float *images = pm_plan_input(s->plan, 0, "images", 0);

    for (size_t i = 0; i < count; i++)
        images[i] = (float)((i * 2654435761u) % 1000) / 500 - 1;
    for (int i = 0; i < BATCH && train; i++)
        ((int32_t *)pm_plan_input(s->plan, 0, "labels", 0))[i] = i;
    if (pm_plan_step(s->plan, 0))
        *pm_plan_step(s->plan, 0) = (struct pm_step){ .seed_low = 3, .loss_scale = 1 };
    check(pm_plan_submit(s->plan, 0));
    check(pm_plan_wait(s->plan, 0));
}

static void expect_logits(const struct pm_sized *s, const struct pm_sized *want)
{
    assert_memory_equal(pm_plan_output(s->plan, 0, "logits", 0),
                        pm_plan_output(want->plan, 0, "logits", 0), BATCH * 10 * sizeof(float));
}

/* A plan with its own memory and the same variables. */
static struct pm_sized alone(struct maker *m, int height, int width)
{
    struct pm_sized s = { .height = height, .width = width };

    check(make(m, height, width, NULL, &s));
    check(pm_plan_load(s.plan));
    return s;
}

static void end_alone(struct pm_sized *s)
{
    pm_plan_destroy(&s->plan);
    pm_net_destroy(&s->net);
}

/* ---- training ---------------------------------------------------------------------------- */

static const int buckets[2][2] = { { 12, 20 }, { 24, 16 } };

static void expect_same_variables(struct pm_variables *a, struct pm_variables *b)
{
    char *bits[2] = { pm_malloc(a->bytes), pm_malloc(a->bytes) };

    assert_int_equal(a->bytes, b->bytes);
    check(pm_buffer_read(device, a->values, 0, bits[0], a->bytes));
    check(pm_buffer_read(device, b->values, 0, bits[1], a->bytes));
    assert_memory_equal(bits[0], bits[1], a->bytes);
    check(pm_buffer_read(device, a->grads, 0, bits[0], a->gradient_bytes));
    check(pm_buffer_read(device, b->grads, 0, bits[1], a->gradient_bytes));
    assert_memory_equal(bits[0], bits[1], a->gradient_bytes);
    pm_free(bits[0]);
    pm_free(bits[1]);
}

static void training_sizes(void)
{
    struct maker m = { variables(), true }, other = { variables(), true };
    struct pm_sizes *s = sizes(&m);
    struct pm_sized now, own[2];
    uint64_t need[2];

    check(pm_sizes_prepare(s, buckets, 2));
    for (int k = 0; k < 2; k++) {
        own[k] = alone(&other, buckets[k][0], buckets[k][1]);
        need[k] = pm_plan_memory(own[k].plan).activations;
    }
    assert_true(need[0] != need[1]);
    assert_int_equal(pm_sizes_bytes(s), need[0] > need[1] ? need[0] : need[1]);
    for (int i = 0; i < 6; i++) {
        const int k = i * i % 3 % 2;
        const uint64_t allocations = pm_alloc_count(), memory = pm_device_memory_used(device);

        check(pm_sizes_get(s, buckets[k][0], buckets[k][1], &now));
        run(&now, true);
        assert_int_equal(pm_alloc_count(), allocations); /* nothing was planned or recorded */
        assert_int_equal(pm_device_memory_used(device), memory);
        run(&own[k], true);
        expect_logits(&now, &own[k]);
        expect_same_variables(m.v, other.v);
    }
    assert_int_equal(pm_sizes_made(s), 2);
    pm_sizes_destroy(&s);
    for (int k = 0; k < 2; k++)
        end_alone(&own[k]);
    pm_variables_destroy(&m.v);
    pm_variables_destroy(&other.v);
}

static void test_training_sizes(void **state)
{
    (void)state;
    training_sizes();
}

/* ---- on demand --------------------------------------------------------------------------- */

static void on_demand(void)
{
    struct maker m = { variables(), false };
    struct pm_sizes *s = sizes(&m);
    struct pm_sized now, first = alone(&m, 9, 5);
    uint64_t largest = 0;

    for (int i = 0; i < 12; i++) { /* from small to large: the memory moves each time */
        struct pm_sized own = alone(&m, 8 + i, 10);
        const uint64_t need = pm_plan_memory(own.plan).activations;

        check(pm_sizes_get(s, 8 + i, 10, &now));
        run(&now, false);
        run(&own, false);
        expect_logits(&now, &own);
        end_alone(&own);
        largest = need > largest ? need : largest;
        assert_int_equal(pm_sizes_bytes(s), largest);
        assert_int_equal(pm_sizes_count(s), i + (i > 0) + 1 < KEEP ? i + (i > 0) + 1 : KEEP);
        check(pm_sizes_get(s, 9, 5, &now)); /* it is used each time, so it is kept */
        run(&now, false);
        run(&first, false);
        expect_logits(&now, &first);
    }
    end_alone(&first);
    pm_sizes_destroy(&s);
    pm_variables_destroy(&m.v);
}

static void test_on_demand(void **state)
{
    (void)state;
    on_demand();
}

/* With more sizes than are kept, the last used ones remain. */
static void test_last_eight(void **state)
{
    struct maker m = { variables(), false };
    struct pm_sizes *s = sizes(&m);
    struct pm_sized now;

    (void)state;
    for (int i = 0; i < KEEP; i++)
        check(pm_sizes_get(s, 8 + i, 8, &now));
    check(pm_sizes_get(s, 8, 8, &now));
    assert_int_equal(pm_sizes_made(s), KEEP);
    check(pm_sizes_get(s, 40, 8, &now)); /* removes 9 x 8 */
    assert_int_equal(pm_sizes_count(s), KEEP);
    check(pm_sizes_get(s, 8, 8, &now));
    assert_int_equal(pm_sizes_made(s), KEEP + 1);
    check(pm_sizes_get(s, 9, 8, &now));
    assert_int_equal(pm_sizes_made(s), KEEP + 2);
    assert_int_equal(pm_sizes_count(s), KEEP);
    pm_sizes_destroy(&s);
    pm_variables_destroy(&m.v);
}

static void test_lavapipe(void **state)
{
    struct pm_device *cpu = device, *gpu = device_called("llvmpipe", true);

    (void)state;
    if (!gpu)
        skip();
    device = gpu;
    training_sizes();
    on_demand();
    assert_int_equal(pm_device_messages(), 0);
    pm_device_close(&device);
    device = cpu;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_sizes),
        cmocka_unit_test(test_on_demand),
        cmocka_unit_test(test_last_eight),
        cmocka_unit_test(test_lavapipe),
    };
    int failed;

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
