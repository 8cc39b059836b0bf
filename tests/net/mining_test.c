/* Hard example mining in cases that random losses do not cover: among equal losses the first
 * rows are kept, ignored rows do not count, and the share falls from step to step, on the CPU
 * and on every device. Also the divisor of the sum. */
#include <pumice/plan.h>

#include "device/every_device.h"

enum { ROWS = 10, K = 3 };

struct run {
    struct pm_device *d;
    struct pm_net *net;
    struct pm_variables *v;
    struct pm_plan *plan;
    float dz[ROWS * K];
};

static void start(struct run *r, struct pm_device *d, const char *loss)
{
    const struct pm_plan_options options = { .name = "train", .train = true, .slots = 1,
                                             .loss_share = 1, .micro_batches = 1 };
    struct pm_node *in[2];

    *r = (struct run){ .d = d, .net = pm_net_create() };
    in[1] = pm_net_input(r->net, "labels", PM_SHAPE1(ROWS), PM_I32);
    in[0] = pm_net_add(r->net, "logits", pm_net_input(r->net, "x", PM_SHAPE1(1), PM_F32),
                       "parameter shape=[10,3]");
    pm_net_add_many(r->net, "loss", in, 2, "softmax_cross_entropy %s", loss);
    ok(r->net->error);
    ok(pm_variables_create(d, r->net, true, NULL, &r->v));
    ok(pm_variables_allocate(r->v));
    ok(pm_variables_init(r->v, 1, NULL));
    ok(pm_plan_create(r->net, d, r->v, &options, &r->plan));
    ok(pm_plan_load(r->plan));
}

/* The loss of one step; dz gets its gradient. */
static double step(struct run *r, const float logits[ROWS * K], const int32_t labels[ROWS],
                   uint32_t number)
{
    ok(pm_variables_write(r->v, 0, -1, logits));
    memcpy(pm_plan_input(r->plan, 0, "labels", 0), labels, ROWS * sizeof *labels);
    *pm_plan_step(r->plan, 0) = (struct pm_step){ .step = number, .loss_scale = 1 };
    ok(pm_plan_submit(r->plan, 0));
    ok(pm_plan_wait(r->plan, 0));
    ok(pm_buffer_read(r->d, r->v->grads, 0, r->dz, sizeof r->dz));
    return pm_plan_loss(r->plan, 0);
}

static void stop(struct run *r)
{
    pm_plan_destroy(&r->plan);
    pm_variables_destroy(&r->v);
    pm_net_destroy(&r->net);
}

/* rows: "x" for a row with a gradient, which must be that of a mean over `count` rows. */
static void expect_rows(const struct run *r, const int32_t labels[ROWS], const char *rows,
                        int count)
{
    for (int i = 0; i < ROWS * K; i++) {
        const double target = i % K == labels[i / K];
        const double want = rows[i / K] == 'x' ? (1.0 / K - target) / count : 0;

        if (!(fabs(r->dz[i] - want) <= 1e-6))
            fail_msg("%s: the gradient of row %d is %g, not %g", pm_device_get_info(r->d)->name,
                     i / K, r->dz[i], want);
    }
}

static const float zeros[ROWS * K];
static const int32_t some[ROWS] = { 0, 255, 1, 2, 255, 0, 1, 2, 0, 1 };

static void equal_losses(struct pm_device *d)
{
    struct run r;

    start(&r, d, "ignore_label=255 top_k_percent=0.5");
    assert_true(fabs(step(&r, zeros, some, 0) - log(K)) < 1e-6);
    expect_rows(&r, some, "x.xx.xx...", 5);
    stop(&r);
}

/* 10, 7 and 5 of 10 rows; 2 of them are ignored. */
static void falling_share(struct pm_device *d)
{
    struct run r;

    start(&r, d, "ignore_label=255 top_k_percent=0.5 mining_steps=5");
    assert_true(fabs(step(&r, zeros, some, 0) - log(K)) < 1e-6);
    expect_rows(&r, some, "x.xx.xxxxx", 8);
    assert_true(fabs(step(&r, zeros, some, 3) - log(K)) < 1e-6);
    expect_rows(&r, some, "x.xx.xxxx.", 7);
    assert_true(fabs(step(&r, zeros, some, 5) - log(K)) < 1e-6);
    expect_rows(&r, some, "x.xx.xx...", 5);
    step(&r, zeros, some, 4000000000u);
    expect_rows(&r, some, "x.xx.xx...", 5);
    stop(&r);
}

/* A row whose label is not a class is always kept. When all rows are ignored, the loss is 0. */
static void odd_labels(struct pm_device *d)
{
    const int32_t wrong[ROWS] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 7 };
    int32_t ignored[ROWS];
    struct run r;

    for (int i = 0; i < ROWS; i++)
        ignored[i] = 255;
    start(&r, d, "ignore_label=255 top_k_percent=0.1");
    assert_true(isnan(step(&r, zeros, wrong, 0)));
    assert_true(isnan(r.dz[9 * K]));
    assert_true(step(&r, zeros, ignored, 0) == 0);
    expect_rows(&r, ignored, "..........", 1);
    stop(&r);
}

/* The loss of row i grows with i. One row's class has the weight 2. */
static void weighted(struct pm_device *d)
{
    static const int32_t labels[ROWS] = { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    float logits[ROWS * K] = { 0 };
    double want = 0;
    struct run r;

    for (int i = 0; i < ROWS; i++)
        logits[i * K + 2] = (float)(1 + 0.1 * i);
    start(&r, d, "top_k_percent=0.2 label_weights=[1,2,1]");
    want = 2 * log(2 + exp(1)) + log(2 + exp(1.9));
    assert_true(fabs(step(&r, logits, labels, 0) - want / 2) < 1e-6);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(r.dz[i * K] != 0, i == 0 || i == 9);
    stop(&r);
}

static void divisors(struct pm_device *d)
{
    static const int32_t labels[ROWS] = { 0, 1, 1, 255, 2, 255, 255, 255, 255, 255 };
    struct run r;

    start(&r, d, "ignore_label=255 label_weights=[1,2,0] normalize=kept_pixels");
    assert_true(fabs(step(&r, zeros, labels, 0) - 5 * log(K) / 4) < 1e-6);
    stop(&r);
    start(&r, d, "ignore_label=255 label_weights=[1,2,0]");
    assert_true(fabs(step(&r, zeros, labels, 0) - 5 * log(K) / 3) < 1e-6);
    stop(&r);
}

static void test_equal_losses(void **state)
{
    (void)state;
    on_every_device(equal_losses);
}

static void test_falling_share(void **state)
{
    (void)state;
    on_every_device(falling_share);
}

static void test_odd_labels(void **state)
{
    (void)state;
    on_every_device(odd_labels);
}

static void test_weighted(void **state)
{
    (void)state;
    on_every_device(weighted);
}

static void test_divisors(void **state)
{
    (void)state;
    on_every_device(divisors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_losses), cmocka_unit_test(test_falling_share),
        cmocka_unit_test(test_odd_labels),   cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_divisors),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
