/* layer_norm and group_norm by their definitions. The error of a value is proportional to the
 * row's largest distance from its mean, for any mean. */
#include "check.h"

/* The row of element i among `rows`, for layer_norm or group_norm. */
static size_t row_of(const struct ref *r, size_t i, size_t k, size_t groups)
{
    const struct pm_shape s = r->in[0].shape;
    const size_t c = (size_t)s.dim[s.rank - 1], image = r->in[0].count / (size_t)s.dim[0];

    return groups ? i / image * groups + i % c / (c / groups) : i / k;
}

/* k: number of values of each variable; groups 0: layer_norm. */
static void norm(struct ref *r, size_t k, size_t groups)
{
    const int beta = ref_says(r, "beta", "true", "true"),
              gamma = ref_says(r, "gamma", "true", "true");
    const double epsilon = ref_number(r, "epsilon", 1e-5);
    const struct ref_array *x = &r->in[0];
    const size_t rows = groups ? groups * (size_t)x->shape.dim[0] : x->count / k;
    const double length = (double)x->count / (double)rows;

    ref_output(r, x->shape);
    for (size_t row = 0; row < rows; row++) {
        double mean = 0, square = 0, largest = 0;

        for (size_t i = 0; i < x->count; i++)
            if (row_of(r, i, k, groups) == row)
                mean += x->v[i] / length;
        for (size_t i = 0; i < x->count; i++)
            if (row_of(r, i, k, groups) == row) {
                square += (x->v[i] - mean) * (x->v[i] - mean) / length;
                largest = fmax(largest, fabs(x->v[i] - mean));
            }
        for (size_t i = 0; i < x->count; i++) {
            if (row_of(r, i, k, groups) != row)
                continue;
            const double g = gamma ? r->var[beta].v[i % k] : 1, b = beta ? r->var[0].v[i % k] : 0;
            const double deviation = sqrt(square + epsilon);

            r->y.v[i] = g * (x->v[i] - mean) / deviation + b;
            r->y.mag[i] = fabs(g) * (fabs(x->v[i] - mean) + largest) / deviation + fabs(b);
        }
    }
}

static void layer_norm(struct ref *r)
{
    const struct pm_shape s = r->in[0].shape;
    size_t k = 1;

    for (int i = 1; i <= (int)ref_number(r, "axes", 1); i++)
        k *= (size_t)s.dim[s.rank - i];
    norm(r, k, 0);
}

static void group_norm(struct ref *r)
{
    const struct pm_shape s = r->in[0].shape;
    const size_t c = (size_t)s.dim[s.rank - 1], groups = (size_t)ref_number(r, "groups", 32);

    norm(r, c, groups ? groups : c);
}

static const struct check_case layer_cases[] = {
    { "layer_norm", "3x8", .train = true },
    { "layer_norm epsilon=0.001", "2x5x7@-3..5", .train = true },
    { "layer_norm axes=2", "3x4x5", .train = true },
    { "layer_norm gamma=false", "3x2x3x70", .train = true },
    { "layer_norm beta=false", "2x3x2x9", .train = true },
    { "layer_norm axes=3", "3x2x3x4" },
    { "layer_norm", "5x70@100..101", .train = true },
    { "layer_norm", "8x197x192", .train = true, .large = true },
    { "layer_norm", "70000x16", .train = true, .large = true },
    /* The values of some rows are almost equal. */
    { "layer_norm gamma=false beta=false", "70000x3", .train = true, .large = true },
    { 0 },
};
static const struct check_case group_cases[] = {
    { "group_norm groups=2", "2x3x4x8", .train = true },
    { "group_norm groups=1", "3x2x5x7", .train = true },
    { "group_norm groups=0", "2x4x5x6", .train = true },
    { "group_norm groups=3 beta=false", "2x5x9", .train = true },
    { "group_norm groups=0 gamma=false beta=false", "2x4x3x5", .train = true },
    { "group_norm groups=4", "2x12" },
    { "group_norm groups=2", "2x3x5x6@1000..1001" },
    { "group_norm", "4x28x28x128", .train = true, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_layer_norm = { layer_cases, layer_norm };
const struct pm_layer_test pm_test_group_norm = { group_cases, group_norm };
