/* batch_norm by its definition: statistics in double, two passes. */
#include <stdlib.h>

#include "check.h"

static double act(const struct ref *r, double z)
{
    if (ref_says(r, "activation", "relu", "none"))
        return fmax(z, 0);
    if (ref_says(r, "activation", "relu6", "none"))
        return fmin(fmax(z, 0), 6);
    if (ref_says(r, "activation", "leaky_relu", "none"))
        return z > 0 ? z : ref_number(r, "slope", 0.01) * z;
    if (ref_says(r, "activation", "sigmoid", "none"))
        return 1 / (1 + exp(-z));
    if (ref_says(r, "activation", "hard_swish", "none"))
        return z * fmin(fmax(z + 3, 0), 6) / 6;
    return z;
}

/* The last input if it has one axis: the number of valid rows of each example. */
static const struct ref_array *count_of(const struct ref *r)
{
    const struct ref_array *last = &r->in[r->inputs - 1];

    return last->shape.rank == 1 ? last : NULL;
}

/* Whether row i of the first axis is one of the first count rows of its example. */
static int is_valid(const struct ref *r, int i)
{
    const struct ref_array *count = count_of(r);
    const int rows = count ? r->in[0].shape.dim[0] / count->shape.dim[0] : 1;

    return !count || i % rows < count->v[i / rows];
}

/* Writes y of one channel. valid[i] = 0: it is 0. */
static void apply(struct ref *r, int k, int c, int rows, const int *valid, double mean, double rstd,
                  double gamma, double beta, double largest)
{
    const int residuals = r->inputs - (count_of(r) != NULL) > 1;

    for (int i = 0; i < rows; i++) {
        const size_t at = (size_t)i * c + k;
        const double residual = residuals ? r->in[1].v[at] : 0;
        const double normal = (r->in[0].v[at] - mean) * rstd;
        const double z = normal * gamma + beta + residual;

        r->y.v[at] = valid[i] ? act(r, z) : 0;
        /* x - mean has an error of the size of x's rounding, which rstd enlarges. The slope
         * of hard_swish is at most 1.5 for |z| < 3 and 1 beyond. */
        r->y.mag[at] = valid[i] ? ((fabs(normal) + largest * rstd) * fabs(gamma) + fabs(beta) +
                                   fabs(residual)) * (1 + fabs(z) / 3)
                                : 0;
    }
}

static void batch_norm(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int c = x->shape.dim[x->shape.rank - 1], rows = (int)(x->count / (size_t)c);
    const int center = !ref_says(r, "center", "false", "true");
    const int scale = !ref_says(r, "scale", "false", "true");
    const int moving = center + scale;
    const int batch = r->train && !ref_says(r, "frozen", "true", "false");
    const int biased = ref_says(r, "moving_variance", "biased", "unbiased");
    const double rate = 1 - ref_number(r, "decay", 0.997);
    const double epsilon = ref_number(r, "epsilon", 1e-3);

    int *valid = malloc((size_t)rows * sizeof *valid), n = 0;

    for (int i = 0; i < rows; i++)
        n += valid[i] = !batch || is_valid(r, i / (rows / x->shape.dim[0]));
    ref_output(r, x->shape);
    if (batch) {
        ref_update(r, moving);
        ref_update(r, moving + 1);
    }
    for (int k = 0; k < c; k++) {
        double mean = r->var[moving].v[k], var = r->var[moving + 1].v[k], largest = 0;

        for (int i = 0; i < rows; i++)
            largest = valid[i] ? fmax(largest, fabs(x->v[(size_t)i * c + k])) : largest;
        if (batch && n > 0) {
            mean = var = 0;
            for (int i = 0; i < rows; i++)
                mean += valid[i] ? x->v[(size_t)i * c + k] / n : 0;
            for (int i = 0; i < rows; i++)
                var += valid[i] ? pow(x->v[(size_t)i * c + k] - mean, 2) / n : 0;
            const double unbiased = biased || n < 2 ? var : var * n / (n - 1);
            r->after[moving].v[k] -= rate * (r->var[moving].v[k] - mean);
            r->after[moving + 1].v[k] -= rate * (r->var[moving + 1].v[k] - unbiased);
            /* rounded values change a variance by 2 (x - mean) dx */
            r->after[moving].mag[k] = fabs(r->var[moving].v[k]) + largest;
            r->after[moving + 1].mag[k] = fabs(r->var[moving + 1].v[k]) + var + sqrt(var) * largest;
        }
        const double gamma = scale ? r->var[center].v[k] : 1, beta = center ? r->var[0].v[k] : 0;
        apply(r, k, c, rows, valid, mean, 1 / sqrt(var + epsilon), gamma, beta, largest);
    }
    free(valid);
}

