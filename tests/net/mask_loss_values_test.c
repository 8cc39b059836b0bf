/* mask_loss on the CPU and every device: losses and gradients of tests/golden/mask_losses.json,
 * which mask_losses.py computed with PyTorch in double precision; the parts of a batch against the
 * whole; values that are no numbers; and what the layer refuses. */
#include <cjson/cJSON.h>
#include <pumice/plan.h>
#include <pumice/rng.h>

#include "base/golden_file.h"
#include "data/mask_bits.h"
#include "device/every_device.h"

enum { MOST_IMAGES = 4, MOST_LOGITS = 4096, MOST_ROWS = 64, MOST_TRUTHS = 12, MOST_WORDS = 1024 };

struct scene {
    int images, rows, truths;      /* boxes and true masks of an image */
    int h, w, c;                   /* of the logits of a box */
    int mask_h, mask_w;
    float logits[MOST_LOGITS], boxes[MOST_ROWS][4], weights[MOST_TRUTHS];
    int32_t matches[MOST_ROWS], classes[MOST_TRUTHS];
    uint32_t masks[MOST_WORDS];
};
struct result { float loss, gradient[MOST_LOGITS]; };

/* A range of the scene's images. loss_share: of the plan. */
struct part { int first, images, micro_batches; float loss_share; };

/* ---- running --------------------------------------------------------------------------------- */

static size_t per_row(const struct scene *s)
{
    return (size_t)s->h * (size_t)s->w * (size_t)s->c;
}

static size_t mask_size(const struct scene *s)
{
    return (size_t)s->mask_h * (size_t)pm_mask_words(s->mask_w);
}

/* logits: a parameter, which has a gradient, or an input. */
static struct pm_net *net_of(const struct scene *s, int n, bool parameter, const char *options)
{
    const struct pm_shape shape = PM_SHAPE4(n * s->rows, s->h, s->w, s->c);
    struct pm_net *net = pm_net_create();
    struct pm_node *in[6];

    in[1] = pm_net_input(net, "boxes", PM_SHAPE3(n, s->rows, 4), PM_F32);
    in[2] = pm_net_input(net, "matches", PM_SHAPE2(n, s->rows), PM_I32);
    in[3] = pm_net_input(net, "masks",
                         PM_SHAPE4(n, s->truths, s->mask_h, pm_mask_words(s->mask_w)), PM_U32);
    in[4] = pm_net_input(net, "classes", PM_SHAPE2(n, s->truths), PM_I32);
    in[5] = pm_net_input(net, "weights", PM_SHAPE2(n, s->truths), PM_F32);
    in[0] = parameter ? pm_net_add(net, "logits", in[1], "parameter shape=[%d,%d,%d,%d]",
                                   shape.dim[0], s->h, s->w, s->c)
                      : pm_net_input(net, "logits", shape, PM_F32);
    pm_net_add_many(net, "loss", in, 6, "mask_loss width=%d %s", s->mask_w, options);
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
    const size_t rows = (size_t)s->rows, truths = (size_t)s->truths;

    if (!parameter)
        give(p, "logits", m, s->logits, rows * per_row(s) * sizeof(float), first, n);
    give(p, "boxes", m, s->boxes, rows * sizeof *s->boxes, first, n);
    give(p, "matches", m, s->matches, rows * sizeof *s->matches, first, n);
    give(p, "masks", m, s->masks, truths * mask_size(s) * sizeof *s->masks, first, n);
    give(p, "classes", m, s->classes, truths * sizeof *s->classes, first, n);
    give(p, "weights", m, s->weights, truths * sizeof *s->weights, first, n);
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
    const size_t count = (size_t)(s->images * s->rows) * per_row(s);
    struct pm_net *net = net_of(s, s->images, true, options);
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;

    assert_true(count <= MOST_LOGITS);
    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &o, &p));
    ok(pm_plan_load(p));
    ok(pm_variables_write(v, 0, -1, s->logits));
    give_all(p, s, 0, 0, s->images, true);
    start(p);
    out->loss = *(const float *)pm_plan_output(p, 0, "loss", 0);
    ok(pm_buffer_read(d, v->grads, v->offset[0], out->gradient, count * sizeof(float)));
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

static int integers(const cJSON *c, const char *name, int32_t *out)
{
    const cJSON *item;
    int n = 0;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c, name))
        out[n++] = item->valueint;
    return n;
}

static void read_masks(const cJSON *c, struct scene *s)
{
    const cJSON *line;
    uint32_t *out = s->masks;

    cJSON_ArrayForEach(line, cJSON_GetObjectItem(c, "masks")) {
        assert_int_equal(strlen(line->valuestring), s->mask_w);
        for (int x = 0; x < s->mask_w; x++)
            out[x / 32] |= (uint32_t)(line->valuestring[x] == '1') << x % 32;
        out += pm_mask_words(s->mask_w);
    }
    assert_true((size_t)(out - s->masks) == (size_t)(s->images * s->truths) * mask_size(s));
    assert_true(out <= s->masks + MOST_WORDS);
}

