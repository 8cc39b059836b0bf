/* run_vk: submits a recorded program and waits for it. Nothing is allocated here. */
#include "device/vulkan/device_vk.h"

#include <string.h>

void *pm_vk_program_in(struct pm_program *base, int slot, size_t i)
{
    struct vk_program *p = (struct vk_program *)base;

    return (char *)p->slots[slot].in.map + p->in_offset[i];
}

const void *pm_vk_program_out(struct pm_program *base, int slot, size_t i)
{
    struct vk_program *p = (struct vk_program *)base;

    return (const char *)p->slots[slot].out.map + p->outs[i].offset;
}

const char *pm_vk_program_variant(const struct pm_program *base, size_t i)
{
    return ((const struct vk_program *)base)->names.variants[i];
}

static int blame(struct vk_program *p, const struct vk_slot *s, int err)
{
    struct vk_device *d = p->device;
    uint64_t reached = 0;

    if (err == PM_ELOST)
        d->vk.GetSemaphoreCounterValue(d->handle, d->compute.timeline, &reached);
    return pm_blame(err, &p->names, p->submissions, p->segment_count, s->value, reached);
}

/* Submits a segment. Output copies on the compute queue are submitted with the segment they wait
 * for. */
static int submit_segment(struct vk_program *p, struct vk_slot *s, size_t i)
{
    int err = PM_OK;
    struct vk_device *d = p->device;
    VkCommandBuffer list[5];
    uint32_t n = 0;

    if (i == 0 && s->clock.begin)
        list[n++] = s->clock.begin;
    if (i == 0 && s->prologue)
        list[n++] = s->prologue;
    list[n++] = p->segments[i];
    if (s->copy[i])
        list[n++] = s->copy[i];
    if (i + 1 == p->segment_count && s->clock.end)
        list[n++] = s->clock.end;
    PM_TRY(pm_vk_submit(d, &d->compute, list, n, i == 0, 0, &s->value[i]));
    s->done = s->value[i];
    if (s->copy_transfer[i]) {
        PM_TRY(pm_vk_submit(d, &d->transfer, &s->copy_transfer[i], 1, false, s->value[i],
                            &s->transfer_value[i]));
        s->transfer_done = s->transfer_value[i];
    }
out:
    return err;
}

int pm_vk_program_submit(struct pm_program *base, int slot)
{
    int err = PM_OK;
    struct vk_program *p = (struct vk_program *)base;
    struct vk_slot *s = &p->slots[slot];

    if (s->busy && (err = pm_vk_program_wait(base, slot)) < 0)
        return err;
    memset(s->value, 0, p->segment_count * sizeof *s->value);
    s->busy = true;
    s->clock.submitted = pm_seconds();
    for (size_t i = 0; i < p->segment_count; i++)
        PM_TRY(submit_segment(p, s, i));
out:
    return blame(p, s, err);
}

int pm_vk_program_wait_out(struct pm_program *base, int slot, size_t i)
{
    struct vk_program *p = (struct vk_program *)base;
    struct vk_slot *s = &p->slots[slot];
    const struct vk_out *o = &p->outs[i];
    struct vk_device *d = p->device;

    return blame(p, s, o->transfer
                           ? pm_vk_wait(d, &d->transfer, s->transfer_value[o->segment])
                           : pm_vk_wait(d, &d->compute, s->value[o->segment]));
}

int pm_vk_program_wait(struct pm_program *base, int slot)
{
    int err = PM_OK;
    struct vk_program *p = (struct vk_program *)base;
    struct vk_slot *s = &p->slots[slot];

    PM_TRY(pm_vk_wait(p->device, &p->device->compute, s->done));
    PM_TRY(pm_vk_wait(p->device, &p->device->transfer, s->transfer_done));
    if (s->busy)
        pm_vk_clock_read(p, &s->clock);
    s->busy = false;
out:
    return blame(p, s, err);
}
