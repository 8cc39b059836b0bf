/* The loader: what a batch holds depends on its number alone, whatever the threads. */
#include "data_common.h"

enum { COUNT = 53, BATCH = 8 };

/* Record i holds the number i as four bytes. */
static struct pm_dataset *numbers(void)
{
    struct pm_tfrecord_writer *w = NULL;
    struct pm_dataset *d = NULL;

    scratch_make();
    assert_int_equal(pm_tfrecord_create(in_scratch("n_train.tfrecord"), &w), PM_OK);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(pm_tfrecord_write(w, &i, 4), PM_OK);
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    return d;
}

struct task {
    uint32_t fail_on; /* the record that is bad; none when COUNT */
    int sleep_us;     /* uneven work, so that threads overtake each other */
    uint64_t damaged; /* records, by their bits */
};

/* images: [2] the number and a draw; labels: the number. */
static int make(void *ctx, const struct pm_loader_record *of, void *const *out)
{
    const struct task *t = ctx;
    struct pm_rng r =
        pm_rng_make(of->seed, pm_hash("augmentation"), (uint32_t)of->step, of->example);
    const char *where = of->where;
    uint32_t v = 0;

    if (of->size != 4)
        return pm_fail(PM_EDATA, "%s: %zu bytes", where, of->size);
    memcpy(&v, of->bytes, 4);
    if (t->damaged >> v & 1)
        return pm_fail(PM_ECORRUPT, "%s: number %u is damaged", where, v);
    if (v == t->fail_on)
        return pm_fail(PM_EDATA, "%s: number %u is bad", where, v);
    if (t->sleep_us && v % 5 == 0)
        usleep((unsigned)(t->sleep_us * (int)(v % 7)));
    ((float *)out[0])[0] = (float)v;
    ((float *)out[0])[1] = (float)pm_rng_uniform(&r);
    *(int32_t *)out[1] = (int32_t)v;
    return PM_OK;
}

static const struct pm_field fields[] = {
    { "images", PM_F32, { 1, { 2 } } },
    { "labels", PM_I32, { 0 } },
};

static struct pm_loader_options options(struct task *t, bool train, int threads, uint64_t first)
{
    return (struct pm_loader_options){ .batch = BATCH,
                                       .train = train,
                                       .seed = 7,
                                       .first_step = first,
                                       .threads = threads,
                                       .ring = 3,
                                       .fields = fields,
                                       .fields_count = 2,
                                       .make = make,
                                       .ctx = t };
}

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

/* Three slots: when the third batch is asked for while two are out, one can be ready at most. */
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
    assert_true(pm_loader_fill(l) == fill); /* nothing was taken since */
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
    /* From the middle: the same from there on. */
    take_steps(d, 3, 17, 40, four);
    assert_memory_equal(one->images[17], four->images[17], 23 * sizeof one->images[0]);
    assert_memory_equal(one->record[17], four->record[17], 23 * sizeof one->record[0]);
    /* Each epoch of 53 holds every record once, though batches straddle them; orders differ. */
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

/* Record 20 is example 4 of batch 2; the batches around it are whole, and the error names it. */
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

/* Several batches out at once, given back in another order. */
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

