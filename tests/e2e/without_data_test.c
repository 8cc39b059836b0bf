/* predict and export when the data folder was moved or has other splits: the classes come from
 * the checkpoint. FOLDER/run is a classifier, FOLDER/seg a segmentation, both on drawn shapes.
 * FOLDER/data is then moved to FOLDER/moved, and FOLDER/test_only holds its test split. */
#include "e2e/program.h"

#include <pumice/onnx.h>

static const char seg_net[] =
    "{ \"task\": \"segmentation\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 4, \"stride\": 2, "
    "\"activation\": \"relu\" },\n"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 1 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 17 }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.05 },\n"
    "  \"run\": { \"folder\": \"%s/seg\", \"steps\": 2, \"batch_size\": 8 } }\n";

static void copy(const char *from, const char *to)
{
    char *bytes = NULL;
    size_t size;

    if (pm_file_read(from, &bytes, &size) < 0 || pm_file_write(to, bytes, size) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(bytes);
}

static int make(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_str text = { 0 };
    char **names = NULL;
    size_t n = 0;

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, seg_net, folder, folder);
    put_text(in("seg.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s run.folder=%s", in("net.json"), in("run")), 0);
    check(run(NULL, "train %s", in("seg.json")), 0);
    check(run(NULL, "dataset inspect %s --pictures %s", in("data"), in("pictures")), 0);
    copy(in("run/checkpoints/step-000003.safetensors"), in("bare.safetensors"));
    copy(in("seg/checkpoints/step-000002.safetensors"), in("bare_seg.safetensors"));
    if (rename(in("data"), in("moved")) != 0 || mkdir(in("test_only"), 0755) != 0 ||
        pm_list_folder(a, in("moved"), &names, &n) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (strstr(names[i], "test") || strcmp(names[i], "labels.txt") == 0 ||
            strcmp(names[i], "dataset.json") == 0)
            copy(in("moved/%s", names[i]), in("test_only/%s", names[i]));
    pm_arena_destroy(&a);
    return 0;
}

/* Checks the name of the first class that predict prints for the first picture, in list `rows`. */
static void check_names(const char *arguments, const char *rows, int classes, const char *message)
{
    struct result r = run(NULL, "predict %s %s --json", arguments, in("pictures"));
    cJSON *json = json_of(&r);
    const cJSON *image = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "images"), 0), *row;
    int named = 0;

    cJSON_ArrayForEach(row, cJSON_GetObjectItem(image, rows))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "name"));

        named += name && (strcmp(name, "disc") == 0 || strcmp(name, "box") == 0 ||
                          strcmp(name, "triangle") == 0 || strcmp(name, "ring") == 0 ||
                          strcmp(name, "ground") == 0);
    }
    assert_int_equal(named, cJSON_GetArraySize(cJSON_GetObjectItem(image, rows)));
    if (classes)
        assert_int_equal(named, classes);
    cJSON_Delete(json);
    if (message)
        assert_contains(r.err, message);
    check(r, 0);
}

static void the_checkpoint_knows(void **state)
{
    char arguments[1024];
    struct pm_onnx_model *m = NULL;

    (void)state;
    snprintf(arguments, sizeof arguments, "%s run.folder=%s", in("net.json"), in("run"));
    check_names(arguments, "top", 4, "does not exist: the class names come from ");
    check_names(in("seg.json"), "classes", 0, "does not exist: the class names come from ");
    check(run(NULL, "export %s %s", in("run"), in("named.onnx")), 0);
    if (pm_onnx_read(in("named.onnx"), &m) < 0)
        fail_msg("%s", pm_error_text());
    assert_non_null(pm_onnx_meta(m, "labels"));
    assert_contains(pm_onnx_meta(m, "labels"), "triangle");
    pm_onnx_close(&m);
    check(run(NULL, "export %s %s", in("seg"), in("seg.onnx")), 0);
    snprintf(arguments, sizeof arguments, "%s eval.checkpoint=%s", in("net.json"),
             in("named.onnx"));
    check_names(arguments, "top", 4, "named.onnx");
}

/* A checkpoint without names of classes: the data folder gives them, with any split. */
static void one_split_will_do(void **state)
{
    char arguments[2048];

    (void)state;
    snprintf(arguments, sizeof arguments,
             "%s data.eval_split=validation data.folder=%s eval.checkpoint=%s", in("net.json"),
             in("test_only"), in("bare.safetensors"));
    check_names(arguments, "top", 4, NULL);
    snprintf(arguments, sizeof arguments,
             "%s data.eval_split=validation data.folder=%s eval.checkpoint=%s", in("seg.json"),
             in("test_only"), in("bare_seg.safetensors"));
    check_names(arguments, "classes", 0, NULL);
}

static void nobody_knows(void **state)
{
    (void)state;
    check(
        run(NULL, "predict %s %s eval.checkpoint=%s", in("net.json"), in("pictures"),
            in("bare.safetensors")),
        2, "model.num_classes: not set, and ", "bare.safetensors nor ",
        "data, which does not exist, contains it; set data.folder=FOLDER to the place of the data");
    check(run(NULL, "predict %s %s eval.checkpoint=%s input.size=null", in("net.json"),
              in("pictures"), in("bare.safetensors")),
          2, "input.size: not set, and ",
          "or set data.folder=FOLDER to the place of the data");
    check(run(NULL, "predict %s %s eval.checkpoint=%s data.folder=null", in("net.json"),
              in("pictures"), in("bare.safetensors")), 2, "data.folder is not set");
    check(run(NULL, "predict %s %s eval.checkpoint=%s model.num_classes=4", in("net.json"),
              in("pictures"), in("bare.safetensors")), 0);
}

/* Edited or damaged text in the file beside a checkpoint. */
static void damaged_note(void **state)
{
    char *text = get_text(in("run/checkpoints/step-000003.json"));
    cJSON *json = cJSON_Parse(text), *data = cJSON_GetObjectItem(json, "data");
    char *changed;

    (void)state;
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItem(data, "labels"), 0)), "disc");
    cJSON_ReplaceItemInObject(data, "height", cJSON_CreateString("tall"));
    changed = cJSON_Print(json);
    put_text(in("run/checkpoints/step-000003.json"), changed);
    check(run(NULL, "predict %s %s run.folder=%s", in("net.json"), in("pictures"), in("run")), 3,
          "height is not a whole number");
    put_text(in("run/checkpoints/step-000003.json"), text);
    cJSON_free(changed);
    cJSON_Delete(json);
    pm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checkpoint_knows), cmocka_unit_test(one_split_will_do),
        cmocka_unit_test(nobody_knows), cmocka_unit_test(damaged_note),
    };

    return cmocka_run_group_tests(tests, make, drop_world);
}
