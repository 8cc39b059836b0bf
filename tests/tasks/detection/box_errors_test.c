/* Kinds of errors, the confusion matrix, pictures to show, and the file of detections. */
#include "tasks/detection/box_scenes.h"

/* Five objects: class 0 at 0, 100 and 200, class 1 at 300, a crowd of class 0 at 400; each 20 x
 * 20. Detections in the order of their scores: */
static const struct pm_box_truth truth[] = {
    { { { 0, 0, 20, 20 } }, NAN, 0, false, false, false },
    { { { 0, 100, 20, 120 } }, NAN, 0, false, false, false },
    { { { 0, 200, 20, 220 } }, NAN, 0, false, false, false },
    { { { 0, 300, 20, 320 } }, NAN, 1, false, false, false },
    { { { 0, 400, 20, 420 } }, NAN, 0, true, false, false },
};
static const struct pm_box_detection found[] = {
    { { { 0, 0, 20, 20 } }, 0.95, 0 },     /* right */
    { { { 0, 0, 20, 21 } }, 0.9, 0 },      /* double */
    { { { 0, 112, 20, 132 } }, 0.85, 0 },  /* loose: IoU 8 / 32 */
    { { { 0, 300, 20, 320 } }, 0.8, 0 },   /* wrong class */
    { { { 200, 0, 220, 20 } }, 0.75, 2 },  /* background */
    { { { 0, 112, 20, 132 } }, 0.7, 1 },   /* both */
    { { { 0, 400, 20, 410 } }, 0.65, 0 },  /* ignored: on the crowd */
    { { { 0, 300, 20, 321 } }, 0.6, 1 },   /* right */
};
enum { TRUTHS = PM_COUNT(truth), FOUND = PM_COUNT(found) };

/* The detections are given in the reverse order. Record 5 has only the first object, found. */
static struct pm_box_metrics *example(void)
{
    struct pm_box_metrics *m = pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = 3, .recall_upper = 1 });
    struct pm_box_detection backwards[FOUND];

    for (int d = 0; d < FOUND; d++)
        backwards[d] = found[FOUND - 1 - d];
    pm_box_metrics_add(m, &(struct pm_box_picture){ .record = 7, .name = "000123", .truth = truth,
                                                    .truths = TRUTHS, .detection = backwards,
                                                    .detections = FOUND });
    pm_box_metrics_add(m, &(struct pm_box_picture){ .record = 5, .name = "a \"b\"\xff",
                                                    .truth = truth, .truths = 1,
                                                    .detection = found, .detections = 1 });
    pm_box_metrics_add(m, &(struct pm_box_picture){ .record = 6, .name = "12" });
    return m;
}

static void kinds(void **state)
{
    const enum pm_box_kind want[FOUND] = { PM_BOX_RIGHT, PM_BOX_DOUBLE, PM_BOX_LOOSE,
                                           PM_BOX_WRONG_CLASS, PM_BOX_BACKGROUND, PM_BOX_BOTH,
                                           PM_BOX_IGNORED, PM_BOX_RIGHT };
    struct pm_box_metrics *m = example();
    struct pm_box_judged j;
    struct pm_box_errors total, each[3];

    (void)state;
    assert_true(pm_box_metrics_judge(m, 7, 0, &j));
    assert_true(j.truths == TRUTHS && j.detections == FOUND);
    for (int d = 0; d < FOUND; d++) {
        near(j.detection[d].score, found[d].score);
        assert_int_equal(j.kind[d], want[d]);
    }
    assert_int_equal(j.truth_kind[0], PM_BOX_RIGHT);
    assert_int_equal(j.truth_kind[1], PM_BOX_LOOSE);
    assert_int_equal(j.truth_kind[2], PM_BOX_MISSED);
    assert_int_equal(j.truth_kind[3], PM_BOX_RIGHT);
    assert_int_equal(j.truth_kind[4], PM_BOX_IGNORED);
    pm_box_judged_free(&j);
    assert_null(j.truth);
    assert_false(pm_box_metrics_judge(m, 8, 0, &j));
    pm_box_metrics_errors(m, 0, &total, each, NULL);
    assert_int_equal(total.count[PM_BOX_RIGHT], 3);
    assert_int_equal(each[0].count[PM_BOX_RIGHT], 2);
    assert_int_equal(each[0].count[PM_BOX_MISSED], 1);
    assert_int_equal(each[1].count[PM_BOX_BOTH], 1);
    assert_int_equal(each[2].count[PM_BOX_BACKGROUND], 1);
    assert_int_equal(total.count[PM_BOX_IGNORED], 1);
    pm_box_metrics_destroy(&m);
}

