/* messages: exchanges of bytes. Each rank sends to each other rank directly. */
#include "replicas/replicas_private.h"

#include <string.h>

enum { CHUNK = 16 << 20 }; /* bytes of one message of a broadcast */

int pm_transfer_send(struct pm_replicas *r, int to, int tag, const void *data, size_t size)
{
    atomic_fetch_add_explicit(&r->sent, size, memory_order_relaxed);
    return r->row->send(r->transport, to, tag, data, size);
}

bool pm_transfers_finished(struct pm_replicas *r, int *number, atomic_int *waiting, bool *moved)
{
    for (int i = 0; i < r->count; i++) {
        if (number[i] < 0)
            continue;
        if (!r->row->finished(r->transport, number[i])) {
            atomic_store(waiting, i);
            return false;
        }
        number[i] = -1;
        *moved = true;
    }
    return true;
}

int *pm_transfers_create(const struct pm_replicas *r)
{
    int *number = pm_malloc((size_t)r->count * sizeof *number);

    for (int i = 0; i < r->count; i++)
        number[i] = -1;
    return number;
}

/* ---- gather ------------------------------------------------------------------------------ */

struct pm_replica_gather {
    struct pm_job job;
    struct pm_replicas *r; /* borrowed */
    size_t *size, *offset; /* [ranks] of their bytes in all; owned, as is all below */
    char *all;
    bool to_chief;         /* only rank 0 receives */
    bool begun;
    int *sending, *receiving;
};

static int begin_gather(struct pm_replicas *r, struct pm_replica_gather *g)
{
    for (int k = 1; k < r->count; k++) {
        const int to = (r->rank + k) % r->count, from = (r->rank - k + r->count) % r->count;
        const bool receives = g->size[from] > 0 && (r->rank == 0 || !g->to_chief);
        const bool sends = g->size[r->rank] > 0 && (to == 0 || !g->to_chief);

        if (receives)
            g->receiving[from] = r->row->receive(r->transport, from, TAG_GATHER,
                                                 g->all + g->offset[from], g->size[from]);
        if (sends)
            g->sending[to] = pm_transfer_send(r, to, TAG_GATHER, g->all + g->offset[r->rank],
                                              g->size[r->rank]);
        if ((receives && g->receiving[from] < 0) || (sends && g->sending[to] < 0))
            return -1;
    }
    g->begun = true;
    return 0;
}

static int move_gather(struct pm_replicas *r, struct pm_job *j, bool *moved)
{
    struct pm_replica_gather *g = (struct pm_replica_gather *)j;

    if (!g->begun && begin_gather(r, g) < 0)
        return -1;
    return pm_transfers_finished(r, g->receiving, &j->waiting, moved) &&
           pm_transfers_finished(r, g->sending, &j->waiting, moved);
}

struct pm_replica_gather *pm_replica_gather_create(struct pm_replicas *r, const size_t *sizes)
{
    struct pm_replica_gather *g = pm_calloc(1, sizeof *g);
    size_t total = 0;

    g->r = r;
    g->job.move = move_gather;
    g->size = pm_calloc((size_t)r->count, sizeof *g->size);
    g->offset = pm_calloc((size_t)r->count, sizeof *g->offset);
    for (int i = 0; i < r->count; i++) {
        g->size[i] = sizes[i];
        g->offset[i] = total;
        total += sizes[i];
    }
    g->all = pm_calloc(1, total + 1);
    g->sending = pm_transfers_create(r);
    g->receiving = pm_transfers_create(r);
    return g;
}

void pm_replica_gather_destroy(struct pm_replica_gather **gather)
{
    struct pm_replica_gather *g = *gather;

    if (!g)
        return;
    pm_job_abandon(g->r, &g->job);
    pm_job_free(g->r, g->all);
    pm_free(g->size);
    pm_free(g->offset);
    pm_free(g->sending);
    pm_free(g->receiving);
    pm_free(g);
    *gather = NULL;
}

void pm_replica_gather_start(struct pm_replica_gather *g, const void *own)
{
    if (g->size[g->r->rank] > 0) /* else own may be NULL */
        memcpy(g->all + g->offset[g->r->rank], own, g->size[g->r->rank]);
    g->begun = false;
    pm_job_submit(g->r, &g->job);
}

int pm_replica_gather_wait(struct pm_replica_gather *g, const void **all)
{
    *all = g->all;
    return pm_job_wait(g->r, &g->job);
}

