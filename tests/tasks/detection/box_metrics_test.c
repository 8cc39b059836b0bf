/* Metrics of boxes: cases counted by hand, and tests/golden/box_metrics.json, which box_metrics.py
 * computed with pycocotools and with the evaluation of TensorFlow's Object Detection API. */
#include "data/data_common.h"
#include "tasks/detection/box_given.h"
#include "tasks/detection/box_scenes.h"

static const unsigned all_sets = PM_BOX_COCO | PM_BOX_PASCAL | PM_BOX_OPEN_IMAGES |
                                 PM_BOX_OPEN_IMAGES_CHALLENGE;

/* A golden number has 8 digits; null: there is none. */
static void check(const char *what, int at, double v, const cJSON *want)
{
    if (cJSON_IsNull(want) != isnan(v) ||
        (!cJSON_IsNull(want) && !(fabs(v - want->valuedouble) <= 1e-7)))
        fail_msg("%s of scene %d: %.17g is not %s", what, at, v, cJSON_PrintUnformatted(want));
}

static double item(const cJSON *list, int at)
{
    return cJSON_GetArrayItem(list, at)->valuedouble;
}

static struct pm_box_metrics *new_metrics(int classes)
{
    return pm_box_metrics_create(&(struct pm_box_metrics_options){ .classes = classes,
                                                                   .recall_upper = 1 });
}

/* ---- golden ------------------------------------------------------------------------------ */

static void coco_scenes(void **state)
{
    static struct scene s;
    cJSON *all = read_golden("box_metrics.json");
    const cJSON *want;
    int index = 0;

    (void)state;
    cJSON_ArrayForEach(want, cJSON_GetObjectItem(all, "coco"))
    {
        struct pm_box_values mean, each[SCENE_CLASSES];
        struct pm_box_metrics *m;

        draw_scene(&s, index, false);
        m = add_scene(&s, index % 2);
        pm_box_metrics_values(m, PM_BOX_COCO, &mean, each);
        for (int k = 0; k < PM_COCO_FIGURES; k++)
            check(pm_box_metric_names[k], index, mean.v[k], cJSON_GetArrayItem(want, k));
        for (int c = 0; c < SCENE_CLASSES; c++)
            check("map of a class", index, each[c].v[PM_BOX_MAP],
                  cJSON_GetArrayItem(want, PM_COCO_FIGURES + c));
        assert_true(isnan(mean.v[PM_BOX_VOC_MAP]) && isnan(mean.v[PM_BOX_WEIGHTED_MAP]));
        pm_box_metrics_destroy(&m);
        index++;
    }
    assert_int_equal(index, 1000);
    cJSON_Delete(all);
}

static void voc_scenes(void **state)
{
    static struct scene s;
    cJSON *all = read_golden("box_metrics.json");
    const cJSON *want;
    int index = 0;

    (void)state;
    cJSON_ArrayForEach(want, cJSON_GetObjectItem(all, "voc"))
    {
        struct pm_box_values mean;
        struct pm_box_metrics *m;

        draw_scene(&s, index, true);
        m = add_scene(&s, index % 2);
        pm_box_metrics_values(m, all_sets, &mean, NULL);
        for (int k = 0; k < cJSON_GetArraySize(want); k++)
            check(pm_box_metric_names[PM_BOX_VOC_MAP + k], index, mean.v[PM_BOX_VOC_MAP + k],
                  cJSON_GetArrayItem(want, k));
        assert_int_equal(cJSON_GetArraySize(want), PM_BOX_MASK_MAP - PM_BOX_VOC_MAP);
        pm_box_metrics_destroy(&m);
        index++;
    }
    assert_int_equal(index, 300);
    cJSON_Delete(all);
}

/* The same changes to a scene as in box_metrics.py. */
static void plain_scene(struct scene *s)
{
    for (int i = 0; i < s->count; i++) {
        struct scene_picture *p = &s->picture[i];
        int kept = 0;

        for (int g = 0; g < p->truths; g++) {
            const struct pm_box_truth t = { .box = p->truth[g].box, .area = NAN,
                                            .label = p->truth[g].label };

            if (kept == 0 || memcmp(&p->truth[kept - 1].box, &t.box, sizeof t.box) != 0)
                p->truth[kept++] = t;
        }
        p->truths = kept;
        for (int d = 0; d < p->detections; d++)
            p->detection[d].box.v[3] += 0.25;
    }
}

