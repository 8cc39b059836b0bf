/* trainer_replicas: training with several processes (pumice/replicas.h). All processes make the
 * same steps. What only the chief knows or decides, it sends to the others here. */
#include "train/trainer.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

bool pm_trainer_is_chief(const struct pm_trainer *t)
{
    return pm_replicas_rank(t->replicas.r) == 0 || t->replicas.heir;
}

/* ---- values of the chief ------------------------------------------------------------------ */

struct start {
    uint64_t step, skipped, saved_step;
};

/* Copies the state of the chief's watch. */
static int share_watch(struct pm_trainer *t)
{
    struct pm_str own = { 0 };
    char *text = NULL;
    size_t size = 0;
    struct cJSON *object;
    int err = PM_OK;

    if (pm_trainer_is_chief(t)) {
        pm_str_add(&own, "{");
        pm_watch_print(t->watch, &own);
        pm_str_add(&own, "}");
        text = own.text, size = own.length;
    }
    PM_TRY(pm_replicas_broadcast_bytes(t->replicas.r, 0, &text, &size));
    if (!pm_trainer_is_chief(t)) {
        object = cJSON_Parse(text);
        pm_watch_read(t->watch, object);
        cJSON_Delete(object);
        pm_free(text);
    }
out:
    pm_str_free(&own);
    return err;
}

int pm_trainer_share_start(struct pm_trainer *t)
{
    struct start s = { t->run.step, t->loop.skipped, t->run.saved_step };
    void *block;
    size_t bytes;
    int err = PM_OK;

    if (!t->replicas.r)
        return PM_OK;
    PM_TRY(pm_replicas_broadcast(t->replicas.r, 0, &s, sizeof s));
    for (int i = 0; pm_state_block(t->snapshot.state, i, &block, &bytes); i++)
        PM_TRY(pm_replicas_broadcast(t->replicas.r, 0, block, bytes));
    PM_TRY(share_watch(t));
    if (pm_trainer_is_chief(t))
        return PM_OK;
    t->snapshot.step = s.step;
    t->snapshot.skipped = s.skipped;
    t->run.saved_step = s.saved_step;
    t->run.step = t->run.collected = s.step;
    if (t->run.clones)
        PM_TRY(pm_trainer_restore(t));
out:
    return err;
}

