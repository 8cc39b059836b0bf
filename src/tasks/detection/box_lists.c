/* box_lists: keeps the boxes of an evaluation, and sorts those of a picture by class. */
#include "tasks/detection/box_lists.h"

#include "data/coco_mask.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* ---- all pictures -------------------------------------------------------------------------- */

static const struct pm_runs *copy_mask(struct pm_box_lists *l, const struct pm_runs *from)
{
    if (!from || !l->masks)
        return NULL;
    struct pm_runs *to = pm_arena_alloc(l->shapes, sizeof *to);

    *to = pm_runs_copy(l->shapes, from);
    return to;
}

static const double *copy_points(struct pm_box_lists *l, const double *from)
{
    return from && l->points
               ? pm_arena_copy(l->shapes, from, 2 * (size_t)l->points * sizeof *from)
               : NULL;
}

void pm_box_lists_add(struct pm_box_lists *l, const struct pm_box_picture *p)
{
    if (!l->shapes && (l->masks || l->points))
        l->shapes = pm_arena_create();
    PM_GROW(l->pictures, l->count, l->capacity);
    l->pictures[l->count++] = (struct pm_kept_picture){
        .record = p->record, .name = p->name ? pm_strdup(p->name) : NULL,
        .file = p->file ? pm_strdup(p->file) : NULL,
        .truth = l->truth_count, .detection = l->detection_count, .verified = l->verified_count,
        .truths = p->truths, .detections = p->detections,
        .verified_count = p->verified ? p->verified_count : -1,
    };
    for (int g = 0; g < p->truths; g++) {
        struct pm_box_truth t = p->truth[g];

        assert(t.label >= 0 && t.label < l->classes);
        if (isnan(t.area))
            t.area = l->geometry->area(pm_box_truth_numbers(l->geometry, &t));
        t.mask = copy_mask(l, t.mask);
        t.points = copy_points(l, t.points);
        PM_GROW(l->truth, l->truth_count, l->truth_capacity);
        l->truth[l->truth_count++] = t;
    }
    for (int d = 0; d < p->detections; d++) {
        struct pm_box_detection of = p->detection[d];

        assert(of.label >= 0 && of.label < l->classes);
        of.mask = copy_mask(l, of.mask);
        of.points = copy_points(l, of.points);
        PM_GROW(l->detection, l->detection_count, l->detection_capacity);
        l->detection[l->detection_count++] = of;
    }
    for (int i = 0; p->verified && i < p->verified_count; i++) {
        PM_GROW(l->verified, l->verified_count, l->verified_capacity);
        l->verified[l->verified_count++] = p->verified[i];
    }
}

static int by_record(const void *a, const void *b)
{
    const struct pm_kept_picture *const *x = a, *const *y = b;

    return ((*x)->record > (*y)->record) - ((*x)->record < (*y)->record);
}

const struct pm_kept_picture **pm_box_lists_by_record(const struct pm_box_lists *l)
{
    const struct pm_kept_picture **list = pm_malloc((l->count + 1) * sizeof *list);

    for (size_t i = 0; i < l->count; i++)
        list[i] = &l->pictures[i];
    qsort(list, l->count, sizeof *list, by_record);
    return list;
}

void pm_box_lists_free(struct pm_box_lists *l)
{
    for (size_t i = 0; i < l->count; i++) {
        pm_free(l->pictures[i].name);
        pm_free(l->pictures[i].file);
    }
    pm_free(l->pictures);
    pm_free(l->truth);
    pm_free(l->detection);
    pm_free(l->verified);
    pm_arena_destroy(&l->shapes);
    *l = (struct pm_box_lists){ 0 };
}

/* ---- boxes by class ---------------------------------------------------------------------- */

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
        b->detection_at = pm_realloc(b->detection_at, (size_t)detections * sizeof *b->detection_at);
    }
}

void pm_boxes_by_class_create(struct pm_boxes_by_class *b, int classes)
{
    *b = (struct pm_boxes_by_class){ .classes = classes };
    b->first_truth = pm_calloc((size_t)classes + 1, sizeof *b->first_truth);
    b->first_detection = pm_calloc((size_t)classes + 1, sizeof *b->first_detection);
    make_room(b, 1, 1); /* empty lists have an address, too */
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

struct pm_class_pairs pm_boxes_pairs(const struct pm_boxes_by_class *b, int label, int most,
                                     struct pm_arena *a)
{
    const int truths = b->first_truth[label + 1] - b->first_truth[label];
    const int listed = b->first_detection[label + 1] - b->first_detection[label];
    const int found = listed < most ? listed : most;
    struct pm_class_pairs c = {
        .truth = b->truth + b->first_truth[label],
        .detection = b->detection + b->first_detection[label],
        .picture = { .truths = truths, .found = found },
    };

    c.true_object = pm_arena_alloc(a, (size_t)truths * sizeof *c.true_object);
    c.said = pm_arena_alloc(a, (size_t)found * sizeof *c.said);
    c.overlap = pm_arena_alloc(a, (size_t)truths * (size_t)found * sizeof *c.overlap);
    for (int g = 0; g < truths; g++)
        c.true_object[g] = (struct pm_coco_true){ c.truth[g].area, c.truth[g].crowd, false };
    for (int d = 0; d < found; d++)
        c.said[d] = (struct pm_coco_said){ .score = c.detection[d].score };
    c.picture.truth = c.true_object;
    c.picture.said = c.said;
    c.picture.overlap = c.overlap;
    return c;
}

struct pm_coco_picture pm_boxes_of_class(const struct pm_boxes_by_class *b,
                                         const struct pm_box_geometry *geometry, int label,
                                         struct pm_arena *a)
{
    const struct pm_class_pairs c = pm_boxes_pairs(b, label, INT_MAX, a);
    const int truths = c.picture.truths;

    for (int d = 0; d < c.picture.found; d++) {
        c.said[d].area = geometry->area(pm_box_found_numbers(geometry, &c.detection[d]));
        for (int g = 0; g < truths; g++)
            c.overlap[d * truths + g] = pm_box_overlap(geometry, &c.detection[d], &c.truth[g],
                                                       c.truth[g].crowd);
    }
    return c.picture;
}
