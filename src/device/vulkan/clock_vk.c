/* clock_vk: how long a run took on the device: a timestamp before its first command, once everything
 * earlier is done, and one after its last. Queues without timestamps are timed by the host, from
 * submission to the wait's return. */
#include "device/vulkan/vk.h"

#include <pumice/trace.h>

static int record(struct vk_device *d, VkCommandPool pool, struct vk_clock *c, uint32_t query,
                  VkCommandBuffer *out)
{
    int err = PM_OK;

    PM_TRY(pm_vk_command_buffers(d, pool, 1, out));
    PM_TRY(pm_vk_begin(d, *out, 0));
    pm_vk_barrier(d, *out, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    if (query == 0)
        d->vk.CmdResetQueryPool(*out, c->queries, 0, 2);
    d->vk.CmdWriteTimestamp(*out, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, c->queries, query);
    PM_TRY(vk(d->vk.EndCommandBuffer(*out)));
out:
    return err;
}

int pm_vk_clock_create(struct vk_device *d, VkCommandPool pool, struct vk_clock *c)
{
    const VkQueryPoolCreateInfo info = { VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = 2 };
    int err = PM_OK;

    if (d->physical.timestamp_bits == 0)
        return PM_OK;
    PM_TRY(vk(d->vk.CreateQueryPool(d->handle, &info, NULL, &c->queries)));
    PM_TRY(record(d, pool, c, 0, &c->begin));
    PM_TRY(record(d, pool, c, 1, &c->end));
out:
    return err;
}

void pm_vk_clock_destroy(struct vk_device *d, struct vk_clock *c)
{
    d->vk.DestroyQueryPool(d->handle, c->queries, NULL);
    *c = (struct vk_clock){ 0 };
}

void pm_vk_clock_read(struct vk_device *d, struct vk_clock *c, const char *name)
{
    uint64_t stamp[2], mask = d->physical.timestamp_bits >= 64
                                  ? UINT64_MAX
                                  : (1ull << d->physical.timestamp_bits) - 1;

    c->seconds = pm_seconds() - c->submitted;
    if (c->queries &&
        d->vk.GetQueryPoolResults(d->handle, c->queries, 0, 2, sizeof stamp, stamp, sizeof *stamp,
                                  VK_QUERY_RESULT_64_BIT) == VK_SUCCESS)
        c->seconds = (double)((stamp[1] - stamp[0]) & mask) *
                     (double)d->physical.limits.timestampPeriod * 1e-9;
    pm_trace_span(d->base.info.address, name, c->submitted, c->submitted + c->seconds);
}
