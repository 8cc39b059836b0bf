/* box_metrics: the lists of boxes, and COCO's metrics of them. Each picture goes to coco_metrics
 * class by class when it is added; the other metrics are computed from the lists when they are
 * asked for. */
#include "tasks/detection/box_metrics.h"
#include "tasks/detection/box_lists.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PM_BOX_AR_LARGE + 1 == (int)PM_COCO_FIGURES, "COCO's come first, in its order");
#define NAME(id, name) name,
const char *const pm_box_metric_names[PM_BOX_METRICS] = { PM_BOX_METRIC_NAMES(NAME) };

/* ---- boxes ------------------------------------------------------------------------------- */

double pm_box_score(const struct pm_box_detection *d)
{
    return isnan(d->score) ? -INFINITY : d->score;
}

double pm_box_area(const struct pm_box *b)
{
    return (b->v[3] - b->v[1]) * (b->v[2] - b->v[0]);
}

double pm_box_overlap(const struct pm_box *d, const struct pm_box *truth, bool crowd)
{
    const double *a = d->v, *b = truth->v;
    const double height_a = a[2] - a[0], width_a = a[3] - a[1];
    const double height_b = b[2] - b[0], width_b = b[3] - b[1];
    const double w = fmin(a[1] + width_a, b[1] + width_b) - fmax(a[1], b[1]);
    const double h = fmin(a[0] + height_a, b[0] + height_b) - fmax(a[0], b[0]);

    if (!(w > 0 && h > 0))
        return 0;
    return w * h / (crowd ? width_a * height_a : width_a * height_a + width_b * height_b - w * h);
}

/* ---- boxes by class ---------------------------------------------------------------------- */

void pm_boxes_by_class_create(struct pm_boxes_by_class *b, int classes)
{
    *b = (struct pm_boxes_by_class){ .classes = classes };
    b->first_truth = pm_calloc((size_t)classes + 1, sizeof *b->first_truth);
    b->first_detection = pm_calloc((size_t)classes + 1, sizeof *b->first_detection);
}

void pm_boxes_by_class_free(struct pm_boxes_by_class *b)
{
    pm_free(b->first_truth);
    pm_free(b->first_detection);
    pm_free(b->truth);
    pm_free(b->detection);
    pm_free(b->truth_at);
    pm_free(b->detection_at);
    *b = (struct pm_boxes_by_class){ 0 };
}

static void make_room(struct pm_boxes_by_class *b, int truths, int detections)
{
    if (truths > b->truth_room) {
        b->truth_room = truths;
        b->truth = pm_realloc(b->truth, (size_t)truths * sizeof *b->truth);
        b->truth_at = pm_realloc(b->truth_at, (size_t)truths * sizeof *b->truth_at);
    }
    if (detections > b->detection_room) {
        b->detection_room = detections;
        b->detection = pm_realloc(b->detection, (size_t)detections * sizeof *b->detection);
        b->detection_at = pm_realloc(b->detection_at,
                                     (size_t)detections * sizeof *b->detection_at);
    }
}

/* A box for sorting. */
struct place { double score; int label, at; };

