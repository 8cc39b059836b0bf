/* The loader with frames that must hold every batch (options.hold): the smallest frame, ties, the
 * same frame for any threads, slice and first step, errors that name the records, and records that
 * replace corrupt ones. */
#include "loader_numbers.h"

enum { STEPS = 40 };

/* Number v needs 2 x 3, 3 x 2, 1 x 1 or 2 x 2, by v % 4. Its header is not damaged. */
static struct pm_frame need_of(uint64_t v)
{
    static const struct pm_frame needs[] = { { 2, 3 }, { 3, 2 }, { 1, 1 }, { 2, 2 } };

    return needs[v % 4];
}

static int frame_of(void *ctx, const struct pm_loader_record *r, struct pm_frame *out)
{
    uint32_t v;

    (void)ctx;
    memcpy(&v, r->bytes, 4);
    *out = need_of(v);
    return PM_OK;
}

static void fields_of(void *ctx, struct pm_frame frame, struct pm_field_list *out)
{
    (void)ctx;
    pm_field_add(out, (struct pm_field){ "images", PM_F32,
                                         PM_SHAPE3(frame.height, frame.width, 2) });
    pm_field_add(out, fields[1]);
}

/* Checks that the batch's frame holds the record, as making a picture would. */
static int make_held(void *ctx, const struct pm_loader_record *r, void *const *out)
{
    const int err = make(ctx, r, out);

    if (err < 0)
        return err;
    const struct pm_frame need = need_of((uint64_t)*(const int32_t *)out[1]);
    if (need.height > r->frame.height || need.width > r->frame.width)
        return pm_fail(PM_EFAIL, "a record is larger than the frame");
    return PM_OK;
}

static struct pm_loader_options held(struct task *t, int batch, const struct pm_frame *frames,
                                     int count, int threads)
{
    struct pm_loader_options o = options(t, true, threads, 0);

    o.batch = batch;
    o.frame = frames[0];
    o.frames = frames;
    o.frames_count = count;
    o.hold = true;
    o.frame_of = frame_of;
    o.fields_of = fields_of;
    o.make = make_held;
    o.skip_corrupt = true;
    return o;
}

static struct pm_loader *opened(struct pm_dataset *d, const struct pm_loader_options *o)
{
    struct pm_loader *l = NULL;

    assert_int_equal(pm_loader_create(d, o, &l), PM_OK);
    return l;
}

/* Takes the next batch and returns its frame. */
static struct pm_frame next_frame(struct pm_loader *l)
{
    struct pm_batch *b = NULL;

    if (pm_loader_next(l, &b) < 0)
        fail_msg("%s", pm_error_text());
    const struct pm_frame f = b->frame;
    assert_int_equal(b->fields[0].shape.dim[0], f.height);
    assert_int_equal(b->fields[0].shape.dim[1], f.width);
    pm_loader_release(l, b);
    return f;
}

static void assert_frame(struct pm_frame f, int height, int width)
{
    assert_int_equal(f.height, height);
    assert_int_equal(f.width, width);
}

/* The frame by hand: the records of the batch together are at most 2 high, 2 wide, or neither. */
static struct pm_frame by_hand(const struct pm_batch *b)
{
    bool tall = false, wide = false;

    for (int i = 0; i < b->valid; i++) {
        tall |= b->record[i] % 4 == 1;
        wide |= b->record[i] % 4 == 0;
    }
    return (struct pm_frame){ tall ? 3 : 2, wide ? 3 : 2 };
}

/* Portraits and landscapes, alone and in one batch. Slices of the batch, more threads and a later
 * first step give the same frames. */
static void settled(void **state)
{
    static const struct pm_frame all[] = { { 3, 3 }, { 2, 2 }, { 2, 3 }, { 3, 2 } };
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 100, 0 };
    struct pm_frame want[STEPS];
    int seen[4] = { 0 };

    (void)state;
    for (int way = 0; way < 5; way++) {
        struct pm_loader_options o = held(&task, 2, all, 4, way == 0 ? 1 : 4);
        const int first = way == 4 ? 17 : 0;
        struct pm_batch *b = NULL;

        o.first_step = (uint64_t)first;
        if (way == 2 || way == 3)
            o.slice = (struct pm_batch_slice){ way - 2, 1 };
        struct pm_loader *l = opened(d, &o);
        for (int s = first; s < STEPS; s++) {
            assert_int_equal(pm_loader_next(l, &b), PM_OK);
            if (way == 0) {
                want[s] = by_hand(b);
                seen[(want[s].height - 2) * 2 + want[s].width - 2]++;
            }
            assert_frame(b->frame, want[s].height, want[s].width);
            pm_loader_release(l, b);
        }
        pm_loader_destroy(&l);
    }
    for (int k = 0; k < 4; k++)
        assert_true(seen[k] > 0);
    pm_dataset_close(&d);
    scratch_remove();
}

