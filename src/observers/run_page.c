/* run_page: run_page.h has the contract. */
#include "observers/run_page.h"

#include "config/config_changes.h"
#include "observers/rank_rates.h"
#include "optim/averages.h"

#include <pumice/checkpoint.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum { EVERY_SECONDS = 10, TIMES_THE_COST = 100 };

struct pm_run_page {
    char *folder;             /* owned */
    struct pm_report *report; /* owned: the contents of the folder, kept so that only new parts are
                               * read */
    char *started;            /* owned: time when the run began, kept when it resumes */
    double seconds_before;    /* seconds of training before this start */
    double opened_at, next_at;
    struct pm_page_rates rates;
    bool warned;
};

static int write_text(const char *folder, const char *name, const char *text, size_t size)
{
    struct pm_str path = { 0 };
    int err;

    pm_str_add(&path, "%s/%s", folder, name);
    err = pm_file_write(path.text, text, size);
    pm_str_free(&path);
    return err;
}

static int write_json(const char *folder, const char *name, const cJSON *object)
{
    char *text = pm_json_print(object);
    const int err = write_text(folder, name, text, strlen(text));

    pm_free(text);
    return err;
}

static int write_page(const char *folder, struct pm_report *r)
{
    struct pm_str html = { 0 };
    int err;

    pm_report_refresh(r);
    pm_report_page(&r, 1, &html);
    err = write_text(folder, "report.html", html.text, html.length);
    pm_report_rest(r);
    pm_str_free(&html);
    return err;
}

static char *now_text(char buf[32])
{
    const time_t now = time(NULL);
    struct tm tm;

    strftime(buf, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &tm));
    return buf;
}

/* ---- run.json ---------------------------------------------------------------------------- */

/* Counts the elements of trainable variables. */
static double parameters_of(const struct pm_variables *v)
{
    double n = 0;

    for (int i = 0; i < v->count; i++)
        n += v->list[i].trainable ? (double)pm_shape_count(v->list[i].shape) : 0;
    return n;
}

static void add_metrics(const struct pm_run_facts *f, cJSON *run)
{
    const char *best = f->c->run.keep_best;
    const bool names_metric = strcmp(best, "auto") != 0 && strcmp(best, "none") != 0;
    cJSON *list = cJSON_AddArrayToObject(run, "metrics");
    struct pm_metric_list metrics = { 0 };

    f->e->task_row->metrics(f->e->task, &metrics);
    for (size_t i = 0; i < metrics.count; i++) {
        cJSON *m = cJSON_CreateObject();
        cJSON_AddStringToObject(m, "name", metrics.list[i]->name);
        cJSON_AddBoolToObject(m, "higher_is_better", metrics.list[i]->higher_is_better);
        cJSON_AddItemToArray(list, m);
    }
    cJSON_AddStringToObject(run, "best_metric", names_metric ? best : metrics.list[0]->name);
    pm_free(metrics.list);
}

static void add_devices(const struct pm_run_page *p, const struct pm_run_facts *f, cJSON *run)
{
    cJSON *list = cJSON_AddArrayToObject(run, "devices");

    for (int i = 0; i < f->spec_count; i++) {
        const struct pm_device_info *info = &f->specs[i].info;
        cJSON *d = cJSON_CreateObject();

        cJSON_AddItemToArray(list, d);
        cJSON_AddStringToObject(d, "name", info->name);
        cJSON_AddStringToObject(d, "address", info->address);
        cJSON_AddStringToObject(d, "driver", info->driver);
        cJSON_AddNumberToObject(d, "memory_bytes", (double)info->memory_bytes);
        if (f->clones) {
            cJSON_AddNumberToObject(d, "examples", pm_clones_examples(f->clones, i));
            cJSON_AddNumberToObject(d, "memory_used",
                                    (double)pm_device_memory_used(pm_clones_device(f->clones, i)));
        }
        if (i < PM_MAX_CLONES && p->rates.clones[i] > 0 && isfinite(p->rates.clones[i]))
            cJSON_AddNumberToObject(d, "images_per_second", p->rates.clones[i]);
    }
}

/* Adds the dotted keys of values that differ from their defaults, with the origin of each. */
static void add_origins(const struct pm_config *c, const cJSON *v, const char *key, cJSON *out)
{
    const cJSON *member;
    const char *origin;

    if (cJSON_IsObject(v) && v->child) {
        cJSON_ArrayForEach(member, v)
        {
            struct pm_str path = { 0 };

            pm_str_add(&path, "%s%s%s", key, *key ? "." : "", member->string);
            add_origins(c, member, path.text, out);
            pm_str_free(&path);
        }
        return;
    }
    origin = pm_config_origin(c, key);
    if (!pm_config_is_default(c, key))
        cJSON_AddStringToObject(out, key, origin);
}

