/* The Vulkan backend when things go wrong: lost and hanging devices, no memory, variants that do
 * not compile, damaged caches. Faults come from replaced entries of the table of Vulkan functions,
 * so they are the same on every driver. */
#include "device/vulkan_rows.h"

#include <sys/wait.h>

#include <pumice/device.h>

enum { N = 64 * 64 };

static const struct pm_device_info *current;
static struct vk real;
static int calls_left; /* until a replaced entry fails */

/* x, y and a program of two calls over them, all on one device. */
struct fixture {
    struct vk_device *d;
    struct pm_buffer *x, *y;
    struct axpy_params p[2];
    struct pm_bound_call calls[2];
    struct pm_program_desc desc;
    struct pm_program *prog;
};

static void fixture_open(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->d = open_with_shaders(current);
    real = f->d->vk;
    f->x = new_buffer(f->d, N, NULL);
    f->y = new_buffer(f->d, N, NULL);
    f->calls[0] = axpy(&f->p[0], 1, N, place(f->x, 0, N), place(f->y, 0, N));
    f->calls[1] = axpy(&f->p[1], 2, N, place(f->x, 0, N), place(f->y, 0, N));
    f->calls[0].label = "first";
    f->calls[1].label = "second";
    f->desc = (struct pm_program_desc){ .name = "trial", .calls = f->calls, .calls_count = 2,
                                        .slots = 1 };
}

static void fixture_close(struct fixture *f)
{
    pm_program_destroy(&f->prog);
    drop_buffer(f->d, f->x);
    drop_buffer(f->d, f->y);
    close_device(f->d);
}

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

/* Everything after a loss says PM_ELOST, and the device can be closed and opened again. */
static void after_loss(struct fixture *f)
{
    float v[4] = { 0 };

    assert_int_equal(pm_program_submit(f->prog, 0), PM_ELOST);
    assert_int_equal(pm_buffer_read(&f->d->base, f->y, 0, v, sizeof v), PM_ELOST);
    fixture_close(f);
    fixture_open(f);
    ok(pm_program_create(&f->d->base, &f->desc, &f->prog));
    run_once(f->prog);
    fixture_close(f);
}

static void test_lost_at_submit(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    f.d->segment_seconds = 1e-30; /* every call a submission of its own */
    ok(pm_program_create(&f.d->base, &f.desc, &f.prog));
    assert_int_equal(((struct vk_program *)f.prog)->segment_count, 2);
    f.d->vk.QueueSubmit = lost_submit;
    f.d->vk.GetSemaphoreCounterValue = stuck_counter;
    calls_left = 2 + 1; /* a run, then the first of two submissions, which still ends */
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
    fixture_open(&f);
    ok(pm_program_create(&f.d->base, &f.desc, &f.prog));
    ok(pm_program_submit(f.prog, 0));
    f.d->vk.WaitSemaphores = lost_wait;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_contains(pm_error_text(), "vkWaitSemaphores");
    after_loss(&f);
}

