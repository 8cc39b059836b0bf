/* The memory that `config show --plan` predicts for a detector's training step is the memory that
 * the step then has, on the CPU and on the software drivers; and the losses keep nothing as large
 * as the logits, beside these and their gradient. */
#include "base/command.h"
#include "measure/steps.h"

#include <pumice/train.h>

#include <math.h>

static const char ssd[] =
    "{ \"task\": \"detection\", \"model\": { \"name\": \"ssd_mobilenet_v2\", \"num_classes\": 90 },"
    "  \"input\": { \"size\": 96 }, \"optim\": { \"name\": \"momentum\" },"
    "  \"loss\": { \"classification\": { \"type\": \"weighted_sigmoid\" }, \"hard_example_miner\":"
    "    { \"num_hard_examples\": 3000, \"iou_threshold\": 0.99, \"loss_type\": \"classification\","
    "      \"max_negatives_per_positive\": 3, \"min_negatives_per_image\": 3 } },"
    "  \"run\": { \"batch_size\": 2 } }";
static const char fpn[] =
    "{ \"task\": \"detection\", \"model\": { \"name\": \"ssd_mobilenet_v2_fpn\","
    "    \"num_classes\": 90, \"additional_layer_depth\": 64 },"
    "  \"input\": { \"size\": 128 }, \"optim\": { \"name\": \"momentum\" },"
    "  \"run\": { \"batch_size\": 2 } }";
static const char *const files[] = { "ssd.json", "fpn.json" };

/* What the plan of a clone says, in bytes: on the device, and in host memory. */
struct planned {
    double total, staging;
};

static struct planned planned(const char *file, const char *options)
{
    char command[512];
    struct planned p;
    cJSON *report;
    const cJSON *clone;

    snprintf(command, sizeof command, "config show %s --plan --json %s", file, options);
    report = report_of(command);
    clone = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "clones"), 0);
    p = (struct planned){ number(clone, "total"), number(clone, "staging") };
    cJSON_Delete(report);
    return p;
}

static void assert_within(double planned, double have, const char *what)
{
    print_message("    %s: planned %.0f, has %.0f bytes\n", what, planned, have);
    assert_true(fabs(have - planned) <= 0.05 * planned);
}

/* A training step that could run: its buffers exist. */
struct ready {
    struct pm_arena *arena;
    struct pm_config *config;
    struct pm_steps steps;
};

static struct ready make_ready(const char *file, const char *device)
{
    struct ready r = { .arena = pm_arena_create() };
    struct pm_open_sections choices = pm_train_choices(r.arena);
    const char *overrides[] = { device, "run.verify=off" };

    if (pm_config_load(in_folder(file), overrides, 2, &choices, &r.config) < 0 ||
        pm_steps_open(&r.steps, r.config, true) < 0 || pm_steps_clones(&r.steps, false) < 0)
        fail_msg("%s", pm_error_text());
    return r;
}

static void drop_ready(struct ready *r)
{
    pm_steps_close(&r->steps);
    pm_config_destroy(&r->config);
    pm_arena_destroy(&r->arena);
}

static void check_device(const char *name)
{
    char device[64];

    if (strcmp(name, "cpu") != 0)
        need_device(name);
    snprintf(device, sizeof device, "devices=%s", name);
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        struct ready r = make_ready(files[i], device);

        assert_within(planned(files[i], device).total,
                      (double)pm_device_memory_used(pm_clones_device(r.steps.clones, 0)),
                      files[i]);
        drop_ready(&r);
    }
}

static void on_cpu(void **state)
{
    (void)state;
    check_device("cpu");
}

static void on_lavapipe(void **state)
{
    (void)state;
    check_device("llvmpipe");
}

static void on_swiftshader(void **state)
{
    (void)state;
    check_device("SwiftShader");
}

/* The process also has its code and libraries; their share falls out of the difference of two batch
 * sizes. The benchmark's own batch is as large as a slot of the staging, so it counts, too. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* these keep freed memory */
static double peak(const char *options)
{
    char command[512];
    cJSON *report;
    double bytes;

    snprintf(command, sizeof command, "bench ssd.json --synthetic --steps 1 --warmup 0 --json %s",
             options);
    report = report_of(command);
    bytes = number(report, "host_peak_bytes");
    cJSON_Delete(report);
    return bytes;
}

static void resident(void **state)
{
    static const char small[] = "devices=cpu run.batch_size=2";
    static const char large[] = "devices=cpu run.batch_size=16";
    const struct planned a = planned("ssd.json", small), b = planned("ssd.json", large);

    (void)state;
    assert_within(b.total + b.staging - a.total - a.staging, peak(large) - peak(small), "process");
}
#endif

/* ---- the losses -------------------------------------------------------------------------- */

static bool is(const struct pm_planned_call *c, const char *kernel)
{
    return strcmp(c->kernel->name, kernel) == 0;
}

/* Bytes of the logits of all levels. */
static double logits_bytes(const struct pm_planned_call *calls, size_t count,
                           const struct pm_value *values)
{
    double bytes = 0;

    for (size_t i = 0; i < count; i++)
        if (is(&calls[i], "detection_cls_fwd"))
            bytes += (double)values[calls[i].buf[0]].bytes;
    return bytes;
}

/* With 91 columns, codes and boxes are 4/91 of the logits and other values of an anchor 1/91: an
 * eighth separates them from logits and targets. Returns the number of large buffers. */
static int check_calls(const struct pm_planned_call *calls, size_t count,
                       const struct pm_value *values)
{
    const double large = logits_bytes(calls, count, values) / 8;
    int found = 0;

    for (size_t i = 0; i < count; i++) {
        const struct pm_planned_call *c = &calls[i];
        const bool forward = is(c, "detection_cls_fwd"), backward = is(c, "detection_cls_bwd");

        for (int k = 0; strcmp(c->label, "loss") == 0 && k < c->bufs; k++) {
            if (c->buf[k] < 0 || (double)values[c->buf[k]].bytes <= large)
                continue;
            if (!(k == 0 && (forward || backward)) && !(k == c->bufs - 1 && backward))
                fail_msg("buffer %d of %s has %zu bytes", k, c->kernel->name,
                         values[c->buf[k]].bytes);
            found++;
        }
    }
    return found;
}

static void losses(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        struct ready r = make_ready(files[i], "devices=cpu");
        const struct pm_plan *plan = pm_clones_plan(r.steps.clones, 0, 0);
        size_t count, values_count;
        const struct pm_planned_call *calls = pm_plan_calls(plan, &count);

        assert_true(check_calls(calls, count, pm_plan_values(plan, &values_count)) >= 3);
        drop_ready(&r);
    }
}

static void write_configs(void **state)
{
    (void)state;
    if (pm_file_write(in_folder(files[0]), ssd, sizeof ssd - 1) < 0 ||
        pm_file_write(in_folder(files[1]), fpn, sizeof fpn - 1) < 0)
        fail_msg("%s", pm_error_text());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_configs), cmocka_unit_test(on_cpu), cmocka_unit_test(on_lavapipe),
        cmocka_unit_test(on_swiftshader), cmocka_unit_test(losses),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(resident),
#endif
    };

    return run_commands("plan_memory", tests, PM_COUNT(tests), false);
}
