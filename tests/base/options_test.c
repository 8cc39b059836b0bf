/* Option tables: defaults, every type's parsing, messages, dump, schema. */
#include "unit.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pumice/options.h>

struct all_cfg {
    bool flag;
    int size;
    int64_t seed;
    float rate;
    double precise;
    int mode;
    const char *name, *unset;
    struct pm_ints kernel;
    struct pm_floats scales;
    struct pm_strings words;
    const cJSON *free_form;
};

static const struct pm_opt opts[] = {
    PM_BOOL(all_cfg, flag, true, "a switch"),
    PM_INT(all_cfg, size, 3, 1, 64, "step between windows"),
    PM_INT64(all_cfg, seed, 1, 0, 9007199254740991, "the seed"),
    PM_FLOAT(all_cfg, rate, 0.94, 0, INFINITY, "a rate"),
    PM_DOUBLE(all_cfg, precise, 0.1, -1, 1, "a double"),
    PM_ENUM(all_cfg, mode, 1, "same|valid|full", "padding"),
    PM_STRING(all_cfg, name, "x", "a name"),
    PM_STRING(all_cfg, unset, NULL, "no name"),
    PM_INTS(all_cfg, kernel, "[3, 3]", 1, 99, "window"),
    PM_FLOATS(all_cfg, scales, NULL, 0, 4, "scales"),
    PM_STRINGS(all_cfg, words, "[\"a\"]", "words"),
    PM_JSON(all_cfg, free_form, "anything"),
    { 0 },
};

struct fixture {
    struct pm_arena *arena;
    cJSON *object;
    struct all_cfg cfg;
};

static int parse(struct fixture *f, const char *text)
{
    int err = pm_json_parse("test", text, &f->object);

    assert_int_equal(err, 0);
    f->arena = pm_arena_create();
    return pm_opts_parse(opts, f->object, NULL, &f->cfg, f->arena, "t.json: model.layers[3]");
}

static void release(struct fixture *f)
{
    pm_arena_destroy(&f->arena);
    cJSON_Delete(f->object);
    f->object = NULL;
}

static void check_defaults(const struct all_cfg *c)
{
    assert_true(c->flag);
    assert_int_equal(c->size, 3);
    assert_int_equal(c->seed, 1);
    assert_true(c->rate == 0.94f);
    assert_true(c->precise == 0.1);
    assert_int_equal(c->mode, 1);
    assert_string_equal(c->name, "x");
    assert_null(c->unset);
    assert_int_equal(c->kernel.count, 2);
    assert_int_equal(c->kernel.v[1], 3);
    assert_int_equal(c->scales.count, 0);
    assert_int_equal(c->words.count, 1);
    assert_string_equal(c->words.v[0], "a");
    assert_null(c->free_form);
}

static void defaults(void **state)
{
    struct fixture f = { 0 };
    (void)state;

    assert_int_equal(parse(&f, "{}"), 0);
    check_defaults(&f.cfg);
    release(&f);
    /* null stands for the default, for every type. */
    assert_int_equal(parse(&f, "{\"flag\": null, \"size\": null, \"seed\": null, \"rate\": null,"
                               "\"precise\": null, \"mode\": null, \"name\": null, \"unset\": null,"
                               "\"kernel\": null, \"scales\": null, \"words\": null,"
                               "\"free_form\": null}"),
                     0);
    check_defaults(&f.cfg);
    release(&f);
}

static void values(void **state)
{
    struct fixture f = { 0 };
    (void)state;

    assert_int_equal(parse(&f, "{\"flag\": false, \"size\": 64, \"seed\": 9007199254740991,"
                               "\"rate\": 1e30, \"precise\": -1, \"mode\": \"full\","
                               "\"name\": \"\", \"unset\": \"u\", \"kernel\": 5,"
                               "\"scales\": [0.5, 4], \"words\": \"w\", \"free_form\": [1]}"),
                     0);
    assert_false(f.cfg.flag);
    assert_int_equal(f.cfg.size, 64);
    assert_true(f.cfg.seed == INT64_C(9007199254740991));
    assert_true(f.cfg.rate == 1e30f);
    assert_true(f.cfg.precise == -1);
    assert_int_equal(f.cfg.mode, 2);
    assert_string_equal(f.cfg.name, "");
    assert_string_equal(f.cfg.unset, "u");
    assert_int_equal(f.cfg.kernel.count, 1);
    assert_int_equal(f.cfg.kernel.v[0], 5);
    assert_true(f.cfg.scales.count == 2 && f.cfg.scales.v[0] == 0.5f && f.cfg.scales.v[1] == 4);
    assert_string_equal(f.cfg.words.v[0], "w");
    assert_int_equal(cJSON_GetArraySize(f.cfg.free_form), 1);
    release(&f);
}

