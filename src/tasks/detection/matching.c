/* How blocks are skipped. A block is BLOCK anchors in their own order: a few neighbouring cells of
 * one level, so its hull is small. For a true box and a block, limit() returns a similarity that no
 * anchor of the block exceeds. The block matters to the anchors only if the limit reaches the lower
 * threshold (below it, an anchor's match does not depend on the box), and to the true box only if
 * the limit reaches the best similarity found so far. The block with the highest limit comes first,
 * so that this best similarity is high from the beginning.
 *
 * The limit of the IoU: with intersection i and areas a (box) and b (anchor), i / (a + b - i) grows
 * with i and falls with b, where b >= i. An upper bound of i comes from the hull and the largest
 * sides, a lower bound of b from the smallest area. Float32's subtraction and product are
 * monotonic, so the bound of i holds for the computed values too; the computed quotient errs by a
 * few units in the last place, for which SLACK makes room. */
#include "matching.h"
#include "matching_rotated.h"
#include "base/vector.h"
#include "decode_boxes.params.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 64 };
#define SLACK 1.0001f
/* An anchor that touches the border is inside. Its edge is a difference of numbers below 1 in
 * double precision, so it errs by 1e-16, and by 6e-8 after rounding to float. 1e-6 is a thousandth
 * of a pixel at 1000 pixels. */
#define BORDER CLASS_SCORES_BORDER

/* Of blocks: the hull, the largest sides, the smallest area. */
enum hull { YMIN, XMIN, YMAX, XMAX, HEIGHT, WIDTH, AREA, HULL };

struct pm_anchor_index {
    int count, blocks;
    float *edges[4], *area; /* [count] each */
    float *hull[HULL];      /* [blocks] each */
    bool *outside;          /* [count]: pruned; NULL: none */
    struct pm_rotated_index *rotated; /* NULL: upright. Else edges, area and hull are NULL */
    float width;                      /* rotated: the right border */
};

/* ---- the index --------------------------------------------------------------------------- */

static int block_size(const struct pm_anchor_index *x, int b)
{
    return x->count - b * BLOCK < BLOCK ? x->count - b * BLOCK : BLOCK;
}

static void make_hull(struct pm_anchor_index *x, int b)
{
    float k[HULL] = { INFINITY, INFINITY, -INFINITY, -INFINITY, 0, 0, INFINITY };

    for (int i = b * BLOCK; i < b * BLOCK + block_size(x, b); i++) {
        k[YMIN] = fminf(k[YMIN], x->edges[0][i]);
        k[XMIN] = fminf(k[XMIN], x->edges[1][i]);
        k[YMAX] = fmaxf(k[YMAX], x->edges[2][i]);
        k[XMAX] = fmaxf(k[XMAX], x->edges[3][i]);
        k[HEIGHT] = fmaxf(k[HEIGHT], x->edges[2][i] - x->edges[0][i]);
        k[WIDTH] = fmaxf(k[WIDTH], x->edges[3][i] - x->edges[1][i]);
        k[AREA] = fminf(k[AREA], x->area[i]);
    }
    for (int i = 0; i < HULL; i++)
        x->hull[i][b] = k[i];
}

struct pm_anchor_index *pm_anchor_index_create(const float *anchors, int count)
{
    struct pm_anchor_index *x = pm_calloc(1, sizeof *x);

    assert(count >= 0);
    x->count = count;
    x->blocks = (count + BLOCK - 1) / BLOCK;
    for (int e = 0; e < 4; e++)
        x->edges[e] = pm_malloc((size_t)count * sizeof *x->edges[e]);
    x->area = pm_malloc((size_t)count * sizeof *x->area);
    for (int i = 0; i < HULL; i++)
        x->hull[i] = pm_malloc((size_t)x->blocks * sizeof *x->hull[i]);
    for (int i = 0; i < count; i++) {
        const float *a = anchors + 4 * (size_t)i;

        for (int e = 0; e < 4; e++)
            x->edges[e][i] = a[e];
        x->area[i] = (a[2] - a[0]) * (a[3] - a[1]);
    }
    for (int b = 0; b < x->blocks; b++)
        make_hull(x, b);
    return x;
}

struct pm_anchor_index *pm_anchor_index_create_rotated(const float *anchors, int count,
                                                       float width)
{
    struct pm_anchor_index *x = pm_calloc(1, sizeof *x);

    assert(count >= 0);
    x->count = count;
    x->blocks = (count + BLOCK - 1) / BLOCK;
    x->rotated = pm_rotated_index_create(anchors, count, BLOCK);
    x->width = width;
    return x;
}

