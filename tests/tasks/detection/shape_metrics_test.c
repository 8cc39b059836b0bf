/* Metrics of masks and keypoints: cases counted by hand, and tests/golden/shape_metrics.json, which
 * shape_metrics.py computed with pycocotools and with the evaluation of TensorFlow's Object
 * Detection API. */
#include "base/pack.h"
#include "data/data_common.h"
#include "tasks/detection/shape_scenes.h"

#include <time.h>

static const unsigned shape_sets = PM_BOX_COCO_MASKS | PM_BOX_PASCAL_MASKS | PM_BOX_COCO_KEYPOINTS;

/* A golden number has 12 digits; null: there is none. Numbers are means of at most a few thousand
 * quotients in 0..1, so both sides are exact to about 1e-12. */
static void check(const char *what, int at, double v, const cJSON *want)
{
    if (cJSON_IsNull(want) != isnan(v) ||
        (!cJSON_IsNull(want) && !(fabs(v - want->valuedouble) <= 1e-11)))
        fail_msg("%s of scene %d: %.17g is not %s", what, at, v, cJSON_PrintUnformatted(want));
}

/* ---- golden ------------------------------------------------------------------------------ */

/* Compares the metrics from `first` on with the rows of a list, then this metric of the first
 * classes with the rest of each row. Returns how many numbers are neither 0 nor 1. */
static int compare(const char *list, unsigned set, enum pm_box_metric first, int metrics,
                   enum pm_box_metric per_class, bool distinct)
{
    static struct shape_scene s;
    cJSON *all = read_golden("shape_metrics.json");
    const cJSON *rows = cJSON_GetObjectItem(all, list), *want;
    int index = 0, between = 0;

    cJSON_ArrayForEach(want, rows)
    {
        struct pm_box_values mean, each[SHAPE_CLASSES];
        struct pm_box_metrics *m = shape_metrics();

        shape_draw(&s, index, distinct);
        shape_add(m, &s, 0, 1, index % 2);
        pm_box_metrics_values(m, set, &mean, each);
        for (int k = 0; k < metrics; k++) {
            const double v = mean.v[first + (unsigned)k];

            check(pm_box_metric_names[first + (unsigned)k], index, v, cJSON_GetArrayItem(want, k));
            between += v > 0 && v < 1;
        }
        for (int c = 0; metrics + c < cJSON_GetArraySize(want); c++)
            check("a class", index, each[c].v[per_class], cJSON_GetArrayItem(want, metrics + c));
        assert_true(isnan(mean.v[PM_BOX_MAP]) && isnan(mean.v[PM_BOX_VOC_MAP]));
        pm_box_metrics_destroy(&m);
        shape_free(&s);
        index++;
    }
    cJSON_Delete(all);
    assert_int_equal(index, distinct ? 150 : 300);
    return between;
}

static void mask_scenes(void **state)
{
    (void)state;
    assert_true(compare("masks", PM_BOX_COCO_MASKS, PM_BOX_MASK_MAP, PM_COCO_FIGURES,
                        PM_BOX_MASK_MAP, false) > 1000);
}

static void keypoint_scenes(void **state)
{
    (void)state;
    assert_true(compare("keypoints", PM_BOX_COCO_KEYPOINTS, PM_BOX_KEYPOINT_MAP, 10,
                        PM_BOX_KEYPOINT_MAP, false) > 500);
}

static void pascal_scenes(void **state)
{
    (void)state;
    assert_true(compare("pascal", PM_BOX_PASCAL_MASKS, PM_BOX_MASK_VOC_MAP, 2, PM_BOX_MASK_VOC_MAP,
                        true) > 100);
}

/* ---- packs -------------------------------------------------------------------------------- */

static void merge(struct pm_box_metrics *to, const struct pm_box_metrics *from)
{
    struct pm_str pack = { 0 };

    pm_box_metrics_pack(from, &pack);
    struct pm_unpack u = { .at = (const uint8_t *)pack.text, .left = pack.length };
    pm_box_metrics_merge(to, &u);
    assert_true(!u.damaged && u.left == 0);
    pm_str_free(&pack);
}

/* Two processes with the pictures of even and of odd numbers give the same values as one. */
static void merged(void **state)
{
    static struct shape_scene s;

    (void)state;
    for (int index = 0; index < 40; index++) {
        struct pm_box_metrics *whole = shape_metrics(), *all = shape_metrics();
        struct pm_box_values want, got;

        shape_draw(&s, index, false);
        shape_add(whole, &s, 0, 1, false);
        for (int part = 1; part >= 0; part--) {
            struct pm_box_metrics *m = shape_metrics();

            shape_add(m, &s, part, 2, false);
            merge(all, m);
            pm_box_metrics_destroy(&m);
        }
        pm_box_metrics_values(whole, shape_sets, &want, NULL);
        pm_box_metrics_values(all, shape_sets, &got, NULL);
        assert_memory_equal(&want, &got, sizeof want);
        pm_box_metrics_destroy(&whole);
        pm_box_metrics_destroy(&all);
        shape_free(&s);
    }
}

