/* recompute: which values of the forward pass are dropped and computed again in the backward
 * pass, so that activations fit into less memory; and the list of calls that comes of it. */
#ifndef PM_RECOMPUTE_H
#define PM_RECOMPUTE_H

#include "net/calls.h"

struct pm_recomputed {
    size_t live_without; /* largest sum of live values with every value kept */
    size_t limit;  /* that was to be reached */
    size_t peak;   /* what was reached */
    int again;     /* calls of a micro-batch that run a second time */
    double work;   /* what they cost, as a share of the micro-batch's calls */
};
/* Brings the largest sum of live values down to limit bytes, or as far as it goes, at little
 * cost; share > 0: down to that share of what it is with every value kept, where that is less. c
 * is rewritten unless nothing is to be dropped. Scratch must have been added; lifetimes are
 * right afterwards. */
void pm_recompute(struct pm_calls *c, size_t limit, double share, struct pm_recomputed *out);

#endif