static void add_about(const struct pm_run_facts *f, cJSON *run)
{
    const struct pm_dataset_info *data = pm_dataset_get_info(f->e->train);
    cJSON *input = cJSON_AddArrayToObject(run, "input"), *config = pm_config_dump(f->c);
    char identity[PM_IDENTITY];

    cJSON_AddStringToObject(run, "task", f->e->task_row->config.name);
    cJSON_AddStringToObject(run, "net", pm_experiment_net_name(f->c));
    cJSON_AddStringToObject(run, "data", data->name);
    cJSON_AddNumberToObject(run, "train_examples", (double)data->count);
    if (f->e->eval)
        cJSON_AddNumberToObject(run, "eval_examples",
                                (double)pm_dataset_get_info(f->e->eval)->count);
    if (f->e->eval_split)
        cJSON_AddStringToObject(run, "eval_split", f->e->eval_split);
    cJSON_AddNumberToObject(run, "classes", f->e->facts.num_classes);
    cJSON_AddItemToArray(input, cJSON_CreateNumber(f->e->facts.height));
    cJSON_AddItemToArray(input, cJSON_CreateNumber(f->e->facts.width));
    cJSON_AddItemToArray(input, cJSON_CreateNumber(f->e->facts.channels));
    cJSON_AddNumberToObject(run, "batch_size", f->c->run.batch_size);
    pm_config_identity(config, identity);
    cJSON_AddStringToObject(run, "identity", identity);
    add_origins(f->c, config, "", cJSON_AddObjectToObject(run, "origins"));
    cJSON_Delete(config);
}

static int write_run(struct pm_run_page *p, const struct pm_run_facts *f, const char *state,
                     const char *error)
{
    cJSON *run = cJSON_CreateObject();
    char now[32];
    int err;

    cJSON_AddStringToObject(run, "version", PUMICE_VERSION);
    cJSON_AddStringToObject(run, "state", state);
    if (error)
        cJSON_AddStringToObject(run, "error", error);
    cJSON_AddStringToObject(run, "started", p->started);
    cJSON_AddStringToObject(run, "written", now_text(now));
    cJSON_AddNumberToObject(run, "seconds", p->seconds_before + pm_seconds() - p->opened_at);
    cJSON_AddNumberToObject(run, "step", (double)f->collected);
    cJSON_AddNumberToObject(run, "steps", (double)f->e->steps);
    add_about(f, run);
    if (f->clones)
        cJSON_AddNumberToObject(run, "parameters", parameters_of(pm_clones_master(f->clones)));
    add_metrics(f, run);
    add_devices(p, f, run);
    pm_rank_rates_describe(p->rates.ranks, f, run);
    if (cJSON_GetArraySize(f->changes) > 0)
        cJSON_AddItemToObject(run, "changes", cJSON_Duplicate(f->changes, true));
    err = write_json(p->folder, "run.json", run);
    cJSON_Delete(run);
    return err;
}

/* ---- when -------------------------------------------------------------------------------- */

/* False: the folder was removed, or belongs to another run. The trainer ends then, and says why. */
static bool has_folder(const struct pm_run_facts *f)
{
    return pm_run_lock_holds(f->lock, f->saved_step != UINT64_MAX);
}

static void write_all(struct pm_run_page *p, const struct pm_run_facts *f, const char *state,
                      const char *error)
{
    const double start = pm_seconds();
    int err = PM_OK;

    if (!has_folder(f))
        return;
    PM_TRY(write_run(p, f, state, error));
    PM_TRY(write_page(p->folder, p->report));
out:
    if (err < 0 && !p->warned && has_folder(f))
        PM_WARN("report", "%s; training continues, but report.html is not up to date",
                pm_error_text());
    p->warned |= err < 0;
    const double end = pm_seconds(), pause = TIMES_THE_COST * (end - start);
    p->next_at = end + (pause > EVERY_SECONDS ? pause : EVERY_SECONDS);
}

