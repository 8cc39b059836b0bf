/* Shared by the tests of the Vulkan backend's failures: a device of a software driver with
 * replaced entries in its table of Vulkan functions, so that faults are the same on every
 * driver, and a program of two calls. */
#ifndef VULKAN_FIXTURE_H
#define VULKAN_FIXTURE_H

#include "device/vulkan_rows.h"

#include <pumice/device.h>

static const struct pm_device_info *current;
static struct vk real;
static int calls_left; /* calls until a replaced entry fails */

/* x, y and a program of two calls over them, on one device. */
struct fixture {
    struct vk_device *d;
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
    f->d = open_with_shaders(current);
    f->base = &f->d->shared.base;
    real = f->d->vk;
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

/* Opens the device, makes the program and starts its first run. */
static inline void fixture_start(struct fixture *f)
{
    fixture_open(f);
    ok(pm_program_create(f->base, &f->desc, &f->prog));
    ok(pm_program_submit(f->prog, 0));
}

/* Runs the tests on the first software driver with a separate cache folder. Returns 77 without a
 * driver. */
static inline int on_software_driver(const struct CMUnitTest *tests, size_t number)
{
    struct pm_device_info *list = NULL;
    size_t count = 0, pick;
    char *cache;
    int failed = 77;

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
        failed = _cmocka_run_group_tests(current->name, tests, number, NULL, NULL) ? 1 : 0;
    } else {
        print_message("skipped: no software Vulkan driver is installed\n");
    }
    pm_free(list);
    drop_folder(cache);
    return failed;
}

#endif
