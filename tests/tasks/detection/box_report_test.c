/* What evaluation.json gets of detected boxes. */
#include "tasks/detection/box_report.h"
#include "tasks/detection/box_scenes.h"

/* Class 0: one object found, one missed; class 1: only detected; class 2: nothing. */
static struct pm_box_metrics *example(void)
{
    const struct pm_box_truth truth[] = {
        { .box = box_of(10, 10, 40, 40), .area = NAN },
        { .box = box_of(100, 10, 40, 40), .area = NAN },
    };
    const struct pm_box_detection found[] = {
        { box_of(10, 10, 40, 40), 0.75, 0 },
        { box_of(0, 150, 20, 20), 0.875, 1 },
        { box_of(0, 150, 20, 20), 0.1, 1 },
    };
    struct pm_box_metrics *m = pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = 3, .recall_upper = 1 });

    pm_box_metrics_add(m, &(struct pm_box_picture){ .record = 4, .truth = truth, .truths = 2,
                                                    .detection = found, .detections = 3 });
    return m;
}

static void check_text(cJSON *object, const char *name, const char *want)
{
    char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(object, name));

    assert_string_equal(text, want);
    cJSON_free(text);
}

static void detail(void **state)
{
    struct pm_box_metrics *m = example();
    cJSON *o = cJSON_CreateObject(), *per_class, *curves;

    (void)state;
    pm_box_report_detail(m, 0.25, o);
    check_text(o, "of", "\"boxes\"");
    check_text(o, "threshold", "0.25");
    check_text(o, "errors", "{\"right\":1,\"loose\":0,\"wrong_class\":0,\"double\":0,"
                            "\"background\":1,\"both\":0,\"missed\":1,\"ignored\":0}");
    check_text(o, "confusion", "[0,0,1,0,3,1,3,1,1]");
    per_class = cJSON_GetObjectItem(o, "per_class");
    check_text(per_class, "count", "[2,0,0]");
    check_text(per_class, "predicted", "[1,1,0]");
    check_text(per_class, "right", "[1,0,0]");
    near(cJSON_GetArrayItem(cJSON_GetObjectItem(per_class, "ap"), 0)->valuedouble, 51.0 / 101);
    near(cJSON_GetArrayItem(cJSON_GetObjectItem(per_class, "best_f1"), 0)->valuedouble, 2.0 / 3);
    check_text(per_class, "best_score", "[0.375,null,null]");
    curves = cJSON_GetObjectItem(o, "curves");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(curves, "all")), PM_COCO_RECALLS);
    near(cJSON_GetArrayItem(cJSON_GetObjectItem(curves, "all"), 0)->valuedouble, 0.5);
    curves = cJSON_GetObjectItem(curves, "per_class");
    assert_int_equal(cJSON_GetArraySize(curves), 3);
    near(cJSON_GetArrayItem(cJSON_GetArrayItem(curves, 0), 50)->valuedouble, 1);
    near(cJSON_GetArrayItem(cJSON_GetArrayItem(curves, 0), 51)->valuedouble, 0);
    assert_true(cJSON_IsNull(cJSON_GetArrayItem(curves, 1)));
    cJSON_Delete(o);
    pm_box_metrics_destroy(&m);
}

static void sample(void **state)
{
    struct pm_box_metrics *m = example();
    cJSON *o = cJSON_CreateObject();

    (void)state;
    assert_false(pm_box_report_sample(m, 3, 0.25, 200, 400, o));
    assert_null(o->child);
    assert_true(pm_box_report_sample(m, 4, 0.25, 200, 400, o));
    check_text(o, "right", "false");
    check_text(o, "errors", "2");
    check_text(o, "truth", "[{\"box\":[0.05,0.25,0.25,0.35],\"label\":0,\"kind\":\"missed\"},"
                           "{\"box\":[0.05,0.025,0.25,0.125],\"label\":0,\"kind\":\"right\"}]");
    check_text(o, "found", "[{\"box\":[0.75,0,0.85,0.05],\"label\":1,\"kind\":\"background\","
                           "\"score\":0.875},{\"box\":[0.05,0.025,0.25,0.125],\"label\":0,"
                           "\"kind\":\"right\",\"score\":0.75}]");
    cJSON_Delete(o);
    pm_box_metrics_destroy(&m);
}

static void best(void **state)
{
    struct pm_box_metrics *m = example();
    cJSON *o = cJSON_CreateObject();

    (void)state;
    pm_box_report_best(m, o);
    near(cJSON_GetObjectItem(o, "best_f1")->valuedouble, 0.5);
    near(cJSON_GetObjectItem(o, "best_score")->valuedouble, (double)(float)(0.1 + 0.65 / 2));
    check_text(o, "per_class_best_score", "[0.375,null,null]");
    cJSON_Delete(o);
    pm_box_metrics_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detail),
        cmocka_unit_test(sample),
        cmocka_unit_test(best),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
