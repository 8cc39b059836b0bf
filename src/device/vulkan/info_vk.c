/* info_vk: reads a device's limits, features and class from its driver, and decides whether it is
 * usable. */
#include "device/vulkan/device_vk.h"

#include <stdlib.h>
#include <string.h>

const char *const pm_vk_extension_names[VK_EXTENSIONS] = {
    [VK_HAS_MEMORY_BUDGET] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
    [VK_HAS_HOST_MEMORY] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    [VK_HAS_PCI] = VK_EXT_PCI_BUS_INFO_EXTENSION_NAME,
    [VK_HAS_MAINTENANCE4] = VK_KHR_MAINTENANCE_4_EXTENSION_NAME,
    [VK_HAS_SUBGROUP_CONTROL] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
    [VK_HAS_COOPMAT] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
    [VK_HAS_AMD_CORES] = VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME,
    [VK_HAS_AMD_ACTIVE] = VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME,
    [VK_HAS_NV_CORES] = VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME,
    [VK_HAS_ARM_CORES] = VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME,
};

/* Prepends a structure to a pNext chain. */
#define CHAIN(first, s) ((s).pNext = (first), (first) = &(s))

static void find_extensions(struct vk_instance *in, struct vk_physical *p)
{
    uint32_t count = 0;
    VkExtensionProperties *list;

    if (in->vk.EnumerateDeviceExtensionProperties(p->handle, NULL, &count, NULL) < 0)
        return;
    list = pm_calloc(count + 1, sizeof *list);
    if (in->vk.EnumerateDeviceExtensionProperties(p->handle, NULL, &count, list) >= 0)
        for (uint32_t i = 0; i < count; i++)
            for (int e = 0; e < VK_EXTENSIONS; e++)
                if (strcmp(list[i].extensionName, pm_vk_extension_names[e]) == 0)
                    p->listed[e] = true;
    pm_free(list);
    memcpy(p->has, p->listed, sizeof p->has);
    if (p->version >= VK_API_VERSION_1_3)
        p->has[VK_HAS_MAINTENANCE4] = p->has[VK_HAS_SUBGROUP_CONTROL] = true;
}

static void uuid_text(const uint8_t u[VK_UUID_SIZE], char out[40])
{
    char *s = out;

    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        s += sprintf(s, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static bool is_software(VkDriverId driver)
{
    return driver == VK_DRIVER_ID_MESA_LLVMPIPE || driver == VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
}

static enum pm_device_kind kind_of(VkPhysicalDeviceType type, VkDriverId driver)
{
    if (is_software(driver) || type == VK_PHYSICAL_DEVICE_TYPE_CPU)
        return PM_KIND_SOFTWARE;
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return PM_KIND_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return PM_KIND_INTEGRATED;
    default:
        return PM_KIND_VIRTUAL;
    }
}

/* Returns the class, which selects the tile tables to start from. Software drivers: by subgroup
 * width. AMD: cards with waves of 32 are RDNA. Layered drivers: by vendor only. */
static enum pm_class class_of(const struct vk_physical *p, uint32_t subgroup, uint32_t smallest)
{
    enum { AMD = 0x1002, NVIDIA = 0x10de, INTEL = 0x8086 };

    if (p->info.kind == PM_KIND_SOFTWARE)
        return subgroup >= 8 ? PM_CLASS_LAVAPIPE : PM_CLASS_SWIFTSHADER;
    switch (p->vendor) {
    case AMD:
        return smallest <= 32 ? PM_CLASS_AMD_RDNA : PM_CLASS_AMD_GCN;
    case NVIDIA:
        return PM_CLASS_NVIDIA;
    case INTEL:
        return PM_CLASS_INTEL;
    default:
        return PM_CLASS_OTHER;
    }
}

/* Returns the compute units of a usual device of the class: Intel's Arc A750 and Iris Xe, and
 * middling cards and laptops of the others. */
static uint32_t guess_units(const struct pm_device_info *info)
{
    bool intel = info->caps.device_class == PM_CLASS_INTEL;

    if (info->kind == PM_KIND_INTEGRATED)
        return intel ? 6 : 8;
    return intel ? 28 : 36;
}

/* Sets the number of compute units: as the driver reports it, or a guess. Software drivers have
 * none, so that their choice of kernels does not depend on the host. */
static void describe_units(struct vk_instance *in, struct vk_physical *p)
{
    VkPhysicalDeviceShaderCorePropertiesAMD amd = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD };
    VkPhysicalDeviceShaderCoreProperties2AMD active = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD };
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nv = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV };
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM };
    VkPhysicalDeviceProperties2 props = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 };
    struct pm_caps *c = &p->info.caps;

    if (p->info.kind == PM_KIND_SOFTWARE)
        return;
    if (p->listed[VK_HAS_AMD_CORES])
        CHAIN(props.pNext, amd);
    if (p->listed[VK_HAS_AMD_ACTIVE])
        CHAIN(props.pNext, active);
    if (p->listed[VK_HAS_NV_CORES])
        CHAIN(props.pNext, nv);
    if (p->listed[VK_HAS_ARM_CORES])
        CHAIN(props.pNext, arm);
    in->vk.GetPhysicalDeviceProperties2(p->handle, &props);
    /* A card may have parts of its chip switched off; only `active` counts without them. */
    c->compute_units = active.activeComputeUnitCount > 0 ? active.activeComputeUnitCount
                     : amd.shaderEngineCount > 0
                         ? amd.shaderEngineCount * amd.shaderArraysPerEngineCount
                               * amd.computeUnitsPerShaderArray
                     : nv.shaderSMCount > 0 ? nv.shaderSMCount
                                            : arm.shaderCoreCount;
    if (c->compute_units == 0 || c->compute_units > 4096) {
        c->compute_units = guess_units(&p->info);
        c->compute_units_guessed = true;
    }
}

