/* coco_metrics: for each range of areas and each threshold t, in each class of each picture:
 *
 * Crowds, true objects outside the range, and those that the caller marks are ignored. The
 * detections are matched in descending order of their scores. Each takes the true object with the
 * largest overlap of at least t among those not yet matched; a crowd can be matched repeatedly. An
 * object that counts is preferred to an ignored one; among equal overlaps the last is taken. A
 * detection matched to an object that counts is right. It is ignored if it is matched to an ignored
 * object, or if it has no match and its own area is outside the range. Otherwise it is wrong.
 *
 * Then the detections of all pictures are sorted by score. With the k best, precision is right /
 * (right + wrong) and recall is right / true objects. The precision at a recall is the best one at
 * that or a larger recall. AP is its mean over the recalls 0, 0.01 ... 1; AR is the recall of all
 * detections. */
#include "tasks/coco_metrics.h"

#include "base/pack.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { THRESHOLDS = 10, AT_075 = 5, RECALLS = PM_COCO_RECALLS, MOST = 100 };
/* As NumPy's linspace makes them for pycocotools. */
static const double thresholds[THRESHOLDS] = { 0.5,  0.55, 0.6,  0.65,               0.7,
                                               0.75, 0.8,  0.85, 0.8999999999999999, 0.95 };

enum range { ALL, SMALL, MEDIUM, LARGE, RANGES };
static const struct {
    double least, most; /* areas */
    enum pm_coco_figure ap, ar;
} ranges[RANGES] = {
    [ALL] = { 0, 1e10, PM_COCO_AP, PM_COCO_AR100 },
    [SMALL] = { 0, 32 * 32, PM_COCO_AP_SMALL, PM_COCO_AR_SMALL },
    [MEDIUM] = { 32 * 32, 96 * 96, PM_COCO_AP_MEDIUM, PM_COCO_AR_MEDIUM },
    [LARGE] = { 96 * 96, 1e10, PM_COCO_AP_LARGE, PM_COCO_AR_LARGE },
};

#define NAME(name) name,
const char *const pm_coco_names[PM_COCO_FIGURES] = { PM_COCO_NAMES(NAME) };

/* A detection: a bit for each threshold. If neither right nor wrong is set, it is ignored. */
struct verdict {
    double score;
    uint64_t at; /* its place among equal scores: picture's order, class, rank in the picture */
    uint16_t right[RANGES], wrong[RANGES];
};
/* By score in its picture, from 0. */
static int rank_of(const struct verdict *v)
{
    return (int)(v->at & 255);
}
struct of_class {
    struct verdict *list; /* owned */
    size_t count, capacity;
    uint64_t truths[RANGES];
};
struct pm_coco_metrics {
    int classes;
    struct of_class *of; /* owned */
};

struct pm_coco_metrics *pm_coco_metrics_create(int classes)
{
    struct pm_coco_metrics *m = pm_calloc(1, sizeof *m);

    m->classes = classes;
    m->of = pm_calloc((size_t)classes, sizeof *m->of);
    return m;
}

void pm_coco_metrics_destroy(struct pm_coco_metrics **m)
{
    for (int c = 0; *m && c < (*m)->classes; c++)
        pm_free((*m)->of[c].list);
    if (*m)
        pm_free((*m)->of);
    pm_free(*m);
    *m = NULL;
}

/* ---- one picture ------------------------------------------------------------------------- */

/* The objects of one picture in one range of areas. */
struct matching {
    const struct pm_coco_picture *p;
    enum range range;
    int counted;  /* number of true objects that count */
    int *order;   /* [p->truths] true objects, those that count first */
    bool *taken;  /* [p->truths] in the order of `order` */
    int surest[MOST], count;
};

/* A score that is NaN is below all others. */
static double score_of(const struct pm_coco_said *s)
{
    return isnan(s->score) ? -INFINITY : s->score;
}

