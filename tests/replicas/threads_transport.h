/* threads_transport: a transport between threads of one process (replicas/transport.h). A message
 * is copied when both ends have begun. It can come late by a random number of polls; messages with
 * the same ends and tag keep their order. A rank can be cut off, or held, and the first message of
 * one tag between two ranks can be slow. */
#ifndef THREADS_TRANSPORT_H
#define THREADS_TRANSPORT_H

#include "replicas/transport.h"

#include <pumice/base.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WIRE_RANKS = 8 };

/* One end of a message. */
struct wire_end {
    bool used, done, sends;
    int from, to, tag;
    const void *data; /* to send */
    void *into;       /* to receive */
    size_t size;
    uint64_t order;   /* of the beginnings, over all ranks */
    int late;         /* polls of the receiver until it may arrive */
};

struct pm_transport {
    struct wires *wires;
    int rank;
    struct wire_end end[PM_MOST_TRANSFERS];
    int most;         /* ends at and above were never used */
    bool open;
};

struct wires {
    pthread_mutex_t lock;
    int ranks;
    atomic_int next_rank;
    uint64_t order, random;
    int late;                  /* most polls by which a message is late */
    struct {
        int from, to, tag, polls;
    } slow;                       /* the first such message; then polls is 0 */
    atomic_bool cut[WIRE_RANKS];  /* calls of this rank fail */
    atomic_bool held[WIRE_RANKS]; /* nothing reaches or leaves this rank */
    struct pm_transport rank[WIRE_RANKS];
};

static struct pm_transport *wires_open(void *ctx, int *rank, int *ranks, char *error, size_t size)
{
    struct wires *w = ctx;
    struct pm_transport *t;

    *rank = atomic_fetch_add(&w->next_rank, 1);
    *ranks = w->ranks;
    if (*rank >= w->ranks) {
        snprintf(error, size, "there are only %d ranks", w->ranks);
        return NULL;
    }
    t = &w->rank[*rank];
    pthread_mutex_lock(&w->lock);
    t->wires = w;
    t->rank = *rank;
    t->open = true;
    pthread_mutex_unlock(&w->lock);
    return t;
}

static int wires_begin(struct pm_transport *t, struct wire_end end)
{
    struct wires *w = t->wires;
    int i = 0;

    if (atomic_load(&w->cut[t->rank]))
        return -1;
    pthread_mutex_lock(&w->lock);
    while (i < PM_MOST_TRANSFERS && t->end[i].used)
        i++;
    if (i < PM_MOST_TRANSFERS) {
        end.used = true;
        end.order = w->order++;
        w->random = w->random * 6364136223846793005u + 1442695040888963407u;
        end.late = w->late > 0 ? (int)(w->random >> 33) % (w->late + 1) : 0;
        if (w->slow.polls > 0 && end.sends && end.from == w->slow.from && end.to == w->slow.to &&
            end.tag == w->slow.tag) {
            end.late = w->slow.polls;
            w->slow.polls = 0;
        }
        t->end[i] = end;
        t->most = i >= t->most ? i + 1 : t->most;
    }
    pthread_mutex_unlock(&w->lock);
    return i < PM_MOST_TRANSFERS ? i : -1;
}

static int wires_send(struct pm_transport *t, int to, int tag, const void *data, size_t size)
{
    return wires_begin(t, (struct wire_end){
        .sends = true, .from = t->rank, .to = to, .tag = tag, .data = data, .size = size });
}

static int wires_receive(struct pm_transport *t, int from, int tag, void *data, size_t size)
{
    return wires_begin(t, (struct wire_end){
        .from = from, .to = t->rank, .tag = tag, .into = data, .size = size });
}

/* Returns the oldest end of a rank with these properties that is not done. */
static struct wire_end *wires_oldest(struct pm_transport *t, bool sends, int from, int to, int tag)
{
    struct wire_end *best = NULL;

    for (int i = 0; i < t->most; i++) {
        struct wire_end *e = &t->end[i];

        if (e->used && !e->done && e->sends == sends && e->from == from && e->to == to &&
            e->tag == tag && (!best || e->order < best->order))
            best = e;
    }
    return best;
}

/* Copies the message of one receiving end if it has arrived. */
static bool wires_deliver(struct pm_transport *t, struct wire_end *into)
{
    struct pm_transport *from = &t->wires->rank[into->from];
    struct wire_end *end = from->open ? wires_oldest(from, true, into->from, into->to, into->tag)
                                      : NULL;

    if (!end || atomic_load(&t->wires->held[into->from]) ||
        atomic_load(&t->wires->held[into->to]) || end->late-- > 0)
        return false;
    if (end->size != into->size)
        abort(); /* a fault of the program */
    memcpy(into->into, end->data, end->size);
    end->done = into->done = true;
    return true;
}

static int wires_poll(struct pm_transport *t)
{
    struct wires *w = t->wires;
    int count = 0;

    if (atomic_load(&w->cut[t->rank]))
        return -1;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < t->most; i++) {
        struct wire_end *e = &t->end[i];

        if (e->used && !e->done && !e->sends &&
            wires_oldest(t, false, e->from, e->to, e->tag) == e)
            count += wires_deliver(t, e);
    }
    pthread_mutex_unlock(&w->lock);
    return count;
}

static bool wires_finished(struct pm_transport *t, int i)
{
    bool done;

    pthread_mutex_lock(&t->wires->lock);
    done = t->end[i].used && t->end[i].done;
    if (done)
        t->end[i].used = false;
    pthread_mutex_unlock(&t->wires->lock);
    return done;
}

static const char *wires_error(struct pm_transport *t)
{
    (void)t;
    return "the wire is cut";
}

static void wires_close(struct pm_transport *t, bool orderly)
{
    (void)orderly;
    pthread_mutex_lock(&t->wires->lock);
    t->open = false;
    pthread_mutex_unlock(&t->wires->lock);
}

static const struct pm_transport_row threads_transport = {
    .version = PM_TRANSPORT_VERSION, .name = "threads", .open = wires_open, .send = wires_send,
    .receive = wires_receive, .poll = wires_poll, .finished = wires_finished,
    .error = wires_error, .close = wires_close,
};

static struct wires *wires_create(int ranks, int late)
{
    struct wires *w = pm_calloc(1, sizeof *w);

    pthread_mutex_init(&w->lock, NULL);
    w->ranks = ranks;
    w->late = late;
    w->random = (uint64_t)ranks * 31 + (uint64_t)late;
    return w;
}

static void wires_destroy(struct wires **w)
{
    pthread_mutex_destroy(&(*w)->lock);
    pm_free(*w);
    *w = NULL;
}

#endif
