/* box_voc: average precision by the rules of Pascal VOC's development kit, and what Open Images
 * makes of them, as evaluated by TensorFlow's Object Detection API (object_detection_evaluation.py,
 * per_image_evaluation.py, metrics.py). In each class of each picture:
 *
 * Detections come by descending score. Each looks at the one object with the largest IoU, used or
 * not. If the IoU is at least 0.5, the detection is ignored for a difficult object, right for one
 * that no other detection has used, else wrong. Detections without height or width are dropped.
 *
 * With masks, the IoU is that of the masks. A true object whose mask is missing or empty does not
 * count. A detection that matches no mask is compared with the boxes of such objects. The first
 * match of each of these boxes is ignored.
 *
 * Open Images: an unmatched detection with half of its area or more in a group_of box is ignored.
 * In the challenge such a box counts as one object, and the highest of these scores as one right
 * detection.
 *
 * With the k best detections of all pictures, precision is right / (right + wrong) and recall is
 * right / objects. The area under the curve takes, at each recall, the best precision at that or a
 * larger recall. */
#include "tasks/detection/box_voc.h"

#include "data/coco_mask.h"
#include "tasks/detection/box_shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least = 0.5;

/* A detection that is right or wrong. */
struct mark {
    double score;
    uint64_t at; /* its place among equal scores: picture, class, rank */
    bool right;
};
struct marks {
    struct mark *list; /* owned */
    size_t count, capacity;
    double truths;                 /* number of those that count */
    uint64_t pictures, localized;  /* with the class; in which its best detection is right */
};

static int by_score(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;

    return x->score == y->score ? (x->at > y->at) - (x->at < y->at) : x->score < y->score ? 1 : -1;
}

static void add_mark(struct marks *to, double score, uint64_t at, bool right)
{
    PM_GROW(to->list, to->count, to->capacity);
    to->list[to->count++] = (struct mark){ score, at, right };
}

/* ---- one class of one picture ------------------------------------------------------------ */

struct boxes {
    const struct pm_box_geometry *geometry;
    const struct pm_box_truth *truth;
    const struct pm_box_detection *detection; /* by descending score */
    int truths, detections;
    bool masks;    /* compared by masks where `masked`; only with PM_BOX_VOC_RULES */
    bool *masked;  /* [truths] the object has a mask with a pixel */
    bool *used;    /* [truths] */
    double *best;  /* [truths] highest score in a group_of box; -INFINITY: none */
};

static bool is_group(enum pm_box_rules rules, const struct pm_box_truth *t)
{
    return rules != PM_BOX_VOC_RULES && t->group_of;
}

static bool is_difficult(enum pm_box_rules rules, const struct pm_box_truth *t)
{
    return rules == PM_BOX_VOC_RULES && (t->difficult || t->crowd);
}

static bool has_pixel(const struct pm_runs *mask)
{
    return mask && pm_runs_area(mask) > 0;
}

static double overlap_of(const struct boxes *b, int d, int g, bool crowd)
{
    return b->masked[g] ? pm_box_mask_overlap(&b->detection[d], &b->truth[g], crowd)
                        : pm_box_overlap(b->geometry, &b->detection[d], &b->truth[g], crowd);
}

/* Returns the index of the first object with the largest overlap of at least 0.5, or -1. masks:
 * among the objects that are compared by masks, or by boxes. */
static int match_of(const struct boxes *b, enum pm_box_rules rules, int d, bool groups, bool masks)
{
    double most = 0;
    int match = -1;

    for (int g = 0; g < b->truths; g++) {
        if (is_group(rules, &b->truth[g]) != groups || b->masked[g] != masks)
            continue;
        const double overlap = overlap_of(b, d, g, groups);

        if (overlap > most)
            most = overlap, match = g;
    }
    return most >= least ? match : -1;
}

static void add_detection(struct boxes *b, enum pm_box_rules rules, int d, uint64_t at,
                          struct marks *to)
{
    const double score = pm_box_score(&b->detection[d]);

