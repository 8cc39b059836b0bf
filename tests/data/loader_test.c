/* The loader: the contents of a batch depend only on its number, for any number of threads. */
#include "loader_numbers.h"

#include <pthread.h>
#include <unistd.h>

struct taken {
    float images[40][BATCH][2];
    int32_t labels[40][BATCH];
    uint64_t record[40][BATCH];
};

static void take_steps(struct pm_dataset *d, int threads, uint64_t first, uint64_t end,
                       struct taken *t)
{
    struct task task = { COUNT, 200 };
    const struct pm_loader_options o = options(&task, true, threads, first);
    struct pm_loader *l = NULL;

    memset(t, 0, sizeof *t);
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    for (uint64_t s = first; s < end; s++) {
        struct pm_batch *b = NULL;
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        assert_non_null(b);
        assert_int_equal(b->step, s);
        assert_int_equal(b->valid, BATCH);
        memcpy(t->images[s], b->field[0], sizeof t->images[s]);
        memcpy(t->labels[s], b->field[1], sizeof t->labels[s]);
        memcpy(t->record[s], b->record, sizeof t->record[s]);
        pm_loader_release(l, b);
    }
    assert_true(pm_loader_waited(l) >= 0);
    pm_loader_destroy(&l);
    assert_null(l);
}

/* Draws numbers 3, 5, 7, ..., five of them, slowly, and never from two threads at once. */
struct drawing {
    pthread_mutex_t lock;
    int count;
    bool together;
};

static bool draw_number(void *ctx, uint64_t *step)
{
    struct drawing *d = ctx;

    if (pthread_mutex_trylock(&d->lock) != 0) {
        d->together = true;
        return false;
    }
    usleep(500);
    *step = 3 + 2 * (uint64_t)d->count;
    pthread_mutex_unlock(&d->lock);
    return d->count++ < 5;
}

/* Drawn batches have the content of their numbers, and the loader ends after the last. */
static void drawn_numbers(void **state)
{
    struct pm_dataset *d = numbers();
    struct taken *whole = pm_calloc(1, sizeof *whole);
    struct pm_batch *b = NULL;

    (void)state;
    take_steps(d, 2, 0, 13, whole);
    for (int threads = 1; threads <= 5; threads += 2) {
        struct drawing drawing = { .lock = PTHREAD_MUTEX_INITIALIZER };
        struct task task = { COUNT, 200 };
        struct pm_loader_options o = options(&task, true, threads, 0);
        struct pm_loader *l = NULL;

        o.draw = draw_number;
        o.draw_ctx = &drawing;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (uint64_t s = 3; s < 13; s += 2) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            assert_int_equal(b->step, s);
            assert_memory_equal(b->field[0], whole->images[s], sizeof whole->images[s]);
            assert_memory_equal(b->record, whole->record[s], sizeof whole->record[s]);
            pm_loader_release(l, b);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            assert_null(b);
        }
        pm_loader_destroy(&l);
        assert_int_equal(drawing.count, 6);
        assert_false(drawing.together);
    }
    pm_free(whole);
    pm_dataset_close(&d);
    scratch_remove();
}

/* Three slots: while two batches are in use and the third is requested, at most one can be
 * ready. */
static void fill_of_the_ring(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0 };
    const struct pm_loader_options o = options(&task, true, 2, 0);
    struct pm_batch *b[3];
    struct pm_loader *l = NULL;

    (void)state;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    assert_int_equal(pm_loader_ring(l), 3);
    assert_true(pm_loader_fill(l) == 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pm_loader_next(l, &b[i]), PM_OK);
    const double fill = pm_loader_fill(l);
    assert_true(fill >= 0 && fill <= (3 + 2 + 1) / 9.0);
    assert_true(pm_loader_fill(l) == fill); /* no batch was taken since */
    for (int i = 0; i < 3; i++)
        pm_loader_release(l, b[i]);
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

static void same_for_any_threads(void **state)
{
    struct pm_dataset *d = numbers();
    struct taken *one = malloc(sizeof *one), *four = malloc(sizeof *four);
    int seen[COUNT] = { 0 };

    (void)state;
    take_steps(d, 1, 0, 40, one);
    take_steps(d, 4, 0, 40, four);
    assert_memory_equal(one, four, sizeof *one);
    /* Starting in the middle gives the same batches from there on. */
    take_steps(d, 3, 17, 40, four);
    assert_memory_equal(one->images[17], four->images[17], 23 * sizeof one->images[0]);
    assert_memory_equal(one->record[17], four->record[17], 23 * sizeof one->record[0]);
    /* Each epoch of 53 holds every record once, although batches cross its end. Orders differ. */
    int same = 0;
    for (int g = 0; g < 40 * BATCH; g++) {
        const int32_t v = one->labels[g / BATCH][g % BATCH];
        assert_int_equal(one->record[g / BATCH][g % BATCH], v);
        assert_int_equal(seen[v], g / COUNT);
        seen[v]++;
        if (g >= COUNT && one->labels[(g - COUNT) / BATCH][(g - COUNT) % BATCH] == v)
            same++;
    }
    assert_true(same < 40);
    free(one);
    free(four);
    pm_dataset_close(&d);
    scratch_remove();
}

