/* owner: owner.h has the contract. */
#include "clones/owner.h"

#include "clones/host_copy.h"
#include "clones/moving.h"

#include <math.h>

struct pm_owner {
    struct pm_host_copy host;     /* owned, as is all below */
    struct pm_update update;
    struct pm_plan *plan;         /* NULL: there is nothing to update */
    struct pm_part part;
    struct pm_moving moving;      /* for the decays */
    float *values;                /* room for the part's variables */
};

/* ---- parts ------------------------------------------------------------------------------- */

static size_t floats_of(const struct pm_variables *v, int i)
{
    return pm_shape_count(v->list[i].shape);
}

void pm_part_create(const struct pm_variables *v, int index, int owners, struct pm_part *out)
{
    *out = (struct pm_part){ .variable = pm_calloc((size_t)v->count + 1, sizeof *out->variable) };
    for (int pass = 0; pass < 2; pass++)
        for (int i = index; i < v->count; i += owners) {
            if (v->list[i].trainable != (pass == 0))
                continue;
            out->variable[out->count++] = i;
            out->floats += floats_of(v, i);
            out->trainable += pass == 0;
            out->trainable_floats += pass == 0 ? floats_of(v, i) : 0;
        }
}

void pm_part_free(struct pm_part *p)
{
    pm_free(p->variable);
    *p = (struct pm_part){ 0 };
}

int pm_part_read(const struct pm_part *p, const struct pm_variables *v, struct pm_buffer *block,
                 int count, float *out)
{
    int err = PM_OK;

    for (int k = 0; k < count; k++) {
        const int i = p->variable[k];

        PM_TRY(pm_buffer_read(v->device, block, v->offset[i], out,
                              floats_of(v, i) * sizeof *out));
        out += floats_of(v, i);
    }
out:
    return err;
}

int pm_part_write(const struct pm_part *p, const struct pm_variables *v, struct pm_buffer *block,
                  int count, const float *from)
{
    int err = PM_OK;

    for (int k = 0; k < count; k++) {
        const int i = p->variable[k];

        PM_TRY(pm_buffer_write(v->device, block, v->offset[i], from,
                               floats_of(v, i) * sizeof *from));
        from += floats_of(v, i);
    }
out:
    return err;
}

size_t pm_part_state_floats(const struct pm_part *p, const struct pm_variables *v)
{
    return p->floats * (v->average_bytes > 0 ? 2 : 1) +
           p->trainable_floats * (size_t)v->slot_count;
}

int pm_part_read_state(const struct pm_part *p, const struct pm_variables *v, float *out)
{
    int err = PM_OK;

    PM_TRY(pm_part_read(p, v, v->values, p->count, out));
    out += p->floats;
    for (int k = 0; k < v->slot_count; k++, out += p->trainable_floats)
        PM_TRY(pm_part_read(p, v, v->slots[k], p->trainable, out));
    if (v->average_bytes > 0)
        PM_TRY(pm_part_read(p, v, v->averages, p->count, out));
out:
    return err;
}

int pm_part_write_state(const struct pm_part *p, const struct pm_variables *v, const float *from)
{
    int err = PM_OK;

    PM_TRY(pm_part_write(p, v, v->values, p->count, from));
    from += p->floats;
    for (int k = 0; k < v->slot_count; k++, from += p->trainable_floats)
        PM_TRY(pm_part_write(p, v, v->slots[k], p->trainable, from));
    if (v->average_bytes > 0)
        PM_TRY(pm_part_write(p, v, v->averages, p->count, from));
out:
    return err;
}

/* ---- making ------------------------------------------------------------------------------ */

/* Whether the update has at least one call. */
static bool has_update(const struct pm_owner *o)
{
    bool has = o->update.averages && o->part.count > 0;

    for (int k = 0; k < o->part.count; k++)
        has |= pm_update_changes(&o->update, o->host.variables, o->part.variable[k]);
    return has;
}

