/* pumice checkpoint: inspects a checkpoint, compares two, converts one for another program, or
 * downloads a published one. */
#include "app/checkpoint_command.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(const struct app_args *args, struct pm_arena *a, struct app_globals *g);
} parts[] = {
    { "inspect", app_checkpoint_inspect },
    { "diff", app_checkpoint_diff },
    { "convert", app_checkpoint_convert },
};

static int run(int argc, char **argv, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_arena *arena = pm_arena_create();
    struct app_args args = { 0 };
    const char *what = argc > 0 ? argv[0] : "";
    size_t i = 0;

    if (strcmp(what, "download") == 0) {
        PM_TRY(app_checkpoint_download(argc - 1, argv + 1, arena, g));
        goto out;
    }
    while (i < PM_COUNT(parts) && strcmp(what, parts[i].name) != 0)
        i++;
    if (i == PM_COUNT(parts))
        PM_TRY(pm_fail(PM_ECONFIG, "checkpoint: '%s' is not inspect, diff, convert or download",
                       what));
    argc--, argv++;
    if (strcmp(what, "convert") == 0)
        app_flags_to_options(&argc, argv, arena);
    PM_TRY(app_args(argc, argv, pm_arena_printf(arena, "checkpoint %s", what), arena, &args));
    err = parts[i].run(&args, arena, g);
out:
    pm_arena_destroy(&arena);
    return err;
}

const struct pm_command pm_command_checkpoint = {
    .name = "checkpoint",
    .help = "inspects, compares, converts and downloads checkpoints",
    .usage = "inspect FILE|FOLDER\ninspect RUN [STEP | latest | best]\ndiff A B\n"
             "convert SRC DST [option=value ...]\n"
             "download NAME|list [--from ADDRESS] [--sums FILE]",
    .details =
        "A checkpoint is a run folder (its newest checkpoint), or a file or folder in one of the\n"
        "formats below. The format is recognised by the contents, not by the name.\n"
        "\n"
        "inspect lists every tensor: type, shape, count, norm, mean, smallest and largest value.\n"
        "diff compares two checkpoints tensor by tensor. Their formats may differ. The exit code\n"
        "is 1 if anything differs.\n"
        "convert writes the tensors of SRC to DST. It replaces an existing DST only with\n"
        "force=true. Write options as key=value or --key=value; 'pumice checkpoint convert\n"
        "--help' explains them.\n"
        "download fetches a checkpoint that torchvision, TF-Slim or DeepLab publishes, checks it,\n"
        "unpacks it into the cache and prints its path. The cache is\n"
        "$XDG_CACHE_HOME/pumice/checkpoints, or ~/.cache/pumice/checkpoints. To continue an\n"
        "interrupted download, repeat it. list prints all names. To start a training from the row\n"
        "of the config's net, set init.checkpoint=imagenet: this needs no download before.\n"
        "  --from ADDRESS    folder of another server that has the files under the same names\n"
        "  --sums FILE       lines \"SHA-256  NAME\", if the other server's files differ\n"
        "\n"
        "    pumice checkpoint inspect runs/lenet_mnist best\n"
        "    pumice checkpoint diff runs/a/checkpoints/step-000500.safetensors runs/b\n"
        "    pumice checkpoint inspect models/model.ckpt-46900\n"
        "    pumice checkpoint convert runs/lenet_mnist lenet.safetensors keep=variables\n"
        "    pumice checkpoint convert runs/lenet_mnist tf/model.ckpt-3000 averages=auto\n"
        "    pumice checkpoint download torchvision_resnet50\n",
    .more = app_checkpoint_help,
    .run = run,
};
