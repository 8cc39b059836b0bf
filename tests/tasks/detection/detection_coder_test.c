/* The box coder that a net has without model.box_coder.type, and its numbers; the other objects of
 * RetinaNet's recipe. */
#include "detection_setup.h"

#include <cjson/cJSON.h>

/* Expects the coder and its scales, zeros after the last one, of a config with this net. more:
 * further keys of the section "model". */
static void expect(const char *net, const char *more, const char *coder, const float scales[4])
{
    struct pm_str text = { 0 };
    cJSON *options = cJSON_CreateObject();
    const cJSON *list, *one;
    int count = 0;

    pm_str_add(&text, "{\"task\": \"detection\", \"model\": {\"name\": \"%s\"%s},"
                      " \"data\": {\"label_map\": \"%%s\"}, \"input\": {\"size\": 160}}",
               net, more);
    struct setup s = set_up(text.text);

    pm_detection_add_coder(s.e->task, options);
    assert_string_equal(cJSON_GetObjectItem(options, "coder")->valuestring, coder);
    list = cJSON_GetObjectItem(options, "coder_scales");
    cJSON_ArrayForEach(one, list)
        assert_float_equal(one->valuedouble, (double)scales[count++], 0);
    assert_true(count == 4 || scales[count] == 0);
    cJSON_Delete(options);
    pm_str_free(&text);
    tear_down(&s);
}

static void each_net_has_its_own(void **state)
{
    static const float corners[4] = { 0.2f }, faster[] = { 10, 10, 5, 5 };

    (void)state;
    expect("retinanet_50", "", "corners", corners);
    expect("retinanet_101", "", "corners", corners);
    expect("ssd_mobilenet_v1", "", "faster_rcnn", faster);
    expect("ssd_resnet_v1_50_fpn", "", "faster_rcnn", faster);
    expect("ssd_mobilenet_v1", ", \"box_coder\": {\"type\": \"corners\"}", "corners", corners);
    expect("retinanet_50", ", \"box_coder\": {\"type\": \"faster_rcnn\"}", "faster_rcnn", faster);
}

/* An object that the config sets replaces the net's as a whole. */
static void recipe_of_retinanet(void **state)
{
    static const char text[] =
        "{\"task\": \"detection\", \"model\": {\"name\": \"%s\"%s}, \"data\": {\"label_map\": "
        "\"%%s\"}, \"input\": {\"size\": 160}}";
    static const struct {
        const char *net, *more;
        float unmatched, score, delta;
        bool outside, force;
        int most;
    } cases[] = {
        { "retinanet_50", "", 0.4f, 0.05f, 0.1111111f, true, false, 300 },
        { "retinanet_101", ", \"matcher\": {\"matched_threshold\": 0.6}", 0.5f, 0.05f, 0.1111111f,
          false, false, 300 },
        { "ssd_mobilenet_v1", "", 0.5f, 0, 1, false, true, 100 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        char config[600];

        snprintf(config, sizeof config, text, cases[i].net, cases[i].more);
        struct setup s = set_up(config);
        const struct pm_task *t = s.e->task;
        assert_float_equal(t->matcher.unmatched_threshold, cases[i].unmatched, 0);
        assert_int_equal(t->matcher.ignore_outside, cases[i].outside);
        assert_int_equal(t->matcher.force_match_for_each_row, cases[i].force);
        assert_float_equal(t->post.score_threshold, cases[i].score, 0);
        assert_int_equal(t->post.max_total_detections, cases[i].most);
        assert_float_equal(t->box_loss.delta, cases[i].delta, 0);
        assert_float_equal(t->box_loss.weight, cases[i].delta < 1 ? 9 : 1, 0);
        tear_down(&s);
    }
}

static void numbers_without_a_type(void **state)
{
    (void)state;
    expect("retinanet_50", ", \"box_coder\": {\"stddev\": 0.5}",
           "corners", (const float[4]){ 0.5f });
    expect("retinanet_50", ", \"box_coder\": {\"type\": \"auto\", \"y_scale\": 3}",
           "corners", (const float[4]){ 0.2f });
    expect("ssd_mobilenet_v1", ", \"box_coder\": {\"y_scale\": 3, \"width_scale\": 0.5}",
           "faster_rcnn", (const float[4]){ 3, 10, 5, 0.5f });
    expect("ssd_mobilenet_v1", ", \"box_coder\": {\"type\": \"mean_stddev\", \"stddev\": null}",
           "mean_stddev", (const float[4]){ 0.01f });
}

static void refused(void **state)
{
    static const char text[] =
        "{\"task\": \"detection\", \"model\": {\"name\": \"ssd_mobilenet_v1\", \"box_coder\": "
        "{\"type\": \"keypoint\"}}, \"data\": {\"label_map\": \"%s\"}}";
    struct setup s;

    (void)state;
    assert_int_equal(open_setup(text, "", &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "model.box_coder.type: keypoint needs the "
                                            "number of keypoints"));
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_net_has_its_own),
        cmocka_unit_test(recipe_of_retinanet),
        cmocka_unit_test(numbers_without_a_type),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
