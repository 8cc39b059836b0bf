/* sketch: one micro-batch's calls reduced to what a choice of values to compute again is judged
 * by: who writes and reads what, how large it is, what a call costs. Judging one choice takes
 * microseconds, so that thousands can be tried.
 *
 * A value is *dropped* when the backward pass does not find what the forward pass wrote: the
 * memory is free after the last forward call that reads it, and right before the first backward
 * call that does, its forward call runs once more, into a value of its own. That call's own
 * inputs are there, or are computed again first. */
#ifndef PM_SKETCH_H
#define PM_SKETCH_H

#include "net/calls.h"

struct pm_sketch_call {
    int bufs, buf[PM_MAX_BUFS];   /* values, -1 absent */
    char access[PM_MAX_BUFS];
    int pairs, pair[PM_MAX_INPLACE][2]; /* buffers y, x: y may lie in x's memory */
    double work;                  /* what running it costs, in floating-point operations */
};
struct pm_sketch_value {
    size_t bytes;      /* in activation memory, a multiple of the alignment; 0: elsewhere */
    int producer;      /* forward call that writes it, or -1 */
    int last_forward;  /* last forward call that uses it */
    bool mergeable;    /* an activation: in-place calls may merge it */
    bool backward;     /* a backward call reads it */
    bool input;        /* there from the first call on */
    bool later;        /* used after this micro-batch */
    bool droppable;
};
struct pm_sketch {
    struct pm_sketch_call *call;
    int calls, forward;           /* of the micro-batch; the first `forward` are its forward pass */
    struct pm_sketch_value *value;
    int values;
    size_t base;                  /* bytes of other micro-batches' inputs and outputs */
    size_t *beside;               /* per forward call: most bytes of what is not droppable (gradients,
                                   * scratch) while the backward pass is at it */
    /* The last choice judged: calls in the order of running. */
    struct pm_sketch_turn { int call; bool again; } *turn;
    int turns;
    /* Working memory of a judgement: values, then their second selves. */
    int *first, *last, *alias, *now;
    int64_t *change;              /* of live bytes, per turn */
};
struct pm_sketch_outcome {
    size_t peak;   /* largest sum of live values */
    double work;   /* of the calls that run again */
    int again;     /* how many */
    int at;        /* the peak's turn */
};

struct pm_sketch *pm_sketch_create(const struct pm_calls *c);
void pm_sketch_destroy(struct pm_sketch **s);
/* What comes of dropping these values (a flag per value); leaves the order in s->turn. */
struct pm_sketch_outcome pm_sketch_judge(struct pm_sketch *s, const bool *dropped);

#endif
