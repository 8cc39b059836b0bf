/* voc_segmentation: PASCAL VOC's pictures with label maps. Each list of ImageSets/Segmentation
 * becomes a split, in the order of the list. Maps are palette PNGs whose index is the label
 * (SegmentationClass), or grey PNGs made from them (SegmentationClassRaw, preferred if it exists).
 * The colours of an RGB map are looked up in the palette. Pictures of a list "test" may have no
 * map. */
#include <string.h>

#include "data/convert/pair_records.h"

struct voc_cfg {
    const char *labels_file, *label_folder;
    int num_shards, bad;
};

static const struct pm_opt opts[] = {
    PM_STRING(voc_cfg, labels_file, NULL, "class names from 0, one per line; null = VOC's 21"),
    PM_STRING(
        voc_cfg, label_folder, NULL,
        "folder of the label maps in SRC; null = SegmentationClassRaw, else SegmentationClass"),
    PM_INT(voc_cfg, num_shards, 4, 1, 99999, "files of each split"),
    PM_OPT_BAD_PAIRS(voc_cfg),
    { 0 },
};

static const char *const voc_names[] = {
    "background", "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",
    "car",        "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",
    "motorbike",  "person",    "pottedplant", "sheep", "sofa",        "train",  "tv",
};

static int read_list(struct pm_arena *a, const char *src, const char *labels, const char *list,
                     bool test, struct pm_segmentation *s)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;

    PM_TRY(pm_file_lines(a, list, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        const char *id = lines[i];
        if (strchr(id, '/') || strchr(id, ' '))
            PM_TRY(pm_fail(PM_EDATA, "%s:%zu: \"%.40s\" is not the name of a picture", list, i + 1,
                           id));
        const char *label = pm_arena_printf(a, "%s/%s.png", labels, id);
        if (test && !pm_file_exists(label))
            label = NULL;
        pm_segmentation_add(s, pm_arena_printf(a, "%s/JPEGImages/%s.jpg", src, id), label, id);
    }
    if (count == 0)
        PM_WARN("data", "%s: skipped, the list is empty", list);
out:
    return err;
}

static int convert_lists(struct pm_arena *a, const struct voc_cfg *cfg, const char *src,
                         const char *labels, struct pm_segmentation *s, struct pm_making *m)
{
    int err = PM_OK;
    char **names = NULL;
    size_t count = 0;
    const char *lists = pm_arena_printf(a, "%s/ImageSets/Segmentation", src);

    if (!pm_is_folder(lists))
        PM_TRY(pm_fail(
            PM_EDATA, "%s: no such folder; it must hold a list of pictures for each split", lists));
    PM_TRY(pm_list_folder(a, lists, &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *dot = strrchr(names[i], '.'), *split = pm_stem(a, names[i]);
        if (names[i][0] == '.' || !dot || strcmp(dot, ".txt"))
            continue;
        PM_TRY(read_list(a, src, labels, pm_arena_printf(a, "%s/%s", lists, names[i]),
                         strcmp(split, "test") == 0, s));
        PM_TRY(pm_segmentation_split(m, split, s, cfg->num_shards));
    }
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    static const char *const folders[] = { "SegmentationClassRaw", "SegmentationClass", NULL };
    const struct voc_cfg *cfg = config;
    struct pm_arena *a = pm_arena_create();
    struct pm_segmentation *s = pm_segmentation_create();
    struct pm_colour colours[256];
    const char **names = NULL;
    int err = PM_OK, count = PM_COUNT(voc_names);
    const char *labels = cfg->label_folder ? pm_arena_printf(a, "%s/%s", src, cfg->label_folder)
                                           : pm_first_folder(a, src, folders);

    if (!labels || !pm_is_folder(labels))
        PM_TRY(pm_fail(PM_EDATA, "%s: it has no folder %s", src,
                       cfg->label_folder ? cfg->label_folder
                                         : "SegmentationClassRaw or SegmentationClass"));
    if (cfg->labels_file)
        PM_TRY(pm_name_file(a, cfg->labels_file, &names, &count));
    for (uint32_t i = 0; i < PM_COUNT(colours); i++) {
        colours[i].label = (uint16_t)i;
        pm_pascal_color(i, colours[i].rgb);
    }
    s->colours = colours;
    s->colours_count = PM_COUNT(colours);
    s->num_classes = count;
    s->bad = cfg->bad;
    PM_TRY(pm_making_labels(m, names ? names : voc_names, count));
    pm_making_segmentation(m, 255, "pascal");
    PM_TRY(convert_lists(a, cfg, src, labels, s, m));
out:
    pm_segmentation_destroy(&s);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_voc_segmentation = {
    .name = "voc_segmentation",
    .help = "PASCAL VOC with label maps",
    .layout = "SRC/JPEGImages/ID.jpg, SRC/SegmentationClass/ID.png (palette or its colours) or "
              "SegmentationClassRaw\n"
              "(grey), SRC/ImageSets/Segmentation/SPLIT.txt with one ID per line. Each list "
              "becomes a split "
              "of its name:\n"
              "train-00000-of-00004.tfrecord. 21 classes, 0 is the background, 255 is ignored.",
    .opts = opts,
    .cfg_size = sizeof(struct voc_cfg),
    .convert = convert,
};
