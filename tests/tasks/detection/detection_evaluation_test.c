/* Evaluation of a detector: fields of padded pictures, classes that annotations do not cover. */
#include "detection_setup.h"

#include <cjson/cJSON.h>

/* The last field is the part of the input that the picture fills. */
static void windows(void **state)
{
    struct setup s = set_up(CONFIG(", \"resizer\": \"keep_aspect_ratio\"}}"));
    const struct pm_field_list *fields = &s.e->eval_fields;
    struct pm_sampler sampler = { s.e->task, false, s.e->task_row };
    float room[5][SIDE * SIDE * 3], divisor, window[4];
    void *out[] = { room[0], room[1], room[2], room[3], room[4], &divisor, window };
    struct pm_objects o;
    uint8_t *data = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(fields->count, 7);
    assert_string_equal(fields->list[6].name, "windows");
    assert_string_equal(s.e->train_fields.list[s.e->train_fields.count - 1].name, "windows");
    pm_objects_start(&o, 60, 40);
    record_of(&o, &data, &size);
    assert_int_equal(s.e->task_row->make(&sampler, &(struct pm_loader_record){
        .bytes = data, .size = size, .where = "r", .frame = { SIDE, SIDE } }, out), PM_OK);
    assert_true(window[0] == 0 && window[1] == 0 && window[2] == 1);
    assert_true(fabsf(window[3] - 21.0f / SIDE) < 1e-6f); /* 40 * 32 / 60, rounded */
    pm_free(data);
    pm_objects_free(&o);
    tear_down(&s);
}

/* The AP of class 3 in two pictures of the input's size. Somebody looked for classes 0 and 1 in the
 * first one. There class 3 is detected with a higher score than in the second picture, which has
 * such an object. */
static double ap_of_class(const char *text)
{
    struct setup s = set_up(text);
    const struct pm_task_row *row = s.e->task_row;
    struct pm_box_truth cat = { .box = { { 0, 0, 16, 16 } }, .area = NAN, .label = 0 };
    struct pm_box_truth cow = { .box = { { 8, 8, 24, 24 } }, .area = NAN, .label = 3 };
    struct pm_detection_truths first = { .height = SIDE, .width = SIDE, .truth = &cat, .count = 1,
                                         .verified = (int[]){ 1 }, .verified_count = 1 };
    struct pm_detection_truths second = { .height = SIDE, .width = SIDE, .truth = &cow,
                                          .count = 1 };
    float boxes[2][100][4] = { { { 0 } } }, scores[2][100] = { { 0.9f }, { 0.8f } };
    int32_t classes[2][100] = { { 3 }, { 3 } }, counts[2] = { 1, 1 };
    void *fields[] = { NULL }, *host[] = { &first, &second };
    const struct pm_batch b = { .field = fields, .frame = { SIDE, SIDE }, .examples = 2, .valid = 2,
                                .record = (uint64_t[]){ 0, 1 }, .host = host };
    struct pm_score *m = row->score_create(s.e->task);
    cJSON *report = cJSON_CreateObject();

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++)
            boxes[i][0][k] = k < 2 ? 0.25f : 0.75f;
    assert_int_equal(row->score_add(m, &b, (const void *[]){ boxes, scores, classes, counts }, 0),
                     PM_OK);
    row->score_report(m, report);
    const double ap = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "per_class_ap_50"), 3)
                          ->valuedouble;

    cJSON_Delete(report);
    row->score_destroy(&m);
    tear_down(&s);
    return ap;
}

static void uncovered_classes(void **state)
{
    (void)state;
    assert_true(fabs(ap_of_class(CONFIG("}}")) - 0.5) < 1e-9);
    assert_true(fabs(ap_of_class(CONFIG("}, \"eval\": {\"skip_unlabeled\": true}}")) - 1) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(uncovered_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
