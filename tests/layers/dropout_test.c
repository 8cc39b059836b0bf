/* dropout: the mask from the random stream of each example (random_ref.h). */
#include "random_ref.h"

static void dropout(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const size_t per = x->count / (size_t)x->shape.dim[0];
    const float keep = (float)ref_number(r, "keep", 0.5);

    ref_output(r, x->shape);
    for (size_t i = 0; i < x->count; i++) {
        const uint32_t example = CHECK_FIRST_EXAMPLE + (uint32_t)(i / per);
        /* The mask is defined as floor(keep + U) with the sum in float32. */
        const float u = (float)(ref_word(example, (uint32_t)(i % per)) >> 8) / 16777216.0f;
        const double mask = r->train ? floorf(keep + u) / keep : 1;

        r->y.v[i] = x->v[i] * mask;
        r->y.mag[i] = fabs(x->v[i] * mask);
    }
}

static const struct check_case cases[] = {
    { "dropout", "3x7", .train = true },
    { "dropout keep=0.8", "2x5x4x3", .train = true },
    { "dropout keep=0.999", "4x1024", .train = true },
    { "dropout keep=1", "2x9", .train = true },
    { "dropout keep=0.25", "40x30", .train = true },
    { "dropout", "2x5" },
    { "dropout keep=0.9", "4x33x33x256", .train = true, .large = true },
    { "dropout", "3x300001", .train = true, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_dropout = { cases, dropout };
