/* argmax on values that random inputs never hold: equal values, signed zeros, numbers near zero,
 * infinities and NaN, on the CPU and every device. Also a net that trains on its own
 * predictions. */
#include <pumice/plan.h>

#include "device/every_device.h"

enum { ROWS = 9, K = 5, WIDE = 70 };

#define TINY 1e-42f /* denormal; no device may treat it as 0 */

static const struct { float x[K]; int place; } rows[ROWS] = {
    { { 1, 3, 3, 2, 3 }, 1 },
    { { -0.0f, 0, -0.0f, -1, 0 }, 0 },
    { { -TINY, -0.0f, TINY, 2 * TINY, TINY }, 3 },
    { { -3, -2, -1, -2, -3 }, 2 },
    { { NAN, -INFINITY, -5, NAN, -6 }, 2 },
    { { NAN, NAN, NAN, NAN, NAN }, 0 },
    { { -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY }, 0 },
    { { NAN, -INFINITY, NAN, -INFINITY, NAN }, 1 },
    { { 3e38f, INFINITY, INFINITY, -NAN, NAN }, 1 },
};

/* Fills the rest of a row of `width` values with smaller ones. */
static void fill(float *x, int width)
{
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < width; i++)
            x[r * width + i] = i < K ? rows[r].x[i] : r % 2 ? NAN : -INFINITY;
}

static void expect_places(struct pm_device *d, int width)
{
    static const char *const outputs[] = { "places", NULL };
    const struct pm_plan_options options = { .outputs = outputs, .slots = 1, .loss_share = 1 };
    struct pm_net *net = pm_net_create();
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;

    pm_net_add(net, "places", pm_net_input(net, "x", PM_SHAPE2(ROWS, width), PM_F32), "argmax");
    ok(net->error);
    ok(pm_variables_create(d, net, false, NULL, &variables));
    ok(pm_plan_create(net, d, variables, &options, &plan));
    ok(pm_plan_load(plan));
    fill(pm_plan_input(plan, 0, "x", 0), width);
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    const int32_t *place = pm_plan_output(plan, 0, "places", 0);
    for (int r = 0; r < ROWS; r++)
        if (place[r] != rows[r].place)
            fail_msg("%s: row %d of %d values: %d instead of %d", pm_device_get_info(d)->name, r,
                     width, place[r], rows[r].place);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
}

static void test_places(void **state)
{
    struct every_device e = { 0 };

    (void)state;
    while (next_device(&e)) {
        expect_places(e.d, K);
        expect_places(e.d, WIDE);
    }
}

/* Computed labels may be used in training: no gradient passes through them. */
static void test_own_answers(void **state)
{
    const struct pm_plan_options options = { .train = true, .slots = 1, .loss_share = 1 };
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE2(4, 6), PM_F32), *in[2];
    struct pm_device_info *list;
    struct pm_device *d = NULL;
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    size_t count, index;

    (void)state;
    in[0] = pm_net_add(net, "logits", x, "fully_connected units=3");
    in[1] = pm_net_add(net, "labels", in[0], "argmax");
    pm_net_add_many(net, "loss", in, 2, "softmax_cross_entropy");
    ok(net->error);
    ok(pm_device_list(&list, &count));
    ok(pm_device_find(list, count, "cpu", "test", &index));
    ok(pm_device_open(&list[index], &(struct pm_device_options){ .threads = 1 }, &d));
    ok(pm_variables_create(d, net, true, NULL, &variables));
    ok(pm_variables_allocate(variables));
    ok(pm_variables_init(variables, 1, NULL));
    ok(pm_plan_create(net, d, variables, &options, &plan));
    ok(pm_plan_load(plan));
    for (int i = 0; i < 24; i++)
        ((float *)pm_plan_input(plan, 0, "x", 0))[i] = (float)(i * 7 % 5) - 2;
    if (pm_plan_step(plan, 0))
        *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    assert_true(pm_plan_loss(plan, 0) > 0 && pm_plan_loss(plan, 0) < log(3));
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_device_close(&d);
    pm_free(list);
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_own_answers),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
