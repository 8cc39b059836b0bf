/* device_vk: declarations that the files of the Vulkan backend share.
 *
 * Every Vulkan call goes through struct vk, a table of function pointers loaded per instance and
 * device. Tests replace entries to inject device loss, memory exhaustion and hangs.
 *
 * All shaders use one pipeline layout: no descriptor sets, 128 bytes of push constants. Work on the
 * compute queue runs in the order of submission and signals rising values of one timeline
 * semaphore. If there is a transfer queue, copies out run on it and signal another semaphore. */
#ifndef PM_DEVICE_VK_H
#define PM_DEVICE_VK_H

#include "device/pipelines.h"
#include "device/vulkan/compat.h"

#include <pthread.h>
#include <stdatomic.h>

#define PM_VK_GLOBAL(F)                                                                            \
    F(EnumerateInstanceVersion) F(EnumerateInstanceLayerProperties)                                \
    F(EnumerateInstanceExtensionProperties) F(CreateInstance)
#define PM_VK_INSTANCE(F)                                                                          \
    F(DestroyInstance) F(EnumeratePhysicalDevices) F(GetPhysicalDeviceProperties)                  \
    F(GetPhysicalDeviceProperties2) F(GetPhysicalDeviceFeatures2)                                  \
    F(GetPhysicalDeviceMemoryProperties2) F(GetPhysicalDeviceQueueFamilyProperties)                \
    F(EnumerateDeviceExtensionProperties) F(CreateDevice) F(GetDeviceProcAddr)
