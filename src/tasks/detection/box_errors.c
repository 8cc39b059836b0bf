/* box_errors: the kinds of errors by TIDE's rules, the confusion matrix, and the pictures to show.
 * Everything is computed from the boxes of one picture after the other, since the threshold of
 * scores is known only at the end: it may be the one with the best F1. */
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double match_least = 0.5, near_least = 0.1; /* IoU */

const char *const pm_box_kind_names[PM_BOX_KINDS] = {
    [PM_BOX_RIGHT] = "right",   [PM_BOX_LOOSE] = "loose",
    [PM_BOX_WRONG_CLASS] = "wrong_class", [PM_BOX_DOUBLE] = "double",
    [PM_BOX_BACKGROUND] = "background", [PM_BOX_BOTH] = "both",
    [PM_BOX_MISSED] = "missed", [PM_BOX_IGNORED] = "ignored",
};

/* ---- one picture ------------------------------------------------------------------------- */

struct judge {
    const struct pm_box_geometry *geometry;
    struct pm_boxes_by_class by_class;
    struct pm_box_judged j; /* the arrays are owned and reused, like the next ones */
    int *pair;              /* [detections] its true object in the confusion matrix, or -1 */
    bool *paired;           /* [truths] */
    int truth_room, detection_room;
};

static void judge_create(struct judge *g, const struct pm_box_lists *l)
{
    *g = (struct judge){ .geometry = l->geometry };
    pm_boxes_by_class_create(&g->by_class, l->classes);
}

void pm_box_judged_free(struct pm_box_judged *j)
{
    pm_free(j->truth);
    pm_free(j->detection);
    pm_free(j->truth_kind);
    pm_free(j->kind);
    *j = (struct pm_box_judged){ 0 };
}

static void judge_free(struct judge *g)
{
    pm_boxes_by_class_free(&g->by_class);
    pm_box_judged_free(&g->j);
    pm_free(g->pair);
    pm_free(g->paired);
}

static bool is_ignored(const struct pm_box_truth *t)
{
    return t->crowd || t->difficult || t->group_of;
}

static void make_room(struct judge *g, int truths, int detections)
{
    struct pm_box_judged *j = &g->j;

    if (truths > g->truth_room) {
        const size_t n = (size_t)(g->truth_room = truths);

        j->truth = pm_realloc(j->truth, n * sizeof *j->truth);
        j->truth_kind = pm_realloc(j->truth_kind, n * sizeof *j->truth_kind);
        g->paired = pm_realloc(g->paired, n * sizeof *g->paired);
    }
    if (detections > g->detection_room) {
        const size_t n = (size_t)(g->detection_room = detections);

        j->detection = pm_realloc(j->detection, n * sizeof *j->detection);
        j->kind = pm_realloc(j->kind, n * sizeof *j->kind);
        g->pair = pm_realloc(g->pair, n * sizeof *g->pair);
    }
}

/* Copies the boxes: true objects that are ignored become crowds, detections above the threshold by
 * descending score, equal scores in the order of the list. */
static void copy_boxes(struct judge *g, const struct pm_box_lists *l,
                       const struct pm_kept_picture *p, double threshold)
{
    const struct pm_box_detection *d = l->detection + p->detection;
    struct pm_box_judged *j = &g->j;

    make_room(g, p->truths, p->detections);
    j->truths = p->truths;
    for (int t = 0; t < p->truths; t++) {
        j->truth[t] = l->truth[p->truth + (size_t)t];
        j->truth[t].crowd = is_ignored(&j->truth[t]);
        j->truth_kind[t] = j->truth[t].crowd ? PM_BOX_IGNORED : PM_BOX_MISSED;
        g->paired[t] = j->truth[t].crowd;
    }
    j->detections = 0;
    for (int i = 0; i < p->detections; i++) {
        int at = j->detections;

        if (!(d[i].score > threshold))
            continue;
        for (; at > 0 && d[i].score > j->detection[at - 1].score; at--)
            j->detection[at] = j->detection[at - 1];
        j->detection[at] = d[i];
        j->detections++;
    }
    pm_boxes_by_class_set(&g->by_class, j->truth, j->truths, j->detection, j->detections);
}

/* Sets the kinds that COCO's matching decides, right and ignored. The others become PM_BOX_BOTH,
 * which the callers refine. */