/* Copies RUN/checkpoints/NAME of rank `from` to the chief's run folder. */
static int fetch_file(struct pm_trainer *t, int from, const char *name)
{
    struct pm_replicas *r = t->replicas.r;
    size_t *sizes = pm_calloc((size_t)pm_replicas_count(r), sizeof *sizes), size = 0;
    char folder[4096], path[4200], *bytes = NULL, *all = NULL;
    int err = PM_OK;

    snprintf(folder, sizeof folder, "%s/checkpoints", t->run.c->run.folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (pm_replicas_rank(r) == from)
        PM_TRY(pm_file_read(path, &bytes, &size));
    PM_TRY(pm_replicas_gather_bytes(r, false, bytes, size, &all, sizes));
    if (all) {
        PM_TRY(pm_make_folders(folder));
        PM_TRY(pm_file_write(path, all, sizes[from]));
    }
out:
    pm_free(all);
    pm_free(bytes);
    pm_free(sizes);
    return err;
}

/* The .json is written last, because a checkpoint without it counts as incomplete. */
int pm_trainer_fetch_newest(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.r;
    int64_t own, *all;
    char name[64];
    int best = 0, err = PM_OK;

    if (!r)
        return PM_OK;
    own = pm_checkpoint_newest_step(t->run.c->run.folder);
    all = pm_calloc((size_t)pm_replicas_count(r), sizeof *all);
    PM_TRY(pm_replicas_allgather(r, &own, sizeof own, all));
    for (int k = 1; k < pm_replicas_count(r); k++)
        if (all[k] > all[best])
            best = k;
    if (best == 0)
        goto out;
    PM_INFO("train", "the newest checkpoint, step %lld, comes from rank %d (%s)",
            (long long)all[best], best, pm_replicas_host(r, best));
    snprintf(name, sizeof name, "step-%06lld.safetensors", (long long)all[best]);
    PM_TRY(fetch_file(t, best, name));
    snprintf(name, sizeof name, "step-%06lld.json", (long long)all[best]);
    PM_TRY(fetch_file(t, best, name));
out:
    pm_free(all);
    return err;
}
/* ---- steps ------------------------------------------------------------------------------- */

static void create_sums(struct pm_trainer *t)
{
    const int ranks = pm_replicas_count(t->replicas.r);
    size_t *sizes = pm_calloc((size_t)ranks, sizeof *sizes);

    for (int k = 0; k < ranks; k++)
        sizes[k] = sizeof(double);
    t->replicas.sums = pm_replica_gather_create(t->replicas.r, sizes);
    pm_free(sizes);
}

int pm_trainer_share_batch(struct pm_trainer *t, struct pm_batch *batch)
{
    struct pm_trainer_replicas *x = &t->replicas;
    const struct pm_task_row *task = t->run.e->task_row;
    const void *all;
    double sum = 0;
    int err = PM_OK;

    if (!x->sync || !task->set_sum)
        return PM_OK;
    if (!x->sums)
        create_sums(t);
    pm_replica_gather_start(x->sums, &batch->sum);
    PM_TRY(pm_replica_gather_wait(x->sums, &all));
    for (int k = 0; k < pm_replicas_count(x->r); k++)
        sum += ((const double *)all)[k];
    task->set_sum(&t->start.sampler, batch, sum);
out:
    return err;
}

void pm_trainer_write_word(struct pm_trainer *t, int signal, bool save, const struct pm_batch *b)
{
    struct pm_step_word *w;

    if (!t->replicas.sync)
        return;
    t->replicas.began = pm_seconds();
    w = pm_clones_word(t->run.clones);
    w->step = t->run.step;
    w->skipped = (uint64_t)b->skipped;
    w->stop = signal;
    w->save = save;
    w->waited = pm_loader_waited(t->run.loader) - t->replicas.waited;
    t->replicas.waited += w->waited;
}

/* Updates the mean time of a step. A single slow step counts at most twice the mean. */
void pm_trainer_note_time(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;
    const double seconds = pm_seconds() - x->began, before = x->step_seconds;

    x->step_seconds = before > 0 ? 0.9 * before + 0.1 * fmin(seconds, 2 * before) : seconds;
    pm_replicas_limits(x->r, t->run.c->run.hang_seconds, x->step_seconds);
}

void pm_trainer_read_words(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;

    if (x->sync)
        pm_trainer_note_time(t);
    for (int k = 0; x->sync && k < pm_replicas_count(x->r); k++) {
        const struct pm_step_word *w = pm_clones_word_of(t->run.clones, k);

        if (x->stop == 0)
            x->stop = w->stop;
        if (k == 0)
            x->save = w->save;
        if (k != pm_replicas_rank(x->r))
            t->loop.skipped += w->skipped;
    }
}

int pm_trainer_agree(struct pm_trainer *t, void *value, size_t size)
{
    return t->replicas.sync ? pm_replicas_broadcast(t->replicas.sync, 0, value, size) : PM_OK;
}

int pm_trainer_check_devices(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.sync;
    const int lost = r && pm_clones_lost(t->run.clones).clone >= 0;
    int *all, err = PM_OK;

    if (!r)
        return PM_OK;
    all = pm_calloc((size_t)pm_replicas_count(r), sizeof *all);
    PM_TRY(pm_replicas_allgather(r, &lost, sizeof lost, all));
    for (int k = 0; k < pm_replicas_count(r) && err == PM_OK; k++)
        if (all[k])
            err = pm_fail(PM_ELOST, "rank %d (%s) lost a device after step %llu", k,
                          pm_replicas_host(r, k), (unsigned long long)t->run.step);
    t->replicas.rewinds = err < 0;
out:
    pm_free(all);
    return err;
}

void pm_trainer_note_phase(struct pm_trainer *t, enum pm_replica_phase phase)
{
    pm_replicas_note(t->replicas.r, phase, t->run.step);
}

/* ---- messages ---------------------------------------------------------------------------- */

void pm_trainer_say_replicas(const struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.sync;
    struct pm_str text = { 0 };

    if (t->async.on)
        pm_trainer_say_async(t);
    for (int k = 0, at = 0; r && k < pm_replicas_count(r); at += t->replicas.of_rank[k++]) {
        int examples = 0;

        for (int i = 0; i < t->replicas.of_rank[k]; i++)
            examples += pm_clones_examples_of(t->run.clones, at + i);
        pm_str_add(&text, "%srank %d (%s) %d", k ? ", " : "", k, pm_replicas_host(r, k), examples);
    }
    if (r)
        PM_INFO("train", "%d processes share the batch of %d: %s", pm_replicas_count(r),
                t->run.c->run.batch_size, text.text);
    pm_str_free(&text);
}
