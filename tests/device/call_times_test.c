/* The times of a timed program's calls, on the CPU and on every software driver. Calls follow
 * each other within the run, also when work is cut into submissions, and the results equal those
 * of a program without times. */
#include "device/vulkan_rows.h"

enum { N = 4096, CALLS = 6, SLOTS = 2, RUNS = 6 };

/* Copies x in; y += x; z += 6 x (in eight submissions where possible); w = z + the constants of
 * the wide row; y += w. y and z are copied out early, y again at the end. */
struct chain {
    struct pm_device *d;
    struct pm_buffer *x, *y, *z, *w;
    struct axpy_params p[3];
    struct tile_params t[2];
    struct wide_params w_params;
    struct pm_bound_call calls[CALLS];
    struct pm_place in, out[3];
    size_t after[3];
    struct pm_program_desc desc;
};

static struct pm_buffer *zeros(struct pm_device *d)
{
    struct pm_buffer *b = NULL;

    ok(pm_buffer_create(d, N * sizeof(float), &b));
    ok(pm_buffer_fill(d, b, 0, N * sizeof(float), 0));
    return b;
}

static void make_chain(struct chain *c, struct pm_device *d, bool timed)
{
    struct pm_place x, y, z, w;

    *c = (struct chain){ .d = d, .x = zeros(d), .y = zeros(d), .z = zeros(d), .w = zeros(d) };
    x = place(c->x, 0, N), y = place(c->y, 0, N), z = place(c->z, 0, N), w = place(c->w, 0, N);
    for (int i = 0; i < 2; i++)
        c->t[i] = (struct tile_params){ N, 2, 4 };
    c->calls[0] = axpy(&c->p[0], 1, N, x, y);
    c->calls[1] = (struct pm_bound_call){ .kernel = &row_tile, .label = "tile", .count = N,
                                          .params = &c->t[0], .buf = { x, z } };
    c->calls[2] = (struct pm_bound_call){ .kernel = &row_tile_long, .label = "long", .count = N,
                                          .params = &c->t[1], .buf = { x, z } };
    c->calls[3] = axpy(&c->p[1], 1, N, x, y);
    c->w_params = (struct wide_params){ .count = N, .add = { 3, 1, 2 } };
    c->calls[4] = (struct pm_bound_call){ .kernel = &row_wide, .label = "wide", .count = N,
                                          .params = &c->w_params, .buf = { z, w } };
    c->calls[5] = axpy(&c->p[2], 1, N, w, y);
    c->in = x;
    c->out[0] = y, c->after[0] = 1;
    c->out[1] = z, c->after[1] = 3;
    c->out[2] = y, c->after[2] = CALLS;
    c->desc = (struct pm_program_desc){ .name = "chain", .calls = c->calls, .calls_count = CALLS,
                                        .in = &c->in, .in_count = 1, .out = c->out,
                                        .out_after = c->after, .out_count = 3, .slots = SLOTS,
                                        .timed = timed };
}

static void drop_chain(struct chain *c)
{
    pm_buffer_destroy(c->d, &c->x);
    pm_buffer_destroy(c->d, &c->y);
    pm_buffer_destroy(c->d, &c->z);
    pm_buffer_destroy(c->d, &c->w);
}

static void submit(struct pm_program *p, int run)
{
    float *in = pm_program_in(p, run % SLOTS, 0);

    for (int i = 0; i < N; i++)
        in[i] = (float)(i % 7 + run);
    ok(pm_program_submit(p, run % SLOTS));
}

/* Inputs are copied before the first call. An output is copied after the call it waits for and
 * before the next one. */
static void check_copies(struct pm_program *p, int slot, const double *call_begin,
                         const double *call_end, double seconds)
{
    static const size_t after[3] = { 1, 3, CALLS };
    double begin[4], end[4];

    ok(pm_program_copy_times(p, slot, begin, end));
    assert_true(begin[0] >= 0 && end[0] >= begin[0] && call_begin[0] >= end[0]);
    for (int i = 0; i < 3; i++) {
        assert_true(end[1 + i] >= begin[1 + i] && begin[1 + i] >= call_end[after[i] - 1]);
        assert_true(end[1 + i] <= (after[i] < CALLS ? call_begin[after[i]] : seconds));
    }
}