static void error_scenes(void **state)
{
    static struct scene s;
    cJSON *all = read_golden("box_metrics.json");
    const cJSON *list = cJSON_GetObjectItem(all, "errors"), *want = list->child;
    int total[PM_BOX_KINDS] = { 0 };

    (void)state;
    for (int index = 0; index < 300; index++) {
        struct pm_box_errors errors, each[SCENE_CLASSES];
        struct pm_box_metrics *m;

        if (index % 25 == 0)
            continue;
        draw_scene(&s, index, true);
        plain_scene(&s);
        m = add_scene(&s, index % 2);
        pm_box_metrics_errors(m, -1, &errors, each, NULL);
        for (int k = 0; k < PM_BOX_IGNORED; k++) {
            uint64_t sum = 0;

            for (int c = 0; c < SCENE_CLASSES; c++)
                sum += each[c].count[k];
            assert_true(sum == errors.count[k]);
            if (errors.count[k] != (uint64_t)item(want, k))
                fail_msg("scene %d: %d %s, expected %g", index, (int)errors.count[k],
                         pm_box_kind_names[k], item(want, k));
            total[k] += (int)errors.count[k];
        }
        assert_true(errors.count[PM_BOX_IGNORED] == 0);
        pm_box_metrics_destroy(&m);
        want = want->next;
    }
    assert_null(want);
    for (int k = 0; k < PM_BOX_IGNORED; k++)
        assert_true(total[k] > 20);
    cJSON_Delete(all);
}

/* ---- coco-mini --------------------------------------------------------------------------- */

static double member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItem(object, name)->valuedouble;
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the sorted ids of a list of objects; the caller frees them. */
static double *ids_of(const cJSON *list, int *count)
{
    const cJSON *o;
    double *ids = pm_malloc((size_t)cJSON_GetArraySize(list) * sizeof *ids);

    *count = 0;
    cJSON_ArrayForEach(o, list) ids[(*count)++] = member(o, "id");
    qsort(ids, (size_t)*count, sizeof *ids, by_number);
    return ids;
}

static int place_of(const double *ids, int count, double id)
{
    return (int)((const double *)bsearch(&id, ids, (size_t)count, sizeof id, by_number) - ids);
}

/* The same moved boxes as in box_metrics.py. */
static void move_boxes(const cJSON *annotation, uint32_t *n, int classes, int label,
                       struct scene_picture *p)
{
    const cJSON *bbox = cJSON_GetObjectItem(annotation, "bbox");

    assert_true(p->truths < SCENE_BOXES && p->detections + 3 < SCENE_BOXES);
    p->truth[p->truths++] = (struct pm_box_truth){
        box_of(item(bbox, 0), item(bbox, 1), item(bbox, 2), item(bbox, 3)),
        member(annotation, "area"), label, member(annotation, "iscrowd") == 1, false, false };
    for (int times = number(n, 4); times > 0; times--) {
        double x = item(bbox, 0), y = item(bbox, 1), w = item(bbox, 2), h = item(bbox, 3);

        x += w * (number(n, 21) - 10) / 50;
        y += h * (number(n, 21) - 10) / 50;
        w = w * (40 + number(n, 21)) / 50;
        h = h * (40 + number(n, 21)) / 50;
        const int said = number(n, 8) == 0 ? number(n, classes) : label;

        p->detection[p->detections++] = (struct pm_box_detection){
            box_of(x, y, w, h), number(n, 100) / 100.0, said };
    }
}

/* Records are the sorted ids of the pictures. */
static struct pm_box_metrics *add_annotations(const cJSON *file)
{
    int pictures, classes;
    double *images = ids_of(cJSON_GetObjectItem(file, "images"), &pictures);
    double *categories = ids_of(cJSON_GetObjectItem(file, "categories"), &classes);
    struct scene_picture *p = pm_calloc((size_t)pictures, sizeof *p);
    struct pm_box_metrics *m = new_metrics(classes);
    const cJSON *a;
    uint32_t n = 77;

    cJSON_ArrayForEach(a, cJSON_GetObjectItem(file, "annotations"))
        move_boxes(a, &n, classes, place_of(categories, classes, member(a, "category_id")),
                   &p[place_of(images, pictures, member(a, "image_id"))]);
    for (int i = pictures; i-- > 0;)
        add_boxes(m, (uint64_t)i, p[i].truths, p[i].truth, p[i].detections, p[i].detection);
    pm_free(images);
    pm_free(categories);
    pm_free(p);
    return m;
}

