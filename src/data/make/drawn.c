/* drawn: drawn.h has the contract. */
#include "data/make/drawn.h"

int pm_drawn_make(const struct pm_drawn *d, const char *dst, const struct pm_drawn_cfg *o)
{
    int err = PM_OK;
    struct pm_making *m = NULL;
    const struct {
        const char *name;
        int count;
    } splits[] = { { "train", o->train }, { "validation", o->validation }, { "test", o->test } };
    const struct pm_sharding sharding = { PM_CUT_SIZE, 2000, PM_NAMES_SLIM };

    if (o->size < d->least || o->size > d->most)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: size %d is outside %d..%d", d->name, o->size, d->least,
                       d->most));
    PM_TRY(pm_making_create(dst, d->name, false, &m));
    PM_TRY(d->describe(m));
    pm_making_size(m, o->size, o->size, 3);
    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        struct pm_drawn_split s = { splits[k].name, (uint64_t)o->seed, o->size };

        if (splits[k].count)
            PM_TRY(pm_making_split(m, s.name, (size_t)splits[k].count, &sharding, d->fill, &s));
    }
    PM_TRY(pm_making_finish(m));
out:
    pm_making_destroy(&m);
    return err;
}
