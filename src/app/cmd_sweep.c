/* pumice sweep: trains the runs of a study. */
#include "app/app.h"
#include "study/study_run.h"
#include "study/study_worker.h"

#include <pumice/report.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table --------------------------------------------------------------------------- */

static void add_table(const struct pm_study_report *s, struct pm_str *t)
{
    int width = 5;

    for (int i = 0; i < s->points; i++)
        width = (int)fmax(width, (double)strlen(s->rows[i].name));
    pm_str_add(t, "%-*s  %8s  %12s", width, "point", "step", s->metric);
    pm_str_add(t, "%s\n", s->repeats > 1 ? "    spread  runs" : "");
    for (int i = 0; i < s->points; i++) {
        const struct pm_study_row *w = &s->rows[i];

        pm_str_add(t, "%-*s  ", width, w->name);
        if (w->step < 0) {
            pm_str_add(t, "%8s\n", "-");
            continue;
        }
        if (w->step > 0)
            pm_str_add(t, "%8lld  ", (long long)w->step);
        else
            pm_str_add(t, "%8s  ", "end");
        if (isfinite(w->mean))
            pm_str_add(t, "%12.4f", w->mean);
        else
            pm_str_add(t, "%12s", "-");
        if (s->repeats > 1)
            pm_str_add(t, "  %8.4f  %d", isfinite(w->spread) ? w->spread : 0,
                       w->runs - w->failed);
        if (w->failed)
            pm_str_add(t, "  %d failed: %s", w->failed, w->message);
        pm_str_add(t, "\n");
    }
}

static cJSON *make_json(const struct pm_study_report *s, const char *file)
{
    cJSON *o = cJSON_CreateObject(), *list;
    char path[4096];

    cJSON_AddStringToObject(o, "study", file);
    cJSON_AddStringToObject(o, "folder", s->folder);
    cJSON_AddStringToObject(o, "metric", s->metric);
    snprintf(path, sizeof path, "%s/best.json", s->folder);
    if (pm_file_exists(path))
        cJSON_AddStringToObject(o, "best", path);
    list = cJSON_AddArrayToObject(o, "points");
    for (int i = 0; i < s->points; i++) {
        const struct pm_study_row *w = &s->rows[i];
        cJSON *p = cJSON_CreateObject();

        cJSON_AddStringToObject(p, "name", w->name);
        cJSON_AddItemToObject(p, "values", cJSON_Duplicate(w->values, true));
        cJSON_AddNumberToObject(p, "step", (double)w->step);
        cJSON_AddNumberToObject(p, "runs", w->runs);
        cJSON_AddNumberToObject(p, "failed", w->failed);
        cJSON_AddNumberToObject(p, "mean", w->mean);
        cJSON_AddNumberToObject(p, "spread", w->spread);
        if (w->message)
            cJSON_AddStringToObject(p, "error", w->message);
        cJSON_AddItemToArray(list, p);
    }
    return o;
}

static int print_study(const struct pm_study *study, struct app_globals *g)
{
    struct pm_study_report *s = NULL;
    struct pm_str t = { 0 };
    cJSON *o = NULL;
    int err = PM_OK;

    PM_TRY(pm_study_report_open(study->folder, &s));
    if (g->json)
        o = make_json(s, study->path);
    else
        add_table(s, &t);
    PM_TRY(g->json ? app_print_json(g, o) : app_print(t.text));
out:
    cJSON_Delete(o);
    pm_str_free(&t);
    pm_study_report_close(&s);
    return err;
}

/* ---- --dry-run --------------------------------------------------------------------------- */

static void add_device(struct pm_str *t, const cJSON *d)
{
    char bytes[24];

    pm_str_add(t, ", %s on %s",
               pm_bytes_text((uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(d, "memory_bytes")),
                             bytes),
               cJSON_GetStringValue(cJSON_GetObjectItem(d, "address")));
}

/* Measures one point: its config with the devices of the first worker. */
static int measure(const struct pm_study *s, const struct app_args *args,
                   const struct pm_open_sections *open, int point, cJSON *report)
{
    const char **list;
    const size_t n = pm_study_worker_overrides(s, &s->workers[0], args->overrides,
                                               args->overrides_count, &list);
    struct pm_config *c = NULL;
    int err = PM_OK;

    PM_TRY(pm_study_config(s, point, 0, list, n, open, &c));
    PM_TRY(pm_settle_batch(c));
    PM_TRY(pm_dry_run(c, report));
    cJSON_AddStringToObject(report, "name", s->points[point].name);
out:
    pm_config_destroy(&c);
    return err;
}

