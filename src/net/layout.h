/* layout: assigns memory offsets to values by lifetime. */
#ifndef PM_LAYOUT_H
#define PM_LAYOUT_H

#include <stddef.h>

enum { PM_LAYOUT_ALIGNMENT = 256 };

struct pm_interval {
    size_t bytes;     /* size, > 0 */
    int first, last;  /* calls of the lifetime, inclusive */
    int block;        /* out: index of the block */
    size_t offset;    /* out: bytes in the block, a multiple of 256 */
};
/* Places all intervals so that no two with overlapping lifetimes overlap in memory. Blocks have at
 * most block_limit bytes, and each interval must fit into one. block_bytes receives the size of
 * each used block (room for max_blocks). Returns the number of blocks, or -1 if more are needed. */
int pm_layout(struct pm_interval *v, int count, size_t block_limit, size_t *block_bytes,
              int max_blocks);
/* Returns the largest sum of live bytes at any call, a lower bound for every layout. */
size_t pm_layout_peak(const struct pm_interval *v, int count);

#endif
