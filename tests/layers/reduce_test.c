/* Reductions and functions of two inputs by their definitions. Places in the inputs are computed
 * from explicit indices. */
#include "check.h"

/* Computes the indices of element `at` of a row-major tensor. */
static void indices(struct pm_shape s, size_t at, int index[6])
{
    for (int i = s.rank - 1; i >= 0; i--) {
        index[i] = (int)(at % (size_t)s.dim[i]);
        at /= (size_t)s.dim[i];
    }
}

/* The element at these indices with broadcasting: axes of size 1 repeat, and the last axes are
 * aligned. */
static size_t element(struct pm_shape s, const int *index, int rank)
{
    size_t at = 0;

    for (int i = 0; i < s.rank; i++)
        at = at * (size_t)s.dim[i] + (size_t)(s.dim[i] == 1 ? 0 : index[rank - s.rank + i]);
    return at;
}

/* ---- reductions ------------------------------------------------------------------------ */

static struct pm_shape with_ones_shape(const struct ref *r, struct pm_shape *out)
{
    struct pm_shape with_ones = r->in[0].shape;
    double axes[6] = { 1, 2 };
    const int given = ref_numbers(r, "axes", axes, 6), count = given ? given : 2;

    for (int i = 0; i < count; i++)
        with_ones.dim[(int)axes[i] + (axes[i] < 0 ? with_ones.rank : 0)] = 1;
    *out = with_ones;
    if (ref_says(r, "keepdims", "false", "true")) {
        out->rank = 0;
        for (int i = 0; i < with_ones.rank; i++) {
            int gone = 0;

            for (int k = 0; k < count; k++)
                gone |= (int)axes[k] + (axes[k] < 0 ? with_ones.rank : 0) == i;
            if (!gone)
                out->dim[out->rank++] = with_ones.dim[i];
        }
    }
    return with_ones;
}

static void reduce(struct ref *r, char kind)
{
    const struct ref_array *x = &r->in[0];
    struct pm_shape y;
    const struct pm_shape with_ones = with_ones_shape(r, &y);
    int index[6];

    ref_output(r, y);
    const double factor = kind == 'm' ? (double)r->y.count / (double)x->count : 1;
    for (size_t i = 0; i < r->y.count && (kind == '<' || kind == '>'); i++)
        r->y.v[i] = kind == '<' ? INFINITY : -INFINITY;
    for (size_t i = 0; i < x->count; i++) {
        indices(x->shape, i, index);
        const size_t to = element(with_ones, index, x->shape.rank);

        if (kind == '<')
            r->y.v[to] = fmin(r->y.v[to], x->v[i]);
        else if (kind == '>')
            r->y.v[to] = fmax(r->y.v[to], x->v[i]);
        else
            r->y.v[to] += factor * x->v[i], r->y.mag[to] += factor * fabs(x->v[i]);
    }
}

static void reduce_sum(struct ref *r) { reduce(r, '+'); }
static void reduce_mean(struct ref *r) { reduce(r, 'm'); }
static void reduce_max(struct ref *r) { reduce(r, '>'); }
static void reduce_min(struct ref *r) { reduce(r, '<'); }

#define REDUCTIONS(layer)                                                                       \
    { layer, "2x3x5x4", .train = true }, { layer " keepdims=false", "2x3x5x7", .train = true }, \
        { layer " axes=[-1]", "3x5x8", .train = true },                                         \
        { layer " axes=[0,1]", "3x5", .train = true },                                          \
        { layer " axes=[0]", "70x9", .train = true },                                           \
        { layer " axes=[1]", "3x40x70", .train = true },                                        \
        { layer " axes=[1] keepdims=false", "9x40", .train = true },                            \
        { layer " axes=[0,2]", "3x4x5x6", .train = true },                                      \
        { layer " axes=[1,3,5]", "2x3x2x4x3x2", .train = true },                                \
        { layer " axes=[0,2,4]", "2x3x2x4x3x2", .train = true },                                \
        { layer " axes=[2]", "3x4x1x5", .train = true },                                        \
        { layer " axes=[1,2]", "2x1x1x6", .train = true },                                      \
        { layer, "8x56x56x64", .train = true, .large = true },                                  \
    {                                                                                           \
        layer " axes=[3]", "8x56x56x65", .train = true, .large = true                           \
    }