/* NULL if the device lacks their extension. */
#define PM_VK_OPTIONAL(F)                                                                          \
    F(CreateDebugUtilsMessengerEXT) F(DestroyDebugUtilsMessengerEXT)                               \
    F(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
#define PM_VK_DEVICE(F)                                                                            \
    F(DestroyDevice) F(DeviceWaitIdle) F(GetDeviceQueue) F(AllocateMemory) F(FreeMemory)           \
    F(MapMemory)                                                                                   \
    F(CreateBuffer) F(DestroyBuffer) F(GetBufferMemoryRequirements) F(BindBufferMemory)            \
    F(GetBufferDeviceAddress) F(CreateShaderModule) F(DestroyShaderModule)                         \
    F(CreatePipelineLayout) F(DestroyPipelineLayout) F(CreatePipelineCache)                        \
    F(DestroyPipelineCache) F(GetPipelineCacheData) F(CreateComputePipelines) F(DestroyPipeline)   \
    F(CreateCommandPool) F(DestroyCommandPool) F(AllocateCommandBuffers) F(BeginCommandBuffer)     \
    F(EndCommandBuffer) F(CmdBindPipeline) F(CmdPushConstants) F(CmdDispatch) F(CmdDispatchBase)   \
    F(CmdPipelineBarrier) F(CmdCopyBuffer) F(CmdFillBuffer) F(CreateSemaphore)                     \
    F(DestroySemaphore) F(WaitSemaphores) F(GetSemaphoreCounterValue) F(QueueSubmit)              \
    F(CreateQueryPool) F(DestroyQueryPool) F(GetQueryPoolResults) F(CmdResetQueryPool)             \
    F(CmdWriteTimestamp) F(CmdCopyQueryPoolResults)

#define PM_VK_MEMBER(name) PFN_vk##name name;
struct vk {
    PM_VK_GLOBAL(PM_VK_MEMBER)
    PM_VK_INSTANCE(PM_VK_MEMBER)
    PM_VK_OPTIONAL(PM_VK_MEMBER)
    PM_VK_DEVICE(PM_VK_MEMBER)
};
/* Called after entries were loaded (instance, then device). Only tests set it. */
extern void (*pm_vk_loaded)(struct vk *vk);

/* Returns 0, or calls pm_fail with the call's text and the result's name:
 * PM_TRY(vk(d->vk.CreateFence(...))). */
#define vk(call) pm_vk_result((call), #call)
int pm_vk_result(VkResult r, const char *text);
const char *pm_vk_result_name(VkResult r);

/* ---- instance.c: drivers and physical devices --------------------------------------- */

struct vk_instance {
    struct vk vk; /* instance level */
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger;
    uint32_t layer_version; /* API version that the validation layer knows; 0: not in use */
    VkPhysicalDevice *physical; /* owned */
    uint32_t count;
};
/* Creates the instance. Without a loader or driver, count is 0; that is not an error. */
int pm_vk_instance_create(bool validate, struct vk_instance *out);
/* Destroys it. idle false: one of its devices hangs, and only host memory is freed. */
void pm_vk_instance_destroy(struct vk_instance *in, bool idle);

/* Optional extensions, enabled if present. */
enum vk_extension {
    VK_HAS_MEMORY_BUDGET,
    VK_HAS_HOST_MEMORY,
    VK_HAS_PCI,
    VK_HAS_MAINTENANCE4,
    VK_HAS_SUBGROUP_CONTROL,
    VK_HAS_COOPMAT,
    VK_HAS_AMD_CORES, /* these four report the number of compute units */
    VK_HAS_AMD_ACTIVE,
    VK_HAS_NV_CORES,
    VK_HAS_ARM_CORES,
    VK_EXTENSIONS,
};
extern const char *const pm_vk_extension_names[VK_EXTENSIONS];

/* What is known of a physical device before it is opened. */
struct vk_physical {
    VkPhysicalDevice handle;
    struct pm_device_info info;
    VkDriverId driver;
    VkPhysicalDeviceLimits limits;
    uint32_t version;                /* API version that both sides support */
    uint32_t vendor, device, driver_version;
    uint8_t cache_uuid[VK_UUID_SIZE];
    bool has[VK_EXTENSIONS];         /* as an extension, or in a core version that includes it */
    bool listed[VK_EXTENSIONS];      /* listed under its own name */
    bool memory_model, device_scope; /* needed by cooperative matrices */
    bool int16;
    bool compiler_only;              /* RADV's null device: pipelines compile, nothing runs */
    uint32_t family, transfer_family;/* equal: copies have no queue of their own */
    uint32_t timestamp_bits;         /* of the compute queue; 0: none */
};
void pm_vk_describe(struct vk_instance *in, uint32_t index, struct vk_physical *out);

/* ---- memory_vk.c: buffers and copies ------------------------------------------------ */

struct vk_block {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceAddress address;
    size_t size;
    void *map; /* host-visible blocks stay mapped */
};
struct vk_buffer {
    struct pm_buffer base;
    struct vk_block block;
};
enum vk_use { VK_USE_DEVICE, VK_USE_UPLOAD, VK_USE_DOWNLOAD };

struct vk_device;
int pm_vk_block_create(struct vk_device *d, size_t size, enum vk_use use, struct vk_block *out);
void pm_vk_block_destroy(struct vk_device *d, struct vk_block *b);
int pm_vk_buffer_create(struct pm_device *d, size_t size, struct pm_buffer **out);
void pm_vk_buffer_destroy(struct pm_device *d, struct pm_buffer *b);
int pm_vk_buffer_write(struct pm_device *d, struct pm_buffer *b, size_t offset, const void *src,
                       size_t size);
int pm_vk_buffer_read(struct pm_device *d, struct pm_buffer *b, size_t offset, void *dst,
                      size_t size);
int pm_vk_buffer_fill(struct pm_device *d, struct pm_buffer *b, size_t offset, size_t size,
                      uint32_t word);

/* ---- pipelines_vk.c ----------------------------------------------------------------- */

struct vk_pipeline {
    struct pm_pipeline base;
    VkPipeline handle;
};
int pm_vk_pipelines_open(struct vk_device *d);
/* Frees pipelines. idle false: the device hangs, and only host memory is freed. */
void pm_vk_pipelines_close(struct vk_device *d, bool idle);

/* ---- device_vk.c: an open device ---------------------------------------------------- */

struct vk_queue {
    VkQueue handle;
    uint32_t family;
    VkSemaphore timeline;
    uint64_t submitted; /* last value that will be signalled */
};
struct vk_device {
    struct pm_shader_device shared;
    struct vk vk;
    struct vk_instance instance;
    struct vk_physical physical;
    VkDevice handle;
    VkPhysicalDeviceMemoryProperties memory;
    struct vk_queue compute, transfer; /* transfer.handle is NULL if there is no transfer queue */
    pthread_mutex_t queue_lock;        /* around submissions */
    pthread_mutex_t once_lock;         /* around staging and once */
    VkCommandPool pool;
    VkCommandBuffer once;
    struct vk_block staging[2];        /* up, down; made at first use */
    VkPipelineLayout layout;
    VkPipelineCache cache;
    size_t cache_bytes; /* bytes when loaded: an unchanged cache is not written again */
    struct pm_clock_fit fit;           /* under queue_lock */
    double settle_seconds;             /* seconds to wait after a loss for submitted work to end */
    bool settled;                      /* lost, and its work has ended by itself */
};

/* ---- queue_vk.c: work on the queues ------------------------------------------------- */

/* Gets the family's first queue and makes its timeline semaphore, which device_vk.c destroys. */
int pm_vk_queue_create(struct vk_device *d, uint32_t family, struct vk_queue *q);
/* Submits command buffers in order. *value: the value that the queue's timeline will reach.
 * wait_transfer: first wait for all copies out submitted so far. wait_compute > 0: transfer queue
 * only. */
int pm_vk_submit(struct vk_device *d, struct vk_queue *q, const VkCommandBuffer *commands,
                 uint32_t count, bool wait_transfer, uint64_t wait_compute, uint64_t *value);
/* Waits until the queue's timeline reaches value. PM_ELOST if the device is lost or hangs. */
int pm_vk_wait(struct vk_device *d, struct vk_queue *q, uint64_t value);
/* Waits until nothing runs, also on a lost device, which ends its work by itself. False: the device
 * hangs, and memory that it may still use cannot be freed. */
bool pm_vk_idle(struct vk_device *d);
/* Records a barrier: everything written before is finished and visible to everything after. */
void pm_vk_barrier(struct vk_device *d, VkCommandBuffer c, VkPipelineStageFlags from,
                   VkPipelineStageFlags to);
int pm_vk_begin(struct vk_device *d, VkCommandBuffer c, VkCommandBufferUsageFlags flags);
int pm_vk_pool_create(struct vk_device *d, uint32_t family, VkCommandPoolCreateFlags flags,
                      VkCommandPool *out);
int pm_vk_command_buffers(struct vk_device *d, VkCommandPool pool, uint32_t count,
                          VkCommandBuffer *out);

/* ---- program_vk.c (recording) and run_vk.c (submitting) ----------------------------- */

/* Where an output is copied to. */
struct vk_out {
    size_t offset;              /* in a slot's block */
    size_t segment;             /* segment after which it is copied */
    bool transfer;              /* copied on the transfer queue */
    size_t stamps;              /* its pair of timestamps, from 1; 0: none */
};
/* ---- clock_vk.c: times ---------------------------------------------------------------- */

/* Times the runs of a slot. */
struct vk_clock {
    VkQueryPool queries;        /* two timestamps; no pool if the queue has no clock */
    VkCommandBuffer begin, end;
    struct vk_block stamps;     /* timed: the program's stamps of the slot's last run */
    double submitted;           /* host time of the submission */
    double begun, seconds;      /* of the last run: host time of its begin, length */
};
struct vk_program;
/* Makes the timestamps of a timed program: a begin and an end for every call, for the copies in and
 * for each output. All slots write to one pool, because runs follow one another. The end of a run
 * copies it into the slot's memory. Makes nothing if the queue has no clock. */
int pm_vk_stamps_create(struct vk_program *p, size_t pairs);
/* Records timestamp `end` (0 or 1) of a pair, counted from 1. Does nothing for pair 0, or if the
 * program has no timestamps. */
void pm_vk_stamp(struct vk_program *p, VkCommandBuffer c, size_t pair, int end);
int pm_vk_clock_create(struct vk_program *p, struct vk_clock *c);
void pm_vk_clock_destroy(struct vk_device *d, struct vk_clock *c);
/* Sets begun and seconds after the run's end. */
void pm_vk_clock_read(struct vk_program *p, struct vk_clock *c);
double pm_vk_program_seconds(struct pm_program *p, int slot);
double pm_vk_program_begun(struct pm_program *p, int slot);
int pm_vk_program_call_times(struct pm_program *p, int slot, double *begin, double *end);
int pm_vk_program_copy_times(struct pm_program *p, int slot, double *begin, double *end);

/* ---- program_vk.c (recording) and run_vk.c (submitting), continued --------------------- */

struct vk_slot {
    struct vk_block in, out;
    VkCommandBuffer prologue;   /* NULL without inputs */
    VkCommandBuffer *copy, *copy_transfer; /* per segment, NULL if it copies nothing out */
    uint64_t *value, *transfer_value;      /* per segment, of the last run */
    uint64_t done, transfer_done;
    struct vk_clock clock;
    bool busy;
};
struct vk_program {
    struct pm_program base;
    struct vk_device *device;   /* borrowed */
    struct pm_arena *arena;     /* owns everything below except Vulkan's objects */
    struct pm_call_names names;
    VkCommandPool pool, transfer_pool;
    VkCommandBuffer *segments;  /* calls that are submitted together */
    struct pm_submission *submissions; /* per segment, for messages */
    size_t segment_count;
    struct vk_slot *slots;
    int slot_count;             /* slots made so far */
    size_t *in_offset;
    struct vk_out *outs;
    struct vk_block constants;  /* params that do not fit the push block */
    VkQueryPool stamps;         /* of a timed program, if the queue has a clock */
    size_t stamp_pairs;         /* call i has pair i + 1; then the copies in, then outputs */
    size_t prologue_stamps;     /* 0: none */
};
/* Inputs and outputs of a program (transfers_vk.c). lay_out sets their places in a slot's memory
 * and returns the sizes. A slot, with its memory and recorded copies, is made after the segments
 * are known. */
int pm_vk_transfers_lay_out(struct vk_program *p, const struct pm_program_desc *desc,
                            size_t *in_bytes, size_t *out_bytes);
int pm_vk_slot_create(struct vk_program *p, const struct pm_program_desc *desc, size_t in_bytes,
                      size_t out_bytes, struct vk_slot *s);
static inline VkBuffer pm_vk_handle(const struct pm_place *p)
{
    return ((const struct vk_buffer *)p->buffer)->block.buffer;
}

int pm_vk_program_create(struct pm_device *d, const struct pm_program_desc *desc,
                         struct pm_program **out);
void pm_vk_program_destroy(struct pm_program *p);
void *pm_vk_program_in(struct pm_program *p, int slot, size_t i);
const void *pm_vk_program_out(struct pm_program *p, int slot, size_t i);
int pm_vk_program_submit(struct pm_program *p, int slot);
int pm_vk_program_wait_out(struct pm_program *p, int slot, size_t i);
int pm_vk_program_wait(struct pm_program *p, int slot);
const char *pm_vk_program_variant(const struct pm_program *p, size_t i);

#endif
