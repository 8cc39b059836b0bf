/* pipelines_vk: compiles a module for Vulkan; the driver's cache on disk keeps the result. */
#include "device/vulkan/device_vk.h"

static const char *lacks(const struct pm_shader_device *d, const struct pm_module_info *m)
{
    return m->int16 && !((const struct vk_device *)d)->physical.int16 ? "16-bit integers" : NULL;
}

static int compile(struct pm_shader_device *shared, struct pm_pipeline *p, const uint32_t *words,
                   size_t count)
{
    int err = PM_OK;
    struct vk_device *d = (struct vk_device *)shared;
    VkShaderModule module = VK_NULL_HANDLE;
    VkShaderModuleCreateInfo code = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                      .codeSize = count * sizeof *words, .pCode = words };
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = p->module.uses_group_count ? 0 : VK_PIPELINE_CREATE_DISPATCH_BASE_BIT,
        .stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                   .stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main" },
        .layout = d->layout,
    };

    PM_TRY(vk(d->vk.CreateShaderModule(d->handle, &code, NULL, &module)));
    info.stage.module = module;
    PM_TRY(vk(d->vk.CreateComputePipelines(d->handle, d->cache, 1, &info, NULL,
                                           &((struct vk_pipeline *)p)->handle)));
out:
    d->vk.DestroyShaderModule(d->handle, module, NULL);
    return err;
}

static void destroy(struct pm_shader_device *shared, struct pm_pipeline *p)
{
    struct vk_device *d = (struct vk_device *)shared;

    d->vk.DestroyPipeline(d->handle, ((struct vk_pipeline *)p)->handle, NULL);
}

static const struct pm_pipeline_ops ops = {
    .log = "vulkan",
    .pipeline_size = sizeof(struct vk_pipeline),
    .lacks = lacks,
    .compile = compile,
    .destroy = destroy,
};

/* ---- the driver's cache on disk ---------------------------------------------------------- */

/* Builds the cache's path. False: there is no folder for caches. */
static bool cache_path(const struct vk_device *d, struct pm_str *path)
{
    const struct vk_physical *p = &d->physical;

    if (!pm_pipeline_cache_folder(path))
        return false;
    pm_str_add(path, "/pipelines-%04x-%04x-%08x-", p->vendor, p->device, p->driver_version);
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        pm_str_add(path, "%02x", p->cache_uuid[i]);
    return true;
}

static void cache_save(struct vk_device *d)
{
    struct pm_str path = { 0 };
    size_t size = 0;
    char *data = NULL;

    if (d->vk.GetPipelineCacheData(d->handle, d->cache, &size, NULL) < 0 ||
        size == d->cache_bytes || !cache_path(d, &path))
        goto out;
    data = pm_malloc(size);
    if (d->vk.GetPipelineCacheData(d->handle, d->cache, &size, data) == VK_SUCCESS)
        pm_pipeline_cache_save(path.text, ops.log, data, size);
out:
    pm_free(data);
    pm_str_free(&path);
}

int pm_vk_pipelines_open(struct vk_device *d)
{
    struct pm_str path = { 0 };
    char *file = NULL;
    size_t size = 0;
    const char *body = cache_path(d, &path) ? pm_pipeline_cache_load(path.text, ops.log, &file,
                                                                     &size) : NULL;
    VkPipelineCacheCreateInfo info = { .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                       .initialDataSize = body ? size : 0,
                                       .pInitialData = body };
    VkResult r = d->vk.CreatePipelineCache(d->handle, &info, NULL, &d->cache);

    if (r < 0 && body) { /* the driver rejected the bytes */
        info.initialDataSize = 0, info.pInitialData = NULL;
        r = d->vk.CreatePipelineCache(d->handle, &info, NULL, &d->cache);
    }
    d->cache_bytes = info.initialDataSize;
    pm_pipelines_open(&d->shared, &ops);
    pm_free(file);
    pm_str_free(&path);
    return pm_vk_result(r, "CreatePipelineCache");
}

void pm_vk_pipelines_close(struct vk_device *d, bool idle)
{
    if (d->cache && idle) {
        if (d->shared.pipelines.count > 0)
            cache_save(d);
        d->vk.DestroyPipelineCache(d->handle, d->cache, NULL);
    }
    pm_pipelines_close(&d->shared, idle);
}
