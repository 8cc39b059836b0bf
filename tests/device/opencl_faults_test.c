/* Failures of the OpenCL backend: lost and hanging devices, lack of memory, compilers that do not
 * return, drivers without times. opencl_calls_test lets every call fail. */
#include "device/fault_rows.h"
#include "device/opencl_fixture.h"

/* ---- loss --------------------------------------------------------------------------- */

static cl_int loss; /* result or status of the failing call */

static CL_API_ENTRY cl_int CL_API_CALL lost_kernel(cl_command_queue q, cl_kernel k, cl_uint n,
                                                   const size_t *at, const size_t *global,
                                                   const size_t *local, cl_uint waits,
                                                   const cl_event *list, cl_event *event)
{
    return calls_left-- > 0 ? real.EnqueueNDRangeKernel(q, k, n, at, global, local, waits, list,
                                                        event)
                            : loss;
}

static CL_API_ENTRY cl_int CL_API_CALL lost_flush(cl_command_queue q)
{
    return calls_left-- > 0 ? real.Flush(q) : loss;
}

static CL_API_ENTRY cl_int CL_API_CALL given_status(cl_event e, cl_event_info what, size_t size,
                                                    void *out, size_t *got)
{
    (void)e, (void)got;
    assert_int_equal(what, CL_EVENT_COMMAND_EXECUTION_STATUS);
    assert_int_equal(size, sizeof loss);
    if (calls_left-- > 0)
        return real.GetEventInfo(e, what, size, out, got);
    *(cl_int *)out = loss;
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL no_status(cl_event e, cl_event_info what, size_t size,
                                                 void *out, size_t *got)
{
    (void)e, (void)what, (void)size, (void)out, (void)got;
    return loss;
}

/* After a loss every call returns PM_ELOST, and the device can be closed and opened again. */
static void after_loss(struct fixture *f)
{
    float v[4] = { 0 };
    struct pm_program *other = NULL;

    assert_true(pm_device_lost(f->base));
    f->d->cl = real;
    assert_int_equal(pm_program_submit(f->prog, 0), PM_ELOST);
    assert_int_equal(pm_buffer_read(f->base, f->y, 0, v, sizeof v), PM_ELOST);
    assert_int_equal(pm_buffer_write(f->base, f->y, 0, v, sizeof v), PM_ELOST);
    assert_int_equal(pm_program_create(f->base, &f->desc, &other), PM_ELOST);
    fixture_close(f);
    fixture_make(f);
    run_once(f->prog);
    fixture_close(f);
}

static const char both[] = "calls first (test_axpy) to second (test_axpy)";

/* The message names the device, the call with its result, the program and its calls. */
static void names_the_loss(const char *call, const char *result, const char *calls)
{
    assert_contains(pm_error_text(), current->address);
    assert_contains(pm_error_text(), current->name);
    assert_contains(pm_error_text(), call);
    assert_contains(pm_error_text(), result);
    assert_contains(pm_error_text(), "; in trial, submission ");
    assert_contains(pm_error_text(), calls);
}

/* The second of two submissions fails. */
static void test_lost_at_submit(void **state)
{
    static const struct { cl_int r; const char *name; } losses[] = {
        { CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES (-5)" },
        { CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE (-2)" },
    };
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(losses); i++) {
        fixture_open(&f);
        f.d->shared.segment_seconds = 1e-30; /* puts every call into its own submission */
        ok(pm_program_create(f.base, &f.desc, &f.prog));
        assert_int_equal(((struct cl_program *)f.prog)->segment_count, 2);
        f.d->cl.EnqueueNDRangeKernel = lost_kernel;
        calls_left = 2 + 1; /* a run, then the first of two submissions */
        loss = losses[i].r;
        run_once(f.prog);
        assert_int_equal(pm_program_submit(f.prog, 0), PM_ELOST);
        names_the_loss("clEnqueueNDRangeKernel returned ", losses[i].name, " of 2, calls ");
        after_loss(&f);
    }
}

/* clFlush fails in each of its calls: while a block is made, in a copy, in a run. */
static void test_lost_at_flush(void **state)
{
    struct pm_buffer *b = NULL;
    struct fixture f;
    float v[4] = { 0 };

    (void)state;
    fixture_make(&f);
    loss = CL_OUT_OF_RESOURCES;
    calls_left = 0;
    f.d->cl.Flush = lost_flush;
    assert_int_equal(pm_program_submit(f.prog, 0), PM_ELOST);
    names_the_loss("clFlush returned ", "CL_OUT_OF_RESOURCES", both);
    after_loss(&f);
    fixture_make(&f);
    ok(pm_buffer_read(f.base, f.x, 0, v, sizeof v));
    f.d->cl.Flush = lost_flush;
    assert_int_equal(pm_buffer_read(f.base, f.x, 0, v, sizeof v), PM_ELOST);
    assert_contains(pm_error_text(), "clFlush returned CL_OUT_OF_RESOURCES");
    after_loss(&f);
    fixture_open(&f);
    f.d->cl.Flush = lost_flush;
    loss = CL_OUT_OF_HOST_MEMORY;
    assert_int_equal(pm_buffer_create(f.base, 4096, &b), PM_EMEMORY);
    assert_null(b);
    fixture_close(&f);
}

/* A command fails while it runs: its event has a negative status, or cannot be asked any more. */
static void test_lost_at_wait(void **state)
{
    struct fixture f;

    (void)state;
    fixture_start(&f);
    f.d->cl.GetEventInfo = given_status;
    calls_left = 0;
    loss = CL_OUT_OF_RESOURCES;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    names_the_loss("a command returned ", "CL_OUT_OF_RESOURCES", both);
    after_loss(&f);
    fixture_start(&f);
    f.d->cl.GetEventInfo = no_status;
    loss = CL_INVALID_EVENT;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    names_the_loss("a command returned ", "CL_INVALID_EVENT", both);
    after_loss(&f);
}

/* ---- hangs -------------------------------------------------------------------------- */

/* No progress within the allowed time is a loss, also in the first run. Memory that running work
 * may use is not freed. */
static void test_hang(void **state)
{
    const char *seconds;
    struct fixture f;

    (void)state;
    fixture_start(&f);
    f.d->cl.GetEventInfo = given_status;
    calls_left = 0;
    loss = CL_RUNNING;
    f.base->options.hang_seconds = 0.5;
    assert_false(pm_device_ran(f.base));
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_contains(pm_error_text(), "no submission ended for ");
    assert_contains(pm_error_text(), "(run.hang_seconds=0.5)");
    seconds = strstr(pm_error_text(), "ended for ") + strlen("ended for ");
    assert_true(atof(seconds) >= 0.5 && atof(seconds) < 3); /* each poll adds a second at most */
    assert_contains(pm_error_text(), "first (test_axpy)");
    assert_true(pm_device_hung(f.base));
    assert_false(pm_cl_idle(f.d));
    f.base->hung = false; /* the device does not really hang */
    after_loss(&f);
}

static int released;

static CL_API_ENTRY cl_int CL_API_CALL count_memory(cl_mem m)
{
    (void)m;
    released++;
    return CL_SUCCESS;
}
static CL_API_ENTRY cl_int CL_API_CALL count_context(cl_context c)
{
    (void)c;
    released++;
    return CL_SUCCESS;
}
static CL_API_ENTRY cl_int CL_API_CALL count_kernel(cl_kernel k)
{
    (void)k;
    released++;
    return CL_SUCCESS;
}
static CL_API_ENTRY cl_int CL_API_CALL count_program(cl_program p)
{
    (void)p;
    released++;
    return CL_SUCCESS;
}

/* Closing a device that hangs releases nothing of the driver, with one warning. */
static void test_hang_frees_nothing(void **state)
{
    struct fixture f;
    char *log = NULL;
    size_t size;
    FILE *file = open_memstream(&log, &size);

    (void)state;
    fixture_start(&f);
    f.d->cl.GetEventInfo = given_status;
    calls_left = 0;
    loss = CL_QUEUED;
    f.base->options.hang_seconds = 0.1;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    f.d->cl.ReleaseMemObject = count_memory;
    f.d->cl.ReleaseContext = count_context;
    f.d->cl.ReleaseKernel = count_kernel;
    f.d->cl.ReleaseProgram = count_program;
    released = 0;
    real.Finish(f.d->compute.handle); /* the device does not really hang */
    pm_log_file(file);
    fixture_close(&f);
    pm_log_file(NULL);
    fclose(file);
    assert_int_equal(released, 0);
    assert_int_equal(count_text(log, "its memory is freed only at exit"), 1);
    free(log);
}

static int naps;

/* Two of three questions about an event are answered with CL_RUNNING, each after 20 ms. */
static CL_API_ENTRY cl_int CL_API_CALL slow_status(cl_event e, cl_event_info what, size_t size,
                                                   void *out, size_t *got)
{
    usleep(20000);
    if (naps++ % 3 == 2)
        return real.GetEventInfo(e, what, size, out, got);
    *(cl_int *)out = CL_RUNNING;
    return CL_SUCCESS;
}

/* A slow device whose submissions end is not lost, although the run takes longer than the limit. */
static void test_slow_but_alive(void **state)
{
    enum { PARTS = 12 };
    struct axpy_params p[PARTS];
    struct pm_bound_call calls[PARTS];
    struct fixture f;
    double begun;

    (void)state;
    fixture_open(&f);
    f.d->shared.segment_seconds = 1e-30; /* puts every call into its own submission */
    for (int i = 0; i < PARTS; i++)
        calls[i] = axpy(&p[i], 1, N, place(f.x, 0, N), place(f.y, 0, N));
    f.desc.calls = calls, f.desc.calls_count = PARTS;
    ok(pm_program_create(f.base, &f.desc, &f.prog));
    assert_int_equal(((struct cl_program *)f.prog)->segment_count, PARTS);
    f.base->options.hang_seconds = 0.25;
    f.d->cl.GetEventInfo = slow_status;
    naps = 0;
    begun = pm_seconds();
    ok(pm_program_submit(f.prog, 0));
    ok(pm_program_wait(f.prog, 0));
    assert_true(pm_seconds() - begun > 2 * f.base->options.hang_seconds);
    f.d->cl = real;
    fixture_close(&f);
}

static CL_API_ENTRY cl_int CL_API_CALL blocked_finish(cl_command_queue q)
{
    (void)q;
    pass_gate();
    return CL_OUT_OF_RESOURCES;
}

/* Closing ends even when the driver never reports a lost device as idle. */
static void test_endless_finish(void **state)
{
    struct fixture f;

    (void)state;
    fixture_start(&f);
    f.d->cl.GetEventInfo = given_status;
    calls_left = 0;
    loss = CL_DEVICE_NOT_AVAILABLE;
    f.d->cl.Finish = blocked_finish;
    f.d->settle_seconds = 0.05;
    assert_int_equal(pm_program_wait(f.prog, 0), PM_ELOST);
    assert_false(pm_device_hung(f.base));
    pthread_mutex_lock(&gate);
    assert_false(pm_cl_idle(f.d));
    assert_true(pm_device_hung(f.base));
    pthread_mutex_unlock(&gate);
    f.base->hung = false; /* the device does not really hang */
    after_loss(&f);
}

/* ---- compiling ---------------------------------------------------------------------- */

static CL_API_ENTRY cl_int CL_API_CALL slow_build(cl_program p, cl_uint n,
                                                  const cl_device_id *list, const char *options,
                                                  void (CL_CALLBACK *notify)(cl_program, void *),
                                                  void *user)
{
    (void)notify, (void)user;
    usleep(250000);
    return real.BuildProgram(p, n, list, options, NULL, NULL);
}

static CL_API_ENTRY cl_int CL_API_CALL blocked_build(cl_program p, cl_uint n,
                                                     const cl_device_id *list,
                                                     const char *options,
                                                     void (CL_CALLBACK *notify)(cl_program,
                                                                                void *),
                                                     void *user)
{
    (void)p, (void)n, (void)list, (void)options, (void)notify, (void)user;
    pass_gate();
    return CL_OUT_OF_HOST_MEMORY;
}

enum { KERNELS = 8 };

/* Makes a program of kernels that no other test uses. */
static void make_kernels(struct fixture *f, struct axpy_params *p, struct pm_bound_call *calls,
                         char **log)
{
    for (int i = 0; i < KERNELS; i++) {
        calls[i] = axpy(&p[i], 1, (size_t)(i + 1), place(f->x, 0, N), place(f->y, 0, N));
        calls[i].kernel = &row_own;
    }
    f->desc.calls = calls, f->desc.calls_count = KERNELS;
    ok(make_program(f->base, &f->desc, &f->prog, log));
}

/* The limit holds for each kernel; together they take longer. The kernels are built before, so that
 * a build from their files takes the same time on every machine. */
static void test_slow_compile(void **state)
{
    struct axpy_params p[KERNELS];
    struct pm_bound_call calls[KERNELS];
    const int threads = pm_threads();
    struct fixture f;
    char *log;

    (void)state;
    fixture_open(&f);
    make_kernels(&f, p, calls, &log);
    free(log);
    fixture_close(&f);
    fixture_open(&f);
    f.d->cl.BuildProgram = slow_build;
    f.base->options.compile_seconds = 1.8;
    pm_threads_set(1);
    make_kernels(&f, p, calls, &log);
    pm_threads_set(threads);
    assert_contains(log, " of 8 are ready after ");
    assert_contains(log, "(run.compile_seconds=1.8)");
    free(log);
    f.d->cl = real;
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
    f.d->cl.BuildProgram = blocked_build;
    endless_compile(f.base, &f.desc, &f.prog);
    fixture_close(&f);
    assert_true(pm_device_caught(NULL));
    pthread_mutex_unlock(&gate);
    fixture_make(&f);
    run_once(f.prog);
    fixture_close(&f);
}

/* ---- memory ------------------------------------------------------------------------- */

static CL_API_ENTRY cl_mem CL_API_CALL no_buffer(cl_context c, cl_mem_flags flags, size_t size,
                                                 void *host, cl_int *r)
{
    if (calls_left-- > 0)
        return real.CreateBuffer(c, flags, size, host, r);
    *r = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

static CL_API_ENTRY cl_int CL_API_CALL no_fill(cl_command_queue q, cl_mem m, const void *pattern,
                                               size_t size, size_t at, size_t all, cl_uint n,
                                               const cl_event *list, cl_event *event)
{
    (void)q, (void)m, (void)pattern, (void)size, (void)at, (void)all, (void)n, (void)list,
        (void)event;
    return CL_OUT_OF_RESOURCES;
}

static void refuses_memory(struct fixture *f, const char *result)
{
    struct pm_buffer *b = NULL;

    assert_int_equal(pm_buffer_create(f->base, 3 << 20, &b), PM_EMEMORY);
    assert_contains(pm_error_text(), "no memory for a buffer of 3 MiB");
    assert_contains(pm_error_text(), result);
    assert_contains(pm_error_text(), "buffers take 32 KiB of the device's ");
    assert_contains(pm_error_text(), "run.micro_batches");
    assert_null(b);
    assert_int_equal(pm_device_memory_used(f->base), 2 * N * sizeof(float));
    assert_false(pm_device_lost(f->base));
}

/* Memory is refused when the buffer is made, when its first use fills it, or when the fill runs. */
static void test_no_memory(void **state)
{
    struct fixture f;
    struct pm_place in;

    (void)state;
    fixture_open(&f);
    f.d->cl.CreateBuffer = no_buffer;
    calls_left = 0;
    refuses_memory(&f, "CL_MEM_OBJECT_ALLOCATION_FAILURE");
    f.d->cl = real;
    f.d->cl.EnqueueFillBuffer = no_fill;
    refuses_memory(&f, "CL_OUT_OF_RESOURCES");
    f.d->cl = real;
    f.d->cl.GetEventInfo = given_status;
    calls_left = 0;
    loss = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    refuses_memory(&f, "CL_MEM_OBJECT_ALLOCATION_FAILURE");

    /* Half-made programs are freed: blocks for inputs of two slots. */
    in = place(f.x, 0, N);
    f.desc.in = &in, f.desc.in_count = 1, f.desc.slots = 2;
    f.d->cl = real;
    f.d->cl.CreateBuffer = no_buffer;
    for (int allowed = 0; allowed < 2; allowed++) {
        calls_left = allowed;
        assert_int_equal(pm_program_create(f.base, &f.desc, &f.prog), PM_EMEMORY);
        assert_null(f.prog);
    }
    calls_left = 2;
    ok(pm_program_create(f.base, &f.desc, &f.prog));
    run_once(f.prog);
    f.d->cl = real;
    fixture_close(&f);
}

static void test_buffer_limit(void **state)
{
    struct cl_device *d = open_device(NULL);
    struct pm_device *base = &d->shared.base;
    struct pm_buffer *b = NULL;

    (void)state;
    assert_int_equal(pm_buffer_create(base, base->info.caps.max_buffer_bytes + 4, &b), PM_EMEMORY);
    assert_contains(pm_error_text(), "exceeds the device's limit of ");
    close_device(d);
}

/* ---- times -------------------------------------------------------------------------- */

static CL_API_ENTRY cl_int CL_API_CALL no_times(cl_event e, cl_profiling_info what, size_t size,
                                                void *out, size_t *got)
{
    (void)e, (void)what, (void)size, (void)out, (void)got;
    return CL_PROFILING_INFO_NOT_AVAILABLE;
}

static CL_API_ENTRY cl_int CL_API_CALL zero_times(cl_event e, cl_profiling_info what, size_t size,
                                                  void *out, size_t *got)
{
    (void)e, (void)what, (void)size, (void)got;
    *(cl_ulong *)out = 0;
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL reversed_times(cl_event e, cl_profiling_info what,
                                                      size_t size, void *out, size_t *got)
{
    (void)e, (void)size, (void)got;
    *(cl_ulong *)out = what == CL_PROFILING_COMMAND_START ? 2000 : 1000;
    return CL_SUCCESS;
}

/* Without usable times of commands the host measures the run. Single calls have no times. */
static void test_no_times(void **state)
{
    static const __typeof__(&no_times) entries[] = { no_times, zero_times, reversed_times };
    double begin[2], end[2];
    struct fixture f;

    (void)state;
    fixture_open(&f);
    f.desc.timed = true;
    f.desc.in = &(struct pm_place){ f.x, 0, N * sizeof(float) }, f.desc.in_count = 1;
    ok(pm_program_create(f.base, &f.desc, &f.prog));
    for (size_t i = 0; i < PM_COUNT(entries); i++) {
        const double before = pm_seconds();

        f.d->cl.GetEventProfilingInfo = entries[i];
        run_once(f.prog);
        assert_int_equal(pm_program_call_times(f.prog, 0, begin, end), PM_EDEVICE);
        assert_contains(pm_error_text(), "has no times of commands");
        assert_contains(pm_error_text(), current->address);
        assert_int_equal(pm_program_copy_times(f.prog, 0, begin, end), PM_EDEVICE);
        assert_true(pm_program_begun(f.prog, 0) >= before);
        assert_true(pm_program_seconds(f.prog, 0) > 0);
        assert_true(pm_program_begun(f.prog, 0) + pm_program_seconds(f.prog, 0) <= pm_seconds());
    }
    f.d->cl = real;
    run_once(f.prog);
    ok(pm_program_call_times(f.prog, 0, begin, end));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_at_submit),  cmocka_unit_test(test_lost_at_flush),
        cmocka_unit_test(test_lost_at_wait),    cmocka_unit_test(test_hang),
        cmocka_unit_test(test_hang_frees_nothing),
        cmocka_unit_test(test_slow_but_alive),  cmocka_unit_test(test_endless_finish),
        cmocka_unit_test(test_slow_compile),    cmocka_unit_test(test_endless_compile),
        cmocka_unit_test(test_no_memory),       cmocka_unit_test(test_buffer_limit),
        cmocka_unit_test(test_no_times),
    };

    return on_pocl(tests, PM_COUNT(tests), NULL, NULL);
}
