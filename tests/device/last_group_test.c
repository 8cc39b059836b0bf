/* Sums whose parts are added by the workgroup that finishes last (shaders/lib/last.glsl), on each
 * device. Filter gradients have the bits of the form with two dispatches, in each of many runs,
 * also when the dispatch is cut into submissions. Sums of batch norm have the same bits in each
 * run. A stale read or a lost part would show as a difference. The counters are zero after each
 * run. */
#include "device/every_device.h"
#include "layers/batch_norm_rows.h"
#include "layers/conv_pick.h"
#include "layers/conv_rows.h"

#include <pumice/rng.h>

enum { RUNS = 40, MOST_LEVELS = 16 };

/* A filter gradient with its buffers on a device. Both forms add to their own copy of dw. */
struct trial {
    struct pm_device *d;
    struct conv2d_params p;
    struct pm_buffer *x, *dy, *t, *dw[2], *done;
    size_t weights;
};

static struct pm_buffer *buffer_of(struct pm_device *d, size_t floats, struct pm_rng *r)
{
    struct pm_buffer *b = NULL;
    float *v = pm_malloc(floats * sizeof *v);

    for (size_t i = 0; i < floats; i++)
        v[i] = (float)pm_rng_uniform(r) - 0.5f;
    ok(pm_buffer_create(d, floats * sizeof *v, &b));
    ok(pm_buffer_write(d, b, 0, v, floats * sizeof *v));
    pm_free(v);
    return b;
}

static struct conv2d_params shape(int size, int c, int k, int kernel)
{
    return (struct conv2d_params){
        .n = 4, .h = size, .w = size, .c = c, .oh = size, .ow = size, .k = k, .kh = kernel,
        .kw = kernel, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1,
        .top = kernel / 2, .left = kernel / 2, .groups = 1, .accumulate = 1,
    };
}

/* Finds the first level with counters and the level with two dispatches. False: the device has
 * no such level. */
static bool find_levels(const struct trial *t, int level[2], size_t scratch[2][PM_MAX_BUFS])
{
    static struct pm_picks picks;
    bool found[2] = { false, false };

    for (int i = 0; i < MOST_LEVELS; i++) {
        if (!pm_conv2d_bwd_filter_pick(pm_device_caps(t->d), &t->p, t->weights, i, &picks))
            break;
        const bool two = strstr(picks.variant, "_two") != NULL;

        if (found[two] || (!two && picks.scratch[4] == 0))
            continue;
        found[two] = true;
        level[two] = i;
        memcpy(scratch[two], picks.scratch, sizeof picks.scratch);
    }
    return found[0] && found[1];
}

static struct pm_program *program_of(struct trial *t, int form, int level,
                                     const size_t scratch[PM_MAX_BUFS])
{
    const struct pm_bound_call call = {
        .kernel = &pm_conv2d_bwd_filter, .label = "trial", .count = t->weights, .params = &t->p,
        .buf = { { t->x, 0, pm_buffer_size(t->x) }, { t->dy, 0, pm_buffer_size(t->dy) },
                 { t->t, 0, scratch[2] }, { t->dw[form], 0, t->weights * sizeof(float) },
                 { form == 0 ? t->done : NULL, 0, scratch[4] } },
    };
    struct pm_program *p = NULL;

    ok(pm_program_create(t->d, &(struct pm_program_desc){
        .name = "trial", .calls = &call, .calls_count = 1, .slots = 1, .levels = &level }, &p));
    return p;
}

static void run(struct pm_program *p)
{
    ok(pm_program_submit(p, 0));
    ok(pm_program_wait(p, 0));
}

/* Runs both forms, and compares everything that they wrote. */
static void compare(struct trial *t, struct pm_program *const form[2])
{
    const size_t bytes = t->weights * sizeof(float), counters = pm_buffer_size(t->done);
    float *a = pm_malloc(bytes), *b = pm_malloc(bytes);
    uint32_t *done = pm_malloc(counters);

    for (int i = 0; i < RUNS; i++) {
        run(form[0]);
        run(form[1]);
        ok(pm_buffer_read(t->d, t->dw[0], 0, a, bytes));
        ok(pm_buffer_read(t->d, t->dw[1], 0, b, bytes));
        assert_memory_equal(a, b, bytes);
        ok(pm_buffer_read(t->d, t->done, 0, done, counters));
        for (size_t k = 0; k < counters / 4; k++)
            assert_int_equal(done[k], 0);
    }
    pm_free(a);
    pm_free(b);
    pm_free(done);
}

