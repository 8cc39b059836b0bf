/* bench_step: the training step of a config, twice: as `train` takes it, with several steps under
 * way, for the figures that count; then one step at a time with every call timed, for the phases.
 * Clones, ring and loader are the trainer's; run folder, checkpoints and log are left out. */
#include <pumice/measure.h>

#include "measure/spread.h"
#include "train/trainer.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <sys/resource.h>

enum { LEAST_STEPS = 3, TIMED_STEPS = 10, TIMED_WARMUP = 2 };
/* Of the host in the first pass, then of each device in the second. */
enum host_phase { HOST_DATA, HOST_STAGING, HOST_SUM, HOST_UPDATE, HOST_PUSH, HOST_PHASES };
enum device_phase { DEVICE_FORWARD, DEVICE_BACKWARD, DEVICE_UPDATE, DEVICE_COPIES, DEVICE_PHASES };

static const char *const host_names[] = { "wait for data", "batch to staging", "sum of gradients",
                                          "update", "values to clones" };
static const char *const device_names[] = { "forward", "backward", "update", "copies and gaps" };

struct bench {
    const struct pm_config *c;
    struct pm_bench_options o;
    struct pm_experiment *e;       /* owned */
    struct pm_clone_spec *specs;
    int count;                     /* of clones */
    struct pm_clones *clones;      /* owned */
    struct pm_loader *loader;      /* owned; NULL: synthetic */
    struct pm_sampler sampler;
    struct pm_batch batch;         /* synthetic: its arrays are owned */
    double betas[2];
    uint64_t step, collected;
    bool finite;

    double *ms, *host[HOST_PHASES]; /* per counted step of the first pass, owned */
    int steps;                      /* counted */
};

/* ---- batches ---------------------------------------------------------------------------- */

/* Values as preprocessing gives them, labels that the loss takes: every integer is a class. */
static void make_batch(struct bench *b)
{
    struct pm_field fields[PM_MAX_FIELDS];
    const int count = b->e->task->fields(&b->e->setup, true, fields);
    struct pm_rng r = pm_rng_make((uint64_t)b->c->run.seed, pm_hash("bench"), 0, 0);

    for (int f = 0; f < count; f++) {
        size_t n = pm_shape_count(fields[f].shape) * (size_t)b->c->run.batch_size;
        float *v = pm_calloc(n, sizeof *v);
        int32_t *label = (int32_t *)v;

        for (size_t i = 0; i < n; i++) {
            double u = pm_rng_uniform(&r);

            if (fields[f].type == PM_F32)
                v[i] = (float)(2 * u - 1);
            else
                label[i] = (int32_t)(u * b->e->setup.num_classes);
        }
        b->batch.field[f] = v;
    }
    b->batch.valid = b->c->run.batch_size;
}

static struct pm_step step_values(const struct bench *b)
{
    uint64_t seed = (uint64_t)b->c->run.seed;

    return (struct pm_step){
        .step = (uint32_t)b->step, .seed_low = (uint32_t)seed, .seed_high = (uint32_t)(seed >> 32),
        .lr = (float)(0.01 * b->c->schedule.base_lr), .loss_scale = 1,
        .beta1_power = (float)b->betas[0], .beta2_power = (float)b->betas[1],
    };
}

/* ---- steps ------------------------------------------------------------------------------ */

static int submit(struct bench *b)
{
    struct pm_step values = step_values(b);
    struct pm_batch *batch = &b->batch;
    int err = PM_OK;

    if (b->loader)
        PM_TRY(pm_loader_next(b->loader, &batch));
    PM_TRY(pm_clones_step(b->clones, (int)(b->step % PM_TRAINER_SLOTS), batch, &values));
    b->step++;
out:
    if (b->loader && batch)
        pm_loader_release(b->loader, batch);
    return err;
}

static int collect(struct bench *b)
{
    struct pm_step_result r;
    int err = PM_OK;

    PM_TRY(pm_clones_collect(b->clones, (int)(b->collected % PM_TRAINER_SLOTS), &r));
    b->collected++;
    b->finite &= r.finite;
out:
    return err;
}

/* As the trainer's: with several clones nothing is under way when a step returns. */
static int one_step(struct bench *b)
{
    int err = PM_OK;

    if (b->step - b->collected == PM_TRAINER_SLOTS)
        PM_TRY(collect(b));
    PM_TRY(submit(b));
    if (b->count > 1)
        PM_TRY(collect(b));
out:
    return err;
}

static int make_clones(struct bench *b, bool timed)
{
    struct pm_clones_options options;
    int err = PM_OK;

    pm_clones_destroy(&b->clones);
    pm_experiment_clones(b->e, b->specs, b->count, &options);
    options.slots = PM_TRAINER_SLOTS;
    options.timed = timed;
    PM_TRY(pm_clones_create(&options, &b->clones));
    PM_TRY(pm_variables_init(pm_clones_master(b->clones), (uint64_t)b->c->run.seed,
                             b->e->optimizer->slot_init));
    PM_TRY(pm_clones_scatter(b->clones));
    b->step = b->collected = 0;
out:
    return err;
}

