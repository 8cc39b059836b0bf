/* frames: parts of the loader for batches of several frames. */
#ifndef PM_FRAMES_H
#define PM_FRAMES_H

#include <pumice/data.h>

/* Returns the number of pixels. */
uint64_t pm_frame_area(struct pm_frame f);
/* Whether a picture of `need` fits into the frame. */
bool pm_frame_holds(struct pm_frame frame, struct pm_frame need);
/* Returns the frame of the list with the fewest pixels that holds `need`, the first of equal ones;
 * NULL if none does. */
const struct pm_frame *pm_frame_find(const struct pm_frame *list, int count, struct pm_frame need);
/* The same, but if none holds it, returns the frame with the most pixels, the first of equal ones.
 * count is at least 1. */
struct pm_frame pm_frame_choose(const struct pm_frame *list, int count, struct pm_frame need);

/* A record's name and the frame that it needs. */
struct pm_frame_need {
    const char *name; /* borrowed */
    struct pm_frame frame;
};
/* Fails with `code` and a message that no frame of the list, input.buckets, holds the record.
 * place: text before the sentence, "" or ending with ": ". count is at least 1. */
int pm_frame_fail_record(int code, const char *place, const struct pm_frame *list, int count,
                         const struct pm_frame_need *record);
/* The same of two records of a batch: none holds both. */
int pm_frame_fail_pair(int code, const char *place, const struct pm_frame *list, int count,
                       const struct pm_frame_need *tallest, const struct pm_frame_need *widest);

/* The batches of grouped records: every group has its own. */
struct pm_group_batches {
    const struct pm_frame_groups *groups; /* borrowed */
    uint64_t *first;                      /* [groups + 1], owned: each group's first step; the last
                                           * is the number of steps */
    uint64_t batch;
};
void pm_group_batches_open(struct pm_group_batches *b, const struct pm_frame_groups *groups,
                           int batch);
void pm_group_batches_close(struct pm_group_batches *b);
/* Returns the group of a step. example: receives the index in the group of the step's first
 * example. */
const struct pm_frame_group *pm_group_of(const struct pm_group_batches *b, uint64_t step,
                                         uint64_t *example);

#endif
