/* The OpenCL backend on PoCL: copies, runs in several slots, early outputs, cutting of work, absent
 * buffers, params by address, and times. All values are small integers, so results are exact. */
#include "device/call_chain.h"
#include "device/opencl_fixture.h"

/* ---- copies ------------------------------------------------------------------------- */

/* Several chunks of 8 MiB, from and to offsets that are no multiple of a chunk. Bytes outside of
 * the range stay. */
static void test_copies(void **state)
{
    struct pm_device *d = *state;
    const size_t count = (20 << 20) / 4 + 3;
    float *v = ramp_values(count), *back = pm_calloc(count + 5, sizeof *back), two[2];
    struct pm_buffer *b = new_buffer(d, count + 5, NULL);

    ok(pm_buffer_write(d, b, 12, v, count * sizeof *v));
    ok(pm_buffer_fill(d, b, 12 + 400, 8, 0x40000000));
    ok(pm_buffer_read(d, b, 0, back, (count + 5) * sizeof *back));
    assert_true(back[0] == 0 && back[2] == 0 && back[count + 3] == 0 && back[count + 4] == 0);
    for (size_t i = 0; i < count; i++)
        if (back[3 + i] != (i == 100 || i == 101 ? 2 : v[i]))
            fail_msg("element %zu: %g", i, back[3 + i]);
    ok(pm_buffer_write(d, b, 4 * (count + 4), v + 5, 4)); /* the last word alone */
    ok(pm_buffer_read(d, b, 4 * (count + 3), two, sizeof two));
    assert_true(two[0] == 0 && two[1] == 5);
    drop_buffer(d, b);
    pm_free(v);
    pm_free(back);
}

/* ---- runs and slots ----------------------------------------------------------------- */

static void test_replay(void **state)
{
    replay(*state, SLOTS, SLOTS);
}

static float chained(size_t i) { return 7 * ramp(i); }

/* Calls that depend on one another, over ranges of one buffer. The counts are those that the
 * program is planned with. */
static void test_chain(void **state)
{
    struct pm_device *d = *state;
    struct pm_buffer *x = ramp_buffer(d, N), *y = new_buffer(d, 3 * N, NULL);
    struct pm_place px = place(x, 0, N), y1 = place(y, 0, N), y2 = place(y, 4 * N, N),
                    y3 = place(y, 8 * N, N);
    struct axpy_params p[7];
    struct pm_bound_call calls[] = {
        axpy(&p[0], 1, N, px, y1), axpy(&p[1], 1, N, px, y2),
        axpy(&p[2], 2, N, y1, y2), /* y2 = 3 x */
        axpy(&p[3], 1, N, px, y3),
        axpy(&p[4], 1, N, y2, px), /* x = 4 x */
        axpy(&p[5], 1, N, y1, y3),
        axpy(&p[6], 1, N, px, y2), /* y2 = 7 x */
    };
    struct pm_program_desc desc = { .calls = calls, .calls_count = PM_COUNT(calls), .slots = 1 };
    struct pm_program *prog = NULL;
    struct pm_counts counts, planned;
    float *v = pm_malloc(N * sizeof *v);

    ok(pm_program_create(d, &desc, &prog));
    pm_program_counts(prog, &counts);
    assert_int_equal(counts.dispatches, PM_COUNT(calls));
    ok(pm_program_count(d, &desc, &planned));
    assert_memory_equal(&planned, &counts, sizeof counts);
    run_once(prog);
    ok(pm_buffer_read(d, y, 4 * N, v, N * sizeof *v));
    for (size_t i = 0; i < N; i++)
        assert_true(v[i] == chained(i));
    assert_true(pm_program_seconds(prog, 0) > 0 && pm_program_seconds(prog, 0) < 60);
    assert_true(pm_program_begun(prog, 0) > 0 && pm_program_begun(prog, 0) <= pm_seconds());
    pm_program_destroy(&prog);
    drop_buffer(d, x), drop_buffer(d, y);
    pm_free(v);
}

