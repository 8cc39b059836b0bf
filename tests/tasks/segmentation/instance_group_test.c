/* Grouping: cases by hand, and random maps compared with a reference that tests every centre,
 * every window and every pixel and shares no code with src/. */
#include "base/unit.h"
#include "tasks/segmentation/instance_group.h"

#include <pumice/rng.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 * 80, CLASSES = 6 };

struct maps {
    int height, width, stride;
    int32_t classes[MOST];
    float heat[MOST], offset[2 * MOST], probabilities[MOST * CLASSES];
};

static const int two_things[] = { 2, 4 };

static struct pm_group_options options(void)
{
    return (struct pm_group_options){ .threshold = NAN, .nms_kernel = 7, .top_k = 200,
                                      .stuff_area = 2048, .label_divisor = 1000,
                                      .things = { 2, two_things } };
}

static struct pm_group_input input_of(const struct maps *m)
{
    return (struct pm_group_input){ m->height, m->width, m->stride, CLASSES, m->classes, m->heat,
                                    m->offset, m->probabilities };
}

/* ---- the reference ----------------------------------------------------------------------- */

struct result {
    int centers, y[MOST], x[MOST];
    int number[MOST];     /* as for pm_group_assign */
    int id[MOST];         /* as in the map */
};

static float padded(const float *v, int h, int w, int y, int x)
{
    return y < 0 || x < 0 || y >= h || x >= w ? -INFINITY : v[y * w + x];
}

static int descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

/* The published post-processing: threshold, max-pool, comparison, top k. */
static void ref_centers(const struct maps *m, const struct pm_group_options *o, float threshold,
                        struct result *r)
{
    const int h = m->height, w = m->width, reach = (o->nms_kernel - 1) / 2;
    static float heat[MOST], left[MOST], sorted[MOST];
    int count = 0;

    for (int i = 0; i < h * w; i++) {
        const float v = m->heat[i / w * m->stride + i % w];

        heat[i] = v > threshold ? v : -1;
    }
    for (int i = 0; i < h * w; i++) {
        float most = -INFINITY;

        for (int dy = -reach; dy <= reach; dy++)
            for (int dx = -reach; dx <= reach; dx++)
                most = fmaxf(most, padded(heat, h, w, i / w + dy, i % w + dx));
        left[i] = most == heat[i] ? heat[i] : -1;
        if (left[i] > 0)
            sorted[count++] = left[i];
    }
    qsort(sorted, (size_t)count, sizeof *sorted, descending);
    r->centers = 0;
    for (int i = 0; i < h * w; i++)
        if (left[i] > (count >= o->top_k ? sorted[o->top_k - 1] : 0)) {
            r->y[r->centers] = i / w;
            r->x[r->centers++] = i % w;
        }
}

static bool is_thing(const struct pm_group_options *o, int label)
{
    for (int i = 0; i < o->things.count; i++)
        if (o->things.v[i] == label)
            return true;
    return false;
}

static void ref_numbers(const struct maps *m, const struct pm_group_options *o, struct result *r)
{
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++) {
            const int at = y * m->stride + x;
            const float py = (float)y + m->offset[2 * at], px = (float)x + m->offset[2 * at + 1];
            float best = INFINITY;
            int *number = &r->number[y * m->width + x];

            *number = r->centers > 0;
            for (int c = 0; c < r->centers; c++) {
                const float v = py - (float)r->y[c], u = px - (float)r->x[c];

                if (v * v + u * u < best)
                    best = v * v + u * u, *number = c + 1;
            }
            if (!is_thing(o, m->classes[at]))
                *number = 0;
        }
}

static void ref_merge(const struct maps *m, const struct pm_group_options *o, struct result *r)
{
    const int n = m->height * m->width;
    int next[CLASSES] = { 0 };

    for (int i = 0; i < n; i++)
        r->id[i] = -1;
    for (int k = 1; k <= r->centers; k++) {
        int votes[CLASSES] = { 0 }, winner = -1;

        for (int i = 0; i < n; i++)
            if (r->number[i] == k)
                votes[m->classes[i / m->width * m->stride + i % m->width]]++;
        for (int c = CLASSES - 1; c >= 0; c--)
            if (votes[c] > 0 && (winner < 0 || votes[c] >= votes[winner]))
                winner = c;
        if (winner < 0)
            continue;
        next[winner]++;
        for (int i = 0; i < n; i++)
            if (r->number[i] == k)
                r->id[i] = winner * o->label_divisor + next[winner];
    }
    for (int c = 0; c < CLASSES; c++) {
        int area = 0;

        for (int i = 0; i < n; i++)
            area += m->classes[i / m->width * m->stride + i % m->width] == c && r->number[i] == 0;
        for (int i = 0; i < n && !is_thing(o, c) && area >= o->stuff_area; i++)
            if (m->classes[i / m->width * m->stride + i % m->width] == c)
                r->id[i] = c * o->label_divisor;
    }
}

