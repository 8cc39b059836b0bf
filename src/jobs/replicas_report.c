/* replicas_report: see replicas_report.h. */
#include "jobs/replicas_report.h"

#include "measure/steps.h"
#include "replicas/transport.h"
#include "train/trainer.h"

#include <pumice/thread.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static const double measured_seconds = 2; /* of steps, and of exchanges */
enum { FEWEST = 3, MOST = 100 };          /* measured steps or exchanges */
/* An exchange that takes a smaller part of a step's time is lost in the noise of the steps. */
static const double least_part = 0.02;

struct work {
    const struct pm_config *c;
    struct pm_replicas *r;  /* NULL: alone */
    struct pm_trainer t;    /* only for the devices of this process */
    struct cJSON *report;
};

static bool is_chief(const struct work *w)
{
    return pm_replicas_rank(w->r) == 0;
}

/* ---- the ranks --------------------------------------------------------------------------- */

static cJSON *devices(const struct pm_trainer *t)
{
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < t->run.spec_count; i++) {
        const struct pm_clone_spec *s = &t->run.specs[i];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "address", s->info.address);
        cJSON_AddStringToObject(o, "name", s->info.name);
        if (s->info.caps.on_host_cores)
            cJSON_AddNumberToObject(o, "threads", s->threads > 0 ? s->threads : pm_threads());
        cJSON_AddItemToArray(list, o);
    }
    return list;
}

static cJSON *describe(const struct work *w)
{
    const int rank = pm_replicas_rank(w->r);
    const char *data = w->c->data.folder;
    cJSON *o = cJSON_CreateObject();
    char host[64] = "";
    int cores, of;

    if (w->r)
        snprintf(host, sizeof host, "%s", pm_replicas_host(w->r, rank));
    else
        pm_replicas_host_name(host, sizeof host);
    pm_replicas_bound(&cores, &of);
    cJSON_AddNumberToObject(o, "rank", rank);
    cJSON_AddStringToObject(o, "host", host);
    cJSON_AddNumberToObject(o, "cores", cores);
    cJSON_AddNumberToObject(o, "cores_of", cores < of ? of : cores);
    cJSON_AddItemToObject(o, "devices", devices(&w->t));
    if (data && data[0])
        cJSON_AddStringToObject(o, "data_folder", data);
    else
        cJSON_AddNullToObject(o, "data_folder");
    cJSON_AddBoolToObject(o, "data_there", data && data[0] && pm_is_folder(data));
    cJSON_AddStringToObject(o, "version", PUMICE_VERSION);
    return o;
}

static int collect_ranks(struct work *w)
{
    const int ranks = pm_replicas_count(w->r);
    size_t *sizes = pm_calloc((size_t)ranks, sizeof *sizes);
    cJSON *own = describe(w), *list;
    char *text = pm_json_print(own), *all = NULL;
    int err = PM_OK;

    if (w->r)
        PM_TRY(pm_replicas_gather_bytes(w->r, false, text, strlen(text), &all, sizes));
    if (!is_chief(w))
        goto out;
    list = cJSON_AddArrayToObject(w->report, "ranks");
    if (!w->r)
        cJSON_AddItemToArray(list, cJSON_Duplicate(own, true));
    for (int i = 0; w->r && i < ranks; i++) {
        const char *from = all;

        for (int k = 0; k < i; k++)
            from += sizes[k];
        cJSON_AddItemToArray(list, cJSON_ParseWithLength(from, sizes[i]));
    }
out:
    cJSON_Delete(own);
    pm_free(text);
    pm_free(all);
    pm_free(sizes);
    return err;
}

/* ---- connections ------------------------------------------------------------------------- */

static int measure_links(struct work *w)
{
    const int ranks = pm_replicas_count(w->r);
    cJSON *list = is_chief(w) ? cJSON_AddArrayToObject(w->report, "links") : NULL, *o;
    struct pm_replica_link link;
    int err = PM_OK;

    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++) {
            PM_TRY(pm_replicas_measure(w->r, a, b, &link));
            if (!list)
                continue;
            o = cJSON_CreateObject();
            cJSON_AddItemToObject(o, "ranks", cJSON_CreateIntArray((const int[]){ a, b }, 2));
            cJSON_AddNumberToObject(o, "latency_us", 1e6 * link.latency);
            cJSON_AddNumberToObject(o, "megabytes_per_second", 1e-6 * link.bytes_per_second);
            cJSON_AddItemToArray(list, o);
        }
