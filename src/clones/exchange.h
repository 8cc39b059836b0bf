/* exchange: how the gradients of a step become one update, and how the new values reach every clone.
 *
 *     none   one clone: the optimizer's calls are part of its own plan, nothing is exchanged
 *     host   several clones of one process: gradients are summed in host memory, in the order of the
 *            clones, and the optimizer updates a master copy on the host
 *
 * A row for several processes (MPI) can be added. Its processes each own a slice of the batch. */
#ifndef PM_EXCHANGE_H
#define PM_EXCHANGE_H

#include "clones/clones.h"

struct pm_exchange; /* what a row keeps; opaque to everybody else */

struct pm_exchange_row {
    const char *name;
    /* The optimizer runs in the clones' plans, on their variables. False: elsewhere, and the plans
     * give their gradients in buckets. */
    bool on_clones;
    /* update() waits for the clones: no step is under way after it. */
    bool waits;
    /* The examples of the whole batch that this process computes. */
    struct pm_batch_slice (*slice)(int batch);

    /* Empty state, before any clone is made; never fails. */
    struct pm_exchange *(*create)(struct pm_clones *c);
    /* Clone i has been made, in order. Neither join nor open is called in a dry run. */
    int (*join)(struct pm_exchange *x, int i);
    /* All clones have joined. */
    int (*open)(struct pm_exchange *x);
    /* Before the clones are destroyed. */
    void (*destroy)(struct pm_exchange *x);

    /* After the clones' plans were submitted for this slot: the update, unless it is in those plans.
     * A row that waits completes the step's result here. */
    int (*update)(struct pm_exchange *x, int slot, const struct pm_step *step,
                  struct pm_step_result *r);
    /* Waits for the step of the slot and completes its result. */
    int (*collect)(struct pm_exchange *x, int slot, struct pm_step_result *r);

    /* As pm_clones_master, _update_plan, _gather and _scatter. */
    struct pm_variables *(*master)(const struct pm_exchange *x);
    struct pm_plan *(*update_plan)(const struct pm_exchange *x);
    int (*gather)(struct pm_exchange *x);
    int (*scatter)(struct pm_exchange *x);
    /* Brings the variables' moving averages to clone 0. */
    int (*give_averages)(struct pm_exchange *x);
};
extern const struct pm_exchange_row pm_exchange_none, pm_exchange_host;

/* slice() of rows within one process. */
static inline struct pm_batch_slice pm_exchange_whole_batch(int batch)
{
    return (struct pm_batch_slice){ 0, batch };
}

#endif
