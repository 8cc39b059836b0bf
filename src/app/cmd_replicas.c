/* pumice replicas: a table of the processes of a training, and the speed of their connections. */
#include "app/processes.h"
#include "jobs/replicas_report.h"

#include <cjson/cJSON.h>
#include <string.h>

static double number(const cJSON *o, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key));
}

static const char *text_of(const cJSON *o, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(o, key));

    return text ? text : "";
}

/* ---- the table --------------------------------------------------------------------------- */

enum { RANK, HOST, CORES, DEVICES, DATA, VERSION, COLUMNS };
static const char *const titles[COLUMNS] = { "rank", "host", "cores", "devices", "data folder",
                                             "version" };

static void add_devices(const cJSON *list, struct pm_str *s)
{
    const cJSON *d;

    cJSON_ArrayForEach(d, list) {
        pm_str_add(s, "%s%s", s->length ? ", " : "", text_of(d, "address"));
        if (cJSON_HasObjectItem(d, "threads"))
            pm_str_add(s, " (%.0f %s)", number(d, "threads"),
                       pm_plural(number(d, "threads"), "thread", "threads"));
        else
            pm_str_add(s, " (%s)", text_of(d, "name"));
    }
}

static void fill_row(const cJSON *rank, struct pm_str *cell)
{
    const double cores = number(rank, "cores"), of = number(rank, "cores_of");
    const bool there = cJSON_IsTrue(cJSON_GetObjectItem(rank, "data_there"));
    const char *folder = text_of(rank, "data_folder");

    pm_str_add(&cell[RANK], "%.0f", number(rank, "rank"));
    pm_str_add(&cell[HOST], "%s", text_of(rank, "host"));
    pm_str_add(&cell[CORES], "%.0f", cores);
    if (cores < of)
        pm_str_add(&cell[CORES], " of %.0f", of);
    add_devices(cJSON_GetObjectItem(rank, "devices"), &cell[DEVICES]);
    pm_str_add(&cell[DATA], "%s%s", folder[0] ? folder : "not set",
               folder[0] && !there ? " (not there)" : "");
    pm_str_add(&cell[VERSION], "%s", text_of(rank, "version"));
}

static void add_table(const cJSON *ranks, struct pm_str *s)
{
    const int rows = cJSON_GetArraySize(ranks) + 1;
    struct pm_str (*cell)[COLUMNS] = pm_calloc((size_t)rows, sizeof *cell);
    size_t width[COLUMNS] = { 0 };

    for (int k = 0; k < COLUMNS; k++)
        pm_str_add(&cell[0][k], "%s", titles[k]);
    for (int i = 1; i < rows; i++)
        fill_row(cJSON_GetArrayItem(ranks, i - 1), cell[i]);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < COLUMNS; k++)
            width[k] = cell[i][k].length > width[k] ? cell[i][k].length : width[k];
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < COLUMNS; k++) {
            pm_str_name(s, cell[i][k].text, k + 1 < COLUMNS ? (int)width[k] : 0);
            pm_str_add(s, "%s", k + 1 < COLUMNS ? "  " : "\n");
            pm_str_free(&cell[i][k]);
        }
    pm_free(cell);
}

/* ---- measurements ------------------------------------------------------------------------ */

static void add_seconds(struct pm_str *s, double seconds)
{
    if (seconds < 1)
        pm_str_add(s, "%.3g ms", 1e3 * seconds);
    else
        pm_str_add(s, "%.3g s", seconds);
}

static void add_links(const cJSON *links, struct pm_str *s)
{
    const cJSON *o;

    cJSON_ArrayForEach(o, links) {
        const cJSON *ranks = cJSON_GetObjectItem(o, "ranks");

        pm_str_add(s, "ranks %.0f and %.0f: latency %.3g us, %.0f MB/s\n",
                   cJSON_GetNumberValue(cJSON_GetArrayItem(ranks, 0)),
                   cJSON_GetNumberValue(cJSON_GetArrayItem(ranks, 1)), number(o, "latency_us"),
                   number(o, "megabytes_per_second"));
    }
}

