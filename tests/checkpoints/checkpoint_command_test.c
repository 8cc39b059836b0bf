/* `pumice checkpoint inspect` and `diff` as programs: their JSON output and exit codes. */
#include <cjson/cJSON.h>
#include <math.h>
#include <pumice/checkpoint.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static char base[] = "/tmp/pumice-checkpoint-command-XXXXXX";
static const char *program;

/* Runs the program in the folder base. Returns its standard output; *code gets the exit code. */
static char *output(const char *arguments, int *code)
{
    struct pm_str command = { 0 }, text = { 0 };
    char piece[4096];
    size_t n;

    pm_str_add(&command, "cd '%s' && '%s' checkpoint %s 2>errors", base, program, arguments);
    FILE *f = popen(command.text, "r");
    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        pm_str_bytes(&text, piece, n);
    int status = pclose(f);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    pm_str_free(&command);
    return text.text ? text.text : pm_strdup("");
}

static cJSON *json(const char *arguments, int wanted)
{
    int code;
    char *text = output(arguments, &code);
    cJSON *o = cJSON_Parse(text);

    if (code != wanted)
        fail_msg("'%s' exited with %d, not %d: %s", arguments, code, wanted, text);
    if (!o)
        fail_msg("'%s' printed no JSON: %s", arguments, text);
    pm_free(text);
    return o;
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    if (!cJSON_IsNumber(v))
        fail_msg("no number '%s'", key);
    return v->valuedouble;
}

static const cJSON *named(const cJSON *o, const char *name)
{
    const cJSON *t, *key;

    cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(o, "tensors"))
    {
        key = cJSON_GetObjectItemCaseSensitive(t, "name");
        if (strcmp(key->valuestring, name) == 0)
            return t;
    }
    fail_msg("no tensor '%s'", name);
    return NULL;
}

static const char *difference(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(named(o, name), "difference")->valuestring;
}

static void save(const char *run, uint64_t step, struct pm_state_tensor *list, size_t count)
{
    char path[128];
    struct pm_keep keep = { .newest = 5 };

    snprintf(path, sizeof path, "%s/%s", base, run);
    assert_int_equal(pm_make_folders(path), 0);
    assert_int_equal(pm_checkpoint_save(path, step, list, count, "{\"config_hash\": \"x\"}", &keep),
                     0);
}

static int setup(void **state)
{
    float w[5000], v[] = { 3, -4, NAN }, x[] = { 1, 2 };
    struct pm_state_tensor list[] = {
        { "w", PM_SHAPE2(50, 100), w }, { "v", PM_SHAPE1(3), v }, { "only", PM_SHAPE1(2), x },
        { "x", PM_SHAPE1(2), x },
    };

    (void)state;
    program = getenv("PUMICE_PROGRAM");
    if (!program || !mkdtemp(base))
        return -1;
    for (int i = 0; i < 5000; i++)
        w[i] = 2;
    save("a", 7, list, 4);
    save("same", 9, list, 4);
    w[4999] = 2.5f;
    list[2].name = "other";
    list[3].shape = PM_SHAPE2(2, 1);
    save("b", 8, list, 4);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return pm_remove_tree(base);
}

static void inspects(void **state)
{
    cJSON *o = json("inspect a --json", 0);
    const cJSON *t = named(o, "w");

    (void)state;
    assert_true(number(o, "step") == 7);
    assert_true(number(o, "count") == 4);
    assert_true(number(o, "values") == 5000 + 3 + 2 + 2);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "sha256_checked")));
    assert_true(fabs(number(t, "norm") - 2 * sqrt(5000)) < 1e-9);
    assert_true(number(t, "min") == 2 && number(t, "max") == 2 && number(t, "mean") == 2);
    t = named(o, "v");
    assert_true(number(t, "norm") == 5 && number(t, "min") == -4 && number(t, "max") == 3);
    assert_true(number(t, "not_finite") == 1);
    cJSON_Delete(o);
    o = json("inspect a 7 --json", 0);
    cJSON_Delete(o);
}

