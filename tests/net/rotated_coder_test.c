/* The coder of rotated boxes against its definition in double precision: encoding, decoding, round
 * trips, squares, the seam of angles, and the direction of an angle. */
#include "layers/box_coder.h"

#include <pumice/rng.h>

#include "base/unit.h"

enum { TRIALS = 5000 };
#define QUARTER 1.5707963267948966

static struct pm_box_coder coder_of(int count, const float *scales)
{
    struct pm_box_coder coder = { 0 };

    assert_int_equal(pm_box_coder_make(PM_CODER_ROTATED, (struct pm_floats){ count, scales },
                                       "test", &coder), PM_OK);
    return coder;
}

static void draw_box(struct pm_rng *rng, float box[5])
{
    box[0] = 2 * pm_rng_uniform(rng) - 0.5f;
    box[1] = 2 * pm_rng_uniform(rng) - 0.5f;
    box[2] = (float)exp(-4 * (double)pm_rng_uniform(rng));
    box[3] = (float)exp(-4 * (double)pm_rng_uniform(rng));
    box[4] = 4 * pm_rng_uniform(rng) - 2;
}

static void encode_in_doubles(const struct pm_box_coder *coder, const float b[5], const float a[5],
                              double code[5])
{
    const double dy = (double)b[0] - (double)a[0], dx = (double)b[1] - (double)a[1];
    const double c = cos((double)a[4]), s = sin((double)a[4]), e = 1e-8;
    const double h = (double)a[2] + e, w = (double)a[3] + e;

    code[0] = (-s * dx + c * dy) / h;
    code[1] = (c * dx + s * dy) / w;
    code[2] = log(((double)b[2] + e) / h);
    code[3] = log(((double)b[3] + e) / w);
    code[4] = ((double)b[4] - (double)a[4]) / QUARTER;
    for (int i = 0; i < 5; i++)
        code[i] *= (double)coder->scales[i];
}

/* Centres differ by up to 3 and have an error of 2^-22, which is divided by a side of at least
 * e^-4; sines have one of 3e-7. */
static void codes_follow_the_definition_and_decode_to_the_box(void **state)
{
    static const float other[] = { 3, 4, 2, 1.5f, 0.5f };
    struct pm_rng rng = pm_rng_make(1, 2, 0, 0);

    (void)state;
    for (int t = 0; t < TRIALS; t++) {
        const struct pm_box_coder coder = coder_of(t % 2 * 5, other);
        float box[5], anchor[5], code[5] = { 0 }, back[5] = { 0 };
        double want[5];

        draw_box(&rng, box);
        draw_box(&rng, anchor);
        if (fabsf(box[2] - box[3]) < 0.01f * box[2])
            box[3] *= 1.1f; /* no square */
        pm_box_encode_any(&coder, box, anchor, code);
        encode_in_doubles(&coder, box, anchor, want);
        pm_box_decode_any(&coder, code, anchor, back);
        for (int i = 0; i < 5; i++) {
            const double side = i < 2 ? (double)anchor[2 + i] : 1;
            const double error = (double)coder.scales[i] * 3e-6 / side + fabs(want[i]) * 1e-6;

            if (!(fabs((double)code[i] - want[i]) <= error))
                fail_msg("code %d is %.9g, the definition says %.9g", i, (double)code[i], want[i]);
            if (!(fabs((double)back[i] - (double)box[i]) <= 6e-6))
                fail_msg("number %d is %.9g after decoding, not %.9g", i, (double)back[i],
                         (double)box[i]);
        }
    }
}

static void an_anchor_has_the_code_zero(void **state)
{
    const struct pm_box_coder coder = coder_of(0, NULL);
    struct pm_rng rng = pm_rng_make(3, 4, 0, 0);
    float anchor[5], code[5];

    (void)state;
    for (int t = 0; t < TRIALS; t++) {
        draw_box(&rng, anchor);
        pm_box_encode_rotated(&coder, anchor, anchor, code);
        for (int i = 0; i < 5; i++)
            assert_true(code[i] == 0);
    }
}

