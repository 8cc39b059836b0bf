/* predict_files: the picture files that predict reads, and what it does not read. */
#include "jobs/predict_files.h"

#include "data/folder_chain.h"

#include <pumice/data.h>

#include <cjson/cJSON.h>
#include <string.h>

static void add_other(struct pm_predict_files *f, const char *path)
{
    PM_GROW(f->other, f->other_count, f->other_capacity);
    f->other[f->other_count++] = path;
}

/* below: the end of path, behind the folder that was named. A link to a folder that contains it is
 * not followed. */
static int add_path(struct pm_predict_files *f, const char *path, const char *below,
                    const struct pm_folder_chain *above)
{
    struct pm_folder_chain own;
    char **names;
    size_t count;
    int err = PM_OK;

    if (!pm_is_folder(path)) {
        PM_GROW(f->list, f->count, f->capacity);
        f->list[f->count++] = (struct pm_predict_file){ pm_arena_strdup(f->arena, path),
                                             pm_arena_strdup(f->arena, below) };
        return PM_OK;
    }
    if (!pm_folder_enter(path, above, &own) && above)
        return PM_OK;
    PM_TRY(pm_list_folder(f->arena, path, &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *inner = pm_arena_printf(f->arena, "%s/%s", path, names[i]);

        if (f->out && pm_same_file(inner, f->out))
            continue;
        if (pm_is_folder(inner) || pm_image_named(inner))
            PM_TRY(add_path(f, inner, *below ? pm_arena_printf(f->arena, "%s/%s", below, names[i])
                                             : names[i], &own));
        else if (names[i][0] != '.')
            add_other(f, inner);
    }
out:
    return err;
}

/* Returns what a path of the command line adds to the paths below OUT: a file its name, a folder
 * nothing, but with several paths its name, too. */
static const char *named(const struct pm_predict_files *f, const char *path, size_t count)
{
    size_t length = strlen(path);
    const char *begin;

    while (length > 1 && path[length - 1] == '/')
        length--;
    begin = path + length;
    while (begin > path && begin[-1] != '/')
        begin--;
    const char *name = pm_arena_printf(f->arena, "%.*s", (int)(path + length - begin), begin);
    const bool plain = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;

    return pm_is_folder(path) && (count == 1 || !plain) ? "" : name;
}

void pm_predict_files_report(const struct pm_predict_files *f, struct cJSON *report)
{
    enum { NAMED = 10 };
    struct cJSON *list = cJSON_AddArrayToObject(report, "not_read");

    for (size_t i = 0; i < f->other_count; i++) {
        if (i < NAMED)
            PM_WARN("predict", "%s: not read: its name does not end like that of a picture",
                    f->other[i]);
        cJSON_AddItemToArray(list, cJSON_CreateString(f->other[i]));
    }
    if (f->other_count > NAMED)
        PM_WARN("predict", "%zu further files are not read (--json lists them)",
                f->other_count - NAMED);
}

/* Returns path without its last part, "." if it has one part. */
static const char *folder_of(const struct pm_predict_files *f, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? pm_arena_printf(f->arena, "%.*s", (int)(slash - path) + 1, path) : ".";
}

/* Fails if a picture of the list is in this folder, which drawings are written to. */
static int check_folder(const struct pm_predict_files *f, const char *folder)
{
    const char *last = "";

    if (!pm_is_folder(folder))
        return PM_OK;
    for (size_t i = 0; i < f->count; i++) {
        const char *own = folder_of(f, f->list[i].path);

        if (strcmp(own, last) != 0 && pm_same_file(own, folder))
            return pm_fail(PM_ECONFIG,
                           "--out: %s is also the folder of %s, which could be overwritten: name "
                           "another folder",
                           folder, f->list[i].path);
        last = own;
    }
    return PM_OK;
}

int pm_predict_files_check_out(const struct pm_predict_files *f)
{
    const char *last = "";
    int err = PM_OK;

    if (!f->out)
        return PM_OK;
    PM_TRY(check_folder(f, f->out));
    for (size_t i = 0; i < f->count; i++) {
        const char *below = folder_of(f, f->list[i].below);

        if (strcmp(below, last) != 0 && strcmp(below, ".") != 0)
            PM_TRY(check_folder(f, pm_arena_printf(f->arena, "%s/%s", f->out, below)));
        last = below;
    }
out:
    return err;
}

int pm_predict_files_open(const char *const *paths, size_t count, const char *out,
                          struct pm_predict_files *f)
{
    int err = PM_OK;

    *f = (struct pm_predict_files){ .arena = pm_arena_create(), .out = out };
    for (size_t i = 0; i < count; i++) {
        if (!pm_file_exists(paths[i]) && !pm_is_folder(paths[i]))
            PM_TRY(pm_fail(PM_EDATA, "%s: no such file or folder", paths[i]));
        PM_TRY(add_path(f, paths[i], named(f, paths[i], count), NULL));
    }
out:
    return err;
}

void pm_predict_files_close(struct pm_predict_files *f)
{
    pm_free(f->list);
    pm_free(f->other);
    if (f->arena)
        pm_arena_destroy(&f->arena);
    *f = (struct pm_predict_files){ 0 };
}
