/* flatten and reshape: the same values, another shape. */
#include "check.h"

static void same(struct ref *r, struct pm_shape shape)
{
    ref_output(r, shape);
    memcpy(r->y.v, r->in[0].v, r->y.count * sizeof *r->y.v);
}

static void flatten(struct ref *r)
{
    const int n = r->in[0].shape.dim[0];
    same(r, PM_SHAPE2(n, (int)r->in[0].count / n));
}

static void reshape(struct ref *r)
{
    double v[4];
    struct pm_shape shape = { .rank = ref_numbers(r, "shape", v, 4) };
    int rest = (int)r->in[0].count;

    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = v[i] == 0 ? r->in[0].shape.dim[i] : (int)v[i];
        rest /= shape.dim[i] > 0 ? shape.dim[i] : 1;
    }
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = shape.dim[i] < 0 ? rest : shape.dim[i];
    same(r, shape);
}

static const struct check_case flatten_cases[] = {
    { "flatten", "2x3x4x5" }, { "flatten", "3x7" }, { "flatten", "4" }, { 0 },
};
static const struct check_case reshape_cases[] = {
    { "reshape shape=[0,-1]", "2x3x4x5" },
    { "reshape shape=[6,20]", "2x3x4x5" },
    { "reshape shape=[0,1,-1,2]", "3x8" },
    { "reshape shape=[-1]", "3x8" },
    { 0 },
};
const struct pm_layer_test pm_test_flatten = { flatten_cases, flatten };
const struct pm_layer_test pm_test_reshape = { reshape_cases, reshape };
