/* Panoptic quality, parsing covering and average precision: cases counted by hand, and scenes
 * compared with tests/golden/panoptic_metrics.json (panoptic_metrics.py writes it). */
#include "tasks/segmentation/drawn_segments.h"
#include "tasks/segmentation/panoptic_metrics.h"

#include <string.h>

static const int three_things[] = { 2, 3, 4 };

static struct pm_panoptic_metrics_options options(int classes)
{
    return (struct pm_panoptic_metrics_options){ .classes = classes, .label_divisor = DIVISOR,
                                                 .things = { 3, three_things }, .least_area = 1 };
}

enum { LAST_THING = 4 };

static void add_row(struct pm_panoptic_metrics *m, const int32_t *truth, int32_t *map, int width,
                    const double *scores)
{
    struct said s;

    list_segments(&s, (struct canvas){ map, 1, width }, LAST_THING, scores);
    pm_panoptic_metrics_add(m, truth, &s.p);
}

/* ---- by hand ----------------------------------------------------------------------------- */

#define V PM_VOID

/* Class 2: one segment of 6 pixels; the prediction has 5, and 4 of them match (IoU 4/7). Class 0: 4
 * of 4 pixels match, and one more lies on void. */
static void quality_by_hand(void **state)
{
    const struct pm_panoptic_metrics_options o = options(5);
    struct pm_panoptic_metrics *m = pm_panoptic_metrics_create(&o);
    const int32_t truth[] = { 2001, 2001, 2001, 2001, 2001, 2001, 0, 0, 0, 0, V, V };
    int32_t said[] = { V, V, 2007, 2007, 2007, 2007, 2007, 0, 0, 0, 0, V };

    (void)state;
    add_row(m, truth, said, 12, NULL);
    struct pm_panoptic_row r = pm_panoptic_metrics_class(m, 2);
    near(r.sq, 4.0 / 7);
    near(r.rq, 1);
    near(r.pc, 4.0 / 7);
    r = pm_panoptic_metrics_class(m, 0); /* 3 of 4 + 4 - 3, less the one on void */
    near(r.pq, 3.0 / 4);
    r = pm_panoptic_metrics_row(m, PM_PANOPTIC_ALL);
    near(r.pq, (4.0 / 7 + 3.0 / 4) / 2);
    assert_int_equal(r.classes, 2);
    near(pm_panoptic_metrics_row(m, PM_PANOPTIC_STUFF).pq, 0.75);
    assert_true(isnan(pm_panoptic_metrics_class(m, 1).pq));
    pm_panoptic_metrics_destroy(&m);
}

/* An IoU of one half is no match. A prediction that lies by more than a half on void or on a
 * crowd of its class is not wrong. A crowd is never missed. */
static void void_and_crowds(void **state)
{
    const struct pm_panoptic_metrics_options o = options(5);
    struct pm_panoptic_metrics *m = pm_panoptic_metrics_create(&o);
    const int32_t half[] = { 2001, 2001, 1000, 1000 },
                  unknown[] = { V, V, V, 0, 0, 2000, 2000, 2000 };
    int32_t one[] = { 2001, V, V, V }, over[] = { 3001, 3001, 3001, 3001, V, 2001, 2001, 2001 };
    int32_t even[] = { V, V, 3001, 3001, 3001, 3001, V, V };
    const int32_t two[] = { V, V, V, V, 0, 0, 0, 0 };

    (void)state;
    add_row(m, half, one, 4, NULL);
    struct pm_panoptic_row r = pm_panoptic_metrics_class(m, 2);
    assert_int_equal(r.matched, 0);
    assert_int_equal(r.wrong, 1);
    assert_int_equal(r.missed, 1);
    near(r.pc, 0.5); /* of 2001: half of the pixels are covered */
    add_row(m, unknown, over, 8, NULL);
    r = pm_panoptic_metrics_class(m, 3);
    assert_int_equal(r.wrong, 0);    /* 3 of 4 pixels on void */
    r = pm_panoptic_metrics_class(m, 2);
    assert_int_equal(r.wrong, 1);    /* the one on the crowd is not counted */
    assert_int_equal(r.missed, 1);
    near(r.pc, 0.5);
    add_row(m, two, even, 8, NULL);
    assert_int_equal(pm_panoptic_metrics_class(m, 3).wrong, 1); /* exactly one half */
    pm_panoptic_metrics_destroy(&m);
}

