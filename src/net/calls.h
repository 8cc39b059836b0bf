/* calls: the list of kernel calls while a plan is built. Layers add calls through layer.h, updates
 * (the optimizer) through plan.h. plan.c lays out the list in memory. */
#ifndef PM_CALLS_H
#define PM_CALLS_H

#include <pumice/plan.h>

struct pm_calls {
    struct pm_arena *arena; /* borrowed */
    struct pm_net *net;     /* borrowed */
    const struct pm_plan_options *options;
    const struct pm_variables *variables; /* borrowed; may be NULL (dry run) */

    struct pm_value *values;
    int value_count, value_capacity;
    struct pm_planned_call *calls;
    int call_count, call_capacity;

    /* Set while a node's functions run. */
    enum pm_phase phase;
    const char *label;
    int micro_batch;

    int step;               /* value of struct pm_step, -1 until requested */
    int *variable_value;    /* by variable index, -1 until used */
    int *gradient_value;
    int error;              /* first error of a call; later calls do nothing */
};

/* Builds the whole step: forward and backward of every micro-batch, then the update. */
int pm_calls_build(struct pm_net *net, const struct pm_variables *v,
                   const struct pm_plan_options *o, struct pm_arena *arena, struct pm_calls **out);
/* Returns the value that owns the storage of v. Follows aliases. */
int pm_calls_root(const struct pm_calls *c, int v);

#endif