/* A pack that ends early is damaged, wherever it ends. Metrics without keypoints, or without masks,
 * refuse a pack that has them. */
static void damaged_packs(void **state)
{
    static struct shape_scene s;
    struct pm_box_metrics *m = shape_metrics();
    struct pm_str pack = { 0 };

    (void)state;
    shape_draw(&s, 1, false);
    shape_add(m, &s, 0, 1, false);
    pm_box_metrics_pack(m, &pack);
    pm_box_metrics_destroy(&m);
    for (size_t left = 0; left < pack.length; left += left < 2000 ? 1 : 97) {
        struct pm_unpack u = { .at = (const uint8_t *)pack.text, .left = left };

        m = shape_metrics();
        pm_box_metrics_merge(m, &u);
        assert_true(u.damaged);
        pm_box_metrics_destroy(&m);
    }
    for (int k = 0; k < 2; k++) {
        struct pm_unpack u = { .at = (const uint8_t *)pack.text, .left = pack.length };

        m = pm_box_metrics_create(&(struct pm_box_metrics_options){
            .classes = SHAPE_CLASSES, .recall_upper = 1, .masks = k == 0,
            .points = k == 0 ? 0 : SHAPE_POINTS });
        pm_box_metrics_merge(m, &u);
        assert_true(u.damaged);
        pm_box_metrics_destroy(&m);
    }
    pm_str_free(&pack);
    shape_free(&s);
}

/* ---- by hand ----------------------------------------------------------------------------- */

static double value(const struct pm_box_metrics *m, enum pm_box_metric which)
{
    struct pm_box_values mean;

    pm_box_metrics_values(m, shape_sets, &mean, NULL);
    return mean.v[which];
}

static struct pm_box_metrics *one_class(int points, const double *sigmas)
{
    return pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = 1, .recall_upper = 1, .masks = true, .points = points, .sigmas = sigmas });
}

static void add(struct pm_box_metrics *m, int truths, const struct pm_box_truth *truth,
                int detections, const struct pm_box_detection *detection)
{
    pm_box_metrics_add(m, &(struct pm_box_picture){ .truth = truth, .truths = truths,
                                                    .detection = detection,
                                                    .detections = detections });
}

/* A picture of 40 x 50 with pixels of 1 from column `from` up to column `to`. */
static struct pm_runs columns(uint32_t from, uint32_t to)
{
    const uint32_t run[] = { 40 * from, 40 * (to - from), 40 * (50 - to) };
    struct pm_runs out;

    assert_int_equal(pm_runs_counts(run, 3, 40, 50, "m", &out), PM_OK);
    return out;
}

/* COCO ignores a true object without an annotated mask; an empty mask cannot be found. Pascal
 * counts neither, and ignores the first detection with its box. The second one is wrong. */
static void missing_masks(void **state)
{
    (void)state;
    for (int empty = 0; empty < 2; empty++) {
        struct pm_runs none = columns(0, 0), mask = columns(0, 20), far = columns(40, 45);
        const struct pm_box_truth truth[] = {
            { .box = shape_box(0, 0, 40, 20), .area = 2000, .mask = &mask },
            { .box = shape_box(0, 30, 40, 20), .area = 2000, .mask = empty ? &none : NULL },
        };
        const struct pm_box_detection found[] = {
            { .box = shape_box(0, 0, 40, 20), .score = 0.5, .mask = &mask },
            { .box = shape_box(0, 30, 40, 20), .score = 0.75, .mask = &far },
            { .box = shape_box(0, 30, 40, 20), .score = 0.125 },
        };
        struct pm_box_metrics *m = one_class(0, NULL);

        add(m, 2, truth, 3, found);
        near(value(m, PM_BOX_MASK_AR_100), empty ? 0.5 : 1);
        near(value(m, PM_BOX_MASK_VOC_MAP), 1);
        assert_true(isnan(value(m, PM_BOX_KEYPOINT_MAP)));
        pm_box_metrics_destroy(&m);
        pm_runs_free(&none);
        pm_runs_free(&mask);
        pm_runs_free(&far);
    }
}

/* A crowd takes any number of detections that lie in it; none of them counts. Its overlap is
 * divided by the detection's own area. */
