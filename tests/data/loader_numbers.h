/* Shared by the tests of the loader: a data set whose record i holds the number i, and a task that
 * makes examples from it. */
#ifndef LOADER_NUMBERS_H
#define LOADER_NUMBERS_H

#include "data_common.h"

enum { COUNT = 53, BATCH = 8 };

/* Makes and opens the data set; each record has four bytes. The scratch folder holds it. */
static inline struct pm_dataset *numbers(void)
{
    struct pm_tfrecord_writer *w = NULL;
    struct pm_dataset *d = NULL;

    scratch_make();
    assert_int_equal(pm_tfrecord_create(in_scratch("n_train.tfrecord"), &w), PM_OK);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(pm_tfrecord_write(w, &i, 4), PM_OK);
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    return d;
}

struct task {
    uint32_t fail_on; /* the record whose making fails; COUNT: none */
    int sleep_us;     /* uneven work, so that threads overtake each other */
    uint64_t damaged; /* bit i: record i is damaged */
};

/* Makes an example. images: [2] the number and a random number; labels: the number. */
static inline int make(void *ctx, const struct pm_loader_record *of, void *const *out)
{
    const struct task *t = ctx;
    struct pm_rng r =
        pm_rng_make(of->seed, pm_hash("augmentation"), (uint32_t)of->step, of->example);
    const char *where = of->where;
    uint32_t v = 0;

    if (of->size != 4)
        return pm_fail(PM_EDATA, "%s: %zu bytes", where, of->size);
    memcpy(&v, of->bytes, 4);
    if (t->damaged >> v & 1)
        return pm_fail(PM_ECORRUPT, "%s: number %u is damaged", where, v);
    if (v == t->fail_on)
        return pm_fail(PM_EDATA, "%s: number %u is bad", where, v);
    if (t->sleep_us && v % 5 == 0)
        usleep((unsigned)(t->sleep_us * (int)(v % 7)));
    ((float *)out[0])[0] = (float)v;
    ((float *)out[0])[1] = (float)pm_rng_uniform(&r);
    *(int32_t *)out[1] = (int32_t)v;
    return PM_OK;
}

static const struct pm_field fields[] = {
    { "images", PM_F32, { 1, { 2 } } },
    { "labels", PM_I32, { 0 } },
};

static inline struct pm_loader_options options(struct task *t, bool train, int threads,
                                               uint64_t first)
{
    return (struct pm_loader_options){ .batch = BATCH,
                                       .train = train,
                                       .seed = 7,
                                       .first_step = first,
                                       .threads = threads,
                                       .ring = 3,
                                       .fields = fields,
                                       .fields_count = 2,
                                       .make = make,
                                       .ctx = t };
}

#endif
