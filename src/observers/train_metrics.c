/* train_metrics: train_metrics.h has the contract. */
#include "observers/train_metrics.h"

#include "tasks/confusion.h"
#include "tasks/score_pack.h"

#include <stdlib.h>
#include <string.h>

struct pm_train_metrics {
    struct pm_train_output of;
    size_t batch;           /* number of examples in a batch */
    int32_t *labels;        /* [slots][batch][of.count], in a smaller frame less per slot */
    size_t *count;          /* [slots] elements of an example in the slot's frame */
    struct pm_confusion all, one;
    double *values;         /* owned: of the last counted step */
    struct pm_confusion snapshot; /* copy of `all` by the last pm_train_metrics_keep */
};

struct pm_train_metrics *pm_train_metrics_create(struct pm_train_output of, int batch, int slots)
{
    const size_t classes = (size_t)of.classes;
    struct pm_train_metrics *m;

    if (!of.node)
        return NULL;
    m = pm_calloc(1, sizeof *m);
    m->of = of;
    m->batch = (size_t)batch;
    m->labels = pm_calloc((size_t)slots * m->batch * of.count, sizeof *m->labels);
    m->count = pm_calloc((size_t)slots, sizeof *m->count);
    m->values = pm_calloc((size_t)of.metric_count, sizeof *m->values);
    pm_confusion_create(&m->all, classes);
    pm_confusion_create(&m->one, classes);
    pm_confusion_create(&m->snapshot, classes);
    return m;
}

void pm_train_metrics_destroy(struct pm_train_metrics **m)
{
    if (*m) {
        pm_confusion_free(&(*m)->all);
        pm_confusion_free(&(*m)->one);
        pm_confusion_free(&(*m)->snapshot);
        pm_free((*m)->labels);
        pm_free((*m)->count);
        pm_free((*m)->values);
        pm_free(*m);
    }
    *m = NULL;
}

size_t pm_train_metrics_values(const struct pm_train_metrics *m)
{
    return m ? (size_t)m->of.metric_count : 0;
}

static size_t cells_of(const struct pm_train_metrics *m)
{
    return m->all.classes * m->all.classes;
}

void pm_train_metrics_keep(struct pm_train_metrics *m)
{
    if (m)
        memcpy(m->snapshot.count, m->all.count, cells_of(m) * sizeof *m->all.count);
}

void pm_train_metrics_restore(struct pm_train_metrics *m)
{
    if (m)
        memcpy(m->all.count, m->snapshot.count, cells_of(m) * sizeof *m->all.count);
}

void pm_train_metrics_print(const struct pm_train_metrics *m, struct pm_str *json)
{
    if (!m)
        return;
    pm_str_add(json, ", \"train_confusion\": \"");
    for (size_t i = 0; i < cells_of(m); i++)
        pm_str_add(json, "%s%llu", i ? " " : "", (unsigned long long)m->snapshot.count[i]);
    pm_str_add(json, "\"");
}

void pm_train_metrics_read(struct pm_train_metrics *m, const char *text)
{
    char *end = (char *)text;
    size_t n = 0;

    if (!m)
        return;
    for (; text && n < cells_of(m); n++, text = end) {
        m->snapshot.count[n] = strtoull(text, &end, 10);
        if (end == text)
            break;
    }
    if (n < cells_of(m) || *end) /* from an older checkpoint, or with another number of classes */
        memset(m->snapshot.count, 0, cells_of(m) * sizeof *m->snapshot.count);
}

static int32_t *labels_of(const struct pm_train_metrics *m, int slot, int example)
{
    return m->labels + (size_t)slot * m->batch * m->of.count + (size_t)example * m->count[slot];
}

void pm_train_metrics_batch(struct pm_train_metrics *m, int slot, const struct pm_batch *batch)
{
    m->count[slot] = pm_shape_count(batch->fields[m->of.field].shape);
    memcpy(labels_of(m, slot, 0), batch->field[m->of.field],
           (size_t)batch->examples * m->count[slot] * sizeof *m->labels);
}

static double mean_count(const struct pm_confusion *c)
{
    const size_t cells = c->classes * c->classes;
    double sum = 0;

    for (size_t i = 0; i < cells; i++)
        sum += (double)c->count[i];
    return sum / (double)cells;
}

void pm_train_metrics_count(struct pm_train_metrics *m, int slot, const struct pm_clones *c)
{
    int first = 0, count;

    memset(m->one.count, 0, cells_of(m) * sizeof *m->one.count);
    for (int part = 0; (count = pm_clones_part(c, part)) > 0; part++, first += count)
        pm_confusion_add(&m->one, labels_of(m, slot, first),
                         pm_clones_output(c, part, slot, m->of.node),
                         (size_t)count * m->count[slot], m->of.ignore);
}

void pm_train_metrics_pack(struct pm_train_metrics *m, struct pm_str *out)
{
    pm_score_counts_pack(m->one.count, cells_of(m), out);
    memset(m->one.count, 0, cells_of(m) * sizeof *m->one.count);
}

void pm_train_metrics_merge(struct pm_train_metrics *m, struct pm_unpack *u)
{
    pm_score_counts_merge(m->one.count, cells_of(m), u);
}

void pm_train_metrics_finish(struct pm_train_metrics *m, struct pm_train_values *out)
{
    struct pm_confusion_metrics all, one;

    for (size_t i = 0; i < cells_of(m); i++)
        m->all.count[i] += m->one.count[i];
    all = pm_confusion_metrics(&m->all), one = pm_confusion_metrics(&m->one);
    for (int i = 0; i < m->of.metric_count; i++) {
        const struct pm_train_metric *k = &m->of.metrics[i];
        const struct pm_confusion_metrics *from = k->batch ? &one : &all;

        m->values[i] = k->measure == PM_TRAIN_MIOU       ? from->miou
                       : k->measure == PM_TRAIN_ACCURACY ? from->pixel_accuracy
                                                         : mean_count(k->batch ? &m->one : &m->all);
    }
    *out = (struct pm_train_values){ .of = m->of, .v = m->values };
}
