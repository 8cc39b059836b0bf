/* add, concat, split, multiply, slice and pad by their definitions. */
#include "check.h"

/* Sum or product with broadcasting: axes of size 1 repeat, and so do leading axes that one input
 * lacks. */
static void spread(struct ref *r, int product)
{
    const struct ref_array *a = &r->in[0], *b = &r->in[1];
    struct pm_shape y = a->shape.rank >= b->shape.rank ? a->shape : b->shape;

    for (int i = 1; i <= a->shape.rank && i <= b->shape.rank; i++)
        y.dim[y.rank - i] =
            (int)fmax(a->shape.dim[a->shape.rank - i], b->shape.dim[b->shape.rank - i]);
    ref_output(r, y);
    for (size_t at = 0; at < r->y.count; at++) {
        size_t rest = at, place[2] = { 0 }, step[2] = { 1, 1 };

        for (int i = 1; i <= y.rank; i++) {
            const size_t index = rest % (size_t)y.dim[y.rank - i];

            rest /= (size_t)y.dim[y.rank - i];
            for (int k = 0; k < 2; k++) {
                const struct pm_shape s = r->in[k].shape;
                const int size = i <= s.rank ? s.dim[s.rank - i] : 1;

                place[k] += size == 1 ? 0 : index * step[k];
                step[k] *= (size_t)size;
            }
        }
        const double va = a->v[place[0]], vb = b->v[place[1]];
        r->y.v[at] = product ? va * vb : va + vb;
        r->y.mag[at] = product ? fabs(va * vb) : fabs(va) + fabs(vb);
    }
}

static void add(struct ref *r)
{
    const double scale = ref_number(r, "scale", 1), slope = ref_number(r, "slope", 0.01);

    if (r->in[0].count != r->in[1].count) {
        spread(r, 0);
        return;
    }
    ref_output(r, r->in[0].shape);
    for (size_t i = 0; i < r->y.count; i++) {
        double sum = r->in[0].v[i], mag = fabs(sum);

        for (int k = 1; k < r->inputs; k++) {
            sum += scale * r->in[k].v[i];
            mag += fabs(scale * r->in[k].v[i]);
        }
        if (ref_says(r, "activation", "relu", "none"))
            sum = fmax(sum, 0);
        else if (ref_says(r, "activation", "relu6", "none"))
            sum = fmin(fmax(sum, 0), 6);
        else if (ref_says(r, "activation", "leaky_relu", "none"))
            sum = sum > 0 ? sum : slope * sum;
        r->y.v[i] = sum;
        r->y.mag[i] = mag;
    }
}

static void concat(struct ref *r)
{
    struct pm_shape y = r->in[0].shape;
    const int given = (int)ref_number(r, "axis", -1), axis = given < 0 ? given + y.rank : given;
    size_t inner = 1, start = 0, line;

    for (int k = 1; k < r->inputs; k++)
        y.dim[axis] += r->in[k].shape.dim[axis];
    ref_output(r, y);
    for (int i = axis + 1; i < y.rank; i++)
        inner *= (size_t)y.dim[i];
    line = (size_t)y.dim[axis] * inner;
    for (int k = 0; k < r->inputs; k++) {
        const size_t mine = (size_t)r->in[k].shape.dim[axis] * inner;

        for (size_t i = 0; i < r->in[k].count; i++)
            r->y.v[i / mine * line + start + i % mine] = r->in[k].v[i];
        start += mine;
    }
}

static void split(struct ref *r)
{
    const struct pm_shape x = r->in[0].shape;
    const int axis = (int)ref_number(r, "axis", -1) + (ref_number(r, "axis", -1) < 0 ? x.rank : 0);
    double size[8];
    int count = ref_numbers(r, "sizes", size, 8);
    size_t inner = 1, out = 0, begin = 0;
    struct pm_shape shape[8];

    for (int i = axis + 1; i < x.rank; i++)
        inner *= (size_t)x.dim[i];
    if (count == 0) {
        count = (int)ref_number(r, "parts", 2);
        for (int k = 0; k < count; k++)
            size[k] = x.dim[axis] / count;
    }
    for (int k = 0; k < count; k++) {
        shape[k] = x;
        shape[k].dim[axis] = (int)size[k];
    }
    ref_outputs(r, count, shape);
    for (int k = 0; k < count; k++) {
        const size_t line = (size_t)x.dim[axis] * inner, mine = (size_t)size[k] * inner;

        for (size_t i = 0; i < r->in[0].count; i++)
            if (i % line >= begin && i % line < begin + mine)
                r->y.v[out++] = r->in[0].v[i];
        begin += mine;
    }
}

