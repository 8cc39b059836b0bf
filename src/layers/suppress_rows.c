/* suppress_rows: see suppress_rows.h. The C functions take candidates from a heap (candidates.h),
 * the shaders 256 at a time (lib/select.glsl). This file is compiled without fused multiply-add: an
 * overlap that equals the threshold must do so on every machine. */
#include "layers/suppress_rows.h"

#include <assert.h>

#include "layers/suppress_lists.h"
#include "layers/vmath.h"

enum { AT_ONCE = 16 }; /* kept boxes compared together */

/* ---- overlaps ------------------------------------------------------------------------------- */

/* Boxes by coordinate, with corners in order. Room is a multiple of AT_ONCE. */
struct boxes {
    float *y0, *x0, *y1, *x1, *area;
};

static struct boxes boxes_of(float *memory, size_t room)
{
    return (struct boxes){ memory, memory + room, memory + 2 * room, memory + 3 * room,
                           memory + 4 * room };
}

PM_INLINE void put_box(struct boxes b, size_t i, const float box[4])
{
    b.y0[i] = box[0] < box[2] ? box[0] : box[2];
    b.x0[i] = box[1] < box[3] ? box[1] : box[3];
    b.y1[i] = box[0] < box[2] ? box[2] : box[0];
    b.x1[i] = box[1] < box[3] ? box[3] : box[1];
    b.area[i] = (b.y1[i] - b.y0[i]) * (b.x1[i] - b.x0[i]);
}

/* Intersection over union of box i and the box in a[0]; NaN or 0 if one has no area. */
PM_INLINE float overlap(struct boxes b, size_t i, struct boxes a)
{
    float h = (a.y1[0] < b.y1[i] ? a.y1[0] : b.y1[i]) - (a.y0[0] > b.y0[i] ? a.y0[0] : b.y0[i]);
    float w = (a.x1[0] < b.x1[i] ? a.x1[0] : b.x1[i]) - (a.x0[0] > b.x0[i] ? a.x0[0] : b.x0[i]);

    h = h > 0 ? h : 0, w = w > 0 ? w : 0;
    return h * w / (a.area[0] + b.area[i] - h * w);
}

/* Whether a's box overlaps one of the first `count` boxes by more than the limit. */
PM_INLINE bool overlaps_any(struct boxes b, size_t count, struct boxes a, float limit)
{
    for (size_t i = 0; i < count; i += AT_ONCE) {
        int hits = 0;

        for (size_t k = i; k < i + AT_ONCE; k++)
            hits += overlap(b, k, a) > limit;
        if (hits)
            return true;
    }
    return false;
}

/* ---- suppress ------------------------------------------------------------------------------- */

struct work {
    struct pm_heap heap;
    float *memory, *score; /* score: soft suppression's current scores */
    struct boxes kept, all; /* all: soft suppression's */
    float one[5];
};

static struct work work_make(const struct suppress_params *p)
{
    const size_t n = (size_t)p->n, most = (size_t)(p->most < p->n ? p->most : p->n);
    const size_t room = ((p->decay < 0 ? n : most) + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    struct work w = { .heap = { .v = pm_malloc((n + 1) * sizeof(uint64_t)) },
                      .memory = pm_malloc(room * 5 * sizeof(float)) };

    w.kept = w.all = boxes_of(w.memory, room);
    w.score = p->decay < 0 ? pm_malloc((n + 1) * sizeof *w.score) : NULL;
    for (size_t i = 0; i < room * 5; i++)
        w.memory[i] = 0; /* boxes without area overlap none */
    return w;
}

static void work_free(struct work *w)
{
    pm_free(w->heap.v);
    pm_free(w->memory);
    pm_free(w->score);
}

/* One list. Its i-th box is box[4 * stride * i]. */
struct list {
    const float *box, *scores;
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
        .box = (const float *)a->buf[0] +
               4 * (image * n * stride + (stride > 1 ? list % classes : 0)),
        .scores = (const float *)a->buf[1] + image * n * classes + list % classes,
        .stride = 4 * stride, .count = pm_suppress_valid(a->buf[2], image, p->n),
        .kept = (int *)a->buf[4] + list * most, .kept_scores = (float *)a->buf[5] + list * most,
    };

    return l;
}

PM_CLONES static int suppress_list(const struct suppress_params *p, struct work *w,
                                   struct list l)
{
    const struct boxes one = boxes_of(w->one, 1);
    int count = 0;