/* ---- first pass ------------------------------------------------------------------------- */

static void read_host(const struct bench *b, double v[HOST_PHASES])
{
    struct pm_clones_times t = pm_clones_times(b->clones);

    v[HOST_DATA] = b->loader ? pm_loader_waited(b->loader) : 0;
    v[HOST_STAGING] = t.fill;
    v[HOST_SUM] = t.sum;
    v[HOST_UPDATE] = t.update;
    v[HOST_PUSH] = t.push;
}

/* A step lasts from one turn of the loop to the next: once the ring is full, a turn waits for a
 * step of the device. */
static int first_pass(struct bench *b)
{
    const int warmup = b->o.warmup + (b->count == 1 ? PM_TRAINER_SLOTS : 0);
    double before[HOST_PHASES], now[HOST_PHASES], start, last;
    int err = PM_OK;

    PM_TRY(make_clones(b, false));
    if (!b->o.synthetic)
        PM_TRY(pm_experiment_loader(b->e, true, b->c->run.batch_size, 0, &b->sampler, &b->loader));
    for (int i = 0; i < warmup; i++)
        PM_TRY(one_step(b));
    read_host(b, before);
    start = last = pm_seconds();
    for (b->steps = 0; b->steps < b->o.steps;) {
        if (b->o.seconds > 0 && last - start > b->o.seconds && b->steps >= LEAST_STEPS)
            break;
        PM_TRY(one_step(b));
        read_host(b, now);
        double end = pm_seconds();

        b->ms[b->steps] = 1e3 * (end - last);
        for (int k = 0; k < HOST_PHASES; k++)
            b->host[k][b->steps] = 1e3 * (now[k] - before[k]);
        memcpy(before, now, sizeof before);
        last = end;
        b->steps++;
    }
    while (b->collected < b->step)
        PM_TRY(collect(b));
out:
    return err;
}

/* ---- second pass ------------------------------------------------------------------------ */

/* What the last step's calls of one clone took, in ms by phase. */
static int read_phases(struct pm_plan *plan, int slot, double ms[DEVICE_PHASES])
{
    size_t count;
    const struct pm_planned_call *calls = pm_plan_calls(plan, &count);
    double *begin = pm_calloc(2 * count + 1, sizeof *begin), *end = begin + count;
    int err = PM_OK;

    memset(ms, 0, DEVICE_PHASES * sizeof *ms);
    PM_TRY(pm_plan_call_times(plan, slot, begin, end));
    ms[DEVICE_COPIES] = 1e3 * pm_plan_seconds(plan, slot);
    for (size_t i = 0; i < count; i++) {
        double t = 1e3 * (end[i] - begin[i]);

        ms[calls[i].phase == PM_PHASE_FORWARD    ? DEVICE_FORWARD
           : calls[i].phase == PM_PHASE_BACKWARD ? DEVICE_BACKWARD
                                                 : DEVICE_UPDATE] += t;
        ms[DEVICE_COPIES] -= t;
    }
    if (ms[DEVICE_COPIES] < 0)
        ms[DEVICE_COPIES] = 0;
out:
    pm_free(begin);
    return err;
}

static void add_phase(struct cJSON *list, const char *name, const char *where, int clone,
                      double *ms, int count)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", name);
    cJSON_AddStringToObject(o, "where", where);
    cJSON_AddNumberToObject(o, "clone", clone);
    pm_spread_json(o, "ms", pm_spread_of(ms, (size_t)count), 1);
    cJSON_AddItemToArray(list, o);
}

/* One step after the other, so that nothing of the next one's hides in a phase. */
static int second_pass(struct bench *b, struct cJSON *report, struct cJSON *phases)
{
    const int steps = b->o.steps < TIMED_STEPS ? b->o.steps : TIMED_STEPS;
    double *ms = pm_calloc((size_t)b->count * DEVICE_PHASES * (size_t)steps, sizeof *ms);
    double *all = pm_calloc((size_t)steps, sizeof *all), phase[DEVICE_PHASES];
    double start = pm_seconds();
    int done = 0, err = PM_OK;

    PM_TRY(make_clones(b, true));
    for (int s = -TIMED_WARMUP; s < steps; s++) {
        if (b->o.seconds > 0 && done > 0 && pm_seconds() - start > b->o.seconds)
            break;
        double begin = pm_seconds();

        PM_TRY(submit(b));
        PM_TRY(collect(b));
        if (s < 0)
            continue;
        all[s] = 1e3 * (pm_seconds() - begin);
        for (int i = 0; i < b->count; i++) {
            PM_TRY(read_phases(pm_clones_plan(b->clones, i),
                               (int)((b->step - 1) % PM_TRAINER_SLOTS), phase));
            for (int k = 0; k < DEVICE_PHASES; k++)
                ms[(i * DEVICE_PHASES + k) * steps + s] = phase[k];
        }
        done = s + 1;
    }
    for (int i = 0; i < b->count; i++)
        for (int k = 0; k < DEVICE_PHASES; k++)
            add_phase(phases, device_names[k], b->specs[i].info.address, i,
                      ms + (i * DEVICE_PHASES + k) * steps, done);
    pm_spread_json(report, "timed_ms_per_step", pm_spread_of(all, (size_t)done), 1);
out:
    pm_free(ms);
    pm_free(all);
    return err;
}

