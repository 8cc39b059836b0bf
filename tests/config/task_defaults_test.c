/* A task's own defaults: DeepLab's for segmentation, TF-Slim's for the other tasks. The rows are
 * those of the program. */
#include "../base/unit.h"

#include "optim/schedule.h"

#include <pumice/options.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>

static struct pm_arena *arena;
static struct pm_open_sections rows;

#define SEGMENTATION "\"task\": \"segmentation\", \"model\": {\"layers\": []}"

static struct pm_config *load(const char *text, const char *const *overrides, size_t n)
{
    struct pm_config *c = NULL;

    if (pm_config_parse("t.json", text, overrides, n, &rows, &c) < 0)
        fail_msg("%s", pm_error_text());
    return c;
}

/* Returns a value of the resolved config as text, in the arena. */
static const char *value(const struct pm_config *c, const char *section, const char *key)
{
    cJSON *dump = pm_config_dump(c);
    char *text = pm_json_print(cJSON_GetObjectItem(cJSON_GetObjectItem(dump, section), key));
    const char *copy = pm_arena_strdup(arena, text);

    pm_free(text);
    cJSON_Delete(dump);
    return copy;
}

/* The flags of DeepLab's train, eval and vis programs. */
static void plain_segmentation(void **state)
{
    static const struct {
        const char *section, *key, *here, *classification;
    } cases[] = {
        { "optim", "name", "\"momentum\"", "\"rmsprop\"" },
        { "optim", "momentum", "0.9", "0.9" },
        { "schedule", "policy", "\"polynomial\"", "\"exponential\"" },
        { "schedule", "base_lr", "0.0001", "0.01" },
        { "schedule", "end_lr", "0", "0.0001" },
        { "schedule", "power", "0.9", "1" },
        { "schedule", "num_epochs_per_decay", "0", "2" },
        { "schedule", "decay_steps", "0", "0" },
        { "schedule", "decay_factor", "0.1", "0.94" },
        { "schedule", "warmup_steps", "0", "0" },
        { "schedule", "warmup_lr", "0.0001", "0" },
        { "schedule", "warmup_shape", "\"constant\"", "\"linear\"" },
        { "schedule", "warmup_shift", "true", "false" },
        { "init", "ignore_missing", "true", "false" },
        { "run", "batch_size", "8", "32" },
        { "run", "log_every_steps", "10", "10" },
        { "run", "save_every_secs", "1200", "600" },
        { "run", "keep", "5", "5" },
        { "eval", "batch_size", "1", "100" },
        { "eval", "interval_secs", "300", "60" },
    };
    struct pm_config *deeplab = load("{" SEGMENTATION "}", NULL, 0);
    struct pm_config *slim = load("{\"model\": {\"layers\": []}}", NULL, 0);
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const char *path = pm_arena_printf(arena, "%s.%s", cases[i].section, cases[i].key);
        const bool own = strcmp(cases[i].here, cases[i].classification) != 0;

        assert_string_equal(value(deeplab, cases[i].section, cases[i].key), cases[i].here);
        assert_string_equal(value(slim, cases[i].section, cases[i].key), cases[i].classification);
        assert_string_equal(pm_config_origin(deeplab, path),
                            own ? "default of segmentation" : "default");
        assert_string_equal(pm_config_origin(slim, path), "default");
        assert_true(pm_config_is_default(deeplab, path) && pm_config_is_default(slim, path));
    }
    pm_config_destroy(&deeplab);
    pm_config_destroy(&slim);
}

/* The Object Detection API's optimizers and rates. Only the chosen ones have defaults there. */
static void plain_detection(void **state)
{
    static const char *const overrides[] = { "optim.name=adam", "schedule.policy=cosine" };
    static const char text[] = "{\"task\": \"detection\", \"model\": {\"layers\": []}}";
    struct pm_config *c = load(text, NULL, 0);
    (void)state;

    assert_string_equal(c->optim.name, "rmsprop");
    assert_true(c->schedule.base_lr == 0.002 && c->schedule.decay_factor == 0.95);
    assert_true(c->schedule.decay_steps == 4000000 && c->eval.interval_secs == 300);
    assert_string_equal(pm_config_origin(c, "schedule.base_lr"), "default of detection");
    pm_config_destroy(&c);
    c = load(text, overrides, PM_COUNT(overrides));
    assert_true(c->schedule.decay_steps == 0 && c->schedule.end_lr == 0);
    assert_string_equal(value(c, "optim", "epsilon"), "1e-08");
    pm_config_destroy(&c);
}

