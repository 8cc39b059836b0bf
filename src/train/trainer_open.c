/* trainer_open: prepares training: data, devices, values (from a checkpoint, a warm start or the
 * seed), and the files of the run folder. */
#include "train/trainer.h"

#include "checkpoints/published.h"
#include "checkpoints/warm_start.h"
#include "observers/activation_summaries.h"
#include "observers/equal_run.h"
#include "observers/summaries.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

int pm_trainer_clones(struct pm_trainer *t)
{
    struct pm_clones_options options;
    int err = PM_OK;

    pm_experiment_clones(t->run.e, t->run.specs, t->run.spec_count, &options);
    options.slots = PM_STEP_SLOTS;
    options.phases = &t->phases;
    options.failed = &t->losses.failed;
    options.batch = pm_trainer_batch(t);
    options.micro_batches *= pm_trainer_gradients(t);
    options.timeable = t->run.c->run.trace_steps.count > 0;
    if (t->async.on)
        options.among.servers = &t->async.link;
    else if (t->replicas.r)
        options.among = (struct pm_clones_among){
            .replicas = t->replicas.r, .count = t->replicas.count, .first = t->replicas.first,
            .shares = t->replicas.shares, .of_rank = t->replicas.of_rank,
            .wire = t->run.c->run.exchange };
    if (pm_summaries_observe(t->run.c) && pm_trainer_is_chief(t))
        PM_TRY(pm_activations_observed(t->run.e, &options.observed));
    PM_TRY(pm_clones_create(&options, &t->run.clones));
    if (t->trace.on)
        pm_clones_set_timed(t->run.clones, true);
out:
    return err;
}

int pm_trainer_loader(struct pm_trainer *t)
{
    const struct pm_batch_slice slice = pm_clones_slice(t->run.clones);

    pm_loader_destroy(&t->run.loader);
    t->replicas.waited = 0;
    t->loop.examples = slice.count;
    t->loop.records = pm_realloc(t->loop.records, (size_t)(PM_STEP_SLOTS * slice.count) *
                                                      sizeof *t->loop.records);
    return pm_experiment_loader(t->run.e, pm_trainer_batch(t), slice,
                                (struct pm_batch_numbers){
                                    .first = t->run.step,
                                    .draw = t->async.on ? pm_trainer_draw : NULL, .ctx = t },
                                &t->start.sampler, &t->run.loader);
}

/* Warns if the devices differ from the checkpoint's. The run may resume, but its results differ in
 * the last bits. */
static void warn_of_devices(const struct pm_trainer *t, const struct pm_checkpoint *from)
{
    struct pm_str text = { 0 };
    struct cJSON *was = from->state ? cJSON_Parse(from->state) : NULL, *is;

    pm_trainer_state(t, &text);
    is = cJSON_Parse(text.text);
    const struct cJSON *a = cJSON_GetObjectItem(was, "devices");
    const struct cJSON *b = cJSON_GetObjectItem(is, "devices");

    if (a && b && !t->async.on && !cJSON_Compare(a, b, true))
        PM_WARN("train",
                "devices changed since the checkpoint: the run resumes, but its results differ "
                "from those of an uninterrupted run");
    cJSON_Delete(was);
    cJSON_Delete(is);
    pm_str_free(&text);
}

/* Sets the values at the start: from the run's newest checkpoint, from a warm start, or initial
 * values. */
