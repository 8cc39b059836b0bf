/* Examples of several records: the same batches for any number of threads and any first step; a
 * corrupt second record is replaced and counted, or stops the loader, as the policy says; the
 * records of an example belong to one part of joined datasets. */
#include "loader_numbers.h"

/* The second record of an example: a function of step and example. */
static uint64_t second_of(uint64_t step, uint32_t example)
{
    return (step * 7 + example * 3) % COUNT;
}

static int add_number(void *ctx, const struct pm_loader_record *other)
{
    const struct task *t = ((void **)ctx)[0];
    float *sum = ((void **)ctx)[1];
    uint32_t v = 0;

    assert_int_equal(other->size, 4);
    assert_null(other->host);
    memcpy(&v, other->bytes, 4);
    if (t->damaged >> v & 1)
        return pm_fail(PM_ECORRUPT, "%s: number %u is damaged", other->where, v);
    *sum += 100 * (float)v;
    return PM_OK;
}

static int make_two(void *ctx, const struct pm_loader_record *of, void *const *out)
{
    void *both[2] = { ctx, out[0] };
    uint32_t v = 0;

    memcpy(&v, of->bytes, 4);
    assert_int_equal(of->records, COUNT);
    *(float *)out[0] = (float)v;
    ((float *)out[0])[1] = 0;
    *(int32_t *)out[1] = (int32_t)v;
    const int err = pm_loader_other(of, second_of(of->step, of->example), add_number, both);
    memcpy(&v, of->bytes, 4); /* the first record is still there */
    assert_int_equal(*(int32_t *)out[1], v);
    return err;
}

static void same_batches(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, UINT64_C(1) << 9 | UINT64_C(1) << 10 | UINT64_C(1) << 52 };
    int skipped = 0, expected = 0;

    (void)state;
    for (int run = 0; run < 3; run++) {
        const uint64_t first = run == 2 ? 13 : 0;
        struct pm_loader_options o = options(&task, true, run == 0 ? 1 : 4, first);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;

        o.make = make_two;
        o.skip_corrupt = true;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (uint64_t s = first; s < 30; s++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            for (uint32_t i = 0; i < BATCH; i++) {
                uint64_t other = second_of(s, i);

                for (; task.damaged >> other & 1; other = (other + 1) % COUNT)
                    expected++;
                const float have = ((const float *)b->field[0])[2 * i];
                assert_true(have == (float)(b->record[i] + 100 * other));
            }
            skipped += b->skipped;
            pm_loader_release(l, b);
        }
        pm_loader_destroy(&l);
    }
    assert_true(skipped >= expected && expected > 20);
    pm_dataset_close(&d);
    scratch_remove();
}

static void policies(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, UINT64_MAX };
    struct pm_loader_options o = options(&task, true, 2, 0);
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;

    (void)state;
    o.make = make_two;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    assert_fails(pm_loader_next(l, &b), PM_ECORRUPT, "is damaged", "record", "data.on_corrupt");
    pm_loader_destroy(&l);
    o.skip_corrupt = true;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    assert_fails(pm_loader_next(l, &b), PM_EDATA, "53 consecutive records are damaged");
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

/* ---- joined datasets ------------------------------------------------------------------------ */

enum { MORE = 5 };

static int same_part(void *ctx, const struct pm_loader_record *other)
{
    const int part = *(int *)ctx;
    uint32_t v = 0;

    memcpy(&v, other->bytes, 4);
    assert_int_equal(other->part, part);
    assert_int_equal(v >= 1000, part);
    return v == 1003 ? pm_fail(PM_ECORRUPT, "%s: damaged", other->where) : PM_OK;
}

/* Takes every record of the part as the second one; one of them is damaged. */
static int make_parts(void *ctx, const struct pm_loader_record *of, void *const *out)
{
    uint32_t v = 0;
    int part = of->part, err = PM_OK;

    (void)ctx;
    memcpy(&v, of->bytes, 4);
    memset(out[0], 0, 2 * sizeof(float));
    *(int32_t *)out[1] = (int32_t)v;
    assert_int_equal(of->records, part ? MORE : COUNT);
    for (uint64_t i = 0; i < of->records && err == PM_OK; i++)
        err = pm_loader_other(of, i, same_part, &part);
    return err;
}

static void own_part(void **state)
{
    struct pm_dataset *parts[2] = { numbers(), NULL }, *d = NULL;
    struct task task = { COUNT, 0, 0 };
    struct pm_loader_options o = options(&task, true, 2, 0);
    struct pm_tfrecord_writer *w = NULL;
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;
    int seen[2] = { 0 };

    (void)state;
    assert_int_equal(pm_tfrecord_create(in_scratch("n_more.tfrecord"), &w), PM_OK);
    for (uint32_t i = 1000; i < 1000 + MORE; i++)
        assert_int_equal(pm_tfrecord_write(w, &i, 4), PM_OK);
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
    assert_int_equal(pm_dataset_open(scratch, "more", &parts[1]), PM_OK);
    assert_int_equal(pm_dataset_join(parts, 2, &d), PM_OK);
    o.make = make_parts;
    o.skip_corrupt = true;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    for (int s = 0; s < 20; s++) {
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        for (int i = 0; i < BATCH; i++)
            seen[((const int32_t *)b->field[1])[i] >= 1000]++;
        pm_loader_release(l, b);
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_batches),
        cmocka_unit_test(policies),
        cmocka_unit_test(own_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
