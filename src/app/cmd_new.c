/* pumice new: writes a config for a folder of pictures. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "jobs/new_config.h"

static int print_json(const struct pm_new_config *c, struct app_globals *g)
{
    cJSON *o = cJSON_CreateObject();
    int err;

    cJSON_AddStringToObject(o, "config", c->out);
    cJSON_AddStringToObject(o, "task", c->task);
    cJSON_AddStringToObject(o, "net", c->net);
    cJSON_AddNumberToObject(o, "pictures", (double)c->pictures);
    cJSON_AddNumberToObject(o, "classes", c->classes);
    cJSON_AddItemToObject(o, "commands", cJSON_CreateStringArray(c->command, c->commands));
    err = app_print_json(g, o);
    cJSON_Delete(o);
    return err;
}

static int print_text(const struct pm_new_config *c)
{
    struct pm_str s = { 0 };
    int width = 0, err;

    for (int i = 0; i < c->commands; i++)
        width = (int)strlen(c->command[i]) > width ? (int)strlen(c->command[i]) : width;
    pm_str_add(&s, "%s\n", c->found);
    pm_str_name(&s, c->out, 0);
    pm_str_add(&s, ": a config for %s with %s. Next:\n", c->task, c->net);
    for (int i = 0; i < c->commands; i++)
        pm_str_add(&s, "  %-*s  # %s\n", width, c->command[i], c->purpose[i]);
    if (c->proposes_weights)
        pm_str_add(&s, "Few pictures do better with ImageNet's weights: add "
                       "init.checkpoint=imagenet to the first train, or see the file.\n");
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_new_want want = { 0 };
    struct pm_new_config c;
    struct app_args args;
    const bool force = app_take_flag(&argc, argv, "--force");
    int err = PM_OK;

    PM_TRY(app_take_value(&argc, argv, "--task", &want.task));
    PM_TRY(app_take_value(&argc, argv, "--out", &want.out));
    PM_TRY(app_args(argc, argv, "new", a, &args));
    if (args.words_count > 1)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "command line: new needs one folder, but has '%s' and '%s': "
                       "quote a name with spaces",
                       args.words[0], args.words[1]));
    if (args.words_count != 1 || args.overrides_count)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: new needs one folder, as in pumice new photos"));
    want.folder = args.words[0];
    PM_TRY(pm_new_config(a, &want, &c));
    if (!force && pm_file_exists(c.out))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: the file exists already: name another one with --out, or "
                       "replace it with --force", c.out));
    PM_TRY(pm_file_write(c.out, c.text, strlen(c.text)));
    PM_TRY(g->json ? print_json(&c, g) : print_text(&c));
out:
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_new = {
    .name = "new",
    .help = "writes a config for a folder of pictures",
    .usage = "PHOTOS [--task classification|segmentation|detection] [--out FILE] [--force]",
    .details =
        "Looks at the folder, writes a config with comments, and prints the commands to type\n"
        "next. Net, input size, batch, passes and learning rate follow from the task and the\n"
        "number of pictures. The folder may have a subfolder with pictures for each class, may be\n"
        "a data folder that is already converted, or may have the layout of a format of\n"
        "'pumice dataset convert'.\n"
        "\n"
        "  --task TASK   if the folder has annotations for several tasks\n"
        "  --out FILE    file of the config; NAME.json in the current folder without it\n"
        "  --force       replaces an existing file\n"
        "\n"
        "  pumice new photos\n"
        "  pumice new photos --out flowers.json\n",
    .run = run,
};
