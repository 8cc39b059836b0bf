/* clones_step: a batch's parts to the clones, sums of their gradients, and values back. Nothing is
 * allocated: a step copies and submits. */
#include "clones/clones_parts.h"

#include <pumice/thread.h>
#include <pumice/trace.h>

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- a step ----------------------------------------------------------------------------- */

static size_t field_bytes(const struct pm_field *f)
{
    return pm_shape_count(f->shape) * pm_type_size(f->type);
}

static void fill_inputs(struct pm_clones *c, struct clone *k, int slot,
                        const struct pm_batch *batch)
{
    int part = k->count / c->o.micro_batches;

    for (int f = 0; f < c->o.fields_count; f++) {
        size_t bytes = field_bytes(&c->fields[f]);

        for (int m = 0; m < c->o.micro_batches; m++)
            memcpy(pm_plan_input(k->plan, slot, c->fields[f].name, m),
                   (const char *)batch->field[f] + (size_t)(k->first + m * part) * bytes,
                   (size_t)part * bytes);
    }
}

struct reduce {
    float *sum;
    const float *part;
    bool first;
};

static void reduce_range(void *ctx, size_t begin, size_t end)
{
    const struct reduce *r = ctx;

    if (r->first)
        memcpy(r->sum + begin, r->part + begin, (end - begin) * sizeof(float));
    else
        for (size_t i = begin; i < end; i++)
            r->sum[i] += r->part[i];
}

static void trace_bucket(struct pm_clones *c, size_t bucket, int clone, double begin, double end)
{
    char name[64];

    if (!pm_trace_on())
        return;
    snprintf(name, sizeof name, "sum bucket %zu of clone %d", bucket, clone);
    pm_trace_span(c->lane, name, NULL, begin, end);
}

static enum pm_phase_of_run enter(struct pm_clones *c, enum pm_phase_of_run phase)
{
    return pm_phases_enter(c->o.phases, phase);
}

/* Buckets come in the same order from every clone: their plans have the same backward calls in the
 * same order, whatever runs again between them. */
static int sum_gradients(struct pm_clones *c, int slot)
{
    int err = PM_OK;

    for (size_t b = 0; b < pm_plan_buckets(c->clone[0].plan); b++) {
        size_t offset, size;

        pm_plan_bucket(c->clone[0].plan, b, &offset, &size);
        for (int i = 0; i < c->o.count; i++) {
            struct reduce r = { .sum = c->sum + offset / sizeof(float), .first = i == 0 };

            enter(c, PM_RUN_DEVICE);
            PM_TRY(pm_plan_wait_bucket(c->clone[i].plan, slot, b, &r.part));
            enter(c, PM_RUN_AVERAGE);
            double begin = pm_seconds();
            pm_parallel(size / sizeof(float), 16384, reduce_range, &r);
            trace_bucket(c, b, i, begin, pm_seconds());
        }
    }
    PM_TRY(pm_buffer_write(c->host, c->host_variables->grads, 0, c->sum,
                           c->host_variables->trainable_bytes));
out:
    return err;
}

static void read_update(struct pm_plan *plan, int slot, struct pm_step_result *r)
{
    const float *result = pm_plan_output(plan, slot, "result", 0);

    r->norm = result[PM_RESULT_NORM];
    r->l2 = result[PM_RESULT_L2];
    r->norms = pm_plan_output(plan, slot, "norms", 0);
    r->finite = *(const uint32_t *)pm_plan_output(plan, slot, "flag", 0) != 0;
}

/* The clones' plans have the same loss layers in the same order. */
static void add_losses(const struct pm_plan *plan, int slot, struct pm_step_result *r)
{
    struct pm_loss_part parts[PM_MAX_LOSSES];
    const int count = pm_plan_losses(plan, slot, parts);

    r->loss += pm_plan_loss(plan, slot);
    for (int i = 0; i < count; i++) {
        const double before = i < r->part_count ? r->parts[i].value : 0;

        r->parts[i] = (struct pm_loss_part){ parts[i].name, before + parts[i].value };
    }
    r->part_count = count;
}

