/* box_metrics: collects the values of all metrics. Each picture goes to coco_metrics class by class
 * when it is added; the other metrics are computed from the lists when they are asked for. */
#include "tasks/detection/box_metrics.h"
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_voc.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PM_BOX_AR_LARGE + 1 == (int)PM_COCO_FIGURES, "COCO's come first, in its order");
#define NAME(id, name) name,
const char *const pm_box_metric_names[PM_BOX_METRICS] = { PM_BOX_METRIC_NAMES(NAME) };

/* ---- the object -------------------------------------------------------------------------- */

struct pm_box_metrics {
    struct pm_box_metrics_options o;
    struct pm_coco_metrics *coco;      /* owned */
    struct pm_box_lists lists;
    struct pm_boxes_by_class by_class; /* of the picture that is added */
};

struct pm_box_metrics *pm_box_metrics_create(const struct pm_box_metrics_options *o)
{
    struct pm_box_metrics *m = pm_calloc(1, sizeof *m);

    assert(o->classes > 0);
    m->o = *o;
    m->lists.classes = o->classes;
    PM_GROW(m->lists.truth, 0, m->lists.truth_capacity); /* empty lists have an address, too */
    PM_GROW(m->lists.detection, 0, m->lists.detection_capacity);
    m->coco = pm_coco_metrics_create(o->classes);
    pm_boxes_by_class_create(&m->by_class, o->classes);
    return m;
}

void pm_box_metrics_destroy(struct pm_box_metrics **m)
{
    if (*m) {
        pm_coco_metrics_destroy(&(*m)->coco);
        pm_boxes_by_class_free(&(*m)->by_class);
        pm_box_lists_free(&(*m)->lists);
    }
    pm_free(*m);
    *m = NULL;
}

void pm_box_metrics_add(struct pm_box_metrics *m, const struct pm_box_picture *p)
{
    struct pm_arena *a = pm_arena_create();
    const size_t first = m->lists.truth_count;

    pm_box_lists_add(&m->lists, p);
    pm_boxes_by_class_set(&m->by_class, m->lists.truth + first, p->truths, p->detection,
                          p->detections);
    for (int c = 0; c < m->o.classes; c++) {
        if (m->by_class.first_truth[c] == m->by_class.first_truth[c + 1] &&
            m->by_class.first_detection[c] == m->by_class.first_detection[c + 1])
            continue;
        struct pm_coco_picture of = pm_boxes_of_class(&m->by_class, c, a);

        of.order = p->record;
        pm_coco_metrics_add(m->coco, c, &of);
    }
    pm_arena_destroy(&a);
}

const struct pm_box_lists *pm_box_metrics_lists(const struct pm_box_metrics *m)
{
    return &m->lists;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Sets the classes' values of Pascal VOC. Returns weighted_map. */
static double add_pascal(const struct pm_box_metrics *m, struct pm_box_values *all)
{
    struct pm_box_voc *of = pm_malloc((size_t)m->o.classes * sizeof *of);
    const double weighted = pm_box_voc(&m->lists, PM_BOX_VOC_RULES, m->o.recall_lower,
                                       m->o.recall_upper, of);

    for (int c = 0; c < m->o.classes; c++) {
        all[c].v[PM_BOX_VOC_MAP] = of[c].map;
        all[c].v[PM_BOX_VOC07_MAP] = of[c].map_07;
        all[c].v[PM_BOX_PRECISION_AT_RECALL] = of[c].precision_at_recall;
        all[c].v[PM_BOX_CORLOC] = of[c].corloc;
    }
    pm_free(of);
    return weighted;
}

static void add_open_images(const struct pm_box_metrics *m, enum pm_box_rules rules,
                            enum pm_box_metric metric, struct pm_box_values *all)
{
    struct pm_box_voc *of = pm_malloc((size_t)m->o.classes * sizeof *of);

    pm_box_voc(&m->lists, rules, 0, 1, of);
    for (int c = 0; c < m->o.classes; c++)
        all[c].v[metric] = of[c].map;
    pm_free(of);
}

void pm_box_metrics_values(const struct pm_box_metrics *m, unsigned sets,
                           struct pm_box_values *mean, struct pm_box_values *per_class)
{
    const int classes = m->o.classes;
    struct pm_box_values *all = pm_malloc((size_t)classes * sizeof *all);
    int counted[PM_BOX_METRICS] = { 0 };

    for (int c = 0; c < classes; c++) {
        for (int k = 0; k < PM_BOX_METRICS; k++)
            all[c].v[k] = NAN;
        if (sets & PM_BOX_COCO) {
            const struct pm_coco_figures f = pm_coco_metrics_figures(m->coco, c);

            memcpy(all[c].v, f.v, sizeof f.v); /* the first twelve, in the same order */
        }
    }
    for (int k = 0; k < PM_BOX_METRICS; k++)
        mean->v[k] = 0;
    mean->v[PM_BOX_WEIGHTED_MAP] = sets & PM_BOX_PASCAL ? add_pascal(m, all) : NAN;
    if (sets & PM_BOX_OPEN_IMAGES)
        add_open_images(m, PM_BOX_OPEN_IMAGES_RULES, PM_BOX_OPEN_IMAGES_MAP, all);
    if (sets & PM_BOX_OPEN_IMAGES_CHALLENGE)
        add_open_images(m, PM_BOX_CHALLENGE_RULES, PM_BOX_OPEN_IMAGES_CHALLENGE_MAP, all);
    for (int c = 0; c < classes; c++)
        for (int k = 0; k < PM_BOX_METRICS; k++)
            if (!isnan(all[c].v[k]))
                counted[k]++, mean->v[k] += all[c].v[k];
    for (int k = 0; k < PM_BOX_METRICS; k++)
        if (k != PM_BOX_WEIGHTED_MAP)
            mean->v[k] = counted[k] ? mean->v[k] / counted[k] : NAN;
    if (per_class)
        memcpy(per_class, all, (size_t)classes * sizeof *all);
    pm_free(all);
}

void pm_box_metrics_curve(const struct pm_box_metrics *m, int label, struct pm_coco_curve *out)
{
    pm_coco_metrics_curve(m->coco, label, out);
}
