/* watch: watch.h has the contract. */
#include "observers/watch.h"

#include "observers/divergence.h"
#include "observers/loss_averages.h"
#include "observers/per_class.h"
#include "observers/rank_rates.h"
#include "observers/run_page.h"
#include "observers/step_numbers.h"
#include "observers/summaries.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

struct pm_watch {
    struct pm_metrics *metrics;             /* metrics.jsonl; NULL: cannot be written */
    bool metrics_failed, per_class_failed;  /* and the failure was logged */
    struct pm_summaries *summaries;         /* for TensorBoard */
    struct pm_step_numbers *numbers;
    bool quiet;                             /* see watch.h */
    struct pm_rank_rates *rank_rates;       /* NULL: the process trains alone */
    struct pm_run_page *page;               /* run.json, evaluation.json, report.html */
    struct pm_progress *progress;
    const char *clone_names[PM_MAX_CLONES];
    double clone_rates[PM_MAX_CLONES];      /* images per second of each clone's own part */
    struct pm_speed speed;
    struct pm_loss_averages averages, snapshot_averages; /* up to the last collected step; the
                                                          * copy */
    struct pm_divergence divergence;
    char (*dropped_names)[40];              /* owned: of metrics */
    struct pm_metric *line;                 /* owned: room for a logged step's metrics */
    size_t line_room;
};

struct pm_watch *pm_watch_create(const struct pm_experiment *e, int slots, double warmup_steps,
                                 bool quiet)
{
    struct pm_watch *w = pm_calloc(1, sizeof *w);

    w->quiet = quiet;
    pm_divergence_start(&w->divergence,
                        e->task_row->uniform_loss ? e->task_row->uniform_loss(e->task) : NAN,
                        warmup_steps);
    w->divergence.quiet = quiet;
    w->numbers = pm_step_numbers_create(e, slots);
    return w;
}

void pm_watch_destroy(struct pm_watch **w)
{
    if (*w) {
        pm_step_numbers_destroy(&(*w)->numbers);
        pm_rank_rates_destroy(&(*w)->rank_rates);
        pm_loss_averages_free(&(*w)->averages);
        pm_loss_averages_free(&(*w)->snapshot_averages);
        pm_free((*w)->line);
        pm_free((*w)->dropped_names);
        pm_free(*w);
    }
    *w = NULL;
}

/* ---- files ------------------------------------------------------------------------------ */

/* Logs the failure once: a full disk is not reported at every step. */
static void fail_metrics(struct pm_watch *w)
{
    if (!w->metrics_failed)
        PM_WARN("train", "%s; training continues, but metrics.jsonl lacks lines from here",
                pm_error_text());
    w->metrics_failed = true;
}

uint64_t pm_watch_open(struct pm_watch *w, const struct pm_run_facts *run)
{
    uint64_t evaluated = run->evaluated_step;

    if (w->quiet)
        return run->evaluated_step;
    if (pm_metrics_open(run->c->run.folder, run->step, &w->metrics) < 0)
        fail_metrics(w);
    else if (evaluated == UINT64_MAX)
        evaluated = pm_metrics_evaluated(w->metrics);
    w->summaries = pm_summaries_open(run->e, run->step, evaluated == run->step);
    if (!w->page) {
        w->rank_rates = pm_rank_rates_create(run);
        w->page = pm_run_page_open(run, &(struct pm_page_rates){ w->clone_rates, w->rank_rates });
    }
    return evaluated;
}

void pm_watch_close(struct pm_watch *w, const struct pm_run_facts *run)
{
    if (!w || w->quiet)
        return;
    pm_progress_end(&w->progress);
    pm_metrics_close(&w->metrics);
    pm_summaries_close(&w->summaries, run->collected);
}