#define VARS "gamma@0.5..1.5 moving_variance@0.3..2"
static const struct check_case cases[] = {
    { "batch_norm", "4x3x3x5", true, VARS },
    { "batch_norm activation=relu", "2x4x5x8", true, VARS },
    { "batch_norm scale=false activation=relu6", "3x4x3x4@-6..6", true, VARS },
    { "batch_norm center=false decay=0.9", "6x7", true, VARS },
    { "batch_norm scale=false center=false moving_variance=biased", "5x2x3x3", true, VARS },
    { "batch_norm epsilon=1e-5 decay=0.9997", "4x4x4x12", true, VARS },
    { "batch_norm activation=relu", "3x4x4x8 3x4x4x8", true, VARS },
    { "batch_norm", "3x4x4x3 3x4x4x3", true, VARS },
    { "batch_norm activation=leaky_relu slope=0.2", "3x2x4x3 3x2x4x3", true, VARS,
      .no_gradient = 1 },
    { "batch_norm activation=leaky_relu", "3x2x4x3 3x2x4x3", true, VARS, .no_gradient = 2 },
    { "batch_norm activation=hard_swish", "3x4x4x4@-4..4", true, "gamma@2..4" },
    { "batch_norm activation=hard_swish", "3x3x4x5 3x3x4x5", true, "gamma@2..4" },
    { "batch_norm frozen=true activation=relu", "3x4x4x4 3x4x4x4", true, VARS },
    { "batch_norm frozen=true", "3x5", true, VARS },
    { "batch_norm activation=relu6", "2x3x3x6", false, VARS },
    { "batch_norm scale=false", "2x3x3x8 2x3x3x8", false, VARS },
    { "batch_norm", "50x5@99..101", true, VARS }, /* a mean 100 times the deviation */
    { "batch_norm", "1x3", true, VARS, .no_gradient = 1 }, /* one row: the variance is 0 */
    { "batch_norm", "3x600", true, VARS }, /* more channels than a block holds */
    { "batch_norm", "700x2", true, VARS }, /* many chunks, the last one shorter */
    /* Only the first rows of each example count: all, one, some (also fewer than 0 and more than
     * there are), none. */
    { "batch_norm", "6x3x3x5 i32:2@3..3", true, VARS },
    { "batch_norm activation=relu", "8x3x2x8 i32:2@1..1", true, VARS },
    { "batch_norm", "12x2x2x4 12x2x2x4 i32:4@-1..5", true, VARS },
    { "batch_norm activation=relu6 scale=false", "20x3x2x6@-6..6 i32:5@0..4", true, VARS },
    { "batch_norm activation=hard_swish", "9x3x4x8 9x3x4x8 i32:3@1..3", true, "gamma@2..4" },
    { "batch_norm activation=sigmoid moving_variance=biased", "8x2x3x4 8x2x3x4 i32:4@0..2", true,
      VARS },
    { "batch_norm center=false decay=0.9", "24x7 i32:4@2..5", true, VARS },
    { "batch_norm activation=relu", "6x3x3x5 i32:2@0..0", true, VARS },
    { "batch_norm", "6x3x3x4 6x3x3x4 i32:2@0..0", true, VARS },
    { "batch_norm", "4x3 i32:1@1..1", true, VARS, .no_gradient = 1 }, /* one value */
    { "batch_norm", "30x600 i32:3@4..8", true, VARS },
    { "batch_norm", "900x2 i32:2@130..420", true, VARS },
    { "batch_norm", "60x5@99..101 i32:2@20..25", true, VARS },
    { "batch_norm frozen=true activation=relu", "6x2x2x4 6x2x2x4 i32:2@1..1", true, VARS },
    { "batch_norm", "6x3x3x5 i32:3@0..1", false, VARS },
    { "batch_norm activation=relu", "256x7x7x128 i32:4@10..64", true, VARS, .large = true },
    { "batch_norm activation=relu", "24x56x56x64", true, VARS, .large = true },
    { "batch_norm activation=relu", "16x14x14x512 16x14x14x512", true, VARS, .large = true },
    { "batch_norm activation=relu6", "8x75x75x33", true, VARS, .large = true },
    { "batch_norm activation=relu", "4x56x56x64", false, VARS, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_batch_norm = { cases, batch_norm };
