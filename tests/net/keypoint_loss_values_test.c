/* keypoint_loss on the CPU and every device: losses and gradients of
 * tests/golden/keypoint_losses.json, which torchvision's Keypoint R-CNN loss computed in double
 * precision; the parts of a batch against the whole; keypoints that cost nothing; values that are
 * no numbers; and what the layer refuses. */
#include <cjson/cJSON.h>
#include <pumice/plan.h>
#include <pumice/rng.h>

#include "base/golden_file.h"
#include "device/every_device.h"

enum { MOST_LOGITS = 8192, MOST_ROWS = 32, MOST_POINTS = 128 };

struct scene {
    int images, rows, truths; /* boxes and true objects of an image */
    int h, w, k;              /* of the logits of a box */
    float logits[MOST_LOGITS], boxes[MOST_ROWS][4], points[MOST_POINTS][2];
    int32_t matches[MOST_ROWS];
};
struct result { float loss, gradient[MOST_LOGITS]; };

/* A range of the scene's images. loss_share: of the plan. */
struct part { int first, images, micro_batches; float loss_share; };

/* ---- running --------------------------------------------------------------------------------- */

static size_t per_row(const struct scene *s)
{
    return (size_t)s->h * (size_t)s->w * (size_t)s->k;
}

static size_t all_logits(const struct scene *s)
{
    return (size_t)(s->images * s->rows) * per_row(s);
}

/* logits: a parameter, which has a gradient, or an input. */
static struct pm_net *net_of(const struct scene *s, int n, bool parameter, const char *options)
{
    const struct pm_shape shape = PM_SHAPE4(n * s->rows, s->h, s->w, s->k);
    struct pm_net *net = pm_net_create();
    struct pm_node *in[4];

    in[1] = pm_net_input(net, "boxes", PM_SHAPE3(n, s->rows, 4), PM_F32);
    in[2] = pm_net_input(net, "matches", PM_SHAPE2(n, s->rows), PM_I32);
    in[3] = pm_net_input(net, "points", PM_SHAPE4(n, s->truths, s->k, 2), PM_F32);
    in[0] = parameter ? pm_net_add(net, "logits", in[1], "parameter shape=[%d,%d,%d,%d]",
                                   shape.dim[0], s->h, s->w, s->k)
                      : pm_net_input(net, "logits", shape, PM_F32);
    pm_net_add_many(net, "loss", in, 4, "keypoint_loss %s", options);
    ok(net->error);
    return net;
}

static void give(struct pm_plan *p, const char *name, int m, const void *all, size_t each,
                 int first, int count)
{
    memcpy(pm_plan_input(p, 0, name, m), (const char *)all + (size_t)first * each,
           (size_t)count * each);
}

static void give_all(struct pm_plan *p, const struct scene *s, int m, int first, int n,
                     bool parameter)
{
    const size_t rows = (size_t)s->rows, points = (size_t)s->truths * (size_t)s->k;

    if (!parameter)
        give(p, "logits", m, s->logits, rows * per_row(s) * sizeof(float), first, n);
    give(p, "boxes", m, s->boxes, rows * sizeof *s->boxes, first, n);
    give(p, "matches", m, s->matches, rows * sizeof *s->matches, first, n);
    give(p, "points", m, s->points, points * sizeof *s->points, first, n);
}

static void start(struct pm_plan *p)
{
    struct pm_step *step = pm_plan_step(p, 0); /* NULL: the plan has no gradients */

    if (step)
        *step = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(p, 0));
    ok(pm_plan_wait(p, 0));
}

/* The loss of all images and its gradient. */
static void train(struct pm_device *d, const struct scene *s, const char *options,
                  struct result *out)
{
    const struct pm_plan_options o = { .name = "train", .train = true, .slots = 1,
                                       .loss_share = 1, .micro_batches = 1 };
    struct pm_net *net = net_of(s, s->images, true, options);
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;

    assert_true(all_logits(s) <= MOST_LOGITS);
    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &o, &p));
    ok(pm_plan_load(p));
    ok(pm_variables_write(v, 0, -1, s->logits));
    give_all(p, s, 0, 0, s->images, true);
    start(p);
    out->loss = *(const float *)pm_plan_output(p, 0, "loss", 0);
    ok(pm_buffer_read(d, v->grads, v->offset[0], out->gradient, all_logits(s) * sizeof(float)));
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

