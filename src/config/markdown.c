/* The reference pages in Markdown, printed from the tables that also parse a config: every key
 * (docs/keys.md), and the key that replaces each flag of the original programs (docs/migrating.md).
 * `pumice config schema --update` writes the pages; a test compares the committed pages. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* ---- one option ------------------------------------------------------------------------ */

static const char *type_name(const struct pm_opt *o)
{
    static const char *const names[] = {
        [PM_OPT_INT] = "int",      [PM_OPT_INT64] = "int",     [PM_OPT_FLOAT] = "float",
        [PM_OPT_DOUBLE] = "float", [PM_OPT_BOOL] = "bool",     [PM_OPT_STRING] = "string",
        [PM_OPT_INTS] = "ints",    [PM_OPT_FLOATS] = "floats", [PM_OPT_STRINGS] = "strings",
        [PM_OPT_JSON] = "JSON",
    };
    return names[o->type];
}

static void add_type(struct pm_str *s, const struct pm_opt *o)
{
    if (o->type != PM_OPT_ENUM) {
        pm_str_add(s, "%s%s%s", type_name(o), o->choices ? "\\|" : "",
                   o->choices ? o->choices : "");
        return;
    }
    for (const char *c = o->choices; *c; c++)
        pm_str_add(s, *c == '|' ? "\\|" : "%c", *c);
}

/* Prints the range in the option's schema: "0..64", "0.." or nothing. */
static void add_range(struct pm_str *s, const cJSON *schema)
{
    const cJSON *holder = cJSON_GetObjectItemCaseSensitive(schema, "items");
    const cJSON *min, *max;

    holder = holder ? holder : schema;
    if (cJSON_GetObjectItemCaseSensitive(holder, "anyOf"))
        holder = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(holder, "anyOf"), 0);
    min = cJSON_GetObjectItemCaseSensitive(holder, "minimum");
    max = cJSON_GetObjectItemCaseSensitive(holder, "maximum");
    if (min)
        pm_str_add(s, "%.10g..", min->valuedouble);
    if (max && max->valuedouble < 2147483647)
        pm_str_add(s, "%.10g", max->valuedouble);
}

/* Returns the default as JSON text, freed with pm_free; NULL if the table has no such key. */
static char *default_text(const struct pm_opt *opts, const char *key)
{
    const int i = opts ? pm_opts_find(opts, key) : -1;

    if (i < 0)
        return NULL;
    cJSON *def = pm_opt_default(&opts[i]);
    char *text = pm_json_print(def);
    cJSON_Delete(def);
    return text;
}

/* Returns the task of every row that has the key; "" if rows serve several tasks, or any. */
static const char *task_of_rows(const struct pm_open_rows *rows, const char *key)
{
    const char *task = NULL;

    for (size_t i = 0; i < rows->count; i++) {
        const struct pm_open_row *r = &rows->rows[i];

        if (!r->opts || pm_opts_find(r->opts, key) < 0)
            continue;
        if (!r->task || (task && strcmp(task, r->task) != 0))
            return "";
        task = r->task;
    }
    return task ? task : "";
}

/* ---- docs/keys.md: tables of keys ------------------------------------------------------- */

static void add_head(struct pm_str *s)
{
    pm_str_add(
        s, "| key | type | default | range | only for | meaning |\n|---|---|---|---|---|---|\n");
}

/* Adds the defaults that a task sets for a key, those with or without a condition. row: only those
 * for this open row; NULL: all. */
static void add_defaults_of(struct pm_str *s, const struct pm_open_task *task, const char *key,
                            const char *row, bool with_condition)
{
    for (const struct pm_task_default *d = task->defaults; d && d->key; d++) {
        if (strcmp(d->key, key) != 0 || !d->when == with_condition)
            continue;
        if (row && d->when && strcmp(d->is, row) != 0)
            continue;
        pm_str_add(s, ", %s", task->name);
        if (d->when)
            pm_str_add(s, " with `%s` %s", d->when, d->is);
        pm_str_add(s, " `%s`", d->value);
    }
}

