/* pumice bench: how fast a config's training step is, and how fast kernels are on a device. */
#include "app/app.h"

#include <pumice/measure.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* ---- flags ------------------------------------------------------------------------------ */

/* A number of low..high after flag; *value is left alone when the flag is absent. */
static int take_number(int *argc, char **argv, const char *flag, double low, double high,
                       double *value)
{
    const char *text = NULL;
    char *end;
    double v;
    int err = PM_OK;

    PM_TRY(app_take_value(argc, argv, flag, &text));
    if (!text)
        return PM_OK;
    v = strtod(text, &end);
    if (end == text || *end || !(v >= low && v <= high))
        PM_TRY(pm_fail(PM_ECONFIG, "command line: %s: '%s' is no number of %g to %g", flag, text,
                       low, high));
    *value = v;
out:
    return err;
}

/* ---- reading a report ------------------------------------------------------------------- */

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);

    return v ? v->valuedouble : 0;
}

static const char *text(const cJSON *o, const char *key)
{
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItem(o, key));

    return v ? v : "";
}

static double spread(const cJSON *o, const char *key, const char *which)
{
    return number(cJSON_GetObjectItem(o, key), which);
}

/* ---- a config's step: text -------------------------------------------------------------- */

static void add_devices(struct pm_str *s, const cJSON *report)
{
    const cJSON *d;

    cJSON_ArrayForEach(d, cJSON_GetObjectItem(report, "devices"))
    {
        pm_str_add(s, "%s: %s, %s", text(d, "address"), text(d, "name"), text(d, "driver"));
        if (cJSON_HasObjectItem(d, "threads"))
            pm_str_add(s, ", %.0f threads", number(d, "threads"));
        pm_str_add(s, ", %.0f of the batch\n", number(d, "examples"));
    }
}

static void add_phases(struct pm_str *s, const cJSON *report)
{
    const cJSON *p;

    pm_str_add(s, "\nof a step, in ms (host: beside the devices; theirs with every call timed)\n");
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(report, "phases"))
        pm_str_add(s, "  %-10s %-18s %9.3f   %.3f to %.3f\n", text(p, "where"), text(p, "name"),
                   spread(p, "ms", "median"), spread(p, "ms", "min"), spread(p, "ms", "max"));
    pm_str_add(s, "  %-10s %-18s %9.3f   %.3f to %.3f\n", "", "timed step",
               spread(report, "timed_ms_per_step", "median"),
               spread(report, "timed_ms_per_step", "min"),
               spread(report, "timed_ms_per_step", "max"));
}

static void add_memory(struct pm_str *s, const cJSON *report)
{
    static const char *const classes[] = { "activations", "variables", "gradients", "slots",
                                           "constants", "staging" };
    const cJSON *d;
    char bytes[24];

    pm_str_add(s, "\nmemory\n");
    cJSON_ArrayForEach(d, cJSON_GetObjectItem(report, "devices"))
    {
        pm_str_add(s, "  %-10s", text(d, "address"));
        for (size_t i = 0; i < PM_COUNT(classes); i++)
            pm_str_add(s, "%s %s %s", i ? "," : "", classes[i],
                       pm_bytes_text((uint64_t)number(cJSON_GetObjectItem(d, "memory"),
                                                      classes[i]), bytes));
        pm_str_add(s, "\n");
    }
    pm_str_add(s, "  %-10s at most %s\n", "process",
               pm_bytes_text((uint64_t)number(report, "host_peak_bytes"), bytes));
}

