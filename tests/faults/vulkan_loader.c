/* vulkan_loader: a Vulkan loader for PM_VULKAN_LOADER that passes every call to the real loader,
 * libvulkan.so.1, and makes some of them fail. choice.h describes the environment variables
 * (PM_VULKAN_FAULT_...). PM_VULKAN_FAULT_DO:
 *
 *   DEVICE_LOST, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY   the call is not made and fails
 *   TIMEOUT   a wait reports a timeout; other calls are made as usual
 *   any       one of them
 *
 * The functions handed out are the real loader's trampolines, which find their device by its
 * handle, so one table serves any number of devices. */
#include "faults/choice.h"

#include <dlfcn.h>
#include <vulkan/vulkan.h>

static struct fault_choice choice = { .log = -1 };

static VkResult judge(const char *call)
{
    static const struct {
        const char *word;
        VkResult result;
    } words[] = {
        { "DEVICE_LOST", VK_ERROR_DEVICE_LOST },
        { "OUT_OF_DEVICE_MEMORY", VK_ERROR_OUT_OF_DEVICE_MEMORY },
        { "OUT_OF_HOST_MEMORY", VK_ERROR_OUT_OF_HOST_MEMORY },
        { "TIMEOUT", VK_TIMEOUT },
    };
    static const char *const any[] = { "DEVICE_LOST", "OUT_OF_DEVICE_MEMORY", "OUT_OF_HOST_MEMORY",
                                       "TIMEOUT" };
    const char *what = fault_count(&choice, call, "", any, sizeof any / sizeof *any);

    if (!what)
        return VK_SUCCESS;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(what, words[i].word) == 0)
            return words[i].result;
    fault_print(2, "fault: PM_VULKAN_FAULT_DO has a word that is not known\n");
    abort();
}

/* The counted calls: result, name, parameters, arguments. */
#define CALLS(F)                                                                                   \
    F(AllocateMemory, (VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a,  \
                       VkDeviceMemory *out), (d, i, a, out))                                       \
    F(MapMemory, (VkDevice d, VkDeviceMemory m, VkDeviceSize at, VkDeviceSize size,                \
                  VkMemoryMapFlags f, void **out), (d, m, at, size, f, out))                       \
    F(CreateBuffer, (VkDevice d, const VkBufferCreateInfo *i, const VkAllocationCallbacks *a,      \
                     VkBuffer *out), (d, i, a, out))                                               \
    F(BindBufferMemory, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize at),               \
      (d, b, m, at))                                                                               \
    F(CreateShaderModule, (VkDevice d, const VkShaderModuleCreateInfo *i,                          \
                           const VkAllocationCallbacks *a, VkShaderModule *out), (d, i, a, out))   \
    F(CreateComputePipelines, (VkDevice d, VkPipelineCache c, uint32_t n,                          \
                               const VkComputePipelineCreateInfo *i,                               \
                               const VkAllocationCallbacks *a, VkPipeline *out),                   \
      (d, c, n, i, a, out))                                                                        \
    F(CreateCommandPool, (VkDevice d, const VkCommandPoolCreateInfo *i,                            \
                          const VkAllocationCallbacks *a, VkCommandPool *out), (d, i, a, out))     \
    F(AllocateCommandBuffers, (VkDevice d, const VkCommandBufferAllocateInfo *i,                   \
                               VkCommandBuffer *out), (d, i, out))                                 \
    F(BeginCommandBuffer, (VkCommandBuffer b, const VkCommandBufferBeginInfo *i), (b, i))          \
    F(EndCommandBuffer, (VkCommandBuffer b), (b))                                                  \
    F(CreateSemaphore, (VkDevice d, const VkSemaphoreCreateInfo *i,                                \
                        const VkAllocationCallbacks *a, VkSemaphore *out), (d, i, a, out))         \
    F(WaitSemaphores, (VkDevice d, const VkSemaphoreWaitInfo *i, uint64_t t), (d, i, t))           \
    F(GetSemaphoreCounterValue, (VkDevice d, VkSemaphore s, uint64_t *out), (d, s, out))           \
    F(QueueSubmit, (VkQueue q, uint32_t n, const VkSubmitInfo *i, VkFence f), (q, n, i, f))        \
    F(CreateDevice, (VkPhysicalDevice p, const VkDeviceCreateInfo *i,                              \
                     const VkAllocationCallbacks *a, VkDevice *out), (p, i, a, out))               \
    F(EnumeratePhysicalDevices, (VkInstance in, uint32_t *n, VkPhysicalDevice *out), (in, n, out))

#define DISTURBED(NAME, PARAMETERS, ARGUMENTS)                                                     \
    static PFN_vk##NAME real_##NAME;                                                               \
    static VKAPI_ATTR VkResult VKAPI_CALL disturbed_##NAME PARAMETERS                              \
    {                                                                                              \
        const VkResult r = judge(#NAME);                                                           \
        if (r < 0 || (r == VK_TIMEOUT && strcmp(#NAME, "WaitSemaphores") == 0))                    \
            return r;                                                                              \
        return real_##NAME ARGUMENTS;                                                              \
    }
CALLS(DISTURBED)

static PFN_vkGetInstanceProcAddr real_get;

static PFN_vkVoidFunction disturbed_of(const char *name)
{
#define ROW(NAME, PARAMETERS, ARGUMENTS)                                                           \
    if (strcmp(name, "vk" #NAME) == 0)                                                             \
        return real_##NAME ? (PFN_vkVoidFunction)disturbed_##NAME : NULL;
    CALLS(ROW)
#undef ROW
    return NULL;
}

static PFN_vkGetDeviceProcAddr real_get_device;

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice d, const char *name)
{
    PFN_vkVoidFunction p = disturbed_of(name);

    return p ? p : real_get_device(d, name);
}

__attribute__((constructor)) static void open_real(void)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library)
        real_get = (PFN_vkGetInstanceProcAddr)dlsym(library, "vkGetInstanceProcAddr");
    fault_choice_read(&choice, "PM_VULKAN_FAULT");
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance in, const char *name)
{
    PFN_vkVoidFunction p;

    if (!real_get)
        return NULL;
    if (!in)
        return real_get(in, name);
#define ROW(NAME, PARAMETERS, ARGUMENTS) real_##NAME = (PFN_vk##NAME)real_get(in, "vk" #NAME);
    CALLS(ROW)
#undef ROW
    real_get_device = (PFN_vkGetDeviceProcAddr)real_get(in, "vkGetDeviceProcAddr");
    if (strcmp(name, "vkGetDeviceProcAddr") == 0)
        return (PFN_vkVoidFunction)get_device;
    p = disturbed_of(name);
    return p ? p : real_get(in, name);
}
