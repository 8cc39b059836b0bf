/* pumice config convert: a config from pipeline configs of TensorFlow's Object Detection API. */
#include "app/app.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

/* Prints the notes of one kind under a heading. */
static int print_notes(const cJSON *notes, bool differs, const char *heading)
{
    struct pm_str s = { 0 };
    const cJSON *note;

    cJSON_ArrayForEach(note, notes) {
        const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(note, "file"));
        const char *slash = strrchr(file, '/');

        if (cJSON_IsTrue(cJSON_GetObjectItem(note, "differs")) != differs)
            continue;
        if (!s.length)
            pm_str_add(&s, "%s\n", heading);
        pm_str_add(&s, "  ");
        pm_str_name(&s, slash ? slash + 1 : file, 0);
        pm_str_add(&s, ":%.0f  ", cJSON_GetNumberValue(cJSON_GetObjectItem(note, "line")));
        pm_str_name(&s, cJSON_GetStringValue(cJSON_GetObjectItem(note, "field")), 0);
        pm_str_add(&s, ": ");
        pm_str_name(&s, cJSON_GetStringValue(cJSON_GetObjectItem(note, "why")), 0);
        pm_str_add(&s, "\n");
    }
    const int err = s.length ? app_print(s.text) : PM_OK;
    pm_str_free(&s);
    return err;
}

static int write_config(const char *path, const cJSON *config)
{
    struct pm_str s = { 0 };
    char *text = pm_json_print(config);

    pm_str_add(&s, "%s\n", text);
    const int err = pm_file_write(path, s.text, s.length);
    pm_free(text);
    pm_str_free(&s);
    return err;
}

/* Reads the written file again, so that its first mistake is known at once. */
static int check(const char *path)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_open_sections open = pm_train_choices(a);
    struct pm_config *c = NULL;
    const int err = pm_config_load(path, NULL, 0, &open, &c);

    pm_config_destroy(&c);
    pm_arena_destroy(&a);
    return err;
}

int app_config_convert(const struct app_args *args, bool force, struct app_globals *g)
{
    const int files = args->words_count - 1;
    cJSON *config = NULL, *notes = NULL, *result = NULL;
    int err = PM_OK;

    if (files < 1 || args->overrides_count)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "command line: config convert needs a pipeline config (or the files of its "
                       "parts) and the file to write, as in pumice config convert pipeline.config "
                       "cats.json"));
    const char *out = args->words[files];
    if (!force && access(out, F_OK) == 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: exists; give another name, or --force to replace it", out));
    PM_TRY(pm_convert_pipeline(args->words, (size_t)files, &config, &notes));
    PM_TRY(write_config(out, config));
    if (g->json) {
        result = cJSON_CreateObject();
        cJSON_AddStringToObject(result, "config", out);
        cJSON_AddItemReferenceToObject(result, "notes", notes);
        PM_TRY(app_print_json(g, result));
    } else {
        PM_TRY(print_notes(notes, true, "Different from the original:"));
        PM_TRY(print_notes(notes, false, "Not needed:"));
    }
    PM_TRY(check(out));
    if (!g->json)
        PM_INFO("config", "%s: written", out);
out:
    cJSON_Delete(result);
    cJSON_Delete(config);
    cJSON_Delete(notes);
    return err;
}
