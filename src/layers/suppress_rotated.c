/* suppress_rotated: see suppress_rotated.h. All boxes are prepared first. A kept box then
 * suppresses a candidate if their overlap, rounded to the nearest float, is above the threshold.
 * Most pairs are decided by their centres and areas (overlap_below in rotated_clip.h). This file is
 * compiled without fused multiply-add. */
#include "layers/suppress_rotated.h"

#include <string.h>

#include "layers/suppress_lists.h"

enum { BATCH = PM_ROTATED_BATCH };

/* ---- prepare --------------------------------------------------------------------------------- */

static void prepare_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    pm_rotated_prepare_all((const float *)a->buf[0] + begin * PM_ROTATED_BOX, end - begin,
                           (struct pm_rotated_one *)a->buf[1] + begin);
}

static double prepare_flops(const void *params, size_t count)
{
    (void)params;
    return 600.0 * (double)count;
}

static const struct pm_kernel prepare = {
    .name = "rotated_prepare", .bufs = "r:boxes w:y", .cpu = prepare_cpu, .grain = 256,
    .params_size = sizeof(struct rotated_prepare_params), .flops = prepare_flops,
};

/* [.., 8] of boxes [.., 5]: struct pm_rotated_one. */
static struct pm_tensor prepared(struct pm_calls *c, struct pm_tensor boxes)
{
    const struct rotated_prepare_params p = { .rows = (int)(pm_count(boxes) / PM_ROTATED_BOX) };
    const struct pm_tensor y = pm_temp(c, PM_SHAPE2(p.rows, PM_ROTATED_MEMBERS), PM_F32);

    pm_call(c, &prepare, (size_t)p.rows, &p, PM_BUFS(boxes, y));
    return y;
}

/* ---- suppress -------------------------------------------------------------------------------- */

/* Memory of one call. */
struct work {
    struct pm_heap heap;
    float *score; /* soft suppression's current scores */
    struct pm_rotated_circles kept;
    int *near;
};

static struct work work_make(const struct suppress_params *p)
{
    const size_t n = (size_t)p->n, room = (n + BATCH - 1) / BATCH * BATCH;
    float *circles = pm_malloc((4 * room + 1) * sizeof *circles);

    return (struct work){
        .heap = { .v = pm_malloc((n + 1) * sizeof(uint64_t)) },
        .score = pm_malloc((n + 1) * sizeof(float)),
        .kept = { circles, circles + room, circles + 2 * room, circles + 3 * room },
        .near = pm_malloc((room + 1) * sizeof(int)),
    };
}

static void work_free(struct work *w)
{
    pm_free(w->heap.v);
    pm_free(w->score);
    pm_free(w->kept.y);
    pm_free(w->near);
}

/* One list. Its i-th box is box[stride * i]. */
struct list {
    const struct pm_rotated_one *box;
    const float *scores;
    size_t stride;
    int count;
    int *kept;
    float *kept_scores;
};

static struct list list_of(const struct pm_args *a, size_t list)
{
    const struct suppress_params *p = a->params;
    const size_t n = (size_t)p->n, classes = (size_t)p->classes, most = (size_t)p->most;
    const size_t image = list / classes, stride = (size_t)p->boxes;
    struct list l = {
        .box = (const struct pm_rotated_one *)a->buf[0] + image * n * stride +
               (stride > 1 ? list % classes : 0),
        .scores = (const float *)a->buf[1] + image * n * classes + list % classes,
        .stride = stride, .count = pm_suppress_valid(a->buf[2], image, p->n),
        .kept = (int *)a->buf[4] + list * most, .kept_scores = (float *)a->buf[5] + list * most,
    };

    return l;
}

/* Whether one of the first `count` kept boxes overlaps box i by more than the limit. */
static bool is_suppressed(struct work *w, const struct list *l, size_t i, int count, float limit)
{
    const struct pm_rotated_one *one = &l->box[l->stride * i], *other[BATCH];
    const int near = pm_rotated_near(one, w->kept, count, limit, w->near);
    float inner[BATCH], joined[BATCH];

    for (int first = 0; first < near; first += BATCH) {
        const int n = near - first < BATCH ? near - first : BATCH;

        for (int k = 0; k < n; k++)
            other[k] = &l->box[l->stride * (size_t)l->kept[w->near[first + k]]];
        pm_rotated_overlaps(one, other, n, inner, joined);
        for (int k = 0; k < n; k++)
            if (inner[k] > 0 && inner[k] / joined[k] > limit)
                return true;
    }
    return false;
}

