/* matching_rotated: see matching_rotated.h. An overlap is computed only if it can matter. In the
 * frame of the true box, the anchor's hull and the true box share a rectangle, which contains the
 * intersection; this gives an upper bound of the IoU, for blocks of anchors at once. This file is
 * compiled without fused multiply-add, as matching.c is. */
#include "tasks/detection/matching_rotated.h"

#include <assert.h>
#include <math.h>
#include <pumice/base.h>
#include <string.h>

#include "base/vector.h"
#include "box_coder.params.h"

#define SLACK 1.0001f /* for the rounding of areas and of computed overlaps */

/* Of blocks: the hull of the circles, the smallest and the largest area. */
enum hull { YMIN, XMIN, YMAX, XMAX, AREA_MIN, AREA_MAX, HULL };

struct pm_rotated_index {
    int count, block, blocks;
    float *boxes;               /* [count][5] */
    struct pm_rotated_one *one; /* [count] */
    /* [blocks * block] each: numbers of `one` by member, and further ones; 0 after the last. */
    float *y, *x, *h, *w, *c, *s, *reach, *area, *angle;
    float *hull[HULL]; /* [blocks] each */
};

static void make_hull(struct pm_rotated_index *x, int b)
{
    float k[HULL] = { INFINITY, INFINITY, -INFINITY, -INFINITY, INFINITY, 0 };

    for (int i = b * x->block; i < (b + 1) * x->block && i < x->count; i++) {
        const float y = x->y[i], at = x->x[i], reach = x->reach[i] * SLACK;

        k[YMIN] = fminf(k[YMIN], y - reach);
        k[XMIN] = fminf(k[XMIN], at - reach);
        k[YMAX] = fmaxf(k[YMAX], y + reach);
        k[XMAX] = fmaxf(k[XMAX], at + reach);
        k[AREA_MIN] = fminf(k[AREA_MIN], x->area[i]);
        k[AREA_MAX] = fmaxf(k[AREA_MAX], x->area[i]);
    }
    for (int i = 0; i < HULL; i++)
        x->hull[i][b] = k[i];
}

static float **members_of(struct pm_rotated_index *x, int member)
{
    float **const list[] = { &x->y, &x->x,     &x->h,    &x->w,    &x->c,
                             &x->s, &x->reach, &x->area, &x->angle };

    return member < (int)(sizeof list / sizeof *list) ? list[member] : NULL;
}

static void fill_members(struct pm_rotated_index *x)
{
    for (int i = 0; i < x->count; i++) {
        const float *v = x->one[i].v;

        x->y[i] = v[PM_ROTATED_Y], x->x[i] = v[PM_ROTATED_X];
        x->h[i] = v[PM_ROTATED_H], x->w[i] = v[PM_ROTATED_W];
        x->c[i] = v[PM_ROTATED_C], x->s[i] = v[PM_ROTATED_S];
        x->reach[i] = pm_rotated_reach_of(&x->one[i]);
        x->area[i] = pm_rotated_area_of(&x->one[i]);
        x->angle[i] = x->boxes[(size_t)i * PM_ROTATED_BOX + 4];
    }
}

struct pm_rotated_index *pm_rotated_index_create(const float *anchors, int count, int block)
{
    const size_t n = (size_t)count;
    struct pm_rotated_index *x = pm_calloc(1, sizeof *x);

    assert(block > 0 && block <= PM_ROTATED_BLOCK);
    x->count = count, x->block = block, x->blocks = (count + block - 1) / block;
    x->boxes = pm_malloc((n + 1) * PM_ROTATED_BOX * sizeof *x->boxes);
    memcpy(x->boxes, anchors, n * PM_ROTATED_BOX * sizeof *x->boxes);
    x->one = pm_malloc((n + 1) * sizeof *x->one);
    pm_rotated_prepare_all(anchors, n, x->one);
    for (int i = 0; members_of(x, i); i++)
        *members_of(x, i) = pm_calloc((size_t)x->blocks * (size_t)block + 1, sizeof(float));
    fill_members(x);
    for (int i = 0; i < HULL; i++)
        x->hull[i] = pm_malloc(((size_t)x->blocks + 1) * sizeof *x->hull[i]);
    for (int b = 0; b < x->blocks; b++)
        make_hull(x, b);
    return x;
}

void pm_rotated_index_destroy(struct pm_rotated_index **index)
{
    struct pm_rotated_index *x = *index;

    if (!x)
        return;
    pm_free(x->boxes);
    pm_free(x->one);
    for (int i = 0; members_of(x, i); i++)
        pm_free(*members_of(x, i));
    for (int i = 0; i < HULL; i++)
        pm_free(x->hull[i]);
    pm_free(x);
    *index = NULL;
}

