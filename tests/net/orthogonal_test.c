/* Initial values of the kind orthogonal: orthonormal rows or columns, drawn like any other. */
#include <pumice/net.h>
#include <pumice/plan.h>
#include <pumice/thread.h>

#include <math.h>
#include <stdlib.h>

#include "base/unit.h"

static float *drawn(struct pm_shape shape, float factor, const char *name, uint64_t seed)
{
    const struct pm_variable v = { .name = name, .shape = shape,
                                   .init = { .kind = PM_INIT_ORTHOGONAL, .a = factor } };
    float *w = malloc(pm_shape_count(shape) * sizeof *w);

    assert_int_equal(pm_variable_initial(&v, seed, w), PM_OK);
    return w;
}

/* The product of vectors i and j: rows of a wide matrix, columns of another. */
static double product(const float *w, int rows, int columns, int i, int j)
{
    const bool wide = columns > rows;
    double sum = 0;

    for (int k = 0; k < (wide ? columns : rows); k++)
        sum += (double)w[wide ? i * columns + k : k * columns + i] *
               (double)w[wide ? j * columns + k : k * columns + j];
    return sum;
}

/* Each number is rounded to float32 once, so a product of two vectors of length 1 is off by at most
 * 2 x 2^-25 of the sum of the terms' sizes, which is at most 1. The double numbers are off by less
 * than 1e-12. */
static void expect_orthonormal(struct pm_shape shape, int rows, int columns, float factor)
{
    float *w = drawn(shape, factor, "lstm/kernel", 7);
    const int vectors = rows < columns ? rows : columns;

    for (int i = 0; i < vectors; i++)
        for (int j = 0; j <= i; j++)
            assert_float_equal(product(w, rows, columns, i, j),
                               i == j ? (double)(factor * factor) : 0,
                               0x1p-24 * (double)(factor * factor) + 1e-12);
    free(w);
}

static void test_orthonormal(void **state)
{
    (void)state;
    expect_orthonormal(PM_SHAPE2(7, 7), 7, 7, 1);
    expect_orthonormal(PM_SHAPE2(30, 11), 30, 11, 1);
    expect_orthonormal(PM_SHAPE2(11, 30), 11, 30, 1);
    expect_orthonormal(PM_SHAPE2(96, 128), 96, 128, 0.5f);
    expect_orthonormal(PM_SHAPE2(200, 200), 200, 200, 1);
    expect_orthonormal(PM_SHAPE4(3, 3, 4, 8), 36, 8, 2);
    expect_orthonormal(PM_SHAPE1(9), 1, 9, 1);
    expect_orthonormal(PM_SHAPE2(1, 1), 1, 1, 1);
}

/* Matrices of 2 x 2 are turns and mirrorings by uniform angles. Of 4,000, half are mirrorings and a
 * quarter have their first column in each quadrant; 200 and 170 are more than 6 standard deviations
 * of these counts. */
static void test_uniform(void **state)
{
    enum { MATRICES = 4000 };
    int mirrored = 0, quadrant[4] = { 0 };

    (void)state;
    for (int i = 0; i < MATRICES; i++) {
        float *w = drawn(PM_SHAPE2(2, 2), 1, "w", (uint64_t)i);

        mirrored += w[0] * w[3] - w[1] * w[2] < 0;
        quadrant[(w[0] < 0) + 2 * (w[2] < 0)]++;
        free(w);
    }
    assert_true(abs(mirrored - MATRICES / 2) < 200);
    for (int k = 0; k < 4; k++)
        assert_true(abs(quadrant[k] - MATRICES / 4) < 170);
}

/* Threads change no bit; other names and seeds give other numbers. */
static void test_draws(void **state)
{
    enum { BYTES = 100 * 80 * sizeof(float) };
    const struct pm_shape shape = PM_SHAPE2(100, 80);
    float *a = drawn(shape, 1, "a", 1), *b = drawn(shape, 1, "b", 1), *c = drawn(shape, 1, "a", 2);
    const int threads = pm_threads();

    (void)state;
    assert_true(memcmp(a, b, BYTES) != 0 && memcmp(a, c, BYTES) != 0);
    for (int n = 1; n <= 3; n += 2) {
        pm_threads_set(n);
        free(b);
        b = drawn(shape, 1, "a", 1);
        assert_memory_equal(a, b, BYTES);
    }
    pm_threads_set(threads);
    free(a);
    free(b);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orthonormal),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_draws),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
