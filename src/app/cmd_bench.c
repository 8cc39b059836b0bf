/* pumice bench: measures a config's training step, and kernels on a device. */
#include "app/app.h"

#include <pumice/measure.h>

#include <cjson/cJSON.h>
#include <string.h>

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
        if (cJSON_HasObjectItem(d, "examples"))
            pm_str_add(s, ", %.0f of the batch", number(d, "examples"));
        pm_str_add(s, "\n");
    }
}

static void add_phases(struct pm_str *s, const cJSON *report)
{
    const cJSON *p;

    if (!cJSON_HasObjectItem(report, "phases"))
        return;
    pm_str_add(s, "\nof a step, in ms (host: beside the devices; theirs with every call timed)\n");
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(report, "phases"))
        pm_str_add(s, "  %-10s %-18s %9.3f   %.3f to %.3f\n", text(p, "where"), text(p, "name"),
                   spread(p, "ms", "median"), spread(p, "ms", "min"), spread(p, "ms", "max"));
    pm_str_add(s, "  %-10s %-18s %9.3f   %.3f to %.3f\n", "", "timed step",
               spread(report, "timed_ms_per_step", "median"),
               spread(report, "timed_ms_per_step", "min"),
               spread(report, "timed_ms_per_step", "max"));
}

static void add_memory_and_counts(struct pm_str *s, const cJSON *report)
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
    pm_str_add(s, "\neach step\n");
    cJSON_ArrayForEach(d, cJSON_GetObjectItem(report, "devices"))
    {
        pm_str_add(s, "  %-10s ", text(d, "address"));
        app_add_counts(s, d);
        pm_str_add(s, "\n");
    }
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
    add_memory_and_counts(&s, report);
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

/* ---- CSV -------------------------------------------------------------------------------- */

/* Adds the source of a table of figures: the command, the version, the devices. */
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
    if (cJSON_HasObjectItem(report, "phases"))
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
    const bool synthetic = app_take_flag(&argc, argv, "--synthetic");
    const bool predict = app_take_flag(&argc, argv, "--predict");

    PM_TRY(app_take_number(&argc, argv, "--steps", 1, 1e6, &steps));
    PM_TRY(app_take_number(&argc, argv, "--warmup", 0, 1e6, &warmup));
    PM_TRY(app_take_number(&argc, argv, "--seconds", 0, 1e6, &seconds));
    PM_TRY(app_take_value(&argc, argv, "--csv", &csv));
    PM_TRY(app_args(argc, argv, "bench", a, &args));
    PM_TRY(app_load_training(&args, "bench", a, &c));
    PM_TRY((predict ? pm_bench_predict : pm_bench_step)(c, &(struct pm_bench_options){
        .steps = (int)steps, .warmup = (int)warmup, .seconds = seconds, .synthetic = synthetic },
        report));
    if (cJSON_IsFalse(cJSON_GetObjectItem(report, "finite")))
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

/* ---- kernels ---------------------------------------------------------------------------- */

static void kernels_head(struct pm_str *s, const cJSON *report)
{
    const cJSON *peak = cJSON_GetObjectItem(report, "peak");
    char bytes[24];

    pm_str_add(s, "peak, measured: %.1f GFLOP/s of multiply-adds in registers, %.1f GB/s copying "
               "%s\n", number(peak, "gflops"), number(peak, "gigabytes_per_second"),
               pm_bytes_text((uint64_t)number(peak, "copy_bytes"), bytes));
}

static void print_head(const cJSON *report)
{
    struct pm_str s = { 0 };

    if (cJSON_HasObjectItem(report, "peak"))
        kernels_head(&s, report);
    pm_str_add(&s, "\n%-12s %-8s %-42s %4s %10s %10s %8s %7s %6s %6s  %s\n", "net", "pass", "shape",
               "uses", "ms", "median", "GFLOP/s", "GB/s", "peak", "bound", "variant");
    app_print(s.text);
    pm_str_free(&s);
}

static void print_row(const cJSON *r)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "%-12s %-8s %-42s %4.0f", text(r, "net"), text(r, "pass"), text(r, "shape"),
               number(r, "uses"));
    if (cJSON_HasObjectItem(r, "ms"))
        pm_str_add(&s, " %10.4f %10.4f %8.1f %7.1f %5.1f%% %5.1f%%  %s", spread(r, "ms", "min"),
                   spread(r, "ms", "median"), number(r, "gflops"),
                   number(r, "gigabytes_per_second"), 100 * number(r, "share_of_peak"),
                   100 * number(r, "share_of_bound"), text(r, "variant"));
    pm_str_add(&s, "\n");
    app_print(s.text);
    pm_str_free(&s);
}

