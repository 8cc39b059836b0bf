/* loader_example: which record an example takes, and making the example from it. */
#include <inttypes.h>

#include <pumice/trace.h>

#include "data/loader_other.h"
#include "data/loader_private.h"
#include "data/order.h"

/* Returns the number of the slice's example over all steps. */
static uint64_t number_of(const struct pm_loader *l, uint64_t step, int example)
{
    return step * (uint64_t)l->o.batch + (uint64_t)(l->o.slice.first + example);
}

int pm_loader_examples_of(const struct pm_loader *l, uint64_t step)
{
    uint64_t begin = number_of(l, step, 0), count = l->count;

    if (l->o.groups) {
        count = pm_group_of(&l->grouped, step, &begin)->count;
        begin += (uint64_t)l->o.slice.first;
    }

    if (l->o.train || begin + (uint64_t)l->o.slice.count <= count)
        return l->o.slice.count;
    return begin < count ? (int)(count - begin) : 0;
}

uint64_t pm_loader_record_of(const struct pm_loader *l, uint64_t step, int example,
                             uint64_t passed)
{
    const uint64_t g = number_of(l, step, example);
    const uint64_t place = (g % l->count + passed) % l->count;

    if (l->o.groups) {
        uint64_t begin;
        const struct pm_frame_group *group = pm_group_of(&l->grouped, step, &begin);

        return l->o.groups->order[group->first + begin + (uint64_t)(l->o.slice.first + example)];
    }
    if (!l->o.train)
        return g;
    if (l->o.order)
        return pm_order_record(l->o.order, step, l->o.slice.first + example, passed);
    return l->o.in_order ? place : pm_permute(l->o.seed, g / l->count, l->count, place);
}

int pm_loader_read(struct pm_loader *l, struct pm_loader_worker *w, uint64_t step, int example,
                   uint64_t record, struct pm_loader_record *out)
{
    size_t size = 0;
    const double begun = pm_trace_now();
    const int err = pm_dataset_read(l->dataset, record, &w->buf, &w->capacity, &size);

    pm_trace_here("read", begun);
    if (err < 0)
        return err;
    pm_dataset_where(l->dataset, record, w->where, sizeof w->where);
    *out = (struct pm_loader_record){ .bytes = w->buf, .size = size, .where = w->where,
                                      .seed = l->o.seed, .step = step,
                                      .example = (uint32_t)(l->o.slice.first + example),
                                      .part = pm_dataset_part(l->dataset, record) };
    return PM_OK;
}

/* Logs a corrupt record: the first, second, fourth, eighth ... */
static void tell_damage(struct pm_loader *l, struct pm_slot *s)
{
    const uint64_t n = atomic_fetch_add(&l->skipped, 1) + 1;

    atomic_fetch_add(&s->skipped, 1);
    if ((n & (n - 1)) == 0)
        PM_WARN("data", "%s; skipped, %" PRIu64 " so far (data.on_corrupt)", pm_error_text(), n);
}

static int make_from(struct pm_loader *l, struct pm_slot *s, struct pm_loader_worker *w,
                     int example, uint64_t record)
{
    struct pm_loader_source source = { l->dataset, 0, 0, l->o.skip_corrupt, &l->stop, tell_damage,
                                       l, s };
    struct pm_loader_record r;
    size_t first, count;

    s->record[example] = record;
    const int err = pm_loader_read(l, w, s->batch.step, example, record, &r);
    if (err < 0)
        return err;
    r.frame = s->batch.frame;
    pm_dataset_range(l->dataset, r.part, &first, &count);
    source.first = first, source.count = r.records = count;
    r.source = &source;
    r.host = l->o.free_host ? &s->batch.host[example] : NULL;
    for (int k = 0; k < s->fields.count; k++)
        w->out[k] = (char *)s->batch.field[k] + s->bytes[k] * (size_t)example;
    return l->o.make(l->o.ctx, &r, w->out);
}

int pm_loader_make(struct pm_loader *l, struct pm_slot *s, struct pm_loader_worker *w, int example)
{
    const uint64_t limit = l->count < PM_MOST_DAMAGED ? l->count : PM_MOST_DAMAGED;
    const uint64_t most = l->o.train ? limit : 1;

    for (uint64_t k = 0; k < most && !l->stop; k++) {
        const uint64_t record = pm_loader_record_of(l, s->batch.step, example, k);

        if (k > 0 && !pm_loader_accepts(l, w, s, example, record))
            continue;
        const int err = make_from(l, s, w, example, record);

        if (err == PM_ECORRUPT && !l->o.skip_corrupt)
            return pm_fail(err, "%s; data.on_corrupt=skip skips such records", pm_error_text());
        if (err != PM_ECORRUPT)
            return err;
        tell_damage(l, s);
    }
    if (!l->o.train) {
        s->empty[example] = true;
        return PM_OK;
    }
    return pm_fail(PM_EDATA, "%" PRIu64 " consecutive records are damaged; the last one: %s", most,
                   pm_error_text());
}