    /* With masks, first the objects with a mask, then the boxes of the others. */
    for (int masks = b->masks; masks >= 0; masks--) {
        const int match = match_of(b, rules, d, false, masks);

        if (match >= 0 && is_difficult(rules, &b->truth[match]))
            return;
        if (match >= 0 && !b->used[match]) {
            b->used[match] = true;
            if (masks == b->masks)
                add_mark(to, score, at, true);
            return;
        }
    }
    const int group = match_of(b, rules, d, true, false);

    if (group < 0)
        add_mark(to, score, at, false);
    else if (score > b->best[group])
        b->best[group] = score;
}

/* at: the place of the first detection. */
static void add_class(struct boxes *b, enum pm_box_rules rules, uint64_t at, struct marks *to)
{
    bool first = true;
    int localized = 0;

    for (int g = 0; g < b->truths; g++) {
        b->masked[g] = b->masks && has_pixel(b->truth[g].mask);
        b->used[g] = false;
        b->best[g] = -INFINITY;
        to->truths += is_group(rules, &b->truth[g]) ? rules == PM_BOX_CHALLENGE_RULES
                                                    : !is_difficult(rules, &b->truth[g]) &&
                                                          b->masked[g] == b->masks;
    }
    for (int d = 0; d < b->detections; d++) {
        if (!b->geometry->has_sides(pm_box_found_numbers(b->geometry, &b->detection[d])))
            continue;
        for (int g = 0; first && g < b->truths; g++)
            localized |= overlap_of(b, d, g, false) >= least;
        first = false;
        add_detection(b, rules, d, at + (uint64_t)d, to);
    }
    for (int g = 0; g < b->truths; g++)
        if (rules == PM_BOX_CHALLENGE_RULES && b->best[g] > 0)
            add_mark(to, b->best[g], at + (uint64_t)(b->detections + g), true);
    to->pictures += b->truths > 0;
    to->localized += b->truths > 0 && localized;
}

/* ---- all pictures ------------------------------------------------------------------------ */

/* Whether detections of this class count in this picture. */
static bool is_verified(const struct pm_box_lists *l, const struct pm_kept_picture *p, int label)
{
    for (int i = 0; i < p->verified_count; i++)
        if (l->verified[p->verified + (size_t)i] == label)
            return true;
    return p->verified_count < 0;
}

static void add_picture(const struct pm_box_lists *l, const struct pm_kept_picture *p,
                        const struct pm_boxes_by_class *by_class, enum pm_box_rules rules,
                        bool masks, struct marks *marks)
{
    bool *masked = pm_malloc((size_t)p->truths + 1), *used = pm_malloc((size_t)p->truths + 1);
    double *best = pm_malloc(((size_t)p->truths + 1) * sizeof *best);

    for (int c = 0; c < l->classes; c++) {
        const int g = by_class->first_truth[c], d = by_class->first_detection[c];
        struct boxes b = { l->geometry, by_class->truth + g, by_class->detection + d,
                           by_class->first_truth[c + 1] - g, by_class->first_detection[c + 1] - d,
                           masks, masked, used, best };

        if (rules == PM_BOX_CHALLENGE_RULES && b.truths == 0 && !is_verified(l, p, c))
            b.detections = 0;
        if (b.truths || b.detections)
            add_class(&b, rules, p->record << 24 | (uint64_t)d, &marks[c]);
    }
    pm_free(masked);
    pm_free(used);
    pm_free(best);
}

/* Returns the marks of each class, and after them those of all classes with true objects, each list
 * by descending score. Free with free_marks. */
static struct marks *mark_all(const struct pm_box_lists *l, enum pm_box_rules rules, bool masks)
{
    const size_t classes = (size_t)l->classes;
    struct marks *marks = pm_calloc(classes + 1, sizeof *marks);
    struct pm_boxes_by_class by_class;