/* A value of the config wins, also that of a base or the command line. null is the default. */
static void given_values(void **state)
{
    static const char text[] = "{" SEGMENTATION ",\n\"optim\": {\"name\": \"rmsprop\"},\n"
                               "\"schedule\": {\"base_lr\": 0.5, \"power\": null},\n"
                               "\"run\": null, \"init\": {\"ignore_missing\": false}}";
    static const char *const overrides[] = { "run.batch_size=3", "eval.batch_size=null" };
    struct pm_config *c = load(text, overrides, PM_COUNT(overrides));
    (void)state;

    assert_string_equal(c->optim.name, "rmsprop");
    assert_string_equal(value(c, "optim", "epsilon"), "1"); /* only adam has DeepLab's */
    assert_string_equal(pm_config_origin(c, "optim.name"), "t.json:2");
    assert_false(pm_config_is_default(c, "optim.name"));
    assert_true(c->schedule.base_lr == 0.5 && c->schedule.power == 0.9);
    assert_string_equal(pm_config_origin(c, "schedule.power"), "default of segmentation");
    assert_false(c->init.ignore_missing);
    assert_int_equal(c->run.batch_size, 3);
    assert_true(c->run.save_every_secs == 1200);
    assert_int_equal(c->eval.batch_size, 1);
    assert_string_equal(pm_config_origin(c, "run.batch_size"), "command line");
    pm_config_destroy(&c);
}

/* adam has a constant rate of its own; the policy "step" has its own length. */
static void defaults_by_choice(void **state)
{
    static const char *const adam[] = { "optim.name=adam" };
    static const char *const falling[] = { "optim.name=adam", "schedule.policy=polynomial",
                                           "schedule.base_lr=0.002" };
    static const char *const step[] = { "schedule.policy=exponential" };
    struct pm_config *c = load("{" SEGMENTATION "}", adam, 1);
    (void)state;

    assert_int_equal(c->schedule.policy, PM_POLICY_FIXED);
    assert_true(c->schedule.base_lr == 0.001);
    assert_string_equal(value(c, "optim", "epsilon"), "1e-08");
    pm_config_destroy(&c);
    c = load("{" SEGMENTATION "}", falling, PM_COUNT(falling));
    assert_int_equal(c->schedule.policy, PM_POLICY_POLYNOMIAL);
    assert_true(c->schedule.base_lr == 0.002 && c->schedule.num_epochs_per_decay == 0);
    pm_config_destroy(&c);
    c = load("{" SEGMENTATION "}", step, 1);
    assert_true(c->schedule.decay_steps == 2000 && c->schedule.decay_factor == 0.1);
    assert_true(c->schedule.base_lr == 0.0001);
    pm_config_destroy(&c);
    c = load("{\"model\": {\"layers\": []}}", adam, 1);
    assert_int_equal(c->schedule.policy, PM_POLICY_EXPONENTIAL);
    assert_string_equal(value(c, "optim", "epsilon"), "1");
    pm_config_destroy(&c);
}

/* A constant 1e-4 until the slow start ends; then the policy from its step 0, over the rest of the
 * run. */
static void slow_start(void **state)
{
    static const char *const overrides[] = { "schedule.warmup_steps=100",
                                             "schedule.base_lr=0.007" };
    struct pm_config *c = load("{" SEGMENTATION "}", overrides, PM_COUNT(overrides));
    struct pm_schedule s;
    (void)state;

    assert_int_equal(pm_schedule_make(&c->schedule, 1000, 8, 1, 1100, &s), PM_OK);
    assert_true(pm_schedule_rate(&s, 0) == 1e-4f && pm_schedule_rate(&s, 99) == 1e-4f);
    assert_true(pm_schedule_rate(&s, 100) == 0.007f);
    assert_true(fabs(pm_schedule_rate(&s, 600) - 0.007 * pow(0.5, 0.9)) < 1e-8);
    assert_true(pm_schedule_rate(&s, 1100) == 0);
    pm_config_destroy(&c);
}

/* The resolved config loads as the same config. */
static void printed_again(void **state)
{
    struct pm_config *c = load("{" SEGMENTATION ", \"optim\": {\"name\": \"adam\"}}", NULL, 0);
    cJSON *first = pm_config_dump(c);
    char *text = pm_json_print(first);
    struct pm_config *again = load(text, NULL, 0);
    cJSON *second = pm_config_dump(again);
    (void)state;

    assert_true(cJSON_Compare(first, second, true));
    assert_false(pm_config_is_default(again, "schedule.policy"));
    cJSON_Delete(first);
    cJSON_Delete(second);
    pm_free(text);
    pm_config_destroy(&c);
    pm_config_destroy(&again);
}

/* A section that is no object is still an error with its place. */
static void wrong_section(void **state)
{
    struct pm_config *c = NULL;
    (void)state;

    assert_int_equal(pm_config_parse("t.json", "{" SEGMENTATION ",\n\"schedule\": 3}", NULL, 0,
                                     &rows, &c),
                     PM_ECONFIG);
    assert_contains(pm_error_text(), "t.json:2: schedule: an object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_segmentation), cmocka_unit_test(given_values),
        cmocka_unit_test(plain_detection),
        cmocka_unit_test(defaults_by_choice), cmocka_unit_test(slow_start),
        cmocka_unit_test(printed_again),      cmocka_unit_test(wrong_section),
    };
    int failed;

    arena = pm_arena_create();
    rows = pm_train_choices(arena);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_arena_destroy(&arena);
    return failed;
}
