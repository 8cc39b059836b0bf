/* loss_runs: a plan on a net with a layer "loss": open, submit, add the losses, read gradients,
 * close; and lists of a golden. */
#ifndef LOSS_RUNS_H
#define LOSS_RUNS_H

#include <pumice/plan.h>

#include "base/golden_file.h"

/* A range of the examples of a batch. loss_share: of the plan. */
struct part { int first, examples, micro_batches; float loss_share; };

struct run { struct pm_net *net; struct pm_variables *v; struct pm_plan *p; };

/* A plan with gradients. It takes the net. values: of the first variable, NULL: as initialized.
 * outputs: as in pm_plan_options. */
static inline struct run open_training(struct pm_device *d, struct pm_net *net,
                                       const float *values, int micro_batches,
                                       const char *const *outputs)
{
    const struct pm_plan_options o = { .name = "train", .train = true, .slots = 1, .loss_share = 1,
                                       .micro_batches = micro_batches, .outputs = outputs };
    struct run r = { .net = net };

    ok(pm_variables_create(d, net, true, NULL, &r.v));
    ok(pm_variables_allocate(r.v));
    ok(pm_variables_init(r.v, 1, NULL));
    ok(pm_plan_create(net, d, r.v, &o, &r.p));
    ok(pm_plan_load(r.p));
    if (values)
        ok(pm_variables_write(r.v, 0, -1, values));
    return r;
}

static inline void write_variable(struct pm_variables *v, const char *name, const float *data)
{
    const int index = pm_variables_find(v, name);

    assert_true(index >= 0);
    ok(pm_variables_write(v, index, -1, data));
}

static inline void read_gradient(struct pm_device *d, const struct pm_variables *v,
                                 const char *name, float *out, size_t count)
{
    const int index = pm_variables_find(v, name);

    assert_true(index >= 0);
    ok(pm_buffer_read(d, v->grads, v->offset[index], out, count * sizeof *out));
}

/* A plan without gradients. It takes the net, which has the examples of one micro-batch. */
static inline struct run open_part(struct pm_device *d, struct pm_net *net, struct part part)
{
    struct run r = { .net = net };

    ok(pm_variables_create(d, net, false, NULL, &r.v));
    ok(pm_plan_create(net, d, r.v, &(struct pm_plan_options){
        .slots = 1, .first_example = part.first, .loss_share = part.loss_share,
        .micro_batches = part.micro_batches }, &r.p));
    ok(pm_plan_load(r.p));
    return r;
}

static inline void start(struct pm_plan *p)
{
    struct pm_step *step = pm_plan_step(p, 0); /* NULL: the plan has no gradients */

    if (step)
        *step = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(p, 0));
    ok(pm_plan_wait(p, 0));
}

static inline void close_run(struct run *r)
{
    pm_plan_destroy(&r->p);
    pm_variables_destroy(&r->v);
    pm_net_destroy(&r->net);
}

/* Runs an open part; returns the sum of its losses. Closes it. */
static inline double finish_part(struct run *r, struct part part)
{
    double sum = 0;

    start(r->p);
    for (int m = 0; m < part.micro_batches; m++)
        sum += (double)*(const float *)pm_plan_output(r->p, 0, "loss", m);
    close_run(r);
    return sum;
}

static inline int integer(const cJSON *c, const char *name)
{
    return cJSON_GetObjectItem(c, name)->valueint;
}

/* Both return how many numbers there are. */
static inline int floats(const cJSON *c, const char *name, float *out)
{
    const cJSON *item;
    int n = 0;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c, name))
        out[n++] = (float)item->valuedouble;
    return n;
}

static inline int integers(const cJSON *c, const char *name, int32_t *out)
{
    const cJSON *item;
    int n = 0;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(c, name))
        out[n++] = item->valueint;
    return n;
}

#endif