void pm_anchor_index_destroy(struct pm_anchor_index **index)
{
    struct pm_anchor_index *x = *index;

    if (!x)
        return;
    for (int e = 0; e < 4; e++)
        pm_free(x->edges[e]);
    pm_free(x->area);
    pm_free(x->outside);
    pm_rotated_index_destroy(&x->rotated);
    for (int i = 0; i < HULL; i++)
        pm_free(x->hull[i]);
    pm_free(x);
    *index = NULL;
}

int pm_anchor_index_prune(struct pm_anchor_index *x)
{
    const float low = -BORDER, high = 1 + BORDER;
    int left = 0;

    x->outside = pm_calloc((size_t)x->count + 1, sizeof *x->outside);
    for (int i = 0; i < x->count; i++) {
        x->outside[i] =
            x->rotated ? pm_rotated_index_outside(x->rotated, i, x->width, BORDER)
                       : x->edges[0][i] < low || x->edges[1][i] < low || x->edges[2][i] > high ||
                             x->edges[3][i] > high;
        left += !x->outside[i];
    }
    return left;
}

int pm_anchor_index_count(const struct pm_anchor_index *x)
{
    return x->count;
}

int pm_anchor_index_numbers(const struct pm_anchor_index *x)
{
    return x->rotated ? PM_ROTATED_BOX : 4;
}

void pm_anchor_index_box(const struct pm_anchor_index *x, int anchor, float *box)
{
    assert(anchor >= 0 && anchor < x->count);
    if (x->rotated) {
        pm_rotated_index_box(x->rotated, anchor, box);
        return;
    }
    for (int e = 0; e < 4; e++)
        box[e] = x->edges[e][anchor];
}

/* ---- similarities ------------------------------------------------------------------------ */

/* Like fminf and fmaxf for numbers, but one instruction each. */
PM_INLINE float least(float a, float b)
{
    return a < b ? a : b;
}

PM_INLINE float most(float a, float b)
{
    return a > b ? a : b;
}

struct truth {
    float edges[4], area, score;
    struct pm_rotated_truth rotated;
};

static struct truth truth_of(const struct pm_anchor_index *x, const struct pm_truths *t, int row)
{
    if (x->rotated)
        return (struct truth){ .score = t->scores ? t->scores[row] : 1,
                               .rotated = pm_rotated_truth_of(t->boxes + PM_ROTATED_BOX *
                                                                             (size_t)row) };
    const float *box = t->boxes + 4 * (size_t)row;

    return (struct truth) { .edges = { box[0], box[1], box[2], box[3] },
                            .area = (box[2] - box[0]) * (box[3] - box[1]),
                            .score = t->scores ? t->scores[row] : 1 };
}

/* v [n]: the IoU, or with over_anchor the IoA, of t and the anchors from `first` on. */
PM_INLINE void overlaps(const struct pm_anchor_index *x, int first, int n, const struct truth *t,
                        bool over_anchor, float *restrict v)
{
    const float *ymin = x->edges[0] + first, *xmin = x->edges[1] + first;
    const float *ymax = x->edges[2] + first, *xmax = x->edges[3] + first, *area = x->area + first;
    const struct truth b = *t;

    PM_SIMD
    for (int i = 0; i < n; i++) {
        float h = most(0, least(b.edges[2], ymax[i]) - most(b.edges[0], ymin[i]));
        float w = most(0, least(b.edges[3], xmax[i]) - most(b.edges[1], xmin[i]));
        float both = h * w;
        float over = over_anchor ? area[i] : b.area + area[i] - both;

        v[i] = both == 0 ? 0 : both / over;
    }
}

PM_CLONES static void iou(const struct pm_anchor_index *x, int first, int n, const struct truth *t,
                          float *v)
{
    overlaps(x, first, n, t, false, v);
}

PM_CLONES static void ioa(const struct pm_anchor_index *x, int first, int n, const struct truth *t,
                          float *v)
{
    overlaps(x, first, n, t, true, v);
}

