/* box_metrics: collects the values of all metrics. Each picture goes to coco_metrics class by class
 * when it is added; the other metrics are computed from the lists when they are asked for. */
#include "tasks/detection/box_metrics.h"
#include "data/coco_mask.h"
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_shapes.h"
#include "tasks/detection/box_voc.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PM_BOX_AR_LARGE + 1 == (int)PM_COCO_FIGURES, "COCO's come first, in its order");
_Static_assert(PM_BOX_MASK_AR_LARGE - PM_BOX_MASK_MAP + 1 == (int)PM_COCO_FIGURES, "likewise");
#define NAME(id, name) name,
const char *const pm_box_metric_names[PM_BOX_METRICS] = { PM_BOX_METRIC_NAMES(NAME) };

/* ---- the object -------------------------------------------------------------------------- */

struct pm_box_metrics {
    struct pm_box_metrics_options o;   /* sigmas: owned */
    struct pm_coco_metrics *coco;      /* owned, like the next two */
    struct pm_coco_metrics *masks, *points;
    struct pm_box_lists lists;
    struct pm_boxes_by_class by_class; /* of the picture that is added */
};

/* Returns [classes][points]; the caller frees it. */
static double *copy_sigmas(const struct pm_box_metrics_options *o)
{
    const size_t count = (size_t)o->classes * (size_t)o->points;
    double *sigmas = pm_malloc((count + 1) * sizeof *sigmas);

    for (size_t i = 0; i < count; i++)
        sigmas[i] = o->sigmas ? o->sigmas[i] : NAN;
    return sigmas;
}

struct pm_box_metrics *pm_box_metrics_create(const struct pm_box_metrics_options *o)
{
    struct pm_box_metrics *m = pm_calloc(1, sizeof *m);

    assert(o->classes > 0);
    m->o = *o;
    m->lists.classes = o->classes;
    m->lists.geometry = pm_box_geometry_of(o->rotated);
    m->lists.masks = o->masks;
    m->lists.points = o->points;
    PM_GROW(m->lists.truth, 0, m->lists.truth_capacity); /* empty lists have an address, too */
    PM_GROW(m->lists.detection, 0, m->lists.detection_capacity);
    m->coco = pm_coco_metrics_create(o->classes);
    m->masks = pm_coco_metrics_create(o->classes);
    m->points = pm_coco_metrics_create(o->classes);
    m->o.sigmas = copy_sigmas(o);
    pm_boxes_by_class_create(&m->by_class, o->classes);
    return m;
}

void pm_box_metrics_destroy(struct pm_box_metrics **m)
{
    if (*m) {
        pm_coco_metrics_destroy(&(*m)->coco);
        pm_coco_metrics_destroy(&(*m)->masks);
        pm_coco_metrics_destroy(&(*m)->points);
        pm_free((void *)(*m)->o.sigmas);
        pm_boxes_by_class_free(&(*m)->by_class);
        pm_box_lists_free(&(*m)->lists);
    }
    pm_free(*m);
    *m = NULL;
}

static struct pm_box_points points_of(const struct pm_box_metrics *m, int label)
{
    return (struct pm_box_points){ m->o.sigmas + (size_t)label * (size_t)m->o.points,
                                   m->o.points };
}

static bool has_points(const struct pm_box_metrics *m, int label)
{
    const struct pm_box_points of = points_of(m, label);

    for (int k = 0; k < of.points; k++)
        if (!isnan(of.sigma[k]))
            return true;
    return false;
}

/* Adds the objects of one class of the picture in m->by_class. */
static void add_class(struct pm_box_metrics *m, int label, uint64_t record, struct pm_arena *a)
{
    struct pm_coco_picture of = pm_boxes_of_class(&m->by_class, m->lists.geometry, label, a);

    of.order = record;
    pm_coco_metrics_add(m->coco, label, &of);
    if (m->o.masks) {
        of = pm_masks_of_class(&m->by_class, label, a);
        of.order = record;
        pm_coco_metrics_add(m->masks, label, &of);
    }
    if (has_points(m, label)) {
        const struct pm_box_points points = points_of(m, label);

        of = pm_points_of_class(&m->by_class, label, &points, a);
        of.order = record;
        pm_coco_metrics_add(m->points, label, &of);
    }
}

/* Whether all masks of a picture have one size. */
static bool masks_fit(const struct pm_box_picture *p)
{
    const struct pm_runs *first = NULL;
    bool fit = true;

    for (int i = 0; i < p->truths + p->detections; i++) {
        const struct pm_runs *mask =
            i < p->truths ? p->truth[i].mask : p->detection[i - p->truths].mask;

        first = first ? first : mask;
        fit &= !mask || (mask->height == first->height && mask->width == first->width);
    }
    return fit;
}

void pm_box_metrics_add(struct pm_box_metrics *m, const struct pm_box_picture *p)
{
    struct pm_arena *a = pm_arena_create();
    const size_t first = m->lists.truth_count;

    assert(!m->o.masks || masks_fit(p));
    pm_box_lists_add(&m->lists, p);
    pm_boxes_by_class_set(&m->by_class, m->lists.truth + first, p->truths, p->detection,
                          p->detections);
    for (int c = 0; c < m->o.classes; c++)
        if (m->by_class.first_truth[c] < m->by_class.first_truth[c + 1] ||
            m->by_class.first_detection[c] < m->by_class.first_detection[c + 1])
            add_class(m, c, p->record, a);
    pm_arena_destroy(&a);
}

