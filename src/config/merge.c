/* Files and overrides to one tree, remembering for every value the line it came from.
 *
 * A file's "base" files are merged before it, each found beside the file that names it. */
#include "config/parts.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- origins --------------------------------------------------------------------------- */

void pm_config_origins_destroy(struct pm_config_origins **o)
{
    if (!o || !*o)
        return;
    for (size_t i = 0; i < (*o)->count; i++) {
        pm_free((*o)->list[i].path);
        pm_free((*o)->list[i].text);
    }
    pm_free((*o)->list);
    pm_free(*o);
    *o = NULL;
}

static bool is_under(const char *path, const char *top)
{
    size_t n = strlen(top);

    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '.');
}

static void forget(struct pm_config_origins *o, const char *top)
{
    size_t kept = 0;

    for (size_t i = 0; i < o->count; i++) {
        if (is_under(o->list[i].path, top)) {
            pm_free(o->list[i].path);
            pm_free(o->list[i].text);
        } else {
            o->list[kept++] = o->list[i];
        }
    }
    o->count = kept;
}

static void remember(struct pm_config_origins *o, const char *path, const char *text,
                     const cJSON *v)
{
    PM_GROW(o->list, o->count, o->capacity);
    o->list[o->count++] =
        (struct pm_config_origin){ pm_strdup(path), pm_strdup(text), o->ranks, cJSON_IsObject(v) };
}

const struct pm_config_origin *pm_config_origin_find(const struct pm_config_origins *o,
                                                     const char *path)
{
    const struct pm_config_origin *best = NULL;

    for (size_t i = 0; i < o->count; i++)
        if (is_under(path, o->list[i].path) &&
            (!best || strlen(o->list[i].path) > strlen(best->path)))
            best = &o->list[i];
    return best;
}

const char *pm_config_place(const struct pm_config *c, const char *path)
{
    const struct pm_config_origin *o = pm_config_origin_find(c->origins, path);

    return pm_arena_printf(c->arena, "%s:", o ? o->text : c->path);
}

/* ---- one file into the tree ------------------------------------------------------------ */

/* A walk over a parsed file in document order, in step with its places. */
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

/* Remembers a value and everything inside it; w NULL: it stood on the command line. */
static void remember_all(struct pm_config_origins *o, struct walk *w, const cJSON *v,
                         struct pm_str *path)
{
    struct pm_str origin = { 0 }, name = { 0 };
    size_t length = path->length;
    int index = 0;

    if (w)
        pm_str_add(&origin, "%s:%d", w->file, w->places[w->next++].line);
    remember(o, path->text, w ? origin.text : "command line", v);
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
                forget(w->origins, path->text);
                cJSON_DeleteItemFromObjectCaseSensitive(dst, child->string);
            }
            cJSON_AddItemToObject(dst, child->string, cJSON_Duplicate(child, true));
            remember_all(w->origins, w, child, path);
        }
        cut(path, length);
    }
}

/* The files being read, the innermost first, so that a cycle is seen. */
struct reading {
    const char *path;
    char *real; /* NULL for text that is no file */
    const struct reading *outer;
};

static int check_cycle(const struct reading *r)
{
    for (const struct reading *o = r->outer; o; o = o->outer)
        if (o->real && r->real && strcmp(o->real, r->real) == 0)
            return pm_fail(PM_ECONFIG, "%s: base: the file is its own base, by way of %s", r->path,
                           r->outer->path);
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

static int merge_file(const char *path, const char *text, const struct reading *outer, cJSON *tree,
                      struct pm_config_origins *origins);

static int merge_base(const char *path, const cJSON *v, const struct reading *r, cJSON *tree,
                      struct pm_config_origins *origins)
{
    if (!cJSON_IsString(v))
        return pm_fail(PM_ECONFIG, "%s: base: a file name or a list of file names is needed", path);
    char *file = beside(path, v->valuestring);
    int err = merge_file(file, NULL, r, tree, origins);

    pm_free(file);
    return err;
}

static int merge_bases(const char *path, const cJSON *base, const struct reading *r, cJSON *tree,
                       struct pm_config_origins *origins)
{
    int err = PM_OK;

    if (!base || cJSON_IsNull(base))
        return PM_OK;
    if (!cJSON_IsArray(base))
        return merge_base(path, base, r, tree, origins);
    for (const cJSON *v = base->child; v; v = v->next)
        PM_TRY(merge_base(path, v, r, tree, origins));
out:
    return err;
}

static int merge_file(const char *path, const char *text, const struct reading *outer, cJSON *tree,
                      struct pm_config_origins *origins)
{
    int err = PM_OK;
    char *owned = NULL;
    size_t size = 0;
    cJSON *v = NULL;
    struct pm_json_place *places = NULL;
    struct pm_str prefix = { 0 };
    struct reading r = { path, text ? NULL : realpath(path, NULL), outer };

    PM_TRY(check_cycle(&r));
    if (!text && pm_file_read(path, &owned, &size) < 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s%s%s", outer ? outer->path : "", outer ? ": base: " : "",
                       pm_error_text()));
    if (owned && strlen(owned) != size)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: holds a zero byte, at offset %zu; it is no text", path,
                       strlen(owned)));
    PM_TRY(pm_json_parse_places(path, text ? text : owned, &v, &places));
    if (!cJSON_IsObject(v))
        PM_TRY(
            pm_fail(PM_ECONFIG, "%s:1: a config is an object: { \"model\": { ... }, ... }", path));
    PM_TRY(merge_bases(path, cJSON_GetObjectItemCaseSensitive(v, "base"), &r, tree, origins));
    origins->ranks++;
    struct walk w = { path, places, 0, origins };
    merge_object(&w, tree, v, &prefix);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, "base");
    forget(origins, "base");
out:
    pm_str_free(&prefix);
    pm_free(places);
    cJSON_Delete(v);
    pm_free(owned);
    free(r.real);
    return err;
}

/* ---- overrides ------------------------------------------------------------------------- */

/* The child of v that a segment names, or NULL. Missing objects are made on the way. */
static int step_into(cJSON **v, const char *segment, const char *key)
{
    char *end;

    if (cJSON_IsArray(*v)) {
        long index = strtol(segment, &end, 10);
        int count = cJSON_GetArraySize(*v);
        if (*end || !isdigit((unsigned char)segment[0]) || index >= count)
            return pm_fail(PM_ECONFIG,
                           "command line: %s: '%s' is no index of this list of %d "
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
    return pm_fail(PM_ECONFIG, "command line: %s: what holds '%s' is neither an object nor a list",
                   key, segment);
}

/* Takes *value when it succeeds. */
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
        PM_TRY(pm_fail(PM_ECONFIG, "command line: base: belongs into a file"));
    for (char *next; (next = strtok_r(NULL, ".", &save)); segment = next) {
        PM_TRY(step_into(&v, segment, key));
        PM_TRY(check_container(v, next, key));
    }
    if (pm_json_parse(key, value, &parsed) < 0)
        parsed = cJSON_CreateString(value);
    forget(origins, key);
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

    PM_TRY(merge_file(path, text, NULL, tree, origins));
    origins->ranks++;
    for (size_t i = 0; i < n; i++)
        PM_TRY(apply_override(overrides[i], tree, origins));
out:
    return err;
}
