/* loss_runs: a plan on a net whose layer "loss" is under test: open, submit, add the losses, close;
 * and lists of a golden. */
#ifndef LOSS_RUNS_H
#define LOSS_RUNS_H

#include <pumice/plan.h>

#include "base/golden_file.h"

/* A range of the examples of a batch. loss_share: of the plan. */
struct part { int first, examples, micro_batches; float loss_share; };

struct run { struct pm_net *net; struct pm_variables *v; struct pm_plan *p; };

/* A plan with gradients, whose first variable has the given values. Owns the net. */
static inline struct run open_training(struct pm_device *d, struct pm_net *net,
                                       const float *values)
{
    const struct pm_plan_options o = { .name = "train", .train = true, .slots = 1,
                                       .loss_share = 1, .micro_batches = 1 };
    struct run r = { .net = net };

    ok(pm_variables_create(d, net, true, NULL, &r.v));
    ok(pm_variables_allocate(r.v));
    ok(pm_variables_init(r.v, 1, NULL));
    ok(pm_plan_create(net, d, r.v, &o, &r.p));
    ok(pm_plan_load(r.p));
    ok(pm_variables_write(r.v, 0, -1, values));
    return r;
}

/* A plan without gradients. Owns the net, whose examples are those of a micro-batch. */
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