static void take_surest(struct matching *l)
{
    const struct pm_coco_said *said = l->p->said;

    for (int d = 0; d < l->p->found; d++) {
        int at = l->count;

        while (at > 0 && score_of(&said[d]) > score_of(&said[l->surest[at - 1]]))
            at--;
        if (at == MOST)
            continue;
        l->count += l->count < MOST;
        memmove(l->surest + at + 1, l->surest + at,
                (size_t)(l->count - 1 - at) * sizeof *l->surest);
        l->surest[at] = d;
    }
}

static bool is_outside(double area, enum range range)
{
    return area < ranges[range].least || area > ranges[range].most;
}

static void order_truths(struct matching *l)
{
    int n = 0;

    for (int ignored = 0; ignored < 2; ignored++) {
        for (int g = 0; g < l->p->truths; g++) {
            const struct pm_coco_true *t = &l->p->truth[g];

            if ((t->crowd || t->ignored || is_outside(t->area, l->range)) == (ignored == 1))
                l->order[n++] = g;
        }
        l->counted = ignored ? l->counted : n;
    }
}

/* Returns an index into l->order, or -1 if nothing matches. */
static int match_of(const struct matching *l, int said, double threshold)
{
    const size_t truths = (size_t)l->p->truths;
    double best = threshold;
    int match = -1;

    for (size_t k = 0; k < truths; k++) {
        const int g = l->order[k];
        const double overlap = l->p->overlap[(size_t)said * truths + (size_t)g];

        if (l->taken[k] && !l->p->truth[g].crowd)
            continue;
        if (match >= 0 && match < l->counted && (int)k >= l->counted)
            break;
        if (overlap >= best)
            best = overlap, match = (int)k;
    }
    return match;
}

static void judge(struct matching *l, int threshold, struct verdict *out)
{
    const uint16_t bit = (uint16_t)(1u << threshold);

    memset(l->taken, 0, (size_t)l->p->truths * sizeof *l->taken);
    for (int k = 0; k < l->count; k++) {
        const int match = match_of(l, l->surest[k], thresholds[threshold]);

        if (match >= 0)
            l->taken[match] = true;
        if (match >= 0 && match < l->counted)
            out[k].right[l->range] |= bit;
        if (match < 0 && !is_outside(l->p->said[l->surest[k]].area, l->range))
            out[k].wrong[l->range] |= bit;
    }
}

void pm_coco_metrics_add(struct pm_coco_metrics *m, int label, const struct pm_coco_picture *p)
{
    struct of_class *of = &m->of[label];
    const size_t first = of->count;
    struct matching l = { .p = p };

    l.order = pm_malloc(((size_t)p->truths + 1) * sizeof *l.order);
    l.taken = pm_malloc(((size_t)p->truths + 1) * sizeof *l.taken);
    take_surest(&l);
    for (int k = 0; k < l.count; k++) {
        PM_GROW(of->list, of->count, of->capacity);
        of->list[of->count] = (struct verdict){ .score = score_of(&p->said[l.surest[k]]),
                                                .at = p->order << 24 | (uint64_t)label << 8 |
                                                      (uint64_t)k };
        of->count++;
    }
    for (int r = 0; r < RANGES; r++) {
        l.range = (enum range)r;
        order_truths(&l);
        of->truths[r] += (uint64_t)l.counted;
        for (int t = 0; t < THRESHOLDS && l.count > 0; t++)
            judge(&l, t, of->list + first);
    }
    pm_free(l.order);
    pm_free(l.taken);
}

void pm_coco_match(const struct pm_coco_picture *p, double least, int *match)
{
    struct matching l = { .p = p, .range = ALL };

    l.order = pm_malloc(((size_t)p->truths + 1) * sizeof *l.order);
    l.taken = pm_calloc((size_t)p->truths + 1, sizeof *l.taken);
    take_surest(&l);
    order_truths(&l);
    for (int d = 0; d < p->found; d++)
        match[d] = -2;
    for (int k = 0; k < l.count; k++) {
        const int found = match_of(&l, l.surest[k], least);

        match[l.surest[k]] = found < 0 ? -1 : l.order[found];
        if (found >= 0)
            l.taken[found] = true;
    }
    pm_free(l.order);
    pm_free(l.taken);
}

