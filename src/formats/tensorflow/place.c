/* tf_place: finds the files of a checkpoint. `checkpoint` is a text that TensorFlow writes beside
 * them:
 *     model_checkpoint_path: "model.ckpt-46900"
 *     all_model_checkpoint_paths: "model.ckpt-0"
 * The first line counts. If its path does not exist, for example because the folder was moved, the
 * file of the same name in this folder is used. */
#include "formats/tensorflow/tf_checkpoint.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_STATE = 1 << 20 }; /* bytes of a file `checkpoint` */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* "DIR/" with the slash, or "". */
static const char *folder_of(struct pm_arena *a, const char *path)
{
    return pm_arena_printf(a, "%.*s", (int)(name_of(path) - path), path);
}

static bool has_index(struct pm_arena *a, const char *prefix)
{
    return pm_file_exists(pm_arena_printf(a, "%s.index", prefix));
}

/* Length of "-DDDDD-of-DDDDD" at the end of a name (the first number may be "?????"), or 0. */
static size_t shard_suffix(const char *name)
{
    static const char form[] = "-00000-of-00000";
    const size_t length = strlen(name), n = sizeof form - 1;

    if (length <= n)
        return 0;
    const char *p = name + length - n;
    for (size_t i = 0; i < n; i++)
        if (form[i] == '0' ? !(isdigit((unsigned char)p[i]) || (i < 6 && p[i] == '?'))
                           : p[i] != form[i])
            return 0;
    return n;
}

/* ---- a V1 checkpoint's files ------------------------------------------------------------- */

/* All shards of the set that a name with a shard suffix is of. */
static void set_of(struct pm_arena *a, const char *path, struct pm_tf_place *out)
{
    const size_t stem = strlen(path) - shard_suffix(path);
    const long count = strtol(path + strlen(path) - 5, NULL, 10);

    out->kind = PM_TF_V1;
    out->file_count = (size_t)count;
    out->files = pm_arena_alloc(a, (size_t)count * sizeof *out->files);
    for (long i = 0; i < count; i++)
        out->files[i] = pm_arena_printf(a, "%.*s-%05ld-of-%05ld", (int)stem, path, i, count);
}

/* PREFIX-?????-of-????? of a prefix. */
static int find_set(struct pm_arena *a, const char *prefix, struct pm_tf_place *out)
{
    int err = PM_OK;
    const char *folder = folder_of(a, prefix), *name = name_of(prefix), *first = NULL;
    const size_t length = strlen(name);
    char **names = NULL;
    size_t count = 0;

    if (!*name || !pm_is_folder(*folder ? folder : "."))
        return PM_OK;
    PM_TRY(pm_list_folder(a, *folder ? folder : ".", &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], name, length) != 0 || !shard_suffix(names[i]) ||
            strlen(names[i]) != length + shard_suffix(names[i]))
            continue;
        if (first && strcmp(first + strlen(first) - 5, names[i] + strlen(names[i]) - 5) != 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: both %s and %s exist: sets of different sizes; give "
                                     "one of the files", prefix, first, names[i]));
        first = names[i];
    }
    if (first)
        set_of(a, pm_arena_printf(a, "%s%s", folder, first), out);
out:
    return err;
}

/* ---- prefixes and files ------------------------------------------------------------------ */

static void use_prefix(const char *prefix, struct pm_tf_place *out)
{
    out->kind = PM_TF_V2;
    out->prefix = prefix;
}

/* PREFIX.data-00000-of-00001 */
static const char *data_prefix(struct pm_arena *a, const char *path)
{
    const size_t suffix = shard_suffix(path), stem = strlen(path) - suffix;

    return suffix && stem > 5 && strncmp(path + stem - 5, ".data", 5) == 0
        ? pm_arena_printf(a, "%.*s", (int)(stem - 5), path) : NULL;
}

static int locate_file(struct pm_arena *a, const char *path, struct pm_tf_place *out)
{
    const char *prefix = data_prefix(a, path);

    if (pm_ends_with(path, ".index")) {
        use_prefix(pm_arena_printf(a, "%.*s", (int)(strlen(path) - 6), path), out);
    } else if (prefix) {
        if (!has_index(a, prefix))
            return pm_fail(PM_EDATA,
                           "%s: this is a shard of a TensorFlow checkpoint, but the checkpoint's "
                           "index %s.index does not exist",
                           path, prefix);
        use_prefix(prefix, out);
    } else if (pm_tf_is_table(path)) {
        if (shard_suffix(path)) {
            set_of(a, path, out);
        } else {
            out->kind = PM_TF_V1;
            out->file_count = 1;
            out->files = pm_arena_copy(a, &(const char *){ pm_arena_strdup(a, path) }, sizeof path);
        }
    }
    return PM_OK;
}

