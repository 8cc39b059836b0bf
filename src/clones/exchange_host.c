/* exchange_host: several clones of one process. Each bucket of gradients is summed in host memory,
 * in the order of the clones, while the backward passes still run. The optimizer updates a master
 * copy on the CPU once, and the new values go to every clone. A step allocates nothing. */
#include "clones/across.h"
#include "clones/clones_parts.h"
#include "clones/host_copy.h"
#include "clones/moving.h"
#include "clones/remote.h"

#include <pumice/replicas.h>
#include <pumice/thread.h>
#include <pumice/trace.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sends the new values to a clone. With two slots, one can be filled while the other is copied. */
struct push {
    struct pm_program *program;
    int slot;
};

/* What the other processes know of this process's step. */
enum progress { NOTHING, BUCKETS, WORD };

struct pm_exchange {
    struct pm_clones *c;         /* borrowed */
    struct push *push;           /* [clones] */
    struct pm_host_copy host;    /* the master copy; owned, as are all members below */
    struct pm_plan *plan;        /* the update */
    float *sum;                  /* gradients of all clones of this process: own_sum, or the host's
                                  * gradients; borrowed */
    float *own_sum;              /* NULL: the sum of this process is that of all */
    const float *values;         /* of all variables; borrowed from host */
    float *group_sum;            /* of one group of clones; NULL: there are no groups */
    int *group;                  /* [clones]: number of each clone's group; NULL: none */
    struct pm_across *across;    /* NULL: this process trains alone, or asynchronously */
    struct pm_remote *remote;    /* NULL: not asynchronously */
    size_t added;                /* buckets of this step that were given to across */
    enum progress progress;      /* of this step */
    struct pm_moving moving;     /* used if the host computes the moving averages */
    int lane;                    /* of the sums, in traces */
};

/* ---- making ----------------------------------------------------------------------------- */

static struct pm_exchange *create(struct pm_clones *c)
{
    struct pm_exchange *x = pm_calloc(1, sizeof *x);

    x->c = c;
    x->push = pm_calloc((size_t)c->o.count, sizeof *x->push);
    x->lane = pm_trace_lane("host", "gradient average");
    return x;
}

/* Bytes of a clone's values that the host sends: all if the host computes the moving averages, else
 * the trainable part. */
static size_t pushed_bytes(const struct pm_clones *c, const struct pm_variables *v)
{
    return pm_clones_share_moving(c) ? v->bytes : v->trainable_bytes;
}

static int join(struct pm_exchange *x, int i)
{
    const struct clone *k = &x->c->clone[i];
    const struct pm_place all = { k->variables->values, 0, pushed_bytes(x->c, k->variables) };

    return pm_program_create(k->device, &(struct pm_program_desc){
        .name = "values", .in = &all, .in_count = 1, .slots = 2 }, &x->push[i].program);
}

/* The plans of different sizes of pictures may have different buckets. */
static int most_buckets(const struct pm_clones *c)
{
    size_t most = 0;

    for (int i = 0; i < c->o.frames_count; i++) {
        const size_t n = pm_plan_buckets(c->clone[0].plan[i]);

        most = n > most ? n : most;
    }
    return (int)most + 1;
}

/* PM_SUM_GROUPS=2,2 sums the gradients of clones 0 and 1, then those of 2 and 3, then both sums, as
 * two processes with two clones each do. For tests of those. */
static int read_groups(struct pm_exchange *x)
{
    const char *text = getenv("PM_SUM_GROUPS"), *at = text;
    const int count = x->c->o.count;
    int clones = 0;

    if (!text || x->across)
        return PM_OK;
    x->group = pm_calloc((size_t)count, sizeof *x->group);
    for (int g = 0; at && *at; g++) {
        char *end;
        long n = strtol(at, &end, 10);

        while (n-- > 0 && clones < count)
            x->group[clones++] = g;
        at = *end == ',' ? end + 1 : NULL;
    }
    if (clones != count)
        return pm_fail(PM_ECONFIG, "PM_SUM_GROUPS=%s: the numbers must add up to the %d devices",
                       text, count);
    x->group_sum = pm_calloc(1, x->host.variables->trainable_bytes + 1);
    return PM_OK;
}