PM_CLONES static void neg_sq_dist(const struct pm_anchor_index *x, int first, int n,
                                  const struct truth *t, float *restrict v)
{
    memset(v, 0, (size_t)n * sizeof *v);
    for (int e = 0; e < 4; e++) {
        const float *edge = x->edges[e] + first;

        PM_SIMD
        for (int i = 0; i < n; i++)
            v[i] -= (t->edges[e] - edge[i]) * (t->edges[e] - edge[i]);
    }
}

/* v [n]: similarities of t and the anchors of block b; returns n. Those below `needed` may be 0. */
static int similarities(const struct pm_matcher *m, const struct pm_anchor_index *x, int b,
                        const struct truth *t, float needed, float v[BLOCK])
{
    int n = block_size(x, b);

    if (x->rotated) {
        const bool by_score = m->similarity == PM_THRESHOLDED_IOU;

        pm_rotated_index_overlaps(x->rotated, b * BLOCK, n, &t->rotated, m->similarity == PM_IOA,
                                  m->far_angles, by_score ? 0 : needed, v);
        for (int i = 0; by_score && i < n; i++)
            v[i] = v[i] > m->iou_threshold ? t->score : v[i] < 0 ? v[i] : 0;
    } else if (m->similarity == PM_NEG_SQ_DIST) {
        neg_sq_dist(x, b * BLOCK, n, t, v);
    } else if (m->similarity == PM_IOA) {
        ioa(x, b * BLOCK, n, t, v);
    } else {
        iou(x, b * BLOCK, n, t, v);
        for (int i = 0; m->similarity == PM_THRESHOLDED_IOU && i < n; i++)
            v[i] = v[i] > m->iou_threshold ? t->score : 0;
    }
    return n;
}

/* Writes for each block an IoU that none of its anchors exceeds, 0 only if all are 0. */
PM_CLONES static void iou_limits(const struct pm_anchor_index *x, const struct truth *t,
                                 float *restrict limit)
{
    const struct truth b = *t;
    const float height = b.edges[2] - b.edges[0], width = b.edges[3] - b.edges[1];

    PM_SIMD
    for (int i = 0; i < x->blocks; i++) {
        float h = least(b.edges[2], x->hull[YMAX][i]) - most(b.edges[0], x->hull[YMIN][i]);
        float w = least(b.edges[3], x->hull[XMAX][i]) - most(b.edges[1], x->hull[XMIN][i]);
        float both = most(0, least(h, least(height, x->hull[HEIGHT][i])))
                   * most(0, least(w, least(width, x->hull[WIDTH][i])));

        limit[i] = both == 0 ? 0 : both / (b.area + most(x->hull[AREA][i], both) - both) * SLACK;
    }
}

/* The same for m's similarity. */
static void limits(const struct pm_matcher *m, const struct pm_anchor_index *x,
                   const struct truth *t, float *limit)
{
    assert(!x->rotated || m->similarity != PM_NEG_SQ_DIST);
    if (x->rotated)
        pm_rotated_index_limits(x->rotated, &t->rotated, limit);
    else
        iou_limits(x, t, limit);
    for (int b = 0; m->similarity != PM_IOU && b < x->blocks; b++)
        if (m->similarity == PM_NEG_SQ_DIST)
            limit[b] = INFINITY;
        else if (m->similarity == PM_IOA)
            limit[b] = limit[b] > 0 ? INFINITY : 0;
        else
            limit[b] = limit[b] > m->iou_threshold ? t->score : 0;
}

/* ---- the matchers ------------------------------------------------------------------------ */

/* Working memory of one call. */
struct work {
    float *limit;             /* [blocks] */
    float *similarity;        /* [anchors] of the box in the call's `out`; argmax only */
    struct pm_truth_best *best;
    const bool *taken;        /* [anchors]: no box's most similar anchor; NULL: none */
};

/* The similarity of a pair that nothing can be below. */
static float lowest(const struct pm_matcher *m)
{
    return m->similarity == PM_NEG_SQ_DIST ? -INFINITY : 0;
}

PM_CLONES static void take_better(int n, const float *v, int32_t row, float *restrict similarity,
                                  int32_t *restrict out)
{
    PM_SIMD
    for (int i = 0; i < n; i++) {
        bool better = v[i] > similarity[i];

        similarity[i] = better ? v[i] : similarity[i];
        out[i] = better ? row : out[i];
    }
}

PM_CLONES static bool any_reaches(int n, const float *v, float limit)
{
    int any = 0;

    for (int i = 0; i < n; i++)
        any |= v[i] >= limit;
    return any != 0;
}

