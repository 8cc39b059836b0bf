/* ade20k: the scene parsing benchmark (ADEChallengeData2016). It has 150 classes; 0 means
 * everything else and is ignored. The seed shuffles the records as Python's random.shuffle does.
 * image/filename is the path below SRC. */
#include <stdlib.h>
#include <string.h>

#include "data/convert/pair_records.h"

enum { CLASSES = 151 };
struct ade20k_cfg {
    int num_shards, bad;
    int64_t seed;
};

static const struct pm_opt opts[] = {
    PM_INT(ade20k_cfg, num_shards, 4, 1, 99999, "files of each split"),
    PM_INT64(ade20k_cfg, seed, 0, 0, 9007199254740992, "of Python's shuffle"),
    PM_OPT_BAD_PAIRS(ade20k_cfg),
    { 0 },
};

/* objectInfo150.txt: a header line, then tab-separated lines of number, ratios, counts and name. */
static int read_names(struct pm_arena *a, const char *path, const char **names)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;

    names[0] = "other";
    PM_TRY(pm_file_lines(a, path, &lines, &count));
    if (count != CLASSES)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: the file has %zu lines; it must have a header line and %d lines, one per class",
            path, count, CLASSES - 1));
    for (int i = 1; i < CLASSES; i++) {
        const char *tab = strrchr(lines[i], '\t');
        for (size_t n = strlen(lines[i]); n && lines[i][n - 1] == ' '; n--)
            lines[i][n - 1] = '\0';
        if (!tab || !tab[1] || atoi(lines[i]) != i)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s:%d: \"%.40s\" is not the line of class %d: a line starts with the "
                           "class number and ends with a tab and the class name",
                           path, i + 1, lines[i], i));
        names[i] = tab + 1;
    }
out:
    return err;
}

static int convert_split(struct pm_arena *a, const struct ade20k_cfg *cfg, const char *src,
                         const char *folder, const char *split, struct pm_segmentation *s,
                         struct pm_making *m)
{
    int err = PM_OK;
    struct pm_sources files = { 0 };
    uint32_t *order = NULL;
    const char *root = pm_arena_printf(a, "%s/images/%s", src, folder);

    if (!pm_is_folder(root))
        return PM_OK;
    PM_TRY(pm_sources_folder(a, root, 0, &files));
    for (size_t i = 0; i < files.count; i++)
        pm_segmentation_add(s, files.item[i].path,
                            pm_arena_printf(a, "%s/annotations/%s/%s.png", src, folder,
                                            pm_stem(a, files.item[i].name)),
                            pm_arena_printf(a, "images/%s/%s", folder, files.item[i].name));
    order = pm_malloc((s->count + 1) * sizeof *order);
    pm_python_shuffle((uint64_t)cfg->seed, s->count, order);
    s->order = order;
    PM_TRY(pm_segmentation_split(m, split, s, cfg->num_shards));
out:
    s->order = NULL;
    pm_free(order);
    pm_sources_free(&files);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    const struct ade20k_cfg *cfg = config;
    struct pm_arena *a = pm_arena_create();
    struct pm_segmentation *s = pm_segmentation_create();
    const char **names = pm_number_names(a, CLASSES);
    const char *info = pm_usual_file(a, NULL, src, "objectInfo150.txt");
    int err = PM_OK;

    if (!pm_is_folder(pm_arena_printf(a, "%s/images", src)) &&
        pm_is_folder(pm_arena_printf(a, "%s/training", src)))
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: no folders images and annotations: this is the full ADE20K, whose "
                       "_seg.png files have 3,000 classes; use the benchmark of 150 classes, "
                       "ADEChallengeData2016",
                       src));
    if (!pm_is_folder(pm_arena_printf(a, "%s/annotations", src)))
        PM_TRY(pm_fail(PM_EDATA, "%s: it has no folder annotations", src));
    if (info)
        PM_TRY(read_names(a, info, names));
    s->num_classes = CLASSES;
    s->ignore = 0;
    s->bad = cfg->bad;
    PM_TRY(pm_making_labels(m, names, CLASSES));
    pm_making_segmentation(m, 0, "ade20k");
    PM_TRY(convert_split(a, cfg, src, "training", "train", s, m));
    PM_TRY(convert_split(a, cfg, src, "validation", "val", s, m));
out:
    pm_segmentation_destroy(&s);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_ade20k = {
    .name = "ade20k",
    .help = "ADE20K's scene parsing benchmark, 150 classes",
    .layout =
        "SRC/images/{training,validation}/*.jpg, SRC/annotations/.../*.png, "
        "SRC/objectInfo150.txt for the names.\n"
        "Splits train and val: train-00000-of-00004.tfrecord. 151 classes; class 0, everything "
        "else, is ignored.",
    .opts = opts,
    .cfg_size = sizeof(struct ade20k_cfg),
    .convert = convert,
};