/* Worked out by hand: an anchor turned clockwise by a quarter has its width downwards. */
static void known_numbers(void **state)
{
    const float anchor[5] = { 1, 1, 0.5f, 2, PM_QUARTER_TURN };
    const float box[5] = { 2, 1, 0.5f, 2, PM_QUARTER_TURN / 2 };
    const struct pm_box_coder coder = coder_of(0, NULL);
    float code[5];

    (void)state;
    pm_box_encode_rotated(&coder, box, anchor, code);
    assert_float_equal(code[0], 0, 1e-5);
    assert_float_equal(code[1], 5, 1e-5); /* 1 / 2 * 10 */
    assert_float_equal(code[2], 0, 1e-5);
    assert_float_equal(code[3], 0, 1e-5);
    assert_float_equal(code[4], -2.5, 1e-5);
}

/* A square has no angle: the target is the nearest of its four, so a code is at most 5 / 2. A box
 * that is no square keeps its whole difference, also over the seam at a quarter of a turn. */
static void squares_take_the_nearer_quarter(void **state)
{
    const struct pm_box_coder coder = coder_of(0, NULL);
    struct pm_rng rng = pm_rng_make(5, 6, 0, 0);

    (void)state;
    for (int t = 0; t < TRIALS; t++) {
        float box[5], anchor[5], code[5], back[5];

        draw_box(&rng, box);
        draw_box(&rng, anchor);
        box[3] = box[2] * 1.0005f;
        pm_box_encode_rotated(&coder, box, anchor, code);
        assert_true(fabsf(code[4]) <= 2.5001f);
        pm_box_decode_rotated(&coder, code, anchor, back);
        assert_true(fabs(remainder((double)back[4] - (double)box[4], QUARTER)) < 4e-6);
        box[3] = box[2] * 1.1f;
        pm_box_encode_rotated(&coder, box, anchor, code);
        assert_true(fabs((double)code[4] -
                         5 * ((double)box[4] - (double)anchor[4]) / QUARTER) < 1e-5);
    }
}

static void sides_of_zero_and_large_codes_are_finite(void **state)
{
    const float line[5] = { 0.5f, 0.5f, 0, 1, 0.3f }, anchor[5] = { 0, 0, 1, 1, 1 };
    const float large[5] = { 100, -100, 1e4f, 1e4f, 1e4f };
    const struct pm_box_coder coder = coder_of(0, NULL);
    float code[5], box[5];

    (void)state;
    pm_box_encode_rotated(&coder, line, anchor, code);
    for (int i = 0; i < 5; i++)
        assert_true(isfinite(code[i]));
    pm_box_encode_rotated(&coder, anchor, line, code);
    for (int i = 0; i < 5; i++)
        assert_true(isfinite(code[i]));
    pm_box_decode_rotated(&coder, large, anchor, box);
    for (int i = 0; i < 5; i++)
        assert_true(isfinite(box[i]));
}

static void directions(void **state)
{
    (void)state;
    for (int i = -6000; i <= 6000; i++) {
        const float angle = (float)i * 0.01f;
        float c, s;

        pm_box_direction(angle, &c, &s);
        assert_true(fabs((double)c - cos((double)angle)) < 3e-7);
        assert_true(fabs((double)s - sin((double)angle)) < 3e-7);
    }
}

static void options_are_checked(void **state)
{
    static const float four[] = { 10, 10, 5, 5 };
    struct pm_box_coder coder;

    (void)state;
    assert_int_equal(pm_box_coder_make(PM_CODER_ROTATED, (struct pm_floats){ 4, four }, "test",
                                       &coder), PM_ECONFIG);
    coder = coder_of(0, NULL);
    assert_int_equal(pm_box_coder_size(&coder), 5);
    assert_int_equal(pm_box_coder_numbers(&coder), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_follow_the_definition_and_decode_to_the_box),
        cmocka_unit_test(an_anchor_has_the_code_zero),
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(squares_take_the_nearer_quarter),
        cmocka_unit_test(sides_of_zero_and_large_codes_are_finite),
        cmocka_unit_test(directions),
        cmocka_unit_test(options_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
