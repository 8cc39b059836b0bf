/* Matching: the rules by hand; random scenes against a plain matrix of similarities. */
#include "matching_scene.h"

#include <pumice/rng.h>

/* ---- by hand ----------------------------------------------------------------------------- */

/* Adds a box of height 1 from x to x + w. */
static void strip(float box[4], float x, float w)
{
    box[0] = 0, box[1] = x, box[2] = 1, box[3] = x + w;
}

static struct scene *strips(int anchors, const float (*a)[2], int truths, const float (*t)[2])
{
    struct scene *s = pm_calloc(1, sizeof *s);

    s->anchors = anchors;
    s->t.count = truths;
    for (int i = 0; i < anchors; i++)
        strip(s->anchor[i], a[i][0], a[i][1]);
    for (int i = 0; i < truths; i++) {
        strip(s->box[i], t[i][0], t[i][1]);
        s->weight[i] = s->score[i] = 1;
    }
    point(s);
    return s;
}

static void expect(const struct pm_matcher *m, const struct scene *s, const int32_t *want)
{
    int32_t out[16];

    match(m, s, out, NULL);
    for (int i = 0; i < s->anchors; i++)
        if (out[i] != want[i])
            fail_msg("anchor %d: %d instead of %d", i, out[i], want[i]);
}
#define EXPECT(m, s, ...) expect(m, s, (const int32_t[]) { __VA_ARGS__ })

static bool is_inside(const float box[4])
{
    return box[0] >= 0 && box[1] >= 0 && box[2] <= 1 && box[3] <= 1;
}

/* Pruning gives the matches of a scene that has only the anchors inside. */
static void check_pruned(const struct pm_matcher *m, const struct scene *s, const char *what)
{
    static int32_t out[MOST_ANCHORS], want[MOST_ANCHORS];
    static struct scene inside;
    struct pm_anchor_index *x = pm_anchor_index_create(s->anchor[0], s->anchors);
    int n = 0;

    pm_anchor_index_prune(x);
    pm_match(m, x, &s->t, out, NULL);
    pm_anchor_index_destroy(&x);
    inside = *s;
    point(&inside);
    for (int i = 0; i < s->anchors; i++)
        if (is_inside(s->anchor[i]))
            memcpy(inside.anchor[n++], s->anchor[i], sizeof s->anchor[i]);
    inside.anchors = n;
    match(m, &inside, want, NULL);
    n = 0;
    for (int i = 0; i < s->anchors; i++) {
        const int32_t wanted = is_inside(s->anchor[i]) ? want[n++] : PM_IGNORED;

        if (out[i] != wanted)
            fail_msg("%s, pruned: anchor %d: %d instead of %d", what, i, out[i], wanted);
    }
}

/* Overlaps of exactly 1/2 and 1/4 with the one box. At the upper threshold an anchor is matched; at
 * the lower one it is ignored, not negative. */
static void thresholds(void **state)
{
    const float anchors[][2] = { { 0, 8 }, { 0, 4 }, { 0, 2 }, { 0, 1 }, { 9, 4 }, { 0, 7 } };
    const float truths[][2] = { { 0, 8 } };
    struct scene *s = strips(6, anchors, 1, truths);
    struct pm_matcher m = plain;

    (void)state;
    EXPECT(&m, s, 0, 0, -1, -1, -1, 0);
    m.unmatched_threshold = 0.25f;
    EXPECT(&m, s, 0, 0, -2, -1, -1, 0);
    m.negatives_lower_than_unmatched = false;
    EXPECT(&m, s, 0, 0, -1, -2, -2, 0);
    m.ignore_thresholds = true;
    EXPECT(&m, s, 0, 0, 0, 0, 0, 0);
    m.ignore_thresholds = false;
    s->t.count = 0;
    EXPECT(&m, s, -1, -1, -1, -1, -1, -1);
    pm_free(s);
}

/* Two boxes have the same best anchor, the second one: the first box gets it, with strict the last.
 * Without force nobody does. A box of weight 0 claims nothing. */
static void forced(void **state)
{
    const float anchors[][2] = { { 0, 8 }, { 8, 8 }, { 16, 8 } };
    const float truths[][2] = { { 8, 2 }, { 10, 3 }, { 30, 5 }, { 40, 5 } };
    struct scene *s = strips(3, anchors, 4, truths);
    struct pm_truth_best best[4];
    struct pm_matcher m = plain;
    int32_t out[3];

    (void)state;
    EXPECT(&m, s, -1, -1, -1);
    m.force_match_for_each_row = true;
    EXPECT(&m, s, -1, 0, -1);
    match(&m, s, out, best);
    assert_int_equal(best[0].anchor, 1);
    assert_float_equal(best[0].similarity, 0.25f, 0);
    assert_int_equal(best[1].anchor, 1);
    assert_int_equal(best[2].anchor, -1); /* it overlaps nothing, so it claims nothing */
    assert_float_equal(best[2].similarity, 0, 0);
    m.strict = true;
    EXPECT(&m, s, 3, 1, -1);
    s->weight[3] = 0;
    EXPECT(&m, s, 2, 1, -1);
    s->weight[1] = s->weight[2] = 0;
    EXPECT(&m, s, -1, 0, -1);
    s->t.weights = NULL;
    EXPECT(&m, s, 3, 1, -1);
    pm_free(s);
}

