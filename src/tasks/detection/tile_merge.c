/* tile_merge: the detections of a photo from those of its tiles. Only tiles with common pixels are
 * compared, so the time grows with the number of detections, not with its square. */
#include "tasks/detection/tile_merge.h"

#include <pumice/base.h>

#include <math.h>
#include <stdlib.h>

/* A box touches a border if it changes by at most a tenth when it is extended to it: IoU with the
 * extended box. 0.9 is about as exact as detectors are. */
#define TOUCHES 0.9
#define MOST_OF_IT 0.5

/* ---- the detections of tiles ----------------------------------------------------------------- */

struct merge {
    const struct pm_tile_merging *m;
    const struct pm_box_detection *list; /* borrowed */
    const size_t *tile;            /* borrowed */
    size_t count;
    const double **box;            /* [count]: the numbers of the boxes */
    struct pm_box *bounds;         /* [count] */
    double *area;                  /* [count] */
    size_t *first;                 /* [tiles + 1]: a tile's detections in the list */
    bool *part, *kept;             /* [count] */
    size_t *order;                 /* [count] */
};

static void merge_open(const struct pm_tile_merging *m, const struct pm_box_detection *list,
                       const size_t *tile, size_t count, struct merge *g)
{
    const size_t tiles = pm_tile_count(m->grid);

    *g = (struct merge){ .m = m, .list = list, .tile = tile, .count = count };
    g->box = pm_malloc((count + 1) * sizeof *g->box);
    g->bounds = pm_malloc((count + 1) * sizeof *g->bounds);
    g->area = pm_malloc((count + 1) * sizeof *g->area);
    g->part = pm_calloc(count + 1, sizeof *g->part);
    g->kept = pm_calloc(count + 1, sizeof *g->kept);
    g->order = pm_malloc((count + 1) * sizeof *g->order);
    g->first = pm_malloc((tiles + 1) * sizeof *g->first);
    for (size_t i = 0; i < count; i++) {
        g->box[i] = pm_box_found_numbers(m->geometry, &list[i]);
        m->geometry->bounds(g->box[i], &g->bounds[i]);
        g->area[i] = m->geometry->area(g->box[i]);
    }
    for (size_t k = 0, i = 0; k <= tiles; k++) {
        g->first[k] = i;
        while (i < count && tile[i] == k)
            i++;
    }
}

static void merge_close(struct merge *g)
{
    pm_free(g->box);
    pm_free(g->bounds);
    pm_free(g->area);
    pm_free(g->part);
    pm_free(g->kept);
    pm_free(g->order);
    pm_free(g->first);
}

static bool same_class(const struct merge *g, size_t a, size_t b)
{
    return g->m->class_agnostic || g->list[a].label == g->list[b].label;
}

/* A relation of detection i to one of another tile. */
typedef bool pair_test(const struct merge *g, size_t i, size_t other);

