/* The lists that a task fills, outputs of a net and pictures, hold more entries than any task
 * uses today. */
#include "tasks/planned.h"

#include <pumice/task.h>

enum { MANY = 100 };

/* Output k is k times the input. */
static void many_outputs(void **state)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE2(1, 3), PM_F32);
    struct pm_outputs out = { 0 };

    (void)state;
    for (int k = 0; k < MANY; k++)
        pm_outputs_add(net, &out,
                       pm_net_add(net, pm_arena_printf(net->arena, "by_%d", k), x,
                                  "affine scale=%d", k), k % 3);
    assert_int_equal(net->error, PM_OK);
    assert_int_equal(out.count, MANY);
    assert_null(out.node[MANY]);
    struct planned p = planned(net, out.node);
    memcpy(pm_plan_input(p.plan, 0, "x", 0), (const float[]){ 1, -2, 3 }, 3 * sizeof(float));
    run_plan(p.plan);
    for (int k = 0; k < MANY; k++) {
        const float *y = pm_plan_output(p.plan, 0, out.node[k], 0);

        assert_true(y[0] == (float)k && y[1] == (float)-2 * (float)k);
        assert_int_equal(out.places[k], k % 3);
    }
    drop_plan(&p);
    pm_net_destroy(&net);
}

/* Pictures keep their names and pixels when the list grows, and are freed with it. */
static void many_drawings(void **state)
{
    const uint64_t live = pm_live_count();
    struct pm_drawings d = { 0 };

    (void)state;
    for (int k = 0; k < MANY; k++) {
        struct pm_image8 *im = pm_drawings_add(&d, k % 2 ? "odd" : "even");

        *im = (struct pm_image8){ 1, 1, 1, pm_malloc(1) };
        im->pixels[0] = (uint8_t)k;
    }
    assert_int_equal(d.count, MANY);
    for (int k = 0; k < MANY; k++) {
        assert_string_equal(d.list[k].what, k % 2 ? "odd" : "even");
        assert_int_equal(d.list[k].image.pixels[0], k);
    }
    pm_drawings_free(&d);
    assert_int_equal(d.count, 0);
    assert_true(pm_live_count() == live);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(many_outputs),
                                        cmocka_unit_test(many_drawings) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
