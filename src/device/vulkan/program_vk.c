/* program_vk: records an array of calls once.
 *
 * Calls are cut into segments. Each segment is a command buffer of its own, and its submission
 * signals a timeline value. A segment ends when its estimated work reaches the limit (a driver's
 * watchdog counts a submission's time), or after a call that an output waits for. A single call
 * above the limit is dispatched in parts, unless its shader reads the number of workgroups.
 *
 * Within a segment, a barrier is recorded before a call with a hazard: the call reads or writes a
 * byte range written since the last barrier, or writes a range that was read. In a timed program a
 * barrier is before every call, and timestamps are around it. */
#include "device/vulkan/device_vk.h"

#include <math.h>
#include <string.h>

enum { SMALL_OUT = 64 << 10 };
enum { COMPUTE = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, TRANSFER = VK_PIPELINE_STAGE_TRANSFER_BIT,
       ALL = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT };

struct range {
    const struct pm_buffer *buffer;
    size_t begin, end;
    bool write;
};
struct recorder {
    struct vk_device *d;
    struct vk_program *p;
    const struct pm_program_desc *desc;
    const struct vk_picked *picked;
    VkCommandBuffer open;  /* of the current segment; NULL between segments */
    double seconds;        /* estimated, of the current segment */
    size_t first;
    struct range *ranges;  /* used since the last barrier */
    size_t count, capacity;
    size_t constants;      /* bytes used of p->constants */
    bool begins;           /* timed: the next dispatch is a call's first */
};

static const char *label_of(const struct pm_bound_call *c)
{
    return c->label ? c->label : "";
}

/* ---- hazards ------------------------------------------------------------------------ */

static bool overlap(const struct range *r, const struct pm_place *p)
{
    return r->buffer == p->buffer && r->begin < p->offset + p->size && p->offset < r->end;
}

static bool writes(char access)
{
    return access != 'r';
}

static bool hazard(const struct recorder *r, const struct pm_bound_call *c,
                   const struct pm_buf_spec *spec, int bufs)
{
    for (int i = 0; i < bufs; i++)
        for (size_t k = 0; c->buf[i].buffer && k < r->count; k++)
            if ((r->ranges[k].write || writes(spec[i].access)) &&
                overlap(&r->ranges[k], &c->buf[i]))
                return true;
    return false;
}

static void touch(struct recorder *r, const struct pm_bound_call *c,
                  const struct pm_buf_spec *spec, int bufs)
{
    for (int i = 0; i < bufs; i++) {
        const struct pm_place *p = &c->buf[i];

        if (!p->buffer || p->size == 0)
            continue;
        PM_GROW(r->ranges, r->count, r->capacity);
        r->ranges[r->count++] = (struct range){ p->buffer, p->offset, p->offset + p->size,
                                                writes(spec[i].access) };
    }
}

static void barrier(struct recorder *r)
{
    pm_vk_barrier(r->d, r->open, COMPUTE, COMPUTE);
    r->count = 0;
    r->p->barriers++;
}

/* ---- segments ----------------------------------------------------------------------- */

static int open_segment(struct recorder *r, size_t call)
{
    int err = PM_OK;

    if (r->open)
        return PM_OK;
    PM_TRY(pm_vk_command_buffers(r->d, r->p->pool, 1, &r->open));
    PM_TRY(pm_vk_begin(r->d, r->open, r->desc->slots > 1
                                          ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT : 0));
    pm_vk_barrier(r->d, r->open, ALL, COMPUTE | TRANSFER);
    r->first = call;
    r->seconds = 0;
    r->count = 0;
out:
    return err;
}

static int close_segment(struct recorder *r, size_t last)
{
    struct vk_program *p = r->p;
    int err = PM_OK;

    if (!r->open)
        return PM_OK;
    PM_TRY(vk(r->d->vk.EndCommandBuffer(r->open)));
    PM_GROW(p->segments, p->segment_count, p->segment_capacity);
    p->segments[p->segment_count++] = (struct vk_segment){ r->open, r->first, last };
    r->open = NULL;
out:
    return err;
}

