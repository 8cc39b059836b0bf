/* pumice train: starts or resumes the run of a config. */
#include "app/app.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct cJSON *summary = cJSON_CreateObject();
    struct pm_config *c = NULL;
    struct app_args args;
    int number = 0, err = PM_OK;

    PM_TRY(app_args(argc, argv, "train", a, &args));
    PM_TRY(app_load_config(&args, "train", 1, a, &c));
    PM_TRY(pm_train(c, &number, summary));
    if (g->json)
        PM_TRY(app_print_json(g, summary));
    if (number)
        err = 128 + number;
out:
    pm_config_destroy(&c);
    cJSON_Delete(summary);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_train = {
    .name = "train",
    .help = "trains a net; continues from the newest checkpoint of the run folder",
    .usage = "CONFIG.json [key=value ...]",
    .details =
        "Trains up to step run.steps. It writes the resolved config, checkpoints, metrics.jsonl,\n"
        "report.html and log.txt to the run folder, run.folder. If this folder has checkpoints,\n"
        "training continues from the newest one. These end the training after a checkpoint:\n"
        "Ctrl-C (exit code 130), a closed terminal (129; not under nohup), a closed pipe (141)\n"
        "and SIGTERM (143).\n"
        "\n"
        "  pumice train configs/shapes_classification.json\n"
        "  pumice train configs/shapes_segmentation.json\n"
        "  pumice train configs/lenet_mnist.json run.steps=300 devices='[\"vulkan:0\", \"cpu\"]'\n",
    .run = run,
};