static int open_host(struct pm_exchange *x)
{
    struct pm_clones_options *o = &x->c->o;
    float *gradients;
    int err = PM_OK;

    PM_TRY(pm_host_copy_open(o, "host: optimizer", &x->host));
    PM_TRY(pm_host_copy_plan(&x->host, o,
                             o->among.servers ? pm_update_prepare_append : pm_update_append,
                             &o->update, &x->plan));
    gradients = pm_buffer_memory(x->host.device, x->host.variables->grads);
    if (o->among.replicas && o->count > 1)
        x->own_sum = pm_calloc(1, x->host.variables->trainable_bytes + 1);
    x->sum = x->own_sum ? x->own_sum : gradients;
    x->values = pm_buffer_memory(x->host.device, x->host.variables->values);
    if (o->among.replicas)
        x->across = pm_across_create(x->c, x->host.variables->trainable_bytes / sizeof(float),
                                     most_buckets(x->c), gradients);
    PM_TRY(read_groups(x));
    if (o->among.servers)
        x->remote = pm_remote_create(o->among.servers, x->host.variables);
    if (!pm_clones_share_moving(x->c))
        return PM_OK;
    if (o->among.replicas || o->among.servers)
        PM_TRY(pm_moving_check(x->host.net, true, o->micro_batches));
    pm_moving_create(x->host.net, x->host.variables, o->count, &x->moving);
    for (int i = 0; i < o->count; i++)
        if (pm_clones_moves(x->c, i))
            PM_TRY(pm_moving_join(&x->moving, x->c->clone[i].variables));
out:
    return err;
}

static void release_host(void *host)
{
    pm_host_copy_close(host);
    pm_free(host);
}

/* The sums of all processes arrive in the host's gradients, so they may have to stay. */
static void close_host(struct pm_exchange *x)
{
    struct pm_replicas *replicas = x->c->o.among.replicas;
    struct pm_host_copy *host;

    if (!replicas) {
        pm_host_copy_close(&x->host);
        return;
    }
    host = pm_calloc(1, sizeof *host);
    *host = x->host;
    pm_replicas_release(replicas, release_host, host);
}

static void destroy(struct pm_exchange *x)
{
    pm_across_destroy(&x->across);
    pm_remote_destroy(&x->remote);
    pm_moving_free(&x->moving);
    for (int i = 0; i < x->c->o.count; i++)
        pm_program_destroy(&x->push[i].program);
    pm_plan_destroy(&x->plan);
    close_host(x);
    pm_free(x->own_sum);
    pm_free(x->group_sum);
    pm_free(x->group);
    pm_free(x->push);
    pm_free(x);
}

/* ---- a step ----------------------------------------------------------------------------- */

enum { GRAIN = 16384 }; /* floats; with fewer, another thread does not pay */

struct reduce {
    float *sum;
    const float *part;
    bool first;
};

static void reduce_range(void *ctx, size_t begin, size_t end)
{
    const struct reduce *r = ctx;

    if (r->first)
        memcpy(r->sum + begin, r->part + begin, (end - begin) * sizeof(float));
    else
        for (size_t i = begin; i < end; i++)
            r->sum[i] += r->part[i];
}

static void copy_floats(float *to, const float *from, size_t bytes)
{
    struct reduce r = { .sum = to, .part = from, .first = true };

    pm_parallel(bytes / sizeof(float), GRAIN, reduce_range, &r);
}

static void trace_bucket(const struct pm_exchange *x, size_t bucket, int clone, double begin,
                         double end)
{
    char name[64];

    if (!pm_trace_on())
        return;
    snprintf(name, sizeof name, "sum bucket %zu of clone %d", bucket, clone);
    pm_trace_span(x->lane, name, NULL, begin, end);
}

/* Waits for a bucket of clone i. */
static int wait_bucket(struct pm_exchange *x, int i, int slot, size_t b, const float **part)
{
    struct pm_clones *c = x->c;
    int err;

    pm_phases_enter(c->o.phases, PM_RUN_DEVICE);
    err = pm_plan_wait_bucket(pm_clones_slot_plan(c, i, slot), slot, b, part);
    pm_phases_enter(c->o.phases, PM_RUN_AVERAGE);
    return err;
}

/* Sums a bucket over the clones of this process. *sum: the result; with one clone, its bucket. */
static int sum_bucket(struct pm_exchange *x, int slot, size_t b, size_t offset, size_t size,
                      const float **sum)
{
    struct pm_clones *c = x->c;
    int err = PM_OK;

    *sum = x->sum + offset / sizeof(float);
    if (c->o.count == 1)
        return wait_bucket(x, 0, slot, b, sum);
    for (int i = 0; i < c->o.count; i++) {
        const int group = x->group ? x->group[i] : 0;
        float *to = (group > 0 ? x->group_sum : x->sum) + offset / sizeof(float);
        struct reduce r = { .sum = to, .first = i == 0 || (x->group && x->group[i - 1] < group) };

        PM_TRY(wait_bucket(x, i, slot, b, &r.part));
        double begin = pm_seconds();
        pm_parallel(size / sizeof(float), GRAIN, reduce_range, &r);
        if (group > 0 && (i + 1 == c->o.count || x->group[i + 1] > group)) {
            r = (struct reduce){ .sum = x->sum + offset / sizeof(float), .part = to };
            pm_parallel(size / sizeof(float), GRAIN, reduce_range, &r);
        }
        trace_bucket(x, b, i, begin, pm_seconds());
    }
out:
    return err;
}

