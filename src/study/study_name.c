/* study_name: names of points and runs: "lr=0.01,optim=adamw". They are names of folders, so they
 * have letters, digits and a few signs only. */
#include "study/study_parts.h"

#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <ctype.h>
#include <string.h>

enum { MOST_NAME = 120, MOST_VALUE = 40 };

static void add_word(struct pm_str *s, const char *text)
{
    size_t count = 0;

    for (; *text && count < MOST_VALUE; text++, count++)
        pm_str_add(s, "%c", isalnum((unsigned char)*text) || strchr("._+-", *text) ? *text : '_');
}

/* Position of the value among the entries of the key's list, by its name where it has one. */
static void add_object(struct pm_str *s, const struct pm_study_part *p, const cJSON *v)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "name"));
    int same = 0;

    for (const cJSON *e = p->spec->child; e; e = e->next) {
        const char *other = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "name"));
        same += name && other && strcmp(name, other) == 0;
    }
    if (same == 1) {
        add_word(s, name);
        return;
    }
    char *text = cJSON_PrintUnformatted(v);
    if (strlen(text) <= MOST_VALUE)
        add_word(s, text);
    else
        pm_str_add(s, "%s%s%06llx", name ? name : "", name ? "-" : "",
                   (unsigned long long)(pm_hash(text) & 0xffffff));
    cJSON_free(text);
}

/* Adds ",beta1=0.87" for each range inside an entry. */
static void add_inner(struct pm_str *s, const cJSON *spec, const cJSON *v)
{
    for (const cJSON *m = cJSON_IsObject(spec) ? spec->child : NULL; m; m = m->next) {
        const cJSON *is = cJSON_GetObjectItemCaseSensitive(v, m->string);

        if (cJSON_IsObject(is))
            add_inner(s, m, is);
        else if (cJSON_IsObject(m) && cJSON_IsNumber(is))
            pm_str_add(s, ",%s=%.6g", m->string, is->valuedouble);
    }
}

/* The entry of the list that a value was made of: the one whose other members it has. */
static const cJSON *entry_of(const struct pm_study_part *p, const cJSON *v)
{
    for (const cJSON *e = p->spec->child; e; e = e->next) {
        bool fits = cJSON_GetArraySize(e) == cJSON_GetArraySize(v);
        for (const cJSON *m = e->child; m && fits; m = m->next)
            fits = cJSON_IsObject(m) ||
                   cJSON_Compare(m, cJSON_GetObjectItemCaseSensitive(v, m->string), true);
        if (fits)
            return e;
    }
    return NULL;
}

static void add_value(struct pm_str *s, const struct pm_study_part *p, const cJSON *v)
{
    if (cJSON_IsNumber(v)) {
        pm_str_add(s, "%.6g", v->valuedouble);
    } else if (cJSON_IsString(v)) {
        add_word(s, v->valuestring);
    } else if (cJSON_IsObject(v)) {
        add_object(s, p, v);
        add_inner(s, entry_of(p, v), v);
    } else {
        char *text = cJSON_PrintUnformatted(v);
        add_word(s, text);
        cJSON_free(text);
    }
}

static bool is_taken(const struct pm_study *s, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(s->points[i].name, name) == 0)
            return true;
    return false;
}

void pm_study_name_points(struct pm_study *s)
{
    for (int i = 0; i < s->points_count; i++) {
        struct pm_str name = { 0 };

        for (int k = 0; k < s->keys_count; k++) {
            pm_str_add(&name, "%s%s=", k ? "," : "", s->keys[k].name);
            add_value(&name, &s->parts[s->keys[k].part], s->points[i].values[k]);
        }
        if (name.length > MOST_NAME) { /* a folder's name has at most 255 bytes */
            const uint64_t hash = pm_hash(name.text);
            name.length = MOST_NAME;
            name.text[MOST_NAME] = '\0';
            pm_str_add(&name, "-%08llx", (unsigned long long)(hash & 0xffffffff));
        }
        if (is_taken(s, i, name.text))
            pm_str_add(&name, "-%d", i + 1);
        s->points[i].name = pm_arena_strdup(s->arena, name.text);
        pm_str_free(&name);
    }
}

const char *pm_study_run_name(const struct pm_study *s, int point, int repeat)
{
    return pm_study_folder_of(s->arena, s->points[point].name, s->repeats, s->seed, repeat);
}