static int dry_run(const struct pm_study *s, const struct app_args *args,
                   const struct pm_open_sections *open, struct app_globals *g)
{
    cJSON *o = cJSON_CreateObject(), *points = cJSON_AddArrayToObject(o, "points"), *d;
    struct pm_str t = { 0 };
    double all = 0;
    int err = PM_OK;

    for (int i = 0; i < s->points_count; i++) {
        cJSON *report = cJSON_CreateObject();

        cJSON_AddItemToArray(points, report);
        PM_TRY(measure(s, args, open, i, report));
        const double seconds = cJSON_GetNumberValue(cJSON_GetObjectItem(report, "seconds"));
        pm_str_add(&t, "%s: ", s->points[i].name);
        pm_str_duration(&t, cJSON_GetNumberValue(cJSON_GetObjectItem(report, "seconds_per_step")));
        pm_str_add(&t, " a step");
        if (isfinite(seconds)) {
            pm_str_add(&t, ", ");
            pm_str_duration(&t, seconds);
            pm_str_add(&t, " a run");
            all += seconds * s->repeats;
        }
        cJSON_ArrayForEach(d, cJSON_GetObjectItem(report, "devices"))
            add_device(&t, d);
        pm_str_add(&t, "\n");
    }
    pm_str_add(&t, "%d %s, %d %s", s->points_count, pm_plural(s->points_count, "point", "points"),
               s->points_count * s->repeats,
               pm_plural(s->points_count * s->repeats, "run", "runs"));
    if (all > 0) {
        pm_str_add(&t, "; all runs to their end take about ");
        pm_str_duration(&t, all / s->workers_count);
        pm_str_add(&t, ", without evaluations%s", s->halving.factor > 0 ? ", halving less" : "");
    }
    pm_str_add(&t, "; no run was started\n");
    cJSON_AddNumberToObject(o, "seconds", all > 0 ? all / s->workers_count : NAN); /* null */
    PM_TRY(g->json ? app_print_json(g, o) : app_print(t.text));
out:
    cJSON_Delete(o);
    pm_str_free(&t);
    return err;
}

/* ---- the command ------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_open_sections open = pm_train_choices(a);
    const bool dry = app_take_flag(&argc, argv, "--dry-run");
    const bool yes = app_take_flag(&argc, argv, "--yes");
    const bool retry = app_take_flag(&argc, argv, "--retry");
    struct pm_study_run_options o = {
        .open = &open, .stop_on_error = app_take_flag(&argc, argv, "--stop-on-error"),
        .signal = &stop_signal,
    };
    struct pm_study_results results = { .fd = -1 };
    struct pm_study *s = NULL;
    struct app_args args;
    int stopped = 0, err = PM_OK;

    PM_TRY(app_args(argc, argv, "sweep", a, &args));
    if (args.words_count != 1)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: sweep needs the file of one study, as in pumice "
                       "sweep study.json"));
    o.overrides = args.overrides;
    o.overrides_count = args.overrides_count;
    PM_TRY(pm_study_open(args.words[0], args.overrides, args.overrides_count, yes, &open, &s));
    if (dry) {
        PM_TRY(dry_run(s, &args, &open, g));
        goto out;
    }
    PM_TRY(pm_study_results_open(s, retry, &results));
    signal(SIGCHLD, SIG_DFL); /* else the ends of processes would be lost */
    pm_catch_stop_signals(on_signal);
    PM_TRY(pm_study_run(s, &results, &o, &stopped));
    PM_TRY(print_study(s, g));
    if (stopped)
        PM_INFO("sweep", "stopped by a signal; run the same command to go on");
    else
        PM_INFO("sweep", "the best point's config is %s/best.json; the page of the study is "
                "%s/report.html", s->folder, s->folder);
    err = stopped ? 128 + stopped : PM_OK;
out:
    pm_study_results_close(&results);
    pm_study_close(&s);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_sweep = {
    .name = "sweep", .help = "trains many runs of one config and compares them",
    .usage = "STUDY.json [--dry-run] [--yes] [--retry] [--stop-on-error] [key=value ...]",
    .details =
        "Reads a config with the section study, which names the keys that vary. Each choice of\n"
        "values is a point. Each point is trained in a run folder of its own in study.folder,\n"
        "several at a time if study.workers lists devices. Then the table of all points is\n"
        "printed, and the config of the best one is written to best.json. Ctrl-C ends the study\n"
        "after a checkpoint of each run; the same command goes on. A run that fails is noted and\n"
        "does not end the study. docs/studies.md explains the section.\n"
        "\n"
        "  --dry-run        trains nothing: lists the points with their memory and time\n"
        "  --yes            starts a study of one run, or of more than 1,000\n"
        "  --retry          trains the runs again that have failed\n"
        "  --stop-on-error  ends the study when a run fails\n"
        "\n"
        "  pumice sweep configs/shapes_study.json --dry-run\n"
        "  pumice sweep configs/shapes_study.json\n",
    .run = run,
};
