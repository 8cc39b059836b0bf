/* bench_step: measures the training step of a config in two passes. The first runs as `train` does,
 * with several steps under way; it gives the reported speed. The second runs one step at a time
 * with every call timed; it gives the phases. */
#include <pumice/measure.h>

#include "measure/bench_report.h"
#include "measure/spread.h"
#include "measure/steps.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { LEAST_STEPS = 3, TIMED_STEPS = 10, TIMED_WARMUP = 2 };
/* Phases of each device in the second pass. */
enum device_phase { DEVICE_FORWARD, DEVICE_BACKWARD, DEVICE_UPDATE, DEVICE_COPIES, DEVICE_PHASES };

static const char *const device_names[] = { "forward", "backward", "update", "copies and gaps" };

struct bench {
    struct pm_steps s;
    struct pm_bench_options o;
    double *ms, *host[PM_RUN_PHASES]; /* per counted step of the first pass, owned */
    int steps;                      /* steps counted */
};

/* ---- first pass ------------------------------------------------------------------------- */

/* Measures a step as one turn of the loop: once the ring is full, a turn waits for one step of the
 * device. */
static int first_pass(struct bench *b)
{
    const int warmup = b->o.warmup + (b->s.count == 1 ? PM_STEP_SLOTS : 0);
    double seconds[PM_RUN_PHASES], start, last;
    int err = PM_OK;

    PM_TRY(pm_steps_clones(&b->s, false));
    PM_TRY(pm_steps_loader(&b->s));
    for (int i = 0; i < warmup; i++)
        PM_TRY(pm_steps_turn(&b->s));
    pm_phases_take(&b->s.phases, seconds);
    start = last = pm_seconds();
    for (b->steps = 0; b->steps < b->o.steps;) {
        if (b->o.seconds > 0 && last - start > b->o.seconds && b->steps >= LEAST_STEPS)
            break;
        PM_TRY(pm_steps_turn(&b->s));
        pm_phases_take(&b->s.phases, seconds);
        double end = pm_seconds();

        b->ms[b->steps] = 1e3 * (end - last);
        for (int k = 0; k < PM_RUN_PHASES; k++)
            b->host[k][b->steps] = 1e3 * seconds[k];
        last = end;
        b->steps++;
    }
    while (b->s.collected < b->s.step)
        PM_TRY(pm_steps_collect(&b->s));
out:
    return err;
}

/* ---- second pass ------------------------------------------------------------------------ */

/* Sums the times of the last step's calls of one clone, in ms per phase. */
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

        ms[calls[i].phase == PM_PHASE_FORWARD  ? DEVICE_FORWARD
           : calls[i].phase == PM_PHASE_UPDATE ? DEVICE_UPDATE
                                               : DEVICE_BACKWARD] += t;
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

/* Runs one step after the other, so that no part of the next step overlaps a phase. */
static int second_pass(struct bench *b, struct cJSON *report, struct cJSON *phases)
{
    const int steps = b->o.steps < TIMED_STEPS ? b->o.steps : TIMED_STEPS;
    double *ms = pm_calloc((size_t)b->s.count * DEVICE_PHASES * (size_t)steps, sizeof *ms);
    double *all = pm_calloc((size_t)steps, sizeof *all), phase[DEVICE_PHASES];
    double start = pm_seconds();
    int done = 0, err = PM_OK;

    PM_TRY(pm_steps_clones(&b->s, true));
    for (int s = -TIMED_WARMUP; s < steps; s++) {
        if (b->o.seconds > 0 && done > 0 && pm_seconds() - start > b->o.seconds)
            break;
        double begin = pm_seconds();

        PM_TRY(pm_steps_submit(&b->s));
        PM_TRY(pm_steps_collect(&b->s));
        if (s < 0)
            continue;
        all[s] = 1e3 * (pm_seconds() - begin);
        for (int i = 0; i < b->s.count; i++) {
            const int slot = (int)((b->s.step - 1) % PM_STEP_SLOTS);

            PM_TRY(read_phases(pm_clones_slot_plan(b->s.clones, i, slot), slot, phase));
            for (int k = 0; k < DEVICE_PHASES; k++)
                ms[(i * DEVICE_PHASES + k) * steps + s] = phase[k];
        }
        done = s + 1;
    }
    for (int i = 0; i < b->s.count; i++)
        for (int k = 0; k < DEVICE_PHASES; k++)
            add_phase(phases, device_names[k], b->s.specs[i].info.address, i,
                      ms + (i * DEVICE_PHASES + k) * steps, done);
    pm_spread_json(report, "timed_ms_per_step", pm_spread_of(all, (size_t)done), 1);
out:
    pm_free(ms);
    pm_free(all);
    return err;
}

