/* What the tables say, for machines (JSON Schema) and for people (Markdown). */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <string.h>

/* ---- JSON Schema ----------------------------------------------------------------------- */

/* Adds the options of one row to a section's properties. Where two rows mean different things by
 * one key, either is allowed: which one counts is known only when the file is read. */
static void add_row(cJSON *properties, const struct pm_open_row *row)
{
    cJSON *own = cJSON_CreateObject();

    if (row->opts)
        pm_opts_schema(row->opts, own);
    while (own->child) {
        cJSON *v = cJSON_DetachItemViaPointer(own, own->child);
        cJSON *old = cJSON_GetObjectItemCaseSensitive(properties, v->string);
        cJSON *list = cJSON_GetObjectItemCaseSensitive(old, "anyOf");
        if (!old) {
            cJSON_AddItemToObject(properties, v->string, v);
        } else if (cJSON_Compare(old, v, true)) {
            cJSON_Delete(v);
        } else if (list) {
            cJSON_AddItemToArray(list, v);
        } else {
            char *key = pm_strdup(v->string);
            cJSON *either = cJSON_CreateObject();
            list = cJSON_AddArrayToObject(either, "anyOf");
            cJSON_AddItemToArray(list, cJSON_DetachItemViaPointer(properties, old));
            cJSON_AddItemToArray(list, v);
            cJSON_AddItemToObject(properties, key, either);
            pm_free(key);
        }
    }
    cJSON_Delete(own);
}

/* The key that chooses a row may hold only the rows' names, where they have no others. */
static void limit_names(cJSON *property, const struct pm_open_rows *rows)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < rows->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(rows->rows[i].name));
    cJSON_AddItemToArray(list, cJSON_CreateNull());
    cJSON_AddItemToObject(property, rows->known_as ? "examples" : "enum", list);
    if (!rows->known_as)
        cJSON_DeleteItemFromObjectCaseSensitive(property, "type");
}

static cJSON *section_schema(const struct pm_config_section *s, const struct pm_open_sections *open)
{
    const struct pm_open_rows *rows = pm_config_rows(s, open);
    cJSON *v = cJSON_CreateObject();

    cJSON_AddStringToObject(v, "description", s->help);
    cJSON_AddStringToObject(v, "type", "object");
    cJSON *properties = cJSON_AddObjectToObject(v, "properties");
    pm_opts_schema(s->opts, properties);
    for (size_t i = 0; rows && i < rows->count; i++)
        add_row(properties, &rows->rows[i]);
    if (rows && rows->count)
        limit_names(cJSON_GetObjectItemCaseSensitive(properties, s->row_key), rows);
    cJSON_AddBoolToObject(v, "additionalProperties", !rows ? false : rows->count == 0);
    return v;
}

static cJSON *described(cJSON *parent, const char *key, const char *help)
{
    cJSON *v = cJSON_AddObjectToObject(parent, key);

    cJSON_AddStringToObject(v, "description", help);
    return v;
}

static void add_devices(cJSON *properties)
{
    cJSON *v = described(properties, "devices", "one clone of the model for each");
    cJSON *types = cJSON_AddArrayToObject(v, "type");
    cJSON_AddItemToArray(types, cJSON_CreateString("array"));
    cJSON_AddItemToArray(types, cJSON_CreateString("string"));
    cJSON *items = cJSON_AddObjectToObject(v, "items");
    types = cJSON_AddArrayToObject(items, "type");
    cJSON_AddItemToArray(types, cJSON_CreateString("string"));
    cJSON_AddItemToArray(types, cJSON_CreateString("object"));
    pm_opts_schema(pm_config_device_opts, cJSON_AddObjectToObject(items, "properties"));
    cJSON_AddBoolToObject(items, "additionalProperties", false);
}

struct cJSON *pm_config_schema(const struct pm_open_sections *open)
{
    cJSON *out = cJSON_CreateObject();

    cJSON_AddStringToObject(out, "$schema", "https://json-schema.org/draft/2020-12/schema");
    cJSON_AddStringToObject(out, "title", "Pumice config");
    cJSON_AddStringToObject(out, "type", "object");
    cJSON *properties = cJSON_AddObjectToObject(out, "properties");
    cJSON_AddStringToObject(described(properties, "$schema", "this schema, for editors"), "type",
                            "string");
    cJSON_AddStringToObject(described(properties, "description", "a note"), "type", "string");
    cJSON *base = described(properties, "base", "files merged before this one, beside it");
    cJSON *types = cJSON_AddArrayToObject(base, "type");
    cJSON_AddItemToArray(types, cJSON_CreateString("array"));
    cJSON_AddItemToArray(types, cJSON_CreateString("string"));
    cJSON *task = described(properties, "task", "what the network is trained for");
    cJSON *list = cJSON_AddArrayToObject(task, "enum");
    for (int k = 0; k < PM_TASK_DETECTION; k++)
        cJSON_AddItemToArray(list, cJSON_CreateString(pm_config_tasks[k]));
    add_devices(properties);
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        cJSON_AddItemToObject(properties, s->name, section_schema(s, open));
    cJSON_AddBoolToObject(out, "additionalProperties", false);
    return out;
}