/* No progress within the time allowed is a loss; what may still run is not freed. */
static void test_hang(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    ok(pm_program_create(&f.d->base, &f.desc, &f.prog));
    ok(pm_program_submit(f.prog, 0));
    f.d->vk.WaitSemaphores = endless_wait;
    f.d->vk.GetSemaphoreCounterValue = stuck_counter;
    counter = 0;
    f.d->base.options.hang_seconds = 0.02;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_contains(pm_error_text(), "no submission ended");
    assert_contains(pm_error_text(), "first (test_axpy)");
    assert_true(pm_device_hung(&f.d->base));
    assert_false(pm_vk_idle(f.d));
    f.d->base.hung = false; /* it does not really hang */
    f.d->vk = real;
    after_loss(&f);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static VKAPI_ATTR VkResult VKAPI_CALL blocked_idle(VkDevice d)
{
    (void)d;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return VK_ERROR_DEVICE_LOST;
}

/* A driver that never says that a lost device is idle does not stop the close. */
static void test_endless_idle(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    ok(pm_program_create(&f.d->base, &f.desc, &f.prog));
    ok(pm_program_submit(f.prog, 0));
    f.d->vk.WaitSemaphores = lost_wait;
    f.d->vk.DeviceWaitIdle = blocked_idle;
    f.d->settle_seconds = 0.05;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_false(pm_device_hung(&f.d->base));
    pthread_mutex_lock(&gate);
    assert_false(pm_vk_idle(f.d));
    assert_true(pm_device_hung(&f.d->base));
    pthread_mutex_unlock(&gate);
    f.d->base.hung = false; /* it does not really hang */
    f.d->vk = real;
    after_loss(&f);
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
    assert_int_equal(pm_buffer_create(&f.d->base, 3 << 20, &b), PM_EMEMORY);
    assert_contains(pm_error_text(), "of 3 MiB");
    assert_contains(pm_error_text(), "VK_ERROR_OUT_OF_DEVICE_MEMORY");
    assert_contains(pm_error_text(), "buffers take 32 KiB");
    assert_null(b);
    assert_int_equal(pm_device_memory_used(&f.d->base), 2 * N * sizeof(float));

    /* Half-made programs are taken apart: in and out blocks of two slots. */
    in = place(f.x, 0, N);
    f.desc.in = &in, f.desc.in_count = 1, f.desc.slots = 2;
    for (int allowed = 0; allowed < 2; allowed++) {
        calls_left = allowed;
        assert_int_equal(pm_program_create(&f.d->base, &f.desc, &f.prog), PM_EMEMORY);
        assert_null(f.prog);
    }
    calls_left = 2;
    ok(pm_program_create(&f.d->base, &f.desc, &f.prog));
    run_once(f.prog);
    fixture_close(&f);
}

static void test_buffer_limit(void **state)
{
    struct vk_device *d = open_with_shaders(current);
    struct pm_buffer *b = NULL;

    (void)state;
    assert_int_equal(pm_buffer_create(&d->base, d->base.info.caps.max_buffer_bytes + 4, &b),
                     PM_EMEMORY);
    assert_contains(pm_error_text(), "limit");
    close_device(d);
}

/* ---- variants ----------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL no_pipeline(VkDevice d, VkPipelineCache cache, uint32_t n,
                                                  const VkComputePipelineCreateInfo *info,
                                                  const VkAllocationCallbacks *a, VkPipeline *out)
{
    return calls_left-- > 0 ? real.CreateComputePipelines(d, cache, n, info, a, out)
                            : VK_ERROR_UNKNOWN;
}

/* Succeeds but for the first pipeline. */
static VKAPI_ATTR VkResult VKAPI_CALL first_fails(VkDevice d, VkPipelineCache cache, uint32_t n,
                                                  const VkComputePipelineCreateInfo *info,
                                                  const VkAllocationCallbacks *a, VkPipeline *out)
{
    return calls_left-- > 0 ? VK_ERROR_OUT_OF_HOST_MEMORY
                            : real.CreateComputePipelines(d, cache, n, info, a, out);
}

static float six_times(size_t i)
{
    return 6 * (float)(i % 97);
}

/* A program of one call of `row`, whose variant must be `variant` and whose result right. */
static void runs_variant(struct fixture *f, const struct pm_kernel *row, const int *levels,
                         const char *variant)
{
    struct tile_params p = { N, 2, 4 };
    struct pm_bound_call call = { .kernel = row, .label = "tile", .count = N, .params = &p,
                                  .buf = { place(f->x, 0, N), place(f->y, 0, N) } };
    struct pm_program_desc desc = { .calls = &call, .calls_count = 1, .slots = 1,
                                    .levels = levels };
    float *v = pm_malloc(N * sizeof *v);

    for (size_t i = 0; i < N; i++)
        v[i] = (float)(i % 97);
    ok(pm_buffer_write(&f->d->base, f->x, 0, v, N * sizeof *v));
    ok(pm_buffer_fill(&f->d->base, f->y, 0, N * sizeof *v, 0));
    ok(pm_program_create(&f->d->base, &desc, &f->prog));
    assert_string_equal(pm_program_variant(f->prog, 0), variant);
    run_once(f->prog);
    expect(f->d, f->y, N, six_times);
    pm_program_destroy(&f->prog);
    pm_free(v);
}

static void fails_to_make(struct fixture *f, const struct pm_kernel *row, int want,
                          const char *text)
{
    struct tile_params p = { N, 2, 4 };
    struct pm_bound_call call = { .kernel = row, .label = "tile", .count = N, .params = &p,
                                  .buf = { place(f->x, 0, N), place(f->y, 0, N) } };
    struct pm_program_desc desc = { .calls = &call, .calls_count = 1, .slots = 1 };

    assert_int_equal(pm_program_create(&f->d->base, &desc, &f->prog), want);
    assert_contains(pm_error_text(), text);
    assert_contains(pm_error_text(), row->name);
}

/* Level 0 cannot be had on any device: too large a workgroup, or too much shared memory. */
static bool pick_greedy(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    bool more = pick_tile(caps, params, count, level, out);

    if (level == 0) {
        out->variant = "greedy";
        out->d[0].spec[0] = 1 << 20;
    }
    return more;
}
static const struct pm_kernel row_greedy = {
    .name = "test_greedy", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_greedy,
};

static bool pick_shared(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    bool more = pick_tile(caps, params, count, level, out);

    if (level == 0)
        out->d[0].spec[3] = 1 << 12;
    return more;
}
static const struct pm_kernel row_shared = {
    .name = "test_shared", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_shared,
};

static bool pick_crowd(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    bool more = pick_tile(caps, params, count, 0, out);

    out->d[0].groups[1] = caps->max_groups[1] + 1;
    return more && level == 0;
}
static const struct pm_kernel row_crowd = {
    .name = "test_crowd", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_crowd,
};

static bool pick_scratch(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    bool more = pick_tile(caps, params, count, level, out);

    if (level == 0)
        out->scratch[2] = 1024;
    return more;
}
static const struct pm_kernel row_scratch = {
    .name = "test_scratch", .bufs = "r:x u:y t:s", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params) - 8, .pick = pick_scratch,
};