/* Scores exactly at the threshold are dropped. Without the right one of class 1, the object belongs
 * to the wrong one. */
static void threshold(void **state)
{
    struct pm_box_metrics *m = example();
    struct pm_box_judged j;

    (void)state;
    assert_true(pm_box_metrics_judge(m, 7, 0.6, &j));
    assert_int_equal(j.detections, FOUND - 1);
    assert_int_equal(j.truth_kind[3], PM_BOX_WRONG_CLASS);
    pm_box_judged_free(&j);
    assert_true(pm_box_metrics_judge(m, 7, 0.95, &j));
    assert_int_equal(j.detections, 0);
    for (int t = 0; t < TRUTHS; t++)
        assert_int_equal(j.truth_kind[t], t == 4 ? PM_BOX_IGNORED : PM_BOX_MISSED);
    pm_box_judged_free(&j);
    pm_box_metrics_destroy(&m);
}

/* The object of class 1 is paired with the detection of its class, if that is above the threshold;
 * otherwise with the wrong one. */
static void confusion(void **state)
{
    /* [truth][predicted], the background last */
    static const uint64_t want[2][4][4] = {
        { { 2, 0, 0, 2 }, { 0, 1, 0, 0 }, { 0, 0, 0, 0 }, { 3, 1, 1, 0 } },
        { { 2, 0, 0, 2 }, { 1, 0, 0, 0 }, { 0, 0, 0, 0 }, { 2, 1, 1, 0 } },
    };
    struct pm_box_metrics *m = example();

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct pm_box_errors total;
        struct pm_confusion c;

        pm_confusion_create(&c, 4);
        pm_box_metrics_errors(m, k ? 0.6 : 0, &total, NULL, &c);
        for (int i = 0; i < 16; i++)
            assert_int_equal(c.count[i], want[k][i / 4][i % 4]);
        pm_confusion_free(&c);
    }
    pm_box_metrics_destroy(&m);
}

/* Difficult and group_of objects are ignored, too. */
static void ignored(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const struct pm_box_truth one = { .box = truth[0].box, .area = NAN, .difficult = k == 0,
                                          .group_of = k == 1 };
        struct pm_box_metrics *m = pm_box_metrics_create(&(struct pm_box_metrics_options){
            .classes = 1, .recall_upper = 1 });
        struct pm_box_judged j;

        pm_box_metrics_add(m, &(struct pm_box_picture){ .truth = &one, .truths = 1,
                                                        .detection = found, .detections = 2 });
        assert_true(pm_box_metrics_judge(m, 0, 0, &j));
        assert_int_equal(j.kind[0], PM_BOX_IGNORED);
        assert_int_equal(j.kind[1], PM_BOX_IGNORED);
        assert_int_equal(j.truth_kind[0], PM_BOX_IGNORED);
        assert_false(j.truth[0].crowd);
        pm_box_judged_free(&j);
        pm_box_metrics_destroy(&m);
    }
}

