/* memory_cl: buffers. Synchronous copies go through a block that the driver can reach, in chunks,
 * so that a device that hangs holds no memory of the caller. */
#include "device/opencl/device_cl.h"

#include <string.h>

enum { STAGING_BYTES = 8 << 20 };

/* ---- blocks and buffers ------------------------------------------------------------- */

static bool is_memory(cl_int r)
{
    return r == CL_MEM_OBJECT_ALLOCATION_FAILURE || r == CL_OUT_OF_RESOURCES ||
           r == CL_OUT_OF_HOST_MEMORY || r == CL_MAP_FAILURE || r == CL_INVALID_BUFFER_SIZE;
}

/* Fails with one line: the size, the memory in use and the device's memory. */
static int out_of_memory(struct cl_device *d, size_t size, cl_int r)
{
    const struct pm_device *base = &d->shared.base;
    char want[24], ours[24], have[24];

    return pm_fail(
        PM_EMEMORY,
        "%s: no memory for a buffer of %s (%s): buffers take %s of the device's %s; make "
        "run.batch_size smaller or raise run.micro_batches",
        base->info.address, pm_bytes_text(size, want), pm_cl_result_name(r),
        pm_bytes_text(base->memory_used, ours), pm_bytes_text(base->info.memory_bytes, have));
}

/* Submits the first write to a block, so that the driver allocates its memory. */
static cl_int touch(struct cl_device *d, enum cl_use use, struct cl_block *b, cl_event *event)
{
    static const uint8_t zero = 0;
    cl_int r;

    if (use == CL_USE_DEVICE)
        return d->cl.EnqueueFillBuffer(d->compute.handle, b->memory, &zero, sizeof zero, 0,
                                       b->size, 0, NULL, event);
    b->map = d->cl.EnqueueMapBuffer(d->compute.handle, b->memory, CL_FALSE,
                                    CL_MAP_READ | CL_MAP_WRITE, 0, b->size, 0, NULL, event, &r);
    return r;
}

int pm_cl_block_create(struct cl_device *d, size_t size, enum cl_use use, struct cl_block *out)
{
    int err = PM_OK;
    struct cl_block b = { .size = size };
    cl_event event = NULL;
    cl_int r, status = CL_COMPLETE;
    const char *call = "CreateBuffer"; /* the newest one */

    b.memory = d->cl.CreateBuffer(d->context, CL_MEM_READ_WRITE |
                                  (use == CL_USE_HOST ? CL_MEM_ALLOC_HOST_PTR : 0), size, NULL, &r);
    if (r == CL_SUCCESS) {
        call = use == CL_USE_DEVICE ? "EnqueueFillBuffer" : "EnqueueMapBuffer";
        r = touch(d, use, &b, &event);
    }
    if (r == CL_SUCCESS && (r = d->cl.Flush(d->compute.handle)) != CL_SUCCESS) {
        call = "Flush";
        d->cl.ReleaseEvent(event); /* it may never end */
        event = NULL;
    }
    if (event)
        PM_TRY(pm_cl_wait_event(d, event, &status));
    if (r == CL_SUCCESS)
        r = status < 0 ? status : CL_SUCCESS;
    if (is_memory(r))
        PM_TRY(out_of_memory(d, size, r));
    PM_TRY(pm_cl_result(r, call));
    if (use == CL_USE_HOST)
        memset(b.map, 0, size);
    *out = b;
    b.memory = NULL;
out:
    pm_cl_block_destroy(d, &b);
    return err;
}

void pm_cl_block_destroy(struct cl_device *d, struct cl_block *b)
{
    if (!atomic_load(&d->shared.base.hung) && b->memory) {
        if (b->map && !atomic_load(&d->shared.base.lost))
            d->cl.EnqueueUnmapMemObject(d->compute.handle, b->memory, b->map, 0, NULL, NULL);
        d->cl.ReleaseMemObject(b->memory);
    }
    memset(b, 0, sizeof *b);
}

int pm_cl_buffer_create(struct pm_device *base, size_t size, struct pm_buffer **out)
{
    int err = PM_OK;
    struct cl_device *d = (struct cl_device *)base;
    struct cl_buffer *b = pm_calloc(1, sizeof *b);

    PM_TRY(pm_cl_block_create(d, size, CL_USE_DEVICE, &b->block));
    *out = &b->base, b = NULL;
out:
    pm_free(b);
    return err;
}