/* A row whose params are not those of the shader. */
static const struct pm_kernel row_mistaken = {
    .name = "test_mistaken", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params) + 4, .pick = pick_tile,
};

static void test_variants(void **state)
{
    static const int level = 1;
    struct fixture f;
    size_t bytes[PM_MAX_BUFS];
    struct tile_params p = { N, 2, 4 };

    (void)state;
    fixture_open(&f);
    runs_variant(&f, &row_tile, NULL, "wide");
    runs_variant(&f, &row_tile, &level, "narrow");
    runs_variant(&f, &row_greedy, NULL, "narrow");
    runs_variant(&f, &row_shared, NULL, "narrow");
    fails_to_make(&f, &row_crowd, PM_EDEVICE, "workgroups along y");
    fails_to_make(&f, &row_mistaken, PM_EFAIL, "push block");
    ok(pm_call_scratch(&f.d->base, &row_scratch, &p, N, 0, bytes));
    assert_int_equal(bytes[2], 1024);
    ok(pm_call_scratch(&f.d->base, &row_scratch, &p, N, 1, bytes));
    assert_int_equal(bytes[2], 0);
    assert_int_equal(pm_call_scratch(&f.d->base, &row_scratch, &p, N, 2, bytes), PM_EDEVICE);

    setenv("PM_VARIANT", "other:wide,test_tile:narrow", 1);
    runs_variant(&f, &row_tile, NULL, "narrow");
    setenv("PM_VARIANT", "test_greedy:greedy", 1);
    fails_to_make(&f, &row_greedy, PM_EDEVICE, "workgroups of that size");
    setenv("PM_VARIANT", "test_tile:enormous", 1);
    fails_to_make(&f, &row_tile, PM_ECONFIG, "it has wide, narrow");
    unsetenv("PM_VARIANT");
    fixture_close(&f);
}

static const char *variant_of(struct fixture *f, const struct pm_kernel *row, int level)
{
    struct tile_params p = { N, 2, 4 };
    const char *variant;

    ok(pm_call_variant(&f->d->base, row, &p, N, level, &variant));
    return variant ? variant : "none";
}

/* A variant that is avoided is passed over, at every level and by PM_VARIANT; its scratch is not
 * asked for; with none left there is one line. */
static void test_avoided(void **state)
{
    static const int level = 0;
    struct tile_params p = { N, 2, 4 };
    size_t bytes[PM_MAX_BUFS];
    struct fixture f;

    (void)state;
    fixture_open(&f);
    assert_string_equal(variant_of(&f, &row_tile, 0), "wide");
    assert_string_equal(variant_of(&f, &row_tile, 1), "narrow");
    assert_string_equal(variant_of(&f, &row_tile, 2), "none");
    pm_device_avoid(&f.d->base, "test_tile", "wide");
    pm_device_avoid(&f.d->base, "test_tile", "wide");
    pm_device_avoid(&f.d->base, "test_scratch", "wide");
    assert_string_equal(variant_of(&f, &row_tile, 0), "narrow");
    assert_string_equal(variant_of(&f, &row_greedy, 1), "narrow");
    runs_variant(&f, &row_tile, NULL, "narrow");
    runs_variant(&f, &row_tile, &level, "narrow");
    ok(pm_call_scratch(&f.d->base, &row_scratch, &p, N, 0, bytes));
    assert_int_equal(bytes[2], 0);
    setenv("PM_VARIANT", "test_tile:wide", 1);
    fails_to_make(&f, &row_tile, PM_EDEVICE, "is avoided");
    setenv("PM_VARIANT", "test_tile:narrow", 1);
    runs_variant(&f, &row_tile, NULL, "narrow");
    unsetenv("PM_VARIANT");
    pm_device_avoid(&f.d->base, "test_tile", "narrow");
    fails_to_make(&f, &row_tile, PM_EDEVICE, "these give wrong results: wide, narrow");
    assert_int_equal(pm_call_scratch(&f.d->base, &row_tile, &p, N, 0, bytes), PM_EDEVICE);
    assert_contains(pm_error_text(), "wide, narrow");
    assert_string_equal(variant_of(&f, &row_tile, 0), "none");
    pm_device_avoid(&f.d->base, "test_greedy", "narrow"); /* the other one does not compile */
    fails_to_make(&f, &row_greedy, PM_EDEVICE, "workgroups of that size");
    assert_int_not_equal(pm_device_shaders(&f.d->base), 0);
    fixture_close(&f);
}

