/* instance: the loader, the validation layer and its messages, and the list of devices. */
#include "device/vulkan/device_vk.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void (*pm_vk_loaded)(struct vk *vk);

static atomic_uint_least64_t messages;

uint64_t pm_vulkan_messages(void)
{
    return atomic_load(&messages);
}

/* ---- results ------------------------------------------------------------------------ */

const char *pm_vk_result_name(VkResult r)
{
    switch (r) {
#define NAME(n)                                                                                    \
    case n:                                                                                        \
        return #n;
        NAME(VK_SUCCESS)
        NAME(VK_NOT_READY)
        NAME(VK_TIMEOUT)
        NAME(VK_INCOMPLETE)
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
        NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        NAME(VK_ERROR_INITIALIZATION_FAILED)
        NAME(VK_ERROR_DEVICE_LOST)
        NAME(VK_ERROR_MEMORY_MAP_FAILED)
        NAME(VK_ERROR_LAYER_NOT_PRESENT)
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
        NAME(VK_ERROR_FEATURE_NOT_PRESENT)
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
        NAME(VK_ERROR_TOO_MANY_OBJECTS)
        NAME(VK_ERROR_FRAGMENTED_POOL)
        NAME(VK_ERROR_UNKNOWN)
        NAME(VK_ERROR_INVALID_SHADER_NV)
        NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
        NAME(VK_PIPELINE_COMPILE_REQUIRED)
#undef NAME
    default:
        return "a result without a name";
    }
}

int pm_vk_result(VkResult r, const char *text)
{
    const char *end = strchr(text, '('), *start = end ? end : text + strlen(text);

    if (r >= 0)
        return PM_OK;
    while (start > text && start[-1] != '.' && start[-1] != '>')
        start--;
    return pm_fail(r == VK_ERROR_DEVICE_LOST ? PM_ELOST : PM_EDEVICE, "vk%.*s: %s (%d)",
                   end ? (int)(end - start) : (int)strlen(start), start, pm_vk_result_name(r),
                   (int)r);
}

/* ---- instance ----------------------------------------------------------------------- */

static VKAPI_ATTR VkBool32 VKAPI_CALL message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                              VkDebugUtilsMessageTypeFlagsEXT type,
                                              const VkDebugUtilsMessengerCallbackDataEXT *data,
                                              void *user)
{
    (void)severity, (void)type, (void)user;
    atomic_fetch_add(&messages, 1);
    PM_ERROR("vulkan", "validation: %s", data->pMessage);
    return VK_FALSE;
}

/* Returns the API version that a layer was written for; 0 if it is not installed. */
static uint32_t layer_version(const struct vk *vk, const char *name)
{
    uint32_t count = 0, found = 0;
    VkLayerProperties *p;

    if (vk->EnumerateInstanceLayerProperties(&count, NULL) < 0)
        return 0;
    p = pm_calloc(count + 1, sizeof *p);
    if (vk->EnumerateInstanceLayerProperties(&count, p) >= 0)
        for (uint32_t i = 0; i < count && !found; i++)
            if (strcmp(p[i].layerName, name) == 0)
                found = p[i].specVersion;
    pm_free(p);
    return found;
}

/* The loader is opened at run time, so the program also starts on a machine without Vulkan. */
static PFN_vkGetInstanceProcAddr get_proc; /* NULL: no loader */
static pthread_once_t loader_once = PTHREAD_ONCE_INIT;

static const char *loader_name(void)
{
    const char *name = getenv("PM_VULKAN_LOADER");

    return name && name[0] ? name : "libvulkan.so.1";
}

static void open_loader(void)
{
    /* stays open until the process ends */
    void *library = dlopen(loader_name(), RTLD_NOW | RTLD_LOCAL);

    if (library)
        get_proc = (PFN_vkGetInstanceProcAddr)dlsym(library, "vkGetInstanceProcAddr");
    if (!get_proc)
        PM_DEBUG("vulkan", "no loader: %s", dlerror());
}

const char *pm_vulkan_absence(void)
{
    pthread_once(&loader_once, open_loader);
    return get_proc ? "no Vulkan driver lists a device (if there is a GPU, install its driver, "
                      "Mesa for AMD and Intel, and check VK_DRIVER_FILES)"
                    : "the Vulkan loader, libvulkan.so.1, is not installed (package libvulkan1)";
}

static void load_global(struct vk *vk)
{
    pthread_once(&loader_once, open_loader);
    if (!get_proc)
        return;
#define LOAD(n) vk->n = (PFN_vk##n)get_proc(NULL, "vk" #n);
    PM_VK_GLOBAL(LOAD)
#undef LOAD
    if (pm_vk_loaded)
        pm_vk_loaded(vk);
}

