/* pumice predict: reads image files, prints predictions, and draws them on request. */
#include "app/app.h"

#include <pumice/task.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <limits.h>

/* Prints a line per picture: its file, and the task's prediction. */
static int print_text(const struct pm_config *c, const struct cJSON *report)
{
    const struct pm_task_row *task = pm_task_find(c->task);
    const struct cJSON *image;
    struct pm_str text = { 0 };
    int err;

    cJSON_ArrayForEach(image, cJSON_GetObjectItem(report, "images"))
    {
        if (cJSON_HasObjectItem(image, "error")) /* a warning was logged */
            continue;
        pm_str_name(&text, cJSON_GetStringValue(cJSON_GetObjectItem(image, "file")), 0);
        pm_str_add(&text, ":");
        if (task->print)
            task->print(image, &text);
        pm_str_add(&text, "\n");
    }
    err = app_print(text.text ? text.text : "");
    pm_str_free(&text);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct cJSON *report = cJSON_CreateObject();
    struct pm_config *c = NULL;
    struct app_args args;
    const char *out = NULL;
    int err = PM_OK;

    PM_TRY(app_take_value(&argc, argv, "--out", &out));
    PM_TRY(app_args(argc, argv, "predict", a, &args));
    PM_TRY(app_load_config(&args, "predict", INT_MAX, a, &c));
    if (args.words_count < 2)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: predict needs image files or folders after the "
                       "config"));
    PM_TRY(pm_predict(c, args.words + 1, (size_t)args.words_count - 1, out, report));
    PM_TRY(g->json ? app_print_json(g, report) : print_text(c, report));
    if (out)
        PM_INFO("predict", "pictures with predictions are in %s", out);
    const double damaged = cJSON_GetNumberValue(cJSON_GetObjectItem(report, "damaged"));
    if (damaged > 0)
        PM_TRY(pm_fail(PM_EDATA, "%.0f of %d files could not be read; all others are named above",
                       damaged, cJSON_GetArraySize(cJSON_GetObjectItem(report, "images"))));
out:
    pm_config_destroy(&c);
    cJSON_Delete(report);
    pm_arena_destroy(&a);
    return err;
}

/* Implements pm_command.more: what each task prints and draws. */
static int add_tasks(int argc, char **argv, struct pm_str *s)
{
    size_t count;
    const struct pm_task_row *const *task = pm_tasks(&count);

    (void)argc, (void)argv;
    for (size_t i = 0; i < count; i++)
        if (task[i]->prediction) {
            pm_str_add(s, "\n%s:\n", task[i]->config.name);
            app_add_indented(s, task[i]->prediction);
        }
    return PM_OK;
}

const struct pm_command pm_command_predict = {
    .name = "predict", .help = "runs the net on picture files and folders",
    .usage = "CONFIG.json|RUN FILE|FOLDER ... [--out FOLDER] [key=value ...]",
    .details =
        "Prints a line per picture with its prediction; --json prints an object per picture. The\n"
        "end of this text describes what each task prints and draws. The checkpoint is selected\n"
        "as for eval. The class names come from the checkpoint. If it has none, they come from\n"
        "data.folder, or model.num_classes gives their number. Files that cannot be read are\n"
        "named and skipped; the exit code is then 3. Files of a folder whose names do not end\n"
        "like those of pictures are named and not read.\n"
        "\n"
        "  --out FOLDER   also writes drawings of each prediction as PNG files, in the folders\n"
        "                 that the pictures are in below the named folder; with several names,\n"
        "                 these too. FOLDER must not be the folder of the pictures\n"
        "\n"
        "  pumice predict configs/shapes_classification.json photos/ --out labelled\n"
        "  pumice predict runs/photos new_photo.jpg\n",
    .more = add_tasks,
    .run = run,
};
