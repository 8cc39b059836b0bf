/* equal_run: reads run.json of the folders beside a run. */
#include "observers/equal_run.h"

#include "config/config_changes.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { MOST_FOLDERS = 1000 };

static bool has_text(const cJSON *o, const char *key, const char *text)
{
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

    return v && strcmp(v, text) == 0;
}

/* Whether a folder has a finished run with this identity. */
static bool is_equal(const char *run_json, const char *identity)
{
    char *text = NULL;
    cJSON *o = NULL;
    bool equal = false;

    if (pm_file_exists(run_json) && pm_text_read(run_json, PM_MOST_TEXT, &text) == PM_OK &&
        (o = cJSON_Parse(text)))
        equal = has_text(o, "identity", identity) && has_text(o, "state", "finished");
    cJSON_Delete(o);
    pm_free(text);
    return equal;
}

const char *pm_equal_run(const struct pm_config *c, struct pm_arena *a)
{
    const char *slash = strrchr(c->run.folder, '/');
    const char *parent = slash ? pm_arena_printf(a, "%.*s", (int)(slash - c->run.folder),
                                                 c->run.folder) : ".";
    cJSON *dump = pm_config_dump(c);
    char identity[PM_IDENTITY], **names = NULL;
    size_t count = 0;

    pm_config_identity(dump, identity);
    cJSON_Delete(dump);
    if (pm_file_exists(pm_arena_printf(a, "%s/study.json", parent)))
        return NULL; /* the study knows its runs */
    if (!pm_is_folder(parent) || pm_list_folder(a, parent, &names, &count) < 0)
        return NULL;
    for (size_t i = 0; i < count && i < MOST_FOLDERS; i++) {
        const char *other = pm_arena_printf(a, "%s/%s", parent, names[i]);

        if (strcmp(names[i], slash ? slash + 1 : c->run.folder) != 0 &&
            is_equal(pm_arena_printf(a, "%s/run.json", other), identity))
            return other;
    }
    return NULL;
}
