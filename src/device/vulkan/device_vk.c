/* device_vk: opening and closing a device; submitting to its queues and waiting for them. */
#include "device/vulkan/vk.h"

#include <string.h>
#include <unistd.h>

/* ---- loss --------------------------------------------------------------------------- */

int pm_vk_lose(struct vk_device *d, const char *why)
{
    atomic_store(&d->lost, true);
    return pm_fail(PM_ELOST, "%s (%s) was lost: %s", d->base.info.address, d->base.info.name, why);
}

/* ---- submitting --------------------------------------------------------------------- */

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
        return pm_vk_lose(d, "vkQueueSubmit says VK_ERROR_DEVICE_LOST");
    if (r < 0)
        return pm_vk_result(r, "QueueSubmit");
    *value = q->submitted = signal;
    return PM_OK;
}

int pm_vk_submit(struct vk_device *d, struct vk_queue *q, const VkCommandBuffer *commands,
                 uint32_t count, bool wait_transfer, uint64_t wait_compute, uint64_t *value)
{
    int err;

    if (atomic_load(&d->lost))
        return pm_fail(PM_ELOST, "%s (%s) was lost before", d->base.info.address,
                       d->base.info.name);
    if (d->physical.compiler_only)
        return pm_fail(PM_EDEVICE, "%s (%s) cannot run anything: %s", d->base.info.address,
                       d->base.info.name, d->physical.info.reason);
    pthread_mutex_lock(&d->queue_lock);
    err = submit(d, q, commands, count, wait_transfer, wait_compute, value);
    pthread_mutex_unlock(&d->queue_lock);
    return err;
}

int pm_vk_wait(struct vk_device *d, struct vk_queue *q, uint64_t value)
{
    VkSemaphoreWaitInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .semaphoreCount = 1, .pSemaphores = &q->timeline,
                                 .pValues = &value };
    uint64_t seen = 0, now = 0;
    double since = pm_seconds();

    if (value == 0)
        return PM_OK;
    if (atomic_load(&d->lost))
        return pm_fail(PM_ELOST, "%s (%s) was lost before", d->base.info.address,
                       d->base.info.name);
    for (;;) {
        VkResult r = d->vk.WaitSemaphores(d->handle, &info, 200000000);

        if (r == VK_SUCCESS)
            return PM_OK;
        if (r == VK_ERROR_DEVICE_LOST)
            return pm_vk_lose(d, "vkWaitSemaphores says VK_ERROR_DEVICE_LOST");
        if (r < 0)
            return pm_vk_result(r, "WaitSemaphores");
        r = d->vk.GetSemaphoreCounterValue(d->handle, q->timeline, &now);
        if (r == VK_ERROR_DEVICE_LOST)
            return pm_vk_lose(d, "vkGetSemaphoreCounterValue says VK_ERROR_DEVICE_LOST");
        if (now != seen)
            seen = now, since = pm_seconds();
        if (pm_seconds() - since > d->hang_seconds) {
            char why[80];

            d->hung = true;
            snprintf(why, sizeof why, "no submission finished for %.3g seconds", d->hang_seconds);
            return pm_vk_lose(d, why);
        }
    }
}

bool pm_vk_idle(struct vk_device *d)
{
    if (!atomic_load(&d->lost)) {
        pm_vk_wait(d, &d->compute, d->compute.submitted);
        pm_vk_wait(d, &d->transfer, d->transfer.submitted);
    }
    if (atomic_load(&d->lost) && !d->hung)
        d->vk.DeviceWaitIdle(d->handle);
    return !d->hung;
}

/* ---- small helpers ------------------------------------------------------------------ */

void pm_vk_barrier(struct vk_device *d, VkCommandBuffer c, VkPipelineStageFlags from,
                   VkPipelineStageFlags to)
{
    VkMemoryBarrier all = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER };

    /* Only what the stages can do, so that a pure compute barrier stays cheap. */
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

/* ---- opening ------------------------------------------------------------------------ */

/* The numbering is the loader's; the identity is UUID and driver. */
static int find_physical(struct vk_device *d, const struct pm_device_info *info)
{
    for (uint32_t i = 0; i < d->instance.count; i++) {
        pm_vk_describe(&d->instance, i, &d->physical);
        if (strcmp(d->physical.info.uuid, info->uuid) == 0 &&
            strcmp(d->physical.info.driver, info->driver) == 0)
            return PM_OK;
    }
    return pm_fail(PM_EDEVICE, "%s: %s (UUID %s) is no longer there", info->address, info->name,
                   info->uuid);
}

