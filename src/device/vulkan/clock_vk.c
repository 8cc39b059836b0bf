/* clock_vk: measures how long a run and its calls took on the device.
 *
 * A run has one timestamp before its first command, after all earlier work is done, and one after
 * its last command. A timed program also has two timestamps around every call and copy. If the
 * queue has no timestamps, the host measures from submission to the wait's return. */
#include "device/vulkan/device_vk.h"

#include <math.h>

enum { ALL = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT };

/* Writes a timestamp after all earlier work is done. */
static void write_stamp(struct vk_device *d, VkCommandBuffer c, VkQueryPool pool, size_t query)
{
    d->vk.CmdWriteTimestamp(c, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, (uint32_t)query);
}

static int create_pool(struct vk_device *d, size_t count, VkQueryPool *out)
{
    const VkQueryPoolCreateInfo info = { VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                         .queryCount = (uint32_t)count };

    return vk(d->vk.CreateQueryPool(d->handle, &info, NULL, out));
}

int pm_vk_stamps_create(struct vk_program *p, size_t pairs)
{
    if (p->device->physical.timestamp_bits == 0 || pairs == 0)
        return PM_OK;
    p->stamp_pairs = pairs;
    return create_pool(p->device, 2 * pairs, &p->stamps);
}

void pm_vk_stamp(struct vk_program *p, VkCommandBuffer c, size_t pair, int end)
{
    if (p->stamps && pair > 0)
        write_stamp(p->device, c, p->stamps, 2 * (pair - 1) + (size_t)end);
}

static int record_begin(struct vk_program *p, struct vk_clock *c)
{
    struct vk_device *d = p->device;
    int err = PM_OK;

    PM_TRY(pm_vk_command_buffers(d, p->pool, 1, &c->begin));
    PM_TRY(pm_vk_begin(d, c->begin, 0));
    pm_vk_barrier(d, c->begin, ALL, ALL);
    d->vk.CmdResetQueryPool(c->begin, c->queries, 0, 2);
    if (p->stamps)
        d->vk.CmdResetQueryPool(c->begin, p->stamps, 0, (uint32_t)(2 * p->stamp_pairs));
    write_stamp(d, c->begin, c->queries, 0);
    PM_TRY(vk(d->vk.EndCommandBuffer(c->begin)));
out:
    return err;
}

