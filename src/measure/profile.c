/* profile: measures the calls of a training step. Steps run one by one, so that a device's time and
 * the host's are separate. On GPUs the calls of timed programs do not overlap either. */
#include <pumice/measure.h>
#include <pumice/trace.h>

#include "measure/spread.h"
#include "measure/steps.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* A plan whose runs are timed: a clone's plan, or the host's optimizer plan. */
struct timed {
    struct pm_plan *plan;     /* borrowed */
    int slots;
    size_t calls;
    double *ms;               /* [call][step], owned */
    double *run;              /* [step], owned */
    double *begin, *end;      /* room for one run's calls, owned */
};
struct profile {
    struct pm_steps s;
    struct pm_profile_options o;
    struct timed *list;       /* clones, then with several clones the optimizer; owned */
    int count;
    double *ms;               /* [step], owned */
    double *host[PM_RUN_PHASES]; /* [step], owned */
    bool tracing;
};

/* ---- measuring -------------------------------------------------------------------------- */

static void make_list(struct profile *p)
{
    size_t steps = (size_t)p->o.steps;

    p->count = p->s.count + (p->s.count > 1);
    p->list = pm_calloc((size_t)p->count, sizeof *p->list);
    for (int i = 0; i < p->count; i++) {
        struct timed *t = &p->list[i];

        t->plan = i < p->s.count ? pm_clones_plan(p->s.clones, i, 0)
                                 : pm_clones_update_plan(p->s.clones);
        t->slots = i < p->s.count ? PM_STEP_SLOTS : 1;
        pm_plan_calls(t->plan, &t->calls);
        t->ms = pm_calloc(t->calls * steps + 1, sizeof *t->ms);
        t->run = pm_calloc(steps, sizeof *t->run);
        t->begin = pm_calloc(t->calls + 1, sizeof *t->begin);
        t->end = pm_calloc(t->calls + 1, sizeof *t->end);
    }
    p->ms = pm_calloc(steps, sizeof *p->ms);
    for (int k = 0; k < PM_RUN_PHASES; k++)
        p->host[k] = pm_calloc(steps, sizeof *p->host[k]);
}

static void free_list(struct profile *p)
{
    for (int i = 0; i < p->count; i++) {
        pm_free(p->list[i].ms);
        pm_free(p->list[i].run);
        pm_free(p->list[i].begin);
        pm_free(p->list[i].end);
    }
    pm_free(p->list);
    pm_free(p->ms);
    for (int k = 0; k < PM_RUN_PHASES; k++)
        pm_free(p->host[k]);
}

static int read_times(struct timed *t, uint64_t step, int at, int steps)
{
    int slot = (int)(step % (uint64_t)t->slots), err = PM_OK;

    PM_TRY(pm_plan_call_times(t->plan, slot, t->begin, t->end));
    for (size_t i = 0; i < t->calls; i++)
        t->ms[i * (size_t)steps + (size_t)at] = 1e3 * (t->end[i] - t->begin[i]);
    t->run[at] = 1e3 * pm_plan_seconds(t->plan, slot);
out:
    return err;
}

static int take_steps(struct profile *p)
{
    double seconds[PM_RUN_PHASES];
    int err = PM_OK;

    for (int i = 0; i < p->o.warmup; i++) {
        PM_TRY(pm_steps_submit(&p->s));
        PM_TRY(pm_steps_collect(&p->s));
    }
    if (p->o.trace) {
        pm_trace_open();
        p->tracing = true;
    }
    pm_phases_take(&p->s.phases, seconds);
    for (int i = 0; i < p->o.steps; i++) {
        double begin = pm_seconds();

        PM_TRY(pm_steps_submit(&p->s));
        PM_TRY(pm_steps_collect(&p->s));
        p->ms[i] = 1e3 * (pm_seconds() - begin);
        pm_phases_take(&p->s.phases, seconds);
        for (int k = 0; k < PM_RUN_PHASES; k++)
            p->host[k][i] = 1e3 * seconds[k];
        for (int k = 0; k < p->count; k++)
            PM_TRY(read_times(&p->list[k], p->s.step - 1, i, p->o.steps));
    }
out:
    return err;
}

