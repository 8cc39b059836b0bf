/* Every experiment in configs/: the config is valid, its net can be built without the data, and
 * its scopes name variables of that net. */
#include "../base/unit.h"

#include <cjson/cJSON.h>

static const char *program, *source; /* from the environment that ctest sets */

/* Standard output and errors of the program, which must succeed. */
static char *output(struct pm_arena *a, const char *arguments)
{
    struct pm_str text = { 0 };
    char piece[4096];
    size_t n;
    FILE *f = popen(pm_arena_printf(a, "cd '%s' && '%s' %s", source, program, arguments), "r");

    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        pm_str_bytes(&text, piece, n);
    if (pclose(f) != 0)
        fail_msg("pumice %s: %s", arguments, text.text ? text.text : "");
    char *copy = pm_arena_strdup(a, text.text ? text.text : "");
    pm_str_free(&text);
    return copy;
}

/* Overrides in place of the data's facts. A net listed layer by layer states its number of
 * classes and needs a size unless the file has one. A file may set the number of classes or list
 * weights for them. Letters of a charset are classes that the file states.
 * *scopes: true when it trains only some variables. */
static const char *instead_of_data(struct pm_arena *a, const char *file, bool *scopes)
{
    cJSON *config = cJSON_Parse(output(a, pm_arena_printf(a, "config show %s --json", file)));
    const cJSON *layers = cJSON_GetObjectItem(cJSON_GetObjectItem(config, "model"), "layers");
    const cJSON *size = cJSON_GetObjectItem(cJSON_GetObjectItem(config, "input"), "size");
    const cJSON *init = cJSON_GetObjectItem(config, "init");
    const cJSON *last = cJSON_GetArrayItem(layers, cJSON_GetArraySize(layers) - 1);
    const cJSON *units = cJSON_GetObjectItem(last, "units");
    units = units ? units : cJSON_GetObjectItem(last, "filters");
    const bool needs_size = units && cJSON_GetArraySize(size) == 0;
    const int own =
        cJSON_GetObjectItem(cJSON_GetObjectItem(config, "model"), "num_classes")->valueint;
    const int weights = cJSON_GetArraySize(
        cJSON_GetObjectItem(cJSON_GetObjectItem(config, "loss"), "label_weights"));
    const int classes = own ? own : weights ? weights : units ? units->valueint : 7;

    const bool letters =
        cJSON_GetObjectItem(cJSON_GetObjectItem(config, "data"), "charset") != NULL;

    assert_non_null(config);
    *scopes = cJSON_GetArraySize(cJSON_GetObjectItem(init, "trainable_scopes")) > 0;
    cJSON_Delete(config);
    return pm_arena_printf(a, "data.folder=null input.channels=3%s%s",
                           letters ? "" : pm_arena_printf(a, " model.num_classes=%d", classes),
                           needs_size ? " input.size=64" : "");
}

/* Configs that follow the original programs also save the initial values, as these do. */
static bool follows_original(const char *file)
{
    return strncmp(file, "configs/slim/", 13) == 0 || strncmp(file, "configs/deeplab/", 16) == 0 ||
           strncmp(file, "configs/detection/", 18) == 0 ||
           strcmp(file, "configs/imagenet/inception_v3_trainer.json") == 0;
}

/* TF-Slim's trainer set its own weight decay for every net. */
static void check_weight_decay(const cJSON *config, const char *file)
{
    const cJSON *optim = cJSON_GetObjectItem(config, "optim");
    const double decay = cJSON_GetNumberValue(cJSON_GetObjectItem(optim, "weight_decay"));
    const double wanted = strstr(file, "/lenet_mnist") ? 0
                          : strstr(file, "/cifarnet")  ? 0.004
                                                       : 4e-5;

    if (strncmp(file, "configs/slim/", 13) == 0 && decay != wanted)
        fail_msg("%s: optim.weight_decay is %g, not %g", file, decay, wanted);
}

static void check_originals(struct pm_arena *a, const char *file)
{
    cJSON *config = cJSON_Parse(output(a, pm_arena_printf(a, "config show %s --json", file)));
    const cJSON *first = cJSON_GetObjectItem(cJSON_GetObjectItem(config, "run"), "save_first_step");

    if (!cJSON_IsTrue(first))
        fail_msg("%s: run.save_first_step is not true", file);
    check_weight_decay(config, file);
    cJSON_Delete(config);
}

/* Scopes are checked by building a plan, which takes seconds for the largest nets. */
static void check_file(struct pm_arena *a, const char *file)
{
    bool scopes;
    const char *data = instead_of_data(a, file, &scopes), *text;

    if (follows_original(file))
        check_originals(a, file);
    text = output(a, pm_arena_printf(a, "config check %s", file));
    if (!strstr(text, "nothing wrong")) { /* at most the data is missing */
        assert_contains(text, ": 1 warning");
        assert_contains(text, "\nwarning: data.folder: data/");
        assert_contains(text, " does not exist, so the data was not checked");
    }
    text = output(a, pm_arena_printf(a, "config show %s %s %s 2>&1", file,
                                     scopes ? "--plan" : "--layers", data));
    assert_contains(text, scopes ? "activations" : "\"layer\"");
    if (strstr(text, "warning:"))
        fail_msg("%s: %s", file, text);
}

static int check_folder(struct pm_arena *a, const char *folder)
{
    char **names = NULL;
    size_t count = 0;
    int files = 0;

    if (pm_list_folder(a, pm_arena_printf(a, "%s/%s", source, folder), &names, &count) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < count; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", folder, names[i]), *end = strrchr(path, '.');

        if (strcmp(names[i], "base") == 0 || strcmp(names[i], "schema.json") == 0)
            continue;
        if (pm_is_folder(pm_arena_printf(a, "%s/%s", source, path))) {
            files += check_folder(a, path);
        } else if (end && strcmp(end, ".json") == 0) {
            check_file(a, path);
            files++;
        }
    }
    return files;
}

static void every_config(void **state)
{
    struct pm_arena *a = pm_arena_create();

    (void)state;
    assert_true(check_folder(a, "configs") > 3);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_config) };

    program = getenv("PUMICE_PROGRAM");
    source = getenv("PUMICE_SOURCE");
    if (!program || !source) {
        print_message("PUMICE_PROGRAM and PUMICE_SOURCE do not name the program and its source\n");
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
