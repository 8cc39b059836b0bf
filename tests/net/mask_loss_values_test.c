/* mask_loss on the CPU and every device: losses and gradients of tests/golden/mask_losses.json,
 * which mask_losses.py computed with PyTorch in double precision; the parts of a batch against the
 * whole; values that are no numbers; and what the layer refuses. */
#include "data/mask_bits.h"
#include "refused_layers.h"
#include "region_scenes.h"

enum { MOST_TRUTHS = 12, MOST_WORDS = 1024 };

struct scene {
    struct regions r;
    int mask_h, mask_w;
    float weights[MOST_TRUTHS];
    int32_t classes[MOST_TRUTHS];
    uint32_t masks[MOST_WORDS];
};

static size_t mask_size(const struct scene *s)
{
    return (size_t)s->mask_h * (size_t)pm_mask_words(s->mask_w);
}

static int truth_of(const struct regions *r, struct truth *out)
{
    const struct scene *s = (const struct scene *)r;
    const struct pm_shape masks =
        PM_SHAPE4(r->images, r->truths, s->mask_h, pm_mask_words(s->mask_w));
    const struct pm_shape each = PM_SHAPE2(r->images, r->truths);

    out[0] = (struct truth){ "masks", PM_U32, masks, s->masks };
    out[1] = (struct truth){ "classes", PM_I32, each, s->classes };
    out[2] = (struct truth){ "weights", PM_F32, each, s->weights };
    return 3;
}

/* A scene with masks of this size. */
static struct scene with_masks(int height, int width)
{
    struct scene s = { .r.truth = truth_of, .mask_h = height, .mask_w = width };

    snprintf(s.r.layer, sizeof s.r.layer, "mask_loss width=%d", width);
    return s;
}

/* ---- goldens --------------------------------------------------------------------------------- */

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
    assert_true((size_t)(out - s->masks) == (size_t)(s->r.images * s->r.truths) * mask_size(s));
    assert_true(out <= s->masks + MOST_WORDS);
}

static struct scene scene_of(const cJSON *all, const cJSON *c, uint32_t seed)
{
    struct scene s = with_masks(integer(c, "mask_height"), integer(c, "mask_width"));

    s.r.h = integer(c, "height"), s.r.w = integer(c, "width"), s.r.c = integer(c, "channels");
    read_regions(all, c, seed, &s.r);
    assert_int_equal(integers(c, "classes", s.classes), s.r.images * s.r.truths);
    assert_int_equal(floats(c, "weights", s.weights), s.r.images * s.r.truths);
    read_masks(c, &s);
    return s;
}

/* A sample's place is a sum of up to 90 pixels with three roundings, so a target is off by up to
 * 3 * 90 * 2^-24 = 2e-5. This is the error of a gradient relative to that of a target that is wrong
 * by 1. A cross entropy is off by at most 4 times as much, 4 being the largest logit, and is 2 on
 * average. The limit, 4e-5, is for both. */
static void goldens(struct pm_device *d)
{
    cJSON *all = read_golden("mask_losses.json"), *c;
    uint32_t seed = 1;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) {
        const struct scene s = scene_of(all, c, seed++);

        compare_case(d, &s.r, c, 4e-5, 1e-6f);
    }
    assert_int_equal(seed, 1 + 6);
    cJSON_Delete(all);
}

/* ---- parts of a batch, and runs that must be equal ------------------------------------------- */

static struct scene random_scene(void)
{
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    struct scene s = with_masks(6, 35);

    s.r.images = 4, s.r.rows = 5, s.r.truths = 3, s.r.h = 4, s.r.w = 3, s.r.c = 2;
    draw_regions(&r, &s.r, 0.4f, 0.3f, 0.5f);
    for (int i = 0; i < s.r.images * s.r.truths; i++)
        s.classes[i] = i % 2, s.weights[i] = 0.5f + (float)i;
    for (size_t i = 0; i < (size_t)(s.r.images * s.r.truths) * mask_size(&s); i++)
        s.masks[i] = pm_rng_u32(&r);
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

/* ---- rows that do not count, and numbers that are none --------------------------------------- */

/* Whatever the logits, boxes and classes of rows without a mask are, nothing changes. */
static void rows_without_masks(struct pm_device *d)
{
    struct scene s = random_scene();
    static struct result a, b;

    s.weights[1] = 0;
    s.r.matches[0] = 1;
    train(d, &s.r, "", &a);
    s.classes[1] = 99;
    for (size_t k = 0; k < per_row(&s.r); k++) {
        assert_true(a.gradient[k] == 0);
        s.r.logits[k] = k % 2 ? INFINITY : NAN;
        s.r.logits[2 * (size_t)s.r.rows * per_row(&s.r) + k] = NAN; /* background */
    }
    s.r.boxes[0][2] = NAN;
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
    bad = s, bad.classes[0] = s.r.c;
    expect_nan(d, &bad.r);
    bad = s, bad.classes[0] = -1;
    expect_nan(d, &bad.r);
    bad = s, bad.r.logits[(size_t)s.classes[0]] = NAN;
    expect_nan(d, &bad.r);
    bad = s, bad.weights[0] = NAN;
    expect_nan(d, &bad.r);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    enum { BOXES = 1, MATCHES, MASKS, CLASSES, WEIGHTS, INPUTS };
    static const struct layer inputs = {
        "mask_loss", "The inputs must be logits, boxes,", INPUTS,
        { S4(18, 5, 4, 3), S3(2, 9, 4), S2(2, 9), S4(2, 4, 7, 2), S2(2, 4), S2(2, 4) },
        { PM_F32, PM_F32, PM_I32, PM_U32, PM_I32, PM_F32 },
    };
    static const struct wrong list[] = {
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

    (void)state;
    refuse(&inputs, list, PM_COUNT(list));
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