void pm_watch_start(struct pm_watch *w, const struct pm_run_facts *run)
{
    if (w->quiet)
        return;
    pm_speed_start(&w->speed, pm_loader_waited(run->loader));
    if (w->progress)
        return;
    for (int i = 0; i < run->spec_count && i < PM_MAX_CLONES; i++)
        w->clone_names[i] = run->specs[i].info.address;
    w->progress = pm_progress_start(&(struct pm_progress_options){
        .what = "train", .unit = "step", .first = run->step, .last = (uint64_t)run->e->steps,
        .loss = true, .clones = w->clone_names, .clone_count = run->spec_count });
}

void pm_watch_stop(struct pm_watch *w)
{
    if (w->quiet)
        return;
    pm_progress_end(&w->progress);
}

/* ---- steps ------------------------------------------------------------------------------ */

static void add_metrics(struct pm_watch *w, const char *kind, uint64_t step,
                        const struct pm_metric *list, size_t count)
{
    if (w->metrics && pm_metrics_add(w->metrics, kind, step, list, count) < 0)
        fail_metrics(w);
}

/* Adds the seconds of each phase since the last line, in whole microseconds. */
static size_t add_phases(struct pm_phases *phases, struct pm_metric *list,
                         char names[PM_RUN_PHASES][24])
{
    double seconds[PM_RUN_PHASES];

    pm_phases_take(phases, seconds);
    for (int i = 0; i < PM_RUN_PHASES; i++) {
        snprintf(names[i], sizeof names[i], "seconds_%s", pm_phase_names[i]);
        list[i] = (struct pm_metric){ names[i], round(1e6 * seconds[i]) / 1e6 };
    }
    return PM_RUN_PHASES;
}

/* Adds the data losses one by one. "loss" is the name of the total. */
static size_t add_parts(const struct pm_step_result *r, struct pm_metric *list)
{
    for (int i = 0; i < r->part_count; i++)
        list[i] = (struct pm_metric){ strcmp(r->parts[i].name, "loss") == 0 ? "main_loss"
                                                                          : r->parts[i].name,
                                      r->parts[i].value };
    return (size_t)r->part_count;
}

/* Whether the steps from before + 1 to `step` contain one that is to be logged. */
static bool is_logged(const struct pm_run_facts *run, uint64_t before, uint64_t step)
{
    const uint64_t every = (uint64_t)run->c->run.log_every_steps;

    return step / every > before / every || step == (uint64_t)run->e->steps;
}

bool pm_watch_is_logged(const struct pm_run_facts *run)
{
    return is_logged(run, run->before, run->collected);
}

/* Adds the metrics of the step's predictions. text: for the progress line. */
static size_t add_train_metrics(struct pm_watch *w, const struct pm_train_values *v,
                                struct pm_metric *list, char text[32])
{
    if (v->of.metric_count == 0)
        return 0;
    pm_summaries_train(w->summaries, v);
    if (isfinite(v->v[0])) /* else nothing was counted yet */
        snprintf(text, 32, "%s %.4f", v->of.metrics[0].name, v->v[0]);
    for (int i = 0; i < v->of.metric_count; i++)
        list[i] = (struct pm_metric){ v->of.metrics[i].name, v->v[i] };
    return (size_t)v->of.metric_count;
}

/* Adds the task's numbers of the step's batch. */
static size_t add_batch_metrics(struct pm_watch *w, const struct pm_step_values *v,
                                struct pm_metric *list)
{
    for (int i = 0; i < v->count; i++) {
        list[i] = (struct pm_metric){ v->batch[i].of->name, v->batch[i].value };
        pm_summaries_scalar(w->summaries, v->batch[i].of->tag, v->batch[i].value);
    }
    return (size_t)v->count;
}

/* Returns w->line with room for every metric of a step: `first` of them and of processes, then
 * those of log_step's add functions, two of the updates and "skipped". It grows only at the first
 * logged step. */
