/* Matching of rotated boxes: random scenes against a plain matrix of overlaps in double precision,
 * the rule of far angles by hand, borders, and the time of a large scene. */
#include "tasks/detection/matching.h"

#include <math.h>
#include <pumice/rng.h>
#include <time.h>

#include "base/unit.h"
#include "layers/rotated_overlap.h"

enum { ANCHORS = 1500, TRUTHS = 12, SCENES = 30 };
#define QUARTER 1.57079637f

static const struct pm_matcher plain = {
    .matched_threshold = 0.5f, .unmatched_threshold = 0.4f, .iou_threshold = 0.25f,
    .negatives_lower_than_unmatched = true,
};

struct scene {
    struct pm_truths t;
    float anchor[ANCHORS][5], box[TRUTHS][5], weight[TRUTHS], score[TRUTHS];
};

static void draw_box(struct pm_rng *rng, float size, float box[5])
{
    box[0] = pm_rng_uniform(rng);
    box[1] = 1.5f * pm_rng_uniform(rng);
    box[2] = size * (0.5f + pm_rng_uniform(rng));
    box[3] = size * (1 + 3 * pm_rng_uniform(rng));
    box[4] = QUARTER * (2 * pm_rng_uniform(rng) - 1);
}

/* Anchors of 3 sizes and 7 angles on a grid; some true boxes equal an anchor or another box. */
static void draw_scene(struct pm_rng *rng, struct scene *s)
{
    for (int i = 0; i < ANCHORS; i++) {
        const int cell = i / 21, size = i / 7 % 3;

        s->anchor[i][0] = (float)(cell / 9) / 8;
        s->anchor[i][1] = (float)(cell % 9) / 6;
        s->anchor[i][2] = 0.08f * (float)(1 << size);
        s->anchor[i][3] = 3 * s->anchor[i][2];
        s->anchor[i][4] = QUARTER / 3 * (float)(i % 7 - 3);
    }
    for (int i = 0; i < TRUTHS; i++) {
        const uint32_t fate = pm_rng_u32(rng) % 6;

        draw_box(rng, 0.12f, s->box[i]);
        if (fate == 0)
            memcpy(s->box[i], s->anchor[pm_rng_u32(rng) % ANCHORS], sizeof s->box[i]);
        if (fate == 1 && i > 0)
            memcpy(s->box[i], s->box[pm_rng_u32(rng) % (uint32_t)i], sizeof s->box[i]);
        if (fate == 2)
            s->box[i][0] += 7; /* overlaps nothing */
        s->weight[i] = pm_rng_u32(rng) % 5 ? 1 : 0;
        s->score[i] = pm_rng_uniform(rng);
    }
    s->t = (struct pm_truths){ (int)(pm_rng_u32(rng) % (TRUTHS + 1)), s->box[0], s->weight,
                               s->score };
}

/* ---- the matrix ------------------------------------------------------------------------------ */

/* An overlap rounded as floats are, so that equal boxes tie; -1: far angles. */
static double similarity(const struct pm_matcher *m, const float *anchor, const float *box,
                         double score)
{
    double a[5], b[5], joined, inner;

    if (m->far_angles && fabsf(anchor[4] - box[4]) > QUARTER)
        return -1;
    for (int i = 0; i < 5; i++)
        a[i] = (double)anchor[i], b[i] = (double)box[i];
    inner = pm_rotated_intersection(a, b, &joined);
    if (!(inner > 1e-9 * joined)) /* boxes that touch */
        return 0;
    if (m->similarity == PM_IOA)
        return inner / (a[2] * a[3]);
    if (m->similarity == PM_THRESHOLDED_IOU)
        return inner / joined > (double)m->iou_threshold ? score : 0;
    return inner / joined;
}

static double at(const struct pm_matcher *m, const struct scene *s, int anchor, int row)
{
    return similarity(m, s->anchor[anchor], s->box[row], (double)s->score[row]);
}

/* Two overlaps between which rounding may decide. */
static bool close_to(double a, double b)
{
    return fabs(a - b) < 3e-6;
}

