/* serving: serving.h has the contract. */
#include "clones/serving.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A worker that waits for the decision of its step. */
struct waiting {
    struct pm_replica_request request;
    uint64_t step;
};

struct pm_serving {
    struct pm_serving_options o;
    struct pm_stored *stored;  /* backups: [workers], the owner's; owned */
    pthread_t thread;
    bool started;
    atomic_bool ended;
    int *order, order_count;  /* owned; order_count 0: as they come */
    atomic_uint_least64_t version; /* updates of the owner; written by the thread */
    /* Of the thread. */
    struct waiting *waiting;  /* backups: [workers]; owned */
    int waiting_count;
    uint64_t *place;          /* [workers] in the order of the next number; owned */
    pthread_mutex_t lock;     /* of everything below */
    uint64_t number;          /* of the next batch */
    struct pm_tally_view tally;
    uint64_t updates;         /* since the last view */
    double sum;               /* of their staleness */
    bool *finished;           /* [workers], owned */
    /* Backups; of rank 0. */
    struct pm_decision decision;
    int *stored_by, stored_count; /* the first workers whose gradients of the next step are at all
                               * owners; owned */
    bool *chosen;             /* [workers]: belongs to a step whose values it has not yet; owned */
    uint64_t *dropped, *dropped_view; /* [workers], owned */
    bool held;                /* the chief reads values: no step is decided */
};

/* A gradient that an owner keeps. */
struct pm_stored {
    struct pm_push_word word;
    float *part;              /* owned */
};

/* ---- numbers and counts ------------------------------------------------------------------ */

/* Draws the number of a worker's next batch; false: none is left. */
static bool draw(struct pm_serving *s, int worker, uint64_t *number)
{
    const uint64_t limit = s->o.backups ? UINT64_MAX : s->o.limit; /* some will be dropped */
    uint64_t *place = &s->place[worker];

    if (s->order_count == 0) {
        *number = s->number;
        s->number += s->number < limit;
        return *number < limit;
    }
    for (int k = 0; k < s->order_count; k++, ++*place)
        if (s->order[*place % (uint64_t)s->order_count] == worker) {
            *number = s->o.first + (*place)++;
            return *number < s->o.limit;
        }
    return false; /* the order does not have this worker */
}

static void count_update(struct pm_serving *s, const struct pm_tally_word *w)
{
    s->tally.count++;
    s->tally.skipped += w->skipped;
    s->updates++;
    s->sum += (double)w->staleness;
    if (w->staleness > s->tally.stalest)
        s->tally.stalest = w->staleness;
}

/* ---- backups: steps ---------------------------------------------------------------------- */

/* Decides the next step if enough gradients are there. The lock is held. */
static void decide(struct pm_serving *s)
{
    struct pm_decision *d = &s->decision;

    if (s->held || s->tally.stop != 0 || s->stored_count < s->o.backups ||
        d->count >= s->o.limit)
        return;
    memset(d->set, 0, sizeof d->set);
    for (int k = 0; k < s->o.backups; k++) {
        const int worker = s->stored_by[k];

        d->set[worker / 8] |= (uint8_t)(1u << worker % 8);
        s->chosen[worker] = true;
    }
    s->stored_count = 0;
    s->tally.count = ++d->count;
}

/* A worker's gradient of a step is at all owners. It waits for the decision. */
static void note_stored(struct pm_serving *s, const struct pm_replica_request *q)
{
    struct pm_tally_word w;

    memcpy(&w, q->word, sizeof w);
    pthread_mutex_lock(&s->lock);
    if (s->tally.stop == 0)
        s->tally.stop = w.stop;
    s->tally.skipped += w.skipped;
    if (w.step == s->decision.count && s->stored_count < s->o.backups)
        s->stored_by[s->stored_count++] = q->rank;
    decide(s);
    pthread_mutex_unlock(&s->lock);
    s->waiting[s->waiting_count++] = (struct waiting){ *q, w.step };
}

