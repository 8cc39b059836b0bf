/* trainer_replicas: training with several processes (pumice/replicas.h). All processes make the
 * same steps. What only the chief knows or decides, it sends to the others here. */
#include "train/trainer.h"

#include <pumice/thread.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pm_trainer_is_chief(const struct pm_trainer *t)
{
    return pm_replicas_rank(t->replicas.r) == 0 || t->replicas.heir;
}

/* ---- devices ----------------------------------------------------------------------------- */

/* Takes this process's entries of `devices`: of k processes on a host, process j takes entries j,
 * j + k, .... If there are fewer entries than processes, all must be the CPU, and the processes
 * share its cores. */
static int deal_devices(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.r;
    const int rank = pm_replicas_rank(r), place = pm_replicas_place(r, rank);
    const int neighbours = pm_replicas_neighbours(r), count = t->run.spec_count;
    struct pm_clone_spec *specs = t->run.specs;
    int taken = 0;

    if (count >= neighbours) {
        for (int i = place; i < count; i += neighbours)
            specs[taken++] = specs[i];
        t->run.spec_count = taken;
        return PM_OK;
    }
    for (int i = 0; i < count; i++)
        if (specs[i].info.kind != PM_KIND_CPU || !specs[i].info.caps.on_host_cores)
            return pm_fail(PM_ECONFIG,
                           "%s: devices: %d %s for %d processes on host %s: list one device for "
                           "each process of a host, or start fewer processes there",
                           pm_config_source(t->run.c, "devices"), count,
                           pm_plural(count, "entry", "entries"), neighbours,
                           pm_replicas_host(r, rank));
    specs[0] = specs[place % count];
    if (specs[0].threads == 0)
        specs[0].threads = pm_threads() / neighbours > 0 ? pm_threads() / neighbours : 1;
    t->run.spec_count = 1;
    return PM_OK;
}

/* Receives the shares of all clones. */
static int exchange_shares(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;
    const int ranks = pm_replicas_count(x->r), rank = pm_replicas_rank(x->r);
    const size_t count = (size_t)t->run.spec_count;
    size_t *sizes = pm_calloc((size_t)ranks, sizeof *sizes);
    double *own = pm_calloc(count, sizeof *own);
    char *all = NULL;
    int err = PM_OK;

    for (size_t i = 0; i < count; i++)
        own[i] = t->run.specs[i].share;
    PM_TRY(pm_replicas_gather_bytes(x->r, true, own, count * sizeof *own, &all, sizes));
    x->shares = (double *)(void *)all;
    x->of_rank = pm_calloc((size_t)ranks, sizeof *x->of_rank);
    for (int i = 0; i < ranks; i++) {
        x->of_rank[i] = (int)(sizes[i] / sizeof *own);
        x->first += i < rank ? x->of_rank[i] : 0;
        x->count += x->of_rank[i];
    }
out:
    pm_free(own);
    pm_free(sizes);
    return err;
}

void pm_trainer_list_devices(const struct pm_trainer *t, struct pm_str *out)
{
    if (t->replicas.devices) {
        pm_str_add(out, "%s", t->replicas.devices);
        return;
    }
    for (int i = 0; i < t->run.spec_count; i++)
        pm_str_add(out, "%s%s:%d", i ? " " : "", t->run.specs[i].info.address,
                   t->run.specs[i].threads);
}

/* Receives the devices of all processes. */
static int exchange_devices(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;
    size_t *sizes = pm_calloc((size_t)pm_replicas_count(x->r), sizeof *sizes);
    struct pm_str own = { 0 };
    int err = PM_OK;

    pm_trainer_list_devices(t, &own);
    if (pm_replicas_rank(x->r) + 1 < pm_replicas_count(x->r))
        pm_str_add(&own, " ");
    PM_TRY(pm_replicas_gather_bytes(x->r, true, own.text, own.length, &x->devices, sizes));
out:
    pm_str_free(&own);
    pm_free(sizes);
    return err;
}

int pm_trainer_check_replicas(const struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    const int ranks = pm_replicas_count(t->replicas.r);

    if (c->run.replicas > 0 && c->run.replicas != ranks)
        return pm_fail(PM_ECONFIG,
                       "%s: run.replicas: %d, but %d %s started: start as many with mpirun -n %d, "
                       "or set it to 0",
                       pm_config_source(c, "run.replicas"), c->run.replicas, ranks,
                       pm_plural(ranks, "process was", "processes were"), c->run.replicas);
    if (!t->replicas.r)
        return PM_OK;
    if (c->run.batch_size == PM_WORD)
        return pm_fail(PM_ECONFIG,
                       "%s: run.batch_size: \"auto\" is not available with several processes: set "
                       "the number of pictures of a step, over all processes",
                       pm_config_source(c, "run.batch_size"));
    if (c->run.balance == PM_BALANCE_AUTO)
        return pm_fail(PM_ECONFIG,
                       "%s: run.balance: \"auto\" is not available with several processes: set the "
                       "shares of devices, or run.balance to \"equal\"",
                       pm_config_source(c, "run.balance"));
    return PM_OK;
}

