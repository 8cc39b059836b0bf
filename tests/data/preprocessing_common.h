/* What the preprocessing tests share: a preprocessing with its options, run on one picture. */
#ifndef PUMICE_TESTS_PREPROCESSING_COMMON_H
#define PUMICE_TESTS_PREPROCESSING_COMMON_H

#include <math.h>

#include "data_common.h"
#include "data/preprocess.h"

/* Roundings a value passes through at most, and float32's unit of rounding. */
enum { OPS = 64 };
static const double ulp = 1.0 / (1 << 24);

/* A preprocessing and its options; the arena, which owns cfg, is the caller's to destroy. */
struct config {
    const struct pm_preprocessing *row;
    struct pm_arena *arena;
    void *cfg;
};

static inline struct config config(const char *name, const char *text)
{
    struct config c = { pm_preprocessing_find(name), pm_arena_create(), NULL };
    assert_non_null(c.row);
    c.cfg = pm_arena_alloc(c.arena, c.row->cfg_size + 1);
    if (c.row->opts)
        assert_int_equal(pm_opts_parse_text(c.row->opts, text, c.cfg, c.arena, name), PM_OK);
    return c;
}

/* The result for one picture, which starts as NaN; freed with pm_free. */
static inline float *run(const struct config *c, const struct pm_image8 *im, bool train,
                         const struct pm_draws *d, int height, int width)
{
    const size_t n = (size_t)height * (size_t)width * (size_t)im->channels;
    float *out = pm_malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = NAN;
    assert_int_equal(c->row->apply(c->cfg, im, train, d, height, width, out, "picture"), PM_OK);
    return out;
}

#endif