static void add_task_defaults(struct pm_str *s, const struct pm_open_sections *open,
                              const char *key, const char *row)
{
    for (size_t i = 0; i < open->task_count; i++) {
        add_defaults_of(s, open->tasks[i], key, row, false);
        add_defaults_of(s, open->tasks[i], key, row, true);
    }
}

/* Adds the rows of one option table. section: also a key that has keys of its own; "devices[]" for
 * a list. task: the only task that has the table; NULL: the table is of these open rows, or (rows
 * NULL) of every task. open: the tasks, whose defaults are added; NULL: none. row: the open row's
 * name, or NULL. */
static void add_options(struct pm_str *s, const char *section, const struct pm_opt *opts,
                        const char *task, const struct pm_open_rows *rows,
                        const struct pm_open_sections *open, const char *row)
{
    struct pm_str key = { 0 };
    cJSON *schema = cJSON_CreateObject();

    pm_opts_schema(opts, schema);
    for (; opts->type; opts++) {
        const cJSON *o = cJSON_GetObjectItemCaseSensitive(schema, opts->key);
        const cJSON *def = cJSON_GetObjectItemCaseSensitive(o, "default");
        char *text = def ? pm_json_print(def) : pm_strdup("null");
        const char *only = task ? task : rows ? task_of_rows(rows, opts->key) : "";

        pm_str_add(s, "| `%s.%s` | ", section, opts->key);
        add_type(s, opts);
        pm_str_add(s, " | `%s`", text);
        key.length = 0;
        pm_str_add(&key, "%s.%s", section, opts->key);
        if (open)
            add_task_defaults(s, open, key.text, row);
        pm_str_add(s, " | ");
        add_range(s, o);
        pm_str_add(s, " | %s | %s |\n", only, opts->help);
        pm_free(text);
    }
    pm_str_free(&key);
    cJSON_Delete(schema);
}

/* Adds the defaults that the row's variant changes. A variant may change no option, but only
 * objects of the task, which docs/detection.md lists. */
static void add_variant(struct pm_str *s, const struct pm_open_row *row)
{
    if (row->variant->opts == row->opts)
        return;
    pm_str_add(s, "\nDefaults with `%s` \"%s\":", row->variant_key, row->variant_value);
    for (const struct pm_opt *o = row->variant->opts; o->type; o++) {
        char *theirs = default_text(row->variant->opts, o->key);
        char *ours = default_text(row->opts, o->key);
        if (strcmp(o->key, row->variant_key) != 0 && (!ours || strcmp(ours, theirs) != 0))
            pm_str_add(s, " `%s` `%s`,", o->key, theirs);
        pm_free(theirs);
        pm_free(ours);
    }
    if (row->variant->preprocessing)
        pm_str_add(s, " `input.preprocessing` `\"%s\"`,", row->variant->preprocessing);
    s->text[s->length - 1] = '.';
    pm_str_add(s, "\n");
}

/* Returns an open row's table; the text is empty if the row has no options. */
static struct pm_str row_table(const struct pm_config_section *section,
                               const struct pm_open_rows *rows, const struct pm_open_row *row,
                               const struct pm_open_sections *open)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "%s", "");
    if (!row->opts || !row->opts->type)
        return s;
    add_head(&s);
    add_options(&s, section->name, row->opts, NULL, rows, open, row->name);
    if (row->variant)
        add_variant(&s, row);
    return s;
}

