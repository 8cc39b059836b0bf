/* device_cl: opens and closes a device. queue_cl.c handles work on its queues. */
#include "device/opencl/device_cl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Finds the device by name and driver; if several agree, by its address. */
static int find_physical(struct cl_device *d, const struct pm_device_info *info)
{
    struct cl_physical *list = NULL;
    size_t count = 0, found = 0;
    bool any = false;

    pm_cl_enumerate(&d->cl, &list, &count);
    for (size_t i = 0; i < count; i++) {
        const struct pm_device_info *x = &list[i].info;

        if (strcmp(x->name, info->name) != 0 || strcmp(x->driver, info->driver) != 0 ||
            strcmp(x->uuid, info->uuid) != 0)
            continue;
        if (!any || strcmp(x->address, info->address) == 0)
            found = i;
        any = true;
    }
    if (any)
        d->physical = list[found];
    pm_free(list);
    return any ? PM_OK : pm_fail(PM_EDEVICE, "%s: %s is no longer there", info->address,
                                 info->name);
}

/* Guesses work per second by kind of device, on the low side: a low guess only makes submissions
 * shorter. */
static void guess_speed(struct cl_device *d)
{
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    struct pm_shader_device *s = &d->shared;

    s->flops = 1e12, s->bytes = 5e10;
    if (s->base.info.kind == PM_KIND_SOFTWARE)
        s->flops = cores * 5e9, s->bytes = cores * 2e9;
    else if (s->base.info.kind == PM_KIND_DISCRETE)
        s->flops = 2e12, s->bytes = 1e11;
    else if (s->base.info.kind == PM_KIND_INTEGRATED)
        s->flops = 3e11, s->bytes = 2e10;
}

static void CL_CALLBACK report(const char *text, const void *data, size_t size, void *user)
{
    (void)data, (void)size, (void)user;
    PM_DEBUG("opencl", "driver: %s", text);
}

static void close_device(struct pm_device *base)
{
    struct cl_device *d = (struct cl_device *)base;
    const bool idle = pm_cl_idle(d);

    if (atomic_load(&base->caught)) {
        pm_shader_device_leave(&d->shared);
        return;
    }
    pm_cl_pipelines_close(d, idle);
    if (idle && d->staging)
        pm_cl_block_destroy(d, d->staging);
    pm_cl_queue_destroy(d, &d->compute, idle);
    pm_cl_queue_destroy(d, &d->transfer, idle);
    if (idle && d->context)
        d->cl.ReleaseContext(d->context);
    if (!idle)
        PM_WARN("opencl", "%s hangs: its memory is freed only at exit", base->info.address);
    pm_free(d->staging);
    pthread_mutex_destroy(&d->queue_lock);
    pthread_mutex_destroy(&d->once_lock);
    pm_free(d);
}

static const struct pm_device_ops ops = {
    .close = close_device,
    .buffer_create = pm_cl_buffer_create,
    .buffer_destroy = pm_cl_buffer_destroy,
    .buffer_write = pm_cl_buffer_write,
    .buffer_read = pm_cl_buffer_read,
    .buffer_fill = pm_cl_buffer_fill,
    .program_create = pm_cl_program_create,
    .program_destroy = pm_cl_program_destroy,
    .program_in = pm_cl_program_in,
    .program_out = pm_cl_program_out,
    .program_submit = pm_cl_program_submit,
    .program_wait_out = pm_cl_program_wait_out,
    .program_wait = pm_cl_program_wait,
    .program_count = pm_shader_program_count,
    .program_variant = pm_cl_program_variant,
    .program_seconds = pm_cl_program_seconds,
    .program_begun = pm_cl_program_begun,
    .program_call_times = pm_cl_program_call_times,
    .program_copy_times = pm_cl_program_copy_times,
    .call_scratch = pm_shader_call_scratch,
    .call_variant = pm_shader_call_variant,
    .shaders = pm_cl_shaders,
};

static int open_context(struct cl_device *d)
{
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, (cl_context_properties)d->physical.platform, 0 };
    cl_int r;

    d->context = d->cl.CreateContext(properties, 1, &d->physical.device, report, NULL, &r);
    return pm_cl_result(r, "CreateContext");
}

int pm_opencl_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out)
{
    int err = PM_OK;
    struct cl_device *d = pm_calloc(1, sizeof *d);

    d->shared.base = (struct pm_device){ .ops = &ops, .info = *info, .options = *options };
    pthread_mutex_init(&d->queue_lock, NULL);
    pthread_mutex_init(&d->once_lock, NULL);
    d->settle_seconds = 10;
    d->shared.segment_seconds = (options->segment_ms > 0 ? options->segment_ms : 100) / 1000;
    if (!pm_cl_load(&d->cl))
        PM_TRY(pm_fail(PM_EDEVICE, "%s: %s", info->address, pm_opencl_absence()));
    PM_TRY(find_physical(d, info));
    if (!info->usable)
        PM_TRY(pm_fail(PM_EDEVICE, "%s (%s) cannot be used: %s", info->address, info->name,
                       info->reason));
    guess_speed(d);
    PM_TRY(open_context(d));
    PM_TRY(pm_cl_queue_create(d, &d->compute));
    PM_TRY(pm_cl_queue_create(d, &d->transfer));
    pm_cl_pipelines_open(d);
    PM_DEBUG("opencl", "opened %s: %s, %s", info->address, info->name, info->driver);
    *out = &d->shared.base, d = NULL;
out:
    if (d)
        close_device(&d->shared.base);
    return err;
}
