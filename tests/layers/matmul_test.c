/* matmul by its definition. */
#include "check.h"

static void matmul(struct ref *r)
{
    const struct ref_array *a = &r->in[0], *b = &r->in[1];
    const int across_a = ref_says(r, "transpose_a", "true", "false");
    const int across_b = ref_says(r, "transpose_b", "true", "false"), rank = a->shape.rank;
    const int m = a->shape.dim[rank - 2 + across_a], k = a->shape.dim[rank - 1 - across_a];
    const int n = b->shape.dim[rank - 1 - across_b];
    struct pm_shape y = a->shape;

    y.dim[rank - 2] = m, y.dim[rank - 1] = n;
    ref_output(r, y);
    for (size_t at = 0; at < r->y.count; at++) {
        const int j = (int)(at % (size_t)n), i = (int)(at / (size_t)n % (size_t)m);
        const double *left = a->v + at / (size_t)n / (size_t)m * (size_t)m * (size_t)k;
        const double *right = b->v + at / (size_t)n / (size_t)m * (size_t)k * (size_t)n;

        for (int l = 0; l < k; l++) {
            const double term = left[across_a ? l * m + i : i * k + l] *
                                right[across_b ? j * k + l : l * n + j];

            r->y.v[at] += term;
            r->y.mag[at] += fabs(term);
        }
    }
}

static const struct check_case cases[] = {
    { "matmul", "3x4 4x5" },
    { "matmul", "2x3x4 2x4x5" },
    { "matmul transpose_b=true", "2x3x7x4 2x3x5x4" },
    { "matmul transpose_a=true", "2x4x3 2x4x5" },
    { "matmul transpose_a=true transpose_b=true", "2x2x4x3 2x2x5x4" },
    { "matmul", "2x40x17 2x17x37" },
    { "matmul transpose_b=true", "35x33 34x33" },
    { "matmul", "2x3x4 2x4x5", .no_gradient = 1 },
    { "matmul transpose_a=true", "2x4x3 2x4x5", .no_gradient = 2 },
    { "matmul transpose_b=true", "4x6x197x64 4x6x197x64", .large = true },
    { "matmul", "4x6x197x197 4x6x197x64", .large = true },
    { "matmul", "70000x2x2 70000x2x2", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_matmul = { cases, matmul };
