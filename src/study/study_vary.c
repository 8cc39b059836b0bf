/* study_vary: the keys that vary, and their lists and ranges. A value is chosen by coordinates in
 * 0..1, one for each list or range. An entry of a list may be an object whose members are ranges
 * themselves, such as an optimizer with its own options. */
#include "study/study_parts.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const range_names[] = { "uniform", "log_uniform", "int" };

/* Returns the kind of range that an object states, or -1: it is another value. */
static int range_of(const cJSON *v)
{
    if (!cJSON_IsObject(v) || !v->child || v->child->next)
        return -1;
    for (int k = 0; k < (int)PM_COUNT(range_names); k++)
        if (strcmp(v->child->string, range_names[k]) == 0)
            return k;
    return -1;
}

/* Message for a range without two rising numbers. */
static int fail_range(const struct pm_config *c, const char *path, const char *kind,
                      const char *what)
{
    return pm_fail(PM_ECONFIG, "%s: study.vary: %s: %s: %s, for example { \"%s\": [%s] }",
                   pm_config_source(c, "study.vary"), path, kind, what, kind,
                   strcmp(kind, "int") == 0 ? "2, 8" : "0.001, 0.1");
}

static int read_range(const struct pm_config *c, const cJSON *v, int kind, const char *path,
                      struct pm_study_part *part)
{
    const cJSON *list = v->child, *low = cJSON_GetArrayItem(list, 0);
    const cJSON *high = cJSON_GetArrayItem(list, 1);
    const char *name = range_names[kind];

    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 2 || !cJSON_IsNumber(low) ||
        !cJSON_IsNumber(high))
        return fail_range(c, path, name, "the lowest and the highest number are needed");
    if (!(low->valuedouble < high->valuedouble))
        return fail_range(c, path, name, "the first number must be below the second one");
    if (kind == PM_RANGE_LOG_UNIFORM && low->valuedouble <= 0)
        return fail_range(c, path, name, "both numbers must be above 0");
    if (kind == PM_RANGE_INT && (low->valuedouble != floor(low->valuedouble) ||
                                 high->valuedouble != floor(high->valuedouble) ||
                                 fabs(low->valuedouble) > 1e9 || fabs(high->valuedouble) > 1e9))
        return fail_range(c, path, name, "whole numbers of at most 1e9 are needed");
    part->range = (enum pm_study_range)kind;
    part->low = low->valuedouble;
    part->high = high->valuedouble;
    return PM_OK;
}

static int add_part(struct pm_study *s, const struct pm_config *c, const cJSON *v,
                    const char *path)
{
    if (s->parts_count == PM_STUDY_PARTS)
        return pm_fail(PM_ECONFIG, "%s: study.vary: %s is list or range number %d, %d are possible",
                       pm_config_source(c, "study.vary"), path, PM_STUDY_PARTS + 1,
                       PM_STUDY_PARTS);
    s->parts[s->parts_count++] = (struct pm_study_part){ .spec = v, .path = path };
    return PM_OK;
}

/* Adds the ranges inside an entry of a list. */
static int read_inside(struct pm_study *s, const struct pm_config *c, const cJSON *v,
                       const char *path)
{
    int err = PM_OK;

    for (const cJSON *m = cJSON_IsObject(v) ? v->child : NULL; m; m = m->next) {
        const char *inner = pm_arena_printf(s->arena, "%s.%s", path, m->string);
        const int kind = range_of(m);

        if (kind < 0) {
            PM_TRY(read_inside(s, c, m, inner));
            continue;
        }
        PM_TRY(add_part(s, c, m, inner));
        PM_TRY(read_range(c, m, kind, inner, &s->parts[s->parts_count - 1]));
    }
out:
    return err;
}