static struct scene scene_of(const cJSON *all, const cJSON *c, uint32_t seed)
{
    struct scene s = {
        .images = integer(all, "images"), .rows = integer(all, "rows"),
        .truths = integer(all, "truths"), .h = integer(c, "height"), .w = integer(c, "width"),
        .c = integer(c, "channels"), .mask_h = integer(c, "mask_height"),
        .mask_w = integer(c, "mask_width"),
    };
    const size_t count = (size_t)(s.images * s.rows) * per_row(&s);

    for (size_t i = 0; i < count; i++)
        s.logits[i] = (float)number(&seed, 1 << 15) / 4096 - 4;
    assert_int_equal(floats(c, "boxes", s.boxes[0]), 4 * s.images * s.rows);
    assert_int_equal(integers(c, "matches", s.matches), s.images * s.rows);
    assert_int_equal(integers(c, "classes", s.classes), s.images * s.truths);
    assert_int_equal(floats(c, "weights", s.weights), s.images * s.truths);
    read_masks(c, &s);
    return s;
}

/* A sample's place is a sum of up to 90 pixels with three roundings, so a target is off by up to
 * 3 * 90 * 2^-24 = 2e-5. This is the error of a gradient relative to that of a target that is wrong
 * by 1. A cross entropy is off by at most 4 times as much, 4 being the largest logit, and is 2 on
 * average. The limit, 4e-5, is for both. */
static void compare(const struct pm_device *d, const char *options, int i, double got,
                    double want, double largest)
{
    if (!(fabs(got - want) <= 4e-5 * largest))
        fail_msg("%s: %s: number %d is %.8g, the golden %.8g", pm_device_get_info(d)->name,
                 options, i, got, want);
}

static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("mask_losses.json"), *c;
    uint32_t seed = 1;
    int cases = 0;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const char *options = cJSON_GetObjectItem(c, "options")->valuestring;
        const struct scene s = scene_of(all, c, seed++);
        static struct result r;
        static float want[MOST_LOGITS];
        const int count = floats(c, "gradient", want);
        double largest = 0;

        train(d, &s, options, &r);
        const double loss = cJSON_GetObjectItem(c, "loss")->valuedouble;
        compare(d, options, -1, (double)r.loss, loss, loss);
        for (int i = 0; i < count; i++)
            largest = fmax(largest, fabs((double)want[i]));
        for (int i = 0; i < count; i++) {
            compare(d, options, i, (double)r.gradient[i], (double)want[i], largest);
            assert_true((r.gradient[i] == 0) == (want[i] == 0) || fabsf(want[i]) < 1e-6f);
        }
        cases++;
    }
    assert_int_equal(cases, 6);
    cJSON_Delete(all);
}

/* ---- parts of a batch ------------------------------------------------------------------------ */

/* Images with unlike numbers of matched rows; the third has none. */
static struct scene random_scene(void)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    struct scene s = { .images = 4, .rows = 5, .truths = 3, .h = 4, .w = 3, .c = 2, .mask_h = 6,
                       .mask_w = 35 };

    for (size_t i = 0; i < (size_t)(s.images * s.rows) * per_row(&s); i++)
        s.logits[i] = (float)(6 * pm_rng_uniform(&r) - 3);
    for (int i = 0; i < s.images * s.rows; i++) {
        for (int k = 0; k < 2; k++) {
            s.boxes[i][k] = (float)pm_rng_uniform(&r) * 0.4f;
            s.boxes[i][2 + k] = s.boxes[i][k] + 0.3f + (float)pm_rng_uniform(&r) * 0.5f;
        }
        s.matches[i] = i / s.rows == 2 ? -1 : i % s.rows <= i / s.rows ? i % 3 : -2 + i % 2;
    }
    for (int i = 0; i < s.images * s.truths; i++)
        s.classes[i] = i % 2, s.weights[i] = 0.5f + (float)i;
    for (size_t i = 0; i < (size_t)(s.images * s.truths) * mask_size(&s); i++)
        s.masks[i] = pm_rng_u32(&r);
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

/* ---- rows that do not count, and numbers that are none --------------------------------------- */

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

