/* lstm on the CPU and every device: outputs and gradients of tests/golden/lstm.json, which PyTorch
 * computed in double precision; micro-batches, threads, recomputing and padded steps, which change
 * nothing; the number of dispatches; and what the layer refuses. */
#include "device/every_device.h"
#include "loss_runs.h"
#include "refused_layers.h"

enum { MOST = 4096, MOST_EXAMPLES = 8 };

/* A layer on n sequences, and a target of its output. */
struct scene {
    char options[64];
    int n, t, c, units;
    float kernel[MOST], bias[256], x[MOST], target[MOST];
    int32_t lengths[MOST_EXAMPLES];
};
struct result {
    float loss, y[MOST], dx[MOST], dkernel[MOST], dbias[256];
};

/* ---- running --------------------------------------------------------------------------------- */

static size_t count_x(const struct scene *s)
{
    return (size_t)(s->n * s->t * s->c);
}

static size_t count_y(const struct scene *s)
{
    return (size_t)(s->n * s->t * s->units);
}

static size_t count_kernel(const struct scene *s)
{
    return (size_t)((s->c + s->units) * 4 * s->units);
}

/* x: a parameter, which has a gradient, or an input of n examples. */
static struct pm_net *net_of(const struct scene *s, int n, bool parameter)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[2], *loss[2];

    in[1] = pm_net_input(net, "lengths", PM_SHAPE1(n), PM_I32);
    loss[1] = pm_net_input(net, "target", PM_SHAPE3(n, s->t, s->units), PM_F32);
    in[0] = parameter ? pm_net_add(net, "x", loss[1], "parameter shape=[%d,%d,%d]", n, s->t, s->c)
                      : pm_net_input(net, "x", PM_SHAPE3(n, s->t, s->c), PM_F32);
    loss[0] = pm_net_add_many(net, "lstm", in, 2, "lstm units=%d %s", s->units, s->options);
    pm_net_add_many(net, "loss", loss, 2, "squared_error");
    ok(net->error);
    return net;
}

static void give(struct pm_plan *p, const char *name, int m, const void *all, size_t each, int n)
{
    memcpy(pm_plan_input(p, 0, name, m), (const char *)all + 4 * each * (size_t)(m * n),
           4 * each * (size_t)n);
}

static void give_all(struct pm_plan *p, const struct scene *s, int m, int n, bool parameter)
{
    if (!parameter)
        give(p, "x", m, s->x, (size_t)(s->t * s->c), n);
    give(p, "lengths", m, s->lengths, 1, n);
    give(p, "target", m, s->target, (size_t)(s->t * s->units), n);
}

/* One step of training. micro_batches above 1: x is an input, without a gradient. */
static void train(struct pm_device *d, const struct scene *s, int micro_batches,
                  struct result *out)
{
    static const char *const outputs[] = { "lstm", NULL };
    const int n = s->n / micro_batches;
    const size_t part = count_y(s) / (size_t)micro_batches;
    struct run r = open_training(d, net_of(s, n, micro_batches == 1),
                                 micro_batches == 1 ? s->x : NULL, micro_batches, outputs);

    memset(out, 0, sizeof *out);
    write_variable(r.v, "lstm/kernel", s->kernel);
    write_variable(r.v, "lstm/bias", s->bias);
    for (int m = 0; m < micro_batches; m++)
        give_all(r.p, s, m, n, micro_batches == 1);
    start(r.p);
    out->loss = (float)pm_plan_loss(r.p, 0);
    for (int m = 0; m < micro_batches; m++)
        memcpy(out->y + part * (size_t)m, pm_plan_output(r.p, 0, "lstm", m),
               part * sizeof *out->y);
    if (micro_batches == 1)
        ok(pm_buffer_read(d, r.v->grads, r.v->offset[0], out->dx, count_x(s) * sizeof(float)));
    read_gradient(d, r.v, "lstm/kernel", out->dkernel, count_kernel(s));
    read_gradient(d, r.v, "lstm/bias", out->dbias, 4 * (size_t)s->units);
    close_run(&r);
}

