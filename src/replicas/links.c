/* links: measures the connection of every two ranks. A message goes there and back, again and
 * again; half of the time is that of one message. The exchange thread polls without naps for up to
 * 2 ms at a time, so that the result is the network's time and not that of the naps. */
#include "replicas/replicas_private.h"

#include <string.h>

enum { SHORT = 8, LONG = 4 << 20 }; /* bytes of a message */
enum { WARM_UP = 2, MOST_ROUNDS = 1000 };
static const double measured_seconds = 0.2, poll_seconds = 2e-3;

struct probe {
    struct pm_job job;
    int other;
    bool begins;         /* this rank sends first, and measures */
    size_t size;
    char *out, *in;      /* [size]; the first byte is 1 in the last round */
    int sending, receiving;
    bool begun, answered; /* this round */
    int rounds;          /* that have ended, WARM_UP included */
    double began;        /* pm_seconds after the warm-up */
    double seconds;      /* result: of one message */
};

static int begin_round(struct pm_replicas *r, struct probe *p)
{
    if (p->begins) {
        p->out[0] = p->rounds + 1 >= WARM_UP + MOST_ROUNDS ||
                    (p->rounds > WARM_UP && pm_seconds() - p->began > measured_seconds);
        p->sending = pm_transfer_send(r, p->other, TAG_PROBE, p->out, p->size);
        if (p->sending < 0)
            return -1;
    }
    p->receiving = r->row->receive(r->transport, p->other, TAG_PROBE, p->in, p->size);
    p->begun = true;
    return p->receiving < 0 ? -1 : 0;
}

static bool is_done(struct pm_replicas *r, int *transfer)
{
    if (*transfer >= 0 && r->row->finished(r->transport, *transfer))
        *transfer = -1;
    return *transfer < 0;
}

/* Returns 1 after the last round, 0 if messages are under way, 2 if another step follows. */
static int advance(struct pm_replicas *r, struct probe *p)
{
    if (!p->begun)
        return begin_round(r, p) < 0 ? -1 : 2;
    if (!is_done(r, &p->receiving) || !is_done(r, &p->sending))
        return 0;
    if (!p->begins && !p->answered) {
        p->answered = true;
        memcpy(p->out, p->in, p->size);
        p->sending = pm_transfer_send(r, p->other, TAG_PROBE, p->out, p->size);
        return p->sending < 0 ? -1 : 2;
    }
    p->begun = p->answered = false;
    p->rounds++;
    if (p->begins && p->rounds == WARM_UP)
        p->began = pm_seconds();
    if (!p->out[0])
        return 2;
    p->seconds = p->begins ? (pm_seconds() - p->began) / (2.0 * (p->rounds - WARM_UP)) : 0;
    return 1;
}

static int move_probe(struct pm_replicas *r, struct pm_job *j, bool *moved)
{
    struct probe *p = (struct probe *)j;
    const double until = pm_seconds() + poll_seconds;
    int state;

    atomic_store(&j->waiting, p->other);
    *moved = true;
    do {
        if (r->row->poll(r->transport) < 0)
            return -1;
        state = advance(r, p);
        if (state == 1 || state < 0)
            return state;
    } while (state == 2 || pm_seconds() < until);
    return 0;
}

static int probe(struct pm_replicas *r, int other, bool begins, size_t size, double *seconds)
{
    struct probe p = { .job.move = move_probe, .other = other, .begins = begins, .size = size,
                       .sending = -1, .receiving = -1 };
    int err = PM_OK;

    p.out = pm_calloc(1, size);
    p.in = pm_calloc(1, size);
    pm_job_submit(r, &p.job);
    PM_TRY(pm_job_wait(r, &p.job));
    *seconds = p.seconds;
out:
    pm_job_free(r, p.out);
    pm_job_free(r, p.in);
    return err;
}

int pm_replicas_measure(struct pm_replicas *r, int a, int b, struct pm_replica_link *out)
{
    const int other = r->rank == a ? b : a;
    double seconds[2] = { 0 };
    int err = PM_OK;

    if (r->rank == a || r->rank == b) {
        PM_TRY(probe(r, other, r->rank == a, SHORT, &seconds[0]));
        PM_TRY(probe(r, other, r->rank == a, LONG, &seconds[1]));
    }
    PM_TRY(pm_replicas_broadcast(r, a, seconds, sizeof seconds));
    out->latency = seconds[0];
    out->bytes_per_second = seconds[1] > 0 ? LONG / seconds[1] : 0;
out:
    return err;
}
