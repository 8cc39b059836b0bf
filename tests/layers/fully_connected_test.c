/* fully_connected by its definition. */
#include "conv_ref.h"

static void fully_connected(struct ref *r)
{
    const int rows = r->in[0].shape.dim[0], units = (int)ref_number(r, "units", 32);
    const int in = (int)r->in[0].count / rows;

    ref_output(r, PM_SHAPE2(rows, units));
    for (size_t i = 0; i < r->y.count; i++)
        for (int k = 0; k < in; k++) {
            const double term = r->in[0].v[i / units * in + k] *
                                r->var[0].v[(size_t)k * units + i % units];
            r->y.v[i] += term;
            r->y.mag[i] += fabs(term);
        }
    ref_tail(r);
}

static const struct check_case cases[] = {
    { "fully_connected units=10", "4x7" },
    { "fully_connected units=3 bias=false", "1x17" },
    { "fully_connected units=5 activation=relu", "3x2x3x4" },
    { "fully_connected units=1", "2x1" },
    { "fully_connected units=40 activation=tanh", "6x33@-0.3..0.3" },
    { "fully_connected units=8 activation=sigmoid", "5x16@-1..1" },
    { "fully_connected units=17", "2x100" },
    { "fully_connected units=17", "2x100", .transposes = true },
    { "fully_connected units=1000", "64x2048", .large = true },
    { "fully_connected units=1024 bias=false", "32x7x7x64", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_fully_connected = { cases, fully_connected };
