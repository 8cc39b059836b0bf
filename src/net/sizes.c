/* sizes: finds plans by size in a short list. If a new plan needs more memory than is allocated,
 * the memory is reallocated and moves. The other plans are recorded again at their next use
 * (pm_plan_refresh). */
#include "net/sizes.h"

#include "net/plan_private.h"

#include <assert.h>
#include <string.h>

struct entry {
    struct pm_sized sized;
    bool prepared;
    uint64_t used; /* number of the last call of pm_sizes_get */
};
struct pm_sizes {
    struct pm_sizes_options options;
    struct pm_shared_memory *shared; /* owned */
    struct entry *list;
    int count, capacity;
    uint64_t gets, made;
};

struct pm_sizes *pm_sizes_create(const struct pm_sizes_options *o)
{
    struct pm_sizes *s = pm_calloc(1, sizeof *s);

    s->options = *o;
    s->shared = pm_shared_memory_create(o->device);
    return s;
}

static void drop(struct pm_sizes *s, int i)
{
    pm_plan_destroy(&s->list[i].sized.plan);
    s->options.release(s->options.ctx, s->list[i].sized.net);
    s->list[i] = s->list[--s->count];
}

void pm_sizes_destroy(struct pm_sizes **s)
{
    if (*s) {
        while ((*s)->count > 0)
            drop(*s, (*s)->count - 1);
        pm_shared_memory_destroy(&(*s)->shared);
        pm_free((*s)->list);
        pm_free(*s);
    }
    *s = NULL;
}

static int find(const struct pm_sizes *s, int height, int width)
{
    for (int i = 0; i < s->count; i++)
        if (s->list[i].sized.height == height && s->list[i].sized.width == width)
            return i;
    return -1;
}

/* Makes the plan, but does not load it. */
static int add(struct pm_sizes *s, int height, int width, bool prepared)
{
    struct entry e = { .sized = { .height = height, .width = width }, .prepared = prepared };
    int err = s->options.make(s->options.ctx, height, width, s->shared, &e.sized);

    if (err < 0)
        return err;
    PM_GROW(s->list, s->count, s->capacity);
    s->list[s->count++] = e;
    s->made++;
    return PM_OK;
}

int pm_sizes_plan(struct pm_sizes *s, const int (*height_width)[2], int count)
{
    int err = PM_OK;

    for (int i = 0; i < count; i++)
        if (find(s, height_width[i][0], height_width[i][1]) < 0)
            PM_TRY(add(s, height_width[i][0], height_width[i][1], true));
out:
    return err;
}

int pm_sizes_prepare(struct pm_sizes *s, const int (*height_width)[2], int count)
{
    int err = PM_OK;

    PM_TRY(pm_sizes_plan(s, height_width, count));
    for (int i = 0; i < s->count; i++)
        PM_TRY(pm_shared_memory_reserve(s->shared, s->list[i].sized.plan));
    for (int i = 0; i < s->count; i++)
        PM_TRY(pm_plan_refresh(s->list[i].sized.plan));
out:
    return err;
}

struct pm_sized pm_sizes_prepared(const struct pm_sizes *s, int height, int width)
{
    const int i = find(s, height, width);

    assert(i >= 0 && s->list[i].prepared);
    return s->list[i].sized;
}

static void make_room(struct pm_sizes *s)
{
    int on_demand = 0, oldest = -1;

    for (int i = 0; i < s->count; i++) {
        if (s->list[i].prepared)
            continue;
        on_demand++;
        if (oldest < 0 || s->list[i].used < s->list[oldest].used)
            oldest = i;
    }
    if (on_demand >= s->options.keep)
        drop(s, oldest);
}

int pm_sizes_get(struct pm_sizes *s, int height, int width, struct pm_sized *out)
{
    int i = find(s, height, width), err = PM_OK;

    if (i < 0) {
        make_room(s);
        PM_TRY(add(s, height, width, false));
        i = s->count - 1;
    }
    s->list[i].used = ++s->gets;
    err = pm_plan_refresh(s->list[i].sized.plan);
    if (err < 0) {
        drop(s, i);
        goto out;
    }
    *out = s->list[i].sized;
out:
    return err;
}

int pm_sizes_count(const struct pm_sizes *s)
{
    return s->count;
}

uint64_t pm_sizes_made(const struct pm_sizes *s)
{
    return s->made;
}

uint64_t pm_sizes_bytes(const struct pm_sizes *s)
{
    return pm_shared_memory_bytes(s->shared);
}

uint64_t pm_sizes_need(const struct pm_sizes *s)
{
    uint64_t bytes = 0;

    for (int b = 0; b < PM_MAX_BLOCKS; b++) {
        size_t largest = 0;

        for (int i = 0; i < s->count; i++) {
            const struct pm_plan *p = s->list[i].sized.plan;

            if (b < p->blocks && p->block_bytes[b] > largest)
                largest = p->block_bytes[b];
        }
        bytes += largest;
    }
    return bytes;
}
