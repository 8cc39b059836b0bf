#include "anchor_fit.h"

#include <cjson/cJSON.h>

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const char *const fates[PM_FIT_FATES] = { "matched", "forced", "lost", "unmatched" };

static const char *const meanings[PM_FIT_FATES] = {
    [PM_FIT_FORCED] = "no anchor reaches matched_threshold, but the box has its most similar one",
    [PM_FIT_LOST] = "other boxes, more similar or first of equals, have all its anchors",
    [PM_FIT_UNMATCHED] = "no anchor is similar enough, so the box is not learnt",
};

struct pm_anchor_fit {
    const struct pm_matcher *m;          /* borrowed */
    const struct pm_anchor_index *index; /* borrowed */
    int classes, height, width;
    int64_t pictures;
    struct pm_fit_count all, *of_class, of_size[PM_FIT_SIZES];
    float *side, *ratio;                 /* of each counted box that has an area; owned */
    size_t count, capacity;
    bool sorted;
    int32_t *matches;                    /* of one picture, as are the next; owned */
    struct pm_truth_best *best;
    int *anchors;                        /* matched with each box */
    int most;                            /* boxes for which there is memory */
};

struct pm_anchor_fit *pm_anchor_fit_create(const struct pm_matcher *m,
                                           const struct pm_anchor_index *index, int classes,
                                           int height, int width)
{
    struct pm_anchor_fit *f = pm_calloc(1, sizeof *f);

    assert(classes > 0 && height > 0 && width > 0);
    f->m = m, f->index = index, f->classes = classes, f->height = height, f->width = width;
    f->of_class = pm_calloc((size_t)classes, sizeof *f->of_class);
    f->matches = pm_malloc((size_t)pm_anchor_index_count(index) * sizeof *f->matches);
    return f;
}

void pm_anchor_fit_destroy(struct pm_anchor_fit **fit)
{
    struct pm_anchor_fit *f = *fit;

    if (!f)
        return;
    pm_free(f->of_class);
    pm_free(f->side);
    pm_free(f->ratio);
    pm_free(f->matches);
    pm_free(f->best);
    pm_free(f->anchors);
    pm_free(f);
    *fit = NULL;
}

/* ---- counting ---------------------------------------------------------------------------- */

static enum pm_fit_fate fate_of(const struct pm_anchor_fit *f, int anchors,
                                const struct pm_truth_best *best)
{
    const struct pm_matcher *m = f->m;
    const bool near = m->type == PM_MATCHER_BIPARTITE || m->ignore_thresholds
                   || best->similarity >= m->matched_threshold;
    const bool wants = near || m->force_match_for_each_row;

    if (anchors)
        return near ? PM_FIT_MATCHED : PM_FIT_FORCED;
    return wants && best->anchor >= 0 ? PM_FIT_LOST : PM_FIT_UNMATCHED;
}

static void count_box(struct pm_fit_count *c, enum pm_fit_fate fate, int anchors, float similarity)
{
    c->boxes++;
    c->fate[fate]++;
    c->anchors += anchors;
    c->similarity += similarity;
}

/* The group of a side in pixels. */
static int size_group(double side)
{
    int g = 0;

    while (g < PM_FIT_SIZES - 1 && side >= 8 << g)
        g++;
    return g;
}

static void keep(struct pm_anchor_fit *f, double side, double ratio)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : 1024;
        f->side = pm_realloc(f->side, f->capacity * sizeof *f->side);
        f->ratio = pm_realloc(f->ratio, f->capacity * sizeof *f->ratio);
    }
    f->side[f->count] = (float)side;
    f->ratio[f->count++] = (float)ratio;
    f->sorted = false;
}

/* The sides of box r in pixels. */
static void sides_of(const struct pm_anchor_fit *f, const float *boxes, size_t r, double *h,
                     double *w)
{
    const int numbers = pm_anchor_index_numbers(f->index);
    const float *box = boxes + (size_t)numbers * r;

    if (numbers == 4) {
        *h = (double)(box[2] - box[0]) * f->height;
        *w = (double)(box[3] - box[1]) * f->width;
    } else { /* both sides have the unit of the height */
        *h = (double)box[2] * f->height;
        *w = (double)box[3] * f->height;
    }
}

