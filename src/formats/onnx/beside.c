/* onnx, the external data file of a model. The file name contains the digest of the data. A new
 * data file therefore never replaces the one that the existing model refers to: if the process is
 * killed, the model on the disk, old or new, finds its own weights. Afterwards unreferenced data
 * files are removed. */
#include "formats/onnx/onnx_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS = 12 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *pm_onnx_beside_path(const char *path, const char *sha256)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "%s-%.*s.data", path, DIGITS, sha256);
    return s.text;
}

/* Whether `name` is a data file name of an export to `path`. Earlier versions used NAME.data. */
static bool is_name_of(const char *path, const char *name)
{
    const char *model = base_name(path);
    const size_t n = strlen(model);

    if (strncmp(name, model, n) != 0)
        return false;
    if (strcmp(name + n, ".data") == 0)
        return true;
    return name[n] == '-' && strspn(name + n + 1, "0123456789abcdef") == DIGITS &&
           strcmp(name + n + 1 + DIGITS, ".data") == 0;
}

/* Appends the data files that the model in `file`, an export to `path`, refers to. Appends nothing
 * if the file is not a model of Pumice, is truncated, or if its data files are missing. */
static void add_named(const char *file, const char *path, struct pm_arena *a, struct pm_paths *out)
{
    struct pm_onnx_model *m = NULL;
    const int folder = (int)(base_name(path) - path);

    if (pm_onnx_read(file, &m) < 0) {
        PM_DEBUG("onnx", "%s", pm_error_text());
        return;
    }
    for (size_t i = 0; m->producer && strcmp(m->producer, "pumice") == 0 && i < m->tensor_count;
         i++) {
        const char *beside = m->tensors[i].beside;
        const char *mine =
            beside ? pm_arena_printf(a, "%.*s%s", folder, path, base_name(beside)) : NULL;

        if (!mine || !is_name_of(path, base_name(mine)) || !pm_same_file(mine, beside) ||
            (out->count && strcmp(out->list[out->count - 1], mine) == 0))
            continue;
        PM_GROW(out->list, out->count, out->capacity);
        out->list[out->count++] = mine;
    }
    pm_onnx_close(&m);
}

void pm_onnx_beside_find(const char *path, struct pm_arena *a, struct pm_paths *out)
{
    const int n = (int)(base_name(path) - path);
    const char *folder = n ? pm_arena_printf(a, "%.*s", n, path) : ".";
    char **names = NULL;
    size_t count = 0;

    if (pm_file_exists(path))
        add_named(path, path, a, out);
    if (pm_is_folder(folder) && pm_list_folder(a, folder, &names, &count) < 0)
        PM_DEBUG("onnx", "%s", pm_error_text());
    for (size_t i = 0; i < count; i++) { /* temporary models that killed exports left */
        const char *file = pm_arena_printf(a, "%.*s%s", n, path, names[i]);
        long pid;
        if (pm_is_temporary(names[i], base_name(path), &pid) && pm_temporary_is_left(file, pid))
            add_named(file, path, a, out);
    }
}

void pm_onnx_beside_remove(const struct pm_paths *old, const char *except)
{
    for (size_t i = 0; i < old->count; i++) {
        if (except && strcmp(old->list[i], except) == 0)
            continue;
        if (unlink(old->list[i]) != 0 && errno != ENOENT)
            PM_WARN("export", "%s is not used by a model any more, but cannot be removed: %s",
                    old->list[i], strerror(errno));
    }
}
