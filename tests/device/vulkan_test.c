/* The Vulkan backend on every installed software driver, with the validation layer: copies,
 * replay, slots, barriers, cutting of work, variants, early outputs. All values are small
 * integers, so results are exact. */
#include "device/vulkan_rows.h"

/* ---- copies ------------------------------------------------------------------------- */

/* Several staging chunks, from an offset that is not a multiple of a chunk. */
static void test_copies(void **state)
{
    struct vk_device *d = *state;
    size_t count = (20 << 20) / 4 + 3;
    float *v = ramp_values(count), *back = pm_calloc(count + 5, sizeof *back);
    struct pm_buffer *b = new_buffer(&d->shared.base, count + 5, NULL);

    ok(pm_buffer_write(&d->shared.base, b, 12, v, count * sizeof *v));
    ok(pm_buffer_fill(&d->shared.base, b, 12 + 400, 8, 0x40000000));
    ok(pm_buffer_read(&d->shared.base, b, 0, back, (count + 5) * sizeof *back));
    assert_true(back[0] == 0 && back[2] == 0 && back[count + 3] == 0 && back[count + 4] == 0);
    for (size_t i = 0; i < count; i++)
        assert_true(back[3 + i] == (i == 100 || i == 101 ? 2 : v[i]));
    drop_buffer(&d->shared.base, b);
    pm_free(v);
    pm_free(back);
}

static float tripled(size_t i)
{
    return 3 * ramp(i);
}

/* A buffer larger than lavapipe's limit for storage buffers (128 MiB), used on both sides of the
 * limit. */
static void test_big_buffer(void **state)
{
    struct vk_device *d = *state;
    size_t count = 18 << 20;
    struct pm_buffer *b = new_buffer(&d->shared.base, 2 * count, NULL),
                     *y = new_buffer(&d->shared.base, count, NULL);
    float *v = ramp_values(count);
    struct axpy_params p[2];
    struct pm_bound_call calls[] = {
        axpy(&p[0], 3, count, place(b, count * 4, count), place(b, 0, count)),
        axpy(&p[1], 1, count, place(b, 0, count), place(y, 0, count)),
    };
    struct pm_program_desc desc = { .calls = calls, .calls_count = 2, .slots = 1 };
    struct pm_program *prog = NULL;

    ok(pm_buffer_write(&d->shared.base, b, count * 4, v, count * sizeof *v));
    ok(pm_program_create(&d->shared.base, &desc, &prog));
    run_once(prog);
    expect(&d->shared.base, y, count, tripled);
    pm_program_destroy(&prog);
    drop_buffer(&d->shared.base, b);
    drop_buffer(&d->shared.base, y);
    pm_free(v);
}

/* ---- replay and slots --------------------------------------------------------------- */

static void test_replay(void **state)
{
    struct vk_device *d = *state;

    replay(&d->shared.base, 3, 0);
}

/* ---- barriers ----------------------------------------------------------------------- */

static float chained(size_t i)
{
    return 7 * ramp(i);
}

/* Barriers stand exactly where there is a hazard, and the results equal those of running the
 * calls one after another. */
