/* pumice profile: shows the time of a config's training step, call by call. */
#include "app/app.h"
#include "app/wrap.h"

#include <pumice/measure.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_CALLS = 25, TOP_LAYERS = 15, LEAST_NAME = 12 };

/* ---- reading the report ----------------------------------------------------------------- */

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    return v ? v->valuedouble : 0;
}

static const char *text(const cJSON *o, const char *key)
{
    const char *v = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

    return v ? v : "";
}

static double median(const cJSON *o, const char *key)
{
    return number(cJSON_GetObjectItemCaseSensitive(o, key), "median");
}

/* ---- tables ----------------------------------------------------------------------------- */

/* Returns a call's kernel, with the variant if there are several, in the form of PM_VARIANT. */
static const char *kernel_of(const cJSON *call, char buf[160])
{
    const char *kernel = text(call, "kernel"), *variant = text(call, "variant");

    if (strcmp(variant, "cpu") == 0 || strcmp(variant, kernel) == 0)
        return kernel;
    snprintf(buf, 160, "%s:%s", kernel, variant);
    return buf;
}

/* The parts of a table that fit: figures first, so only names are shortened. */
struct table {
    int width;
    bool gflops, gbytes;
    int kernel, layer; /* widths of the columns of names */
};

static struct table layout(const cJSON *calls)
{
    struct table t = { .width = app_columns(), .kernel = 6, .layer = 5 };
    const cJSON *o;
    char buf[160];
    int left;

    cJSON_ArrayForEach(o, calls)
    {
        int kernel = (int)strlen(kernel_of(o, buf)), layer = (int)strlen(text(o, "layer"));

        t.kernel = kernel > t.kernel ? kernel : t.kernel;
        t.layer = layer > t.layer ? layer : t.layer;
    }
    t.gflops = !t.width || t.width >= 66;
    t.gbytes = !t.width || t.width >= 74;
    if (!t.width)
        return t;
    left = t.width - 18 - 9 * t.gflops - 8 * t.gbytes - 10 - 4;
    if (t.layer + t.kernel > left && t.kernel > left / 2)
        t.kernel = t.layer < left / 2 ? left - t.layer : left / 2;
    t.kernel = t.kernel > LEAST_NAME ? t.kernel : LEAST_NAME;
    if (t.layer > left - t.kernel)
        t.layer = left - t.kernel > LEAST_NAME ? left - t.kernel : LEAST_NAME;
    return t;
}

/* Adds a name, at most width columns wide. It drops the beginning, because the end says more. */
static void add_name(struct pm_str *s, const char *name, int width)
{
    int n = (int)strlen(name);

    if (n > width) {
        pm_str_add(s, "..");
        name += n - width + 2;
        width -= 2;
    }
    pm_str_name(s, name, width);
}

static void end_line(struct pm_str *s)
{
    while (s->length > 0 && s->text[s->length - 1] == ' ')
        s->text[--s->length] = 0;
    pm_str_add(s, "\n");
}

static void add_heading(struct pm_str *s, const struct table *t)
{
    pm_str_add(s, "  %9s %6s", "ms", "share");
    if (t->gflops)
        pm_str_add(s, " %8s", "GFLOP/s");
    if (t->gbytes)
        pm_str_add(s, " %7s", "GB/s");
}

static void add_figures(struct pm_str *s, const struct table *t, const cJSON *o, double ms)
{
    pm_str_add(s, "  %9.3f %5.1f%%", ms, 100 * number(o, "share"));
    if (t->gflops)
        pm_str_add(s, " %8.1f", number(o, "gflops"));
    if (t->gbytes)
        pm_str_add(s, " %7.1f", number(o, "gbytes"));
}

static int by_falling_ms(const void *a, const void *b)
{
    const cJSON *const *x = a, *const *y = b;
    double p = median(*x, "ms"), q = median(*y, "ms");

    return (p < q) - (p > q);
}