static int start_values(struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    const struct pm_keep keep = pm_trainer_keep(c);
    struct pm_variables *v = pm_clones_master(t->run.clones);
    struct pm_checkpoint *from = NULL;
    struct pm_arena *arena = pm_arena_create();
    struct pm_config_init init;
    int err = PM_OK;

    if (!pm_trainer_is_chief(t)) { /* the chief's values come */
        PM_TRY(pm_trainer_snapshot(t));
        goto out;
    }
    PM_TRY(pm_checkpoint_open_newest(c->run.folder, &from));
    if (from) {
        PM_TRY(pm_trainer_snapshot_read(t, from));
        PM_TRY(pm_checkpoint_settle(c->run.folder, from->step, &keep));
        PM_INFO("train", "resuming %s at step %llu", c->run.folder,
                (unsigned long long)from->step);
        warn_of_devices(t, from);
        pm_trainer_note_changes(t, from->step);
        if (c->init.checkpoint)
            PM_INFO("train", "init.checkpoint is ignored: the run resumes from its own checkpoint");
        PM_TRY(pm_trainer_restore(t));
    } else if (c->init.checkpoint && c->init.restore == PM_RESTORE_ALL) {
        PM_TRY(pm_trainer_snapshot_continue(t));
        PM_TRY(pm_trainer_restore(t));
    } else {
        PM_TRY(pm_optimizer_init(t->run.e->optimizer, t->run.e->optimizer_cfg, v,
                                 (uint64_t)c->run.seed));
        if (c->init.checkpoint) {
            PM_TRY(pm_published_start(c, v, c->run.folder, arena, &init));
            PM_TRY(pm_values_warm_start(v, &init, pm_config_source(c, "init.checkpoint")));
            PM_TRY(pm_variables_start_averages(v));
        }
        PM_TRY(pm_clones_scatter(t->run.clones));
        PM_TRY(pm_trainer_snapshot(t));
    }
    t->run.saved_step = from ? from->step : UINT64_MAX;
out:
    pm_arena_destroy(&arena);
    pm_checkpoint_close(&from);
    return err;
}

/* Starts from the beginning, also after a device is lost while starting. */
static int start(struct pm_trainer *t)
{
    int err = PM_OK;

    pm_trainer_snapshot_free(t);
    PM_TRY(pm_trainer_clones(t));
    pm_trainer_snapshot_create(t);
    PM_TRY(pm_trainer_compare(t));
    PM_TRY(start_values(t));
    PM_TRY(pm_trainer_share_start(t));
    t->run.evaluated_step = UINT64_MAX;
    t->start.first_step = t->run.step;
    if (t->run.c->eval.every_steps > 0 && t->run.e->facts.own_sizes)
        PM_TRY(pm_trainer_plan_evaluation(t));
out:
    return err;
}

/* Opens the log. The run continues if it cannot be opened. */
static void open_log(struct pm_trainer *t)
{
    const int rank = pm_replicas_rank(t->replicas.r);
    char path[4096];

    if (rank == 0)
        snprintf(path, sizeof path, "%s/log.txt", t->run.c->run.folder);
    else
        snprintf(path, sizeof path, "%s/log.rank-%03d.txt", t->run.c->run.folder, rank);
    t->start.log = fopen(path, "ae");
    if (!t->start.log)
        PM_WARN("train", "%s: cannot be written: %s", path, strerror(errno));
    pm_log_file(t->start.log);
}

static int check_config(const struct pm_config *c)
{
    const struct pm_ints *trace = &c->run.trace_steps;
    if (trace->count > 2 || (trace->count == 2 && trace->v[0] > trace->v[1]))
        return pm_fail(
            PM_ECONFIG,
            "%s: run.trace_steps: give one step, or the first and the last one, such as [100, 105]",
            pm_config_source(c, "run.trace_steps"));
    if (c->eval.averages == PM_AVERAGES_ON && c->eval.every_steps > 0 &&
        c->optim.moving_average_decay == 0)
        return pm_fail(PM_ECONFIG,
                       "%s: eval.averages is on, but this run keeps no moving averages; "
                       "set optim.moving_average_decay (0.9999 is usual), or eval.averages to auto",
                       pm_config_source(c, "eval.averages"));
    if (c->run.batch_size < 1 && c->run.batch_size != PM_WORD)
        return pm_fail(PM_ECONFIG, "%s: run.batch_size must be at least 1",
                       pm_config_source(c, "run.batch_size"));
    return pm_config_need_steps(c);
}

/* Logs the memory for each size of pictures, if there are several. */
static void say_plans(const struct pm_clones *c, int i)
{
    const int frames = pm_clones_frames(c);
    char all[24], each[24];
    struct pm_str text = { 0 };

    for (int k = 0; k < frames; k++) {
        const struct pm_frame f = pm_clones_frame(c, k);
        const struct pm_plan *p = pm_clones_plan(c, i, k);

        pm_str_add(&text, "%s%dx%d (%s)", k ? ", " : "", f.height, f.width,
                   pm_bytes_text(pm_plan_memory(p).activations, each));
        if (pm_log_enabled(PM_LEVEL_DEBUG, "plan"))
            pm_plan_print(p, stderr, false);
    }
    if (frames > 1)
        PM_INFO("plan", "%s: %d sizes of pictures, %s, share %s for activations",
                pm_device_get_info(pm_clones_device(c, i))->address, frames, text.text,
                pm_bytes_text(pm_clones_memory(c, i).activations, all));
    pm_str_free(&text);
}