/* Updates a box's most similar anchor. Blocks come in any order; of equals the first anchor wins,
 * but similarity 0 is no overlap. */
static void find_best(int n, const float *v, int first, const bool *taken, struct pm_truth_best *s)
{
    if (!any_reaches(n, v, s->similarity))
        return;
    for (int i = 0; i < n; i++) {
        if (taken && taken[first + i])
            continue;
        if (v[i] > s->similarity || (v[i] == s->similarity && first + i < s->anchor))
            *s = (struct pm_truth_best) { first + i, v[i] };
    }
}

static int highest(const float *v, int count)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (v[i] > v[best])
            best = i;
    return best;
}

/* Visits the blocks that matter to the box `row`. The anchors take it where it is more similar than
 * the boxes before it, if `out` is not NULL; `best`, if not NULL, becomes its most similar anchor
 * that is not taken. */
static void visit(const struct pm_matcher *m, const struct pm_anchor_index *x,
                  const struct pm_truths *truths, int row, struct work *w, int32_t *out,
                  struct pm_truth_best *best)
{
    const struct truth t = truth_of(x, truths, row);
    const float low = m->ignore_thresholds ? -INFINITY : m->unmatched_threshold;
    const int start = (limits(m, x, &t, w->limit), highest(w->limit, x->blocks));
    float v[BLOCK];

    if (best)
        *best = (struct pm_truth_best) { -1, lowest(m) };
    for (int i = 0; i < x->blocks; i++) {
        int b = i == 0 ? start : i <= start ? i - 1 : i;
        bool own = out && w->limit[b] >= low;

        if (w->limit[b] <= 0 || !(own || (best && w->limit[b] >= best->similarity)))
            continue;
        const float needed = fminf(own ? low : INFINITY, best ? best->similarity : INFINITY);
        int n = similarities(m, x, b, &t, needed, v), first = b * BLOCK;

        if (own)
            take_better(n, v, row, w->similarity + first, out + first);
        if (best)
            find_best(n, v, first, w->taken, best);
    }
}

static bool valid(const struct pm_truths *t, int row)
{
    return !t->weights || t->weights[row] > 0;
}

/* Turns each anchor's best box into its match by the thresholds. */
static void apply_thresholds(const struct pm_matcher *m, const struct work *w, int count,
                             int32_t *out)
{
    const int32_t below = m->negatives_lower_than_unmatched ? PM_NEGATIVE : PM_IGNORED;
    const int32_t between = m->negatives_lower_than_unmatched ? PM_IGNORED : PM_NEGATIVE;

    if (m->ignore_thresholds)
        return;
    for (int i = 0; i < count; i++)
        if (w->similarity[i] < m->unmatched_threshold)
            out[i] = below;
        else if (w->similarity[i] < m->matched_threshold)
            out[i] = between;
}

/* The rule of far angles for anchors that overlap no true box: see struct pm_matcher. */
static void ignore_far(const struct pm_anchor_index *x, const struct pm_truths *t,
                       const struct work *w, int32_t *out)
{
    struct pm_rotated_truth *truths = pm_malloc(((size_t)t->count + 1) * sizeof *truths);
    bool *open = pm_malloc((size_t)x->count * sizeof *open);

    for (int row = 0; row < t->count; row++)
        truths[row] = pm_rotated_truth_of(t->boxes + PM_ROTATED_BOX * (size_t)row);
    for (int i = 0; i < x->count; i++)
        open[i] = !(w->similarity[i] > 0);
    pm_rotated_index_only_far(x->rotated, truths, t->count, open);
    for (int i = 0; i < x->count; i++)
        if (open[i])
            out[i] = PM_IGNORED;
    pm_free(truths);
    pm_free(open);
}

static int first_free(const bool *taken, int count)
{
    for (int i = 0; i < count; i++)
        if (!taken || !taken[i])
            return i;
    return -1;
}

/* Each valid box claims its best anchor. The last writer has the anchor. */
static void force(const struct pm_matcher *m, const struct pm_truths *t, const struct work *w,
                  int count, int32_t *out)
{
    for (int i = 0; i < t->count; i++) {
        int row = m->strict ? i : t->count - 1 - i;
        int anchor = w->best[row].anchor;

        if (anchor < 0 && m->strict)
            anchor = first_free(w->taken, count);
        if (valid(t, row) && anchor >= 0)
            out[anchor] = row;
    }
}

