/* panoptic_pack: packs the sums of panoptic_metrics and merges them. A pack has the terms of the
 * true segments in their order, from which the merging side makes the same sums, and the other
 * counts of the classes that have any. */
#include "tasks/score_pack.h"
#include "tasks/segmentation/panoptic_sums.h"

/* Sizes in bytes; of a class with its label and without its verdicts. */
enum { PACKED_TERM = 4 * 8, PACKED_JUDGED = 2 * 8, PACKED_CLASS = 4 * 8 };

void pm_panoptic_metrics_describe(const struct pm_panoptic_metrics *m, struct pm_str *out)
{
    pm_str_add(out, ", instances of classes");
    for (int i = 0; i < m->o.things.count; i++)
        pm_str_add(out, " %d", m->o.things.v[i]);
    pm_str_add(out, ", label_divisor %d, precision %s, least_area %d, ignored_area %d%s",
               m->o.label_divisor, m->o.coco ? "coco" : "cityscapes", m->o.least_area,
               m->o.ignored_area, m->o.normalize_by_image_size ? ", normalize_by_image_size" : "");
}

/* ---- packing ----------------------------------------------------------------------------- */

/* Whether the class has counts that do not follow from its terms. */
static bool is_used(const struct pm_panoptic_class *of)
{
    bool used = of->wrong > 0 || of->said || of->is;

    for (int t = 0; t < PM_PANOPTIC_THRESHOLDS; t++)
        used |= of->at[t].count > 0 || of->at[t].missed > 0;
    return used;
}

static void pack_class(const struct pm_panoptic_class *of, struct pm_str *out)
{
    pm_pack_int(out, of->wrong);
    pm_pack_int(out, of->said);
    pm_pack_int(out, of->is);
    for (int t = 0; t < PM_PANOPTIC_THRESHOLDS; t++) {
        const struct pm_panoptic_verdicts *w = &of->at[t];

        pm_pack_int(out, w->missed);
        pm_pack_int(out, w->count);
        for (size_t i = 0; i < w->count; i++) {
            pm_pack_double(out, w->list[i].score);
            pm_pack_int(out, w->list[i].right);
        }
    }
}

void pm_panoptic_metrics_pack(const struct pm_panoptic_metrics *m, struct pm_str *out)
{
    uint64_t used = 0;

    pm_pack_int(out, m->term_count);
    for (size_t i = 0; i < m->term_count; i++) {
        pm_pack_int(out, (uint64_t)m->term[i].label);
        pm_pack_int(out, m->term[i].matched);
        pm_pack_double(out, m->term[i].area);
        pm_pack_double(out, m->term[i].covered);
    }
    for (int c = 0; c < m->o.classes; c++)
        used += is_used(&m->of[c]);
    pm_pack_int(out, used);
    for (int c = 0; c < m->o.classes; c++)
        if (is_used(&m->of[c])) {
            pm_pack_int(out, (uint64_t)c);
            pack_class(&m->of[c], out);
        }
    if (!m->coco)
        return;
    pm_pack_int(out, m->pictures);
    pm_coco_metrics_pack(m->coco, out);
}

/* ---- merging ----------------------------------------------------------------------------- */

static void merge_terms(struct pm_panoptic_metrics *m, struct pm_unpack *u)
{
    const size_t count = pm_unpack_count(u, PACKED_TERM);

    for (size_t i = 0; i < count; i++) {
        struct pm_panoptic_term term = { .label = (int)pm_unpack_below(u, (uint64_t)m->o.classes) };

        term.matched = pm_unpack_below(u, 2) == 1;
        term.area = pm_unpack_double(u);
        term.covered = pm_unpack_double(u);
        if (u->damaged)
            return;
        pm_panoptic_metrics_add_term(m, &term);
    }
}

static void merge_verdicts(struct pm_panoptic_verdicts *w, struct pm_unpack *u)
{
    w->missed += pm_unpack_int(u);
    const size_t count = pm_unpack_count(u, PACKED_JUDGED);

    for (size_t i = 0; i < count && !u->damaged; i++) {
        PM_GROW(w->list, w->count, w->capacity);
        w->list[w->count] = (struct pm_panoptic_judged){ .score = pm_unpack_double(u) };
        w->list[w->count++].right = pm_unpack_below(u, 2) == 1;
    }
}

static void merge_class(struct pm_panoptic_class *of, struct pm_unpack *u)
{
    of->wrong += pm_unpack_int(u);
    of->said |= pm_unpack_below(u, 2) == 1;
    of->is |= pm_unpack_below(u, 2) == 1;
    for (int t = 0; t < PM_PANOPTIC_THRESHOLDS; t++)
        merge_verdicts(&of->at[t], u);
}

void pm_panoptic_metrics_merge(struct pm_panoptic_metrics *m, struct pm_unpack *u)
{
    merge_terms(m, u);
    const size_t used = pm_unpack_count(u, PACKED_CLASS);

    for (size_t i = 0; i < used && !u->damaged; i++)
        merge_class(&m->of[pm_unpack_below(u, (uint64_t)m->o.classes)], u);
    if (!m->coco)
        return;
    const uint64_t pictures = pm_unpack_below(u, PM_COCO_ORDERS - m->pictures);

    pm_coco_metrics_merge(m->coco, m->pictures, pictures, u);
    m->pictures += pictures;
}
