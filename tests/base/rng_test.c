/* Philox against the known answers published with Random123 (philox4x32, 10 rounds), and the
 * distributions and permutations that use it. */
#include "unit.h"

#include <pumice/rng.h>

static void known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0u, ~0u, ~0u, ~0u },
          { ~0u, ~0u },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        uint32_t out[4];
        pm_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

/* The layout of counter and key is a contract with shaders/lib/philox.glsl. */
static void stream_layout(void **state)
{
    const uint64_t seed = UINT64_C(0x1122334455667788), stream = UINT64_C(0xaabbccdd01020304);
    struct pm_rng r = pm_rng_make(seed, stream, 7, 9);
    (void)state;

    for (uint32_t block = 0; block < 3; block++) {
        const uint32_t counter[4] = { block, 9, 7, 0xaabbccdd };
        const uint32_t key[2] = { 0x55667788 ^ 0x01020304, 0x11223344 };
        uint32_t out[4];
        pm_philox(counter, key, out);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pm_rng_u32(&r), out[i]);
    }
}

/* Means of n draws. The bounds are six standard errors: a correct generator would fail once in
 * 10^9, and the seed is fixed. */
static void moments(void **state)
{
    enum { N = 200000 };
    struct pm_rng r = pm_rng_make(1, pm_hash("moments"), 0, 0);
    double u1 = 0, n1 = 0, n2 = 0, t2 = 0;
    (void)state;

    for (int i = 0; i < N; i++) {
        double u = pm_rng_uniform(&r), z = pm_rng_normal(&r), t = pm_rng_truncated(&r);
        assert_true(u >= 0 && u < 1 && (double)(float)u == u);
        assert_true(fabs(t) < 2);
        u1 += u, n1 += z, n2 += z * z, t2 += t * t;
    }
    assert_true(fabs(u1 / N - 0.5) < 6 * sqrt(1 / 12.0 / N));
    assert_true(fabs(n1 / N) < 6 / sqrt(N));
    assert_true(fabs(n2 / N - 1) < 6 * sqrt(2.0 / N));
    /* Variance of a normal distribution cut at 2: 1 - 2 * 2 phi(2) / (2 Phi(2) - 1) = 0.7737.
     * The variance of its square is below 1. */
    assert_true(fabs(t2 / N - 0.77374) < 6 / sqrt(N));
}

static void integers(void **state)
{
    struct pm_rng r = pm_rng_make(2, pm_hash("integers"), 0, 0);
    int seen[7] = { 0 };
    (void)state;

    for (int i = 0; i < 70000; i++) {
        int64_t x = pm_rng_int(&r, -3, 3);
        assert_in_range(x + 3, 0, 6);
        seen[x + 3]++;
    }
    for (int i = 0; i < 7; i++) /* 10000 expected, standard deviation 93 */
        assert_in_range(seen[i], 10000 - 6 * 93, 10000 + 6 * 93);
    assert_int_equal(pm_rng_int(&r, 5, 5), 5);
    int64_t wide = pm_rng_int(&r, INT64_MIN, INT64_MAX);
    assert_true(wide != pm_rng_int(&r, INT64_MIN, INT64_MAX));
    int64_t half = INT64_C(1) << 40;
    for (int i = 0; i < 1000; i++) {
        int64_t x = pm_rng_int(&r, 0, half);
        assert_true(x >= 0 && x <= half);
    }
}

static void permutations(void **state)
{
    static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 16, 17, 63, 100, 1000, 4097, 60000 };
    (void)state;

    for (size_t k = 0; k < PM_COUNT(sizes); k++) {
        uint64_t n = sizes[k];
        char *seen = pm_calloc(n, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t p = pm_permute(5, 3, n, i);
            assert_true(p < n);
            assert_int_equal(seen[p], 0);
            seen[p] = 1;
        }
        pm_free(seen);
    }
    uint64_t large = UINT64_C(1) << 62;
    assert_true(pm_permute(5, 3, large, large - 1) < large);
}

/* Another epoch or seed gives another order. Two random orders of 1000 agree in one place on
 * average; the chance of more than 20 is below 10^-18. */
static void permutations_differ(void **state)
{
    int by_epoch = 0, by_seed = 0, fixed = 0;
    (void)state;

    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t p = pm_permute(5, 0, 1000, i);
        by_epoch += p == pm_permute(5, 1, 1000, i);
        by_seed += p == pm_permute(6, 0, 1000, i);
        fixed += p == i;
    }
    assert_in_range(by_epoch, 0, 20);
    assert_in_range(by_seed, 0, 20);
    assert_in_range(fixed, 0, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers), cmocka_unit_test(stream_layout),
        cmocka_unit_test(moments),       cmocka_unit_test(integers),
        cmocka_unit_test(permutations),  cmocka_unit_test(permutations_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