/* ---- packing ----------------------------------------------------------------------------- */

enum { PACKED_VERDICT = 2 * 8 + 2 * RANGES * sizeof(uint16_t), PACKED_CLASS = (2 + RANGES) * 8 };

static bool is_used(const struct of_class *of)
{
    bool used = of->count > 0;

    for (int r = 0; r < RANGES; r++)
        used |= of->truths[r] > 0;
    return used;
}

static void pack_class(const struct of_class *of, struct pm_str *out)
{
    pm_str_bytes(out, of->truths, sizeof of->truths);
    pm_pack_int(out, of->count);
    for (size_t i = 0; i < of->count; i++) {
        const struct verdict *v = &of->list[i];

        pm_pack_double(out, v->score);
        pm_pack_int(out, v->at);
        pm_str_bytes(out, v->right, sizeof v->right);
        pm_str_bytes(out, v->wrong, sizeof v->wrong);
    }
}

void pm_coco_metrics_pack(const struct pm_coco_metrics *m, struct pm_str *out)
{
    uint64_t used = 0;

    for (int c = 0; c < m->classes; c++)
        used += is_used(&m->of[c]);
    pm_pack_int(out, used);
    for (int c = 0; c < m->classes; c++)
        if (is_used(&m->of[c])) {
            pm_pack_int(out, (uint64_t)c);
            pack_class(&m->of[c], out);
        }
}

/* Whether a packed verdict is one that pm_coco_metrics_add can make. */
static bool is_possible(const struct verdict *v, uint64_t label, uint64_t pictures)
{
    const uint64_t label_at = v->at >> 8 & 0xffff;
    bool possible =
        !isnan(v->score) && rank_of(v) < MOST && label_at == label && v->at >> 24 < pictures;

    for (int r = 0; r < RANGES; r++)
        possible &=
            (v->right[r] & v->wrong[r]) == 0 && (v->right[r] | v->wrong[r]) < 1 << THRESHOLDS;
    return possible;
}

static void merge_class(struct of_class *of, uint64_t label, uint64_t first, uint64_t pictures,
                        struct pm_unpack *u)
{
    for (int r = 0; r < RANGES; r++)
        of->truths[r] += pm_unpack_int(u);
    const size_t count = pm_unpack_count(u, PACKED_VERDICT);

    for (size_t i = 0; i < count && !u->damaged; i++) {
        struct verdict v = { .score = pm_unpack_double(u) };

        v.at = pm_unpack_int(u);
        const void *right = pm_unpack_bytes(u, sizeof v.right);
        const void *wrong = pm_unpack_bytes(u, sizeof v.wrong);

        if (u->damaged)
            return;
        memcpy(v.right, right, sizeof v.right);
        memcpy(v.wrong, wrong, sizeof v.wrong);
        u->damaged = !is_possible(&v, label, pictures);
        v.at += first << 24;
        PM_GROW(of->list, of->count, of->capacity);
        of->list[of->count++] = v;
    }
}

void pm_coco_metrics_merge(struct pm_coco_metrics *m, uint64_t first, uint64_t pictures,
                           struct pm_unpack *u)
{
    const size_t used = pm_unpack_count(u, PACKED_CLASS);

    for (size_t i = 0; i < used && !u->damaged; i++) {
        const uint64_t c = pm_unpack_below(u, (uint64_t)m->classes);

        merge_class(&m->of[c], c, first, pictures, u);
    }
}

/* ---- reporting --------------------------------------------------------------------------- */

