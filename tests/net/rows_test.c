/* Rows per example: in a tensor whose first axis has several rows for each example, dropout and
 * drop_path give each row the mask that it has in the whole batch, on any clone and in any
 * micro-batch. Rows that belong to no example have the same mask everywhere. */
#include "two_steps.h"

static struct pm_device *device;

enum { EXAMPLES = 4, SIDE = 4, WIDTH = 12, ROWS = EXAMPLES * SIDE };

/* Each row of a picture becomes a row of the first axis. */
static const char list[] =
    "[{\"name\": \"rows\", \"layer\": \"reshape\", \"shape\": [-1, 12]},"
    " {\"name\": \"a\", \"layer\": \"fully_connected\", \"units\": 12},"
    " {\"name\": \"values\", \"layer\": \"dropout\", \"keep\": 0.5},"
    " {\"name\": \"paths\", \"layer\": \"drop_path\", \"keep\": 0.5, \"inputs\": \"a\"},"
    " {\"name\": \"sum\", \"layer\": \"add\", \"inputs\": [\"values\", \"paths\"]},"
    " {\"name\": \"p\", \"layer\": \"parameter\", \"shape\": [4, 12], \"init\": \"constant(1)\","
    "  \"inputs\": \"images\"},"
    " {\"name\": \"shared\", \"layer\": \"dropout\", \"keep\": 0.5},"
    " {\"name\": \"again\", \"layer\": \"reshape\", \"shape\": [-1, 4, 12], \"inputs\": \"sum\"},"
    " {\"name\": \"with\", \"layer\": \"add\", \"inputs\": [\"again\", \"shared\"]},"
    " {\"name\": \"f\", \"layer\": \"flatten\"},"
    " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";

/* True for each value of the whole batch that was kept. */
struct masks {
    bool values[ROWS * WIDTH], paths[ROWS * WIDTH], shared[SIDE * WIDTH];
};

static void get(const struct pm_plan *p, const char *name, int m, bool *kept, size_t count)
{
    const float *y = pm_plan_output(p, 0, name, m);

    assert_non_null(y);
    for (size_t i = 0; i < count; i++)
        kept[i] = y[i] != 0;
}

/* Runs the part of one clone: examples first..first+count-1, in micro-batches. */
static void run_part(struct masks *k, int first, int count, int micro_batches)
{
    static const char *const names[] = { "values", "paths", "shared", NULL };
    const int batch = count / micro_batches;
    struct pm_net *net = net_with_losses(list, batch, SIDE);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;

    check(pm_variables_create(device, net, true, NULL, &v));
    check(pm_variables_allocate(v));
    check(pm_variables_init(v, 5, NULL));
    check(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = micro_batches, .first_example = first,
        .outputs = names, .slots = 1 }, &plan));
    check(pm_plan_load(plan));
    for (int m = 0; m < micro_batches; m++)
        fill_micro_batch(plan, net, m);
    *pm_plan_step(plan, 0) = (struct pm_step){ .step = 1, .seed_low = 3, .loss_scale = 1 };
    check(pm_plan_submit(plan, 0));
    check(pm_plan_wait(plan, 0));
    for (int m = 0; m < micro_batches; m++) {
        const int at = (first + m * batch) * SIDE * WIDTH;

        get(plan, "values", m, k->values + at, (size_t)batch * SIDE * WIDTH);
        get(plan, "paths", m, k->paths + at, (size_t)batch * SIDE * WIDTH);
        get(plan, "shared", m, k->shared, SIDE * WIDTH);
    }
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

static void same_masks(void)
{
    struct masks one, two, micro, both;
    int alike = 0;

    run_part(&one, 0, 4, 1);
    run_part(&two, 0, 2, 1);
    assert_memory_equal(one.shared, two.shared, sizeof one.shared);
    run_part(&two, 2, 2, 1);
    run_part(&micro, 0, 4, 4);
    run_part(&both, 0, 2, 2);
    run_part(&both, 2, 2, 1);
    assert_memory_equal(&two, &one, sizeof one);
    assert_memory_equal(&micro, &one, sizeof one);
    assert_memory_equal(&both, &one, sizeof one);
    for (int i = 1; i < ROWS; i++) /* no two rows share a mask */
        for (int j = 0; j < i; j++)
            alike += !memcmp(one.values + i * WIDTH, one.values + j * WIDTH, WIDTH);
    assert_int_equal(alike, 0);
}