    pm_suppress_candidates(p, l.scores, l.count, &w->heap);
    while (w->heap.count > 0 && count < p->most) {
        const size_t i = pm_heap_pop(&w->heap);

        put_box(one, 0, l.box + l.stride * i);
        if (overlaps_any(w->kept, (size_t)count, one, p->iou_threshold))
            continue;
        put_box(w->kept, (size_t)count, l.box + l.stride * i);
        l.kept[count] = (int)i;
        l.kept_scores[count++] = l.scores[i * (size_t)p->classes];
    }
    for (int i = 0; i < count; i++) /* for the next list */
        w->kept.y0[i] = w->kept.y1[i] = w->kept.x0[i] = w->kept.x1[i] = w->kept.area[i] = 0;
    return count;
}

/* Lowers the scores of the boxes that overlap box i. Dropped ones get NaN. */
PM_INLINE void decay(const struct suppress_params *p, struct work *w, size_t taken, struct list l)
{
    const struct boxes one = boxes_of(w->one, 1);

    put_box(one, 0, l.box + l.stride * taken);
    w->score[taken] = NAN;
    for (size_t i = 0; i < (size_t)l.count; i++) {
        const float iou = overlap(w->all, i, one);

        w->score[i] *= iou > p->iou_threshold ? 0 : iou > 0 ? pm_expf(p->decay * iou * iou) : 1;
    }
}

PM_CLONES static int suppress_soft(const struct suppress_params *p, struct work *w, struct list l)
{
    int count = 0;

    pm_suppress_scores(p, l.scores, l.count, w->score);
    for (int i = 0; i < l.count; i++)
        put_box(w->all, (size_t)i, l.box + l.stride * (size_t)i);
    while (count < p->most) {
        const int at = pm_suppress_top(p, w->score, l.count);

        if (at < 0)
            break;
        l.kept[count] = at;
        l.kept_scores[count++] = w->score[at];
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
        const int count = p->decay < 0 ? suppress_soft(p, &w, l) : suppress_list(p, &w, l);

        pm_suppress_end(p, count, l.kept, l.kept_scores);
    }
    work_free(&w);
}

static bool suppress_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                          struct pm_picks *out)
{
    (void)caps;
    return pm_suppress_picks(params, "suppress", "suppress_soft", count, level, out);
}

/* Soft: each kept box visits all. Hard: a selection of 256 candidates visits all about 6 times. */
static double suppress_flops(const void *params, size_t count)
{
    const struct suppress_params *p = params;
    const double n = p->n, most = p->most < p->n ? p->most : p->n;

    return (double)count * (p->decay < 0 ? 20 * n * most : n * (8 + most / 4) + most * most);
}

static const struct pm_kernel suppress = {
    .name = "suppress", .bufs = "r:boxes r:scores r?:valid t:work w:kept w:kept_scores",
    .params_size = sizeof(struct suppress_params), .cpu = suppress_cpu, .grain = 1,
    .cpu_scratch = pm_suppress_no_scratch, .pick = suppress_pick, .flops = suppress_flops,
};

/* Boxes of a row: 1, or one for each class. */
static int boxes_of_row(struct pm_tensor boxes)
{
    return boxes.shape.rank == 4 ? boxes.shape.dim[2] : 1;
}

void pm_suppress(struct pm_calls *c, struct pm_suppress s, struct pm_tensor boxes,
                 struct pm_tensor scores, struct pm_tensor valid, struct pm_tensor kept,
                 struct pm_tensor kept_scores)
{
    const int images = boxes.shape.dim[0], n = boxes.shape.dim[1];
    const struct suppress_params p = {
        .n = n,
        .classes = (int)(pm_count(scores) / ((size_t)images * (size_t)n)),
        .boxes = boxes_of_row(boxes),
        .lists = (int)(pm_count(scores) / (size_t)n),
        .most = kept.shape.dim[kept.shape.rank - 1],
        .score_threshold = s.score_threshold,
        .iou_threshold = s.iou_threshold,
        .decay = s.sigma > 0 ? -0.5f / s.sigma : 0,
    };

    assert(p.boxes == 1 || p.boxes == p.classes);
    assert(pm_count(kept) == (size_t)p.lists * (size_t)p.most);
    if (boxes.shape.dim[boxes.shape.rank - 1] == PM_ROTATED_BOX) {
        pm_suppress_rotated(c, &p, boxes, scores, valid, kept, kept_scores);
        return;
    }
    assert(boxes.shape.dim[boxes.shape.rank - 1] == 4);
    pm_call(c, &suppress, (size_t)p.lists, &p,
            PM_BUFS(boxes, scores, valid, PM_NO_TENSOR, kept, kept_scores));
}

