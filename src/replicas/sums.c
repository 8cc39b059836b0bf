/* sums: replicas.h has the contract.
 *
 * A piece of n floats goes through two phases. First every rank r sends to every rank k the k-th
 * part of its piece, and owns part r: it adds the parts that it receives, in the order of ranks.
 * Then it sends the sum to all. At most WINDOW pieces are under way, and piece n + WINDOW begins
 * after the end of piece n. Which piece is where depends on the network; the additions do not.
 *
 * Messages are sent from copies: after a failure, the transport may still read a message when the
 * caller has freed its array. What a rank does not send is not copied. */
#include "replicas/replicas_private.h"

#include "replicas/bfloat16.h"

#include <assert.h>
#include <string.h>

enum {
    PIECE = 1 << 18, /* floats: 1 MiB */
    WINDOW = 8,
    BLOCK = 2048, /* floats that are added at once, and stay in the cache */
    TAGS = WINDOW /* pieces that are under way at once never share a tag */
};
/* Both directions of all pieces; of a state and a gather. */
_Static_assert((2 * WINDOW + 4) * PM_MOST_RANKS <= PM_MOST_TRANSFERS, "too few transfers");

struct range {
    size_t offset, count;
    const float *from;
};

struct piece {
    int phase;            /* 0: free; 1: parts travel; 2: sums travel */
    size_t number;        /* of the piece in this sum */
    size_t offset, count;
    int *sending, *receiving; /* [ranks]; -1: none */
    const float *from;    /* [count], this rank's values */
    void *incoming;       /* [ranks][part]: floats, or bfloat16 */
    float *sent;          /* float32: [PIECE], the values for other ranks */
    uint16_t *halves;     /* bfloat16: [PIECE], all values, then the sums */
};

struct pm_replica_sum {
    struct pm_job job;
    struct pm_replicas *r; /* borrowed */
    size_t count;
    enum pm_replica_wire wire;
    struct range *ranges; /* [most_ranges]; owned, as is all below */
    int most_ranges;
    atomic_int ready;     /* ranges that were handed over */
    atomic_bool complete; /* no range follows */
    float *result, *own;  /* [count]; messages write to result. own: the same, or NULL; owned */
    struct piece piece[WINDOW];
    float *block;         /* [BLOCK] */
    /* Of the exchange thread. */
    int range;            /* the range of the next piece */
    size_t at;            /* floats of it that are in earlier pieces */
    size_t started;       /* pieces */
    int under_way;
};

/* Part k of a piece of n floats for `ranks` ranks begins here. */
static size_t part_begin(size_t n, int ranks, int k)
{
    return n * (size_t)k / (size_t)ranks;
}

static size_t part_size(size_t n, int ranks, int k)
{
    return part_begin(n, ranks, k + 1) - part_begin(n, ranks, k);
}

