/* bench_predict: measures a config's net with its outputs, as `predict` and `eval` run it, on one
 * batch of random pictures in memory. */
#include <pumice/measure.h>

#include "experiment/net_sizes.h"
#include "measure/bench_report.h"
#include "measure/spread.h"

#include "clones/clones.h"

#include <cjson/cJSON.h>

enum { LEAST_BATCHES = 3 };

struct bench {
    struct pm_experiment *e;
    struct pm_device *device;
    struct pm_net *net;             /* has the variables */
    struct pm_variables *variables;
    struct pm_net_sizes *sizes;
    struct pm_net_of_size now;      /* borrowed from sizes */
    double *ms;                     /* of each measured batch */
    int batches;
};

/* Opens the first device, the net with initial values, and its plan. */
static int open_net(struct bench *b, const struct pm_config *c)
{
    const struct pm_net_want want = { PM_USE_PREDICT, c->eval.batch_size, 0, 0 };
    struct pm_device_options options = pm_experiment_device_options(c);
    struct pm_clone_spec *specs;
    int count, err = PM_OK;

    PM_TRY(pm_experiment_open(c, pm_experiment_if_there(c, PM_OPEN_EVAL), &b->e));
    PM_TRY(pm_experiment_devices(b->e, &specs, &count));
    PM_TRY(pm_experiment_say_devices(b->e));
    options.threads = specs[0].threads;
    PM_TRY(pm_device_open(&specs[0].info, &options, &b->device));
    PM_TRY(pm_experiment_net(b->e, want, &b->net, NULL));
    PM_TRY(pm_variables_create(b->device, b->net, false, NULL, &b->variables));
    PM_TRY(pm_variables_allocate(b->variables));
    PM_TRY(pm_variables_init(b->variables, (uint64_t)c->run.seed, NULL));
    PM_TRY(pm_net_sizes_create(&(struct pm_net_sizes_options){
        .e = b->e, .device = b->device, .variables = b->variables, .use = PM_USE_PREDICT,
        .batch = want.batch, .slots = 1 }, &b->sizes));
    PM_TRY(pm_net_sizes_get(b->sizes, pm_experiment_frame(b->e, false), &b->now));
out:
    return err;
}

/* Draws the pictures, and what else the net reads, such as the part of the input that a picture
 * fills. */
static void draw_inputs(struct bench *b)
{
    struct pm_rng r = pm_rng_make((uint64_t)b->e->config->run.seed, pm_hash("bench"), 0, 0);

    for (int i = 0; i < b->e->eval_fields.count; i++) {
        const struct pm_field *f = &b->e->eval_fields.list[i];
        const size_t count = pm_shape_count(f->shape) * (size_t)b->now.batch;

        if (pm_net_find(b->now.net, f->name))
            pm_values_draw(f->values, f->type, count, &r,
                           pm_plan_input(b->now.plan, 0, f->name, 0));
    }
}

static int measure(struct bench *b, const struct pm_bench_options *o)
{
    double start = pm_seconds(), last = start;
    int err = PM_OK;

    for (int i = -o->warmup; i < o->steps; i++) {
        if (i == 0)
            start = last;
        if (o->seconds > 0 && last - start > o->seconds && i >= LEAST_BATCHES)
            break;
        PM_TRY(pm_plan_submit(b->now.plan, 0));
        PM_TRY(pm_plan_wait(b->now.plan, 0));
        const double end = pm_seconds();

        if (i >= 0)
            b->ms[b->batches++] = 1e3 * (end - last);
        last = end;
    }
out:
    return err;
}

static int add_report(struct bench *b, const struct pm_bench_options *o, cJSON *report)
{
    int err = PM_OK;
    const struct pm_spread ms = pm_spread_of(b->ms, (size_t)b->batches);
    const double images = 1e3 * b->now.batch;

    cJSON_AddStringToObject(report, "config", b->e->config->path);
    cJSON_AddStringToObject(report, "model", pm_experiment_net_name(b->e->config));
    cJSON_AddNumberToObject(report, "batch", b->now.batch);
    cJSON_AddBoolToObject(report, "synthetic", true);
    cJSON_AddNumberToObject(report, "warmup", o->warmup);
    cJSON_AddStringToObject(report, "version", PUMICE_VERSION);
    PM_TRY(pm_bench_add_device(cJSON_AddArrayToObject(report, "devices"), b->now.plan,
                               b->now.batch, pm_plan_memory(b->now.plan)));
    cJSON_AddNumberToObject(report, "steps", b->batches);
    pm_spread_json(report, "ms_per_step", ms, 1);
    pm_spread_json(report, "images_per_second",
                   (struct pm_spread){ images / ms.max, images / ms.median, images / ms.min }, 1);
    cJSON_AddNumberToObject(report, "host_peak_bytes", (double)pm_bench_peak_bytes());
out:
    return err;
}

int pm_bench_predict(const struct pm_config *c, const struct pm_bench_options *o,
                     struct cJSON *report)
{
    struct bench b = { .ms = pm_calloc(o->steps > 0 ? (size_t)o->steps : 1, sizeof *b.ms) };
    int err = PM_OK;

    PM_TRY(open_net(&b, c));
    draw_inputs(&b);
    PM_TRY(measure(&b, o));
    PM_TRY(add_report(&b, o, report));
out:
    pm_net_sizes_destroy(&b.sizes);
    pm_variables_destroy(&b.variables);
    pm_net_destroy(&b.net);
    pm_device_close(&b.device);
    pm_experiment_close(&b.e);
    pm_free(b.ms);
    return err;
}
