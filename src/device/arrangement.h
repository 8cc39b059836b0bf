/* arrangement: decides where barriers and submissions stand in an array of calls. It needs no
 * driver: program_vk.c records the result, and counts of a plan are taken from it.
 *
 * Calls are cut into segments. Each segment is a command buffer of its own, and its submission
 * signals a timeline value. A segment ends when its estimated work reaches the limit (a driver's
 * watchdog counts a submission's time), or after a call that an output waits for. A single call
 * above the limit is dispatched in parts, unless its shader reads the number of workgroups.
 *
 * Within a segment, a barrier stands before a call with a hazard: the call reads or writes a byte
 * range written since the last barrier, or writes a range that was read. Some of the next calls may
 * need no barrier and be independent of the calls that they pass: they come before the barrier. So
 * branches of a net share barriers. In a timed program a barrier is before every dispatch, and
 * calls keep their order. */
#ifndef PM_ARRANGEMENT_H
#define PM_ARRANGEMENT_H

#include <pumice/device.h>

struct pm_arrange_input {
    const struct pm_program_desc *desc;
    const struct pm_picks *const *picks; /* per call */
    /* Per call and dispatch: the shader reads the number of workgroups. */
    const bool (*whole)[PM_MAX_DISPATCHES];
    double flops, bytes;    /* the device's guessed speed per second */
    double segment_seconds; /* limit on the estimated work of a segment */
    bool timed;
};

/* A dispatch or a part of one. In a timed program a call without dispatches has one entry, for its
 * timestamps, with `dispatch` -1. */
struct pm_arranged {
    size_t call;
    int dispatch;         /* index into the call's picks */
    bool barrier;         /* stands before it */
    bool begins, ends;    /* first, last of its call */
    uint32_t base[3], groups[3];
};
struct pm_submission {
    size_t begin, end;    /* its entries in the list */
    size_t first, last;   /* calls, for messages */
};
struct pm_arrangement {
    struct pm_arranged *list;   /* owned */
    size_t count, capacity;
    struct pm_submission *segments; /* owned */
    size_t segment_count, segment_capacity;
    size_t *out_segment;         /* owned; per output: the segment after which it is copied */
    struct pm_counts counts;
};
/* Fills *out, which pm_arrangement_free frees. */
void pm_arrange(const struct pm_arrange_input *in, struct pm_arrangement *out);
void pm_arrangement_free(struct pm_arrangement *s);

/* Whether a buffer with this access letter is written. */
static inline bool pm_access_writes(char access)
{
    return access != 'r';
}

#endif
