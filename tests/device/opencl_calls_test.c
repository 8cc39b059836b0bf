/* Every OpenCL call of a device's life fails once: with one result in a life without times, with
 * another in a life with times. Each failure is an error with a text or makes no difference; every
 * object that the driver made is released; and the next life works. The same for every PM_TRY that
 * a life reaches. */
#include "device/opencl_fixture.h"

#include <sys/wait.h>

/* ---- the entries -------------------------------------------------------------------- */

enum object { CONTEXT, QUEUE, BUFFER, PROGRAM, KERNEL, EVENT, OBJECTS };
static atomic_int alive[OBJECTS];
static atomic_int calls; /* so far in this life */
static int at;           /* the call that fails, from 1; 0: none */
static cl_int result;    /* its result */
static const char *failed;
static bool lets_pass; /* the failed call only reports or frees something */
static bool listing;   /* questions about devices are counted: only for lists */

static bool fails(const char *name, bool pass)
{
    if (!listing && strstr(name, "Info") && (strstr(name, "Device") || strstr(name, "Platform")))
        return false;
    if (atomic_fetch_add(&calls, 1) + 1 != at)
        return false;
    failed = name;
    lets_pass = pass;
    return true;
}

/* Questions about devices: a failure may hide the device or leave a value unknown. */
#define ASKS(F)                                                                                    \
    F(GetPlatformIDs, (cl_uint n, cl_platform_id *p, cl_uint *got), (n, p, got))                   \
    F(GetPlatformInfo, (cl_platform_id p, cl_platform_info w, size_t s, void *o, size_t *got),     \
      (p, w, s, o, got))                                                                           \
    F(GetDeviceIDs, (cl_platform_id p, cl_device_type t, cl_uint n, cl_device_id *d,               \
                     cl_uint *got), (p, t, n, d, got))                                             \
    F(GetDeviceInfo, (cl_device_id d, cl_device_info w, size_t s, void *o, size_t *got),           \
      (d, w, s, o, got))                                                                           \
    F(GetProgramInfo, (cl_program p, cl_program_info w, size_t s, void *o, size_t *got),           \
      (p, w, s, o, got))                                                                           \
    F(GetProgramBuildInfo, (cl_program p, cl_device_id d, cl_program_build_info w, size_t s,       \
                            void *o, size_t *got), (p, d, w, s, o, got))                           \
    F(GetEventProfilingInfo, (cl_event e, cl_profiling_info w, size_t s, void *o, size_t *got),    \
      (e, w, s, o, got))                                                                           \
    F(Finish, (cl_command_queue q), (q))
#define ANSWERS(F)                                                                                 \
    F(BuildProgram, (cl_program p, cl_uint n, const cl_device_id *d, const char *o,                \
                     void (CL_CALLBACK *f)(cl_program, void *), void *u), (p, n, d, o, f, u))      \
    F(SetKernelArg, (cl_kernel k, cl_uint i, size_t s, const void *v), (k, i, s, v))               \
    F(GetKernelWorkGroupInfo, (cl_kernel k, cl_device_id d, cl_kernel_work_group_info w, size_t s, \
                               void *o, size_t *got), (k, d, w, s, o, got))                        \
    F(Flush, (cl_command_queue q), (q))
#define ENQUEUES(F)                                                                                \
    F(EnqueueNDRangeKernel, (cl_command_queue q, cl_kernel k, cl_uint n, const size_t *o,          \
                             const size_t *g, const size_t *l, cl_uint c, const cl_event *w,       \
                             cl_event *e), (q, k, n, o, g, l, c, w, e))                            \
    F(EnqueueReadBuffer, (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t s, void *h,    \
                          cl_uint c, const cl_event *w, cl_event *e),                              \
      (q, m, b, o, s, h, c, w, e))                                                                 \
    F(EnqueueWriteBuffer, (cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t s,            \
                           const void *h, cl_uint c, const cl_event *w, cl_event *e),              \
      (q, m, b, o, s, h, c, w, e))                                                                 \
    F(EnqueueFillBuffer, (cl_command_queue q, cl_mem m, const void *p, size_t n, size_t o,         \
                          size_t s, cl_uint c, const cl_event *w, cl_event *e),                    \
      (q, m, p, n, o, s, c, w, e))                                                                 \
    F(EnqueueUnmapMemObject, (cl_command_queue q, cl_mem m, void *p, cl_uint c,                    \
                              const cl_event *w, cl_event *e), (q, m, p, c, w, e))                 \
    F(EnqueueMarkerWithWaitList, (cl_command_queue q, cl_uint c, const cl_event *w, cl_event *e),  \
      (q, c, w, e))                                                                                \
    F(EnqueueBarrierWithWaitList, (cl_command_queue q, cl_uint c, const cl_event *w, cl_event *e), \
      (q, c, w, e))
