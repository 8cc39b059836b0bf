/* The times of a timed program's calls, on the CPU and on every software driver. Calls follow
 * each other within the run, also when work is cut into submissions, and the results equal those
 * of a program without times. */
#include "device/call_chain.h"
#include "device/vulkan_rows.h"

static void test_no_calls(void **state)
{
    struct pm_device *d = *state;
    struct pm_buffer *x = zeros(d);
    struct pm_place in = place(x, 0, LENGTH);
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