static int open_owner(struct pm_owner *o, const struct pm_clones_options *options)
{
    int err = PM_OK;

    PM_TRY(pm_host_copy_open(options, "owner: optimizer", &o->host));
    PM_TRY(pm_moving_check(o->host.net, true, options->micro_batches));
    pm_part_create(o->host.variables, o->update.first, o->update.every, &o->part);
    o->values = pm_calloc(o->part.floats + 1, sizeof *o->values);
    pm_moving_create(o->host.net, o->host.variables, 0, &o->moving);
    if (has_update(o))
        PM_TRY(pm_host_copy_plan(&o->host, options, pm_update_apply_append, &o->update, &o->plan));
out:
    return err;
}

int pm_owner_create(const struct pm_clones_options *options, int index, int owners,
                    struct pm_owner **out)
{
    struct pm_owner *o = pm_calloc(1, sizeof *o);
    int err = PM_OK;

    o->update = options->update;
    o->update.first = index;
    o->update.every = owners;
    PM_TRY(open_owner(o, options));
    *out = o, o = NULL;
out:
    pm_owner_destroy(&o);
    return err;
}

void pm_owner_destroy(struct pm_owner **owner)
{
    struct pm_owner *o = *owner;

    if (!o)
        return;
    pm_moving_free(&o->moving);
    pm_plan_destroy(&o->plan);
    pm_host_copy_close(&o->host);
    pm_part_free(&o->part);
    pm_free(o->values);
    pm_free(o);
    *owner = NULL;
}

struct pm_variables *pm_owner_variables(const struct pm_owner *o)
{
    return o->host.variables;
}

const struct pm_part *pm_owner_part(const struct pm_owner *o)
{
    return &o->part;
}

/* ---- applying ---------------------------------------------------------------------------- */

static bool all_finite(const float *v, size_t count)
{
    bool finite = true;

    for (size_t i = 0; i < count; i++)
        finite &= isfinite(v[i]) != 0;
    return finite;
}

/* Adds a worker's part of the moving averages. */
static int move_averages(struct pm_owner *o, int moving, const float *add)
{
    struct pm_variables *v = o->host.variables;
    const struct pm_part others = { .count = o->part.count - o->part.trainable,
                                    .variable = o->part.variable + o->part.trainable };
    const size_t floats = o->part.floats - o->part.trainable_floats;
    float *to = o->values;
    int err = PM_OK;

    if (moving == 0 || floats == 0 || !all_finite(add, floats))
        return PM_OK;
    PM_TRY(pm_part_read(&others, v, v->values, others.count, to));
    for (int k = 0; k < others.count; k++) {
        const int i = others.variable[k];
        /* the same for all elements of a variable */
        const float decay =
            powf(o->moving.decay[(v->offset[i] - o->moving.offset) / sizeof(float)], (float)moving);

        for (size_t n = floats_of(v, i); n > 0; n--, to++)
            *to = decay * *to + *add++;
    }
    PM_TRY(pm_part_write(&others, v, v->values, others.count, o->values));
out:
    return err;
}

/* Runs the update with these gradients. */
static int update(struct pm_owner *o, const struct pm_step *step, const float *gradients)
{
    struct pm_variables *v = o->host.variables;
    struct pm_step *to;
    int err = PM_OK;

    if (!o->plan)
        return PM_OK;
    PM_TRY(pm_part_write(&o->part, v, v->grads, o->part.trainable, gradients));
    to = pm_plan_step(o->plan, 0);
    if (to)
        *to = *step;
    PM_TRY(pm_plan_submit(o->plan, 0));
    PM_TRY(pm_plan_wait(o->plan, 0));
out:
    return err;
}

int pm_owner_apply(struct pm_owner *o, const struct pm_step *step, int moving, const float *part)
{
    int err = PM_OK;

    PM_TRY(move_averages(o, moving, part + o->part.trainable_floats));
    PM_TRY(update(o, step, part));
out:
    return err;
}

int pm_owner_apply_mean(struct pm_owner *o, const struct pm_step *step, const int *moving,
                        const float *const *parts, int count)
{
    const size_t floats = o->part.trainable_floats;
    int err = PM_OK;

    for (int k = 0; k < count; k++)
        PM_TRY(move_averages(o, moving[k], parts[k] + floats));
    for (size_t i = 0; i < floats; i++) {
        float sum = parts[0][i];

        for (int k = 1; k < count; k++)
            sum += parts[k][i];
        o->values[i] = sum / (float)count;
    }
    PM_TRY(update(o, step, o->values));
out:
    return err;
}
