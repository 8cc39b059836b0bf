/* Scores and predictions of a net with heads for instances: correct outputs score 1, wrong ones
 * give the expected metrics, and pictures have a colour for each instance. */
#include "tasks/segmentation/segmentation.h"
#include "tasks/segmentation/segmentation_setup.h"

#include <cjson/cJSON.h>

enum { HEIGHT = 10, WIDTH = 16, CLASSES = 3, COUNT = HEIGHT * WIDTH };

static const int thing_list[] = { 1 };
static const struct pm_panoptic_options scoring = { .threshold = NAN, .nms_kernel = 3, .top_k = 200,
                                                   .stuff_area = 4, .label_divisor = 1000,
                                                   .least_area = 1, .ignored_area = -1 };

static struct pm_task setup_of(struct pm_arena *a)
{
    static const char *const names[] = { "ground", "disc", NULL };
    struct pm_task s = segmentation_setup(a, HEIGHT, WIDTH, CLASSES);

    s.facts.labels = names;
    s.pixels.instance = (struct pm_instances){ .on = true, .things = { 1, thing_list },
                                                    .label_divisor = 1000, .panoptic = &scoring };
    return s;
}

/* Two neighbouring boxes of class 1 on class 0, and a strip of class 2 below. */
static struct {
    int32_t labels[COUNT], instances[COUNT], classes[COUNT];
    float probabilities[COUNT * CLASSES], heat[COUNT], offset[2 * COUNT];
} answer;

static int box_of(int y, int x)
{
    return y < 2 || y > 5 || x < 3 || x > 12 ? 0 : x < 8 ? 1 : 2;
}

static void make_answer(void)
{
    for (int i = 0; i < COUNT; i++) {
        const int y = i / WIDTH, x = i % WIDTH, box = box_of(y, x);
        const int label = box ? 1 : y > 7 ? 2 : 0;

        answer.labels[i] = answer.classes[i] = label;
        answer.instances[i] = box ? 1000 + box : 0;
        for (int c = 0; c < CLASSES; c++)
            answer.probabilities[i * CLASSES + c] = c == label ? (box == 2 ? 0.5f : 0.75f) : 0.125f;
        answer.heat[i] = (y == 4 && x == 5) || (y == 4 && x == 10) ? 0.5f : 0;
        answer.offset[2 * i] = box ? (float)(4 - y) : 0;
        answer.offset[2 * i + 1] = box ? (float)((box == 1 ? 5 : 10) - x) : 0;
    }
}

static const void *const outputs[] = { answer.classes, answer.probabilities, answer.heat,
                                       answer.offset };

static double value(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);

    if (!v)
        fail_msg("there is no %s", key);
    return cJSON_GetNumberValue(v);
}

static cJSON *score(const struct pm_task *s)
{
    static const uint64_t records[] = { 0 };
    const struct pm_batch batch = { .field = (void *[]){ NULL, answer.labels, answer.instances },
                                    .frame = { HEIGHT, WIDTH },
                                    .valid = 1,
                                    .record = records };
    struct pm_score *m = task()->score_create(s);
    cJSON *o = cJSON_CreateObject();
    const char *names[64];

    assert_int_equal(task()->score_add(m, &batch, outputs, 0.25), PM_OK);
    task()->score_report(m, o);
    for (int i = 0, count = metric_names(s, names); i < count; i++)
        value(o, names[i]);
    task()->score_destroy(&m);
    return o;
}

static void scores(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    const char *names[64];
    cJSON *o;

    (void)state;
    make_answer();
    o = score(&s);
    assert_int_equal(metric_names(&s, names), 11);
    assert_string_equal(names[0], "pq");
    assert_true(value(o, "pq") == 1 && value(o, "sq") == 1 && value(o, "rq") == 1);
    assert_true(value(o, "pc") == 1 && value(o, "ap") == 1 && value(o, "ap50") == 1);
    assert_true(value(o, "miou") == 1);
    assert_true(value(cJSON_GetObjectItem(o, "panoptic_things"), "classes") == 1);
    assert_true(value(cJSON_GetObjectItem(o, "panoptic_stuff"), "classes") == 2);
    cJSON_Delete(o);
    answer.heat[4 * WIDTH + 10] = 0; /* one centre for both boxes: IoU 1/2, no match */
    o = score(&s);
    assert_true(value(cJSON_GetObjectItem(o, "panoptic_things"), "pq") == 0);
    assert_true(fabs(value(o, "pq") - 2.0 / 3) < 1e-12);
    assert_true(value(o, "ap50") == 0 && value(o, "miou") == 1);
    const cJSON *disc = cJSON_GetArrayItem(cJSON_GetObjectItem(o, "per_class_panoptic"), 1);
    assert_true(value(disc, "missed") == 2 && value(disc, "wrong") == 1);
    assert_true(value(disc, "pc") == 0.5);
    cJSON_Delete(o);
    s.pixels.instance.on = false; /* without instances there are no such metrics */
    assert_int_equal(metric_names(&s, names), 5);
    assert_string_equal(names[0], "miou");
    o = score(&s);
    assert_null(cJSON_GetObjectItem(o, "pq"));
    cJSON_Delete(o);
    pm_arena_destroy(&a);
}