/* Anchors whose centre is on or beyond the right edge are ignored, matched or not. */
static void outside(void **state)
{
    const float anchors[][2] = { { 0.5f, 0.25f }, { 0.75f, 0.5f }, { 0.875f, 0.5f }, { -1, 0.5f } };
    const float truths[][2] = { { 0.75f, 0.5f } };
    struct scene *s = strips(4, anchors, 1, truths);
    struct pm_matcher m = plain;

    (void)state;
    EXPECT(&m, s, -1, 0, 0, -1);
    m.ignore_outside = true;
    EXPECT(&m, s, -1, -2, -2, -1);
    s->t.count = 0;
    EXPECT(&m, s, -1, -2, -2, -1);
    pm_free(s);
}

/* An anchor on the edge is inside; without one inside, all are ignored. */
static void pruned(void **state)
{
    const float anchors[][2] = { { -0.25f, 0.5f }, { 0.5f, 0.5f }, { 0.5625f, 0.5f } };
    const float truths[][2] = { { 0.5625f, 0.5f } };
    struct scene *s = strips(3, anchors, 1, truths);
    struct pm_matcher m = plain;

    (void)state;
    m.matched_threshold = 0.9f;
    m.unmatched_threshold = 0.1f;
    m.force_match_for_each_row = true;
    EXPECT(&m, s, -1, -2, 0);
    check_pruned(&m, s, "the best anchor is outside");
    s->anchor[1][0] = -1;
    check_pruned(&m, s, "no anchor is inside");
    pm_free(s);
}

/* All overlaps are 0: with ignore_thresholds every anchor belongs to the first box; a matched
 * threshold of 0 does the same. */
static void no_overlap(void **state)
{
    const float anchors[][2] = { { 0, 8 }, { 8, 8 } };
    const float truths[][2] = { { 20, 2 }, { 30, 0 } };
    struct scene *s = strips(2, anchors, 2, truths);
    struct pm_matcher m = plain;

    (void)state;
    EXPECT(&m, s, -1, -1);
    m.force_match_for_each_row = true;
    EXPECT(&m, s, -1, -1);
    m.ignore_thresholds = true;
    EXPECT(&m, s, 0, 0);
    m = plain;
    m.matched_threshold = m.unmatched_threshold = 0;
    EXPECT(&m, s, 0, 0);
    m = plain;
    m.type = PM_MATCHER_BIPARTITE;
    EXPECT(&m, s, -1, -1);
    m.strict = true;
    EXPECT(&m, s, 0, 1);
    pm_free(s);
}

/* The pair (second box, first anchor) is the best one, so the first box gets its second choice. The
 * third box finds no free anchor that it overlaps. */
static void bipartite(void **state)
{
    const float anchors[][2] = { { 0, 8 }, { 4, 8 }, { 40, 8 } };
    const float truths[][2] = { { 0, 6 }, { 0, 8 }, { 0, 2 } };
    struct scene *s = strips(3, anchors, 3, truths);
    struct pm_matcher m = plain;

    (void)state;
    m.type = PM_MATCHER_BIPARTITE;
    EXPECT(&m, s, 1, 0, -1);
    s->weight[1] = 0; /* the indices of the others stay */
    EXPECT(&m, s, 0, -1, -1);
    m.similarity = PM_NEG_SQ_DIST; /* each box finds an anchor, however far */
    EXPECT(&m, s, 0, 2, -1);
    pm_free(s);
}

static void checked(void **state)
{
    struct pm_matcher m = plain;

    (void)state;
    assert_int_equal(pm_matcher_check(&m, "x.json: model.matcher"), PM_OK);
    m.negatives_lower_than_unmatched = false;
    assert_int_equal(pm_matcher_check(&m, "x.json: model.matcher"), PM_ECONFIG);
    assert_contains(pm_error_text(), "x.json: model.matcher.negatives_lower_than_unmatched: false");
    m.unmatched_threshold = 0.75f;
    assert_int_equal(pm_matcher_check(&m, "x.json: model.matcher"), PM_ECONFIG);
    assert_contains(pm_error_text(), "matched_threshold: 0.5 is below unmatched_threshold");
    m.ignore_thresholds = true;
    assert_int_equal(pm_matcher_check(&m, "x.json: model.matcher"), PM_OK);
    m = plain;
    m.similarity = PM_NEG_SQ_DIST;
    assert_int_equal(pm_matcher_check(&m, "x.json: model.matcher"), PM_ECONFIG);
    assert_contains(pm_error_text(), "0.5 is above 0, the largest value of this similarity");
    assert_contains(pm_error_text(), "lower it (and unmatched_threshold, to 0 or less)");
    m.matched_threshold = m.unmatched_threshold = -0.25f;
    assert_int_equal(pm_matcher_check(&m, "x.json: model.matcher"), PM_OK);
}