/* ---- goldens --------------------------------------------------------------------------------- */

static void draw(uint32_t *seed, size_t count, float scale, float shift, float *out)
{
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++)
        out[i] = (float)number(seed, 1 << 15) * scale - shift;
}

static struct scene scene_of(const cJSON *c, uint32_t seed)
{
    struct scene s = { .t = integer(c, "steps"), .c = integer(c, "channels"),
                       .units = integer(c, "units") };
    const cJSON *item;

    snprintf(s.options, sizeof s.options, "%s", cJSON_GetObjectItem(c, "options")->valuestring);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c, "lengths"))
        s.lengths[s.n++] = item->valueint;
    draw(&seed, count_kernel(&s), 0x1p-14f, 1, s.kernel);
    draw(&seed, 4 * (size_t)s.units, 0x1p-14f, 1, s.bias);
    draw(&seed, count_x(&s), 0x1p-13f, 2, s.x);
    draw(&seed, count_y(&s), 0x1p-14f, 1, s.target);
    return s;
}

/* The sum of a gate has up to 9 products of at most 2, so 10 roundings of numbers of up to 16, and
 * a gate has a quarter of that error: 40 units of 2^-24. A step passes at most its own and the
 * errors of the step before on, forward and backward: 6 steps, twice, 480 units of numbers of about
 * 1. The limit, relative to the largest number, is 2^9 units. */
static void compare(const struct pm_device *d, const cJSON *c, const char *name, const float *got,
                    size_t count)
{
    compare_golden(pm_device_get_info(d)->name, cJSON_GetObjectItem(c, "options")->valuestring,
                   cJSON_GetObjectItem(c, name), name, got, count, 0x1p-15);
}

static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("lstm.json"), *c;
    static struct result r;
    uint32_t seed = 1;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const struct scene s = scene_of(c, seed++);
        const double loss = cJSON_GetObjectItem(c, "loss")->valuedouble;

        train(d, &s, 1, &r);
        assert_float_equal(r.loss, loss, 0x1p-15 * loss);
        compare(d, c, "y", r.y, count_y(&s));
        compare(d, c, "dx", r.dx, count_x(&s));
        compare(d, c, "dkernel", r.dkernel, count_kernel(&s));
        compare(d, c, "dbias", r.dbias, 4 * (size_t)s.units);
    }
    assert_int_equal(seed, 1 + 6);
    cJSON_Delete(all);
}

/* ---- runs that must be equal ----------------------------------------------------------------- */

static struct scene random_scene(const char *options)
{
    struct scene s = { .n = 4, .t = 5, .c = 3, .units = 6, .lengths = { 5, 0, 3, 1 } };
    uint32_t seed = 99;

    snprintf(s.options, sizeof s.options, "%s", options);
    draw(&seed, count_kernel(&s), 0x1p-14f, 1, s.kernel);
    draw(&seed, 4 * (size_t)s.units, 0x1p-14f, 1, s.bias);
    draw(&seed, count_x(&s), 0x1p-13f, 2, s.x);
    draw(&seed, count_y(&s), 0x1p-14f, 1, s.target);
    return s;
}

static void same_bits(struct pm_device *d)
{
    const struct scene s = random_scene("");
    static struct result a, b;

    train(d, &s, 1, &a);
    train(d, &s, 1, &b);
    assert_true(a.loss > 0.1f);
    assert_memory_equal(&a, &b, sizeof a);
}

/* The number of threads changes no bit. */
static void threads(void **state)
{
    static const int counts[] = { 1, 3 };
    static struct result r[PM_COUNT(counts)];
    const struct scene s = random_scene("");

    (void)state;
    for (size_t i = 0; i < PM_COUNT(counts); i++) {
        struct pm_device *d = cpu_with(counts[i]);

        train(d, &s, 1, &r[i]);
        pm_device_close(&d);
    }
    assert_memory_equal(&r[0], &r[1], sizeof r[0]);
}

