/* check_finding_classes: the classes of the data against model.num_classes and against the records
 * of the training split. A split of at most MOST_BYTES is read once, in parallel. Pictures are not
 * decoded; label maps are. Larger splits are not counted: an example that is missing in the first
 * records may follow in the last one. */
#include "jobs/check_findings.h"

#include <pumice/thread.h>

#include <stdatomic.h>
#include <string.h>

enum { SHOWN = 5 };
static const uint64_t MOST_BYTES = (uint64_t)4 << 30;

/* The classes as the task reads them from the data. */
static int data_classes(const struct pm_check *k, struct pm_dataset_info *info)
{
    struct pm_experiment *e = k->e;

    *info = e->data;
    return e->task_row->classes ? e->task_row->classes(k->config, e->arena, info) : PM_OK;
}

/* ---- classes: counting ------------------------------------------------------------------ */

struct count {
    struct pm_experiment *e;
    size_t classes;
    _Atomic uint64_t *records;   /* [classes] that have the class */
    _Atomic uint64_t other;      /* records with a class that training refuses */
    _Atomic uint64_t first;      /* the first such record */
    _Atomic int err;             /* of reading a file */
};

static void add_other(struct count *n, uint64_t record)
{
    uint64_t first = n->first;

    n->other++;
    while (record < first && !atomic_compare_exchange_weak(&n->first, &first, record))
        ;
}

/* Damaged records have no class: training and `dataset inspect --check` report them. */
static void count_range(void *ctx, size_t begin, size_t end)
{
    struct count *n = ctx;
    uint64_t *has = pm_calloc(n->classes + 1, sizeof *has);
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;
    char where[512];

    for (size_t i = begin; i < end && n->err == PM_OK; i++) {
        struct pm_example *e = NULL;
        const int err = pm_dataset_read(n->e->train, i, &buf, &capacity, &size);
        bool other = false;

        memset(has, 0, n->classes * sizeof *has);
        pm_dataset_where(n->e->train, i, where, sizeof where);
        if (err == PM_OK && pm_example_parse(buf, size, where, &e) == PM_OK &&
            n->e->task_row->record_classes(n->e->task, e, where, has, n->classes, &other) < 0)
            memset(has, 0, n->classes * sizeof *has);
        if (err < 0 && err != PM_ECORRUPT)
            n->err = err;
        pm_example_destroy(&e);
        for (size_t c = 0; c < n->classes; c++)
            n->records[c] += has[c] > 0;
        if (other)
            add_other(n, i);
    }
    pm_free(has);
    pm_free(buf);
}

/* Returns the error for records with a class that the net lacks. */
static int refuse_classes(const struct pm_check *k, const struct count *n)
{
    const bool given = k->config->model.num_classes > 0;
    const char *remedy = k->e->facts.labels_offset
                             ? "correct data.labels_offset, which is subtracted from the classes, "
                               "or model.num_classes"
                         : given ? "remove the key, or set it to the number of classes"
                                 : "set the key, or convert the data again with all class names";
    char where[512];

    pm_dataset_where(k->e->train, (size_t)n->first, where, sizeof where);
    return pm_fail(given ? PM_ECONFIG : PM_EDATA,
                   "%s: model.num_classes: %d%s, but %llu training record%s a class that the net "
                   "lacks (the first is %s): %s",
                   given ? pm_config_origin(k->config, "model.num_classes") : k->config->path,
                   k->e->facts.num_classes, given ? "" : " (from the data)",
                   (unsigned long long)n->other, n->other == 1 ? " has" : "s have", where, remedy);
}

