/* exchange: turns the gradients of a step into one update, and sends the new values to every clone.
 *
 *     none   one clone: the optimizer's calls are part of its own plan, nothing is exchanged
 *     host   several clones: gradients are summed in host memory, in the order of the clones, and
 *            the optimizer updates a master copy on the host. With several processes the sum goes
 *            on over them (across.h), and each makes the same update of its own master copy. In
 *            asynchronous training owners make the update (remote.h) */
#ifndef PM_EXCHANGE_H
#define PM_EXCHANGE_H

#include "clones/clones.h"

struct pm_exchange; /* a row's private state */

struct pm_exchange_row {
    const char *name;
    /* The optimizer runs in the clones' plans, on their variables. False: it runs elsewhere, and
     * the plans output their gradients in buckets. */
    bool on_clones;
    /* Whether update() waits for the clones: no step is under way after it. */
    bool waits;

    /* Creates an empty state, before any clone is made; never fails. */
    struct pm_exchange *(*create)(struct pm_clones *c);
    /* Called after clone i has been made, in order. Neither join nor open is called in a dry
     * run. */
    int (*join)(struct pm_exchange *x, int i);
    /* Called after all clones have joined. */
    int (*open)(struct pm_exchange *x);
    /* Called before the clones are destroyed. */
    void (*destroy)(struct pm_exchange *x);

    /* Called after the clones' plans were submitted for this slot. Runs the update, unless it is in
     * those plans. A row that waits completes the step's result here. */
    int (*update)(struct pm_exchange *x, int slot, const struct pm_step *step,
                  struct pm_step_result *r);
    /* Called after a step failed because a device was lost, of this or of another process. Informs
     * the other processes, and takes part in the rest of the step's exchanges with numbers that all
     * ignore. Returns err, or the failure of another process. NULL: there are none. */
    int (*withdraw)(struct pm_exchange *x, int slot, int err);
    /* Waits for the step of the slot and completes its result. */
    int (*collect)(struct pm_exchange *x, int slot, struct pm_step_result *r);

    /* See pm_clones_master, _update_plan, _gather and _scatter. */
    struct pm_variables *(*master)(const struct pm_exchange *x);
    struct pm_plan *(*update_plan)(const struct pm_exchange *x);
    int (*gather)(struct pm_exchange *x);
    int (*scatter)(struct pm_exchange *x);
    /* Copies the variables' moving averages to clone 0. */
    int (*give_averages)(struct pm_exchange *x);
    /* See pm_clones_word and _word_of. NULL: the row has no other processes. */
    struct pm_step_word *(*word)(struct pm_exchange *x);
    const struct pm_step_word *(*word_of)(const struct pm_exchange *x, int rank);
};
extern const struct pm_exchange_row pm_exchange_none, pm_exchange_host;

#endif