/* Whatever the padded steps hold, nothing changes, in either direction. Their outputs and gradients
 * are 0. */
static void padded_steps(struct pm_device *d)
{
    static const char *const directions[] = { "", "direction=backward" };
    static struct result a, b;

    for (size_t k = 0; k < PM_COUNT(directions); k++) {
        struct scene s = random_scene(directions[k]);

        train(d, &s, 1, &a);
        for (int row = 0; row < s.n; row++)
            for (int t = s.lengths[row]; t < s.t; t++) {
                for (int i = 0; i < s.units; i++)
                    assert_true(a.y[(row * s.t + t) * s.units + i] == 0);
                for (int i = 0; i < s.c; i++) {
                    assert_true(a.dx[(row * s.t + t) * s.c + i] == 0);
                    s.x[(row * s.t + t) * s.c + i] = i % 2 ? NAN : INFINITY;
                }
            }
        train(d, &s, 1, &b);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

/* Gradients of two micro-batches add up to those of the batch. A sum of 20 steps is rounded 20
 * times, and each product of the matrix product may be added in another order. */
static void micro_batches(struct pm_device *d)
{
    const struct scene s = random_scene("direction=backward");
    static struct result whole, parts;
    double largest = 0;

    train(d, &s, 1, &whole);
    train(d, &s, 2, &parts);
    assert_float_equal(parts.loss, whole.loss, 64 * 0x1p-24 * whole.loss);
    assert_memory_equal(parts.y, whole.y, sizeof whole.y);
    for (size_t i = 0; i < count_kernel(&s); i++)
        largest = fmax(largest, fabs((double)whole.dkernel[i]));
    assert_true(largest > 1e-3);
    for (size_t i = 0; i < count_kernel(&s); i++)
        assert_float_equal(parts.dkernel[i], whole.dkernel[i], 64 * 0x1p-24 * largest);
}

/* ---- layers around it ------------------------------------------------------------------------ */

enum { COLUMNS = 8 };

/* Features of a picture's columns, read in both directions, with a loss. */
static struct pm_net *reader(int n)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(n, 4, COLUMNS, 3), PM_F32);
    struct pm_node *both[2], *loss[2];

    x = pm_net_add(net, "conv", x, "conv2d filters=8 kernel=[4,3] stride=[4,1] activation=relu");
    both[0] = pm_net_add(net, "fw", x, "lstm units=6");
    both[1] = pm_net_add(net, "bw", x, "lstm units=6 direction=backward");
    x = pm_net_add_many(net, "both", both, 2, "concat");
    x = pm_net_add(net, "next", x, "conv2d filters=5 kernel=1 activation=relu");
    loss[0] = pm_net_add(net, "top", x, "lstm units=4");
    loss[1] = pm_net_input(net, "target", loss[0]->out_shape, PM_F32);
    pm_net_add_many(net, "loss", loss, 2, "squared_error");
    ok(net->error);
    return net;
}

/* Returns all gradients of a step; free with free(). */
static char *gradients(struct pm_device *d, enum pm_recompute recompute, size_t *bytes, int *again)
{
    const struct pm_plan_options o = { .name = "train", .train = true, .slots = 1, .loss_share = 1,
                                       .micro_batches = 1, .recompute = recompute };
    struct pm_net *net = reader(3);
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;
    uint32_t seed = 5;
    char *out;

    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &o, &p));
    *again = pm_plan_memory(p).again;
    ok(pm_plan_load(p));
    draw(&seed, 3 * 4 * COLUMNS * 3, 0x1p-14f, 1, pm_plan_input(p, 0, "images", 0));
    draw(&seed, 3 * COLUMNS * 4, 0x1p-14f, 1, pm_plan_input(p, 0, "target", 0));
    *pm_plan_step(p, 0) = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(p, 0));
    ok(pm_plan_wait(p, 0));
    *bytes = v->gradient_bytes;
    out = malloc(*bytes);
    ok(pm_buffer_read(d, v->grads, 0, out, *bytes));
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    return out;
}