/* Reads the start and the duration of a resumed run. */
static void read_past(struct pm_run_page *p, uint64_t step)
{
    struct pm_str path = { 0 };
    char *text = NULL, now[32];
    cJSON *run = NULL;

    pm_str_add(&path, "%s/run.json", p->folder);
    if (step > 0 && pm_file_exists(path.text) &&
        pm_text_read(path.text, PM_MOST_TEXT, &text) == PM_OK)
        run = cJSON_Parse(text);
    const char *started = cJSON_GetStringValue(cJSON_GetObjectItem(run, "started"));
    const double seconds = cJSON_GetNumberValue(cJSON_GetObjectItem(run, "seconds"));

    p->started = pm_strdup(started ? started : now_text(now));
    p->seconds_before = seconds > 0 ? seconds : 0;
    cJSON_Delete(run);
    pm_free(text);
    pm_str_free(&path);
    if (step == 0) /* the folder's former run was replaced */
        pm_evaluations_forget(p->folder);
}

struct pm_run_page *pm_run_page_open(const struct pm_run_facts *f, const struct pm_page_rates *r)
{
    struct pm_run_page *p = pm_calloc(1, sizeof *p);

    p->folder = pm_strdup(f->c->run.folder);
    p->rates = *r;
    p->opened_at = pm_seconds();
    read_past(p, f->step);
    p->report = pm_report_open(p->folder, true);
    write_all(p, f, "running", NULL);
    return p;
}

bool pm_run_is_finished(const char *run, int64_t step)
{
    struct pm_str path = { 0 };
    char *text = NULL;
    cJSON *object = NULL;
    const char *state;
    bool is;

    pm_str_add(&path, "%s/run.json", run);
    if (pm_file_exists(path.text) && pm_text_read(path.text, PM_MOST_TEXT, &text) == PM_OK)
        object = cJSON_Parse(text);
    state = cJSON_GetStringValue(cJSON_GetObjectItem(object, "state"));
    is = state && strcmp(state, "finished") == 0 &&
         cJSON_GetNumberValue(cJSON_GetObjectItem(object, "step")) <= (double)step;
    cJSON_Delete(object);
    pm_free(text);
    pm_str_free(&path);
    return is;
}

void pm_run_page_step(struct pm_run_page *p, const struct pm_run_facts *f)
{
    if (pm_seconds() >= p->next_at)
        write_all(p, f, "running", NULL);
}

/* ---- evaluation.json --------------------------------------------------------------------- */

void pm_run_page_evaluation(struct pm_run_page *p, const struct pm_run_facts *f, uint64_t count,
                            const struct cJSON *metrics, const struct cJSON *detail)
{
    char checkpoint[64];
    const struct pm_evaluated e = {
        .data = f->c->data.folder, .split = f->e->eval_split, .checkpoint = checkpoint,
        .averages = pm_averages_evaluated(f->c), .training = true, .step = f->step, .count = count,
        .metrics = metrics, .detail = detail,
    };

    snprintf(checkpoint, sizeof checkpoint, "checkpoints/step-%06llu.safetensors",
             (unsigned long long)f->step);
    if (pm_evaluations_write(p->folder, NULL, &e) < 0 && !p->warned && has_folder(f)) {
        PM_WARN("report", "%s; training continues", pm_error_text());
        p->warned = true;
    }
}

void pm_run_page_now(struct pm_run_page *p, const struct pm_run_facts *f)
{
    write_all(p, f, "running", NULL);
}

void pm_run_page_end(struct pm_run_page **p, const struct pm_run_facts *f, int err, bool stopped)
{
    char *text;

    if (!*p)
        return;
    text = pm_strdup(pm_error_text());
    write_all(*p, f, err < 0 ? "failed" : stopped ? "stopped" : "finished",
              err < 0 ? text : NULL);
    if (err < 0)
        pm_fail((enum pm_error)err, "%s", text); /* main prints it */
    pm_free(text);
    pm_report_close(&(*p)->report);
    pm_free((*p)->folder);
    pm_free((*p)->started);
    pm_free(*p);
    *p = NULL;
}

void pm_run_page_evaluated(const struct pm_config *c, const struct pm_evaluated *e)
{
    const char *run = c->run.folder;
    struct pm_report *r = pm_report_open(run, false);
    char *folder = NULL;
    int err = PM_OK;

    if (pm_report_empty(r))
        goto out;
    folder = pm_evaluations_folder(run, e->split);
    PM_TRY(pm_evaluations_write(run, folder, e));
    if (!pm_run_is_locked(run)) /* else the process that trains there writes it */
        PM_TRY(write_page(run, r));
out:
    if (err < 0)
        PM_WARN("report", "%s; report.html is not up to date", pm_error_text());
    pm_free(folder);
    pm_report_close(&r);
}
