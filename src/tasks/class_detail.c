/* class_detail: counts are a table of classes x classes, unless that would be too large. An example
 * is ranked as more wrong if the probability of its label is lower. */
#include "tasks/class_detail.h"
#include "tasks/score_pack.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

enum { MOST_CLASSES = 2048, WRONG = PM_MAX_SAMPLES * 2 / 3 };

/* The first PM_MAX_SAMPLES examples by key, then by record. */
struct ranking {
    struct { double key; struct pm_class_example example; } list[PM_MAX_SAMPLES];
    int count;
};
struct pm_class_detail {
    const struct pm_task_facts *facts; /* borrowed */
    size_t classes;
    uint64_t *confusion;          /* [label][predicted]; NULL: too many classes */
    uint64_t *count, *right;      /* by label */
    uint64_t *predicted;          /* by predicted class */
    uint64_t unanswered;          /* examples whose logits were not finite */
    struct ranking wrong, rights;
};

struct pm_class_detail *pm_class_detail_create(const struct pm_task_facts *s)
{
    struct pm_class_detail *d = pm_calloc(1, sizeof *d);
    const size_t k = (size_t)s->num_classes;

    d->facts = s;
    d->classes = k;
    d->count = pm_calloc(k, sizeof *d->count);
    d->right = pm_calloc(k, sizeof *d->right);
    d->predicted = pm_calloc(k, sizeof *d->predicted);
    if (k <= MOST_CLASSES)
        d->confusion = pm_calloc(k * k, sizeof *d->confusion);
    return d;
}

void pm_class_detail_destroy(struct pm_class_detail **d)
{
    if (!*d)
        return;
    pm_free((*d)->confusion);
    pm_free((*d)->count);
    pm_free((*d)->right);
    pm_free((*d)->predicted);
    pm_free(*d);
    *d = NULL;
}

/* ---- counting ---------------------------------------------------------------------------- */

static void rank(struct ranking *r, double key, const struct pm_class_example *e)
{
    int at = r->count;

    while (at > 0 && (key < r->list[at - 1].key ||
                      (key == r->list[at - 1].key && e->record < r->list[at - 1].example.record)))
        at--;
    if (at == PM_MAX_SAMPLES)
        return;
    r->count += r->count < PM_MAX_SAMPLES;
    memmove(r->list + at + 1, r->list + at, (size_t)(r->count - at - 1) * sizeof *r->list);
    r->list[at].key = key;
    r->list[at].example = *e;
}

static void rank_example(struct pm_class_detail *d, const struct pm_class_example *e)
{
    if (e->right)
        rank(&d->rights, (double)pm_hash_bytes(&e->record, sizeof e->record, 0), e);
    else
        rank(&d->wrong, isfinite(e->label_probability) ? e->label_probability : -1, e);
}

void pm_class_detail_add(struct pm_class_detail *d, const struct pm_class_example *e)
{
    const size_t label = (size_t)e->label;

    d->count[label]++;
    d->right[label] += e->right;
    if (!isfinite(e->probability)) {
        d->unanswered++;
    } else {
        d->predicted[e->predicted]++;
        if (d->confusion)
            d->confusion[label * d->classes + (size_t)e->predicted]++;
    }
    rank_example(d, e);
}

int pm_class_detail_samples(const struct pm_class_detail *d,
                            struct pm_class_example list[PM_MAX_SAMPLES])
{
    int wrong = d->wrong.count < WRONG ? d->wrong.count : WRONG, right = d->rights.count, n = 0;

    if (right > PM_MAX_SAMPLES - wrong)
        right = PM_MAX_SAMPLES - wrong;
    if (wrong + right < PM_MAX_SAMPLES)
        wrong = d->wrong.count < PM_MAX_SAMPLES - right ? d->wrong.count : PM_MAX_SAMPLES - right;
    for (int i = 0; i < wrong; i++)
        list[n++] = d->wrong.list[i].example;
    for (int i = 0; i < right; i++)
        list[n++] = d->rights.list[i].example;
    return n;
}

/* ---- packing ----------------------------------------------------------------------------- */

enum { PACKED_EXAMPLE = 6 * 8 }; /* bytes */