/* Layers around recurrent ones run again; the gradients keep their bits. */
static void recompute(struct pm_device *d)
{
    size_t bytes, more;
    int none, again;
    char *a = gradients(d, PM_RECOMPUTE_OFF, &bytes, &none);
    char *b = gradients(d, PM_RECOMPUTE_MOST, &more, &again);
    bool any = false;

    assert_true(none == 0 && again > 0);
    assert_int_equal(bytes, more);
    assert_memory_equal(a, b, bytes);
    for (size_t i = 0; i < bytes; i++)
        any |= a[i] != 0;
    assert_true(any);
    free(a);
    free(b);
}

/* Nothing more than four dispatches a step, forward and backward and all products together. */
static void dispatches(struct pm_device *d)
{
    enum { STEPS = 25 };
    const struct scene s = { .n = 8, .t = STEPS, .c = 64, .units = 64 };
    struct pm_net *net = net_of(&s, s.n, true), *without = pm_net_create();
    struct pm_node *in[2];
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;
    struct pm_counts all, rest;

    in[1] = pm_net_input(without, "target", PM_SHAPE3(s.n, s.t, s.units), PM_F32);
    in[0] = pm_net_add(without, "x", in[1], "parameter shape=[%d,%d,%d]", s.n, s.t, s.units);
    pm_net_add_many(without, "loss", in, 2, "squared_error");
    for (int k = 0; k < 2; k++) {
        struct pm_net *one = k ? without : net;

        ok(one->error);
        ok(pm_variables_create(d, one, true, NULL, &v));
        ok(pm_plan_create(one, d, v, &(struct pm_plan_options){
            .name = "train", .train = true, .slots = 1, .loss_share = 1, .micro_batches = 1 }, &p));
        ok(pm_plan_counts(p, k ? &rest : &all));
        pm_plan_destroy(&p);
        pm_variables_destroy(&v);
    }
    if (pm_device_caps(d)->runs_shaders) {
        assert_true(all.dispatches >= rest.dispatches + 2 * STEPS);
        assert_true(all.dispatches <= rest.dispatches + 4 * STEPS);
    }
    assert_int_equal(all.segments, rest.segments);
    pm_net_destroy(&net);
    pm_net_destroy(&without);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { X_INPUT, LENGTHS_INPUT };
    static const struct layer inputs = { "lstm", "instead of", 2, { S3(2, 9, 5), S1(2) },
                                         { PM_F32, PM_I32 } };
    static const struct wrong list[] = {
        { X_INPUT, S4(2, 3, 9, 5), "", "the input is float32 of shape 2x3x9x5 instead of float32 "
                                       "of n x t x c or n x 1 x t x c" },
        { X_INPUT, S2(2, 5), "", "of shape 2x5 instead of" },
        { LENGTHS_INPUT, S1(3), "", "lengths are int32 of shape 3 instead of int32 of shape 2" },
        { LENGTHS_INPUT, S2(2, 1), "", "lengths are int32 of shape 2x1 instead of" },
        { LENGTHS_INPUT, S1(2), "units=0", "units: 0 is outside 1..65536" },
        { LENGTHS_INPUT, S1(2), "direction=both", "direction: " },
        { X_INPUT, S3(2, 60000, 5), "units=65536", "need more than 2^31 - 1 numbers" },
    };

    (void)state;
    refuse(&inputs, list, PM_COUNT(list));
}

ON_EVERY_DEVICE(goldens)
ON_EVERY_DEVICE(same_bits)
ON_EVERY_DEVICE(padded_steps)
ON_EVERY_DEVICE(micro_batches)
ON_EVERY_DEVICE(recompute)
ON_EVERY_DEVICE(dispatches)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(threads),
        cmocka_unit_test(test_padded_steps),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_dispatches),
        cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
