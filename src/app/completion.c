/* Prints the completion scripts. Each is a table of words, one line per entry, and the functions
 * of completion.bash, .zsh or .fish, which read the table. Fields are separated by tabs:
 *
 *     command NAME HELP
 *     part COMMAND WORD           a word after a command, such as inspect after checkpoint
 *     flag COMMAND --FLAG VALUE   VALUE: the value after the flag, or empty
 *     takes COMMAND WHAT          config1, config2: word 1 or 2 is a config; keys: key=value
 *     format NAME HELP            of dataset convert
 *     option KEY VALUES HELP      of dataset convert
 *     key KEY VALUES HELP         of config files; VALUES are separated by blanks; "file": a path
 */
#include "app/manual.h"
#include "app/usage.h"

#include <cjson/cJSON.h>
#include <string.h>

#include <pumice/data.h>
#include <pumice/train.h>

/* Texts of src/app/completion.*, embedded by CMake. */
extern const char pm_completion_bash[], pm_completion_zsh[], pm_completion_fish[];

/* Adds a line of the table as a quoted word of the shell. */
PM_PRINTF(2, 3) static void add_line(struct pm_str *s, const char *format, ...)
{
    struct pm_str line = { 0 };
    va_list ap;

    va_start(ap, format);
    pm_str_add_args(&line, format, ap);
    va_end(ap);
    pm_str_add(s, " \\\n    '");
    for (const char *c = line.text; *c; c++)
        pm_str_add(s, *c == '\'' ? "'\\''" : "%c", *c);
    pm_str_add(s, "'");
    pm_str_free(&line);
}

static void add_command(struct pm_str *s, const struct pm_command *c, struct pm_arena *a)
{
    const struct app_usage u = app_usage_read(c, a);

    add_line(s, "command\t%s\t%s", c->name, c->help);
    for (size_t i = 0; i < u.parts_count; i++)
        add_line(s, "part\t%s\t%s", c->name, u.parts[i]);
    for (size_t i = 0; i < u.flags_count; i++)
        add_line(s, "flag\t%s\t%s\t%s", c->name, u.flags[i].name,
                 u.flags[i].value ? u.flags[i].value : "");
    if (u.config)
        add_line(s, "takes\t%s\tconfig%d", c->name, u.config);
    if (strstr(c->usage, "key=value"))
        add_line(s, "takes\t%s\tkeys", c->name);
}

/* ---- keys of config files, out of the schema ------------------------------------------- */

static bool has_type(const cJSON *v, const char *name)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(v, "type"), *one;

    if (cJSON_IsString(type))
        return strcmp(type->valuestring, name) == 0;
    cJSON_ArrayForEach(one, type)
        if (cJSON_IsString(one) && strcmp(one->valuestring, name) == 0)
            return true;
    return false;
}

static void add_words(struct pm_str *values, const cJSON *list)
{
    const cJSON *word;

    cJSON_ArrayForEach(word, list)
        if (cJSON_IsString(word) && !strchr(word->valuestring, ' '))
            pm_str_add(values, "%s%s", values->length ? " " : "", word->valuestring);
}

/* Adds the values allowed after "key=": the allowed words, true and false, or "file" for other
 * texts. */
static void add_values(struct pm_str *values, const cJSON *v)
{
    const cJSON *either;

    cJSON_ArrayForEach(either, cJSON_GetObjectItemCaseSensitive(v, "anyOf"))
        add_values(values, either);
    add_words(values, cJSON_GetObjectItemCaseSensitive(v, "enum"));
    add_words(values, cJSON_GetObjectItemCaseSensitive(v, "examples"));
    if (values->length)
        return;
    if (has_type(v, "boolean"))
        pm_str_add(values, "true false");
    else if (has_type(v, "string"))
        pm_str_add(values, "file");
}

static void add_keys(struct pm_str *s, const char *kind, const char *prefix,
                     const cJSON *properties)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, properties) {
        const cJSON *help = cJSON_GetObjectItemCaseSensitive(v, "description");
        const cJSON *inner = cJSON_GetObjectItemCaseSensitive(v, "properties");
        struct pm_str key = { 0 }, values = { 0 };

        pm_str_add(&key, "%s%s%s", prefix, *prefix ? "." : "", v->string);
        add_values(&values, v);
        if (inner)
            add_keys(s, kind, key.text, inner);
        else if (v->string[0] != '$' && strcmp(key.text, "base") != 0)
            add_line(s, "%s\t%s\t%s\t%s", kind, key.text, values.text ? values.text : "",
                     cJSON_IsString(help) ? help->valuestring : "");
        pm_str_free(&key);
        pm_str_free(&values);
    }
}

static void add_config_keys(struct pm_str *s, struct pm_arena *a)
{
    const struct pm_open_sections open = pm_train_choices(a);
    cJSON *schema = pm_config_schema(&open);

    add_keys(s, "key", "", cJSON_GetObjectItemCaseSensitive(schema, "properties"));
    cJSON_Delete(schema);
}

static void add_formats(struct pm_str *s)
{
    size_t count = 0;
    const struct pm_converter *const *rows = pm_converters(&count);
    cJSON *options = cJSON_CreateObject();

    for (size_t i = 0; i < count; i++)
        add_line(s, "format\t%s\t%s", rows[i]->name, rows[i]->help);
    for (size_t i = 0; i < count; i++) {
        cJSON *own = cJSON_CreateObject();
        if (rows[i]->opts)
            pm_opts_schema(rows[i]->opts, own);
        while (own->child) {
            cJSON *v = cJSON_DetachItemViaPointer(own, own->child);
            if (cJSON_GetObjectItemCaseSensitive(options, v->string))
                cJSON_Delete(v);
            else
                cJSON_AddItemToObject(options, v->string, v);
        }
        cJSON_Delete(own);
    }
    pm_opts_schema(pm_convert_opts, options);
    add_keys(s, "option", "", options);
    cJSON_Delete(options);
}

static const struct shell {
    const char *name, *first, *before, *after, *functions;
} shells[] = {
    { "bash", "", "_pumice_table()\n{\n", "\n}\n", pm_completion_bash },
    { "zsh", "#compdef pumice\n", "_pumice_table()\n{\n", "\n}\n", pm_completion_zsh },
    { "fish", "", "function _pumice_table\n", "\nend\n", pm_completion_fish },
};

static const struct shell *find_shell(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(shells); i++)
        if (strcmp(name, shells[i].name) == 0)
            return &shells[i];
    return NULL;
}

int app_completion_print(const struct app_program *p, const char *shell)
{
    const struct shell *row = find_shell(shell);

    if (!row)
        return pm_fail(PM_ECONFIG,
                       "command line: --completion '%s': allowed are bash, zsh and fish", shell);
    struct pm_arena *a = pm_arena_create();
    struct pm_str s = { 0 };
    pm_str_add(&s, "%s# Made by pumice help --completion %s.\n%s    printf '%%s\\n'", row->first,
               row->name, row->before);
    for (size_t i = 0; i < p->count; i++)
        add_command(&s, p->commands[i], a);
    add_formats(&s);
    add_config_keys(&s, a);
    pm_str_add(&s, "%s\n%s", row->after, row->functions);
    const int err = app_print_raw(s.text);
    pm_str_free(&s);
    pm_arena_destroy(&a);
    return err;
}