/* ---- the best of all classes ---------------------------------------------------------------- */

static void best_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const size_t classes = (size_t)((const struct suppress_best_params *)a->params)->classes;
    const float *scores = a->buf[0];
    float *best = a->buf[1];

    for (size_t i = begin; i < end; i++) {
        uint32_t most = 0;

        best[i] = NAN;
        for (size_t k = 0; k < classes; k++)
            if (pm_score_key(scores[i * classes + k]) > most)
                best[i] = scores[i * classes + k], most = pm_score_key(best[i]);
    }
}

static double best_flops(const void *params, size_t count)
{
    return 2.0 * ((const struct suppress_best_params *)params)->classes * (double)count;
}

static const struct pm_kernel best = {
    .name = "suppress_best", .bufs = "r:scores w:best",
    .params_size = sizeof(struct suppress_best_params), .cpu = best_cpu, .grain = 256,
    .flops = best_flops,
};

void pm_suppress_best(struct pm_calls *c, struct pm_tensor scores, struct pm_tensor y)
{
    const struct suppress_best_params p = {
        .rows = (int)pm_count(y), .classes = (int)(pm_count(scores) / pm_count(y))
    };

    pm_call(c, &best, (size_t)p.rows, &p, PM_BUFS(scores, y));
}

static void classes_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct suppress_classes_params *p = a->params;
    const int *kept = a->buf[1];
    const float *kept_scores = a->buf[2];
    const uint32_t limit = pm_score_key(p->score_threshold);
    float *entry_scores = a->buf[3];
    int *entry_classes = a->buf[4];

    for (size_t i = begin; i < end; i++) {
        const size_t anchor = kept[i] < 0 ? 0 : (size_t)kept[i];
        const float *scores = (const float *)a->buf[0] +
                              (i / (size_t)p->most * (size_t)p->n + anchor) * (size_t)p->classes;
        uint32_t last = UINT32_MAX;
        int at = -1;

        for (int j = 0; j < p->each; j++) {
            const size_t e = i * (size_t)p->each + (size_t)j;
            uint32_t top = 0;
            int place = 0;

            for (int k = 0; k < p->classes; k++) {
                const uint32_t key = pm_score_key(scores[k]);

                if (key > top && (key < last || (key == last && k > at)))
                    top = key, place = k;
            }
            const bool has = kept[i] >= 0 && (j == 0 || top > limit);

            entry_classes[e] = has ? place : -1;
            entry_scores[e] = !has ? 0 : j == 0 ? kept_scores[i] : scores[place];
            last = top, at = place;
        }
    }
}

static double classes_flops(const void *params, size_t count)
{
    const struct suppress_classes_params *p = params;

    return 2.0 * p->classes * p->each * (double)count;
}

static const struct pm_kernel classes_row = {
    .name = "suppress_classes",
    .bufs = "r:scores r:kept r:kept_scores w:entry_scores w:entry_classes",
    .params_size = sizeof(struct suppress_classes_params), .cpu = classes_cpu, .grain = 16,
    .flops = classes_flops,
};

void pm_suppress_classes(struct pm_calls *c, float score_threshold, struct pm_tensor scores,
                         struct pm_tensor kept, struct pm_tensor kept_scores,
                         struct pm_tensor entry_scores, struct pm_tensor entry_classes)
{
    const struct suppress_classes_params p = {
        .images = scores.shape.dim[0],
        .n = scores.shape.dim[1],
        .classes = scores.shape.dim[2],
        .most = (int)(pm_count(kept) / (size_t)scores.shape.dim[0]),
        .each = (int)(pm_count(entry_scores) / pm_count(kept)),
        .score_threshold = score_threshold,
    };

    pm_call(c, &classes_row, pm_count(kept), &p,
            PM_BUFS(scores, kept, kept_scores, entry_scores, entry_classes));
}

/* ---- merge ---------------------------------------------------------------------------------- */

static void clip(const float box[4], const float window[4], float out[4])
{
    for (int i = 0; i < 4; i++) {
        const float low = window[i % 2], high = window[2 + i % 2];
        const float v = box[i] < high ? box[i] : high;

        out[i] = v > low ? v : low;
    }
}

/* The box of an entry, clipped to the image's window. */
static void entry_box(const struct suppress_merge_params *p, const struct pm_args *a, size_t image,
                      size_t entry, const float window[4], float out[4])
{
    const size_t e = image * (size_t)p->entries + entry, boxes = (size_t)p->boxes;
    const int anchor = ((const int *)a->buf[1])[e / (size_t)p->each];
    const size_t row = image * (size_t)p->n + (size_t)anchor;

    clip((const float *)a->buf[0] + 4 * (row * boxes + (boxes > 1 ? entry / (size_t)p->most : 0)),
         window, out);
}