/* Whether the anchor's match is one that rounding allows; claims come later. */
static bool allowed(const struct pm_matcher *m, const struct scene *s, int anchor, int32_t found)
{
    double best = -2, least = 2, overlap = -2, of = found >= 0 ? at(m, s, anchor, found) : 0;
    const struct pm_matcher iou = { .similarity = PM_IOU, .far_angles = m->far_angles };

    for (int row = 0; row < s->t.count; row++) {
        best = fmax(best, at(m, s, anchor, row));
        least = fmin(least, at(m, s, anchor, row));
        overlap = fmax(overlap, at(&iou, s, anchor, row));
    }
    if (least < 0 && overlap == 0)
        return found == PM_IGNORED;
    const double high = (double)m->matched_threshold, low = (double)m->unmatched_threshold;
    const double margin = 3e-6;

    if (found >= 0)
        return of >= best - margin && best >= high - margin;
    if (found == PM_IGNORED)
        return best >= low - margin && best < high + margin;
    return best < low + margin;
}

/* The anchors that a box may claim. */
static bool may_claim(const struct pm_matcher *m, const struct scene *s, int anchor, int row)
{
    double best = 0;

    for (int i = 0; i < ANCHORS; i++)
        best = fmax(best, at(m, s, i, row));
    return best > 0 && (at(m, s, anchor, row) >= best || close_to(at(m, s, anchor, row), best));
}

static void check_scene(const struct pm_matcher *m, const struct scene *s, const int32_t *out,
                        const struct pm_truth_best *best)
{
    for (int i = 0; i < ANCHORS; i++) {
        const bool claimed = m->force_match_for_each_row && out[i] >= 0 && s->weight[out[i]] > 0 &&
                             may_claim(m, s, i, out[i]);

        if (!claimed && !allowed(m, s, i, out[i]))
            fail_msg("anchor %d has the match %d", i, out[i]);
    }
    for (int row = 0; row < s->t.count; row++) {
        double most = 0;

        for (int i = 0; i < ANCHORS; i++)
            most = fmax(most, at(m, s, i, row));
        if (best[row].anchor < 0)
            assert_true(most == 0);
        else
            assert_true(fabs((double)best[row].similarity - most) < 1e-5 &&
                        fabs(at(m, s, best[row].anchor, row) - most) < 1e-5);
        int owners = 0;
        for (int i = 0; i < ANCHORS; i++)
            owners += out[i] == row;
        /* Without copies of the box, its claim holds. */
        for (int other = 0; other < s->t.count; other++)
            owners += other != row && best[other].anchor == best[row].anchor;
        if (m->force_match_for_each_row && s->weight[row] > 0 && most > 0)
            assert_true(owners > 0);
    }
}

static void scenes(void **state)
{
    static struct scene s;
    static int32_t out[ANCHORS];
    struct pm_truth_best best[TRUTHS];
    struct pm_rng rng = pm_rng_make(1, 2, 0, 0);
    int matched = 0, ignored = 0;

    (void)state;
    for (int k = 0; k < SCENES; k++) {
        struct pm_matcher m = plain;

        draw_scene(&rng, &s);
        m.far_angles = k % 2;
        m.force_match_for_each_row = k % 3 == 0;
        m.similarity = k % 5 == 3 ? PM_IOA : k % 5 == 4 ? PM_THRESHOLDED_IOU : PM_IOU;
        struct pm_anchor_index *x = pm_anchor_index_create_rotated(s.anchor[0], ANCHORS, 1.5f);

        assert_int_equal(pm_anchor_index_count(x), ANCHORS);
        pm_match(&m, x, &s.t, out, best);
        check_scene(&m, &s, out, best);
        for (int i = 0; i < ANCHORS; i++)
            matched += out[i] >= 0, ignored += out[i] == PM_IGNORED;
        pm_anchor_index_destroy(&x);
    }
    assert_in_range(matched, 200, SCENES * ANCHORS / 2);
    assert_in_range(ignored, 200, SCENES * ANCHORS);
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void match(const struct pm_matcher *m, int anchors, const float (*anchor)[5], int truths,
                  const float (*truth)[5], int32_t *out)
{
    struct pm_anchor_index *x = pm_anchor_index_create_rotated(anchor[0], anchors, 1);

    pm_match(m, x, &(struct pm_truths){ .count = truths, .boxes = truth[0] }, out, NULL);
    pm_anchor_index_destroy(&x);
}

/* The seam: anchor and box are nearly the same rectangle, but their angles differ by nearly half a
 * turn. */
static void far_angles(void **state)
{
    const float anchor[3][5] = { { 0.5f, 0.5f, 0.1f, 0.4f, 1.5f },
                                 { 0.5f, 0.5f, 0.1f, 0.4f, -1.5f }, { 5, 5, 0.1f, 0.4f, 1.5f } };
    const float truth[2][5] = { { 0.5f, 0.5f, 0.1f, 0.4f, -1.55f }, { 9, 9, 0.1f, 0.4f, 1.5f } };
    struct pm_matcher m = plain;
    int32_t out[3];

    (void)state;
    match(&m, 3, anchor, 1, truth, out);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == PM_NEGATIVE);
    m.far_angles = true;
    match(&m, 3, anchor, 1, truth, out); /* all pairs of anchors 0 and 2 are far */
    assert_true(out[0] == PM_NEGATIVE && out[1] == 0 && out[2] == PM_NEGATIVE);
    match(&m, 3, anchor, 2, truth, out); /* the second box is near in angle, and overlaps none */
    assert_true(out[0] == PM_IGNORED && out[1] == 0 && out[2] == PM_IGNORED);
    m.force_match_for_each_row = true; /* the box claims anchor 1; -1 is never claimed */
    match(&m, 1, anchor, 1, truth, out);
    assert_true(out[0] == PM_NEGATIVE);
    m.type = PM_MATCHER_BIPARTITE;
    match(&m, 3, anchor, 1, truth, out);
    assert_true(out[0] == PM_NEGATIVE && out[1] == 0 && out[2] == PM_NEGATIVE);
}