int pm_replicas_allgather(struct pm_replicas *r, const void *own, size_t size, void *all)
{
    size_t *sizes = pm_calloc((size_t)r->count, sizeof *sizes);
    struct pm_replica_gather *g;
    const void *result;
    int err = PM_OK;

    for (int i = 0; i < r->count; i++)
        sizes[i] = size;
    g = pm_replica_gather_create(r, sizes);
    pm_replica_gather_start(g, own);
    PM_TRY(pm_replica_gather_wait(g, &result));
    memcpy(all, result, (size_t)r->count * size);
out:
    pm_replica_gather_destroy(&g);
    pm_free(sizes);
    return err;
}

int pm_replicas_gather_bytes(struct pm_replicas *r, bool to_all, const void *own, size_t size,
                             char **all, size_t *sizes)
{
    struct pm_replica_gather *g = NULL;
    const void *result;
    int err = PM_OK;

    *all = NULL;
    PM_TRY(pm_replicas_allgather(r, &size, sizeof size, sizes));
    g = pm_replica_gather_create(r, sizes);
    g->to_chief = !to_all;
    pm_replica_gather_start(g, own);
    PM_TRY(pm_replica_gather_wait(g, &result));
    if (to_all || r->rank == 0) {
        *all = g->all;
        g->all = NULL;
    }
out:
    pm_replica_gather_destroy(&g);
    return err;
}

/* ---- broadcast --------------------------------------------------------------------------- */

struct broadcast {
    struct pm_job job;
    int root;
    char *buffer;     /* one message: the root, too, sends from a copy, because the transport may
                       * still read it after a failure */
    size_t size;      /* of this message */
    bool begun;
    int *transfer;    /* [ranks]: to each rank at the root, else from the root */
};

static int begin_broadcast(struct pm_replicas *r, struct broadcast *b)
{
    for (int i = 0; i < r->count; i++) {
        if (i == r->rank || (r->rank != b->root && i != b->root))
            continue;
        b->transfer[i] = r->rank == b->root
                             ? pm_transfer_send(r, i, TAG_BROADCAST, b->buffer, b->size)
                             : r->row->receive(r->transport, i, TAG_BROADCAST, b->buffer, b->size);
        if (b->transfer[i] < 0)
            return -1;
    }
    b->begun = true;
    return 0;
}

static int move_broadcast(struct pm_replicas *r, struct pm_job *j, bool *moved)
{
    struct broadcast *b = (struct broadcast *)j;

    if (!b->begun && begin_broadcast(r, b) < 0)
        return -1;
    return pm_transfers_finished(r, b->transfer, &j->waiting, moved);
}

int pm_replicas_broadcast(struct pm_replicas *r, int root, void *data, size_t size)
{
    struct broadcast b = { .job.move = move_broadcast, .root = root };
    int err = PM_OK;

    b.transfer = pm_transfers_create(r);
    b.buffer = pm_malloc((size < CHUNK ? size : CHUNK) + 1);
    for (size_t at = 0; at < size; at += b.size) {
        b.size = size - at < CHUNK ? size - at : CHUNK;
        if (r->rank == root)
            memcpy(b.buffer, (const char *)data + at, b.size);
        b.begun = false;
        pm_job_submit(r, &b.job);
        PM_TRY(pm_job_wait(r, &b.job));
        if (r->rank != root)
            memcpy((char *)data + at, b.buffer, b.size);
    }
out:
    pm_job_free(r, b.buffer);
    pm_free(b.transfer);
    return err;
}

int pm_replicas_broadcast_bytes(struct pm_replicas *r, int root, char **data, size_t *size)
{
    uint64_t bytes = *size;
    int err = PM_OK;

    PM_TRY(pm_replicas_broadcast(r, root, &bytes, sizeof bytes));
    if (r->rank != root) {
        *data = pm_malloc((size_t)bytes + 1);
        (*data)[bytes] = '\0';
        *size = (size_t)bytes;
    }
    PM_TRY(pm_replicas_broadcast(r, root, *data, *size));
out:
    return err;
}

int pm_replicas_compare(struct pm_replicas *r, const char *text, int *rank,
                        struct pm_replica_texts *out)
{
    char own[PM_REPLICA_TEXT] = "", *all = pm_calloc((size_t)r->count, sizeof own);
    int err = PM_OK;

    snprintf(own, sizeof own, "%s", text);
    *rank = -1;
    PM_TRY(pm_replicas_allgather(r, own, sizeof own, all));
    memcpy(out->first, all, sizeof own);
    for (int i = 1; i < r->count && *rank < 0; i++)
        if (memcmp(all, all + (size_t)i * sizeof own, sizeof own) != 0) {
            *rank = i;
            memcpy(out->other, all + (size_t)i * sizeof own, sizeof own);
        }
out:
    pm_free(all);
    return err;
}
