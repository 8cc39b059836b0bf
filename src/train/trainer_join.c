/* trainer_join: joins the processes of a training (pumice/replicas.h): gives each its devices, and
 * compares what must be equal in all. */
#include "train/trainer.h"

#include <pumice/thread.h>

#include <string.h>

/* ---- devices ----------------------------------------------------------------------------- */

/* Whether an entry of `replicas` has devices for this rank alone. */
static bool has_own_list(const struct pm_trainer *t, int rank)
{
    const struct pm_config_replica *r =
        pm_config_replica_of(t->run.c, rank, pm_replicas_host(t->replicas.r, rank));

    return r && r->rank == rank && r->devices;
}

/* The number of ranks below `end` on this host that share a list of devices. */
static int count_neighbours(const struct pm_trainer *t, int end)
{
    struct pm_replicas *r = t->replicas.r;
    const char *own = pm_replicas_host(r, pm_replicas_rank(r));
    int count = 0;

    for (int k = 0; k < end; k++)
        if ((!t->async.on || k < t->async.link.ranks.workers) && !has_own_list(t, k))
            count += strcmp(pm_replicas_host(r, k), own) == 0;
    return count;
}

/* Takes this process's entries of `devices`: of k processes on a host, process j takes entries j,
 * j + k, .... If there are fewer entries than processes, all must be the CPU, and the processes
 * share its cores. A rank with a list of its own in `replicas` is not counted. */
