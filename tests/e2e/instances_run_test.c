/* Instances with the program: every metric of an evaluation, including COCO's, is reported in
 * all places. A best metric that does not exist is refused before training. Predictions count
 * instances. */
#include "e2e/program.h"

static const char config[] =
    "{ \"task\": \"segmentation\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2,\n"
    "    \"activation\": \"relu\" },\n"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 1 },\n"
    "  { \"name\": \"instance_center\", \"layer\": \"conv2d\",\n"
    "    \"inputs\": [\"conv1\"], \"filters\": 1, \"kernel\": 1,\n"
    "    \"bias_init\": \"constant(1)\" },\n"
    "  { \"name\": \"instance_offset\", \"layer\": \"conv2d\",\n"
    "    \"inputs\": [\"conv1\"], \"filters\": 2, \"kernel\": 1 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 17 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 1e-5 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 2, \"batch_size\": 8, "
    "\"keep_best\": \"ar_small\" },\n"
    "  \"eval\": { \"every_steps\": 2, \"batch_size\": 8,\n"
    "    \"panoptic\": { \"precision\": \"coco\", \"least_area\": 1 } } }\n";

/* The metrics that exist for this data, small shapes; the others of the twelve have no value. */
static const char *const found[] = {
    "pq",  "sq",   "rq",    "pc",       "ap",   "ap50",           "ap75",          "ap_small",
    "ar1", "ar10", "ar100", "ar_small", "miou", "pixel_accuracy", "mean_accuracy", "fw_iou",
    "loss"
};
static const char *const absent[] = { "ap_medium", "ap_large", "ar_medium", "ar_large" };

static int train(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, config, folder, folder);
    put_text(in("instances.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s", in("instances.json")), 0, "  ar_small ", "  ar_large -",
          "best ar_small so far");
    return 0;
}

static void check_metrics(const cJSON *metrics)
{
    for (size_t i = 0; i < PM_COUNT(found); i++)
        assert_true(number_of(metrics, found[i]) >= 0);
    for (size_t i = 0; i < PM_COUNT(absent); i++)
        assert_true(cJSON_IsNull(cJSON_GetObjectItem(metrics, absent[i])));
}

static void trained(void **state)
{
    char *text = NULL, tag[64];
    const char *line;
    cJSON *json;

    (void)state;
    if (pm_file_read(in("run/metrics.jsonl"), &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    line = strstr(text, "{\"kind\": \"eval\"");
    assert_non_null(line);
    json = cJSON_ParseWithLength(line, strcspn(line, "\n"));
    check_metrics(json);
    cJSON_Delete(json);
    pm_free(text);
    for (size_t i = 0; i < PM_COUNT(found); i++) {
        snprintf(tag, sizeof tag, "eval/%s%s", found[i],
                 strcmp(found[i], "miou") ? "" : "_1.0_overall");
        if (strcmp(found[i], "loss") != 0 && !has_tag(in("run/eval"), tag))
            fail_msg("no %s in the event files", tag);
    }
    text = get_text(in("run/evaluation.json"));
    json = cJSON_Parse(text);
    check_metrics(cJSON_GetObjectItem(json, "metrics"));
    cJSON_Delete(json);
    pm_free(text);
    text = get_text(in("run/report.html"));
    for (size_t i = 0; i < PM_COUNT(found); i++) {
        snprintf(tag, sizeof tag, "<i></i>%s</li>", found[i]); /* entry of a legend; the loss is
                                                                * "evaluation" */
        assert_contains(text, strcmp(found[i], "loss") == 0 ? "<i></i>evaluation</li>" : tag);
    }
    pm_free(text);
}

static void evaluated(void **state)
{
    struct result r = run(NULL, "eval %s", in("instances.json"));
    cJSON *json;

    (void)state;
    assert_contains(r.out, "  ap50           0.");
    assert_contains(r.out, "  ar_large       -\n");
    check(r, 0);
    r = run(NULL, "eval %s --json", in("instances.json"));
    json = json_of(&r);
    check_metrics(cJSON_GetObjectItem(json, "metrics"));
    cJSON_Delete(json);
    check(r, 0);
    r = run(NULL, "eval %s eval.panoptic.precision=cityscapes", in("instances.json"));
    assert_contains(r.out, "  ap50           0.");
    assert_null(strstr(r.out, "ap75"));
    check(r, 0);
}

/* Number of instances of a class in the list of segments of --json. */
static int listed(const cJSON *image, double label)
{
    const cJSON *segment;
    int count = 0;

    cJSON_ArrayForEach(segment, cJSON_GetObjectItem(image, "segments"))
        count += cJSON_IsTrue(cJSON_GetObjectItem(segment, "thing")) &&
                 number_of(segment, "label") == label;
    return count;
}

/* The net has hardly been trained: heat starts at 1, and the backgrounds count as things, so
 * that there are instances. */
static void predicted(void **state)
{
    static const char any[] = "data.thing_classes=[0,1,2,3,4]";
    struct result r = run(NULL, "dataset inspect %s --records 2 --pictures %s", in("data"),
                          in("pictures"));
    int compared = 0;
    cJSON *json;

    (void)state;
    check(r, 0);
    r = run(NULL, "predict %s %s %s --json", in("instances.json"), in("pictures"), any);
    json = json_of(&r);
    check(r, 0);
    r = run(NULL, "predict %s %s %s", in("instances.json"), in("pictures"), any);
    const cJSON *image, *row;
    cJSON_ArrayForEach(image, cJSON_GetObjectItem(json, "images"))
    {
        struct pm_str line = { 0 };

        pm_str_add(&line, "%s:", cJSON_GetStringValue(cJSON_GetObjectItem(image, "file")));
        cJSON_ArrayForEach(row, cJSON_GetObjectItem(image, "classes"))
        {
            const int count = listed(image, number_of(row, "label"));

            pm_str_add(&line, "  %s %.1f %%",
                       cJSON_GetStringValue(cJSON_GetObjectItem(row, "name")),
                       100 * number_of(row, "share"));
            if (count > 0)
                pm_str_add(&line, " (%d)", count);
            compared += count;
        }
        pm_str_add(&line, "\n");
        assert_contains(r.out, line.text);
        pm_str_free(&line);
    }
    assert_true(compared > 0);
    cJSON_Delete(json);
    check(r, 0);
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s eval.panoptic.precision=cityscapes",
              in("instances.json"), in("no")),
          2,
          "'ar_small' is not a metric of this net's evaluation (pq, sq, rq, pc, ap, ap50, miou,");
    check(run(NULL, "train %s run.folder=%s eval.panoptic.precision=voc", in("instances.json"),
              in("no")), 2, "eval.panoptic.precision: \"voc\" is not one of cityscapes|coco");
    assert_false(pm_is_folder(in("no")));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(trained), cmocka_unit_test(evaluated),
                                        cmocka_unit_test(predicted), cmocka_unit_test(refused) };

    return cmocka_run_group_tests_name("instances_run", tests, train, drop_world);
}