#define CREATES(F)                                                                                 \
    F(CONTEXT, CreateContext, cl_context, (const cl_context_properties *p, cl_uint n,              \
      const cl_device_id *d, void (CL_CALLBACK *f)(const char *, const void *, size_t, void *),    \
      void *u, cl_int *r), (p, n, d, f, u, r))                                                     \
    F(QUEUE, CreateCommandQueue, cl_command_queue, (cl_context c, cl_device_id d,                  \
      cl_command_queue_properties p, cl_int *r), (c, d, p, r))                                     \
    F(BUFFER, CreateBuffer, cl_mem, (cl_context c, cl_mem_flags f, size_t s, void *h, cl_int *r),  \
      (c, f, s, h, r))                                                                             \
    F(PROGRAM, CreateProgramWithSource, cl_program, (cl_context c, cl_uint n, const char **t,      \
      const size_t *l, cl_int *r), (c, n, t, l, r))                                                \
    F(PROGRAM, CreateProgramWithBinary, cl_program, (cl_context c, cl_uint n,                      \
      const cl_device_id *d, const size_t *l, const unsigned char **b, cl_int *s, cl_int *r),      \
      (c, n, d, l, b, s, r))                                                                       \
    F(KERNEL, CreateKernel, cl_kernel, (cl_program p, const char *n, cl_int *r), (p, n, r))
/* Freeing: the driver frees, then reports the failure. */
#define RELEASES(F)                                                                                \
    F(CONTEXT, ReleaseContext, cl_context)                                                         \
    F(QUEUE, ReleaseCommandQueue, cl_command_queue)                                                \
    F(BUFFER, ReleaseMemObject, cl_mem)                                                            \
    F(PROGRAM, ReleaseProgram, cl_program)                                                         \
    F(KERNEL, ReleaseKernel, cl_kernel)                                                            \
    F(EVENT, ReleaseEvent, cl_event)