static int suppress_list(const struct suppress_params *p, struct work *w, const struct list *l)
{
    int count = 0;

    pm_suppress_candidates(p, l->scores, l->count, &w->heap);
    for (size_t i = 0; i < ((size_t)p->n + BATCH - 1) / BATCH * BATCH; i++)
        w->kept.y[i] = w->kept.x[i] = w->kept.area[i] = 0, w->kept.reach[i] = NAN;
    while (w->heap.count > 0 && count < p->most) {
        const size_t i = pm_heap_pop(&w->heap);
        const struct pm_rotated_one *one = &l->box[l->stride * i];

        if (is_suppressed(w, l, i, count, p->iou_threshold))
            continue;
        w->kept.y[count] = one->v[PM_ROTATED_Y];
        w->kept.x[count] = one->v[PM_ROTATED_X];
        w->kept.reach[count] = pm_rotated_reach_of(one);
        w->kept.area[count] = pm_rotated_area_of(one);
        l->kept[count] = (int)i;
        l->kept_scores[count++] = l->scores[i * (size_t)p->classes];
    }
    return count;
}

/* Lowers the scores of the boxes that overlap box `taken`. Dropped ones get NaN. */
static void decay(const struct suppress_params *p, struct work *w, size_t taken,
                  const struct list *l)
{
    const struct pm_rotated_one *one = &l->box[l->stride * taken], *other[BATCH];
    float inner[BATCH], joined[BATCH];

    w->score[taken] = NAN;
    for (int first = 0; first < l->count; first += BATCH) {
        const int n = l->count - first < BATCH ? l->count - first : BATCH;

        for (int k = 0; k < n; k++)
            other[k] = &l->box[l->stride * (size_t)(first + k)];
        pm_rotated_overlaps(one, other, n, inner, joined);
        for (int k = 0; k < n; k++) {
            const float iou = inner[k] > 0 ? inner[k] / joined[k] : 0;

            w->score[first + k] *= iou > p->iou_threshold ? 0
                                   : iou > 0              ? pm_expf(p->decay * iou * iou)
                                                          : 1;
        }
    }
}

static int suppress_soft(const struct suppress_params *p, struct work *w, const struct list *l)
{
    int count = 0;

    pm_suppress_scores(p, l->scores, l->count, w->score);
    while (count < p->most) {
        const int at = pm_suppress_top(p, w->score, l->count);

        if (at < 0)
            break;
        l->kept[count] = at;
        l->kept_scores[count++] = w->score[at];
        decay(p, w, (size_t)at, l);
    }
    return count;
}

static void suppress_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct suppress_params *p = a->params;
    struct work w = work_make(p);

    for (size_t i = begin; i < end; i++) {
        const struct list l = list_of(a, i);
        const int count = p->decay < 0 ? suppress_soft(p, &w, &l) : suppress_list(p, &w, &l);

        pm_suppress_end(p, count, l.kept, l.kept_scores);
    }
    work_free(&w);
}

static bool suppress_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                          struct pm_picks *out)
{
    (void)caps;
    return pm_suppress_picks(params, "suppress_rotated", "suppress_rotated_soft", count, level,
                             out);
}

/* As for upright boxes; an overlap is some 400 operations. */
static double suppress_flops(const void *params, size_t count)
{
    const struct suppress_params *p = params;
    const double n = p->n, most = p->most < p->n ? p->most : p->n;

    return (double)count * (p->decay < 0 ? 400 * n * most : n * (8 + most / 4) + 40 * most * most);
}

static const struct pm_kernel suppress = {
    .name = "suppress_rotated",
    .bufs = "r:boxes r:scores r?:valid t:work w:kept w:kept_scores",
    .params_size = sizeof(struct suppress_params), .cpu = suppress_cpu, .grain = 1,
    .cpu_scratch = pm_suppress_no_scratch, .pick = suppress_pick, .flops = suppress_flops,
};

