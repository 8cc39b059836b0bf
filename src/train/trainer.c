/* trainer: the loop. Batches come from the loader, results are read a few steps late so that the
 * device never waits for the log; before a checkpoint or an evaluation all steps under way are
 * collected. When a device is lost, training goes on from the last host snapshot: the step's random
 * numbers and batches depend on its number only, so the same steps are taken again. */
#include <pumice/train.h>

#include "train/balancer.h"
#include "train/clones.h"
#include "train/evaluator.h"
#include "train/schedule.h"
#include "train/state.h"

#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <string.h>

enum { SLOTS = 3, MAX_RECOVERIES = 3 };

struct trainer {
    const struct pm_config *c;
    struct pm_experiment *e;
    struct pm_clone_spec *specs;
    int spec_count;
    struct pm_balancer balance;
    double betas[2];
    struct pm_clones *clones;
    struct pm_evaluator *evaluator;
    struct pm_loader *loader;
    struct pm_sampler sampler;
    struct pm_schedule schedule;
    struct pm_run_lock *lock;
    struct pm_metrics *metrics;
    struct pm_progress *progress;
    const char *clone_names[PM_MAX_CLONES];
    double clone_rates[PM_MAX_CLONES]; /* images per second of its own part */
    struct pm_speed speed;
    FILE *log;

    struct pm_state *snapshot;  /* host copy to go on from after a loss */
    struct pm_state *spare;     /* the next one: a loss while reading leaves the old one whole */
    uint64_t snapshot_step;
    double segment_ms;
    int recoveries;

    uint64_t step;              /* updates submitted */
    uint64_t collected;         /* updates whose results were read */
    uint64_t saved_step, evaluated_step;
    double saved_at, started_at;
    uint64_t first_step;
    double loss;                /* last collected total loss */
    struct cJSON *eval_metrics; /* owned; of the last evaluation */
};

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

static void catch_signals(void)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

    stop_signal = 0;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

/* ---- making ----------------------------------------------------------------------------- */

static int build_net(void *ctx, int batch, struct pm_net **out)
{
    return pm_experiment_net(ctx, batch, true, out, NULL);
}

static int make_clones(struct trainer *t)
{
    const struct pm_config *c = t->c;
    struct pm_field fields[PM_MAX_FIELDS];

    return pm_clones_create(&(struct pm_clones_options){
        .specs = t->specs, .count = t->spec_count, .batch = c->run.batch_size,
        .micro_batches = c->run.micro_batches, .slots = SLOTS, .seed = (uint64_t)c->run.seed,
        .segment_ms = t->segment_ms, .validate = c->run.validate, .build = build_net, .ctx = t->e,
        .fields = fields, .fields_count = t->e->task->fields(&t->e->setup, true, fields),
        .update = { .optimizer = t->e->optimizer, .cfg = t->e->optimizer_cfg,
                    .weight_decay = t->e->weight_decay, .clip_norm = c->optim.clip_norm,
                    .clip_variable_norm = c->optim.clip_variable_norm,
                    .multiplier = pm_experiment_multiplier, .ctx = t->e } }, &t->clones);
}

static int start_loader(struct trainer *t)
{
    pm_loader_destroy(&t->loader);
    return pm_experiment_loader(t->e, true, t->c->run.batch_size, t->step, &t->sampler,
                                &t->loader);
}

static int take_snapshot(struct trainer *t)
{
    struct pm_state *taken;
    int err = PM_OK;

    PM_TRY(pm_clones_gather(t->clones));
    PM_TRY(pm_state_read(t->spare, pm_clones_master(t->clones)));
    taken = t->spare;
    t->spare = t->snapshot;
    t->snapshot = taken;
    t->snapshot_step = t->step;
out:
    return err;
}

static int use_snapshot(struct trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_state_write(t->snapshot, pm_clones_master(t->clones)));
    PM_TRY(pm_clones_scatter(t->clones));
    t->step = t->collected = t->snapshot_step;
out:
    return err;
}

