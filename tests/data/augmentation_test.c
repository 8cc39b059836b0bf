/* Augmentation on threads: the batches of the classification task have the same bits for any
 * number of threads, with each preprocessing. */

#include "tasks/task_fields.h"
#include "tasks/classification/classification.h"
#include "preprocessing_common.h"

enum { PICTURES = 37, BATCH = 8, STEPS = 9, SIDE = 24, VALUES = SIDE * SIDE * 3 };

/* Pictures of many sizes, some with boxes. */
static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    static const char *const keys[4] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
                                         "image/object/bbox/ymax", "image/object/bbox/xmax" };
    struct pm_rng r = pm_rng_make(1, 2, 3, (uint32_t)i);
    struct pm_image8 im = { 30 + (int)(i * 7 % 31), 30 + (int)(i * 5 % 37), 3, NULL };
    const size_t bytes = (size_t)im.height * (size_t)im.width * 3;
    int err;

    (void)ctx;
    im.pixels = pm_malloc(bytes);
    for (size_t k = 0; k < bytes; k++)
        im.pixels[k] = (uint8_t)(pm_rng_u32(&r) >> 24);
    err = pm_making_picture(b, &im, (int64_t)i % 4);
    for (int k = 0; k < 4 && i % 3; k++)
        pm_example_add_floats(b, keys[k], &(float){ k < 2 ? 0.2f : 0.7f }, 1);
    pm_image_free(&im);
    return err;
}

static void take(struct pm_dataset *d, struct pm_task *s, int threads, float *out)
{
    struct pm_sampler sampler = { .task = s, .train = true };
    struct pm_field fields[8];
    const struct pm_task_row *task = pm_task_find("classification");
    struct pm_loader_options o = { .batch = BATCH, .train = true, .seed = 5, .threads = threads,
                                   .frame = frame_of(&s->facts, true), .fields = fields,
                                   .make = task->make, .ctx = &sampler };
    struct pm_loader *l = NULL;

    o.fields_count = fields_of(task, s, true, frame_of(&s->facts, true), fields);
    assert_int_equal(o.fields_count, 2);
    assert_int_equal(pm_loader_create(d, &o, &l), PM_OK);
    for (int step = 0; step < STEPS; step++) {
        struct pm_batch *b = NULL;
        assert_int_equal(pm_loader_next(l, &b), PM_OK);
        memcpy(out + (size_t)step * BATCH * VALUES, b->field[0], BATCH * VALUES * sizeof *out);
        pm_loader_release(l, b);
    }
    pm_loader_destroy(&l);
}

static void same_for_any_threads(void **state)
{
    static const char *const names[][2] = {
        { "cifarnet", "" }, { "vgg", "resize_side_min=24 resize_side_max=40" },
        { "inception", "fast_mode=false" }, { "inception", "" }, { "inception_trainer", "" },
        { "deeplab", "" }, { "deeplab_means", "min_resize=40 max_resize=50 resize_factor=8" },
    };
    static const int threads[] = { 1, 3, 8 };
    const size_t n = (size_t)STEPS * BATCH * VALUES;
    float *out[3] = { pm_malloc(n * 4), pm_malloc(n * 4), pm_malloc(n * 4) };
    struct pm_making *m = NULL;
    struct pm_dataset *d = NULL;

    (void)state;
    scratch_make();
    assert_int_equal(pm_making_create(in_scratch("d"), "d", false, &m), PM_OK);
    assert_int_equal(pm_making_split(m, "train", PICTURES, NULL, fill, NULL), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
    assert_int_equal(pm_dataset_open(in_scratch("d"), "train", &d), PM_OK);
    for (size_t k = 0; k < PM_COUNT(names); k++) {
        struct config c = config(names[k][0], names[k][1]);
        struct pm_task s = { .facts = { .height = SIDE,
                                        .width = SIDE,
                                        .channels = 3,
                                        .num_classes = 4,
                                        .preprocessing = c.row,
                                        .preprocessing_cfg = c.cfg } };
        for (int t = 0; t < 3; t++)
            take(d, &s, threads[t], out[t]);
        assert_memory_equal(out[0], out[1], n * 4);
        assert_memory_equal(out[0], out[2], n * 4);
        /* The outputs are pictures: two of them differ, and none is unchanged. */
        assert_memory_not_equal(out[0], out[0] + VALUES, VALUES * 4);
        for (size_t i = 0; i < n; i++)
            assert_true(isfinite(out[0][i]));
        pm_arena_destroy(&c.arena);
    }
    pm_dataset_close(&d);
    for (int t = 0; t < 3; t++)
        pm_free(out[t]);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_for_any_threads) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