static void add_calls(struct pm_str *s, const struct table *t, const cJSON *calls, bool all)
{
    size_t count = (size_t)cJSON_GetArraySize(calls), n = 0, shown;
    const cJSON **sorted = pm_calloc(count + 1, sizeof *sorted), *o;
    char buf[160];

    cJSON_ArrayForEach(o, calls) sorted[n++] = o;
    if (!all)
        qsort(sorted, count, sizeof *sorted, by_falling_ms);
    shown = all || count < TOP_CALLS ? count : TOP_CALLS;
    add_heading(s, t);
    pm_str_add(s, "  phase     %-*s  layer\n", t->kernel, "kernel");
    for (size_t i = 0; i < shown; i++) {
        add_figures(s, t, sorted[i], median(sorted[i], "ms"));
        pm_str_add(s, "  %-8s  ", text(sorted[i], "phase"));
        add_name(s, kernel_of(sorted[i], buf), t->kernel);
        pm_str_add(s, "  ");
        add_name(s, text(sorted[i], "layer"), t->layer);
        end_line(s);
    }
    if (shown < count)
        pm_str_add(s, "  and %zu calls more (-v shows all, in their order)\n", count - shown);
    pm_free(sorted);
}

static void add_sums(struct pm_str *s, const struct table *t, const cJSON *device,
                     const char *key, const char *heading, int most)
{
    const cJSON *list = cJSON_GetObjectItem(device, key), *o;
    int i = 0, name = t->width ? t->kernel + t->layer + 2 : 0;

    pm_str_add(s, "\n");
    add_heading(s, t);
    pm_str_add(s, "  calls  %s\n", heading);
    cJSON_ArrayForEach(o, list)
    {
        if (i++ == most)
            break;
        add_figures(s, t, o, number(o, "ms"));
        pm_str_add(s, "  %5.0f  ", number(o, "calls"));
        add_name(s, text(o, "name"), name ? name : (int)strlen(text(o, "name")));
        end_line(s);
    }
    if (cJSON_GetArraySize(list) > most)
        pm_str_add(s, "  and %d more (-v shows all)\n", cJSON_GetArraySize(list) - most);
}

static void add_device(struct pm_str *s, const cJSON *d, bool all)
{
    const cJSON *calls = cJSON_GetObjectItem(d, "calls");
    struct table t = layout(calls);

    pm_str_add(s, "\n%s: %s", text(d, "address"), text(d, "name"));
    if (cJSON_HasObjectItem(d, "threads"))
        pm_str_add(s, ", %.0f threads", number(d, "threads"));
    if (strcmp(text(d, "role"), "clone") == 0)
        pm_str_add(s, ", %.0f examples", number(d, "examples"));
    else
        pm_str_add(s, ", the optimizer on the host");
    pm_str_add(s, "\n%.3f ms a step in %d calls; copies and gaps %.3f ms\n",
               median(d, "ms_per_step"), cJSON_GetArraySize(calls), number(d, "rest_ms"));
    app_add_counts(s, d);
    pm_str_add(s, "\n\n");
    add_calls(s, &t, calls, all);
    add_sums(s, &t, d, "kernels", "kernel", all ? 1 << 30 : TOP_CALLS);
    add_sums(s, &t, d, "layers", "layer", all ? 1 << 30 : TOP_LAYERS);
    add_sums(s, &t, d, "phases", "phase", 3);
}

