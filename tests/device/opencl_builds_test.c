/* Kernels of the OpenCL backend that cannot be used because they are too large for the device, are
 * not built by the driver or are avoided; and the files that keep built kernels. */
#include "device/opencl_fixture.h"
#include "device/variant_rows.h"

/* ---- variants ----------------------------------------------------------------------- */

static CL_API_ENTRY cl_int CL_API_CALL no_build(cl_program p, cl_uint n, const cl_device_id *list,
                                                const char *options,
                                                void (CL_CALLBACK *notify)(cl_program, void *),
                                                void *user)
{
    (void)notify, (void)user;
    return calls_left-- > 0 ? real.BuildProgram(p, n, list, options, NULL, NULL)
                            : CL_BUILD_PROGRAM_FAILURE;
}

/* Fails for the first kernel only. */
static CL_API_ENTRY cl_int CL_API_CALL first_fails(cl_program p, cl_uint n,
                                                   const cl_device_id *list, const char *options,
                                                   void (CL_CALLBACK *notify)(cl_program, void *),
                                                   void *user)
{
    (void)notify, (void)user;
    return calls_left-- > 0 ? CL_BUILD_PROGRAM_FAILURE
                            : real.BuildProgram(p, n, list, options, NULL, NULL);
}

/* The log of a failed build. */
static CL_API_ENTRY cl_int CL_API_CALL build_log(cl_program p, cl_device_id d,
                                                 cl_program_build_info what, size_t size,
                                                 void *out, size_t *got)
{
    static const char text[] = "1 warning\nkernel.cl:3:7: error: the driver has a bad day\nmore\n";

    (void)p, (void)d;
    assert_int_equal(what, CL_PROGRAM_BUILD_LOG);
    if (got)
        *got = sizeof text;
    if (out)
        memcpy(out, text, size < sizeof text ? size : sizeof text);
    return CL_SUCCESS;
}

static void test_variants(void **state)
{
    static const int level = 1;
    struct fixture f;

    (void)state;
    fixture_open(&f);
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "wide");
    runs_variant(f.base, f.x, f.y, &row_tile, &level, "narrow");
    runs_variant(f.base, f.x, f.y, &row_greedy, NULL, "narrow");
    runs_variant(f.base, f.x, f.y, &row_shared, NULL, "narrow");
    fails_to_make(f.base, f.x, f.y, &row_crowd, PM_EDEVICE, "workgroups along y");
    fails_to_make(f.base, f.x, f.y, &row_mistaken, PM_EFAIL, "push block");
    setenv("PM_VARIANT", "other:wide,test_tile:narrow", 1);
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    setenv("PM_VARIANT", "test_greedy:greedy", 1);
    fails_to_make(f.base, f.x, f.y, &row_greedy, PM_EDEVICE, "workgroups of that size");
    setenv("PM_VARIANT", "test_tile:enormous", 1);
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_ECONFIG, "it has wide, narrow");
    unsetenv("PM_VARIANT");
    fixture_close(&f);
}

/* An avoided variant is skipped, and PM_VARIANT cannot force it. */
static void test_avoided(void **state)
{
    struct tile_params p = { N, 2, 4 };
    const char *variant;
    struct fixture f;

    (void)state;
    fixture_open(&f);
    pm_device_avoid(f.base, "test_tile", "wide");
    ok(pm_call_variant(f.base, &row_tile, &p, N, 0, &variant));
    assert_string_equal(variant, "narrow");
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    setenv("PM_VARIANT", "test_tile:wide", 1);
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_EDEVICE, "is avoided");
    unsetenv("PM_VARIANT");
    pm_device_avoid(f.base, "test_tile", "narrow");
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_EDEVICE,
                  "these give wrong results: wide, narrow");
    assert_int_not_equal(pm_device_shaders(f.base), 0);
    fixture_close(&f);
}

/* Keeps kernels in `folder`. Returns the folder before for usual_cache; NULL: none was set. */
static char *own_cache(const char *folder)
{
    const char *usual = getenv("XDG_CACHE_HOME");
    char *copy = usual ? pm_strdup(usual) : NULL;

    setenv("XDG_CACHE_HOME", folder, 1);
    return copy;
}

/* Keeps kernels in `usual` again, and frees it. */
static void usual_cache(char *usual)
{
    usual ? setenv("XDG_CACHE_HOME", usual, 1) : unsetenv("XDG_CACHE_HOME");
    pm_free(usual);
}

/* The driver builds no kernel for the first variant: the next one is used, with one warning, also
 * in later programs. If it builds none at all, the error names the device, the call and the line of
 * its log. */
