/* layout: where values lie in memory, by lifetime. */
#ifndef PM_LAYOUT_H
#define PM_LAYOUT_H

#include <stddef.h>

enum { PM_LAYOUT_ALIGNMENT = 256 };

struct pm_interval {
    size_t bytes;     /* > 0 */
    int first, last;  /* calls, inclusive */
    int block;        /* out */
    size_t offset;    /* out: bytes in the block, a multiple of 256 */
};
/* Places every interval so that two whose lifetimes meet do not overlap, in blocks of at most
 * block_limit bytes (each interval must fit one). block_bytes gets the size of each block used (room
 * for max_blocks). Returns the number of blocks, or -1 when more are needed. */
int pm_layout(struct pm_interval *v, int count, size_t block_limit, size_t *block_bytes,
              int max_blocks);
/* Largest sum of live bytes at any call: the bound no layout can beat. */
size_t pm_layout_peak(const struct pm_interval *v, int count);

#endif