void pm_suppress_rotated(struct pm_calls *c, const struct suppress_params *p,
                         struct pm_tensor boxes, struct pm_tensor scores, struct pm_tensor valid,
                         struct pm_tensor kept, struct pm_tensor kept_scores)
{
    pm_call(c, &suppress, (size_t)p->lists, p,
            PM_BUFS(prepared(c, boxes), scores, valid, PM_NO_TENSOR, kept, kept_scores));
}

/* ---- merge ----------------------------------------------------------------------------------- */

/* The box of an entry. */
static const float *entry_box(const struct suppress_merge_params *p, const struct pm_args *a,
                              size_t image, size_t entry)
{
    const size_t e = image * (size_t)p->entries + entry, boxes = (size_t)p->boxes;
    const int anchor = ((const int *)a->buf[1])[e / (size_t)p->each];
    const size_t row = image * (size_t)p->n + (size_t)anchor;

    return (const float *)a->buf[0] +
           PM_ROTATED_BOX * (row * boxes + (boxes > 1 ? entry / (size_t)p->most : 0));
}

/* Fills the heap with the entries whose box has an area. */
static void collect(const struct suppress_merge_params *p, const struct pm_args *a, size_t image,
                    struct pm_heap *h)
{
    const size_t first = image * (size_t)p->entries;
    const int *kept = a->buf[1], *classes = a->buf[3];

    h->count = 0;
    for (size_t entry = 0; entry < (size_t)p->entries; entry++) {
        if (kept[(first + entry) / (size_t)p->each] < 0 || (classes && classes[first + entry] < 0))
            continue;
        const float *b = entry_box(p, a, image, entry);

        if (b[2] > 0 && b[3] > 0)
            pm_heap_add(h, pm_score_key(((const float *)a->buf[2])[first + entry]), entry);
    }
    pm_heap_order(h);
}

static void put(const struct suppress_merge_params *p, const struct pm_args *a, size_t image,
                size_t entry, size_t at)
{
    const size_t e = image * (size_t)p->entries + entry;
    const int *classes = a->buf[3];

    memcpy((float *)a->buf[4] + PM_ROTATED_BOX * at, entry_box(p, a, image, entry),
           PM_ROTATED_BOX * sizeof(float));
    ((float *)a->buf[5])[at] = ((const float *)a->buf[2])[e];
    ((int *)a->buf[6])[at] = classes ? classes[e] : (int)(entry / (size_t)p->most);
    ((int *)a->buf[8])[at] = ((const int *)a->buf[1])[e / (size_t)p->each];
}

static void merge_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct suppress_merge_params *p = a->params;
    struct pm_heap h = { .v = pm_malloc(((size_t)p->entries + 1) * sizeof *h.v) };

    for (size_t image = begin; image < end; image++) {
        int count = 0;
        size_t at = image * (size_t)p->outputs;

        collect(p, a, image, &h);
        for (; count < p->outputs && h.count > 0; count++)
            put(p, a, image, pm_heap_pop(&h), at++);
        pm_suppress_rest(p, image, count, PM_ROTATED_BOX, a->buf + 4);
    }
    pm_free(h.v);
}

static bool merge_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    (void)caps, (void)params;
    return pm_suppress_groups("suppress_rotated_merge", count, level, out);
}

static double merge_flops(const void *params, size_t count)
{
    const struct suppress_merge_params *p = params;

    return (double)count * p->entries * (8 + 6.0 * p->outputs / 256);
}

static const struct pm_kernel merge = {
    .name = "suppress_rotated_merge",
    .bufs = "r:boxes r:kept r:entry_scores r?:entry_classes w:y w:scores w:classes w:count "
            "w:anchors",
    .params_size = sizeof(struct suppress_merge_params), .cpu = merge_cpu, .grain = 1,
    .pick = merge_pick, .flops = merge_flops,
};

void pm_suppress_merge_rotated(struct pm_calls *c, const struct suppress_merge_params *p,
                               struct pm_tensor boxes, struct pm_tensor kept,
                               struct pm_tensor entry_scores, struct pm_tensor entry_classes,
                               const struct pm_tensor out[5])
{
    pm_call(c, &merge, (size_t)p->images, p,
            PM_BUFS(boxes, kept, entry_scores, entry_classes, out[0], out[1], out[2], out[3],
                    out[4]));
}
