/* processes: what commands share that run in several processes (replicas.h). */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "app/app.h"

#include <pumice/replicas.h>

/* The chief loads the config of the arguments for this command; the others receive it, resolved.
 * Each then has the values that the config sets for it (pm_config_for_replica). Each process keeps
 * run.task of its own command line; pm_train compares it with the rank. r: may not be NULL. */
int app_share_config(const struct app_args *args, const char *command, struct pm_replicas *r,
                     struct pm_arena *a, struct pm_config **out);
/* Lines of a process that is not the chief begin with its number and host. Only warnings are
 * printed, unless -v is given. r may be NULL. */
void app_mark_log(const struct pm_replicas *r, const struct app_globals *g);
/* Leaves the other processes, and prints the error in one of them. Returns the command's result.
 * *r may be NULL: this process runs alone, or has not joined the others because of err. */
int app_leave(struct pm_replicas **r, struct app_globals *g, int err);

#endif
