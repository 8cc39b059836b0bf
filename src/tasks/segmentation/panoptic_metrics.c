/* panoptic_metrics: with areas a of true segments g and predicted segments p, void pixels of the
 * truth v,
 *
 *     IoU(g, p) = |g p| / (a_g + a_p - |g p| - |v p|)
 *
 * Panoptic quality: segments of one class match if IoU > 1/2, which at most one pair can reach. A
 * predicted segment without a match is wrong, unless more than half of it lies on void or on a
 * crowd of its class. A true segment without a match is missed; crowds are not. For each class SQ =
 * sum of IoU / matched, RQ = matched / (matched + wrong / 2 + missed / 2), PQ = SQ RQ. Then means
 * are taken.
 *
 * Parsing covering: sum of a_g max_p IoU(g, p) / sum of a_g over the true segments of a class,
 * except crowds.
 *
 * Average precision follows the evaluation of Cityscapes or of COCO. In Cityscapes' void has no
 * part in IoU(g, p) = |g p| / (a_g + a_p - |g p|). For each threshold t, predicted instances that
 * overlap a true one of at least least_area by more than t are right, but only the one with the
 * highest score per true instance. Others are wrong, unless more than t of their area is void,
 * crowd or too small an instance. The curve of precision over recall is integrated by steps centred
 * on its points. COCO's (coco_metrics.c) uses the same IoU, and for a crowd of the class |g p| /
 * a_p. It has no void, which is no part of any instance. */
#include "tasks/segmentation/panoptic_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THRESHOLDS = PM_PANOPTIC_THRESHOLDS };

struct pm_panoptic_metrics *pm_panoptic_metrics_create(const struct pm_panoptic_metrics_options *o)
{
    struct pm_panoptic_metrics *m = pm_calloc(1, sizeof *m);

    m->o = *o;
    m->of = pm_calloc((size_t)o->classes, sizeof *m->of);
    m->slot = pm_calloc((size_t)o->classes * (size_t)o->label_divisor, sizeof *m->slot);
    m->things = pm_malloc(((size_t)o->things.count + 1) * sizeof *m->things);
    for (int i = 0; i < o->things.count; i++) {
        m->things[i] = o->things.v[i];
        m->of[o->things.v[i]].thing = true;
    }
    m->o.things.v = m->things;
    if (o->coco)
        m->coco = pm_coco_metrics_create(o->classes);
    return m;
}

void pm_panoptic_metrics_destroy(struct pm_panoptic_metrics **metrics)
{
    struct pm_panoptic_metrics *m = *metrics;

    for (int c = 0; m && c < m->o.classes; c++)
        for (int t = 0; t < THRESHOLDS; t++)
            pm_free(m->of[c].at[t].list);
    if (m) {
        pm_free(m->of);
        pm_free(m->slot);
        pm_free(m->things);
        pm_free(m->term);
        pm_coco_metrics_destroy(&m->coco);
    }
    pm_free(m);
    *metrics = NULL;
}

void pm_panoptic_truth(const struct pm_panoptic_metrics_options *o, int ignore_label,
                       const int32_t *labels, const int32_t *instances, size_t count, int32_t *out)
{
    enum { STORED = 1000 };
    bool *thing = pm_calloc((size_t)o->classes, sizeof *thing);

    for (int i = 0; i < o->things.count; i++)
        thing[o->things.v[i]] = true;
    for (size_t i = 0; i < count; i++) {
        const int label = labels[i], number = instances[i] % STORED;
        const bool distinct = label != ignore_label && thing[label] &&
                              instances[i] / STORED == label && number < o->label_divisor;

        out[i] = label == ignore_label ? PM_VOID
                                       : label * o->label_divisor + (distinct ? number : 0);
    }
    pm_free(thing);
}

/* ---- one picture ------------------------------------------------------------------------- */

struct true_segment {
    int32_t id;
    int label, area;
    bool crowd;
};
/* Shared pixels of segments; row 0 and column 0 are void. */
struct overlap {
    struct true_segment *truth; /* from 1 */
    int truths, said;
    int *pixels;                /* [truths][said] */
};