void pm_anchor_fit_add(struct pm_anchor_fit *f, const struct pm_truths *t, const int *labels)
{
    f->pictures++;
    if (t->count > f->most) {
        f->most = t->count;
        f->best = pm_realloc(f->best, (size_t)f->most * sizeof *f->best);
        f->anchors = pm_realloc(f->anchors, (size_t)f->most * sizeof *f->anchors);
    }
    pm_match(f->m, f->index, t, f->matches, f->best);
    for (int r = 0; r < t->count; r++)
        f->anchors[r] = 0;
    for (int i = 0; i < pm_anchor_index_count(f->index); i++)
        if (f->matches[i] >= 0)
            f->anchors[f->matches[i]]++;
    for (int r = 0; r < t->count; r++) {
        double h, w;

        sides_of(f, t->boxes, (size_t)r, &h, &w);
        enum pm_fit_fate fate = fate_of(f, f->anchors[r], &f->best[r]);

        if (t->weights && t->weights[r] <= 0)
            continue;
        assert(labels[r] >= 0 && labels[r] < f->classes);
        count_box(&f->all, fate, f->anchors[r], f->best[r].similarity);
        count_box(&f->of_class[labels[r]], fate, f->anchors[r], f->best[r].similarity);
        count_box(&f->of_size[size_group(sqrt(h * w))], fate, f->anchors[r],
                  f->best[r].similarity);
        if (h > 0 && w > 0)
            keep(f, sqrt(h * w), w / h);
    }
}

struct pm_fit_count pm_anchor_fit_class(const struct pm_anchor_fit *f, int label)
{
    assert(label >= -1 && label < f->classes);
    return label < 0 ? f->all : f->of_class[label];
}

struct pm_fit_count pm_anchor_fit_size(const struct pm_anchor_fit *f, int group)
{
    assert(group >= 0 && group < PM_FIT_SIZES);
    return f->of_size[group];
}

/* ---- what the boxes need ----------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static double quantile(const float *v, size_t count, double share)
{
    return v[(size_t)(share * (double)(count - 1) + 0.5)];
}

struct pm_fit_needs pm_anchor_fit_needs(struct pm_anchor_fit *f)
{
    struct pm_fit_needs n = { 0 };
    double low, high;

    if (f->count == 0)
        return n;
    if (!f->sorted) {
        qsort(f->side, f->count, sizeof *f->side, by_value);
        qsort(f->ratio, f->count, sizeof *f->ratio, by_value);
        f->sorted = true;
    }
    n.side_low = quantile(f->side, f->count, 0.05);
    n.side_median = quantile(f->side, f->count, 0.5);
    n.side_high = quantile(f->side, f->count, 0.95);
    low = quantile(f->ratio, f->count, 0.05);
    high = quantile(f->ratio, f->count, 0.95);
    /* Each ratio serves an octave, a factor of sqrt(2) to both sides. */
    n.ratio_count = (int)fmin(fmax(ceil(log2(high / low)), 1), PM_FIT_RATIOS);
    for (int i = 0; i < n.ratio_count; i++)
        n.ratios[i] = low * pow(high / low, (i + 0.5) / n.ratio_count);
    return n;
}

/* ---- the report -------------------------------------------------------------------------- */

static void print_needs(struct pm_anchor_fit *f, struct pm_str *out)
{
    const struct pm_fit_needs n = pm_anchor_fit_needs(f);

    if (n.ratio_count == 0)
        return;
    pm_str_add(out, "90 %% of the boxes have sizes of %.3g to %.3g pixels of the %dx%d input, half "
                    "of all are\nbelow %.3g. Ratios of width to height that suit 90 %%:",
               n.side_low, n.side_high, f->height, f->width, n.side_median);
    for (int i = 0; i < n.ratio_count; i++)
        pm_str_add(out, "%s %.2g", i ? "," : "", n.ratios[i]);
    pm_str_add(out, "\n");
}

static void print_row(const struct pm_fit_count *c, struct pm_str *out)
{
    pm_str_add(out, " %8lld", (long long)c->boxes);
    for (int i = 0; i < PM_FIT_FATES; i++)
        pm_str_add(out, " %9lld", (long long)c->fate[i]);
    pm_str_add(out, " %9.1f %11.3f\n", (double)c->anchors / (double)c->boxes,
               c->similarity / (double)c->boxes);
}

