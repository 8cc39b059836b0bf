/* COCO's metrics: cases counted by hand, and scenes compared with
 * tests/golden/coco_metrics.json, which coco_metrics.py computed with COCO's own evaluation:
 * masks through panoptic_metrics, boxes directly. */
#include "tasks/coco_metrics.h"
#include "tasks/segmentation/drawn_segments.h"
#include "tasks/segmentation/panoptic_metrics.h"

#include <string.h>

/* ---- by hand ----------------------------------------------------------------------------- */

/* Adds a picture with instances of class 0 of 2. */
static void add_at(struct pm_coco_metrics *m, uint64_t order, int truths,
                   const struct pm_coco_true *truth, int found, const struct pm_coco_said *said,
                   const double *overlap)
{
    pm_coco_metrics_add(m, 0, &(struct pm_coco_picture){ truths, found, truth, said, overlap,
                                                         order });
}

static void add(struct pm_coco_metrics *m, int truths, const struct pm_coco_true *truth, int found,
                const struct pm_coco_said *said, const double *overlap)
{
    add_at(m, 0, truths, truth, found, said, overlap);
}

static double figure(const struct pm_coco_metrics *m, enum pm_coco_figure which)
{
    return pm_coco_metrics_figures(m, -1).v[which];
}

/* An overlap equal to a threshold is a match. Of two true instances one is found, up to 0.75. */
static void thresholds(void **state)
{
    const struct pm_coco_true truth[] = { { 5000, false }, { 5000, false } };
    const struct pm_coco_said said[] = { { 5000, 0.5 } };
    const double overlap[] = { 0.25, 0.75 };
    struct pm_coco_metrics *m = pm_coco_metrics_create(2);

    (void)state;
    add(m, 2, truth, 1, said, overlap);
    near(figure(m, PM_COCO_AP50), 51.0 / 101); /* recalls 0, 0.01 ... 0.5 */
    near(figure(m, PM_COCO_AP75), 51.0 / 101);
    near(figure(m, PM_COCO_AP), 0.6 * 51 / 101);
    near(figure(m, PM_COCO_AR1), 0.6 * 0.5);
    near(figure(m, PM_COCO_AR_MEDIUM), 0.6 * 0.5);
    assert_true(isnan(figure(m, PM_COCO_AR_SMALL)) && isnan(figure(m, PM_COCO_AP_LARGE)));
    assert_true(isnan(pm_coco_metrics_figures(m, 1).v[PM_COCO_AP]));
    assert_string_equal(pm_coco_names[PM_COCO_AP75], "ap75");
    assert_string_equal(pm_coco_names[PM_COCO_AR_LARGE], "ar_large");
    pm_coco_metrics_destroy(&m);
    assert_null(m);
}

/* A crowd matches all predictions on it that have no other match. A true instance that counts
 * has priority, whatever its overlap. Matches with a crowd are neither right nor wrong. */
static void crowds(void **state)
{
    const struct pm_coco_true truth[] = { { 5000, true }, { 5000, false } };
    const struct pm_coco_said said[] = { { 5000, 0.9 }, { 5000, 0.8 }, { 5000, 0.7 } };
    const double overlap[] = { 1, 0, 1, 0, 1, 0.95 };
    struct pm_coco_metrics *m = pm_coco_metrics_create(2);

    (void)state;
    add(m, 2, truth, 3, said, overlap);
    near(figure(m, PM_COCO_AP), 1);
    near(figure(m, PM_COCO_AR1), 0);
    near(figure(m, PM_COCO_AR10), 1);
    pm_coco_metrics_destroy(&m);
    m = pm_coco_metrics_create(2);
    add(m, 1, truth, 3, said, (double[]){ 1, 1, 0.4 }); /* without a true instance the class has
                                                         * no metrics */
    assert_true(isnan(figure(m, PM_COCO_AP)));
    pm_coco_metrics_destroy(&m);
}

/* An area of 1024 is both small and medium. A match with an instance of another range is neither
 * right nor wrong; a prediction without a match is wrong in its own range only. */
