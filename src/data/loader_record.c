/* loader_record: which record an example takes, and reading it. */
#include <pumice/trace.h>

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