/* ---- dispatches --------------------------------------------------------------------- */

/* Estimates a call's seconds from the guessed speed of its device. */
static double estimate(const struct vk_device *d, const struct pm_bound_call *c)
{
    double flops = c->kernel->flops ? c->kernel->flops(c->params, c->count) : (double)c->count;
    double bytes = 0;

    for (int i = 0; i < PM_MAX_BUFS; i++)
        bytes += (double)c->buf[i].size;
    return flops / d->flops + bytes / d->bytes;
}

/* Builds the push block: addresses in row order, then the params or their address. */
static uint32_t push_block(struct recorder *r, const struct pm_bound_call *c, int bufs,
                           char push[VK_PUSH_BYTES])
{
    bool by_address;
    uint32_t bytes = pm_vk_push_bytes(c->kernel, bufs, &by_address);

    memset(push, 0, VK_PUSH_BYTES);
    for (int i = 0; i < bufs; i++) {
        const struct pm_place *p = &c->buf[i];
        uint64_t address = 0;

        if (p->buffer)
            address = ((struct vk_buffer *)p->buffer)->block.address + p->offset;
        memcpy(push + 8 * i, &address, sizeof address);
    }
    if (by_address) {
        uint64_t address = r->p->constants.address + r->constants;

        memcpy((char *)r->p->constants.map + r->constants, c->params, c->kernel->params_size);
        memcpy(push + 8 * bufs, &address, sizeof address);
        r->constants += pm_vk_align(c->kernel->params_size);
    } else if (c->kernel->params_size) {
        memcpy(push + 8 * bufs, c->params, c->kernel->params_size);
    }
    return bytes;
}

/* Returns the longest axis, along which a dispatch is split. */
static int longest(const uint32_t groups[3])
{
    int axis = 2;

    for (int k = 1; k >= 0; k--)
        if (groups[k] > groups[axis])
            axis = k;
    return axis;
}

static int dispatch(struct recorder *r, size_t call, const struct vk_pipeline *pipe,
                    const uint32_t groups[3], double seconds, const char *push,
                    uint32_t push_bytes, bool *wait)
{
    int err = PM_OK, axis = longest(groups);
    const struct vk *v = &r->d->vk;
    double bound = r->d->segment_seconds, wanted = ceil(seconds / bound);
    uint32_t parts = 1;

    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return PM_OK;
    if (!pipe->module.uses_group_count && wanted > 1)
        parts = wanted < groups[axis] ? (uint32_t)wanted : groups[axis];
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t base[3] = { 0 }, size[3] = { groups[0], groups[1], groups[2] };

        base[axis] = (uint32_t)((uint64_t)groups[axis] * i / parts);
        size[axis] = (uint32_t)((uint64_t)groups[axis] * (i + 1) / parts) - base[axis];
        if (r->open && r->seconds > 0 && r->seconds + seconds / parts > bound) {
            PM_TRY(close_segment(r, i > 0 || call == r->first ? call : call - 1));
            *wait = false;
        }
        PM_TRY(open_segment(r, call));
        if (*wait)
            barrier(r);
        *wait = false;
        if (r->begins)
            pm_vk_stamp(r->p, r->open, call + 1, 0);
        r->begins = false;
        v->CmdBindPipeline(r->open, VK_PIPELINE_BIND_POINT_COMPUTE, pipe->handle);
        v->CmdPushConstants(r->open, r->d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes,
                            push);
        if (pipe->module.uses_group_count)
            v->CmdDispatch(r->open, size[0], size[1], size[2]);
        else
            v->CmdDispatchBase(r->open, base[0], base[1], base[2], size[0], size[1], size[2]);
        r->seconds += seconds / parts;
    }
out:
    return err;
}

