/* balancer: shares of the batch by measured speed (run.balance "auto"). An integrated GPU beside a
 * discrete one then helps instead of slowing it down. The balancer measures once, over a few steps
 * after the first ones, and keeps the shares in RUN/shares.json. A resumed run therefore has the
 * same shares and the same bits. */
#ifndef PM_BALANCER_H
#define PM_BALANCER_H

#include "clones/clones.h"

struct pm_balancer {
    int step;          /* steps measured or skipped so far; -1: finished */
    bool moved;        /* the last measurement changed the shares */
    double *seconds;   /* per clone: sum of seconds per example; owned */
    int count;
};
void pm_balancer_start(struct pm_balancer *b, int count);
void pm_balancer_free(struct pm_balancer *b);
/* Measures a step of several clones. Returns true once the measurement is complete: the shares are
 * final and should be saved. `moved` says whether they changed enough to make new plans
 * worthwhile. */
bool pm_balancer_step(struct pm_balancer *b, const struct pm_clones *c,
                      struct pm_clone_spec *specs);
/* Loads the shares of an earlier start; false if there are none for these devices. */
bool pm_balancer_load(const char *run, struct pm_clone_spec *specs, int count);
int pm_balancer_save(const char *run, const struct pm_clone_spec *specs, int count);

#endif