static void try_shape(struct pm_device *d, struct conv2d_params p)
{
    struct pm_rng r = pm_rng_make(1, 2, 0, 0);
    struct trial t = { .d = d, .p = p, .weights = (size_t)p.kh * p.kw * p.c * p.k };
    size_t scratch[2][PM_MAX_BUFS];
    struct pm_program *form[2];
    int level[2];

    if (!find_levels(&t, level, scratch))
        fail_msg("no level with counters for %dx%d, %d to %d", p.h, p.w, p.c, p.k);
    t.x = buffer_of(d, (size_t)p.n * p.h * p.w * p.c, &r);
    t.dy = buffer_of(d, (size_t)p.n * p.oh * p.ow * p.k, &r);
    ok(pm_buffer_create(d, scratch[0][2] > scratch[1][2] ? scratch[0][2] : scratch[1][2], &t.t));
    ok(pm_buffer_create(d, scratch[0][4], &t.done));
    ok(pm_buffer_fill(d, t.done, 0, scratch[0][4], 0));
    for (int f = 0; f < 2; f++) {
        ok(pm_buffer_create(d, t.weights * sizeof(float), &t.dw[f]));
        ok(pm_buffer_fill(d, t.dw[f], 0, t.weights * sizeof(float), 0));
        form[f] = program_of(&t, f, level[f], scratch[f]);
    }
    compare(&t, form);
    for (int f = 0; f < 2; f++) {
        pm_program_destroy(&form[f]);
        pm_buffer_destroy(d, &t.dw[f]);
    }
    pm_buffer_destroy(d, &t.x);
    pm_buffer_destroy(d, &t.dy);
    pm_buffer_destroy(d, &t.t);
    pm_buffer_destroy(d, &t.done);
}

static void on_device(struct pm_device *d)
{
    if (!pm_device_caps(d)->runs_shaders)
        return;
    try_shape(d, shape(16, 64, 64, 1));
    try_shape(d, shape(12, 20, 72, 3));
    try_shape(d, shape(12, 7, 10, 3)); /* nothing is a multiple of four */
}

static void test_bits(void **state)
{
    (void)state;
    on_every_device(on_device);
}

static void cut(struct pm_device *d)
{
    if (!pm_device_caps(d)->runs_shaders)
        return;
    ((struct vk_device *)d)->shared.segment_seconds = 1e-6;
    try_shape(d, shape(16, 64, 64, 1));
}

static void test_cut(void **state)
{
    (void)state;
    on_every_device(cut);
}

/* Finds the level of batch_norm_sums with counters; -1: there is none. */
static int sums_level(struct pm_device *d, const struct batch_norm_sums_params *p,
                      struct pm_picks *out)
{
    const struct pm_kernel *k = &pm_row_batch_norm_sums;

    for (int i = 0; k->pick(pm_device_caps(d), p, 1, i, out); i++)
        if (out->scratch[12])
            return i;
    return -1;
}

/* The sums of batch norm's gradient have the same bits in each run. */
static void try_sums(struct pm_device *d, int rows, int c)
{
    struct pm_rng r = pm_rng_make(3, 4, 0, 0);
    struct batch_norm_sums_params p = { .rows = rows, .c = c,
                                        .chunks = pm_batch_norm_chunks(rows, c) };
    const size_t bytes = 2 * (size_t)c * sizeof(float);
    static struct pm_picks picks;
    const int level = sums_level(d, &p, &picks);

    assert_true(level >= 0);
    struct pm_buffer *b[6] = { buffer_of(d, (size_t)rows * c, &r),
                               buffer_of(d, (size_t)rows * c, &r), buffer_of(d, c, &r),
                               buffer_of(d, c, &r), buffer_of(d, picks.scratch[8] / 4, &r),
                               buffer_of(d, 2 * (size_t)c, &r) };
    struct pm_buffer *done = NULL;
    struct pm_program *program = NULL;
    float *want = pm_malloc(bytes), *have = pm_malloc(bytes);
    uint32_t *counters = pm_malloc(picks.scratch[12]);

    ok(pm_buffer_create(d, picks.scratch[12], &done));
    ok(pm_buffer_fill(d, done, 0, picks.scratch[12], 0));
    const struct pm_bound_call call = {
        .kernel = &pm_row_batch_norm_sums, .label = "trial", .count = 1, .params = &p,
        .buf = { [0] = { b[0], 0, pm_buffer_size(b[0]) }, [2] = { b[1], 0, pm_buffer_size(b[1]) },
                 [4] = { b[2], 0, bytes / 2 }, [5] = { b[3], 0, bytes / 2 },
                 [8] = { b[4], 0, picks.scratch[8] }, [9] = { b[5], 0, bytes },
                 [12] = { done, 0, picks.scratch[12] } } };

    ok(pm_program_create(d, &(struct pm_program_desc){
        .name = "trial", .calls = &call, .calls_count = 1, .slots = 1, .levels = &level },
        &program));
    for (int i = 0; i < RUNS; i++) {
        run(program);
        ok(pm_buffer_read(d, b[5], 0, i ? have : want, bytes));
        if (i)
            assert_memory_equal(have, want, bytes);
        ok(pm_buffer_read(d, done, 0, counters, picks.scratch[12]));
        for (size_t k = 0; k < picks.scratch[12] / sizeof *counters; k++)
            assert_int_equal(counters[k], 0);
    }
    pm_program_destroy(&program);
    for (size_t i = 0; i < PM_COUNT(b); i++)
        pm_buffer_destroy(d, &b[i]);
    pm_buffer_destroy(d, &done);
    pm_free(want);
    pm_free(have);
    pm_free(counters);
}

static void sums_on(struct pm_device *d)
{
    if (!pm_device_caps(d)->runs_shaders)
        return;
    try_sums(d, 5000, 64);
    try_sums(d, 700, 300);
    try_sums(d, 3000, 7);
}

static void test_batch_norm(void **state)
{
    (void)state;
    on_every_device(sums_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_batch_norm),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