/* ---- a matrix of similarities ------------------------------------------------------------ */

static float similarity(const struct pm_matcher *m, const struct scene *s, int row, int anchor)
{
    const float *a = s->box[row], *b = s->anchor[anchor];
    const volatile float area_a = (a[2] - a[0]) * (a[3] - a[1]);
    const volatile float area_b = (b[2] - b[0]) * (b[3] - b[1]);
    const volatile float both = fmaxf(0, fminf(a[2], b[2]) - fmaxf(a[0], b[0]))
                              * fmaxf(0, fminf(a[3], b[3]) - fmaxf(a[1], b[1]));
    const volatile float areas = area_a + area_b; /* volatile: no fused multiply-add */
    const volatile float over = areas - both;
    const float iou = both > 0 ? both / over : 0;
    volatile float far = 0;

    if (m->similarity == PM_IOU)
        return iou;
    if (m->similarity == PM_THRESHOLDED_IOU)
        return iou > m->iou_threshold ? s->score[row] : 0;
    if (m->similarity == PM_IOA)
        return both > 0 ? both / area_b : 0;
    for (int e = 0; e < 4; e++) {
        const volatile float square = (a[e] - b[e]) * (a[e] - b[e]);

        far -= square;
    }
    return far;
}

static float matrix[MOST_TRUTHS][MOST_ANCHORS];

static void fill_matrix(const struct pm_matcher *m, const struct scene *s)
{
    for (int r = 0; r < s->t.count; r++)
        for (int i = 0; i < s->anchors; i++)
            matrix[r][i] = similarity(m, s, r, i);
}

static bool claims(const struct pm_matcher *m, float v)
{
    return m->strict || m->similarity == PM_NEG_SQ_DIST || v != 0;
}

static void reference_argmax(const struct pm_matcher *m, const struct scene *s, int32_t *out)
{
    for (int i = 0; i < s->anchors; i++) {
        int row = 0;

        for (int r = 1; r < s->t.count; r++)
            if (matrix[r][i] > matrix[row][i])
                row = r;
        bool below = matrix[row][i] < m->unmatched_threshold;
        bool matched = m->ignore_thresholds || matrix[row][i] >= m->matched_threshold;

        out[i] = matched ? row : below == m->negatives_lower_than_unmatched ? -1 : -2;
    }
    for (int k = 0; m->force_match_for_each_row && k < s->t.count; k++) {
        int row = m->strict ? k : s->t.count - 1 - k, best = 0;

        for (int i = 1; i < s->anchors; i++)
            if (matrix[row][i] > matrix[row][best])
                best = i;
        if (s->weight[row] > 0 && claims(m, matrix[row][best]))
            out[best] = row;
    }
}

static void reference_bipartite(const struct pm_matcher *m, const struct scene *s, int32_t *out)
{
    bool done[MOST_TRUTHS];

    for (int i = 0; i < s->anchors; i++)
        out[i] = -1;
    for (int r = 0; r < s->t.count; r++)
        done[r] = s->weight[r] <= 0;
    for (;;) {
        int row = -1, anchor = 0;

        for (int r = 0; r < s->t.count; r++)
            for (int i = 0; !done[r] && i < s->anchors; i++)
                if (out[i] < 0 && (row < 0 || matrix[r][i] > matrix[row][anchor]))
                    row = r, anchor = i;
        if (row < 0)
            return;
        done[row] = true;
        if (claims(m, matrix[row][anchor]))
            out[anchor] = row;
    }
}

static void check_scene(const struct pm_matcher *m, const struct scene *s, const char *what)
{
    static int32_t out[MOST_ANCHORS], want[MOST_ANCHORS];
    static struct pm_truth_best best[MOST_TRUTHS];

    match(m, s, out, best);
    (m->type == PM_MATCHER_ARGMAX ? reference_argmax : reference_bipartite)(m, s, want);
    for (int i = 0; i < s->anchors; i++)
        if (out[i] != want[i])
            fail_msg("%s: anchor %d: %d instead of %d", what, i, out[i], want[i]);
    for (int r = 0; r < s->t.count; r++) {
        int anchor = m->similarity == PM_NEG_SQ_DIST ? 0 : -1;

        for (int i = 0; i < s->anchors; i++)
            if (anchor < 0 ? matrix[r][i] > 0 : matrix[r][i] > matrix[r][anchor])
                anchor = i;
        assert_int_equal(best[r].anchor, anchor);
        assert_float_equal(best[r].similarity, anchor < 0 ? 0 : matrix[r][anchor], 0);
    }
    match(m, s, out, NULL);
    assert_memory_equal(out, want, (size_t)s->anchors * sizeof *out);
}