/* Writes the driver's name and version, which are the key of everything cached about it. */
static void driver_text(const VkPhysicalDeviceProperties *props,
                        const VkPhysicalDeviceDriverProperties *driver, char *out, size_t size)
{
    uint32_t v = props->driverVersion;

    if (driver->driverInfo[0])
        snprintf(out, size, "%.120s %.120s", driver->driverName, driver->driverInfo);
    else
        snprintf(out, size, "%.120s %u.%u.%u", driver->driverName, VK_API_VERSION_MAJOR(v),
                 VK_API_VERSION_MINOR(v), VK_API_VERSION_PATCH(v));
}

static void describe_limits(struct vk_physical *p, const VkPhysicalDeviceProperties *props)
{
    struct pm_caps *c = &p->info.caps;

    p->limits = props->limits;
    c->runs_shaders = c->needs_verification = c->timed_by_queries = c->last_group = true;
    c->on_host_cores = p->info.kind == PM_KIND_SOFTWARE;
    for (int i = 0; i < 3; i++) {
        c->max_workgroup_size[i] = p->limits.maxComputeWorkGroupSize[i];
        c->max_groups[i] = p->limits.maxComputeWorkGroupCount[i];
    }
    c->max_workgroup_invocations = p->limits.maxComputeWorkGroupInvocations;
    c->shared_bytes = p->limits.maxComputeSharedMemorySize;
}