static int deal_devices(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.r;
    const int rank = pm_replicas_rank(r), place = count_neighbours(t, rank);
    const int neighbours = count_neighbours(t, pm_replicas_count(r)), count = t->run.spec_count;
    struct pm_clone_spec *specs = t->run.specs;
    int taken = 0;

    if (has_own_list(t, rank))
        return PM_OK;
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

/* Scales the shares of this process's clones to the sum that its entry of `replicas` sets. */
static void scale_shares(const struct pm_config_replica *entry, double *shares, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += shares[i];
    for (size_t i = 0; entry && entry->share > 0 && i < count; i++)
        shares[i] *= (double)entry->share / sum;
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
    scale_shares(t->run.c->replica, own, count);
    PM_TRY(pm_replicas_gather_bytes(x->r, true, own, count * sizeof *own, &all, sizes));
    pm_free(x->shares);
    x->shares = (double *)(void *)all;
    x->first = x->count = 0;
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

/* Joins the texts of all processes. own is freed. */
static int join_texts(struct pm_trainer *t, struct pm_str *own, char **out)
{
    size_t *sizes = pm_calloc((size_t)pm_replicas_count(t->replicas.r), sizeof *sizes);
    char *all = NULL;
    int err = PM_OK;

    PM_TRY(pm_replicas_gather_bytes(t->replicas.r, true, own->text, own->length, &all, sizes));
    pm_free(*out);
    *out = all;
out:
    pm_str_free(own);
    pm_free(sizes);
    return err;
}

/* Receives the names of all clones. */
static int exchange_names(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;
    struct pm_str own = { 0 };
    char *at;
    int err = PM_OK;

    for (int i = 0; i < t->run.spec_count; i++)
        pm_str_add(&own, "%s\n", t->run.specs[i].info.name);
    PM_TRY(join_texts(t, &own, &x->name_text));
    x->names = pm_realloc(x->names, (size_t)x->count * sizeof *x->names);
    at = x->name_text;
    for (int i = 0; i < x->count; i++) {
        char *end = strchr(at, '\n');

        *end = '\0';
        x->names[i] = at;
        at = end + 1;
    }
    t->run.device_names = x->names;
out:
    return err;
}

/* Receives the addresses of all devices, and the texts of those left out. */
static int exchange_devices(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;
    struct pm_str own = { 0 }, lost = { 0 };
    int err = PM_OK;

    pm_free(x->devices);
    x->devices = NULL;
    if (pm_replicas_rank(x->r) > 0 && t->run.spec_count > 0)
        pm_str_add(&own, " ");
    pm_trainer_list_devices(t, &own);
    PM_TRY(join_texts(t, &own, &x->devices));
    if (t->losses.text[0])
        pm_str_add(&lost, "%s of rank %d (%s); ", t->losses.text, pm_replicas_rank(x->r),
                   pm_replicas_host(x->r, pm_replicas_rank(x->r)));
    PM_TRY(join_texts(t, &lost, &x->lost));
    if (x->lost[0])
        x->lost[strlen(x->lost) - 2] = '\0';
out:
    return err;
}

int pm_trainer_share_devices(struct pm_trainer *t)
{
    int err = PM_OK;

    if (!t->replicas.r)
        return PM_OK;
    PM_TRY(exchange_shares(t));
    PM_TRY(exchange_names(t));
    PM_TRY(exchange_devices(t));
    if (t->balance.clones) /* else the training has not begun */
        pm_trainer_measure_again(t);
out:
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
    if (c->run.task != PM_UNSET && c->run.task != pm_replicas_rank(t->replicas.r))
        return pm_fail(PM_ECONFIG,
                       "%s: run.task: %d, but this process has the number %d, and %d %s started: "
                       "mpirun -n numbers the processes, so remove the key",
                       pm_config_source(c, "run.task"), c->run.task,
                       pm_replicas_rank(t->replicas.r), ranks,
                       pm_plural(ranks, "process was", "processes were"));
    if (!t->replicas.r)
        return PM_OK;
    if (c->run.batch_size == PM_WORD)
        return pm_fail(PM_ECONFIG,
                       "%s: run.batch_size: \"auto\" is not available with several processes: set "
                       "the number of pictures of a step, over all processes",
                       pm_config_source(c, "run.batch_size"));
    return PM_OK;
}

/* A process that mpirun has bound cannot use the other cores, even if they are idle. */
static void warn_of_binding(void)
{
    int cores, of;

    if (pm_replicas_bound(&cores, &of))
        PM_WARN("replicas", "mpirun has bound this process to %d of %d cores: start it with mpirun "
                "--bind-to none, or with pumice launch", cores, of);
}

int pm_trainer_join_replicas(struct pm_trainer *t)
{
    struct pm_trainer_replicas *x = &t->replicas;
    int err = PM_OK;

    if (!x->r)
        return PM_OK;
    warn_of_binding();
    pm_replicas_limits(x->r, t->run.c->run.hang_seconds, 0);
    x->of_rank = pm_calloc((size_t)pm_replicas_count(x->r), sizeof *x->of_rank);
    if (!pm_trainer_only_serves(t))
        PM_TRY(deal_devices(t));
    PM_TRY(pm_trainer_share_devices(t));
out:
    return err;
}

void pm_trainer_leave_replicas(struct pm_trainer *t)
{
    pm_replica_gather_destroy(&t->replicas.sums);
    pm_free(t->replicas.of_rank);
    pm_free(t->replicas.shares);
    pm_free(t->replicas.devices);
    pm_free(t->replicas.names);
    pm_free(t->replicas.name_text);
    pm_free(t->replicas.lost);
}

/* ---- the same run everywhere -------------------------------------------------------------- */

static const struct pm_variables *variables_of(const struct pm_trainer *t)
{
    return t->run.clones ? pm_clones_master(t->run.clones) : pm_owner_variables(t->async.owner);
}

/* Returns a hash of the variables and of the buckets in which their gradients are summed. */
static uint64_t hash_clones(const struct pm_trainer *t)
{
    const struct pm_variables *v = variables_of(t);
    const struct pm_clones *c = t->run.clones;
    uint64_t hash = (uint64_t)v->count;
    char shape[64];

    for (int i = 0; i < v->count; i++) {
        const char *text = pm_shape_text(v->list[i].shape, shape);

        hash = pm_hash_bytes(v->list[i].name, strlen(v->list[i].name), hash);
        hash = pm_hash_bytes(text, strlen(text), hash);
        hash = pm_hash_bytes(&v->offset[i], sizeof v->offset[i], hash);
    }
    for (int k = 0; !t->async.on && k < pm_clones_frames(c); k++) {
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

/* Compares the model file, which each process reads on its own host. */
static int compare_model(const struct pm_trainer *t)
{
    const char *path = t->run.c->model.onnx;
    struct pm_sha256 sha;
    char *bytes = NULL, text[80] = "SHA-256 ";
    size_t size;
    int err = PM_OK;

    if (!path)
        return PM_OK;
    PM_TRY(pm_file_read(path, &bytes, &size));
    pm_sha256_start(&sha);
    pm_sha256_add(&sha, bytes, size);
    pm_sha256_end(&sha, text + strlen(text));
    PM_TRY(compare(t, PM_ECONFIG, path, "use the same model file on all hosts", text));
out:
    pm_free(bytes);
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
    PM_TRY(compare_model(t));
    snprintf(text, sizeof text, "%d, of names and shapes %016llx",
             variables_of(t)->count, (unsigned long long)hash_clones(t));
    PM_TRY(compare(t, PM_ECONFIG, "the net's variables",
                   "install the same version, and use the same model file on all hosts", text));
out:
    return err;
}
