/* Optimizers against vectors of two steps (double precision, computed
 * independently), on the CPU and on every Vulkan device; clipping, weight decay, freezing and
 * the finite flag with their values worked out by hand. */
#include "train/optimizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

/* Two variables of one float each, w/a and w/b, and a plan that is only the update. */
struct bench {
    struct pm_device *device;
    struct pm_net *net;
    struct pm_variables *v;
    struct pm_plan *plan;
    char cfg[64];
    struct pm_update update;
};

static struct pm_device_info *devices;
static size_t device_count;

static void check(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

static float frozen_b(const char *variable, void *ctx)
{
    (void)ctx;
    return strncmp(variable, "b", 1) == 0 ? 0 : 2;
}

static void open_bench(struct bench *b, const struct pm_device_info *info, const char *optimizer,
                       const char *options, struct pm_update update)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_node *x;

    memset(b, 0, sizeof *b);
    b->update = update;
    b->update.optimizer = pm_optimizer_find(optimizer);
    b->update.cfg = b->cfg;
    check(pm_opts_parse_text(b->update.optimizer->opts, options, b->cfg, a, optimizer));
    check(pm_device_open(info, NULL, &b->device));
    b->net = pm_net_create();
    x = pm_net_input(b->net, "x", PM_SHAPE2(1, 1), PM_F32);
    pm_net_add(b->net, "a", x, "fully_connected units=1 bias=false");
    pm_net_add(b->net, "b", x, "fully_connected units=1 bias=false");
    check(b->net->error);
    check(pm_variables_create(b->device, b->net, true, b->update.optimizer->slots, &b->v));
    check(pm_variables_allocate(b->v));
    check(pm_optimizer_init(b->update.optimizer, b->cfg, b->v, 0));
    check(pm_plan_create(b->net, b->device, b->v, &(struct pm_plan_options){
        .name = "update", .update_only = true, .update = pm_update_append,
        .update_ctx = &b->update, .slots = 1 }, &b->plan));
    check(pm_plan_load(b->plan));
    for (int i = 0; i < 2; i++)
        check(pm_variables_write(b->v, i, -1, &(float){ 1 }));
    pm_arena_destroy(&a);
}

static void close_bench(struct bench *b)
{
    pm_plan_destroy(&b->plan);
    pm_variables_destroy(&b->v);
    pm_net_destroy(&b->net);
    pm_device_close(&b->device);
}

static void step(struct bench *b, uint32_t n, float ga, float gb)
{
    double beta1 = 0, beta2 = 0;

    if (b->update.optimizer->betas)
        b->update.optimizer->betas(b->cfg, &beta1, &beta2);
    check(pm_buffer_write(b->device, b->v->grads, b->v->offset[0], &ga, sizeof ga));
    check(pm_buffer_write(b->device, b->v->grads, b->v->offset[1], &gb, sizeof gb));
    *pm_plan_step(b->plan, 0) = (struct pm_step){
        .step = n, .lr = 0.1f, .beta1_power = (float)pow(beta1, n + 1),
        .beta2_power = (float)pow(beta2, n + 1) };
    check(pm_plan_submit(b->plan, 0));
    check(pm_plan_wait(b->plan, 0));
}

static float value(struct bench *b, int i)
{
    float w;

    check(pm_variables_read(b->v, i, -1, &w));
    return w;
}

/* Some ten float operations on values near 1: 1e-6 is 8 roundings of them. Adam's rate divides
 * 1 - beta2^t = 1e-3 found by a subtraction near 1, which leaves 3e-5 of it, and half of that after
 * the root; it multiplies a change of 0.1. */
static const struct vector {
    const char *optimizer, *options;
    double w1, w2, tolerance;
} vectors[] = {
    { "sgd", "", .95, .975, 1e-6 },
    { "momentum", "momentum=0.9", .95, .93, 1e-6 },
    { "momentum", "momentum=0.9 nesterov=true", .905, .912, 1e-6 },
    { "rmsprop", "decay=0.9 momentum=0.9 epsilon=1", .963962501, .949965261, 1e-6 },
    { "rmsprop", "decay=0.9 momentum=0.9 epsilon=1e-10", .948012476, .928521258, 1e-6 },
    { "adagrad", "", .915484575, .954409522, 1e-6 },
    { "adadelta", "", .950309601, .97527689, 1e-6 },
    { "ftrl", "", .380962091, .419887038, 1e-6 },
    { "ftrl", "l1=0.01 l2=0.01", .377993929, .416798041, 1e-6 },
    { "ftrl", "power=-0.5", .380962091, .419887038, 1e-6 },
    { "adam", "epsilon=1", .998443472, .997981011, 3e-6 },
    { "adam", "epsilon=1e-8", .900000063, .873366374, 3e-6 },
};