/* What a checkpoint remembers of its run, for warn_of_changes. */
static void state_text(const struct trainer *t, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "{\"seed\": %lld, \"batch_size\": %d, \"devices\": \"",
                                (long long)t->c->run.seed, t->c->run.batch_size);

    for (int i = 0; i < t->spec_count && n + 64 < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s:%d", i ? " " : "",
                              t->specs[i].info.address, t->specs[i].threads);
    snprintf(text + n, size - n, "\"}");
}

/* A run that goes on otherwise than it began is legal, but not the same bits. */
static void warn_of_changes(const struct trainer *t, const struct pm_checkpoint *from)
{
    static const char *const keys[] = { "seed", "batch_size", "devices" };
    char text[1024];
    struct cJSON *was = from->state ? cJSON_Parse(from->state) : NULL, *is;

    state_text(t, text, sizeof text);
    is = cJSON_Parse(text);
    for (size_t i = 0; i < PM_COUNT(keys); i++) {
        const struct cJSON *a = cJSON_GetObjectItem(was, keys[i]);
        const struct cJSON *b = cJSON_GetObjectItem(is, keys[i]);

        if (a && b && !cJSON_Compare(a, b, true))
            PM_WARN("train", "%s changed since the checkpoint: the run goes on, but not with the "
                    "bits it would have had", keys[i]);
    }
    cJSON_Delete(was);
    cJSON_Delete(is);
}

/* Values at the start: the run's newest checkpoint, or a warm start, or initial values. */
static int start_values(struct trainer *t)
{
    const struct pm_config *c = t->c;
    struct pm_variables *v = pm_clones_master(t->clones);
    struct pm_checkpoint *from = NULL;
    char where[512];
    int err = PM_OK;

    PM_TRY(pm_checkpoint_open_newest(c->run.folder, &from));
    if (from) {
        PM_TRY(pm_state_load(t->snapshot, from));
        t->snapshot_step = from->step;
        PM_INFO("train", "resuming %s at step %llu", c->run.folder,
                (unsigned long long)from->step);
        warn_of_changes(t, from);
        if (c->init.checkpoint)
            PM_INFO("train", "init.checkpoint is not used: the run has a checkpoint of its own");
        PM_TRY(use_snapshot(t));
    } else {
        PM_TRY(pm_variables_init(v, (uint64_t)c->run.seed, t->e->optimizer->slot_init));
        snprintf(where, sizeof where, "%s: init.checkpoint", c->path);
        if (c->init.checkpoint)
            PM_TRY(pm_values_warm_start(v, &c->init, where));
        PM_TRY(pm_clones_scatter(t->clones));
        PM_TRY(take_snapshot(t));
    }
    t->saved_step = from ? from->step : UINT64_MAX;
    t->evaluated_step = UINT64_MAX;
    t->first_step = t->step;
out:
    pm_checkpoint_close(&from);
    return err;
}

static int open_log(struct trainer *t)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/log.txt", t->c->run.folder);
    t->log = fopen(path, "a");
    if (!t->log)
        return pm_fail(PM_EFAIL, "%s: cannot be written", path);
    pm_log_file(t->log);
    return PM_OK;
}

/* Once the run's checkpoint is known to fit it. */
static int write_config(const struct trainer *t)
{
    struct cJSON *tree = pm_config_dump(t->c);
    char *text = pm_json_print(tree), path[4096];
    int err = PM_OK;

    snprintf(path, sizeof path, "%s/config.json", t->c->run.folder);
    PM_TRY(pm_file_write(path, text, strlen(text)));
out:
    cJSON_Delete(tree);
    pm_free(text);
    return err;
}

static int check_config(const struct pm_config *c)
{
    if (c->run.steps < 0 || c->run.batch_size < 1)
        return pm_fail(PM_ECONFIG, "%s: run.steps must not be negative and run.batch_size at least 1",
                       c->path);
    return PM_OK;
}