/* Areas, scores and the list of segments must follow from the map. */
static void check_segments(const struct maps *m, const struct pm_segment_map *p)
{
    const int n = p->height * p->width;
    int labelled = 0, covered = 0;

    for (int s = 0; s < p->count; s++) {
        double sum = 0;
        int area = 0;

        for (int i = 0; i < n; i++)
            if (p->map[i] == p->segments[s].id) {
                area++;
                sum +=
                    (double)m->probabilities[(i / p->width * m->stride + i % p->width) * CLASSES +
                                             p->segments[s].label];
            }
        assert_true(area > 0);
        assert_int_equal(p->segments[s].area, area);
        assert_true(fabs(p->segments[s].score - sum / area) < 1e-12);
        assert_int_equal(p->segments[s].thing, p->segments[s].id % 1000 != 0);
        assert_int_equal(p->segments[s].id / 1000, p->segments[s].label);
        labelled += area;
    }
    for (int i = 0; i < n; i++)
        covered += p->map[i] != PM_VOID;
    assert_int_equal(labelled, covered);
}

static void compare(const struct maps *m, const struct pm_group_options *o, struct result *r)
{
    const struct pm_group_input in = input_of(m);
    const int n = m->height * m->width;
    struct pm_group_center *centers = NULL;
    static int32_t number[MOST];
    struct pm_segment_map p;
    const int count = pm_group_centers(o, &in, &centers);

    assert_int_equal(count, r->centers);
    for (int i = 0; i < count; i++)
        if (centers[i].y != r->y[i] || centers[i].x != r->x[i])
            fail_msg("centre %d: %d, %d, not %d, %d", i, centers[i].y, centers[i].x, r->y[i],
                     r->x[i]);
    pm_group_assign(o, &in, centers, count, number);
    for (int i = 0; i < n; i++)
        if (number[i] != r->number[i])
            fail_msg("pixel %d, %d: centre %d, not %d", i / m->width, i % m->width, number[i],
                     r->number[i]);
    pm_group_segments(o, &in, &p);
    for (int i = 0; i < n; i++)
        if (p.map[i] != r->id[i])
            fail_msg("pixel %d, %d: id %d, not %d", i / m->width, i % m->width, p.map[i], r->id[i]);
    check_segments(m, &p);
    pm_segment_map_free(&p);
    pm_free(centers);
}

/* ---- maps -------------------------------------------------------------------------------- */

static float uniform(struct pm_rng *r, float low, float high)
{
    return low + (high - low) * (float)pm_rng_uniform(r);
}

