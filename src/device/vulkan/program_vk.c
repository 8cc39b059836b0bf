/* program_vk: records an array of calls once, as arrangement.c arranges them. In a timed program,
 * timestamps are around each call. */
#include "device/vulkan/device_vk.h"

#include <string.h>

enum { COMPUTE = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, TRANSFER = VK_PIPELINE_STAGE_TRANSFER_BIT,
       ALL = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT };

struct recorder {
    struct vk_device *d;
    struct vk_program *p;
    const struct pm_program_desc *desc;
    const struct pm_picked *picked;
    struct pm_arrangement arrangement;
    char (*push)[PM_PUSH_BYTES]; /* per call */
    uint32_t *push_bytes;
    size_t constants;      /* bytes used of p->constants */
};

/* ---- recording ---------------------------------------------------------------------- */

/* Builds the push block: addresses in row order, then the params or their address. */
static void push_block(struct recorder *r, size_t call)
{
    const struct pm_bound_call *c = &r->desc->calls[call];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_kernel_bufs(c->kernel, spec);
    char *push = r->push[call];
    bool by_address;

    r->push_bytes[call] = pm_push_bytes(c->kernel, bufs, &by_address);
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
        r->constants += pm_align_place(c->kernel->params_size);
    } else if (c->kernel->params_size) {
        memcpy(push + 8 * bufs, c->params, c->kernel->params_size);
    }
}

static void record_dispatch(struct recorder *r, VkCommandBuffer c, const struct pm_arranged *x)
{
    const struct vk *v = &r->d->vk;
    const struct pm_pipeline *pipe = r->picked[x->call].pipeline[x->dispatch];

    v->CmdBindPipeline(c, VK_PIPELINE_BIND_POINT_COMPUTE,
                       ((const struct vk_pipeline *)pipe)->handle);
    v->CmdPushConstants(c, r->d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, r->push_bytes[x->call],
                        r->push[x->call]);
    if (pipe->module.uses_group_count)
        v->CmdDispatch(c, x->groups[0], x->groups[1], x->groups[2]);
    else
        v->CmdDispatchBase(c, x->base[0], x->base[1], x->base[2], x->groups[0], x->groups[1],
                           x->groups[2]);
}

static int record_segment(struct recorder *r, size_t index)
{
    int err = PM_OK;
    const struct pm_submission *g = &r->arrangement.segments[index];
    VkCommandBuffer *c = &r->p->segments[index];

    PM_TRY(pm_vk_command_buffers(r->d, r->p->pool, 1, c));
    PM_TRY(pm_vk_begin(r->d, *c, r->desc->slots > 1 ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
                                                    : 0));
    pm_vk_barrier(r->d, *c, ALL, COMPUTE | TRANSFER);
    for (size_t i = g->begin; i < g->end; i++) {
        const struct pm_arranged *x = &r->arrangement.list[i];

        if (x->barrier)
            pm_vk_barrier(r->d, *c, COMPUTE, COMPUTE);
        if (x->begins && r->desc->timed)
            pm_vk_stamp(r->p, *c, x->call + 1, 0);
        if (x->dispatch >= 0)
            record_dispatch(r, *c, x);
        if (x->ends && r->desc->timed)
            pm_vk_stamp(r->p, *c, x->call + 1, 1);
    }
    PM_TRY(vk(r->d->vk.EndCommandBuffer(*c)));
out:
    return err;
}

/* ---- the program -------------------------------------------------------------------- */

/* Makes one block for the params of all calls whose params do not fit the push block. */
static int create_constants(struct recorder *r)
{
    size_t bytes = 0;

    for (size_t i = 0; i < r->desc->calls_count; i++)
        bytes += pm_wide_params(r->desc->calls[i].kernel);
    return bytes ? pm_vk_block_create(r->d, bytes, VK_USE_UPLOAD, &r->p->constants) : PM_OK;
}

static int record_all(struct recorder *r)
{
    int err = PM_OK;
    const size_t n = r->desc->calls_count;

    pm_arrange_picked(&r->d->shared, r->desc, r->picked, &r->arrangement, &r->p->base.counts);
    r->push = pm_calloc(n + 1, sizeof *r->push);
    r->push_bytes = pm_calloc(n + 1, sizeof *r->push_bytes);
    for (size_t i = 0; i < n; i++)
        push_block(r, i);
    r->p->segments = pm_calloc(r->arrangement.segment_count, sizeof *r->p->segments);
    r->p->submissions = pm_arena_copy(r->p->arena, r->arrangement.segments,
                                      r->arrangement.segment_count * sizeof *r->p->submissions);
    for (; r->p->segment_count < r->arrangement.segment_count; r->p->segment_count++)
        PM_TRY(record_segment(r, r->p->segment_count));
    for (size_t i = 0; i < r->desc->out_count; i++) {
        r->p->outs[i].segment = r->arrangement.out_segment[i];
        r->p->outs[i].transfer = r->d->transfer.handle && pm_copied_beside(r->desc, i);
    }
out:
    pm_free(r->push);
    pm_free(r->push_bytes);
    pm_arrangement_free(&r->arrangement);
    return err;
}

int pm_vk_program_create(struct pm_device *base, const struct pm_program_desc *desc,
                         struct pm_program **out)
{
    int err = PM_OK;
    struct vk_device *d = (struct vk_device *)base;
    struct vk_program *p = pm_calloc(1, sizeof *p);
    struct pm_picked *picked = pm_calloc(desc->calls_count + 1, sizeof *picked);
    struct recorder r = { .d = d, .p = p, .desc = desc, .picked = picked };
    size_t in_bytes, out_bytes;

    p->device = d;
    p->arena = pm_arena_create();
    PM_TRY(pm_pick_all(&d->shared, desc, picked));
    pm_name_calls(p->arena, desc, picked, &p->names);
    PM_TRY(pm_vk_transfers_lay_out(p, desc, &in_bytes, &out_bytes));
    PM_TRY(pm_vk_pool_create(d, d->compute.family, 0, &p->pool));
    if (d->transfer.handle)
        PM_TRY(pm_vk_pool_create(d, d->transfer.family, 0, &p->transfer_pool));
    PM_TRY(create_constants(&r));
    PM_TRY(record_all(&r));
    p->slots = pm_arena_alloc(p->arena, (size_t)desc->slots * sizeof *p->slots);
    for (; p->slot_count < desc->slots; p->slot_count++)
        PM_TRY(pm_vk_slot_create(p, desc, in_bytes, out_bytes, &p->slots[p->slot_count]));
    PM_DEBUG("vulkan", "%s: %s: %zu calls in %zu segments, %zu barriers",
             d->shared.base.info.address, p->names.program, desc->calls_count, p->segment_count,
             p->base.counts.barriers);
    *out = &p->base, p = NULL;
out:
    if (p) {
        p->slot_count = p->slots ? desc->slots : 0; /* the last slot may be half made */
        pm_vk_program_destroy(&p->base);
    }
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