static int print_totals(const cJSON *report)
{
    struct pm_str s = { 0 };
    const cJSON *t;
    int err;

    if (number(report, "rows_left") > 0)
        pm_str_add(&s, "\n%.0f row%s left out, because --limit was reached: the sums lack them\n",
                   number(report, "rows_left"), number(report, "rows_left") == 1 ? "" : "s");
    pm_str_add(&s, "\nof a step, uses counted\n");
    cJSON_ArrayForEach(t, cJSON_GetObjectItem(report, "totals"))
        pm_str_add(&s, "%-12s %-8s %10.3f ms %8.1f GFLOP/s %5.1f%% of the peak\n", text(t, "net"),
                   text(t, "pass"), number(t, "ms"), number(t, "gflops"),
                   100 * number(t, "share_of_peak"));
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

/* The table of --csv. The file is written about once a second while rows are added, so that an
 * interrupted measurement leaves its finished rows. */
struct kernels_out {
    const char *csv, *command; /* csv: file, or NULL */
    bool print;
    struct pm_str table;
    double written;      /* pm_seconds() of the last write */
};

static int write_table(struct kernels_out *o)
{
    o->written = pm_seconds();
    return pm_file_write(o->csv, o->table.text, o->table.length);
}

static void start_table(struct pm_str *s, const char *command, const cJSON *report)
{
    csv_head(s, command, cJSON_GetObjectItem(report, "devices"));
    pm_str_add(s, "# ");
    kernels_head(s, report);
    pm_str_add(s, "# rates and shares are of the fastest run; bound: the time that the peaks "
               "would take, over it\n"
               "net,pass,kernel,shape,uses,variant,runs,ms_min,ms_median,flops,bytes,gflops,gbs,"
               "share_of_peak,share_of_bound\n");
}

static void add_table_row(struct pm_str *s, const cJSON *r)
{
    pm_str_add(s, "%s,%s,%s,%s,%.0f,%s,%.0f,%.5g,%.5g,%.0f,%.0f,%.4g,%.4g,%.3f,%.3f\n",
               text(r, "net"), text(r, "pass"), text(r, "kernel"), text(r, "shape"),
               number(r, "uses"), text(r, "variant"), number(r, "runs"), spread(r, "ms", "min"),
               spread(r, "ms", "median"), number(r, "flops"), number(r, "bytes"),
               number(r, "gflops"), number(r, "gigabytes_per_second"), number(r, "share_of_peak"),
               number(r, "share_of_bound"));
}

static void kernels_start(void *ctx, const cJSON *report)
{
    struct kernels_out *o = ctx;

    if (o->print)
        print_head(report);
    if (o->csv)
        start_table(&o->table, o->command, report);
}

static int kernels_row(void *ctx, const cJSON *r)
{
    struct kernels_out *o = ctx;

    if (o->print)
        print_row(r);
    if (!o->csv)
        return PM_OK;
    add_table_row(&o->table, r);
    return pm_seconds() - o->written > 1 ? write_table(o) : PM_OK;
}

static int open_device(const char *name, struct pm_device **out)
{
    struct pm_device_info *list = NULL;
    size_t count, index;
    int err = PM_OK;

    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, name, "command line", &index));
    PM_TRY(pm_device_open(&list[index], NULL, out));
out:
    pm_free(list);
    return err;
}

static void describe_device(const struct pm_device *d, cJSON *report)
{
    const struct pm_device_info *info = pm_device_get_info(d);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(report, "version", PUMICE_VERSION);
    cJSON_AddStringToObject(o, "address", info->address);
    cJSON_AddStringToObject(o, "name", info->name);
    cJSON_AddStringToObject(o, "driver", info->driver);
    if (info->caps.threads > 0)
        cJSON_AddNumberToObject(o, "threads", pm_device_caps(d)->threads);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(report, "devices"), o);
}