/* ---- reporting -------------------------------------------------------------------------- */

/* Totals of calls with the same name. */
struct sum {
    const char *name;
    int calls;
    double ms, flops, bytes;
};

static void add_to(struct sum *list, size_t *count, const char *name, double ms, double flops,
                   double bytes)
{
    size_t i = 0;

    while (i < *count && strcmp(list[i].name, name) != 0)
        i++;
    if (i == *count)
        list[(*count)++] = (struct sum){ .name = name };
    list[i].calls++;
    list[i].ms += ms;
    list[i].flops += flops;
    list[i].bytes += bytes;
}

static int by_falling_ms(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;

    return (x->ms < y->ms) - (x->ms > y->ms);
}

static void add_rates(cJSON *o, double ms, double run, double flops, double bytes)
{
    cJSON_AddNumberToObject(o, "share", run > 0 ? ms / run : 0);
    cJSON_AddNumberToObject(o, "gflops", ms > 0 ? flops / ms / 1e6 : 0);
    cJSON_AddNumberToObject(o, "gbytes", ms > 0 ? bytes / ms / 1e6 : 0);
}

static void add_sums(cJSON *device, const char *key, struct sum *list, size_t count, double run)
{
    cJSON *array = cJSON_AddArrayToObject(device, key);

    qsort(list, count, sizeof *list, by_falling_ms);
    for (size_t i = 0; i < count; i++) {
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "name", list[i].name);
        cJSON_AddNumberToObject(o, "calls", list[i].calls);
        cJSON_AddNumberToObject(o, "ms", list[i].ms);
        add_rates(o, list[i].ms, run, list[i].flops, list[i].bytes);
        cJSON_AddItemToArray(array, o);
    }
}

static void add_call(cJSON *array, size_t i, const struct pm_planned_call *c, const char *variant,
                     struct pm_spread ms, double run, double flops, double bytes)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "call", (double)i);
    cJSON_AddStringToObject(o, "phase", pm_plan_phase_names[c->phase]);
    cJSON_AddStringToObject(o, "layer", c->label);
    cJSON_AddStringToObject(o, "kernel", c->kernel->name);
    cJSON_AddStringToObject(o, "variant", variant);
    pm_spread_json(o, "ms", ms, 1);
    add_rates(o, ms.median, run, flops, bytes);
    cJSON_AddItemToArray(array, o);
}

static void add_calls(cJSON *device, struct timed *t, int steps, double run)
{
    size_t count, kernels = 0, layers = 0, phases = 0;
    const struct pm_planned_call *calls = pm_plan_calls(t->plan, &count);
    struct sum *kernel = pm_calloc(count + 1, sizeof *kernel);
    struct sum *layer = pm_calloc(count + 1, sizeof *layer), phase[PM_PHASES];
    cJSON *array = cJSON_AddArrayToObject(device, "calls");
    double rest = run;

    for (size_t i = 0; i < count; i++) {
        const struct pm_planned_call *c = &calls[i];
        struct pm_spread ms = pm_spread_of(t->ms + i * (size_t)steps, (size_t)steps);
        double flops = c->kernel->flops ? c->kernel->flops(c->params, c->count) : (double)c->count;
        const double bytes = (double)pm_plan_call_bytes(t->plan, i);

        add_call(array, i, c, pm_plan_variant(t->plan, i), ms, run, flops, bytes);
        add_to(kernel, &kernels, c->kernel->name, ms.median, flops, bytes);
        add_to(layer, &layers, c->label, ms.median, flops, bytes);
        add_to(phase, &phases, pm_plan_phase_names[c->phase], ms.median, flops, bytes);
        rest -= ms.median;
    }
    cJSON_AddNumberToObject(device, "rest_ms", rest > 0 ? rest : 0);
    add_sums(device, "kernels", kernel, kernels, run);
    add_sums(device, "layers", layer, layers, run);
    add_sums(device, "phases", phase, phases, run);
    pm_free(kernel);
    pm_free(layer);
}