static int by_score(const void *a, const void *b)
{
    const struct verdict *x = a, *y = b;

    return x->score == y->score ? (x->at > y->at) - (x->at < y->at) : x->score < y->score ? 1 : -1;
}

/* list: by descending score. Goes from the last one back: the best precision so far holds for all
 * recalls that this detection reaches and the ones before it do not. If nothing counts, precision
 * is 0. */
static void find_precisions(const struct verdict *list, size_t count, double truths,
                            enum range range, int threshold, double precisions[RECALLS])
{
    const unsigned bit = 1u << threshold;
    double right = 0, wrong = 0, best = 0;
    int r = RECALLS - 1;

    for (size_t i = 0; i < count; i++) {
        right += (list[i].right[range] & bit) != 0;
        wrong += (list[i].wrong[range] & bit) != 0;
    }
    for (; r >= 0 && r * 0.01 > right / truths; r--)
        precisions[r] = 0;
    for (size_t i = count; i-- > 0;) {
        const double precision = right > 0 ? right / (right + wrong) : 0;

        best = precision > best ? precision : best;
        right -= (list[i].right[range] & bit) != 0;
        wrong -= (list[i].wrong[range] & bit) != 0;
        for (; r >= 0 && (i == 0 || r * 0.01 > right / truths); r--)
            precisions[r] = best;
    }
    for (; r >= 0; r--)
        precisions[r] = 0;
}

/* Adds from the largest recall down. */
static double precision_of(const struct verdict *list, size_t count, double truths,
                           enum range range, int threshold)
{
    double precisions[RECALLS], sum = 0;

    find_precisions(list, count, truths, range, threshold, precisions);
    for (int r = RECALLS - 1; r >= 0; r--)
        sum += precisions[r];
    return sum / RECALLS;
}

/* Returns the mean over the thresholds, with the `most` best detections of each picture. */
static double recall_of(const struct verdict *list, size_t count, double truths, enum range range,
                        int most)
{
    double right = 0;

    for (size_t i = 0; i < count; i++)
        if (rank_of(&list[i]) < most)
            for (unsigned bits = list[i].right[range]; bits; bits &= bits - 1)
                right++;
    return right / truths / THRESHOLDS;
}

/* Returns the recall at one threshold, of objects of any area. */
static double recall_at(const struct of_class *of, int threshold)
{
    double right = 0;

    for (size_t i = 0; i < of->count; i++)
        right += of->list[i].right[ALL] >> threshold & 1;
    return right / (double)of->truths[ALL];
}

/* Returns a copy of the list by descending score; the caller frees it. */
static struct verdict *sorted(const struct of_class *of)
{
    struct verdict *list = pm_malloc((of->count + 1) * sizeof *list);

    if (of->count)
        memcpy(list, of->list, of->count * sizeof *list);
    qsort(list, of->count, sizeof *list, by_score);
    return list;
}

static struct pm_coco_figures figures_of(const struct of_class *of)
{
    struct verdict *list = sorted(of);
    struct pm_coco_figures out;

    for (int k = 0; k < PM_COCO_ALL_FIGURES; k++)
        out.v[k] = NAN;
    for (int r = 0; r < RANGES; r++) {
        const double truths = (double)of->truths[r];
        double ap[THRESHOLDS], sum = 0;

        if (of->truths[r] == 0)
            continue;
        for (int t = 0; t < THRESHOLDS; t++) {
            ap[t] = precision_of(list, of->count, truths, (enum range)r, t);
            sum += ap[t];
        }
        out.v[ranges[r].ap] = sum / THRESHOLDS;
        out.v[ranges[r].ar] = recall_of(list, of->count, truths, (enum range)r, MOST);
        if (r != ALL)
            continue;
        out.v[PM_COCO_AP50] = ap[0];
        out.v[PM_COCO_AP75] = ap[AT_075];
        out.v[PM_COCO_AR1] = recall_of(list, of->count, truths, ALL, 1);
        out.v[PM_COCO_AR10] = recall_of(list, of->count, truths, ALL, 10);
        out.v[PM_COCO_AR50] = recall_at(of, 0);
        out.v[PM_COCO_AR75] = recall_at(of, AT_075);
    }
    pm_free(list);
    return out;
}

