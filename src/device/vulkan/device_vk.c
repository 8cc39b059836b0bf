/* device_vk: opens and closes a device. queue_vk.c handles work on its queues. */
#include "device/vulkan/device_vk.h"

#include <string.h>
#include <unistd.h>

/* Finds the device by UUID and driver, because the loader may number devices differently. */
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
        return pm_fail(PM_EDEVICE, "%s: the driver lacks vk" #n, d->shared.base.info.address);
    PM_VK_DEVICE(LOAD)
#undef LOAD
    if (pm_vk_loaded)
        pm_vk_loaded(&d->vk);
    return PM_OK;
}

/* Whether the validation layer knows cooperative matrices. A layer older than the extension reports
 * false errors about it. */
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
    if (!use_coopmat)
        memset(&d->shared.base.info.caps.coopmat, 0, sizeof d->shared.base.info.caps.coopmat);
    for (int e = 0; e < VK_EXTENSIONS; e++)
        if (p->listed[e])
            extensions[info.enabledExtensionCount++] = pm_vk_extension_names[e];
    PM_TRY(vk(d->vk.CreateDevice(p->handle, &info, NULL, &d->handle)));
    if ((err = load_device(d)) < 0)
        d->handle = NULL; /* its functions did not load, not even vkDestroyDevice */
out:
    return err;
}

static int create_layout(struct vk_device *d)
{
    VkPushConstantRange push = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = PM_PUSH_BYTES };
    VkPipelineLayoutCreateInfo info = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                        .pushConstantRangeCount = 1, .pPushConstantRanges = &push };

    return vk(d->vk.CreatePipelineLayout(d->handle, &info, NULL, &d->layout));
}

/* Guesses work per second by class of device, on the low side: a low guess only makes submissions
 * shorter. */
static void guess_speed(struct vk_device *d)
{
    double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);

    d->shared.flops = 1e12, d->shared.bytes = 5e10;
    if (d->physical.driver == VK_DRIVER_ID_GOOGLE_SWIFTSHADER)
        d->shared.flops = cores * 1e9, d->shared.bytes = cores * 5e8;
    else if (d->shared.base.info.kind == PM_KIND_SOFTWARE)
        d->shared.flops = cores * 5e9, d->shared.bytes = cores * 2e9;
    else if (d->shared.base.info.kind == PM_KIND_DISCRETE)
        d->shared.flops = 2e12, d->shared.bytes = 1e11;
    else if (d->shared.base.info.kind == PM_KIND_INTEGRATED)
        d->shared.flops = 3e11, d->shared.bytes = 2e10;
}

static void vk_close(struct pm_device *base)
{
    struct vk_device *d = (struct vk_device *)base;
    bool idle = d->handle && pm_vk_idle(d);

    if (atomic_load(&d->shared.base.caught)) {
        pm_shader_device_leave(&d->shared);
        return;
    }
    if (d->handle)
        pm_vk_pipelines_close(d, idle);
    if (idle) {
        pm_vk_block_destroy(d, &d->staging[0]);
        pm_vk_block_destroy(d, &d->staging[1]);
        d->vk.DestroyCommandPool(d->handle, d->pool, NULL);
        d->vk.DestroyPipelineLayout(d->handle, d->layout, NULL);
        d->vk.DestroySemaphore(d->handle, d->compute.timeline, NULL);
        d->vk.DestroySemaphore(d->handle, d->transfer.timeline, NULL);
        d->vk.DestroyDevice(d->handle, NULL);
    }
    if (atomic_load(&d->shared.base.hung))
        PM_WARN("vulkan", "%s hangs: its memory is freed only at exit",
                d->shared.base.info.address);
    pm_vk_instance_destroy(&d->instance, !atomic_load(&d->shared.base.hung));
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
    .program_count = pm_shader_program_count,
    .program_variant = pm_vk_program_variant,
    .program_seconds = pm_vk_program_seconds,
    .program_begun = pm_vk_program_begun,
    .program_call_times = pm_vk_program_call_times,
    .program_copy_times = pm_vk_program_copy_times,
    .call_scratch = pm_shader_call_scratch,
    .call_variant = pm_shader_call_variant,
    .shaders = pm_shader_hash,
};

int pm_vulkan_open(const struct pm_device_info *info, const struct pm_device_options *options,
                   struct pm_device **out)
{
    int err = PM_OK;
    struct vk_device *d = pm_calloc(1, sizeof *d);
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 };

    d->shared.base = (struct pm_device){ .ops = &ops, .info = *info, .options = *options };
    pthread_mutex_init(&d->queue_lock, NULL);
    pthread_mutex_init(&d->once_lock, NULL);
    d->settle_seconds = 10;
    d->shared.segment_seconds = (options->segment_ms > 0 ? options->segment_ms : 100) / 1000;
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
    PM_TRY(pm_vk_queue_create(d, d->physical.family, &d->compute));
    if (d->physical.transfer_family != d->physical.family)
        PM_TRY(pm_vk_queue_create(d, d->physical.transfer_family, &d->transfer));
    PM_TRY(create_layout(d));
    PM_TRY(pm_vk_pool_create(d, d->compute.family, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                             &d->pool));
    PM_TRY(pm_vk_command_buffers(d, d->pool, 1, &d->once));
    PM_TRY(pm_vk_pipelines_open(d));
    PM_DEBUG("vulkan", "opened %s: %s, %s", info->address, info->name, info->driver);
    *out = &d->shared.base, d = NULL;
out:
    if (d)
        vk_close(&d->shared.base);
    return err;
}