/* Returns the reply to a waiting worker. Rank 0 then reads values, so that they are those of one
 * step, until PM_ASK_GO. The lock is held. */
static struct pm_decision reply_of(struct pm_serving *s, const struct waiting *w)
{
    struct pm_decision d = s->decision;
    const int rank = w->request.rank;

    s->dropped[rank] += d.count > w->step && !s->chosen[rank];
    s->chosen[rank] = false;
    s->held |= rank == 0;
    d.stop = s->tally.stop;
    return d;
}

/* Replies to the workers whose step is decided, or to all if training stops. */
static void answer_waiting(struct pm_serving *s)
{
    for (int k = 0; k < s->waiting_count;) {
        struct waiting *w = &s->waiting[k];
        struct pm_decision d;
        bool decided;

        pthread_mutex_lock(&s->lock);
        decided = s->decision.count > w->step || s->tally.stop != 0;
        if (decided)
            d = reply_of(s, w);
        pthread_mutex_unlock(&s->lock);
        if (!decided) {
            k++;
            continue;
        }
        pm_replica_inbox_reply(s->o.inbox, &w->request, &d, sizeof d);
        *w = s->waiting[--s->waiting_count];
    }
}

static void release(struct pm_serving *s)
{
    pthread_mutex_lock(&s->lock);
    s->held = false;
    decide(s);
    pthread_mutex_unlock(&s->lock);
}

const uint64_t *pm_serving_dropped(struct pm_serving *s)
{
    const size_t bytes = (size_t)s->o.ranks.workers * sizeof *s->dropped;

    pthread_mutex_lock(&s->lock);
    memcpy(s->dropped_view, s->dropped, bytes);
    memset(s->dropped, 0, bytes);
    pthread_mutex_unlock(&s->lock);
    return s->dropped_view;
}

static struct pm_tally_answer tally(struct pm_serving *s, const struct pm_replica_request *q)
{
    struct pm_tally_answer a = { 0 };
    struct pm_tally_word w;

    memcpy(&w, q->word, sizeof w);
    pthread_mutex_lock(&s->lock);
    if (s->tally.stop == 0)
        s->tally.stop = w.stop;
    if (q->kind == PM_ASK_NUMBER)
        a.none = s->tally.stop != 0 || !draw(s, q->rank, &a.number);
    if (q->kind == PM_ASK_DONE)
        count_update(s, &w);
    if (q->kind == PM_ASK_FINISHED)
        s->finished[q->rank] = true;
    a.count = s->tally.count;
    a.stop = s->tally.stop;
    pthread_mutex_unlock(&s->lock);
    return a;
}

void pm_serving_view(struct pm_serving *s, bool take, struct pm_tally_view *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->tally;
    out->staleness = s->updates > 0 ? s->sum / (double)s->updates : NAN;
    out->running = -1;
    for (int k = s->o.ranks.workers - 1; k >= 0; k--)
        out->running = s->finished[k] ? out->running : k;
    if (take) {
        s->updates = s->tally.stalest = 0;
        s->sum = 0;
    }
    pthread_mutex_unlock(&s->lock);
}

void pm_serving_stop(struct pm_serving *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->tally.stop == 0)
        s->tally.stop = -1;
    pthread_mutex_unlock(&s->lock);
}

/* ---- gradients --------------------------------------------------------------------------- */

/* Whether it is the turn of this request. */
static bool may(void *ctx, const struct pm_replica_request *q)
{
    const struct pm_serving *s = ctx;

    return q->kind != PM_ASK_PUSH || s->order_count == 0 ||
           s->order[atomic_load(&s->version) % (uint64_t)s->order_count] == q->rank;
}

_Static_assert(sizeof(struct pm_decision) <= PM_REPLICA_WORD, "a decision fits into a word");

static int check_size(const struct pm_serving *s, const struct pm_replica_request *q)
{
    const size_t needed = pm_owner_part(s->o.owner)->floats * sizeof(float);

    if (q->size == needed)
        return PM_OK;
    return pm_fail(PM_EFAIL, "rank %d sent a gradient of %zu bytes, not of %zu", q->rank, q->size,
                   needed);
}