static int bench_kernels(int argc, char **argv, struct pm_arena *a, struct app_globals *g)
{
    struct kernels_out out = { .command = command_line(a, argc, argv), .print = !g->json };
    struct pm_kernels_options o = { .start = kernels_start, .row = kernels_row, .ctx = &out };
    double batch = 0, seconds = 0.3;
    cJSON *report = cJSON_CreateObject();
    struct pm_device *d = NULL;
    struct app_args args;
    int err = PM_OK;

    o.list_only = app_take_flag(&argc, argv, "--list");
    PM_TRY(app_take_value(&argc, argv, "--filter", &o.filter));
    PM_TRY(app_take_value(&argc, argv, "--csv", &out.csv));
    PM_TRY(app_take_number(&argc, argv, "--batch", 1, 4096, &batch));
    PM_TRY(app_take_number(&argc, argv, "--seconds", 0, 3600, &seconds));
    PM_TRY(app_take_number(&argc, argv, "--limit", 0, 1e6, &o.limit));
    PM_TRY(app_args(argc, argv, "bench", a, &args));
    if (args.words_count > 2 || args.overrides_count > 0)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: bench kernels takes one device at most, as in "
                       "pumice bench kernels vulkan:0"));
    if (out.csv && o.list_only)
        PM_TRY(
            pm_fail(PM_ECONFIG,
                    "command line: --list measures nothing, so it cannot be combined with --csv"));
    o.batch = (int)batch;
    o.seconds = seconds;
    PM_TRY(open_device(args.words_count > 1 ? args.words[1] : "auto", &d));
    describe_device(d, report);
    if (!g->json) {
        struct pm_str s = { 0 };

        add_devices(&s, report);
        app_print(s.text);
        pm_str_free(&s);
    }
    PM_TRY(pm_bench_kernels(d, &o, report));
    if (out.csv)
        PM_TRY(write_table(&out));
    if (g->json)
        PM_TRY(app_print_json(g, report));
    else if (!o.list_only)
        PM_TRY(print_totals(report));
out:
    pm_device_close(&d);
    pm_str_free(&out.table);
    cJSON_Delete(report);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    bool kernels = argc > 0 && strcmp(argv[0], "kernels") == 0;
    int err = kernels ? bench_kernels(argc, argv, a, g) : bench_step(argc, argv, a, g);

    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_bench = {
    .name = "bench",
    .help = "measures a config's training step by phase, or kernels on a device",
    .usage = "CONFIG.json [--synthetic | --predict] [--steps N] [--csv FILE] [key=value ...]\n"
             "kernels [DEVICE] [--filter TEXT] [--batch N] [--seconds S] [--limit S] [--csv FILE]\n"
             "kernels [DEVICE] [--filter TEXT] [--batch N] --list",
    .details =
        "With a config: measures training steps as `train` runs them. It writes nothing to the\n"
        "run folder.\n"
        "\n"
        "  --synthetic   uses one random batch from memory: measures the devices alone, without\n"
        "                reading and decoding. The data are needed only for the number of\n"
        "                classes, unless model.num_classes is set\n"
        "  --predict     measures prediction instead: the net with its outputs, for detectors\n"
        "                with suppression, on random pictures. A step is then a batch of\n"
        "                eval.batch_size pictures on the first device\n"
        "  --steps N     number of measured steps (20); --warmup N: steps before them (3)\n"
        "  --seconds S   begins no further step after this time (60), except the first three\n"
        "  --csv FILE    also writes the figures as a table\n"
        "\n"
        "Figures are medians, then the smallest and the largest. Large differences mean that\n"
        "the machine had other work. During the host's phase \"data\", devices can be idle: if it\n"
        "is a large part of a step, raise data.threads or use smaller pictures. The phases of\n"
        "the devices are measured in extra steps, call by call. Their sum exceeds the step's\n"
        "time if steps and calls overlap.\n"
        "\n"
        "kernels: measures matrix products and convolutions of well-known nets in the sizes of a\n"
        "training step, forward and both gradients, and compares them with the device's peak. It\n"
        "measures the peak first: multiply-adds in registers, and a copy that is too large for\n"
        "the caches.\n"
        "\n"
        "  --filter TEXT rows that contain TEXT in \"net pass shape\": \"resnet_v1_50 data\"\n"
        "  --batch N     pictures per batch (8 on the CPU and software drivers, else 32); a\n"
        "                quarter of it for deeplab\n"
        "  --seconds S   time to repeat each row (0.3), at least twice\n"
        "  --limit S     begins no further row after S seconds in all; 0, the default, sets no\n"
        "                limit. --csv keeps the finished rows of an interrupted measurement, too\n"
        "  --list        prints the rows without measuring them\n"
        "\n"
        "GFLOP/s, GB/s (of the call's buffers) and shares are those of the fastest run. \"peak\"\n"
        "is the share of the peak of multiply-adds. \"bound\" is the time that the peaks allow\n"
        "(by operations or by bytes, whichever is longer) as a share of the measured time. A\n"
        "low \"peak\" with a high \"bound\" means that the kernel waits for memory, as depthwise\n"
        "convolutions do. Small shapes stay in caches and can be faster than the copy. \"uses\"\n"
        "is the number of such calls in a training step.\n"
        "\n"
        "    pumice bench configs/lenet_mnist.json --synthetic run.batch_size=128\n"
        "    pumice bench photos.json --steps 50 devices='[\"vulkan:0\"]' --json\n"
        "    pumice bench kernels vulkan:0 --filter resnet_v1_50 --csv resnet.csv\n",
    .run = run,
};
