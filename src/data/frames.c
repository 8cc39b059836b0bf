/* frames: the records of a dataset by the frame that each needs. All records are read once, on
 * several threads. Then the records are sorted by frame, and the groups by their first records. */
#include "data/frames.h"

#include <stdlib.h>
#include <string.h>

#include <pumice/thread.h>

enum { GRAIN = 16 };

/* A record and its frame; height 0: it has none. */
struct framed {
    struct pm_frame frame;
    uint64_t record;
};
struct scan {
    struct pm_dataset *dataset;
    int (*frame_of)(void *ctx, const struct pm_loader_record *r, struct pm_frame *out);
    void *ctx;
    int choices; /* frames of each record; 0: one, which is drawn */
    struct pm_frame *list;
};

static void frames_of(const struct scan *s, struct pm_loader_record *r, struct pm_frame *out)
{
    const int first = s->choices ? 1 : 0;

    for (r->choice = first; r->choice <= s->choices; r->choice++)
        if (s->frame_of(s->ctx, r, &out[r->choice - first]) < 0)
            out[r->choice - first] = (struct pm_frame){ 0 };
}

static void scan_records(void *ctx, size_t begin, size_t end)
{
    const struct scan *s = ctx;
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;
    char where[512];

    for (size_t i = begin; i < end; i++) {
        if (pm_dataset_read(s->dataset, i, &buf, &capacity, &size) < 0)
            continue;
        pm_dataset_where(s->dataset, i, where, sizeof where);
        struct pm_loader_record r = { .bytes = buf, .size = size, .where = where,
                                      .example = (uint32_t)i,
                                      .part = pm_dataset_part(s->dataset, i) };

        frames_of(s, &r, &s->list[i * (s->choices ? (size_t)s->choices : 1)]);
    }
    pm_free(buf);
}

static int by_frame(const void *a, const void *b)
{
    const struct framed *x = a, *y = b;

    if (x->frame.height != y->frame.height)
        return x->frame.height < y->frame.height ? -1 : 1;
    if (x->frame.width != y->frame.width)
        return x->frame.width < y->frame.width ? -1 : 1;
    return (x->record > y->record) - (x->record < y->record);
}