static int print_step(const cJSON *report)
{
    struct pm_str s = { 0 };
    int err;

    pm_str_add(&s, "%s, batch %.0f, %s\n", text(report, "model"), number(report, "batch"),
               cJSON_IsTrue(cJSON_GetObjectItem(report, "synthetic"))
                   ? "one random batch from memory" : "batches from the data");
    add_devices(&s, report);
    pm_str_add(&s, "\n  %-29s %9.3f   %.3f to %.3f, %.0f steps\n", "ms a step",
               spread(report, "ms_per_step", "median"), spread(report, "ms_per_step", "min"),
               spread(report, "ms_per_step", "max"), number(report, "steps"));
    pm_str_add(&s, "  %-29s %9.1f   %.1f to %.1f\n", "images a second",
               spread(report, "images_per_second", "median"),
               spread(report, "images_per_second", "min"),
               spread(report, "images_per_second", "max"));
    add_phases(&s, report);
    add_memory(&s, report);
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

/* ---- CSV -------------------------------------------------------------------------------- */

/* What a table of figures needs to be quoted: the command, the version, the devices. */
static void csv_head(struct pm_str *s, const char *command, const cJSON *devices)
{
    const cJSON *d;

    pm_str_add(s, "# %s\n# pumice " PUMICE_VERSION "\n", command);
    cJSON_ArrayForEach(d, devices)
    {
        pm_str_add(s, "# %s: %s; %s", text(d, "address"), text(d, "name"), text(d, "driver"));
        if (cJSON_HasObjectItem(d, "threads"))
            pm_str_add(s, "; %.0f threads", number(d, "threads"));
        pm_str_add(s, "\n");
    }
}

static void csv_row(struct pm_str *s, const char *name, const char *where, const char *unit,
                    const cJSON *o, const char *key)
{
    pm_str_add(s, "%s,%s,%s,%.6g,%.6g,%.6g\n", name, where, unit, spread(o, key, "min"),
               spread(o, key, "median"), spread(o, key, "max"));
}

static int write_step_csv(const char *path, const char *command, const cJSON *report)
{
    const cJSON *devices = cJSON_GetObjectItem(report, "devices"), *p;
    struct pm_str s = { 0 };
    int err;

    csv_head(&s, command, devices);
    pm_str_add(&s, "name,where,unit,min,median,max\n");
    csv_row(&s, "step", "", "ms", report, "ms_per_step");
    csv_row(&s, "images_per_second", "", "images/s", report, "images_per_second");
    csv_row(&s, "timed step", "", "ms", report, "timed_ms_per_step");
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(report, "phases"))
        csv_row(&s, text(p, "name"), text(p, "where"), "ms", p, "ms");
    cJSON_ArrayForEach(p, devices)
    {
        const double bytes = number(p, "memory_bytes");

        pm_str_add(&s, "device memory,%s,bytes,%.0f,%.0f,%.0f\n", text(p, "address"), bytes, bytes,
                   bytes);
    }
    err = pm_file_write(path, s.text, s.length);
    pm_str_free(&s);
    return err;
}

/* ---- the command ------------------------------------------------------------------------ */

static char *command_line(struct pm_arena *a, int argc, char **argv)
{
    char *line = pm_arena_strdup(a, "pumice bench");

    for (int i = 0; i < argc; i++)
        line = pm_arena_printf(a, "%s %s", line, argv[i]);
    return line;
}

static int bench_step(int argc, char **argv, struct pm_arena *a, struct app_globals *g)
{
    const char *command = command_line(a, argc, argv), *csv = NULL;
    double steps = 20, warmup = 3, seconds = 60;
    cJSON *report = cJSON_CreateObject();
    struct pm_config *c = NULL;
    struct app_args args;
    int err = PM_OK;
    bool synthetic = app_take_flag(&argc, argv, "--synthetic");

    PM_TRY(take_number(&argc, argv, "--steps", 1, 1e6, &steps));
    PM_TRY(take_number(&argc, argv, "--warmup", 0, 1e6, &warmup));
    PM_TRY(take_number(&argc, argv, "--seconds", 0, 1e6, &seconds));
    PM_TRY(app_take_value(&argc, argv, "--csv", &csv));
    PM_TRY(app_args(argc, argv, "bench", a, &args));
    PM_TRY(app_load_config(&args, "bench", 1, a, &c));
    PM_TRY(pm_bench_step(c, &(struct pm_bench_options){
        .steps = (int)steps, .warmup = (int)warmup, .seconds = seconds, .synthetic = synthetic },
        report));
    if (!cJSON_IsTrue(cJSON_GetObjectItem(report, "finite")))
        PM_WARN("bench", "some gradients were not finite: those steps updated nothing, so their "
                "times are too short");
    if (csv)
        PM_TRY(write_step_csv(csv, command, report));
    PM_TRY(g->json ? app_print_json(g, report) : print_step(report));
out:
    pm_config_destroy(&c);
    cJSON_Delete(report);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    int err = bench_step(argc, argv, a, g);

    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_bench = {
    .name = "bench",
    .help = "how fast a config's training step is: time by phase, images/s, memory",
    .usage = "CONFIG.json [--synthetic] [--steps N] [--csv FILE] [key=value ...]",
    .details =
        "Takes training steps as `train` would and writes nothing to the run folder.\n"
        "\n"
        "  --synthetic   one random batch from memory: the speed of the devices alone, without\n"
        "                reading and decoding (the data is not needed, but for the number of\n"
        "                classes, or give model.num_classes)\n"
        "  --steps N     steps that count (20); --warmup N: steps before them (3)\n"
        "  --seconds S   no further step begins after so long (60), but three are taken\n"
        "  --csv FILE    the figures as a table too\n"
        "\n"
        "Figures are medians, then the smallest and the largest. Large differences mean that the\n"
        "machine had other work. \"wait for data\" is time in which the devices may be idle: when\n"
        "it is a large part of a step, give data.threads more cores or use smaller pictures.\n"
        "Phases of the devices come from steps taken one by one, with every call timed, so their\n"
        "sum is more than the step's time where steps and calls overlap.\n"
        "\n"
        "    pumice bench configs/lenet_mnist.json --synthetic run.batch_size=128\n"
        "    pumice bench photos.json --steps 50 devices='[\"vulkan:0\"]' --json\n",
    .run = run,
};
