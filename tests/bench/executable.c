#include "bench/executable.h"

#include <stdlib.h>
#include <string.h>

/* ---- between device and driver ---------------------------------------------------------- */

static struct {
    PFN_vkCreateDevice create_device;
    PFN_vkGetDeviceProcAddr device_address;
    PFN_vkCreateComputePipelines create_pipelines;
    PFN_vkGetPipelineExecutablePropertiesKHR properties;
    PFN_vkGetPipelineExecutableStatisticsKHR statistics;
    PFN_vkGetPipelineExecutableInternalRepresentationsKHR texts;
} own;

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkDevice *out)
{
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pNext = (void *)info->pNext, .pipelineExecutableInfo = VK_TRUE,
    };
    VkDeviceCreateInfo more = *info;
    const char *names[VK_EXTENSIONS + 1];
    uint32_t count = info->enabledExtensionCount;

    memcpy(names, info->ppEnabledExtensionNames, count * sizeof *names);
    names[count] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    more.pNext = &feature;
    more.enabledExtensionCount = count + 1;
    more.ppEnabledExtensionNames = names;
    VkResult r = own.create_device(physical, &more, allocator, out);
    if (r < 0)
        return r;
#define LOAD(to, name) own.to = (PFN_vk##name)own.device_address(*out, "vk" #name)
    LOAD(properties, GetPipelineExecutablePropertiesKHR);
    LOAD(statistics, GetPipelineExecutableStatisticsKHR);
    LOAD(texts, GetPipelineExecutableInternalRepresentationsKHR);
#undef LOAD
    return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
                                                       uint32_t count,
                                                       const VkComputePipelineCreateInfo *info,
                                                       const VkAllocationCallbacks *allocator,
                                                       VkPipeline *out)
{
    VkComputePipelineCreateInfo more = *info;

    (void)count; /* Pumice creates pipelines one by one */
    more.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                  VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
    return own.create_pipelines(device, cache, 1, &more, allocator, out);
}

static void loaded(struct vk *vk)
{
    if (vk->CreateDevice && vk->CreateDevice != create_device) {
        own.create_device = vk->CreateDevice;
        own.device_address = vk->GetDeviceProcAddr;
        vk->CreateDevice = create_device;
    }
    if (vk->CreateComputePipelines && vk->CreateComputePipelines != create_pipelines) {
        own.create_pipelines = vk->CreateComputePipelines;
        vk->CreateComputePipelines = create_pipelines;
    }
}

void executable_capture(void)
{
    pm_vk_loaded = loaded;
}

/* ---- statistics ------------------------------------------------------------------------- */

enum { MAX_STATISTICS = PM_COUNT(((struct executable *)NULL)->list) };

static double value_of(const VkPipelineExecutableStatisticKHR *s)
{
    switch (s->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
        return s->value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
        return (double)s->value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
        return (double)s->value.u64;
    default:
        return s->value.f64;
    }
}

static int read_statistics(struct vk_device *d, const VkPipelineExecutableInfoKHR *which,
                           struct executable *out)
{
    VkPipelineExecutableStatisticKHR list[MAX_STATISTICS];
    uint32_t count = MAX_STATISTICS;
    int err = PM_OK;

    for (size_t i = 0; i < MAX_STATISTICS; i++)
        list[i] = (VkPipelineExecutableStatisticKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR };
    PM_TRY(vk(own.statistics(d->handle, which, &count, list)));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(out->list[i].name, sizeof out->list[i].name, "%s", list[i].name);
        out->list[i].value = value_of(&list[i]);
    }
    out->count = (int)count;
out:
    return err;
}

/* A compute pipeline has one executable. */
static int read_subgroup(struct vk_device *d, VkPipeline pipeline, struct executable *out)
{
    const VkPipelineInfoKHR which = { .sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR,
                                      .pipeline = pipeline };
    VkPipelineExecutablePropertiesKHR properties = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR };
    uint32_t count = 0;
    int err = PM_OK;

    PM_TRY(vk(own.properties(d->handle, &which, &count, NULL)));
    if (count != 1)
        PM_TRY(pm_fail(PM_EDEVICE, "a compute pipeline has %u executables", count));
    PM_TRY(vk(own.properties(d->handle, &which, &count, &properties)));
    out->subgroup = properties.subgroupSize;
out:
    return err;
}