static int shared(const struct overlap *v, int truth, int said)
{
    return v->pixels[(size_t)truth * (size_t)v->said + (size_t)said];
}

/* Lists the true segments with their areas. *index [pixels]: each pixel's segment from 1, 0 for
 * void. */
static void list_truth(const struct pm_panoptic_metrics *m, const int32_t *truth, size_t pixels,
                       struct overlap *v, int32_t *index)
{
    size_t count = 1, capacity = 0;

    PM_GROW(v->truth, count, capacity);
    for (size_t i = 0; i < pixels; i++) {
        const int32_t id = truth[i];

        index[i] = 0;
        if (id == PM_VOID)
            continue;
        if (m->slot[id] == 0) {
            const int label = id / m->o.label_divisor;

            PM_GROW(v->truth, count, capacity);
            v->truth[count] = (struct true_segment){
                id, label, 0, m->of[label].thing && id % m->o.label_divisor == 0 };
            m->slot[id] = (int)count++;
        }
        index[i] = m->slot[id];
        v->truth[index[i]].area++;
    }
    for (size_t k = 1; k < count; k++)
        m->slot[v->truth[k].id] = 0;
    v->truths = (int)count;
}

/* Turns instances that are too small into void. */
static void drop_small(const struct pm_panoptic_metrics *m, struct overlap *v, size_t pixels,
                       int32_t *index)
{
    int *place = pm_calloc((size_t)v->truths, sizeof *place), left = 1;

    for (int k = 1; k < v->truths; k++) {
        const struct true_segment g = v->truth[k];

        if (m->of[g.label].thing && !g.crowd && g.area <= m->o.ignored_area)
            continue;
        place[k] = left;
        v->truth[left++] = g;
    }
    for (size_t i = 0; i < pixels && left < v->truths; i++)
        index[i] = place[index[i]];
    v->truths = left;
    pm_free(place);
}

static void find_overlap(const struct pm_panoptic_metrics *m, const int32_t *truth,
                         const struct pm_segment_map *said, struct overlap *v)
{
    const size_t pixels = (size_t)said->height * (size_t)said->width;
    int32_t *index = pm_malloc(pixels * sizeof *index);

    *v = (struct overlap){ .said = said->count + 1 };
    list_truth(m, truth, pixels, v, index);
    drop_small(m, v, pixels, index);
    v->pixels = pm_calloc((size_t)v->truths * (size_t)v->said, sizeof *v->pixels);
    for (int k = 0; k < said->count; k++)
        m->slot[said->segments[k].id] = 1 + k;
    for (size_t i = 0; i < pixels; i++) {
        const int k = said->map[i] == PM_VOID ? 0 : m->slot[said->map[i]];

        v->pixels[(size_t)index[i] * (size_t)v->said + (size_t)k]++;
    }
    for (int k = 0; k < said->count; k++)
        m->slot[said->segments[k].id] = 0;
    pm_free(index);
}

/* ---- panoptic quality, parsing covering -------------------------------------------------- */

static double overlap_of(const struct overlap *v, const struct pm_segment_map *said, int g, int p)
{
    const int both = shared(v, g, p);

    return (double)both / (double)(v->truth[g].area + said->segments[p - 1].area - both -
                                   shared(v, 0, p));
}

/* Whether more than half of a predicted segment lies on void or on a crowd of its class. */
static bool is_excused(const struct overlap *v, const struct pm_segment_map *said, int p)
{
    int unknown = shared(v, 0, p);

    for (int g = 1; g < v->truths; g++)
        if (v->truth[g].crowd && v->truth[g].label == said->segments[p - 1].label)
            unknown += shared(v, g, p);
    return 2 * (int64_t)unknown > said->segments[p - 1].area;
}

/* Returns the matching segment, 0 if there is none. covered: the largest IoU. */
static int match_of(const struct overlap *v, const struct pm_segment_map *said, int g,
                    double *covered)
{
    int match = 0;

    *covered = 0;
    for (int p = 1; p < v->said; p++) {
        double iou;

        if (said->segments[p - 1].label != v->truth[g].label || shared(v, g, p) == 0)
            continue;
        iou = overlap_of(v, said, g, p);
        *covered = iou > *covered ? iou : *covered;
        match = iou > 0.5 ? p : match;
    }
    return match;
}