/* A file, or a prefix of files. */
static int locate_name(struct pm_arena *a, const char *path, struct pm_tf_place *out)
{
    if (pm_file_exists(path))
        return locate_file(a, path, out);
    if (has_index(a, path)) {
        use_prefix(pm_arena_strdup(a, path), out);
        return PM_OK;
    }
    if (shard_suffix(path) && path[strlen(path) - 10] == '?') {
        set_of(a, path, out);
        return PM_OK;
    }
    return find_set(a, path, out);
}

/* ---- folders ----------------------------------------------------------------------------- */

/* The quoted text at *p, with C's escapes; NULL when there is none. */
static const char *quoted(struct pm_arena *a, const char *p)
{
    struct pm_str s = { 0 };
    const char quote = *p++, *text = NULL;

    if (quote != '"' && quote != '\'')
        return NULL;
    for (; *p && *p != quote && *p != '\n'; p++) {
        char c = *p;
        if (c == '\\' && p[1] >= '0' && p[1] <= '7') {
            int value = 0;
            for (int i = 0; i < 3 && p[1] >= '0' && p[1] <= '7'; i++)
                value = 8 * value + *++p - '0';
            c = (char)value;
        } else if (c == '\\' && p[1]) {
            c = *++p;
        }
        pm_str_bytes(&s, &c, 1);
    }
    if (*p == quote && s.length)
        text = pm_arena_strdup(a, s.text);
    pm_str_free(&s);
    return text;
}

/* The value of model_checkpoint_path in a file `checkpoint`. NULL if the file is something else:
 * other programs give that name to other files, also to large ones. */
static int read_state(struct pm_arena *a, const char *path, const char **out)
{
    static const char key[] = "model_checkpoint_path";
    int err = PM_OK;
    char *text = NULL;
    struct stat st;

    *out = NULL;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MOST_STATE)
        return PM_OK;
    PM_TRY(pm_file_read(path, &text, NULL));
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\r\n");
        if (strncmp(line, key, sizeof key - 1) != 0)
            continue;
        line += sizeof key - 1;
        line += strspn(line, " \t");
        if (*line == ':')
            *out = quoted(a, line + 1 + strspn(line + 1, " \t"));
        break;
    }
out:
    pm_free(text);
    return err;
}

static int locate_state(struct pm_arena *a, const char *state, struct pm_tf_place *out)
{
    int err = PM_OK;
    const char *named, *folder = folder_of(a, state), *there, *beside;

    PM_TRY(read_state(a, state, &named));
    if (!named)
        return PM_OK;
    there = named[0] == '/' ? named : pm_arena_printf(a, "%s%s", folder, named);
    beside = pm_arena_printf(a, "%s%s", folder, name_of(named));
    PM_TRY(locate_name(a, there, out));
    if (out->kind == PM_TF_NONE)
        PM_TRY(locate_name(a, beside, out));
    if (out->kind == PM_TF_NONE)
        PM_TRY(pm_fail(PM_EDATA, "%s: names %s, which does not exist (nor does %s)", state, there,
                       beside));
out:
    return err;
}

static int locate_folder(struct pm_arena *a, const char *path, struct pm_tf_place *out)
{
    int err = PM_OK;
    const char *slash = pm_ends_with(path, "/") ? "" : "/", *found = NULL;
    const char *state = pm_arena_printf(a, "%s%scheckpoint", path, slash);
    char **names = NULL;
    size_t count = 0;

    if (pm_file_exists(state))
        PM_TRY(locate_state(a, state, out));
    if (out->kind != PM_TF_NONE)
        return PM_OK;
    PM_TRY(pm_list_folder(a, path, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], "saved_model.pb") == 0 || strcmp(names[i], "saved_model.pbtxt") == 0) {
            use_prefix(pm_arena_printf(a, "%s%svariables/variables", path, slash), out);
            return PM_OK;
        }
        if (names[i][0] == '.' || !pm_ends_with(names[i], ".index"))
            continue;
        if (found)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: holds more than one checkpoint (%s, %s): give one of them", path,
                           found, names[i]));
        found = names[i];
    }
    if (found)
        PM_TRY(locate_name(a, pm_arena_printf(a, "%s%s%s", path, slash, found), out));
out:
    return err;
}

int pm_tf_locate(struct pm_arena *a, const char *path, struct pm_tf_place *out)
{
    *out = (struct pm_tf_place){ .kind = PM_TF_NONE };
    if (pm_is_folder(path))
        return locate_folder(a, path, out);
    if (pm_file_exists(path) && strcmp(name_of(path), "checkpoint") == 0)
        return locate_state(a, path, out);
    return locate_name(a, path, out);
}

enum pm_tf_kind pm_tf_kind(const char *path)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_tf_place place;

    if (pm_tf_locate(a, path, &place) < 0) {
        PM_DEBUG("formats", "%s", pm_error_text());
        place.kind = PM_TF_V2;
    }
    pm_arena_destroy(&a);
    return place.kind;
}
