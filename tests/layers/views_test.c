/* flatten and reshape: the same values in another shape. transpose and flip: also in another
 * order. parameter: the values of a variable. */
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
    double v[6];
    struct pm_shape shape = { .rank = ref_numbers(r, "shape", v, 6) };
    int rest = (int)r->in[0].count;

    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = v[i] == 0 ? r->in[0].shape.dim[i] : (int)v[i];
        rest /= shape.dim[i] > 0 ? shape.dim[i] : 1;
    }
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = shape.dim[i] < 0 ? rest : shape.dim[i];
    same(r, shape);
}

static void parameter(struct ref *r)
{
    ref_output(r, r->var[0].shape);
    memcpy(r->y.v, r->var[0].v, r->y.count * sizeof *r->y.v);
}

/* Iterates over the output's indices, last axis fastest. */
static void transpose(struct ref *r)
{
    const struct pm_shape x = r->in[0].shape;
    struct pm_shape y = x;
    double perm[6] = { 0, 2, 3, 1 };
    int index[6] = { 0 };

    ref_numbers(r, "perm", perm, 6);
    for (int i = 0; i < x.rank; i++)
        y.dim[i] = x.dim[(int)perm[i]];
    ref_output(r, y);
    for (size_t at = 0; at < r->y.count; at++) {
        int there[6] = { 0 };
        size_t from = 0;

        for (int i = 0; i < y.rank; i++)
            there[(int)perm[i]] = index[i];
        for (int i = 0; i < x.rank; i++)
            from = from * (size_t)x.dim[i] + (size_t)there[i];
        r->y.v[at] = r->in[0].v[from];
        for (int i = y.rank - 1; i >= 0 && ++index[i] == y.dim[i]; i--)
            index[i] = 0;
    }
}

static void flip(struct ref *r)
{
    const struct pm_shape x = r->in[0].shape;
    const int axis = (int)ref_number(r, "axis", 2) + (ref_number(r, "axis", 2) < 0 ? x.rank : 0);
    int index[6] = { 0 };

    ref_output(r, x);
    for (size_t at = 0; at < r->y.count; at++) {
        size_t from = 0;

        for (int i = 0; i < x.rank; i++)
            from =
                from * (size_t)x.dim[i] + (size_t)(i == axis ? x.dim[i] - 1 - index[i] : index[i]);
        r->y.v[at] = r->in[0].v[from];
        for (int i = x.rank - 1; i >= 0 && ++index[i] == x.dim[i]; i--)
            index[i] = 0;
    }
}

static const struct check_case flatten_cases[] = {
    { "flatten", "2x3x4x5" }, { "flatten", "3x7" }, { "flatten", "4" }, { 0 },
};
static const struct check_case reshape_cases[] = {
    { "reshape shape=[0,-1]", "2x3x4x5" },
    { "reshape shape=[6,20]", "2x3x4x5" },
    { "reshape shape=[0,1,-1,2]", "3x8" },
    { "reshape shape=[-1]", "3x8" },
    { "reshape shape=[0,2,2,-1,1,2]", "3x16" },
    { 0 },
};
static const struct check_case transpose_cases[] = {
    { "transpose", "2x3x4x5" },
    { "transpose perm=[0,3,1,2]", "2x3x4x8" },
    { "transpose perm=[1,0]", "3x1" },
    { "transpose perm=[0,1,2]", "3x4x5" },
    { "transpose perm=[0]", "7" },
    { "transpose perm=[0,2,1,3]", "2x5x3x8" },
    { "transpose perm=[0,2,1,3]", "2x5x3x7" },
    { "transpose perm=[0,1,2,4,3]", "2x3x4x5x6" },
    { "transpose perm=[2,0,3,1,4]", "2x3x4x5x4" },
    { "transpose perm=[0,3,1,4,2,5]", "2x3x2x2x3x4" },
    { "transpose perm=[5,4,3,2,1,0]", "2x3x2x2x3x5" },
    { "transpose", "8x56x56x64", .large = true },
    { "transpose perm=[0,1,2,4,3]", "8x28x28x8x24", .large = true },
    { "transpose perm=[0,2,1,3]", "8x197x12x64", .large = true },
    { 0 },
};
static const struct check_case flip_cases[] = {
    { "flip", "2x3x5x4" },
    { "flip", "2x3x4x7" },
    { "flip axis=-3", "2x3x4x5" },
    { "flip axis=0", "5x8" },
    { "flip axis=-1", "3x9" },
    { "flip axis=1", "2x1x6" },
    { "flip axis=3", "2x3x2x4x1x5" },
    { "flip", "2x257x257x21", .large = true },
    { "flip", "8x33x33x256", .large = true },
    { 0 },
};
static const struct check_case parameter_cases[] = {
    { "parameter shape=[3,4,5]", "2x3" }, { "parameter shape=[7]", "2x3" },
    { "parameter shape=[1,1,1,300]", "1x3" }, { 0 },
};
const struct pm_layer_test pm_test_parameter = { parameter_cases, parameter };
const struct pm_layer_test pm_test_flip = { flip_cases, flip };
const struct pm_layer_test pm_test_transpose = { transpose_cases, transpose };
const struct pm_layer_test pm_test_flatten = { flatten_cases, flatten };
const struct pm_layer_test pm_test_reshape = { reshape_cases, reshape };