/* COCO's metrics in place of Cityscapes', also for each class. Both boxes are small. */
static void coco(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    struct pm_panoptic_options o = scoring;
    const cJSON *disc;
    cJSON *r;

    (void)state;
    make_answer();
    o.precision = PM_PRECISION_COCO;
    s.pixels.instance.panoptic = &o;
    answer.classes[2 * WIDTH + 8] = answer.classes[2 * WIDTH + 9] = 0; /* 18 of 20 pixels of the
                                                                        * second */
    r = score(&s);
    assert_true(fabs(value(r, "ap50") - 1) < 1e-12 && fabs(value(r, "ap75") - 1) < 1e-12);
    assert_true(fabs(value(r, "ap") - (9 + 51.0 / 101) / 10) < 1e-12);
    assert_true(value(r, "ap_small") == value(r, "ap") && isnan(value(r, "ap_large")));
    assert_true(fabs(value(r, "ar1") - 0.5) < 1e-12 && fabs(value(r, "ar100") - 0.95) < 1e-12);
    disc = cJSON_GetArrayItem(cJSON_GetObjectItem(r, "per_class_panoptic"), 1);
    assert_true(value(disc, "ar_small") == value(r, "ar100"));
    assert_true(
        isnan(value(cJSON_GetArrayItem(cJSON_GetObjectItem(r, "per_class_panoptic"), 0), "ap")));
    cJSON_Delete(r);
    pm_arena_destroy(&a);
}

/* The check of run.keep_best in a config does not know the net and lists the metrics of all
 * nets. */
static void keep_best_without_a_net(void **state)
{
    static const char text[] = "{\"task\": \"segmentation\", \"model\": {\"layers\": []}}";
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    struct pm_panoptic_options o = scoring;
    struct pm_config *c = NULL;
    const char *names[64];
    struct pm_open_sections open = { 0 };
    int listed = 1;

    (void)state;
    o.precision = PM_PRECISION_COCO;
    s.pixels.instance.panoptic = &o;
    s.pixels.edge_classes = 2;
    open.tasks = pm_open_tasks(&open.task_count);
    const int count = metric_names(&s, names);
    for (int i = 0; i < count; i++) {
        const char *set[] = { "eval.every_steps=1",
                              pm_arena_printf(a, "run.keep_best=%s", names[i]) };

        if (pm_config_parse("t.json", text, set, 2, &open, &c) < 0)
            fail_msg("%s", pm_error_text());
        pm_config_destroy(&c);
    }
    assert_int_equal(
        pm_config_parse("t.json", text, (const char *[]){ "run.keep_best=best" }, 1, &open, &c),
        PM_ECONFIG);
    for (const char *at = strchr(pm_error_text(), '('); at; listed += at != NULL)
        at = strchr(at + 1, ',');
    assert_int_equal(listed, count);
    pm_arena_destroy(&a);
}

/* Predictions below and right of the picture do not count. In the padding lie the strip, a third
 * box, and the continuation of the second box. */
static void padded(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    struct pm_panoptic_options o = scoring;

    (void)state;
    make_answer();
    o.precision = PM_PRECISION_COCO;
    s.pixels.instance.panoptic = &o;
    for (int i = 0; i < COUNT; i++) {
        const int y = i / WIDTH, x = i % WIDTH;
        const bool third = y > 7 && x > 13, more = box_of(y, x - 2) == 2 && x > 12;

        if (y <= 7 && x <= 12)
            continue;
        answer.labels[i] = 255;
        answer.instances[i] = -1;
        answer.classes[i] = third || more ? 1 : answer.classes[i];
        answer.heat[i] = y == 8 && x == 14;
        answer.offset[2 * i] = third ? (float)(8 - y) : more ? (float)(4 - y) : 0;
        answer.offset[2 * i + 1] = third ? (float)(14 - x) : more ? (float)(10 - x) : 0;
    }
    cJSON *r = score(&s);
    assert_true(value(r, "ap") == 1 && value(r, "ar100") == 1 && value(r, "pq") == 1);
    assert_true(value(cJSON_GetObjectItem(r, "panoptic_all"), "classes") == 2);
    assert_true(
        value(cJSON_GetArrayItem(cJSON_GetObjectItem(r, "per_class_panoptic"), 1), "wrong") == 0);
    cJSON_Delete(r);
    pm_arena_destroy(&a);
}

static const uint8_t *pixel(const struct pm_image8 *im, int y, int x)
{
    return im->pixels + 3 * (y * im->width + x);
}