static void multiply(struct ref *r)
{
    spread(r, 1);
}

/* Iterates over the indices of the box, last axis fastest. */
static void slice(struct ref *r)
{
    const struct pm_shape x = r->in[0].shape;
    struct pm_shape y = x;
    double begin[6], size[6];
    const int begins = ref_numbers(r, "begin", begin, 6), sizes = ref_numbers(r, "size", size, 6);
    int first[6] = { 0 }, index[6] = { 0 };

    for (int i = 0; i < x.rank; i++) {
        first[i] = i < begins ? (int)begin[i] : 0;
        y.dim[i] = i < sizes && size[i] >= 0 ? (int)size[i] : x.dim[i] - first[i];
    }
    ref_output(r, y);
    for (size_t at = 0; at < r->y.count; at++) {
        size_t from = 0;

        for (int i = 0; i < x.rank; i++)
            from = from * (size_t)x.dim[i] + (size_t)(first[i] + index[i]);
        r->y.v[at] = r->in[0].v[from];
        for (int i = y.rank - 1; i >= 0 && ++index[i] == y.dim[i]; i--)
            index[i] = 0;
    }
}

/* The input index for place i of an axis of n cells; -1 for padding. */
static int padded(const struct ref *r, int i, int n)
{
    if (i >= 0 && i < n)
        return i;
    if (ref_says(r, "mode", "edge", "constant"))
        return i < 0 ? 0 : n - 1;
    if (ref_says(r, "mode", "reflect", "constant"))
        return i < 0 ? -i : n - 1 - (i - (n - 1));
    return -1;
}

static void pad(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const int *d = x->shape.dim;
    double p[4] = { 0 };

    ref_numbers(r, "pad", p, 4);
    ref_output(r, PM_SHAPE4(d[0], d[1] + (int)(p[0] + p[1]), d[2] + (int)(p[2] + p[3]), d[3]));
    for (size_t i = 0; i < r->y.count; i++) {
        const int *e = r->y.shape.dim, c = (int)(i % (size_t)e[3]);
        const int w = padded(r, (int)(i / (size_t)e[3] % (size_t)e[2]) - (int)p[2], d[2]);
        const int h =
            padded(r, (int)(i / (size_t)e[3] / (size_t)e[2] % (size_t)e[1]) - (int)p[0], d[1]);
        const int n = (int)(i / (size_t)e[3] / (size_t)e[2] / (size_t)e[1]);

        r->y.v[i] = w < 0 || h < 0 ? ref_number(r, "value", 0) : x->v[ref_at(x, n, h, w, c)];
    }
}