static void test_barriers(void **state)
{
    struct vk_device *d = *state;
    struct pm_buffer *x = ramp_buffer(&d->shared.base, N),
                     *y = new_buffer(&d->shared.base, 3 * N, NULL);
    struct pm_place px = place(x, 0, N), y1 = place(y, 0, N), y2 = place(y, 4 * N, N),
                    y3 = place(y, 8 * N, N);
    struct axpy_params p[7];
    struct pm_bound_call calls[] = {
        axpy(&p[0], 1, N, px, y1), /* y1 = x */
        axpy(&p[1], 1, N, px, y2), /* y2 = x: another range of the buffer, no barrier */
        axpy(&p[2], 2, N, y1, y2), /* y2 = 3 x: barrier 1 */
        axpy(&p[3], 1, N, px, y3), /* y3 = x: none */
        axpy(&p[4], 1, N, y2, px), /* x = 4 x: barrier 2, y2 was written and x read */
        axpy(&p[5], 1, N, y1, y3), /* y3 = 2 x: none, that barrier served for y3 too */
        axpy(&p[6], 1, N, px, y2), /* y2 = 7 x: barrier 3 */
    };
    struct pm_program_desc desc = { .calls = calls, .calls_count = PM_COUNT(calls), .slots = 1 };
    struct pm_program *prog = NULL;
    struct pm_counts counts, planned;
    struct pm_buffer *result = new_buffer(&d->shared.base, N, NULL);
    float *v = pm_malloc(N * sizeof *v);

    ok(pm_program_create(&d->shared.base, &desc, &prog));
    pm_program_counts(prog, &counts);
    assert_int_equal(counts.barriers, 3);
    assert_int_equal(counts.dispatches, PM_COUNT(calls));
    ok(pm_program_count(&d->shared.base, &desc, &planned)); /* without making it: the same */
    assert_memory_equal(&planned, &counts, sizeof counts);
    run_once(prog);
    ok(pm_buffer_read(&d->shared.base, y, 4 * N, v, N * sizeof *v));
    ok(pm_buffer_write(&d->shared.base, result, 0, v, N * sizeof *v));
    expect(&d->shared.base, result, N, chained);
    pm_program_destroy(&prog);
    drop_buffer(&d->shared.base, x);
    drop_buffer(&d->shared.base, y);
    drop_buffer(&d->shared.base, result);
    pm_free(v);
}

/* ---- outputs ------------------------------------------------------------------------ */

/* An output is the value after the call it waits for, although later calls overwrite it. An
 * output that waits for no call is the value after the inputs were copied. */