/* Warns if equal devices get unequal parts of the batch. The original programs refuse that. */
static void warn_of_parts(const struct pm_trainer *t)
{
    const int count = t->run.spec_count;
    struct pm_str parts = { 0 };
    bool equal = true, meant = t->run.c->run.balance == PM_BALANCE_AUTO;

    for (int i = 0; i < count; i++) {
        const int part = pm_clones_examples(t->run.clones, i);

        equal &= part == pm_clones_examples(t->run.clones, 0);
        meant |= t->run.specs[i].share != t->run.specs[0].share;
        pm_str_add(&parts, "%s%d (%s)", i == 0 ? "" : i + 1 < count ? ", " : " and ", part,
                   t->run.specs[i].info.address);
    }
    if (!equal && !meant)
        PM_WARN("train",
                "run.batch_size: %d cannot be divided equally by %d devices: their parts are %s; a "
                "multiple of %d gives equal parts",
                t->run.c->run.batch_size, count, parts.text,
                count * t->run.c->run.micro_batches);
    pm_str_free(&parts);
}

/* Logs that there is nothing to train, if so. */
static void say_done(const struct pm_trainer *t)
{
    const int64_t steps = t->run.e->steps;

    if (steps > 0 && t->run.step >= (uint64_t)steps)
        PM_INFO("train", "done at step %llu; raise %s to go on", (unsigned long long)t->run.step,
                t->run.e->epochs_steps == steps ? "run.epochs" : "run.steps");
}

/* Logs which of the two keys ends the run, if both are set. */
static void say_length(const struct pm_trainer *t)
{
    const struct pm_config_run *run = &t->run.c->run;
    const int64_t epochs = t->run.e->epochs_steps;

    if (epochs > 0 && run->steps > 0)
        PM_INFO("train", "run.steps %lld and run.epochs %g (%lld steps) are both set: training "
                "ends at step %lld", (long long)run->steps, run->epochs, (long long)epochs,
                (long long)t->run.e->steps);
    else if (epochs > 0)
        PM_INFO("train", "run.epochs %g: %lld steps", run->epochs, (long long)epochs);
}

/* Logs where the same experiment has been trained already. */
static void say_equal_run(const struct pm_trainer *t)
{
    struct pm_arena *a = pm_arena_create();
    const char *other = t->run.step == 0 ? pm_equal_run(t->run.c, a) : NULL;

    if (other)
        PM_INFO("train", "%s has the finished run of an equal config: this one will give the same "
                "values, up to the rounding of other devices", other);
    pm_arena_destroy(&a);
}

static void say_start(const struct pm_trainer *t)
{
    char shares[256] = "";
    struct pm_str what = { 0 };
    size_t n = 0;

    t->run.e->task_row->describe(t->run.e->task, &what);
    for (int i = 0; i < t->run.spec_count && n < sizeof shares; i++)
        n += (size_t)snprintf(shares + n, sizeof shares - n, "%s%s (%d)", i ? ", " : "",
                              t->run.specs[i].info.name, pm_clones_examples(t->run.clones, i));
    PM_INFO("train", "%s, %s, %dx%dx%d, %zu %s, batch %d on %s",
            pm_experiment_net_name(t->run.c), what.text,
            t->run.e->facts.height, t->run.e->facts.width, t->run.e->facts.channels,
            pm_dataset_get_info(t->run.e->train)->count,
            pm_plural((double)pm_dataset_get_info(t->run.e->train)->count, "picture", "pictures"),
            t->run.c->run.batch_size, shares);
    pm_str_free(&what);
    say_length(t);
    for (int i = 0; i < t->run.spec_count; i++)
        say_plans(t->run.clones, i);
    pm_trainer_say_replicas(t);
    if (!t->replicas.r)
        warn_of_parts(t);
    say_equal_run(t);
    say_done(t);
}