    pm_boxes_by_class_create(&by_class, l->classes);
    for (size_t i = 0; i < l->count; i++) {
        const struct pm_kept_picture *p = &l->pictures[i];

        pm_boxes_by_class_set(&by_class, l->truth + p->truth, p->truths,
                              l->detection + p->detection, p->detections);
        add_picture(l, p, &by_class, rules, masks, marks);
    }
    pm_boxes_by_class_free(&by_class);
    for (size_t c = 0; c < classes; c++) {
        for (size_t i = 0; marks[c].truths > 0 && i < marks[c].count; i++)
            add_mark(&marks[classes], marks[c].list[i].score, marks[c].list[i].at,
                     marks[c].list[i].right);
        marks[classes].truths += marks[c].truths;
    }
    for (size_t c = 0; c <= classes; c++)
        if (marks[c].count)
            qsort(marks[c].list, marks[c].count, sizeof *marks[c].list, by_score);
    return marks;
}

static void free_marks(struct marks *marks, int classes)
{
    for (int c = 0; c <= classes; c++)
        pm_free(marks[c].list);
    pm_free(marks);
}

/* ---- curves ------------------------------------------------------------------------------ */

/* The points of a curve, one for each mark. Both arrays are owned. */
struct curve {
    double *recall, *precision;
    size_t count;
};

/* Keeps points with a recall from lower to upper, and raises each precision to the best one at that
 * or a larger recall. */
static struct curve curve_of(const struct marks *marks, double lower, double upper)
{
    struct curve c = { pm_malloc((marks->count + 1) * sizeof(double)),
                       pm_malloc((marks->count + 1) * sizeof(double)), 0 };
    double right = 0;

    for (size_t i = 0; i < marks->count; i++) {
        right += marks->list[i].right;
        const double recall = right / marks->truths;

        if (recall < lower || recall > upper)
            continue;
        c.recall[c.count] = recall;
        c.precision[c.count++] = right / (double)(i + 1);
    }
    for (size_t i = c.count; i-- > 1;)
        c.precision[i - 1] = fmax(c.precision[i - 1], c.precision[i]);
    return c;
}

static void free_curve(struct curve *c)
{
    pm_free(c->recall);
    pm_free(c->precision);
}

/* From a recall of 0. */
static double area_under(const struct marks *marks, double lower, double upper)
{
    struct curve c = curve_of(marks, lower, upper);
    double area = 0, last = 0;

    for (size_t i = 0; i < c.count; i++) {
        area += (c.recall[i] - last) * c.precision[i];
        last = c.recall[i];
    }
    free_curve(&c);
    return marks->truths > 0 ? area : NAN;
}

/* Recalls are compared as whole numbers: a recall of exactly 0.3 reaches 0.3. */
static double mean_at_11_recalls(const struct marks *marks)
{
    struct curve c = curve_of(marks, 0, 1);
    double sum = 0;

    for (int k = 0; k <= 10; k++) {
        size_t i = 0;

        while (i < c.count && round(c.recall[i] * marks->truths) * 10 < k * marks->truths)
            i++;
        sum += i < c.count ? c.precision[i] : 0;
    }
    free_curve(&c);
    return marks->truths > 0 ? sum / 11 : NAN;
}

double pm_box_voc(const struct pm_box_lists *l, enum pm_box_rules rules, bool masks,
                  double recall_lower, double recall_upper, struct pm_box_voc *per_class)
{
    struct marks *marks = mark_all(l, rules, masks);

    for (int c = 0; c < l->classes; c++) {
        const struct marks *of = &marks[c];

        per_class[c] = (struct pm_box_voc){
            .map = area_under(of, 0, 1), .map_07 = mean_at_11_recalls(of),
            .precision_at_recall = area_under(of, recall_lower, recall_upper),
            .corloc = of->pictures ? (double)of->localized / (double)of->pictures : NAN,
        };
    }
    const double weighted = area_under(&marks[l->classes], 0, 1);
    free_marks(marks, l->classes);
    return weighted;
}
