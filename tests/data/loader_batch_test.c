/* The loader's hook for whole batches, and host data that examples carry. */
#include "loader_numbers.h"

#include <stdatomic.h>

static const struct pm_field with_sum[] = {
    { "images", PM_F32, { 1, { 2 } } },
    { "labels", PM_I32, { 0 } },
    { "sum", PM_I32, { 0 } },
};
static atomic_int live; /* host data that is not freed */

/* The host data of record v has v + 1 numbers v. */
static int make_host(void *ctx, const struct pm_loader_record *of, void *const *out)
{
    const int err = make(ctx, of, out);
    int32_t *numbers, v;

    if (err < 0 || !of->host)
        return err;
    v = *(int32_t *)out[1];
    numbers = malloc(((size_t)v + 1) * sizeof *numbers);
    for (int i = 0; i <= v; i++)
        numbers[i] = v;
    live++;
    *of->host = numbers;
    return PM_OK;
}

static void free_numbers(void *host)
{
    live--;
    free(host);
}

/* Writes the sum of the labels to all examples of the batch. */
static void add_up(void *ctx, struct pm_batch *b)
{
    const int32_t *labels = b->field[1];
    int32_t *sum = b->field[2], all = 0;

    (void)ctx;
    for (int i = 0; i < b->valid; i++)
        all += labels[i];
    for (int i = 0; i < b->examples; i++)
        sum[i] = all;
}

static struct pm_loader_options summed(struct task *t, bool train, int threads)
{
    struct pm_loader_options o = options(t, train, threads, 0);

    o.fields = with_sum;
    o.fields_count = 3;
    o.make = make_host;
    o.whole_batch = add_up;
    o.free_host = train ? NULL : free_numbers;
    return o;
}

static void check_batch(const struct pm_batch *b, bool host)
{
    const int32_t *labels = b->field[1], *sum = b->field[2];
    int32_t all = 0;

    for (int i = 0; i < b->valid; i++)
        all += labels[i];
    for (int i = 0; i < b->examples; i++) {
        const int32_t *numbers = b->host[i];

        assert_int_equal(sum[i], all);
        if (!host || i >= b->valid) {
            assert_null(numbers);
            continue;
        }
        for (int k = 0; k <= labels[i]; k++)
            assert_int_equal(numbers[k], labels[i]);
    }
}

/* Every example of a batch sees all of them, also where corrupt records were removed. */
static void sums_and_host_data(void **state)
{
    struct pm_dataset *d = numbers();

    (void)state;
    for (int k = 0; k < 8; k++) {
        const bool train = k % 2;
        struct task task = { COUNT, 50, k & 4 ? 1u << 3 | 1u << 9 | 1u << 10 | 1u << 30 : 0 };
        struct pm_loader_options o = summed(&task, train, k & 2 ? 4 : 1);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;
        int seen = 0;

        o.skip_corrupt = true;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (int s = 0; s < 7; s++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            check_batch(b, !train);
            seen += b->valid;
            pm_loader_release(l, b);
        }
        assert_int_equal(seen, train ? 7 * BATCH : k & 4 ? COUNT - 4 : COUNT);
        pm_loader_destroy(&l);
        assert_int_equal(live, 0);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Host data is freed after an error and while workers are busy. */
static void freed_after_errors(void **state)
{
    struct pm_dataset *d = numbers();

    (void)state;
    for (int k = 0; k < 8; k++) {
        struct task task = { k % 2 ? 20 : COUNT, 200 };
        const struct pm_loader_options o = summed(&task, false, 1 + k % 4);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;

        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (int s = 0; s < k % 4; s++) {
            const int err = pm_loader_next(l, &b);

            if (s == 2 && k % 2)
                assert_int_equal(err, PM_EDATA);
            else
                assert_int_equal(err, PM_OK);
        }
        pm_loader_destroy(&l);
        assert_int_equal(live, 0);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_host_data),
        cmocka_unit_test(freed_after_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