/* ---- outputs ------------------------------------------------------------------------ */

static struct cl_device *watched;
static int reads_on_transfer, waits_on_compute;

static CL_API_ENTRY cl_int CL_API_CALL watch_read(cl_command_queue q, cl_mem m, cl_bool blocking,
                                                  size_t at, size_t size, void *out, cl_uint n,
                                                  const cl_event *list, cl_event *event)
{
    reads_on_transfer += q == watched->transfer.handle;
    return real.EnqueueReadBuffer(q, m, blocking, at, size, out, n, list, event);
}

static CL_API_ENTRY cl_int CL_API_CALL watch_barrier(cl_command_queue q, cl_uint n,
                                                     const cl_event *list, cl_event *event)
{
    waits_on_compute += q == watched->compute.handle && n == 1;
    return real.EnqueueBarrierWithWaitList(q, n, list, event);
}

/* An output is the value after the call it waits for, although later calls overwrite it. Large ones
 * that no later call overwrites are copied on the second queue, and the next run waits for them. */
static void test_early_outputs(void **state)
{
    enum { BIG = 1 << 16 }; /* large enough for the second queue */
    struct cl_device *c = *state;
    struct pm_device *d = &c->shared.base;
    struct pm_buffer *x = ramp_buffer(d, BIG), *y = new_buffer(d, BIG, NULL),
                     *z = new_buffer(d, BIG, NULL);
    struct pm_place px = place(x, 0, BIG), py = place(y, 0, BIG), pz = place(z, 0, BIG);
    struct axpy_params p[3];
    struct pm_bound_call calls[] = { axpy(&p[0], 1, BIG, px, py), axpy(&p[1], 1, BIG, py, pz),
                                     axpy(&p[2], 10, BIG, px, py) };
    struct pm_place out[] = { py, py, pz, py };
    size_t after[] = { 1, 3, 2, 0 };
    struct pm_program_desc desc = { .calls = calls, .calls_count = 3, .out = out,
                                    .out_after = after, .out_count = 4, .slots = 2 };
    struct pm_program *prog = NULL;

    watched = c, real = c->cl;
    c->cl.EnqueueReadBuffer = watch_read, c->cl.EnqueueBarrierWithWaitList = watch_barrier;
    reads_on_transfer = waits_on_compute = 0;
    ok(pm_program_create(d, &desc, &prog));
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(((struct cl_program *)prog)->outs[k].transfer, k == 1 || k == 2);
    for (int run = 0; run < 2; run++)
        ok(pm_program_submit(prog, run));
    assert_int_equal(reads_on_transfer, 4);
    assert_int_equal(waits_on_compute, 1); /* the second run waits for the first one's copies */
    for (int run = 0; run < 2; run++) {
        const float y0 = run * 11.0f, z1 = run ? 13.0f : 1.0f;
        const float want[] = { y0 + 1, y0 + 11, z1, y0 };

        for (size_t k = 0; k < 4; k++) {
            const float *got = pm_program_out(prog, run, k);

            ok(pm_program_wait_out(prog, run, k));
            for (size_t i = 0; i < BIG; i++)
                if (got[i] != want[k] * ramp(i))
                    fail_msg("run %d, output %zu, element %zu: %g, not %g", run, k, i, got[i],
                             want[k] * ramp(i));
        }
        ok(pm_program_wait(prog, run));
    }
    pm_program_destroy(&prog);
    c->cl = real;
    drop_buffer(d, x), drop_buffer(d, y), drop_buffer(d, z);
}

/* ---- cutting of work ---------------------------------------------------------------- */