/* ---- report ----------------------------------------------------------------------------- */

static void add_memory(struct cJSON *o, struct pm_plan_memory m)
{
    cJSON *memory = cJSON_AddObjectToObject(o, "memory");

    cJSON_AddNumberToObject(memory, "activations", (double)m.activations);
    cJSON_AddNumberToObject(memory, "variables", (double)m.variables);
    cJSON_AddNumberToObject(memory, "gradients", (double)m.gradients);
    cJSON_AddNumberToObject(memory, "slots", (double)m.slots);
    cJSON_AddNumberToObject(memory, "constants", (double)m.constants);
    cJSON_AddNumberToObject(memory, "staging", (double)m.staging);
}

static void add_devices(const struct bench *b, struct cJSON *list)
{
    for (int i = 0; i < b->count; i++) {
        const struct pm_device *d = pm_clones_device(b->clones, i);
        const struct pm_device_info *info = pm_device_get_info(d);
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "address", info->address);
        cJSON_AddStringToObject(o, "name", info->name);
        cJSON_AddStringToObject(o, "driver", info->driver);
        if (info->kind == PM_KIND_CPU)
            cJSON_AddNumberToObject(o, "threads", pm_device_caps(d)->threads);
        cJSON_AddNumberToObject(o, "examples", pm_clones_examples(b->clones, i));
        cJSON_AddNumberToObject(o, "memory_bytes", (double)pm_device_memory_used(d));
        add_memory(o, pm_plan_memory(pm_clones_plan(b->clones, i)));
        cJSON_AddItemToArray(list, o);
    }
}

static uint64_t peak_bytes(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static void add_first_pass(struct bench *b, struct cJSON *report, struct cJSON *phases)
{
    struct pm_spread ms = pm_spread_of(b->ms, (size_t)b->steps);
    const double images = 1e3 * b->c->run.batch_size;

    cJSON_AddNumberToObject(report, "steps", b->steps);
    pm_spread_json(report, "ms_per_step", ms, 1);
    pm_spread_json(report, "images_per_second",
                   (struct pm_spread){ images / ms.max, images / ms.median, images / ms.min }, 1);
    for (int k = 0; k < (b->count > 1 ? HOST_PHASES : HOST_SUM); k++)
        add_phase(phases, host_names[k], "host", -1, b->host[k], b->steps);
}

static int run(struct bench *b, struct cJSON *report)
{
    const struct pm_config *c = b->c;
    cJSON *phases = cJSON_CreateArray();
    int err = PM_OK;

    cJSON_AddStringToObject(report, "config", c->path);
    cJSON_AddStringToObject(report, "model", c->model.name ? c->model.name : "layers");
    cJSON_AddNumberToObject(report, "batch", c->run.batch_size);
    cJSON_AddBoolToObject(report, "synthetic", b->o.synthetic);
    cJSON_AddNumberToObject(report, "warmup", b->o.warmup);
    cJSON_AddStringToObject(report, "version", PUMICE_VERSION);
    PM_TRY(first_pass(b));
    add_devices(b, cJSON_AddArrayToObject(report, "devices"));
    add_first_pass(b, report, phases);
    cJSON_AddNumberToObject(report, "host_peak_bytes", (double)peak_bytes());
    PM_TRY(second_pass(b, report, phases));
    cJSON_AddBoolToObject(report, "finite", b->finite);
    cJSON_AddItemToObject(report, "phases", phases);
    phases = NULL;
out:
    cJSON_Delete(phases);
    return err;
}

int pm_bench_step(const struct pm_config *c, const struct pm_bench_options *o,
                  struct cJSON *report)
{
    struct bench b = { .c = c, .o = *o, .finite = true };
    bool data = c->data.folder && (!o->synthetic || pm_is_folder(c->data.folder));
    size_t steps = o->steps > 0 ? (size_t)o->steps : 1;
    int err = PM_OK;

    b.ms = pm_calloc(steps, sizeof *b.ms);
    for (int k = 0; k < HOST_PHASES; k++)
        b.host[k] = pm_calloc(steps, sizeof *b.host[k]);
    PM_TRY(pm_experiment_open(c, data || !o->synthetic ? PM_OPEN_TRAIN : 0, &b.e));
    PM_TRY(pm_experiment_devices(b.e, &b.specs, &b.count));
    if (b.e->optimizer->betas)
        b.e->optimizer->betas(b.e->optimizer_cfg, &b.betas[0], &b.betas[1]);
    if (o->synthetic)
        make_batch(&b);
    PM_TRY(run(&b, report));
out:
    pm_loader_destroy(&b.loader);
    pm_clones_destroy(&b.clones);
    pm_experiment_close(&b.e);
    for (int f = 0; f < PM_MAX_FIELDS && o->synthetic; f++)
        pm_free(b.batch.field[f]);
    for (int k = 0; k < HOST_PHASES; k++)
        pm_free(b.host[k]);
    pm_free(b.ms);
    return err;
}