/* A quarter of a turn exactly is not beyond one: anchors at +-90 degrees learn flat boxes, and flat
 * anchors upright ones. The next float is. */
static void quarter_turn(void **state)
{
    static const float turns[][2] = { { QUARTER, 0 }, { -QUARTER, 0 }, { 0, QUARTER },
                                      { 0, -QUARTER } };
    struct pm_matcher m = plain;
    int32_t out[1];

    (void)state;
    m.far_angles = true;
    for (size_t i = 0; i < PM_COUNT(turns); i++) {
        const float anchor[1][5] = { { 0.5f, 0.5f, 0.3f, 0.4f, turns[i][0] } };
        const float truth[1][5] = { { 0.5f, 0.5f, 0.3f, 0.4f, turns[i][1] } };
        const float beyond[1][5] = { { 0.5f, 0.5f, 0.3f, 0.4f, nextafterf(QUARTER, 2) } };
        const float flat[1][5] = { { 0.5f, 0.5f, 0.3f, 0.4f, 0 } };

        match(&m, 1, anchor, 1, truth, out); /* 0.3 of 0.4 wide: 9 / 15 */
        assert_int_equal(out[0], 0);
        match(&m, 1, flat, 1, beyond, out);
        assert_int_equal(out[0], PM_NEGATIVE);
    }
}

/* Corner against corner along the line of the centres: a search that rejects too early finds no
 * anchor for the box. */
static void corners_that_meet(void **state)
{
    struct pm_rng rng = pm_rng_make(5, 6, 0, 0);
    const struct pm_matcher m = plain;
    int met = 0;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        const double turn = 6.2831853 * pm_rng_uniform(&rng);
        float anchor[5], truth[5];
        double a[5], b[5];
        struct pm_truth_best best;
        int32_t out;

        draw_box(&rng, 0.1f, anchor);
        draw_box(&rng, 0.1f, truth);
        /* The diagonals lie along the line of the centres. */
        anchor[4] = (float)(turn - atan2((double)anchor[2], (double)anchor[3]));
        truth[4] = (float)(turn - atan2((double)truth[2], (double)truth[3]));
        const double reach = (hypot((double)anchor[2], (double)anchor[3]) +
                              hypot((double)truth[2], (double)truth[3])) / 2 * 0.9995;
        truth[0] = anchor[0] + (float)(reach * sin(turn));
        truth[1] = anchor[1] + (float)(reach * cos(turn));
        for (int k = 0; k < 5; k++)
            a[k] = (double)anchor[k], b[k] = (double)truth[k];
        if (!(pm_rotated_overlap(a, b) > 1e-7))
            continue;
        met++;
        struct pm_anchor_index *x = pm_anchor_index_create_rotated(anchor, 1, 1.5f);

        pm_match(&m, x, &(struct pm_truths){ .count = 1, .boxes = truth }, &out, &best);
        if (best.anchor != 0)
            fail_msg("pair %d overlaps by %g but is not found", i, pm_rotated_overlap(a, b));
        pm_anchor_index_destroy(&x);
    }
    assert_in_range(met, 1000, 4000);
}