/* Adds one table per group of rows with equal options and defaults. */
static void add_rows(struct pm_str *s, const struct pm_config_section *section,
                     const struct pm_open_rows *rows, const struct pm_open_sections *open)
{
    struct pm_str *tables = pm_calloc(rows->count, sizeof *tables);

    for (size_t i = 0; i < rows->count; i++)
        tables[i] = row_table(section, rows, &rows->rows[i], open);
    for (size_t i = 0; i < rows->count; i++) {
        if (!tables[i].length)
            continue;
        pm_str_add(s, "\n### %s of %s", section->name, rows->rows[i].name);
        for (size_t k = i + 1; k < rows->count; k++)
            if (strcmp(tables[k].text, tables[i].text) == 0) {
                pm_str_add(s, ", %s", rows->rows[k].name);
                tables[k].length = 0;
            }
        pm_str_add(s, "\n\n%s", tables[i].text);
    }
    for (size_t i = 0; i < rows->count; i++)
        pm_str_free(&tables[i]);
    pm_free(tables);
}

static void add_names(struct pm_str *s, const struct pm_config_section *section,
                      const struct pm_open_rows *rows)
{
    pm_str_add(s, "\n| `%s.%s` | |\n|---|---|\n", section->name, section->row_key);
    for (size_t i = 0; i < rows->count; i++)
        pm_str_add(s, "| `%s` | %s |\n", rows->rows[i].name,
                   rows->rows[i].help ? rows->rows[i].help : "");
}

/* Adds input.augment: its entries are documented like a section. */
static void add_augmentations(struct pm_str *s, const struct pm_open_sections *open)
{
    const struct pm_open_rows *rows = &open->augmentations;
    static const struct pm_config_section entry = { .name = "input.augment[]", .row_key = "name" };

    add_names(s, &entry, rows);
    add_rows(s, &entry, rows, open);
}

/* Top-level keys, which are in no section's table. */
static const struct {
    const char *key, *type, *def, *help;
} top_keys[] = {
    { "task", NULL, "\"classification\"", "what the net is trained for" }, /* from open->tasks */
    { "base", "strings", "[]",
      "files that are merged before this one; each path is relative to the "
      "file that names it" },
    { "devices", "list", "[\"auto\"]",
      "an entry for each clone of the net: a device's name, or an "
      "object with the keys below" },
    { "replicas", "list", "[]", pm_config_replicas_help },
};

static void add_top(struct pm_str *s, const struct pm_open_sections *open)
{
    struct pm_str tasks = { 0 };

    for (size_t i = 0; i < open->task_count; i++)
        pm_str_add(&tasks, "%s%s", i ? "\\|" : "", open->tasks[i]->name);
    pm_str_add(s, "\n## Top level\n\n");
    add_head(s);
    for (size_t i = 0; i < PM_COUNT(top_keys); i++)
        pm_str_add(s, "| `%s` | %s | `%s` | | | %s |\n", top_keys[i].key,
                   top_keys[i].type ? top_keys[i].type : tasks.text, top_keys[i].def,
                   top_keys[i].help);
    pm_str_free(&tasks);
    add_options(s, "devices[]", pm_config_device_opts, NULL, NULL, NULL, NULL);
    add_options(s, "replicas[]", pm_config_replica_opts, NULL, NULL, NULL, NULL);
}

/* Adds the keys that are known and refused. */
static void add_refused(struct pm_str *s)
{
    pm_str_add(s, "\n## Refused keys\n\nThese names come from other programs, or from earlier "
                  "versions. A config that uses one of them is refused with this text.\n\n"
                  "| key | what to do instead |\n|---|---|\n");
    for (const struct pm_refused *r = pm_refused_keys; r->key; r++)
        pm_str_add(s, "| `%s` | %s. |\n", r->key, r->instead);
}

/* Adds the values of run.keep_best and run.early_stop.metric. */
static void add_metrics(struct pm_str *s, const struct pm_open_sections *open)
{
    pm_str_add(s, "\nMetrics for `run.keep_best` and `run.early_stop` (`auto`: the first one):\n\n"
                  "| task | metrics |\n|---|---|\n");
    for (size_t i = 0; i < open->task_count; i++) {
        pm_str_add(s, "| %s | ", open->tasks[i]->name);
        for (const struct pm_metric_kind *m = open->tasks[i]->metrics; m->name; m++) {
            pm_str_add(s, "%s`%s`", m == open->tasks[i]->metrics ? "" : ", ", m->name);
            if (m->needs)
                pm_str_add(s, " (%s)", m->needs);
        }
        pm_str_add(s, " |\n");
    }
}