static void truth_of_maps(void **state)
{
    const struct pm_panoptic_metrics_options o = options(5);
    const int32_t labels[] = { 0, 2, 2, 3, 255, 4, 1 };
    const int32_t instances[] = { 0, 2003, 2000, 3001, 3001, 2001, 1005 };
    const int32_t want[] = { 0, 2003, 2000, 3001, V, 4000, 1000 };
    int32_t out[7];

    (void)state;
    pm_panoptic_truth(&o, 255, labels, instances, 7, out);
    assert_memory_equal(out, want, sizeof want);
}

/* Scores 0.9 right, 0.8 wrong, 0.7 right, with 3 true instances. Recalls 2/3, 1/3, 1/3 and an
 * artificial 0; precisions 2/3, 1/2, 1, 1. With steps centred on the points: 2/3 (1/6) + 1/2
 * (1/6) + 1 (1/6) + 1 (1/6). */
static void precision_by_hand(void **state)
{
    const struct pm_panoptic_metrics_options o = options(5);
    struct pm_panoptic_metrics *m = pm_panoptic_metrics_create(&o);
    static double scores[5 * DIVISOR];
    const int32_t truth[] = { 2001, 2001, 2002, 2002, 2003, 2003, 0, 0 };
    int32_t said[] = { 2001, 2001, 2002, 2002, V, V, 2003, 2003 };

    (void)state;
    scores[2001] = 0.9, scores[2003] = 0.8, scores[2002] = 0.7;
    add_row(m, truth, said, 8, scores);
    struct pm_average_precision r = pm_panoptic_metrics_ap(m, 2);
    near(r.ap50, (2.0 / 3 + 0.5 + 1 + 1) / 6);
    near(r.ap, r.ap50); /* all overlaps are 1 */
    near(pm_panoptic_metrics_ap(m, -1).ap50, r.ap50);
    assert_true(isnan(pm_panoptic_metrics_ap(m, 3).ap));
    assert_true(isnan(pm_panoptic_metrics_row(m, PM_PANOPTIC_STUFF).rq) == false);
    pm_panoptic_metrics_destroy(&m);
    m = pm_panoptic_metrics_create(&o);
    int32_t nothing[] = { V, V, V, V, V, V, V, V };
    add_row(m, truth, nothing, 8, scores);
    near(pm_panoptic_metrics_ap(m, 2).ap, 0);
    near(pm_panoptic_metrics_class(m, 2).pq, 0);
    pm_panoptic_metrics_destroy(&m);
}

/* ---- drawn scenes ------------------------------------------------------------------------ */

enum { CLASSES = 6, IMAGES = 12, HEIGHT = 48, WIDTH = 64 };

static bool is_thing(int label)
{
    return label >= FIRST_THING && label <= LAST_THING;
}

