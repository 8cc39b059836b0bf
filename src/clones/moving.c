/* moving: moving.h has the formula. */
#include "clones/moving.h"

#include <pumice/layer.h>

#include <math.h>
#include <string.h>

/* Returns the decay of a variable in one step: the product over the nodes that update it, because
 * an image pyramid's scales share variables; 1 if no node updates it. */
static float decay_of(const struct pm_net *net, int variable)
{
    float decay = 1;

    for (int i = 0; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];

        for (int k = 0; k < n->var_count && n->layer->moving_decay; k++)
            if (n->vars[k] == variable)
                decay *= n->layer->moving_decay(n);
    }
    return decay;
}

int pm_moving_check(const struct pm_net *net, bool all, int micro_batches)
{
    for (int i = 0; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];

        if (!n->layer->update || n->layer->moving_decay)
            continue;
        if (all)
            return pm_fail(PM_ECONFIG,
                           "%s: run.batch_norm_update \"all\" combines the moving averages of all "
                           "devices, and several processes always do, but the ranges of a %s layer "
                           "cannot be combined: set it to \"first\", and train in one process",
                           n->name, n->layer->name);
        if (micro_batches > 1)
            return pm_fail(PM_ECONFIG,
                           "%s: run.micro_batches: %d, but a %s layer computes its ranges from the "
                           "whole batch: set it to 1",
                           n->name, micro_batches, n->layer->name);
    }
    return PM_OK;
}

void pm_moving_create(const struct pm_net *net, struct pm_variables *master, int clones,
                      struct pm_moving *out)
{
    const struct pm_variables *v = master;
    const size_t bytes = v->bytes - v->trainable_bytes;

    *out = (struct pm_moving){ .master = master, .offset = v->trainable_bytes, .bytes = bytes };
    out->pull = pm_calloc((size_t)clones, sizeof *out->pull);
    out->decay = pm_calloc(1, bytes + 1);
    out->before = pm_calloc(1, bytes + 1);
    out->after = pm_calloc(1, bytes + 1);
    for (int i = 0; i < v->count; i++) {
        const size_t count = pm_shape_count(v->list[i].shape);
        const float decay = v->list[i].trainable ? 0 : decay_of(net, i);
        float *to = v->list[i].trainable ? NULL
                                         : out->decay +
                                               (v->offset[i] - out->offset) / sizeof(float);

        for (size_t k = 0; to && k < count; k++)
            to[k] = decay;
    }
}

void pm_moving_free(struct pm_moving *m)
{
    for (int i = 0; i < m->clones; i++)
        pm_program_destroy(&m->pull[i]);
    pm_free(m->pull);
    pm_free(m->decay);
    pm_free(m->before);
    pm_free(m->after);
    *m = (struct pm_moving){ 0 };
}

int pm_moving_join(struct pm_moving *m, const struct pm_variables *clone)
{
    const struct pm_place place = { clone->values, m->offset, m->bytes };
    const size_t at_once = 0;

    if (m->bytes == 0)
        return PM_OK;
    return pm_program_create(clone->device,
                             &(struct pm_program_desc){ .name = "moving averages",
                                                        .out = &place,
                                                        .out_after = &at_once,
                                                        .out_count = 1,
                                                        .slots = 1 },
                             &m->pull[m->clones++]);
}

int pm_moving_begin(struct pm_moving *m)
{
    struct pm_variables *v = m->master;
    int err = PM_OK;

    if (m->bytes == 0)
        return PM_OK;
    PM_TRY(pm_buffer_read(v->device, v->values, m->offset, m->before, m->bytes));
    memcpy(m->after, m->before, m->bytes);
    for (int i = 0; i < m->clones; i++)
        PM_TRY(pm_program_submit(m->pull[i], 0));
out:
    return err;
}

int pm_moving_values(struct pm_moving *m, int i, const float **out)
{
    int err = PM_OK;

    PM_TRY(pm_program_wait(m->pull[i], 0));
    *out = pm_program_out(m->pull[i], 0, 0);
out:
    return err;
}

void pm_moving_add(struct pm_moving *m, const float *clone)
{
    for (size_t i = 0; i < m->bytes / sizeof(float); i++)
        m->after[i] = clone[i] + m->decay[i] * (m->after[i] - m->before[i]);
}

int pm_moving_end(struct pm_moving *m)
{
    struct pm_variables *v = m->master;

    if (m->bytes == 0)
        return PM_OK;
    for (size_t i = 0; i < m->bytes / sizeof(float); i++)
        if (!isfinite(m->after[i])) { /* not finite: the averages stay unchanged */
            memcpy(m->after, m->before, m->bytes);
            break;
        }
    return pm_buffer_write(v->device, v->values, m->offset, m->after, m->bytes);
}

int pm_moving_combine(struct pm_moving *m)
{
    const float *values;
    int err = PM_OK;

    PM_TRY(pm_moving_begin(m));
    for (int i = 0; i < m->clones && m->bytes > 0; i++) {
        PM_TRY(pm_moving_values(m, i, &values));
        pm_moving_add(m, values);
    }
out:
    return err;
}

int pm_moving_follow(struct pm_moving *m)
{
    int err = PM_OK;

    PM_TRY(pm_moving_combine(m));
    PM_TRY(pm_moving_end(m));
out:
    return err;
}
