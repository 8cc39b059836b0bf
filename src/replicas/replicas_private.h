/* replicas_private: shared by the files of src/replicas.
 *
 * A job is one exchange. The trainer's thread appends it to a list; the exchange thread calls its
 * move() until it is finished. */
#ifndef PM_REPLICAS_PRIVATE_H
#define PM_REPLICAS_PRIVATE_H

#include "replicas/transport.h"

#include <pumice/replicas.h>

#include <pthread.h>
#include <stdatomic.h>

/* TAG_PIECE .. TAG_REQUEST - 1: of sums. TAG_REQUEST and above: two for each line of requests. */
enum {
    TAG_STATE = 1, TAG_GATHER, TAG_BROADCAST, TAG_PROBE, TAG_PIECE, TAG_REQUEST = TAG_PIECE + 64
};

struct pm_job {
    /* Moves the job on. Returns 1 if it is finished, else 0, or -1 if the transport failed. Sets
     * *moved if anything happened. */
    int (*move)(struct pm_replicas *r, struct pm_job *j, bool *moved);
    struct pm_job *next;
    bool submitted, finished; /* under the lock */
    atomic_int waiting;   /* a rank from which something is missing, or -1 */
};

/* A rank sends this struct to each other rank every second. All ranks must have the same byte
 * order, which pm_trainer_compare checks. */
struct rank_state {
    uint64_t step;
    double since;         /* seconds in this phase */
    int32_t phase;        /* enum pm_replica_phase */
    int32_t leaving;      /* 1: the sender ends; this is its last state */
    int32_t failure;      /* PM_E... of the sender's own failure; else 0 */
    int32_t asks;         /* 1: the receiver must send its state at once */
    int32_t stopping;     /* 1: a signal asks the sender to end */
    char text[480];       /* message of the failure */
};

struct rank {
    char host[64];
    struct rank_state state; /* last received */
    struct rank_state incoming, outgoing;
    bool due;             /* the next state must be sent to this rank */
    bool asks;            /* that state asks for the rank's own */
    bool knows;           /* this rank has received the last state, `leaving` */
    int receiving;        /* transfer of the next state; -1: none */
    int sending;          /* transfer of this process's state to it; -1: none */
    double heard_at;      /* pm_seconds of its last state */
};

struct pm_kept { void (*release)(void *); void *object; };

struct pm_replicas {
    const struct pm_transport_row *row;
    void *ctx;            /* for row->open; borrowed */
    void *library;        /* the plug-in; NULL: none */
    struct pm_transport *transport;
    int rank, count;
    atomic_uint_least64_t sent; /* bytes given to row->send */
    struct rank *ranks;   /* [count], owned; written by the exchange thread under the lock */

    pthread_t thread;
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t wake;  /* the exchange thread has work */
    pthread_cond_t moved; /* a job is finished, or something failed */
    struct pm_job *jobs;
    bool opened, quit;
    bool orderly;         /* close waits for the others */

    struct rank_state own;
    double phase_at;      /* pm_seconds when own.phase began */
    double state_at;      /* when the last states were sent */
    bool state_due;       /* send now */
    double checked_at;    /* when the exchange thread last looked for silent ranks */
    int failure, failed_rank; /* PM_E... of the first failure; its rank, -1: found by this one */
    char failure_text[640];
    double hang_seconds, step_seconds, stop_seconds;
    double asked_at;      /* pm_seconds when *stop was first seen; 0: it was not */
    bool stopped;         /* gave up because the signal left no time */
    const volatile sig_atomic_t *stop;
    struct pm_kept *kept; /* what messages may still use after a failure; released at the end */
    size_t kept_count, kept_capacity;
};

/* ---- messages.c -------------------------------------------------------------------------- */

/* Begins to send, and counts the bytes. Returns the number of the transfer, or -1 after a
 * failure. For the exchange thread. */
int pm_transfer_send(struct pm_replicas *r, int to, int tag, const void *data, size_t size);
/* Returns an array [ranks] of numbers of transfers, all -1: none. Free it with pm_free. */
int *pm_transfers_create(const struct pm_replicas *r);
/* Whether all transfers in such an array are finished. Sets those that are to -1, and *moved. Else
 * *waiting is the first rank whose transfer is not finished. For the exchange thread. */
bool pm_transfers_finished(struct pm_replicas *r, int *number, atomic_int *waiting, bool *moved);

/* ---- exchange_thread.c ------------------------------------------------------------------- */

/* Waits on a condition until it is signalled or the time is over. The lock is held. */
void pm_replicas_wait(struct pm_replicas *r, pthread_cond_t *condition, double seconds);

/* Starts the thread, which opens the transport. */
int pm_exchange_thread_start(struct pm_replicas *r);
/* Ends it, and closes the transport. */
void pm_exchange_thread_end(struct pm_replicas *r);
/* pm_replicas_release of memory of pm_malloc. */
void pm_job_free(struct pm_replicas *r, void *memory);
/* Gives up a job that was submitted but not waited for, because this process fails. Does nothing if
 * the job is finished, or was never submitted. */
void pm_job_abandon(struct pm_replicas *r, struct pm_job *j);
void pm_job_submit(struct pm_replicas *r, struct pm_job *j);
/* Waits for a submitted job. After a failure the exchange thread no longer touches the job, but its
 * messages may still arrive: free memory that receives them with pm_job_free. */
int pm_job_wait(struct pm_replicas *r, struct pm_job *j);
/* Records the first failure; later ones are ignored. rank: the rank that failed; -1: this process
 * found the failure. The lock is held. */
void pm_replicas_record(struct pm_replicas *r, int failure, int rank, const char *text);
/* Records a failure of the transport, with the transport's error text. The lock is not held. */
void pm_replicas_record_transport(struct pm_replicas *r);

/* ---- rank_states.c ------------------------------------------------------------------------ */

/* Sends and receives states that are due. Called by the exchange thread without the lock. Returns
 * -1 if the transport failed. */
int pm_rank_states_move(struct pm_replicas *r, bool *moved);
/* Seconds until states are due. The lock is held. */
double pm_rank_states_due(const struct pm_replicas *r);
/* Describes what a rank does: "rank 2 (hostb): step 812, in evaluation since 14 s". The lock is
 * held. */
void pm_rank_states_describe(const struct pm_replicas *r, int rank, char *out, size_t size);

#endif