static void match_argmax(const struct pm_matcher *m, const struct pm_anchor_index *x,
                         const struct pm_truths *t, struct work *w, bool want_best, int32_t *out)
{
    w->similarity = pm_malloc((size_t)x->count * sizeof *w->similarity);
    /* Anchors that no box overlaps belong to the first box, with similarity 0. */
    for (int i = 0; i < x->count; i++) {
        w->similarity[i] = lowest(m);
        out[i] = 0;
    }
    for (int row = 0; row < t->count; row++) {
        bool claims = m->force_match_for_each_row && valid(t, row);

        visit(m, x, t, row, w, out, claims || want_best ? &w->best[row] : NULL);
    }
    apply_thresholds(m, w, x->count, out);
    if (x->rotated && m->far_angles)
        ignore_far(x, t, w, out);
    if (m->force_match_for_each_row)
        force(m, t, w, x->count, out);
    pm_free(w->similarity);
}

/* Greedy without a matrix: each box knows its best free anchor. The box with the best pair takes
 * its anchor; where the anchor has been taken meanwhile, the box looks for another one first. */
static void match_bipartite(const struct pm_matcher *m, const struct pm_anchor_index *x,
                            const struct pm_truths *t, struct work *w, int32_t *out)
{
    bool *done = pm_calloc((size_t)t->count, sizeof *done);
    bool *taken = pm_calloc((size_t)x->count, sizeof *taken);

    if (x->outside)
        memcpy(taken, x->outside, (size_t)x->count * sizeof *taken);
    w->taken = taken;
    for (int row = 0; row < t->count; row++) {
        visit(m, x, t, row, w, NULL, &w->best[row]);
        done[row] = !valid(t, row);
    }
    for (;;) {
        int row = -1;

        for (int i = 0; i < t->count; i++)
            if (!done[i] && (row < 0 || w->best[i].similarity > w->best[row].similarity))
                row = i;
        if (row < 0)
            break;
        struct pm_truth_best *s = &w->best[row];

        if (s->anchor >= 0 && taken[s->anchor]) {
            visit(m, x, t, row, w, NULL, s);
            continue;
        }
        if (s->anchor < 0 && m->strict)
            s->anchor = first_free(taken, x->count);
        if (s->anchor >= 0) {
            out[s->anchor] = row;
            taken[s->anchor] = true;
        }
        done[row] = true;
    }
    pm_free(done);
    pm_free(taken);
    w->taken = x->outside;
}

static void ignore_outside(const struct pm_anchor_index *x, int32_t *out)
{
    for (int i = 0; i < x->count; i++)
        if (x->rotated ? pm_rotated_index_beyond(x->rotated, i, x->width)
                       : x->edges[0][i] + x->edges[2][i] >= 2 ||
                             x->edges[1][i] + x->edges[3][i] >= 2)
            out[i] = PM_IGNORED;
}

static void match(const struct pm_matcher *m, const struct pm_anchor_index *x,
                  const struct pm_truths *t, int32_t *out, struct pm_truth_best *best)
{
    struct work w = { .taken = x->outside };

    for (int i = 0; i < x->count; i++)
        out[i] = PM_NEGATIVE;
    for (int i = 0; best && i < t->count; i++)
        best[i] = (struct pm_truth_best) { -1, lowest(m) };
    if (t->count == 0 || x->count == 0)
        return;
    w.limit = pm_malloc((size_t)x->blocks * sizeof *w.limit);
    w.best = pm_malloc((size_t)t->count * sizeof *w.best);
    if (m->type == PM_MATCHER_ARGMAX) {
        match_argmax(m, x, t, &w, best != NULL, out);
        for (int row = 0; best && row < t->count; row++)
            best[row] = w.best[row];
    } else {
        match_bipartite(m, x, t, &w, out);
        for (int row = 0; best && row < t->count; row++)
            visit(m, x, t, row, &w, NULL, &best[row]);
    }
    pm_free(w.best);
    pm_free(w.limit);
}

void pm_match(const struct pm_matcher *m, const struct pm_anchor_index *x,
              const struct pm_truths *t, int32_t *out, struct pm_truth_best *best)
{
    match(m, x, t, out, best);
    if (m->ignore_outside)
        ignore_outside(x, out);
    for (int i = 0; x->outside && i < x->count; i++)
        if (x->outside[i])
            out[i] = PM_IGNORED;
}