double executable_value(const struct executable *e, const char *name)
{
    for (int i = 0; i < e->count; i++)
        if (strcmp(e->list[i].name, name) == 0)
            return e->list[i].value;
    return -1;
}

/* ---- listings --------------------------------------------------------------------------- */

/* The last text is the assembly or the driver's closest form of it. NULL without one. */
static char *listing(struct vk_device *d, const VkPipelineExecutableInfoKHR *which)
{
    enum { TEXTS = 8 };
    VkPipelineExecutableInternalRepresentationKHR list[TEXTS];
    uint32_t count = 0;
    char *text;

    if (own.texts(d->handle, which, &count, NULL) < 0 || count == 0 || count > TEXTS)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        list[i] = (VkPipelineExecutableInternalRepresentationKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR };
    if (own.texts(d->handle, which, &count, list) < 0)
        return NULL;
    text = pm_calloc(list[count - 1].dataSize + 1, 1);
    for (uint32_t i = 0; i < count; i++) /* the other texts get no memory, so only their size is
                                          * returned */
        list[i].pData = i == count - 1 ? text : NULL;
    own.texts(d->handle, which, &count, list);
    return text;
}

int executable_print(struct vk_device *d, VkPipeline pipeline, FILE *f)
{
    const VkPipelineExecutableInfoKHR which = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline };
    char *text = listing(d, &which);

    if (!text)
        return pm_fail(PM_EDEVICE, "the driver gives no listing");
    fprintf(f, "%s\n", text);
    pm_free(text);
    return PM_OK;
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static bool is_fma(const char *name)
{
    if (starts(name, "v_dual_") || starts(name, "v_pk_"))
        name = strchr(name + 2, '_') - 1;
    return starts(name + 2, "fma") || starts(name + 2, "mac_f") || starts(name + 2, "mad_f");
}

/* Counts the vector instructions in a line, words that begin with v_; a line can have two. */
static void count_line(const char *s, size_t length, int *vector, int *fma)
{
    for (size_t i = 1; i + 2 < length && s[i] != ';'; i++)
        if ((s[i - 1] == ' ' || s[i - 1] == '\t') && starts(s + i, "v_")) {
            ++*vector;
            *fma += is_fma(s + i);
        }
}

enum { MAX_BLOCKS = 4096 };

/* The place where block n of "BBn" begins, and the counts before it. */
struct block {
    bool seen;
    int vector, fma;
};

/* A jump back to a block closes a loop, from that block to the jump. The loop with most fused
 * multiply-adds is counted, the shorter one of equals. Without a loop the whole program is
 * counted. */
static void count_listing(const char *s, struct executable *out)
{
    struct block *blocks = pm_calloc(MAX_BLOCKS, sizeof *blocks);
    int vector = 0, fma = 0;
    bool loop = false;

    for (const char *next; *s; s = *next ? next + 1 : next) {
        const char *target;

        next = s + strcspn(s, "\n");
        count_line(s, (size_t)(next - s), &vector, &fma);
        if (starts(s, "BB")) {
            blocks[atoi(s + 2) % MAX_BLOCKS] = (struct block){ true, vector, fma };
            continue;
        }
        target = strstr(s, "branch");
        target = target && target < next && !starts(s, "/*") ? strstr(target, "BB") : NULL;
        if (!target || target > next)
            continue;
        const struct block *b = &blocks[atoi(target + 2) % MAX_BLOCKS];
        if (!b->seen)
            continue;
        const int inner_vector = vector - b->vector, inner_fma = fma - b->fma;
        if (!loop || inner_fma > out->loop_fma ||
            (inner_fma == out->loop_fma && inner_vector < out->loop_vector))
            out->loop_vector = inner_vector, out->loop_fma = inner_fma;
        loop = true;
    }
    if (!loop)
        out->loop_vector = vector, out->loop_fma = fma;
    pm_free(blocks);
}

int executable_read(struct vk_device *d, VkPipeline pipeline, bool count_loop,
                    struct executable *out)
{
    const VkPipelineExecutableInfoKHR which = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline };
    int err = PM_OK;
    char *text = NULL;

    *out = (struct executable){ 0 };
    PM_TRY(read_subgroup(d, pipeline, out));
    PM_TRY(read_statistics(d, &which, out));
    if (count_loop && (text = listing(d, &which)))
        count_listing(text, out);
out:
    pm_free(text);
    return err;
}