/* Of frames with the same number of pixels the first in the list is taken, of all that hold the
 * batch. A record alone takes the frame of its own size. */
static void ties(void **state)
{
    static const struct pm_frame lists[2][3] = { { { 3, 3 }, { 2, 3 }, { 3, 2 } },
                                                 { { 3, 3 }, { 3, 2 }, { 2, 3 } } };
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, 0 };

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct pm_loader_options o = held(&task, 1, lists[k], 3, 2);

        o.in_order = true;
        struct pm_loader *l = opened(d, &o);
        for (int turn = 0; turn < 3; turn++) {
            assert_frame(next_frame(l), 2, 3);
            assert_frame(next_frame(l), 3, 2);
            assert_frame(next_frame(l), k ? 3 : 2, k ? 2 : 3); /* 1 x 1 */
            assert_frame(next_frame(l), k ? 3 : 2, k ? 2 : 3); /* 2 x 2 */
        }
        pm_loader_destroy(&l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Returns the step at which the loader fails; the message is the thread's. */
static int failing_step(struct pm_loader *l)
{
    struct pm_batch *b = NULL;

    for (int s = 0; s < STEPS; s++) {
        const int err = pm_loader_next(l, &b);

        if (err < 0) {
            assert_int_equal(err, PM_EDATA);
            return s;
        }
        pm_loader_release(l, b);
    }
    fail_msg("no batch failed");
    return -1;
}

/* The first step with a batch that `bad` refuses, from the records of a loader that holds all. */
static int first_bad(struct pm_dataset *d, struct task *t, bool (*bad)(const struct pm_batch *b))
{
    static const struct pm_frame large = { 3, 3 };
    const struct pm_loader_options o = held(t, 2, &large, 1, 1);
    struct pm_loader *l = opened(d, &o);
    struct pm_batch *b = NULL;
    int at = -1;

    for (int s = 0; s < STEPS && at < 0; s++) {
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        at = bad(b) ? s : -1;
        pm_loader_release(l, b);
    }
    pm_loader_destroy(&l);
    return at;
}

static bool has_wide(const struct pm_batch *b)
{
    return by_hand(b).width == 3;
}

static bool has_both(const struct pm_batch *b)
{
    return by_hand(b).width == 3 && by_hand(b).height == 3;
}

/* Every slice and any number of threads fails at the same step with the same message. */
static void check_failure(struct pm_dataset *d, const struct pm_frame *frames, int want,
                          const char *const messages[3])
{
    struct task task = { COUNT, 0, 0 };
    char first[1024];

    assert_true(want > 0);
    for (int way = 0; way < 4; way++) {
        struct pm_loader_options o = held(&task, 2, frames, 2, way == 0 ? 1 : 4);

        if (way > 1)
            o.slice = (struct pm_batch_slice){ way - 2, 1 };
        struct pm_loader *l = opened(d, &o);
        assert_int_equal(failing_step(l), want);
        if (way == 0)
            snprintf(first, sizeof first, "%s", pm_error_text());
        assert_string_equal(pm_error_text(), first);
        for (int k = 0; k < 3; k++)
            assert_contains(first, messages[k]);
        pm_loader_destroy(&l);
    }
}

static void none_holds_a_record(void **state)
{
    static const struct pm_frame frames[] = { { 2, 2 }, { 3, 2 } };
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, 0 };

    (void)state;
    check_failure(d, frames, first_bad(d, &task, has_wide),
                  (const char *const[]){ "n_train.tfrecord record ",
                                         ": the picture is 2 x 3 when resized, which no size of "
                                         "input.buckets holds; the largest is 3 x 2",
                                         "add [2, 3] to input.buckets" });
    pm_dataset_close(&d);
    scratch_remove();
}

