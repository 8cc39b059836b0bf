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
    struct pm_moving *moving; /* of pm_moving_average, until the next call for them; in the arena */
    int moving_count;
    /* Whether data gradients get transposed copies of weights (transposed.h), and the list of these
     * copies. device: runs the shaders; NULL when a layer's calls are built without a plan. */
    bool transposes;
    struct pm_device *device; /* borrowed */
    struct pm_transposed *transposed; /* in the arena */
    int transposed_count;
    int lead;               /* calls before those of the first micro-batch: 0 or 1 */
    int error;              /* first error of a call; later calls do nothing */
};

/* Builds the whole step: forward and backward of every micro-batch, then the update. transposes:
 * the device whose shaders get transposed copies of weights; NULL: none. */
int pm_calls_build(struct pm_net *net, const struct pm_variables *v,
                   const struct pm_plan_options *o, struct pm_device *transposes,
                   struct pm_arena *arena, struct pm_calls **out);
/* Returns the value that owns the storage of v. Follows aliases and blocks. */
int pm_calls_root(const struct pm_calls *c, int v);
/* Returns the byte of the owner's storage at which v begins. */
size_t pm_calls_at(const struct pm_calls *c, int v);
/* Makes values parts of one block, so that a call can take all of them as one buffer. They are F32,
 * of one kind, own their storage, and begin at multiples of 256 bytes in the block. at[i]: where
 * value i begins. A value may occur twice. The block lives as long as any of its parts. */
struct pm_tensor pm_calls_join(struct pm_calls *c, const char *name, const int *values, int count,
                               size_t *at);
/* Returns the part of the variables' block from the first to the last of these variables, and where
 * each one begins in it. Without variables (a layer by itself) it joins the values. */
struct pm_tensor pm_calls_variables_span(struct pm_calls *c, const int *values, int count,
                                         size_t *at);
/* Calls the update() of a node whose variables are bound, and appends the update of its moving
 * averages. */
void pm_calls_node_update(struct pm_calls *c, struct pm_node *n, struct pm_tensor flag);
/* Sets the node's n->w, and n->dw if gradients are wanted. */
void pm_calls_bind_variables(struct pm_calls *c, struct pm_node *n, bool gradients);
/* Sets first and last of all values by the calls that use them. */
void pm_calls_count_lifetimes(struct pm_calls *c);

#endif
