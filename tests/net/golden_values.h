/* Shared by the tests that compare a step of a net with a golden file: the golden's random numbers,
 * and the comparison. A golden holds a tensor's norm and its products with 16 random vectors v of
 * +-1. For a difference d between the two programs, the mean of (v d)^2 is |d|^2, so the root of
 * the mean over 16 vectors estimates |d| to about 18 %. |d| may be 10 times the error of the
 * original's own float32 run, and at most 1e-3 of the norm. */
#ifndef GOLDEN_VALUES_H
#define GOLDEN_VALUES_H

#include "../base/unit.h"

#include <pumice/plan.h>
#include <pumice/rng.h>

#include <cjson/cJSON.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VECTORS = 16 };
/* The error that rounding alone may cause in a tensor that the original happens to compute
 * almost exactly: sums of up to 1e5 values in another order, and the exponential, whose error in
 * Vulkan may be 3 + 2 |x| units in the last place (1.2e-5 at logits 100 apart). */
#define FLOOR 2e-5
#define CEILING 1e-3

struct golden {
    char *case_name;
    cJSON *root, *tensors, *moves;
    const cJSON *shifts;  /* or NULL: values instead of shift, by prefixes of variables' names */
    const char *net_name;
    int batch, height, width, channels, classes;
    int ignore_label; /* 0: one label for each picture; otherwise one for each pixel, and this
                       * one is ignored */
    uint64_t seed;
    double shift, label_smoothing;
    int steps;            /* the last one is compared; the others use momentum */
    double learning_rate;
    bool frozen;          /* batch norm uses the moving averages, which do not change */
    const cJSON *regularized; /* of a detector: names of the variables with weight decay; or NULL */
    /* Set while comparing. */
    int compared, wrong;
    double worst; /* the largest error relative to its bound */
    const char *worst_name;
};

static inline bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static inline double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    if (!cJSON_IsNumber(v))
        fail_msg("the golden has no number %s", key);
    return v->valuedouble;
}

/* Reads tests/golden/NAME.json; free with cJSON_Delete. */
static inline cJSON *read_net_golden(const char *name)
{
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024], *text;
    size_t size;

    snprintf(path, sizeof path, "%s/tests/golden/%s.json", source ? source : ".", name);
    if (pm_file_read(path, &text, &size))
        fail_msg("%s", pm_error_text());
    cJSON *o = cJSON_Parse(text);
    pm_free(text);
    if (!o)
        fail_msg("%s is not JSON", path);
    return o;
}

/* ---- the golden's random numbers: as in tests/golden/tensorflow_nets.py ---------------------- */

static inline struct pm_rng stream(const struct golden *g, const char *name)
{
    char text[512];

    snprintf(text, sizeof text, "golden/%s", name);
    return pm_rng_make(g->seed, pm_hash(text), 0, 0);
}

/* True for the MobileNets: their activations are bounded, most of them by 6. */
static inline bool is_six(const struct golden *g)
{
    return strstr(g->net_name, "mobilenet") != NULL;
}

static inline double gamma_of(double uniform, bool six)
{
    return six ? 0.5 + 0.5 * uniform : 0.5 + uniform;
}

/* Moves offsets and biases away from kinks by the list of the golden: channel, thousandths, ... */
static inline void move(const struct golden *g, const char *name, size_t count, float *values,
                        double (*value_of)(void *ctx, size_t c), void *ctx)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(g->moves, name);

    m = m ? m->child : NULL;
    for (size_t c = 0; c < count; c++) {
        double value = value_of(ctx, c);
        if (m && (size_t)m->valueint == c) {
            value += 1e-3 * m->next->valueint;
            m = m->next->next;
        }
        values[c] = (float)value;
    }
    assert_null(m);
}

struct offsets {
    struct pm_rng own, scale;
    double shift;
    bool six;
};

/* An offset to one side of the kink. */
static inline double beta_of(void *ctx, size_t c)
{
    struct offsets *o = ctx;
    const double t = o->shift * (0.9 + 0.2 * pm_rng_uniform(&o->own));
    const bool blocked = o->six ? c % 5 == 4 : c % 3 == 2;
    const double value = (blocked ? -t : t) * gamma_of(pm_rng_uniform(&o->scale), o->six);

    return o->six && c % 5 == 3 ? 6 + value : value;
}