static struct pm_metric *room_for_line(struct pm_watch *w, size_t first,
                                       const struct pm_step_result *r)
{
    const size_t need = first + (size_t)r->part_count + PM_RUN_PHASES + 3 +
                        pm_step_numbers_most(w->numbers) + pm_rank_rates_values(w->rank_rates);

    if (need > w->line_room) {
        w->line = pm_realloc(w->line, need * sizeof *w->line);
        w->line_room = need;
    }
    return w->line;
}

/* Adds metrics to the summaries for TensorBoard, with the tags GROUP/NAME. */
static void add_scalars(struct pm_watch *w, const char *group, const struct pm_metric *list,
                        size_t n)
{
    char tag[64];

    for (size_t i = 0; i < n; i++) {
        snprintf(tag, sizeof tag, "%s/%s", group, list[i].name);
        pm_summaries_scalar(w->summaries, tag, list[i].value);
    }
}

static size_t add_rank_rates(struct pm_watch *w, struct pm_metric *list)
{
    const size_t n = pm_rank_rates_take(w->rank_rates, list);

    add_scalars(w, "speed", list, n);
    return n;
}

/* Adds what the updates of several processes have: staleness, or dropped gradients. */
static size_t add_updates(struct pm_watch *w, const struct pm_watched_step *s,
                          struct pm_metric *list)
{
    size_t n = 0;
    double sum = 0;

    if (s->is_async) {
        list[n++] = (struct pm_metric){ "staleness", s->staleness };
        list[n++] = (struct pm_metric){ "staleness_max", s->stalest };
    }
    if (s->dropped && !w->dropped_names)
        w->dropped_names = pm_calloc((size_t)s->workers, sizeof *w->dropped_names);
    for (int k = 0; s->dropped && k < s->workers; k++) {
        snprintf(w->dropped_names[k], sizeof w->dropped_names[k], "rank_%d_dropped_gradients", k);
        list[n++] = (struct pm_metric){ w->dropped_names[k], (double)s->dropped[k] };
        sum += (double)s->dropped[k];
    }
    if (s->dropped)
        list[n++] = (struct pm_metric){ "dropped_gradients", sum };
    add_scalars(w, "updates", list, n);
    return n;
}

static void log_step(struct pm_watch *w, const struct pm_run_facts *run,
                     const struct pm_watched_step *s, const struct pm_step_values *values)
{
    const struct pm_step_result *r = s->result;
    struct pm_rates rates = pm_speed_take(&w->speed, pm_loader_waited(run->loader));
    double fill = pm_loader_fill(run->loader);
    const struct pm_metric first[] = {
        { "loss", r->loss + (double)r->l2 },
        { "loss_average", w->averages.list[0].value }, { "l2", r->l2 },
        { "lr", s->lr },           { "gradient_norm", r->norm },
        { "images_per_second", rates.images_per_second },
        { "seconds_per_step", rates.seconds_per_step },
        { "wait_share", rates.wait_share }, { "queue_fill", fill },
    };
    struct pm_metric *list = room_for_line(w, PM_COUNT(first) + (size_t)s->workers, r);
    char names[PM_RUN_PHASES][24], more[32] = "";
    size_t count = PM_COUNT(first);

    memcpy(list, first, sizeof first);
    count += add_parts(r, list + count);
    count += add_train_metrics(w, &values->train, list + count, more);
    count += add_batch_metrics(w, values, list + count);
    count += add_phases(s->phases, list + count, names);
    count += add_rank_rates(w, list + count);
    count += add_updates(w, s, list + count);
    if (run->c->data.on_corrupt == PM_CORRUPT_SKIP)
        list[count++] = (struct pm_metric){ "skipped", (double)s->skipped };
    for (int i = 0; i < run->spec_count && i < PM_MAX_CLONES; i++)
        w->clone_rates[i] = pm_clones_examples(run->clones, i) / pm_clones_seconds(run->clones, i);
    pm_progress_point(w->progress, &(struct pm_progress_point){
        .done = run->collected, .loss = r->loss, .decay = (double)r->l2, .lr = s->lr,
        .rates = rates, .more = more[0] ? more : NULL,
        .clone_images_per_second = w->clone_rates });
    add_metrics(w, "train", run->collected, list, count);
    pm_summaries_step(w->summaries, run->collected, &(struct pm_summary_scalars){
        .result = r, .averages = &w->averages, .lr = s->lr, .rates = rates,
        .queue_fill = fill, .queue = pm_loader_ring(run->loader),
        .clone_images_per_second = w->clone_rates,
        .clones = run->spec_count < PM_MAX_CLONES ? run->spec_count : PM_MAX_CLONES });
    pm_run_page_step(w->page, run);
}

