/* ctc_loss on the CPU and every device: losses and gradients of tests/golden/ctc_losses.json, which
 * PyTorch computed in double precision; the parts of a batch against the whole; texts that are
 * impossible; numbers that are not valid; and what the layer refuses. */
#include <pumice/rng.h>

#include "device/every_device.h"
#include "loss_runs.h"
#include "refused_layers.h"

enum { MOST_EXAMPLES = 8, MOST_SYMBOLS = 32, MOST_LOGITS = 2048 };

struct scene {
    int n, t, c, most;
    float logits[MOST_LOGITS];
    int32_t labels[MOST_EXAMPLES * MOST_SYMBOLS], symbols[MOST_EXAMPLES], steps[MOST_EXAMPLES];
};
struct result { float loss, impossible[MOST_EXAMPLES], gradient[MOST_LOGITS]; };

/* ---- running --------------------------------------------------------------------------------- */

static size_t per_example(const struct scene *s)
{
    return (size_t)s->t * (size_t)s->c;
}

/* logits: a parameter, which has a gradient, or an input. */
static struct pm_net *net_of(const struct scene *s, int n, bool parameter, const char *options)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[4];

    in[1] = pm_net_input(net, "labels", PM_SHAPE2(n, s->most), PM_I32);
    in[2] = pm_net_input(net, "label_lengths", PM_SHAPE1(n), PM_I32);
    in[3] = pm_net_input(net, "lengths", PM_SHAPE1(n), PM_I32);
    in[0] = parameter ? pm_net_add(net, "logits", in[1], "parameter shape=[%d,%d,%d]", n, s->t,
                                   s->c)
                      : pm_net_input(net, "logits", PM_SHAPE3(n, s->t, s->c), PM_F32);
    pm_net_add_many(net, "loss", in, 4, "ctc_loss %s", options);
    ok(net->error);
    return net;
}

static void give(struct pm_plan *p, const char *name, int m, const void *all, size_t each,
                 int first, int n)
{
    memcpy(pm_plan_input(p, 0, name, m), (const char *)all + 4 * each * (size_t)first,
           4 * each * (size_t)n);
}

static void give_all(struct pm_plan *p, const struct scene *s, int m, int first, int n,
                     bool parameter)
{
    if (!parameter)
        give(p, "logits", m, s->logits, per_example(s), first, n);
    give(p, "labels", m, s->labels, (size_t)s->most, first, n);
    give(p, "label_lengths", m, s->symbols, 1, first, n);
    give(p, "lengths", m, s->steps, 1, first, n);
}

/* The loss of all examples, its gradient, and which examples are impossible. */
static void train(struct pm_device *d, const struct scene *s, const char *options,
                  struct result *out)
{
    struct run r;

    memset(out, 0, sizeof *out);
    assert_true((size_t)s->n * per_example(s) <= MOST_LOGITS);
    r = open_training(d, net_of(s, s->n, true, options), s->logits, 1, NULL);
    give_all(r.p, s, 0, 0, s->n, true);
    start(r.p);
    out->loss = *(const float *)pm_plan_output(r.p, 0, "loss", 0);
    memcpy(out->impossible, pm_plan_output(r.p, 0, "loss/impossible", 0),
           (size_t)s->n * sizeof(float));
    ok(pm_buffer_read(d, r.v->grads, r.v->offset[0], out->gradient,
                      (size_t)s->n * per_example(s) * sizeof(float)));
    close_run(&r);
}

/* Returns the loss of a part of the examples. */
static double loss_of(struct pm_device *d, const struct scene *s, struct part part)
{
    const int n = part.examples / part.micro_batches;
    struct run r = open_part(d, net_of(s, n, false, ""), part);

    for (int m = 0; m < part.micro_batches; m++)
        give_all(r.p, s, m, part.first + m * n, n, false);
    return finish_part(&r, part);
}

/* ---- goldens --------------------------------------------------------------------------------- */

static struct scene scene_of(const cJSON *c, uint32_t seed)
{
    struct scene s = { .t = integer(c, "steps"), .c = integer(c, "classes"),
                       .most = integer(c, "most") };

    s.n = integers(c, "label_lengths", s.symbols);
    assert_int_equal(integers(c, "lengths", s.steps), s.n);
    assert_int_equal(integers(c, "labels", s.labels), s.n * s.most);
    for (size_t i = 0; i < (size_t)s.n * per_example(&s); i++)
        s.logits[i] = (float)number(&seed, 1 << 15) / 4096 - 4;
    return s;
}

