/* Failures of the Vulkan backend: lost and hanging devices, lack of memory, and every call that
 * can fail. */
#include "device/fault_rows.h"
#include "device/vulkan_fixture.h"

#include <sys/wait.h>

/* ---- loss --------------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL lost_submit(VkQueue q, uint32_t n, const VkSubmitInfo *s,
                                                  VkFence fence)
{
    return calls_left-- > 0 ? real.QueueSubmit(q, n, s, fence) : VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL lost_wait(VkDevice d, const VkSemaphoreWaitInfo *w,
                                                uint64_t timeout)
{
    (void)d, (void)w, (void)timeout;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL endless_wait(VkDevice d, const VkSemaphoreWaitInfo *w,
                                                   uint64_t timeout)
{
    (void)d, (void)w, (void)timeout;
    return VK_TIMEOUT;
}

static uint64_t counter;

static VKAPI_ATTR VkResult VKAPI_CALL stuck_counter(VkDevice d, VkSemaphore s, uint64_t *value)
{
    (void)d, (void)s;
    *value = counter;
    return VK_SUCCESS;
}

/* After a loss every call returns PM_ELOST, and the device can be closed and opened again. */
static void after_loss(struct fixture *f)
{
    float v[4] = { 0 };

    assert_int_equal(pm_program_submit(f->prog, 0), PM_ELOST);
    assert_int_equal(pm_buffer_read(f->base, f->y, 0, v, sizeof v), PM_ELOST);
    fixture_close(f);
    fixture_open(f);
    ok(pm_program_create(f->base, &f->desc, &f->prog));
    run_once(f->prog);
    fixture_close(f);
}

static void test_lost_at_submit(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    f.d->shared.segment_seconds = 1e-30; /* puts every call into its own submission */
    ok(pm_program_create(f.base, &f.desc, &f.prog));
    assert_int_equal(((struct vk_program *)f.prog)->segment_count, 2);
    f.d->vk.QueueSubmit = lost_submit;
    f.d->vk.GetSemaphoreCounterValue = stuck_counter;
    calls_left = 2 + 1; /* a run, then the first of two submissions, which still completes */
    ok(pm_program_submit(f.prog, 0));
    ok(pm_program_wait(f.prog, 0));
    counter = f.d->compute.submitted + 1;
    assert_int_equal(pm_program_submit(f.prog, 0), PM_ELOST);
    assert_contains(pm_error_text(), current->address);
    assert_contains(pm_error_text(), "VK_ERROR_DEVICE_LOST");
    assert_contains(pm_error_text(), "trial");
    assert_contains(pm_error_text(), "second (test_axpy)");
    after_loss(&f);
}

static void test_lost_at_wait(void **state)
{
    struct fixture f;

    (void)state;
    fixture_start(&f);
    f.d->vk.WaitSemaphores = lost_wait;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_contains(pm_error_text(), "vkWaitSemaphores");
    after_loss(&f);
}

/* No progress within the allowed time is a loss, also in the first run. Memory that running work
 * may use is not freed. */
static void test_hang(void **state)
{
    const char *seconds;
    struct fixture f;

    (void)state;
    fixture_start(&f);
    f.d->vk.WaitSemaphores = endless_wait;
    f.d->vk.GetSemaphoreCounterValue = stuck_counter;
    counter = 0;
    f.base->options.hang_seconds = 0.5;
    assert_false(pm_device_ran(f.base));
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_contains(pm_error_text(), "no submission ended for ");
    assert_contains(pm_error_text(), "(run.hang_seconds=0.5)");
    seconds = strstr(pm_error_text(), "ended for ") + strlen("ended for ");
    assert_true(atof(seconds) < 3); /* each poll adds a second at most */
    assert_contains(pm_error_text(), "first (test_axpy)");
    assert_true(pm_device_hung(f.base));
    assert_false(pm_vk_idle(f.d));
    f.base->hung = false; /* the device does not really hang */
    f.d->vk = real;
    after_loss(&f);
}