static void pack_ranking(const struct ranking *r, struct pm_str *out)
{
    pm_pack_int(out, (uint64_t)r->count);
    for (int i = 0; i < r->count; i++) {
        const struct pm_class_example *e = &r->list[i].example;

        pm_pack_int(out, e->record);
        pm_pack_int(out, (uint64_t)e->label);
        pm_pack_int(out, (uint64_t)e->predicted);
        pm_pack_int(out, e->right);
        pm_pack_double(out, e->probability);
        pm_pack_double(out, e->label_probability);
    }
}

static void merge_ranking(struct pm_class_detail *d, struct pm_unpack *u)
{
    const size_t count = pm_unpack_count(u, PACKED_EXAMPLE);

    for (size_t i = 0; i < count; i++) {
        struct pm_class_example e = { .record = pm_unpack_int(u) };

        e.label = (int)pm_unpack_below(u, d->classes);
        e.predicted = (int)pm_unpack_below(u, d->classes);
        e.right = pm_unpack_below(u, 2) == 1;
        e.probability = pm_unpack_double(u);
        e.label_probability = pm_unpack_double(u);
        if (u->damaged)
            return;
        rank_example(d, &e);
    }
}

static size_t cells(const struct pm_class_detail *d)
{
    return d->confusion ? d->classes * d->classes : 0;
}

void pm_class_detail_pack(const struct pm_class_detail *d, struct pm_str *out)
{
    pm_score_counts_pack(d->count, d->classes, out);
    pm_score_counts_pack(d->right, d->classes, out);
    pm_score_counts_pack(d->predicted, d->classes, out);
    pm_score_counts_pack(d->confusion, cells(d), out);
    pm_pack_int(out, d->unanswered);
    pack_ranking(&d->wrong, out);
    pack_ranking(&d->rights, out);
}

void pm_class_detail_merge(struct pm_class_detail *d, struct pm_unpack *u)
{
    pm_score_counts_merge(d->count, d->classes, u);
    pm_score_counts_merge(d->right, d->classes, u);
    pm_score_counts_merge(d->predicted, d->classes, u);
    pm_score_counts_merge(d->confusion, cells(d), u);
    d->unanswered += pm_unpack_int(u);
    merge_ranking(d, u);
    merge_ranking(d, u);
}

/* ---- reporting --------------------------------------------------------------------------- */

static cJSON *counts_of(const uint64_t *counts, size_t n)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)counts[i]));
    return list;
}

void pm_class_detail_labels(const struct pm_task_facts *s, struct cJSON *object)
{
    cJSON *labels = cJSON_AddArrayToObject(object, "labels");

    for (int i = 0; i < s->num_classes; i++)
        cJSON_AddItemToArray(labels, s->labels && s->labels[i] ? cJSON_CreateString(s->labels[i])
                                                              : cJSON_CreateNull());
    cJSON_AddNumberToObject(object, "labels_offset", s->labels_offset);
}

void pm_class_detail_report(const struct pm_class_detail *d, struct cJSON *object)
{
    cJSON *per_class, *confusion;

    pm_class_detail_labels(d->facts, object);
    per_class = cJSON_AddObjectToObject(object, "per_class");
    cJSON_AddItemToObject(per_class, "count", counts_of(d->count, d->classes));
    cJSON_AddItemToObject(per_class, "predicted", counts_of(d->predicted, d->classes));
    cJSON_AddItemToObject(per_class, "right", counts_of(d->right, d->classes));
    if (d->unanswered)
        cJSON_AddNumberToObject(object, "unanswered", (double)d->unanswered);
    if (!d->confusion)
        return;
    confusion = cJSON_AddArrayToObject(object, "confusion");
    for (size_t label = 0; label < d->classes; label++)
        for (size_t said = 0; said < d->classes; said++) {
            const uint64_t times = d->confusion[label * d->classes + said];
            if (times == 0)
                continue;
            cJSON_AddItemToArray(confusion, cJSON_CreateNumber((double)label));
            cJSON_AddItemToArray(confusion, cJSON_CreateNumber((double)said));
            cJSON_AddItemToArray(confusion, cJSON_CreateNumber((double)times));
        }
}

void pm_class_detail_print(const struct cJSON *row, const char *member, struct pm_str *out)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "name"));

    pm_str_add(out, "  ");
    if (name)
        pm_str_name(out, name, 0);
    else
        pm_str_add(out, "%.0f", cJSON_GetObjectItem(row, "label")->valuedouble);
    pm_str_add(out, " %.1f %%", 100 * cJSON_GetObjectItem(row, member)->valuedouble);
}