/* Returns the loss of a part of the images. */
static double loss_of(struct pm_device *d, const struct scene *s, struct part part,
                      const char *options)
{
    const int n = part.images / part.micro_batches;
    struct pm_net *net = net_of(s, n, false, options);
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;
    double sum = 0;

    ok(pm_variables_create(d, net, false, NULL, &v));
    ok(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .slots = 1, .first_example = part.first, .loss_share = part.loss_share,
        .micro_batches = part.micro_batches }, &p));
    ok(pm_plan_load(p));
    for (int m = 0; m < part.micro_batches; m++)
        give_all(p, s, m, part.first + m * n, n, false);
    start(p);
    for (int m = 0; m < part.micro_batches; m++)
        sum += (double)*(const float *)pm_plan_output(p, 0, "loss", m);
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    return sum;
}

/* ---- goldens --------------------------------------------------------------------------------- */

static int integer(const cJSON *c, const char *name)
{
    return cJSON_GetObjectItem(c, name)->valueint;
}

static int floats(const cJSON *c, const char *name, float *out)
{
    const cJSON *item;
    int n = 0;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c, name))
        out[n++] = (float)item->valuedouble;
    return n;
}

static struct scene scene_of(const cJSON *all, const cJSON *c, uint32_t seed)
{
    struct scene s = {
        .images = integer(all, "images"), .rows = integer(all, "rows"),
        .truths = integer(all, "truths"), .h = integer(c, "side"), .w = integer(c, "side"),
        .k = integer(c, "keypoints"),
    };
    const int points = s.images * s.truths * s.k;
    const cJSON *item;
    int n = 0;

    for (size_t i = 0; i < all_logits(&s); i++)
        s.logits[i] = (float)number(&seed, 1 << 15) / 4096 - 4;
    assert_int_equal(floats(c, "boxes", s.boxes[0]), 4 * s.images * s.rows);
    assert_int_equal(floats(c, "points", s.points[0]), 2 * points);
    for (int i = 0; i < points; i++)
        if (s.points[i][0] == -1)
            s.points[i][0] = s.points[i][1] = NAN;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c, "matches"))
        s.matches[n++] = item->valueint;
    assert_int_equal(n, s.images * s.rows);
    return s;
}

/* A softmax's logarithm of at most 4 + ln 256 < 10 is off by 2^-22, and a probability relatively by
 * twice that and a few roundings. The sums of up to 60 losses add 60 roundings of at most one
 * 2^-24. The limit, 2^-18, is for both. */
static void compare(const struct pm_device *d, const char *options, int i, double got,
                    double want, double largest)
{
    if (!(fabs(got - want) <= 0x1p-18 * largest))
        fail_msg("%s: %s: number %d is %.8g, the golden %.8g", pm_device_get_info(d)->name,
                 options, i, got, want);
}

static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("keypoint_losses.json"), *c;
    uint32_t seed = 1;
    int cases = 0;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const char *options = cJSON_GetObjectItem(c, "options")->valuestring;
        const struct scene s = scene_of(all, c, seed++);
        static struct result r;
        static float want[MOST_LOGITS];
        const int count = floats(c, "gradient", want);
        double largest = 0;

        assert_int_equal(count, all_logits(&s));
        train(d, &s, options, &r);
        const double loss = cJSON_GetObjectItem(c, "loss")->valuedouble;
        compare(d, options, -1, (double)r.loss, loss, loss);
        for (int i = 0; i < count; i++)
            largest = fmax(largest, fabs((double)want[i]));
        for (int i = 0; i < count; i++) {
            compare(d, options, i, (double)r.gradient[i], (double)want[i], largest);
            assert_true((r.gradient[i] == 0) == (want[i] == 0));
        }
        cases++;
    }
    assert_int_equal(cases, 5);
    cJSON_Delete(all);
}

/* ---- parts of a batch ------------------------------------------------------------------------ */

