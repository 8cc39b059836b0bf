/* sketch: a reduced form of one micro-batch's calls, for judging which values to recompute. It
 * holds which call writes and reads which value, the size of each value, and the cost of each call.
 * Judging one choice takes microseconds, so thousands can be tried.
 *
 * A value is *dropped* if the backward pass does not keep the forward pass's copy. Its memory is
 * free after the last forward call that reads it. Right before the first backward call that reads
 * it, its forward call runs again and writes a new value. The inputs of that call are still
 * present, or are recomputed first. */
#ifndef PM_SKETCH_H
#define PM_SKETCH_H

#include "net/calls.h"

struct pm_sketch_call {
    int bufs, buf[PM_MAX_BUFS];   /* values, -1 absent */
    char access[PM_MAX_BUFS];
    int pairs, pair[PM_MAX_INPLACE][2]; /* buffers y, x: y may lie in x's memory */
    double work;                  /* cost of running it, in floating-point operations */
};
struct pm_sketch_value {
    size_t bytes;      /* bytes in activation memory, a multiple of the alignment; 0: elsewhere */
    int producer;      /* forward call that writes it, or -1 */
    int last_forward;  /* last forward call that uses it */
    bool mergeable;    /* an activation: in-place calls may merge it */
    bool backward;     /* a backward call reads it */
    bool input;        /* present before the first call */
    bool later;        /* used after this micro-batch */
    bool droppable;
};
struct pm_sketch {
    struct pm_sketch_call *call;
    int lead;                     /* calls of the step before the first micro-batch */
    int calls, forward;           /* of the micro-batch; the first `forward` are its forward pass */
    struct pm_sketch_value *value;
    int values;
    size_t base;                  /* bytes of other micro-batches' inputs and outputs, and of what
                                   * the calls before them write */
    size_t *beside;               /* per forward call: most bytes of values that are not droppable
                                   * (gradients, scratch) while the backward pass handles it */
    /* The last choice judged: its calls in running order. */
    struct pm_sketch_turn { int call; bool again; } *turn;
    int turns;
    /* Working memory of a judgement: entries of the values, then of their recomputed copies. */
    int *first, *last, *alias, *now;
    int64_t *change;              /* change of live bytes, per turn */
};
struct pm_sketch_outcome {
    size_t peak;   /* largest sum of live values */
    double work;   /* cost of the calls that run again */
    int again;     /* number of calls that run again */
    int at;        /* turn of the peak */
};

struct pm_sketch *pm_sketch_create(const struct pm_calls *c);
void pm_sketch_destroy(struct pm_sketch **s);
/* Judges dropping these values (one flag per value). Leaves the order of calls in s->turn. */
struct pm_sketch_outcome pm_sketch_judge(struct pm_sketch *s, const bool *dropped);

#endif