static float unit(struct pm_rng *g)
{
    return (float)pm_rng_uniform(g);
}

/* A box within or beside the picture; sides are often multiples of 1/32, so overlaps tie. */
static void random_box(struct pm_rng *g, float side, bool round, float box[4])
{
    float y = unit(g) * 1.2f - 0.2f, x = unit(g) * 1.2f - 0.2f;
    float h = side * (0.2f + unit(g)), w = side * (0.2f + unit(g));
    float v[] = { y, x, y + h, x + w };

    for (int e = 0; e < 4; e++)
        box[e] = round ? floorf(v[e] * 32) / 32 : v[e];
}

/* Rows of cells of several levels, two anchors a cell; the last third in no order at all. */
static void random_scene(struct pm_rng *g, struct scene *s, int anchors, int truths, bool round)
{
    int n = 0;

    s->anchors = anchors;
    s->t.count = truths;
    for (int cells = 16; cells > 1 && n < anchors * 2 / 3; cells /= 2)
        for (int i = 0; i < cells * cells * 2 && n < anchors * 2 / 3; i++, n++) {
            float y = ((float)(i / 2 / cells) + 0.5f) / (float)cells;
            float x = ((float)(i / 2 % cells) + 0.5f) / (float)cells;
            float h = (i % 2 ? 1.0f : 1.5f) / (float)cells, w = 1.2f / (float)cells;

            s->anchor[n][0] = y - h / 2, s->anchor[n][1] = x - w / 2;
            s->anchor[n][2] = y + h / 2, s->anchor[n][3] = x + w / 2;
        }
    for (; n < anchors; n++)
        random_box(g, unit(g), round, s->anchor[n]);
    for (int r = 0; r < truths; r++) {
        random_box(g, unit(g) * unit(g), round, s->box[r]);
        if (r % 7 == 3)
            memcpy(s->box[r], s->box[r - 1], sizeof s->box[r]);
        if (r % 11 == 5 && anchors)
            memcpy(s->box[r], s->anchor[(r * 31) % anchors], sizeof s->box[r]);
        if (r % 13 == 9)
            s->box[r][2] = s->box[r][0]; /* no area */
        s->weight[r] = r % 9 == 4 ? 0 : 1;
        s->score[r] = floorf(unit(g) * 8) / 8;
    }
    point(s);
}

static void random_scenes(void **state)
{
    static const int sizes[][2] = { { 2000, 40 }, { 700, 7 }, { 64, 3 },   { 65, 12 },
                                    { 1, 5 },     { 500, 300 }, { 130, 1 } };
    struct scene *s = pm_calloc(1, sizeof *s);
    struct pm_rng g = pm_rng_make(17, 0, 0, 0);
    char what[100];

    (void)state;
    for (int seed = 0; seed < 42; seed++) {
        int count = seed % 7;

        random_scene(&g, s, sizes[count][0], sizes[count][1], seed % 2);
        for (int k = 0; k < 96; k++) {
            struct pm_matcher m = {
                .similarity = k / 24,
                .type = k % 24 >= 20 ? PM_MATCHER_BIPARTITE : PM_MATCHER_ARGMAX,
                .matched_threshold = k % 3 ? 0.5f : 0.7f,
                .unmatched_threshold = k % 5 ? 0.4f : 0.05f,
                .iou_threshold = 0.3f,
                .ignore_thresholds = k % 8 == 5,
                .negatives_lower_than_unmatched = k % 2,
                .force_match_for_each_row = k / 2 % 2,
                .strict = k / 4 % 2,
            };

            if (k % 24 == 0)
                fill_matrix(&m, s);
            if (m.type == PM_MATCHER_BIPARTITE && s->t.count * s->anchors > 10000)
                continue; /* the reference takes too long */
            snprintf(what, sizeof what, "scene %d, setting %d", seed, k);
            check_scene(&m, s, what);
            check_pruned(&m, s, what);
        }
    }
    pm_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds), cmocka_unit_test(forced),        cmocka_unit_test(no_overlap),
        cmocka_unit_test(bipartite),  cmocka_unit_test(random_scenes), cmocka_unit_test(checked),
        cmocka_unit_test(outside),    cmocka_unit_test(pruned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
