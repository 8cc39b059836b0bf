/* remote: the worker's side of asynchronous training. Owners (owner.h), in this process or others,
 * hold the variables. A worker prepares its gradient with the values that it has read, sends each
 * owner its part, and receives the part's new values, which may contain updates of other workers.
 * The exchange `host` uses it in place of its own update. */
#ifndef PM_REMOTE_H
#define PM_REMOTE_H

#include "clones/moving.h"
#include "clones/owner.h"
#include "clones/serving.h"

struct pm_remote;
/* v: the worker's copy of the variables. link: borrowed, as v. */
struct pm_remote *pm_remote_create(struct pm_servers_link *link, struct pm_variables *v);
void pm_remote_destroy(struct pm_remote **r);
/* Sends a gradient to all owners, and replaces v's values by the replies. plan: the ended run of
 * pm_update_prepare_append, whose gradients are finite. moving: combined (pm_moving_combine). Sets
 * link->staleness. */
int pm_remote_push(struct pm_remote *r, const struct pm_plan *plan, const struct pm_moving *moving,
                   const struct pm_step *step);
/* The same for training with backups (serving.h): returns when the step has been decided, with the
 * values after it; sets link->step and link->stop. */
int pm_remote_push_backed(struct pm_remote *r, const struct pm_plan *plan,
                          const struct pm_moving *moving, const struct pm_step *step);
/* Replaces v's values, slots and averages by those of the owners. */
int pm_remote_collect(struct pm_remote *r);

#endif