static int read_list(struct pm_study *s, const struct pm_config *c, const cJSON *v,
                     const char *key)
{
    const int index = s->parts_count - 1;
    int i = 0, err = PM_OK;

    s->parts[index].count = cJSON_GetArraySize(v);
    if (s->parts[index].count == 0)
        return pm_fail(PM_ECONFIG, "%s: study.vary: %s: the list is empty: give it values, or "
                       "remove the key", pm_config_source(c, "study.vary"), key);
    for (const cJSON *e = v->child; e; e = e->next, i++) {
        for (const cJSON *o = v->child; o != e; o = o->next)
            if (cJSON_Compare(o, e, true))
                return pm_fail(PM_ECONFIG, "%s: study.vary: %s: entry %d equals an earlier one: "
                               "remove it (study.repeats trains a point several times)",
                               pm_config_source(c, "study.vary"), key, i);
        PM_TRY(read_inside(s, c, e, pm_arena_printf(s->arena, "%s.%d", key, i)));
    }
out:
    return err;
}

/* ---- names ------------------------------------------------------------------------------- */

/* Short names of frequent keys. */
static const char *alias_of(const char *key)
{
    static const char *const list[][2] = {
        { "schedule.base_lr", "lr" }, { "run.batch_size", "batch" }, { "model.name", "model" },
        { "run.seed", "seed" },
    };

    for (size_t i = 0; i < PM_COUNT(list); i++)
        if (strcmp(list[i][0], key) == 0)
            return list[i][1];
    return NULL;
}

/* Returns the last `parts` parts of a dotted key. */
static const char *tail_of(const char *key, int parts)
{
    const char *at = key + strlen(key);

    while (at > key && (at[-1] != '.' || --parts > 0))
        at--;
    return at;
}

/* Gives each key the shortest end of its path that no other key has. */
static void name_keys(struct pm_study *s)
{
    for (int i = 0; i < s->keys_count; i++) {
        const char *key = s->keys[i].key, *alias = alias_of(key);
        bool alone = false;

        if (alias) {
            s->keys[i].name = alias;
            continue;
        }
        for (int parts = 1; !alone; parts++) {
            const char *name = tail_of(key, parts);
            alone = true;
            for (int k = 0; k < s->keys_count; k++) {
                const char *other = alias_of(s->keys[k].key);
                if (k != i && strcmp(other ? other : tail_of(s->keys[k].key, parts), name) == 0)
                    alone = name == key;
            }
            s->keys[i].name = name;
        }
    }
}

/* ---- the whole --------------------------------------------------------------------------- */

bool pm_study_varies(const struct pm_study *s, const char *key)
{
    for (int k = 0; k < s->keys_count; k++)
        if (strcmp(s->keys[k].key, key) == 0)
            return true;
    return false;
}

bool pm_study_overlap(const char *a, const char *b)
{
    const size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

    return strncmp(a, b, n) == 0 && (a[n] == '\0' || a[n] == '.') && (b[n] == '\0' || b[n] == '.');
}

static int check_key(const struct pm_study *s, const struct pm_config *c, const cJSON *v)
{
    static const char *const own[] = { "study", "base", "run.folder", "run.pause_step", "task" };
    const char *key = v->string;

    for (size_t i = 0; i < PM_COUNT(own); i++)
        if (pm_study_overlap(key, own[i]) && strcmp(key, "run") != 0)
            return pm_fail(PM_ECONFIG, "%s: study.vary: %s: this key cannot vary in a study",
                           pm_config_source(c, "study.vary"), key);
    if (strcmp(key, "run") == 0)
        return pm_fail(PM_ECONFIG, "%s: study.vary: run: the section as a whole cannot vary: name "
                       "its keys, such as run.batch_size", pm_config_source(c, "study.vary"));
    for (int i = 0; i < s->keys_count; i++)
        if (pm_study_overlap(key, s->keys[i].key))
            return pm_fail(PM_ECONFIG, "%s: study.vary: %s and %s set the same values: remove one",
                           pm_config_source(c, "study.vary"), s->keys[i].key, key);
    if (strcmp(key, "run.seed") == 0 && s->repeats > 1)
        return pm_fail(PM_ECONFIG, "%s: study.vary: run.seed: study.repeats %d gives the runs of a "
                       "point other seeds already: remove one of the two",
                       pm_config_source(c, "study.vary"), s->repeats);
    return PM_OK;
}

