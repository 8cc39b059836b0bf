/* Shared by the tests of preprocessings: runs a preprocessing with its options on one picture. */
#ifndef PUMICE_TESTS_PREPROCESSING_COMMON_H
#define PUMICE_TESTS_PREPROCESSING_COMMON_H

#include <cjson/cJSON.h>
#include <math.h>

#include "data_common.h"
#include "data/augment.h"
#include "data/render.h"
#include "placing.h"

/* The most roundings of a value, and float32's unit of rounding. */
enum { OPS = 64 };
static const double ulp = 1.0 / (1 << 24);

/* A preprocessing with its options. The arena owns cfg; the caller destroys it. */
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

/* The result for one picture; the output starts as NaN. Free with pm_free. */
static inline float *run_as(const struct config *c, const struct pm_image8 *im, bool train,
                            const struct pm_draws *d, int height, int width, int channels)
{
    const size_t n = (size_t)height * (size_t)width * (size_t)channels;
    float *out = pm_malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = NAN;
    assert_int_equal(
        place_picture(c->row, c->cfg, im, train, d, height, width, channels, out, "picture"),
        PM_OK);
    return out;
}

static inline float *run(const struct config *c, const struct pm_image8 *im, bool train,
                         const struct pm_draws *d, int height, int width)
{
    return run_as(c, im, train, d, height, width, im->channels);
}

/* Parses a file of tests/golden/; the caller deletes it. */
static inline cJSON *golden_file(const char *name)
{
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024], *text = NULL;

    snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", name);
    if (pm_file_read(path, &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    cJSON *all = cJSON_Parse(text);
    assert_non_null(all);
    pm_free(text);
    return all;
}

/* input.augment, parsed from a text. close_list frees it. */
struct list {
    struct pm_arena *arena;
    cJSON *json;
    const struct pm_augment *augment;
};

static inline struct list open_list(const char *text)
{
    struct list l = { pm_arena_create(), cJSON_Parse(text), NULL };

    assert_non_null(l.json);
    if (pm_augment_open(l.json, "x.json: input.augment", l.arena, &l.augment) < 0)
        fail_msg("%s", pm_error_text());
    return l;
}

static inline void close_list(struct list *l)
{
    cJSON_Delete(l->json);
    pm_arena_destroy(&l->arena);
}

/* Asserts that the list is refused, by its options or for a task with these members. */
static inline void refuse_list(const char *text, unsigned carries, const char *message)
{
    struct pm_arena *a = pm_arena_create();
    cJSON *json = cJSON_Parse(text);
    const struct pm_augment *out;
    int err = pm_augment_open(json, "x.json: input.augment", a, &out);

    if (err == PM_OK)
        err = pm_augment_check(out, carries, true, "x.json: input.augment");
    assert_fails(err, PM_ECONFIG, message);
    cJSON_Delete(json);
    pm_arena_destroy(&a);
}

#endif