static void match_class(struct judge *g, int label, struct pm_arena *a)
{
    const struct pm_boxes_by_class *b = &g->by_class;
    const struct pm_coco_picture p = pm_boxes_of_class(b, g->geometry, label, a);
    int *match = pm_arena_alloc(a, ((size_t)p.found + 1) * sizeof *match);

    pm_coco_match(&p, match_least, match);
    for (int k = 0; k < p.found; k++) {
        const int d = b->detection_at[b->first_detection[label] + k];
        const int t = match[k] < 0 ? -1 : b->truth_at[b->first_truth[label] + match[k]];

        g->pair[d] = -1;
        g->j.kind[d] = match[k] == -1 ? PM_BOX_BOTH : PM_BOX_IGNORED;
        if (t < 0 || g->j.truth[t].crowd)
            continue;
        g->j.kind[d] = g->j.truth_kind[t] = PM_BOX_RIGHT;
        g->pair[d] = t;
        g->paired[t] = true;
    }
}

/* Of the objects that are not ignored, of the class of d or of other classes, the one with the
 * largest overlap. only_free: of those without a pair. */
struct nearest { int truth; double overlap; };

static struct nearest nearest_of(const struct judge *g, int d, bool same_class, bool only_free)
{
    const struct pm_box_detection *of = &g->j.detection[d];
    struct nearest best = { -1, 0 };

    for (int t = 0; t < g->j.truths; t++) {
        const struct pm_box_truth *truth = &g->j.truth[t];

        if (truth->crowd || (truth->label == of->label) != same_class ||
            (only_free && g->paired[t]))
            continue;
        const double overlap = pm_box_overlap(g->geometry, of, truth, false);

        if (overlap > best.overlap)
            best = (struct nearest){ t, overlap };
    }
    return best;
}

static void set_error(struct judge *g, int d)
{
    const struct nearest same = nearest_of(g, d, true, false);
    const struct nearest other = nearest_of(g, d, false, false);
    enum pm_box_kind *kind = &g->j.kind[d];
    int near = -1;

    if (same.overlap >= near_least && same.overlap < match_least)
        *kind = PM_BOX_LOOSE, near = same.truth;
    else if (other.overlap >= match_least)
        *kind = PM_BOX_WRONG_CLASS, near = other.truth;
    else if (same.overlap >= match_least)
        *kind = PM_BOX_DOUBLE;
    else if (same.overlap < near_least && other.overlap < near_least)
        *kind = PM_BOX_BACKGROUND;
    if (near >= 0 && g->j.truth_kind[near] == PM_BOX_MISSED)
        g->j.truth_kind[near] = *kind;
}

static void judge_picture(struct judge *g, const struct pm_box_lists *l,
                          const struct pm_kept_picture *p, double threshold)
{
    struct pm_arena *a = pm_arena_create();

    copy_boxes(g, l, p, threshold);
    for (int c = 0; c < l->classes; c++)
        if (g->by_class.first_detection[c] < g->by_class.first_detection[c + 1])
            match_class(g, c, a);
    for (int d = 0; d < g->j.detections; d++) {
        if (g->j.kind[d] != PM_BOX_BOTH)
            continue;
        const struct nearest other = nearest_of(g, d, false, true);

        set_error(g, d);
        if (other.overlap < match_least)
            continue;
        g->pair[d] = other.truth;
        g->paired[other.truth] = true;
    }
    pm_arena_destroy(&a);
}

/* ---- all pictures ------------------------------------------------------------------------ */

static void count_errors(const struct pm_box_judged *j, struct pm_box_errors *per_class)
{
    for (int d = 0; d < j->detections; d++)
        per_class[j->detection[d].label].count[j->kind[d]]++;
    for (int t = 0; t < j->truths; t++)
        if (j->truth_kind[t] == PM_BOX_MISSED)
            per_class[j->truth[t].label].count[PM_BOX_MISSED]++;
}

static void count_confusion(const struct judge *g, struct pm_confusion *c)
{
    const size_t background = c->classes - 1;

    for (int d = 0; d < g->j.detections; d++) {
        const size_t said = (size_t)g->j.detection[d].label;
        const size_t true_class = g->pair[d] < 0 ? background
                                                 : (size_t)g->j.truth[g->pair[d]].label;

        c->count[true_class * c->classes + said] += g->j.kind[d] != PM_BOX_IGNORED;
    }
    for (int t = 0; t < g->j.truths; t++)
        c->count[(size_t)g->j.truth[t].label * c->classes + background] += !g->paired[t];
}

