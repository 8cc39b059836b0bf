/* clones_parts: shared by clones.c, which makes the clones, clones_step.c and the exchanges. */
#ifndef PM_CLONES_PARTS_H
#define PM_CLONES_PARTS_H

#include "clones/clones.h"

#include "clones/exchange.h"
#include "net/sizes.h"

struct clone {
    struct pm_clones *of;    /* borrowed */
    struct pm_device *device;
    struct pm_variables *variables;
    struct pm_sizes *sizes;  /* owned: the nets and plans */
    struct pm_plan **plan;   /* [frames], those of `sizes` */
    struct pm_sizes *observed; /* owned: the same for observed steps; NULL: none */
    bool observing;          /* make_plan makes a plan for them */
    int first, count;        /* examples of the whole batch */
    double seconds;
};

/* The clones of all processes. */
struct clones_among {
    int count, first;        /* number; index of this process's first clone */
    int *examples;           /* [count] of their parts; owned */
    double *seconds;         /* [count] of the last step, with the waiting for data; owned */
    int lost_rank;           /* see pm_clones_lost_rank */
};

/* A size of training pictures. */
struct clones_frame {
    struct pm_frame frame;
    char name[40];           /* of its plans */
    size_t *bytes;           /* [fields] of one example; owned */
};

struct pm_clones {
    struct pm_clones_options o;
    struct pm_clone_spec *specs; /* owned copy */
    struct pm_field *fields;     /* owned copy */
    struct clones_frame *frames; /* [o.frames_count], owned */
    int *frame_at;               /* per slot: index of its step's frame */
    bool *observed_at;           /* per slot: its step is observed */
    bool observe;                /* the next step is */
    int observed_slot;           /* of the last observed step */
    struct clone *clone;
    struct clones_among among;
    const struct pm_exchange_row *row;
    struct pm_exchange *exchange; /* owned, made by the row */
    struct pm_batch_slice slice; /* of the whole batch: the examples of all clones together */
    struct pm_variables averaged; /* clone 0's, with averages as values */
    struct pm_step_result *result; /* per slot */
    struct pm_loss_part *parts;  /* owned: of each slot's result, then of one plan */
    int losses;                  /* number of loss layers */
    double *loss;                /* owned: [clones][1 + losses], of the last finished step: the
                                  * clone's share of the batch's loss, then of each loss layer */
    bool *pending;
};

/* Whether clone i's plan updates batch norm's moving averages from its part of the batch. */
static inline bool pm_clones_moves(const struct pm_clones *c, int i)
{
    const int from = c->o.batch_norm_update, at = c->among.first + i;

    return from == PM_BATCH_NORM_ALL || at == (from == PM_BATCH_NORM_LAST ? c->among.count - 1 : 0);
}

/* Whether the host computes the moving averages, from those of the clones that move. */
static inline bool pm_clones_share_moving(const struct pm_clones *c)
{
    return c->o.update.all;
}

/* Returns the index of a frame of the options, or -1. */
int pm_clones_find_frame(const struct pm_clones *c, struct pm_frame frame);

/* clones_step.c. Waits for the clones' plans of the slot; sets c->loss and the clones' seconds. */
int pm_clones_finish(struct pm_clones *c, int slot);
/* Adds the losses of clone `at` among all clones to the result, whose losses must be 0 before clone
 * 0. loss: as c->loss of one clone. The sum depends on the order of the clones. */
void pm_clones_add_loss(struct pm_clones *c, int slot, int at, const double *loss,
                        struct pm_step_result *r);
/* Both for a process that trains alone: finishes, and adds its clones' losses. */
int pm_clones_finish_all(struct pm_clones *c, int slot, struct pm_step_result *r);
/* Sets norms, l2 and finite from the optimizer's plan of this step. */
void pm_clones_read_update(struct pm_plan *plan, int slot, struct pm_step_result *r);

#endif