/* Predictions at the input's own size and at almost twice that size. */
static void predictions(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    struct pm_panoptic_options both = scoring;
    struct pm_drawings drawings = { 0 };
    static uint8_t pixels[COUNT * 3];
    const struct pm_image8 picture = { HEIGHT, WIDTH, 3, pixels };
    cJSON *o = cJSON_CreateObject();

    (void)state;
    make_answer();
    s.pixels.save_raw = true;
    both.score = PM_SCORE_CLASS_AND_CENTER;
    assert_int_equal(task()->present(&s, (struct pm_frame){ HEIGHT, WIDTH }, outputs,
                                     &picture, o, &drawings), PM_OK);
    const cJSON *list = cJSON_GetObjectItem(o, "segments");
    assert_int_equal(cJSON_GetArraySize(list), 4);
    const cJSON *second = cJSON_GetArrayItem(list, 1);
    assert_true(value(second, "id") == 1002 && value(second, "instance") == 2);
    assert_true(value(second, "label") == 1 && value(second, "area") == 20);
    assert_true(value(second, "score") == 0.5);
    assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(second, "center"), 1)->valuedouble == 10);
    assert_string_equal(cJSON_GetObjectItem(second, "name")->valuestring, "disc");
    assert_false(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 2), "thing")));
    assert_string_equal(drawings.list[3].what, "_instances");
    const struct pm_image8 *im = &drawings.list[3].image;
    assert_memory_equal(pixel(im, 3, 3), pixel(im, 5, 7), 3);
    assert_memory_not_equal(pixel(im, 3, 7), pixel(im, 3, 8), 3);
    assert_memory_not_equal(pixel(im, 3, 8), pixel(im, 0, 0), 3);
    assert_string_equal(drawings.list[4].what, "_panoptic");
    im = &drawings.list[4].image;
    assert_int_equal(pixel(im, 3, 8)[0] + 256 * pixel(im, 3, 8)[1] + 65536 * pixel(im, 3, 8)[2],
                     1002);
    pm_drawings_free(&drawings);
    cJSON_Delete(o);
    s.pixels.instance.panoptic = &both;
    o = cJSON_CreateObject();
    assert_int_equal(
        task()->present(&s, (struct pm_frame){ HEIGHT, WIDTH }, outputs, &picture, o, NULL), PM_OK);
    assert_true(value(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "segments"), 0), "score") == 0.375);
    cJSON_Delete(o);
    pm_arena_destroy(&a);
}

static const struct pm_image8 *find(const struct pm_drawings *drawings, const char *what)
{
    for (size_t k = 0; k < drawings->count; k++)
        if (strcmp(drawings->list[k].what, what) == 0)
            return &drawings->list[k].image;
    fail_msg("there is no picture %s", what);
    return NULL;
}

/* Two examples; the second has the largest values. Heads have 1 x 2 pixels. */
static void summaries(void **state)
{
    static int32_t labels[2 * COUNT];
    static float center[2 * COUNT], offset[4 * COUNT];
    static const float logits[] = { 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0 };
    static const float heat[] = { 0.25f, -1, 0.5f, NAN }, away[] = { -4, 2, 0, 1, 8, 0, 0, -8 };
    const struct pm_shown shown = {
        .count = 2,
        .frame = { HEIGHT, WIDTH },
        .field = (const void *[]){ NULL, labels, center, NULL, offset },
        .heads = 3,
        .head = (const float *[]){ logits, heat, away },
        .shape =
            (const struct pm_shape[]){ PM_SHAPE3(1, 2, 3), PM_SHAPE3(1, 2, 1), PM_SHAPE3(1, 2, 2) },
    };
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);

    (void)state;
    center[3] = 0.5f, center[COUNT + 3] = 1;
    offset[2] = 10, offset[2 * COUNT + 3] = -20;
    for (int seed4 = 0; seed4 < 2; seed4++) {
        struct pm_drawings drawings = { 0 };
        const struct pm_image8 *im;

        s.pixels.instance.mode = seed4 ? PM_INSTANCE_SEED4 : PM_INSTANCE_REFERENCE;
        task()->paint(&s, &shown, 0, &drawings);
        im = find(&drawings, "semantic");
        assert_int_equal(im->pixels[0], 85); /* colours of 3 classes are 85 apart */
        assert_int_equal(im->pixels[1], 170);
        im = find(&drawings, "label_instance_center");
        assert_int_equal(im->pixels[3], 127);
        im = find(&drawings, "instance_center");
        assert_int_equal(im->pixels[0], 127);
        assert_int_equal(im->pixels[1], 0);
        im = find(&drawings, "label_offset"); /* pixel 1: y 10 of 20, green; for lengths 10 of 10 */
        assert_int_equal(im->pixels[3 + 1], seed4 ? 255 : 128 + 63);
        assert_int_equal(im->pixels[3], seed4 ? 0 : 128);
        im = find(&drawings, "instance_offset"); /* pixel 0: y -4, x 2 of 8; for lengths x 2 of 2 */
        assert_int_equal(im->pixels[1], seed4 ? 0 : 64);
        assert_int_equal(im->pixels[0], seed4 ? 255 : 159);
        assert_int_equal(im->pixels[2], seed4 ? 0 : 128);
        pm_drawings_free(&drawings);
    }
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(scores),
                                        cmocka_unit_test(coco),
                                        cmocka_unit_test(keep_best_without_a_net),
                                        cmocka_unit_test(padded),
                                        cmocka_unit_test(predictions),
                                        cmocka_unit_test(summaries) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
