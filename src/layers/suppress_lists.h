/* suppress_lists: what the kernels of suppress_rows.c and suppress_rotated.c share. */
#ifndef PUMICE_SUPPRESS_LISTS_H
#define PUMICE_SUPPRESS_LISTS_H

#include "layers/candidates.h"
#include "layers/suppress_rotated.h"

/* ---- the C functions ------------------------------------------------------------------------- */

/* Returns the number of an image's candidates, 0..n. valid: of all images, or NULL for n. */
static inline int pm_suppress_valid(const int *valid, size_t image, int n)
{
    if (!valid)
        return n;
    return valid[image] < 0 ? 0 : valid[image] < n ? valid[image] : n;
}

/* Fills the heap with those of a list's first `count` boxes whose score is above the threshold.
 * Scores are p->classes apart. */
PM_INLINE void pm_suppress_candidates(const struct suppress_params *p, const float *scores,
                                      int count, struct pm_heap *h)
{
    const uint32_t limit = pm_score_key(p->score_threshold);

    h->count = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t key = pm_score_key(scores[(size_t)i * (size_t)p->classes]);

        pm_heap_add(h, key > limit ? key : 0, (size_t)i);
    }
    pm_heap_order(h);
}

/* Soft suppression: out[0..count-1] = a list's scores, NaN if not above the threshold. */
PM_INLINE void pm_suppress_scores(const struct suppress_params *p, const float *scores, int count,
                                  float *out)
{
    const uint32_t limit = pm_score_key(p->score_threshold);

    for (int i = 0; i < count; i++) {
        const float score = scores[(size_t)i * (size_t)p->classes];

        out[i] = pm_score_key(score) > limit ? score : NAN;
    }
}

/* Soft suppression: returns the first of the largest scores above the threshold, or -1. */
PM_INLINE int pm_suppress_top(const struct suppress_params *p, const float *score, int count)
{
    uint32_t best = pm_score_key(p->score_threshold);
    int at = -1;

    for (int i = 0; i < count; i++)
        if (pm_score_key(score[i]) > best)
            best = pm_score_key(score[i]), at = i;
    return at;
}

/* Ends a list of which `count` boxes are kept: index -1, score 0. */
static inline void pm_suppress_end(const struct suppress_params *p, int count, int *kept,
                                   float *kept_scores)
{
    for (; count < p->most; count++)
        kept[count] = -1, kept_scores[count] = 0;
}

/* Fills an image's outputs from number `count` on with zeros. buf: boxes of `numbers` floats,
 * scores, classes, the image's count, which is set, and anchors. */
static inline void pm_suppress_rest(const struct suppress_merge_params *p, size_t image, int count,
                                    size_t numbers, void *const buf[5])
{
    const size_t at = image * (size_t)p->outputs + (size_t)count;
    const size_t rest = (size_t)(p->outputs - count);

    memset((float *)buf[0] + numbers * at, 0, numbers * rest * sizeof(float));
    memset((float *)buf[1] + at, 0, rest * sizeof(float));
    memset((int *)buf[2] + at, 0, rest * sizeof(int));
    ((int *)buf[3])[image] = count;
    memset((int *)buf[4] + at, 0, rest * sizeof(int));
}

/* The C functions need no scratch. */
static inline size_t pm_suppress_no_scratch(const void *params, int buf)
{
    (void)params, (void)buf;
    return 0;
}

/* ---- shaders --------------------------------------------------------------------------------- */

enum { PM_SUPPRESS_LANES = 128 }; /* of lib/select.glsl and suppress_soft.comp */

/* One workgroup for each list or image. Returns whether there is such a level: only 0. */
static inline bool pm_suppress_groups(const char *shader, size_t groups, int level,
                                      struct pm_picks *out)
{
    if (level > 0)
        return false;
    out->d[0] = (struct pm_dispatch){ .shader = shader, .spec = { PM_SUPPRESS_LANES }, .specs = 1,
                                      .groups = { groups < 65535 ? (uint32_t)groups : 65535, 1,
                                                  1 } };
    out->count = 1;
    out->variant = shader;
    return true;
}

/* The shader of hard or of soft suppression. A soft one needs a number of scratch for each box. */
static inline bool pm_suppress_picks(const struct suppress_params *p, const char *hard,
                                     const char *soft, size_t lists, int level,
                                     struct pm_picks *out)
{
    if (!pm_suppress_groups(p->decay < 0 ? soft : hard, lists, level, out))
        return false;
    out->scratch[3] = p->decay < 0 ? lists * (size_t)p->n * sizeof(uint32_t) : 0;
    return true;
}

#endif