static void areas(void **state)
{
    const struct pm_coco_true truth[] = { { 1024, false }, { 20000, false } };
    const struct pm_coco_said said[] = { { 2000, 0.9 }, { 20000, 0.8 }, { 1000, 0.7 } };
    const double overlap[] = { 0, 0, 0, 1, 1, 0 };
    struct pm_coco_metrics *m = pm_coco_metrics_create(2);

    (void)state;
    add(m, 2, truth, 3, said, overlap);
    near(figure(m, PM_COCO_AP_SMALL), 1);
    near(figure(m, PM_COCO_AP_MEDIUM), 0.5);
    near(figure(m, PM_COCO_AP_LARGE), 1);
    near(figure(m, PM_COCO_AP), 2.0 / 3); /* right after one wrong: the best precision at later
                                           * recalls counts */
    near(figure(m, PM_COCO_AR1), 0);
    near(figure(m, PM_COCO_AR10), 1);
    pm_coco_metrics_destroy(&m);
}

/* The 101st prediction of a picture does not count. A score that is not a number comes last. */
static void many(void **state)
{
    const struct pm_coco_true truth[] = { { 100, false } };
    struct pm_coco_said said[101];
    double overlap[101] = { 0 };

    (void)state;
    for (int last = 99; last < 102; last++) {
        struct pm_coco_metrics *m = pm_coco_metrics_create(2);

        for (int i = 0; i < 101; i++)
            said[i] = (struct pm_coco_said){ 100, 1 - 0.001 * i };
        memset(overlap, 0, sizeof overlap);
        overlap[last == 101 ? 0 : last] = 1;
        said[0].score = last == 101 ? (double)NAN : 1;
        add(m, 1, truth, 101, said, overlap);
        near(figure(m, PM_COCO_AP), last == 99 ? 0.01 : 0);
        near(figure(m, PM_COCO_AR100), last == 99);
        near(figure(m, PM_COCO_AR10), 0);
        pm_coco_metrics_destroy(&m);
    }
}

/* Predictions of equal score come in the order of the pictures, not in that of addition. */
static void ties(void **state)
{
    const struct pm_coco_true truth[] = { { 100, false } };
    const struct pm_coco_said said[] = { { 100, 0.5 } };

    (void)state;
    for (int k = 0; k < 4; k++) {
        const int first = k % 2, reversed = k / 2;
        struct pm_coco_metrics *m = pm_coco_metrics_create(2);

        for (int i = 0; i < 2; i++) {
            const int picture = reversed ? 1 - i : i;

            add_at(m, (uint64_t)picture, picture == first, truth, 1, said, (double[]){ 1 });
        }
        near(figure(m, PM_COCO_AP), first == 0 ? 1 : 0.5);
        pm_coco_metrics_destroy(&m);
    }
}

/* Scores 0.9 right, 0.8 twice (right and wrong), 0.5 wrong, of three true instances: the best F1
 * is that of the upper three, and the score drops the fourth. A class without a right prediction
 * has F1 0. */
static void curves(void **state)
{
    const struct pm_coco_true truth[] = { { 100, false }, { 100, false }, { 100, false } };
    const struct pm_coco_said said[] = { { 100, 0.8 }, { 100, 0.9 }, { 100, 0.5 }, { 100, 0.8 } };
    const double overlap[] = { 0.1, 0, 0, 0.6, 0, 0, 0, 0, 0, 0, 0.5, 0 };
    struct pm_coco_metrics *m = pm_coco_metrics_create(2);
    struct pm_coco_curve c;

    (void)state;
    pm_coco_metrics_curve(m, 0, &c);
    assert_true(isnan(c.f1) && isnan(c.score) && isnan(c.precision[0]) && c.truths == 0);
    add(m, 3, truth, 4, said, overlap);
    for (int label = -1; label < 1; label++) {
        pm_coco_metrics_curve(m, label, &c);
        near(c.f1, 2.0 * 2 / (3 + 3));
        near(c.score, (double)0.65f);
        near(c.precision_at, 2.0 / 3);
        near(c.recall_at, 2.0 / 3);
        near(c.precision[0], 1);
        near(c.precision[33], 1);
        near(c.precision[34], 2.0 / 3);
        near(c.precision[66], 2.0 / 3);
        near(c.precision[67], 0);
        assert_true(c.truths == 3 && c.detections == 4);
    }
    pm_coco_metrics_add(m, 1, &(struct pm_coco_picture){ 1, 1, truth, said, (double[]){ 0.3 }, 0 });
    pm_coco_metrics_curve(m, 1, &c);
    assert_true(c.f1 == 0 && c.recall_at == 0 && isnan(c.score) && isnan(c.precision_at));
    near(c.precision[0], 0);
    pm_coco_metrics_curve(m, -1, &c);
    near(c.f1, 2.0 * 2 / (4 + 4));
    pm_coco_metrics_destroy(&m);
}

