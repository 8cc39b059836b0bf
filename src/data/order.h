/* order: the order of training records from several parts of a dataset, each with its own
 * epochs. */
#ifndef PUMICE_DATA_ORDER_H
#define PUMICE_DATA_ORDER_H

#include <pumice/data.h>

/* A part of a dataset: the records behind those of the parts before it. */
struct pm_order_part {
    uint64_t records; /* at least 1 */
    int share;        /* examples of each batch; all parts 0: weights */
    double weight;    /* above 0: share of the examples on average, relative to the sum */
};
/* Makes an order for batches of `batch` examples, which is the sum of the shares. in_order: each
 * epoch is in file order. One part with the whole batch has the order of a loader without
 * pm_order. */
struct pm_order *pm_order_create(const struct pm_order_part *parts, size_t count, int batch,
                                 uint64_t seed, bool in_order);
void pm_order_destroy(struct pm_order **o);
/* Lets record i of a part come factor[i] times in an epoch on average: floor or ceil of the factor,
 * drawn anew for each epoch. factor: [records of the part], each at least 1; copied. */
void pm_order_repeat(struct pm_order *o, size_t part, const float *factor);
/* Returns the examples of an epoch of all parts. */
uint64_t pm_order_places(const struct pm_order *o);
/* Returns the record in the dataset for a place (0..batch - 1) of a step's batch. passed: number of
 * corrupt records skipped for it; the record is then another one of the same part and epoch.
 * Thread-safe. */
uint64_t pm_order_record(struct pm_order *o, uint64_t step, int place, uint64_t passed);

#endif