out:
    return err;
}

/* ---- steps and exchanges ----------------------------------------------------------------- */

/* Replaces *value by the largest of all processes. They wait for each other here. */
static int take_largest(struct work *w, double *value)
{
    const int ranks = pm_replicas_count(w->r);
    double *all;
    int err = PM_OK;

    if (!w->r)
        return PM_OK;
    all = pm_calloc((size_t)ranks, sizeof *all);
    PM_TRY(pm_replicas_allgather(w->r, value, sizeof *value, all));
    for (int i = 0; i < ranks; i++)
        *value = fmax(*value, all[i]);
out:
    pm_free(all);
    return err;
}

/* Finds the mean time of a turn, of the slowest process. All take the same number of turns. */
static int time_turns(struct work *w, int (*turns)(void *ctx, int count), void *ctx,
                      double *seconds)
{
    double begun;
    int count, err = PM_OK;

    PM_TRY(turns(ctx, 1));
    *seconds = 0;
    PM_TRY(take_largest(w, seconds));
    begun = pm_seconds();
    PM_TRY(turns(ctx, 1));
    *seconds = pm_seconds() - begun;
    PM_TRY(take_largest(w, seconds));
    count = (int)fmax(FEWEST, fmin(MOST, measured_seconds / fmax(*seconds, 1e-6)));
    begun = pm_seconds();
    PM_TRY(turns(ctx, count));
    *seconds = (pm_seconds() - begun) / count;
    PM_TRY(take_largest(w, seconds));
out:
    return err;
}

static int step_turns(void *ctx, int count)
{
    return pm_steps_take(ctx, count);
}

struct exchange {
    struct pm_replica_sum *sum;
    size_t count;
    const float *values;
};

static int exchange_turns(void *ctx, int count)
{
    struct exchange *x = ctx;
    const float *result;
    int err = PM_OK;

    for (int i = 0; i < count; i++) {
        pm_replica_sum_start(x->sum);
        pm_replica_sum_add(x->sum, 0, x->count, x->values);
        PM_TRY(pm_replica_sum_wait(x->sum, &result));
    }
out:
    return err;
}

static int time_exchange(struct work *w, size_t count, double *seconds)
{
    float *values = pm_calloc(count + 1, sizeof *values);
    struct exchange x = { .count = count, .values = values };
    int err = PM_OK;

    x.sum = pm_replica_sum_create(w->r, count, 1, (enum pm_replica_wire)w->c->run.exchange, NULL);
    PM_TRY(time_turns(w, exchange_turns, &x, seconds));
out:
    pm_replica_sum_destroy(&x.sum);
    pm_free(values);
    return err;
}

/* A transport of one rank, which sends nothing. With it, a step of one process takes the same way
 * as a step of several: gradients are added and the update is made on the host. */
struct pm_transport {
    int unused;
};

static struct pm_transport *open_alone(void *ctx, int *rank, int *ranks, char *error, size_t size)
{
    (void)error, (void)size;
    *rank = 0;
    *ranks = 1;
    return ctx;
}

static int poll_alone(struct pm_transport *t)
{
    (void)t;
    return 0;
}

static void close_alone(struct pm_transport *t, bool orderly)
{
    (void)t, (void)orderly;
}

static const struct pm_transport_row alone_row = {
    .version = PM_TRANSPORT_VERSION, .name = "one process", .open = open_alone,
    .poll = poll_alone, .close = close_alone,
};

/* Where this process's clones stand: among all, or alone. */
static struct pm_clones_among stand(const struct work *w, struct pm_replicas *alone)
{
    const struct pm_trainer_replicas *x = &w->t.replicas;
    struct pm_clones_among a = { .replicas = w->r, .count = x->count, .first = x->first,
                                 .shares = x->shares, .of_rank = x->of_rank,
                                 .wire = w->c->run.exchange };

    if (alone) {
        a.replicas = alone;
        a.count = w->t.run.spec_count;
        a.first = 0;
        a.shares += x->first;
        a.of_rank += pm_replicas_rank(w->r);
    }
    return a;
}