/* A compiler that gives up on the first variant, then on all. */
static void test_failing_compiler(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    f.d->vk.CreateComputePipelines = first_fails;
    calls_left = 1;
    runs_variant(&f, &row_tile, NULL, "narrow");
    fixture_close(&f);

    fixture_open(&f);
    f.d->vk.CreateComputePipelines = no_pipeline;
    calls_left = 0;
    fails_to_make(&f, &row_tile, PM_EDEVICE, "VK_ERROR_UNKNOWN");
    fixture_close(&f);
}

/* ---- the cache on disk -------------------------------------------------------------- */

static void compile_something(void)
{
    struct fixture f;

    fixture_open(&f);
    runs_variant(&f, &row_tile, NULL, "wide");
    fixture_close(&f);
}

static void test_cache(void **state)
{
    const char *folder = getenv("XDG_CACHE_HOME");
    struct pm_arena *a = pm_arena_create();
    char *mine = pm_arena_printf(a, "%s/own", folder), **files = NULL, *data;
    size_t count = 0, size;

    (void)state;
    setenv("XDG_CACHE_HOME", mine, 1);
    compile_something();
    ok(pm_glob(a, pm_arena_printf(a, "%s/pumice/pipelines-*", mine), &files, &count));
    assert_int_equal(count, 1);
    ok(pm_file_read(files[0], &data, &size));
    assert_true(size > 16);
    compile_something();
    data[size - 1] ^= 0x55;
    ok(pm_file_write(files[0], data, size)); /* damaged */
    compile_something();
    ok(pm_file_write(files[0], data, 7)); /* torn */
    compile_something();
    ok(pm_file_write(files[0], "", 0));
    compile_something();
    pm_free(data);
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* cannot be written */
    compile_something();
    setenv("XDG_CACHE_HOME", folder, 1);
    pm_arena_destroy(&a);
}

/* ---- any place that can fail -------------------------------------------------------- */

/* What a user does, with everything freed however it ends: returns the first error. */
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
        ((struct vk_device *)d)->pipelines.extra = test_shaders;
    for (int i = 0; i < 4 && err == PM_OK; i++) {
        err = pm_buffer_create(d, sizeof v, &b[i]);
        at[i] = place(b[i], 0, N);
        if (err == PM_OK)
            err = pm_buffer_write(d, b[i], 0, v, sizeof v);
    }
    calls[0] = axpy(&p, 2, N, at[0], at[1]);
    calls[1] = (struct pm_bound_call){ .kernel = &row_square, .label = "square", .count = N,
                                       .buf = { at[1], at[2] } };
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

/* Every PM_TRY on the way fails once, in a process of its own that must end by itself and (under
 * the sanitizers) leak nothing. */
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

/* No message so far, and one as soon as there is reason for it. */
static void test_messages(void **state)
{
    struct vk_device *d = open_with_shaders(current);
    VkBufferCreateInfo empty = { .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                 .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT };
    VkBuffer b = VK_NULL_HANDLE;
    uint64_t before = pm_device_messages();

    (void)state;
    assert_int_equal(before, 0);
    if (d->base.options.validate) {
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
        cmocka_unit_test(test_endless_idle),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_buffer_limit),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_avoided),
        cmocka_unit_test(test_failing_compiler),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_messages),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0, pick;
    char *cache;
    int failed = 77;

    if (argc > 1 && strcmp(argv[1], "--life") == 0) {
        failed = whole_life();
        return failed < 0 || strstr(pm_error_text(), "injected") ? 7 : 0;
    }
    cache = make_folder();
    use_software_drivers();
    setenv("XDG_CACHE_HOME", cache, 1);
    if (pm_device_list(&list, &count) < 0)
        count = 0;
    for (pick = 0; pick < count; pick++)
        if (list[pick].kind == PM_KIND_SOFTWARE && list[pick].usable)
            break;
    if (pick < count) {
        current = &list[pick];
        failed = cmocka_run_group_tests_name(current->name, tests, NULL, NULL) ? 1 : 0;
    } else {
        print_message("skipped: no software Vulkan driver is installed\n");
    }
    pm_free(list);
    drop_folder(cache);
    return failed;
}