static void start_sum(struct pm_exchange *x)
{
    pm_across_start(x->across);
    x->progress = BUCKETS;
    x->added = 0;
}

static void add_bucket(struct pm_exchange *x, size_t offset, size_t size, const float *part)
{
    pm_across_add(x->across, offset / sizeof(float), size / sizeof(float), part);
    x->added++;
}

/* Sums the gradients. Buckets come in the same order from every clone: their plans have the same
 * backward calls in the same order, even if recomputed calls run between them. */
static int sum_gradients(struct pm_exchange *x, int slot)
{
    const struct pm_clones *c = x->c;
    const struct pm_plan *first = pm_clones_slot_plan(c, 0, slot);
    const float *sum;
    int err = PM_OK;

    if (x->across)
        start_sum(x);
    for (size_t b = 0; b < pm_plan_buckets(first); b++) {
        size_t offset, size;

        pm_plan_bucket(first, b, &offset, &size);
        PM_TRY(sum_bucket(x, slot, b, offset, size, &sum));
        if (x->across)
            add_bucket(x, offset, size, sum);
        else if (c->o.count == 1)
            copy_floats(x->sum + offset / sizeof(float), sum, size);
    }
out:
    return err;
}

/* Completes losses, moving averages and gradients. The processes' words are exchanged while the
 * last buckets are under way. */
static int finish(struct pm_exchange *x, int slot, struct pm_step *step, struct pm_step_result *r)
{
    struct pm_clones *c = x->c;
    int err = PM_OK;

    if (x->across) {
        PM_TRY(pm_clones_finish(c, slot));
        PM_TRY(pm_across_take(x->across, &x->moving));
        pm_phases_enter(c->o.phases, PM_RUN_EXCHANGE);
        x->progress = WORD;
        PM_TRY(pm_across_words(x->across, slot, step, r));
        PM_TRY(pm_across_follow(x->across, &x->moving));
        PM_TRY(pm_across_end(x->across));
        pm_phases_enter(c->o.phases, PM_RUN_AVERAGE);
        PM_TRY(pm_moving_end(&x->moving));
    } else if (x->remote) {
        PM_TRY(pm_clones_finish_all(c, slot, r));
        PM_TRY(pm_moving_combine(&x->moving));
    } else if (pm_clones_share_moving(c)) {
        PM_TRY(pm_clones_finish_all(c, slot, r));
        PM_TRY(pm_moving_follow(&x->moving));
    }
out:
    return err;
}

static int push_values(struct pm_exchange *x)
{
    int err = PM_OK;

    for (int i = 0; i < x->c->o.count; i++) {
        struct push *p = &x->push[i];

        PM_TRY(pm_program_wait(p->program, p->slot));
        copy_floats(pm_program_in(p->program, p->slot, 0), x->values,
                    pushed_bytes(x->c, x->host.variables));
        PM_TRY(pm_program_submit(p->program, p->slot));
        p->slot ^= 1;
    }
out:
    return err;
}

/* Sends the gradient to the owners of the variables, and receives the new values. A gradient that
 * is not finite ends the training: no owner receives it. */
static int update_owners(struct pm_exchange *x, const struct pm_step *step,
                         const struct pm_step_result *r)
{
    if (!r->finite || !isfinite(r->loss))
        return PM_OK;
    pm_phases_enter(x->c->o.phases, PM_RUN_EXCHANGE);
    if (x->c->o.among.servers->backups)
        return pm_remote_push_backed(x->remote, x->plan, &x->moving, step);
    return pm_remote_push(x->remote, x->plan, &x->moving, step);
}

/* Sums, updates, and sends the new values; then the step's result is complete. */
static int update(struct pm_exchange *x, int slot, const struct pm_step *step,
                  struct pm_step_result *r)
{
    struct pm_clones *c = x->c;
    enum pm_phase_of_run before = pm_phases_enter(c->o.phases, PM_RUN_AVERAGE);
    struct pm_step *to, values = *step;
    int err = PM_OK;

