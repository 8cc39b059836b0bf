/* watch: watch.h has the contract. */
#include "observers/watch.h"

#include "observers/per_class.h"
#include "observers/run_page.h"
#include "observers/summaries.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* Told once: a full disk is not reported at every step. */
static void lose_metrics(struct pm_trainer *t)
{
    if (!t->metrics_lost)
        PM_WARN("train", "%s; training goes on, lines of metrics.jsonl are missing from here",
                pm_error_text());
    t->metrics_lost = true;
}

void pm_watch_open(struct pm_trainer *t)
{
    if (pm_metrics_open(t->c->run.folder, t->step, &t->metrics) < 0)
        lose_metrics(t);
    else if (t->evaluated_step == UINT64_MAX)
        t->evaluated_step = pm_metrics_evaluated(t->metrics);
    t->summaries = pm_summaries_open(t->e, t->step, t->evaluated_step == t->step);
    if (!t->page)
        t->page = pm_run_page_open(t);
}

void pm_watch_close(struct pm_trainer *t)
{
    pm_progress_end(&t->progress);
    pm_metrics_close(&t->metrics);
    pm_summaries_close(&t->summaries, t->collected);
}

void pm_watch_start(struct pm_trainer *t)
{
    pm_speed_start(&t->speed, pm_loader_waited(t->loader));
    if (t->progress)
        return;
    for (int i = 0; i < t->spec_count && i < PM_MAX_CLONES; i++)
        t->clone_names[i] = t->specs[i].info.address;
    t->progress = pm_progress_start(&(struct pm_progress_options){
        .what = "train", .unit = "step", .first = t->step, .last = (uint64_t)t->e->steps,
        .loss = true, .clones = t->clone_names, .clone_count = t->spec_count });
}

static void add_metrics(struct pm_trainer *t, const char *kind, uint64_t step,
                        const struct pm_metric *list, size_t count)
{
    if (t->metrics && pm_metrics_add(t->metrics, kind, step, list, count) < 0)
        lose_metrics(t);
}

/* Seconds since the last line, in whole microseconds. */
static size_t add_phases(struct pm_trainer *t, struct pm_metric *list,
                         char names[PM_RUN_PHASES][24])
{
    double seconds[PM_RUN_PHASES];

    pm_phases_take(&t->phases, seconds);
    for (int i = 0; i < PM_RUN_PHASES; i++) {
        snprintf(names[i], sizeof names[i], "seconds_%s", pm_phase_names[i]);
        list[i] = (struct pm_metric){ names[i], round(1e6 * seconds[i]) / 1e6 };
    }
    return PM_RUN_PHASES;
}

/* The data losses one by one. "loss" is the total's name. */
static size_t add_parts(const struct pm_step_result *r, struct pm_metric *list)
{
    for (int i = 0; i < r->part_count; i++)
        list[i] = (struct pm_metric){ strcmp(r->parts[i].name, "loss") == 0 ? "main_loss"
                                                                          : r->parts[i].name,
                                      r->parts[i].value };
    return (size_t)r->part_count;
}

static bool is_logged(const struct pm_trainer *t, uint64_t step)
{
    return step % (uint64_t)t->c->run.log_every_steps == 0 || step == (uint64_t)t->e->steps;
}

/* text: for the progress's line. */
static size_t add_train_metrics(struct pm_trainer *t, struct pm_metric *list, char text[32])
{
    struct pm_train_values v;

    if (!t->train_metrics)
        return 0;
    pm_train_metrics_count(t->train_metrics, (int)((t->collected - 1) % PM_TRAINER_SLOTS), t->clones, &v);
    pm_summaries_train(t->summaries, &v);
    if (isfinite(v.v[0])) /* else nothing has counted yet */
        snprintf(text, 32, "%s %.4f", v.of.names[0], v.v[0]);
    for (int i = 0; i < PM_TRAIN_METRICS; i++)
        list[i] = (struct pm_metric){ v.of.names[i], v.v[i] };
    return PM_TRAIN_METRICS;
}