static inline double bias_of(void *ctx, size_t c)
{
    (void)c;
    return 0.2 * pm_rng_uniform(ctx) - 0.1;
}

static inline double shift_of(const struct golden *g, const char *name)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, g->shifts)
        if (strncmp(name, s->string, strlen(s->string)) == 0)
            return s->valuedouble;
    return g->shift;
}

static inline void beta(const struct golden *g, const char *name, size_t count, float *out)
{
    char scale[256];

    snprintf(scale, sizeof scale, "%.*s/gamma", (int)(strlen(name) - strlen("/beta")), name);
    struct offsets o = { stream(g, name), stream(g, scale), shift_of(g, name), is_six(g) };
    move(g, name, count, out, beta_of, &o);
}

static inline void initial(const struct golden *g, const struct pm_variable *v, float *out)
{
    const size_t count = pm_shape_count(v->shape);
    struct pm_rng r = stream(g, v->name);

    pm_variable_initial(v, g->seed, out);
    if (ends_with(v->name, "/gamma"))
        for (size_t i = 0; i < count; i++)
            out[i] = (float)gamma_of(pm_rng_uniform(&r), is_six(g));
    else if (ends_with(v->name, "/beta"))
        beta(g, v->name, count, out);
    else if (ends_with(v->name, "/biases"))
        move(g, v->name, count, out, bias_of, &r);
    else if (g->frozen && !v->trainable)
        for (size_t i = 0; i < count; i++)
            out[i] = (float)(ends_with(v->name, "_mean") ? 0.4 * pm_rng_uniform(&r) - 0.2
                                                         : 0.3 * (0.5 + pm_rng_uniform(&r)));
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* Products with the vectors of +-1. A block holds the bits of eight elements, two in each word,
 * low half first. */
static inline void products(const struct golden *g, const char *name, const float *t, size_t count,
                            double out[VECTORS])
{
    struct pm_rng r = stream(g, name);
    uint32_t word = 0;

    memset(out, 0, VECTORS * sizeof *out);
    for (size_t i = 0; i < count; i++) {
        word = i % 2 ? word >> 16 : pm_rng_u32(&r);
        for (int k = 0; k < VECTORS; k++)
            out[k] += word >> k & 1 ? t[i] : -t[i];
    }
}

/* The error that a tensor may have, relative to its norm. error: of the original in float32. */
static inline double allowed(double error)
{
    return fmin(fmax(10 * error, FLOOR), CEILING);
}

static inline void compare(struct golden *g, const char *name, const float *t, size_t count)
{
    const cJSON *row = cJSON_GetObjectItemCaseSensitive(g->tensors, name);
    double want[3 + VECTORS], have[VECTORS], sum = 0;
    int n = 0;

    if (!row)
        fail_msg("%s: the golden has no %s", g->case_name, name);
    for (const cJSON *v = row->child; v && n < 3 + VECTORS; v = v->next)
        want[n++] = v->valuedouble;
    assert_int_equal(n, 3 + VECTORS);
    assert_int_equal(want[0], count);
    products(g, name, t, count, have);
    for (int k = 0; k < VECTORS; k++)
        sum += pow(have[k] - want[3 + k], 2);
    const double error = sqrt(sum / VECTORS) / want[1];
    const double bound = allowed(want[2]);
    if (!(error <= bound) && ++g->wrong <= 20)
        print_error("%s: %s is off by %.2g of its norm, %.2g is allowed\n", g->case_name, name,
                    error, bound);
    if (!(error / bound <= g->worst)) {
        g->worst = error / bound;
        g->worst_name = row->string;
    }
    g->compared++;
}

/* ---- the device ----------------------------------------------------------------------------- */

/* Opens the device of this name. Returns 0 or an exit code; 77 (skipped) when this machine lacks
 * it. */
static inline int open_golden_device(const char *name, struct pm_device **out)
{
    const struct pm_device_options options = { 0 };
    struct pm_device_info *list;
    size_t count, index;
    int code = 0;

    if (pm_device_list(&list, &count))
        return 1;
    if (pm_device_find(list, count, name, "golden", &index)) {
        fprintf(stderr, "skipped: %s\n", pm_error_text());
        code = 77;
    } else if (pm_device_open(&list[index], &options, out)) {
        fprintf(stderr, "%s\n", pm_error_text());
        code = 1;
    }
    pm_free(list);
    return code;
}

#endif