static size_t segments_of(struct pm_device *d, const struct pm_kernel *row, size_t *dispatches)
{
    const size_t count = 64 * 64;
    size_t segments;
    struct pm_buffer *x = ramp_buffer(d, count), *y = new_buffer(d, count, NULL);
    struct tile_params p;
    struct pm_bound_call call = tile(row, &p, count, place(x, 0, count), place(y, 0, count));
    struct pm_program_desc desc = { .calls = &call, .calls_count = 1, .slots = 1 };
    struct pm_program *prog = NULL;

    ok(pm_program_create(d, &desc, &prog));
    segments = ((struct cl_program *)prog)->segment_count;
    *dispatches = ((struct cl_program *)prog)->dispatch_count;
    run_once(prog);
    expect(d, y, count, six_times);
    pm_program_destroy(&prog);
    drop_buffer(d, x), drop_buffer(d, y);
    return segments;
}

/* 2 x 4 x 8 groups: cut along the longest axis. Each part has its own first group, so every group
 * runs exactly once. */
static void test_cut_call(void **state)
{
    size_t dispatches;

    assert_int_equal(segments_of(*state, &row_tile, &dispatches), 1);
    assert_int_equal(dispatches, 1);
    assert_int_equal(segments_of(*state, &row_tile_long, &dispatches), 8);
    assert_int_equal(dispatches, 8);
}

static float summed(size_t i) { return 32 * ramp(i); }

/* Many calls of known cost are distributed over submissions and still run in order. */
static void test_cut_program(void **state)
{
    enum { PARTS = 32, COUNT = 1 << 16 };
    struct pm_shader_device *s = *state;
    struct pm_device *d = &s->base;
    struct pm_buffer *x = ramp_buffer(d, COUNT), *y = new_buffer(d, COUNT, NULL);
    struct axpy_params p[PARTS];
    struct pm_bound_call calls[PARTS];
    struct pm_program_desc desc = { .calls = calls, .calls_count = PARTS, .slots = 2 };
    struct pm_program *prog = NULL;
    const double bound = s->segment_seconds, bytes = s->bytes, flops = s->flops;

    for (int i = 0; i < PARTS; i++)
        calls[i] = axpy(&p[i], 1, COUNT, place(x, 0, COUNT), place(y, 0, COUNT));
    s->segment_seconds = 1, s->bytes = 1e300, s->flops = COUNT * 4.5; /* four calls to a segment */
    ok(pm_program_create(d, &desc, &prog));
    s->segment_seconds = bound, s->bytes = bytes, s->flops = flops;
    assert_int_equal(((struct cl_program *)prog)->segment_count, 8);
    run_once(prog);
    expect(d, y, COUNT, summed);
    pm_program_destroy(&prog);
    drop_buffer(d, x), drop_buffer(d, y);
}

/* ---- rows of other kinds ------------------------------------------------------------ */

static float widened(size_t i) { return ramp(i) + (float)(3 * (i % 40)); }
static float narrowed(size_t i) { return ramp(i) + (float)(i % 40); }

/* Each call has params of its own in device memory. */
static void test_params_by_address(void **state)
{
    struct pm_device *d = *state;
    struct pm_buffer *x = ramp_buffer(d, N), *y = new_buffer(d, N, NULL);
    struct pm_buffer *z = new_buffer(d, N, NULL);
    struct wide_params p = { .count = N }, q = { .count = N };
    const struct pm_bound_call calls[] = {
        { .kernel = &row_wide, .label = "wide", .count = N, .params = &p,
          .buf = { place(x, 0, N), place(y, 0, N) } },
        { .kernel = &row_wide, .label = "wide", .count = N, .params = &q,
          .buf = { place(x, 0, N), place(z, 0, N) } },
    };
    struct pm_program *prog = NULL;

    for (int i = 0; i < 40; i++)
        p.add[i] = 3 * i, q.add[i] = i;
    ok(pm_program_create(d, &(struct pm_program_desc){ .calls = calls, .calls_count = 2,
                                                       .slots = 1 }, &prog));
    memset(&p, 0, sizeof p); /* the program has its own copy */
    run_once(prog);
    expect(d, y, N, widened);
    expect(d, z, N, narrowed);
    pm_program_destroy(&prog);
    drop_buffer(d, x), drop_buffer(d, y), drop_buffer(d, z);
}