void pm_panoptic_metrics_add_term(struct pm_panoptic_metrics *m,
                                  const struct pm_panoptic_term *term)
{
    struct pm_panoptic_class *of = &m->of[term->label];

    PM_GROW(m->term, m->term_count, m->term_capacity);
    m->term[m->term_count++] = *term;
    of->area += term->area;
    of->covered += term->area * term->covered;
    of->matched += term->matched;
    of->missed += !term->matched;
    of->iou += term->matched ? term->covered : 0;
}

static void add_quality(struct pm_panoptic_metrics *m, const struct overlap *v,
                        const struct pm_segment_map *said)
{
    const double size = m->o.normalize_by_image_size ? (double)said->height * said->width : 1;
    bool *matched = pm_calloc((size_t)v->said, sizeof *matched);

    for (int g = 1; g < v->truths; g++) {
        double covered;
        const int p = match_of(v, said, g, &covered);

        if (v->truth[g].crowd)
            continue;
        pm_panoptic_metrics_add_term(m, &(struct pm_panoptic_term){ .label = v->truth[g].label,
                                                                    .matched = p > 0,
                                                                    .area = v->truth[g].area / size,
                                                                    .covered = covered });
        matched[p] = true;
    }
    for (int p = 1; p < v->said; p++)
        if (!matched[p] && !is_excused(v, said, p))
            m->of[said->segments[p - 1].label].wrong++;
    pm_free(matched);
}

/* ---- average precision: Cityscapes' ------------------------------------------------------ */

static double plain_overlap(const struct overlap *v, const struct pm_segment_map *said, int g,
                            int p)
{
    const int both = shared(v, g, p);

    return (double)both / (double)(v->truth[g].area + said->segments[p - 1].area - both);
}

static bool counts(const struct pm_panoptic_metrics *m, const struct true_segment *g)
{
    return m->of[g->label].thing && !g->crowd && g->area >= m->o.least_area;
}

static void judge(struct pm_panoptic_verdicts *w, double score, bool right)
{
    PM_GROW(w->list, w->count, w->capacity);
    w->list[w->count++] = (struct pm_panoptic_judged){ score, right };
}

static double threshold_of(int t)
{
    return 0.5 + 0.05 * t;
}

/* The prediction with the highest score on a true instance is right, the others are wrong. */
static void judge_hits(struct pm_panoptic_metrics *m, const struct overlap *v,
                       const struct pm_segment_map *said, int g, int t, bool *used)
{
    struct pm_panoptic_verdicts *w = &m->of[v->truth[g].label].at[t];
    bool found = false;
    double surest = 0;

    for (int p = 1; p < v->said; p++) {
        const struct pm_segment *s = &said->segments[p - 1];

        if (used[p] || s->label != v->truth[g].label ||
            !(plain_overlap(v, said, g, p) > threshold_of(t)))
            continue;
        used[p] = true;
        if (found)
            judge(w, s->score < surest ? s->score : surest, false);
        surest = found && surest > s->score ? surest : s->score;
        found = true;
    }
    if (found)
        judge(w, surest, true);
    else
        w->missed++;
}

static bool overlaps_any(const struct pm_panoptic_metrics *m, const struct overlap *v,
                         const struct pm_segment_map *said, int p, int t)
{
    for (int g = 1; g < v->truths; g++)
        if (v->truth[g].label == said->segments[p - 1].label && counts(m, &v->truth[g]) &&
            plain_overlap(v, said, g, p) > threshold_of(t))
            return true;
    return false;
}

static void judge_rest(struct pm_panoptic_metrics *m, const struct overlap *v,
                       const struct pm_segment_map *said, int p, int t)
{
    const struct pm_segment *s = &said->segments[p - 1];
    int unknown = shared(v, 0, p);

    if (overlaps_any(m, v, said, p, t))
        return;
    for (int g = 1; g < v->truths; g++)
        if (v->truth[g].label == s->label && !counts(m, &v->truth[g]))
            unknown += shared(v, g, p);
    if ((double)unknown / s->area <= threshold_of(t))
        judge(&m->of[s->label].at[t], s->score, false);
}