static int by_class_and_score(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sorts the boxes and finds where each class begins. */
static void order(struct place *places, int count, int classes, int *first, int *at)
{
    int i = 0;

    qsort(places, (size_t)count, sizeof *places, by_class_and_score);
    for (int c = 0; c <= classes; c++) {
        while (i < count && places[i].label < c)
            i++;
        first[c] = i;
    }
    for (i = 0; i < count; i++)
        at[i] = places[i].at;
}

void pm_boxes_by_class_set(struct pm_boxes_by_class *b, const struct pm_box_truth *truth,
                           int truths, const struct pm_box_detection *detection, int detections)
{
    const int most = truths > detections ? truths : detections;
    struct place *places = pm_malloc(((size_t)most + 1) * sizeof *places);

    make_room(b, truths, detections);
    for (int g = 0; g < truths; g++)
        places[g] = (struct place){ 0, truth[g].label, g };
    order(places, truths, b->classes, b->first_truth, b->truth_at);
    for (int g = 0; g < truths; g++)
        b->truth[g] = truth[b->truth_at[g]];
    for (int d = 0; d < detections; d++)
        places[d] = (struct place){ pm_box_score(&detection[d]), detection[d].label, d };
    order(places, detections, b->classes, b->first_detection, b->detection_at);
    for (int d = 0; d < detections; d++)
        b->detection[d] = detection[b->detection_at[d]];
    pm_free(places);
}

/* ---- the object -------------------------------------------------------------------------- */

struct pm_box_metrics *pm_box_metrics_create(const struct pm_box_metrics_options *o)
{
    struct pm_box_metrics *m = pm_calloc(1, sizeof *m);

    assert(o->classes > 0);
    m->o = *o;
    m->coco = pm_coco_metrics_create(o->classes);
    pm_boxes_by_class_create(&m->by_class, o->classes);
    return m;
}

void pm_box_metrics_destroy(struct pm_box_metrics **m)
{
    if (*m) {
        for (size_t i = 0; i < (*m)->count; i++)
            pm_free((*m)->pictures[i].name);
        pm_coco_metrics_destroy(&(*m)->coco);
        pm_boxes_by_class_free(&(*m)->by_class);
        pm_free((*m)->pictures);
        pm_free((*m)->truth);
        pm_free((*m)->detection);
        pm_free((*m)->verified);
    }
    pm_free(*m);
    *m = NULL;
}

static void keep(struct pm_box_metrics *m, const struct pm_box_picture *p)
{
    PM_GROW(m->pictures, m->count, m->capacity);
    m->pictures[m->count++] = (struct pm_kept_picture){
        .record = p->record, .name = p->name ? pm_strdup(p->name) : NULL,
        .truth = m->truth_count, .detection = m->detection_count, .verified = m->verified_count,
        .truths = p->truths, .detections = p->detections,
        .verified_count = p->verified ? p->verified_count : -1,
    };
    for (int g = 0; g < p->truths; g++) {
        struct pm_box_truth t = p->truth[g];

        assert(t.label >= 0 && t.label < m->o.classes);
        t.area = isnan(t.area) ? pm_box_area(&t.box) : t.area;
        PM_GROW(m->truth, m->truth_count, m->truth_capacity);
        m->truth[m->truth_count++] = t;
    }
    for (int d = 0; d < p->detections; d++) {
        assert(p->detection[d].label >= 0 && p->detection[d].label < m->o.classes);
        PM_GROW(m->detection, m->detection_count, m->detection_capacity);
        m->detection[m->detection_count++] = p->detection[d];
    }
    for (int i = 0; p->verified && i < p->verified_count; i++) {
        PM_GROW(m->verified, m->verified_count, m->verified_capacity);
        m->verified[m->verified_count++] = p->verified[i];
    }
}

struct pm_coco_picture pm_boxes_of_class(const struct pm_boxes_by_class *b, int label,
                                         struct pm_arena *a)
{
    const struct pm_box_truth *truth = b->truth + b->first_truth[label];
    const struct pm_box_detection *detection = b->detection + b->first_detection[label];
    struct pm_coco_picture p = {
        .truths = b->first_truth[label + 1] - b->first_truth[label],
        .found = b->first_detection[label + 1] - b->first_detection[label],
    };
    struct pm_coco_true *t = pm_arena_alloc(a, (size_t)p.truths * sizeof *t);
    struct pm_coco_said *s = pm_arena_alloc(a, (size_t)p.found * sizeof *s);
    double *overlap = pm_arena_alloc(a, (size_t)p.truths * (size_t)p.found * sizeof *overlap);

    for (int g = 0; g < p.truths; g++)
        t[g] = (struct pm_coco_true){ truth[g].area, truth[g].crowd };
    for (int d = 0; d < p.found; d++) {
        s[d] = (struct pm_coco_said){ pm_box_area(&detection[d].box), detection[d].score };
        for (int g = 0; g < p.truths; g++)
            overlap[d * p.truths + g] = pm_box_overlap(&detection[d].box, &truth[g].box,
                                                       truth[g].crowd);
    }
    p.truth = t;
    p.said = s;
    p.overlap = overlap;
    return p;
}

void pm_box_metrics_add(struct pm_box_metrics *m, const struct pm_box_picture *p)
{
    struct pm_arena *a = pm_arena_create();
    const size_t first = m->truth_count;

    keep(m, p);
    pm_boxes_by_class_set(&m->by_class, m->truth + first, p->truths, p->detection, p->detections);
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

/* ---- values ------------------------------------------------------------------------------ */

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
    pm_box_voc_values(m, sets, mean, all);
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