static void coco_mini(void **state)
{
    static const char *const names[] = { "train2017", "val2017" };
    cJSON *all = read_golden("box_metrics.json");

    (void)state;
    for (int i = 0; i < 2; i++) {
        char path[1200], *text = NULL;
        struct pm_box_values mean;

        snprintf(path, sizeof path, "%s/instances_%s.json", shared_data("coco-mini/annotations"),
                 names[i]);
        assert_int_equal(pm_file_read(path, &text, NULL), PM_OK);
        cJSON *file = cJSON_Parse(text);
        struct pm_box_metrics *m = add_annotations(file);

        pm_box_metrics_values(m, PM_BOX_COCO, &mean, NULL);
        for (int k = 0; k < PM_COCO_FIGURES; k++)
            check(pm_box_metric_names[k], i, mean.v[k],
                  cJSON_GetArrayItem(cJSON_GetArrayItem(cJSON_GetObjectItem(all, "coco_mini"), i),
                                     k));
        pm_box_metrics_destroy(&m);
        cJSON_Delete(file);
        pm_free(text);
    }
    cJSON_Delete(all);
}

/* ---- by hand ----------------------------------------------------------------------------- */

static double value(const struct pm_box_metrics *m, enum pm_box_metric which)
{
    struct pm_box_values mean;

    pm_box_metrics_values(m, all_sets, &mean, NULL);
    return mean.v[which];
}

/* One object of 20 x 20. Right before wrong: AP 1; wrong before right: 0.5. */
static void two_detections(void **state)
{
    const struct pm_box_truth truth[] = { { .box = box_of(0, 0, 20, 20), .area = NAN } };

    (void)state;
    for (int wrong_first = 0; wrong_first < 2; wrong_first++) {
        const struct pm_box_detection found[] = {
            { box_of(0, 0, 20, 20), wrong_first ? 0.8 : 0.9, 0 },
            { box_of(50, 0, 20, 20), wrong_first ? 0.9 : 0.8, 0 },
        };
        struct pm_box_metrics *m = new_metrics(2);

        add_boxes(m, 0, 1, truth, 2, found);
        near(value(m, PM_BOX_VOC_MAP), wrong_first ? 0.5 : 1);
        near(value(m, PM_BOX_VOC07_MAP), wrong_first ? 0.5 : 1);
        near(value(m, PM_BOX_MAP), wrong_first ? 0.5 : 1);
        near(value(m, PM_BOX_CORLOC), !wrong_first);
        pm_box_metrics_destroy(&m);
    }
}

/* A perfect detection gives 1 for the ranges of area that have an object; the area of the
 * annotation decides, and 32 * 32 is small and medium. */
static void ranges(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        const double areas[] = { 1024, 1023, NAN };
        const struct pm_box_truth truth[] = { { .box = box_of(5, 7, 40, 40), .area = areas[k] } };
        const struct pm_box_detection found[] = { { truth[0].box, 0.7, 0 } };
        struct pm_box_metrics *m = new_metrics(1);

        add_boxes(m, 9, 1, truth, 1, found);
        near(value(m, PM_BOX_MAP), 1);
        if (k == 2)
            assert_true(isnan(value(m, PM_BOX_MAP_SMALL)));
        else
            near(value(m, PM_BOX_MAP_SMALL), 1);
        if (k == 1)
            assert_true(isnan(value(m, PM_BOX_MAP_MEDIUM)));
        else
            near(value(m, PM_BOX_MAP_MEDIUM), 1);
        assert_true(isnan(value(m, PM_BOX_MAP_LARGE)));
        assert_true(isnan(value(m, PM_BOX_AR_LARGE)));
        pm_box_metrics_destroy(&m);
    }
}

/* Nothing, only detections, only objects. */
static void empty(void **state)
{
    const struct pm_box_truth truth[] = { { .box = box_of(5, 7, 40, 40), .area = NAN } };
    const struct pm_box_detection found[] = { { truth[0].box, 0.7, 0 } };
    struct pm_box_metrics *m = new_metrics(2);

    (void)state;
    for (int k = 0; k < PM_BOX_METRICS; k++)
        assert_true(isnan(value(m, (enum pm_box_metric)k)));
    add_boxes(m, 0, 0, NULL, 0, NULL);
    add_boxes(m, 1, 0, NULL, 1, found);
    for (int k = 0; k < PM_BOX_METRICS; k++)
        assert_true(isnan(value(m, (enum pm_box_metric)k)));
    add_boxes(m, 2, 1, truth, 0, NULL);
    for (int k = 0; k < PM_BOX_MASK_MAP; k++)
        assert_true(k == PM_BOX_MAP_SMALL || k == PM_BOX_MAP_LARGE || k == PM_BOX_AR_SMALL ||
                            k == PM_BOX_AR_LARGE
                        ? isnan(value(m, (enum pm_box_metric)k))
                        : value(m, (enum pm_box_metric)k) == 0);
    pm_box_metrics_destroy(&m);
    assert_null(m);
    pm_box_metrics_destroy(&m);
}

/* Pascal: a detection belongs to the object with the largest IoU, even if that one is used;
 * COCO gives it the next free one. One on a difficult object is neither right nor wrong. */