/* Images with unlike numbers of matched rows; the third has none. */
static struct scene random_scene(void)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    struct scene s = { .images = 4, .rows = 5, .truths = 3, .h = 4, .w = 3, .k = 2 };

    for (size_t i = 0; i < all_logits(&s); i++)
        s.logits[i] = (float)(6 * pm_rng_uniform(&r) - 3);
    for (int i = 0; i < s.images * s.rows; i++) {
        for (int k = 0; k < 2; k++) {
            s.boxes[i][k] = (float)pm_rng_uniform(&r) * 0.2f;
            s.boxes[i][2 + k] = s.boxes[i][k] + 0.6f + (float)pm_rng_uniform(&r) * 0.2f;
        }
        s.matches[i] = i / s.rows == 2 ? -1 : i % s.rows <= i / s.rows ? i % 3 : -2 + i % 2;
    }
    for (int i = 0; i < s.images * s.truths * s.k; i++)
        for (int k = 0; k < 2; k++)
            s.points[i][k] = 0.25f + (float)pm_rng_uniform(&r) * 0.5f;
    return s;
}

/* The loss of each image has the same bits in all parts. A term is rounded once when it is divided
 * and at most three times when the four images are added, in the whole and in the parts. */
static void parts(struct pm_device *d)
{
    const double bound = 2 * 4 * 0x1p-24;
    const struct scene s = random_scene();
    const double whole = loss_of(d, &s, (struct part){ 0, 4, 1, 1 }, "");
    const double clones = loss_of(d, &s, (struct part){ 0, 1, 1, 0.25f }, "") +
                          loss_of(d, &s, (struct part){ 1, 3, 1, 0.75f }, "");

    assert_true(whole > 0.1);
    assert_float_equal(clones, whole, bound * whole);
    assert_float_equal(loss_of(d, &s, (struct part){ 0, 4, 2, 1 }, ""), whole, bound * whole);
    /* With one divisor for all examples of a plan, plans of one example agree with images. */
    assert_float_equal(loss_of(d, &s, (struct part){ 0, 4, 4, 1 }, "normalize_over=batch"), whole,
                       bound * whole);
    assert_true(fabs(loss_of(d, &s, (struct part){ 0, 4, 1, 1 }, "normalize_over=batch") - whole) >
                1e-3 * whole);
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
    const struct scene s = random_scene();
    static struct result r[PM_COUNT(counts)];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(counts); i++) {
        struct pm_device *d = cpu_with(counts[i]);

        train(d, &s, "", &r[i]);
        pm_device_close(&d);
    }
    assert_true(r[0].loss > 0.1f);
    assert_memory_equal(&r[0], &r[1], sizeof r[0]);
}

/* ---- keypoints that cost nothing, and numbers that are none ---------------------------------- */

/* Without a keypoint to learn the loss and the gradient are 0, whatever the reason. */
static void nothing_to_learn(struct pm_device *d)
{
    static struct result r;

    for (int why = 0; why < 4; why++) {
        struct scene s = random_scene();

        for (int i = 0; i < s.images * s.rows; i++)
            if (why == 0)
                s.matches[i] = -1 - i % 2; /* no box has an object */
            else if (why == 1)
                s.boxes[i][2] = s.boxes[i][0]; /* no box has an area */
        for (int i = 0; i < s.images * s.truths * s.k; i++)
            if (why == 2)
                s.points[i][i % 2] = NAN; /* no keypoint is labelled */
            else if (why == 3)
                s.points[i][i % 2] = i % 3 ? -0.5f : 1.5f; /* all are outside */
        train(d, &s, "", &r);
        assert_true(r.loss == 0);
        for (size_t i = 0; i < all_logits(&s); i++)
            assert_true(r.gradient[i] == 0);
    }
}

/* Whatever the logits of rows without an object and of keypoints without a label are, nothing
 * changes. */
static void rows_that_do_not_count(struct pm_device *d)
{
    struct scene s = random_scene();
    static struct result a, b;
    const size_t background = 2 * (size_t)s.rows * per_row(&s);

    s.matches[0] = 1;
    s.points[1 * s.k][0] = NAN; /* keypoint 0 of the object that the first box has */
    train(d, &s, "", &a);
    for (size_t k = 0; k < per_row(&s); k++) {
        assert_true((a.gradient[k] == 0) == (k % (size_t)s.k == 0));
        if (k % (size_t)s.k == 0)
            s.logits[k] = k % 4 ? INFINITY : NAN;
        s.logits[background + k] = NAN;
    }
    train(d, &s, "", &b);
    assert_memory_equal(&a, &b, sizeof a);
}

