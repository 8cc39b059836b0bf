/* The loader with frames: a batch holds examples of one size. Evaluation groups the records by
 * their frame; training uses the smallest frame that holds the batch. */
#include "loader_numbers.h"

/* Number v of step s needs a frame of 1 x (1 + (v + s) % 3); number 2 has no size. */
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

/* The examples of a batch follow each other; each has the width of the batch's frame. */
static void check_framed(const struct pm_batch *b)
{
    const float *image = b->field[0];

    assert_int_equal(b->fields[0].shape.dim[1], 2 * b->frame.width);
    for (int i = 0; i < b->valid; i++, image += 2 * b->frame.width * b->frame.height)
        for (int x = 0; x < b->frame.width; x++)
            assert_int_equal((int)image[2 * x], ((const int32_t *)b->field[1])[i]);
}

/* Every record occurs once, in batches of one frame each. A record without a size joins the
 * first group. */
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
    assert_int_equal(groups.list[0].frame.width, 1); /* the frame of record 0, then that of
                                                      * record 1 */
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
    assert_int_equal(skipped, 1); /* the damaged record; number 2 can be made */
    pm_loader_destroy(&l);
    pm_frame_groups_free(&groups);
    pm_dataset_close(&d);
    scratch_remove();
}

/* A group smaller than the batch has arrays of its own length. */
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

/* The frame that a training batch needs for its records. */
static int widest(const struct pm_batch *b)
{
    int most = 1;

    for (int i = 0; i < b->valid; i++) {
        const int need = 1 + (int)((b->record[i] + b->step) % 3);

        most = b->record[i] != 2 && need > most ? need : most;
    }
    return most;
}

/* Training uses the smallest frame that holds the batch, or else the largest, for any number of
 * threads, slice and first step. */
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
        cmocka_unit_test(groups_of_frames),
        cmocka_unit_test(small_groups),
        cmocka_unit_test(frames_in_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