static void says_what_is_missing(void **state)
{
    static const struct { const char *arguments; int code;
    } cases[] = {
        { "inspect a 6", 3 },
        { "inspect a best", 3 },
        { "inspect nowhere", 3 },
        { "inspect", 2 },
        { "inspect a b c", 2 },
        { "diff a", 2 },
        { "diff a nowhere", 3 },
        { "frobnicate", 2 },
        { "", 2 },
        { "inspect a --frobnicate", 2 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        int code;
        char *text = output(cases[i].arguments, &code), path[128], *errors;
        if (code != cases[i].code)
            fail_msg("'%s' exited with %d, not %d", cases[i].arguments, code, cases[i].code);
        assert_string_equal(text, "");
        snprintf(path, sizeof path, "%s/errors", base);
        assert_int_equal(pm_file_read(path, &errors, NULL), 0);
        assert_true(strlen(errors) > 10);
        pm_free(errors);
        pm_free(text);
    }
}

static void tells_differences(void **state)
{
    cJSON *o = json("diff a b --json", 1);

    (void)state;
    assert_true(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(o, "equal")));
    assert_true(number(o, "same") == 1); /* v, with its NaN */
    assert_true(number(o, "different") == 4);
    assert_string_equal(difference(o, "w"), "values");
    assert_true(number(named(o, "w"), "max_abs_diff") == 0.5);
    assert_true(fabs(number(named(o, "w"), "relative_norm") - 0.5 / (2 * sqrt(5000))) < 1e-12);
    assert_string_equal(difference(o, "only"), "only in A");
    assert_string_equal(difference(o, "other"), "only in B");
    assert_string_equal(difference(o, "x"), "shape");
    cJSON_Delete(o);
    o = json("diff a same --json", 0);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "equal")));
    cJSON_Delete(o);
}

/* ---- files of other programs ------------------------------------------------------------ */

/* The TensorFlow and PyTorch checkpoints in tests/golden: inspect reports the type of each file,
 * or refuses it with one line. */
static void inspects_foreign_files(void **state)
{
    static const struct {
        const char *file, *format;
        double count, values;
    } files[] = {
        { "safetensors/mnist.safetensors", "safetensors", 20, 376940 },
        { "pytorch/mnist.pt", "PyTorch", 20, 376940 },
        { "pytorch/legacy_with_offsets.pt", "PyTorch", 3, 20 },
        { "tf/mnist-trt", "TensorFlow V2 checkpoint", 27, 171681 },
        { "tf/mnist-trt/model.ckpt-46900", "TensorFlow V2 checkpoint", 27, 171681 },
        { "tf/bundle_checkpoint/bundle_checkpoint.index", "TensorFlow V2 checkpoint", 2, 85 },
        { "tf/old_string_tensors/foo", "TensorFlow V2 checkpoint", 4, 12 },
        { "tf/half_plus_two_v1ckpt/export-00000-of-00001", "TensorFlow V1 checkpoint", 2, 2 },
        { "tf/saved_model_half_plus_two", "TensorFlow V2 checkpoint", 3, 3 },
        { "pytorch/broken.pt", NULL, 0, 0 },
        { "tf/frozen_multi_add.pb", NULL, 0, 0 },
        { "tf/profiler/ckpt.meta", NULL, 0, 0 },
        { "tf/old_string_tensors/README", NULL, 0, 0 },
    };
    const char *source = getenv("PUMICE_SOURCE"), *data = getenv("PUMICE_DATA");
    char folder[400], arguments[1200];

    (void)state;
    snprintf(folder, sizeof folder, "%s%s/checkpoints", data ? data : source ? source : ".",
             data ? "" : "/../shared/data");
    if (!pm_is_folder(folder)) {
        print_message("%s is not there: no foreign checkpoints (PUMICE_DATA)\n", folder);
        skip();
    }
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        snprintf(arguments, sizeof arguments, "inspect %s/%s --json", folder, files[i].file);
        cJSON *o = json(arguments, files[i].format ? 0 : 3);

        if (!files[i].format) {
            cJSON_Delete(o);
            continue;
        }
        const char *format = cJSON_GetObjectItemCaseSensitive(o, "format")->valuestring;
        if (strcmp(format, files[i].format) != 0)
            fail_msg("%s is %s, not %s", files[i].file, format, files[i].format);
        if (number(o, "count") != files[i].count || number(o, "values") != files[i].values)
            fail_msg("%s: %g tensors, %g values", files[i].file, number(o, "count"),
                     number(o, "values"));
        cJSON_Delete(o);
    }
    snprintf(arguments, sizeof arguments, "inspect %s/tf/mnist-trt --json", folder);
    cJSON *o = json(arguments, 0);
    assert_true(number(o, "step") == 46900);
    assert_true(fabs(number(named(o, "conv2d/bias"), "norm") - 15.047) < 1e-3);
    cJSON_Delete(o);
    snprintf(arguments, sizeof arguments, "inspect %s/tf/old_string_tensors --json", folder);
    o = json(arguments, 0);
    const cJSON *t = named(o, "strs");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(t, "dtype")->valuestring, "string");
    assert_null(cJSON_GetObjectItemCaseSensitive(t, "norm"));
    cJSON_Delete(o);
    snprintf(arguments, sizeof arguments, "diff %s/pytorch/mnist.pt "
             "%s/safetensors/mnist.safetensors --json", folder, folder);
    o = json(arguments, 1);
    assert_true(number(o, "same") + number(o, "different") == 20);
    cJSON_Delete(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspects), cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(tells_differences), cmocka_unit_test(inspects_foreign_files),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
