/* balancer: shares of the batch by measured speed (run.balance "auto"), so that an integrated GPU
 * beside a discrete one helps instead of holding it back. Measured once, over a few steps after the
 * first ones, then kept in RUN/shares.json: a resumed run has the same shares and so the same bits. */
#ifndef PM_BALANCER_H
#define PM_BALANCER_H

#include "clones/clones.h"

struct pm_balancer {
    int step;          /* steps seen; -1: settled */
    bool moved;        /* the last measurement changed the shares */
    double *seconds;   /* per clone: sum of seconds per example; owned */
    int count;
};
void pm_balancer_start(struct pm_balancer *b, int count);
void pm_balancer_free(struct pm_balancer *b);
/* After a step of several clones. True when enough was seen: the shares are settled and to be kept;
 * `moved` says whether they differ enough from the old ones to be worth planning again. */
bool pm_balancer_step(struct pm_balancer *b, const struct pm_clones *c, struct pm_clone_spec *specs);
/* Shares of an earlier start; false when there are none for these devices. */
bool pm_balancer_load(const char *run, struct pm_clone_spec *specs, int count);
int pm_balancer_save(const char *run, const struct pm_clone_spec *specs, int count);

#endif
