/* check_run: builds a case into a list of kernel calls (check_build.c) and runs it on a device
 * (check_run.c). Every value has its own buffer between guard words. */
#ifndef CHECK_RUN_H
#define CHECK_RUN_H

#include <pumice/device.h>
#include <pumice/net.h>

#include "check.h"
#include "net/calls.h"

/* A test with the name of its layer. */
struct entry {
    const char *name;
    const struct pm_layer_test *test;
};

/* A built case. Everything except `values` lies in the net's arena. */
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
    /* The node's outputs; for a loss its scalars. */
    union { struct pm_tensor y, ys[PM_MAX_NODE_OUTPUTS]; };
    int outputs;
    union { struct pm_tensor dy, dys[PM_MAX_NODE_OUTPUTS]; }; /* none when the output has no
                                                               * reader */
    struct pm_tensor moments[4]; /* those that calls take */
    int moment_count;
    struct image *values;    /* the contents of each value, owned */
};
/* The contents of a value on the host. */
struct image {
    size_t bytes;   /* of the tensor, rounded up to 4 */
    char *data;     /* owned, unless the value is a part of a block */
    bool given;     /* set before the first call (input, variable, dy); other values start as NaN */
};

/* Values that no call has written are made of these words. */
enum { NAN_WORD = 0x7fc0dead };

struct build_options {
    bool backward, update;
    bool no_dx, no_dw;       /* builds as if they had no reader */
    bool moments;            /* calls hand over the moments of images, or take invented ones */
    bool calls_only;         /* without contents of values: the calls cannot run */
    uint32_t flag;           /* finite flag that update() sees */
    /* Plants a fault into the finished list (mode self); NULL for none. */
    void (*doctor)(struct subject *s);
};
int subject_build(const struct entry *e, const struct check_case *c, const struct build_options *o,
                  struct subject **out);
void subject_free(struct subject **s);

/* Runs calls first..last-1 as one program on s->values, in place. levels: pick() level of every
 * call. accumulate: -1 keeps the planned flags; otherwise it sets the flag of a call that runs
 * by itself, and with several calls 1 sets it for those that add to a variable's gradient.
 * alias: when the row declares .inplace, the output takes the memory of its input. Afterwards
 * guard words and the contents of r: buffers must be unchanged. variant (may be NULL): variant
 * of the first call. */
struct run_options {
    int first, last, level, accumulate;
    bool alias;
    const char **variant;
};
int subject_run(struct subject *s, struct pm_device *d, const struct run_options *o);
/* True when a call adds to the gradient of a variable, not to another value of the layer. */
bool adds_to_gradient(const struct subject *s, int call);
/* The shortest time of one call in seconds, repeated on the device. */
int subject_time(struct subject *s, struct pm_device *d, int call, int level, double *seconds,
                 const char **variant);

/* The inputs and variables of a subject for the reference (check_ref.c). Free with ref_free. */
void ref_make(const struct subject *s, struct ref *r);
void ref_free(struct ref *r);

#endif
