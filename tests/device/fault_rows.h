/* Shared by the tests of failures of the backends that run shaders: a gate that stops the driver's
 * functions, a row with many variants, and a compiler that does not return. */
#ifndef FAULT_ROWS_H
#define FAULT_ROWS_H

#include "device/shader_rows.h"

#include <pumice/device.h>
#include <pumice/thread.h>

/* While a test holds the gate, the driver's functions that call pass_gate do not return. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static inline void pass_gate(void)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

/* A separate variant for every value of `count`. */
static bool pick_own(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct axpy_params *p = params;

    (void)caps, (void)count;
    *out = (struct pm_picks){ .count = 1, .variant = "own" };
    out->d[0] = (struct pm_dispatch){ .shader = "test_axpy", .specs = 1, .groups = { 1, 1, 1 },
                                      .spec = { (uint32_t)p->count } };
    return level == 0;
}
static const struct pm_kernel row_own = {
    .name = "test_axpy", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct axpy_params), .pick = pick_own,
};

/* Makes the program. *log gets the log; free it with free. */
static inline int make_program(struct pm_device *d, const struct pm_program_desc *desc,
                               struct pm_program **prog, char **log)
{
    size_t size;
    FILE *file = open_memstream(log, &size);
    int err;

    pm_log_file(file);
    err = pm_program_create(d, desc, prog);
    pm_log_file(NULL);
    fclose(file);
    return err;
}

/* Makes a program of row_axpy with a driver whose compiler waits at the gate, and leaves the gate
 * locked: close the device before unlocking it. */
static inline void endless_compile(struct pm_device *d, const struct pm_program_desc *desc,
                                   struct pm_program **prog)
{
    char *log;

    d->options.compile_seconds = 0.3;
    assert_false(pm_device_caught(NULL));
    pthread_mutex_lock(&gate);
    assert_int_equal(make_program(d, desc, prog, &log), PM_ELOST);
    assert_contains(log, "compiles shaders: 0 of 1 are ready after ");
    free(log);
    assert_contains(pm_error_text(), d->info.address);
    assert_contains(pm_error_text(), "finished no shader for 0.");
    assert_contains(pm_error_text(), "test_axpy is not (run.compile_seconds=0.3; ");
    assert_true(pm_device_hung(d) && pm_device_caught(d));
    assert_int_equal(pm_program_create(d, desc, prog), PM_ELOST);
    assert_contains(pm_error_text(), "was lost"); /* compiles nothing beside the first thread */
    assert_null(strstr(pm_error_text(), "finished no shader"));
}

#endif