static void check_times(struct pm_program *p, int slot, double *last_end)
{
    double begin[CALLS], end[CALLS], seconds, begun;

    ok(pm_program_wait(p, slot));
    ok(pm_program_call_times(p, slot, begin, end));
    seconds = pm_program_seconds(p, slot);
    begun = pm_program_begun(p, slot);
    assert_true(begin[0] >= 0);
    for (int i = 0; i < CALLS; i++) {
        assert_true(end[i] >= begin[i]);
        if (i > 0)
            assert_true(begin[i] >= end[i - 1]);
    }
    assert_true(end[CALLS - 1] <= seconds);
    check_copies(p, slot, begin, end, seconds);
    assert_true(begun >= *last_end - 1e-9); /* runs of a device follow each other */
    *last_end = begun + seconds;
}

/* Copies the outputs of all runs; two runs are under way at a time. */
static void run_all(struct pm_program *p, bool timed, float *out)
{
    double last_end = pm_seconds();
    uint64_t allocated = 0;

    for (int run = 0; run < RUNS + SLOTS; run++) {
        int slot = run % SLOTS;

        if (run >= SLOTS) {
            if (timed)
                check_times(p, slot, &last_end);
            else
                ok(pm_program_wait(p, slot));
            for (size_t k = 0; k < 3; k++)
                memcpy(out + ((size_t)(run - SLOTS) * 3 + k) * N, pm_program_out(p, slot, k),
                       N * sizeof(float));
        }
        if (run < RUNS)
            submit(p, run);
        if (run == SLOTS)
            allocated = pm_alloc_count();
    }
    assert_int_equal(pm_alloc_count(), allocated);
}

static void test_times(void **state)
{
    struct pm_device *d = *state;
    size_t count = (size_t)RUNS * 3 * N;
    float *out[2] = { pm_malloc(count * sizeof(float)), pm_malloc(count * sizeof(float)) };

    for (int timed = 0; timed < 2; timed++) {
        struct chain c;
        struct pm_program *p = NULL;

        make_chain(&c, d, timed);
        ok(pm_program_create(d, &c.desc, &p));
        run_all(p, timed, out[timed]);
        pm_program_destroy(&p);
        drop_chain(&c);
    }
    assert_memory_equal(out[0], out[1], count * sizeof(float));
    pm_free(out[0]);
    pm_free(out[1]);
}

static void test_no_calls(void **state)
{
    struct pm_device *d = *state;
    struct pm_buffer *x = zeros(d);
    struct pm_place in = place(x, 0, N);
    struct pm_program_desc desc = { .name = "copy", .in = &in, .in_count = 1, .slots = 1,
                                    .timed = true };
    struct pm_program *p = NULL;
    double begin, end;

    ok(pm_program_create(d, &desc, &p));
    run_once(p);
    ok(pm_program_call_times(p, 0, NULL, NULL));
    ok(pm_program_copy_times(p, 0, &begin, &end));
    assert_true(end >= begin && end <= pm_program_seconds(p, 0));
    pm_program_destroy(&p);
    pm_buffer_destroy(d, &x);
}

/* ---- clocks with few bits, and without a clock -------------------------------------- */

enum { BITS = 36, BEFORE_WRAP = 250, TICKS = 100 };

static VKAPI_ATTR VkResult VKAPI_CALL start_near_wrap(VkDevice d, VkQueryPool pool, uint32_t first,
                                                      uint32_t count, size_t size, void *data,
                                                      VkDeviceSize stride, VkQueryResultFlags flags)
{
    (void)d, (void)pool, (void)first, (void)size, (void)stride, (void)flags;
    for (uint32_t i = 0; i < count; i++)
        ((uint64_t *)data)[i] = (1ull << BITS) - BEFORE_WRAP;
    return VK_SUCCESS;
}

