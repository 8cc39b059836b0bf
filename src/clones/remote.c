/* remote: remote.h has the contract. A step allocates nothing after the first one. */
#include "clones/remote.h"

#include "optim/optimizer.h"

#include <math.h>

struct owner {
    struct pm_part part;
    struct pm_replica_call *call;
    uint64_t version;     /* of the values that were read last */
};

struct pm_remote {
    struct pm_servers_link *link; /* borrowed */
    struct pm_variables *v;       /* borrowed */
    struct owner *owner;          /* [owners], owned */
    int *trainable;               /* [variables]: index among the trainable ones; owned */
};

struct pm_remote *pm_remote_create(struct pm_servers_link *link, struct pm_variables *v)
{
    struct pm_remote *r = pm_calloc(1, sizeof *r);
    int count = 0;

    r->link = link;
    r->v = v;
    r->owner = pm_calloc((size_t)link->ranks.owners, sizeof *r->owner);
    for (int k = 0; k < link->ranks.owners; k++) {
        pm_part_create(v, k, link->ranks.owners, &r->owner[k].part);
        r->owner[k].call = pm_replica_call_create(link->inbox, link->ranks.first_owner + k,
                                                  PM_LINE_TRAINER);
    }
    r->trainable = pm_calloc((size_t)v->count + 1, sizeof *r->trainable);
    for (int i = 0; i < v->count; i++)
        r->trainable[i] = v->list[i].trainable ? count++ : -1;
    return r;
}

void pm_remote_destroy(struct pm_remote **remote)
{
    struct pm_remote *r = *remote;

    if (!r)
        return;
    for (int k = 0; k < r->link->ranks.owners; k++) {
        pm_replica_call_destroy(&r->owner[k].call);
        pm_part_free(&r->owner[k].part);
    }
    pm_free(r->owner);
    pm_free(r->trainable);
    pm_free(r);
    *remote = NULL;
}

/* ---- pushing ----------------------------------------------------------------------------- */

/* Clips the prepared gradients as the optimizer would. */
static void clip(const struct pm_remote *r, const struct pm_part *p, const struct pm_plan *plan,
                 float *g)
{
    const float *scale = pm_plan_output(plan, 0, "scale", 0);
    const float *result = pm_plan_output(plan, 0, "result", 0);

    for (int k = 0; k < p->trainable; k++) {
        const int i = p->variable[k];
        const float factor = scale[r->trainable[i]] * result[PM_RESULT_CLIP];

        for (size_t n = pm_shape_count(r->v->list[i].shape); n > 0; n--, g++)
            *g *= factor;
    }
}

/* Writes what this worker's clones add to the moving averages: after - d^clones before. */
static void write_moving(const struct pm_remote *r, const struct pm_part *p,
                         const struct pm_moving *m, float *out)
{
    for (int k = p->trainable; k < p->count; k++) {
        const int i = p->variable[k];
        const size_t at = (r->v->offset[i] - m->offset) / sizeof(float);
        const size_t count = pm_shape_count(r->v->list[i].shape);
        const float decay = powf(m->decay[at], (float)m->clones);

        for (size_t n = at; n < at + count; n++)
            *out++ = m->after[n] - decay * m->before[n];
    }
}

static int start_push(struct pm_remote *r, struct owner *o, enum pm_ask kind,
                      const struct pm_plan *plan, const struct pm_moving *moving,
                      const struct pm_step *step)
{
    const struct pm_push_word word = { *step, o->version, moving->clones };
    float *data = pm_replica_call_space(o->call, o->part.floats * sizeof *data);
    int err = PM_OK;

    PM_TRY(pm_part_read(&o->part, r->v, r->v->grads, o->part.trainable, data));
    clip(r, &o->part, plan, data);
    write_moving(r, &o->part, moving, data + o->part.trainable_floats);
    pm_replica_call_start(o->call, (unsigned)kind, &word, sizeof word);
out:
    return err;
}

static int check_size(size_t size, size_t floats)
{
    if (size == floats * sizeof(float))
        return PM_OK;
    return pm_fail(PM_EFAIL, "an owner sent values of %zu bytes, not of %zu", size,
                   floats * sizeof(float));
}

static int end_push(struct pm_remote *r, struct owner *o)
{
    struct pm_push_answer answer;
    const char *data;
    size_t size;
    int err = PM_OK;

    PM_TRY(pm_replica_call_wait(o->call, &answer, sizeof answer, &data, &size));
    PM_TRY(check_size(size, o->part.floats));
    o->version = answer.version;
    if (answer.staleness > r->link->staleness)
        r->link->staleness = answer.staleness;
    PM_TRY(pm_part_write(&o->part, r->v, r->v->values, o->part.count,
                         (const float *)(const void *)data));
out:
    return err;
}

int pm_remote_push(struct pm_remote *r, const struct pm_plan *plan, const struct pm_moving *moving,
                   const struct pm_step *step)
{
    int err = PM_OK;

    r->link->staleness = 0;
    for (int k = 0; k < r->link->ranks.owners; k++)
        PM_TRY(start_push(r, &r->owner[k], PM_ASK_PUSH, plan, moving, step));
    for (int k = 0; k < r->link->ranks.owners; k++)
        PM_TRY(end_push(r, &r->owner[k]));
out:
    return err;
}

/* ---- backups ----------------------------------------------------------------------------- */

/* Reports the stored gradient, and waits until its step is decided. */
static int wait_for_decision(struct pm_remote *r, struct pm_decision *d)
{
    struct pm_servers_link *l = r->link;
    const struct pm_tally_word word = { .skipped = l->skipped, .step = l->step,
                                        .stop = l->signal() };

    pm_replica_call_start(l->tally, PM_ASK_STORED, &word, sizeof word);
    return pm_replica_call_wait(l->tally, d, sizeof *d, NULL, NULL);
}

int pm_remote_push_backed(struct pm_remote *r, const struct pm_plan *plan,
                          const struct pm_moving *moving, const struct pm_step *step)
{
    const int owners = r->link->ranks.owners;
    struct pm_decision d;
    int err = PM_OK;

    for (int k = 0; k < owners; k++)
        PM_TRY(start_push(r, &r->owner[k], PM_ASK_STORE, plan, moving, step));
    for (int k = 0; k < owners; k++)
        PM_TRY(pm_replica_call_wait(r->owner[k].call, NULL, 0, NULL, NULL));
    PM_TRY(wait_for_decision(r, &d));
    for (int k = 0; k < owners; k++)
        pm_replica_call_start(r->owner[k].call, PM_ASK_VALUES, &d, sizeof d);
    for (int k = 0; k < owners; k++)
        PM_TRY(end_push(r, &r->owner[k]));
    r->link->step = d.count;
    r->link->stop = d.stop;
out:
    return err;
}

/* ---- collecting -------------------------------------------------------------------------- */

int pm_remote_collect(struct pm_remote *r)
{
    struct pm_push_answer answer;
    const char *data;
    size_t size;
    int err = PM_OK;

    if (!r->link->begun)
        return PM_OK;
    for (int k = 0; k < r->link->ranks.owners; k++)
        pm_replica_call_start(r->owner[k].call, PM_ASK_COLLECT, NULL, 0);
    for (int k = 0; k < r->link->ranks.owners; k++) {
        struct owner *o = &r->owner[k];

        PM_TRY(pm_replica_call_wait(o->call, &answer, sizeof answer, &data, &size));
        PM_TRY(check_size(size, pm_part_state_floats(&o->part, r->v)));
        o->version = answer.version;
        PM_TRY(pm_part_write_state(&o->part, r->v, (const float *)(const void *)data));
    }
out:
    return err;
}