/* Adds the keys of tasks in a section, and in objects inside it. */
static void add_tasks(struct pm_str *s, const struct pm_open_sections *open, const char *section)
{
    const size_t length = strlen(section);

    for (size_t i = 0; i < open->task_count; i++)
        for (const struct pm_task_section *t = open->tasks[i]->sections; t && t->section; t++)
            if (strncmp(t->section, section, length) == 0 &&
                (t->section[length] == '.' || t->section[length] == 0))
                add_options(s, t->section, t->opts, open->tasks[i]->name, NULL, NULL, NULL);
}

char *pm_config_keys_markdown(const struct pm_open_sections *open)
{
    struct pm_str s = { 0 };

    pm_str_add(&s,
               "\n| section | contents |\n|---|---|\n| [Top level](#top-level) | task, base files, "
               "devices |\n");
    for (const struct pm_config_section *c = pm_config_sections; c->name; c++)
        pm_str_add(&s, "| [`%s`](#%s) | %s |\n", c->name, c->name, c->help);
    pm_str_add(&s,
               "| [Refused keys](#refused-keys) | names of other programs and earlier versions "
               "|\n");
    add_top(&s, open);
    for (const struct pm_config_section *c = pm_config_sections; c->name; c++) {
        const struct pm_open_rows *rows = pm_config_rows(c, open);
        pm_str_add(&s, "\n## %s\n\n%s\n\n", c->name, c->help);
        add_head(&s);
        add_options(&s, c->name, c->opts, NULL, NULL, open, NULL);
        add_tasks(&s, open, c->name);
        if (strcmp(c->name, "run") == 0)
            add_options(&s, "run.early_stop", pm_config_early_stop_opts, NULL, NULL, NULL,
                        NULL);
        if (strcmp(c->name, "run") == 0)
            add_metrics(&s, open);
        if (rows && rows->count) {
            add_names(&s, c, rows);
            add_rows(&s, c, rows, open);
            if (strcmp(c->name, "input") == 0 && open->augmentations.count)
                add_augmentations(&s, open);
        }
    }
    add_refused(&s);
    return s.text;
}

/* ---- docs/migrating.md: a key and its default here ------------------------------------- */

/* Adds the default of an open row's option. If rows differ, adds each default with its rows'
 * names. */
static void add_row_defaults(struct pm_str *s, const struct pm_open_rows *rows, const char *key)
{
    enum { MOST = 8 };
    char *texts[MOST] = { NULL };
    struct pm_str names[MOST] = { { 0 } };
    int count = 0, had = 0;

    for (size_t i = 0; i < rows->count && count < MOST; i++) {
        char *text = default_text(rows->rows[i].opts, key);
        int k = 0;
        if (!text)
            continue;
        while (k < count && strcmp(texts[k], text) != 0)
            k++;
        if (k == count)
            texts[count++] = pm_strdup(text);
        pm_str_add(&names[k], "%s%s", names[k].length ? ", " : "", rows->rows[i].name);
        had++;
        pm_free(text);
    }
    for (int k = 0; k < count; k++) {
        if (count == 1)
            pm_str_add(s, "`%s`", texts[k]);
        else if (had <= MOST)
            pm_str_add(s, "%s`%s` (%s)", k ? ", " : "", texts[k], names[k].text);
        else if (k == 0)
            pm_str_add(s, "by the name");
        pm_free(texts[k]);
        pm_str_free(&names[k]);
    }
}

/* Finds the section's or a task's table that has a key ("eval." or "eval.NAME."), and the key's
 * name in it. NULL: the key is top-level, of an open row, or refused. */