#define ASK(NAME, PARAMETERS, ARGUMENTS)                                                           \
    static CL_API_ENTRY cl_int CL_API_CALL on_##NAME PARAMETERS                                    \
    {                                                                                              \
        return fails("cl" #NAME, true) ? result : real.NAME ARGUMENTS;                             \
    }
ASKS(ASK)
#define ANSWER(NAME, PARAMETERS, ARGUMENTS)                                                        \
    static CL_API_ENTRY cl_int CL_API_CALL on_##NAME PARAMETERS                                    \
    {                                                                                              \
        return fails("cl" #NAME, false) ? result : real.NAME ARGUMENTS;                            \
    }
ANSWERS(ANSWER)
#define ENQUEUE(NAME, PARAMETERS, ARGUMENTS)                                                       \
    static CL_API_ENTRY cl_int CL_API_CALL on_##NAME PARAMETERS                                    \
    {                                                                                              \
        const cl_int r = fails("cl" #NAME, !e) ? result : real.NAME ARGUMENTS;                     \
                                                                                                   \
        alive[EVENT] += r == CL_SUCCESS && e;                                                      \
        return r;                                                                                  \
    }
ENQUEUES(ENQUEUE)
#define CREATE(OBJECT, NAME, TYPE, PARAMETERS, ARGUMENTS)                                          \
    static CL_API_ENTRY TYPE CL_API_CALL on_##NAME PARAMETERS                                      \
    {                                                                                              \
        TYPE made;                                                                                 \
                                                                                                   \
        if (fails("cl" #NAME, strcmp(#NAME, "CreateProgramWithBinary") == 0))                      \
            return *r = result, NULL;                                                              \
        made = real.NAME ARGUMENTS;                                                                \
        alive[OBJECT] += made != NULL;                                                             \
        return made;                                                                               \
    }
CREATES(CREATE)
#define RELEASE(OBJECT, NAME, TYPE)                                                                \
    static CL_API_ENTRY cl_int CL_API_CALL on_##NAME(TYPE x)                                       \
    {                                                                                              \
        const bool failing = fails("cl" #NAME, true);                                              \
        const cl_int r = real.NAME(x);                                                             \
                                                                                                   \
        alive[OBJECT] -= r == CL_SUCCESS;                                                          \
        if (r != CL_SUCCESS)                                                                       \
            fail_msg("cl" #NAME ": %s", pm_cl_result_name(r));                                     \
        return failing ? result : r;                                                               \
    }
RELEASES(RELEASE)

/* Counts the questions whose answer is that the command has ended: how many come before depends on
 * the time. */
static CL_API_ENTRY cl_int CL_API_CALL on_GetEventInfo(cl_event e, cl_event_info w, size_t s,
                                                       void *o, size_t *got)
{
    const cl_int r = real.GetEventInfo(e, w, s, o, got);

    return *(cl_int *)o == CL_COMPLETE && fails("clGetEventInfo", false) ? result : r;
}

static CL_API_ENTRY cl_int CL_API_CALL on_RetainEvent(cl_event e)
{
    alive[EVENT]++;
    return real.RetainEvent(e);
}

static CL_API_ENTRY void *CL_API_CALL on_EnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool b,
                                                          cl_map_flags f, size_t o, size_t s,
                                                          cl_uint c, const cl_event *w,
                                                          cl_event *e, cl_int *r)
{
    void *p;

    if (fails("clEnqueueMapBuffer", false))
        return *r = result, NULL;
    p = real.EnqueueMapBuffer(q, m, b, f, o, s, c, w, e, r);
    alive[EVENT] += p != NULL;
    return p;
}

static void on_load(struct cl *cl)
{
    real = *cl;
#define SET(NAME, ...) cl->NAME = on_##NAME;
#define SET_SECOND(OBJECT, NAME, ...) cl->NAME = on_##NAME;
    ASKS(SET) ANSWERS(SET) ENQUEUES(SET) CREATES(SET_SECOND) RELEASES(SET_SECOND)
    cl->GetEventInfo = on_GetEventInfo;
    cl->RetainEvent = on_RetainEvent;
    cl->EnqueueMapBuffer = on_EnqueueMapBuffer;
}

/* ---- a life ------------------------------------------------------------------------- */

/* What a life uses. */
struct life {
    struct pm_device_info *list;
    size_t count;
    struct pm_device *d;
    struct pm_buffer *b[4];
    struct pm_program *prog;
};

static int make_buffers(struct life *l, const float *v, size_t bytes)
{
    int err = PM_OK;

    for (int i = 0; i < 4; i++) {
        PM_TRY(pm_buffer_create(l->d, bytes, &l->b[i]));
        PM_TRY(pm_buffer_write(l->d, l->b[i], 0, v, bytes));
    }
out:
    return err;
}

static int run_program(struct life *l)
{
    int err = PM_OK;

    for (int i = 0; i < 2; i++)
        PM_TRY(pm_program_submit(l->prog, i));
    for (int i = 0; i < 2; i++) {
        PM_TRY(pm_program_wait_out(l->prog, i, 1));
        PM_TRY(pm_program_wait(l->prog, i));
    }
out:
    return err;
}

/* Lists, opens, runs and closes a device as a user does. Early outputs are copied on the second
 * queue. Returns the first error, with everything freed. */
static int whole_life(bool timed)
{
    enum { BIG = 1 << 14 }; /* 64 KiB */
    int err = PM_OK;
    size_t index = 0;
    const size_t after[] = { 1, 4 };
    struct life l = { 0 };
    static float v[BIG];
    static struct tile_params tile = { BIG, 8, 8 };
    static struct wide_params wide = { .count = BIG };
    struct axpy_params p;
    struct pm_place place_of[4];
    struct pm_bound_call list[4];
    struct pm_program_desc desc = { .name = "life", .calls = list, .calls_count = 4,
                                    .in = &place_of[0], .in_count = 1, .out = &place_of[1],
                                    .out_after = after, .out_count = 2, .slots = 2,
                                    .timed = timed };

    PM_TRY(pm_device_list(&l.list, &l.count));
    while (index < l.count && strncmp(l.list[index].address, "opencl:", 7) != 0)
        index++;
    if (index == l.count)
        PM_TRY(pm_fail(PM_EDEVICE, "no device is listed"));
    PM_TRY(pm_device_open(&l.list[index], NULL, &l.d));
    ((struct pm_shader_device *)l.d)->pipelines.extra = test_shaders;
    PM_TRY(make_buffers(&l, v, sizeof v));
    for (int i = 0; i < 4; i++)
        place_of[i] = place(l.b[i], 0, BIG);
    list[0] = axpy(&p, 2, BIG, place_of[0], place_of[1]);
    list[1] = (struct pm_bound_call){ .kernel = &row_wide, .label = "wide", .count = BIG,
                                      .params = &wide, .buf = { place_of[1], place_of[2] } };
    list[2] = (struct pm_bound_call){ .kernel = &row_tile_long, .label = "tile", .count = BIG,
                                      .params = &tile, .buf = { place_of[2], place_of[3] } };
    list[3] = (struct pm_bound_call){ .kernel = &row_wide, .label = "wide", .count = BIG,
                                      .params = &wide, .buf = { place_of[3], place_of[0] } };
    PM_TRY(pm_program_create(l.d, &desc, &l.prog));
    PM_TRY(run_program(&l));
    PM_TRY(pm_buffer_read(l.d, l.b[0], 0, v, sizeof v));
    PM_TRY(pm_buffer_fill(l.d, l.b[0], 0, sizeof v, 1));
out:
    pm_program_destroy(&l.prog);
    for (int i = 0; i < 4; i++)
        if (l.b[i])
            pm_buffer_destroy(l.d, &l.b[i]);
    pm_device_close(&l.d);
    pm_free(l.list);
    return err;
}

/* ---- the tests ---------------------------------------------------------------------- */

static void all_released(int n)
{
    static const char *const names[] = { "contexts", "queues", "buffers", "programs", "kernels",
                                         "events" };

    for (int i = 0; i < OBJECTS; i++)
        if (alive[i] != 0)
            fail_msg("call %d, %s: %d %s are left", n, failed, alive[i], names[i]);
}

/* One life in which call n fails. False: there is no such call. */
static bool fail_call(int n, cl_int r, bool timed)
{
    char *log = NULL;
    size_t size;
    FILE *file = open_memstream(&log, &size);
    int err;

    at = n, result = r, failed = NULL, calls = 0;
    memset(alive, 0, sizeof alive);
    pm_fail(PM_EFAIL, "no text"); /* a failure must set its own */
    pm_log_file(file);
    err = whole_life(timed);
    pm_log_file(NULL);
    fclose(file);
    if (!failed) {
        free(log);
        return false;
    }
    all_released(n);
    if (err == PM_OK && !lets_pass && !strstr(log, "is used instead") &&
        strcmp(failed, "clBuildProgram") != 0) /* a kept kernel is built from its source then */
        fail_msg("call %d, %s, failed, and nobody noticed", n, failed);
    free(log);
    if (err < 0 && (err == PM_EFAIL || strcmp(pm_error_text(), "no text") == 0))
        fail_msg("call %d, %s: %d: %s", n, failed, err, pm_error_text());
    return true;
}

/* Each question of a list fails once: a device stays in the list, usable or with a reason, or the
 * list has none. */
static void test_listing(void **state)
{
    int n = 1;

    (void)state;
    pm_cl_loaded = on_load;
    listing = true;
    for (failed = "none"; failed; n++) {
        struct pm_device_info *list = NULL;
        size_t count = 0;

        at = n, result = CL_OUT_OF_HOST_MEMORY, failed = NULL, calls = 0;
        ok(pm_device_list(&list, &count));
        for (size_t i = 0; i < count; i++)
            if (!list[i].usable && !list[i].reason[0])
                fail_msg("call %d, %s: %s has no reason", n, failed, list[i].address);
        assert_string_equal(list[count - 1].address, "cpu");
        pm_free(list);
    }
    listing = false;
    pm_cl_loaded = NULL;
    print_message("%d calls\n", n - 2);
    assert_true(n > 30);
}

/* Every call, with this result; then the device works. Returns the number of calls. */
static int fail_all(cl_int r, bool timed)
{
    int n = 1;

    pm_cl_loaded = on_load;
    while (n < 3000 && fail_call(n, r, timed))
        n++;
    at = 0;
    ok(whole_life(timed));
    pm_cl_loaded = NULL;
    return n - 1;
}

static void test_calls(void **state)
{
    const int untimed = fail_all(CL_OUT_OF_RESOURCES, false);
    const int timed = fail_all(CL_INVALID_VALUE, true);

    (void)state;
    print_message("%d and %d calls\n", untimed, timed);
    assert_true(untimed > 200 && timed > untimed && timed < 3000);
}

/* Every PM_TRY on the way fails once, in a separate process, which must end normally. */
static void test_every_failure(void **state)
{
    struct pm_str command = { 0 };
    int n, status = -1;

    (void)state;
    for (n = 1; n < 500 && status != 0; n++) {
        command.length = 0;
        pm_str_add(&command, "PM_FAIL_AT=%d PM_LOG=error /proc/%d/exe --life 2>/dev/null", n,
                   (int)getpid());
        status = system(command.text);
        if (status != 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 7))
            fail_msg("PM_FAIL_AT=%d: status %d", n, status);
    }
    print_message("%d places\n", n - 2);
    assert_true(n > 30 && n < 500);
    pm_str_free(&command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listing),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_every_failure),
    };

    if (argc > 1 && strcmp(argv[1], "--life") == 0) {
        const int failed_life = whole_life(false);

        return failed_life < 0 || strstr(pm_error_text(), "injected") ? 7 : 0;
    }
    return on_pocl(tests, PM_COUNT(tests), NULL, NULL);
}
