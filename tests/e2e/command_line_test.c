/* The command line as people type it: keys with dashes, flags and names of other programs, run
 * folders in place of configs, files that predict does not read, and help in a narrow terminal. */
#include "e2e/program.h"

#include <pumice/data.h>

static void dashed_keys(void **state)
{
    struct result r = run(NULL, "config show %s --run.steps=7 --json", in("net.json"));
    cJSON *json = json_of(&r);

    (void)state;
    assert_int_equal(r.code, 0);
    assert_true(number_of(cJSON_GetObjectItem(json, "run"), "steps") == 7);
    cJSON_Delete(json);
    drop(&r);
    check(run(NULL, "train %s --learning_rate=3", in("net.json")), 2,
          "has no flag '--learning_rate', did you mean the key schedule.base_lr=VALUE?");
    check(run(NULL, "train %s --batch-size-x 3", in("net.json")), 2,
          "has no flag '--batch-size-x'");
    check(run(NULL, "train %s --qqqqqq", in("net.json")), 2,
          "train has no flag '--qqqqqq' (pumice train --help)");
}

/* Each word is answered with the key or name that exists here. */
static void other_words(void **state)
{
    static const char *const keys[][2] = {
#define SUGGEST_KEY(word, key) { word, key },
#include "config/suggestions.def"
#undef SUGGEST_KEY
    };
    static const char *const names[][2] = {
#define SUGGEST_NAME(word, name) { word, name },
#include "config/suggestions.def"
#undef SUGGEST_NAME
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(keys); i++) {
        struct pm_str answer = { 0 };

        pm_str_add(&answer, "did you mean '%s'?", keys[i][1]);
        check(run(NULL, "config check %s %s=1", in("net.json"), keys[i][0]), 2, "command line: ",
              answer.text);
        check(run(NULL, "config check %s run.%s=1", in("net.json"), keys[i][0]), 2, answer.text);
        pm_str_free(&answer);
        /* The key exists: null is its default everywhere. */
        if (strchr(keys[i][1], '.') && strcmp(keys[i][1], "model.name") != 0)
            check(run(NULL, "config show %s model.layers=null model.name=cifarnet %s=null",
                      in("net.json"), keys[i][1]), 0);
    }
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        struct pm_str answer = { 0 };

        pm_str_add(&answer, "did you mean '%s'?", names[i][1]);
        check(run(NULL, "config check %s model.name=%s", in("net.json"), names[i][0]), 2,
              answer.text);
        pm_str_free(&answer);
    }
}

/* A run folder stands for the config in it. */
static void run_folders(void **state)
{
    struct result r;
    cJSON *json;

    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=3", in("net.json"), in("a")), 0);
    check(run(NULL, "train %s run.steps=5", in("a")), 0, "step 5/5");
    r = run(NULL, "eval %s --json", in("a"));
    assert_int_equal(r.code, 0);
    json = json_of(&r);
    assert_true(number_of(json, "step") == 5);
    cJSON_Delete(json);
    drop(&r);
    pm_make_folders(in("empty"));
    check(run(NULL, "eval %s", in("empty")), 2, "is a folder without config.json");
}

static void put_picture(const char *path)
{
    struct pm_image8 im = { 8, 8, 1, pm_calloc(64, 1) };
    uint8_t *bytes;
    size_t size;

    assert_int_equal(pm_image_encode_png(&im, &bytes, &size), PM_OK);
    assert_int_equal(pm_file_write(path, (const char *)bytes, size), PM_OK);
    pm_image_free(&im);
    pm_free(bytes);
}

/* predict names the other files of a folder, and not those that begin with a dot. */
static void other_files(void **state)
{
    struct result r;
    cJSON *json;

    (void)state;
    pm_make_folders(in("photos/inner"));
    put_picture(in("photos/one.png"));
    put_picture(in("photos/inner/two.PNG"));
    put_text(in("photos/inner/notes.txt"), "x");
    put_text(in("photos/.hidden"), "x");
    r = run(NULL, "predict %s %s --json", in("a"), in("photos"));
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "photos/inner/notes.txt: not read: its name does not end"));
    assert_null(strstr(r.err, ".hidden"));
    json = json_of(&r);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "images")), 2);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "not_read")), 1);
    cJSON_Delete(json);
    drop(&r);
}

/* Removes blanks and newlines, so that texts can be compared whatever their lines are. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *c = text; *c; c++)
        if (!isspace((unsigned char)*c))
            *to++ = *c;
    *to = '\0';
}

/* Help fits narrow terminals without losing a word, and does not change in wide ones. */
static void narrow_help(void **state)
{
    static const char *const commands[] = { "", "train", "predict", "dataset convert folder",
                                            "export", "config", "bench" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(commands); i++) {
        struct result plain = run(NULL, "%s --help", commands[i]);
        struct result wide = run(&(struct how){ .environment = "COLUMNS=500" }, "%s --help",
                                 commands[i]);
        struct result narrow = run(&(struct how){ .environment = "COLUMNS=50" }, "%s --help",
                                   commands[i]);

        assert_string_equal(plain.out, wide.out);
        for (const char *line = narrow.out; *line; line += strcspn(line, "\n"), line += !!*line) {
            const size_t indent = strspn(line, " "), length = strcspn(line, "\n");

            if (length > 50 && memchr(line + indent, ' ', length - indent))
                fail_msg("%s: more than 50 columns: %.*s", commands[i], (int)length, line);
        }
        squeeze(plain.out);
        squeeze(narrow.out);
        assert_string_equal(plain.out, narrow.out);
        drop(&plain);
        drop(&wide);
        drop(&narrow);
    }
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dashed_keys), cmocka_unit_test(other_words), cmocka_unit_test(run_folders),
        cmocka_unit_test(other_files), cmocka_unit_test(narrow_help),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