/* ---- report ----------------------------------------------------------------------------- */

static int add_devices(const struct bench *b, struct cJSON *list)
{
    int err = PM_OK;

    for (int i = 0; i < b->s.count; i++)
        PM_TRY(pm_bench_add_device(list, pm_clones_plan(b->s.clones, i, 0),
                                   pm_clones_examples(b->s.clones, i),
                                   pm_clones_memory(b->s.clones, i)));
out:
    return err;
}

static void add_first_pass(struct bench *b, struct cJSON *report, struct cJSON *phases)
{
    struct pm_spread ms = pm_spread_of(b->ms, (size_t)b->steps);
    const double images = 1e3 * b->s.c->run.batch_size;

    cJSON_AddNumberToObject(report, "steps", b->steps);
    pm_spread_json(report, "ms_per_step", ms, 1);
    pm_spread_json(report, "images_per_second",
                   (struct pm_spread){ images / ms.max, images / ms.median, images / ms.min }, 1);
    for (int k = 0; k < PM_STEPS_HOST; k++) {
        enum pm_phase_of_run phase = pm_steps_host[k];

        if (b->s.count > 1 || (phase != PM_RUN_AVERAGE && phase != PM_RUN_UPDATE))
            add_phase(phases, pm_phase_names[phase], "host", -1, b->host[phase], b->steps);
    }
}

static int run(struct bench *b, struct cJSON *report)
{
    const struct pm_config *c = b->s.c;
    cJSON *phases = cJSON_CreateArray();
    int err = PM_OK;

    cJSON_AddStringToObject(report, "config", c->path);
    cJSON_AddStringToObject(report, "model", pm_experiment_net_name(c));
    cJSON_AddNumberToObject(report, "batch", c->run.batch_size);
    cJSON_AddBoolToObject(report, "synthetic", b->o.synthetic);
    cJSON_AddNumberToObject(report, "warmup", b->o.warmup);
    cJSON_AddStringToObject(report, "version", PUMICE_VERSION);
    PM_TRY(first_pass(b));
    PM_TRY(add_devices(b, cJSON_AddArrayToObject(report, "devices")));
    add_first_pass(b, report, phases);
    cJSON_AddNumberToObject(report, "host_peak_bytes", (double)pm_bench_peak_bytes());
    PM_TRY(second_pass(b, report, phases));
    cJSON_AddBoolToObject(report, "finite", b->s.finite);
    cJSON_AddItemToObject(report, "phases", phases);
    phases = NULL;
out:
    cJSON_Delete(phases);
    return err;
}

int pm_bench_step(const struct pm_config *c, const struct pm_bench_options *o,
                  struct cJSON *report)
{
    struct bench b = { .o = *o };
    size_t steps = o->steps > 0 ? (size_t)o->steps : 1;
    int err = PM_OK;

    b.ms = pm_calloc(steps, sizeof *b.ms);
    for (int k = 0; k < PM_RUN_PHASES; k++)
        b.host[k] = pm_calloc(steps, sizeof *b.host[k]);
    PM_TRY(pm_steps_open(&b.s, c, o->synthetic));
    PM_TRY(run(&b, report));
out:
    pm_steps_close(&b.s);
    for (int k = 0; k < PM_RUN_PHASES; k++)
        pm_free(b.host[k]);
    pm_free(b.ms);
    return err;
}