static int push_values(struct pm_clones *c)
{
    struct pm_variables *v = c->host_variables;
    int err = PM_OK;

    for (int i = 0; i < c->o.count; i++) {
        struct clone *k = &c->clone[i];

        PM_TRY(pm_program_wait(k->push, k->push_slot));
        PM_TRY(pm_buffer_read(c->host, v->values, 0, pm_program_in(k->push, k->push_slot, 0),
                              pm_clones_share_moving(c) ? v->bytes : v->trainable_bytes));
        PM_TRY(pm_program_submit(k->push, k->push_slot));
        k->push_slot ^= 1;
    }
out:
    return err;
}

/* The clones' own results of the step. */
static int finish_clones(struct pm_clones *c, int slot)
{
    struct pm_step_result *r = &c->result[slot];
    enum pm_phase_of_run before = enter(c, PM_RUN_DEVICE);
    int err = PM_OK;

    r->loss = 0;
    r->part_count = 0;
    for (int i = 0; i < c->o.count; i++) {
        PM_TRY(pm_plan_wait(c->clone[i].plan, slot));
        add_losses(c->clone[i].plan, slot, r);
        c->clone[i].seconds = pm_plan_seconds(c->clone[i].plan, slot);
    }
out:
    enter(c, before);
    return err;
}

/* Sums, updates, and sends the new values back; the clones' results are complete after it. */
static int update_on_host(struct pm_clones *c, int slot, const struct pm_step *step)
{
    enum pm_phase_of_run before = enter(c, PM_RUN_AVERAGE);
    struct pm_step *to;
    int err = PM_OK;

    PM_TRY(sum_gradients(c, slot));
    if (pm_clones_share_moving(c)) {
        PM_TRY(finish_clones(c, slot));
        PM_TRY(pm_moving_follow(&c->moving));
    }
    to = pm_plan_step(c->host_plan, 0);
    if (to)
        *to = *step;
    PM_TRY(pm_plan_submit(c->host_plan, 0));
    if (!pm_clones_share_moving(c))
        PM_TRY(finish_clones(c, slot));
    enter(c, PM_RUN_UPDATE);
    PM_TRY(pm_plan_wait(c->host_plan, 0));
    read_update(c->host_plan, 0, &c->result[slot]);
    PM_TRY(push_values(c));
out:
    enter(c, before);
    return err;
}

int pm_clones_step(struct pm_clones *c, int slot, const struct pm_batch *batch,
                   const struct pm_step *step)
{
    int err = PM_OK;

    assert(!c->pending[slot]);
    for (int i = 0; i < c->o.count; i++) {
        struct clone *k = &c->clone[i];
        struct pm_step *to = pm_plan_step(k->plan, slot);

        fill_inputs(c, k, slot, batch);
        if (to)
            *to = *step;
        PM_TRY(pm_plan_submit(k->plan, slot));
    }
    c->pending[slot] = true;
    if (!pm_clones_alone(c))
        PM_TRY(update_on_host(c, slot, step));
out:
    return err;
}

int pm_clones_collect(struct pm_clones *c, int slot, struct pm_step_result *out)
{
    struct pm_plan *plan = c->clone[0].plan;
    enum pm_phase_of_run before = enter(c, PM_RUN_DEVICE);
    int err = PM_OK;

    assert(c->pending[slot]);
    if (pm_clones_alone(c)) {
        PM_TRY(pm_plan_wait(plan, slot));
        c->result[slot].loss = 0;
        c->result[slot].part_count = 0;
        add_losses(plan, slot, &c->result[slot]);
        read_update(plan, slot, &c->result[slot]);
        c->clone[0].seconds = pm_plan_seconds(plan, slot);
    }
    c->result[slot].finite = c->result[slot].finite && isfinite(c->result[slot].loss);
    c->pending[slot] = false;
    *out = c->result[slot];
out:
    enter(c, before);
    return err;
}