static void expect_nan(struct pm_device *d, const struct scene *s)
{
    static struct result r;

    train(d, s, "", &r);
    assert_true(isnan(r.loss));
    for (size_t i = 0; i < all_logits(s); i++)
        assert_true(isnan(r.gradient[i]));
}

/* The step is rejected. */
static void no_numbers(struct pm_device *d)
{
    const struct scene s = random_scene();
    struct scene bad = s;

    bad.matches[1] = s.truths;
    expect_nan(d, &bad);
    bad = s, bad.matches[1] = -3;
    expect_nan(d, &bad);
    bad = s, bad.logits[0] = NAN;
    expect_nan(d, &bad);
    bad = s, bad.logits[0] = INFINITY;
    expect_nan(d, &bad);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { LOGITS, BOXES, MATCHES, POINTS, INPUTS };
#define S2(a, b) { 2, { a, b } }
#define S3(a, b, c) { 3, { a, b, c } }
#define S4(a, b, c, d) { 4, { a, b, c, d } }
    static const struct { int input; struct pm_shape shape; const char *options, *text; } rows[] = {
        { LOGITS, S4(17, 5, 4, 3), "", "logits have shape 17x5x4x3 instead of 18 x h x w x K" },
        { LOGITS, S2(18, 3), "", "logits have shape 18x3 instead of 18 x h x w x K" },
        { BOXES, S3(2, 9, 3), "", "boxes have shape 2x9x3 instead of n x R x 4" },
        { MATCHES, S2(2, 8), "", "matches have shape 2x8; for boxes of n x R x 4 they must be "
                                 "2x9" },
        { POINTS, S4(2, 4, 5, 2), "", "truth_keypoints have shape 2x4x5x2 instead of 2 x M x 3 x "
                                      "2. Give each true object y and x of 3 keypoints" },
        { POINTS, S4(2, 4, 3, 3), "", "truth_keypoints have shape 2x4x3x3 instead of" },
        { POINTS, S3(2, 4, 6), "", "truth_keypoints have shape 2x4x6 instead of" },
        { POINTS, S4(2, 4, 3, 2), "weight=-1", "weight: -1 is outside 0..1000000" },
    };
    static const enum pm_type types[] = { PM_F32, PM_F32, PM_I32, PM_F32 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(rows) + PM_COUNT(types); i++) {
        struct pm_shape shape[] = { PM_SHAPE4(18, 5, 4, 3), PM_SHAPE3(2, 9, 4), PM_SHAPE2(2, 9),
                                    PM_SHAPE4(2, 4, 3, 2) };
        const size_t wrong = i - PM_COUNT(rows); /* input of another type */
        const char *text = i < PM_COUNT(rows) ? rows[i].text
                                              : "The inputs must be logits, boxes, matches,";
        struct pm_net *net = pm_net_create();
        struct pm_node *in[INPUTS];

        if (i < PM_COUNT(rows))
            shape[rows[i].input] = rows[i].shape;
        for (size_t k = 0; k < INPUTS; k++) {
            char name[8];

            snprintf(name, sizeof name, "in%zu", k);
            in[k] = pm_net_input(net, name, shape[k], k == wrong ? PM_U8 : types[k]);
        }
        pm_net_add_many(net, "y", in, INPUTS, "keypoint_loss %s",
                        i < PM_COUNT(rows) ? rows[i].options : "");
        assert_int_equal(net->error, PM_ECONFIG);
        if (!strstr(pm_error_text(), text) || !pm_is_line(pm_error_text()))
            fail_msg("row %zu: %s", i, pm_error_text());
        pm_net_destroy(&net);
    }
}

ON_EVERY_DEVICE(goldens)
ON_EVERY_DEVICE(parts)
ON_EVERY_DEVICE(same_bits)
ON_EVERY_DEVICE(nothing_to_learn)
ON_EVERY_DEVICE(rows_that_do_not_count)
ON_EVERY_DEVICE(no_numbers)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(threads),
        cmocka_unit_test(test_nothing_to_learn),
        cmocka_unit_test(test_rows_that_do_not_count),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
