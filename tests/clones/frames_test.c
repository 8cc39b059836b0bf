/* Training pictures of several sizes. A step uses the plan of its batch's size and equals, bit
 * for bit, the step of clones with this size only, from the same variables, with dropout, batch
 * norm and an optimizer with a slot. Steps of different sizes may be under way at once. The
 * plans share one block of activations of the largest size. Two clones follow one, also on two
 * drivers. A net whose variables depend on the size is refused. */
#include "clones/clones.h"
#include "clones/clones_setup.h"

#include <math.h>
#include <string.h>

enum { BATCH = 4, CLASSES = 5, C = 3, STEPS = 9, SLOTS = 3, FRAMES = 3, MOST = 24 * 40 };

static const struct pm_frame frames[FRAMES] = { { 24, 40 }, { 12, 12 }, { 24, 8 } };
/* The frame of each step; every pair of frames occurs in sequence. */
static const int order[STEPS] = { 0, 1, 1, 2, 0, 0, 2, 1, 0 };

static const struct pm_field fields[] = {
    { "images", PM_F32, { 3, { 24, 40, C } }, 0 },
    { "labels", PM_I32, { 2, { 24, 40 } }, -1 },
};

/* ctx not NULL: adds a layer whose weights depend on the size. */
static int build(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x =
        pm_net_input(net, "images", PM_SHAPE4(batch, height, width, C), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE3(batch, height, width), PM_I32);

    x = pm_net_add(net, "a", x, "conv2d filters=8 kernel=3 bias=false");
    x = pm_net_add(net, "an", x, "batch_norm activation=relu");
    x = pm_net_add(net, "drop", x, "dropout keep=0.75");
    if (ctx)
        pm_net_add(net, "sized", x, "fully_connected units=3");
    x = pm_net_add(net, "logits", x, "conv2d filters=%d kernel=1", CLASSES);
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2,
                    "softmax_cross_entropy ignore_label=-1");
    *out = net;
    return net->error;
}

struct data {
    float images[BATCH * MOST * C];
    int32_t labels[BATCH * MOST];
};

/* A pixel's class is the channel with the largest value. */
static void make_data(struct data *d, int step)
{
    struct pm_rng r = pm_rng_make(11, 7, (uint32_t)step, 0);

    for (int i = 0; i < BATCH * MOST; i++) {
        d->labels[i] = i % 7 == 0 ? -1 : 0;
        for (int c = 0; c < C; c++) {
            d->images[i * C + c] = (float)pm_rng_uniform(&r);
            if (d->labels[i] >= 0 && d->images[i * C + c] > d->images[i * C + d->labels[i]])
                d->labels[i] = c;
        }
    }
}

static struct pm_clones *clones(const struct pm_device_info *devices, int count, int first,
                                int frame_count, int micro_batches)
{
    static char cfg[64];
    const struct pm_optimizer *row = pm_optimizer_find("momentum");
    struct pm_clone_spec specs[2];
    struct pm_clones *c = NULL;

    pm_opts_defaults(row->opts, cfg, NULL);
    for (int i = 0; i < count; i++)
        specs[i] = (struct pm_clone_spec){ .info = devices[i], .share = 1, .threads = 1 };
    check(pm_clones_create(&(struct pm_clones_options){
        .specs = specs, .count = count, .batch = BATCH, .micro_batches = micro_batches,
        .slots = SLOTS, .device.validate = true, .frames = frames + first,
        .frames_count = frame_count, .build = build, .fields = fields, .fields_count = 2,
        .update = { .optimizer = row, .cfg = cfg, .weight_decay = 1e-3f } }, &c));
    check(pm_optimizer_init(row, cfg, pm_clones_master(c), 3));
    check(pm_clones_scatter(c));
    return c;
}

static void submit(struct pm_clones *c, int step, int slot)
{
    static struct data d;
    const struct pm_batch batch = { .field = (void *[]){ d.images, d.labels }, .valid = BATCH,
                                    .frame = frames[order[step]] };

    make_data(&d, step);
    check(pm_clones_step(c, slot, &batch, &(struct pm_step){
        .step = (uint32_t)step, .seed_low = 5, .lr = 0.05f, .loss_scale = 1 }));
}

