/* pumice eval: evaluates one checkpoint in exactly one pass over the evaluation split. */
#include "app/app.h"
#include "app/print_evaluation.h"

#include <pumice/checkpoint.h>
#include <pumice/formats.h>
#include <pumice/task.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <unistd.h>

/* Evaluates and prints once. watching: this is one of many evaluations. */
static int evaluate(const struct pm_config *c, struct app_globals *g, bool watching,
                    struct pm_events **events)
{
    const char *unit = pm_task_find(c->task)->unit;
    struct cJSON *report = cJSON_CreateObject();
    struct pm_str text = { 0 };
    int err = PM_OK;

    PM_TRY(pm_evaluate(c, report));
    pm_evaluation_keep(c, report, events);
    if (g->json) {
        PM_TRY(app_print_json(g, report));
        goto out;
    }
    app_evaluation_text(report, unit ? unit : "pictures", !watching, &text);
    PM_TRY(app_print(text.text));
out:
    pm_str_free(&text);
    cJSON_Delete(report);
    return err;
}

/* Whether training removed a checkpoint while it was being read, because a newer one exists. */
static bool is_overtaken(const struct pm_config *c, int err, int64_t step)
{
    return err == PM_EDATA && pm_checkpoint_newest_step(c->run.folder) > step;
}

/* Whether training may end at another step than run.steps. */
static bool may_end_before(const struct pm_config *c)
{
    return c->run.steps < 1 || !isnan(c->run.epochs) || c->early_stop;
}

/* Evaluates every new checkpoint of the run as training writes it, until interrupted, run.steps,
 * eval.max_runs, or the end of a run whose last step is not known. It checks every second;
 * evaluations begin at least eval.interval_secs apart. */
static int watch(const struct pm_config *c, struct app_globals *g)
{
    struct pm_events *events = NULL;
    double next_at = 0;
    int64_t seen = -1;
    int runs = 0, err = PM_OK;

    PM_TRY(pm_config_need(c, "run.folder", c->run.folder));
    for (;;) {
        int64_t step = pm_checkpoint_newest_step(c->run.folder);

        if (step > seen && pm_seconds() >= next_at) {
            next_at = pm_seconds() + c->eval.interval_secs;
            err = evaluate(c, g, true, &events);
            if (is_overtaken(c, err, step)) {
                next_at = 0;
                continue;
            }
            PM_TRY(err);
            seen = step;
            runs++;
        }
        if ((c->run.steps > 0 && seen >= c->run.steps) ||
            (may_end_before(c) && pm_run_is_finished(c->run.folder, seen)) ||
            (c->eval.max_runs > 0 && runs >= c->eval.max_runs))
            break;
        sleep(1);
    }
out:
    pm_events_close(&events);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;
    struct pm_events *events = NULL;
    struct app_args args;
    bool watching = app_take_flag(&argc, argv, "--watch");
    int err = PM_OK;

    PM_TRY(app_args(argc, argv, "eval", a, &args));
    PM_TRY(app_load_config(&args, "eval", 1, a, &c));
    if (watching && g->json)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: --watch prints many results, --json one; use "
                                   "only one of the two flags"));
    PM_TRY(watching ? watch(c, g) : evaluate(c, g, false, &events));
out:
    pm_events_close(&events);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_eval = {
    .name = "eval", .help = "evaluates a checkpoint in exactly one pass over a split",
    .usage = "CONFIG.json|RUN [--watch] [key=value ...]",
    .details =
        "Evaluates the newest checkpoint of run.folder on data.eval_split. eval.checkpoint\n"
        "selects another checkpoint: a step, \"best\", a file or a folder. Every picture counts\n"
        "once.\n"
        "\n"
        "Prints the metrics, and the figures of each class. If there are many classes, it prints\n"
        "the worst ones; --json has all. RUN/eval_SPLIT gets an event file for TensorBoard,\n"
        "per_class.csv, and the samples that report.html shows. A checkpoint of another run or\n"
        "program gets an event file in a folder of its own in RUN/eval_SPLIT.\n"
        "\n"
        "  --watch   evaluates each new checkpoint of a running training, at most once in\n"
        "            eval.interval_secs seconds, until run.steps, the end of the training or\n"
        "            eval.max_runs evaluations\n"
        "\n"
        "  pumice eval configs/lenet_mnist.json eval.checkpoint=best --json\n",
    .run = run,
};
