/* memory_vk: one VkBuffer and one allocation per buffer; shaders access it by address. Synchronous
 * copies go through a staging block in chunks. */
#include "device/vulkan/device_vk.h"

#include <string.h>

enum { STAGING_BYTES = 8 << 20 };

/* ---- choice of memory --------------------------------------------------------------- */

/* Lists memory types for a use, best first. A device without its own memory (integrated, software)
 * may use any type. A discrete device never falls back to host memory, which would only be slow. */
static int candidates(const struct vk_device *d, uint32_t allowed, enum vk_use use,
                      uint32_t out[VK_MAX_MEMORY_TYPES])
{
    enum { LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
           VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
           COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
           CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
           HOST = VISIBLE | COHERENT };
    static const VkMemoryPropertyFlags wanted[][3] = {
        [VK_USE_DEVICE] = { LOCAL, 0, 0 },
        [VK_USE_UPLOAD] = { HOST, HOST, HOST },
        [VK_USE_DOWNLOAD] = { HOST | CACHED, HOST, HOST },
    };
    bool any = d->shared.base.info.kind != PM_KIND_DISCRETE;
    int count = 0;

    for (int pass = 0; pass < 3; pass++) {
        if (use == VK_USE_DEVICE && pass > 0 && !any)
            break;
        for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++) {
            VkMemoryPropertyFlags flags = d->memory.memoryTypes[i].propertyFlags;
            bool seen = false;

            for (int k = 0; k < count; k++)
                seen |= out[k] == i;
            if (!seen && (allowed >> i & 1) && (flags & wanted[use][pass]) == wanted[use][pass])
                out[count++] = i;
        }
    }
    return count;
}

/* Fails with one line: the size, the memory in use and the driver's limit. */
static int out_of_memory(struct vk_device *d, size_t size, uint32_t type, VkResult r)
{
    uint32_t heap = d->memory.memoryTypes[type].heapIndex;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT };
    VkPhysicalDeviceMemoryProperties2 props = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 };
    char want[24], ours[24], have[24], used[24], may[24], extra[80] = "";

    if (d->physical.has[VK_HAS_MEMORY_BUDGET]) {
        props.pNext = &budget;
        d->vk.GetPhysicalDeviceMemoryProperties2(d->physical.handle, &props);
        snprintf(extra, sizeof extra, "; the driver reports %s used of %s available",
                 pm_bytes_text(budget.heapUsage[heap], used),
                 pm_bytes_text(budget.heapBudget[heap], may));
    }
    return pm_fail(PM_EMEMORY,
                   "%s: no memory for a buffer of %s (%s): buffers take %s of a heap of %s%s; make "
                   "run.batch_size smaller or raise run.micro_batches",
                   d->shared.base.info.address, pm_bytes_text(size, want), pm_vk_result_name(r),
                   pm_bytes_text(d->shared.base.memory_used, ours),
                   pm_bytes_text(d->memory.memoryHeaps[heap].size, have), extra);
}

static int allocate(struct vk_device *d, const VkMemoryRequirements *need, enum vk_use use,
                    VkDeviceMemory *out)
{
    uint32_t types[VK_MAX_MEMORY_TYPES];
    int count = candidates(d, need->memoryTypeBits, use, types);
    VkMemoryAllocateFlagsInfo flags = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT };
    VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = &flags, .allocationSize = need->size };
    VkResult r = VK_ERROR_OUT_OF_DEVICE_MEMORY;

    if (count == 0)
        return pm_fail(PM_EDEVICE, "%s: the driver offers no memory of the kind needed",
                       d->shared.base.info.address);
    for (int i = 0; i < count; i++) {
        info.memoryTypeIndex = types[i];
        r = d->vk.AllocateMemory(d->handle, &info, NULL, out);
        if (r != VK_ERROR_OUT_OF_DEVICE_MEMORY && r != VK_ERROR_OUT_OF_HOST_MEMORY)
            return pm_vk_result(r, "AllocateMemory");
    }
    return out_of_memory(d, need->size, types[0], r);
}

/* ---- blocks and buffers ------------------------------------------------------------- */

int pm_vk_block_create(struct vk_device *d, size_t size, enum vk_use use, struct vk_block *out)
{
    int err = PM_OK;
    uint32_t families[2] = { d->compute.family, d->transfer.family };
    bool shared = d->transfer.handle && d->transfer.family != d->compute.family;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        .sharingMode = shared ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = shared ? 2 : 0,
        .pQueueFamilyIndices = shared ? families : NULL,
    };
    VkBufferDeviceAddressInfo address = { .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO };
    VkMemoryRequirements need;
    struct vk_block b = { .size = size };

    PM_TRY(vk(d->vk.CreateBuffer(d->handle, &info, NULL, &b.buffer)));
    d->vk.GetBufferMemoryRequirements(d->handle, b.buffer, &need);
    PM_TRY(allocate(d, &need, use, &b.memory));
    PM_TRY(vk(d->vk.BindBufferMemory(d->handle, b.buffer, b.memory, 0)));
    address.buffer = b.buffer;
    b.address = d->vk.GetBufferDeviceAddress(d->handle, &address);
    if (use != VK_USE_DEVICE)
        PM_TRY(vk(d->vk.MapMemory(d->handle, b.memory, 0, VK_WHOLE_SIZE, 0, &b.map)));
    *out = b;
    memset(&b, 0, sizeof b);
