/* recompute: chooses which values of the forward pass are dropped and recomputed in the backward
 * pass, so that activations need less memory. It also rewrites the list of calls. */
#ifndef PM_RECOMPUTE_H
#define PM_RECOMPUTE_H

#include "net/calls.h"

struct pm_recomputed {
    size_t live_without; /* largest sum of live values if every value is kept */
    size_t limit;  /* requested limit in bytes */
    size_t peak;   /* peak reached, in bytes */
    int again;     /* calls of a micro-batch that run twice */
    double work;   /* their cost, as a share of the micro-batch's calls */
};
/* Reduces the largest sum of live values to limit bytes, or as far as possible, at little cost. If
 * share > 0, the limit is at most that share of the peak with every value kept. c is rewritten
 * unless nothing is dropped. Scratch must have been added. Lifetimes are correct afterwards. */
void pm_recompute(struct pm_calls *c, size_t limit, double share, struct pm_recomputed *out);

#endif