/* A program with copies only. */
static void test_no_calls(void **state)
{
    struct pm_device *d = *state;
    struct pm_buffer *x = new_buffer(d, N, NULL);
    struct pm_place px = place(x, 0, N);
    size_t after = 0;
    struct pm_program_desc desc = { .in = &px, .in_count = 1, .out = &px, .out_after = &after,
                                    .out_count = 1, .slots = 1 };
    struct pm_program *prog = NULL;
    double begin[2], end[2];

    for (int timed = 0; timed < 2; timed++) {
        desc.timed = timed;
        ok(pm_program_create(d, &desc, &prog));
        for (int i = 0; i < N; i++)
            ((float *)pm_program_in(prog, 0, 0))[i] = ramp((size_t)i);
        run_once(prog);
        assert_memory_equal(pm_program_out(prog, 0, 0), pm_program_in(prog, 0, 0),
                            N * sizeof(float));
        if (timed) {
            ok(pm_program_call_times(prog, 0, NULL, NULL));
            ok(pm_program_copy_times(prog, 0, begin, end));
            assert_true(begin[0] >= 0 && end[0] >= begin[0] && begin[1] >= end[0]);
            assert_true(end[1] >= begin[1] && end[1] <= pm_program_seconds(prog, 0));
        }
        pm_program_destroy(&prog);
    }
    drop_buffer(d, x);
}

static float one_and_three(size_t i) { return 1 + 3 * ramp(i); }
static float tripled(size_t i) { return 3 * ramp(i); }

/* An absent buffer is a null argument. A shader has a variant for each set of present buffers. */
static void test_absent(void **state)
{
    struct pm_device *d = *state;
    float ones[N];
    const struct optional_params p = { N, 1 };
    struct pm_program *prog = NULL;

    for (size_t i = 0; i < N; i++)
        ones[i] = 1;
    struct pm_buffer *x = ramp_buffer(d, N), *a = new_buffer(d, N, ones);
    struct pm_buffer *y = new_buffer(d, N, NULL), *z = new_buffer(d, N, NULL);
    struct pm_place px = place(x, 0, N), pa = place(a, 0, N), none = { 0 };
    const struct pm_bound_call calls[] = {
        { .kernel = &row_optional, .label = "with a", .count = N, .params = &p,
          .buf = { px, pa, px, place(y, 0, N) } },
        { .kernel = &row_optional, .label = "without a", .count = N, .params = &p,
          .buf = { px, none, px, place(z, 0, N) } },
    };
    struct axpy_params q[2];
    const struct pm_bound_call all[] = { calls[0], calls[1], calls[1],
                                         axpy(&q[0], 1, N, px, place(y, 0, N)),
                                         axpy(&q[1], 1, N, px, place(z, 0, N)) };

    ok(pm_program_create(d, &(struct pm_program_desc){
        .calls = all, .calls_count = PM_COUNT(all), .slots = 1 }, &prog));
    run_once(prog);
    expect(d, y, N, one_and_three);
    expect(d, z, N, tripled);
    assert_int_equal(variants_of(*state, "test_optional", UINT32_MAX), 1);
    assert_int_equal(variants_of(*state, "test_optional", ~2u), 1);
    assert_int_equal(variants_of(*state, "test_axpy", UINT32_MAX), 1);
    pm_program_destroy(&prog);
    drop_buffer(d, x), drop_buffer(d, a), drop_buffer(d, y), drop_buffer(d, z);
}

/* ---- main --------------------------------------------------------------------------- */

static int set_up(void **state)
{
    *state = open_device(NULL);
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(pm_device_memory_used(*state), 0);
    close_device(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_chain),         cmocka_unit_test(test_early_outputs),
        cmocka_unit_test(test_cut_call),      cmocka_unit_test(test_cut_program),
        cmocka_unit_test(test_params_by_address),
        cmocka_unit_test(test_no_calls),      cmocka_unit_test(test_absent),
        cmocka_unit_test(test_times),
    };

    return on_pocl(tests, PM_COUNT(tests), set_up, tear_down);
}
