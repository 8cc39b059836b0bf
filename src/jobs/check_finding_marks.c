/* check_finding_marks: an option that learns from a key of records which only some records have,
 * and none of the training split. A split of at most MOST_BYTES is read in parallel, up to the
 * first record that has the key. Pictures are not decoded. */
#include "jobs/check_findings.h"

#include <pumice/thread.h>

#include <stdatomic.h>

static const uint64_t MOST_BYTES = (uint64_t)4 << 30;

struct search {
    struct pm_dataset *d;
    const char *key;
    _Atomic bool found;
    _Atomic int err; /* of reading a file */
};

static bool has_floats(const struct pm_example *e, const char *key)
{
    const float *v = NULL;
    size_t count = 0;

    return pm_example_floats(e, key, &v, &count) == 1 && count > 0;
}

/* Damaged records have no key: training and `dataset inspect --check` report them. */
static void search_range(void *ctx, size_t begin, size_t end)
{
    struct search *s = ctx;
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;
    char where[512];

    for (size_t i = begin; i < end && !s->found && s->err == PM_OK; i++) {
        struct pm_example *e = NULL;
        const int err = pm_dataset_read(s->d, i, &buf, &capacity, &size);

        pm_dataset_where(s->d, i, where, sizeof where);
        if (err == PM_OK && pm_example_parse(buf, size, where, &e) == PM_OK &&
            has_floats(e, s->key))
            s->found = true;
        if (err < 0 && err != PM_ECORRUPT)
            s->err = err;
        pm_example_destroy(&e);
    }
    pm_free(buf);
}

static int check_marks(struct pm_check *k)
{
    const struct pm_dataset_info *split = pm_dataset_get_info(k->e->train);
    const char *option = NULL;
    struct search s = { .d = k->e->train };

    if (k->e->task_row->marks)
        s.key = k->e->task_row->marks(k->e->task, &option);
    if (!s.key || split->bytes > MOST_BYTES)
        return PM_OK;
    pm_parallel(split->count, 16, search_range, &s);
    if (s.err < 0)
        return pm_fail(s.err, "%s: a file of the training split cannot be read",
                       k->config->data.folder);
    if (!s.found)
        pm_check_add(k, PM_CHECK_WARNING, option,
                     "%s: no record of %s has %s, so the option has no effect. Convert the data "
                     "with it, or remove the option", option, k->config->data.train_split, s.key);
    return PM_OK;
}
const struct pm_check_finding pm_check_finding_marks = { true, check_marks };
