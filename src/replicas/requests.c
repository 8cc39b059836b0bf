/* requests: replicas.h has the contract.
 *
 * One job serves the inbox. It has a line for each rank and line number: a head arrives, whose size
 * is fixed, then the data, in messages of at most CHUNK bytes, one after the other. The reply goes
 * the same way. Each call is a job of its own. A request to the own rank is handed over in memory.
 *
 * The exchange thread changes a line's stage, except from TAKEN to REPLY, which the thread that
 * takes requests does. A stage is set after everything that belongs to it. */
#include "replicas/replicas_private.h"

#include <assert.h>
#include <string.h>

enum { CHUNK = 16 << 20 }; /* bytes of one message */
enum { KIND_END = 0 };

struct head {
    uint64_t size; /* of the data */
    uint32_t kind;
    uint32_t unused;
    char word[PM_REPLICA_WORD];
};

/* A head and its data, sent or received. */
struct message {
    struct head head;
    char *data;       /* owned, except in a call's reply of the own rank */
    size_t capacity, at;
    int transfer;     /* -1: none */
    bool head_done;
};

enum stage { COMING, READY, TAKEN, REPLY, ENDED };

struct line {
    atomic_int stage;
    struct message in, out;
    uint64_t order;   /* of the arrival */
};

struct pm_replica_inbox {
    struct pm_job job;
    struct pm_replicas *r; /* borrowed */
    struct line *line;     /* [ranks][PM_REPLICA_LINES]; owned */
    struct message *bye;   /* [ranks][PM_REPLICA_LINES]: this rank's end; owned */
    int senders;
    uint64_t arrived;
    atomic_bool closed, ends;
};

struct pm_replica_call {
    struct pm_job job;
    struct pm_replica_inbox *own; /* borrowed */
    int to, line;
    size_t size;           /* of the next request's data */
    bool handed;           /* to the own inbox */
    bool sent;
    struct message out, in;
};

static int tag_of(int line, bool reply)
{
    return TAG_REQUEST + 2 * line + reply;
}

static struct line *line_of(const struct pm_replica_inbox *i, int rank, int line)
{
    return &i->line[rank * PM_REPLICA_LINES + line];
}

/* ---- messages ---------------------------------------------------------------------------- */

static void begin(struct message *m)
{
    m->at = 0;
    m->head_done = false;
    m->transfer = -1;
}

static void make_room(struct message *m, size_t size)
{
    if (size <= m->capacity && m->data)
        return;
    pm_free(m->data);
    m->data = pm_malloc(size + 1);
    m->capacity = size;
}

/* Moves a message by as many transfers as can begin and end now. Returns 1 if all of it has been
 * sent or received, else 0, or -1 after a failure. */
static int move_message(struct pm_replicas *r, struct message *m, bool sends, int rank, int tag,
                        bool *moved)
{
    for (;;) {
        void *next;
        size_t size;

        if (m->transfer >= 0) {
            if (!r->row->finished(r->transport, m->transfer))
                return 0;
            m->transfer = -1;
            *moved = true;
            if (!m->head_done) {
                m->head_done = true;
                if (!sends)
                    make_room(m, m->head.size);
            } else {
                m->at += m->head.size - m->at < CHUNK ? m->head.size - m->at : CHUNK;
            }
        }
        if (m->head_done && m->at == m->head.size)
            return 1;
        next = m->head_done ? (void *)(m->data + m->at) : (void *)&m->head;
        size = !m->head_done                      ? sizeof m->head
               : m->head.size - m->at < CHUNK ? m->head.size - m->at
                                              : CHUNK;
        m->transfer = sends ? pm_transfer_send(r, rank, tag, next, size)
                            : r->row->receive(r->transport, rank, tag, next, size);
        if (m->transfer < 0)
            return -1;
        *moved |= sends; /* the answer may come soon: the thread polls often */
    }
}

/* ---- the inbox --------------------------------------------------------------------------- */