static void add_precision(struct pm_panoptic_metrics *m, const struct overlap *v,
                          const struct pm_segment_map *said)
{
    bool *used = pm_malloc((size_t)v->said * sizeof *used);

    for (int t = 0; t < THRESHOLDS; t++) {
        memset(used, 0, (size_t)v->said * sizeof *used);
        for (int g = 1; g < v->truths; g++)
            if (counts(m, &v->truth[g])) {
                judge_hits(m, v, said, g, t, used);
                m->of[v->truth[g].label].is = true;
            }
        for (int p = 1; p < v->said; p++)
            if (said->segments[p - 1].thing) {
                judge_rest(m, v, said, p, t);
                m->of[said->segments[p - 1].label].said = true;
            }
    }
    pm_free(used);
}

/* ---- average precision: COCO's ----------------------------------------------------------- */

/* Instances of one class; the arrays have room for those of any class. */
struct instances {
    struct pm_coco_true *truth;
    struct pm_coco_said *said;
    int *true_at, *said_at; /* row and column of each instance in the overlap */
    double *overlap;
};

static void add_coco_class(struct pm_panoptic_metrics *m, const struct overlap *v,
                           const struct pm_segment_map *said, int label, struct instances *s)
{
    struct pm_coco_picture p = { .truth = s->truth, .said = s->said, .overlap = s->overlap,
                                 .order = m->pictures };
    double *to = s->overlap;

    for (int g = 1; g < v->truths; g++)
        if (v->truth[g].label == label) {
            s->truth[p.truths] = (struct pm_coco_true){ v->truth[g].area, v->truth[g].crowd };
            s->true_at[p.truths++] = g;
        }
    for (int k = 1; k < v->said; k++)
        if (said->segments[k - 1].label == label) {
            s->said[p.found] = (struct pm_coco_said){ said->segments[k - 1].area,
                                                      said->segments[k - 1].score };
            s->said_at[p.found++] = k;
        }
    for (int d = 0; d < p.found; d++)
        for (int g = 0; g < p.truths; g++)
            *to++ = s->truth[g].crowd ? shared(v, s->true_at[g], s->said_at[d]) / s->said[d].area
                                      : plain_overlap(v, said, s->true_at[g], s->said_at[d]);
    pm_coco_metrics_add(m->coco, label, &p);
}

static void add_coco(struct pm_panoptic_metrics *m, const struct overlap *v,
                     const struct pm_segment_map *said)
{
    const size_t truths = (size_t)v->truths, found = (size_t)v->said;
    struct pm_arena *a = pm_arena_create();
    struct instances s = {
        pm_arena_alloc(a, truths * sizeof *s.truth), pm_arena_alloc(a, found * sizeof *s.said),
        pm_arena_alloc(a, truths * sizeof *s.true_at), pm_arena_alloc(a, found * sizeof *s.said_at),
        pm_arena_alloc(a, truths * found * sizeof *s.overlap),
    };

    for (int i = 0; i < m->o.things.count; i++)
        add_coco_class(m, v, said, m->o.things.v[i], &s);
    m->pictures++;
    pm_arena_destroy(&a);
}

void pm_panoptic_metrics_add(struct pm_panoptic_metrics *m, const int32_t *truth,
                             const struct pm_segment_map *said)
{
    struct overlap v;

    find_overlap(m, truth, said, &v);
    add_quality(m, &v, said);
    if (m->coco)
        add_coco(m, &v, said);
    else
        add_precision(m, &v, said);
    pm_free(v.truth);
    pm_free(v.pixels);
}

/* ---- reporting --------------------------------------------------------------------------- */

struct pm_panoptic_row pm_panoptic_metrics_class(const struct pm_panoptic_metrics *m, int label)
{
    const struct pm_panoptic_class *of = &m->of[label];
    struct pm_panoptic_row r = { NAN, NAN, NAN, NAN, of->matched, of->wrong, of->missed, 0 };
    const double matched = (double)of->matched;