/* Nine pictures: record r has r wrong detections. */
static void samples(void **state)
{
    static const struct { int pictures, most, first, wrong; } cases[] = {
        { 9, 6, 8, 5 }, { 9, 3, 8, 2 }, { 9, 20, 8, 8 }, { 1, 4, 0, 0 }, { 0, 4, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_box_metrics *m = pm_box_metrics_create(&(struct pm_box_metrics_options){
            .classes = 3, .recall_upper = 1 });
        const int want = cases[i].most < cases[i].pictures ? cases[i].most : cases[i].pictures;
        uint64_t records[20];

        for (int r = 0; r < cases[i].pictures; r++)
            pm_box_metrics_add(m, &(struct pm_box_picture){ .record = (uint64_t)r,
                                                            .detection = found, .detections = r });
        assert_int_equal(pm_box_metrics_samples(m, 0, cases[i].most, records), want);
        for (int k = 0; k < cases[i].wrong; k++)
            assert_int_equal(records[k], cases[i].first - k);
        if (want > cases[i].wrong)
            assert_int_equal(records[want - 1], 0);
        pm_box_metrics_destroy(&m);
    }
}

/* ---- the file of detections -------------------------------------------------------------- */

static char *written(const struct pm_box_metrics *m, const int *ids)
{
    char *folder = make_folder(), *text = NULL;
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/detections.json", folder);
    assert_int_equal(pm_box_metrics_write(m, PM_BOX_RESULTS_BOXES, ids, path.text), PM_OK);
    assert_int_equal(pm_file_read(path.text, &text, NULL), PM_OK);
    pm_str_free(&path);
    drop_folder(folder);
    return text;
}

static void text(void **state)
{
    const int ids[] = { 1, 4, 90 };
    struct pm_box_metrics *m = example();
    char *s = written(m, ids);

    (void)state;
    assert_contains(s, "[{\"image_id\":\"a \\\"b\\\"\\\\xFF\",\"category_id\":1,"
                       "\"bbox\":[0,0,20,20],\"score\":0.95},\n"
                       "{\"image_id\":\"000123\",\"category_id\":4,"
                       "\"bbox\":[300,0,21,20],\"score\":0.6},\n");
    assert_contains(s, "\"category_id\":90,");
    assert_contains(s, "}]\n");
    pm_free(s);
    pm_box_metrics_destroy(&m);
    m = pm_box_metrics_create(&(struct pm_box_metrics_options){ .classes = 1, .recall_upper = 1 });
    s = written(m, NULL);
    assert_string_equal(s, "[]\n");
    pm_free(s);
    pm_box_metrics_add(m, &(struct pm_box_picture){
                              .record = 3, .name = "12", .detections = 1,
                              .detection = &(struct pm_box_detection){
                                  { { 1.0 / 3, 0, (double)0.1f, INFINITY } }, NAN, 0 } });
    pm_box_metrics_add(m, &(struct pm_box_picture){
                              .record = 4, .name = "13", .file = "K\xc3\xa4" "fer.jpg",
                              .detections = 1,
                              .detection = &(struct pm_box_detection){ .score = 1 } });
    pm_box_metrics_add(m, &(struct pm_box_picture){
                              .record = 5, .name = "a.jpg", .file = "a.jpg", .detections = 1,
                              .detection = &(struct pm_box_detection){ .score = 1 } });
    s = written(m, NULL);
    assert_contains(s, "\n{\"image_id\":13,\"file_name\":\"K\xc3\xa4" "fer.jpg\","
                       "\"category_id\":1,");
    assert_contains(s, "\n{\"image_id\":\"a.jpg\",\"category_id\":1,");
    assert_contains(s, "[{\"image_id\":12,\"category_id\":1,\"bbox\":"
                           "[0,0.33333333333333331,0,-0.2333333318432172],\"score\":0},\n");
    pm_free(s);
    pm_box_metrics_destroy(&m);
    m = pm_box_metrics_create(&(struct pm_box_metrics_options){ .classes = 1, .recall_upper = 1 });
    assert_int_equal(pm_box_metrics_write(m, PM_BOX_RESULTS_BOXES, NULL,
                                          "/proc/none/detections.json"), PM_EFAIL);
    pm_box_metrics_destroy(&m);
}

/* A picture's detections from the file; records are image ids. */
static void read_back(const cJSON *file, int record, struct scene_picture *p)
{
    const cJSON *d;

    p->detections = 0;
    cJSON_ArrayForEach(d, file)
    {
        const cJSON *box = cJSON_GetObjectItem(d, "bbox");
        double v[4];

        if (cJSON_GetObjectItem(d, "image_id")->valuedouble != record)
            continue;
        for (int k = 0; k < 4; k++)
            v[k] = cJSON_GetArrayItem(box, k)->valuedouble;
        p->detection[p->detections++] = (struct pm_box_detection){
            box_of(v[0], v[1], v[2], v[3]), cJSON_GetObjectItem(d, "score")->valuedouble,
            cJSON_GetObjectItem(d, "category_id")->valueint - 1 };
    }
}

/* The metrics of the file's detections are those of the written ones, bit for bit. */
static void same_metrics(void **state)
{
    static struct scene s;

    (void)state;
    for (int index = 0; index < 50; index++) {
        struct pm_box_values before, after;
        struct pm_box_metrics *m;
        char *written_text;
        cJSON *file;

        draw_scene(&s, index, index % 2);
        m = add_scene(&s, true);
        pm_box_metrics_values(m, PM_BOX_COCO | PM_BOX_PASCAL, &before, NULL);
        written_text = written(m, NULL);
        file = cJSON_Parse(written_text);
        pm_box_metrics_destroy(&m);
        for (int k = 0; k < s.count; k++)
            read_back(file, k, &s.picture[k]);
        m = add_scene(&s, false);
        pm_box_metrics_values(m, PM_BOX_COCO | PM_BOX_PASCAL, &after, NULL);
        assert_memory_equal(&before, &after, sizeof before);
        pm_box_metrics_destroy(&m);
        cJSON_Delete(file);
        pm_free(written_text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),   cmocka_unit_test(threshold), cmocka_unit_test(confusion),
        cmocka_unit_test(ignored), cmocka_unit_test(samples),   cmocka_unit_test(text),
        cmocka_unit_test(same_metrics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