static int count_classes(struct pm_check *k)
{
    const struct pm_dataset_info *split = pm_dataset_get_info(k->e->train);
    const int own = k->e->facts.num_classes + k->e->facts.labels_offset;
    struct pm_dataset_info info;
    struct count n = { .e = k->e, .first = UINT64_MAX };
    int err = PM_OK;

    if (!k->e->task_row->record_classes)
        goto out;
    PM_TRY(data_classes(k, &info));
    if (split->bytes > MOST_BYTES) {
        char all[24], most[24];

        pm_check_add(k, PM_CHECK_NOTE, "data.train_split",
                       "the examples of the classes were not counted: the training split has %s, "
                       "more than %s",
                       pm_bytes_text(split->bytes, all), pm_bytes_text(MOST_BYTES, most));
        goto out;
    }
    n.classes = (size_t)(own > info.num_classes ? own : info.num_classes);
    n.records = pm_calloc(n.classes + 1, sizeof *n.records);
    pm_parallel(split->count, 16, count_range, &n);
    if (n.err < 0)
        PM_TRY(pm_fail(n.err, "%s: a file of the training split cannot be read",
                       k->config->data.folder));
    if (n.other)
        PM_TRY(refuse_classes(k, &n));
    k->class_count = (int)n.classes;
    k->class_records = pm_calloc(n.classes + 1, sizeof *k->class_records);
    for (size_t i = 0; i < n.classes; i++)
        k->class_records[i] = n.records[i];
out:
    pm_free(n.records);
    return err;
}
const struct pm_check_finding pm_check_finding_classes = { true, count_classes };

/* ---- num_classes ------------------------------------------------------------------------ */

static int check_num_classes(struct pm_check *k)
{
    const int own = k->e->facts.num_classes, first = k->e->facts.labels_offset;
    const char *origin = pm_config_origin(k->config, "model.num_classes");
    struct pm_dataset_info info;
    uint64_t records = 0;
    int err = PM_OK;

    PM_TRY(data_classes(k, &info));
    const int data = info.num_classes - first;

    if (k->config->model.num_classes == 0 || data <= 0 || own == data)
        goto out;
    for (int i = first + own; i < k->class_count; i++)
        records += k->class_records[i];
    if (own < data && records)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: model.num_classes: %d, but the data has %d classes, and training "
                       "records have classes that the net lacks: remove the key, or set it to %d",
                       origin, own, data, data));
    if (own < data)
        pm_check_add(k, PM_CHECK_WARNING, "model.num_classes",
                       "model.num_classes: %d, but the data names %d classes. Remove the key, or "
                       "set it to %d", own, data, data);
    else
        pm_check_add(k, PM_CHECK_WARNING, "model.num_classes",
                       "model.num_classes: %d, but the data has only %d classes, so the net never "
                       "sees an example of the others. Remove the key, or set it to %d",
                       own, data, data);
out:
    return err;
}
const struct pm_check_finding pm_check_finding_num_classes = { true, check_num_classes };

/* ---- empty_classes ---------------------------------------------------------------------- */

/* Class 0 of ImageNet's and of many detectors' data is a background without examples. */
static bool is_background(const struct pm_dataset_info *info, int i)
{
    return i == 0 && info->labels && info->labels[0] && strcmp(info->labels[0], "background") == 0;
}

static int check_empty(struct pm_check *k)
{
    struct pm_dataset_info info;
    struct pm_str names = { 0 };
    int empty = 0, err = PM_OK;

    PM_TRY(data_classes(k, &info));
    for (int i = k->e->facts.labels_offset; i < info.num_classes && i < k->class_count; i++) {
        if (k->class_records[i] || is_background(&info, i) || i == info.ignore_label)
            continue;
        if (empty++ < SHOWN) {
            pm_str_add(&names, empty > 1 ? ", " : "");
            if (info.labels && info.labels[i])
                pm_str_name(&names, info.labels[i], 0);
            else
                pm_str_add(&names, "%d", i);
        }
    }
    if (empty > SHOWN)
        pm_str_add(&names, " and %d more", empty - SHOWN);
    if (empty)
        pm_check_add(k, PM_CHECK_WARNING, "data.train_split",
                       "data.train_split: %d of %d classes %s no example in %s, so the net cannot "
                       "learn %s: %s. Add examples, or convert the data without %s",
                       empty, info.num_classes - k->e->facts.labels_offset,
                       empty == 1 ? "has" : "have", k->config->data.train_split,
                       empty == 1 ? "it" : "them", names.text, empty == 1 ? "it" : "them");
out:
    pm_str_free(&names);
    return err;
}
const struct pm_check_finding pm_check_finding_empty_classes = { true, check_empty };
