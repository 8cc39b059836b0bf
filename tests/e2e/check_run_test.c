/* config check with data: settings that do not fit the data are errors or warnings, each with its
 * exit code and its text. FOLDER/data has 40 training pictures of 4 classes, FOLDER/few pictures of
 * the classes a, b and c. */
#include "e2e/program.h"

#include <pumice/data.h>

static int make(void **state)
{
    static const char *const paths[] = { "photos", "photos/a", "photos/b", "photos/c" };
    const struct pm_image8 im = { .height = 20, .width = 20, .channels = 3,
                                  .pixels = (uint8_t[1200]){ 7 } };
    uint8_t *png = NULL;
    size_t size;

    (void)state;
    if (make_world(true) < 0 || pm_image_encode_png(&im, &png, &size) < 0)
        return -1;
    for (size_t i = 0; i < PM_COUNT(paths); i++)
        mkdir(in("%s", paths[i]), 0755);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 6; i++)
            if (pm_file_write(in("photos/%c/%d.png", 'a' + c, i), png, size) < 0)
                return -1;
    pm_free(png);
    check(run(NULL, "dataset convert folder %s %s", in("photos"), in("few")), 0);
    return 0;
}

/* Returns the findings of a check that must succeed, as JSON with the member findings. */
static cJSON *findings(const char *more)
{
    struct result r = run(NULL, "config check %s %s --json", in("net.json"), more);
    cJSON *json = json_of(&r);

    assert_int_equal(r.code, 0);
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(json, "findings")));
    drop(&r);
    return json;
}

static void expect_finding(const char *more, const char *level, const char *key, const char *text)
{
    cJSON *json = findings(more);
    const cJSON *list = cJSON_GetObjectItem(json, "findings"), *one = list->child;
    struct result r = run(NULL, "config check %s %s", in("net.json"), more);

    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(one, "level")), level);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(one, "key")), key);
    assert_contains(cJSON_GetStringValue(cJSON_GetObjectItem(one, "text")), text);
    assert_contains(r.out, strcmp(level, "warning") == 0 ? "net.json: 1 warning" :
                                                           "net.json: nothing wrong");
    assert_contains(r.out, text);
    cJSON_Delete(json);
    check(r, 0);
}

static void nothing(void **state)
{
    cJSON *json = findings("");

    (void)state;
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "findings")), 0);
    cJSON_Delete(json);
}

static void folders_and_splits(void **state)
{
    char text[1024];

    (void)state;
    snprintf(text, sizeof text, "data.folder=%s model.num_classes=4 input.size=16", in("mnist"));
    expect_finding(text, "warning", "data.folder", "pumice dataset download mnist ");
    expect_finding("data.folder=/nowhere/photos model.num_classes=4 input.size=16", "warning",
                   "data.folder", "/nowhere/photos does not exist");
    check(run(NULL, "config check %s data.train_split=tests", in("net.json")), 3,
          "there is no split tests; the splits are: test, train, validation");
    check(run(NULL, "config check %s data.eval_split=val", in("net.json")), 3,
          "there is no split val; the splits are: test, train, validation");
}

/* The text of a finding is whole, however long its path is. */
static void long_paths(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    pm_str_add(&text, "model.num_classes=4 input.size=16 data.folder=");
    for (int i = 0; i < 700; i++)
        pm_str_add(&text, "/\xc3\xa4");
    expect_finding(text.text, "warning", "data.folder",
                   "(pumice dataset --help lists the formats), or correct the path");
    pm_str_free(&text);
}

/* Training would make this data. */
static void data_to_come(void **state)
{
    cJSON *json = findings("data.folder=/nowhere/shapes data.make=shapes model.num_classes=4");

    (void)state;
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "findings")), 0);
    assert_false(pm_is_folder("/nowhere"));
    cJSON_Delete(json);
}

static const char lenet[] = "model.layers=null model.name=lenet input.preprocessing=lenet "
                            "input.size=28 input.channels=1";

static void classes(void **state)
{
    char text[1024];

    (void)state;
    check(run(NULL, "config check %s %s model.num_classes=2", in("net.json"), lenet), 2,
          "command line: model.num_classes: 2, but the data has 4 classes",
          "remove the key, or set it to 4");
    check(run(NULL, "config check %s %s model.num_classes=4 data.labels_offset=1", in("net.json"),
              lenet), 2, "a class that the net lacks",
          "correct data.labels_offset");
    snprintf(text, sizeof text, "%s model.num_classes=9", lenet);
    expect_finding(text, "warning", "model.num_classes", "9, but the data has only 4 classes");
}