/* A step of alpha or beta is off by at most 28 units of 2^-24 (tests/layers/ctc_loss_test.c). A
 * share depends on up to 26 steps of each and is at most 1, as is the largest gradient before its
 * factor. The largest is at least a quarter of that: 2 x 26 x 28 x 4 < 2^13. */
static void compare(const struct pm_device *d, const cJSON *c, const struct scene *s)
{
    const char *options = cJSON_GetObjectItem(c, "options")->valuestring;
    const double loss = cJSON_GetObjectItem(c, "loss")->valuedouble;
    static struct result r;
    static float want[MOST_LOGITS], impossible[MOST_EXAMPLES];
    const int count = floats(c, "gradient", want);
    double largest = 0;

    train((struct pm_device *)(uintptr_t)d, s, options, &r);
    assert_int_equal(floats(c, "impossible", impossible), s->n);
    assert_memory_equal(r.impossible, impossible, sizeof impossible);
    assert_int_equal(count, (size_t)s->n * per_example(s));
    assert_float_equal(r.loss, loss, 0x1p-11 * loss);
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int i = 0; i < count; i++)
        if (!(fabs((double)r.gradient[i] - (double)want[i]) <= 0x1p-11 * largest) ||
            (want[i] == 0 && r.gradient[i] != 0))
            fail_msg("%s: %s: gradient %d is %.8g, the golden %.8g", pm_device_get_info(d)->name,
                     options, i, (double)r.gradient[i], (double)want[i]);
}

static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("ctc_losses.json"), *c;
    uint32_t seed = 1;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const struct scene s = scene_of(c, seed++);

        compare(d, c, &s);
    }
    assert_int_equal(seed, 1 + 6);
    cJSON_Delete(all);
}

/* ---- parts of a batch, and runs that must be equal ------------------------------------------- */

static struct scene random_scene(void)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    struct scene s = { .n = 4, .t = 9, .c = 5, .most = 4 };

    for (size_t i = 0; i < (size_t)s.n * per_example(&s); i++)
        s.logits[i] = (float)(6 * pm_rng_uniform(&r) - 3);
    for (int i = 0; i < s.n; i++) {
        s.symbols[i] = 1 + i, s.steps[i] = s.t - i % 2;
        for (int k = 0; k < s.most; k++)
            s.labels[i * s.most + k] = (i + k / 2) % 4;
    }
    return s;
}

/* The loss of each example has the same bits in all parts. It is rounded once when it is multiplied
 * by its share, and at most three times when the four are added, in the whole and in the parts. */
static void parts(struct pm_device *d)
{
    const struct scene s = random_scene();
    const double bound = 2 * 4 * 0x1p-24, whole = loss_of(d, &s, (struct part){ 0, 4, 1, 1 });
    const double clones = loss_of(d, &s, (struct part){ 0, 1, 1, 0.25f }) +
                          loss_of(d, &s, (struct part){ 1, 3, 1, 0.75f });

    assert_true(whole > 0.1);
    assert_float_equal(clones, whole, bound * whole);
    assert_float_equal(loss_of(d, &s, (struct part){ 0, 4, 2, 1 }), whole, bound * whole);
}

static void same_bits(struct pm_device *d)
{
    const struct scene s = random_scene();
    static struct result a, b;

    train(d, &s, "", &a);
    train(d, &s, "", &b);
    assert_memory_equal(&a, &b, sizeof a);
}

/* The number of threads changes no bit. */
static void threads(void **state)
{
    static const int counts[] = { 1, 3 };
    static struct result r[PM_COUNT(counts)];
    const struct scene s = random_scene();

    (void)state;
    for (size_t i = 0; i < PM_COUNT(counts); i++) {
        struct pm_device *d = cpu_with(counts[i]);

        train(d, &s, "", &r[i]);
        pm_device_close(&d);
    }
    assert_true(r[0].loss > 0.1f);
    assert_memory_equal(&r[0], &r[1], sizeof r[0]);
}

/* ---- examples that cost nothing, and numbers that are not valid ------------------------------ */

/* Whatever the logits of examples that cost nothing and of padded steps are, and whatever symbols
 * follow a text, nothing changes. */