int pm_trainer_join_replicas(struct pm_trainer *t)
{
    const struct pm_trainer_replicas *x = &t->replicas;
    int err = PM_OK;

    if (!x->r)
        return PM_OK;
    pm_replicas_limits(x->r, t->run.c->run.hang_seconds, 0);
    PM_TRY(deal_devices(t));
    PM_TRY(exchange_shares(t));
    PM_TRY(exchange_devices(t));
out:
    return err;
}

void pm_trainer_leave_replicas(struct pm_trainer *t)
{
    pm_replica_gather_destroy(&t->replicas.sums);
    pm_free(t->replicas.of_rank);
    pm_free(t->replicas.shares);
    pm_free(t->replicas.devices);
}

/* ---- the same run everywhere -------------------------------------------------------------- */

/* Returns a hash of the variables and of the buckets in which their gradients are summed. */
static uint64_t hash_clones(const struct pm_clones *c)
{
    const struct pm_variables *v = pm_clones_master(c);
    uint64_t hash = (uint64_t)v->count;
    char shape[64];

    for (int i = 0; i < v->count; i++) {
        const char *text = pm_shape_text(v->list[i].shape, shape);

        hash = pm_hash_bytes(v->list[i].name, strlen(v->list[i].name), hash);
        hash = pm_hash_bytes(text, strlen(text), hash);
        hash = pm_hash_bytes(&v->offset[i], sizeof v->offset[i], hash);
    }
    for (int k = 0; k < pm_clones_frames(c); k++) {
        const struct pm_plan *plan = pm_clones_plan(c, 0, k);

        for (size_t b = 0; b < pm_plan_buckets(plan); b++) {
            size_t place[2];

            pm_plan_bucket(plan, b, &place[0], &place[1]);
            hash = pm_hash_bytes(place, sizeof place, hash);
        }
    }
    return hash;
}

/* Compares a text of each rank. what: its name in the message. */
static int compare(const struct pm_trainer *t, enum pm_error code, const char *what,
                   const char *remedy, const char *own)
{
    struct pm_replicas *r = t->replicas.r;
    struct pm_replica_texts texts;
    int rank, err = PM_OK;

    PM_TRY(pm_replicas_compare(r, own, &rank, &texts));
    if (rank >= 0)
        err = pm_fail(code, "%s: rank 0 (%s) has %s, rank %d (%s) has %s: %s", what,
                      pm_replicas_host(r, 0), texts.first, rank, pm_replicas_host(r, rank),
                      texts.other, remedy);
out:
    return err;
}

int pm_trainer_compare(struct pm_trainer *t)
{
    const struct pm_dataset_info *d = pm_dataset_get_info(t->run.e->train);
    const uint32_t order = 0x01020304;
    char text[256];
    int err = PM_OK;

    if (!t->replicas.r)
        return PM_OK;
    snprintf(text, sizeof text, "%s, %s", PUMICE_VERSION,
             *(const char *)&order == 4 ? "little-endian" : "big-endian");
    PM_TRY(compare(t, PM_ECONFIG, "Pumice's version", "install the same version on all hosts",
                   text));
    snprintf(text, sizeof text, "%zu records, of names and places %016llx", d->count,
             (unsigned long long)pm_dataset_hash(t->run.e->train));
    PM_TRY(compare(t, PM_EDATA, t->run.c->data.folder,
                   "the data folder must have the same files on all hosts", text));
    snprintf(text, sizeof text, "%d, of names and shapes %016llx",
             pm_clones_master(t->run.clones)->count,
             (unsigned long long)hash_clones(t->run.clones));
    PM_TRY(compare(t, PM_ECONFIG, "the net's variables",
                   "install the same version, and use the same model file on all hosts", text));
out:
    return err;
}

/* ---- values of the chief ------------------------------------------------------------------ */

struct start {
    uint64_t step, skipped, saved_step;
};

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
    if (pm_trainer_is_chief(t))
        return PM_OK;
    t->snapshot.step = s.step;
    t->snapshot.skipped = s.skipped;
    t->run.saved_step = s.saved_step;
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

/* ---- drift ------------------------------------------------------------------------------- */

