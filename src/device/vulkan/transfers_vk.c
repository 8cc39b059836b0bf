/* transfers_vk: the copies in and out around a program's calls: the places of inputs and outputs in
 * a slot's host memory, and each slot's command buffers that copy them. */
#include "device/vulkan/device_vk.h"

enum { TRANSFER = VK_PIPELINE_STAGE_TRANSFER_BIT, ALL = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
       HOST = VK_PIPELINE_STAGE_HOST_BIT };

static int record_prologue(struct vk_program *p, const struct pm_program_desc *desc,
                           struct vk_slot *s)
{
    int err = PM_OK;

    PM_TRY(pm_vk_command_buffers(p->device, p->pool, 1, &s->prologue));
    PM_TRY(pm_vk_begin(p->device, s->prologue, 0));
    pm_vk_barrier(p->device, s->prologue, ALL, TRANSFER);
    pm_vk_stamp(p, s->prologue, p->prologue_stamps, 0);
    for (size_t i = 0; i < desc->in_count; i++) {
        const struct pm_place *place = &desc->in[i];
        VkBufferCopy region = { p->in_offset[i], place->offset, place->size };

        if (place->size)
            p->device->vk.CmdCopyBuffer(s->prologue, s->in.buffer, pm_vk_handle(place), 1, &region);
    }
    pm_vk_stamp(p, s->prologue, p->prologue_stamps, 1);
    PM_TRY(vk(p->device->vk.EndCommandBuffer(s->prologue)));
out:
    return err;
}

static int record_outs(struct vk_program *p, const struct pm_program_desc *desc,
                       struct vk_slot *s, size_t segment, bool transfer,
                       VkCommandBuffer *out)
{
    int err = PM_OK;
    VkCommandPool pool = transfer ? p->transfer_pool : p->pool;

    for (size_t i = 0; i < desc->out_count; i++) {
        const struct vk_out *o = &p->outs[i];
        const struct pm_place *place = &desc->out[i];
        VkBufferCopy region = { place->offset, o->offset, place->size };

        if (o->segment != segment || o->transfer != transfer || place->size == 0)
            continue;
        if (!*out) {
            PM_TRY(pm_vk_command_buffers(p->device, pool, 1, out));
            PM_TRY(pm_vk_begin(p->device, *out, 0));
            pm_vk_barrier(p->device, *out, ALL, TRANSFER);
        }
        pm_vk_stamp(p, *out, o->stamps, 0);
        p->device->vk.CmdCopyBuffer(*out, pm_vk_handle(place), s->out.buffer, 1, &region);
        pm_vk_stamp(p, *out, o->stamps, 1);
    }
    if (*out) {
        pm_vk_barrier(p->device, *out, TRANSFER, HOST);
        PM_TRY(vk(p->device->vk.EndCommandBuffer(*out)));
    }
out:
    return err;
}

int pm_vk_slot_create(struct vk_program *p, const struct pm_program_desc *desc, size_t in_bytes,
                      size_t out_bytes, struct vk_slot *s)
{
    int err = PM_OK;
    size_t n = p->segment_count;

    s->copy = pm_arena_alloc(p->arena, n * sizeof *s->copy);
    s->copy_transfer = pm_arena_alloc(p->arena, n * sizeof *s->copy_transfer);
    s->value = pm_arena_alloc(p->arena, n * sizeof *s->value);
    s->transfer_value = pm_arena_alloc(p->arena, n * sizeof *s->transfer_value);
    if (in_bytes) {
        PM_TRY(pm_vk_block_create(p->device, in_bytes, VK_USE_UPLOAD, &s->in));
        PM_TRY(record_prologue(p, desc, s));
    }
    if (out_bytes)
        PM_TRY(pm_vk_block_create(p->device, out_bytes, VK_USE_DOWNLOAD, &s->out));
    PM_TRY(pm_vk_clock_create(p, &s->clock));
    for (size_t i = 0; i < n; i++) {
        PM_TRY(record_outs(p, desc, s, i, false, &s->copy[i]));
        PM_TRY(record_outs(p, desc, s, i, true, &s->copy_transfer[i]));
    }
out:
    return err;
}

/* Sets the offsets of inputs and outputs in a slot's blocks. */
static void lay_out(struct vk_program *p, const struct pm_program_desc *desc, size_t *in_bytes,
                    size_t *out_bytes)
{
    p->in_offset = pm_arena_alloc(p->arena, (desc->in_count + 1) * sizeof *p->in_offset);
    p->outs = pm_arena_alloc(p->arena, (desc->out_count + 1) * sizeof *p->outs);
    *in_bytes = *out_bytes = 0;
    for (size_t i = 0; i < desc->in_count; i++) {
        p->in_offset[i] = *in_bytes;
        *in_bytes += pm_align_place(desc->in[i].size);
    }
    for (size_t i = 0; i < desc->out_count; i++) {
        p->outs[i].offset = *out_bytes;
        *out_bytes += pm_align_place(desc->out[i].size);
    }
}

/* Numbers the pairs of timestamps: calls, the copies in, outputs with a size above 0. */
static int lay_out_stamps(struct vk_program *p, const struct pm_program_desc *desc,
                          size_t in_bytes)
{
    size_t pairs = desc->calls_count;

    if (!desc->timed)
        return PM_OK;
    if (in_bytes)
        p->prologue_stamps = ++pairs;
    for (size_t i = 0; i < desc->out_count; i++)
        if (desc->out[i].size)
            p->outs[i].stamps = ++pairs;
    return pm_vk_stamps_create(p, pairs);
}

int pm_vk_transfers_lay_out(struct vk_program *p, const struct pm_program_desc *desc,
                            size_t *in_bytes, size_t *out_bytes)
{
    lay_out(p, desc, in_bytes, out_bytes);
    return lay_out_stamps(p, desc, *in_bytes);
}