struct pm_coco_figures pm_coco_metrics_figures(const struct pm_coco_metrics *m, int label)
{
    struct pm_coco_figures sum = { { 0 } };
    int classes[PM_COCO_ALL_FIGURES] = { 0 };

    if (label >= 0)
        return figures_of(&m->of[label]);
    for (int c = 0; c < m->classes; c++) {
        const struct pm_coco_figures one = figures_of(&m->of[c]);

        for (int k = 0; k < PM_COCO_ALL_FIGURES; k++)
            if (!isnan(one.v[k]))
                classes[k]++, sum.v[k] += one.v[k];
    }
    for (int k = 0; k < PM_COCO_ALL_FIGURES; k++)
        sum.v[k] = classes[k] ? sum.v[k] / classes[k] : NAN;
    return sum;
}

/* ---- curves ------------------------------------------------------------------------------ */

/* A threshold below `kept` that drops `next`: their middle, or next itself if 32 bits hold no
 * number between them. */
static double threshold_between(double kept, double next)
{
    const double middle = isinf(next) ? kept - 1 : (double)(float)(kept + (next - kept) / 2);

    return middle < kept && middle >= next ? middle : next;
}

/* list: by descending score. Equal scores are kept or dropped together, so F1 is computed at the
 * last one of each score. Among equal F1 the highest score is taken. */
static void find_best_f1(const struct verdict *list, size_t count, struct pm_coco_curve *out)
{
    const double truths = (double)out->truths;
    double right = 0, wrong = 0;

    for (size_t i = 0; i < count; i++) {
        const double next = i + 1 < count        ? list[i + 1].score
                            : list[i].score > 0 ? 0
                                                : -INFINITY;

        right += (list[i].right[ALL] & 1) != 0;
        wrong += (list[i].wrong[ALL] & 1) != 0;
        if (i + 1 < count && next == list[i].score)
            continue;
        if (2 * right / (right + wrong + truths) <= out->f1)
            continue;
        out->f1 = 2 * right / (right + wrong + truths);
        out->precision_at = right / (right + wrong);
        out->recall_at = right / truths;
        out->score = threshold_between(list[i].score, next);
    }
}

void pm_coco_metrics_curve(const struct pm_coco_metrics *m, int label, struct pm_coco_curve *out)
{
    struct of_class all = { 0 };
    const struct of_class *of = label < 0 ? &all : &m->of[label];
    struct verdict *list;

    for (int c = 0; label < 0 && c < m->classes; c++) {
        all.truths[ALL] += m->of[c].truths[ALL];
        all.capacity += m->of[c].count;
    }
    all.list = pm_malloc((all.capacity + 1) * sizeof *all.list);
    for (int c = 0; label < 0 && c < m->classes; c++) {
        if (m->of[c].count)
            memcpy(all.list + all.count, m->of[c].list, m->of[c].count * sizeof *all.list);
        all.count += m->of[c].count;
    }
    list = sorted(of);
    *out = (struct pm_coco_curve){ .precision_at = NAN, .score = NAN, .truths = of->truths[ALL] };
    for (size_t i = 0; i < of->count; i++)
        out->detections += ((list[i].right[ALL] | list[i].wrong[ALL]) & 1) != 0;
    find_precisions(list, of->count, (double)out->truths, ALL, 0, out->precision);
    if (out->truths)
        find_best_f1(list, of->count, out);
    else
        out->f1 = out->recall_at = NAN;
    for (int r = 0; r < RECALLS && !out->truths; r++)
        out->precision[r] = NAN;
    pm_free(list);
    pm_free(all.list);
}