static void say_start(const struct trainer *t)
{
    char shares[256] = "";
    size_t n = 0;

    for (int i = 0; i < t->spec_count && n < sizeof shares; i++)
        n += (size_t)snprintf(shares + n, sizeof shares - n, "%s%s (%d)", i ? ", " : "",
                              t->specs[i].info.name, pm_clones_examples(t->clones, i));
    PM_INFO("train", "%s, %d classes, %dx%dx%d, %zu pictures, batch %d on %s",
            t->c->model.name ? t->c->model.name : "layer list", t->e->setup.num_classes,
            t->e->setup.height, t->e->setup.width, t->e->setup.channels,
            pm_dataset_get_info(t->e->train)->count, t->c->run.batch_size, shares);
    for (int i = 0; i < t->spec_count; i++)
        if (pm_log_enabled(PM_LEVEL_DEBUG, "plan"))
            pm_plan_print(pm_clones_plan(t->clones, i), stderr, false);
}

static int open_trainer(struct trainer *t)
{
    const struct pm_config *c = t->c;
    int err = PM_OK;

    PM_TRY(check_config(c));
    PM_TRY(pm_config_need(c, "run.folder", c->run.folder));
    PM_TRY(pm_experiment_open(c, PM_OPEN_TRAIN | (c->eval.every_steps > 0 ? PM_OPEN_EVAL : 0),
                              &t->e));
    PM_TRY(pm_experiment_devices(t->e, &t->specs, &t->spec_count));
    PM_TRY(pm_schedule_make(&c->schedule, pm_dataset_get_info(t->e->train)->count,
                            c->run.batch_size, t->spec_count, c->run.steps, &t->schedule));
    if (t->e->optimizer->betas)
        t->e->optimizer->betas(t->e->optimizer_cfg, &t->betas[0], &t->betas[1]);
    PM_TRY(pm_run_lock(c->run.folder, &t->lock));
    PM_TRY(open_log(t));
    pm_balancer_start(&t->balance, t->spec_count);
    if (c->run.balance != PM_BALANCE_AUTO || t->spec_count == 1 ||
        pm_balancer_load(c->run.folder, t->specs, t->spec_count))
        t->balance.step = -1;
    PM_TRY(make_clones(t));
    t->snapshot = pm_state_create(pm_clones_master(t->clones));
    t->spare = pm_state_create(pm_clones_master(t->clones));
    PM_TRY(start_values(t));
    PM_TRY(write_config(t));
    PM_TRY(start_loader(t));
    PM_TRY(pm_metrics_open(c->run.folder, t->step, &t->metrics));
    say_start(t);
out:
    return err;
}

static void close_trainer(struct trainer *t)
{
    pm_progress_end(&t->progress);
    pm_loader_destroy(&t->loader);
    pm_evaluator_destroy(&t->evaluator);
    pm_clones_destroy(&t->clones);
    pm_state_destroy(&t->snapshot);
    pm_state_destroy(&t->spare);
    pm_metrics_close(&t->metrics);
    pm_run_unlock(&t->lock);
    pm_experiment_close(&t->e);
    pm_balancer_free(&t->balance);
    cJSON_Delete(t->eval_metrics);
    pm_log_file(NULL);
    if (t->log)
        fclose(t->log);
}

/* ---- results ---------------------------------------------------------------------------- */

/* The variable whose gradient is not a number, else the one with the largest. */
static const char *worst_variable(struct trainer *t, const float *norms, float *norm)
{
    const struct pm_variables *v = pm_clones_master(t->clones);
    int worst = 0;

    for (int k = 0; pm_update_variable(v, k) >= 0; k++)
        if (!(norms[k] <= norms[worst])) {
            worst = k;
            if (!isfinite(norms[k]))
                break;
        }
    *norm = norms[worst];
    return v->list[pm_update_variable(v, worst)].name;
}

static int fail_non_finite(struct trainer *t, const struct pm_step_result *r)
{
    float norm;
    const char *name = worst_variable(t, r->norms, &norm);
    char last[64] = "none yet";

    if (t->saved_step != UINT64_MAX)
        snprintf(last, sizeof last, "step %llu", (unsigned long long)t->saved_step);
    return pm_fail(PM_EFAIL, "step %llu: the loss is %g and the gradients are not finite, most in "
                   "%s (norm %g); last good checkpoint: %s; lower schedule.base_lr, set "
                   "optim.clip_norm, or look for bad labels",
                   (unsigned long long)t->collected, r->loss, name, (double)norm, last);
}

