/* keypoint_loss on the CPU and every device: losses and gradients of
 * tests/golden/keypoint_losses.json, which torchvision's Keypoint R-CNN loss computed in double
 * precision; the parts of a batch against the whole; keypoints that cost nothing; values that are
 * no numbers; and what the layer refuses. */
#include "refused_layers.h"
#include "region_scenes.h"

enum { MOST_POINTS = 128 };

/* r.c: keypoints of an object. */
struct scene {
    struct regions r;
    float points[MOST_POINTS][2];
};

static int truth_of(const struct regions *r, struct truth *out)
{
    const struct scene *s = (const struct scene *)r;

    out[0] = (struct truth){ "points", PM_F32, PM_SHAPE4(r->images, r->truths, r->c, 2),
                             s->points };
    return 1;
}

static const struct regions empty = { .layer = "keypoint_loss", .truth = truth_of };

/* ---- goldens --------------------------------------------------------------------------------- */

static struct scene scene_of(const cJSON *all, const cJSON *c, uint32_t seed)
{
    struct scene s = { .r = empty };

    s.r.h = s.r.w = integer(c, "side"), s.r.c = integer(c, "keypoints");
    read_regions(all, c, seed, &s.r);
    const int points = s.r.images * s.r.truths * s.r.c;

    assert_int_equal(floats(c, "points", s.points[0]), 2 * points);
    for (int i = 0; i < points; i++)
        if (s.points[i][0] == -1)
            s.points[i][0] = s.points[i][1] = NAN;
    return s;
}

/* A softmax's logarithm of at most 4 + ln 256 < 10 is off by 2^-22, and a probability relatively by
 * twice that and a few roundings. The sums of up to 60 losses add 60 roundings of at most one
 * 2^-24. The limit, 2^-18, is for both. */
static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("keypoint_losses.json"), *c;
    uint32_t seed = 1;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const struct scene s = scene_of(all, c, seed++);

        compare_case(d, &s.r, c, 0x1p-18, 0);
    }
    assert_int_equal(seed, 1 + 5);
    cJSON_Delete(all);
}

/* ---- parts of a batch, and runs that must be equal ------------------------------------------- */

static struct scene random_scene(void)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    struct scene s = { .r = empty };

    s.r.images = 4, s.r.rows = 5, s.r.truths = 3, s.r.h = 4, s.r.w = 3, s.r.c = 2;
    draw_regions(&r, &s.r, 0.2f, 0.6f, 0.2f);
    for (int i = 0; i < s.r.images * s.r.truths * s.r.c; i++)
        for (int k = 0; k < 2; k++)
            s.points[i][k] = 0.25f + (float)pm_rng_uniform(&r) * 0.5f;
    return s;
}

static void parts(struct pm_device *d)
{
    const struct scene s = random_scene();

    compare_parts(d, &s.r);
}

static void same_bits(struct pm_device *d)
{
    const struct scene s = random_scene();

    compare_runs(d, &s.r);
}

static void threads(void **state)
{
    const struct scene s = random_scene();

    (void)state;
    compare_threads(&s.r);
}

/* ---- keypoints that cost nothing, and numbers that are none ---------------------------------- */

/* Without a keypoint to learn the loss and the gradient are 0, whatever the reason. */
static void nothing_to_learn(struct pm_device *d)
{
    static struct result r;

    for (int why = 0; why < 4; why++) {
        struct scene s = random_scene();

        for (int i = 0; i < s.r.images * s.r.rows; i++)
            if (why == 0)
                s.r.matches[i] = -1 - i % 2; /* no box has an object */
            else if (why == 1)
                s.r.boxes[i][2] = s.r.boxes[i][0]; /* no box has an area */
        for (int i = 0; i < s.r.images * s.r.truths * s.r.c; i++)
            if (why == 2)
                s.points[i][i % 2] = NAN; /* no keypoint is labelled */
            else if (why == 3)
                s.points[i][i % 2] = i % 3 ? -0.5f : 1.5f; /* all are outside */
        train(d, &s.r, "", &r);
        assert_true(r.loss == 0);
        for (size_t i = 0; i < all_logits(&s.r); i++)
            assert_true(r.gradient[i] == 0);
    }
}

/* Whatever the logits of rows without an object and of keypoints without a label are, nothing
 * changes. */
static void rows_that_do_not_count(struct pm_device *d)
{
    struct scene s = random_scene();
    static struct result a, b;
    const size_t background = 2 * (size_t)s.r.rows * per_row(&s.r);

    s.r.matches[0] = 1;
    s.points[1 * s.r.c][0] = NAN; /* keypoint 0 of the object that the first box has */
    train(d, &s.r, "", &a);
    for (size_t k = 0; k < per_row(&s.r); k++) {
        assert_true((a.gradient[k] == 0) == (k % (size_t)s.r.c == 0));
        if (k % (size_t)s.r.c == 0)
            s.r.logits[k] = k % 4 ? INFINITY : NAN;
        s.r.logits[background + k] = NAN;
    }
    train(d, &s.r, "", &b);
    assert_memory_equal(&a, &b, sizeof a);
}

/* The step is rejected. */
static void no_numbers(struct pm_device *d)
{
    const struct scene s = random_scene();
    struct scene bad = s;

    bad.r.matches[1] = s.r.truths;
    expect_nan(d, &bad.r);
    bad = s, bad.r.matches[1] = -3;
    expect_nan(d, &bad.r);
    bad = s, bad.r.logits[0] = NAN;
    expect_nan(d, &bad.r);
    bad = s, bad.r.logits[0] = INFINITY;
    expect_nan(d, &bad.r);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { LOGITS, BOXES, MATCHES, POINTS, INPUTS };
    static const struct layer inputs = {
        "keypoint_loss", "The inputs must be logits, boxes, matches,", INPUTS,
        { S4(18, 5, 4, 3), S3(2, 9, 4), S2(2, 9), S4(2, 4, 3, 2) },
        { PM_F32, PM_F32, PM_I32, PM_F32 },
    };
    static const struct wrong list[] = {
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

    (void)state;
    refuse(&inputs, list, PM_COUNT(list));
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