/* Makes an evaluation example and throws it away. */
static int check_example(const struct pm_experiment *e, const struct pm_loader_record *record)
{
    struct pm_sampler sampler = { e->task, false, e->task_row };
    struct pm_loader_record r = *record;
    struct pm_field_list fields = { 0 };
    struct pm_arena *a = pm_arena_create();
    void **out;
    int err = PM_OK;

    if (e->facts.own_sizes)
        PM_TRY(pm_record_frame(&sampler, record, &r.frame));
    pm_record_fields(&sampler, r.frame, &fields);
    out = pm_arena_alloc(a, (size_t)fields.count * sizeof *out);
    for (int k = 0; k < fields.count; k++)
        out[k] = pm_arena_alloc(a, pm_shape_count(fields.list[k].shape) *
                                       pm_type_size(fields.list[k].type));
    err = e->task_row->make(&sampler, &r, out);
out:
    pm_free(fields.list);
    pm_arena_destroy(&a);
    return err;
}

/* Reads a few examples of the evaluation split, from its beginning to its end. Otherwise a split
 * whose pictures do not fit would end the training at its first evaluation. */
static int check_examples(const struct pm_trainer *t)
{
    enum { LOOKED_AT = 8 };
    const size_t count = pm_dataset_get_info(t->run.e->eval)->count;
    uint8_t *buf = NULL;
    size_t capacity = 0, size;
    char where[512];
    int err = PM_OK;

    for (size_t i = 0; i < LOOKED_AT && i < count; i++) {
        const size_t record = count > LOOKED_AT ? i * (count - 1) / (LOOKED_AT - 1) : i;

        err = pm_dataset_read(t->run.e->eval, record, &buf, &capacity, &size);
        if (err == PM_OK) {
            pm_dataset_where(t->run.e->eval, record, where, sizeof where);
            err = check_example(t->run.e, &(struct pm_loader_record){
                .bytes = buf, .size = size, .where = where,
                .frame = pm_experiment_frame(t->run.e, false) });
        }
        if (err == PM_ECORRUPT) /* only this picture is damaged: evaluation reports or skips it */
            err = PM_OK;
        PM_TRY(err);
    }
out:
    pm_free(buf);
    return err;
}

/* Finds the metrics that select the best checkpoint and end the run early. The list of metrics
 * depends on the net's heads, too. */
static int choose_metrics(struct pm_trainer *t)
{
    const char *best = t->run.c->run.keep_best;
    int err = PM_OK;

    if (t->run.c->eval.every_steps > 0 && strcmp(best, "none") != 0)
        PM_TRY(pm_metric_choose(t->run.e, "run.keep_best", best, &t->saving.best));
    PM_TRY(pm_early_stop_open(&t->saving.stop, t->run.e));
out:
    return err;
}

/* Builds the nets of training and evaluation. If one cannot be built, the run ends before the run
 * folder is changed. With several clones the training net only supplies the variables' names. */
static int check_nets(const struct pm_trainer *t)
{
    const int batch = pm_experiment_train_batch(t->run.c);
    struct pm_net *net = NULL;
    int err = PM_OK;

    for (int i = 0; i < t->run.e->frames_count; i++) {
        const struct pm_frame f = t->run.e->frames[i];
        const struct pm_net_want want = { PM_USE_TRAIN, batch, f.height, f.width };

        PM_TRY(pm_experiment_net(t->run.e, want, &net, NULL));
        pm_net_destroy(&net);
    }
    if (t->run.c->eval.every_steps > 0) {
        PM_TRY(pm_experiment_net(t->run.e, (struct pm_net_want){
            PM_USE_EVAL, t->run.c->eval.batch_size, 0, 0 }, &net, NULL));
        PM_TRY(check_examples(t));
    }
out:
    pm_net_destroy(&net);
    return err;
}

static void note_data(struct pm_trainer *t)
{
    struct cJSON *data = pm_dataset_info_dump(&t->run.e->data);

    t->start.data_json = pm_json_print(data);
    cJSON_Delete(data);
}