static void group_name(int group, char text[32])
{
    if (group == 0)
        snprintf(text, 32, "below 8");
    else if (group == PM_FIT_SIZES - 1)
        snprintf(text, 32, "%d and more", 4 << group);
    else
        snprintf(text, 32, "%d to %d", 4 << group, 8 << group);
}

void pm_anchor_fit_print(struct pm_anchor_fit *f, const char *const *names, struct pm_str *out)
{
    char text[32];

    pm_str_add(out, "%d %s, %lld %s in %lld %s\n", pm_anchor_index_count(f->index),
               pm_plural(pm_anchor_index_count(f->index), "anchor", "anchors"),
               (long long)f->all.boxes, pm_plural((double)f->all.boxes, "box", "boxes"),
               (long long)f->pictures, pm_plural((double)f->pictures, "picture", "pictures"));
    if (f->all.boxes == 0)
        return;
    pm_str_add(out, "%-20s %8s %9s %9s %9s %9s %9s %11s\n", "", "boxes", fates[0], fates[1],
               fates[2], fates[3], "anchors", "best match");
    pm_str_name(out, "all", 20);
    print_row(&f->all, out);
    for (int g = 0; g < PM_FIT_SIZES; g++) {
        if (f->of_size[g].boxes == 0)
            continue;
        group_name(g, text);
        pm_str_add(out, "%-20.20s", text);
        print_row(&f->of_size[g], out);
    }
    for (int c = 0; c < f->classes; c++) {
        if (f->of_class[c].boxes == 0)
            continue;
        pm_str_name(out, names[c], 20);
        print_row(&f->of_class[c], out);
    }
    pm_str_add(out, "Sizes are square roots of areas in pixels, anchors are per box. best match: "
                    "mean similarity\nof a box's most similar anchor.\n");
    for (int i = PM_FIT_FORCED; i < PM_FIT_FATES; i++)
        if (f->all.fate[i])
            pm_str_add(out, "%s: %s.\n", fates[i], meanings[i]);
    print_needs(f, out);
}

static void add_count(const struct pm_fit_count *c, cJSON *object)
{
    cJSON_AddNumberToObject(object, "boxes", (double)c->boxes);
    for (int i = 0; i < PM_FIT_FATES; i++)
        cJSON_AddNumberToObject(object, fates[i], (double)c->fate[i]);
    cJSON_AddNumberToObject(object, "anchors", (double)c->anchors);
    if (c->boxes)
        cJSON_AddNumberToObject(object, "overlap", c->similarity / (double)c->boxes);
}

static cJSON *add_member(cJSON *list, const char *name)
{
    cJSON *member = cJSON_CreateObject();

    cJSON_AddStringToObject(member, "name", name);
    cJSON_AddItemToArray(list, member);
    return member;
}

void pm_anchor_fit_report(struct pm_anchor_fit *f, const char *const *names, cJSON *object)
{
    const struct pm_fit_needs n = pm_anchor_fit_needs(f);
    cJSON *list, *needs;
    char text[32];

    cJSON_AddNumberToObject(object, "pictures", (double)f->pictures);
    add_count(&f->all, object);
    list = cJSON_AddArrayToObject(object, "classes");
    for (int c = 0; c < f->classes; c++)
        add_count(&f->of_class[c], add_member(list, names[c]));
    list = cJSON_AddArrayToObject(object, "sizes");
    for (int g = 0; g < PM_FIT_SIZES; g++) {
        group_name(g, text);
        add_count(&f->of_size[g], add_member(list, text));
    }
    if (n.ratio_count == 0)
        return;
    needs = cJSON_AddObjectToObject(object, "needs");
    cJSON_AddNumberToObject(needs, "side_low", n.side_low);
    cJSON_AddNumberToObject(needs, "side_median", n.side_median);
    cJSON_AddNumberToObject(needs, "side_high", n.side_high);
    cJSON_AddItemToObject(needs, "aspect_ratios",
                          cJSON_CreateDoubleArray(n.ratios, n.ratio_count));
}
