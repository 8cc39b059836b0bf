/* Loading a config: defaults, merging, overrides, origins, and its printed form. */
#include "config_rows.h"

#include <cjson/cJSON.h>

static void defaults(void **state)
{
    struct pm_config *c = load("{\"model\": {\"name\": \"lenet\"}}", NULL, 0);
    int height, width;
    (void)state;

    assert_string_equal(c->task, "classification");
    assert_string_equal(c->model.name, "lenet");
    assert_string_equal(c->input.preprocessing, "plain");
    assert_ptr_equal(c->model_row, &nets[0]);
    assert_ptr_equal(c->preprocessing_row, &pres[0]);
    assert_ptr_equal(c->optimizer_row, &optimizers[2]);
    assert_true(isnan(c->optim.weight_decay));
    assert_true(c->schedule.base_lr == 0.01);
    assert_int_equal(c->schedule.policy, PM_POLICY_EXPONENTIAL);
    assert_int_equal(c->run.batch_size, 32);
    assert_int_equal(c->devices_count, 1);
    assert_string_equal(c->devices[0].name, "auto");
    assert_null(c->run.folder);
    pm_config_size(c, true, &height, &width);
    assert_int_equal(height, 0);
    assert_int_equal(pm_config_need(c, "run.folder", c->run.folder), PM_ECONFIG);
    assert_contains(pm_error_text(), "t.json: run.folder is not given and this command needs it");
    assert_string_equal(pm_config_origin(c, "model.name"), "t.json:1");
    assert_string_equal(pm_config_origin(c, "model.num_classes"), "default");
    assert_string_equal(pm_config_origin(c, "run.steps"), "default");
    pm_config_destroy(&c);
    assert_null(c);
    pm_config_destroy(&c);
}

static void values(void **state)
{
    static const char text[] =
        "{ // all kinds\n"
        "  \"task\": \"classification\", \"description\": \"d\", \"$schema\": \"s\",\n"
        "  \"model\": {\"name\": \"cifarnet\", \"num_classes\": 7},\n"
        "  \"input\": {\"size\": [20, 30], \"eval_size\": 40, \"fast\": false},\n"
        "  \"optim\": {\"name\": \"momentum\", \"momentum\": 0.5, \"weight_decay\": 0,\n"
        "            \"multipliers\": {\".*/biases\": 2, \"x\": 0}, \"freeze\": \"a/.*\"},\n"
        "  \"devices\": [\"cpu\", {\"name\": \"vulkan:0\", \"threads\": 3}],\n"
        "  \"run\": {\"steps\": 9007199254740991, \"seed\": null, \"balance\": \"auto\"}\n"
        "}";
    struct pm_config *c = load(text, NULL, 0);
    struct momentum_cfg momentum;
    struct pre_cfg pre;
    int height, width;
    (void)state;

    pm_config_size(c, true, &height, &width);
    assert_true(height == 20 && width == 30);
    pm_config_size(c, false, &height, &width);
    assert_true(height == 40 && width == 40);
    assert_int_equal(pm_config_read(c, "optim", momentum_opts, &momentum), 0);
    assert_true(momentum.momentum == 0.5f && !momentum.nesterov);
    assert_int_equal(pm_config_read(c, "input", pre_opts, &pre), 0);
    assert_false(pre.fast);
    assert_true(c->optim.weight_decay == 0);
    assert_int_equal(c->optim.multiplier_count, 2);
    assert_string_equal(c->optim.multiplier[0].pattern, ".*/biases");
    assert_true(c->optim.multiplier[0].factor == 2 && c->optim.multiplier[1].factor == 0);
    assert_string_equal(c->optim.freeze.v[0], "a/.*");
    assert_int_equal(c->devices_count, 2);
    assert_string_equal(c->devices[1].name, "vulkan:0");
    assert_int_equal(c->devices[1].threads, 3);
    assert_true(c->run.steps == INT64_C(9007199254740991));
    assert_int_equal(c->run.seed, 1);
    assert_int_equal(c->run.balance, PM_BALANCE_AUTO);
    assert_string_equal(pm_config_origin(c, "optim.momentum"), "t.json:5");
    assert_string_equal(pm_config_origin(c, "optim.freeze"), "t.json:6");
    assert_string_equal(pm_config_origin(c, "devices"), "t.json:7");
    pm_config_destroy(&c);
}

