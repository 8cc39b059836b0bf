/* suggest: finds the key or name that was probably meant. A word that is exactly a key of another
 * section, a flag of an original program or a name of another framework comes before words that
 * are only similar. */
#include "config/config_private.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *word, *key;
} keys[] = {
#define SUGGEST_KEY(word, key) { word, key },
#include "suggestions.def"
#undef SUGGEST_KEY
};

static const struct {
    const char *word, *name;
} names[] = {
#define SUGGEST_NAME(word, name) { word, name },
#include "suggestions.def"
#undef SUGGEST_NAME
};

const char *pm_suggest_name(const char *word, const struct pm_open_rows *rows)
{
    const char *name = word;

    for (size_t i = 0; i < PM_COUNT(names); i++)
        if (strcasecmp(names[i].word, word) == 0)
            name = names[i].name;
    for (size_t i = 0; i < rows->count; i++)
        if (strcasecmp(rows->rows[i].name, name) == 0)
            return rows->rows[i].name;
    return NULL;
}

const struct pm_flag *pm_suggest_none(const char *word)
{
    for (const struct pm_program *p = pm_programs; p->name; p++)
        for (const struct pm_flag *f = p->flag; f->flag; f++)
            if (!f->key && strcmp(f->flag, word) == 0 && strcmp(f->instead, "none") == 0)
                return f;
    return NULL;
}

/* The first section that has exactly this key. */
static const char *in_section(const char *word, const struct pm_open_task *task,
                              struct pm_arena *a)
{
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++) {
        const struct pm_opt *theirs = pm_config_task_opts(task, s->name);

        if (pm_opts_find(s->opts, word) >= 0 || (theirs && pm_opts_find(theirs, word) >= 0))
            return pm_arena_printf(a, "%s.%s", s->name, word);
    }
    return NULL;
}

const char *pm_suggest_key(const char *word, const struct pm_open_task *task, struct pm_arena *a)
{
    for (size_t i = 0; i < PM_COUNT(keys); i++)
        if (strcmp(keys[i].word, word) == 0)
            return keys[i].key;
    const char *here = in_section(word, task, a);
    const struct pm_reference *r = pm_reference_by_flag(word);
    return here ? here : r ? r->key : NULL;
}

const char *pm_suggest_similar(const char *word, const struct pm_open_task *task,
                               struct pm_arena *a)
{
    const char *known[512] = { NULL }, *paths[512];
    size_t count = 0;

    for (const struct pm_config_section *s = pm_config_sections; s->name; s++) {
        const struct pm_opt *const tables[] = { s->opts, pm_config_task_opts(task, s->name) };

        for (size_t k = 0; k < PM_COUNT(tables); k++)
            for (const struct pm_opt *o = tables[k]; o && o->type && count < PM_COUNT(known); o++) {
                known[count] = o->key;
                paths[count++] = pm_arena_printf(a, "%s.%s", s->name, o->key);
            }
    }
    const char *key = pm_nearest(word, known, count);
    for (size_t i = 0; key && i < count; i++)
        if (known[i] == key)
            return paths[i];
    return NULL;
}

const char *pm_config_suggest(const char *word, struct pm_arena *a)
{
    const char *dot = strrchr(word, '.'), *bare = dot ? dot + 1 : word;
    const char *key = pm_suggest_key(bare, NULL, a);

    return key ? key : pm_suggest_similar(bare, NULL, a);
}