static int load_instance(struct vk_instance *in)
{
    struct vk *vk = &in->vk;

#define LOAD(n)                                                                                    \
    if (!(vk->n = (PFN_vk##n)get_proc(in->handle, "vk" #n)))                                       \
        return pm_fail(PM_EDEVICE, "the Vulkan loader lacks vk" #n "; version 1.2 is needed");
    PM_VK_INSTANCE(LOAD)
#undef LOAD
#define LOAD(n) vk->n = (PFN_vk##n)get_proc(in->handle, "vk" #n);
    PM_VK_OPTIONAL(LOAD)
#undef LOAD
    if (pm_vk_loaded)
        pm_vk_loaded(vk);
    return PM_OK;
}

static int enumerate(struct vk_instance *in)
{
    int err = PM_OK;
    VkResult r = in->vk.EnumeratePhysicalDevices(in->handle, &in->count, NULL);

    if (r == VK_ERROR_INITIALIZATION_FAILED || in->count == 0) {
        in->count = 0; /* there is a loader, but no driver starts */
        return PM_OK;
    }
    PM_TRY(pm_vk_result(r, "EnumeratePhysicalDevices"));
    in->physical = pm_calloc(in->count, sizeof *in->physical);
    PM_TRY(vk(in->vk.EnumeratePhysicalDevices(in->handle, &in->count, in->physical)));
out:
    return err;
}

int pm_vk_instance_create(bool validate, struct vk_instance *out)
{
    static const char *const layer = "VK_LAYER_KHRONOS_validation";
    static const char *const debug = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    int err = PM_OK;
    uint32_t version = VK_API_VERSION_1_0;
    VkResult r;
    VkApplicationInfo app = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                              .pApplicationName = "pumice",
                              .apiVersion = VK_API_VERSION_1_3 };
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = message,
    };
    VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                  .pApplicationInfo = &app };

    memset(out, 0, sizeof *out);
    load_global(&out->vk);
    if (!out->vk.CreateInstance || !out->vk.EnumerateInstanceVersion ||
        out->vk.EnumerateInstanceVersion(&version) < 0 || version < VK_API_VERSION_1_2)
        return PM_OK; /* the loader is too old for any usable device */
    if (validate) {
        if (!(out->layer_version = layer_version(&out->vk, layer)))
            return pm_fail(
                PM_EDEVICE,
                "run.validate is on, but %s is not installed (package vulkan-validationlayers)",
                layer);
        info.pNext = &messenger;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = &layer;
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = &debug;
    }
    r = out->vk.CreateInstance(&info, NULL, &out->handle);
    if (r == VK_ERROR_INCOMPATIBLE_DRIVER || r == VK_ERROR_INITIALIZATION_FAILED) {
        PM_DEBUG("vulkan", "no driver: vkCreateInstance returned %s", pm_vk_result_name(r));
        out->handle = NULL;
        return PM_OK;
    }
    if (r < 0 && !validate) { /* with a damaged .json the loader may return any error */
        PM_WARN("vulkan",
                "no driver can be used: vkCreateInstance returned %s; is a driver's .json file "
                "damaged (VK_DRIVER_FILES, /usr/share/vulkan/icd.d)?",
                pm_vk_result_name(r));
        out->handle = NULL;
        return PM_OK;
    }
    PM_TRY(pm_vk_result(r, "CreateInstance"));
    PM_TRY(load_instance(out));
    if (validate)
        PM_TRY(vk(out->vk.CreateDebugUtilsMessengerEXT(out->handle, &messenger, NULL,
                                                       &out->messenger)));
    PM_TRY(enumerate(out));
out:
    if (err < 0)
        pm_vk_instance_destroy(out, true);
    return err;
}

void pm_vk_instance_destroy(struct vk_instance *in, bool idle)
{
    if (idle && in->messenger)
        in->vk.DestroyDebugUtilsMessengerEXT(in->handle, in->messenger, NULL);
    if (idle && in->handle && in->vk.DestroyInstance)
        in->vk.DestroyInstance(in->handle, NULL);
    pm_free(in->physical);
    memset(in, 0, sizeof *in);
}

/* ---- the list ----------------------------------------------------------------------- */

/* Ranks the drivers of one GPU; the higher rank is kept. The vendor's own compute driver ranks high
 * if it is the better tested one. Layered and experimental drivers rank last. */
static int driver_rank(VkDriverId driver)
{
    switch (driver) {
    case VK_DRIVER_ID_MESA_RADV:
    case VK_DRIVER_ID_NVIDIA_PROPRIETARY:
    case VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA:
        return 4;
    case VK_DRIVER_ID_AMD_PROPRIETARY:
    case VK_DRIVER_ID_AMD_OPEN_SOURCE:
    case VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS:
        return 3;
    case VK_DRIVER_ID_MESA_VENUS:
    case VK_DRIVER_ID_MESA_DOZEN:
        return 1;
    default:
        return 2;
    }
}

static bool same_gpu(const struct vk_physical *a, const struct vk_physical *b)
{
    if (a->info.kind == PM_KIND_SOFTWARE || b->info.kind == PM_KIND_SOFTWARE)
        return false;
    if (a->info.pci[0] && b->info.pci[0])
        return strcmp(a->info.pci, b->info.pci) == 0;
    return strcmp(a->info.uuid, b->info.uuid) == 0;
}

static void mark_doubles(struct vk_physical *p, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++) {
            struct vk_physical *worse = &p[j], *better = &p[i];

            if (!same_gpu(&p[i], &p[j]) || !p[i].info.usable || !p[j].info.usable)
                continue;
            if (driver_rank(p[j].driver) > driver_rank(p[i].driver))
                worse = &p[i], better = &p[j];
            worse->info.usable = false;
            snprintf(worse->info.reason, sizeof worse->info.reason, "same GPU as %s",
                     better->info.address);
        }
}

int pm_vulkan_list(struct pm_device_info **list, size_t *count)
{
    int err = PM_OK;
    struct vk_instance in;
    struct vk_physical *p = NULL;

    PM_TRY(pm_vk_instance_create(false, &in));
    p = pm_calloc(in.count + 1, sizeof *p);
    for (uint32_t i = 0; i < in.count; i++)
        pm_vk_describe(&in, i, &p[i]);
    mark_doubles(p, in.count);
    *list = pm_realloc(*list, (*count + in.count + 1) * sizeof **list);
    for (uint32_t i = 0; i < in.count; i++)
        (*list)[(*count)++] = p[i].info;
    pm_free(p);
    pm_vk_instance_destroy(&in, true);
out:
    return err;
}