/* Whether anybody reads the numbers of this process's batches: the chief, or all processes
 * together. */
static bool counts(const struct pm_watch *w, const struct pm_run_facts *run)
{
    return !w->quiet || run->replicas;
}

int pm_watch_step(struct pm_watch *w, const struct pm_run_facts *run,
                  const struct pm_watched_step *s)
{
    const bool logged = pm_watch_is_logged(run);
    struct pm_step_values values;
    int err = PM_OK;

    if (logged && counts(w, run))
        PM_TRY(pm_step_numbers_count(w->numbers, run, s->slot, &values));
    pm_loss_averages_add(&w->averages, s->result);
    pm_rank_rates_step(w->rank_rates, run);
    pm_divergence_step(&w->divergence, run->collected, run->e->steps,
                       run->c->run.log_loss == PM_LOG_LOSS_SUM ? pm_clones_count(run->clones) : 1,
                       s->result);
    if (w->quiet)
        goto out;
    for (uint64_t k = run->before; k < run->collected; k++)
        pm_speed_step(&w->speed, (uint64_t)run->c->run.batch_size);
    if (logged)
        log_step(w, run, s, &values);
    else
        pm_progress_step(w->progress, run->collected);
out:
    return err;
}

void pm_watch_batch(struct pm_watch *w, const struct pm_run_facts *run, int slot,
                    const struct pm_batch *batch)
{
    if (counts(w, run) && /* with jumps, any step may be logged */
        (run->jumps || is_logged(run, run->step, run->step + 1)))
        pm_step_numbers_batch(w->numbers, run, slot, batch);
    if (!w->quiet && pm_summaries_choose(w->summaries, run->step + 1)) {
        pm_summaries_batch(w->summaries, batch);
        if (pm_summaries_observe(run->c))
            pm_clones_observe(run->clones);
    }
}

/* ---- evaluations and checkpoints -------------------------------------------------------- */

/* Writes per_class.csv beside the event file of these evaluations. */
static void write_per_class(struct pm_watch *w, const struct pm_run_facts *run,
                            const struct cJSON *detail)
{
    struct cJSON *rows = pm_per_class_rows(detail);
    struct pm_str folder = { 0 };

    pm_str_add(&folder, "%s/eval", run->c->run.folder);
    if (rows && !w->per_class_failed && pm_per_class_write(folder.text, run->step, rows) < 0) {
        if (pm_run_lock_holds(run->lock, run->saved_step != UINT64_MAX)) /* else the run ends */
            PM_WARN("eval", "%s; training continues without it", pm_error_text());
        w->per_class_failed = true;
    }
    pm_str_free(&folder);
    cJSON_Delete(rows);
}

void pm_watch_evaluation(struct pm_watch *w, const struct pm_run_facts *run, uint64_t count,
                         const struct cJSON *metrics, const struct cJSON *detail)
{
    const struct cJSON *m;
    struct pm_str text = { 0 };

    if (w->quiet)
        return;
    cJSON_ArrayForEach(m, metrics) if (cJSON_IsNumber(m))
    {
        if (isfinite(m->valuedouble))
            pm_str_add(&text, "  %s %.4f", m->string, m->valuedouble);
        else
            pm_str_add(&text, "  %s -", m->string);
    }
    PM_INFO("eval", "step %llu, %llu picture%s%s", (unsigned long long)run->step,
            (unsigned long long)count, count == 1 ? "" : "s", text.text ? text.text : "");
    pm_summaries_evaluation(w->summaries, run->step, metrics);
    write_per_class(w, run, detail);
    pm_run_page_evaluation(w->page, run, count, metrics, detail);
    pm_str_free(&text);
}