out:
    pm_vk_block_destroy(d, &b);
    return err;
}

void pm_vk_block_destroy(struct vk_device *d, struct vk_block *b)
{
    if (!atomic_load(&d->shared.base.hung)) {
        d->vk.DestroyBuffer(d->handle, b->buffer, NULL);
        d->vk.FreeMemory(d->handle, b->memory, NULL);
    }
    memset(b, 0, sizeof *b);
}

int pm_vk_buffer_create(struct pm_device *base, size_t size, struct pm_buffer **out)
{
    int err = PM_OK;
    struct vk_device *d = (struct vk_device *)base;
    struct vk_buffer *b = pm_calloc(1, sizeof *b);

    PM_TRY(pm_vk_block_create(d, size, VK_USE_DEVICE, &b->block));
    *out = &b->base, b = NULL;
out:
    pm_free(b);
    return err;
}

/* Destroys the buffer after waiting for work that still uses it. */
void pm_vk_buffer_destroy(struct pm_device *base, struct pm_buffer *buffer)
{
    struct vk_device *d = (struct vk_device *)base;
    struct vk_buffer *b = (struct vk_buffer *)buffer;

    pm_vk_idle(d);
    pm_vk_block_destroy(d, &b->block);
    pm_free(b);
}

/* ---- synchronous copies ------------------------------------------------------------- */

static int staging(struct vk_device *d, enum vk_use use, struct vk_block **out)
{
    int err = PM_OK;
    struct vk_block *b = &d->staging[use == VK_USE_DOWNLOAD];

    if (!b->buffer)
        PM_TRY(pm_vk_block_create(d, STAGING_BYTES, use, b));
    *out = b;
out:
    return err;
}

static int once_begin(struct vk_device *d)
{
    int err = PM_OK;

    PM_TRY(pm_vk_begin(d, d->once, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT));
    pm_vk_barrier(d, d->once, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT);
out:
    return err;
}

static int once_end(struct vk_device *d)
{
    int err = PM_OK;
    uint64_t value;

    pm_vk_barrier(d, d->once, VK_PIPELINE_STAGE_TRANSFER_BIT,
                  VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT);
    PM_TRY(vk(d->vk.EndCommandBuffer(d->once)));
    PM_TRY(pm_vk_submit(d, &d->compute, &d->once, 1, true, 0, &value));
    PM_TRY(pm_vk_wait(d, &d->compute, value));
out:
    return err;
}

static int copy_once(struct vk_device *d, VkBuffer from, size_t from_offset, VkBuffer to,
                     size_t to_offset, size_t size)
{
    int err = PM_OK;
    VkBufferCopy region = { from_offset, to_offset, size };

    PM_TRY(once_begin(d));
    d->vk.CmdCopyBuffer(d->once, from, to, 1, &region);
    PM_TRY(once_end(d));
out:
    return err;
}

int pm_vk_buffer_write(struct pm_device *base, struct pm_buffer *buffer, size_t offset,
                       const void *src, size_t size)
{
    int err = PM_OK;
    struct vk_device *d = (struct vk_device *)base;
    VkBuffer to = ((struct vk_buffer *)buffer)->block.buffer;
    struct vk_block *s;

    pthread_mutex_lock(&d->once_lock);
    PM_TRY(staging(d, VK_USE_UPLOAD, &s));
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        memcpy(s->map, (const char *)src + done, n);
        PM_TRY(copy_once(d, s->buffer, 0, to, offset + done, n));
    }
out:
    pthread_mutex_unlock(&d->once_lock);
    return err;
}

int pm_vk_buffer_read(struct pm_device *base, struct pm_buffer *buffer, size_t offset, void *dst,
                      size_t size)
{
    int err = PM_OK;
    struct vk_device *d = (struct vk_device *)base;
    VkBuffer from = ((struct vk_buffer *)buffer)->block.buffer;
    struct vk_block *s;

    pthread_mutex_lock(&d->once_lock);
    PM_TRY(staging(d, VK_USE_DOWNLOAD, &s));
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        PM_TRY(copy_once(d, from, offset + done, s->buffer, 0, n));
        memcpy((char *)dst + done, s->map, n);
    }
out:
    pthread_mutex_unlock(&d->once_lock);
    return err;
}

int pm_vk_buffer_fill(struct pm_device *base, struct pm_buffer *buffer, size_t offset, size_t size,
                      uint32_t word)
{
    int err = PM_OK;
    struct vk_device *d = (struct vk_device *)base;

    pthread_mutex_lock(&d->once_lock);
    PM_TRY(once_begin(d));
    d->vk.CmdFillBuffer(d->once, ((struct vk_buffer *)buffer)->block.buffer, offset, size, word);
    PM_TRY(once_end(d));
out:
    pthread_mutex_unlock(&d->once_lock);
    return err;
}
