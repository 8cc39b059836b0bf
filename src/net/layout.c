/* layout: greedy best fit. Intervals are placed one by one, each in the tightest gap between those
 * already placed whose lifetimes meet its own. The order decides how good the result is, so a few
 * orders are tried and the smallest total is kept. */
#include "net/layout.h"

#include <pumice/base.h>

#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t n)
{
    return (n + PM_LAYOUT_ALIGNMENT - 1) / PM_LAYOUT_ALIGNMENT * PM_LAYOUT_ALIGNMENT;
}

static int by_size(const void *a, const void *b)
{
    const struct pm_interval *x = *(struct pm_interval *const *)a;
    const struct pm_interval *y = *(struct pm_interval *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? x->first - y->first : (x < y ? -1 : x > y);
}

/* Size times lifetime: long and large ones first. */
static int by_area(const void *a, const void *b)
{
    const struct pm_interval *x = *(struct pm_interval *const *)a;
    const struct pm_interval *y = *(struct pm_interval *const *)b;
    double p = (double)x->bytes * (x->last - x->first + 1);
    double q = (double)y->bytes * (y->last - y->first + 1);

    return p != q ? (p < q ? 1 : -1) : (x < y ? -1 : x > y);
}

static int by_length(const void *a, const void *b)
{
    const struct pm_interval *x = *(struct pm_interval *const *)a;
    const struct pm_interval *y = *(struct pm_interval *const *)b;
    int p = x->last - x->first, q = y->last - y->first;

    return p != q ? q - p : by_size(a, b);
}

static int by_first(const void *a, const void *b)
{
    const struct pm_interval *x = *(struct pm_interval *const *)a;
    const struct pm_interval *y = *(struct pm_interval *const *)b;

    return x->first != y->first ? x->first - y->first : by_size(a, b);
}

static int by_offset(const void *a, const void *b)
{
    const struct pm_interval *x = *(struct pm_interval *const *)a;
    const struct pm_interval *y = *(struct pm_interval *const *)b;

    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : (x < y ? -1 : x > y);
}

/* Tightest gap of block `block` for v among the placed ones; false when it would pass the limit.
 * near: room for the placed ones of this block that meet v. */
static bool place_in(struct pm_interval *v, struct pm_interval **placed, int count, int block,
                     size_t limit, struct pm_interval **near)
{
    size_t need = round_up(v->bytes), at = 0, best = 0, best_gap = SIZE_MAX;
    int meets = 0;

    for (int i = 0; i < count; i++)
        if (placed[i]->block == block && placed[i]->first <= v->last &&
            placed[i]->last >= v->first)
            near[meets++] = placed[i];
    qsort(near, (size_t)meets, sizeof *near, by_offset);
    for (int i = 0; i < meets; i++) {
        size_t end = near[i]->offset + round_up(near[i]->bytes);

        if (near[i]->offset >= at + need && near[i]->offset - at < best_gap)
            best_gap = near[i]->offset - at, best = at;
        if (end > at)
            at = end;
    }
    if (best_gap == SIZE_MAX)
        best = at;
    if (best + need > limit)
        return false;
    v->block = block;
    v->offset = best;
    return true;
}

static int attempt(struct pm_interval **order, int count, size_t limit, size_t *bytes, int max,
                   struct pm_interval **near)
{
    int blocks = 0;

    memset(bytes, 0, sizeof *bytes * (size_t)max);
    for (int i = 0; i < count; i++) {
        size_t end;
        int b = 0;

        while (b < max && !place_in(order[i], order, i, b, limit, near))
            b++;
        if (b == max)
            return -1;
        end = order[i]->offset + round_up(order[i]->bytes);
        if (end > bytes[b])
            bytes[b] = end;
        if (b >= blocks)
            blocks = b + 1;
    }
    return blocks;
}

static size_t total_of(const size_t *bytes, int count)
{
    size_t total = 0;

    for (int i = 0; i < count; i++)
        total += bytes[i];
    return total;
}

int pm_layout(struct pm_interval *v, int count, size_t block_limit, size_t *block_bytes,
              int max_blocks)
{
    static int (*const orders[])(const void *, const void *) = { by_size, by_area, by_length,
                                                                 by_first };
    size_t n = (size_t)count + 1, best_total = SIZE_MAX;
    struct pm_interval **order = pm_calloc(n, sizeof *order);
    struct pm_interval **near = pm_calloc(n, sizeof *near);
    struct pm_interval *best = pm_calloc(n, sizeof *best);
    size_t *bytes = pm_calloc((size_t)max_blocks, sizeof *bytes);
    int best_blocks = -1;

    block_limit = block_limit / PM_LAYOUT_ALIGNMENT * PM_LAYOUT_ALIGNMENT;
    for (size_t k = 0; k < PM_COUNT(orders); k++) {
        int blocks;

        for (int i = 0; i < count; i++)
            order[i] = &v[i];
        qsort(order, (size_t)count, sizeof *order, orders[k]);
        blocks = attempt(order, count, block_limit, bytes, max_blocks, near);
        if (blocks < 0 || total_of(bytes, blocks) >= best_total)
            continue;
        best_total = total_of(bytes, blocks);
        best_blocks = blocks;
        memcpy(best, v, sizeof *best * (size_t)count);
        memcpy(block_bytes, bytes, sizeof *bytes * (size_t)max_blocks);
    }
    if (best_blocks >= 0)
        memcpy(v, best, sizeof *best * (size_t)count);
    pm_free(order);
    pm_free(near);
    pm_free(best);
    pm_free(bytes);
    return best_blocks;
}

size_t pm_layout_peak(const struct pm_interval *v, int count)
{
    size_t peak = 0;

    for (int i = 0; i < count; i++) {
        size_t live = 0;

        for (int k = 0; k < count; k++)
            if (v[k].first <= v[i].first && v[k].last >= v[i].first)
                live += round_up(v[k].bytes);
        if (live > peak)
            peak = live;
    }
    return peak;
}