/* Segmentation doubles the learning rate of biases, unless the config has its own factors. */
static void segmentation_doubles_biases(void **state)
{
    static const char *const cases[] = {
        "{\"task\": \"segmentation\", \"model\": {\"layers\": []}}",
        "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, \"optim\": {\"multipliers\": "
        "{}}}",
        "{\"model\": {\"layers\": []}}",
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_config *c = NULL;
        if (pm_config_parse("t.json", cases[i], NULL, 0, &rows, &c) < 0)
            fail_msg("%s", pm_error_text());
        assert_int_equal(c->optim.multiplier_count, i == 0);
        if (i == 0) {
            assert_string_equal(c->optim.multiplier[0].pattern, ".*biases");
            assert_true(c->optim.multiplier[0].factor == 2);
            assert_string_equal(c->task, "segmentation");
        }
        pm_config_destroy(&c);
    }
}

/* Segmentation uses DeepLab's polynomial schedule over the whole run, unless the config sets its
 * length. */
static void segmentation_falls_over_the_run(void **state)
{
    static const struct {
        const char *text;
        double epochs;
    } cases[] = {
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, "
          "\"schedule\": {\"policy\": \"polynomial\"}}", 0 },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, "
          "\"schedule\": {\"policy\": \"polynomial\", \"num_epochs_per_decay\": 2}}", 2 },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": []}}", 0 },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, "
          "\"schedule\": {\"policy\": \"exponential\"}}", 2 },
        { "{\"model\": {\"layers\": []}, \"schedule\": {\"policy\": \"polynomial\"}}", 2 },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_config *c = NULL;
        if (pm_config_parse("t.json", cases[i].text, NULL, 0, &rows, &c) < 0)
            fail_msg("%s", pm_error_text());
        assert_true(c->schedule.num_epochs_per_decay == cases[i].epochs);
        cJSON *dump = pm_config_dump(c);
        const cJSON *schedule = cJSON_GetObjectItem(dump, "schedule");
        assert_true(cJSON_GetObjectItem(schedule, "num_epochs_per_decay")->valuedouble ==
                    cases[i].epochs);
        cJSON_Delete(dump);
        pm_config_destroy(&c);
    }
}

/* A net without a task fits every task. A task may name another task whose nets it also uses. */
static void nets_of_tasks(void **state)
{
    static const struct pm_open_task mine = { .name = "mine", .nets_of = "classification" };
    const struct pm_open_sections own = { { nets, 2 }, { optimizers, 3 }, { pres, 2 },
                                          { augmentations, 2 },
                                          (const struct pm_open_task *[]){ &mine }, 1 };
    struct pm_config *c =
        load("{\"task\": \"segmentation\", \"model\": {\"name\": \"cifarnet\"}}", NULL, 0);

    (void)state;
    assert_string_equal(c->model.name, "cifarnet");
    pm_config_destroy(&c);
    if (pm_config_parse("t.json", "{\"model\": {\"name\": \"lenet\"}}", NULL, 0, &own, &c) < 0)
        fail_msg("%s", pm_error_text());
    assert_string_equal(c->task, "mine");
    pm_config_destroy(&c);
}

