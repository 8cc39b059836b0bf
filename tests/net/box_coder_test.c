/* Box coders against their definitions in double precision: encoding, decoding, round trips, sides
 * of 0 and codes whose exponential overflows. */
#include "layers/box_coder.h"

#include <pumice/rng.h>

#include "base/unit.h"

enum { TRIALS = 2000 };

/* An anchor or an object: the centre in -0.5..1.5, sides from 0.002 to 1,
 * the same for both axes if `square`. */
static void draw_box(struct pm_rng *rng, bool square, float box[4])
{
    const double y = 2 * pm_rng_uniform(rng) - 0.5, x = 2 * pm_rng_uniform(rng) - 0.5;
    const double h = exp(-6.2 * pm_rng_uniform(rng)), w = exp(-6.2 * pm_rng_uniform(rng));

    box[0] = (float)(y - h / 2), box[2] = (float)(y + h / 2);
    box[1] = (float)(x - (square ? h : w) / 2), box[3] = (float)(x + (square ? h : w) / 2);
}

static void encode_in_doubles(const struct pm_box_coder *coder, const float b[4], const float a[4],
                              double code[4])
{
    const double ha = (double)a[2] - a[0], wa = (double)a[3] - a[1], e = 1e-8;
    const double h = (double)b[2] - b[0], w = (double)b[3] - b[1];
    const double dy = ((double)b[0] + b[2] - a[0] - a[2]) / 2;
    const double dx = ((double)b[1] + b[3] - a[1] - a[3]) / 2;
    const float *s = coder->scales;

    switch (coder->kind) {
    case PM_CODER_FASTER_RCNN:
        code[0] = s[0] * dy / (ha + e), code[1] = s[1] * dx / (wa + e);
        code[2] = s[2] * log((h + e) / (ha + e)), code[3] = s[3] * log((w + e) / (wa + e));
        break;
    case PM_CODER_MEAN_STDDEV:
        for (int i = 0; i < 4; i++)
            code[i] = ((double)b[i] - a[i]) / s[0];
        break;
    case PM_CODER_CORNERS:
        for (int i = 0; i < 4; i++)
            code[i] = ((double)b[i] - a[i]) / ((i % 2 ? wa : ha) + e) / s[0];
        break;
    default:
        code[0] = s[0] * dy / (sqrt(ha * wa) + e), code[1] = s[1] * dx / (sqrt(ha * wa) + e);
        code[2] = s[2] * log((sqrt(h * w) + e) / (sqrt(ha * wa) + e));
    }
}

static struct pm_box_coder coder_of(int kind, int count, const float *scales)
{
    struct pm_box_coder coder = { 0 };

    assert_int_equal(pm_box_coder_make(kind, (struct pm_floats){ count, scales }, "test", &coder),
                     PM_OK);
    return coder;
}

/* A centre has an error of some 2^-24, which the code divides by the smallest side, 0.002, and
 * multiplies by its scale. The difference of two corners up to 2 has an error of 2^-23 / 2, so the
 * logarithm of a side of 0.002 has one of 3e-5 each for box and anchor. */
static void one_code(const struct pm_box_coder *coder, struct pm_rng *rng)
{
    const double most = coder->kind == PM_CODER_MEAN_STDDEV ? 100 : 10;
    float box[4], anchor[4], code[4] = { 0 }, back[4];
    double want[4] = { 0 };

    draw_box(rng, coder->kind == PM_CODER_SQUARE, box);
    draw_box(rng, false, anchor);
    pm_box_encode(coder, box, anchor, code);
    encode_in_doubles(coder, box, anchor, want);
    for (int i = 0; i < pm_box_coder_size(coder); i++)
        if (fabs(code[i] - want[i]) > most * 8e-5 + fabs(want[i]) * 2e-4)
            fail_msg("code %d is %.9g, the definition says %.9g", i, code[i], want[i]);
    pm_box_decode(coder, code, anchor, back);
    /* Encoding divides a distance of up to 2 by ha + 1e-8, decoding multiplies by ha, which is at
     * least 0.002: an error of 1e-5 at most, and rounding. */
    for (int i = 0; i < 4; i++)
        if (fabs(back[i] - box[i]) > 1.2e-5)
            fail_msg("corner %d is %.9g after decoding, not %.9g", i, back[i], box[i]);
}