/* Once every slot and buffer is made, batches cost no allocation. */
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
            assert_int_equal(pm_loader_next(l, &b), PM_OK); /* not given back */
        pm_loader_destroy(&l);
        assert_null(l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Training without shuffling: the files' order, epoch after epoch, wherever the loader begins. */
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

/* Every fifth of 53 records: 0, 5 ... 50, in training once an epoch each. */
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
    for (int s = 0; s < 11; s++) { /* 8 epochs of 11 */
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
 * damaged records, and in evaluation up to a last batch whose second slice has no example. */
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

/* Damaged ones of an epoch are replaced by what follows them in its order, whatever the threads and
 * wherever the loader begins. */
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

/* In evaluation they leave no gap: what is there is valid, the rest is zero. */
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

/* Without the policy the first one stops, and says what would not; with nothing but damage left
 * training stops too. */
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
    assert_fails(pm_loader_next(l, &b), PM_EDATA, "53 records in a row are damaged", "(offset");
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

/* ---- frames ------------------------------------------------------------------------------ */

/* Number v of step s needs a frame of 1 x (1 + (v + s) % 3); number 2 has none. */
static int frame_of(void *ctx, const struct pm_loader_record *r, struct pm_frame *out)
{
    const struct task *t = ctx;
    uint32_t v;

    memcpy(&v, r->bytes, 4);
    if (v == 2 || t->damaged >> v & 1)
        return pm_fail(PM_ECORRUPT, "number %u has no size", v);
    *out = (struct pm_frame){ 1, 1 + (int)((v + (uint32_t)r->step) % 3) };
    return PM_OK;
}

static void fields_of(void *ctx, struct pm_frame frame, struct pm_field_list *out)
{
    (void)ctx;
    pm_field_add(out, (struct pm_field){ "images", PM_F32,
                                         PM_SHAPE2(frame.height, 2 * frame.width) });
    pm_field_add(out, fields[1]);
}

static int make_framed(void *ctx, const struct pm_loader_record *r, void *const *out)
{
    const int err = make(ctx, r, out);

    for (int x = 2; x < 2 * r->frame.width && err == PM_OK; x++)
        ((float *)out[0])[x] = ((const float *)out[0])[x - 2];
    return err;
}

static struct pm_loader_options framed(struct task *t, bool train, int threads)
{
    struct pm_loader_options o = options(t, train, threads, 0);

    o.frame = (struct pm_frame){ 1, 3 };
    o.frame_of = frame_of;
    o.fields_of = fields_of;
    o.make = make_framed;
    o.skip_corrupt = true;
    return o;
}

/* All of a batch's examples lie behind each other, each as wide as the batch's frame. */
static void check_framed(const struct pm_batch *b)
{
    const float *image = b->field[0];

    assert_int_equal(b->fields[0].shape.dim[1], 2 * b->frame.width);
    for (int i = 0; i < b->valid; i++, image += 2 * b->frame.width * b->frame.height)
        for (int x = 0; x < b->frame.width; x++)
            assert_int_equal((int)image[2 * x], ((const int32_t *)b->field[1])[i]);
}

/* Every record once, in batches of one frame each; what has no frame joins the first group. */
static void groups_of_frames(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 100, 0x20 };
    struct pm_loader_options o = framed(&task, false, 3);
    struct pm_frame_groups groups;
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;
    bool seen[COUNT] = { false };
    int count = 0, skipped = 0;

    (void)state;
    pm_frame_groups_create(d, frame_of, &task, (struct pm_frame){ 9, 9 }, &groups);
    assert_int_equal(groups.count, 3);
    assert_int_equal(groups.list[0].frame.width, 1); /* of record 0, then of 1 */
    assert_int_equal(groups.list[1].frame.width, 2);
    assert_int_equal(groups.list[0].count, 18 + 2);
    assert_int_equal(groups.order[1], 2);
    o.groups = &groups;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    assert_int_equal(pm_loader_batches(l), 3 + 3 + 2);
    for (int s = 0; s < 8; s++) {
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        assert_non_null(b);
        assert_int_equal(b->frame.width, s < 3 ? 1 : s < 6 ? 2 : 3);
        assert_int_equal(b->examples, BATCH);
        check_framed(b);
        for (int i = 0; i < b->valid; i++) {
            assert_false(seen[b->record[i]]);
            seen[b->record[i]] = true;
        }
        count += b->valid;
        skipped += b->skipped;
        pm_loader_release(l, b);
    }
    assert_int_equal(pm_loader_next(l, &b), PM_OK);
    assert_null(b);
    assert_int_equal(count + skipped, COUNT);
    assert_int_equal(skipped, 1); /* number 2 can be made */
    pm_loader_destroy(&l);
    pm_frame_groups_free(&groups);
    pm_dataset_close(&d);
    scratch_remove();
}

/* A group that is smaller than the batch has arrays of its own length. */
static void small_groups(void **state)
{
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, 0 };
    struct pm_loader_options o = framed(&task, false, 2);
    struct pm_frame_group list[] = { { { 1, 3 }, 0, 3 }, { { 1, 1 }, 3, COUNT - 3 } };
    uint64_t order[COUNT];
    const struct pm_frame_groups groups = { list, 2, order };
    struct pm_loader *l = NULL;
    struct pm_batch *b = NULL;

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++)
        order[i] = COUNT - 1 - i;
    o.groups = &groups;
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    assert_int_equal(pm_loader_batches(l), 1 + 7);
    for (int s = 0; s < 8; s++) {
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        assert_int_equal(b->examples, s == 0 ? 3 : BATCH);
        assert_int_equal(b->valid, s == 0 ? 3 : s < 7 ? BATCH : 2);
        assert_int_equal(b->record[0], s == 0 ? COUNT - 1 : COUNT - 4 - (s - 1) * BATCH);
        check_framed(b);
        pm_loader_release(l, b);
    }
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

/* The frame that a training batch needs, from the records that it holds. */
static int widest(const struct pm_batch *b)
{
    int most = 1;

    for (int i = 0; i < b->valid; i++) {
        const int need = 1 + (int)((b->record[i] + b->step) % 3);

        most = b->record[i] != 2 && need > most ? need : most;
    }
    return most;
}

/* Training takes the smallest of the frames that holds a batch, else the largest, whatever the
 * threads, the slice and the first step. */
static void frames_in_training(void **state)
{
    static const struct pm_frame all[] = { { 2, 2 }, { 1, 2 }, { 1, 1 }, { 1, 3 } };
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 100, 0x3f };
    int width[30], seen[4] = { 0 };

    (void)state;
    for (int way = 0; way < 4; way++) {
        struct pm_loader_options o = framed(&task, true, way == 0 ? 1 : 4);
        const int first = way == 2 ? 13 : 0;
        struct pm_loader *l = NULL;
        struct pm_batch *b = NULL;

        o.batch = 2;
        o.frames = all;
        o.frames_count = way == 3 ? 3 : 4;
        o.first_step = (uint64_t)first;
        if (way == 1)
            o.slice = (struct pm_batch_slice){ 1, 1 };
        assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
        for (int s = first; s < 30; s++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            check_framed(b);
            if (way == 0)
                width[s] = widest(b);
            assert_int_equal(b->frame.width, way == 3 && width[s] == 3 ? 2 : width[s]);
            assert_int_equal(b->frame.height, way == 3 && width[s] == 3 ? 2 : 1);
            seen[b->frame.width]++;
            pm_loader_release(l, b);
        }
        pm_loader_destroy(&l);
    }
    assert_true(seen[1] > 0 && seen[2] > 0 && seen[3] > 0);
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
        cmocka_unit_test(damaged_in_training),  cmocka_unit_test(damaged_in_evaluation),
        cmocka_unit_test(damaged_all),          cmocka_unit_test(in_order),
        cmocka_unit_test(sampled),              cmocka_unit_test(slices_make_the_whole),
        cmocka_unit_test(groups_of_frames),     cmocka_unit_test(small_groups),
        cmocka_unit_test(frames_in_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
