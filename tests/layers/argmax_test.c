/* argmax by its definition; inputs with ~ have ties. tests/net/argmax_values_test.c covers NaN
 * and signed zeros. */
#include "check.h"

static void argmax(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    struct pm_shape y = x->shape;
    const int k = y.dim[--y.rank];

    ref_output(r, y);
    for (size_t i = 0; i < r->y.count; i++)
        for (int j = 1; j < k; j++)
            if (x->v[i * (size_t)k + j] > x->v[i * (size_t)k + (size_t)r->y.v[i]])
                r->y.v[i] = j;
}

static const struct check_case cases[] = {
    { "argmax", "2x3x5x21" },
    { "argmax", "~3x5x7x4" },
    { "argmax", "~40x11" },
    { "argmax", "7x1" },
    { "argmax", "~5x150" },
    { "argmax", "3x64@-30..30" },
    { "argmax", "2x2x3x2x9" },
    { "argmax", "8x257x257x21", .large = true },
    { "argmax", "2x129x129x151", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_argmax = { cases, argmax };
