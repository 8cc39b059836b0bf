/* pumice config: check a file, show everything resolved, write the schema and the table of keys. */
#include "app/app.h"

#include <pumice/import.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <string.h>

/* What configs/README.md says before its generated part. */
static const char generated_mark[] =
    "<!-- what follows is generated: pumice config schema --update configs -->\n";

/* ---- show ------------------------------------------------------------------------------ */

/* "run.steps = 2000    lenet_mnist.json:12", a line for every value that is not an object. */
static void add_lines(struct pm_str *s, const struct pm_config *c, const cJSON *v,
                      struct pm_str *path)
{
    size_t length = path->length;

    for (const cJSON *child = v->child; child; child = child->next) {
        path->length = length;
        pm_str_add(path, "%s%s", length ? "." : "", child->string);
        if (cJSON_IsObject(child)) {
            add_lines(s, c, child, path);
            continue;
        }
        char *value = pm_json_print(child);
        size_t start = s->length;
        pm_str_add(s, "%s = %s", path->text, value);
        if (!strchr(value, '\n'))
            pm_str_add(s, "%*s", s->length - start < 48 ? (int)(48 - (s->length - start)) : 0, "");
        pm_str_add(s, "  %s\n", pm_config_origin(c, path->text));
        pm_free(value);
    }
}

static int print_lines(const struct pm_config *c, const cJSON *dump)
{
    struct pm_str s = { 0 }, path = { 0 };

    add_lines(&s, c, dump, &path);
    int err = app_print(s.text);
    pm_str_free(&s);
    pm_str_free(&path);
    return err;
}

/* The net as a list that "model": {"layers": ...} takes. */
static int show_layers(const struct pm_config *c, struct app_globals *g)
{
    int64_t parameters;
    cJSON *list = NULL, *object = cJSON_CreateObject();
    char *text = NULL;
    int err = PM_OK;

    PM_TRY(pm_show_layers(c, &list, &parameters));
    if (g->json) {
        cJSON_AddItemToObject(object, "layers", list);
        list = NULL;
        cJSON_AddNumberToObject(object, "trainable_parameters", (double)parameters);
        PM_TRY(app_print_json(g, object));
    } else {
        text = pm_json_print(list);
        PM_TRY(app_print(text));
        PM_TRY(app_print("\n"));
    }
out:
    cJSON_Delete(list);
    cJSON_Delete(object);
    pm_free(text);
    return err;
}

static int show_plan(const struct pm_config *c, struct app_globals *g)
{
    cJSON *object = cJSON_CreateObject();
    int err = PM_OK;

    PM_TRY(pm_show_plan(c, g->json ? NULL : stdout, g->verbosity > 0,
                        cJSON_AddArrayToObject(object, "clones")));
    if (g->json)
        PM_TRY(app_print_json(g, object));
out:
    cJSON_Delete(object);
    return err;
}

/* What `config show` shows. */
enum shown { SHOW_VALUES, SHOW_LAYERS, SHOW_PLAN };

static int show(const struct app_args *args, enum shown what, struct pm_arena *a,
                struct app_globals *g)
{
    int err = PM_OK;
    struct pm_config *c = NULL;
    cJSON *dump = NULL;

    PM_TRY(app_load_config(args, "config show", 1, a, &c));
    if (what != SHOW_VALUES) {
        PM_TRY(what == SHOW_LAYERS ? show_layers(c, g) : show_plan(c, g));
        goto out;
    }
    dump = pm_config_dump(c);
    if (g->verbosity > 0 && !g->json)
        PM_TRY(print_lines(c, dump));
    else
        PM_TRY(app_print_json(g, dump));
out:
    cJSON_Delete(dump);
    pm_config_destroy(&c);
    return err;
}

/* ---- check ----------------------------------------------------------------------------- */

static int check(const struct app_args *args, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_config *c = NULL;
    cJSON *result = NULL;
    bool built;

    PM_TRY(app_load_config(args, "config check", 1, a, &c));
    PM_TRY(pm_check_net(c, &built));
    if (g->json) {
        result = cJSON_CreateObject();
        cJSON_AddStringToObject(result, "config", c->path);
        cJSON_AddBoolToObject(result, "ok", true);
        cJSON_AddBoolToObject(result, "net_built", built);
        PM_TRY(app_print_json(g, result));
    } else {
        PM_TRY(app_print(pm_arena_printf(a, "%s: nothing wrong%s\n", c->path, built ? "" :
                                         " (the net was not built: without the data, its size and "
                                         "model.num_classes would have to be given)")));
    }
out:
    cJSON_Delete(result);
    pm_config_destroy(&c);
    return err;
}

