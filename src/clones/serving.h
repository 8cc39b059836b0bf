/* serving: the thread of a process that answers the requests of an asynchronous training. It
 * applies gradients to the variables of this process (owner.h), and in rank 0 it also counts the
 * updates of all workers and assigns the numbers of batches.
 *
 * Synchronous training with backups uses it, too: an update is the mean of the first R of all
 * workers' gradients of a step. A worker stores its gradient at all owners, and reports that to
 * rank 0. When R workers have done so, rank 0 decides that the step consists of these. Each worker
 * then fetches the new values, and the first to do so makes an owner compute them. Gradients that
 * come later are dropped. The choice is one for all variables. */
#ifndef PM_SERVING_H
#define PM_SERVING_H

#include "clones/owner.h"

#include <pumice/config.h>
#include <pumice/replicas.h>

/* The roles of ranks: ranks 0 .. workers - 1 train. Owner k is rank first_owner + k. */
struct pm_servers_ranks {
    int workers, owners, first_owner;
};
/* What a worker's exchange needs. */
struct pm_servers_link {
    struct pm_servers_ranks ranks;
    struct pm_replica_inbox *inbox; /* borrowed */
    int backups;           /* R: gradients of an update; 0: asynchronous */
    struct pm_replica_call *tally; /* backups: requests to rank 0; borrowed */
    uint64_t step;         /* backups: of the next update, as this worker knows it */
    int stop;              /* backups: as in pm_tally_answer */
    uint64_t skipped;      /* backups: damaged records of the next push */
    int (*signal)(void);   /* backups: the signal that the process has received; 0: none */
    bool begun;            /* owners have their values; before, collecting does nothing */
    uint64_t staleness;    /* of the last push: the most updates of other workers that an owner made
                            * between reading and pushing */
};

/* Lines: requests of the trainer's thread, and of the loader's threads. */
enum { PM_LINE_TRAINER, PM_LINE_LOADER };
enum pm_ask {
    PM_ASK_PUSH = 1,  /* word: push_word; data: a part (owner.h). Reply: push_answer, new values */
    PM_ASK_COLLECT,   /* reply: push_answer, the part's state */
    /* Backups. */
    PM_ASK_STORE,     /* as PM_ASK_PUSH, but keeps the gradient; reply: nothing */
    PM_ASK_VALUES,    /* word: decision. Reply: push_answer, the values after that update */
    PM_ASK_STORED,    /* to rank 0; word: tally_word. The gradient of a step is at all owners.
                       * Reply, when the step is decided: decision */
    PM_ASK_GO,        /* to rank 0, from itself: steps may be decided again */
    /* To rank 0; word: tally_word; reply: tally_answer. */
    PM_ASK_NUMBER,    /* draws the number of a batch */
    PM_ASK_DONE,      /* an update has ended */
    PM_ASK_COUNT,     /* reports nothing, except perhaps a signal */
    PM_ASK_FINISHED,  /* the worker makes no more updates */
};
struct pm_push_word {
    struct pm_step step;
    uint64_t version;      /* updates of the owner that the worker had read */
    int32_t moving;        /* clones that are in the moving averages */
};
struct pm_push_answer {
    uint64_t version;      /* updates of the owner, with this one */
    uint64_t staleness;    /* its updates between reading and this one */
};
struct pm_tally_word {
    uint64_t staleness;
    uint64_t skipped;      /* damaged records that were replaced in the update's batch */
    int32_t stop;          /* the signal that the process has received; 0: none */
    uint64_t step;         /* of PM_ASK_STORED */
};
/* The last decided step. */
struct pm_decision {
    uint64_t count;        /* updates that have been decided, those before this start included */
    int32_t stop;          /* as in tally_answer */
    uint8_t set[PM_MOST_PROCESSES / 8]; /* bit k % 8 of byte k / 8: worker k's gradient is in it */
};
struct pm_tally_answer {
    uint64_t count;        /* updates of all workers */
    uint64_t number;       /* of the drawn batch */
    int32_t none;          /* 1: there is no batch left, or training stops */
    int32_t stop;          /* workers make no further step: the signal; -1: rank 0 ends */
};

struct pm_serving_options {
    struct pm_servers_ranks ranks;
    struct pm_replica_inbox *inbox; /* borrowed, as owner */
    struct pm_owner *owner;         /* NULL: this process holds no variables */
    uint64_t first;        /* updates made so far */
    uint64_t limit;        /* updates in all; UINT64_MAX: no limit */
    int backups;           /* as in pm_servers_link */
    /* PM_ORDER=0,1,1,0, for tests: owners take gradients in this order of workers, again and again,
     * and numbers of batches are dealt in it. NULL: as they come. */
    const char *order;
};
struct pm_serving;
/* Starts the thread. */
int pm_serving_start(const struct pm_serving_options *o, struct pm_serving **out);
/* Ends the thread, which need not have ended. */
void pm_serving_destroy(struct pm_serving **s);

/* Of rank 0; for the trainer's thread. */
struct pm_tally_view {
    uint64_t count, skipped;
    double staleness;      /* mean of the updates since the last view; NAN: none */
    uint64_t stalest;      /* the largest of these */
    int stop;
    int running;           /* the first worker that has not finished; -1: all have */
};
/* take: the means begin anew. */
void pm_serving_view(struct pm_serving *s, bool take, struct pm_tally_view *out);
/* Backups: returns the gradients of each worker, [workers], that came too late since the last
 * call. */
const uint64_t *pm_serving_dropped(struct pm_serving *s);
/* Workers make no further step. */
void pm_serving_stop(struct pm_serving *s);
/* The updates that the owner of this process has made, and those before. */
uint64_t pm_serving_updates(struct pm_serving *s);
/* Whether the thread has ended. */
bool pm_serving_ended(struct pm_serving *s);

#endif