static int apply(struct pm_serving *s, const struct pm_replica_request *q)
{
    const struct pm_part *part = pm_owner_part(s->o.owner);
    struct pm_variables *v = pm_owner_variables(s->o.owner);
    struct pm_push_answer answer;
    struct pm_push_word word;
    float *values;
    int err = PM_OK;

    PM_TRY(check_size(s, q));
    memcpy(&word, q->word, sizeof word);
    answer.staleness = atomic_load(&s->version) - word.version;
    PM_TRY(pm_owner_apply(s->o.owner, &word.step, word.moving,
                          (const float *)(const void *)q->data));
    answer.version = atomic_fetch_add(&s->version, 1) + 1;
    values = pm_replica_inbox_space(s->o.inbox, q, part->floats * sizeof *values);
    PM_TRY(pm_part_read(part, v, v->values, part->count, values));
    pm_replica_inbox_reply(s->o.inbox, q, &answer, sizeof answer);
out:
    return err;
}

/* ---- backups: gradients ------------------------------------------------------------------ */

static int store(struct pm_serving *s, const struct pm_replica_request *q)
{
    struct pm_stored *to = &s->stored[q->rank];
    int err = PM_OK;

    PM_TRY(check_size(s, q));
    memcpy(&to->word, q->word, sizeof to->word);
    if (!to->part)
        to->part = pm_malloc(q->size + 1);
    memcpy(to->part, q->data, q->size);
    pm_replica_inbox_reply(s->o.inbox, q, NULL, 0);
out:
    return err;
}

/* Makes the update of a decided step. */
static int apply_decision(struct pm_serving *s, const struct pm_decision *d)
{
    const float *part[PM_MOST_PROCESSES];
    int moving[PM_MOST_PROCESSES], count = 0, err = PM_OK;
    struct pm_step step = { 0 };

    for (int k = 0; k < s->o.ranks.workers; k++) {
        const struct pm_stored *from = &s->stored[k];

        if (!(d->set[k / 8] & 1u << k % 8))
            continue;
        step = from->word.step;
        moving[count] = from->word.moving;
        part[count++] = from->part;
    }
    PM_TRY(pm_owner_apply_mean(s->o.owner, &step, moving, part, count));
    atomic_fetch_add(&s->version, 1);
out:
    return err;
}

/* The values after the decided step. The first worker that asks makes the update. */
static int give_values(struct pm_serving *s, const struct pm_replica_request *q)
{
    const struct pm_part *part = pm_owner_part(s->o.owner);
    struct pm_variables *v = pm_owner_variables(s->o.owner);
    struct pm_push_answer answer = { 0 };
    struct pm_decision d;
    float *values;
    int err = PM_OK;

    memcpy(&d, q->word, sizeof d);
    if (pm_serving_updates(s) < d.count)
        PM_TRY(apply_decision(s, &d));
    answer.version = atomic_load(&s->version);
    values = pm_replica_inbox_space(s->o.inbox, q, part->floats * sizeof *values);
    PM_TRY(pm_part_read(part, v, v->values, part->count, values));
    pm_replica_inbox_reply(s->o.inbox, q, &answer, sizeof answer);
out:
    return err;
}

static int collect(struct pm_serving *s, const struct pm_replica_request *q)
{
    const struct pm_part *part = pm_owner_part(s->o.owner);
    struct pm_variables *v = pm_owner_variables(s->o.owner);
    const struct pm_push_answer answer = { .version = atomic_load(&s->version) };
    float *state = pm_replica_inbox_space(s->o.inbox, q,
                                          pm_part_state_floats(part, v) * sizeof *state);
    int err = PM_OK;

    PM_TRY(pm_part_read_state(part, v, state));
    pm_replica_inbox_reply(s->o.inbox, q, &answer, sizeof answer);
out:
    return err;
}

/* ---- the thread -------------------------------------------------------------------------- */