/* ---- schema ---------------------------------------------------------------------------- */

static char *schema_text(const struct pm_open_sections *open)
{
    cJSON *schema = pm_config_schema(open);
    char *printed = pm_json_print(schema);
    struct pm_str s = { 0 };

    pm_str_add(&s, "%s\n", printed);
    pm_free(printed);
    cJSON_Delete(schema);
    return s.text;
}

/* Replaces what follows the mark in folder/README.md. */
static int update_readme(const char *folder, const char *markdown, struct pm_arena *a)
{
    int err = PM_OK;
    char *text = NULL;
    struct pm_str s = { 0 };
    const char *path = pm_arena_printf(a, "%s/README.md", folder);

    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    char *mark = strstr(text, generated_mark);
    if (!mark)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no line '%.*s'", path, (int)sizeof generated_mark - 2,
                       generated_mark));
    pm_str_bytes(&s, text, (size_t)(mark - text) + sizeof generated_mark - 1);
    pm_str_add(&s, "%s", markdown);
    PM_TRY(pm_file_write(path, s.text, s.length));
out:
    pm_str_free(&s);
    pm_free(text);
    return err;
}

static int schema(struct pm_arena *a, bool markdown, const char *folder)
{
    int err = PM_OK;
    const struct pm_open_sections open = pm_train_choices(a);
    char *json = schema_text(&open), *keys = pm_config_markdown(&open);
    char *operators = pm_import_markdown(), *table = pm_arena_printf(a, "%s%s", keys, operators);

    if (folder) {
        const char *path = pm_arena_printf(a, "%s/schema.json", folder);
        PM_TRY(pm_file_write(path, json, strlen(json)));
        PM_TRY(update_readme(folder, table, a));
    } else {
        PM_TRY(app_print(markdown ? table : json));
    }
out:
    pm_free(json);
    pm_free(keys);
    pm_free(operators);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct app_args args = { 0 };
    const char *folder = NULL;
    const char *what = argc > 0 ? argv[0] : "";
    bool shows = strcmp(what, "show") == 0, prints = strcmp(what, "schema") == 0;
    bool markdown = prints && app_take_flag(&argc, argv, "--markdown");
    bool layers = shows && app_take_flag(&argc, argv, "--layers");
    bool plan = shows && app_take_flag(&argc, argv, "--plan");

    if (prints)
        PM_TRY(app_take_value(&argc, argv, "--update", &folder));
    if (layers && plan)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: config show takes --layers or --plan, not both"));
    PM_TRY(app_args(argc > 0 ? argc - 1 : 0, argv + 1, "config", a, &args));
    if (strcmp(what, "check") == 0)
        PM_TRY(check(&args, a, g));
    else if (shows)
        PM_TRY(show(&args, layers ? SHOW_LAYERS : plan ? SHOW_PLAN : SHOW_VALUES, a, g));
    else if (prints && args.words_count + (int)args.overrides_count > 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "command line: config schema takes no file; --update FOLDER says "
                       "where to write"));
    else if (prints)
        PM_TRY(schema(a, markdown, folder));
    else
        PM_TRY(pm_fail(PM_ECONFIG, "command line: config needs check, show or schema first, as in "
                                   "pumice config check configs/lenet_mnist.json"));
out:
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_config = {
    .name = "config",
    .help = "checks and shows config files; writes their schema",
    .usage = "check CONFIG.json [key=value ...]\n"
             "show CONFIG.json [--layers | --plan] [key=value ...]\n"
             "schema [--markdown | --update FOLDER]",
    .details =
        "check   reads the file with its bases and overrides, builds the net, and reports the\n"
        "        first mistake\n"
        "show    prints every resolved value; with -v a line for each, and where it came from\n"
        "        --layers prints the net as a layer list, to be edited and used as model.layers\n"
        "        (give input.size, input.preprocessing and optim.weight_decay beside it: a list\n"
        "        does not carry them); --plan prints the memory of a step on each device\n"
        "schema  prints the JSON Schema for editors, or with --markdown the table of all keys;\n"
        "        --update FOLDER writes FOLDER/schema.json and the table in FOLDER/README.md\n"
        "\n"
        "  pumice config show configs/lenet_mnist.json optim.name=adam -v\n",
    .run = run,
};