static void log_step(struct trainer *t, const struct pm_step_result *r)
{
    struct pm_rates rates = pm_speed_take(&t->speed, pm_loader_waited(t->loader));
    float lr = pm_schedule_rate(&t->schedule, (int64_t)t->collected - 1);
    const struct pm_metric list[] = {
        { "loss", t->loss },       { "l2", r->l2 },
        { "lr", lr },              { "gradient_norm", r->norm },
        { "images_per_second", rates.images_per_second },
        { "seconds_per_step", rates.seconds_per_step },
        { "wait_share", rates.wait_share },
    };

    for (int i = 0; i < t->spec_count && i < PM_MAX_CLONES; i++)
        t->clone_rates[i] = pm_clones_examples(t->clones, i) / pm_clones_seconds(t->clones, i);
    pm_progress_point(t->progress, &(struct pm_progress_point){
        .done = t->collected, .loss = t->loss, .lr = lr, .rates = rates,
        .clone_images_per_second = t->clone_rates });
    if (pm_metrics_add(t->metrics, "train", t->collected, list, PM_COUNT(list)) < 0)
        PM_WARN("train", "%s", pm_error_text());
}

/* Reads the results of the oldest step under way. */
static int collect(struct trainer *t)
{
    struct pm_step_result r;
    int err = PM_OK;

    PM_TRY(pm_clones_collect(t->clones, (int)(t->collected % SLOTS), &r));
    t->collected++;
    t->loss = r.loss + r.l2;
    if (!r.finite)
        PM_TRY(fail_non_finite(t, &r));
    pm_speed_step(&t->speed, (uint64_t)t->c->run.batch_size);
    if (t->collected % (uint64_t)t->c->run.log_every_steps == 0 ||
        t->collected == (uint64_t)t->c->run.steps)
        log_step(t, &r);
    else
        pm_progress_step(t->progress, t->collected);
out:
    return err;
}

static int drain(struct trainer *t)
{
    int err = PM_OK;

    while (t->collected < t->step)
        PM_TRY(collect(t));
out:
    return err;
}

/* ---- saving and evaluating -------------------------------------------------------------- */

static int save(struct trainer *t)
{
    const struct pm_config_run *run = &t->c->run;
    struct pm_keep keep = { .newest = run->keep, .every_hours = run->keep_every_hours };
    char state[1024];
    int err = PM_OK;

    if (t->saved_step == t->step)
        return PM_OK;
    PM_TRY(drain(t));
    PM_TRY(take_snapshot(t));
    state_text(t, state, sizeof state);
    PM_TRY(pm_state_save(t->snapshot, run->folder, t->step, state, &keep));
    t->saved_step = t->step;
    t->saved_at = pm_seconds();
    PM_DEBUG("train", "step %llu saved", (unsigned long long)t->step);
out:
    return err;
}

static int keep_best(struct trainer *t)
{
    const char *metric = t->c->run.keep_best;
    const struct cJSON *value = cJSON_GetObjectItem(t->eval_metrics, metric);
    bool best = false;
    int err = PM_OK;

    if (!cJSON_IsNumber(value))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: run.keep_best: no metric is called \"%s\"", t->c->path,
                       metric));
    PM_TRY(save(t));
    PM_TRY(pm_checkpoint_keep_best(t->c->run.folder, t->step, metric, value->valuedouble,
                                   t->e->task->higher_is_better(metric), &best));
    if (best)
        PM_INFO("eval", "step %llu: best %s so far, %g", (unsigned long long)t->step, metric,
                value->valuedouble);
out:
    return err;
}

