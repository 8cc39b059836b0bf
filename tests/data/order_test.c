/* The order of training records from several parts: shares of each batch, weights, repeated
 * records; each part has its own epochs, and any step can be computed alone. */
#include "base/unit.h"

#include <pumice/rng.h>

#include "data/order.h"

enum { BATCH = 12, MOST = 200 };

/* Counts in seen[MOST] the records of the steps first..last-1. */
static void count(struct pm_order *o, uint64_t first, uint64_t last, int *seen)
{
    memset(seen, 0, MOST * sizeof *seen);
    for (uint64_t s = first; s < last; s++)
        for (int p = 0; p < BATCH; p++) {
            const uint64_t r = pm_order_record(o, s, p, 0);
            assert_true(r < MOST);
            seen[r]++;
        }
}

static void one_part_is_the_usual_order(void **state)
{
    struct pm_order *o = pm_order_create(&(struct pm_order_part){ 35, BATCH, 0 }, 1, BATCH, 7,
                                         false);

    (void)state;
    for (uint64_t g = 0; g < 200; g++)
        assert_int_equal(pm_order_record(o, g / BATCH, (int)(g % BATCH), 0),
                         pm_permute(7, g / 35, 35, g % 35));
    pm_order_destroy(&o);
    o = pm_order_create(&(struct pm_order_part){ 35, BATCH, 0 }, 1, BATCH, 7, true);
    for (uint64_t g = 0; g < 200; g++)
        assert_int_equal(pm_order_record(o, g / BATCH, (int)(g % BATCH), 0), g % 35);
    pm_order_destroy(&o);
}

static void shares_hold_in_each_batch(void **state)
{
    const struct pm_order_part parts[] = { { 50, 3, 0 }, { 8, 8, 0 }, { 20, 1, 0 } };
    struct pm_order *o = pm_order_create(parts, 3, BATCH, 3, false);
    int seen[MOST];

    (void)state;
    for (uint64_t s = 0; s < 40; s++) {
        count(o, s, s + 1, seen);
        int sums[3] = { 0 };
        for (int r = 0; r < 78; r++)
            sums[r < 50 ? 0 : r < 58 ? 1 : 2] += seen[r];
        assert_true(sums[0] == 3 && sums[1] == 8 && sums[2] == 1);
        for (int r = 50; r < 58; r++)
            assert_int_equal(seen[r], 1); /* a batch is an epoch of this part */
    }
    count(o, 50, 100, seen); /* 150 examples of the first part are 3 of its epochs */
    for (int r = 0; r < 50; r++)
        assert_int_equal(seen[r], 3);
    count(o, 20, 40, seen);
    for (int r = 58; r < 78; r++)
        assert_int_equal(seen[r], 1);
    pm_order_destroy(&o);
}

/* A slice of the batch, as a clone has it, holds its share of each part. */
static void slices_are_mixed(void **state)
{
    const struct pm_order_part parts[] = { { 50, 6, 0 }, { 50, 6, 0 } };
    struct pm_order *o = pm_order_create(parts, 2, BATCH, 3, false);

    (void)state;
    for (int begin = 0; begin < BATCH; begin += 4) {
        int first = 0;
        for (int p = begin; p < begin + 4; p++)
            first += pm_order_record(o, 5, p, 0) < 50;
        assert_int_equal(first, 2);
    }
    pm_order_destroy(&o);
}

static void weights_hold_on_average(void **state)
{
    const struct pm_order_part parts[] = { { 30, 0, 3 }, { 10, 0, 1 } };
    struct pm_order *o = pm_order_create(parts, 2, BATCH, 11, false);
    struct pm_order *late = pm_order_create(parts, 2, BATCH, 11, false);
    int seen[MOST], number[2] = { 0 }, of_epoch[40] = { 0 };

    (void)state;
    count(o, 0, 2000, seen);
    for (int r = 0; r < 40; r++)
        number[r >= 30] += seen[r];
    /* 24,000 draws with probability 1/4: the standard deviation is 67. */
    assert_in_range(number[1], 6000 - 5 * 67, 6000 + 5 * 67);
    /* Each part has epochs of its own: a record is never ahead of another by more than one. */
    for (uint64_t g = 0; g < 2000; g++) {
        const uint64_t r = pm_order_record(o, g / BATCH, (int)(g % BATCH), 0);
        const int begin = r < 30 ? 0 : 30, end = r < 30 ? 30 : 40;

        of_epoch[r]++;
        for (int k = begin; k < end; k++)
            assert_true(of_epoch[k] >= of_epoch[r] - 1);
    }
    for (uint64_t s = 1999; s > 1900; s -= 7) /* backwards, without the steps before */
        for (int p = 0; p < BATCH; p++)
            assert_int_equal(pm_order_record(late, s, p, 0), pm_order_record(o, s, p, 0));
    pm_order_destroy(&late);
    pm_order_destroy(&o);
}

static void records_repeat(void **state)
{
    const struct pm_order_part part = { 20, BATCH, 0 };
    struct pm_order *o = pm_order_create(&part, 1, BATCH, 5, false);
    float factor[20];
    double sum = 0;
    int all[20] = { 0 };

    (void)state;
    for (int i = 0; i < 20; i++)
        sum += (double)(factor[i] = i < 10 ? 1 : 1 + 0.3f * (float)(i - 10));
    pm_order_repeat(o, 0, factor);
    const uint64_t places = pm_order_places(o);
    assert_int_equal(places, (uint64_t)ceil(sum)); /* 33.5 -> 34 */
    enum { EPOCHS = 600 };
    for (uint64_t e = 0; e < EPOCHS; e++) {
        int seen[20] = { 0 };

        for (uint64_t j = 0; j < places; j++) {
            const uint64_t g = e * places + j;
            seen[pm_order_record(o, g / BATCH, (int)(g % BATCH), 0)]++;
        }
        for (int i = 0; i < 20; i++) {
            const double scaled = (double)factor[i] * (double)places / sum;
            assert_true(seen[i] >= (int)floor(scaled) && seen[i] <= (int)ceil(scaled));
            all[i] += seen[i];
        }
    }
    /* The standard deviation of a mean over 600 epochs is at most 0.5 / sqrt(600). */
    for (int i = 0; i < 20; i++)
        assert_float_equal((double)all[i] / EPOCHS, (double)factor[i] * (double)places / sum,
                           5 * 0.5 / sqrt(EPOCHS));
    pm_order_destroy(&o);
}

/* A skipped record is replaced by others of the same part. */
static void replacements(void **state)
{
    const struct pm_order_part parts[] = { { 5, 6, 0 }, { 9, 6, 0 } };
    struct pm_order *o = pm_order_create(parts, 2, BATCH, 1, false);
    int seen[14] = { 0 };

    (void)state;
    for (uint64_t k = 0; k < 9; k++)
        seen[pm_order_record(o, 3, 1, k)]++; /* the second place is of the second part */
    for (int r = 0; r < 14; r++)
        assert_int_equal(seen[r], r >= 5);
    pm_order_destroy(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_part_is_the_usual_order), cmocka_unit_test(shares_hold_in_each_batch),
        cmocka_unit_test(slices_are_mixed),            cmocka_unit_test(weights_hold_on_average),
        cmocka_unit_test(records_repeat),              cmocka_unit_test(replacements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