static void codes_follow_the_definition_and_decode_to_the_box(void **state)
{
    static const float other[][4] = { { 3, 4, 2, 1.5f }, { 0.1f }, { 3, 4, 2 }, { 0.5f } };
    static const int counts[] = { 4, 1, 3, 1 };
    struct pm_rng rng = pm_rng_make(1, 2, 0, 0);

    (void)state;
    for (int kind = PM_CODER_FASTER_RCNN; kind <= PM_CODER_CORNERS; kind++) {
        const struct pm_box_coder own = coder_of(kind, 0, NULL);
        const struct pm_box_coder scaled = coder_of(kind, counts[kind], other[kind]);

        for (int i = 0; i < TRIALS; i++)
            one_code(&own, &rng), one_code(&scaled, &rng);
    }
}

static void an_anchor_has_the_code_zero(void **state)
{
    struct pm_rng rng = pm_rng_make(3, 4, 0, 0);

    (void)state;
    for (int kind = PM_CODER_FASTER_RCNN; kind <= PM_CODER_CORNERS; kind++) {
        const struct pm_box_coder coder = coder_of(kind, 0, NULL);

        for (int i = 0; i < 100; i++) {
            float anchor[4], code[4] = { 0 };

            draw_box(&rng, false, anchor);
            pm_box_encode(&coder, anchor, anchor, code);
            for (int k = 0; k < pm_box_coder_size(&coder); k++)
                assert_float_equal(code[k], 0, 0);
        }
    }
}

/* The numbers of one anchor, worked out by hand from the definition. */
static void known_numbers(void **state)
{
    const float anchor[4] = { 0.25f, 0.25f, 0.75f, 0.5f }, box[4] = { 0.5f, 0.25f, 0.75f, 0.75f };
    struct pm_box_coder coder = coder_of(PM_CODER_FASTER_RCNN, 0, NULL);
    float code[4];

    (void)state;
    pm_box_encode(&coder, box, anchor, code);
    assert_float_equal(code[0], 2.5, 1e-5);             /* (0.625 - 0.5) / 0.5 */
    assert_float_equal(code[1], 5, 1e-5);               /* (0.5 - 0.375) / 0.25 */
    assert_float_equal(code[2], -3.465735903, 1e-5);    /* 5 ln 0.5 */
    assert_float_equal(code[3], 3.465735903, 1e-5);
    coder = coder_of(PM_CODER_MEAN_STDDEV, 0, NULL);
    pm_box_encode(&coder, box, anchor, code);
    assert_float_equal(code[0], 25, 1e-4);
    assert_float_equal(code[1], 0, 0);
    coder = coder_of(PM_CODER_CORNERS, 0, NULL);
    pm_box_encode(&coder, box, anchor, code);
    assert_float_equal(code[0], 2.5, 1e-5);             /* 0.25 / 0.5 / 0.2 */
    assert_float_equal(code[1], 0, 0);
    assert_float_equal(code[2], 0, 0);
    assert_float_equal(code[3], 5, 1e-5);               /* 0.25 / 0.25 / 0.2 */
}

static void sides_of_zero_have_finite_codes(void **state)
{
    const float anchor[4] = { 0, 0, 0.5f, 0.5f }, line[4] = { 0.2f, 0.1f, 0.2f, 0.4f };

    (void)state;
    for (int kind = PM_CODER_FASTER_RCNN; kind <= PM_CODER_CORNERS; kind++) {
        const struct pm_box_coder coder = coder_of(kind, 0, NULL);
        float code[4] = { 0 };

        pm_box_encode(&coder, line, anchor, code);
        for (int k = 0; k < 4; k++)
            assert_true(isfinite(code[k]));
        pm_box_encode(&coder, anchor, line, code);
        for (int k = 0; k < 4; k++)
            assert_true(isfinite(code[k]));
    }
}