static int load_device(struct vk_device *d)
{
#define LOAD(n)                                                                                    \
    if (!(d->vk.n = (PFN_vk##n)d->vk.GetDeviceProcAddr(d->handle, "vk" #n)))                       \
        return pm_fail(PM_EDEVICE, "%s: the driver lacks vk" #n, d->base.info.address);
    PM_VK_DEVICE(LOAD)
#undef LOAD
    if (pm_vk_loaded)
        pm_vk_loaded(&d->vk);
    return PM_OK;
}

/* A validation layer older than the extension would complain about it. */
static bool layer_knows_coopmat(const struct vk_instance *in)
{
    return !in->layer_version || in->layer_version >= VK_MAKE_API_VERSION(0, 1, 3, 255);
}

static int create_device(struct vk_device *d)
{
    int err = PM_OK;
    struct vk_physical *p = &d->physical;
    const struct pm_caps *caps = &p->info.caps;
    static const float priority = 1;
    VkDeviceQueueCreateInfo queues[2] = {
        { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = p->family,
          .queueCount = 1, .pQueuePriorities = &priority },
        { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
          .queueFamilyIndex = p->transfer_family, .queueCount = 1, .pQueuePriorities = &priority },
    };
    bool use_coopmat = p->has[VK_HAS_COOPMAT] && layer_knows_coopmat(&d->instance);
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .cooperativeMatrix = VK_TRUE,
    };
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = use_coopmat ? &coopmat : NULL,
        .bufferDeviceAddress = VK_TRUE,
        .timelineSemaphore = VK_TRUE,
        .scalarBlockLayout = VK_TRUE,
        .shaderFloat16 = caps->float16,
        .vulkanMemoryModel = use_coopmat && p->memory_model,
        .vulkanMemoryModelDeviceScope = use_coopmat && p->memory_model && p->device_scope,
    };
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &v12,
        .storageBuffer16BitAccess = caps->storage16,
    };
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &v11,
        .features = { .shaderInt64 = caps->int64, .shaderInt16 = p->int16 },
    };
    const char *extensions[VK_EXTENSIONS];
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features,
        .queueCreateInfoCount = p->family != p->transfer_family ? 2 : 1,
        .pQueueCreateInfos = queues,
        .ppEnabledExtensionNames = extensions,
    };

    p->has[VK_HAS_COOPMAT] = p->listed[VK_HAS_COOPMAT] = use_coopmat;
    for (int e = 0; e < VK_EXTENSIONS; e++)
        if (p->listed[e])
            extensions[info.enabledExtensionCount++] = pm_vk_extension_names[e];
    PM_TRY(vk(d->vk.CreateDevice(p->handle, &info, NULL, &d->handle)));
    if ((err = load_device(d)) < 0)
        d->handle = NULL; /* it cannot even be destroyed */
out:
    return err;
}

static int create_queue(struct vk_device *d, uint32_t family, struct vk_queue *q)
{
    VkSemaphoreTypeCreateInfo type = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
    VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                   .pNext = &type };

    q->family = family;
    d->vk.GetDeviceQueue(d->handle, family, 0, &q->handle);
    if (d->physical.compiler_only) /* it has no semaphores either */
        return PM_OK;
    return vk(d->vk.CreateSemaphore(d->handle, &info, NULL, &q->timeline));
}

static int create_layout(struct vk_device *d)
{
    VkPushConstantRange push = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = VK_PUSH_BYTES };
    VkPipelineLayoutCreateInfo info = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                        .pushConstantRangeCount = 1, .pPushConstantRanges = &push };

    return vk(d->vk.CreatePipelineLayout(d->handle, &info, NULL, &d->layout));
}

/* Work a second, low guesses by class: too low only makes submissions shorter. And how long one may
 * take before the device counts as hung: a software driver is only ever slow. */
