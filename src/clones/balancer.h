/* balancer: shares of the batch by measured speed (run.balance "auto"). An integrated GPU beside a
 * discrete one then helps instead of slowing it down. The balancer measures once, over a few steps
 * after the first ones, and keeps the shares in RUN/shares.json. A resumed run therefore has the
 * same shares and the same bits. */
#ifndef PM_BALANCER_H
#define PM_BALANCER_H

#include "clones/clones.h"

/* A clone, of this process or of another one. The texts are borrowed. */
struct pm_balanced {
    const char *host;   /* NULL: the process trains alone */
    const char *device; /* its name */
    double share;       /* of the batch, relative to the other clones; > 0 */
};
enum { PM_BALANCE_STEPS = 6 }; /* measured */
struct pm_balancer {
    int step;          /* steps measured or skipped so far; -1: finished */
    bool moved;        /* the last measurement changed the shares */
    double *seconds;   /* [count][PM_BALANCE_STEPS] per example; owned */
    struct pm_balanced *clones; /* [count], owned; the caller fills it in */
    int count;         /* of the clones of all processes */
};
/* Starts a measurement; b is empty or was freed. */
void pm_balancer_start(struct pm_balancer *b, int count);
void pm_balancer_free(struct pm_balancer *b);
/* Measures a step of several clones. Returns true once the measurement is complete: the shares in
 * b->clones are final and should be saved. `moved` says whether they changed enough to make new
 * plans worthwhile. */
bool pm_balancer_step(struct pm_balancer *b, const struct pm_clones *c);
/* Logs the shares. Call it after a measurement that changed them. */
void pm_balancer_say(const struct pm_balancer *b);
/* Sets the shares to those of an earlier start; false if there are none for these clones. */
bool pm_balancer_load(const char *run, struct pm_balanced *clones, int count);
int pm_balancer_save(const char *run, const struct pm_balanced *clones, int count);

#endif
