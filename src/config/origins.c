/* origins: where each value of a config comes from: a line of a file, the command line, or a
 * default. merge.c stores them. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <string.h>

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

void pm_config_origins_forget(struct pm_config_origins *o, const char *top)
{
    size_t left = 0;

    for (size_t i = 0; i < o->count; i++) {
        if (is_under(o->list[i].path, top)) {
            pm_free(o->list[i].path);
            pm_free(o->list[i].text);
        } else {
            o->list[left++] = o->list[i];
        }
    }
    o->count = left;
}

void pm_config_origins_add(struct pm_config_origins *o, const char *path, const char *text,
                           const struct cJSON *v)
{
    PM_GROW(o->list, o->count, o->capacity);
    o->list[o->count++] =
        (struct pm_config_origin){ pm_strdup(path), pm_strdup(text), o->ranks, cJSON_IsObject(v) };
}

void pm_config_origin_default(struct pm_config_origins *o, const char *path, const char *text)
{
    const int ranks = o->ranks;
    const cJSON value = { .type = cJSON_NULL };

    pm_config_origins_forget(o, path);
    o->ranks = 0;
    pm_config_origins_add(o, path, text, &value);
    o->ranks = ranks;
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

const char *pm_config_origin(const struct pm_config *c, const char *path)
{
    const struct pm_config_origin *o = pm_config_origin_find(c->origins, path);

    return o && (!o->object || strcmp(o->path, path) == 0) ? o->text : "default";
}

bool pm_config_is_default(const struct pm_config *c, const char *path)
{
    static const char word[] = "default";
    const char *origin = pm_config_origin(c, path);
    const size_t n = sizeof word - 1;

    return strncmp(origin, word, n) == 0 && (!origin[n] || strncmp(origin + n, " of ", 4) == 0);
}

const char *pm_config_source(const struct pm_config *c, const char *path)
{
    return pm_config_is_default(c, path) ? c->path : pm_config_origin(c, path);
}