static int by_first(const void *a, const void *b)
{
    const struct pm_frame_group *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* Gives the records without a frame that of the first record that has one. */
static void fill_in(struct framed *list, size_t count, struct pm_frame otherwise)
{
    for (size_t i = count; i-- > 0;)
        if (list[i].frame.height > 0)
            otherwise = list[i].frame;
    for (size_t i = 0; i < count; i++)
        if (list[i].frame.height == 0)
            list[i].frame = otherwise;
}

/* Makes the groups, with `first` being the index of the group in the sorted list. */
static void add_groups(const struct framed *list, size_t count, struct pm_frame_groups *out)
{
    size_t capacity = 0;

    for (size_t i = 0; i < count; i++) {
        const struct pm_frame f = list[i].frame;
        struct pm_frame_group *last = out->count ? &out->list[out->count - 1] : NULL;

        if (!last || last->frame.height != f.height || last->frame.width != f.width) {
            PM_GROW(out->list, out->count, capacity);
            last = &out->list[out->count++];
            *last = (struct pm_frame_group){ .frame = f, .first = i };
        }
        last->count++;
    }
}

/* Orders the groups by their first records, and the records like the groups. */
static void order_groups(const struct framed *list, size_t count, struct pm_frame_groups *out)
{
    uint64_t at = 0;

    for (size_t k = 0; k < out->count; k++)
        out->list[k].first = list[out->list[k].first].record;
    qsort(out->list, out->count, sizeof *out->list, by_first);
    for (size_t k = 0; k < out->count; k++) {
        struct pm_frame_group *g = &out->list[k];
        const struct framed key = { g->frame, g->first };
        const struct framed *from = bsearch(&key, list, count, sizeof *list, by_frame);

        g->first = at;
        for (uint64_t i = 0; i < g->count; i++)
            out->order[at++] = from[i].record;
    }
}

void pm_frame_groups_of(const struct pm_frame *frames, size_t count, struct pm_frame otherwise,
                        struct pm_frame_groups *out)
{
    struct framed *list = pm_calloc(count + 1, sizeof *list);

    *out = (struct pm_frame_groups){ .order = pm_calloc(count + 1, sizeof *out->order) };
    for (size_t i = 0; i < count; i++)
        list[i] = (struct framed){ frames[i], i };
    fill_in(list, count, otherwise);
    qsort(list, count, sizeof *list, by_frame);
    add_groups(list, count, out);
    order_groups(list, count, out);
    pm_free(list);
}

void pm_frames_read(struct pm_dataset *d,
                    int (*frame_of)(void *ctx, const struct pm_loader_record *r,
                                    struct pm_frame *out),
                    void *ctx, int choices, struct pm_frame *out)
{
    struct scan s = { d, frame_of, ctx, choices, out };
    const size_t count = pm_dataset_get_info(d)->count;

    memset(out, 0, count * (choices ? (size_t)choices : 1) * sizeof *out);
    pm_parallel(count, GRAIN, scan_records, &s);
}

void pm_frame_groups_create(struct pm_dataset *d,
                            int (*frame_of)(void *ctx, const struct pm_loader_record *r,
                                            struct pm_frame *out),
                            void *ctx, struct pm_frame otherwise, struct pm_frame_groups *out)
{
    const size_t count = pm_dataset_get_info(d)->count;
    struct pm_frame *frames = pm_calloc(count + 1, sizeof *frames);

    pm_frames_read(d, frame_of, ctx, 0, frames);
    pm_frame_groups_of(frames, count, otherwise, out);
    pm_free(frames);
}

void pm_frame_groups_free(struct pm_frame_groups *g)
{
    pm_free(g->list);
    pm_free(g->order);
    *g = (struct pm_frame_groups){ 0 };
}

/* ---- for the loader ------------------------------------------------------------------------ */

uint64_t pm_frame_area(struct pm_frame f)
{
    return (uint64_t)f.height * (uint64_t)f.width;
}

bool pm_frame_holds(struct pm_frame frame, struct pm_frame need)
{
    return frame.height >= need.height && frame.width >= need.width;
}

const struct pm_frame *pm_frame_find(const struct pm_frame *list, int count, struct pm_frame need)
{
    const struct pm_frame *best = NULL;

    for (const struct pm_frame *f = list; f < list + count; f++)
        if (pm_frame_holds(*f, need) && (!best || pm_frame_area(*f) < pm_frame_area(*best)))
            best = f;
    return best;
}

struct pm_frame pm_frame_choose(const struct pm_frame *list, int count, struct pm_frame need)
{
    const struct pm_frame *best = pm_frame_find(list, count, need), *largest = list;

    for (const struct pm_frame *f = list; f < list + count; f++)
        if (pm_frame_area(*f) > pm_frame_area(*largest))
            largest = f;
    return best ? *best : *largest;
}

int pm_frame_fail_record(int code, const char *place, const struct pm_frame *list, int count,
                         const struct pm_frame_need *record)
{
    const struct pm_frame need = record->frame, most = pm_frame_choose(list, count, need);

    return pm_fail(code, "%s%s: the picture is %d x %d when resized, which no size of "
                   "input.buckets holds; the largest is %d x %d: add [%d, %d] to input.buckets, or "
                   "resize to less (input.max_dimension)", place, record->name, need.height,
                   need.width, most.height, most.width, need.height, need.width);
}

int pm_frame_fail_pair(int code, const char *place, const struct pm_frame *list, int count,
                       const struct pm_frame_need *tallest, const struct pm_frame_need *widest)
{
    const struct pm_frame need = { tallest->frame.height, widest->frame.width };
    const struct pm_frame most = pm_frame_choose(list, count, need);

    return pm_fail(code, "%sno size of input.buckets holds both %s, which is %d x %d when resized, "
                   "and %s, which is %d x %d; the largest is %d x %d: add [%d, %d] to "
                   "input.buckets, or set run.batch_size=1", place, tallest->name,
                   tallest->frame.height, tallest->frame.width, widest->name,
                   widest->frame.height, widest->frame.width, most.height, most.width, need.height,
                   need.width);
}

void pm_group_batches_open(struct pm_group_batches *b, const struct pm_frame_groups *groups,
                           int batch)
{
    uint64_t steps = 0;

    *b = (struct pm_group_batches){ groups, pm_calloc(groups->count + 1, sizeof *b->first),
                                    (uint64_t)batch };
    for (size_t k = 0; k < groups->count; k++) {
        b->first[k] = steps;
        steps += (groups->list[k].count + b->batch - 1) / b->batch;
    }
    b->first[groups->count] = steps;
}

void pm_group_batches_close(struct pm_group_batches *b)
{
    pm_free(b->first);
    *b = (struct pm_group_batches){ 0 };
}

const struct pm_frame_group *pm_group_of(const struct pm_group_batches *b, uint64_t step,
                                         uint64_t *example)
{
    size_t low = 0, high = b->groups->count;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (b->first[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    *example = (step - b->first[low]) * b->batch;
    return &b->groups->list[low];
}