static const struct check_case sum_cases[] = { REDUCTIONS("reduce_sum"),
                                              { "reduce_sum axes=[0,1,2]", "2x32x16x5" },
                                              { "reduce_sum axes=[1]", "9x300" }, { 0 } };
static const struct check_case mean_cases[] = { REDUCTIONS("reduce_mean"), { 0 } };
static const struct check_case max_cases[] = { REDUCTIONS("reduce_max"), { 0 } };
static const struct check_case min_cases[] = { REDUCTIONS("reduce_min"), { 0 } };
const struct pm_layer_test pm_test_reduce_sum = { sum_cases, reduce_sum };
const struct pm_layer_test pm_test_reduce_mean = { mean_cases, reduce_mean };
const struct pm_layer_test pm_test_reduce_max = { max_cases, reduce_max };
const struct pm_layer_test pm_test_reduce_min = { min_cases, reduce_min };

/* ---- two inputs ------------------------------------------------------------------------ */

static void binary(struct ref *r, char kind)
{
    const struct ref_array *a = &r->in[0], *b = &r->in[1];
    struct pm_shape y = a->shape.rank >= b->shape.rank ? a->shape : b->shape;
    int index[6];

    for (int i = 1; i <= a->shape.rank && i <= b->shape.rank; i++)
        y.dim[y.rank - i] =
            (int)fmax(a->shape.dim[a->shape.rank - i], b->shape.dim[b->shape.rank - i]);
    ref_output(r, y);
    for (size_t i = 0; i < r->y.count; i++) {
        indices(y, i, index);
        const double va = a->v[element(a->shape, index, y.rank)];
        const double vb = b->v[element(b->shape, index, y.rank)];

        r->y.v[i] = kind == '-' ? va - vb : kind == '/' ? va / vb
                    : kind == '<' ? fmin(va, vb) : fmax(va, vb);
        r->y.mag[i] = kind == '-' ? fabs(va) + fabs(vb) : fabs(r->y.v[i]);
    }
}

static void subtract(struct ref *r) { binary(r, '-'); }
static void divide(struct ref *r) { binary(r, '/'); }
static void minimum(struct ref *r) { binary(r, '<'); }
static void maximum(struct ref *r) { binary(r, '>'); }

/* at: range of the second input. */
#define PAIRS(layer, at)                                                                          \
    { layer, "2x3x4x5 2x3x4x5" at }, { layer, "3x8 3x8" at }, { layer, "2x3x4x8 2x1x1x8" at },    \
        { layer, "2x3x4x5 2x3x4x1" at }, { layer, "2x1x4x1 2x3x1x8" at }, { layer, "70x8 8" at }, \
        { layer, "2x400x5 5" at }, { layer, "8 3x5x8" at }, { layer, "2x3x4 1" at },              \
        { layer, "2x3x4x8 1x3x4x8" at }, { layer, "2x4x2x3x2x4 4x1x3x1x4" at },                   \
        { layer, "3x4x8 3x4x8" at, .no_gradient = 1 },                                            \
        { layer, "3x4x8 3x1x8" at, .no_gradient = 2 },                                            \
        { layer, "8x56x56x64 64" at, .large = true },                                             \
    {                                                                                             \
        layer, "8x56x56x65 8x56x56x1" at, .large = true                                           \
    }
static const struct check_case subtract_cases[] = { PAIRS("subtract", ""), { 0 } };
static const struct check_case divide_cases[] = { PAIRS("divide", "@0.3..3"), { 0 } };
static const struct check_case minimum_cases[] = { PAIRS("minimum", "@-1.7..2.1"), { 0 } };
static const struct check_case maximum_cases[] = { PAIRS("maximum", "@-1.7..2.1"), { 0 } };
const struct pm_layer_test pm_test_subtract = { subtract_cases, subtract };
const struct pm_layer_test pm_test_divide = { divide_cases, divide };
const struct pm_layer_test pm_test_minimum = { minimum_cases, minimum };
const struct pm_layer_test pm_test_maximum = { maximum_cases, maximum };