/* Destroys the buffer after waiting for work that still uses it. */
void pm_cl_buffer_destroy(struct pm_device *base, struct pm_buffer *buffer)
{
    struct cl_device *d = (struct cl_device *)base;
    struct cl_buffer *b = (struct cl_buffer *)buffer;

    pm_cl_idle(d);
    pm_cl_block_destroy(d, &b->block);
    pm_free(b);
}

/* ---- synchronous copies ------------------------------------------------------------- */

static int staging(struct cl_device *d)
{
    int err = PM_OK;

    if (d->staging)
        return PM_OK;
    d->staging = pm_calloc(1, sizeof *d->staging);
    PM_TRY(pm_cl_block_create(d, STAGING_BYTES, CL_USE_HOST, d->staging));
out:
    if (err < 0) {
        pm_free(d->staging);
        d->staging = NULL;
    }
    return err;
}

/* Submits one command and waits for it. It runs after everything submitted before, also after
 * copies out. */
enum once { ONCE_WRITE, ONCE_READ, ONCE_FILL };
static cl_int enqueue_once(struct cl_device *d, enum once what, cl_mem memory, size_t offset,
                           size_t size, uint32_t word, cl_event *event)
{
    cl_command_queue q = d->compute.handle;

    switch (what) {
    case ONCE_WRITE:
        return d->cl.EnqueueWriteBuffer(q, memory, CL_FALSE, offset, size, d->staging->map, 0, NULL,
                                        event);
    case ONCE_READ:
        return d->cl.EnqueueReadBuffer(q, memory, CL_FALSE, offset, size, d->staging->map, 0, NULL,
                                       event);
    default:
        return d->cl.EnqueueFillBuffer(q, memory, &word, sizeof word, offset, size, 0, NULL, event);
    }
}

static int once(struct cl_device *d, enum once what, struct pm_buffer *buffer, size_t offset,
                size_t size, uint32_t word)
{
    int err = PM_OK;
    cl_mem memory = ((struct cl_buffer *)buffer)->block.memory;
    cl_event event = NULL;
    uint64_t value = 0;

    PM_TRY(pm_cl_wait(d, &d->transfer, d->transfer.submitted));
    pthread_mutex_lock(&d->queue_lock);
    err = pm_cl_submit_result(d, enqueue_once(d, what, memory, offset, size, word, &event),
                              "a copy");
    if (err == PM_OK)
        err = pm_cl_submitted(d, &d->compute, event, &value);
    pthread_mutex_unlock(&d->queue_lock);
    PM_TRY(err);
    PM_TRY(pm_cl_wait(d, &d->compute, value));
out:
    return err;
}

int pm_cl_buffer_write(struct pm_device *base, struct pm_buffer *buffer, size_t offset,
                       const void *src, size_t size)
{
    int err = PM_OK;
    struct cl_device *d = (struct cl_device *)base;

    pthread_mutex_lock(&d->once_lock);
    PM_TRY(staging(d));
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        memcpy(d->staging->map, (const char *)src + done, n);
        PM_TRY(once(d, ONCE_WRITE, buffer, offset + done, n, 0));
    }
out:
    pthread_mutex_unlock(&d->once_lock);
    return err;
}

int pm_cl_buffer_read(struct pm_device *base, struct pm_buffer *buffer, size_t offset, void *dst,
                      size_t size)
{
    int err = PM_OK;
    struct cl_device *d = (struct cl_device *)base;

    pthread_mutex_lock(&d->once_lock);
    PM_TRY(staging(d));
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        PM_TRY(once(d, ONCE_READ, buffer, offset + done, n, 0));
        memcpy((char *)dst + done, d->staging->map, n);
    }
out:
    pthread_mutex_unlock(&d->once_lock);
    return err;
}

int pm_cl_buffer_fill(struct pm_device *base, struct pm_buffer *buffer, size_t offset, size_t size,
                      uint32_t word)
{
    struct cl_device *d = (struct cl_device *)base;
    int err;

    pthread_mutex_lock(&d->once_lock);
    err = once(d, ONCE_FILL, buffer, offset, size, word);
    pthread_mutex_unlock(&d->once_lock);
    return err;
}
