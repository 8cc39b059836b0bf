/* layout: greedy best fit. Intervals are placed one by one. Each goes into the tightest gap between
 * the placed intervals whose lifetimes overlap with its own. The result depends on the order, so
 * several orders are tried and the smallest total is kept. If that total exceeds the lower bound,
 * the interval at the highest address moves to the front of the order, and the search repeats. */
#include "net/layout.h"

#include <pumice/base.h>

#include <stdlib.h>
#include <string.h>

enum { TRIES = 32 };

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

/* Sorts by size times lifetime: large and long-lived intervals first. */
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

/* Places v in the tightest gap of block `block` between the placed intervals, which are sorted by
 * offset. Returns false if v would exceed the limit. */
static bool place_in(struct pm_interval *v, struct pm_interval **placed, int count, int block,
                     size_t limit)
{
    size_t need = round_up(v->bytes), at = 0, best = 0, best_gap = SIZE_MAX;

    for (int i = 0; i < count; i++) {
        const struct pm_interval *p = placed[i];
        size_t end = p->offset + round_up(p->bytes);

        if (p->block != block || p->first > v->last || p->last < v->first)
            continue;
        if (p->offset >= at + need && p->offset - at < best_gap)
            best_gap = p->offset - at, best = at;
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

static void insert(struct pm_interval **placed, int count, struct pm_interval *v)
{
    for (; count > 0 && placed[count - 1]->offset > v->offset; count--)
        placed[count] = placed[count - 1];
    placed[count] = v;
}

static int attempt(struct pm_interval **order, int count, size_t limit, size_t *bytes, int max,
                   struct pm_interval **placed)
{
    int blocks = 0;

    memset(bytes, 0, sizeof *bytes * (size_t)max);
    for (int i = 0; i < count; i++) {
        size_t end;
        int b = 0;

        while (b < max && !place_in(order[i], placed, i, b, limit))
            b++;
        if (b == max)
            return -1;
        insert(placed, i, order[i]);
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

/* The best layout so far, and the order being tried. */
struct search {
    struct pm_interval *v;
    int count, max_blocks;
    size_t limit;
    struct pm_interval **order, **placed;
    struct pm_interval *best;
    size_t *bytes, *best_bytes;
    size_t best_total;
    int best_blocks;
};

static void try_order(struct search *s)
{
    int blocks = attempt(s->order, s->count, s->limit, s->bytes, s->max_blocks, s->placed);

    if (blocks < 0 || total_of(s->bytes, blocks) >= s->best_total)
        return;
    s->best_total = total_of(s->bytes, blocks);
    s->best_blocks = blocks;
    memcpy(s->best, s->v, sizeof *s->best * (size_t)s->count);
    memcpy(s->best_bytes, s->bytes, sizeof *s->bytes * (size_t)s->max_blocks);
}

/* Moves the interval that ends highest in the first block to the front of the next order. */
static void raise_highest(struct search *s)
{
    size_t top = 0;
    int at = 0;

    for (int i = 0; i < s->count; i++)
        if (s->order[i]->block == 0 && s->order[i]->offset + s->order[i]->bytes > top) {
            top = s->order[i]->offset + s->order[i]->bytes;
            at = i;
        }
    struct pm_interval *highest = s->order[at];
    memmove(s->order + 1, s->order, sizeof *s->order * (size_t)at);
    s->order[0] = highest;
}

int pm_layout(struct pm_interval *v, int count, size_t block_limit, size_t *block_bytes,
              int max_blocks)
{
    static int (*const orders[])(const void *, const void *) = { by_size, by_area, by_length,
                                                                 by_first };
    size_t n = (size_t)count + 1, enough = pm_layout_peak(v, count) / 100 * 101;
    struct search s = { .v = v, .count = count, .max_blocks = max_blocks, .best_total = SIZE_MAX,
                        .limit = block_limit / PM_LAYOUT_ALIGNMENT * PM_LAYOUT_ALIGNMENT,
                        .best_bytes = block_bytes, .best_blocks = -1 };

    s.order = pm_calloc(n, sizeof *s.order);
    s.placed = pm_calloc(n, sizeof *s.placed);
    s.best = pm_calloc(n, sizeof *s.best);
    s.bytes = pm_calloc((size_t)max_blocks, sizeof *s.bytes);
    for (size_t k = 0; k < PM_COUNT(orders); k++) {
        for (int i = 0; i < count; i++)
            s.order[i] = &v[i];
        qsort(s.order, (size_t)count, sizeof *s.order, orders[k]);
        try_order(&s);
    }
    for (size_t k = 0; k < PM_COUNT(orders) && s.best_total > enough; k++) {
        for (int i = 0; i < count; i++)
            s.order[i] = &v[i];
        qsort(s.order, (size_t)count, sizeof *s.order, orders[k]);
        for (int i = 0; i < TRIES && s.best_total > enough; i++) {
            try_order(&s);
            raise_highest(&s);
        }
    }
    if (s.best_blocks >= 0)
        memcpy(v, s.best, sizeof *v * (size_t)count);
    pm_free(s.order);
    pm_free(s.placed);
    pm_free(s.best);
    pm_free(s.bytes);
    return s.best_blocks;
}
