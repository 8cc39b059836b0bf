/* squared_error and absolute_error by their definition. */
#include "check.h"

static void error(struct ref *r, bool absolute)
{
    const struct ref_array *x = &r->in[0], *t = &r->in[1], *w = &r->in[2];
    const size_t per = r->inputs > 2 ? x->count / w->count : 1;
    double sum = 0, mag = 0, weights = 0, nonzero = 0;

    for (size_t i = 0; i < x->count; i++) {
        const double d = x->v[i] - t->v[i], weight = r->inputs > 2 ? w->v[i / per] : 1;
        const double e = weight * (absolute ? fabs(d) : d * d);

        sum += e;
        mag += fabs(weight) * (absolute ? 1 : 2 * fabs(d)) * (fabs(x->v[i]) + fabs(t->v[i]));
        weights += weight;
        nonzero += e != 0;
    }
    double divisor = ref_says(r, "normalize", "nonzero", "weights") ? nonzero : weights;

    if (ref_says(r, "normalize", "none", "weights"))
        divisor = CHECK_SHARE; /* no share is wanted */
    const double scale = divisor > 0 ? ref_number(r, "weight", 1) / divisor : 0;

    ref_output(r, (struct pm_shape){ 0 });
    r->y.v[0] = sum * scale;
    r->y.mag[0] = 2 * mag * scale;
}

static void squared_error(struct ref *r) { error(r, false); }
static void absolute_error(struct ref *r) { error(r, true); }

/* Target and weights get no gradient. */
#define ERRORS(layer)                                                                              \
    { layer, "3x4x5x1 3x4x5x1", .train = true, .no_gradient = 2 },                                 \
        { layer " weight=200", "2x7x5x2 2x7x5x2 2x7x5x2@0..2", .train = true, .no_gradient = 6 },  \
        { layer " weight=0.01", "2x7x5x2 2x7x5x2 2x7x5x1@0..2", .train = true, .no_gradient = 6 }, \
        { layer, "2x7x5x3 2x7x5x3 ~2x7x5@0..1", .train = true, .no_gradient = 6 },                 \
        { layer " normalize=nonzero", "~2x7x5x2 ~2x7x5x2 ~2x7x5@0..1", .train = true,              \
          .no_gradient = 7 },                                                                      \
        { layer " normalize=nonzero", "2x7x5x2 2x7x5x2 ~2x7x5@0..1", .train = true,                \
          .no_gradient = 6 },                                                                      \
        { layer " normalize=nonzero", "~40 ~40", .train = true, .no_gradient = 3 },                \
        { layer, "9x4 9x4 9@0..0", .train = true, .no_gradient = 6 },                              \
        { layer " normalize=none weight=0.5", "9x4 9x4 9@0..1", .train = true, .no_gradient = 6 }, \
        { layer " normalize=none", "9x4 9x4 9@0..0", .train = true, .no_gradient = 6 },            \
        { layer " normalize=none", "~700x5 ~700x5", .train = true, .no_gradient = 3 },             \
        { layer, "5000 5000 5000@0..1", .train = true, .no_gradient = 6 },                         \
        { layer, "8x257x257x2 8x257x257x2 8x257x257@0..1", .train = true, .no_gradient = 6,        \
          .large = true },                                                                         \
        { layer " normalize=nonzero", "8x257x257x1 8x257x257x1", .train = true, .no_gradient = 2,  \
          .large = true },                                                                         \
    {                                                                                              \
        0                                                                                          \
    }

static const struct check_case squared_cases[] = { ERRORS("squared_error") };
static const struct check_case absolute_cases[] = { ERRORS("absolute_error") };
const struct pm_layer_test pm_test_squared_error = { squared_cases, squared_error, .loss = true };
const struct pm_layer_test pm_test_absolute_error = { absolute_cases, absolute_error,
                                                      .loss = true };
