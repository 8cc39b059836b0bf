#include "anchor_search.h"

#include <math.h>
#include <string.h>

/* ---- the sample --------------------------------------------------------------------------- */

void pm_anchor_sample_add(struct pm_anchor_sample *s, const struct pm_truths *t)
{
    struct pm_sampled_picture p = { 0, pm_malloc(4 * (size_t)t->count * sizeof(float)) };

    for (int i = 0; i < t->count; i++)
        if (!t->weights || t->weights[i] > 0)
            memcpy(p.boxes + 4 * (size_t)p.count++, t->boxes + 4 * (size_t)i, 4 * sizeof(float));
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 32;
        s->picture = pm_realloc(s->picture, s->capacity * sizeof *s->picture);
    }
    s->picture[s->count++] = p;
}

void pm_anchor_sample_free(struct pm_anchor_sample *s)
{
    for (size_t i = 0; i < s->count; i++)
        pm_free(s->picture[i].boxes);
    pm_free(s->picture);
    *s = (struct pm_anchor_sample) { 0 };
}

/* ---- candidates --------------------------------------------------------------------------- */

enum { MOST_RATIOS = PM_FIT_RATIOS + 1, MOST_SIZES = 2 * MOST_RATIOS + 1 };

struct candidate {
    double low, high;   /* ssd: min_scale and max_scale; multiscale: anchor_scale is low */
    int ratios;
    double ratio[MOST_RATIOS];
};

struct sizes { int count; double size[MOST_SIZES][2]; };

/* A size in pixels. */
static void add_size(struct sizes *s, const struct pm_anchor_maps *m, double side, double ratio)
{
    s->size[s->count][0] = side / sqrt(ratio) / m->height;
    s->size[s->count++][1] = side * sqrt(ratio) / m->width;
}

static double scale_of(const struct pm_anchor_maps *m, const struct candidate *c, int level)
{
    const int levels = m->levels.count;

    return level == levels ? 1
         : levels == 1     ? c->low
                           : c->low + (c->high - c->low) * level / (levels - 1);
}

/* The anchors of a cell, as ssd_anchors and multiscale_anchors make them by default. */
static void sizes_of(const struct pm_anchor_maps *m, const struct candidate *c, int level,
                     struct sizes *s)
{
    const double side = m->height < m->width ? m->height : m->width;
    const double scale = scale_of(m, c, level), next = scale_of(m, c, level + 1);

    s->count = 0;
    if (m->multiscale) {
        for (int i = 0; i < c->ratios; i++)
            for (int k = 0; k < 2; k++)
                add_size(s, m, c->low * m->levels.level[level].stride[0] * m->height
                                   * pow(2, k / 2.0), c->ratio[i]);
        return;
    }
    if (level == 0) {
        add_size(s, m, 0.1 * side, 1);
        add_size(s, m, scale * side, 2);
        add_size(s, m, scale * side, 0.5);
        return;
    }
    for (int i = 0; i < c->ratios; i++)
        add_size(s, m, scale * side, c->ratio[i]);
    add_size(s, m, sqrt(scale * next) * side, 1);
}

static float *add_level(const struct pm_anchor_level *l, const struct sizes *s, float *out)
{
    for (int y = 0; y < l->grid[0]; y++)
        for (int x = 0; x < l->grid[1]; x++)
            for (int i = 0; i < s->count; i++, out += 4) {
                double cy = l->offset[0] + y * l->stride[0], cx = l->offset[1] + x * l->stride[1];

                out[0] = (float)(cy - s->size[i][0] / 2);
                out[1] = (float)(cx - s->size[i][1] / 2);
                out[2] = (float)(cy + s->size[i][0] / 2);
                out[3] = (float)(cx + s->size[i][1] / 2);
            }
    return out;
}

static struct pm_anchor_index *make(const struct pm_anchor_maps *m, const struct candidate *c)
{
    struct pm_anchor_index *x;
    struct sizes s;
    size_t cells = 0;
    float *boxes, *end;

    for (int k = 0; k < m->levels.count; k++)
        cells += (size_t)m->levels.level[k].grid[0] * (size_t)m->levels.level[k].grid[1];
    end = boxes = pm_malloc(cells * MOST_SIZES * 4 * sizeof *boxes);
    for (int k = 0; k < m->levels.count; k++) {
        sizes_of(m, c, k, &s);
        end = add_level(&m->levels.level[k], &s, end);
    }
    x = pm_anchor_index_create(boxes, (int)((end - boxes) / 4));
    pm_free(boxes);
    return x;
}

/* ---- trying ------------------------------------------------------------------------------- */

struct tried { double matched, similarity; }; /* share and mean of the boxes */