static int print_report(const cJSON *report, bool all)
{
    static const char *const words[] = { "waiting for data", "waiting for devices",
                                         "gradient average", "update and values", "other" };
    const cJSON *step = cJSON_GetObjectItem(report, "ms_per_step"), *o;
    struct pm_str s = { 0 };
    size_t k = 0;
    int err;

    pm_str_add(&s, "%s, batch %.0f, %s; %.0f steps, one by one, every call timed\n",
               text(report, "model"), number(report, "batch"),
               cJSON_IsTrue(cJSON_GetObjectItem(report, "synthetic"))
                   ? "one random batch" : "batches from the data", number(report, "steps"));
    pm_str_add(&s, "%.3f ms a step (%.3f to %.3f), on the host:\n", number(step, "median"),
               number(step, "min"), number(step, "max"));
    cJSON_ArrayForEach(o, cJSON_GetObjectItem(report, "host"))
    {
        if (median(o, "ms") > 0)
            pm_str_add(&s, "  %9.3f  %s\n", median(o, "ms"), words[k]);
        k++;
    }
    cJSON_ArrayForEach(o, cJSON_GetObjectItem(report, "devices")) add_device(&s, o, all);
    if (cJSON_HasObjectItem(report, "trace"))
        pm_str_add(&s, "\n%s: a timeline for chrome://tracing or ui.perfetto.dev\n",
                   text(report, "trace"));
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

/* ---- CSV -------------------------------------------------------------------------------- */

static int write_csv(const char *path, const cJSON *report)
{
    const cJSON *d, *o;
    struct pm_str s = { 0 };
    int err;

    pm_str_add(&s, "device,call,phase,layer,kernel,variant,ms,min_ms,max_ms,share,gflops,gbytes\n");
    cJSON_ArrayForEach(d, cJSON_GetObjectItem(report, "devices"))
        cJSON_ArrayForEach(o, cJSON_GetObjectItem(d, "calls"))
        {
            const cJSON *ms = cJSON_GetObjectItem(o, "ms");

            pm_str_add(&s, "%s%s,%.0f,%s,", text(d, "address"),
                       strcmp(text(d, "role"), "clone") == 0 ? "" : " optimizer",
                       number(o, "call"), text(o, "phase"));
            pm_str_csv(&s, text(o, "layer")); /* a name from the config or from an ONNX file */
            pm_str_add(&s, ",%s,%s,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", text(o, "kernel"),
                       text(o, "variant"), number(ms, "median"), number(ms, "min"),
                       number(ms, "max"), number(o, "share"), number(o, "gflops"),
                       number(o, "gbytes"));
        }
    err = pm_file_write(path, s.text, s.length);
    pm_str_free(&s);
    return err;
}

/* ---- the command ------------------------------------------------------------------------ */

static int take_count(int *argc, char **argv, const char *flag, int low, int *value)
{
    const char *given = NULL;
    char *end;
    long v;
    int err = PM_OK;

    PM_TRY(app_take_value(argc, argv, flag, &given));
    if (!given)
        return PM_OK;
    v = strtol(given, &end, 10);
    if (end == given || *end || v < low || v > 100000)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: %s: '%s' is not a whole number of %d to 100000",
                       flag, given, low));
    *value = (int)v;
out:
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_profile_options o = { .steps = 10, .warmup = 2 };
    cJSON *report = cJSON_CreateObject();
    struct pm_config *c = NULL;
    const char *csv = NULL;
    struct app_args args;
    int err = PM_OK;

    o.synthetic = app_take_flag(&argc, argv, "--synthetic");
    PM_TRY(take_count(&argc, argv, "--steps", 1, &o.steps));
    PM_TRY(take_count(&argc, argv, "--warmup", 0, &o.warmup));
    PM_TRY(app_take_value(&argc, argv, "--trace", &o.trace));
    PM_TRY(app_take_value(&argc, argv, "--csv", &csv));
    PM_TRY(app_args(argc, argv, "profile", a, &args));
    PM_TRY(app_load_training(&args, "profile", a, &c));
    PM_TRY(pm_profile(c, &o, report));
    if (!cJSON_IsTrue(cJSON_GetObjectItem(report, "finite")))
        PM_WARN("profile", "some gradients were not finite: those steps updated nothing, so the "
                "update's times are too short");
    if (csv)
        PM_TRY(write_csv(csv, report));
    PM_TRY(g->json ? app_print_json(g, report) : print_report(report, g->verbosity > 0));
out:
    pm_config_destroy(&c);
    cJSON_Delete(report);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_profile = {
    .name = "profile",
    .help = "measures each call, layer and kernel of a config's training step",
    .usage = "CONFIG.json [--synthetic] [--steps N] [--trace FILE] [--csv FILE] [key=value ...]",
    .details =
        "Runs training steps and measures every call, one after the other (on GPUs by\n"
        "timestamps). It writes nothing to the run folder.\n"
        "\n"
        "  --synthetic   uses one random batch from memory instead of the data\n"
        "  --steps N     number of measured steps (10); --warmup N: steps before them (2)\n"
        "  --trace FILE  writes a timeline of these steps for chrome://tracing or\n"
        "                ui.perfetto.dev: the calls and copies of every device, the loader's\n"
        "                threads, the host\n"
        "  --csv FILE    writes a line per call\n"
        "  -v            prints every call in the order of execution\n"
        "\n"
        "\"ms\" are medians over the steps; \"share\" is the share of the device's step. GFLOP/s\n"
        "counts the kernel's operations, GB/s the bytes of the buffers that it reads and writes,\n"
        "each once. The shader variant stands after the kernel's name and a colon, as in\n"
        "PM_VARIANT. To write such a timeline during a training, set run.trace_steps.\n"
        "\n"
        "    pumice profile configs/lenet_mnist.json run.batch_size=128\n"
        "    pumice profile photos.json --synthetic --trace step.json devices='[\"vulkan:0\"]'\n",
    .run = run,
};