/* e^(1e4 / 5) is infinite in float32 and in double. */
static void large_codes_decode_to_finite_boxes(void **state)
{
    const float anchor[4] = { 0.1f, 0.1f, 0.9f, 0.9f }, large[4] = { 0, 0, 1e4f, 1e4f };
    const float tiny[4] = { 0, 0, -1e4f, -1e4f }, bad[4] = { 0, 0, NAN, NAN };
    const struct pm_box_coder coder = coder_of(PM_CODER_FASTER_RCNN, 0, NULL);
    float box[4];

    (void)state;
    pm_box_decode(&coder, large, anchor, box);
    assert_true(isfinite((box[2] - box[0]) * (box[3] - box[1]) * 2));
    assert_true(box[2] - box[0] > 1e16f);
    pm_box_decode(&coder, tiny, anchor, box);
    assert_float_equal(box[0], box[2], 0);
    pm_box_decode(&coder, bad, anchor, box); /* NaN must not become a box */
    assert_true(isnan(box[0]) && isnan(box[3]));
}

/* Codes of corners are not limited: a code of 1e4 moves a corner by 2000 sides of the anchor. An
 * anchor without height keeps both of its rows, whatever the codes are. */
static void corners_move_by_sides(void **state)
{
    const float anchor[4] = { 0.25f, 0.5f, 0.5f, 1 }, line[4] = { 0.25f, 0.5f, 0.25f, 1 };
    const float large[4] = { 0, -1e4f, 1e4f, NAN };
    const struct pm_box_coder coder = coder_of(PM_CODER_CORNERS, 0, NULL);
    float box[4];

    (void)state;
    pm_box_decode(&coder, large, anchor, box);
    assert_float_equal(box[0], 0.25, 0);
    assert_float_equal(box[1], -999.5, 1e-3);
    assert_float_equal(box[2], 500.5, 1e-3);
    assert_true(isnan(box[3]));
    pm_box_decode(&coder, large, line, box);
    assert_float_equal(box[0], 0.25, 0);
    assert_float_equal(box[2], 0.25, 0);
}

/* A corner's gradient is that of its code alone, times the anchor's side and the stddev. */
static void gradient_of_corners(void **state)
{
    const float anchor[4] = { 0.1f, 0.2f, 0.5f, 0.9f }, dbox[4] = { 1, -2, 3, 0.5f };
    const float code[4] = { 0.3f, -0.2f, 0.7f, 0.1f };
    const struct pm_box_coder coder = coder_of(PM_CODER_CORNERS, 1, (const float[]){ 0.5f });
    float box[4], dcode[4];

    (void)state;
    pm_box_decode(&coder, code, anchor, box);
    pm_box_decode_back(&coder, code, anchor, box, dbox, dcode);
    for (int i = 0; i < 4; i++)
        assert_float_equal(dcode[i], (double)dbox[i] * 0.5 * (i % 2 ? 0.7 : 0.4), 1e-6);
}

static void options_are_checked(void **state)
{
    struct pm_box_coder coder;

    (void)state;
    assert_int_equal(pm_box_coder_make(PM_CODER_SQUARE,
                                       (struct pm_floats){ 4, (float[]){ 1, 2, 3, 4 } }, "x",
                                       &coder), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "coder_scales has 4 numbers, but the coder square has "
                                            "3"));
    assert_int_equal(pm_box_coder_size(&(struct pm_box_coder){ PM_CODER_SQUARE, { 1 } }), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_follow_the_definition_and_decode_to_the_box),
        cmocka_unit_test(an_anchor_has_the_code_zero),
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(sides_of_zero_have_finite_codes),
        cmocka_unit_test(large_codes_decode_to_finite_boxes),
        cmocka_unit_test(corners_move_by_sides),
        cmocka_unit_test(gradient_of_corners),
        cmocka_unit_test(options_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