/* COCO computes recalls as 0.01 times whole numbers. 57 times 0.01 is slightly more than 57 of
 * 100, so the precision at the next recall counts. */
static void recalls(void **state)
{
    const struct pm_coco_true truth[] = { { 100, false } };
    struct pm_coco_metrics *m = pm_coco_metrics_create(2);

    (void)state;
    for (int i = 0; i < 100; i++) {
        const struct pm_coco_said said[] = { { 100, i < 57 ? 0.9 : 0.5 }, { 100, 0.7 } };

        add(m, 1, truth, i < 57 ? 1 : i == 57 ? 2 : 0, said, (double[]){ 1, 0 });
    }
    near(figure(m, PM_COCO_AP), (57 + 2 * 58.0 / 59) / 101);
    near(figure(m, PM_COCO_AR100), 0.58);
    pm_coco_metrics_destroy(&m);
}

/* ---- drawn scenes ------------------------------------------------------------------------ */

enum { IMAGES = 10, EMPTY = 3, FULL = 5, CLASSES = 6, HEIGHT = 288, WIDTH = 320, SHAPES = 28 };
static const int things[] = { 2, 3, 4, 5 };

static void draw_masks(int index, struct canvas truth, struct canvas said, double *scores)
{
    static const int sides[] = { 150, 80, 40, 16 };
    uint32_t n = (uint32_t)index + 1;

    memset(truth.map, 0, HEIGHT * WIDTH * sizeof *truth.map);
    memset(said.map, 0, HEIGHT * WIDTH * sizeof *said.map);
    for (int k = 0; k < (index == EMPTY ? 0 : SHAPES); k++) {
        const int side = sides[k / 7];
        int label = number(&n, 5);
        const int y = number(&n, HEIGHT), x = number(&n, WIDTH), h = side / 2 + number(&n, side);
        const int w = side / 2 + number(&n, side), dy = number(&n, side / 8 + 1);
        const int dx = number(&n, side / 8 + 1), fate = number(&n, 12), score = number(&n, 8);
        const int own = label < 2 || label == 4 || fate == 0 ? 0 : k + 1;

        paint(truth, y, x, h, w, fate == 1 ? PM_VOID : label * DIVISOR + own);
        if (fate == 2)
            continue;
        label = fate == 3 ? 5 : label;
        const int32_t id = label * DIVISOR + (label < 2 ? 0 : k + 1);
        paint(said, y + dy, x + dx, h, w, fate == 4 ? PM_VOID : id);
        scores[id] = score / 8.0;
    }
}

/* Compares the twelve metrics of all classes and of each of `count` classes. */
static void check_figures(const char *name, const struct pm_coco_metrics *m, const int *classes,
                          int count)
{
    cJSON *all = read_golden("coco_metrics.json");
    const cJSON *want = cJSON_GetObjectItem(all, name);
    int compared = 0;

    for (int c = -1; c < count; c++) {
        const cJSON *list = c < 0 ? cJSON_GetObjectItem(want, "figures")
                                  : cJSON_GetArrayItem(cJSON_GetObjectItem(want, "classes"), c);
        const struct pm_coco_figures f = pm_coco_metrics_figures(m, c < 0 ? -1 : classes[c]);

        for (int k = 0; k < PM_COCO_FIGURES; k++) {
            const cJSON *v = cJSON_GetArrayItem(list, k);

            if (cJSON_IsNull(v) != isnan(f.v[k]) ||
                (!cJSON_IsNull(v) && !(fabs(f.v[k] - v->valuedouble) < 1e-12)))
                fail_msg("%s of class %d of %s: %.17g is not %s", pm_coco_names[k], c, name, f.v[k],
                         cJSON_PrintUnformatted(v));
            compared++;
        }
    }
    assert_int_equal(compared, (1 + count) * PM_COCO_FIGURES);
    cJSON_Delete(all);
}

static void masks(void **state)
{
    static int32_t truth_map[HEIGHT * WIDTH], said_map[HEIGHT * WIDTH];
    static double scores[CLASSES * DIVISOR];
    const struct canvas truth = { truth_map, HEIGHT, WIDTH }, said = { said_map, HEIGHT, WIDTH };
    const struct pm_panoptic_metrics_options o = { .classes = CLASSES, .label_divisor = DIVISOR,
                                                   .things = { 4, things }, .coco = true,
                                                   .least_area = 100 };
    struct pm_panoptic_metrics *m = pm_panoptic_metrics_create(&o);

    (void)state;
    for (int i = 0; i < IMAGES; i++) {
        struct said s;

        draw_masks(i, truth, said, scores);
        list_segments(&s, said, 5, scores);
        pm_panoptic_metrics_add(m, truth.map, &s.p);
    }
    check_figures("masks", pm_panoptic_metrics_coco(m), things, 4);
    pm_panoptic_metrics_destroy(&m);
}