static struct tried try(const struct pm_matcher *m, const struct pm_anchor_index *x,
                        const struct pm_anchor_maps *maps, const struct pm_anchor_sample *sample)
{
    struct pm_anchor_fit *f = pm_anchor_fit_create(m, x, 1, maps->height, maps->width);
    struct pm_fit_count c;
    int most = 1, *zeros;

    for (size_t i = 0; i < sample->count; i++)
        most = sample->picture[i].count > most ? sample->picture[i].count : most;
    zeros = pm_calloc((size_t)most, sizeof *zeros);
    for (size_t i = 0; i < sample->count; i++)
        pm_anchor_fit_add(f, &(struct pm_truths){ sample->picture[i].count,
                                                  sample->picture[i].boxes, NULL, NULL }, zeros);
    c = pm_anchor_fit_class(f, -1);
    pm_anchor_fit_destroy(&f);
    pm_free(zeros);
    return c.boxes ? (struct tried) { (double)c.fate[PM_FIT_MATCHED] / (double)c.boxes,
                                      c.similarity / (double)c.boxes }
                   : (struct tried) { 0 };
}

static void print(const struct pm_anchor_maps *m, const struct candidate *c, struct pm_str *text)
{
    if (m->multiscale)
        pm_str_add(text, "  \"anchor_scale\": %g, ", c->low);
    else
        pm_str_add(text, "  \"min_scale\": %g, \"max_scale\": %g, ", c->low, c->high);
    pm_str_add(text, "\"aspect_ratios\": [");
    for (int i = 0; i < c->ratios; i++)
        pm_str_add(text, "%s%.4g", i ? ", " : "", c->ratio[i]);
    pm_str_add(text, "]\n");
}

/* The usual ratios, or those that the boxes need beside 1. */
static void set_ratios(struct candidate *c, const struct pm_fit_needs *needs, bool usual)
{
    static const double list[] = { 1, 2, 0.5 };

    c->ratios = usual ? (int)PM_COUNT(list) : 1;
    for (int i = 0; i < c->ratios; i++)
        c->ratio[i] = list[i];
    for (int i = 0; !usual && i < needs->ratio_count; i++)
        if (fabs(log2(needs->ratios[i])) > 0.2)
            c->ratio[c->ratios++] = round(needs->ratios[i] * 100) / 100;
}

struct search {
    struct tried best;
    struct candidate of;
    bool found;
};

static void consider(struct search *s, const struct pm_matcher *m,
                     const struct pm_anchor_maps *maps, const struct pm_anchor_sample *sample,
                     const struct candidate *c)
{
    struct pm_anchor_index *x = make(maps, c);
    struct tried t = try(m, x, maps, sample);

    pm_anchor_index_destroy(&x);
    if (t.matched > s->best.matched ||
        (t.matched == s->best.matched && t.similarity > s->best.similarity))
        *s = (struct search) { t, *c, true };
}

void pm_anchor_search(const struct pm_matcher *m, const struct pm_anchor_index *present,
                      const struct pm_anchor_maps *maps, const struct pm_anchor_sample *sample,
                      const struct pm_fit_needs *needs, struct pm_str *text)
{
    static const double lows[] = { 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4 };
    static const double highs[] = { 0.5, 0.65, 0.8, 0.95 };
    static const double scales[] = { 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8 };
    const struct tried now = try(m, present, maps, sample);
    struct search s = { .best = { now.matched + 0.01, 1 } };

    if (sample->count == 0 || needs->ratio_count == 0)
        return;
    for (int usual = 1; usual >= 0; usual--) {
        struct candidate c = { 0 };

        set_ratios(&c, needs, usual);
        for (size_t i = 0; maps->multiscale && i < PM_COUNT(scales); i++) {
            c.low = scales[i];
            consider(&s, m, maps, sample, &c);
        }
        for (size_t i = 0; !maps->multiscale && i < PM_COUNT(lows) * PM_COUNT(highs); i++) {
            c.low = lows[i / PM_COUNT(highs)], c.high = highs[i % PM_COUNT(highs)];
            consider(&s, m, maps, sample, &c);
        }
    }
    if (s.found) {
        pm_str_add(text, "Of %zu pictures the present anchors match %.1f %% of the boxes, these "
                         "%s anchors %.1f %%:\n", sample->count, 100 * now.matched,
                   maps->multiscale ? "multiscale" : "ssd", 100 * s.best.matched);
        print(maps, &s.of, text);
    } else {
        pm_str_add(text, "Of %zu pictures the present anchors match %.1f %% of the boxes; no other "
                         "scales of %s anchors match\nnoticeably more.\n", sample->count,
                   100 * now.matched, maps->multiscale ? "multiscale" : "ssd");
    }
}