static int read_key(struct pm_study *s, const struct pm_config *c, const cJSON *v)
{
    const int kind = range_of(v);
    int err = PM_OK;

    PM_TRY(check_key(s, c, v));
    if (kind < 0 && !cJSON_IsArray(v))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: study.vary: %s: a list of values is needed, or a range "
                       "such as { \"uniform\": [0, 1] } (uniform, log_uniform, int)",
                       pm_config_source(c, "study.vary"), v->string));
    s->keys[s->keys_count++] =
        (struct pm_study_key){ .key = v->string, .part = s->parts_count };
    PM_TRY(add_part(s, c, v, v->string));
    PM_TRY(kind < 0 ? read_list(s, c, v, v->string)
                    : read_range(c, v, kind, v->string, &s->parts[s->parts_count - 1]));
out:
    return err;
}

int pm_study_read_vary(struct pm_study *s, const struct pm_config *c)
{
    const cJSON *vary = c->study.vary;
    const int count = cJSON_GetArraySize(vary);
    int err = PM_OK;

    if (!cJSON_IsObject(vary) || count == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: study.vary: an object with at least one key is needed, "
                       "such as { \"schedule.base_lr\": [0.1, 0.01] }",
                       pm_config_source(c, "study")));
    s->parts = pm_arena_alloc(s->arena, PM_STUDY_PARTS * sizeof *s->parts);
    s->keys = pm_arena_alloc(s->arena, (size_t)count * sizeof *s->keys);
    for (const cJSON *v = vary->child; v; v = v->next)
        PM_TRY(read_key(s, c, v));
    name_keys(s);
out:
    return err;
}

/* ---- values ------------------------------------------------------------------------------ */

/* A number of a range; u in [0, 1). Four digits are enough for an experiment, and are easy to
 * read. */
static double number_at(const struct pm_study_part *p, double u)
{
    char text[32];

    if (p->range == PM_RANGE_INT)
        return p->low + floor(u * (p->high - p->low + 1));
    const double v = p->range == PM_RANGE_UNIFORM ? p->low + u * (p->high - p->low)
                                                  : p->low * pow(p->high / p->low, u);
    snprintf(text, sizeof text, "%.4g", v);
    return fmin(fmax(strtod(text, NULL), p->low), p->high);
}

/* Replaces the ranges inside a value by numbers. *part: the next part. */
static void settle_inside(const struct pm_study *s, cJSON *v, const double *u, int *part)
{
    for (cJSON *m = cJSON_IsObject(v) ? v->child : NULL, *next; m; m = next) {
        next = m->next;
        if (range_of(m) < 0) {
            settle_inside(s, m, u, part);
            continue;
        }
        cJSON_ReplaceItemInObjectCaseSensitive(
            v, m->string, cJSON_CreateNumber(number_at(&s->parts[*part], u[*part])));
        (*part)++;
    }
}

cJSON *pm_study_value(const struct pm_study *s, int key, const double *u)
{
    const struct pm_study_key *k = &s->keys[key];
    const struct pm_study_part *p = &s->parts[k->part];
    int part = k->part + 1, index = 0;
    cJSON *value = NULL;

    if (p->count == 0)
        return cJSON_CreateNumber(number_at(p, u[k->part]));
    const int chosen = (int)fmin(u[k->part] * p->count, p->count - 1);
    for (const cJSON *e = p->spec->child; e; e = e->next, index++) {
        cJSON *copy = cJSON_Duplicate(e, true);
        settle_inside(s, copy, u, &part);
        if (index == chosen)
            value = copy;
        else
            cJSON_Delete(copy);
    }
    return value;
}