int pm_trainer_prepare(struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    int err = PM_OK;

    pm_trainer_choose_mode(t);
    PM_TRY(pm_trainer_check_replicas(t));
    PM_TRY(pm_trainer_check_mode(t));
    PM_TRY(check_config(c));
    PM_TRY(pm_published_check(c));
    PM_TRY(pm_config_need(c, "run.folder", c->run.folder));
    PM_TRY(pm_experiment_open(c, PM_OPEN_TRAIN | (c->eval.every_steps > 0 ? PM_OPEN_EVAL : 0),
                              &t->run.e));
    note_data(t);
    if (!t->replicas.r) /* else pm_trainer_open does it */
        PM_TRY(pm_trainer_check_resume(t));
    if (!pm_trainer_only_serves(t))
        PM_TRY(pm_experiment_devices(t->run.e, &t->run.specs, &t->run.spec_count));
    PM_TRY(pm_trainer_join_replicas(t));
    PM_TRY(pm_schedule_make(&c->schedule, pm_dataset_get_info(t->run.e->train)->count,
                            c->run.batch_size,
                            pm_trainer_clones_of_step(t), t->run.e->steps, &t->start.schedule));
    if (t->run.e->optimizer->betas)
        t->run.e->optimizer->betas(t->run.e->optimizer_cfg, &t->start.betas[0], &t->start.betas[1]);
    PM_TRY(choose_metrics(t));
    PM_TRY(check_nets(t));
out:
    return err;
}

int pm_trainer_open(struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    int err = PM_OK;

    PM_TRY(pm_trainer_prepare(t));
    if (pm_trainer_is_chief(t))
        PM_TRY(pm_run_lock(c->run.folder, &t->run.lock));
    else
        PM_TRY(pm_make_folders(c->run.folder));
    PM_TRY(pm_trainer_fetch_newest(t));
    if (t->replicas.r && pm_trainer_is_chief(t))
        PM_TRY(pm_trainer_check_resume(t));
    open_log(t);
    PM_TRY(pm_experiment_say_devices(t->run.e));
    if (pm_trainer_is_chief(t) && pm_checkpoint_newest_step(c->run.folder) < 0 &&
        pm_trainer_was_begun(t))
        PM_INFO("train", "%s: the earlier training ended before its first checkpoint: it starts "
                "over", c->run.folder);
    pm_phases_start(&t->phases);
    PM_TRY(pm_trainer_start_balance(t));
    t->watch = pm_watch_create(t->run.e, PM_STEP_SLOTS, t->start.schedule.warmup_steps,
                               !pm_trainer_is_chief(t));
    if (pm_trainer_only_serves(t))
        return pm_trainer_open_server(t);
    pm_trainer_async_open(t);
    if ((err = start(t)) == PM_ELOST && !t->replicas.r)
        err = pm_trainer_recover(t, start);
    PM_TRY(err);
    PM_TRY(pm_trainer_async_begin(t));
    if (pm_trainer_is_chief(t))
        PM_TRY(pm_trainer_write_config(t));
    if (!pm_trainer_goes_alone(t)) /* else it begins later */
        PM_TRY(pm_trainer_loader(t));
    t->run.evaluated_step = pm_watch_open(t->watch, &t->run);
    PM_TRY(pm_trainer_agree(t, &t->run.evaluated_step, sizeof t->run.evaluated_step));
    if (pm_trainer_is_chief(t))
        say_start(t);
out:
    return err;
}

void pm_trainer_close(struct pm_trainer *t)
{
    if (pm_trainer_wait_written(t) < 0)
        PM_WARN("train", "%s", pm_error_text());
    pm_trace_steps_close(&t->trace, &t->run);
    pm_watch_close(t->watch, &t->run);
    pm_watch_destroy(&t->watch);
    pm_loader_destroy(&t->run.loader);
    pm_trainer_async_close(t);
    pm_evaluator_destroy(&t->saving.evaluator);
    pm_clones_destroy(&t->run.clones);
    pm_trainer_async_leave(t);
    pm_trainer_snapshot_free(t);
    pm_trainer_leave_replicas(t);
    pm_run_unlock(&t->run.lock);
    pm_experiment_close(&t->run.e);
    pm_balancer_free(&t->balance);
    cJSON_Delete(t->saving.metrics);
    cJSON_Delete(t->run.changes);
    pm_config_changes_free(&t->resume.changes);
    pm_free(t->loop.records);
    pm_free(t->start.data_json);
    pm_log_file(NULL);
    if (t->start.log)
        fclose(t->start.log);
}