/* ---- Markdown -------------------------------------------------------------------------- */

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
        pm_str_add(s, "%s", type_name(o));
        return;
    }
    for (const char *c = o->choices; *c; c++)
        pm_str_add(s, *c == '|' ? "\\|" : "%c", *c);
}

/* The range as the schema has it, "0..64", "0..", "only 1" or nothing. */
static void add_range(struct pm_str *s, const cJSON *schema)
{
    const cJSON *holder = cJSON_GetObjectItemCaseSensitive(schema, "items");
    const cJSON *min, *max;

    holder = holder ? holder : schema;
    min = cJSON_GetObjectItemCaseSensitive(holder, "minimum");
    max = cJSON_GetObjectItemCaseSensitive(holder, "maximum");
    if (min && max && min->valuedouble == max->valuedouble) {
        pm_str_add(s, "only %.9g", min->valuedouble);
        return;
    }
    if (min)
        pm_str_add(s, "%.9g..", min->valuedouble);
    if (max && max->valuedouble < 2147483647)
        pm_str_add(s, "%.9g", max->valuedouble);
}

static void add_words(struct pm_str *s, const char *words)
{
    pm_str_add(s, " |%s%s", words ? " " : "", words ? words : "");
}

/* The key's flags in flags.c, each once, and after them what its own line names besides. */
static void add_slim(struct pm_str *s, const struct pm_reference *r)
{
    struct pm_str names = { 0 };

    pm_str_add(&names, "%s", "");
    for (const struct pm_program *p = pm_programs; r && p->name; p++)
        for (const struct pm_flag *f = p->flag; f->flag; f++)
            if (f->key && strcmp(f->key, r->key) == 0 && !pm_reference_lists(names.text, f->flag))
                pm_str_add(&names, "%s%s", names.length ? ", " : "", f->flag);
    for (const char *c = r ? r->slim : NULL; c && *c; c += strcspn(c, ","), c += strspn(c, ", ")) {
        char word[128];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(c, ","), c);
        if (!pm_reference_lists(names.text, word))
            pm_str_add(&names, "%s%s", names.length ? ", " : "", word);
    }
    add_words(s, names.length ? names.text : NULL);
    pm_str_free(&names);
}

/* r: NULL: the key has none, and is of the tasks of the one that it is inside of. */
static void add_flags(struct pm_str *s, const struct pm_reference *r, const struct pm_reference *outer)
{
    pm_str_add(s, " | %s", r ? r->tasks : outer ? outer->tasks : "c");
    add_slim(s, r);
    add_words(s, r ? r->deeplab : NULL);
    add_words(s, r ? r->detection : NULL);
    pm_str_add(s, " |\n");
}

static void add_head(struct pm_str *s, const char *title, const char *help)
{
    pm_str_add(s, "\n### %s\n\n%s%s", title, help, *help ? "\n\n" : "");
    pm_str_add(s, "| key | type | default | range | meaning | tasks | TF-Slim, Inception | DeepLab "
                  "| Object Detection |\n|---|---|---|---|---|---|---|---|---|\n");
}

/* section: also a key that has keys of its own, "devices[]" for one that is a list. */
static void add_options(struct pm_str *s, const char *section, const struct pm_opt *opts)
{
    cJSON *schema = cJSON_CreateObject();
    struct pm_str path = { 0 };
    const struct pm_reference *outer;

    pm_str_add(&path, "%.*s", (int)strcspn(section, "["), section);
    outer = pm_reference_find(path.text);
    pm_opts_schema(opts, schema);
    for (; opts->type; opts++) {
        const cJSON *o = cJSON_GetObjectItemCaseSensitive(schema, opts->key);
        const cJSON *def = cJSON_GetObjectItemCaseSensitive(o, "default");
        char *text = def ? pm_json_print(def) : pm_strdup("null");
        path.length = 0;
        pm_str_add(&path, "%s.%s", section, opts->key);
        pm_str_add(s, "| `%s` | ", path.text);
        add_type(s, opts);
        pm_str_add(s, " | `%s` | ", text);
        add_range(s, o);
        pm_str_add(s, " | %s", opts->help);
        add_flags(s, pm_reference_find(path.text), outer);
        pm_free(text);
    }
    pm_str_free(&path);
    cJSON_Delete(schema);
}

static void add_later(struct pm_str *s, const char *section)
{
    size_t n = strlen(section);

    for (const struct pm_reference *r = pm_references; r->key; r++) {
        if (!r->type || strncmp(r->key, section, n) != 0 || r->key[n] != '.')
            continue;
        pm_str_add(s, "| `%s` *later* | %s | `%s` | | %s", r->key, r->type, r->def, r->help);
        add_flags(s, r, NULL);
    }
}

/* The default of one option as JSON text, or NULL when the table has no such key; pm_free. */
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

