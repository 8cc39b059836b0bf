/* clones_parts: what clones.c, which makes them and carries values between them, and clones_step.c
 * share. */
#ifndef PM_CLONES_PARTS_H
#define PM_CLONES_PARTS_H

#include "clones/clones.h"

#include "clones/moving.h"

struct clone {
    struct pm_device *device;
    struct pm_net *net;
    struct pm_variables *variables;
    struct pm_plan *plan;
    struct pm_program *push; /* several clones: the new values from the host */
    int push_slot;
    int first, count;        /* examples of the batch */
    double seconds;
};

struct pm_clones {
    struct pm_clones_options o;
    struct pm_clone_spec *specs; /* owned copy */
    struct pm_field *fields;     /* owned copy */
    struct clone *clone;
    /* Several clones: the master copy and its update. */
    struct pm_device *host;
    struct pm_net *host_net;
    struct pm_variables *host_variables;
    struct pm_plan *host_plan;
    float *sum;                  /* gradients of all clones */
    struct pm_moving moving;     /* where all clones update them */
    struct pm_variables averaged; /* clone 0's, with averages for values */
    struct pm_step_result *result; /* per slot */
    bool *pending;
    int lane;                    /* of sums, in traces */
};

static inline bool pm_clones_alone(const struct pm_clones *c)
{
    return c->o.count == 1;
}

/* Moving averages are the host's, made of every clone's. */
static inline bool pm_clones_share_moving(const struct pm_clones *c)
{
    return c->o.update.all;
}

#endif