struct pm_rotated_truth pm_rotated_truth_of(const float box[PM_ROTATED_BOX])
{
    struct pm_rotated_truth t = { .angle = box[4] };

    pm_rotated_prepare(box, &t.one);
    t.area = pm_rotated_area_of(&t.one);
    t.reach = pm_rotated_reach_of(&t.one);
    return t;
}

void pm_rotated_index_box(const struct pm_rotated_index *x, int anchor, float box[PM_ROTATED_BOX])
{
    memcpy(box, x->boxes + (size_t)anchor * PM_ROTATED_BOX, PM_ROTATED_BOX * sizeof *box);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

PM_CLONES static void fill_limits(const struct pm_rotated_index *x, float y, float at, float reach,
                                  float area, float *restrict limit)
{
    const float *ymin = x->hull[YMIN], *xmin = x->hull[XMIN], *ymax = x->hull[YMAX];
    const float *xmax = x->hull[XMAX], *least = x->hull[AREA_MIN], *most = x->hull[AREA_MAX];
    const float y0 = y - reach, y1 = y + reach, x0 = at - reach, x1 = at + reach;

    PM_SIMD
    for (int b = 0; b < x->blocks; b++) {
        const float smaller = area < most[b] ? area : most[b];
        const float larger = area > least[b] ? area : least[b];
        const float ratio = smaller / larger * SLACK;
        const bool meets = (y0 <= ymax[b]) & (y1 >= ymin[b]) & (x0 <= xmax[b]) & (x1 >= xmin[b]);

        limit[b] = meets ? ratio : 0;
    }
}

void pm_rotated_index_limits(const struct pm_rotated_index *x, const struct pm_rotated_truth *t,
                             float *limit)
{
    fill_limits(x, t->one.v[PM_ROTATED_Y], t->one.v[PM_ROTATED_X], t->reach * SLACK, t->area,
                limit);
}

/* ---- overlaps -------------------------------------------------------------------------------- */

static bool is_far(float a, float b)
{
    return fabsf(a - b) > PM_QUARTER_TURN;
}

/* flag[i] becomes 1 if the overlap of t and anchor first + i may be above 0 and reach `needed`, an
 * IoU; else 0. v[i] becomes 0, or PM_FAR_ANGLE if the angles differ by more than `most`. Returns
 * the number of flags that are 1. The bound has room for errors of 1e-6 of the boxes' reach. */
PM_CLONES static int find_candidates(const struct pm_rotated_index *x, int first, int n,
                                     const struct pm_rotated_truth *t, float needed, float most,
                                     int *restrict flag, float *restrict v)
{
    const float *ys = x->y + first, *xs = x->x + first, *hs = x->h + first, *ws = x->w + first;
    const float *cs = x->c + first, *ss = x->s + first, *reaches = x->reach + first;
    const float *areas = x->area + first, *angles = x->angle + first, *u = t->one.v;
    const float y = u[PM_ROTATED_Y], at = u[PM_ROTATED_X], c = u[PM_ROTATED_C];
    const float s = u[PM_ROTATED_S], h = u[PM_ROTATED_H], w = u[PM_ROTATED_W], area = t->area;
    const float angle = t->angle, reach = t->reach;
    int count = 0;

    PM_SIMD
    for (int i = 0; i < n; i++) {
        const float dy = ys[i] - y, dx = xs[i] - at, room = 1e-6f * (reach + reaches[i]);
        const float along = fabsf(c * dx + s * dy), across = fabsf(c * dy - s * dx);
        const float cosine = fabsf(c * cs[i] + s * ss[i]), sine = fabsf(c * ss[i] - s * cs[i]);
        const float hull_w = ws[i] * cosine + hs[i] * sine;
        const float hull_h = ws[i] * sine + hs[i] * cosine;
        const float both_w = w + hull_w - along, both_h = h + hull_h - across;
        const float least_w = w < hull_w ? w : hull_w, least_h = h < hull_h ? h : hull_h;
        const float side_w = (both_w < 2 * least_w ? both_w : 2 * least_w) + room;
        const float side_h = (both_h < 2 * least_h ? both_h : 2 * least_h) + room;
        const float smaller = area < areas[i] ? area : areas[i];
        const float inner = side_w * side_h < smaller ? side_w * side_h : smaller;
        const int far = fabsf(angle - angles[i]) > most;
        const int hit = (side_w > 0) & (side_h > 0) & !far &
                        (inner * SLACK >= needed * (area + areas[i] - inner));

        v[i] = far ? PM_FAR_ANGLE : 0;
        flag[i] = hit;
        count += hit;
    }
    return count;
}

/* Computes the pairs at[0..count-1] of v. */
static void put_batch(const struct pm_rotated_index *x, int first, const int *at, int count,
                      const struct pm_rotated_truth *t, bool over_anchor, float *v)
{
    const struct pm_rotated_one *list[PM_ROTATED_BATCH] = { NULL };
    float inner[PM_ROTATED_BATCH], joined[PM_ROTATED_BATCH];

    for (int k = 0; k < count; k++)
        list[k] = &x->one[first + at[k]];
    pm_rotated_overlaps(&t->one, list, count, inner, joined);
    for (int k = 0; k < count; k++)
        v[at[k]] = inner[k] > 0 ? inner[k] / (over_anchor ? x->area[first + at[k]] : joined[k]) : 0;
}

void pm_rotated_index_overlaps(const struct pm_rotated_index *x, int first, int n,
                               const struct pm_rotated_truth *t, bool over_anchor, bool far,
                               float needed, float *v)
{
    int flag[PM_ROTATED_BLOCK], batch[PM_ROTATED_BATCH], filled = 0;

    assert(n <= PM_ROTATED_BLOCK);
    if (find_candidates(x, first, n, t, over_anchor ? 0 : needed,
                        far ? PM_QUARTER_TURN : INFINITY, flag, v) == 0)
        return;
    for (int i = 0; i < n; i++) {
        if (!flag[i])
            continue;
        batch[filled++] = i;
        if (filled == PM_ROTATED_BATCH) {
            put_batch(x, first, batch, filled, t, over_anchor, v);
            filled = 0;
        }
    }
    if (filled)
        put_batch(x, first, batch, filled, t, over_anchor, v);
}

/* ---- the rule of far angles ------------------------------------------------------------------ */

/* Whether an anchor has a far angle to a true box and a near one to another. */
static bool has_far_and_near(const struct pm_rotated_index *x, int anchor,
                             const struct pm_rotated_truth *truths, int count)
{
    bool far = false, near = false;

    for (int i = 0; i < count && !(far && near); i++)
        if (is_far(truths[i].angle, x->angle[anchor]))
            far = true;
        else
            near = true;
    return far && near;
}

/* Clears open[i] of the anchors of a block that overlap a true box with a near angle. */
static void close_block(const struct pm_rotated_index *x, int first, int n,
                        const struct pm_rotated_truth *t, bool *open)
{
    int flag[PM_ROTATED_BLOCK], batch[PM_ROTATED_BATCH], filled = 0;
    float v[PM_ROTATED_BLOCK];

    if (find_candidates(x, first, n, t, 0, PM_QUARTER_TURN, flag, v) == 0)
        return;
    for (int i = 0; i <= n; i++) {
        if (i < n && flag[i] && open[i])
            batch[filled++] = i;
        if (filled == PM_ROTATED_BATCH || (i == n && filled)) {
            put_batch(x, first, batch, filled, t, false, v);
            for (int k = 0; k < filled; k++)
                open[batch[k]] = !(v[batch[k]] > 0);
            filled = 0;
        }
    }
}

static bool any_open(const bool *open, int n)
{
    for (int i = 0; i < n; i++)
        if (open[i])
            return true;
    return false;
}

void pm_rotated_index_only_far(const struct pm_rotated_index *x,
                               const struct pm_rotated_truth *truths, int count, bool *open)
{
    float *limit = pm_malloc(((size_t)x->blocks + 1) * sizeof *limit);

    for (int i = 0; i < x->count; i++)
        open[i] = open[i] && has_far_and_near(x, i, truths, count);
    for (int row = 0; row < count; row++) {
        pm_rotated_index_limits(x, &truths[row], limit);
        for (int b = 0; b < x->blocks; b++) {
            const int first = b * x->block, left = x->count - first;
            const int n = left < x->block ? left : x->block;

            if (limit[b] > 0 && any_open(open + first, n))
                close_block(x, first, n, &truths[row], open + first);
        }
    }
    pm_free(limit);
}

/* ---- borders --------------------------------------------------------------------------------- */

bool pm_rotated_index_outside(const struct pm_rotated_index *x, int anchor, float width,
                              float border)
{
    return !pm_rotated_is_inside(x->boxes + (size_t)anchor * PM_ROTATED_BOX, width, border);
}

bool pm_rotated_index_beyond(const struct pm_rotated_index *x, int anchor, float width)
{
    const float *b = x->boxes + (size_t)anchor * PM_ROTATED_BOX;

    return b[0] >= 1 || b[1] >= width;
}
