/* Running plans: the loss of every loss layer, for any number of them, the names of the outputs,
 * and the state after an error in re-recording. */
#include "two_steps.h"

static struct pm_device *device;

enum { BATCH = 4, LOSSES = 30, MICRO = 2 };

static struct pm_variables *variables(struct pm_net *net)
{
    struct pm_variables *v = NULL;

    check(pm_variables_create(device, net, true, NULL, &v));
    check(pm_variables_allocate(v));
    check(pm_variables_init(v, 5, NULL));
    return v;
}

/* Loss i has i + 1 times the weight of the first. */
static void many_losses(void **state)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE2(BATCH, 6), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(BATCH), PM_I32);
    struct pm_plan *plan = NULL;
    struct pm_loss_part part[LOSSES];
    double sum = 0;

    (void)state;
    x = pm_net_add(net, "logits", x, "fully_connected units=10");
    for (int i = 0; i < LOSSES; i++)
        pm_net_add_many(net, pm_arena_printf(net->arena, "loss_%d", i),
                        (struct pm_node *[]){ x, labels }, 2, "softmax_cross_entropy weight=%d",
                        i + 1);
    check(net->error);
    net->batch = BATCH;
    struct pm_variables *v = variables(net);
    check(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = MICRO, .slots = 1 }, &plan));
    check(pm_plan_load(plan));
    for (int m = 0; m < MICRO; m++)
        fill_micro_batch(plan, net, m);
    *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    check(pm_plan_submit(plan, 0));
    check(pm_plan_wait(plan, 0));
    assert_int_equal(pm_plan_loss_count(plan), LOSSES);
    pm_plan_losses(plan, 0, part);
    for (int i = 0; i < LOSSES; i++) {
        char name[16];

        snprintf(name, sizeof name, "loss_%d", i);
        assert_string_equal(part[i].name, name);
        assert_float_equal(part[i].value, (i + 1) * part[0].value, 1e-5 * part[i].value);
        sum += part[i].value;
    }
    assert_true(part[0].value > 0);
    assert_float_equal(sum, pm_plan_loss(plan, 0), 1e-9 * sum);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

static const char list[] =
    "[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 3},"
    " {\"name\": \"g\", \"layer\": \"global_pool\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

/* A net with a plan in shared memory. The caller's list of outputs no longer exists when the
 * plan is loaded. */
struct sized {
    struct pm_net *net;
    struct pm_plan *plan;
};

static struct sized planned(struct pm_variables **v, int size, struct pm_shared_memory *shared)
{
    char name[] = "logits";
    const char *outputs[] = { name, NULL };
    struct pm_heads heads = { 0 };
    struct sized s = { .net = list_net(list, BATCH, size, size, &heads) };

    check(s.net->error);
    if (!*v)
        *v = variables(s.net);
    check(pm_plan_create(s.net, device, *v, &(struct pm_plan_options){
        .loss_share = 1, .outputs = outputs, .slots = 1, .shared = shared }, &s.plan));
    memset(name, '?', sizeof name - 1);
    outputs[0] = name + 1;
    return s;
}

static void drop(struct sized *s)
{
    pm_plan_destroy(&s->plan);
    pm_net_destroy(&s->net);
}

static float first_logit(struct sized *s)
{
    const struct pm_shape shape = pm_net_find(s->net, "images")->out_shape;
    float *images = pm_plan_input(s->plan, 0, "images", 0);
    const float *y;

    for (size_t i = 0; i < pm_shape_count(shape); i++)
        images[i] = (float)(i % 7) / 7;
    check(pm_plan_submit(s->plan, 0));
    check(pm_plan_wait(s->plan, 0));
    y = pm_plan_output(s->plan, 0, "logits", 0);
    assert_non_null(y);
    return y[0];
}

/* The device first has too little memory, as when other programs use it. */
static void refresh_fails(void **state)
{
    struct pm_device_info *info = (struct pm_device_info *)pm_device_get_info(device);
    const uint64_t memory = info->memory_bytes;
    struct pm_shared_memory *shared = pm_shared_memory_create(device);
    struct pm_variables *v = NULL;
    struct sized small = planned(&v, 8, shared), large = planned(&v, 32, shared);
    const uint64_t live = pm_live_count();
    uint64_t loaded;
    float before;

    (void)state;
    for (int i = 0; i < 2; i++) { /* never loaded */
        info->memory_bytes = 1;
        assert_int_equal(pm_plan_refresh(small.plan), PM_EMEMORY);
        assert_true(pm_live_count() == live);
    }
    info->memory_bytes = memory;
    check(pm_plan_refresh(small.plan));
    before = first_logit(&small);
    check(pm_plan_refresh(large.plan)); /* moves the shared memory */
    loaded = pm_live_count();
    check(pm_plan_refresh(small.plan));
    assert_true(pm_live_count() == loaded);
    drop(&large);
    large = planned(&v, 64, shared);
    check(pm_plan_refresh(large.plan));
    loaded = pm_live_count();
    for (int i = 0; i < 3; i++) { /* loaded before */
        info->memory_bytes = 1;
        assert_int_equal(pm_plan_refresh(small.plan), PM_EMEMORY);
        info->memory_bytes = memory;
    }
    check(pm_plan_refresh(small.plan));
    assert_true(pm_live_count() == loaded);
    assert_true(first_logit(&small) == before);
    drop(&small);
    drop(&large);
    pm_variables_destroy(&v);
    pm_shared_memory_destroy(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(many_losses),
                                        cmocka_unit_test(refresh_fails) };
    int failed;

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