static void put(const struct suppress_merge_params *p, const struct pm_args *a, size_t image,
                size_t entry, const float window[4], size_t at)
{
    const size_t e = image * (size_t)p->entries + entry;
    const int anchor = ((const int *)a->buf[1])[e / (size_t)p->each];
    float *y = (float *)a->buf[5] + 4 * at;

    entry_box(p, a, image, entry, window, y);
    for (int i = 0; i < 4 && p->change_frame && a->buf[4]; i++)
        y[i] = (y[i] - window[i % 2]) / (window[2 + i % 2] - window[i % 2]);
    ((float *)a->buf[6])[at] = ((const float *)a->buf[2])[e];
    ((int *)a->buf[7])[at] = a->buf[3] ? ((const int *)a->buf[3])[e]
                                            : (int)(entry / (size_t)p->most);
    ((int *)a->buf[9])[at] = anchor;
}

/* Fills the heap with the entries whose box has an area in the window. */
static void collect(const struct suppress_merge_params *p, const struct pm_args *a, size_t image,
                    const float window[4], struct pm_heap *h)
{
    const size_t first = image * (size_t)p->entries;
    const int *kept = a->buf[1], *classes = a->buf[3];

    h->count = 0;
    for (size_t entry = 0; entry < (size_t)p->entries; entry++) {
        const int anchor = kept[(first + entry) / (size_t)p->each];
        float b[4];

        if (anchor < 0 || (classes && classes[first + entry] < 0))
            continue;
        entry_box(p, a, image, entry, window, b);
        if (b[2] > b[0] && b[3] > b[1])
            pm_heap_add(h, pm_score_key(((const float *)a->buf[2])[first + entry]), entry);
    }
    pm_heap_order(h);
}

static void merge_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    static const float whole[4] = { 0, 0, 1, 1 };
    const struct suppress_merge_params *p = a->params;
    struct pm_heap h = { .v = pm_malloc(((size_t)p->entries + 1) * sizeof *h.v) };

    for (size_t image = begin; image < end; image++) {
        const float *window = a->buf[4] ? (const float *)a->buf[4] + 4 * image : whole;
        int count = 0;
        size_t at = image * (size_t)p->outputs;

        collect(p, a, image, window, &h);
        for (; count < p->outputs && h.count > 0; count++)
            put(p, a, image, pm_heap_pop(&h), window, at++);
        pm_suppress_rest(p, image, count, 4, a->buf + 5);
    }
    pm_free(h.v);
}

static bool merge_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    (void)caps, (void)params;
    return pm_suppress_groups("suppress_merge", count, level, out);
}

static double merge_flops(const void *params, size_t count)
{
    const struct suppress_merge_params *p = params;

    return (double)count * p->entries * (20 + 6.0 * p->outputs / 256);
}

static const struct pm_kernel merge = {
    .name = "suppress_merge",
    .bufs = "r:boxes r:kept r:entry_scores r?:entry_classes r?:windows w:y w:scores w:classes "
            "w:count w:anchors",
    .params_size = sizeof(struct suppress_merge_params), .cpu = merge_cpu, .grain = 1,
    .pick = merge_pick, .flops = merge_flops,
};

void pm_suppress_merge(struct pm_calls *c, struct pm_tensor boxes, struct pm_tensor kept,
                       struct pm_tensor entry_scores, struct pm_tensor entry_classes,
                       struct pm_tensor windows, bool change_frame, const struct pm_tensor out[5])
{
    const int images = boxes.shape.dim[0];
    const struct suppress_merge_params p = {
        .images = images,
        .n = boxes.shape.dim[1],
        .boxes = boxes_of_row(boxes),
        .entries = (int)(pm_count(entry_scores) / (size_t)images),
        .most = kept.shape.dim[kept.shape.rank - 1],
        .each = (int)(pm_count(entry_scores) / pm_count(kept)),
        .outputs = out[0].shape.dim[1],
        .change_frame = change_frame,
    };

    if (boxes.shape.dim[boxes.shape.rank - 1] == PM_ROTATED_BOX) {
        assert(!pm_has(windows));
        pm_suppress_merge_rotated(c, &p, boxes, kept, entry_scores, entry_classes, out);
        return;
    }
    pm_call(c, &merge, (size_t)images, &p,
            PM_BUFS(boxes, kept, entry_scores, entry_classes, windows, out[0], out[1], out[2],
                    out[3], out[4]));
}
