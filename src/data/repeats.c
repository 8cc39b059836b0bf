/* repeats: reads the classes of all records, counts the records of each, and takes the root of what
 * a class lacks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/objects.h>
#include <pumice/thread.h>

#include "data/repeats.h"

/* The classes of a record, as numbers: the map's; without a map the hash of a name, or the number
 * in a record. */
struct classes {
    uint64_t *v; /* owned; each once */
    size_t count;
};
struct job {
    struct pm_dataset *d;
    const struct pm_label_map *map; /* NULL: none */
    uint64_t first;
    struct classes *of; /* [records] */
    _Atomic int err;    /* of reading a file */
};

static int compare(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Sorts the values and keeps each once. */
static size_t unique(uint64_t *v, size_t count)
{
    size_t kept = 0;

    if (count)
        qsort(v, count, sizeof *v, compare);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || v[i] != v[kept - 1])
            v[kept++] = v[i];
    return kept;
}

static int read_classes(const struct pm_example *e, const struct pm_label_map *map,
                        const char *where, struct classes *out)
{
    struct pm_objects o = { 0 };
    int64_t label = 0;
    int err = PM_OK, found = 0;

    PM_TRY(pm_objects_parse(e, false, where, &o));
    if (map)
        PM_TRY(pm_objects_resolve(&o, map, where));
    out->v = pm_calloc(o.count + 1, sizeof *out->v);
    for (size_t i = 0; i < o.count; i++)
        if (o.item[i].text || o.item[i].label > 0)
            out->v[out->count++] = o.item[i].text && !map ? pm_hash(o.item[i].text)
                                                          : (uint64_t)o.item[i].label;
    if (out->count == 0) {
        PM_TRY(found = pm_example_int(e, "image/class/label", &label));
        if (found)
            out->v[out->count++] = (uint64_t)label;
    }
    out->count = unique(out->v, out->count);
out:
    pm_objects_free(&o);
    return err < 0 ? err : PM_OK;
}

static void read_records(void *ctx, size_t begin, size_t end)
{
    struct job *j = ctx;
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;
    char where[512];

    for (size_t i = begin; i < end && j->err == PM_OK; i++) {
        struct pm_example *e = NULL;
        const size_t at = (size_t)j->first + i;
        const int err = pm_dataset_read(j->d, at, &buf, &capacity, &size);

        pm_dataset_where(j->d, at, where, sizeof where);
        if (err == PM_OK && pm_example_parse(buf, size, where, &e) == PM_OK &&
            read_classes(e, j->map, where, &j->of[i]) < 0)
            j->of[i].count = 0;
        if (err < 0 && err != PM_ECORRUPT)
            j->err = err;
        pm_example_destroy(&e);
    }
    pm_free(buf);
}

/* Returns the factor of each of the sorted classes; equal ones are together. */
static float *class_factors(uint64_t *all, size_t total, uint64_t records, double threshold,
                            struct pm_repeat_report *report)
{
    float *factor = pm_calloc(total + 1, sizeof *factor);
    size_t kept = 0;

    for (size_t begin = 0, end; begin < total; begin = end) {
        for (end = begin + 1; end < total && all[end] == all[begin]; end++)
            ;
        const double share = (double)(end - begin) / (double)records;
        const double f = fmax(1, sqrt(threshold / share));
        report->classes++;
        report->rare += f > 1;
        report->most = fmax(report->most, f);
        all[kept] = all[begin];
        factor[kept++] = (float)f;
    }
    return factor;
}

int pm_repeat_factors(struct pm_dataset *d, uint64_t first, uint64_t count,
                      const struct pm_label_map *map, double threshold, float *factor,
                      struct pm_repeat_report *report)
{
    struct job j = { .d = d, .first = first, .map = map, .of = pm_calloc(count + 1, sizeof *j.of) };
    uint64_t *all = NULL;
    float *by_class = NULL;
    size_t total = 0;
    int err = PM_OK;

    *report = (struct pm_repeat_report){ .most = 1 };
    pm_parallel((size_t)count, 16, read_records, &j);
    if (j.err < 0)
        PM_TRY(pm_fail(PM_EDATA, "data.repeat_threshold: a file of the training split cannot be "
                       "read"));
    for (uint64_t i = 0; i < count; i++)
        total += j.of[i].count;
    if (total == 0)
        PM_TRY(pm_fail(PM_EDATA, "data.repeat_threshold: no training record has a class of an "
                       "object or image/class/label: set it to 0"));
    all = pm_malloc(total * sizeof *all);
    total = 0;
    for (uint64_t i = 0; i < count; i++)
        for (size_t k = 0; k < j.of[i].count; k++)
            all[total++] = j.of[i].v[k];
    qsort(all, total, sizeof *all, compare);
    by_class = class_factors(all, total, count, threshold, report);
    for (uint64_t i = 0; i < count; i++) {
        factor[i] = 1;
        for (size_t k = 0; k < j.of[i].count; k++) {
            const uint64_t *at = bsearch(&j.of[i].v[k], all, report->classes, sizeof *all, compare);
            factor[i] = fmaxf(factor[i], by_class[at - all]);
        }
        report->records += factor[i] > 1;
    }
out:
    for (uint64_t i = 0; i < count; i++)
        pm_free(j.of[i].v);
    pm_free(j.of);
    pm_free(by_class);
    pm_free(all);
    return err;
}
