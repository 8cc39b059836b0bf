/* check_run: a case built into a list of kernel calls, and its run on a device with every value in
 * a buffer of its own between guard words. */
#ifndef CHECK_RUN_H
#define CHECK_RUN_H

#include <pumice/device.h>
#include <pumice/net.h>

#include "check.h"
#include "net/calls.h"

/* A test under its layer's name. */
struct entry {
    const char *name;
    const struct pm_layer_test *test;
};

/* A built case. Everything but `values` lives in the net's arena. */
struct subject {
    const struct entry *entry;
    const struct check_case *c;
    struct pm_net *net;      /* owned */
    struct pm_node *node;
    struct pm_plan_options options;
    struct pm_calls calls;   /* its arrays are owned */
    int forward_calls;       /* calls before backward */
    int update_call;         /* first call of update(), or call_count */
    struct pm_tensor x[PM_MAX_INPUTS], dx[PM_MAX_INPUTS];
    struct pm_tensor w[PM_MAX_VARS], dw[PM_MAX_VARS];
    union { struct pm_tensor y, ys[PM_MAX_NODE_OUTPUTS]; };   /* y: the loss scalar of a loss */
    union { struct pm_tensor dy, dys[PM_MAX_NODE_OUTPUTS]; }; /* none: nobody reads the output */
    struct image *values;    /* per value: what it holds, owned */
};
/* Host contents of a value. */
struct image {
    size_t bytes;   /* of the tensor, rounded up to 4 */
    char *data;     /* owned */
    bool given;     /* set before the first call (input, variable, dy); else NaN at first */
};

struct build_options {
    bool backward, update;
    bool no_dx, no_dw;       /* as if nobody wanted them */
    bool calls_only;         /* without contents of values: the calls cannot run */
    uint32_t flag;           /* finite flag that update() sees */
    /* Plants a fault into the finished list (mode self); NULL: none. */
    void (*doctor)(struct subject *s);
};
int subject_build(const struct entry *e, const struct check_case *c, const struct build_options *o,
                  struct subject **out);
void subject_free(struct subject **s);

/* Runs calls first..last-1 as one program on s->values, in place. levels: pick() level of every
 * call. accumulate: -1 as planned, else the flag of a call that is run by itself; of many 1 is for
 * those that add to a variable's gradient and 0 is as planned. alias: where the row
 * declares .inplace, the output lies in its input's memory. Guard words and the bytes of r: buffers
 * are compared afterwards: a change is an error. variant (may be NULL): of the first call. */
struct run_options {
    int first, last, level, accumulate;
    bool alias;
    const char **variant;
};
int subject_run(struct subject *s, struct pm_device *d, const struct run_options *o);
/* Whether a call adds to the gradient of a variable (and not to a value of the layer's own). */
bool adds_to_gradient(const struct subject *s, int call);
/* Best seconds of one call, repeated on the device. */
int subject_time(struct subject *s, struct pm_device *d, int call, int level, double *seconds,
                 const char **variant);

/* The reference's view of a subject's inputs and variables; ref_free frees. */
void ref_make(const struct subject *s, struct ref *r);
void ref_free(struct ref *r);

#endif
