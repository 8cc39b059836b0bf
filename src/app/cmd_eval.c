/* pumice eval: one checkpoint, exactly one pass over the evaluation split. */
#include "app/app.h"

#include <pumice/checkpoint.h>
#include <pumice/formats.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <unistd.h>

/* events: where the result goes besides, or NULL. */
static int evaluate(const struct pm_config *c, struct app_globals *g, struct pm_events **events)
{
    struct cJSON *report = cJSON_CreateObject();
    const struct cJSON *m;
    struct pm_str text = { 0 };
    int err = PM_OK;

    PM_TRY(pm_evaluate(c, report));
    if (events)
        pm_evaluation_events(c, report, events);
    if (g->json) {
        PM_TRY(app_print_json(g, report));
        goto out;
    }
    pm_str_add(&text, "step %.0f%s, %.0f pictures in %.1f s\n",
               cJSON_GetObjectItem(report, "step")->valuedouble,
               cJSON_IsTrue(cJSON_GetObjectItem(report, "averages")) ? ", moving averages" : "",
               cJSON_GetObjectItem(report, "count")->valuedouble,
               cJSON_GetObjectItem(report, "seconds")->valuedouble);
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(report, "metrics")) if (cJSON_IsNumber(m))
        pm_str_add(&text, "  %-14s %.4f\n", m->string, m->valuedouble);
    PM_TRY(app_print(text.text));
out:
    pm_str_free(&text);
    cJSON_Delete(report);
    return err;
}

/* Every new checkpoint of the run, as training writes them, until interrupted, run.steps or
 * eval.max_runs. */
static int watch(const struct pm_config *c, struct app_globals *g)
{
    struct pm_events *events = NULL;
    int64_t seen = -1;
    int runs = 0, err = PM_OK;

    PM_TRY(pm_config_need(c, "run.folder", c->run.folder));
    for (;;) {
        int64_t step = pm_checkpoint_newest_step(c->run.folder);

        if (step > seen) {
            PM_TRY(evaluate(c, g, &events));
            seen = step;
            runs++;
        }
        if ((c->run.steps > 0 && seen >= c->run.steps) ||
            (c->eval.max_runs > 0 && runs >= c->eval.max_runs))
            break;
        usleep((useconds_t)(c->eval.interval_secs * 1e6));
    }
out:
    pm_events_close(&events);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;
    struct app_args args;
    bool watching = app_take_flag(&argc, argv, "--watch");
    int err = PM_OK;

    PM_TRY(app_args(argc, argv, "eval", a, &args));
    PM_TRY(app_load_config(&args, "eval", 1, a, &c));
    if (watching && g->json)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: --watch prints many results, --json one; take one "
                       "of them"));
    PM_TRY(watching ? watch(c, g) : evaluate(c, g, NULL));
out:
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_eval = {
    .name = "eval", .help = "evaluate a checkpoint in exactly one pass",
    .usage = "CONFIG.json [--watch] [key=value ...]",
    .details =
        "Evaluates the newest checkpoint of run.folder, or eval.checkpoint (a file, a folder, a\n"
        "step, \"best\"), on data.eval_split. Every picture counts once.\n"
        "\n"
        "  --watch   evaluate each new checkpoint of a training run, until run.steps or\n"
        "            eval.max_runs evaluations; for TensorBoard the results also go to\n"
        "            RUN/eval_watch\n"
        "\n"
        "  pumice eval configs/lenet_mnist.json eval.checkpoint=best --json\n",
    .run = run,
};