static void none_holds_a_batch(void **state)
{
    static const struct pm_frame frames[] = { { 2, 3 }, { 3, 2 } };
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, 0 };

    (void)state;
    check_failure(d, frames, first_bad(d, &task, has_both),
                  (const char *const[]){ ", which is 3 x 2 when resized, and ",
                                         ", which is 2 x 3; the largest is 2 x 3",
                                         "add [3, 3] to input.buckets, or set run.batch_size=1" });
    /* alone each record has a frame */
    const struct pm_loader_options o = held(&task, 1, frames, 2, 2);
    struct pm_loader *l = opened(d, &o);
    for (int s = 0; s < STEPS; s++)
        next_frame(l);
    pm_loader_destroy(&l);
    pm_dataset_close(&d);
    scratch_remove();
}

/* Record 0 is 2 x 3, and its pixels are damaged. The frame does not hold record 1, so record 2
 * replaces it; without hold it is record 1. */
static void replaced(void **state)
{
    static const struct pm_frame frames[] = { { 2, 3 }, { 3, 2 } };
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, 1 };

    (void)state;
    for (int hold = 0; hold < 2; hold++) {
        struct pm_loader_options o = held(&task, 1, frames, 2, 1);
        struct pm_batch *b = NULL;

        o.in_order = true;
        o.hold = hold;
        o.make = hold ? make_held : make;
        struct pm_loader *l = opened(d, &o);
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        assert_frame(b->frame, 2, 3);
        assert_int_equal(b->record[0], hold ? 2 : 1);
        assert_int_equal(b->skipped, 1);
        pm_loader_release(l, b);
        pm_loader_destroy(&l);
    }
    task.damaged = UINT64_C(0xffffffffffffffff); /* no record is left */
    for (int hold = 0; hold < 2; hold++) { /* of 53 records, 13 do not fit into 2 x 3 */
        struct pm_loader_options o = held(&task, 1, frames, 2, 1);

        o.in_order = true;
        o.hold = hold;
        struct pm_loader *l = opened(d, &o);
        assert_int_equal(failing_step(l), 0);
        assert_contains(pm_error_text(), hold ? " is damaged, and so are 39 of the next 52 records"
                                              : "53 consecutive records are damaged");
        pm_loader_destroy(&l);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Number 2 needs 1 x 1, all others 2 x 3. */
static int frame_of_one(void *ctx, const struct pm_loader_record *r, struct pm_frame *out)
{
    uint32_t v;

    (void)ctx;
    memcpy(&v, r->bytes, 4);
    *out = v == 2 ? (struct pm_frame){ 1, 1 } : (struct pm_frame){ 2, 3 };
    return PM_OK;
}

/* Returns the message of the first batch, which fails. */
static const char *failure(struct pm_dataset *d, const struct pm_loader_options *o)
{
    struct pm_loader *l = opened(d, o);

    assert_int_equal(failing_step(l), 0);
    pm_loader_destroy(&l);
    return pm_error_text();
}

/* Records that the frame does not hold are not counted as damaged. Numbers 2, 6, 10, ... fit into
 * 1 x 1, the frame of the batch; with frame_of_one only number 2. */
static void none_fits(void **state)
{
    static const struct pm_frame frames[] = { { 3, 3 }, { 1, 1 } };
    struct pm_dataset *d = numbers();
    struct task task = { COUNT, 0, 0 };
    struct pm_loader_options o = held(&task, 1, frames, 2, 1);

    (void)state;
    o.in_order = true;
    o.first_step = 2;
    for (int v = 2; v < COUNT; v += 4) /* all that fit */
        task.damaged |= UINT64_C(1) << v;
    assert_contains(failure(d, &o), "n_train.tfrecord record 2");
    assert_contains(pm_error_text(), " is damaged, and so are 12 of the next 52 records; none of "
                                     "the others fits the batch's size of 1 x 1 (input.buckets)");
    task.damaged = 4;
    o.frame_of = frame_of_one;
    assert_contains(failure(d, &o), "n_train.tfrecord record 2");
    assert_contains(pm_error_text(), " is damaged, and none of the next 52 records fits the "
                                     "batch's size of 1 x 1 (input.buckets)");
    pm_dataset_close(&d);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settled),
        cmocka_unit_test(ties),
        cmocka_unit_test(none_holds_a_record),
        cmocka_unit_test(none_holds_a_batch),
        cmocka_unit_test(replaced),
        cmocka_unit_test(none_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