/* A turned box has corners outside although its sides would fit; the right border is 2. */
static void borders(void **state)
{
    const float anchor[6][5] = {
        { 0.5f, 1.9f, 0.2f, 0.2f, 0 },           /* touches the border */
        { 0.5f, 1.9f, 0.2f, 0.2f, 0.785f },      /* corners outside */
        { 0.5f, 0.5f, 1, 0.1f, 0 },              /* from top to bottom */
        { 0.5f, 0.5f, 1, 0.1f, 0.1f },           /* its corners pass the top by little */
        { 0.5f, 0.5f, 0.1f, 1, 1.57079637f },    /* the second, turned by a quarter */
        { 1.1f, 0.5f, 0.1f, 0.1f, 0 },           /* the centre is outside */
    };
    const float truth[1][5] = { { 0.5f, 0.5f, 1, 0.1f, 0 } };
    struct pm_anchor_index *x = pm_anchor_index_create_rotated(anchor[0], 6, 2);
    struct pm_matcher m = plain;
    int32_t out[6];
    float box[5];

    (void)state;
    m.ignore_outside = true;
    pm_match(&m, x, &(struct pm_truths){ .count = 1, .boxes = truth[0] }, out, NULL);
    assert_true(out[5] == PM_IGNORED && out[0] == PM_NEGATIVE && out[2] == 0 && out[4] == 0);
    m.ignore_outside = false;
    assert_int_equal(pm_anchor_index_prune(x), 3);
    pm_match(&m, x, &(struct pm_truths){ .count = 1, .boxes = truth[0] }, out, NULL);
    assert_true(out[0] == PM_NEGATIVE && out[1] == PM_IGNORED && out[2] == 0 &&
                out[3] == PM_IGNORED && out[4] == 0 && out[5] == PM_IGNORED);
    pm_anchor_index_box(x, 3, box);
    assert_memory_equal(box, anchor[3], sizeof box);
    pm_anchor_index_destroy(&x);
    assert_null(x);
}

static void empty(void **state)
{
    const float anchor[1][5] = { { 0.5f, 0.5f, 0.1f, 0.4f, 1.5f } };
    struct pm_matcher m = plain;
    int32_t out[1];

    (void)state;
    m.far_angles = m.force_match_for_each_row = true;
    match(&m, 1, anchor, 0, anchor, out);
    assert_int_equal(out[0], PM_NEGATIVE);
    match(&m, 0, anchor, 1, anchor, out);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* 100 true boxes and 51,156 anchors: 29 x 21 cells of 84. Printed only; the machine may be busy. */
static void large(void **state)
{
    enum { COUNT = 29 * 21 * 84, BOXES = 100 };
    float *anchor = pm_malloc(COUNT * 5 * sizeof *anchor);
    int32_t *out = pm_malloc(COUNT * sizeof *out);
    float truth[BOXES][5];
    struct pm_rng rng = pm_rng_make(3, 4, 0, 0);
    struct pm_matcher m = plain;
    struct timespec a, b;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        const int cell = i / 84, size = i / 21 % 4, ratio = 3 + 2 * (i / 7 % 3);
        const float side = 64.0f / 464 * (float)(size + 1);

        anchor[5 * i] = (float)(cell / 21) * 16 / 464;
        anchor[5 * i + 1] = (float)(cell % 21) * 16 / 464;
        anchor[5 * i + 2] = side / sqrtf((float)ratio);
        anchor[5 * i + 3] = side * sqrtf((float)ratio);
        anchor[5 * i + 4] = QUARTER / 3 * (float)(i % 7 - 3);
    }
    for (int i = 0; i < BOXES; i++)
        draw_box(&rng, 0.05f, truth[i]);
    struct pm_anchor_index *x = pm_anchor_index_create_rotated(anchor, COUNT, 0.72f);

    m.force_match_for_each_row = true;
    for (int far = 0; far < 2; far++) {
        double least = INFINITY;

        m.far_angles = far;
        for (int k = 0; k < 5; k++) {
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
            pm_match(&m, x, &(struct pm_truths){ .count = BOXES, .boxes = truth[0] }, out, NULL);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
            least = fmin(least, (double)(b.tv_sec - a.tv_sec) * 1e3 +
                                    (double)(b.tv_nsec - a.tv_nsec) / 1e6);
        }
        printf("%d x %d, far angles %d: %.1f ms\n", BOXES, COUNT, far, least);
    }
    pm_anchor_index_destroy(&x);
    pm_free(anchor);
    pm_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenes), cmocka_unit_test(far_angles), cmocka_unit_test(borders),
        cmocka_unit_test(empty), cmocka_unit_test(large), cmocka_unit_test(quarter_turn),
        cmocka_unit_test(corners_that_meet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