static void crowd(void **state)
{
    struct pm_runs all = columns(0, 40), left = columns(0, 10), right = columns(20, 30);
    struct pm_runs alone = columns(45, 50);
    const struct pm_box_truth truth[] = {
        { .box = shape_box(0, 0, 40, 40), .area = 1600, .crowd = true, .mask = &all },
        { .box = shape_box(0, 45, 40, 5), .area = 200, .mask = &alone },
    };
    const struct pm_box_detection found[] = {
        { .box = shape_box(0, 0, 40, 10), .score = 0.9, .mask = &left },
        { .box = shape_box(0, 0, 40, 10), .score = 0.8, .mask = &left },
        { .box = shape_box(0, 20, 40, 10), .score = 0.7, .mask = &right },
        { .box = shape_box(0, 45, 40, 5), .score = 0.6, .mask = &alone },
    };
    struct pm_box_metrics *m = one_class(0, NULL);

    (void)state;
    add(m, 2, truth, 4, found);
    near(value(m, PM_BOX_MASK_MAP), 1);
    pm_box_metrics_destroy(&m);
    pm_runs_free(&all);
    pm_runs_free(&left);
    pm_runs_free(&right);
    pm_runs_free(&alone);
}

/* The similarity itself: exp(-1/2) at a distance of 2 sigma sqrt(area). Points that are not
 * labelled, or not of the class, do not count. Without a labelled point the place decides. */
static void similarity(void **state)
{
    const double sigma[] = { 0.25, 0.5, NAN };
    const struct pm_box_points of = { sigma, 3 };
    const double at[] = { 10, 20, NAN, NAN, 3, 3 }, unlabelled[] = { NAN, NAN, NAN, NAN, 3, 3 };
    const double moved[] = { 10, 25, 90, 90, 80, 80 }, inside[] = { 0, 0, 60, 60, 999, 999 };
    const double broken[] = { NAN, 20, 0, 0, 0, 0 }, out[] = { 0, 0, 60, 70, 0, 0 };
    struct pm_box_truth truth = { .box = shape_box(20, 20, 20, 20), .area = 100, .points = at };
    struct pm_box_detection d = { .points = moved };

    (void)state;
    near(pm_box_point_similarity(&d, &truth, &of), exp(-0.5));
    d.points = broken;
    assert_true(pm_box_point_similarity(&d, &truth, &of) == 0);
    d.points = NULL;
    assert_true(pm_box_point_similarity(&d, &truth, &of) == 0);
    truth.points = unlabelled;
    d.points = inside;
    near(pm_box_point_similarity(&d, &truth, &of), 1);
    truth.points = NULL;
    d.points = out;
    near(pm_box_point_similarity(&d, &truth, &of), (1 + exp(-0.5)) / 2);
}

/* An object without a labelled point is ignored, and one detection may match it. A second one is
 * wrong. */
static void unlabelled_object(void **state)
{
    const double sigma[] = { 0.1 }, none[] = { NAN, NAN }, at[] = { 10, 10 }, far[] = { 30, 45 };
    const struct pm_box_truth truth[] = {
        { .box = shape_box(5, 5, 10, 10), .area = 1600, .points = none },
        { .box = shape_box(28, 40, 10, 10), .area = 1600, .points = far },
    };
    const struct pm_box_detection found[] = {
        { .score = 0.9, .points = at },
        { .score = 0.8, .points = at },
        { .score = 0.7, .points = far },
    };

    (void)state;
    for (int first = 0; first < 2; first++) {
        struct pm_box_metrics *m = one_class(1, sigma);

        add(m, 2, truth, 3 - first, found + first);
        /* A single point has no extent, so a detection without a match is outside the ranges of
         * medium and large objects, and wrong only among all. */
        near(value(m, PM_BOX_KEYPOINT_MAP), first ? 1 : 0.5);
        near(value(m, PM_BOX_KEYPOINT_MAP_MEDIUM), 1);
        near(value(m, PM_BOX_KEYPOINT_AR_50), 1);
        pm_box_metrics_destroy(&m);
    }
}

/* Only the 20 best detections of a class count. */
static void twenty(void **state)
{
    const double sigma[] = { 0.1 }, at[] = { 10, 10 }, far[] = { 300, 450 };
    const struct pm_box_truth truth = { .box = shape_box(5, 5, 10, 10), .area = 100, .points = at };
    struct pm_box_detection found[21];

    (void)state;
    for (int wrong = 19; wrong <= 20; wrong++) {
        struct pm_box_metrics *m = one_class(1, sigma);

        for (int k = 0; k <= wrong; k++)
            found[k] = (struct pm_box_detection){ .score = 1 - 0.01 * k,
                                                  .points = k < wrong ? far : at };
        add(m, 1, &truth, wrong + 1, found);
        near(value(m, PM_BOX_KEYPOINT_AR), wrong == 19);
        pm_box_metrics_destroy(&m);
    }
}

/* ---- speed -------------------------------------------------------------------------------- */

/* 1,000 pictures of 480 x 640 with 20 objects and 100 detections each take less than 30 s. Masks
 * are circles of up to 300 pixels. */