const struct pm_box_lists *pm_box_metrics_lists(const struct pm_box_metrics *m)
{
    return &m->lists;
}

/* ---- values ------------------------------------------------------------------------------ */

/* The figures of keypoints from PM_BOX_KEYPOINT_MAP on. */
static const enum pm_coco_figure point_figures[] = {
    PM_COCO_AP, PM_COCO_AP50, PM_COCO_AP75, PM_COCO_AP_MEDIUM, PM_COCO_AP_LARGE, PM_COCO_AR100,
    PM_COCO_AR50, PM_COCO_AR75, PM_COCO_AR_MEDIUM, PM_COCO_AR_LARGE,
};
_Static_assert(PM_COUNT(point_figures) == PM_BOX_KEYPOINT_AR_LARGE - PM_BOX_KEYPOINT_MAP + 1,
               "a metric of keypoints has no figure");

/* Sets a class's values of COCO; those of the other sets become NAN. */
static void add_coco(const struct pm_box_metrics *m, unsigned sets, int label,
                     struct pm_box_values *out)
{
    const struct { unsigned set; struct pm_coco_metrics *from; enum pm_box_metric first; } of[] = {
        { PM_BOX_COCO, m->coco, PM_BOX_MAP }, { PM_BOX_COCO_MASKS, m->masks, PM_BOX_MASK_MAP },
    };

    for (int k = 0; k < PM_BOX_METRICS; k++)
        out->v[k] = NAN;
    for (size_t i = 0; i < PM_COUNT(of); i++)
        if (sets & of[i].set) {
            const struct pm_coco_figures f = pm_coco_metrics_figures(of[i].from, label);

            memcpy(out->v + of[i].first, f.v, PM_COCO_FIGURES * sizeof *f.v); /* the same order */
        }
    if (sets & PM_BOX_COCO_KEYPOINTS) {
        const struct pm_coco_figures f = pm_coco_metrics_figures(m->points, label);

        for (size_t k = 0; k < PM_COUNT(point_figures); k++)
            out->v[PM_BOX_KEYPOINT_MAP + k] = f.v[point_figures[k]];
    }
}

/* Sets the classes' values of Pascal VOC. Returns weighted_map. */
static double add_pascal(const struct pm_box_metrics *m, struct pm_box_values *all)
{
    struct pm_box_voc *of = pm_malloc((size_t)m->o.classes * sizeof *of);
    const double weighted = pm_box_voc(&m->lists, PM_BOX_VOC_RULES, false, m->o.recall_lower,
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

/* Likewise of masks. Returns mask_weighted_map. */
static double add_pascal_masks(const struct pm_box_metrics *m, struct pm_box_values *all)
{
    struct pm_box_voc *of = pm_malloc((size_t)m->o.classes * sizeof *of);
    const double weighted = pm_box_voc(&m->lists, PM_BOX_VOC_RULES, true, 0, 1, of);

    for (int c = 0; c < m->o.classes; c++)
        all[c].v[PM_BOX_MASK_VOC_MAP] = of[c].map;
    pm_free(of);
    return weighted;
}

static void add_open_images(const struct pm_box_metrics *m, enum pm_box_rules rules,
                            enum pm_box_metric metric, struct pm_box_values *all)
{
    struct pm_box_voc *of = pm_malloc((size_t)m->o.classes * sizeof *of);

    pm_box_voc(&m->lists, rules, false, 0, 1, of);
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

    for (int c = 0; c < classes; c++)
        add_coco(m, sets, c, &all[c]);
    for (int k = 0; k < PM_BOX_METRICS; k++)
        mean->v[k] = 0;
    mean->v[PM_BOX_WEIGHTED_MAP] = sets & PM_BOX_PASCAL ? add_pascal(m, all) : NAN;
    mean->v[PM_BOX_MASK_WEIGHTED_MAP] =
        sets & PM_BOX_PASCAL_MASKS ? add_pascal_masks(m, all) : NAN;
    if (sets & PM_BOX_OPEN_IMAGES)
        add_open_images(m, PM_BOX_OPEN_IMAGES_RULES, PM_BOX_OPEN_IMAGES_MAP, all);
    if (sets & PM_BOX_OPEN_IMAGES_CHALLENGE)
        add_open_images(m, PM_BOX_CHALLENGE_RULES, PM_BOX_OPEN_IMAGES_CHALLENGE_MAP, all);
    for (int c = 0; c < classes; c++)
        for (int k = 0; k < PM_BOX_METRICS; k++)
            if (!isnan(all[c].v[k]))
                counted[k]++, mean->v[k] += all[c].v[k];
    for (int k = 0; k < PM_BOX_METRICS; k++)
        if (k != PM_BOX_WEIGHTED_MAP && k != PM_BOX_MASK_WEIGHTED_MAP)
            mean->v[k] = counted[k] ? mean->v[k] / counted[k] : NAN;
    if (per_class)
        memcpy(per_class, all, (size_t)classes * sizeof *all);
    pm_free(all);
}

void pm_box_metrics_curve(const struct pm_box_metrics *m, int label, struct pm_coco_curve *out)
{
    pm_coco_metrics_curve(m->coco, label, out);
}