void pm_box_metrics_errors(const struct pm_box_metrics *m, double threshold,
                           struct pm_box_errors *total, struct pm_box_errors *per_class,
                           struct pm_confusion *confusion)
{
    const struct pm_box_lists *l = pm_box_metrics_lists(m);
    const size_t classes = (size_t)l->classes;
    struct pm_box_errors *counts = pm_calloc(classes, sizeof *counts);
    struct judge g;

    judge_create(&g, l);
    for (size_t i = 0; i < l->count; i++) {
        judge_picture(&g, l, &l->pictures[i], threshold);
        count_errors(&g.j, counts);
        if (confusion)
            count_confusion(&g, confusion);
    }
    judge_free(&g);
    *total = (struct pm_box_errors){ { 0 } };
    for (size_t c = 0; c < classes; c++)
        for (int k = 0; k < PM_BOX_KINDS; k++)
            total->count[k] += counts[c].count[k];
    if (per_class)
        memcpy(per_class, counts, classes * sizeof *counts);
    pm_free(counts);
}

bool pm_box_metrics_judge(const struct pm_box_metrics *m, uint64_t record, double threshold,
                          struct pm_box_judged *out)
{
    const struct pm_box_lists *l = pm_box_metrics_lists(m);

    *out = (struct pm_box_judged){ 0 };
    for (size_t i = 0; i < l->count; i++) {
        struct judge g;

        if (l->pictures[i].record != record)
            continue;
        judge_create(&g, l);
        judge_picture(&g, l, &l->pictures[i], threshold);
        for (int t = 0; t < g.j.truths; t++)
            g.j.truth[t] = l->truth[l->pictures[i].truth + (size_t)t]; /* its own flags again */
        *out = g.j;
        g.j = (struct pm_box_judged){ 0 };
        judge_free(&g);
        return true;
    }
    return false;
}

/* ---- pictures to show -------------------------------------------------------------------- */

struct shown { uint64_t record, hash; int errors; };

static int by_errors(const void *a, const void *b)
{
    const struct shown *x = a, *y = b;

    if (x->errors != y->errors)
        return x->errors > y->errors ? -1 : 1;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->record > y->record) - (x->record < y->record);
}

static int errors_in(const struct pm_box_judged *j)
{
    int n = 0;

    for (int d = 0; d < j->detections; d++)
        n += j->kind[d] != PM_BOX_RIGHT && j->kind[d] != PM_BOX_IGNORED;
    for (int t = 0; t < j->truths; t++)
        n += j->truth_kind[t] == PM_BOX_MISSED;
    return n;
}

int pm_box_metrics_samples(const struct pm_box_metrics *m, double threshold, int most,
                           uint64_t *records)
{
    const struct pm_box_lists *l = pm_box_metrics_lists(m);
    struct shown *all = pm_malloc((l->count + 1) * sizeof *all);
    size_t wrong = 0, right, n = 0;
    const size_t room = (size_t)most;
    struct judge g;

    judge_create(&g, l);
    for (size_t i = 0; i < l->count; i++) {
        const uint64_t record = l->pictures[i].record;

        judge_picture(&g, l, &l->pictures[i], threshold);
        all[i] = (struct shown){ record, pm_hash_bytes(&record, sizeof record, 0),
                                 errors_in(&g.j) };
        wrong += all[i].errors > 0;
    }
    judge_free(&g);
    qsort(all, l->count, sizeof *all, by_errors);
    right = l->count - wrong;
    const size_t first_right = wrong;

    wrong = wrong > room * 2 / 3 && right > 0 ? room * 2 / 3 : wrong;
    if (wrong + right < room) /* there are too few right ones */
        wrong = first_right < room - right ? first_right : room - right;
    wrong = wrong < room ? wrong : room;
    right = right < room - wrong ? right : room - wrong;
    for (size_t i = 0; i < wrong; i++)
        records[n++] = all[i].record;
    for (size_t i = 0; i < right; i++)
        records[n++] = all[first_right + i].record;
    pm_free(all);
    return (int)n;
}