static void messages(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "{\"size\": 0}",
          "t.json: model.layers[3].size: 0 is outside 1..64 (step between windows)" },
        { "{\"size\": 65}", ".size: 65 is outside 1..64" },
        { "{\"size\": 2.5}", ".size: 2.5 is not an integer (step between windows)" },
        { "{\"size\": \"2\"}", ".size: \"2\" is a text: write the number without quotes" },
        { "{\"seed\": -1}", ".seed: -1 is outside 0..9007199254740991" },
        { "{\"rate\": -0.5}", ".rate: -0.5 is below 0 (a rate)" },
        { "{\"rate\": true}", ".rate: true is not a number" },
        { "{\"precise\": 1.0000001}", ".precise: 1.0000001 is outside -1..1" },
        { "{\"mode\": \"sam\"}", ".mode: \"sam\" is not one of same|valid|full (padding)" },
        { "{\"mode\": 1}", ".mode: 1 is not one of same|valid|full" },
        { "{\"flag\": 1}", ".flag: 1 is neither true nor false (a switch)" },
        { "{\"name\": 1.5}", ".name: 1.5 is not a string (a name)" },
        { "{\"kernel\": [3, 100]}", ".kernel: 100 is outside 1..99 (window)" },
        { "{\"kernel\": [3, \"x\"]}", ".kernel: \"x\" is not an integer" },
        { "{\"scales\": [[1]]}", ".scales: [1] is not a number" },
        { "{\"words\": [\"a\", 1]}", ".words: 1 is not a string" },
        { "{\"kernal\": 1}", ".kernal: unknown key, did you mean 'kernel'?" },
        { "{\"zzz\": 1}", ".zzz: unknown key (known: flag, size, seed, rate, precise, mode, name, "
                          "unset, kernel, scales, words, free_form)" },
        { "[1]", "t.json: model.layers[3]: an object" },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct fixture f = { 0 };
        assert_int_equal(parse(&f, cases[i].text), PM_ECONFIG);
        assert_contains(pm_error_text(), cases[i].message);
        release(&f);
    }
}

static void further_keys(void **state)
{
    static const char *const also[] = { "name_of_mine", NULL };
    struct pm_arena *a = pm_arena_create();
    struct all_cfg cfg;
    cJSON *object = NULL;
    (void)state;

    assert_int_equal(pm_json_parse("t", "{\"name_of_mine\": 1, \"size\": 2}", &object), 0);
    assert_int_equal(pm_opts_parse(opts, object, also, &cfg, a, "t"), 0);
    assert_int_equal(cfg.size, 2);
    cJSON_Delete(object);
    assert_int_equal(pm_json_parse("t", "{\"name_of_mein\": 1}", &object), 0);
    assert_int_equal(pm_opts_parse(opts, object, also, &cfg, a, "t:1:"), PM_ECONFIG);
    assert_contains(pm_error_text(), "t:1: name_of_mein: unknown key, did you mean 'name_of_mine'");
    cJSON_Delete(object);
    pm_arena_destroy(&a);
}

struct small_cfg {
    int size;
    float rate;
    const char *name;
    struct pm_ints kernel;
};

static const struct pm_opt small_opts[] = {
    PM_INT(small_cfg, size, 3, 1, 64, "a size"),
    PM_FLOAT(small_cfg, rate, 0.1, 0, 1, "a rate"),
    PM_STRING(small_cfg, name, NULL, "a name"),
    PM_INTS(small_cfg, kernel, "[3]", 1, 9, "window"),
    { 0 },
};

static void text(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct small_cfg cfg;
    (void)state;

    assert_int_equal(
        pm_opts_parse_text(small_opts, "size=4  kernel=[1,2] name=abc=d", &cfg, a, "t"), 0);
    assert_int_equal(cfg.size, 4);
    assert_int_equal(cfg.kernel.v[1], 2);
    assert_string_equal(cfg.name, "abc=d");
    assert_true(cfg.rate == 0.1f);
    assert_int_equal(pm_opts_parse_text(small_opts, "size", &cfg, a, "t"), PM_ECONFIG);
    assert_contains(pm_error_text(), "t: 'size' is not key=value");
    assert_int_equal(pm_opts_parse_text(small_opts, "size=1 size=2", &cfg, a, "t"), PM_ECONFIG);
    assert_contains(pm_error_text(), "t.size: is given twice");
    assert_int_equal(pm_opts_parse_text(small_opts, "size=big", &cfg, a, "t"), PM_ECONFIG);
    assert_contains(pm_error_text(), "t.size: \"big\" is not an integer");
    pm_arena_destroy(&a);
}