/* Takes steps of the whole batch with all processes, or of this process's part alone. part: number
 * of pictures of this process; received in the first case. gradients: their number. */
static int time_steps(struct work *w, bool together, int *part, size_t *gradients,
                      double *seconds)
{
    struct pm_config c = *w->c;
    struct pm_transport place = { 0 };
    struct pm_replicas *alone = NULL;
    struct pm_steps s = { 0 };
    int err = PM_OK;

    c.run.micro_batches *= pm_trainer_gradients(&w->t); /* as pm_trainer_clones does */
    if (!together)
        c.run.batch_size = *part;
    PM_TRY(pm_steps_open(&s, &c, true));
    pm_steps_one_size(&s);
    s.specs = w->t.run.specs;
    s.count = w->t.run.spec_count;
    if (w->r && !together)
        PM_TRY(pm_replicas_open(&alone_row, &place, &alone));
    if (w->r)
        s.among = stand(w, alone);
    PM_TRY(pm_steps_clones(&s, false));
    *part = pm_clones_slice(s.clones).count;
    *gradients = pm_clones_master(s.clones)->trainable_bytes / sizeof(float);
    PM_TRY(time_turns(w, step_turns, &s, seconds));
out:
    pm_steps_close(&s);
    return pm_replicas_leave(&alone, err);
}

static int measure_steps(struct work *w)
{
    double exchange = 0, alone = 0, together = 0;
    size_t gradients = 0;
    int part = w->c->run.batch_size, err = PM_OK;
    cJSON *o;

    if (w->r)
        PM_TRY(time_steps(w, true, &part, &gradients, &together));
    PM_TRY(time_steps(w, false, &part, &gradients, &alone));
    if (w->r)
        PM_TRY(time_exchange(w, gradients, &exchange));
    if (!is_chief(w))
        goto out;
    o = cJSON_AddObjectToObject(w->report, "step");
    cJSON_AddNumberToObject(o, "gradients", (double)gradients);
    cJSON_AddNumberToObject(o, "bytes", (double)gradients * sizeof(float));
    cJSON_AddNumberToObject(o, "alone_seconds", alone);
    if (!w->r)
        goto out;
    cJSON_AddStringToObject(o, "wire", w->c->run.exchange == PM_WIRE_BFLOAT16 ? "bfloat16"
                                                                              : "float32");
    cJSON_AddNumberToObject(o, "exchange_seconds", exchange);
    cJSON_AddNumberToObject(o, "seconds", together);
    if (exchange > least_part * alone)
        cJSON_AddNumberToObject(o, "hidden",
                                fmax(0, fmin(1, 1 - (together - alone) / exchange)));
    else
        cJSON_AddNullToObject(o, "hidden");
out:
    return err;
}

/* ------------------------------------------------------------------------------------------ */

int pm_replicas_report(const struct pm_config *c, struct pm_replicas *r, bool measured,
                       struct cJSON *report)
{
    struct work w = { .c = c, .r = r, .report = report };
    struct pm_arena *a = pm_arena_create();
    /* The devices need no net and no data, which may be missing. */
    struct pm_experiment devices_only = { .config = c, .arena = a };
    int err = PM_OK;

    w.t = (struct pm_trainer){ .run.c = c, .replicas.r = r, .losses.failed.clone = -1 };
    pm_trainer_choose_mode(&w.t);
    PM_TRY(pm_trainer_check_replicas(&w.t));
    PM_TRY(pm_trainer_check_mode(&w.t));
    if (measured && w.t.async.on)
        PM_TRY(pm_fail(PM_ECONFIG, "replicas: --measure measures steps that all processes make "
                       "together: set run.sync_replicas to true and run.replicas_to_aggregate to "
                       "0"));
    if (!pm_trainer_only_serves(&w.t))
        PM_TRY(pm_experiment_devices(&devices_only, &w.t.run.specs, &w.t.run.spec_count));
    PM_TRY(pm_trainer_join_replicas(&w.t));
    PM_TRY(collect_ranks(&w));
    if (measured && r)
        PM_TRY(measure_links(&w));
    if (measured)
        PM_TRY(measure_steps(&w));
out:
    pm_trainer_leave_replicas(&w.t);
    pm_arena_destroy(&a);
    return err;
}