/* Draws the scene of the script. */
static void scene(int index, int32_t *truth, int32_t *said, double *scores)
{
    uint32_t n = (uint32_t)index + 1;

    memset(truth, 0, HEIGHT * WIDTH * sizeof *truth);
    memset(said, 0, HEIGHT * WIDTH * sizeof *said);
    for (int k = 0; k < 14; k++) {
        int label = number(&n, CLASSES);
        const int y = number(&n, HEIGHT - 4), x = number(&n, WIDTH - 4), h = 3 + number(&n, 24);
        const int w = 3 + number(&n, 30), dy = number(&n, 5) - 2, dx = number(&n, 5) - 2;
        const int fate = number(&n, 10), score = number(&n, 8);
        const int own = is_thing(label) && fate != 0 ? k + 1 : 0;

        paint((struct canvas){ truth, HEIGHT, WIDTH }, y, x, h, w,
              fate == 1 ? V : label * DIVISOR + own);
        if (fate == 2)
            continue;
        if (fate == 3)
            label = (label + 1) % CLASSES;
        const int32_t id = label * DIVISOR + (is_thing(label) ? k + 1 : 0);
        paint((struct canvas){ said, HEIGHT, WIDTH }, y + dy, x + dx, h, w, fate == 4 ? V : id);
        scores[id] = score / 8.0;
    }
    scores[0] = 0.5;
}

static double item(const cJSON *list, int i)
{
    return cJSON_GetArrayItem(list, i)->valuedouble;
}

static void check_case(const cJSON *want, const struct pm_panoptic_metrics *m)
{
    const cJSON *counts = cJSON_GetObjectItem(want, "counts"),
                *rows = cJSON_GetObjectItem(want, "rows");
    const cJSON *ap = cJSON_GetObjectItem(want, "ap");

    for (int c = 0; c < CLASSES; c++) {
        const struct pm_panoptic_row r = pm_panoptic_metrics_class(m, c);
        const cJSON *of = cJSON_GetArrayItem(counts, c);

        assert_int_equal(r.matched, item(of, 0));
        assert_int_equal(r.wrong, item(of, 1));
        assert_int_equal(r.missed, item(of, 2));
    }
    for (int k = 0; k < 3; k++) {
        const struct pm_panoptic_row r = pm_panoptic_metrics_row(m, (enum pm_panoptic_of)k);
        const cJSON *of = cJSON_GetArrayItem(rows, k);

        near(r.pq, item(of, 0));
        near(r.sq, item(of, 1));
        near(r.rq, item(of, 2));
        near(r.pc, item(of, 3));
        assert_int_equal(r.classes, item(of, 4));
    }
    for (int k = 0; k < 3; k++) {
        const struct pm_average_precision r = pm_panoptic_metrics_ap(m, three_things[k]);

        near(r.ap, item(cJSON_GetArrayItem(ap, k), 0));
        near(r.ap50, item(cJSON_GetArrayItem(ap, k), 1));
    }
}

static void golden(void **state)
{
    static int32_t truth[HEIGHT * WIDTH], said[HEIGHT * WIDTH];
    static double scores[CLASSES * DIVISOR];
    cJSON *all = read_golden("panoptic_metrics.json");
    int cases = 0;

    (void)state;
    for (const cJSON *c = cJSON_GetObjectItem(all, "cases")->child; c; c = c->next, cases++) {
        struct pm_panoptic_metrics_options o = options(CLASSES);

        o.normalize_by_image_size = cJSON_IsTrue(cJSON_GetObjectItem(c, "normalize_by_image_size"));
        o.least_area = cJSON_GetObjectItem(c, "least_area")->valueint;
        o.ignored_area = cJSON_GetObjectItem(c, "ignored_area")->valueint;
        struct pm_panoptic_metrics *m = pm_panoptic_metrics_create(&o);
        for (int i = 0; i < IMAGES; i++) {
            struct said s;

            scene(i, truth, said, scores);
            list_segments(&s, (struct canvas){ said, HEIGHT, WIDTH }, LAST_THING, scores);
            pm_panoptic_metrics_add(m, truth, &s.p);
        }
        check_case(c, m);
        pm_panoptic_metrics_destroy(&m);
    }
    assert_int_equal(cases, 3);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quality_by_hand), cmocka_unit_test(void_and_crowds),
        cmocka_unit_test(truth_of_maps),   cmocka_unit_test(precision_by_hand),
        cmocka_unit_test(golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