static void describe_properties(struct vk_instance *in, struct vk_physical *p)
{
    VkPhysicalDeviceVulkan11Properties v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES };
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES };
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT };
    VkPhysicalDeviceMaintenance4Properties m4 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
        .maxBufferSize = UINT64_MAX };
    VkPhysicalDeviceSubgroupSizeControlProperties control = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
        .minSubgroupSize = 64 };
    VkPhysicalDeviceProperties2 props = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 };
    struct pm_caps *c = &p->info.caps;

    CHAIN(props.pNext, v11);
    CHAIN(props.pNext, driver);
    if (p->has[VK_HAS_PCI])
        CHAIN(props.pNext, pci);
    if (p->has[VK_HAS_MAINTENANCE4])
        CHAIN(props.pNext, m4);
    if (p->has[VK_HAS_SUBGROUP_CONTROL])
        CHAIN(props.pNext, control);
    in->vk.GetPhysicalDeviceProperties2(p->handle, &props);

    p->driver = driver.driverID;
    p->info.kind = kind_of(props.properties.deviceType, driver.driverID);
    describe_limits(p, &props.properties);
    c->subgroup_size = v11.subgroupSize;
    c->subgroup_arithmetic =
        (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
        (v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
    c->device_class = class_of(p, v11.subgroupSize, control.minSubgroupSize);
    c->max_buffer_bytes = v11.maxMemoryAllocationSize < m4.maxBufferSize
                              ? v11.maxMemoryAllocationSize : m4.maxBufferSize;
    driver_text(&props.properties, &driver, p->info.driver, sizeof p->info.driver);
    uuid_text(v11.deviceUUID, p->info.uuid);
    if (p->has[VK_HAS_PCI])
        snprintf(p->info.pci, sizeof p->info.pci, "%04x:%02x:%02x.%x", pci.pciDomain & 0xffff,
                 pci.pciBus & 0xff, pci.pciDevice & 0xff, pci.pciFunction & 0xf);
}

static void feature(struct pm_device_info *info, bool present, const char *name)
{
    size_t n = strlen(info->features);

    if (present)
        snprintf(info->features + n, sizeof info->features - n, "%s%s", n ? " " : "", name);
}

static void describe_coopmat(struct vk_instance *in, struct vk_physical *p)
{
    uint32_t count = 0;
    VkCooperativeMatrixPropertiesKHR *list;
    struct pm_caps *c = &p->info.caps;

    if (!in->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
        in->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(p->handle, &count, NULL) < 0)
        return;
    list = pm_calloc(count + 1, sizeof *list);
    for (uint32_t i = 0; i < count; i++)
        list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (in->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(p->handle, &count, list) < 0)
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const VkCooperativeMatrixPropertiesKHR *m = &list[i];

        if (m->scope == VK_SCOPE_SUBGROUP_KHR && m->AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
            m->BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
            m->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            m->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            (uint64_t)m->MSize * m->NSize * m->KSize >
                (uint64_t)c->coopmat.m * c->coopmat.n * c->coopmat.k)
            c->coopmat.m = m->MSize, c->coopmat.n = m->NSize, c->coopmat.k = m->KSize;
    }
    pm_free(list);
}

/* Sets usable, or the reason why the device is not usable. */
static void describe_features(struct vk_instance *in, struct vk_physical *p)
{
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES };
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES };
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coopmat = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR };
    VkPhysicalDeviceFeatures2 f = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 };
    struct pm_device_info *info = &p->info;
    const char *lacks = NULL;

    CHAIN(f.pNext, v11);
    CHAIN(f.pNext, v12);
    if (p->has[VK_HAS_COOPMAT])
        CHAIN(f.pNext, coopmat);
    in->vk.GetPhysicalDeviceFeatures2(p->handle, &f);

    lacks = !v12.bufferDeviceAddress ? "bufferDeviceAddress"
          : !v12.timelineSemaphore   ? "timelineSemaphore"
          : !v12.scalarBlockLayout   ? "scalarBlockLayout"
                                     : NULL;
    if (lacks)
        snprintf(info->reason, sizeof info->reason, "its driver lacks %s", lacks);
    info->usable = !lacks && !p->compiler_only;
    if (p->compiler_only)
        snprintf(info->reason, sizeof info->reason, "it compiles shaders but runs nothing");
    p->has[VK_HAS_COOPMAT] = p->has[VK_HAS_COOPMAT] && coopmat.cooperativeMatrix;
    if (p->has[VK_HAS_COOPMAT])
        describe_coopmat(in, p);
    p->memory_model = v12.vulkanMemoryModel;
    p->device_scope = v12.vulkanMemoryModelDeviceScope;
    p->int16 = f.features.shaderInt16;
    info->caps.int64 = f.features.shaderInt64;
    info->caps.float16 = v12.shaderFloat16;
    info->caps.storage16 = v11.storageBuffer16BitAccess;
    feature(info, info->caps.int64, "int64");
    feature(info, info->caps.float16, "float16");
    feature(info, info->caps.storage16, "storage16");
    feature(info, info->caps.subgroup_arithmetic, "subgroup_arithmetic");
    feature(info, p->has[VK_HAS_COOPMAT], "cooperative_matrix");
    feature(info, p->has[VK_HAS_HOST_MEMORY], "external_memory_host");
    feature(info, p->has[VK_HAS_MEMORY_BUDGET], "memory_budget");
    feature(info, p->has[VK_HAS_MAINTENANCE4], "maintenance4");
    feature(info, p->family != p->transfer_family, "transfer_queue");
}

