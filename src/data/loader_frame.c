/* loader_frame: the frame of a batch, the fields that follow from it, and the memory for the
 * largest one. */
#include <inttypes.h>

#include "data/loader_other.h"
#include "data/loader_private.h"

void pm_field_add(struct pm_field_list *l, struct pm_field f)
{
    PM_GROW(l->list, l->count, l->capacity);
    l->list[l->count++] = f;
}

void pm_loader_set_frame(const struct pm_loader *l, struct pm_slot *s, struct pm_frame frame,
                         int examples)
{
    s->fields.count = 0;
    if (l->o.fields_of)
        l->o.fields_of(l->o.ctx, frame, &s->fields);
    else
        for (int k = 0; k < l->o.fields_count; k++)
            pm_field_add(&s->fields, l->field[k]);
    for (int k = 0; k < s->fields.count; k++)
        s->bytes[k] = pm_type_size(s->fields.list[k].type) *
                      pm_shape_count(s->fields.list[k].shape);
    s->batch.fields = s->fields.list;
    s->batch.frame = frame;
    s->batch.examples = examples;
}

int pm_loader_places_of(const struct pm_loader *l, const struct pm_frame_group *g)
{
    return g->count < (uint64_t)l->o.slice.count ? (int)g->count : l->o.slice.count;
}

/* Finds the frame that the example needs, of the record that pm_loader_make will probably take.
 * Returns false if there is none: making the example reports the error. */
static bool frame_needed(struct pm_loader *l, struct pm_loader_worker *w, uint64_t step,
                         int example, struct pm_frame *out)
{
    const uint64_t most = l->count < PM_MOST_DAMAGED ? l->count : PM_MOST_DAMAGED;
    struct pm_loader_record r;

    for (uint64_t k = 0; k < most && !l->stop; k++) {
        int err = pm_loader_read(l, w, step, example, pm_loader_record_of(l, step, example, k), &r);

        if (err == PM_OK)
            err = l->o.frame_of(l->o.ctx, &r, out);
        if (err != PM_ECORRUPT || !l->o.skip_corrupt)
            return err == PM_OK;
    }
    return false;
}

/* A record of a batch and its name. */
struct needed {
    char where[PM_SLOT_TEXT];
    struct pm_frame frame;
};

static struct pm_frame_need need_of(const struct needed *n)
{
    return (struct pm_frame_need){ n->where, n->frame };
}

/* Fails with two records that no frame holds together. */
static int fail_pair(const struct pm_loader *l, uint64_t step, const struct needed *tallest,
                     const struct needed *widest)
{
    const struct pm_frame_need tall = need_of(tallest), wide = need_of(widest);
    char place[64];

    snprintf(place, sizeof place, "step %" PRIu64 ": ", step);
    return pm_frame_fail_pair(PM_EDATA, place, l->o.frames, l->o.frames_count, &tall, &wide);
}

/* Explains why no frame holds the batch. The headers are read again, because names are needed only
 * here. */
static int fail_frame(struct pm_loader *l, struct pm_loader_worker *w, uint64_t step)
{
    struct needed tallest = { "", { 0, 0 } }, widest = { "", { 0, 0 } }, one;

    for (int g = 0; g < l->o.batch; g++) {
        if (!frame_needed(l, w, step, g - l->o.slice.first, &one.frame))
            continue;
        snprintf(one.where, sizeof one.where, "%s", w->where);
        const struct pm_frame_need need = need_of(&one);
        if (!pm_frame_find(l->o.frames, l->o.frames_count, one.frame))
            return pm_frame_fail_record(PM_EDATA, "", l->o.frames, l->o.frames_count, &need);
        if (one.frame.height > tallest.frame.height)
            tallest = one;
        if (one.frame.width > widest.frame.width)
            widest = one;
    }
    return fail_pair(l, step, &tallest, &widest);
}

int pm_loader_choose_frame(struct pm_loader *l, struct pm_loader_worker *w, uint64_t step,
                           struct pm_frame *out)
{
    struct pm_frame need = { 1, 1 }, one;

    for (int g = 0; g < l->o.batch; g++)
        if (frame_needed(l, w, step, g - l->o.slice.first, &one)) {
            need.height = one.height > need.height ? one.height : need.height;
            need.width = one.width > need.width ? one.width : need.width;
        }
    if (l->o.hold && !pm_frame_find(l->o.frames, l->o.frames_count, need))
        return fail_frame(l, w, step);
    *out = pm_frame_choose(l->o.frames, l->o.frames_count, need);
    return PM_OK;
}

bool pm_loader_accepts(struct pm_loader *l, struct pm_loader_worker *w, const struct pm_slot *s,
                       int example, uint64_t record)
{
    struct pm_loader_record r;
    struct pm_frame need;

    /* the error of a record without a frame is reported when the example is made */
    return !l->o.hold || !l->o.frames_count ||
           pm_loader_read(l, w, s->batch.step, example, record, &r) < 0 ||
           l->o.frame_of(l->o.ctx, &r, &need) < 0 || pm_frame_holds(s->batch.frame, need);
}

/* Adds the bytes of each field in this frame to the most so far. */
static void most_bytes(const struct pm_loader *l, struct pm_slot *s, struct pm_frame frame,
                       int examples, size_t *most)
{
    pm_loader_set_frame(l, s, frame, examples);
    for (int k = 0; k < s->fields.count; k++) {
        const size_t bytes = s->bytes[k] * (size_t)examples;

        most[k] = bytes > most[k] ? bytes : most[k];
    }
}

size_t *pm_loader_array_bytes(const struct pm_loader *l, struct pm_slot *s)
{
    size_t *most = pm_calloc((size_t)l->o.fields_count + 1, sizeof *most);

    if (l->o.frames_count == 0 && !l->o.groups)
        most_bytes(l, s, l->o.frame, l->o.slice.count, most);
    for (int i = 0; i < l->o.frames_count; i++)
        most_bytes(l, s, l->o.frames[i], l->o.slice.count, most);
    for (size_t i = 0; l->o.groups && i < l->o.groups->count; i++) {
        const struct pm_frame_group *g = &l->o.groups->list[i];

        most_bytes(l, s, g->frame, pm_loader_places_of(l, g), most);
    }
    return most;
}