static void eval_pass(void **state)
{
    struct pm_dataset *d = numbers();

    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        struct task task = { COUNT, 100 };
        const struct pm_loader_options o = options(&task, false, threads, 0);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;
        int32_t next = 0;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        assert_int_equal(pm_loader_batches(l), 7);
        for (int s = 0; s < 7; s++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            assert_int_equal(b->valid, s < 6 ? BATCH : COUNT - 6 * BATCH);
            for (int i = 0; i < BATCH; i++) {
                const int32_t v = ((const int32_t *)b->field[1])[i];
                assert_int_equal(v, i < b->valid ? next++ : 0);
            }
            pm_loader_release(l, b);
        }
        assert_int_equal(next, COUNT);
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        assert_null(b);
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        assert_null(b);
        pm_loader_destroy(&l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Record 20 is example 4 of batch 2. The batches around it are complete, and the error names the
 * record. */
static void error_at_its_batch(void **state)
{
    struct pm_dataset *d = numbers();

    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        struct task task = { 20, 100 };
        const struct pm_loader_options o = options(&task, false, threads, 0);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (int s = 0; s < 7; s++) {
            if (s == 2) {
                assert_fails(pm_loader_next(l, &b), PM_EDATA, "record 20 (offset 400)",
                             "number 20 is bad");
                assert_null(b);
                continue;
            }
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            assert_int_equal(b->step, s);
            pm_loader_release(l, b);
        }
        pm_loader_destroy(&l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Several batches in use at once, released in another order. */
static void held_batches(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0 };
    const struct pm_loader_options o = options(&task, true, 2, 0);
    struct pm_loader *l = NULL;
    struct pm_batch *b[3] = { NULL };

    (void)state;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < 3; k++) {
            assert_int_equal(pm_loader_next(l, &b[k]), PM_OK);
            assert_int_equal(b[k]->step, 3 * round + k);
        }
        for (int k = 0; k < 3; k++)
            pm_loader_release(l, b[(k + round) % 3]);
    }
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

/* After all slots and buffers exist, batches allocate nothing. */
static void steady_state(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0 };
    const struct pm_loader_options o = options(&task, true, 1, 0);
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;
    uint64_t before = 0;

    (void)state;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    for (int s = 0; s < 60; s++) {
        if (s == 5)
            before = pm_alloc_count();
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        pm_loader_release(l, b);
    }
    assert_int_equal(pm_alloc_count(), before);
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

static void destroyed_while_busy(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 300 };

    (void)state;
    for (int k = 0; k < 12; k++) {
        const struct pm_loader_options o = options(&task, k % 2 == 0, 1 + k % 4, (uint64_t)k % 5);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (int s = 0; s < k % 3; s++)
            assert_int_equal(pm_loader_next(l, &b), PM_OK); /* this batch is not released */
        pm_loader_destroy(&l);
        assert_null(l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Training without shuffling uses the files' order in each epoch, from any first step. */
static void in_order(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 100 };

    (void)state;
    for (uint64_t first = 0; first <= 5; first += 5) {
        struct pm_loader_options o = options(&task, true, 3, first);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;
        o.in_order = true;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (uint64_t s = first; s < 15; s++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            for (uint64_t i = 0; i < BATCH; i++)
                assert_int_equal(((const int32_t *)b->field[1])[i], (s * BATCH + i) % COUNT);
            pm_loader_release(l, b);
        }
        pm_loader_destroy(&l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Every fifth of 53 records: 0, 5 ... 50; in training each occurs once in an epoch. */
static void sampled(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0 };
    struct pm_loader_options o = options(&task, true, 2, 0);
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;
    int seen[COUNT] = { 0 };

    (void)state;
    pm_dataset_sample(d, 5);
    assert_int_equal(pm_dataset_get_info(d)->count, 11);
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    for (int s = 0; s < 11; s++) { /* 8 epochs of 11 records */
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        for (int i = 0; i < BATCH; i++)
            seen[((const int32_t *)b->field[1])[i]]++;
        pm_loader_release(l, b);
    }
    for (int k = 0; k < COUNT; k++)
        assert_int_equal(seen[k], k % 5 == 0 ? 8 : 0);
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

/* Loaders of two slices give the same bytes as a loader of the whole batch: in training with
 * damaged records, and in evaluation, where the second slice of the last batch is empty. */
static void slices_make_the_whole(void **state)
{
    enum { SLICES = 2, LEFT = 5, STEPS = 20 };
    static const struct pm_batch_slice slice[SLICES] = { { 0, LEFT }, { LEFT, BATCH - LEFT } };
    struct pm_dataset *d = numbers();

    (void)state;
    for (int train = 0; train < 2; train++) {
        struct task task = { COUNT, 100, train ? 0x10030000000822 : 0 };
        struct pm_loader_options o = options(&task, train, 3, 0);
        struct pm_loader *whole = NULL, *part[SLICES] = { NULL };

        o.skip_corrupt = true;
        assert_int_equal(pm_loader_create(d, &o, &whole), PM_OK);
        for (int k = 0; k < SLICES; k++) {
            o.slice = slice[k];
            assert_int_equal(pm_loader_create(d, &o, &part[k]), PM_OK);
        }
        for (uint64_t s = 0; s < (train ? STEPS : pm_loader_batches(whole)); s++) {
            struct pm_batch *all, *b;
            int valid = 0, skipped = 0;

            assert_int_equal(pm_loader_next(whole, &all), PM_OK);
            for (int k = 0; k < SLICES; k++) {
                const size_t at = (size_t)slice[k].first, n = (size_t)slice[k].count;

                assert_int_equal(pm_loader_next(part[k], &b), PM_OK);
                assert_int_equal(b->step, s);
                assert_memory_equal(b->field[0], (float *)all->field[0] + 2 * at,
                                    2 * n * sizeof(float));
                assert_memory_equal(b->field[1], (int32_t *)all->field[1] + at,
                                    n * sizeof(int32_t));
                assert_memory_equal(b->record, all->record + at, n * sizeof *b->record);
                valid += b->valid;
                skipped += b->skipped;
                pm_loader_release(part[k], b);
            }
            assert_int_equal(valid, all->valid);
            assert_int_equal(skipped, all->skipped);
            pm_loader_release(whole, all);
        }
        pm_loader_destroy(&whole);
        for (int k = 0; k < SLICES; k++)
            pm_loader_destroy(&part[k]);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* In training the next records of the epoch's order replace damaged ones, for any number of
 * threads and any first step. */
static void damaged_in_training(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 100, 0x10030000000822 };
    uint64_t order[COUNT], expected[20][BATCH];
    int skipped[20] = { 0 };

    (void)state;
    for (uint64_t g = 0; g < 20 * BATCH; g++) {
        for (uint64_t k = 0; k < COUNT; k++)
            order[k] = pm_permute(7, g / COUNT, COUNT, k);
        uint64_t place = g % COUNT;
        for (; task.damaged >> order[place] & 1; place = (place + 1) % COUNT)
            skipped[g / BATCH]++;
        expected[g / BATCH][g % BATCH] = order[place];
    }
    for (uint64_t first = 0; first <= 11; first += 11) {
        struct pm_loader_options o = options(&task, true, first ? 4 : 1, first);
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;
        o.skip_corrupt = true;
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (uint64_t s = first; s < 20; s++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            assert_int_equal(b->skipped, skipped[s]);
            for (int i = 0; i < BATCH; i++) {
                assert_int_equal(((const int32_t *)b->field[1])[i], expected[s][i]);
                assert_int_equal(b->record[i], expected[s][i]);
            }
            pm_loader_release(l, b);
        }
        pm_loader_destroy(&l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* In evaluation damaged records leave no gap: the valid examples come first, the rest is zero. */
static void damaged_in_evaluation(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 100, 0x100000000002ff };
    struct pm_loader_options o = options(&task, false, 3, 0);
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;
    uint32_t next = 0;
    int skipped = 0;

    (void)state;
    o.skip_corrupt = true;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    for (int s = 0; s < 7; s++) {
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        assert_int_equal(b->valid, s == 0 ? 0 : s == 1 ? BATCH - 1 : s < 6 ? BATCH : 4);
        for (int i = 0; i < BATCH; i++) {
            for (; i < b->valid && task.damaged >> next & 1; next++)
                ;
            const float *image = (const float *)b->field[0] + 2 * i;
            assert_int_equal(((const int32_t *)b->field[1])[i], i < b->valid ? next : 0);
            assert_int_equal((int)image[0], i < b->valid ? next : 0);
            assert_true(i >= b->valid || b->record[i] == next);
            next += i < b->valid;
        }
        skipped += b->skipped;
        pm_loader_release(l, b);
    }
    assert_int_equal(skipped, __builtin_popcountll(task.damaged));
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

/* Without the policy the first damaged record stops the loader; the message names the policy.
 * When all records are damaged, training stops, too. */
static void damaged_all(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, UINT64_MAX };
    struct pm_loader_options o = options(&task, true, 2, 0);
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;

    (void)state;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    assert_fails(pm_loader_next(l, &b), PM_ECORRUPT, "is damaged", "(offset", "data.on_corrupt");
    pm_loader_destroy(&l);
    o.skip_corrupt = true;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    assert_fails(pm_loader_next(l, &b), PM_EDATA, "53 consecutive records are damaged", "(offset");
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fill_of_the_ring),
        cmocka_unit_test(same_for_any_threads), cmocka_unit_test(eval_pass),
        cmocka_unit_test(error_at_its_batch),   cmocka_unit_test(held_batches),
        cmocka_unit_test(steady_state),         cmocka_unit_test(destroyed_while_busy),
        cmocka_unit_test(drawn_numbers),
        cmocka_unit_test(damaged_in_training),  cmocka_unit_test(damaged_in_evaluation),
        cmocka_unit_test(damaged_all),          cmocka_unit_test(in_order),
        cmocka_unit_test(sampled),              cmocka_unit_test(slices_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