static void dump(void **state)
{
    struct fixture f = { 0 };
    cJSON *out = cJSON_CreateObject();
    (void)state;

    assert_int_equal(parse(&f, "{\"rate\": 0.1, \"mode\": \"same\", \"scales\": [0.7], "
                               "\"size\": 3, \"unset\": \"u\"}"),
                     0);
    pm_opts_dump(opts, &f.cfg, out, true);
    char *printed = cJSON_PrintUnformatted(out);
    assert_string_equal(printed,
                        "{\"rate\":0.1,\"mode\":\"same\",\"unset\":\"u\",\"scales\":[0.7]}");
    free(printed);
    cJSON_Delete(out);

    /* A dumped number reads back to the same bits. */
    for (int i = 1; i < 2000; i++) {
        struct all_cfg again;
        f.cfg.rate = (float)i / 997;
        f.cfg.precise = i / 1999.0;
        out = cJSON_CreateObject();
        pm_opts_dump(opts, &f.cfg, out, false);
        char *whole = pm_json_print(out);
        cJSON *back = NULL;
        assert_int_equal(pm_json_parse("t", whole, &back), 0);
        assert_int_equal(pm_opts_parse(opts, back, NULL, &again, f.arena, "t"), 0);
        assert_true(again.rate == f.cfg.rate && again.precise == f.cfg.precise);
        pm_free(whole);
        cJSON_Delete(back);
        cJSON_Delete(out);
    }
    release(&f);
}

static void schema(void **state)
{
    cJSON *out = cJSON_CreateObject();
    (void)state;

    pm_opts_schema(opts, out);
    char *printed = cJSON_PrintUnformatted(out);
    assert_contains(printed,
                    "\"size\":{\"type\":[\"integer\",\"null\"],\"minimum\":1,\"maximum\":64,"
                    "\"description\":\"step between windows\",\"default\":3}");
    assert_contains(printed, "\"rate\":{\"type\":[\"number\",\"null\"],\"minimum\":0,"
                             "\"description\":\"a rate\",\"default\":0.94}");
    assert_contains(printed, "\"mode\":{\"enum\":[\"same\",\"valid\",\"full\",null],"
                             "\"description\":\"padding\",\"default\":\"valid\"}");
    assert_contains(printed, "\"kernel\":{\"type\":[\"array\",\"integer\",\"null\"],\"items\":"
                             "{\"type\":\"integer\",\"minimum\":1,\"maximum\":99}");
    assert_contains(printed, "\"free_form\":{\"description\":\"anything\"}");
    free(printed);
    cJSON_Delete(out);
}

struct unset_cfg { int width; int64_t length; };

/* A whole number without a default: -1 in the struct, null in JSON. */
static void unset_numbers(void **state)
{
    static const struct pm_opt table[] = {
        PM_INT(unset_cfg, width, NAN, 0, 9, "a width"),
        PM_INT64(unset_cfg, length, NAN, 0, 9, "a length"),
        { 0 },
    };
    struct pm_arena *a = pm_arena_create();
    struct unset_cfg cfg = { 1, 1 };
    cJSON *object = NULL, *dump = cJSON_CreateObject();
    char *text;
    (void)state;

    pm_opts_defaults(table, &cfg, a);
    assert_int_equal(cfg.width, PM_UNSET);
    assert_true(cfg.length == PM_UNSET);
    pm_opts_dump(table, &cfg, dump, false);
    text = cJSON_PrintUnformatted(dump);
    assert_string_equal(text, "{\"width\":null,\"length\":null}");
    free(text);
    cJSON_Delete(dump);
    assert_int_equal(pm_json_parse("t", "{\"width\": 0, \"length\": 0}", &object), 0);
    assert_int_equal(pm_opts_parse(table, object, NULL, &cfg, a, "t"), 0);
    assert_int_equal(cfg.width, 0);
    dump = cJSON_CreateObject();
    pm_opts_dump(table, &cfg, dump, true);
    text = cJSON_PrintUnformatted(dump);
    assert_string_equal(text, "{\"width\":0,\"length\":0}");
    free(text);
    cJSON_Delete(dump);
    cJSON_Delete(object);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),     cmocka_unit_test(values), cmocka_unit_test(messages),
        cmocka_unit_test(further_keys), cmocka_unit_test(text),   cmocka_unit_test(dump),
        cmocka_unit_test(schema),
        cmocka_unit_test(unset_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