/* PM_FLIP=1:7 flips a bit of rank 1's values after step 7, to test pm_trainer_mend_drift. */
int pm_trainer_flip(struct pm_trainer *t)
{
    const char *text = t->replicas.r ? getenv("PM_FLIP") : NULL;
    struct pm_variables *v = pm_clones_master(t->run.clones);
    uint32_t bits;
    int rank, step, err = PM_OK;

    if (!text || sscanf(text, "%d:%d", &rank, &step) != 2 ||
        rank != pm_replicas_rank(t->replicas.r) || (uint64_t)step != t->run.step)
        return PM_OK;
    PM_TRY(pm_buffer_read(v->device, v->values, 0, &bits, sizeof bits));
    bits ^= 1;
    PM_TRY(pm_buffer_write(v->device, v->values, 0, &bits, sizeof bits));
out:
    return err;
}

static uint64_t hash_block(struct pm_state *s, int i)
{
    void *block;
    size_t bytes;

    return pm_state_block(s, i, &block, &bytes) ? pm_hash_bytes(block, bytes, (uint64_t)i) : 0;
}

/* Returns the first variable whose values differ from the chief's, or NULL. */
static int find_variable(struct pm_trainer *t, const char **out)
{
    const struct pm_variables *v = pm_clones_master(t->run.clones);
    uint64_t *own = pm_calloc((size_t)v->count, sizeof *own);
    uint64_t *chief = pm_calloc((size_t)v->count, sizeof *chief);
    int err = PM_OK;

    for (int i = 0; i < v->count; i++)
        own[i] = chief[i] = pm_hash_bytes(pm_state_value(t->snapshot.state, v, i),
                                          pm_shape_count(v->list[i].shape) * sizeof(float), 1);
    PM_TRY(pm_replicas_broadcast(t->replicas.r, 0, chief, (size_t)v->count * sizeof *chief));
    *out = NULL;
    for (int i = 0; i < v->count && !*out; i++)
        if (own[i] != chief[i])
            *out = v->list[i].name;
out:
    pm_free(own);
    pm_free(chief);
    return err;
}

int pm_trainer_mend_drift(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.r;
    const int ranks = pm_replicas_count(r), rank = pm_replicas_rank(r);
    uint64_t own[2 + PM_MAX_SLOTS] = { 0 }, *all;
    const char *name = NULL;
    bool unlike = false;
    int err = PM_OK;

    if (!r)
        return PM_OK;
    all = pm_calloc((size_t)ranks, sizeof own);
    for (size_t i = 0; i < PM_COUNT(own); i++)
        own[i] = hash_block(t->snapshot.state, (int)i);
    PM_TRY(pm_replicas_allgather(r, own, sizeof own, all));
    for (int k = 1; k < ranks; k++)
        unlike |= memcmp(all, all + (size_t)k * PM_COUNT(own), sizeof own) != 0;
    if (!unlike)
        goto out;
    PM_TRY(find_variable(t, &name));
    if (memcmp(all, own, sizeof own) != 0)
        PM_WARN("replicas",
                "step %llu: the values of rank %d (%s) differ from rank 0's, first in %s: memory "
                "or a library of this host may be faulty; rank 0's values replace them",
                (unsigned long long)t->run.step, rank, pm_replicas_host(r, rank),
                name ? name : "an optimizer slot or a moving average");
    PM_TRY(pm_trainer_share_start(t));
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

    if (!x->r || !task->set_sum)
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

    if (!t->replicas.r)
        return;
    t->replicas.began = pm_seconds();
    w = pm_clones_word(t->run.clones);
    w->step = t->run.step;
    w->skipped = (uint64_t)b->skipped;
    w->stop = signal;
    w->save = save;
}

/* Updates the mean time of a step. A single slow step counts at most twice the mean. */
static void note_time(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;
    const double seconds = pm_seconds() - x->began, before = x->step_seconds;

    x->step_seconds = before > 0 ? 0.9 * before + 0.1 * fmin(seconds, 2 * before) : seconds;
    pm_replicas_limits(x->r, t->run.c->run.hang_seconds, x->step_seconds);
}

void pm_trainer_read_words(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;

    if (x->r)
        note_time(t);
    for (int k = 0; x->r && k < pm_replicas_count(x->r); k++) {
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
    return t->replicas.r ? pm_replicas_broadcast(t->replicas.r, 0, value, size) : PM_OK;
}

void pm_trainer_note_phase(struct pm_trainer *t, enum pm_replica_phase phase)
{
    pm_replicas_note(t->replicas.r, phase, t->run.step);
}

/* ---- messages ---------------------------------------------------------------------------- */

void pm_trainer_say_replicas(const struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.r;
    struct pm_str text = { 0 };

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
