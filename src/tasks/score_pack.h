/* score_pack: what the packed scores of all tasks have in common. A pack carries a part of an
 * evaluation to another process (pm_task_row.score_pack). */
#ifndef PM_SCORE_PACK_H
#define PM_SCORE_PACK_H

#include "base/pack.h"

enum { PM_SCORE_PACK_HEADER = 3 * sizeof(uint64_t) }; /* bytes of a pack before its options */
/* Begins a pack. options: a text with the task and those of its options on which the contents of
 * the pack depend; freed by the call. Returns where the pack begins, for pm_score_pack_end, which
 * completes it. */
size_t pm_score_pack_begin(struct pm_str *out, struct pm_str options);
void pm_score_pack_end(struct pm_str *out, size_t begin);
/* Checks that the bytes are a whole, undamaged pack with the same options, and begins to read its
 * contents. bytes is borrowed; options is freed by the call. PM_EDATA. */
int pm_score_unpack_begin(struct pm_unpack *u, const void *bytes, size_t size,
                          struct pm_str options);
/* PM_EDATA if the contents were damaged, or are longer than what was read. */
int pm_score_unpack_end(const struct pm_unpack *u);

/* A sum with its terms in the order in which they were added; 8 bytes per term. The order of
 * additions changes the last bits of a sum, so a merged sum adds the same terms in the same order.
 * Begins as zeros. */
struct pm_score_sum {
    double value;
    double *term; /* owned */
    size_t count, capacity;
};
void pm_score_sum_add(struct pm_score_sum *s, double term);
void pm_score_sum_free(struct pm_score_sum *s);
void pm_score_sum_pack(const struct pm_score_sum *s, struct pm_str *out);
/* Adds the packed terms. */
void pm_score_sum_merge(struct pm_score_sum *s, struct pm_unpack *u);

/* Counts [n]: only those that are not 0 are packed. */
void pm_score_counts_pack(const uint64_t *counts, size_t n, struct pm_str *out);
/* Adds the packed counts. Sets u->damaged for an index of n or more. */
void pm_score_counts_merge(uint64_t *counts, size_t n, struct pm_unpack *u);

#endif