/* All values that a step changes. */
struct state {
    char *bits; /* values, gradients (one clone), slot */
    size_t bytes;
};

static struct state read_state(const struct pm_clones *c)
{
    struct pm_variables *v = pm_clones_master(c);
    struct state s = { .bytes = v->bytes + v->gradient_bytes + v->trainable_bytes };

    s.bits = pm_malloc(s.bytes);
    check(pm_buffer_read(v->device, v->values, 0, s.bits, v->bytes));
    check(pm_buffer_read(v->device, v->grads, 0, s.bits + v->bytes, v->gradient_bytes));
    check(pm_buffer_read(v->device, v->slots[0], 0, s.bits + v->bytes + v->gradient_bytes,
                         v->trainable_bytes));
    return s;
}

static void write_state(const struct pm_clones *c, struct state s)
{
    struct pm_variables *v = pm_clones_master(c);

    assert_int_equal(s.bytes, v->bytes + v->gradient_bytes + v->trainable_bytes);
    check(pm_buffer_write(v->device, v->values, 0, s.bits, v->bytes));
    check(pm_buffer_write(v->device, v->slots[0], 0, s.bits + v->bytes + v->gradient_bytes,
                          v->trainable_bytes));
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Compares each step with clones of one size only, made from the same values. */
static void check_steps(const struct pm_device_info *devices, int count, int micro_batches)
{
    struct pm_clones *all = clones(devices, count, 0, FRAMES, micro_batches), *own[FRAMES];

    for (int k = 0; k < FRAMES; k++)
        own[k] = clones(devices, count, k, 1, micro_batches);
    for (int s = 0; s < STEPS; s++) {
        struct pm_clones *one = own[order[s]];
        struct state before, after, expected;
        struct pm_step_result r, wanted;

        check(pm_clones_gather(all));
        before = read_state(all);
        write_state(one, before);
        check(pm_clones_scatter(one));
        submit(all, s, s % SLOTS);
        check(pm_clones_collect(all, s % SLOTS, &r));
        submit(one, s, s % SLOTS);
        check(pm_clones_collect(one, s % SLOTS, &wanted));
        check(pm_clones_gather(all));
        check(pm_clones_gather(one));
        after = read_state(all);
        expected = read_state(one);
        assert_true(r.loss == wanted.loss && r.norm == wanted.norm && r.l2 == wanted.l2);
        assert_true(r.finite && memcmp(before.bits, after.bits, after.bytes) != 0);
        assert_memory_equal(after.bits, expected.bits, after.bytes);
        pm_free(before.bits), pm_free(after.bits), pm_free(expected.bits);
    }
    for (int k = 0; k < FRAMES; k++)
        pm_clones_destroy(&own[k]);
    pm_clones_destroy(&all);
}

struct run {
    double loss[STEPS];
    struct state end;
};

/* under_way: number of steps that are submitted before one is collected. */
static struct run train(const struct pm_device_info *devices, int count, int under_way)
{
    struct pm_clones *c = clones(devices, count, 0, FRAMES, 1);
    struct run run = { .end.bits = NULL };
    struct pm_step_result r;
    int collected = 0;

    for (int s = 0; s < STEPS || collected < STEPS;) {
        const uint64_t allocations = pm_alloc_count();
        const uint64_t memory = pm_device_memory_used(pm_clones_device(c, 0));

        if (s < STEPS && s - collected < under_way) {
            submit(c, s, s % SLOTS);
            s++;
        } else {
            check(pm_clones_collect(c, collected % SLOTS, &r));
            run.loss[collected++] = r.loss;
        }
        assert_int_equal(pm_alloc_count(), allocations);
        assert_int_equal(pm_device_memory_used(pm_clones_device(c, 0)), memory);
    }
    check(pm_clones_gather(c));
    run.end = read_state(c);
    pm_clones_destroy(&c);
    return run;
}

static void check_under_way(const struct pm_device_info *device)
{
    struct run one = train(device, 1, 1), three = train(device, 1, SLOTS);

    for (int s = 0; s < STEPS; s++)
        assert_true(one.loss[s] == three.loss[s]);
    assert_memory_equal(one.end.bits, three.end.bits, one.end.bytes);
    assert_true(one.loss[STEPS - 1] < one.loss[0]); /* both steps have 24 x 40 pixels */
    pm_free(one.end.bits), pm_free(three.end.bits);
}

static void test_cpu(void **state)
{
    const struct pm_device_info devices[] = { cpu(), cpu() };

    (void)state;
    check_steps(devices, 1, 1);
    check_steps(devices, 1, 2);
    check_steps(devices, 2, 1);
    check_under_way(devices);
}

static bool find(const char *name, struct pm_device_info *out)
{
    struct pm_device_info *list;
    size_t count, index;
    bool found;

    check(pm_device_list(&list, &count));
    found = pm_device_find(list, count, name, "test", &index) == PM_OK;
    if (found)
        *out = list[index];
    pm_free(list);
    return found;
}

static void test_lavapipe(void **state)
{
    struct pm_device_info device;

    (void)state;
    if (!find("llvmpipe", &device))
        skip();
    check_steps(&device, 1, 1);
    check_under_way(&device);
    assert_int_equal(pm_device_messages(), 0);
}

/* Two drivers follow two clones on the CPU with the same parts of the batch. Sums of floats in
 * another order change the loss by a relative error of some 1e-7. */
static void test_two_drivers_follow(void **state)
{
    struct pm_device_info devices[2];
    const struct pm_device_info host[] = { cpu(), cpu() };
    struct run expected, run;

    (void)state;
    if (!find("llvmpipe", &devices[0]) || !find("SwiftShader", &devices[1]))
        skip();
    expected = train(host, 2, 1);
    run = train(devices, 2, 1);
    for (int s = 0; s < STEPS; s++)
        assert_true(fabs(run.loss[s] - expected.loss[s]) <= 1e-5 * expected.loss[s]);
    pm_free(expected.end.bits), pm_free(run.end.bits);
}

/* ---- memory ------------------------------------------------------------------------------ */

static void test_one_block(void **state)
{
    const struct pm_device_info device = cpu();
    struct pm_clones *all = clones(&device, 1, 0, FRAMES, 1);
    struct pm_clones *largest = clones(&device, 1, 0, 1, 1);
    const struct pm_plan_memory m = pm_clones_memory(all, 0), one = pm_clones_memory(largest, 0);
    uint64_t sum = 0, constants = 0;

    (void)state;
    for (int k = 0; k < FRAMES; k++) {
        const struct pm_plan_memory plan = pm_plan_memory(pm_clones_plan(all, 0, k));

        assert_true(plan.activations <= m.activations);
        sum += plan.activations;
        constants += plan.constants;
    }
    assert_true(sum > m.activations + m.activations / 8);
    assert_int_equal(m.activations, one.activations);
    assert_int_equal(m.constants, constants);
    assert_int_equal(m.total, one.total + constants - one.constants);
    assert_int_equal(pm_device_memory_used(pm_clones_device(all, 0)) -
                         pm_device_memory_used(pm_clones_device(largest, 0)),
                     constants - one.constants);
    pm_clones_destroy(&largest);
    pm_clones_destroy(&all);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void test_variables_of_one_size(void **state)
{
    const struct pm_clone_spec spec = { .info = cpu(), .share = 1 };
    struct pm_clones *c = NULL;
    char cfg[64];

    (void)state;
    pm_opts_defaults(pm_optimizer_find("sgd")->opts, cfg, NULL);
    assert_int_equal(pm_clones_create(&(struct pm_clones_options){
        .specs = &spec, .count = 1, .batch = BATCH, .micro_batches = 1, .slots = 1,
        .frames = frames, .frames_count = 2, .build = build, .ctx = cfg, .fields = fields,
        .fields_count = 2, .update = { .optimizer = pm_optimizer_find("sgd"), .cfg = cfg } }, &c),
        PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "depend on the size of pictures: sized/weights"));
    assert_non_null(strstr(pm_error_text(), "for 12 x 12, "));
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_lavapipe),
        cmocka_unit_test(test_two_drivers_follow),
        cmocka_unit_test(test_one_block),
        cmocka_unit_test(test_variables_of_one_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