static size_t wire_bytes(const struct pm_replica_sum *s)
{
    return s->wire == PM_WIRE_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

/* Where the values of rank k for the own part arrive. */
static void *incoming_of(const struct pm_replica_sum *s, const struct piece *p, int k)
{
    const size_t most = PIECE / (size_t)s->r->count + 1;

    return (char *)p->incoming + (size_t)k * most * wire_bytes(s);
}

/* ---- sending and receiving --------------------------------------------------------------- */

static int tag_of(const struct piece *p, int phase)
{
    return TAG_PIECE + 2 * (int)(p->number % TAGS) + (phase - 1);
}

/* Sends to rank `to` and receives from rank `from`. */
static int exchange(struct pm_replica_sum *s, struct piece *p, int phase, int to, const void *out,
                    size_t out_floats, int from, void *in, size_t in_floats)
{
    struct pm_replicas *r = s->r;
    const size_t each = wire_bytes(s);

    if (in_floats > 0) {
        p->receiving[from] =
            r->row->receive(r->transport, from, tag_of(p, phase), in, in_floats * each);
        if (p->receiving[from] < 0)
            return -1;
    }
    if (out_floats > 0) {
        p->sending[to] = pm_transfer_send(r, to, tag_of(p, phase), out, out_floats * each);
        if (p->sending[to] < 0)
            return -1;
    }
    return 0;
}

static int send_parts(struct pm_replica_sum *s, struct piece *p)
{
    const int ranks = s->r->count, own = s->r->rank;
    const size_t mine = part_size(p->count, ranks, own);

    for (int k = 1; k < ranks; k++) {
        const int to = (own + k) % ranks, from = (own - k + ranks) % ranks;
        const size_t begin = part_begin(p->count, ranks, to);
        const void *out = s->wire == PM_WIRE_FLOAT32 ? (const void *)(p->sent + begin)
                                                     : (const void *)(p->halves + begin);

        if (exchange(s, p, 1, to, out, part_size(p->count, ranks, to), from,
                     incoming_of(s, p, from), mine) < 0)
            return -1;
    }
    p->phase = 1;
    return 0;
}

static int send_sums(struct pm_replica_sum *s, struct piece *p)
{
    const int ranks = s->r->count, own = s->r->rank;
    const size_t begin = part_begin(p->count, ranks, own);
    float *sums = s->result + p->offset;

    for (int k = 1; k < ranks; k++) {
        const int to = (own + k) % ranks, from = (own - k + ranks) % ranks;
        const size_t theirs = part_begin(p->count, ranks, from);
        const bool whole = s->wire == PM_WIRE_FLOAT32;

        if (exchange(s, p, 2, to,
                     whole ? (const void *)(sums + begin) : (const void *)(p->halves + begin),
                     part_size(p->count, ranks, own), from,
                     whole ? (void *)(sums + theirs) : (void *)(p->halves + theirs),
                     part_size(p->count, ranks, from)) < 0)
            return -1;
    }
    p->phase = 2;
    return 0;
}

/* ---- adding ------------------------------------------------------------------------------ */

/* Returns values begin .. begin + n - 1 of rank k's values for the own part, as floats. */
static const float *values_of(struct pm_replica_sum *s, const struct piece *p, int k, size_t begin,
                              size_t n)
{
    const size_t own = part_begin(p->count, s->r->count, s->r->rank);
    const uint16_t *halves;

    if (s->wire == PM_WIRE_FLOAT32)
        return k == s->r->rank ? p->from + own + begin
                               : (const float *)incoming_of(s, p, k) + begin;
    halves = k == s->r->rank ? p->halves + own : incoming_of(s, p, k);
    pm_bfloat16_to(s->block, halves + begin, n);
    return s->block;
}

/* Adds the own part in the order of ranks. */
static void add_part(struct pm_replica_sum *s, struct piece *p)
{
    const size_t own = part_begin(p->count, s->r->count, s->r->rank);
    const size_t count = part_size(p->count, s->r->count, s->r->rank);
    float *sums = s->result + p->offset + own;

    for (size_t begin = 0; begin < count; begin += BLOCK) {
        const size_t n = count - begin < BLOCK ? count - begin : BLOCK;

        memmove(sums + begin, values_of(s, p, 0, begin, n), n * sizeof *sums);
        for (int k = 1; k < s->r->count; k++) {
            const float *restrict values = values_of(s, p, k, begin, n);
            float *restrict to = sums + begin;

            for (size_t i = 0; i < n; i++)
                to[i] += values[i];
        }
    }
    if (s->wire == PM_WIRE_BFLOAT16)
        pm_bfloat16_from(p->halves + own, sums, count);
}

/* ---- the job ----------------------------------------------------------------------------- */

/* Whether all transfers of the piece are finished. */
static bool arrived(struct pm_replica_sum *s, struct piece *p, bool *moved)
{
    return pm_transfers_finished(s->r, p->receiving, &s->job.waiting, moved) &&
           pm_transfers_finished(s->r, p->sending, &s->job.waiting, moved);
}

/* Copies what will be sent. The own part is not copied. */
static void copy_values(struct pm_replica_sum *s, struct piece *p)
{
    const size_t own = part_begin(p->count, s->r->count, s->r->rank);
    const size_t end = own + part_size(p->count, s->r->count, s->r->rank);

    if (s->wire == PM_WIRE_BFLOAT16) {
        pm_bfloat16_from(p->halves, p->from, p->count);
        return;
    }
    memcpy(p->sent, p->from, own * sizeof *p->from);
    memcpy(p->sent + end, p->from + end, (p->count - end) * sizeof *p->from);
}

/* Takes the next piece of the ranges that are ready, if it belongs to this place of the window;
 * false: there is none. */
static bool take_piece(struct pm_replica_sum *s, struct piece *p)
{
    const int ready = atomic_load_explicit(&s->ready, memory_order_acquire);
    const struct range *g;

    while (s->range < ready && s->at == s->ranges[s->range].count)
        s->range++, s->at = 0;
    if (s->range == ready || p != &s->piece[s->started % WINDOW])
        return false;
    g = &s->ranges[s->range];
    p->number = s->started++;
    p->offset = g->offset + s->at;
    p->count = g->count - s->at < PIECE ? g->count - s->at : PIECE;
    p->from = g->from + s->at;
    copy_values(s, p);
    s->at += p->count;
    return true;
}

static int move_piece(struct pm_replica_sum *s, struct piece *p, bool *moved)
{
    if (p->phase == 1 && arrived(s, p, moved)) {
        add_part(s, p);
        if (send_sums(s, p) < 0)
            return -1;
    }
    if (p->phase == 2 && arrived(s, p, moved)) {
        if (s->wire == PM_WIRE_BFLOAT16)
            pm_bfloat16_to(s->result + p->offset, p->halves, p->count);
        p->phase = 0;
        s->under_way--;
    }
    if (p->phase == 0 && take_piece(s, p)) {
        s->under_way++;
        *moved = true;
        return send_parts(s, p);
    }
    return 0;
}

static int move_sum(struct pm_replicas *r, struct pm_job *j, bool *moved)
{
    struct pm_replica_sum *s = (struct pm_replica_sum *)j;
    const bool complete = atomic_load(&s->complete);

    (void)r;
    for (int i = 0; i < WINDOW; i++)
        if (move_piece(s, &s->piece[i], moved) < 0)
            return -1;
    return complete && s->under_way == 0 && !*moved &&
           s->range == atomic_load(&s->ready);
}

/* ---- for the trainer's thread ------------------------------------------------------------ */

struct pm_replica_sum *pm_replica_sum_create(struct pm_replicas *r, size_t count, int ranges,
                                             enum pm_replica_wire wire, float *result)
{
    struct pm_replica_sum *s = pm_calloc(1, sizeof *s);
    const size_t most = PIECE / (size_t)r->count + 1;

    s->r = r;
    s->job.move = move_sum;
    s->count = count;
    s->wire = wire;
    s->most_ranges = ranges;
    s->ranges = pm_calloc((size_t)ranges, sizeof *s->ranges);
    s->block = pm_calloc(BLOCK, sizeof *s->block);
    s->own = result ? NULL : pm_calloc(count + 1, sizeof *s->own);
    s->result = result ? result : s->own;
    for (int i = 0; i < WINDOW; i++) {
        struct piece *p = &s->piece[i];

        p->sending = pm_transfers_create(r);
        p->receiving = pm_transfers_create(r);
        p->incoming = pm_calloc((size_t)r->count * most, wire_bytes(s));
        if (wire == PM_WIRE_BFLOAT16)
            p->halves = pm_calloc(PIECE, sizeof *p->halves);
        else
            p->sent = pm_calloc(PIECE, sizeof *p->sent);
    }
    return s;
}

void pm_replica_sum_destroy(struct pm_replica_sum **sum)
{
    struct pm_replica_sum *s = *sum;

    if (!s)
        return;
    pm_job_abandon(s->r, &s->job);
    for (int i = 0; i < WINDOW; i++) {
        pm_job_free(s->r, s->piece[i].incoming);
        pm_job_free(s->r, s->piece[i].sent);
        pm_job_free(s->r, s->piece[i].halves);
        pm_free(s->piece[i].sending);
        pm_free(s->piece[i].receiving);
    }
    pm_job_free(s->r, s->own);
    pm_free(s->block);
    pm_free(s->ranges);
    pm_free(s);
    *sum = NULL;
}

void pm_replica_sum_start(struct pm_replica_sum *s)
{
    atomic_store(&s->ready, 0);
    atomic_store(&s->complete, false);
    s->range = 0;
    s->at = s->started = 0;
    pm_job_submit(s->r, &s->job);
}

void pm_replica_sum_add(struct pm_replica_sum *s, size_t offset, size_t count, const float *from)
{
    const int n = atomic_load(&s->ready);

    assert(n < s->most_ranges && offset <= s->count && count <= s->count - offset);
    s->ranges[n] = (struct range){ offset, count, from };
    atomic_store_explicit(&s->ready, n + 1, memory_order_release);
}

int pm_replica_sum_wait(struct pm_replica_sum *s, const float **result)
{
    *result = s->result;
    atomic_store(&s->complete, true);
    return pm_job_wait(s->r, &s->job);
}