static int evaluate(struct trainer *t)
{
    struct pm_metric list[16];
    const struct cJSON *m;
    struct pm_str text = { 0 };
    uint64_t count;
    size_t n = 0;
    int err = PM_OK;

    if (t->evaluated_step == t->step)
        return PM_OK;
    PM_TRY(drain(t));
    if (!t->evaluator)
        PM_TRY(pm_evaluator_create(t->e, pm_clones_device(t->clones, 0),
                                   pm_clones_variables(t->clones, 0), &t->evaluator));
    cJSON_Delete(t->eval_metrics);
    t->eval_metrics = cJSON_CreateObject();
    PM_TRY(pm_evaluator_run(t->evaluator, false, t->eval_metrics, &count));
    cJSON_ArrayForEach(m, t->eval_metrics) if (cJSON_IsNumber(m) && n < PM_COUNT(list))
    {
        list[n++] = (struct pm_metric){ m->string, m->valuedouble };
        pm_str_add(&text, "  %s %.4f", m->string, m->valuedouble);
    }
    PM_INFO("eval", "step %llu, %llu pictures%s", (unsigned long long)t->step,
            (unsigned long long)count, text.text ? text.text : "");
    PM_TRY(pm_metrics_add(t->metrics, "eval", t->step, list, n));
    t->evaluated_step = t->step;
    if (t->c->run.keep_best)
        PM_TRY(keep_best(t));
    pm_speed_start(&t->speed, pm_loader_waited(t->loader));
out:
    pm_str_free(&text);
    return err;
}

/* ---- the loop --------------------------------------------------------------------------- */

static struct pm_step step_values(const struct trainer *t)
{
    uint64_t seed = (uint64_t)t->c->run.seed;
    double n = (double)t->step + 1;

    return (struct pm_step){
        .step = (uint32_t)t->step, .seed_low = (uint32_t)seed, .seed_high = (uint32_t)(seed >> 32),
        .lr = pm_schedule_rate(&t->schedule, (int64_t)t->step), .loss_scale = 1,
        .beta1_power = (float)pow(t->betas[0], n), .beta2_power = (float)pow(t->betas[1], n),
    };
}

static int one_step(struct trainer *t)
{
    struct pm_batch *batch = NULL;
    struct pm_step values = step_values(t);
    int err = PM_OK;

    if (t->step - t->collected == SLOTS)
        PM_TRY(collect(t));
    PM_TRY(pm_loader_next(t->loader, &batch));
    PM_TRY(pm_clones_step(t->clones, (int)(t->step % SLOTS), batch, &values));
    t->step++;
    if (t->spec_count > 1) /* the host has updated: nothing is under way */
        PM_TRY(collect(t));
out:
    if (batch)
        pm_loader_release(t->loader, batch);
    return err;
}

static bool is_due(uint64_t step, int64_t every)
{
    return every > 0 && step % (uint64_t)every == 0;
}

/* The same values, cut otherwise: nets and plans are made again. */
static int rebalance(struct trainer *t)
{
    int err = PM_OK;

    PM_TRY(take_snapshot(t));
    pm_evaluator_destroy(&t->evaluator);
    pm_clones_destroy(&t->clones);
    PM_TRY(make_clones(t));
    PM_TRY(use_snapshot(t));
out:
    return err;
}

static int after_step(struct trainer *t)
{
    const struct pm_config_run *run = &t->c->run;
    bool timed = run->save_every_secs > 0 && pm_seconds() - t->saved_at >= run->save_every_secs;
    int err = PM_OK;

    if (t->spec_count > 1 && pm_balancer_step(&t->balance, t->clones, t->specs)) {
        PM_TRY(pm_balancer_save(run->folder, t->specs, t->spec_count));
        if (t->balance.moved)
            PM_TRY(rebalance(t));
    }
    if (is_due(t->step, run->save_every_steps) || timed) {
        PM_TRY(save(t));
    } else if (is_due(t->step, run->snapshot_every_steps)) {
        PM_TRY(drain(t));
        PM_TRY(take_snapshot(t));
    }
    if (is_due(t->step, t->c->eval.every_steps))
        PM_TRY(evaluate(t));
out:
    return err;
}

static int loop(struct trainer *t)
{
    int64_t steps = t->c->run.steps;
    int err = PM_OK;

    while (!stop_signal && (steps == 0 || t->step < (uint64_t)steps)) {
        PM_TRY(one_step(t));
        PM_TRY(after_step(t));
    }
    PM_TRY(drain(t));
    PM_TRY(save(t));
    if (!stop_signal && t->c->eval.every_steps > 0 && t->step > t->first_step)
        PM_TRY(evaluate(t));
out:
    return err;
}

