/* prelu and scale by their definitions: their variables repeat along the leading axes. */
#include "check.h"

static void prelu(struct ref *r)
{
    ref_output(r, r->in[0].shape);
    for (size_t i = 0; i < r->y.count; i++) {
        const double x = r->in[0].v[i];

        r->y.v[i] = x > 0 ? x : r->var[0].v[i % r->var[0].count] * x;
        r->y.mag[i] = fabs(r->y.v[i]);
    }
}

static void scale(struct ref *r)
{
    const int gamma = ref_says(r, "gamma", "true", "true"),
              beta = ref_says(r, "beta", "true", "false");

    ref_output(r, r->in[0].shape);
    for (size_t i = 0; i < r->y.count; i++) {
        const size_t at = i % r->var[0].count;
        const double product = r->in[0].v[i] * (gamma ? r->var[0].v[at] : 1);
        const double more = beta ? r->var[gamma].v[at] : 0;

        r->y.v[i] = product + more;
        r->y.mag[i] = fabs(product) + fabs(more);
    }
}

static const struct check_case prelu_cases[] = {
    { "prelu", "2x5x7x3" },
    { "prelu", "4x8", .train = true },
    { "prelu shared=true", "3x5x4" },
    { "prelu", "40x36" },
    { "prelu", "8x56x56x64", .large = true },
    { "prelu shared=true", "8x56x56x63", .large = true },
    { 0 },
};
static const struct check_case scale_cases[] = {
    { "scale", "2x5x7x3" },
    { "scale beta=true", "3x4x8" },
    { "scale gamma=false beta=true", "3x4x7" },
    { "scale axes=0 beta=true", "3x4x7" },
    { "scale axes=2 beta=true", "5x3x4" },
    { "scale axes=-1 gamma=false beta=true", "300x3x4" },
    { "scale axes=3", "2x3x2x5" },
    { "scale beta=true", "8x56x56x64", .large = true },
    { "scale axes=-1 gamma=false beta=true", "8x197x192", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_prelu = { prelu_cases, prelu };
const struct pm_layer_test pm_test_scale = { scale_cases, scale };