static int add_device(struct profile *p, int i, cJSON *list)
{
    int err = PM_OK;
    bool clone = i < p->s.count;
    const struct pm_device *d = pm_plan_device(p->list[i].plan);
    const struct pm_device_info *info = pm_device_get_info(d);
    struct pm_spread run = pm_spread_of(p->list[i].run, (size_t)p->o.steps);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "address", info->address);
    cJSON_AddStringToObject(o, "name", info->name);
    cJSON_AddStringToObject(o, "driver", info->driver);
    cJSON_AddStringToObject(o, "role", clone ? "clone" : "optimizer");
    if (info->caps.threads > 0)
        cJSON_AddNumberToObject(o, "threads", pm_device_caps(d)->threads);
    cJSON_AddNumberToObject(o, "examples", clone ? pm_clones_examples(p->s.clones, i) : 0);
    pm_spread_json(o, "ms_per_step", run, 1);
    cJSON_AddItemToArray(list, o);
    PM_TRY(pm_plan_counts_json(p->list[i].plan, o));
    add_calls(o, &p->list[i], p->o.steps, run.median);
out:
    return err;
}

static int add_report(struct profile *p, cJSON *report)
{
    int err = PM_OK;
    const struct pm_config *c = p->s.c;
    cJSON *list;

    cJSON_AddStringToObject(report, "config", c->path);
    cJSON_AddStringToObject(report, "model", pm_experiment_net_name(c));
    cJSON_AddNumberToObject(report, "batch", c->run.batch_size);
    cJSON_AddNumberToObject(report, "steps", p->o.steps);
    cJSON_AddNumberToObject(report, "warmup", p->o.warmup);
    cJSON_AddBoolToObject(report, "synthetic", p->o.synthetic);
    cJSON_AddStringToObject(report, "version", PUMICE_VERSION);
    cJSON_AddBoolToObject(report, "finite", p->s.finite);
    if (p->o.trace)
        cJSON_AddStringToObject(report, "trace", p->o.trace);
    pm_spread_json(report, "ms_per_step", pm_spread_of(p->ms, (size_t)p->o.steps), 1);
    list = cJSON_AddArrayToObject(report, "host");
    for (size_t k = 0; k < PM_STEPS_HOST; k++) {
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "name", pm_phase_names[pm_steps_host[k]]);
        pm_spread_json(o, "ms", pm_spread_of(p->host[pm_steps_host[k]], (size_t)p->o.steps), 1);
        cJSON_AddItemToArray(list, o);
    }
    list = cJSON_AddArrayToObject(report, "devices");
    for (int i = 0; i < p->count; i++)
        PM_TRY(add_device(p, i, list));
out:
    return err;
}

int pm_profile(const struct pm_config *c, const struct pm_profile_options *o, struct cJSON *report)
{
    struct profile p = { .o = *o };
    int err = PM_OK;

    PM_TRY(pm_steps_open(&p.s, c, o->synthetic));
    pm_steps_one_size(&p.s); /* the times are those of one plan's calls */
    PM_TRY(pm_steps_clones(&p.s, true));
    PM_TRY(pm_steps_loader(&p.s));
    make_list(&p);
    PM_TRY(take_steps(&p));
    if (p.tracing) {
        p.tracing = false;
        PM_TRY(pm_trace_close(o->trace));
    }
    PM_TRY(add_report(&p, report));
out:
    if (p.tracing) /* up to the failure; keep its error message */
        pm_trace_close(o->trace);
    free_list(&p);
    pm_steps_close(&p.s);
    return err;
}