/* Polls that see progress on one queue; the first POLLS - 1 of them report that the wait is
 * not over. */
enum { POLLS = 40 };
static VkSemaphore moving;
static int polls;

static VKAPI_ATTR VkResult VKAPI_CALL slow_wait(VkDevice d, const VkSemaphoreWaitInfo *w,
                                                uint64_t timeout)
{
    (void)d, (void)w, (void)timeout;
    usleep(20000);
    return ++polls < POLLS ? VK_TIMEOUT : VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL slow_counter(VkDevice d, VkSemaphore s, uint64_t *value)
{
    (void)d;
    *value = s == moving ? (uint64_t)polls : 0;
    return VK_SUCCESS;
}

/* A slow device that makes progress is not lost: on the queue that is waited for, or on the
 * other queue, whose work runs first. */
static void test_slow_but_alive(void **state)
{
    struct fixture f;

    (void)state;
    fixture_start(&f);
    ok(pm_program_wait(f.prog, 0));
    f.base->longest = 0; /* makes hang_seconds the limit */
    f.base->options.hang_seconds = 0.1;
    f.d->transfer.timeline = (VkSemaphore)(uintptr_t)1;
    f.d->vk.WaitSemaphores = slow_wait;
    f.d->vk.GetSemaphoreCounterValue = slow_counter;
    for (int i = 0; i < 2; i++) {
        moving = i ? f.d->transfer.timeline : f.d->compute.timeline;
        polls = 0;
        ok(pm_vk_wait(f.d, &f.d->compute, 1));
        assert_int_equal(polls, POLLS);
    }
    f.d->transfer.timeline = VK_NULL_HANDLE;
    f.d->vk = real;
    fixture_close(&f);
}

static VKAPI_ATTR VkResult VKAPI_CALL blocked_idle(VkDevice d)
{
    (void)d;
    pass_gate();
    return VK_ERROR_DEVICE_LOST;
}

/* Closing ends even when the driver never reports a lost device as idle. */
static void test_endless_idle(void **state)
{
    struct fixture f;

    (void)state;
    fixture_start(&f);
    f.d->vk.WaitSemaphores = lost_wait;
    f.d->vk.DeviceWaitIdle = blocked_idle;
    f.d->settle_seconds = 0.05;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_false(pm_device_hung(f.base));
    pthread_mutex_lock(&gate);
    assert_false(pm_vk_idle(f.d));
    assert_true(pm_device_hung(f.base));
    pthread_mutex_unlock(&gate);
    f.base->hung = false; /* the device does not really hang */
    f.d->vk = real;
    after_loss(&f);
}

/* ---- compiling ---------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL slow_compile(VkDevice d, VkPipelineCache c, uint32_t n,
                                                   const VkComputePipelineCreateInfo *info,
                                                   const VkAllocationCallbacks *a, VkPipeline *out)
{
    usleep(250000);
    return real.CreateComputePipelines(d, c, n, info, a, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL blocked_compile(VkDevice d, VkPipelineCache c, uint32_t n,
                                                      const VkComputePipelineCreateInfo *info,
                                                      const VkAllocationCallbacks *a,
                                                      VkPipeline *out)
{
    (void)d, (void)c, (void)n, (void)info, (void)a, (void)out;
    pass_gate();
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

/* The limit holds for each pipeline; together they take longer. */
static void test_slow_compile(void **state)
{
    enum { PIPELINES = 8 };
    struct axpy_params p[PIPELINES];
    struct pm_bound_call calls[PIPELINES];
    const int threads = pm_threads();
    struct fixture f;
    char *log;

    (void)state;
    fixture_open(&f);
    for (int i = 0; i < PIPELINES; i++) {
        calls[i] = axpy(&p[i], 1, (size_t)(i + 1), place(f.x, 0, N), place(f.y, 0, N));
        calls[i].kernel = &row_own;
    }
    f.desc.calls = calls, f.desc.calls_count = PIPELINES;
    f.d->vk.CreateComputePipelines = slow_compile;
    f.base->options.compile_seconds = 1.5;
    pm_threads_set(1);
    ok(make_program(f.base, &f.desc, &f.prog, &log));
    pm_threads_set(threads);
    assert_contains(log, " of 8 are ready after ");
    assert_contains(log, "(run.compile_seconds=1.5)");
    free(log);
    f.d->vk = real;
    run_once(f.prog);
    fixture_close(&f);
}

/* The driver does not return: the device counts as lost, and memory that its threads use is
 * kept. */
static void test_endless_compile(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    f.d->vk.CreateComputePipelines = blocked_compile;
    endless_compile(f.base, &f.desc, &f.prog);
    fixture_close(&f);
    assert_true(pm_device_caught(NULL));
    pthread_mutex_unlock(&gate);
    fixture_open(&f);
    ok(pm_program_create(f.base, &f.desc, &f.prog));
    run_once(f.prog);
    fixture_close(&f);
}

/* ---- memory ------------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL no_memory(VkDevice d, const VkMemoryAllocateInfo *info,
                                                const VkAllocationCallbacks *a, VkDeviceMemory *out)
{
    return calls_left-- > 0 ? real.AllocateMemory(d, info, a, out) : VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void test_no_memory(void **state)
{
    struct fixture f;
    struct pm_buffer *b = NULL;
    struct pm_place in;

    (void)state;
    fixture_open(&f);
    f.d->vk.AllocateMemory = no_memory;
    calls_left = 0;
    assert_int_equal(pm_buffer_create(f.base, 3 << 20, &b), PM_EMEMORY);
    assert_contains(pm_error_text(), "of 3 MiB");
    assert_contains(pm_error_text(), "VK_ERROR_OUT_OF_DEVICE_MEMORY");
    assert_contains(pm_error_text(), "buffers take 32 KiB");
    assert_null(b);
    assert_int_equal(pm_device_memory_used(f.base), 2 * N * sizeof(float));

    /* Half-made programs are freed: blocks for inputs and outputs of two slots. */
    in = place(f.x, 0, N);
    f.desc.in = &in, f.desc.in_count = 1, f.desc.slots = 2;
    for (int allowed = 0; allowed < 2; allowed++) {
        calls_left = allowed;
        assert_int_equal(pm_program_create(f.base, &f.desc, &f.prog), PM_EMEMORY);
        assert_null(f.prog);
    }
    calls_left = 2;
    ok(pm_program_create(f.base, &f.desc, &f.prog));
    run_once(f.prog);
    fixture_close(&f);
}