static void test_vectors(void **state)
{
    (void)state;
    for (size_t d = 0; d < device_count; d++)
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
            const struct vector *v = &vectors[i];
            struct bench b;

            if (!devices[d].usable)
                continue;
            open_bench(&b, &devices[d], v->optimizer, v->options, (struct pm_update){ 0 });
            step(&b, 0, 0.5f, 0);
            if (fabs(value(&b, 0) - v->w1) > v->tolerance)
                fail_msg("%s, %s %s: w1 %.9g, not %.9g", devices[d].name, v->optimizer, v->options,
                         value(&b, 0), v->w1);
            step(&b, 1, -0.25f, 0);
            if (fabs(value(&b, 0) - v->w2) > v->tolerance)
                fail_msg("%s, %s %s: w2 %.9g, not %.9g", devices[d].name, v->optimizer, v->options,
                         value(&b, 0), v->w2);
            close_bench(&b);
        }
}

static void test_clipping(void **state)
{
    (void)state;
    for (size_t d = 0; d < device_count; d++) {
        const float *result, *norms;
        struct bench b;

        if (!devices[d].usable)
            continue;
        /* Norm of (3, 4) is 5; clipped to 1 the step is lr * (0.6, 0.8). */
        open_bench(&b, &devices[d], "sgd", "", (struct pm_update){ .clip_norm = 1 });
        step(&b, 0, 3, 4);
        result = pm_plan_output(b.plan, 0, "result", 0);
        norms = pm_plan_output(b.plan, 0, "norms", 0);
        assert_true(fabs(result[PM_RESULT_NORM] - 5) < 1e-5);
        assert_true(fabs(norms[0] - 3) < 1e-5 && fabs(norms[1] - 4) < 1e-5);
        assert_true(fabs(value(&b, 0) - (1 - 0.06)) < 1e-6);
        assert_true(fabs(value(&b, 1) - (1 - 0.08)) < 1e-6);
        close_bench(&b);
        /* Each to 2: (2, 0.5), norm sqrt(4.25). */
        open_bench(&b, &devices[d], "sgd", "", (struct pm_update){ .clip_variable_norm = 2 });
        step(&b, 0, 3, 0.5f);
        result = pm_plan_output(b.plan, 0, "result", 0);
        assert_true(fabs(result[PM_RESULT_NORM] - sqrt(4.25)) < 1e-5);
        assert_true(fabs(value(&b, 0) - 0.8) < 1e-6 && fabs(value(&b, 1) - 0.95) < 1e-6);
        close_bench(&b);
    }
}

static void test_decay_and_multipliers(void **state)
{
    (void)state;
    for (size_t d = 0; d < device_count; d++) {
        const float *result;
        struct bench b;

        if (!devices[d].usable)
            continue;
        /* a: (0.5 + 0.1 * 1) * 2 = 1.2; b is frozen whatever its gradient holds. The L2 value counts
         * both: 0.05 * (1 + 1). */
        open_bench(&b, &devices[d], "sgd", "", (struct pm_update){ .weight_decay = 0.1f,
                                                                   .multiplier = frozen_b });
        step(&b, 0, 0.5f, NAN);
        result = pm_plan_output(b.plan, 0, "result", 0);
        assert_int_equal(*(const uint32_t *)pm_plan_output(b.plan, 0, "flag", 0), 1);
        assert_true(fabs(result[PM_RESULT_L2] - 0.1) < 1e-6);
        assert_true(fabs(value(&b, 0) - 0.88) < 1e-6);
        assert_true(value(&b, 1) == 1);
        close_bench(&b);
    }
}

static void test_not_finite_changes_nothing(void **state)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };

    (void)state;
    for (size_t d = 0; d < device_count; d++)
        for (size_t o = 0; o < 7; o++)
            for (size_t i = 0; i < 3 && devices[d].usable; i++) {
                size_t count;
                const char *name = pm_optimizers(&count)[o]->name;
                float slot = 0, before = 0;
                struct bench b;

                open_bench(&b, &devices[d], name, "", (struct pm_update){ 0 });
                if (b.v->slot_count)
                    check(pm_variables_read(b.v, 1, 0, &before));
                step(&b, 0, bad[i], 0.5f);
                assert_int_equal(*(const uint32_t *)pm_plan_output(b.plan, 0, "flag", 0), 0);
                assert_true(value(&b, 0) == 1 && value(&b, 1) == 1);
                if (b.v->slot_count)
                    check(pm_variables_read(b.v, 1, 0, &slot));
                assert_true(slot == before);
                close_bench(&b);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_decay_and_multipliers),
        cmocka_unit_test(test_not_finite_changes_nothing),
    };
    int failed;

    if (pm_device_list(&devices, &device_count) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_free(devices);
    return failed;
}