    PM_TRY(sum_gradients(x, slot));
    PM_TRY(finish(x, slot, &values, r));
    to = pm_plan_step(x->plan, 0);
    if (to)
        *to = values;
    PM_TRY(pm_plan_submit(x->plan, 0));
    if (!pm_clones_share_moving(c))
        PM_TRY(pm_clones_finish_all(c, slot, r));
    pm_phases_enter(c->o.phases, PM_RUN_UPDATE);
    PM_TRY(pm_plan_wait(x->plan, 0));
    pm_clones_read_update(x->plan, 0, r);
    if (x->remote)
        PM_TRY(update_owners(x, &values, r));
    err = push_values(x);
    if (err == PM_ELOST && x->across)
        err = PM_OK; /* the next step fails, or the trainer's check before other work */
    x->progress = NOTHING;
out:
    pm_phases_enter(c->o.phases, before);
    return err;
}

static int withdraw(struct pm_exchange *x, int slot, int err)
{
    const struct pm_plan *first = pm_clones_slot_plan(x->c, 0, slot);
    char why[1024];
    int rank;

    if (!x->across || pm_replicas_failed(x->c->o.among.replicas, &rank))
        return err;
    snprintf(why, sizeof why, "%s", pm_error_text());
    if (x->progress == NOTHING)
        start_sum(x);
    while (x->added < pm_plan_buckets(first)) {
        size_t offset, size;

        pm_plan_bucket(first, x->added, &offset, &size);
        add_bucket(x, offset, size, x->values + offset / sizeof(float)); /* any numbers */
    }
    if (x->progress == BUCKETS) {
        pm_across_word(x->across)->lost = 1;
        err = pm_across_words(x->across, slot, &(struct pm_step){ 0 }, NULL);
    }
    if (pm_clones_lost_rank(x->c) < 0)
        return err;
    PM_TRY(pm_across_end(x->across));
    err = pm_fail(PM_ELOST, "%s", why);
out:
    return err;
}

static int collect(struct pm_exchange *x, int slot, struct pm_step_result *r)
{
    (void)x, (void)slot, (void)r; /* update has already waited */
    return PM_OK;
}

/* ---- values ----------------------------------------------------------------------------- */

struct range {
    size_t at, size;
};

static int copy(struct pm_device *from, struct pm_buffer *source, struct pm_device *to,
                struct pm_buffer *target, struct range r)
{
    char *buf = pm_malloc(r.size + 1);
    int err = PM_OK;

    if (r.size == 0)
        goto out;
    PM_TRY(pm_buffer_read(from, source, r.at, buf, r.size));
    PM_TRY(pm_buffer_write(to, target, r.at, buf, r.size));
out:
    pm_free(buf);
    return err;
}

static struct pm_variables *master(const struct pm_exchange *x)
{
    return x->host.variables;
}

static struct pm_plan *update_plan(const struct pm_exchange *x)
{
    return x->plan;
}

/* Moving averages lie after the trainable part of the block. */
static int gather(struct pm_exchange *x)
{
    struct pm_variables *from = x->c->clone[0].variables, *to = x->host.variables;
    struct range rest = { from->trainable_bytes, from->bytes - from->trainable_bytes };
    int err = PM_OK;

    if (x->remote) {
        PM_TRY(pm_remote_collect(x->remote));
        return push_values(x);
    }
    if (pm_clones_share_moving(x->c))
        return PM_OK;
    PM_TRY(copy(from->device, from->values, to->device, to->values, rest));
    if (from->average_bytes)
        PM_TRY(copy(from->device, from->averages, to->device, to->averages, rest));
out:
    return err;
}

static int scatter(struct pm_exchange *x)
{
    struct pm_variables *from = x->host.variables;
    int err = PM_OK;

    for (int i = 0; i < x->c->o.count; i++) {
        struct pm_variables *to = x->c->clone[i].variables;
        struct range all = { 0, from->bytes };

        PM_TRY(copy(from->device, from->values, to->device, to->values, all));
        if (to->average_bytes)
            PM_TRY(copy(from->device, from->averages, to->device, to->averages, all));
    }
out:
    return err;
}

static int give_averages(struct pm_exchange *x)
{
    struct pm_variables *from = x->host.variables, *to = x->c->clone[0].variables;

    return copy(from->device, from->averages, to->device, to->averages,
                (struct range){ 0, pushed_bytes(x->c, from) });
}

static struct pm_step_word *word(struct pm_exchange *x)
{
    return pm_across_word(x->across);
}

static const struct pm_step_word *word_of(const struct pm_exchange *x, int rank)
{
    return pm_across_word_of(x->across, rank);
}

const struct pm_exchange_row pm_exchange_host = {
    .name = "host", .waits = true, .create = create, .join = join,
    .open = open_host, .destroy = destroy, .update = update, .withdraw = withdraw,
    .collect = collect, .master = master,
    .update_plan = update_plan, .gather = gather, .scatter = scatter,
    .give_averages = give_averages, .word = word, .word_of = word_of,
};