static const struct pm_opt *closed_table(const struct pm_open_sections *open, const char *key,
                                         const char **name)
{
    const size_t n = strcspn(key, ".");
    const struct pm_config_section *c = pm_config_section_find(key, n);

    if (!c)
        return NULL;
    *name = key + n + 1;
    if (pm_opts_find(c->opts, *name) >= 0)
        return c->opts;
    for (size_t i = 0; i < open->task_count; i++)
        for (const struct pm_task_section *s = open->tasks[i]->sections; s && s->section; s++) {
            const size_t length = strlen(s->section);

            if (strncmp(key, s->section, length) == 0 && key[length] == '.' &&
                pm_opts_find(s->opts, key + length + 1) >= 0) {
                *name = key + length + 1;
                return s->opts;
            }
        }
    return NULL;
}

/* Returns the default that a task sets for a key whatever the other keys are, or NULL. */
static const char *task_default(const struct pm_open_sections *open, const char *task,
                                const char *key)
{
    for (size_t i = 0; task && i < open->task_count; i++) {
        const struct pm_task_default *d = open->tasks[i]->defaults;

        if (strcmp(open->tasks[i]->name, task) != 0)
            continue;
        for (; d && d->key; d++)
            if (strcmp(d->key, key) == 0 && !d->when)
                return d->value;
    }
    return NULL;
}

/* task: the task of the programs that the table is about; NULL: any. */
static void add_default(struct pm_str *s, const struct pm_open_sections *open, const char *key,
                        const char *task)
{
    const struct pm_config_section *c = pm_config_section_find(key, strcspn(key, "."));
    const char *name;
    const struct pm_opt *closed = closed_table(open, key, &name);

    if (task_default(open, task, key)) {
        pm_str_add(s, "`%s`", task_default(open, task, key));
    } else if (closed) {
        char *text = default_text(closed, name);
        pm_str_add(s, "`%s`", text);
        pm_free(text);
    } else if (!c) {
        for (size_t i = 0; i < PM_COUNT(top_keys); i++)
            if (strcmp(top_keys[i].key, key) == 0)
                pm_str_add(s, "`%s`", top_keys[i].def);
    } else if (pm_config_rows(c, open)) {
        add_row_defaults(s, pm_config_rows(c, open), key + strcspn(key, ".") + 1);
    }
}

/* Adds "`run.steps` | `0` |", or "none | |" for a key that is refused. */
static void add_key(struct pm_str *s, const struct pm_open_sections *open, const char *key,
                    const char *task)
{
    if (pm_refused_find(key)) {
        pm_str_add(s, "none | |");
        return;
    }
    pm_str_add(s, "`%s` | ", key);
    add_default(s, open, key, task);
    pm_str_add(s, " |");
}

/* ---- docs/migrating.md: flags by program ------------------------------------------------ */

static void add_flag(struct pm_str *s, const struct pm_open_sections *open, const struct pm_flag *f,
                     const char *task)
{
    pm_str_add(s, "| `%s` | %s | ", f->flag, f->def);
    if (f->key)
        add_key(s, open, f->key, task);
    else
        pm_str_add(s, "%s | |", f->instead);
    pm_str_add(s, "%s%s |\n", f->note ? " " : "", f->note ? f->note : "");
}

static void add_programs(struct pm_str *s, const struct pm_open_sections *open)
{
    for (const struct pm_program *p = pm_programs; p->name; p++) {
        pm_str_add(s,
                   "\n### %s\n\n%s\n\n| flag | default there | here | default here | note |\n"
                   "|---|---|---|---|---|\n",
                   p->name, p->help);
        for (const struct pm_flag *f = p->flag; f->flag; f++)
            add_flag(s, open, f, p->task);
    }
}

/* ---- docs/migrating.md: other original names in reference.c -------------------------------- */

struct alias {
    char *name;                   /* owned: the original's */
    const struct pm_reference *r; /* our key */
};

static int by_name(const void *a, const void *b)
{
    const struct alias *x = a, *y = b;
    const int order = strcmp(x->name, y->name);

    return order ? order : strcmp(x->r->key, y->r->key);
}

/* Collects the names in a column of reference.c. column: offset of slim, deeplab or detection in
 * struct pm_reference. *out: the names in alphabetical order. Returns their number. */