/* Whether a detection of another tile passes the test. Compares only tiles that share pixels. */
static bool has_other(const struct merge *g, size_t i, pair_test *test)
{
    const struct pm_tile_grid *grid = g->m->grid;
    const size_t own = g->tile[i], columns = (size_t)grid->count[1];
    int y, y_end, x_begin, x_end;

    pm_tile_neighbours(grid, 0, (int)(own / columns), &y, &y_end);
    pm_tile_neighbours(grid, 1, (int)(own % columns), &x_begin, &x_end);
    for (; y < y_end; y++)
        for (int x = x_begin; x < x_end; x++) {
            const size_t k = (size_t)y * columns + (size_t)x;

            for (size_t n = g->first[k]; k != own && n < g->first[k + 1]; n++)
                if (same_class(g, i, n) && test(g, i, n))
                    return true;
        }
    return false;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Whether the stretch begin .. end, which ends `gap` before a border, touches it. */
static bool touches(double begin, double end, double gap)
{
    const double side = end - begin;

    return side >= TOUCHES * (side + fmax(gap, 0));
}

/* Sets what w does at the inner borders of d's tile. */
static void at_borders(const struct merge *g, size_t d, size_t w, struct pm_box *window,
                       bool *crosses, bool *touched)
{
    const struct pm_tile_grid *grid = g->m->grid;
    const struct pm_tile t = pm_tile_at(grid, g->tile[d]);
    const double *box = g->bounds[d].v, *whole = g->bounds[w].v;

    *window = (struct pm_box){ { t.y, t.x, t.y + t.height, t.x + t.width } };
    *crosses = *touched = false;
    for (int k = 0; k < 2; k++) {
        const double low = window->v[k], high = window->v[k + 2];

        if (low > 0 && whole[k] < low) {
            *crosses = true;
            *touched |= touches(box[k], box[k + 2], box[k] - low);
        }
        if (high < grid->size[k] && whole[k + 2] > high) {
            *crosses = true;
            *touched |= touches(box[k], box[k + 2], high - box[k + 2]);
        }
    }
}

static bool counts(const struct merge *g, size_t w, size_t d)
{
    const double score = pm_box_score(&g->list[w]);

    return score >= pm_box_score(&g->list[d]) || score > g->m->least[g->list[w].label];
}

static bool is_part(const struct merge *g, size_t d, size_t w)
{
    const struct pm_box_geometry *of = g->m->geometry;
    const double *part = g->box[d], *whole = g->box[w];
    struct pm_box window;
    bool crosses, touched;

    if (!(g->area[w] > g->area[d]) || !counts(g, w, d))
        return false;
    at_borders(g, d, w, &window, &crosses, &touched);
    if (!crosses)
        return false;
    if (of->agreement(part, whole, &window) > g->m->iou_threshold)
        return true;
    return touched && of->overlap(part, whole, true) > MOST_OF_IT;
}

/* ---- suppression --------------------------------------------------------------------------- */

struct key { double score; size_t index; };

static int by_score(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    return x->score != y->score ? (x->score > y->score ? -1 : 1)
                                : (x->index > y->index) - (x->index < y->index);
}

/* Sets the order of falling scores; equal ones by index. */
static void sort(struct merge *g)
{
    struct key *keys = pm_malloc((g->count + 1) * sizeof *keys);

    for (size_t i = 0; i < g->count; i++)
        keys[i] = (struct key){ pm_box_score(&g->list[i]), i };
    qsort(keys, g->count, sizeof *keys, by_score);
    for (size_t i = 0; i < g->count; i++)
        g->order[i] = keys[i].index;
    pm_free(keys);
}

static bool suppresses(const struct merge *g, size_t i, size_t other)
{
    return g->kept[other] && g->m->geometry->overlap(g->box[i], g->box[other], false) >
                                 g->m->iou_threshold;
}

/* The limits do not stop it, so that those left out are counted. */
static size_t suppress(struct merge *g, size_t *kept, size_t *over)
{
    int *of_class = pm_calloc((size_t)g->m->classes + 1, sizeof *of_class);
    size_t n = 0;

    *over = 0;
    sort(g);
    for (size_t k = 0; k < g->count; k++) {
        const size_t i = g->order[k];
        const int label = g->list[i].label;

        if (g->part[i] || has_other(g, i, suppresses))
            continue;
        g->kept[i] = true;
        if (n < (size_t)g->m->max_total && of_class[label] < g->m->max_per_class) {
            kept[n++] = i;
            of_class[label]++;
        } else if (pm_box_score(&g->list[i]) > g->m->least[label]) {
            ++*over;
        }
    }
    pm_free(of_class);
    return n;
}

size_t pm_tile_merge(const struct pm_tile_merging *m, const struct pm_box_detection *list,
                     const size_t *tile, size_t count, size_t *kept, size_t *over)
{
    struct merge g;
    size_t n;

    merge_open(m, list, tile, count, &g);
    for (size_t i = 0; i < count; i++)
        g.part[i] = has_other(&g, i, is_part);
    n = suppress(&g, kept, over);
    merge_close(&g);
    return n;
}