/* Which defaults the row's variant has instead. */
static void add_variant(struct pm_str *s, const struct pm_open_row *row)
{
    pm_str_add(s, "\nWith `%s` \"%s\" by default:", row->variant_key, row->variant_value);
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

static void add_rows(struct pm_str *s, const struct pm_config_section *section,
                     const struct pm_open_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct pm_open_row *row = &rows->rows[i];
        if (!row->opts || !row->opts->type)
            continue;
        struct pm_str title = { 0 };
        pm_str_add(&title, "%s, %s \"%s\"", section->name, section->row_kind, row->name);
        add_head(s, title.text, row->help ? row->help : "");
        add_options(s, section->name, row->opts);
        if (row->variant)
            add_variant(s, row);
        pm_str_free(&title);
    }
}

static void add_names(struct pm_str *s, const struct pm_config_section *section,
                      const struct pm_open_rows *rows)
{
    pm_str_add(s, "\n| %s | |\n|---|---|\n", section->row_kind);
    for (size_t i = 0; i < rows->count; i++)
        pm_str_add(s, "| `%s` | %s |\n", rows->rows[i].name,
                   rows->rows[i].help ? rows->rows[i].help : "");
}

/* ---- the original programs' flags ------------------------------------------------------ */

/* An open row's option: its default, or with several, each with the names of its rows. */
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

static void add_default(struct pm_str *s, const struct pm_open_sections *open, const char *key)
{
    const struct pm_reference *r = pm_reference_find(key);
    const size_t n = strcspn(key, ".");
    const struct pm_config_section *c = pm_config_section_find(key, n);

    if (r && r->type) {
        pm_str_add(s, "`%s`", r->def);
    } else if (!c) {
        pm_str_add(s, "%s", strcmp(key, "devices") == 0 ? "`[\"auto\"]`" : "");
    } else {
        char *text = default_text(c->opts, key + n + 1);
        if (text)
            pm_str_add(s, "`%s`", text);
        else if (pm_config_rows(c, open))
            add_row_defaults(s, pm_config_rows(c, open), key + n + 1);
        pm_free(text);
    }
}

static void add_flag(struct pm_str *s, const struct pm_open_sections *open, const struct pm_flag *f)
{
    const struct pm_reference *r = f->key ? pm_reference_find(f->key) : NULL;

    pm_str_add(s, "| `%s` | %s | ", f->flag, f->def);
    if (f->key) {
        pm_str_add(s, "`%s`%s | ", f->key, r && r->type ? " *later*" : "");
        add_default(s, open, f->key);
    } else {
        pm_str_add(s, "%s |", f->instead);
    }
    pm_str_add(s, " |%s%s |\n", f->note ? " " : "", f->note ? f->note : "");
}

static void add_programs(struct pm_str *s, const struct pm_open_sections *open)
{
    pm_str_add(s, "\n## Flags of the original programs\n\nA table for each program: the flag and its "
                  "default there, the key and its default here, and where they differ in meaning.\n");
    for (const struct pm_program *p = pm_programs; p->name; p++) {
        pm_str_add(s,
                   "\n### %s\n\n%s\n\n| flag | default there | here | default here | note |\n"
                   "|---|---|---|---|---|\n",
                   p->name, p->help);
        for (const struct pm_flag *f = p->flag; f->flag; f++)
            add_flag(s, open, f);
    }
}

/* ---- the whole table ------------------------------------------------------------------- */

static const char keys_head[] =
    "\n## All keys\n\n"
    "*tasks*: c classification, s segmentation, d detection. Keys marked *later* are known, but this "
    "version does not accept them and\n"
    "says so. The last three columns name the originals' flags and fields for the same thing.\n";

char *pm_config_markdown(const struct pm_open_sections *open)
{
    struct pm_str s = { 0 };

    add_programs(&s, open);
    pm_str_add(&s, "%s", keys_head);
    add_head(&s, "top level", "");
    pm_str_add(&s, "| `task` | classification\\|segmentation\\|detection *later* | "
                   "`\"classification\"` | | what the network is trained for");
    add_flags(&s, pm_reference_find("task"), NULL);
    pm_str_add(&s,
               "| `base` | strings | `[]` | | files merged before this one, each beside the file "
               "that names it");
    add_flags(&s, pm_reference_find("base"), NULL);
    pm_str_add(&s,
               "| `devices` | list | `[\"auto\"]` | | one clone of the model for each: a name, or "
               "an object with the keys below");
    add_flags(&s, pm_reference_find("devices"), NULL);
    add_options(&s, "devices[]", pm_config_device_opts);
    for (const struct pm_config_section *c = pm_config_sections; c->name; c++) {
        const struct pm_open_rows *rows = pm_config_rows(c, open);
        add_head(&s, c->name, c->help);
        add_options(&s, c->name, c->opts);
        if (strcmp(c->name, "eval") == 0)
            add_options(&s, "eval.panoptic", pm_config_panoptic_opts);
        add_later(&s, c->name);
        if (rows && rows->count) {
            add_names(&s, c, rows);
            add_rows(&s, c, rows);
        }
    }
    return s.text;
}