static size_t collect(size_t column, struct alias **out)
{
    size_t count = 0, capacity = 0;
    struct alias *list = NULL;

    for (const struct pm_reference *r = pm_references; r->key; r++) {
        const char *names = *(const char *const *)((const char *)r + column);
        for (const char *c = names; c && *c; c += strcspn(c, ","), c += strspn(c, ", ")) {
            struct pm_str name = { 0 };
            pm_str_add(&name, "%.*s", (int)strcspn(c, ","), c);
            PM_GROW(list, count, capacity);
            list[count++] = (struct alias){ name.text, r };
        }
    }
    if (count)
        qsort(list, count, sizeof *list, by_name);
    *out = list;
    return count;
}

static const char *help_of(const struct pm_open_sections *open, const struct pm_reference *r)
{
    const struct pm_config_section *c = pm_config_section_find(r->key, strcspn(r->key, "."));
    const struct pm_open_rows *rows = c ? pm_config_rows(c, open) : NULL;
    const char *name;
    const struct pm_opt *closed = closed_table(open, r->key, &name);

    if (pm_refused_find(r->key))
        return pm_refused_find(r->key)->instead;
    if (closed)
        return closed[pm_opts_find(closed, name)].help;
    for (size_t i = 0; rows && i < rows->count; i++) {
        const struct pm_opt *opts = rows->rows[i].opts;
        const int k = opts ? pm_opts_find(opts, r->key + strcspn(r->key, ".") + 1) : -1;
        if (k >= 0)
            return opts[k].help;
    }
    for (size_t i = 0; i < PM_COUNT(top_keys); i++)
        if (strcmp(top_keys[i].key, r->key) == 0)
            return top_keys[i].help;
    return "";
}

/* Adds the names of a column of reference.c. task: whose defaults are given; NULL: the keys' own.
 * elsewhere: whether another table has a name; NULL: none does. */
static void add_aliases(struct pm_str *s, const struct pm_open_sections *open, const char *title,
                        const char *help, size_t column, const char *task,
                        bool (*elsewhere)(const char *name))
{
    struct alias *list;
    const size_t count = collect(column, &list);

    pm_str_add(s,
               "\n### %s\n\n%s\n\n| name there | here | default here | meaning here |\n"
               "|---|---|---|---|\n",
               title, help);
    for (size_t i = 0; i < count; i++) {
        if (!elsewhere || !elsewhere(list[i].name)) {
            pm_str_add(s, "| `%s` | ", list[i].name);
            add_key(s, open, list[i].r->key, task);
            pm_str_add(s, " %s |\n", help_of(open, list[i].r));
        }
        pm_free(list[i].name);
    }
    pm_free(list);
}

/* Whether a table of DeepLab's programs has a flag. */
static bool is_of_deeplab(const char *name)
{
    for (const struct pm_program *p = pm_programs; p->name; p++)
        for (const struct pm_flag *f = p->flag; p->task && f->flag; f++)
            if (strcmp(f->flag, name) == 0)
                return true;
    return false;
}

char *pm_config_flags_markdown(const struct pm_open_sections *open,
                               bool (*is_field)(const char *name))
{
    struct pm_str s = { 0 };

    add_programs(&s, open);
    add_aliases(&s, open, "Arguments of TF-Slim's functions",
                "Python arguments that its programs had no flags for.",
                offsetof(struct pm_reference, slim), NULL, NULL);
    add_aliases(
        &s, open, "Other names in DeepLab",
        "Fields of its options without a flag, and flags of forks and of the panoptic scorer.",
        offsetof(struct pm_reference, deeplab), "segmentation", is_of_deeplab);
    add_aliases(&s, open, "TensorFlow Object Detection API",
                "Flags of its programs, and names of its forks. The fields of its pipeline config "
                "are in [other tables](#fields-of-pipeline-configs).",
                offsetof(struct pm_reference, detection), NULL, is_field);
    return s.text;
}