static void test_early_outputs(void **state)
{
    enum { BIG = 1 << 16 }; /* large enough for the copy queue */
    struct vk_device *d = *state;
    struct pm_buffer *x = ramp_buffer(&d->shared.base, BIG),
                     *y = new_buffer(&d->shared.base, BIG, NULL),
                     *z = new_buffer(&d->shared.base, BIG, NULL);
    struct pm_place px = place(x, 0, BIG), py = place(y, 0, BIG), pz = place(z, 0, BIG);
    struct axpy_params p[3];
    struct pm_bound_call calls[] = {
        axpy(&p[0], 1, BIG, px, py),
        axpy(&p[1], 1, BIG, py, pz),
        axpy(&p[2], 10, BIG, px, py),
    };
    struct pm_place out[] = { py, py, pz, py };
    size_t after[] = { 1, 3, 2, 0 };
    struct pm_program_desc desc = { .calls = calls, .calls_count = 3, .out = out,
                                    .out_after = after, .out_count = 4, .slots = 2 };
    struct pm_program *prog = NULL;

    ok(pm_program_create(&d->shared.base, &desc, &prog));
    for (size_t k = 0; k < 4; k++) /* later calls must not overwrite values while they are
                                    * copied out */
        assert_int_equal(((struct vk_program *)prog)->outs[k].transfer,
                         d->transfer.handle && (k == 1 || k == 2));
    for (int run = 0; run < 2; run++)
        ok(pm_program_submit(prog, run));
    for (int run = 0; run < 2; run++) {
        float y0 = run * 11.0f, z1 = run ? 13.0f : 1.0f;
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
    drop_buffer(&d->shared.base, x);
    drop_buffer(&d->shared.base, y);
    drop_buffer(&d->shared.base, z);
}

/* ---- cutting of work ---------------------------------------------------------------- */

static size_t segments_of(struct vk_device *d, const struct pm_kernel *row)
{
    size_t count = 64 * 64, segments;
    struct pm_buffer *x = ramp_buffer(&d->shared.base, count),
                     *y = new_buffer(&d->shared.base, count, NULL);
    struct tile_params p;
    struct pm_bound_call call = tile(row, &p, count, place(x, 0, count), place(y, 0, count));
    struct pm_program_desc desc = { .calls = &call, .calls_count = 1, .slots = 1 };
    struct pm_program *prog = NULL;

    ok(pm_program_create(&d->shared.base, &desc, &prog));
    segments = ((struct vk_program *)prog)->segment_count;
    run_once(prog);
    expect(&d->shared.base, y, count, six_times);
    pm_program_destroy(&prog);
    drop_buffer(&d->shared.base, x);
    drop_buffer(&d->shared.base, y);
    return segments;
}

/* 2 x 4 x 8 groups: cut along the longest axis; every group runs exactly once. */
static void test_cut_call(void **state)
{
    assert_int_equal(segments_of(*state, &row_tile), 1);
    assert_int_equal(segments_of(*state, &row_tile_long), 8);
}

static float summed(size_t i)
{
    return 32 * ramp(i);
}

/* Many calls of known cost are distributed over submissions and still run in order. */
static void test_cut_program(void **state)
{
    enum { CALLS = 32, COUNT = 1 << 16 };
    struct vk_device *d = *state;
    struct pm_buffer *x = ramp_buffer(&d->shared.base, COUNT),
                     *y = new_buffer(&d->shared.base, COUNT, NULL);
    struct axpy_params p[CALLS];
    struct pm_bound_call calls[CALLS];
    struct pm_program_desc desc = { .calls = calls, .calls_count = CALLS, .slots = 2 };
    struct pm_program *prog = NULL;
    double bound = d->shared.segment_seconds, bytes = d->shared.bytes, flops = d->shared.flops;

    for (int i = 0; i < CALLS; i++)
        calls[i] = axpy(&p[i], 1, COUNT, place(x, 0, COUNT), place(y, 0, COUNT));
    d->shared.segment_seconds = 1, d->shared.bytes = 1e300;
    d->shared.flops = COUNT * 4.5; /* four calls to a segment */
    ok(pm_program_create(&d->shared.base, &desc, &prog));
    d->shared.segment_seconds = bound, d->shared.bytes = bytes, d->shared.flops = flops;
    assert_int_equal(((struct vk_program *)prog)->segment_count, 8);
    run_once(prog);
    expect(&d->shared.base, y, COUNT, summed);
    pm_program_destroy(&prog);
    drop_buffer(&d->shared.base, x);
    drop_buffer(&d->shared.base, y);
}

/* ---- rows of other kinds ------------------------------------------------------------ */

static float widened(size_t i)
{
    return ramp(i) + (float)(3 * (i % 40));
}

static void test_params_by_address(void **state)
{
    struct vk_device *d = *state;
    struct pm_buffer *x = ramp_buffer(&d->shared.base, N),
                     *y = new_buffer(&d->shared.base, N, NULL);
    struct wide_params p = { .count = N };
    struct pm_bound_call call = { .kernel = &row_wide, .label = "wide", .count = N, .params = &p,
                                  .buf = { place(x, 0, N), place(y, 0, N) } };
    struct pm_program_desc desc = { .calls = &call, .calls_count = 1, .slots = 1 };
    struct pm_program *prog = NULL;

    for (int i = 0; i < 40; i++)
        p.add[i] = 3 * i;
    ok(pm_program_create(&d->shared.base, &desc, &prog));
    memset(&p, 0, sizeof p); /* the program has its own copy */
    run_once(prog);
    expect(&d->shared.base, y, N, widened);
    pm_program_destroy(&prog);
    drop_buffer(&d->shared.base, x);
    drop_buffer(&d->shared.base, y);
}

/* A program with copies only. */
static void test_no_calls(void **state)
{
    struct vk_device *d = *state;
    struct pm_buffer *x = new_buffer(&d->shared.base, N, NULL);
    struct pm_place px = place(x, 0, N);
    size_t after = 0;
    struct pm_program_desc desc = { .in = &px, .in_count = 1, .out = &px, .out_after = &after,
                                    .out_count = 1, .slots = 1 };
    struct pm_program *prog = NULL;

    ok(pm_program_create(&d->shared.base, &desc, &prog));
    for (int i = 0; i < N; i++)
        ((float *)pm_program_in(prog, 0, 0))[i] = ramp((size_t)i);
    run_once(prog);
    assert_memory_equal(pm_program_out(prog, 0, 0), pm_program_in(prog, 0, 0), N * sizeof(float));
    pm_program_destroy(&prog);
    drop_buffer(&d->shared.base, x);
}

/* ---- absent buffers ----------------------------------------------------------------- */

static float one_and_three(size_t i) { return 1 + 3 * ramp(i); }

/* A shader has a variant for each set of present buffers. Calls share a variant, and a shader that
 * does not ask which buffers are present has one for all. */
static void test_absent(void **state)
{
    struct vk_device *d = *state;
    float values[N], ones[N];
    const struct optional_params p = { N, 1 };
    struct axpy_params q;
    struct pm_program *prog = NULL;

    for (size_t i = 0; i < N; i++)
        values[i] = ramp(i), ones[i] = 1;
    struct pm_buffer *x = new_buffer(&d->shared.base, N, values),
                     *a = new_buffer(&d->shared.base, N, ones);
    struct pm_buffer *y = new_buffer(&d->shared.base, N, NULL),
                     *z = new_buffer(&d->shared.base, N, NULL);
    struct pm_place px = place(x, 0, N), pa = place(a, 0, N), none = { 0 };
    const struct pm_bound_call calls[] = {
        { .kernel = &row_optional, .label = "with a", .count = N, .params = &p,
          .buf = { px, pa, px, place(y, 0, N) } },
        { .kernel = &row_optional, .label = "without a", .count = N, .params = &p,
          .buf = { px, none, px, place(z, 0, N) } },
        { .kernel = &row_optional, .label = "without a", .count = N, .params = &p,
          .buf = { px, none, px, place(z, 0, N) } },
        axpy(&q, 1, N, px, place(y, 0, N)),
        axpy(&q, 1, N, px, place(z, 0, N)),
    };

    ok(pm_program_create(&d->shared.base, &(struct pm_program_desc){
        .calls = calls, .calls_count = PM_COUNT(calls), .slots = 1 }, &prog));
    run_once(prog);
    expect(&d->shared.base, y, N, one_and_three);
    expect(&d->shared.base, z, N, tripled);
    assert_int_equal(variants_of(&d->shared, "test_optional", UINT32_MAX), 1);
    assert_int_equal(variants_of(&d->shared, "test_optional", ~2u), 1);
    assert_int_equal(variants_of(&d->shared, "test_axpy", UINT32_MAX), 1);
    pm_program_destroy(&prog);
    drop_buffer(&d->shared.base, x), drop_buffer(&d->shared.base, a),
        drop_buffer(&d->shared.base, y), drop_buffer(&d->shared.base, z);
}

/* ---- modules ------------------------------------------------------------------------ */

/* A frozen module has no specialization constants, and its sizes are known. */
static void test_freeze(void **state)
{
    static const uint32_t spec[] = { 64, 1, 1, 3, 0, 0 };
    struct pm_module_info info;
    uint32_t *words = NULL;
    size_t count = 0;

    (void)state;
    ok(pm_spirv_freeze(spv_tile, sizeof spv_tile / 4, spec, 6, UINT32_MAX, &words, &count, &info));
    for (size_t i = 5; i < count; i += words[i] >> 16) {
        uint32_t op = words[i] & 0xffff;

        assert_false(op >= 48 && op <= 52);                          /* OpSpecConstant... */
        assert_false(op == 71 && words[i + 2] == 1);                 /* SpecId */
    }
    assert_int_equal(info.local[0], 64);
    assert_int_equal(info.local[1] * info.local[2], 1);
    assert_int_equal(info.push_bytes, 2 * 8 + sizeof(struct tile_params));
    assert_int_equal(info.shared_bytes, 6 * 64 * 4);
    assert_false(info.uses_group_count || info.int64 || info.float16);
    pm_free(words);
    ok(pm_spirv_freeze(spv_axpy, sizeof spv_axpy / 4, spec, 1, UINT32_MAX, &words, &count, &info));
    assert_true(info.uses_group_count);
    pm_free(words);
    assert_int_equal(pm_spirv_freeze(spv_axpy, 40, spec, 1, UINT32_MAX, &words, &count, &info),
                     PM_EFAIL);
}

static void test_no_messages(void **state)
{
    (void)state;
    assert_int_equal(pm_device_messages(), 0);
}

/* ---- one queue shown as two --------------------------------------------------------- */

/* Software drivers have one queue. These entries add a second family that only copies; its work
 * goes to the one queue. */
static struct vk real;

static VKAPI_ATTR void VKAPI_CALL two_families(VkPhysicalDevice p, uint32_t *count,
                                               VkQueueFamilyProperties *list)
{
    *count = 1;
    real.GetPhysicalDeviceQueueFamilyProperties(p, count, list);
    list[1] = list[0];
    list[1].queueFlags = VK_QUEUE_TRANSFER_BIT;
    *count = 2;
}

static VKAPI_ATTR VkResult VKAPI_CALL one_queue(VkPhysicalDevice p, const VkDeviceCreateInfo *info,
                                                const VkAllocationCallbacks *a, VkDevice *out)
{
    VkDeviceCreateInfo mine = *info;

    assert_int_equal(info->queueCreateInfoCount, 2);
    mine.queueCreateInfoCount = 1;
    return real.CreateDevice(p, &mine, a, out);
}

static VKAPI_ATTR void VKAPI_CALL first_queue(VkDevice d, uint32_t family, uint32_t index,
                                              VkQueue *out)
{
    (void)family;
    real.GetDeviceQueue(d, 0, index, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL first_pool(VkDevice d, const VkCommandPoolCreateInfo *info,
                                                 const VkAllocationCallbacks *a, VkCommandPool *out)
{
    VkCommandPoolCreateInfo mine = *info;

    mine.queueFamilyIndex = 0;
    return real.CreateCommandPool(d, &mine, a, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL own_buffer(VkDevice d, const VkBufferCreateInfo *info,
                                                 const VkAllocationCallbacks *a, VkBuffer *out)
{
    VkBufferCreateInfo mine = *info;

    assert_int_equal(info->sharingMode, VK_SHARING_MODE_CONCURRENT);
    mine.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    return real.CreateBuffer(d, &mine, a, out);
}

static void as_two_queues(struct vk *vk)
{
#define REPLACE(name, by)                                                                          \
    if (vk->name && vk->name != by)                                                                \
        real.name = vk->name, vk->name = by
    REPLACE(GetPhysicalDeviceQueueFamilyProperties, two_families);
    REPLACE(CreateDevice, one_queue);
    REPLACE(GetDeviceQueue, first_queue);
    REPLACE(CreateCommandPool, first_pool);
    REPLACE(CreateBuffer, own_buffer);
#undef REPLACE
}

/* ---- main --------------------------------------------------------------------------- */

static const struct pm_device_info *current;

static int set_up(void **state)
{
    *state = open_with_shaders(current);
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(pm_device_memory_used(&((struct vk_device *)*state)->shared.base), 0);
    close_device(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),         cmocka_unit_test(test_big_buffer),
        cmocka_unit_test(test_replay),         cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_early_outputs),  cmocka_unit_test(test_cut_call),
        cmocka_unit_test(test_cut_program),    cmocka_unit_test(test_params_by_address),
        cmocka_unit_test(test_no_calls),       cmocka_unit_test(test_absent),
        cmocka_unit_test(test_freeze),
        cmocka_unit_test(test_no_messages),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed = 0, ran = 0;
    char *cache = make_folder();

    use_software_drivers();
    setenv("XDG_CACHE_HOME", cache, 1);
    if (pm_device_list(&list, &count) < 0) {
        fprintf(stderr, "%s\n", pm_error_text());
        return 1;
    }
    for (size_t i = 0; i < 2 * count; i++) {
        current = &list[i / 2];
        if (!current->caps.runs_shaders || !current->usable)
            continue;
        if (i % 2 && current->kind != PM_KIND_SOFTWARE)
            continue;
        pm_vk_loaded = i % 2 ? as_two_queues : NULL;
        print_message("%s: %s, %s%s\n", current->address, current->name, current->driver,
                      i % 2 ? ", its queue as two" : "");
        failed += cmocka_run_group_tests_name(current->name, tests, set_up, tear_down);
        ran++;
    }
    pm_free(list);
    drop_folder(cache);
    if (!ran)
        print_message("skipped: no Vulkan driver is installed\n");
    return failed ? 1 : ran ? 0 : 77;
}
