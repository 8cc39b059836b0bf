/* loader_example: makes an example from its record, or from another one if that is corrupt. */
#include <inttypes.h>

#include "data/loader_other.h"
#include "data/loader_private.h"

/* Logs a corrupt record: the first, second, fourth, eighth ... */
static void tell_damage(struct pm_loader *l, struct pm_slot *s)
{
    const uint64_t n = atomic_fetch_add(&l->skipped, 1) + 1;

    atomic_fetch_add(&s->skipped, 1);
    if ((n & (n - 1)) == 0)
        PM_WARN("data", "%s; skipped, %" PRIu64 " so far (data.on_corrupt)", pm_error_text(), n);
}

/* Records that an example has tried in sequence. */
struct tries {
    uint64_t first;   /* the first one, which is damaged */
    uint64_t damaged;
    uint64_t refused; /* the batch's frame does not hold them */
};

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

/* Fails: no record was found for the example. */
static int fail_example(const struct pm_loader *l, const struct pm_slot *s,
                        const struct tries *t)
{
    const struct pm_frame f = s->batch.frame;
    char where[PM_SLOT_TEXT];

    if (t->refused == 0)
        return pm_fail(PM_EDATA, "%" PRIu64 " consecutive records are damaged; the last one: %s",
                       t->damaged, pm_error_text());
    pm_dataset_where(l->dataset, t->first, where, sizeof where);
    if (t->damaged == 1)
        return pm_fail(PM_EDATA, "%s is damaged, and none of the next %" PRIu64 " records fits the "
                       "batch's size of %d x %d (input.buckets)", where, t->refused, f.height,
                       f.width);
    return pm_fail(PM_EDATA, "%s is damaged, and so are %" PRIu64 " of the next %" PRIu64
                   " records; none of the others fits the batch's size of %d x %d (input.buckets)",
                   where, t->damaged - 1, t->damaged - 1 + t->refused, f.height, f.width);
}

int pm_loader_make(struct pm_loader *l, struct pm_slot *s, struct pm_loader_worker *w, int example)
{
    const uint64_t limit = l->count < PM_MOST_DAMAGED ? l->count : PM_MOST_DAMAGED;
    const uint64_t most = l->o.train ? limit : 1;
    struct tries t = { 0 };

    for (uint64_t k = 0; k < l->count && t.damaged < most && t.refused < limit && !l->stop; k++) {
        const uint64_t record = pm_loader_record_of(l, s->batch.step, example, k);

        if (k > 0 && !pm_loader_accepts(l, w, s, example, record)) {
            t.refused++;
            continue;
        }
        t.first = k > 0 ? t.first : record;
        const int err = make_from(l, s, w, example, record);

        if (err == PM_ECORRUPT && !l->o.skip_corrupt)
            return pm_fail(err, "%s; data.on_corrupt=skip skips such records", pm_error_text());
        if (err != PM_ECORRUPT)
            return err;
        tell_damage(l, s);
        t.damaged++;
    }
    if (!l->o.train) {
        s->empty[example] = true;
        return PM_OK;
    }
    return fail_example(l, s, &t);
}
