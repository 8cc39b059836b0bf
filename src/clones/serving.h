/* serving: the thread of a process that answers the requests of an asynchronous training. It
 * applies gradients to the variables of this process (owner.h), and in rank 0 it also counts the
 * updates of all workers and deals the numbers of batches. */
#ifndef PM_SERVING_H
#define PM_SERVING_H

#include "clones/owner.h"

#include <pumice/replicas.h>

/* The roles of ranks: ranks 0 .. workers - 1 train. Owner k is rank first_owner + k. */
struct pm_servers_ranks {
    int workers, owners, first_owner;
};
/* What a worker's exchange needs. */
struct pm_servers_link {
    struct pm_servers_ranks ranks;
    struct pm_replica_inbox *inbox; /* borrowed */
    bool begun;            /* owners have their values; before, collecting does nothing */
    uint64_t staleness;    /* of the last push: the most updates of other workers that an owner made
                            * between reading and pushing */
};

/* Lines: requests of the trainer's thread, and of the loader's threads. */
enum { PM_LINE_TRAINER, PM_LINE_LOADER };
enum pm_ask {
    PM_ASK_PUSH = 1,  /* word: push_word; data: a part (owner.h). Reply: push_answer, new values */
    PM_ASK_COLLECT,   /* reply: push_answer, the part's state */
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
/* Workers make no further step. */
void pm_serving_stop(struct pm_serving *s);
/* The updates that the owner of this process has made, and those before. */
uint64_t pm_serving_updates(struct pm_serving *s);
/* Whether the thread has ended. */
bool pm_serving_ended(struct pm_serving *s);

#endif
