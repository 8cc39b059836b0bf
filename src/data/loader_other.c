/* loader_other: the loader hands make further records of an example's part of the dataset. data.h
 * has the contract. */
#include "data/loader_other.h"

#include <inttypes.h>

/* Reads a record into a buffer of its own and passes it to use. */
static int use_other(const struct pm_loader_record *r, uint64_t index,
                     int (*use)(void *ctx, const struct pm_loader_record *other), void *ctx)
{
    struct pm_loader_record other = *r;
    char where[PM_SLOT_TEXT];
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;
    int err = PM_OK;

    PM_TRY(pm_dataset_read(r->source->dataset, index, &buf, &capacity, &size));
    pm_dataset_where(r->source->dataset, index, where, sizeof where);
    other.bytes = buf, other.size = size, other.where = where;
    other.host = NULL;
    err = use(ctx, &other);
out:
    pm_free(buf);
    return err;
}

int pm_loader_other(const struct pm_loader_record *r, uint64_t index,
                    int (*use)(void *ctx, const struct pm_loader_record *other), void *ctx)
{
    const struct pm_loader_source *from = r->source;
    const uint64_t most = from->count < PM_MOST_DAMAGED ? from->count : PM_MOST_DAMAGED;

    for (uint64_t k = 0; k < most && !*from->stop; k++) {
        const int err = use_other(r, from->first + (index + k) % from->count, use, ctx);

        if (err != PM_ECORRUPT || !from->skip_corrupt)
            return err;
        from->tell(from->loader, from->slot);
    }
    return pm_fail(PM_EDATA, "%" PRIu64 " consecutive records are damaged; the last one: %s", most,
                   pm_error_text());
}