static void overrides(void **state)
{
    static const char *const good[] = {
        "run.steps=7",
        "data.folder=a/b=c",
        "devices=cpu",
        "optim.name=adam",
        "optim.beta1=0.25",
        "model.layers.1.filters=8",
        "schedule={\"policy\": \"fixed\"}",
        "run.folder=null",
        "run.steps=8",
    };
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "run.steps", "command line: 'run.steps' is not key=value" },
        { "=3", "command line: '=3' is not key=value" },
        { "run..steps=3", "command line: 'run..steps' is not a dotted key" },
        { "run.steps.=3", "is not a dotted key" },
        { "run.seed.x=3", "command line: run.seed.x: the parent of 'x' is neither an object nor" },
        { "model.layers.2.filters=3",
          "'2' is not an index of this list of 2 entries (counted from 0)" },
        { "model.layers.x=3", "'x' is not an index" },
        { "model.layers.-1=3", "'-1' is not an index" },
        { "run.steps=many", "command line: run.steps: \"many\" is not an integer" },
        { "run.stesp=3", "command line: run.stesp: unknown key, did you mean 'steps'?" },
        { "base=x.json", "base: this key is allowed in files only" },
    };
    static const char text[] =
        "{\"model\": {\"layers\": [{\"layer\": \"a\"}, {\"layer\": \"b\"}]},\n"
        " \"run\": {\"seed\": 3, \"folder\": \"x\"}, \"schedule\": {\"base_lr\": 1}}";
    struct pm_config *c = load(text, good, PM_COUNT(good));
    struct adam_cfg adam;
    (void)state;

    assert_int_equal(c->run.steps, 8);
    assert_int_equal(c->run.seed, 3);
    assert_null(c->run.folder);
    assert_string_equal(c->data.folder, "a/b=c");
    assert_string_equal(c->devices[0].name, "cpu");
    assert_int_equal(pm_config_read(c, "optim", adam_opts, &adam), 0);
    assert_true(adam.beta1 == 0.25f);
    assert_int_equal(c->schedule.policy, PM_POLICY_FIXED);
    assert_true(c->schedule.base_lr == 0.01); /* the object was replaced completely */
    const cJSON *layer = cJSON_GetArrayItem(c->model.layers, 1);
    assert_true(cJSON_GetObjectItem(layer, "filters")->valuedouble == 8);
    assert_string_equal(pm_config_origin(c, "model.layers.1.filters"), "command line");
    assert_string_equal(pm_config_origin(c, "model.layers.1.layer"), "t.json:1");
    assert_string_equal(pm_config_origin(c, "schedule.policy"), "command line");
    assert_string_equal(pm_config_origin(c, "schedule.base_lr"), "default");
    assert_string_equal(pm_config_origin(c, "run.seed"), "t.json:2");
    pm_config_destroy(&c);

    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        assert_int_equal(pm_config_parse("t.json", text, &bad[i].text, 1, &rows, &c), PM_ECONFIG);
        assert_contains(pm_error_text(), bad[i].message);
    }
}

static void write_text(struct pm_arena *a, const char *folder, const char *name, const char *text)
{
    assert_int_equal(pm_file_write(pm_arena_printf(a, "%s/%s", folder, name), text, strlen(text)),
                     0);
}

static void bases(void **state)
{
    char *folder = make_folder();
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;
    (void)state;

    assert_int_equal(pm_make_folders(pm_arena_printf(a, "%s/base", folder)), 0);
    write_text(a, folder, "base/a.json",
               "{\"base\": \"c.json\", \"run\": {\"steps\": 1,\n"
               "\"seed\": 1}}");
    write_text(a, folder, "base/b.json", "{\"run\": {\"steps\": 2, \"keep\": 2}}");
    write_text(a, folder, "base/c.json",
               "{\"run\": {\"steps\": 3, \"keep\": 3, "
               "\"log_every_steps\": 3},\n\"devices\": [\"x\", \"y\"]}");
    write_text(a, folder, "x.json",
               "{\"base\": [\"base/a.json\", \"base/b.json\"],\n"
               "\"model\": {\"name\": \"lenet\"},\n"
               "\"run\": {\"keep\": 9}, \"devices\": [\"cpu\"]}");
    const char *path = pm_arena_printf(a, "%s/x.json", folder);
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), 0);
    assert_int_equal(c->run.steps, 2);
    assert_int_equal(c->run.seed, 1);
    assert_int_equal(c->run.keep, 9);
    assert_int_equal(c->run.log_every_steps, 3);
    assert_int_equal(c->devices_count, 1); /* lists are replaced, not merged */
    assert_contains(pm_config_origin(c, "run.seed"), "/base/a.json:2");
    assert_contains(pm_config_origin(c, "run.keep"), "/x.json:3");
    pm_config_destroy(&c);

    write_text(a, folder, "base/c.json", "{\"base\": \"../x.json\"}");
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "base: the file is its own base, through ");
    write_text(a, folder, "base/c.json", "{\"run\": {\n\"stesp\": 1}}");
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "/base/c.json:2: run.stesp: unknown key");
    assert_int_equal(pm_file_write(path, "{}\0x", 4), 0);
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "it has a zero byte at offset 2");
    assert_int_equal(pm_config_load(folder, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "is a folder");
    pm_arena_destroy(&a);
    drop_folder(folder);
}

