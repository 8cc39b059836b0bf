/* detection_mosaic: makes the sample of an example whose input.augment begins with mosaic. Three
 * further records come from the example's own entry of data.folders. */
#include "tasks/detection/detection.h"

/* A further record and its sample. */
struct part {
    const struct pm_sampler *sampler;
    struct pm_detection_record record; /* owned */
    struct pm_arena *arena;   /* of the sample's lists; borrowed */
    struct pm_sample *sample; /* receives the record's picture and objects */
};

static int read_part(void *ctx, const struct pm_loader_record *other)
{
    struct part *p = ctx;
    int err = PM_OK;

    pm_detection_close_record(&p->record); /* a corrupt one before it may be open */
    PM_TRY(pm_detection_open_record(p->sampler, other,
                                    pm_detection_channels(p->sampler, other->part), &p->record));
    PM_TRY(pm_detection_sample(p->sampler, &p->record, other->where, p->arena, p->sample));
out:
    return err;
}

int pm_detection_join(const struct pm_sampler *sampler, const struct pm_loader_record *r,
                      struct pm_arena *a, struct pm_sample *sample)
{
    const struct pm_augment *augment = pm_task_augment(&sampler->task->facts, r->part);
    struct pm_sample in[1 + PM_MOSAIC_OTHERS] = { *sample };
    struct part part[PM_MOSAIC_OTHERS] = { 0 };
    struct pm_mosaic_draws d;
    int err = PM_OK;

    if (!sampler->train || !r->source ||
        !pm_mosaic_draw(augment, r->seed, r->step, r->example, r->records, &d))
        return PM_OK;
    for (int k = 0; k < PM_MOSAIC_OTHERS; k++) {
        part[k] = (struct part){ .sampler = sampler, .arena = a, .sample = &in[1 + k] };
        PM_TRY(pm_loader_other(r, d.record[k], read_part, &part[k]));
    }
    pm_mosaic_make(augment, &d, in, r->frame, a, sample);
out:
    for (int k = 0; k < PM_MOSAIC_OTHERS; k++)
        pm_detection_close_record(&part[k].record);
    return err;
}