/* Time stamps 100 ticks apart that start 250 ticks before a 36-bit clock wraps around. */
static void test_wrap(void **state)
{
    struct vk_device *v = *state;
    PFN_vkGetQueryPoolResults real;
    uint32_t bits;
    double begin[CALLS], end[CALLS], tick;
    struct pm_program *p = NULL;
    struct chain c;
    uint64_t *stamps;

    if (!v->shared.base.info.caps.runs_shaders)
        skip(); /* only the base of v exists here */
    real = v->vk.GetQueryPoolResults;
    bits = v->physical.timestamp_bits;
    tick = (double)v->physical.limits.timestampPeriod * 1e-9;
    make_chain(&c, *state, true);
    ok(pm_program_create(*state, &c.desc, &p));
    run_once(p);
    stamps = ((struct vk_program *)p)->slots[0].clock.stamps.map;
    for (uint64_t i = 0; i < 2 * CALLS; i++)
        stamps[i] = ((1ull << BITS) - BEFORE_WRAP + TICKS * i) % (1ull << BITS) |
                    (i % 2 ? 5ull << BITS : 0); /* random bits above the clock's width */
    v->physical.timestamp_bits = BITS;
    v->vk.GetQueryPoolResults = start_near_wrap;
    ok(pm_program_call_times(p, 0, begin, end));
    v->vk.GetQueryPoolResults = real;
    v->physical.timestamp_bits = bits;
    for (int i = 0; i < CALLS; i++) {
        assert_float_equal(begin[i] / tick, 2 * i * TICKS, 1e-3);
        assert_float_equal(end[i] / tick, (2 * i + 1) * TICKS, 1e-3);
    }
    pm_program_destroy(&p);
    drop_chain(&c);
}

static void test_no_clock(void **state)
{
    struct vk_device *v = *state;
    double begin[CALLS], end[CALLS];
    struct pm_program *p = NULL;
    struct chain c;
    uint32_t bits;

    if (!v->shared.base.info.caps.runs_shaders)
        skip();
    bits = v->physical.timestamp_bits;
    make_chain(&c, *state, true);
    v->physical.timestamp_bits = 0;
    ok(pm_program_create(*state, &c.desc, &p));
    run_once(p);
    assert_int_equal(pm_program_call_times(p, 0, begin, end), PM_EDEVICE);
    assert_contains(pm_error_text(), "has no timestamps");
    assert_true(pm_program_seconds(p, 0) > 0);
    pm_program_destroy(&p);
    drop_chain(&c);
    v->physical.timestamp_bits = bits;
}

static void test_no_messages(void **state)
{
    (void)state;
    assert_int_equal(pm_device_messages(), 0);
}

/* ---- main --------------------------------------------------------------------------- */

static const struct pm_device_info *current;

static int set_up(void **state)
{
    struct pm_device *d = NULL;

    if (current->caps.runs_shaders)
        *state = open_with_shaders(current);
    else if (pm_device_open(current, NULL, &d) == PM_OK)
        *state = d;
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    struct pm_device *d = *state;

    assert_int_equal(pm_device_memory_used(d), 0);
    pm_device_close(&d);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),    cmocka_unit_test(test_no_calls),
        cmocka_unit_test(test_wrap),     cmocka_unit_test(test_no_clock),
        cmocka_unit_test(test_no_messages),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed = 0;
    char *cache = make_folder();

    use_software_drivers();
    setenv("XDG_CACHE_HOME", cache, 1);
    if (pm_device_list(&list, &count) < 0) {
        fprintf(stderr, "%s\n", pm_error_text());
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        current = &list[i];
        if (!current->usable)
            continue;
        print_message("%s: %s\n", current->address, current->name);
        failed += cmocka_run_group_tests_name(current->name, tests, set_up, tear_down);
    }
    pm_free(list);
    drop_folder(cache);
    return failed != 0;
}