static const struct check_case add_cases[] = {
    { "add", "2x3x4x5 2x3x4x5" },
    { "add activation=relu", "4x8 4x8", .train = true },
    { "add activation=relu6 scale=0.17", "3x7@-9..9 3x7@-9..9" },
    { "add scale=0.1", "3x8 3x8 3x8" },
    { "add activation=leaky_relu slope=0.3", "2x9 2x9 2x9 2x9" },
    { "add activation=relu scale=-0.5", "5x4 5x4 5x4 5x4 5x4 5x4 5x4 5x4" },
    { "add scale=0.2 activation=relu", "5x3 5x3", .no_gradient = 1 },
    { "add scale=0.2 activation=relu", "5x3 5x3", .no_gradient = 2 },
    { "add", "2x3x4x5 5" },
    { "add", "2x1x4x1 2x3x1x8" },
    { "add", "1x6x8 3x6x8" },
    { "add", "3x6x8 1x6x8", .no_gradient = 1 },
    { "add activation=relu", "8x56x56x64 8x56x56x64", .large = true },
    { "add", "8x197x192 197x192", .large = true },
    { "add activation=relu scale=0.17", "2x35x35x161 2x35x35x161 2x35x35x161", .large = true },
    { 0 },
};
static const struct check_case concat_cases[] = {
    { "concat", "2x3x4x5 2x3x4x2" },
    { "concat axis=1", "2x3x4 2x1x4 2x2x4" },
    { "concat axis=0", "2x3 1x3" },
    { "concat axis=-2", "2x3x4 2x5x4" },
    { "concat", "3x4 3x8 3x12", .no_gradient = 2 },
    { "concat", "2x1 2x2 2x3 2x4 2x5 2x6 2x7 2x8" },
    { "concat", "8x35x35x64 8x35x35x64 8x35x35x96 8x35x35x32", .large = true },
    { "concat", "8x33x33x65 8x33x33x257", .large = true },
    { 0 },
};
static const struct check_case split_cases[] = {
    { "split", "2x3x4x6" },
    { "split", "2x3x4x6", .unread = 1 },
    { "split sizes=[5,2]", "2x3x4x7", .unread = 2 },
    { "split sizes=[3,1,4]", "3x8", .unread = 5 },
    { "split parts=3 axis=1", "2x6x4" },
    { "split sizes=[4,8] axis=-2", "2x12x4" },
    { "split sizes=[1,2] axis=0", "3x5" },
    { "split parts=1", "3x5" },
    { "split sizes=[1,2,3,4,5,6,7,8]", "2x36", .unread = 0x91 },
    { "split sizes=[4,8,4,4,4,4,8,4]", "3x40", .unread = 0x28 },
    { "split parts=2", "8x56x56x128", .large = true },
    { "split sizes=[65,257]", "8x33x33x322", .large = true, .unread = 1 },
    { 0 },
};
static const struct check_case multiply_cases[] = {
    { "multiply", "2x3x4x5 2x3x4x5" },
    { "multiply", "2x3x4x5 2x1x1x5" },
    { "multiply", "3x7x6x8 3x1x1x8" },
    { "multiply", "3x8 3x8" },
    { "multiply", "3x1x1x8 3x5x2x8" },
    { "multiply", "2x3x4x5 2x3x4x1" },
    { "multiply", "2x3x8 3x1" },
    { "multiply", "2x5x4x8 2x5x4x1", .no_gradient = 2 },
    { "multiply", "2x1x1x6 2x1x1x6" },
    { "multiply", "2x5x2x70 2x1x1x70", .no_gradient = 1 },
    { "multiply", "2x5x2x7 2x1x1x7", .no_gradient = 2 },
    { "multiply", "16x28x28x120 16x1x1x120", .large = true },
    { "multiply", "4x65x65x129 4x1x1x129", .large = true },
    { 0 },
};
static const struct check_case slice_cases[] = {
    { "slice begin=[0,1,2,1] size=[-1,2,3,2]", "2x4x6x5" },
    { "slice begin=[1]", "3x4" },
    { "slice size=[2,1]", "3x4x5" },
    { "slice begin=[0,0,0,3]", "2x3x3x7" },
    { "slice begin=[4] size=[3]", "9" },
    { "slice begin=[1] size=[1]", "3x2x3x4x5" },
    { "slice begin=[0,0,1] size=[-1,-1,1]", "2x3x3x2x4x3" },
    { "slice begin=[0,1,0,0,1,0] size=[1,2,-1,1,2,-1]", "2x3x2x3x3x2" },
    { "slice begin=[0,1,1,0] size=[-1,64,64,-1]", "16x66x66x65", .large = true },
    { 0 },
};
static const struct check_case pad_cases[] = {
    { "pad pad=[1,2,3,0]", "2x3x4x5" },
    { "pad pad=[0,1,0,1]", "1x2x2x4" },
    { "pad", "2x2x2x2" },
    { "pad pad=[1,2,3,0] value=-0.75", "2x3x4x5" },
    { "pad pad=[1,2,3,0] mode=reflect", "2x3x4x5" },
    { "pad pad=[2,2,0,1] mode=reflect", "2x3x2x8" },
    { "pad pad=[1,4,3,0] mode=edge", "2x3x1x5" },
    { "pad pad=[2,2,2,2] mode=edge", "2x3x3x4" },
    { "pad pad=[3,3,3,3] mode=reflect", "8x112x112x4", .large = true },
    { "pad pad=[3,3,3,3]", "8x224x224x3", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_add = { add_cases, add };
const struct pm_layer_test pm_test_concat = { concat_cases, concat };
const struct pm_layer_test pm_test_split = { split_cases, split };
const struct pm_layer_test pm_test_multiply = { multiply_cases, multiply };
const struct pm_layer_test pm_test_slice = { slice_cases, slice };
const struct pm_layer_test pm_test_pad = { pad_cases, pad };
