/* Merges files and overrides into one tree, and stores the origin (file and line) of every value.
 *
 * A file's "base" files are merged before it, first to last; later values win. Each is searched in
 * the folder of the file that names it. Each file is read and merged only once: if it is named
 * several times, only its last place counts. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- one file into the tree ------------------------------------------------------------ */

/* Position in a parsed file and its places, both in document order. */
struct walk {
    const char *file;
    const struct pm_json_place *places;
    size_t next;
    struct pm_config_origins *origins;
};

static void add_segment(struct pm_str *path, const char *name)
{
    pm_str_add(path, "%s%s", path->length ? "." : "", name);
}

static void cut(struct pm_str *path, size_t length)
{
    path->length = length;
    if (path->text)
        path->text[length] = '\0';
}

/* Stores the origin of a value and of everything inside it. w NULL: the origin is the command
 * line. */
static void remember_all(struct pm_config_origins *o, struct walk *w, const cJSON *v,
                         struct pm_str *path)
{
    struct pm_str origin = { 0 }, name = { 0 };
    size_t length = path->length;
    int index = 0;

    if (w)
        pm_str_add(&origin, "%s:%d", w->file, w->places[w->next++].line);
    pm_config_origins_add(o, path->text, w ? origin.text : "command line", v);
    for (const cJSON *child = v->child; child; child = child->next) {
        cut(&name, 0);
        pm_str_add(&name, "%d", index++);
        add_segment(path, cJSON_IsObject(v) ? child->string : name.text);
        remember_all(o, w, child, path);
        cut(path, length);
    }
    pm_str_free(&origin);
    pm_str_free(&name);
}

static void merge_object(struct walk *w, cJSON *dst, const cJSON *src, struct pm_str *path)
{
    size_t length = path->length;

    w->next++;
    for (const cJSON *child = src->child; child; child = child->next) {
        cJSON *old = cJSON_GetObjectItemCaseSensitive(dst, child->string);
        add_segment(path, child->string);
        if (old && cJSON_IsObject(old) && cJSON_IsObject(child)) {
            merge_object(w, old, child, path);
        } else {
            if (old) {
                pm_config_origins_forget(w->origins, path->text);
                cJSON_DeleteItemFromObjectCaseSensitive(dst, child->string);
            }
            cJSON_AddItemToObject(dst, child->string, cJSON_Duplicate(child, true));
            remember_all(w->origins, w, child, path);
        }
        cut(path, length);
    }
}

/* ---- files ----------------------------------------------------------------------------- */

enum { MOST_FILES = 64, MOST_LEVELS = 16 };

/* A file that has been read. */
struct source {
    char *path, *place; /* owned; place: real folder and file name; NULL for text */
    cJSON *tree;
    struct pm_json_place *places;
};

/* Every file once, in reverse order of merging. */
struct sources {
    struct source list[MOST_FILES];
    size_t count;
};

static void free_sources(struct sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        pm_free(s->list[i].path);
        free(s->list[i].place);
        cJSON_Delete(s->list[i].tree);
        pm_free(s->list[i].places);
    }
    pm_free(s);
}

/* The files that are being read, innermost first, to detect cycles. */
struct reading {
    const char *path;
    char *real; /* NULL for text */
    const struct reading *outer;
    int level; /* 1: the outermost */
};

static int check_reading(const struct reading *r)
{
    for (const struct reading *o = r->outer; o; o = o->outer)
        if (o->real && r->real && strcmp(o->real, r->real) == 0)
            return pm_fail(PM_ECONFIG, "%s: base: the file is its own base, through %s", r->path,
                           r->outer->path);
    if (r->level > MOST_LEVELS)
        return pm_fail(PM_ECONFIG,
                       "%s: base: %s would be level %d of files that name files, %d are allowed",
                       r->outer->path, r->path, r->level, MOST_LEVELS);
    return PM_OK;
}

static char *beside(const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');
    struct pm_str s = { 0 };

    if (slash && name[0] != '/')
        pm_str_bytes(&s, file, (size_t)(slash - file) + 1);
    pm_str_add(&s, "%s", name);
    return s.text;
}