static void set_stage(struct pm_replicas *r, struct line *l, enum stage stage)
{
    pthread_mutex_lock(&r->lock);
    atomic_store_explicit(&l->stage, (int)stage, memory_order_release);
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

static enum stage stage_of(const struct line *l)
{
    return (enum stage)atomic_load_explicit(&l->stage, memory_order_acquire);
}

static int move_line(struct pm_replica_inbox *i, int rank, int line, bool *moved)
{
    struct pm_replicas *r = i->r;
    struct line *l = line_of(i, rank, line);
    int done;

    if (rank == r->rank) /* the call hands it over */
        return 0;
    if (stage_of(l) == REPLY) {
        done = move_message(r, &l->out, true, rank, tag_of(line, true), moved);
        if (done <= 0)
            return done;
        begin(&l->in);
        set_stage(r, l, COMING);
    }
    if (stage_of(l) != COMING)
        return 0;
    done = move_message(r, &l->in, false, rank, tag_of(line, false), moved);
    if (done <= 0)
        return done;
    l->order = i->arrived++;
    set_stage(r, l, l->in.head.kind == KIND_END ? ENDED : READY);
    return 0;
}

/* Sends this rank's end to all. Returns 1 if all of it is sent. */
static int move_ends(struct pm_replica_inbox *i, bool *moved)
{
    struct pm_replicas *r = i->r;
    int all = 1;

    for (int k = 0; k < r->count * PM_REPLICA_LINES; k++) {
        const int rank = k / PM_REPLICA_LINES;
        int done;

        if (rank == r->rank) {
            if (stage_of(&i->line[k]) == COMING)
                set_stage(r, &i->line[k], ENDED);
            continue;
        }
        if (i->bye[k].head_done)
            continue;
        done = move_message(r, &i->bye[k], true, rank, tag_of(k % PM_REPLICA_LINES, false), moved);
        if (done < 0)
            return -1;
        all &= done;
    }
    return all;
}

/* The first rank that has not ended; -1: all have. */
static int first_active(const struct pm_replica_inbox *i, int ranks)
{
    for (int k = 0; k < ranks * PM_REPLICA_LINES; k++)
        if (stage_of(&i->line[k]) != ENDED)
            return k / PM_REPLICA_LINES;
    return -1;
}

static int move_inbox(struct pm_replicas *r, struct pm_job *j, bool *moved)
{
    struct pm_replica_inbox *i = (struct pm_replica_inbox *)j;
    int sent = 0;

    for (int k = 0; k < r->count * PM_REPLICA_LINES; k++)
        if (move_line(i, k / PM_REPLICA_LINES, k % PM_REPLICA_LINES, moved) < 0)
            return -1;
    if (atomic_load(&i->ends))
        sent = move_ends(i, moved);
    if (sent < 0)
        return -1;
    atomic_store(&j->waiting, -1); /* ranks that still train are not late */
    return sent && first_active(i, r->count) < 0;
}

struct pm_replica_inbox *pm_replica_inbox_create(struct pm_replicas *r, int senders)
{
    struct pm_replica_inbox *i = pm_calloc(1, sizeof *i);
    const size_t lines = (size_t)r->count * PM_REPLICA_LINES;

    i->r = r;
    i->job.move = move_inbox;
    i->senders = senders;
    i->line = pm_calloc(lines, sizeof *i->line);
    i->bye = pm_calloc(lines, sizeof *i->bye);
    for (size_t k = 0; k < lines; k++) {
        begin(&i->line[k].in);
        begin(&i->line[k].out);
        begin(&i->bye[k]);
    }
    pm_job_submit(r, &i->job);
    return i;
}

void pm_replica_inbox_destroy(struct pm_replica_inbox **inbox)
{
    struct pm_replica_inbox *i = *inbox;

    if (!i)
        return;
    pm_job_abandon(i->r, &i->job);
    for (int k = 0; k < i->r->count * PM_REPLICA_LINES; k++) {
        if (k / PM_REPLICA_LINES != i->r->rank) /* else it belongs to a call */
            pm_job_free(i->r, i->line[k].in.data);
        pm_job_free(i->r, i->line[k].out.data);
    }
    pm_job_free(i->r, i->line); /* heads arrive in it */
    pm_job_free(i->r, i->bye);
    pm_free(i);
    *inbox = NULL;
}

/* What pm_replica_inbox_take waits for. */
struct taking {
    struct pm_replica_inbox *i;
    bool (*may)(void *ctx, const struct pm_replica_request *q);
    void *ctx;
    struct pm_replica_request q;
    bool found, over;
};

static struct pm_replica_request request_of(const struct line *l, int k)
{
    struct pm_replica_request q = { .rank = k / PM_REPLICA_LINES, .line = k % PM_REPLICA_LINES,
                                    .kind = l->in.head.kind, .data = l->in.data,
                                    .size = l->in.head.size };

    memcpy(q.word, l->in.head.word, sizeof q.word);
    return q;
}

/* Looks for the request that arrived first. */
static bool look(void *taking, int *rank)
{
    struct taking *t = taking;
    const struct pm_replica_inbox *i = t->i;
    uint64_t first = UINT64_MAX;
    bool left = false;

    *rank = -1; /* a rank that sends no request is not late */
    t->found = false;
    for (int k = 0; k < i->r->count * PM_REPLICA_LINES; k++) {
        const struct line *l = &i->line[k];
        struct pm_replica_request q;

        if (stage_of(l) != READY)
            continue;
        left = true;
        q = request_of(l, k);
        if (l->order < first && (!t->may || t->may(t->ctx, &q))) {
            first = l->order;
            t->found = true;
            t->q = q;
        }
    }
    t->over = atomic_load(&i->closed) || (!left && first_active(i, i->senders) < 0);
    return t->found || t->over;
}

int pm_replica_inbox_take(struct pm_replica_inbox *i,
                          bool (*may)(void *ctx, const struct pm_replica_request *q), void *ctx,
                          struct pm_replica_request *out, bool *over)
{
    struct taking t = { .i = i, .may = may, .ctx = ctx };
    int err = PM_OK;

    *over = false;
    PM_TRY(pm_replicas_until(i->r, look, &t));
    *over = t.over;
    if (t.over)
        return PM_OK;
    *out = t.q;
    struct line *l = line_of(i, t.q.rank, t.q.line);

    l->out.head = (struct head){ 0 };
    atomic_store_explicit(&l->stage, TAKEN, memory_order_release);
out:
    return err;
}

void *pm_replica_inbox_space(struct pm_replica_inbox *i, const struct pm_replica_request *q,
                             size_t size)
{
    struct line *l = line_of(i, q->rank, q->line);

    make_room(&l->out, size);
    l->out.head.size = size;
    return l->out.data;
}

void pm_replica_inbox_reply(struct pm_replica_inbox *i, const struct pm_replica_request *q,
                            const void *word, size_t bytes)
{
    struct line *l = line_of(i, q->rank, q->line);

    assert(bytes <= PM_REPLICA_WORD && stage_of(l) == TAKEN);
    if (bytes > 0)
        memcpy(l->out.head.word, word, bytes);
    begin(&l->out);
    pthread_mutex_lock(&i->r->lock);
    atomic_store_explicit(&l->stage, REPLY, memory_order_release);
    pthread_cond_broadcast(&i->r->wake);
    pthread_mutex_unlock(&i->r->lock);
}

void pm_replica_inbox_close(struct pm_replica_inbox *i)
{
    pthread_mutex_lock(&i->r->lock);
    atomic_store(&i->closed, true);
    pthread_cond_broadcast(&i->r->moved);
    pthread_mutex_unlock(&i->r->lock);
}

void pm_replica_inbox_fail(struct pm_replica_inbox *i, int err)
{
    char text[640];

    snprintf(text, sizeof text, "%s", pm_error_text());
    pthread_mutex_lock(&i->r->lock);
    pm_replicas_record(i->r, err, -1, text);
    pthread_mutex_unlock(&i->r->lock);
}

int pm_replica_inbox_end(struct pm_replica_inbox *i)
{
    atomic_store(&i->ends, true);
    return pm_job_wait(i->r, &i->job);
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Hands the request to the own inbox, and takes the reply. */
static int move_own(struct pm_replica_call *c, bool *moved)
{
    struct line *l = line_of(c->own, c->to, c->line);

    if (!c->handed) {
        l->in.head = c->out.head;
        l->in.data = c->out.data;
        l->order = c->own->arrived++;
        c->handed = *moved = true;
        set_stage(c->own->r, l, READY);
        return 0;
    }
    if (stage_of(l) != REPLY)
        return 0;
    c->in.head = l->out.head;
    c->in.data = l->out.data;
    l->in.data = NULL;
    *moved = true;
    set_stage(c->own->r, l, COMING);
    return 1;
}

static int move_call(struct pm_replicas *r, struct pm_job *j, bool *moved)
{
    struct pm_replica_call *c = (struct pm_replica_call *)j;
    int done;

    if (c->to == r->rank)
        return move_own(c, moved);
    atomic_store(&j->waiting, c->to);
    if (!c->sent) {
        done = move_message(r, &c->out, true, c->to, tag_of(c->line, false), moved);
        if (done <= 0)
            return done;
        c->sent = true;
    }
    return move_message(r, &c->in, false, c->to, tag_of(c->line, true), moved);
}

struct pm_replica_call *pm_replica_call_create(struct pm_replica_inbox *own, int to, int line)
{
    struct pm_replica_call *c = pm_calloc(1, sizeof *c);

    assert(line >= 0 && line < PM_REPLICA_LINES && to >= 0 && to < own->r->count);
    c->job.move = move_call;
    c->own = own;
    c->to = to;
    c->line = line;
    return c;
}

void pm_replica_call_destroy(struct pm_replica_call **call)
{
    struct pm_replica_call *c = *call;
    struct pm_replicas *r;

    if (!c)
        return;
    r = c->own->r;
    pm_job_abandon(r, &c->job);
    if (c->to != r->rank)
        pm_job_free(r, c->in.data);
    pm_job_free(r, c->out.data);
    pm_job_free(r, c); /* heads arrive in it */
    *call = NULL;
}

void *pm_replica_call_space(struct pm_replica_call *c, size_t size)
{
    make_room(&c->out, size);
    c->size = size;
    return c->out.data;
}

void pm_replica_call_start(struct pm_replica_call *c, unsigned kind, const void *word,
                           size_t bytes)
{
    assert(kind != KIND_END && bytes <= PM_REPLICA_WORD);
    c->out.head = (struct head){ .kind = kind, .size = c->size };
    if (bytes > 0)
        memcpy(c->out.head.word, word, bytes);
    c->size = 0;
    begin(&c->out);
    begin(&c->in);
    c->sent = c->handed = false;
    pm_job_submit(c->own->r, &c->job);
}

int pm_replica_call_wait(struct pm_replica_call *c, void *word, size_t bytes, const char **data,
                         size_t *size)
{
    int err = PM_OK;

    PM_TRY(pm_job_wait(c->own->r, &c->job));
    if (bytes > 0)
        memcpy(word, c->in.head.word, bytes);
    if (data) {
        *data = c->in.data;
        *size = c->in.head.size;
    }
out:
    return err;
}