/* Whatever the logits, boxes and classes of rows without a mask are, nothing changes. */
static void rows_without_masks(struct pm_device *d)
{
    struct scene s = random_scene();
    static struct result a, b;

    s.weights[1] = 0;
    s.matches[0] = 1;
    train(d, &s, "", &a);
    s.classes[1] = 99;
    for (size_t k = 0; k < per_row(&s); k++) {
        assert_true(a.gradient[k] == 0);
        s.logits[k] = k % 2 ? INFINITY : NAN;
        s.logits[2 * (size_t)s.rows * per_row(&s) + k] = NAN; /* background */
    }
    s.boxes[0][2] = NAN;
    train(d, &s, "", &b);
    assert_memory_equal(&a, &b, sizeof a);
}

static void expect_nan(struct pm_device *d, const struct scene *s)
{
    static struct result r;

    train(d, s, "", &r);
    assert_true(isnan(r.loss));
    for (size_t i = 0; i < (size_t)(s->images * s->rows) * per_row(s); i++)
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
    bad = s, bad.classes[0] = s.c;
    expect_nan(d, &bad);
    bad = s, bad.classes[0] = -1;
    expect_nan(d, &bad);
    bad = s, bad.logits[(size_t)s.classes[0]] = NAN;
    expect_nan(d, &bad);
    bad = s, bad.weights[0] = NAN;
    expect_nan(d, &bad);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { BOXES = 1, MATCHES, MASKS, CLASSES, WEIGHTS };
#define S2(a, b) { 2, { a, b } }
#define S3(a, b, c) { 3, { a, b, c } }
#define S4(a, b, c, d) { 4, { a, b, c, d } }
    static const struct { int input; struct pm_shape shape; const char *options, *text; } rows[] = {
        { 0, S4(17, 5, 4, 3), "", "logits have shape 17x5x4x3 instead of 18 x h x w x C" },
        { 0, S4(18, 1025, 4, 3), "", "masks of 1025x4 logits are larger than 1024x1024" },
        { BOXES, S3(2, 9, 3), "", "boxes have shape 2x9x3 instead of n x R x 4" },
        { MATCHES, S2(2, 8), "", "matches have shape 2x8; for boxes of n x R x 4 they must "
                                        "be 2x9" },
        { MASKS, S4(3, 4, 7, 2), "", "truth_masks have shape 3x4x7x2 instead of 2 x M" },
        { MASKS, S4(2, 4, 7, 2), "width=65", "rows of 2 words, which do not fit 65 columns. "
                                                    "Set a width of 33..64" },
        { MASKS, S4(2, 4, 7, 2), "width=32", "do not fit 32 columns" },
        { MASKS, S4(2, 10000, 5000, 50), "", "have more than 2^31 - 1 words" },
        { CLASSES, S2(2, 5), "", "truth_classes are int32 of shape 2x5 instead of int32 of "
                                        "shape 2x4, or float32 of shape 2x4x3. Give each" },
        { WEIGHTS, S2(2, 5), "", "truth_mask_weights have shape 2x5 instead of 2x4" },
        { WEIGHTS, S2(2, 4), "weight=-1", "weight: -1 is outside 0..1000000" },
    };
    static const enum pm_type types[] = { PM_F32, PM_F32, PM_I32, PM_U32, PM_I32, PM_F32 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(rows) + PM_COUNT(types); i++) {
        struct pm_shape shape[] = { PM_SHAPE4(18, 5, 4, 3), PM_SHAPE3(2, 9, 4), PM_SHAPE2(2, 9),
                                    PM_SHAPE4(2, 4, 7, 2),  PM_SHAPE2(2, 4),    PM_SHAPE2(2, 4) };
        const size_t wrong = i - PM_COUNT(rows); /* input of another type */
        const char *text = i < PM_COUNT(rows) ? rows[i].text : "The inputs must be logits, boxes,";
        struct pm_net *net = pm_net_create();
        struct pm_node *in[6];

        if (i < PM_COUNT(rows))
            shape[rows[i].input] = rows[i].shape;
        for (size_t k = 0; k < 6; k++) {
            char name[8];

            snprintf(name, sizeof name, "in%zu", k);
            in[k] = pm_net_input(net, name, shape[k], k == wrong ? PM_U8 : types[k]);
        }
        pm_net_add_many(net, "y", in, 6, "mask_loss %s", i < PM_COUNT(rows) ? rows[i].options : "");
        assert_int_equal(net->error, PM_ECONFIG);
        if (!strstr(pm_error_text(), text) || !pm_is_line(pm_error_text()))
            fail_msg("row %zu: %s", i, pm_error_text());
        pm_net_destroy(&net);
    }
}

ON_EVERY_DEVICE(goldens)
ON_EVERY_DEVICE(parts)
ON_EVERY_DEVICE(same_bits)
ON_EVERY_DEVICE(rows_without_masks)
ON_EVERY_DEVICE(no_numbers)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),   cmocka_unit_test(test_parts),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_rows_without_masks),
        cmocka_unit_test(test_no_numbers), cmocka_unit_test(threads), cmocka_unit_test(refusals),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
