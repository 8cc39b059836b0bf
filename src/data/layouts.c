/* The layouts of layouts.def. */
#include "data/layouts.h"

#include <string.h>

static const struct pm_layout rows[] = {
#define PM_LAYOUT(converter, task, sure, ...) { #converter, task, sure, { __VA_ARGS__, NULL } },
#include "layouts.def"
#undef PM_LAYOUT
};

/* Names of folders may have characters with a meaning in patterns. */
static void add_escaped(struct pm_str *s, const char *folder)
{
    for (; *folder; folder++)
        pm_str_add(s, "%s%c", strchr("\\*?[]", *folder) ? "\\" : "", *folder);
}

static bool matches(const struct pm_layout *l, const char *folder)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_str pattern = { 0 };
    bool all = true;

    for (size_t i = 0; l->patterns[i] && all; i++) {
        char **paths = NULL;
        size_t count = 0;

        pm_str_free(&pattern);
        add_escaped(&pattern, folder);
        pm_str_add(&pattern, "/%s", l->patterns[i]);
        all = pm_glob(a, pattern.text, &paths, &count) == PM_OK && count > 0;
    }
    pm_str_free(&pattern);
    pm_arena_destroy(&a);
    return all;
}

const struct pm_layout *pm_layout_find(const char *folder, const char *task)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if ((!task || !strcmp(rows[i].task, task)) && matches(&rows[i], folder))
            return &rows[i];
    return NULL;
}