/* Returns a file's identity: its folder with links resolved, and its own name. The name may be a
 * link, because bases are searched beside the link. NULL: the folder does not exist. */
static char *place_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = beside(path, "."), *real = realpath(folder, NULL), *place = NULL;

    if (real && asprintf(&place, "%s/%s", real, slash ? slash + 1 : path) < 0)
        place = NULL;
    free(real);
    pm_free(folder);
    return place;
}

/* Reads one file, or the given text, and appends it to the list. */
static int read_source(struct sources *s, const char *text, const struct reading *r)
{
    int err = PM_OK;
    char *owned = NULL;
    const char *path = r->path;

    if (s->count == MOST_FILES)
        return pm_fail(PM_ECONFIG, "%s: base: %s would be file %d of one config, %d are allowed",
                       r->outer->path, path, MOST_FILES + 1, MOST_FILES);
    struct source *to = &s->list[s->count++];
    *to = (struct source){ .path = pm_strdup(path), .place = text ? NULL : place_of(path) };
    if (!text && pm_text_read(path, PM_MOST_TEXT, &owned) < 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s%s%s", r->outer ? r->outer->path : "",
                       r->outer ? ": base: " : "", pm_error_text()));
    PM_TRY(pm_json_parse_places(path, text ? text : owned, &to->tree, &to->places));
    if (!cJSON_IsObject(to->tree))
        PM_TRY(
            pm_fail(PM_ECONFIG, "%s:1: a config is an object: { \"model\": { ... }, ... }", path));
out:
    pm_free(owned);
    return err;
}

static bool is_read(const struct sources *s, const char *path)
{
    char *place = place_of(path);
    bool found = false;

    for (size_t i = 0; place && i < s->count; i++)
        found |= s->list[i].place && strcmp(s->list[i].place, place) == 0;
    free(place);
    return found;
}

static int read_files(struct sources *s, const char *path, const char *text,
                      const struct reading *outer);

static int read_base(struct sources *s, const cJSON *v, const struct reading *r)
{
    if (!cJSON_IsString(v))
        return pm_fail(PM_ECONFIG, "%s: base: a file name or a list of file names is needed",
                       r->path);
    char *file = beside(r->path, v->valuestring);
    int err = read_files(s, file, NULL, r);

    pm_free(file);
    return err;
}

/* Reads bases last to first. A file that is already in the list has a later place, which counts. */
static int read_bases(struct sources *s, const cJSON *base, const struct reading *r)
{
    int err = PM_OK;

    if (!base || cJSON_IsNull(base))
        return PM_OK;
    if (!cJSON_IsArray(base))
        return read_base(s, base, r);
    const int count = cJSON_GetArraySize(base);
    if (count > MOST_FILES)
        return pm_fail(PM_ECONFIG, "%s: base: names %d files, %d are allowed", r->path, count,
                       MOST_FILES);
    for (int i = count - 1; i >= 0; i--)
        PM_TRY(read_base(s, cJSON_GetArrayItem(base, i), r));
out:
    return err;
}

/* Reads the file, then its bases. */
static int read_files(struct sources *s, const char *path, const char *text,
                      const struct reading *outer)
{
    int err = PM_OK;
    struct reading r = { path, text ? NULL : realpath(path, NULL), outer,
                         outer ? outer->level + 1 : 1 };

    PM_TRY(check_reading(&r));
    if (text || !is_read(s, path)) {
        const size_t at = s->count;
        PM_TRY(read_source(s, text, &r));
        PM_TRY(read_bases(s, cJSON_GetObjectItemCaseSensitive(s->list[at].tree, "base"), &r));
    }
out:
    free(r.real);
    return err;
}

static int merge_files(const char *path, const char *text, cJSON *tree,
                       struct pm_config_origins *origins)
{
    int err = PM_OK;
    struct sources *s = pm_calloc(1, sizeof *s);