static void test_buffer_limit(void **state)
{
    struct vk_device *d = open_with_shaders(current);
    struct pm_buffer *b = NULL;

    (void)state;
    assert_int_equal(
        pm_buffer_create(&d->shared.base, d->shared.base.info.caps.max_buffer_bytes + 4, &b),
        PM_EMEMORY);
    assert_contains(pm_error_text(), "limit");
    close_device(d);
}

/* ---- every place that can fail ------------------------------------------------------ */

/* Opens, runs and closes a device like a user. Returns the first error, with everything freed. */
static int whole_life(void)
{
    int err = PM_OK;
    struct pm_device_info *list = NULL;
    size_t count = 0, index = 0, after[] = { 1, 3 };
    struct pm_device *d = NULL;
    struct pm_buffer *b[4] = { NULL };
    struct pm_program *prog = NULL;
    static float v[N];
    static struct tile_params tile = { N, 2, 4 };
    static struct wide_params wide = { .count = N };
    struct axpy_params p;
    struct pm_place at[4];
    struct pm_bound_call calls[4];
    struct pm_program_desc desc = { .calls = calls, .calls_count = 4, .in = &at[0], .in_count = 1,
                                    .out = &at[1], .out_after = after, .out_count = 2,
                                    .slots = 2 };

    if ((err = pm_device_list(&list, &count)) < 0)
        return err;
    while (index < count && list[index].kind != PM_KIND_SOFTWARE)
        index++;
    err = index < count ? pm_device_open(&list[index], NULL, &d) : PM_EDEVICE;
    if (err == PM_OK)
        ((struct vk_device *)d)->shared.pipelines.extra = test_shaders;
    for (int i = 0; i < 4 && err == PM_OK; i++) {
        err = pm_buffer_create(d, sizeof v, &b[i]);
        at[i] = place(b[i], 0, N);
        if (err == PM_OK)
            err = pm_buffer_write(d, b[i], 0, v, sizeof v);
    }
    calls[0] = axpy(&p, 2, N, at[0], at[1]);
    calls[1] = (struct pm_bound_call){ .kernel = &row_wide, .label = "wide", .count = N,
                                       .params = &wide, .buf = { at[1], at[2] } };
    calls[2] = (struct pm_bound_call){ .kernel = &row_tile_long, .label = "tile", .count = N,
                                       .params = &tile, .buf = { at[2], at[3] } };
    calls[3] = (struct pm_bound_call){ .kernel = &row_wide, .label = "wide", .count = N,
                                       .params = &wide, .buf = { at[3], at[0] } };
    if (err == PM_OK)
        err = pm_program_create(d, &desc, &prog);
    for (int i = 0; i < 2 && err == PM_OK; i++)
        err = pm_program_submit(prog, i);
    for (int i = 0; i < 2 && err == PM_OK; i++)
        if ((err = pm_program_wait_out(prog, i, 1)) == PM_OK)
            err = pm_program_wait(prog, i);
    if (err == PM_OK)
        err = pm_buffer_read(d, b[0], 0, v, sizeof v);
    if (err == PM_OK)
        err = pm_buffer_fill(d, b[0], 0, sizeof v, 1);
    pm_program_destroy(&prog);
    for (int i = 0; i < 4; i++)
        if (b[i])
            pm_buffer_destroy(d, &b[i]);
    pm_device_close(&d);
    pm_free(list);
    return err;
}