    if (of->area > 0)
        r.pc = of->covered / of->area;
    if (of->matched + of->wrong + of->missed == 0)
        return r;
    r.sq = of->matched ? of->iou / matched : 0;
    r.rq = matched / (matched + 0.5 * (double)of->wrong + 0.5 * (double)of->missed);
    r.pq = r.sq * r.rq;
    r.classes = 1;
    return r;
}

struct pm_panoptic_row pm_panoptic_metrics_row(const struct pm_panoptic_metrics *m,
                                               enum pm_panoptic_of of)
{
    struct pm_panoptic_row sum = { 0 };
    int covered = 0;

    for (int c = 0; c < m->o.classes; c++) {
        const struct pm_panoptic_row r = pm_panoptic_metrics_class(m, c);

        if (of != PM_PANOPTIC_ALL && m->of[c].thing != (of == PM_PANOPTIC_THINGS))
            continue;
        if (!isnan(r.pc))
            covered++, sum.pc += r.pc;
        sum.matched += r.matched, sum.wrong += r.wrong, sum.missed += r.missed;
        if (r.classes)
            sum.classes++, sum.pq += r.pq, sum.sq += r.sq, sum.rq += r.rq;
    }
    sum.pq = sum.classes ? sum.pq / sum.classes : NAN;
    sum.sq = sum.classes ? sum.sq / sum.classes : NAN;
    sum.rq = sum.classes ? sum.rq / sum.classes : NAN;
    sum.pc = covered ? sum.pc / covered : NAN;
    return sum;
}

static int by_score(const void *a, const void *b)
{
    const struct pm_panoptic_judged *x = a, *y = b;

    return (x->score > y->score) - (x->score < y->score);
}

/* Integrates precision over recall. For each k at which the score changes, the k instances with the
 * highest scores give a point (recall, precision). The point of all instances comes first, the
 * artificial (0, 1) last. A point's step reaches halfway to its neighbours; the first one's ends at
 * the point itself on its other side. */
static double area_of(const struct pm_panoptic_verdicts *w)
{
    struct pm_panoptic_judged *list = pm_malloc((w->count + 1) * sizeof *list);
    double area = 0, before = 0, recall = 0, precision = 0, right = 0;
    bool begun = false;

    if (w->count)
        memcpy(list, w->list, w->count * sizeof *list);
    qsort(list, w->count, sizeof *list, by_score);
    for (size_t i = 0; i < w->count; i++)
        right += list[i].right;
    const double all = right + (double)w->missed;
    for (size_t i = 0; i <= w->count; i++) {
        const bool end = i == w->count;

        if (end || i == 0 || list[i].score != list[i - 1].score) {
            const double next = end ? 0 : right / all;

            if (begun)
                area += precision * 0.5 * (before - next);
            before = begun ? recall : next;
            recall = next;
            precision = end ? 1 : right / (double)(w->count - i);
            begun = true;
        }
        right -= !end && list[i].right;
    }
    area += precision * 0.5 * before; /* the artificial point's step */
    pm_free(list);
    return area;
}

static double precision_at(const struct pm_panoptic_class *of, int t)
{
    if (!of->is)
        return NAN;
    return of->said && of->at[t].count ? area_of(&of->at[t]) : 0;
}

struct pm_average_precision pm_panoptic_metrics_ap(const struct pm_panoptic_metrics *m, int label)
{
    struct pm_average_precision sum = { 0 };
    int classes = 0;

    for (int c = 0; c < m->o.classes; c++) {
        double ap = 0;

        if (!m->of[c].thing || !m->of[c].is || (label >= 0 && c != label))
            continue;
        for (int t = 0; t < THRESHOLDS; t++)
            ap += precision_at(&m->of[c], t);
        sum.ap += ap / THRESHOLDS;
        sum.ap50 += precision_at(&m->of[c], 0);
        classes++;
    }
    return classes ? (struct pm_average_precision){ sum.ap / classes, sum.ap50 / classes }
                   : (struct pm_average_precision){ NAN, NAN };
}

const struct pm_coco_metrics *pm_panoptic_metrics_coco(const struct pm_panoptic_metrics *m)
{
    return m->coco;
}