static int record_call(struct recorder *r, size_t index)
{
    int err = PM_OK;
    const struct pm_bound_call *c = &r->desc->calls[index];
    const struct vk_picked *picked = &r->picked[index];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(c->kernel, spec);
    char push[VK_PUSH_BYTES];
    uint32_t push_bytes = push_block(r, c, bufs, push);
    double seconds = estimate(r->d, c) / (picked->picks.count ? picked->picks.count : 1);

    r->begins = r->desc->timed;
    for (int i = 0; i < picked->picks.count; i++) {
        bool wait = r->open && (i > 0 || r->desc->timed || hazard(r, c, spec, bufs));

        PM_TRY(dispatch(r, index, picked->pipeline[i], picked->picks.d[i].groups, seconds, push,
                        push_bytes, &wait));
    }
    if (r->begins) { /* a call without dispatches still gets timestamps, with length 0 */
        PM_TRY(open_segment(r, index));
        pm_vk_stamp(r->p, r->open, index + 1, 0);
    }
    if (r->desc->timed)
        pm_vk_stamp(r->p, r->open, index + 1, 1);
    touch(r, c, spec, bufs);
out:
    return err;
}

/* ---- outputs -------------------------------------------------------------- */

/* Whether an output is copied on the transfer queue, which reads while later calls run. No later
 * call may overwrite the output, and it must be large enough for a submission of its own. A timed
 * program does one thing at a time, so never. */
static bool on_transfer_queue(const struct recorder *r, size_t out)
{
    const struct pm_place *p = &r->desc->out[out];

    if (!r->d->transfer.handle || p->size < SMALL_OUT || r->desc->timed)
        return false;
    for (size_t i = r->desc->out_after[out]; i < r->desc->calls_count; i++) {
        const struct pm_bound_call *c = &r->desc->calls[i];
        struct pm_buf_spec spec[PM_MAX_BUFS];
        int bufs = pm_kernel_bufs(c->kernel, spec);

        for (int k = 0; k < bufs; k++) {
            const struct range touched = { c->buf[k].buffer, c->buf[k].offset,
                                           c->buf[k].offset + c->buf[k].size, true };

            if (c->buf[k].buffer && writes(spec[k].access) && overlap(&touched, p))
                return false;
        }
    }
    return true;
}

/* Ends the segment if an output waits for exactly `done` calls. */
static int serve_outs(struct recorder *r, size_t done)
{
    int err = PM_OK;
    bool wanted = false;

    for (size_t i = 0; i < r->desc->out_count; i++)
        wanted |= r->desc->out_after[i] == done;
    if (!wanted)
        return PM_OK;
    if (done == 0) /* before any call: the output follows a segment without calls */
        PM_TRY(open_segment(r, 0));
    PM_TRY(close_segment(r, done ? done - 1 : 0));
    for (size_t i = 0; i < r->desc->out_count; i++)
        if (r->desc->out_after[i] == done) {
            r->p->outs[i].segment = r->p->segment_count - 1;
            r->p->outs[i].transfer = on_transfer_queue(r, i);
        }
out:
    return err;
}

/* ---- the program -------------------------------------------------------------------- */

/* Makes one block for the params of all calls whose params do not fit the push block. */
static int create_constants(struct recorder *r)
{
    size_t bytes = 0;

    for (size_t i = 0; i < r->desc->calls_count; i++) {
        const struct pm_kernel *k = r->desc->calls[i].kernel;
        struct pm_buf_spec spec[PM_MAX_BUFS];
        bool by_address;

        pm_vk_push_bytes(k, pm_kernel_bufs(k, spec), &by_address);
        if (by_address)
            bytes += pm_vk_align(k->params_size);
    }
    return bytes ? pm_vk_block_create(r->d, bytes, VK_USE_UPLOAD, &r->p->constants) : PM_OK;
}

