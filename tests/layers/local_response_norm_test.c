/* local_response_norm by its definition. Square roots and powers keep relative errors; s is a sum
 * of positive terms. */
#include "check.h"

static void local_response_norm(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int c = x->shape.dim[x->shape.rank - 1], radius = (int)ref_number(r, "radius", 5);
    const double bias = ref_number(r, "bias", 1), alpha = ref_number(r, "alpha", 1);
    const double beta = ref_number(r, "beta", 0.5);

    ref_output(r, x->shape);
    for (size_t i = 0; i < x->count; i++) {
        const int k = (int)(i % c);
        double s = bias;

        for (int j = -radius; j <= radius; j++)
            if (k + j >= 0 && k + j < c)
                s += alpha * x->v[i + j] * x->v[i + j];
        r->y.v[i] = x->v[i] * pow(s, -beta);
        r->y.mag[i] = fabs(r->y.v[i]);
    }
}

static const struct check_case cases[] = {
    { "local_response_norm", "2x3x4x13" },
    { "local_response_norm radius=4 alpha=0.000111111111 beta=0.75", "2x5x5x16", .train = true },
    { "local_response_norm radius=2 bias=2 alpha=0.3 beta=0.75", "2x3x3x7@-5..5" },
    { "local_response_norm radius=1 alpha=0.5 beta=1.3", "3x2x2x6" },
    { "local_response_norm radius=9", "1x2x2x3" },
    { "local_response_norm radius=0 beta=0.5", "2x2x2x4" },
    { "local_response_norm radius=3", "2x600" }, /* more channels than a block of the C function */
    { "local_response_norm radius=4 alpha=0.000111111111 beta=0.75", "32x16x16x64", .large = true },
    { "local_response_norm radius=5 bias=1 alpha=0.0001 beta=0.75", "3x55x55x97", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_local_response_norm = { cases, local_response_norm };