/* Every PM_TRY on the way fails once, in a separate process. It must end normally and, under the
 * sanitizers, leak nothing. */
static void test_every_failure(void **state)
{
    struct pm_str command = { 0 };
    int n, status = -1;

    (void)state;
    for (n = 1; n < 500 && status != 0; n++) {
        command.length = 0;
        pm_str_add(&command, "PM_FAIL_AT=%d PM_LOG=error /proc/%d/exe --life", n, (int)getpid());
        status = system(command.text);
        if (status != 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 7))
            fail_msg("PM_FAIL_AT=%d: status %d", n, status);
    }
    print_message("%d places\n", n - 2);
    assert_true(n > 30 && n < 500);
    pm_str_free(&command);
}

/* ---- the validation layer ----------------------------------------------------------- */

/* No message so far, and one as soon as there is a reason. */
static void test_messages(void **state)
{
    struct vk_device *d = open_with_shaders(current);
    VkBufferCreateInfo empty = { .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                 .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT };
    VkBuffer b = VK_NULL_HANDLE;
    uint64_t before = pm_device_messages();

    (void)state;
    assert_int_equal(before, 0);
    if (d->shared.base.options.validate) {
        d->vk.CreateBuffer(d->handle, &empty, NULL, &b);
        assert_true(pm_device_messages() > before);
        d->vk.DestroyBuffer(d->handle, b, NULL);
    }
    close_device(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_at_submit),
        cmocka_unit_test(test_lost_at_wait),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_slow_but_alive),
        cmocka_unit_test(test_endless_idle),
        cmocka_unit_test(test_slow_compile),
        cmocka_unit_test(test_endless_compile),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_buffer_limit),
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_messages),
    };

    if (argc > 1 && strcmp(argv[1], "--life") == 0) {
        int failed = whole_life();

        return failed < 0 || strstr(pm_error_text(), "injected") ? 7 : 0;
    }
    return on_software_driver(tests, PM_COUNT(tests));
}

/* When a driver does not return, the device's memory stays allocated; the leak sanitizer must
 * ignore it. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libvk_swiftshader\nleak:libvulkan\nleak:libVkLayer_khronos_validation\n";
}