static void describe_memory(struct vk_instance *in, struct vk_physical *p)
{
    VkPhysicalDeviceMemoryProperties2 m = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 };

    in->vk.GetPhysicalDeviceMemoryProperties2(p->handle, &m);
    for (uint32_t i = 0; i < m.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *h = &m.memoryProperties.memoryHeaps[i];

        if ((h->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && h->size > p->info.memory_bytes)
            p->info.memory_bytes = h->size;
    }
}

/* Chooses the queue families. A family with compute but without graphics is preferred: long work
 * there does not block the desktop and does not trigger its watchdog. Copies go to a family that
 * does nothing else. */
static bool find_queues(struct vk_instance *in, struct vk_physical *p)
{
    enum { GRAPHICS = VK_QUEUE_GRAPHICS_BIT, COMPUTE = VK_QUEUE_COMPUTE_BIT,
           TRANSFER = VK_QUEUE_TRANSFER_BIT };
    VkQueueFamilyProperties q[16];
    uint32_t count = PM_COUNT(q);
    int compute = -1, transfer = -1;

    in->vk.GetPhysicalDeviceQueueFamilyProperties(p->handle, &count, q);
    for (int i = 0; i < (int)count; i++) {
        unsigned flags = q[i].queueFlags;

        if ((flags & COMPUTE) &&
            (compute < 0 || ((q[compute].queueFlags & GRAPHICS) && !(flags & GRAPHICS))))
            compute = i;
        if ((flags & TRANSFER) && !(flags & (COMPUTE | GRAPHICS)) && transfer < 0)
            transfer = i;
    }
    p->family = compute < 0 ? 0 : (uint32_t)compute;
    p->transfer_family = transfer < 0 ? p->family : (uint32_t)transfer;
    p->timestamp_bits = compute < 0 ? 0 : q[compute].timestampValidBits;
    return compute >= 0;
}

void pm_vk_describe(struct vk_instance *in, uint32_t index, struct vk_physical *out)
{
    VkPhysicalDeviceProperties props;
    struct pm_device_info *info = &out->info;

    memset(out, 0, sizeof *out);
    out->handle = in->physical[index];
    in->vk.GetPhysicalDeviceProperties(out->handle, &props);
    snprintf(info->address, sizeof info->address, "vulkan:%u", index);
    snprintf(info->name, sizeof info->name, "%s", props.deviceName);
    out->compiler_only = strncmp(props.deviceName, "Null hardware", 13) == 0;
    out->version = props.apiVersion < VK_API_VERSION_1_3 ? props.apiVersion : VK_API_VERSION_1_3;
    out->vendor = props.vendorID;
    out->device = props.deviceID;
    out->driver_version = props.driverVersion;
    memcpy(out->cache_uuid, props.pipelineCacheUUID, sizeof out->cache_uuid);
    info->kind = kind_of(props.deviceType, 0);
    describe_limits(out, &props);
    describe_memory(in, out);
    if (props.apiVersion < VK_API_VERSION_1_2) {
        snprintf(info->reason, sizeof info->reason, "its driver speaks Vulkan %u.%u; 1.2 is needed",
                 VK_API_VERSION_MAJOR(props.apiVersion), VK_API_VERSION_MINOR(props.apiVersion));
        return;
    }
    find_extensions(in, out);
    describe_properties(in, out);
    describe_units(in, out);
    if (find_queues(in, out)) {
        describe_features(in, out);
    } else {
        snprintf(info->reason, sizeof info->reason, "it has no compute queue");
    }
}
