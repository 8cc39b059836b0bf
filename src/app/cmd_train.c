/* pumice train: starts or resumes the run of a config. */
#include "app/processes.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>

/* ---- --dry-run -------------------------------------------------------------------------- */

static double number(const cJSON *o, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key));
}

static void add_total(struct pm_str *s, const cJSON *report)
{
    const double steps = number(report, "steps"), first = number(report, "first_step");

    if (steps == 0) {
        pm_str_add(s, "run.steps is 0: training ends when it is stopped\n");
        return;
    }
    if (first > 0 && first >= steps) {
        pm_str_add(s, "the run is at step %.0f of %.0f: nothing is left to train\n", first, steps);
        return;
    }
    if (first > 0)
        pm_str_add(s, "the run continues at step %.0f; ", first);
    pm_str_add(s, "%.0f %s about ", steps - first,
               pm_plural(steps - first, "step takes", "steps take"));
    pm_str_duration(s, number(report, "seconds"));
    pm_str_add(s, ", without evaluations and checkpoints\n");
}

static int print_dry_run(const cJSON *report)
{
    struct pm_str s = { 0 };
    const cJSON *d;
    char bytes[24], host[24];

    pm_str_add(&s, "%s: %s, batch %.0f; nothing was written\n",
               cJSON_GetStringValue(cJSON_GetObjectItem(report, "config")),
               cJSON_GetStringValue(cJSON_GetObjectItem(report, "model")),
               number(report, "batch"));
    cJSON_ArrayForEach(d, cJSON_GetObjectItem(report, "devices"))
        pm_str_add(&s, "%s (%s), %.0f %s of a batch: %s of memory, and %s on the host\n",
                   cJSON_GetStringValue(cJSON_GetObjectItem(d, "address")),
                   cJSON_GetStringValue(cJSON_GetObjectItem(d, "name")), number(d, "examples"),
                   pm_plural(number(d, "examples"), "picture", "pictures"),
                   pm_bytes_text((uint64_t)number(d, "memory_bytes"), bytes),
                   pm_bytes_text((uint64_t)number(cJSON_GetObjectItem(d, "memory"), "staging"),
                                 host));
    pm_str_add(&s, "a step takes ");
    pm_str_duration(&s, number(report, "seconds_per_step"));
    pm_str_add(&s, ", %.1f pictures a second (mean of three steps)\n",
               number(report, "images_per_second"));
    add_total(&s, report);
    int err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

static int dry_run(const struct pm_config *c, struct app_globals *g)
{
    cJSON *report = cJSON_CreateObject();
    int err = PM_OK;

    PM_TRY(pm_dry_run(c, report));
    PM_TRY(g->json ? app_print_json(g, report) : print_dry_run(report));
out:
    cJSON_Delete(report);
    return err;
}

/* ---- the command ------------------------------------------------------------------------ */

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct cJSON *summary = cJSON_CreateObject();
    struct pm_replicas *replicas = NULL;
    struct pm_config *c = NULL;
    struct app_args args;
    int signal = 0, err = PM_OK;
    const bool dry = app_take_flag(&argc, argv, "--dry-run");

    PM_TRY(app_args(argc, argv, "train", a, &args));
    if (dry) {
        if (pm_replicas_launched())
            PM_TRY(pm_fail(PM_ECONFIG, "command line: --dry-run measures one process: start it "
                                       "without mpirun"));
        PM_TRY(app_load_training(&args, "train", a, &c));
        PM_TRY(dry_run(c, g));
        goto out;
    }
    PM_TRY(pm_replicas_join(&replicas));
    app_mark_log(replicas, g);
    PM_TRY(replicas ? app_share_config(&args, "train", replicas, a, &c)
                    : app_load_training(&args, "train", a, &c));
    PM_TRY(pm_train(c, replicas, &signal, summary));
    if (g->json && pm_replicas_rank(replicas) == 0)
        PM_TRY(app_print_json(g, summary));
out:
    err = app_leave(&replicas, g, err);
    if (err == PM_OK && signal)
        err = 128 + signal;
    pm_config_destroy(&c);
    cJSON_Delete(summary);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_train = {
    .name = "train",
    .help = "trains a net; continues from the newest checkpoint of the run folder",
    .usage = "CONFIG.json [--dry-run] [key=value ...]",
    .details =
        "Trains up to step run.steps, or for run.epochs passes over the data; one of them must be\n"
        "set. It writes the resolved config, checkpoints, metrics.jsonl, report.html and log.txt\n"
        "to the run folder, run.folder. If this folder has checkpoints, training continues from\n"
        "the newest one; keys that would make it another run, such as the net, are then refused.\n"
        "These end the training after a checkpoint: Ctrl-C (exit code 130), a closed terminal\n"
        "(129; not under nohup), a closed pipe (141) and SIGTERM (143).\n"
        "\n"
        "  --dry-run  trains nothing: checks everything, measures a few steps, and prints the\n"
        "             memory of each device, the time of a step and of all steps. The run folder\n"
        "             is not touched\n"
        "\n"
        "Several processes train one model together, on one or more machines. pumice launch\n"
        "starts them: docs/replicas.md.\n"
        "\n"
        "  pumice train configs/shapes_classification.json\n"
        "  pumice train configs/shapes_segmentation.json\n"
        "  pumice train configs/lenet_mnist.json run.steps=300 devices='[\"vulkan:0\", \"cpu\"]'\n",
    .run = run,
};