/* labels.txt names a class that no picture has; then it lacks a class that pictures have. */
static void named_classes(void **state)
{
    char text[1024], *labels = get_text(in("few/labels.txt")), *json;

    (void)state;
    json = get_text(in("few/dataset.json"));
    put_text(in("few/labels.txt"), "0:a\n1:b\n2:c\n3:d\xc3\xa4\n");
    snprintf(text, sizeof text, "%s data.folder=%s data.eval_split=validation run.batch_size=4",
             lenet, in("few"));
    if (remove(in("few/dataset.json")) != 0)
        fail();
    expect_finding(text, "warning", "data.train_split",
                   "1 of 4 classes has no example in train, so the net cannot learn it: "
                   "d\xc3\xa4. ");
    put_text(in("few/labels.txt"), "0:a\n1:b\n");
    check(run(NULL, "config check %s %s", in("net.json"), text), 3,
          "model.num_classes: 2 (from the data), but ",
          " training records have a class that the net lacks (the first is ", "few_train");
    put_text(in("few/labels.txt"), labels);
    put_text(in("few/dataset.json"), json);
    pm_free(labels);
    pm_free(json);
}

/* Label maps and objects: every class is there, and one more that the config names is not. */
static void other_tasks(void **state)
{
    static const char seg[] =
        "{ \"task\": \"segmentation\", \"model\": { \"num_classes\": %d, \"layers\": [\n"
        "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": %d, \"kernel\": 1 } ] },\n"
        "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\" },\n"
        "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 17 }, \"devices\": [\"cpu\"],\n"
        "  \"run\": { \"steps\": 2, \"batch_size\": 8 } }\n";
    const struct { int classes, code; const char *text; } cases[] = {
        { 5, 0, "nothing wrong" },
        { 4, 2, NULL },
        { 6, 0, "6, but the data has only 5 classes" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_str text = { 0 };
        struct result r;

        pm_str_add(&text, seg, cases[i].classes, cases[i].classes, folder);
        put_text(in("seg.json"), text.text);
        pm_str_free(&text);
        r = run(NULL, "config check %s", in("seg.json"));
        if (cases[i].text)
            assert_contains(r.out, cases[i].text);
        check(r, cases[i].code,
              cases[i].code ? "model.num_classes: 4, but the data has 5 classes" : "");
    }
}

static void batches_and_rates(void **state)
{
    (void)state;
    expect_finding("run.batch_size=41", "warning", "run.batch_size", "41 is more than the 40");
    expect_finding("schedule.base_lr=10", "warning", "schedule.base_lr", "10 is far too large");
    expect_finding("schedule.base_lr=1e-7", "warning", "schedule.base_lr", "1e-07 is far too "
                   "small");
    expect_finding("schedule.policy=piecewise schedule.boundaries=[10] schedule.rates=[50]",
                   "warning", "schedule.base_lr", "50 is far too large");
    expect_finding("optim.name=adam schedule.base_lr=0.001", "warning", "optim.epsilon",
                   "1 is larger than usual gradients, so adam does not divide by their size, and "
                   "training with schedule.base_lr 0.001 is slow. Set optim.epsilon=1e-8");
    expect_finding("optim.name=adamw optim.epsilon=0.1 schedule.base_lr=0.01", "warning",
                   "optim.epsilon", "adamw does not divide");
}

/* Every optimizer has limits: 1000 is beyond all of them. Usual rates are within. */
static void optimizers(void **state)
{
    static const struct { const char *name, *usual; } all[] = {
        { "sgd", "0.1" },     { "momentum", "0.05" }, { "momentum", "0.0001" },
        { "rmsprop", "0.045" }, { "rmsprop optim.epsilon=1e-8 optim.momentum=0", "0.0001" },
        { "adam", "0.05" },   { "adam optim.epsilon=1e-8", "1e-5" }, { "adamw", "0.001" },
        { "nadam", "0.001" },
        { "lamb", "0.005" },  { "adagrad", "0.01" }, { "adadelta", "0.01" }, { "ftrl", "0.1" },
    };
    char text[256];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(all); i++) {
        cJSON *json;

        snprintf(text, sizeof text, "optim.name=%s schedule.base_lr=1000", all[i].name);
        expect_finding(text, "warning", "schedule.base_lr", "1000 is far too large for ");
        snprintf(text, sizeof text, "optim.name=%s schedule.base_lr=%s", all[i].name,
                 all[i].usual);
        json = findings(text);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "findings")), 0);
        cJSON_Delete(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing), cmocka_unit_test(folders_and_splits),
        cmocka_unit_test(long_paths),
        cmocka_unit_test(data_to_come), cmocka_unit_test(classes), cmocka_unit_test(named_classes),
        cmocka_unit_test(other_tasks), cmocka_unit_test(batches_and_rates),
        cmocka_unit_test(optimizers),
    };

    return cmocka_run_group_tests(tests, make, drop_world);
}