enum { MOST_BOXES = 160 };
struct box { int x, y, w, h, side; };
/* The boxes of one class. */
struct boxes {
    struct box truth[MOST_BOXES], said[MOST_BOXES];
    struct pm_coco_true of_truth[MOST_BOXES];
    struct pm_coco_said of_said[MOST_BOXES];
    int truths, found;
};

static void say(struct boxes *b, struct box box, int score)
{
    assert_true(b->found < MOST_BOXES);
    b->of_said[b->found] = (struct pm_coco_said){ (double)box.w * box.h, score / 16.0 };
    b->said[b->found++] = box;
}

static void draw_boxes(uint32_t *n, int index, int label, struct boxes *b)
{
    static const int sides[] = { 20, 40, 110, 240 };
    const int count = label == 3 || index == EMPTY ? 0 : number(n, 7);

    b->truths = b->found = 0;
    for (int i = 0; i < count; i++) {
        const int side = sides[number(n, 4)], x = number(n, 400), y = number(n, 400);
        const int w = side / 2 + number(n, side), h = side / 2 + number(n, side);

        for (int twice = number(n, 6) == 0; twice >= 0; twice--) {
            const int share = 3 + number(n, 2);

            b->of_truth[b->truths] = (struct pm_coco_true){ w * h * share / 4, number(n, 8) == 0 };
            b->truth[b->truths++] = (struct box){ x, y, w, h, side };
        }
    }
    for (int i = 0; i < b->truths; i++) {
        struct box box = b->truth[i];

        for (int copies = number(n, 4); copies > 0; copies--) {
            box.x += number(n, box.side / 8 + 1);
            box.y += number(n, box.side / 8 + 1);
            say(b, box, number(n, 16));
        }
    }
    for (int more = label == 0 && index == FULL ? 120 : number(n, 6); more > 0; more--) {
        const int x = number(n, 400), y = number(n, 400), w = 1 + number(n, 200);
        const int h = 1 + number(n, 200);

        say(b, (struct box){ x, y, w, h, 0 }, number(n, 16));
    }
}

static double overlap_of(const struct box *a, const struct box *b, bool crowd)
{
    const int right = a->x + a->w < b->x + b->w ? a->x + a->w : b->x + b->w;
    const int below = a->y + a->h < b->y + b->h ? a->y + a->h : b->y + b->h;
    const int w = right - (a->x > b->x ? a->x : b->x), h = below - (a->y > b->y ? a->y : b->y);
    const double both = w > 0 && h > 0 ? (double)w * h : 0;

    return both / (crowd ? (double)a->w * a->h : (double)a->w * a->h + (double)b->w * b->h - both);
}

static void boxes(void **state)
{
    static const int labels[] = { 0, 1, 2, 3 };
    struct pm_coco_metrics *m = pm_coco_metrics_create(4);
    static struct boxes b;
    static double overlap[MOST_BOXES * MOST_BOXES];
    bool full = false;

    (void)state;
    for (int i = 0; i < IMAGES; i++) {
        uint32_t n = 1000 + (uint32_t)i;

        for (int c = 0; c < 4; c++) {
            draw_boxes(&n, i, c, &b);
            for (int d = 0; d < b.found; d++)
                for (int g = 0; g < b.truths; g++)
                    overlap[d * b.truths + g] =
                        overlap_of(&b.said[d], &b.truth[g], b.of_truth[g].crowd);
            pm_coco_metrics_add(m, c, &(struct pm_coco_picture){ b.truths, b.found, b.of_truth,
                                                                 b.of_said, overlap, (uint64_t)i });
            full |= b.found > 100;
        }
    }
    assert_true(full);
    check_figures("boxes", m, labels, 4);
    pm_coco_metrics_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds), cmocka_unit_test(crowds), cmocka_unit_test(areas),
        cmocka_unit_test(many),       cmocka_unit_test(ties),   cmocka_unit_test(recalls),
        cmocka_unit_test(curves),
        cmocka_unit_test(masks),      cmocka_unit_test(boxes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