/* Opens the devices again with shorter submissions and goes on from the snapshot. */
static int recover(struct trainer *t)
{
    int err = PM_OK;

    if (++t->recoveries > MAX_RECOVERIES)
        return pm_fail(PM_ELOST, "%s; that was the loss number %d, with run.segment_ms down to %g: "
                       "is the driver or the card broken?", pm_error_text(), t->recoveries,
                       t->segment_ms);
    t->segment_ms = (t->segment_ms > 0 ? t->segment_ms : 100) / 2;
    PM_WARN("train", "%s; opening again, from step %llu, with submissions of %g ms",
            pm_error_text(), (unsigned long long)t->snapshot_step, t->segment_ms);
    pm_loader_destroy(&t->loader);
    pm_evaluator_destroy(&t->evaluator);
    pm_clones_destroy(&t->clones);
    PM_TRY(make_clones(t));
    PM_TRY(use_snapshot(t));
    t->evaluated_step = UINT64_MAX; /* its line goes with the steps that are taken again */
    PM_TRY(start_loader(t));
    pm_metrics_close(&t->metrics);
    PM_TRY(pm_metrics_open(t->c->run.folder, t->step, &t->metrics));
    pm_speed_start(&t->speed, 0);
out:
    return err;
}

static void summarise(const struct trainer *t, struct cJSON *summary)
{
    double seconds = pm_seconds() - t->started_at;
    double images = (double)(t->step - t->first_step) * t->c->run.batch_size;
    char path[4096];

    cJSON_AddNumberToObject(summary, "step", (double)t->step);
    if (t->step > t->first_step)
        cJSON_AddNumberToObject(summary, "loss", t->loss);
    cJSON_AddNumberToObject(summary, "seconds", seconds);
    cJSON_AddNumberToObject(summary, "images_per_second", seconds > 0 ? images / seconds : 0);
    snprintf(path, sizeof path, "%s/checkpoints/step-%06llu.safetensors", t->c->run.folder,
             (unsigned long long)t->saved_step);
    cJSON_AddStringToObject(summary, "checkpoint", path);
    if (t->eval_metrics)
        cJSON_AddItemToObject(summary, "metrics", cJSON_Duplicate(t->eval_metrics, true));
}

/* A message of the validation layer is a mistake of ours that some driver will punish. */
static int check_messages(const struct trainer *t)
{
    if (t->c->run.validate && pm_device_messages() > 0)
        return pm_fail(PM_EDEVICE, "run.validate: the validation layer had %llu messages (see "
                       "above); the run is saved", (unsigned long long)pm_device_messages());
    return PM_OK;
}

int pm_train(const struct pm_config *c, int *signal_number, struct cJSON *summary)
{
    struct trainer t = { .c = c, .segment_ms = c->run.segment_ms };
    int err = PM_OK;

    *signal_number = 0;
    PM_TRY(open_trainer(&t));
    catch_signals();
    t.saved_at = t.started_at = pm_seconds();
    pm_speed_start(&t.speed, pm_loader_waited(t.loader));
    for (int i = 0; i < t.spec_count && i < PM_MAX_CLONES; i++)
        t.clone_names[i] = t.specs[i].info.address;
    t.progress = pm_progress_start(&(struct pm_progress_options){
        .what = "train", .unit = "step", .first = t.step, .last = (uint64_t)c->run.steps,
        .loss = true, .clones = t.clone_names, .clone_count = t.spec_count });
    while ((err = loop(&t)) == PM_ELOST)
        PM_TRY(recover(&t));
    PM_TRY(err);
    PM_TRY(check_messages(&t));
    *signal_number = stop_signal;
    pm_progress_end(&t.progress);
    if (stop_signal)
        PM_INFO("train", "stopped by a signal at step %llu, saved; run the same command to go on",
                (unsigned long long)t.step);
    if (summary)
        summarise(&t, summary);
out:
    close_trainer(&t);
    return err;
}