static void numbers_that_do_not_count(struct pm_device *d)
{
    struct scene s = random_scene();
    static struct result a, b;

    s.symbols[0] = -1;                /* does not exist */
    s.steps[1] = 1;                   /* two symbols */
    s.steps[2] = 5;
    train(d, &s, "", &a);
    assert_true(a.loss > 0.1f);
    for (int i = 0; i < s.n; i++)
        assert_true(a.impossible[i] == (i == 1));
    for (size_t k = 0; k < per_example(&s); k++) {
        assert_true(a.gradient[k] == 0 && a.gradient[per_example(&s) + k] == 0);
        s.logits[k] = NAN;
        s.logits[per_example(&s) + k] = k % 2 ? INFINITY : NAN;
    }
    for (size_t k = 5 * (size_t)s.c; k < per_example(&s); k++) {
        assert_true(a.gradient[2 * per_example(&s) + k] == 0);
        s.logits[2 * per_example(&s) + k] = NAN;
    }
    s.labels[2 * s.most + 3] = 1 << 30, s.labels[1 * s.most + 3] = -5;
    train(d, &s, "", &b);
    assert_memory_equal(&a, &b, sizeof a);
}

/* The step is rejected: the loss and the whole gradient are NaN. */
static void expect_nan(struct pm_device *d, const struct scene *s)
{
    static struct result r;

    train(d, s, "", &r);
    assert_true(isnan(r.loss));
    for (size_t i = 0; i < (size_t)s->n * per_example(s); i++)
        assert_true(isnan(r.gradient[i]));
}

static void not_valid(struct pm_device *d)
{
    const struct scene s = random_scene();
    struct scene bad = s;

    bad.labels[1 * s.most] = s.c; /* beyond the last class */
    expect_nan(d, &bad);
    bad = s, bad.labels[1 * s.most] = s.c - 1; /* the blank */
    expect_nan(d, &bad);
    bad = s, bad.labels[1 * s.most] = -1;
    expect_nan(d, &bad);
    bad = s, bad.symbols[3] = s.most + 1;
    expect_nan(d, &bad);
    bad = s, bad.steps[3] = s.t + 1;
    expect_nan(d, &bad);
    bad = s, bad.steps[3] = -1;
    expect_nan(d, &bad);
    bad = s, bad.logits[0] = NAN;
    expect_nan(d, &bad);
    bad = s, bad.logits[0] = INFINITY;
    expect_nan(d, &bad);
    bad = s; /* the only symbol of a text has the probability 0 everywhere */
    for (int t = 0; t < s.t; t++)
        bad.logits[t * s.c + s.labels[0]] = -INFINITY;
    expect_nan(d, &bad);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { LOGITS, LABELS, LABEL_LENGTHS, LENGTHS, INPUTS };
    static const struct layer inputs = {
        "ctc_loss", "The inputs must be logits, labels, label_lengths and", INPUTS,
        { S3(2, 9, 5), S2(2, 4), S1(2), S1(2) }, { PM_F32, PM_I32, PM_I32, PM_I32 },
    };
    static const struct wrong list[] = {
        { LOGITS, S4(2, 3, 3, 5), "", "logits have shape 2x3x3x5 instead of n x t x c or n x 1 x t "
                                      "x c" },
        { LOGITS, S2(18, 5), "", "logits have shape 18x5 instead of" },
        { LOGITS, S3(2, 9, 1), "", "blank: logits of 2x9x1 have 1 classes" },
        { LOGITS, S3(2, 9, 5), "blank=5", "Set a blank of 0..4, or -1 for the last class" },
        { LABELS, S2(3, 4), "", "labels have shape 3x4 instead of 2 x 1..511" },
        { LABELS, S2(2, 512), "", "labels have shape 2x512 instead of 2 x 1..511" },
        { LABELS, S3(2, 4, 1), "", "labels have shape 2x4x1 instead of" },
        { LABEL_LENGTHS, S1(3), "", "label_lengths have shape 3 instead of 2" },
        { LENGTHS, S2(2, 1), "", ": lengths have shape 2x1 instead of 2" },
        { LENGTHS, S1(2), "blank=-2", "blank: -2 is outside -1.." },
    };

    (void)state;
    refuse(&inputs, list, PM_COUNT(list));
}

ON_EVERY_DEVICE(goldens)
ON_EVERY_DEVICE(parts)
ON_EVERY_DEVICE(same_bits)
ON_EVERY_DEVICE(numbers_that_do_not_count)
ON_EVERY_DEVICE(not_valid)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(threads),
        cmocka_unit_test(test_numbers_that_do_not_count),
        cmocka_unit_test(test_not_valid),
        cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