    PM_TRY(read_files(s, path, text, NULL));
    for (size_t i = s->count; i-- > 0;) {
        struct pm_str prefix = { 0 };
        struct walk w = { s->list[i].path, s->list[i].places, 0, origins };

        origins->ranks++;
        merge_object(&w, tree, s->list[i].tree, &prefix);
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "base");
        pm_config_origins_forget(origins, "base");
        pm_str_free(&prefix);
    }
out:
    free_sources(s);
    return err;
}

/* ---- overrides ------------------------------------------------------------------------- */

/* Moves *v to its child named by a segment, or to NULL. Creates missing objects. */
static int step_into(cJSON **v, const char *segment, const char *key)
{
    char *end;

    if (cJSON_IsArray(*v)) {
        long index = strtol(segment, &end, 10);
        int count = cJSON_GetArraySize(*v);
        if (*end || !isdigit((unsigned char)segment[0]) || index >= count)
            return pm_fail(PM_ECONFIG,
                           "command line: %s: '%s' is not an index of this list of %d entries "
                           "(counted from 0)",
                           key, segment, count);
        *v = cJSON_GetArrayItem(*v, (int)index);
        return PM_OK;
    }
    cJSON *child = cJSON_GetObjectItemCaseSensitive(*v, segment);
    if (!child || cJSON_IsNull(child)) {
        cJSON_DeleteItemFromObjectCaseSensitive(*v, segment);
        child = cJSON_AddObjectToObject(*v, segment);
    }
    *v = child;
    return PM_OK;
}

static int check_container(const cJSON *v, const char *segment, const char *key)
{
    if (cJSON_IsObject(v) || cJSON_IsArray(v))
        return PM_OK;
    return pm_fail(PM_ECONFIG,
                   "command line: %s: the parent of '%s' is neither an object nor a list", key,
                   segment);
}

/* Stores *value under a segment of v; takes ownership on success. */
static int put(cJSON *v, const char *segment, const char *key, cJSON **value)
{
    cJSON *item = v;
    int err = PM_OK;

    if (cJSON_IsObject(v)) {
        cJSON_DeleteItemFromObjectCaseSensitive(v, segment);
        cJSON_AddItemToObject(v, segment, *value);
    } else {
        PM_TRY(step_into(&item, segment, key)); /* checks the index */
        cJSON_ReplaceItemInArray(v, atoi(segment), *value);
    }
    *value = NULL;
out:
    return err;
}

static int apply_override(const char *text, cJSON *tree, struct pm_config_origins *origins)
{
    int err = PM_OK;
    char *key = pm_strdup(text), *value = strchr(key, '='), *copy = NULL;
    cJSON *v = tree, *parsed = NULL;
    struct pm_str path = { 0 };

    if (!value || value == key)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: '%s' is not key=value", text));
    *value++ = '\0';
    copy = pm_strdup(key);
    char *save = NULL, *segment = strtok_r(copy, ".", &save);
    if (!segment || strstr(key, "..") || key[0] == '.' || key[strlen(key) - 1] == '.')
        PM_TRY(pm_fail(PM_ECONFIG, "command line: '%s' is not a dotted key", key));
    if (strcmp(segment, "base") == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: base: this key is allowed in files only"));
    for (char *next; (next = strtok_r(NULL, ".", &save)); segment = next) {
        PM_TRY(step_into(&v, segment, key));
        PM_TRY(check_container(v, next, key));
    }
    if (pm_json_parse(key, value, &parsed) < 0)
        parsed = cJSON_CreateString(value);
    pm_config_origins_forget(origins, key);
    pm_str_add(&path, "%s", key);
    remember_all(origins, NULL, parsed, &path);
    PM_TRY(put(v, segment, key, &parsed));
out:
    cJSON_Delete(parsed);
    pm_str_free(&path);
    pm_free(copy);
    pm_free(key);
    return err;
}

int pm_config_merge(const char *path, const char *text, const char *const *overrides, size_t n,
                    struct cJSON *tree, struct pm_config_origins *origins)
{
    int err = PM_OK;

    PM_TRY(merge_files(path, text, tree, origins));
    origins->ranks++;
    for (size_t i = 0; i < n; i++)
        PM_TRY(apply_override(overrides[i], tree, origins));
out:
    return err;
}