static void log_step(struct pm_trainer *t, const struct pm_step_result *r)
{
    struct pm_rates rates = pm_speed_take(&t->speed, pm_loader_waited(t->loader));
    float lr = pm_schedule_rate(&t->schedule, (int64_t)t->collected - 1);
    double fill = pm_loader_fill(t->loader);
    struct pm_metric list[14 + PM_MAX_LOSSES + PM_RUN_PHASES] = {
        { "loss", t->loss },       { "loss_average", t->averages.list[0].value }, { "l2", r->l2 },
        { "lr", lr },              { "gradient_norm", r->norm },
        { "images_per_second", rates.images_per_second },
        { "seconds_per_step", rates.seconds_per_step },
        { "wait_share", rates.wait_share }, { "queue_fill", fill },
    };
    char names[PM_RUN_PHASES][24], more[32] = "";
    size_t count = 9;

    count += add_parts(r, list + count);
    count += add_train_metrics(t, list + count, more);
    count += add_phases(t, list + count, names);
    if (t->c->data.on_corrupt == PM_CORRUPT_SKIP)
        list[count++] = (struct pm_metric){
            "skipped", (double)t->skipped_at[(t->collected - 1) % PM_TRAINER_SLOTS] };
    for (int i = 0; i < t->spec_count && i < PM_MAX_CLONES; i++)
        t->clone_rates[i] = pm_clones_examples(t->clones, i) / pm_clones_seconds(t->clones, i);
    pm_progress_point(t->progress, &(struct pm_progress_point){
        .done = t->collected, .loss = r->loss, .decay = (double)r->l2, .lr = lr, .rates = rates,
        .more = more[0] ? more : NULL,
        .clone_images_per_second = t->clone_rates });
    add_metrics(t, "train", t->collected, list, count);
    pm_summaries_step(t->summaries, t->collected, &(struct pm_summary_scalars){
        .result = r, .averages = &t->averages, .lr = lr, .rates = rates,
        .queue_fill = fill, .queue = pm_loader_ring(t->loader),
        .clone_images_per_second = t->clone_rates,
        .clones = t->spec_count < PM_MAX_CLONES ? t->spec_count : PM_MAX_CLONES });
    pm_run_page_step(t->page, t);
}

void pm_watch_step(struct pm_trainer *t, const struct pm_step_result *r)
{
    pm_speed_step(&t->speed, (uint64_t)t->c->run.batch_size);
    if (is_logged(t, t->collected))
        log_step(t, r);
    else
        pm_progress_step(t->progress, t->collected);
}

/* Beside the event file of these evaluations. */
static void write_per_class(struct pm_trainer *t, const struct cJSON *detail)
{
    struct cJSON *rows = pm_per_class_rows(detail);
    struct pm_str folder = { 0 };

    pm_str_add(&folder, "%s/eval", t->c->run.folder);
    if (rows && !t->per_class_lost && pm_per_class_write(folder.text, t->step, rows) < 0) {
        PM_WARN("eval", "%s; training goes on without it", pm_error_text());
        t->per_class_lost = true;
    }
    pm_str_free(&folder);
    cJSON_Delete(rows);
}

void pm_watch_evaluation(struct pm_trainer *t, uint64_t count, const struct cJSON *detail)
{
    const struct cJSON *m;
    struct pm_str text = { 0 };

    cJSON_ArrayForEach(m, t->eval_metrics) if (cJSON_IsNumber(m))
    {
        if (isfinite(m->valuedouble))
            pm_str_add(&text, "  %s %.4f", m->string, m->valuedouble);
        else
            pm_str_add(&text, "  %s -", m->string);
    }
    PM_INFO("eval", "step %llu, %llu pictures%s", (unsigned long long)t->step,
            (unsigned long long)count, text.text ? text.text : "");
    pm_summaries_evaluation(t->summaries, t->step, t->eval_metrics);
    write_per_class(t, detail);
    pm_run_page_evaluation(t->page, t, count, detail);
    pm_str_free(&text);
}

void pm_watch_evaluated(struct pm_trainer *t)
{
    struct pm_metric *list = NULL;
    const struct cJSON *m;
    size_t n = 0, capacity = 0;

    cJSON_ArrayForEach(m, t->eval_metrics) if (cJSON_IsNumber(m))
    {
        PM_GROW(list, n, capacity);
        list[n++] = (struct pm_metric){ m->string, m->valuedouble };
    }
    add_metrics(t, "eval", t->step, list, n);
    pm_run_page_now(t->page, t);
    pm_free(list);
}

void pm_watch_batch(struct pm_trainer *t, const struct pm_batch *batch)
{
    if (pm_summaries_due(t->summaries, t->step + 1))
        pm_summaries_batch(t->summaries, batch);
    if (t->train_metrics && is_logged(t, t->step + 1))
        pm_train_metrics_batch(t->train_metrics, (int)(t->step % PM_TRAINER_SLOTS), batch);
}

void pm_watch_saving(struct pm_trainer *t)
{
    if (t->metrics && pm_metrics_sync(t->metrics) < 0)
        lose_metrics(t);
}

void pm_watch_saved(struct pm_trainer *t)
{
    pm_summaries_saved(t->summaries, t->step);
}

bool pm_watch_due(const struct pm_trainer *t)
{
    return pm_summaries_due(t->summaries, t->step);
}

int pm_watch_look(struct pm_trainer *t)
{
    return pm_summaries_write(t->summaries, t->step, t->snapshot, pm_clones_master(t->clones),
                              pm_clones_device(t->clones, 0), pm_clones_variables(t->clones, 0));
}

void pm_watch_leave(struct pm_trainer *t)
{
    pm_summaries_leave(t->summaries);
}

void pm_watch_end(struct pm_trainer *t, int err, int signal_number)
{
    pm_run_page_end(&t->page, t, err, signal_number);
}
