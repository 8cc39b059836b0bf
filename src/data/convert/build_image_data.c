/* build_image_data: folders of classes, converted like the generic builder of the Inception
 * trainer. A file lists the classes, one name per line, numbered from 1; 0 is the background. PNG
 * and other files become JPEG; files that cannot be decoded are skipped. */
#include "data/convert/convert.h"

struct build_cfg {
    const char *train_directory, *validation_directory, *labels_file;
    int train_shards, validation_shards, bad;
    int64_t seed;
};

static const struct pm_opt opts[] = {
    PM_STRING(build_cfg, train_directory, NULL, "class folders to train on; null = SRC/train"),
    PM_STRING(build_cfg, validation_directory, NULL, "null = SRC/validation, if it exists"),
    PM_STRING(build_cfg, labels_file, NULL,
              "class names, one per line; null = SRC/labels.txt, else the training folders"),
    PM_INT(build_cfg, train_shards, 2, 1, 99999, "files of the split train"),
    PM_INT(build_cfg, validation_shards, 2, 1, 99999, "files of the split validation"),
    PM_INT64(build_cfg, seed, 12345, 0, 9007199254740992, "of Python's shuffle"),
    PM_OPT_BAD(build_cfg),
    { 0 },
};

static int convert(const void *config, const char *src, struct pm_making *m)
{
    int err = PM_OK, count = 0;
    const struct build_cfg *cfg = config;
    struct pm_arena *a = pm_arena_create();
    struct pm_sources list = { 0 };
    const char **labels = NULL;
    const char *const root[2] = {
        cfg->train_directory ? cfg->train_directory : pm_arena_printf(a, "%s/train", src),
        cfg->validation_directory ? cfg->validation_directory
                                  : pm_arena_printf(a, "%s/validation", src),
    };

    if (!pm_is_folder(root[0]))
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: no such folder; set train_directory to the folder of the training pictures",
            root[0]));
    PM_TRY(pm_class_list(a, pm_usual_file(a, cfg->labels_file, src, "labels.txt"), root[0], &labels,
                         &count));
    PM_TRY(pm_making_labels(m, labels, count));
    struct pm_built built = { .sources = &list, .texts = labels, .bad = cfg->bad };
    for (int k = 0; k < 2; k++) {
        if (k && !cfg->validation_directory && !pm_is_folder(root[k]))
            continue;
        list.count = list.left_count = 0;
        PM_TRY(pm_sources_classes(a, root[k], labels + 1, count - 1, 1, &list));
        PM_TRY(pm_built_split(m, k ? "validation" : "train", &built, (uint64_t)cfg->seed,
                              (size_t)(k ? cfg->validation_shards : cfg->train_shards)));
    }
out:
    pm_sources_free(&list);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_build_image_data = {
    .name = "build_image_data",
    .help = "pictures in one folder per class, labels from 1, like the Inception trainer's builder",
    .layout = "SRC/train/CLASS/*, SRC/validation/CLASS/*, SRC/labels.txt with one "
              "class per line. Label 0 is the\n"
              "background; all pictures become RGB JPEGs. train-00000-of-00002, "
              "validation-00000-of-00002.",
    .opts = opts,
    .cfg_size = sizeof(struct build_cfg),
    .convert = convert,
};
