/* queue_vk: submits work to a device's queues and waits for it; barriers and command buffers. */
#include "device/vulkan/device_vk.h"

/* ---- submitting --------------------------------------------------------------------- */

int pm_vk_queue_create(struct vk_device *d, uint32_t family, struct vk_queue *q)
{
    VkSemaphoreTypeCreateInfo type = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
    VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                   .pNext = &type };

    q->family = family;
    d->vk.GetDeviceQueue(d->handle, family, 0, &q->handle);
    if (d->physical.compiler_only) /* the null device has no semaphores either */
        return PM_OK;
    return vk(d->vk.CreateSemaphore(d->handle, &info, NULL, &q->timeline));
}

static int submit(struct vk_device *d, struct vk_queue *q, const VkCommandBuffer *commands,
                  uint32_t count, bool wait_transfer, uint64_t wait_compute, uint64_t *value)
{
    struct vk_queue *other = q == &d->compute ? &d->transfer : &d->compute;
    uint64_t wait = q == &d->compute ? (wait_transfer ? other->submitted : 0) : wait_compute;
    uint64_t signal = q->submitted + 1;
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = wait > 0,
        .pWaitSemaphoreValues = &wait,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &signal,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &timeline,
        .waitSemaphoreCount = wait > 0,
        .pWaitSemaphores = &other->timeline,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = count,
        .pCommandBuffers = commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &q->timeline,
    };
    VkResult r = d->vk.QueueSubmit(q->handle, 1, &info, VK_NULL_HANDLE);

    if (r == VK_ERROR_DEVICE_LOST)
        return pm_shader_device_lose(&d->shared, "vkQueueSubmit returned VK_ERROR_DEVICE_LOST");
    if (r < 0)
        return pm_vk_result(r, "QueueSubmit");
    *value = q->submitted = signal;
    return PM_OK;
}

int pm_vk_submit(struct vk_device *d, struct vk_queue *q, const VkCommandBuffer *commands,
                 uint32_t count, bool wait_transfer, uint64_t wait_compute, uint64_t *value)
{
    int err;

    if ((err = pm_device_alive(&d->shared.base)) < 0)
        return err;
    if (d->physical.compiler_only)
        return pm_fail(PM_EDEVICE, "%s (%s) cannot run anything: %s", d->shared.base.info.address,
                       d->shared.base.info.name, d->physical.info.reason);
    pthread_mutex_lock(&d->queue_lock);
    err = submit(d, q, commands, count, wait_transfer, wait_compute, value);
    pthread_mutex_unlock(&d->queue_lock);
    return err;
}

/* Reads the progress of both queues: copies out wait for the compute queue's work. */
static VkResult read_progress(struct vk_device *d, uint64_t *progress)
{
    const struct vk_queue *queues[] = { &d->compute, &d->transfer };
    VkResult r = VK_SUCCESS;

    *progress = 0;
    for (size_t i = 0; i < PM_COUNT(queues) && r == VK_SUCCESS; i++) {
        uint64_t reached = 0;

        if (queues[i]->timeline)
            r = d->vk.GetSemaphoreCounterValue(d->handle, queues[i]->timeline, &reached);
        *progress += reached;
    }
    return r;
}

int pm_vk_wait(struct vk_device *d, struct vk_queue *q, uint64_t value)
{
    VkSemaphoreWaitInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .semaphoreCount = 1, .pSemaphores = &q->timeline,
                                 .pValues = &value };
    const double limit = pm_hang_limit(&d->shared.base);
    uint64_t now = 0;
    struct pm_timeout timeout;
    int err;

    if (value == 0)
        return PM_OK;
    if ((err = pm_device_alive(&d->shared.base)) < 0)
        return err;
    pm_timeout_start(&timeout, 0);
    for (;;) {
        VkResult r = d->vk.WaitSemaphores(d->handle, &info, 200000000);

        if (r == VK_SUCCESS)
            return PM_OK;
        if (r == VK_ERROR_DEVICE_LOST)
            return pm_shader_device_lose(&d->shared,
                                         "vkWaitSemaphores returned VK_ERROR_DEVICE_LOST");
        if (r < 0)
            return pm_vk_result(r, "WaitSemaphores");
        r = read_progress(d, &now);
        if (r == VK_ERROR_DEVICE_LOST)
            return pm_shader_device_lose(
                &d->shared, "vkGetSemaphoreCounterValue returned VK_ERROR_DEVICE_LOST");
        if (pm_timeout_passed(&timeout, limit, now))
            return pm_shader_device_hang(&d->shared, timeout.idle);
    }
}

struct idle_wait {
    PFN_vkDeviceWaitIdle wait;
    VkDevice device;
};

static void wait_idle(void *ctx)
{
    const struct idle_wait *w = ctx;

    w->wait(w->device);
}

static bool settles(struct vk_device *d)
{
    struct idle_wait *w = pm_calloc(1, sizeof *w);

    *w = (struct idle_wait){ d->vk.DeviceWaitIdle, d->handle };
    return pm_settles(wait_idle, w, d->settle_seconds);
}

bool pm_vk_idle(struct vk_device *d)
{
    if (!atomic_load(&d->shared.base.lost)) {
        pm_vk_wait(d, &d->compute, d->compute.submitted);
        pm_vk_wait(d, &d->transfer, d->transfer.submitted);
    }
    if (atomic_load(&d->shared.base.lost) && !atomic_load(&d->shared.base.hung) && !d->settled) {
        d->settled = settles(d);
        if (!d->settled)
            atomic_store(&d->shared.base.hung, true);
    }
    return !atomic_load(&d->shared.base.hung);
}

/* ---- command buffers ---------------------------------------------------------------- */

void pm_vk_barrier(struct vk_device *d, VkCommandBuffer c, VkPipelineStageFlags from,
                   VkPipelineStageFlags to)
{
    VkMemoryBarrier all = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER };

    /* Only accesses that the stages can make, so that a pure compute barrier stays cheap. */
    if (from & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT)
        all.srcAccessMask |= VK_ACCESS_MEMORY_WRITE_BIT;
    if (from & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT)
        all.srcAccessMask |= VK_ACCESS_SHADER_WRITE_BIT;
    if (from & VK_PIPELINE_STAGE_TRANSFER_BIT)
        all.srcAccessMask |= VK_ACCESS_TRANSFER_WRITE_BIT;
    if (to & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT)
        all.dstAccessMask |= VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    if (to & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT)
        all.dstAccessMask |= VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    if (to & VK_PIPELINE_STAGE_TRANSFER_BIT)
        all.dstAccessMask |= VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    if (to & VK_PIPELINE_STAGE_HOST_BIT)
        all.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
    d->vk.CmdPipelineBarrier(c, from, to, 0, 1, &all, 0, NULL, 0, NULL);
}

int pm_vk_begin(struct vk_device *d, VkCommandBuffer c, VkCommandBufferUsageFlags flags)
{
    VkCommandBufferBeginInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = flags };

    return vk(d->vk.BeginCommandBuffer(c, &info));
}

int pm_vk_pool_create(struct vk_device *d, uint32_t family, VkCommandPoolCreateFlags flags,
                      VkCommandPool *out)
{
    VkCommandPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .flags = flags, .queueFamilyIndex = family };

    return vk(d->vk.CreateCommandPool(d->handle, &info, NULL, out));
}

int pm_vk_command_buffers(struct vk_device *d, VkCommandPool pool, uint32_t count,
                          VkCommandBuffer *out)
{
    VkCommandBufferAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .commandPool = pool,
                                         .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                         .commandBufferCount = count };

    return vk(d->vk.AllocateCommandBuffers(d->handle, &info, out));
}