static void guess_speed(struct vk_device *d)
{
    double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);

    d->hang_seconds = d->base.info.kind == PM_KIND_SOFTWARE ? 3600 : 120;
    d->flops = 1e12, d->bytes = 5e10;
    if (d->physical.driver == VK_DRIVER_ID_GOOGLE_SWIFTSHADER)
        d->flops = cores * 1e9, d->bytes = cores * 5e8;
    else if (d->base.info.kind == PM_KIND_SOFTWARE)
        d->flops = cores * 5e9, d->bytes = cores * 2e9;
    else if (d->base.info.kind == PM_KIND_DISCRETE)
        d->flops = 2e12, d->bytes = 1e11;
    else if (d->base.info.kind == PM_KIND_INTEGRATED)
        d->flops = 3e11, d->bytes = 2e10;
}

static void vk_close(struct pm_device *base)
{
    struct vk_device *d = (struct vk_device *)base;

    if (d->handle && pm_vk_idle(d)) {
        pm_vk_pipelines_close(d);
        pm_vk_block_destroy(d, &d->staging[0]);
        pm_vk_block_destroy(d, &d->staging[1]);
        d->vk.DestroyCommandPool(d->handle, d->pool, NULL);
        d->vk.DestroyPipelineLayout(d->handle, d->layout, NULL);
        d->vk.DestroySemaphore(d->handle, d->compute.timeline, NULL);
        d->vk.DestroySemaphore(d->handle, d->transfer.timeline, NULL);
        d->vk.DestroyDevice(d->handle, NULL);
    }
    if (d->hung)
        PM_WARN("vulkan", "%s hangs: its memory is kept until the process ends",
                d->base.info.address);
    else
        pm_vk_instance_destroy(&d->instance);
    pthread_mutex_destroy(&d->queue_lock);
    pthread_mutex_destroy(&d->once_lock);
    pm_free(d);
}

static const struct pm_device_ops ops = {
    .close = vk_close,
    .buffer_create = pm_vk_buffer_create,
    .buffer_destroy = pm_vk_buffer_destroy,
    .buffer_write = pm_vk_buffer_write,
    .buffer_read = pm_vk_buffer_read,
    .buffer_fill = pm_vk_buffer_fill,
    .program_create = pm_vk_program_create,
    .program_destroy = pm_vk_program_destroy,
    .program_in = pm_vk_program_in,
    .program_out = pm_vk_program_out,
    .program_submit = pm_vk_program_submit,
    .program_wait_out = pm_vk_program_wait_out,
    .program_wait = pm_vk_program_wait,
    .program_variant = pm_vk_program_variant,
    .program_seconds = pm_vk_program_seconds,
    .call_scratch = pm_vk_call_scratch,
};

int pm_vulkan_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out)
{
    int err = PM_OK;
    struct vk_device *d = pm_calloc(1, sizeof *d);
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 };

    d->base = (struct pm_device){ .ops = &ops, .info = *info, .options = *options };
    pthread_mutex_init(&d->queue_lock, NULL);
    pthread_mutex_init(&d->once_lock, NULL);
    d->segment_seconds = (options->segment_ms > 0 ? options->segment_ms : 100) / 1000;
    PM_TRY(pm_vk_instance_create(options->validate, &d->instance));
    d->vk = d->instance.vk;
    PM_TRY(find_physical(d, info));
    if (!info->usable && !d->physical.compiler_only)
        PM_TRY(pm_fail(PM_EDEVICE, "%s (%s) cannot be used: %s", info->address, info->name,
                       info->reason));
    guess_speed(d);
    d->vk.GetPhysicalDeviceMemoryProperties2(d->physical.handle, &memory);
    d->memory = memory.memoryProperties;
    PM_TRY(create_device(d));
    PM_TRY(create_queue(d, d->physical.family, &d->compute));
    if (d->physical.transfer_family != d->physical.family)
        PM_TRY(create_queue(d, d->physical.transfer_family, &d->transfer));
    PM_TRY(create_layout(d));
    PM_TRY(pm_vk_pool_create(d, d->compute.family, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                             &d->pool));
    PM_TRY(pm_vk_command_buffers(d, d->pool, 1, &d->once));
    PM_TRY(pm_vk_pipelines_open(d));
    PM_DEBUG("vulkan", "opened %s: %s, %s", info->address, info->name, info->driver);
    *out = &d->base, d = NULL;
out:
    if (d)
        vk_close(&d->base);
    return err;
}