static void test_failing_compiler(void **state)
{
    struct fixture f;
    char *folder = make_folder(), *log = NULL;
    char *usual = own_cache(folder); /* no kept kernel replaces the build */
    size_t size;
    FILE *file;

    (void)state;
    fixture_open(&f);
    f.d->cl.BuildProgram = first_fails;
    f.d->cl.GetProgramBuildInfo = build_log;
    calls_left = 1;
    file = open_memstream(&log, &size);
    pm_log_file(file);
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    pm_log_file(NULL);
    fclose(file);
    assert_int_equal(count_text(log, "is used instead"), 1);
    assert_contains(log, "test_tile: variant wide: test_tile: ");
    assert_contains(log, "narrow is used instead");
    assert_contains(log, "CL_BUILD_PROGRAM_FAILURE");
    free(log);
    fixture_close(&f);

    fixture_open(&f);
    f.d->cl.BuildProgram = no_build;
    f.d->cl.GetProgramBuildInfo = build_log;
    calls_left = 0;
    fails_to_make(f.base, f.x, f.y, &row_tile, PM_EDEVICE, "rejects it (CL_BUILD_PROGRAM_FAILURE): "
                  "kernel.cl:3:7: error: the driver has a bad day");
    assert_contains(pm_error_text(), current->address);
    assert_contains(pm_error_text(), "tile (test_tile) cannot run: variant narrow");
    assert_null(strstr(pm_error_text(), "more"));
    fixture_close(&f);
    usual_cache(usual);
    drop_folder(folder);
}

/* The kernel is built, but the driver allows smaller workgroups than the device's limit. */
static CL_API_ENTRY cl_int CL_API_CALL small_groups(cl_kernel k, cl_device_id d,
                                                    cl_kernel_work_group_info what, size_t size,
                                                    void *out, size_t *got)
{
    assert_int_equal(real.GetKernelWorkGroupInfo(k, d, what, size, out, got), CL_SUCCESS);
    assert_int_equal(what, CL_KERNEL_WORK_GROUP_SIZE);
    *(size_t *)out = 32;
    return CL_SUCCESS;
}

static void test_small_groups(void **state)
{
    struct fixture f;

    (void)state;
    fixture_open(&f);
    f.d->cl.GetKernelWorkGroupInfo = small_groups;
    /* wide has 64 invocations, narrow 8 */
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "narrow");
    fixture_close(&f);
}

/* ---- built kernels on disk ------------------------------------------------------------ */

static int sources, binaries;

static CL_API_ENTRY cl_program CL_API_CALL count_source(cl_context c, cl_uint n, const char **text,
                                                        const size_t *length, cl_int *r)
{
    sources++;
    return real.CreateProgramWithSource(c, n, text, length, r);
}

static CL_API_ENTRY cl_program CL_API_CALL count_binary(cl_context c, cl_uint n,
                                                        const cl_device_id *list,
                                                        const size_t *size,
                                                        const unsigned char **bytes,
                                                        cl_int *status, cl_int *r)
{
    binaries++;
    return real.CreateProgramWithBinary(c, n, list, size, bytes, status, r);
}

/* Builds and runs one kernel. from_source, from_file: how often it is made from each. */
static void build_something(int from_source, int from_file)
{
    struct fixture f;

    fixture_open(&f);
    sources = binaries = 0;
    f.d->cl.CreateProgramWithSource = count_source;
    f.d->cl.CreateProgramWithBinary = count_binary;
    runs_variant(f.base, f.x, f.y, &row_tile, NULL, "wide");
    assert_int_equal(sources, from_source);
    assert_int_equal(binaries, from_file);
    fixture_close(&f);
}

/* A second start loads the kernel's file. A damaged, cut or empty file, and an intact file whose
 * bytes the driver rejects, are ignored and replaced. */
static void test_kept_kernels(void **state)
{
    struct pm_arena *a = pm_arena_create();
    char *mine = make_folder(), **files = NULL, *data;
    char *usual = own_cache(mine);
    struct pm_str foreign = { 0 };
    size_t count = 0, size;

    (void)state;
    build_something(1, 0);
    ok(pm_glob(a, pm_arena_printf(a, "%s/pumice/opencl-*/*", mine), &files, &count));
    assert_int_equal(count, 1);
    build_something(0, 1);
    ok(pm_file_read(files[0], &data, &size));
    assert_true(size > 16);
    data[size - 1] ^= 0x55;
    ok(pm_file_write(files[0], data, size)); /* damaged */
    build_something(1, 0);
    build_something(0, 1);
    ok(pm_file_write(files[0], data, size / 2)); /* cut */
    build_something(1, 0);
    ok(pm_file_write(files[0], "", 0));
    build_something(1, 0);
    pm_pipeline_cache_wrap(&foreign, "another driver's bytes", 22);
    ok(pm_file_write(files[0], foreign.text, foreign.length));
    build_something(1, 1);
    build_something(0, 1);
    pm_str_free(&foreign);
    pm_free(data);
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* cannot be written */
    build_something(1, 0);
    usual_cache(usual);
    drop_folder(mine);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants),         cmocka_unit_test(test_avoided),
        cmocka_unit_test(test_failing_compiler), cmocka_unit_test(test_small_groups),
        cmocka_unit_test(test_kept_kernels),
    };

    return on_pocl(tests, PM_COUNT(tests), NULL, NULL);
}