static int record_end(struct vk_program *p, struct vk_clock *c)
{
    struct vk_device *d = p->device;
    int err = PM_OK;

    PM_TRY(pm_vk_command_buffers(d, p->pool, 1, &c->end));
    PM_TRY(pm_vk_begin(d, c->end, 0));
    pm_vk_barrier(d, c->end, ALL, ALL);
    write_stamp(d, c->end, c->queries, 1);
    if (p->stamps) {
        d->vk.CmdCopyQueryPoolResults(c->end, p->stamps, 0, (uint32_t)(2 * p->stamp_pairs),
                                      c->stamps.buffer, 0, sizeof(uint64_t),
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
        pm_vk_barrier(d, c->end, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
    }
    PM_TRY(vk(d->vk.EndCommandBuffer(c->end)));
out:
    return err;
}

int pm_vk_clock_create(struct vk_program *p, struct vk_clock *c)
{
    struct vk_device *d = p->device;
    int err = PM_OK;

    if (d->physical.timestamp_bits == 0)
        return PM_OK;
    PM_TRY(create_pool(d, 2, &c->queries));
    if (p->stamps)
        PM_TRY(pm_vk_block_create(d, 2 * p->stamp_pairs * sizeof(uint64_t), VK_USE_DOWNLOAD,
                                  &c->stamps));
    PM_TRY(record_begin(p, c));
    PM_TRY(record_end(p, c));
out:
    return err;
}

void pm_vk_clock_destroy(struct vk_device *d, struct vk_clock *c)
{
    d->vk.DestroyQueryPool(d->handle, c->queries, NULL);
    pm_vk_block_destroy(d, &c->stamps);
    *c = (struct vk_clock){ 0 };
}

/* ---- reading ------------------------------------------------------------------------ */

/* Returns the seconds from one stamp to another, which must be at most half the clock's range
 * apart. The sign follows their order. On some devices stamps have few valid bits and wrap. */
static double between(const struct vk_device *d, uint64_t from, uint64_t to)
{
    uint32_t unused = 64 - d->physical.timestamp_bits;
    int64_t ticks = (int64_t)((to - from) << unused) >> unused;

    return (double)ticks * (double)d->physical.limits.timestampPeriod * 1e-9;
}

void pm_vk_clock_read(struct vk_program *p, struct vk_clock *c)
{
    struct vk_device *d = p->device;
    double now = pm_seconds();
    uint64_t stamp[2];

    c->seconds = now - c->submitted;
    c->begun = c->submitted;
    if (c->queries &&
        d->vk.GetQueryPoolResults(d->handle, c->queries, 0, 2, sizeof stamp, stamp, sizeof *stamp,
                                  VK_QUERY_RESULT_64_BIT) == VK_SUCCESS) {
        c->seconds = between(d, stamp[0], stamp[1]);
        pthread_mutex_lock(&d->queue_lock);
        c->begun = pm_fit_clock(&d->fit, between(d, d->fit.stamp, stamp[0]), c->seconds, stamp[1],
                                c->submitted, now);
        pthread_mutex_unlock(&d->queue_lock);
    }
}

double pm_vk_program_seconds(struct pm_program *base, int slot)
{
    return ((struct vk_program *)base)->slots[slot].clock.seconds;
}

double pm_vk_program_begun(struct pm_program *base, int slot)
{
    return ((struct vk_program *)base)->slots[slot].clock.begun;
}

/* Stores when the slot's last run began, on the device's clock. */
static int run_start(const struct vk_program *p, int slot, uint64_t *start)
{
    struct vk_device *d = p->device;

    if (!p->stamps)
        return pm_fail(PM_EDEVICE,
                       "%s (%s): its queue has no timestamps, so single calls cannot be timed",
                       d->shared.base.info.address, d->shared.base.info.name);
    return vk(d->vk.GetQueryPoolResults(d->handle, p->slots[slot].clock.queries, 0, 1,
                                        sizeof *start, start, sizeof *start,
                                        VK_QUERY_RESULT_64_BIT));
}

static void read_pair(const struct vk_program *p, int slot, uint64_t start, size_t pair,
                      double *begin, double *end)
{
    const uint64_t *stamps = p->slots[slot].clock.stamps.map;

    *begin = between(p->device, start, stamps[2 * pair]);
    *end = between(p->device, start, stamps[2 * pair + 1]);
}

int pm_vk_program_call_times(struct pm_program *base, int slot, double *begin, double *end)
{
    struct vk_program *p = (struct vk_program *)base;
    uint64_t start;
    int err = PM_OK;

    if (base->calls_count == 0)
        return PM_OK;
    PM_TRY(run_start(p, slot, &start));
    for (size_t i = 0; i < base->calls_count; i++)
        read_pair(p, slot, start, i, &begin[i], &end[i]);
out:
    return err;
}

int pm_vk_program_copy_times(struct pm_program *base, int slot, double *begin, double *end)
{
    struct vk_program *p = (struct vk_program *)base;
    uint64_t start;
    int err = PM_OK;

    for (size_t i = 0; i <= base->out_count; i++)
        begin[i] = end[i] = NAN;
    if (p->stamp_pairs == base->calls_count) /* the program copies nothing */
        return PM_OK;
    PM_TRY(run_start(p, slot, &start));
    if (p->prologue_stamps)
        read_pair(p, slot, start, p->prologue_stamps - 1, &begin[0], &end[0]);
    for (size_t i = 0; i < base->out_count; i++)
        if (p->outs[i].stamps)
            read_pair(p, slot, start, p->outs[i].stamps - 1, &begin[1 + i], &end[1 + i]);
out:
    return err;
}
