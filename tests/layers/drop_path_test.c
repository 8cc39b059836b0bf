/* drop_path: an example's random number is the first of its stream (random_ref.h); the keep
 * probability follows the published schedule. */
#include "random_ref.h"

static void drop_path(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const size_t per = x->count / (size_t)x->shape.dim[0];
    const double steps = ref_number(r, "steps", 0);
    const double ratio = steps > 0 ? fmin(1, CHECK_STEP / steps) : 1;
    const double keep = 1 - ratio * (1 - ref_number(r, "keep", 0.9));

    ref_output(r, x->shape);
    for (size_t i = 0; i < x->count; i++) {
        const double u = (ref_word(CHECK_FIRST_EXAMPLE + (uint32_t)(i / per), 0) >> 8) / 16777216.0;
        const double factor = r->train ? floor(keep + u) / keep : 1;

        r->y.v[i] = x->v[i] * factor + (r->inputs > 1 ? r->in[1].v[i] : 0);
        r->y.mag[i] = fabs(x->v[i] * factor) + (r->inputs > 1 ? fabs(r->in[1].v[i]) : 0);
    }
}

static const struct check_case cases[] = {
    { "drop_path keep=0.5", "9x7", .train = true },
    { "drop_path keep=0.5", "8x2x3x4", .train = true },
    { "drop_path keep=0.2 steps=4", "12x5x4x3", .train = true }, /* three quarters of the way */
    { "drop_path keep=0.2 steps=4", "12x5x4", .train = true },
    { "drop_path keep=0.4 steps=3", "10x6", .train = true },     /* at its end */
    { "drop_path keep=0.4 steps=2", "10x6", .train = true },     /* beyond its end */
    { "drop_path keep=0.6 steps=937500", "6x8", .train = true }, /* before anything is dropped */
    { "drop_path keep=0.001", "6x33", .train = true },
    { "drop_path keep=1 steps=10", "2x9", .train = true },
    { "drop_path keep=0.5", "3x5" },
    { "drop_path keep=0.5", "9x7 9x7", .train = true },
    { "drop_path keep=0.2 steps=4", "7x2x3x4 7x2x3x4", .train = true },
    { "drop_path keep=1", "3x8 3x8", .train = true },
    { "drop_path keep=0.5 steps=2", "3x8 3x8" },
    { "drop_path keep=0.6", "4x33x33x257", .train = true, .large = true },
    { "drop_path keep=0.6 steps=5", "70000x6", .train = true, .large = true },
    { "drop_path keep=0.6 steps=5", "70000x8 70000x8", .train = true, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_drop_path = { cases, drop_path };
