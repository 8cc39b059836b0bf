/* clones_step: copies a batch's parts to the clones and submits their plans. The exchange does the
 * rest of the step. A step allocates nothing. */
#include "clones/clones_parts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- a step ----------------------------------------------------------------------------- */

static void fill_inputs(struct pm_clones *c, struct clone *k, int slot,
                        const struct pm_batch *batch)
{
    const int frame = c->frame_at[slot];
    struct pm_plan *plan = pm_clones_slot_plan(c, (int)(k - c->clone), slot);
    int part = k->count / c->o.micro_batches;

    for (int f = 0; f < c->o.fields_count; f++) {
        size_t bytes = c->frames[frame].bytes[f];

        for (int m = 0; m < c->o.micro_batches; m++)
            memcpy(pm_plan_input(plan, slot, c->fields[f].name, m),
                   (const char *)batch->field[f] +
                       (size_t)(k->first - c->slice.first + m * part) * bytes,
                   (size_t)part * bytes);
    }
}

static enum pm_phase_of_run enter(struct pm_clones *c, enum pm_phase_of_run phase)
{
    return pm_phases_enter(c->o.phases, phase);
}

void pm_clones_read_update(struct pm_plan *plan, int slot, struct pm_step_result *r)
{
    const float *result = pm_plan_output(plan, slot, "result", 0);

    r->norm = result[PM_RESULT_NORM];
    r->l2 = result[PM_RESULT_L2];
    r->norms = pm_plan_output(plan, slot, "norms", 0);
    r->finite = *(const uint32_t *)pm_plan_output(plan, slot, "flag", 0) != 0;
}

/* Reads clone i's losses, which are shares of the batch's mean loss. The clones' plans have the
 * same loss layers in the same order. */
static void read_losses(const struct pm_clones *c, int i, int slot)
{
    const struct pm_plan *plan = pm_clones_slot_plan(c, i, slot);
    struct pm_loss_part *parts = c->parts + (size_t)c->o.slots * (size_t)c->losses;
    double *to = c->loss + (size_t)i * (size_t)(1 + c->losses);

    pm_plan_losses(plan, slot, parts);
    *to++ = pm_plan_loss(plan, slot);
    for (int k = 0; k < c->losses; k++)
        *to++ = parts[k].value;
}

int pm_clones_finish(struct pm_clones *c, int slot)
{
    enum pm_phase_of_run before = enter(c, PM_RUN_DEVICE);
    int err = PM_OK;

    for (int i = 0; i < c->o.count; i++) {
        struct pm_plan *plan = pm_clones_slot_plan(c, i, slot);

        PM_TRY(pm_plan_wait(plan, slot));
        read_losses(c, i, slot);
        c->clone[i].seconds = pm_plan_seconds(plan, slot);
    }
out:
    enter(c, before);
    return err;
}

/* For sum_losses the shares become the mean losses of the clones' parts. */
void pm_clones_add_loss(struct pm_clones *c, int slot, int at, const double *loss,
                        struct pm_step_result *r)
{
    const double scale = c->o.sum_losses ? (double)c->o.batch / c->among.examples[at] : 1;
    const struct pm_loss_part *names = c->parts + (size_t)c->o.slots * (size_t)c->losses;

    r->loss = (at == 0 ? 0 : r->loss) + scale * loss[0];
    r->parts = c->parts + (size_t)slot * (size_t)c->losses;
    r->part_count = c->losses;
    for (int k = 0; k < c->losses; k++) {
        const double before = at == 0 ? 0 : r->parts[k].value;

        r->parts[k] = (struct pm_loss_part){ names[k].name, before + scale * loss[1 + k] };
    }
}

int pm_clones_finish_all(struct pm_clones *c, int slot, struct pm_step_result *r)
{
    int err = PM_OK;

    PM_TRY(pm_clones_finish(c, slot));
    for (int i = 0; i < c->o.count; i++)
        pm_clones_add_loss(c, slot, i, c->loss + (size_t)i * (size_t)(1 + c->losses), r);
out:
    return err;
}

int pm_clones_step(struct pm_clones *c, int slot, const struct pm_batch *batch,
                   const struct pm_step *step)
{
    int err = PM_OK;

    assert(!c->pending[slot]);
    c->frame_at[slot] = pm_clones_find_frame(c, batch->frame);
    assert(c->frame_at[slot] >= 0);
    c->observed_at[slot] = c->observe;
    c->observed_slot = c->observe ? slot : c->observed_slot;
    c->observe = false;
    for (int i = 0; i < c->o.count; i++) {
        struct pm_plan *plan = pm_clones_slot_plan(c, i, slot);
        struct pm_step *to = pm_plan_step(plan, slot);

        fill_inputs(c, &c->clone[i], slot, batch);
        if (to)
            *to = *step;
        PM_TRY(pm_plan_submit(plan, slot));
    }
    c->pending[slot] = true;
    PM_TRY(c->row->update(c->exchange, slot, step, &c->result[slot]));
out:
    if (err == PM_ELOST && c->row->withdraw)
        err = c->row->withdraw(c->exchange, slot, err);
    return err;
}

int pm_clones_collect(struct pm_clones *c, int slot, struct pm_step_result *out)
{
    enum pm_phase_of_run before = enter(c, PM_RUN_DEVICE);
    int err = PM_OK;

    assert(c->pending[slot]);
    PM_TRY(c->row->collect(c->exchange, slot, &c->result[slot]));
    c->result[slot].finite = c->result[slot].finite && isfinite(c->result[slot].loss);
    c->pending[slot] = false;
    *out = c->result[slot];
out:
    enter(c, before);
    return err;
}