/* The printed config, loaded again, prints the same. */
static void dump(void **state)
{
    static const char text[] =
        "{\"model\": {\"layers\": [{\"layer\": \"conv2d\", \"filters\": 3}]},\n"
        "\"optim\": {\"name\": \"adam\", \"note\": \"n\", \"clip_norm\": 0.1,\n"
        "\"multipliers\": {\"a\": 0.3}}, \"loss\": {\"aux_weight\": 0.4},\n"
        "\"devices\": [{\"name\": \"cpu\", \"share\": 0.1}, {\"name\": \"cpu\", \"share\": 3}],\n"
        "\"input\": {\"preprocessing\": \"rich\", \"size\": 7}, \"run\": {\"folder\": \"f\"}}";
    struct pm_config *c = load(text, NULL, 0);
    cJSON *first = pm_config_dump(c);
    char *printed = pm_json_print(first);
    (void)state;

    pm_config_destroy(&c);
    c = load(printed, NULL, 0);
    cJSON *second = pm_config_dump(c);
    char *again = pm_json_print(second);
    assert_string_equal(printed, again);
    assert_contains(printed, "\"clip_norm\": 0.1,");
    assert_contains(printed, "{ \"name\": \"cpu\", \"share\": 0.1, \"threads\": 0 }");
    assert_contains(printed, "\"weight_decay\": null");
    pm_free(printed);
    pm_free(again);
    cJSON_Delete(first);
    cJSON_Delete(second);
    pm_config_destroy(&c);
}

/* Without rows, the names of rows and their keys are not checked. */
static void no_rows(void **state)
{
    const struct pm_open_sections none = { 0 };
    struct pm_config *c = NULL;
    (void)state;

    assert_int_equal(
        pm_config_parse("t.json", "{\"model\": {\"name\": \"any\", \"x\": 1}}", NULL, 0, &none, &c),
        0);
    assert_null(c->model_row);
    pm_config_destroy(&c);
}

static void expect_size(const struct pm_config *c, bool train, int height, int width)
{
    int h, w;

    pm_config_size(c, train, &h, &w);
    assert_int_equal(h, height);
    assert_int_equal(w, width);
}

/* The size with the most pixels comes first and is that of training; input.size remains that of
 * evaluation. */
static void buckets(void **state)
{
    struct pm_config *c = load(BUCKETS("[33, [65, 17], [49, 65], [65, 49]]"), NULL, 0);
    static const int sizes[][2] = { { 49, 65 }, { 33, 33 }, { 65, 17 }, { 65, 49 } };

    (void)state;
    assert_int_equal(c->buckets_count, 4);
    assert_memory_equal(c->buckets, sizes, sizeof sizes);
    expect_size(c, true, 49, 65);
    expect_size(c, false, 0, 0);
    pm_config_destroy(&c);
    c = load(BUCKETS("[33, 65], \"size\": 33"), NULL, 0);
    expect_size(c, true, 65, 65);
    expect_size(c, false, 33, 33);
    pm_config_destroy(&c);
    c = load(BUCKETS("null, \"size\": 33"), NULL, 0);
    assert_int_equal(c->buckets_count, 0);
    expect_size(c, true, 33, 33);
    pm_config_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(values), cmocka_unit_test(buckets),
        cmocka_unit_test(segmentation_doubles_biases),
        cmocka_unit_test(segmentation_falls_over_the_run),
        cmocka_unit_test(nets_of_tasks),
        cmocka_unit_test(overrides),
        cmocka_unit_test(bases),
        cmocka_unit_test(dump),
        cmocka_unit_test(no_rows),
    };

    rows.tasks = pm_open_tasks(&rows.task_count);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