static int answer(struct pm_serving *s, const struct pm_replica_request *q)
{
    struct pm_tally_answer a;

    switch (q->kind) {
    case PM_ASK_PUSH:
        return apply(s, q);
    case PM_ASK_COLLECT:
        return collect(s, q);
    case PM_ASK_STORE:
        return store(s, q);
    case PM_ASK_VALUES:
        return give_values(s, q);
    case PM_ASK_STORED:
        note_stored(s, q);
        return PM_OK;
    case PM_ASK_GO:
        release(s);
        pm_replica_inbox_reply(s->o.inbox, q, NULL, 0);
        return PM_OK;
    default:
        a = tally(s, q);
        pm_replica_inbox_reply(s->o.inbox, q, &a, sizeof a);
        return PM_OK;
    }
}

static void *serve(void *arg)
{
    struct pm_serving *s = arg;
    struct pm_replica_request q;
    bool over = false;
    int err = PM_OK;

    while (err == PM_OK) {
        err = pm_replica_inbox_take(s->o.inbox, may, s, &q, &over);
        if (err == PM_OK && over)
            break;
        if (err == PM_OK)
            err = answer(s, &q);
        answer_waiting(s);
    }
    if (err < 0)
        pm_replica_inbox_fail(s->o.inbox, err);
    atomic_store(&s->ended, true);
    return NULL;
}

static void read_order(struct pm_serving *s)
{
    const char *text = s->o.order;
    size_t capacity = 0, count = 0;

    while (text && *text) {
        char *end;
        const long k = strtol(text, &end, 10);

        if (end == text)
            break;
        PM_GROW(s->order, count, capacity);
        s->order[count++] = (int)k;
        text = *end == ',' ? end + 1 : end;
    }
    s->order_count = (int)count;
}

int pm_serving_start(const struct pm_serving_options *o, struct pm_serving **out)
{
    struct pm_serving *s = pm_calloc(1, sizeof *s);
    const size_t workers = (size_t)o->ranks.workers;
    int code;

    s->o = *o;
    s->number = s->tally.count = s->decision.count = o->first;
    s->held = true; /* until the chief begins */
    s->place = pm_calloc(workers, sizeof *s->place);
    s->finished = pm_calloc(workers, sizeof *s->finished);
    s->stored = pm_calloc(workers, sizeof *s->stored);
    s->waiting = pm_calloc(workers, sizeof *s->waiting);
    s->stored_by = pm_calloc(workers, sizeof *s->stored_by);
    s->chosen = pm_calloc(workers, sizeof *s->chosen);
    s->dropped = pm_calloc(workers, sizeof *s->dropped);
    s->dropped_view = pm_calloc(workers, sizeof *s->dropped_view);
    read_order(s);
    pthread_mutex_init(&s->lock, NULL);
    code = pthread_create(&s->thread, NULL, serve, s);
    s->started = code == 0;
    if (code != 0) {
        pm_serving_destroy(&s);
        return pm_fail(PM_EFAIL, "replicas: the thread that serves variables cannot be created: %s",
                       strerror(code));
    }
    *out = s;
    return PM_OK;
}

void pm_serving_destroy(struct pm_serving **serving)
{
    struct pm_serving *s = *serving;

    if (!s)
        return;
    if (s->started) {
        pm_replica_inbox_close(s->o.inbox);
        pthread_join(s->thread, NULL);
    }
    pthread_mutex_destroy(&s->lock);
    for (int k = 0; k < s->o.ranks.workers; k++)
        pm_free(s->stored[k].part);
    pm_free(s->stored);
    pm_free(s->waiting);
    pm_free(s->stored_by);
    pm_free(s->chosen);
    pm_free(s->dropped);
    pm_free(s->dropped_view);
    pm_free(s->order);
    pm_free(s->place);
    pm_free(s->finished);
    pm_free(s);
    *serving = NULL;
}

uint64_t pm_serving_updates(struct pm_serving *s)
{
    return s->o.first + atomic_load(&s->version);
}

bool pm_serving_ended(struct pm_serving *s)
{
    return atomic_load(&s->ended);
}