static void many_pictures(void **state)
{
    enum { HEIGHT = 480, WIDTH = 640, CIRCLES = 60, CORNERS = 40, OBJECTS = 20, FOUND = 100 };
    struct pm_runs circle[CIRCLES];
    struct pm_box_truth truth[OBJECTS];
    struct pm_box_detection found[FOUND];
    struct pm_box_metrics *m = one_class(0, NULL);
    uint32_t n = 5;

    (void)state;
    for (int i = 0; i < CIRCLES; i++) {
        const double radius = 5 + number(&n, 145), y = number(&n, HEIGHT), x = number(&n, WIDTH);
        int32_t xy[2 * CORNERS];

        for (int k = 0; k < CORNERS; k++) {
            pm_coco_scaled(x + radius * cos(k * 6.283 / CORNERS), &xy[2 * k]);
            pm_coco_scaled(y + radius * sin(k * 6.283 / CORNERS), &xy[2 * k + 1]);
        }
        assert_int_equal(pm_runs_polygon(xy, CORNERS, HEIGHT, WIDTH, "c", &circle[i]), PM_OK);
    }
    const clock_t begin = clock();
    for (uint64_t record = 0; record < 1000; record++) {
        for (int g = 0; g < OBJECTS; g++)
            truth[g] = (struct pm_box_truth){ .area = 5000,
                                              .mask = &circle[number(&n, CIRCLES)] };
        for (int d = 0; d < FOUND; d++)
            found[d] = (struct pm_box_detection){ .score = number(&n, 1000) / 1000.0,
                                                  .mask = &circle[number(&n, CIRCLES)] };
        pm_box_metrics_add(m, &(struct pm_box_picture){ .record = record, .truth = truth,
                                                        .truths = OBJECTS, .detection = found,
                                                        .detections = FOUND });
    }
    assert_true(value(m, PM_BOX_MASK_MAP) > 0);
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    print_message("mask metrics of 1,000 pictures: %.2f s\n", seconds);
    assert_true(seconds < 30);
    pm_box_metrics_destroy(&m);
    for (int i = 0; i < CIRCLES; i++)
        pm_runs_free(&circle[i]);
}

/* ---- files ------------------------------------------------------------------------------- */

static void results(void **state)
{
    struct pm_runs mask = columns(10, 20), again;
    const double sigma[] = { 0.1, 0.1 }, at[] = { 10, 20.5, 30, 40 };
    const struct pm_box_detection found[] = {
        { .box = shape_box(0, 10, 40, 10), .score = 0.5, .mask = &mask, .points = at },
        { .box = shape_box(0, 0, 4, 4), .score = 0.25 },
    };
    struct pm_box_metrics *m = one_class(2, sigma);
    char *folder = make_folder(), path[600], *text;

    (void)state;
    add(m, 0, NULL, 2, found);
    snprintf(path, sizeof path, "%s/masks.json", folder);
    assert_int_equal(pm_box_metrics_write(m, PM_BOX_RESULTS_MASKS, NULL, path), PM_OK);
    assert_int_equal(pm_file_read(path, &text, NULL), PM_OK);
    cJSON *list = cJSON_Parse(text), *shape = cJSON_GetObjectItem(list->child, "segmentation");
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_null(cJSON_GetObjectItem(list->child, "bbox"));
    assert_int_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(shape, "size"), 0)->valueint, 40);
    assert_int_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(shape, "size"), 1)->valueint, 50);
    assert_int_equal(pm_runs_text(cJSON_GetObjectItem(shape, "counts")->valuestring, 40, 50, "r",
                                  &again), PM_OK);
    assert_true(pm_runs_overlap(&mask, &again, false) == 1);
    pm_runs_free(&again);
    cJSON_Delete(list);
    pm_free(text);
    assert_int_equal(pm_box_metrics_write(m, PM_BOX_RESULTS_POINTS, NULL, path), PM_OK);
    assert_int_equal(pm_file_read(path, &text, NULL), PM_OK);
    assert_string_equal(text, "[{\"image_id\":0,\"category_id\":1,"
                              "\"keypoints\":[20.5,10,1,40,30,1],\"score\":0.5}]\n");
    pm_free(text);
    drop_folder(folder);
    pm_box_metrics_destroy(&m);
    pm_runs_free(&mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_scenes),       cmocka_unit_test(keypoint_scenes),
        cmocka_unit_test(pascal_scenes),     cmocka_unit_test(merged),
        cmocka_unit_test(damaged_packs),     cmocka_unit_test(missing_masks),
        cmocka_unit_test(crowd),             cmocka_unit_test(similarity),
        cmocka_unit_test(unlabelled_object), cmocka_unit_test(twenty),
        cmocka_unit_test(many_pictures),     cmocka_unit_test(results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
