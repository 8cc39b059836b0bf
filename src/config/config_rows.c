/* config_rows: finds the row of an open section by name, and reports names that no row has. */
#include "config/config_private.h"

#include <string.h>

enum { LISTED = 20 }; /* most names in a message that has a suggestion */

const struct pm_open_row *pm_config_row_find(const struct pm_open_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->rows[i].name, name) == 0)
            return &rows->rows[i];
    const char *known = rows->known_as ? rows->known_as(name) : NULL;
    for (size_t i = 0; known && i < rows->count; i++)
        if (strcmp(rows->rows[i].name, known) == 0)
            return &rows->rows[i];
    return NULL;
}

int pm_config_fail_row(const struct pm_config *c, const struct pm_open_rows *rows, const char *path,
                       const char *kind, const char *name)
{
    const char *names[256];
    struct pm_str all = { 0 };
    size_t count = rows->count < PM_COUNT(names) ? rows->count : PM_COUNT(names);
    const char *refusal = rows->refusal ? rows->refusal(name) : NULL;

    if (refusal)
        return pm_fail(PM_ECONFIG, "%s %s: '%s' %s", pm_config_place(c, path), path, name, refusal);
    for (size_t i = 0; i < count; i++) {
        names[i] = rows->rows[i].name;
        pm_str_add(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *guess = pm_suggest_name(name, rows);
    if (!guess)
        guess = pm_nearest(name, names, count);
    const bool listed = !guess || rows->count <= LISTED;
    int err = pm_fail(PM_ECONFIG, "%s %s: '%s' is no %s of this version%s%s%s (%s%s)",
                      pm_config_place(c, path), path, name, kind, guess ? ", did you mean '" : "",
                      guess ? guess : "", guess ? "'?" : "", listed ? "known: " : "",
                      listed ? all.text : "docs/keys.md lists all");
    pm_str_free(&all);
    return err;
}

size_t pm_config_size_of(const struct pm_opt *opts)
{
    size_t size = 0;

    for (; opts->type; opts++)
        if (opts->offset + sizeof(struct pm_strings) > size)
            size = opts->offset + sizeof(struct pm_strings); /* the largest type */
    return size;
}