/* Heat with few levels, so that neighbours are often equal. */
static void fill(struct maps *m, uint64_t seed, int height, int width, int stride, int levels,
                 float reach)
{
    struct pm_rng r = pm_rng_make(seed, pm_hash("instance_group_test"), 0, 0);

    m->height = height, m->width = width, m->stride = stride;
    assert_true(height * stride <= MOST && width <= stride);
    for (int i = 0; i < height * stride; i++) {
        m->classes[i] = (int)uniform(&r, 0, CLASSES) % CLASSES;
        m->heat[i] = roundf(uniform(&r, -0.3f, 1) * (float)levels) / (float)levels;
        m->offset[2 * i] = uniform(&r, -reach, reach);
        m->offset[2 * i + 1] = uniform(&r, -reach, reach);
        for (int c = 0; c < CLASSES; c++)
            m->probabilities[i * CLASSES + c] = uniform(&r, 0, 1);
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

static struct maps m;
static struct result r;

static void random_maps(void **state)
{
    (void)state;
    for (int k = 0; k < 60; k++) {
        struct pm_group_options o = options();
        const int levels[] = { 5, 40, 100000 }, kernels[] = { 1, 3, 7, 13 };

        o.nms_kernel = kernels[k % 4];
        o.stuff_area = k % 5 * 190;
        o.top_k = k % 7 == 0 ? 20 : 900;
        fill(&m, (uint64_t)k, 5 + k % 60, 9 + k % 55, 9 + k % 55 + k % 3, levels[k % 3],
             k % 6 == 0 ? 200 : 12);
        if (k % 11 == 0)
            m.offset[8] = NAN, m.offset[11] = INFINITY, m.heat[4] = NAN;
        if (k % 8 == 0) /* whole numbers: some pixels are equally far from several centres */
            for (int i = 0; i < 2 * m.height * m.stride; i++)
                m.offset[i] = roundf(m.offset[i]);
        ref_centers(&m, &o, 0.1f, &r);
        ref_numbers(&m, &o, &r);
        ref_merge(&m, &o, &r);
        compare(&m, &o, &r);
    }
}

static void empty(int height, int width, int label)
{
    m.height = height, m.width = m.stride = width;
    for (int i = 0; i < height * width; i++)
        m.classes[i] = label, m.heat[i] = 0;
    memset(m.offset, 0, sizeof m.offset);
    memset(m.probabilities, 0, sizeof m.probabilities);
}

static int centers_of(const struct pm_group_options *o, struct pm_group_center out[MOST])
{
    const struct pm_group_input in = input_of(&m);
    struct pm_group_center *list = NULL;
    const int n = pm_group_centers(o, &in, &list);

    if (n)
        memcpy(out, list, (size_t)n * sizeof *list);
    pm_free(list);
    return n;
}

static struct pm_group_center found[MOST];

static void thresholds(void **state)
{
    struct pm_group_options o = options();

    (void)state;
    empty(20, 30, 2);
    m.heat[3 * 30 + 4] = 0.1f; /* equal to the threshold, not above it */
    assert_int_equal(centers_of(&o, found), 0);
    m.heat[3 * 30 + 4] = nextafterf(0.1f, 1);
    assert_int_equal(centers_of(&o, found), 1);
    assert_int_equal(found[0].y, 3);
    assert_int_equal(found[0].x, 4);
    o.threshold = -0.5f; /* counts as 0 */
    m.heat[9 * 30 + 9] = 0.01f;
    assert_int_equal(centers_of(&o, found), 2);
}

/* Equal neighbours are all kept. A pixel at the edge of the window is compared, one further away
 * is not. */
static void plateaus(void **state)
{
    const struct pm_group_options o = options();

    (void)state;
    empty(20, 30, 2);
    m.heat[10 * 30 + 10] = m.heat[10 * 30 + 11] = m.heat[11 * 30 + 10] = 0.75f;
    assert_int_equal(centers_of(&o, found), 3);
    assert_int_equal(found[2].y, 11);
    m.heat[10 * 30 + 14] = 0.8f; /* 3 to the right of one maximum, 4 from the others */
    assert_int_equal(centers_of(&o, found), 3);
    assert_int_equal(found[0].x, 10);
    assert_int_equal(found[1].x, 14);
    assert_int_equal(found[2].x, 10);
}

static void many(void **state)
{
    struct pm_group_options o = options();

    (void)state;
    o.nms_kernel = 1;
    empty(20, 30, 2);
    for (int i = 0; i < 199; i++)
        m.heat[i] = 0.5f;
    assert_int_equal(centers_of(&o, found), 199); /* fewer than top_k: all are kept, also equal
                                                   * ones */
    m.heat[300] = 0.9f;
    assert_int_equal(centers_of(&o, found), 1); /* 200: those above the 200th, which ties with
                                                 * 198 others */
    for (int i = 0; i < 250; i++)
        m.heat[i] = 0.2f + 0.001f * (float)i;
    assert_int_equal(centers_of(&o, found), 199);
    assert_int_equal(found[0].y * 30 + found[0].x, 52); /* 251: the 199 hottest remain, ordered
                                                         * by place */
    assert_int_equal(found[198].y * 30 + found[198].x, 300);
}

static void no_centers(void **state)
{
    struct pm_group_options o = options();
    struct pm_segment_map p;

    (void)state;
    o.stuff_area = 300;
    empty(20, 30, 2);
    for (int i = 0; i < 300; i++)
        m.classes[i] = 1;
    const struct pm_group_input in = input_of(&m);
    pm_group_segments(&o, &in, &p);
    assert_int_equal(p.count, 1);
    assert_int_equal(p.segments[0].id, 1000);
    assert_int_equal(p.segments[0].area, 300); /* equal to the threshold: kept */
    assert_int_equal(p.map[0], 1000);
    assert_int_equal(p.map[300], PM_VOID); /* a thing without an instance */
    pm_segment_map_free(&p);
    o.stuff_area = 301;
    pm_group_segments(&o, &in, &p);
    assert_int_equal(p.count, 0);
    assert_int_equal(p.map[0], PM_VOID);
    pm_segment_map_free(&p);
}

/* Ties of votes go to the lower class. Instances are numbered for each class. A pixel between
 * equally near centres belongs to the first. */
static void ties(void **state)
{
    struct pm_group_options o = options();
    struct pm_segment_map p;

    (void)state;
    empty(1, 11, 4);
    o.nms_kernel = 1;
    m.heat[1] = m.heat[9] = 0.5f;
    m.classes[2] = m.classes[3] = m.classes[4] = 2; /* pixels 0..5: three of each class */
    const struct pm_group_input in = input_of(&m);
    pm_group_segments(&o, &in, &p);
    assert_int_equal(p.count, 2);
    assert_int_equal(p.segments[0].id, 2001);
    assert_int_equal(p.segments[0].area, 6);
    assert_int_equal(p.segments[1].id, 4001);
    assert_int_equal(p.segments[1].center_x, 9);
    assert_int_equal(p.map[5], 2001);
    assert_int_equal(p.map[6], 4001);
    pm_segment_map_free(&p);
}

/* ---- seed4 ------------------------------------------------------------------------------- */

static void seed4_centers(void **state)
{
    struct pm_group_options o = options();

    (void)state;
    o.mode = PM_INSTANCE_SEED4;
    empty(60, 80, 2); /* blocks have 72 columns */
    m.heat[5 * 80 + 5] = 40;
    m.heat[5 * 80 + 6] = 50;  /* the hottest of its block, scaled to 127.5 of the largest */
    m.heat[30 * 80 + 75] = 100;
    m.heat[31 * 80 + 75] = 100; /* the first of equal ones */
    assert_int_equal(centers_of(&o, found), 2);
    assert_int_equal(found[0].y, 30);
    assert_int_equal(found[0].x, 75);
    assert_int_equal(found[1].x, 6);
    m.heat[5 * 80 + 6] = 49.9f;
    assert_int_equal(centers_of(&o, found), 1);
    o.threshold = 100; /* the threshold of its exported form */
    assert_int_equal(centers_of(&o, found), 2);
    m.classes[30 * 80 + 75] = 1; /* things only */
    assert_int_equal(centers_of(&o, found), 2);
    assert_int_equal(found[0].y, 31);
    o.top_k = 1;
    assert_int_equal(centers_of(&o, found), 1);
    assert_int_equal(found[0].x, 75);
    empty(60, 80, 2);
    assert_int_equal(centers_of(&o, found), 0);
}

/* Lengths point to the centre from both sides. Beyond a squared distance of 3000 no centre is
 * near. */
static void seed4_numbers(void **state)
{
    struct pm_group_options o = options();
    const struct pm_group_center c[] = { { 20, 10, 255 }, { 20, 50, 255 } };
    static int32_t number[MOST];

    (void)state;
    o.mode = PM_INSTANCE_SEED4;
    empty(60, 80, 2);
    for (int i = 0; i < 60 * 80; i++) /* every pixel belongs to the second centre */
        m.offset[2 * i] = (float)abs(i / 80 - 20), m.offset[2 * i + 1] = (float)abs(i % 80 - 50);
    m.classes[7] = 0;
    const struct pm_group_input in = input_of(&m);
    pm_group_assign(&o, &in, c, 2, number);
    for (int i = 0; i < 60 * 80; i++) {
        /* 30 columns have the same distance from the first centre, with the same lengths. */
        const float u = fabsf(fabsf((float)(i % 80) - 10) - m.offset[2 * i + 1]);

        if (number[i] != (i == 7 ? 0 : u == 0 ? 1 : 2))
            fail_msg("pixel %d, %d: centre %d", i / 80, i % 80, number[i]);
    }
    m.offset[0] = 20, m.offset[1] = 10 + sqrtf(3000); /* pixel 0, 0 has exactly the largest
                                                       * distance */
    m.offset[2] = 20, m.offset[3] = 9 + 54.7f;
    pm_group_assign(&o, &in, c, 1, number);
    assert_int_equal(number[1], 1);
    m.offset[3] = 9 + 54.8f;
    m.offset[0] = 20 + 30, m.offset[1] = 10 + 45.8f; /* 900 + 2097.6 */
    pm_group_assign(&o, &in, c, 1, number);
    assert_int_equal(number[1], 0);
    assert_int_equal(number[0], 1);
    m.offset[1] = 10 + 45.9f;
    pm_group_assign(&o, &in, c, 1, number);
    assert_int_equal(number[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_maps),  cmocka_unit_test(thresholds),
        cmocka_unit_test(plateaus),     cmocka_unit_test(many),
        cmocka_unit_test(no_centers),   cmocka_unit_test(ties),
        cmocka_unit_test(seed4_centers), cmocka_unit_test(seed4_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
