/* Shader variants that cannot be used because they are too large for the device, do not compile
 * or are avoided; and damaged caches of compiled pipelines. */
#include "device/variant_rows.h"
#include "device/vulkan_fixture.h"

/* ---- variants ----------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL no_pipeline(VkDevice d, VkPipelineCache cache, uint32_t n,
                                                  const VkComputePipelineCreateInfo *info,
                                                  const VkAllocationCallbacks *a, VkPipeline *out)
{
    return calls_left-- > 0 ? real.CreateComputePipelines(d, cache, n, info, a, out)
                            : VK_ERROR_UNKNOWN;
}

/* Fails for the first pipeline only. */
static VKAPI_ATTR VkResult VKAPI_CALL first_fails(VkDevice d, VkPipelineCache cache, uint32_t n,
                                                  const VkComputePipelineCreateInfo *info,
                                                  const VkAllocationCallbacks *a, VkPipeline *out)
{
    return calls_left-- > 0 ? VK_ERROR_OUT_OF_HOST_MEMORY
                            : real.CreateComputePipelines(d, cache, n, info, a, out);
}

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

static void test_variants(void **state)
{
    static const int level = 1;
    struct fixture f;
    size_t bytes[PM_MAX_BUFS];
    struct tile_params p = { N, 2, 4 };

    (void)state;
    fixture_open(&f);
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "wide");
    runs_variant(f.base, f.x, f.y, &row_tile, &level, "narrow");
    runs_variant(f.base, f.x, f.y, &row_greedy, NULL, "narrow");
    runs_variant(f.base, f.x, f.y, &row_shared, NULL, "narrow");
    fails_to_make(f.base, f.x, f.y, &row_crowd, PM_EDEVICE, "workgroups along y");
    fails_to_make(f.base, f.x, f.y, &row_mistaken, PM_EFAIL, "push block");
    ok(pm_call_scratch(f.base, &row_scratch, &p, N, 0, bytes));
    assert_int_equal(bytes[2], 1024);
    ok(pm_call_scratch(f.base, &row_scratch, &p, N, 1, bytes));
    assert_int_equal(bytes[2], 0);
    assert_int_equal(pm_call_scratch(f.base, &row_scratch, &p, N, 2, bytes), PM_EDEVICE);

    setenv("PM_VARIANT", "other:wide,test_tile:narrow", 1);
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    setenv("PM_VARIANT", "test_greedy:greedy", 1);
    fails_to_make(f.base, f.x, f.y, &row_greedy, PM_EDEVICE, "workgroups of that size");
    setenv("PM_VARIANT", "test_tile:enormous", 1);
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_ECONFIG, "it has wide, narrow");
    unsetenv("PM_VARIANT");
    fixture_close(&f);
}

static const char *variant_of(struct fixture *f, const struct pm_kernel *row, int level)
{
    struct tile_params p = { N, 2, 4 };
    const char *variant;

    ok(pm_call_variant(f->base, row, &p, N, level, &variant));
    return variant ? variant : "none";
}

/* An avoided variant is skipped, at every level and with PM_VARIANT, and its scratch is not
 * allocated. When no variant is left, there is one line of error. */
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
    pm_device_avoid(f.base, "test_tile", "wide");
    pm_device_avoid(f.base, "test_tile", "wide");
    pm_device_avoid(f.base, "test_scratch", "wide");
    assert_string_equal(variant_of(&f, &row_tile, 0), "narrow");
    assert_string_equal(variant_of(&f, &row_greedy, 1), "narrow");
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    runs_variant(f.base, f.x, f.y, &row_tile, &level, "narrow");
    ok(pm_call_scratch(f.base, &row_scratch, &p, N, 0, bytes));
    assert_int_equal(bytes[2], 0);
    setenv("PM_VARIANT", "test_tile:wide", 1);
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_EDEVICE, "is avoided");
    setenv("PM_VARIANT", "test_tile:narrow", 1);
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    unsetenv("PM_VARIANT");
    pm_device_avoid(f.base, "test_tile", "narrow");
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_EDEVICE,
                  "these give wrong results: wide, narrow");
    assert_int_equal(pm_call_scratch(f.base, &row_tile, &p, N, 0, bytes), PM_EDEVICE);
    assert_contains(pm_error_text(), "wide, narrow");
    assert_string_equal(variant_of(&f, &row_tile, 0), "none");
    /* The other variant does not compile. */
    pm_device_avoid(f.base, "test_greedy", "narrow");
    fails_to_make(f.base, f.x, f.y, &row_greedy, PM_EDEVICE, "workgroups of that size");
    assert_int_not_equal(pm_device_shaders(f.base), 0);
    fixture_close(&f);
}

/* The compiler fails for the first variant, then for all. */
static void test_failing_compiler(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    f.d->vk.CreateComputePipelines = first_fails;
    calls_left = 1;
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    fixture_close(&f);

    fixture_open(&f);
    f.d->vk.CreateComputePipelines = no_pipeline;
    calls_left = 0;
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_EDEVICE, "VK_ERROR_UNKNOWN");
    fixture_close(&f);
}

/* ---- the cache on disk -------------------------------------------------------------- */

static void compile_something(void)
{
    struct fixture f;

    fixture_open(&f);
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "wide");
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
    ok(pm_file_write(files[0], data, 7)); /* cut short */
    compile_something();
    ok(pm_file_write(files[0], "", 0));
    compile_something();
    pm_free(data);
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* cannot be written */
    compile_something();
    setenv("XDG_CACHE_HOME", folder, 1);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_avoided),
        cmocka_unit_test(test_failing_compiler),
        cmocka_unit_test(test_cache),
    };

    return on_software_driver(tests, PM_COUNT(tests));
}