static int record_all(struct recorder *r)
{
    int err = PM_OK;
    size_t count = r->desc->calls_count;

    PM_TRY(serve_outs(r, 0));
    for (size_t i = 0; i < count; i++) {
        PM_TRY(record_call(r, i));
        PM_TRY(serve_outs(r, i + 1));
    }
    if (r->p->segment_count == 0) /* the program only copies in */
        PM_TRY(open_segment(r, 0));
    PM_TRY(close_segment(r, count ? count - 1 : 0));
out:
    return err;
}

static void keep_names(struct vk_program *p, const struct pm_program_desc *desc,
                       const struct vk_picked *picked)
{
    size_t n = desc->calls_count;

    p->name = pm_arena_strdup(p->arena, desc->name ? desc->name : "program");
    p->variants = pm_arena_alloc(p->arena, (n + 1) * sizeof *p->variants);
    p->labels = pm_arena_alloc(p->arena, (n + 1) * sizeof *p->labels);
    for (size_t i = 0; i < n; i++) {
        const struct pm_bound_call *c = &desc->calls[i];

        p->variants[i] = picked[i].picks.variant;
        p->labels[i] = pm_arena_printf(p->arena, "%s (%s)", label_of(c), c->kernel->name);
    }
}

int pm_vk_program_create(struct pm_device *base, const struct pm_program_desc *desc,
                         struct pm_program **out)
{
    int err = PM_OK;
    struct vk_device *d = (struct vk_device *)base;
    struct vk_program *p = pm_calloc(1, sizeof *p);
    struct vk_picked *picked = pm_calloc(desc->calls_count + 1, sizeof *picked);
    struct recorder r = { .d = d, .p = p, .desc = desc, .picked = picked };
    size_t in_bytes, out_bytes;

    p->device = d;
    p->arena = pm_arena_create();
    PM_TRY(pm_vk_pick_all(d, desc, picked));
    keep_names(p, desc, picked);
    PM_TRY(pm_vk_transfers_lay_out(p, desc, &in_bytes, &out_bytes));
    PM_TRY(pm_vk_pool_create(d, d->compute.family, 0, &p->pool));
    if (d->transfer.handle)
        PM_TRY(pm_vk_pool_create(d, d->transfer.family, 0, &p->transfer_pool));
    PM_TRY(create_constants(&r));
    PM_TRY(record_all(&r));
    p->slots = pm_arena_alloc(p->arena, (size_t)desc->slots * sizeof *p->slots);
    for (; p->slot_count < desc->slots; p->slot_count++)
        PM_TRY(pm_vk_slot_create(p, desc, in_bytes, out_bytes, &p->slots[p->slot_count]));
    PM_DEBUG("vulkan", "%s: %s: %zu calls in %zu segments, %zu barriers", d->base.info.address,
             p->name, desc->calls_count, p->segment_count, p->barriers);
    *out = &p->base, p = NULL;
out:
    if (p) {
        p->slot_count = p->slots ? desc->slots : 0; /* the last slot may be half made */
        pm_vk_program_destroy(&p->base);
    }
    pm_free(r.ranges);
    pm_free(picked);
    return err;
}

/* Destroys a program, also one whose creation failed half-way. */
void pm_vk_program_destroy(struct pm_program *base)
{
    struct vk_program *p = (struct vk_program *)base;
    struct vk_device *d = p->device;
    bool idle = pm_vk_idle(d);

    for (int i = 0; i < p->slot_count; i++) {
        pm_vk_block_destroy(d, &p->slots[i].in);
        pm_vk_block_destroy(d, &p->slots[i].out);
        if (idle)
            pm_vk_clock_destroy(d, &p->slots[i].clock);
    }
    pm_vk_block_destroy(d, &p->constants);
    if (idle) {
        d->vk.DestroyQueryPool(d->handle, p->stamps, NULL);
        d->vk.DestroyCommandPool(d->handle, p->pool, NULL);
        d->vk.DestroyCommandPool(d->handle, p->transfer_pool, NULL);
    }
    pm_free(p->segments);
    pm_arena_destroy(&p->arena);
    pm_free(p);
}