static void difficult(void **state)
{
    const struct pm_box_truth truth[] = {
        { .box = box_of(0, 0, 20, 20), .area = NAN },
        { .box = box_of(0, 4, 20, 20), .area = NAN },
        { .box = box_of(100, 0, 20, 20), .area = NAN, .difficult = true },
    };
    const struct pm_box_detection found[] = {
        { box_of(0, 0, 20, 20), 0.9, 0 },
        { box_of(0, 1, 20, 20), 0.8, 0 },
        { box_of(100, 0, 20, 20), 0.95, 0 },
    };
    struct pm_box_metrics *m = new_metrics(1);

    (void)state;
    add_boxes(m, 0, 3, truth, 3, found);
    near(value(m, PM_BOX_VOC_MAP), 0.5);
    near(value(m, PM_BOX_MAP_50), 1);
    near(value(m, PM_BOX_CORLOC), 1);
    pm_box_metrics_destroy(&m);
}

/* A crowd takes any number of detections; none of them counts, and none is wrong. */
static void crowd_matched_twice(void **state)
{
    const struct pm_box_truth truth[] = {
        { .box = box_of(0, 0, 100, 100), .area = NAN, .crowd = true },
        { .box = box_of(200, 0, 20, 20), .area = NAN },
    };
    const struct pm_box_detection found[] = {
        { box_of(0, 0, 40, 40), 0.9, 0 },
        { box_of(0, 0, 40, 40), 0.8, 0 },
        { box_of(50, 50, 40, 40), 0.7, 0 },
        { box_of(200, 0, 20, 20), 0.6, 0 },
    };
    struct pm_box_metrics *m = new_metrics(1);

    (void)state;
    add_boxes(m, 0, 2, truth, 4, found);
    near(value(m, PM_BOX_MAP), 1);
    near(value(m, PM_BOX_AR_100), 1);
    pm_box_metrics_destroy(&m);
}

/* The 100 detections that count are those of a class: 100 wrong ones of another class with higher
 * scores change nothing. Of its own class they displace the right one for COCO, not for Pascal. */
static void limit_by_class(void **state)
{
    const struct pm_box_truth truth[] = { { .box = box_of(0, 0, 20, 20), .area = NAN } };

    (void)state;
    for (int other = 0; other < 2; other++) {
        struct pm_box_detection found[101];
        struct pm_box_metrics *m = new_metrics(2);

        for (int i = 0; i < 100; i++)
            found[i] = (struct pm_box_detection){ box_of(300, 0, 20, 20), 0.9, other };
        found[100] = (struct pm_box_detection){ truth[0].box, 0.5, 0 };
        add_boxes(m, 0, 1, truth, 101, found);
        near(value(m, PM_BOX_MAP), other);
        near(value(m, PM_BOX_AR_100), other);
        near(value(m, PM_BOX_VOC_MAP), other ? 1 : 1.0 / 101);
        pm_box_metrics_destroy(&m);
    }
}

/* Boxes without area, reversed, or not finite, and scores that are not numbers, harm nothing. */
static void odd_boxes(void **state)
{
    const struct pm_box_truth truth[] = {
        { .box = box_of(0, 0, 20, 20), .area = NAN },
        { .box = box_of(0, 0, 0, 20), .area = NAN, .label = 1 },
    };
    const struct pm_box_detection found[] = {
        { box_of(0, 0, 20, 20), 0.5, 0 },      { box_of(3, 3, 0, 0), 0.4, 0 },
        { box_of(9, 9, -5, -5), 0.3, 0 },      { box_of(NAN, 0, 20, 20), 0.2, 0 },
        { box_of(0, 0, INFINITY, 2), 0.1, 0 }, { box_of(0, 0, 20, 20), NAN, 1 },
    };
    struct pm_box_metrics *m = new_metrics(2);
    struct pm_box_values mean, each[2];

    (void)state;
    add_boxes(m, 0, 2, truth, 6, found);
    pm_box_metrics_values(m, all_sets, &mean, each);
    near(each[0].v[PM_BOX_MAP], 1);
    near(each[0].v[PM_BOX_VOC_MAP], 1);
    near(each[1].v[PM_BOX_MAP], 0);
    near(each[1].v[PM_BOX_VOC_MAP], 0);
    pm_box_metrics_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coco_scenes),    cmocka_unit_test(coco_mini), cmocka_unit_test(voc_scenes),
        cmocka_unit_test(two_detections), cmocka_unit_test(ranges),    cmocka_unit_test(empty),
        cmocka_unit_test(difficult),      cmocka_unit_test(odd_boxes),
        cmocka_unit_test(error_scenes),
        cmocka_unit_test(limit_by_class), cmocka_unit_test(crowd_matched_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
