/* pumice report: writes the page of a run folder or of a study, or a comparison of several runs. */
#include "app/app.h"

#include <pumice/checkpoint.h>
#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <string.h>

static int open_runs(const struct app_args *args, struct pm_report **runs, int *count)
{
    if (args->words_count == 0)
        return pm_fail(PM_ECONFIG, "command line: report needs a run folder, as in pumice report "
                       "runs/shapes_classification");
    if (args->overrides_count > 0)
        return pm_fail(
            PM_ECONFIG,
            "command line: report takes run folders and no config or key=value, but not '%s'",
            args->overrides[0]);
    if (args->words_count > PM_MAX_REPORTS)
        return pm_fail(PM_ECONFIG, "command line: %d run folders; report compares at most %d",
                       args->words_count, PM_MAX_REPORTS);
    for (int i = 0; i < args->words_count; i++) {
        const char *folder = args->words[i];

        if (!pm_is_folder(folder))
            return pm_fail(PM_EDATA, "%s: no such folder", folder);
        if (pm_is_study(folder))
            return pm_fail(PM_EDATA, "%s: this is the folder of a study, whose page is written "
                           "alone: pumice report %s; or name run folders inside it", folder,
                           folder);
        runs[*count] = pm_report_open(folder, pm_run_is_locked(folder));
        if (pm_report_empty(runs[(*count)++]))
            return pm_fail(
                PM_EDATA,
                "%s: this is not a run folder: it has no run.json, config.json or metrics.jsonl",
                folder);
    }
    return PM_OK;
}

static int tell(struct app_globals *g, const char *out, int count)
{
    struct pm_str text = { 0 };
    struct cJSON *object;
    int err;

    if (!g->json) {
        pm_str_add(&text, "%s\n", out);
        err = app_print(text.text);
        pm_str_free(&text);
        return err;
    }
    object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "report", out);
    cJSON_AddNumberToObject(object, "runs", count);
    err = app_print_json(g, object);
    cJSON_Delete(object);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_report *runs[PM_MAX_REPORTS] = { NULL };
    struct pm_study_report *study = NULL;
    struct pm_str html = { 0 };
    struct app_args args;
    const char *out = NULL;
    int count = 0, err = PM_OK;

    PM_TRY(app_take_value(&argc, argv, "--out", &out));
    PM_TRY(app_args(argc, argv, "report", a, &args));
    if (args.words_count == 1 && args.overrides_count == 0 && pm_is_study(args.words[0]))
        PM_TRY(pm_study_report_open(args.words[0], &study));
    else
        PM_TRY(open_runs(&args, runs, &count));
    if (!out)
        out = count > 1 ? "comparison.html" : pm_arena_printf(a, "%s/report.html", args.words[0]);
    if (study)
        pm_study_page(study, false, pm_run_is_locked, &html);
    else
        pm_report_page(runs, count, &html);
    PM_TRY(pm_file_write(out, html.text, html.length));
    PM_TRY(tell(g, out, study ? study->runs_done : count));
out:
    pm_study_report_close(&study);
    for (int i = 0; i < count; i++)
        pm_report_close(&runs[i]);
    pm_str_free(&html);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_report = {
    .name = "report", .help = "writes the page of a run or a study, or compares runs",
    .usage = "RUN [RUN ...] | STUDY [--out FILE.html]",
    .details =
        "Writes one HTML file that loads nothing from the network: curves, times, sample\n"
        "pictures, confusion matrix, devices, configuration, log. For one run the file is\n"
        "RUN/report.html, which training also updates. For several runs it is comparison.html in\n"
        "the current folder, with their curves in one chart, their best values, and the settings\n"
        "in which they differ. For the folder of a study, which pumice sweep makes, it is\n"
        "STUDY/report.html: all points, how the metric depends on what varies, and the best\n"
        "point's config.\n"
        "\n"
        "  --out FILE   writes to this file instead\n"
        "\n"
        "  pumice report runs/a runs/b runs/c --out comparison.html\n"
        "  pumice report studies/shapes\n",
    .run = run,
};