static void add_step(const cJSON *o, struct pm_str *s)
{
    const cJSON *hidden = cJSON_GetObjectItem(o, "hidden");

    if (!cJSON_HasObjectItem(o, "exchange_seconds")) {
        pm_str_add(s, "a step takes ");
        add_seconds(s, number(o, "alone_seconds"));
        pm_str_add(s, "\n");
        return;
    }
    pm_str_add(s, "an exchange of the net's %.0f gradients (%.1f MB, sent as %s) takes ",
               number(o, "gradients"), 1e-6 * number(o, "bytes"), text_of(o, "wire"));
    add_seconds(s, number(o, "exchange_seconds"));
    pm_str_add(s, "\na step takes ");
    add_seconds(s, number(o, "alone_seconds"));
    pm_str_add(s, " without the exchange and ");
    add_seconds(s, number(o, "seconds"));
    pm_str_add(s, " with it: ");
    if (cJSON_IsNumber(hidden))
        pm_str_add(s, "%.0f %% of the exchange takes place while the step computes\n",
                   100 * hidden->valuedouble);
    else
        pm_str_add(s, "the exchange is too short to matter\n");
}

static int print_text(const cJSON *report)
{
    const cJSON *step = cJSON_GetObjectItem(report, "step");
    struct pm_str s = { 0 };
    int err;

    add_table(cJSON_GetObjectItem(report, "ranks"), &s);
    add_links(cJSON_GetObjectItem(report, "links"), &s);
    if (step)
        add_step(step, &s);
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

/* ---- the command ------------------------------------------------------------------------- */

static int load(const struct app_args *args, struct pm_replicas *r, bool measured,
                struct pm_arena *a, struct pm_config **out)
{
    if (r)
        return app_share_config(args, "replicas", r, a, out);
    return measured ? app_load_training(args, "replicas", a, out)
                    : app_load_config(args, "replicas", 1, a, out);
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    cJSON *report = cJSON_CreateObject();
    const bool measured = app_take_flag(&argc, argv, "--measure");
    struct pm_replicas *replicas = NULL;
    struct pm_config *c = NULL;
    struct app_args args;
    int err = PM_OK;

    PM_TRY(app_args(argc, argv, "replicas", a, &args));
    PM_TRY(pm_replicas_join(&replicas));
    app_mark_log(replicas, g);
    PM_TRY(load(&args, replicas, measured, a, &c));
    PM_TRY(pm_replicas_report(c, replicas, measured, report));
    if (pm_replicas_rank(replicas) == 0)
        PM_TRY(g->json ? app_print_json(g, report) : print_text(report));
out:
    err = app_leave(&replicas, g, err);
    pm_config_destroy(&c);
    cJSON_Delete(report);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_replicas = {
    .name = "replicas", .help = "lists the processes of a training, and measures their network",
    .usage = "CONFIG.json [--measure] [key=value ...]",
    .details =
        "Run it as the training will run, with pumice launch, mpirun or srun. It prints the host\n"
        "of each process (rank), the cores that it may use, the devices that it would train on,\n"
        "whether its data folder is there, and its version. Nothing is trained or written.\n"
        "\n"
        "  --measure  also measures the connection of every two ranks: the time of a short\n"
        "             message, and the speed of long ones, one direction at a time. Then it takes\n"
        "             steps of the net on random pictures, with and without the exchange of its\n"
        "             gradients (run.exchange), and prints which part of the exchange takes place\n"
        "             while the step computes\n"
        "\n"
        "    pumice launch -n 2 replicas configs/shapes_classification.json devices=cpu\n"
        "    pumice launch --hosts big,small replicas x.json --measure run.exchange=bfloat16\n",
    .run = run,
};