static void masks_follow_rows(void **state)
{
    (void)state;
    same_masks();
}

static void masks_follow_rows_on_a_gpu(void **state)
{
    struct pm_device *cpu = device, *gpu = device_called("llvmpipe", true);

    (void)state;
    if (!gpu)
        skip();
    device = gpu;
    same_masks();
    assert_int_equal(pm_device_messages(), 0);
    pm_device_close(&device);
    device = cpu;
}

/* The batch is the second axis: no mask of a micro-batch or clone is that of another. */
static void masks_of_a_moved_batch(void **state)
{
    static const char moved[] =
        "[{\"name\": \"t\", \"layer\": \"transpose\", \"perm\": [3, 0, 1, 2]},"
        " {\"name\": \"values\", \"layer\": \"dropout\", \"keep\": 0.5},"
        " {\"name\": \"b\", \"layer\": \"transpose\", \"perm\": [1, 2, 3, 0]},"
        " {\"name\": \"f\", \"layer\": \"flatten\"},"
        " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]";
    enum { BATCH = 2, PARTS = 2, MICRO = 2, VALUES = 3 * BATCH * SIDE * SIDE };
    static const char *const names[] = { "values", NULL };
    bool kept[PARTS * MICRO][VALUES];

    (void)state;
    for (int part = 0; part < PARTS; part++) {
        struct pm_net *net = net_with_losses(moved, BATCH, SIDE);
        struct pm_variables *v = NULL;
        struct pm_plan *plan = NULL;

        assert_int_equal(pm_net_find(net, "t")->out_rows, PM_ROWS_MIXED);
        assert_int_equal(pm_net_find(net, "b")->out_rows, 1);
        check(pm_variables_create(device, net, true, NULL, &v));
        check(pm_variables_allocate(v));
        check(pm_variables_init(v, 5, NULL));
        check(pm_plan_create(net, device, v, &(struct pm_plan_options){
            .train = true, .loss_share = 1, .micro_batches = MICRO, .outputs = names, .slots = 1,
            .first_example = part * MICRO * BATCH }, &plan));
        check(pm_plan_load(plan));
        for (int m = 0; m < MICRO; m++)
            fill_micro_batch(plan, net, m);
        *pm_plan_step(plan, 0) = (struct pm_step){ .step = 1, .seed_low = 3, .loss_scale = 1 };
        check(pm_plan_submit(plan, 0));
        check(pm_plan_wait(plan, 0));
        for (int m = 0; m < MICRO; m++)
            get(plan, "values", m, kept[part * MICRO + m], VALUES);
        pm_plan_destroy(&plan);
        pm_variables_destroy(&v);
        pm_net_destroy(&net);
    }
    for (int i = 1; i < PARTS * MICRO; i++)
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(kept[i], kept[k], sizeof kept[i]);
}

/* How layers change the number of rows per example. */
static void rows_of_nodes(void **state)
{
    static const struct { const char *name; int rows; } want[] = {
        { "images", 1 }, { "rows", 4 }, { "a", 4 }, { "values", 4 }, { "sum", 4 }, { "p", 0 },
        { "shared", 0 }, { "again", 1 }, { "with", 1 }, { "logits", 1 }, { "labels", 1 },
        { "loss", 0 },
    };
    struct pm_net *net = net_with_losses(list, 3, SIDE);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(want); i++)
        if (pm_net_find(net, want[i].name)->out_rows != want[i].rows)
            fail_msg("%s has %d rows for each example, not %d", want[i].name,
                     pm_net_find(net, want[i].name)->out_rows, want[i].rows);
    struct pm_node *boxes = pm_net_input(net, "boxes", PM_SHAPE2(15, 4), PM_F32);
    assert_int_equal(boxes->out_rows, 5);
    assert_int_equal(net->batch, 3);
    struct pm_node *halves = pm_net_add(net, "halves", boxes, "split");
    assert_int_equal(halves->out[1]->out_rows, 5);
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_nodes),
        cmocka_unit_test(masks_follow_rows),
        cmocka_unit_test(masks_of_a_moved_batch),
        cmocka_unit_test(masks_follow_rows_on_a_gpu),
    };
    int failed;

    device = device_called("cpu", false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    return failed;
}