void pm_watch_evaluated(struct pm_watch *w, const struct pm_run_facts *run,
                        const struct cJSON *metrics)
{
    struct pm_metric *list = NULL;
    const struct cJSON *m;
    size_t n = 0, capacity = 0;

    if (w->quiet)
        return;
    cJSON_ArrayForEach(m, metrics) if (cJSON_IsNumber(m))
    {
        PM_GROW(list, n, capacity);
        list[n++] = (struct pm_metric){ m->string, m->valuedouble };
    }
    add_metrics(w, "eval", run->step, list, n);
    pm_run_page_now(w->page, run);
    pm_free(list);
}

void pm_watch_saving(struct pm_watch *w)
{
    if (w->quiet)
        return;
    if (w->metrics && pm_metrics_sync(w->metrics) < 0)
        fail_metrics(w);
}

void pm_watch_saved(struct pm_watch *w, uint64_t step)
{
    if (w->quiet)
        return;
    pm_summaries_saved(w->summaries, step);
}

bool pm_watch_histograms_due(const struct pm_watch *w, const struct pm_run_facts *run)
{
    if (w->quiet)
        return false;
    return pm_summaries_due(w->summaries, run->step);
}

int pm_watch_histograms(struct pm_watch *w, const struct pm_run_facts *run,
                        const struct pm_state *snapshot)
{
    if (w->quiet)
        return PM_OK;
    return pm_summaries_write(w->summaries, run->step, snapshot, run->clones);
}

void pm_watch_leave(struct pm_watch *w)
{
    if (w->quiet)
        return;
    pm_summaries_leave(w->summaries);
}

void pm_watch_summarise(const struct pm_watch *w, const struct pm_run_facts *run,
                        struct cJSON *summary)
{
    if (!w->quiet)
        pm_rank_rates_describe(w->rank_rates, run, summary);
}

void pm_watch_end(struct pm_watch *w, const struct pm_run_facts *run, int err, bool stopped)
{
    if (w && !w->quiet)
        pm_run_page_end(&w->page, run, err, stopped);
}

/* ---- state ------------------------------------------------------------------------------ */

void pm_watch_keep(struct pm_watch *w)
{
    pm_loss_averages_copy(&w->snapshot_averages, &w->averages);
    pm_divergence_keep(&w->divergence);
    pm_train_metrics_keep(pm_step_numbers_train(w->numbers));
}

void pm_watch_restore(struct pm_watch *w)
{
    pm_loss_averages_copy(&w->averages, &w->snapshot_averages);
    pm_divergence_restore(&w->divergence);
    pm_train_metrics_restore(pm_step_numbers_train(w->numbers));
}

void pm_watch_print(const struct pm_watch *w, struct pm_str *json)
{
    pm_str_add(json, "\"loss_averages\": ");
    pm_loss_averages_print(&w->snapshot_averages, json);
    pm_str_add(json, ", \"divergence\": ");
    pm_divergence_print(&w->divergence, json);
    pm_train_metrics_print(pm_step_numbers_train(w->numbers), json);
}

void pm_watch_read(struct pm_watch *w, const struct cJSON *object)
{
    const struct cJSON *confusion = cJSON_GetObjectItem(object, "train_confusion");

    pm_loss_averages_read(&w->snapshot_averages, cJSON_GetObjectItem(object, "loss_averages"));
    pm_train_metrics_read(pm_step_numbers_train(w->numbers), cJSON_GetStringValue(confusion));
    pm_divergence_read(&w->divergence, cJSON_GetObjectItem(object, "divergence"));
}
