/* Shared by the tests of the OpenCL backend: PoCL's device with the shaders of shader_rows.h, whose
 * table of OpenCL functions tests change, and a program of two calls. */
#ifndef OPENCL_FIXTURE_H
#define OPENCL_FIXTURE_H

#include "device/opencl/device_cl.h"
#include "device/shader_rows.h"

#include <pumice/device.h>

static const struct pm_device_info *current;
static struct cl real;
static int calls_left; /* calls until a replaced entry fails, or no longer does */

static inline struct cl_device *open_device(const struct pm_device_options *options)
{
    struct pm_device *d = NULL;

    ok(pm_device_open(current, options, &d));
    ((struct cl_device *)d)->shared.pipelines.extra = test_shaders;
    return (struct cl_device *)d;
}

static inline void close_device(struct cl_device *c)
{
    struct pm_device *d = &c->shared.base;

    pm_device_close(&d);
}

/* x, y and a program of two calls over them, on one device. */
struct fixture {
    struct cl_device *d;
    struct pm_device *base; /* d's */
    struct pm_buffer *x, *y;
    struct axpy_params p[2];
    struct pm_bound_call calls[2];
    struct pm_program_desc desc;
    struct pm_program *prog;
};

static inline void fixture_open(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->d = open_device(NULL);
    f->base = &f->d->shared.base;
    real = f->d->cl;
    calls_left = 0;
    f->x = new_buffer(f->base, N, NULL);
    f->y = new_buffer(f->base, N, NULL);
    f->calls[0] = axpy(&f->p[0], 1, N, place(f->x, 0, N), place(f->y, 0, N));
    f->calls[1] = axpy(&f->p[1], 2, N, place(f->x, 0, N), place(f->y, 0, N));
    f->calls[0].label = "first";
    f->calls[1].label = "second";
    f->desc = (struct pm_program_desc){ .name = "trial", .calls = f->calls, .calls_count = 2,
                                        .slots = 1 };
}

static inline void fixture_close(struct fixture *f)
{
    pm_program_destroy(&f->prog);
    drop_buffer(f->base, f->x);
    drop_buffer(f->base, f->y);
    close_device(f->d);
}

static inline void fixture_make(struct fixture *f)
{
    fixture_open(f);
    ok(pm_program_create(f->base, &f->desc, &f->prog));
}

/* Opens the device, makes the program and starts its first run. */
static inline void fixture_start(struct fixture *f)
{
    fixture_make(f);
    ok(pm_program_submit(f->prog, 0));
}

/* Finds the first usable software device of OpenCL: PoCL's, unless OCL_ICD_VENDORS names another
 * driver. False: there is none. *list: free it with pm_free after the tests. */
static inline bool find_pocl(struct pm_device_info **list, size_t *count)
{
    static const char *const known[] = { "/etc/OpenCL/vendors/pocl.icd",
                                         "/usr/share/OpenCL/vendors/pocl.icd" };

    for (size_t i = 0; i < PM_COUNT(known) && !getenv("OCL_ICD_VENDORS"); i++)
        if (access(known[i], R_OK) == 0)
            setenv("OCL_ICD_VENDORS", known[i], 1);
    setenv("POCL_MAX_PTHREAD_COUNT", "2", 0);
    setenv("VK_DRIVER_FILES", "/nonexistent", 1);
    setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
    if (pm_device_list(list, count) < 0)
        *count = 0;
    for (size_t i = 0; i < *count && !current; i++)
        if (strncmp((*list)[i].address, "opencl:", 7) == 0 && (*list)[i].usable &&
            (*list)[i].kind == PM_KIND_SOFTWARE)
            current = &(*list)[i];
    return current != NULL;
}

/* Returns the exit code of a test without a device, after one line: 77 (skipped) if the driver is
 * not installed, else 1. */
static inline int without_device(void)
{
    const char *driver = getenv("OCL_ICD_VENDORS");
    const bool installed = driver && access(driver, R_OK) == 0;

    print_message(installed ? "%s is installed, but lists no usable device\n"
                            : "skipped: PoCL (package pocl-opencl-icd) is not installed\n", driver);
    return installed ? 1 : 77;
}

/* Runs the tests on PoCL. Returns 77 without it. */
static inline int on_pocl(const struct CMUnitTest *tests, size_t number, CMFixtureFunction set_up,
                          CMFixtureFunction tear_down)
{
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed;

    if (!find_pocl(&list, &count))
        failed = without_device();
    else
        failed = _cmocka_run_group_tests(current->name, tests, number, set_up, tear_down) ? 1 : 0;
    pm_free(list);
    return failed;
}

#endif
