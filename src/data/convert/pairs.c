/* pairs: plain folders of pictures and of label maps, matched by name. Splits are folders
 * (SRC/images/train/..., or SRC/train/images/...). Without them, a part of the shuffled pairs
 * becomes the split val. Maps are grey or palette PNGs, or colour pictures with a file that lists
 * the colours. With things=[...] records also have instance maps, from a folder of their own or
 * from the same maps. */
#include <string.h>

#include "data/convert/pair_records.h"

struct pairs_cfg {
    const char *images, *labels, *image_prefix, *label_prefix, *label_suffix;
    const char *classes, *colours, *ignore_class, *colormap, *instances;
    struct pm_ints things;
    int ignore_label, divide, instance_divide, instance_first, num_shards, bad;
    double validation;
    int64_t seed;
};

static const struct pm_opt opts[] = {
    PM_STRING(pairs_cfg, images, "images", "folder of the pictures"),
    PM_STRING(pairs_cfg, labels, NULL,
              "folder of the label maps; null = labels, masks or annotations"),
    PM_STRING(pairs_cfg, image_prefix, "", "prefix of picture names that map names do not have"),
    PM_STRING(pairs_cfg, label_prefix, "", "prefix of map names that picture names do not have"),
    PM_STRING(pairs_cfg, label_suffix, "", "suffix of map names, before .png"),
    PM_STRING(pairs_cfg, classes, NULL,
              "file of class names from 0, one per line; null = numbers up to the largest label"),
    PM_STRING(pairs_cfg, colours, NULL,
              "file with lines RED GREEN BLUE NAME, one per class: label maps are colour pictures"),
    PM_STRING(pairs_cfg, ignore_class, NULL, "class in colours that is ignored and has no number"),
    PM_STRING(pairs_cfg, colormap, NULL, "colours for drawing classes, a value of eval.colormap"),
    PM_INT(pairs_cfg, ignore_label, 255, 0, 255, "label of ignored pixels"),
    PM_INT(pairs_cfg, divide, 1, 1, 65535,
           "numbers in the maps are divided by this, rounded down: 256 for KITTI's instances"),
    PM_INTS(pairs_cfg, things, NULL, 0, 254,
            "classes that have instances; records then have instance maps"),
    PM_STRING(pairs_cfg, instances, NULL,
              "folder of the maps of instances, named as the maps; null = the maps themselves tell "
              "them, with "
              "divide"),
    PM_INT(pairs_cfg, instance_divide, 0, 0, 65535,
           "instance maps hold class * this + instance number; 0: the instance number"),
    PM_INT(pairs_cfg, instance_first, 1, 0, 1,
           "smallest instance number; things with a smaller number are a crowd"),
    PM_DOUBLE(pairs_cfg, validation, 0.1, 0, 0.9,
              "share that becomes val if there are no split folders"),
    PM_INT64(pairs_cfg, seed, 0, 0, 9007199254740992, "seed of that selection and its order"),
    PM_INT(pairs_cfg, num_shards, 4, 1, 99999, "files of each split"),
    PM_OPT_BAD_PAIRS(pairs_cfg),
    { 0 },
};

static const struct {
    const char *split, *names[4];
} splits[] = {
    { "train", { "train", "training", NULL } },
    { "val", { "val", "validation", "valid", NULL } },
    { "test", { "test", "testing", NULL } },
};

struct job {
    const struct pairs_cfg *cfg;
    struct pm_arena *arena;
    struct pm_segmentation *s;
    size_t first[PM_COUNT(splits) + 1]; /* index of the first pair of each split */
};

/* Folders of a picture's maps; NULL: none. */
struct folders {
    const char *maps, *instances;
};

/* The folder of maps under root that belongs to `sub` ("" or "/train"), or NULL. */
static const char *map_folder(const struct job *j, const char *root, const char *sub)
{
    static const char *const names[] = { "labels", "masks", "annotations" };
    const char *path = NULL;

    for (size_t i = 0; i < (j->cfg->labels ? 1 : PM_COUNT(names)); i++) {
        path = pm_arena_printf(j->arena, "%s/%s%s", root,
                               j->cfg->labels ? j->cfg->labels : names[i], sub);
        if (pm_is_folder(path))
            return path;
    }
    return NULL;
}

static struct folders map_folders(const struct job *j, const char *root, const char *sub)
{
    struct folders f = { map_folder(j, root, sub), NULL };

    if (j->cfg->things.count && j->cfg->instances)
        f.instances = pm_arena_printf(j->arena, "%s/%s%s", root, j->cfg->instances, sub);
    else if (j->cfg->things.count)
        f.instances = f.maps;
    return f;
}

/* Warns about maps without a picture: a name may be misspelt. */
static int tell_others(const struct job *j, const char *maps, size_t used)
{
    struct pm_sources files = { 0 };
    const int err = pm_sources_folder(j->arena, maps, 0, &files);

    if (err == PM_OK && files.count > used)
        PM_WARN("data", "%s: %zu of %zu label maps have no picture", maps, files.count - used,
                files.count);
    pm_sources_free(&files);
    return err;
}

static int list(const struct job *j, const char *images, struct folders folders, bool test)
{
    const struct pairs_cfg *cfg = j->cfg;
    const char *maps = folders.maps;
    struct pm_sources files = { 0 };
    const size_t prefix = strlen(cfg->image_prefix);
    int err = PM_OK;
    size_t used = 0;

    PM_TRY(pm_sources_folder(j->arena, images, 0, &files));
    for (size_t i = 0; i < files.count; i++) {
        const char *stem = pm_stem(j->arena, files.item[i].name), *map = NULL;
        if (strncmp(stem, cfg->image_prefix, prefix))
            continue;
        if (maps)
            map = pm_arena_printf(j->arena, "%s/%s%s%s.png", maps, cfg->label_prefix, stem + prefix,
                                  cfg->label_suffix);
        const bool there = map && pm_file_exists(map);
        if (!there && !test && cfg->bad == PM_BAD_SKIP) {
            PM_WARN("data", "skipped: %s has no label map %s", files.item[i].path, map ? map : "");
            continue;
        }
        if (!there && !test)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s has no label map: %s does not exist (label_prefix, label_suffix and "
                           "image_prefix describe how names differ; bad=skip skips it)",
                           files.item[i].path, map ? map : "a folder of maps"));
        used += there;
        pm_segmentation_add(j->s, files.item[i].path, there ? map : NULL, stem);
        if (there && folders.instances) /* reading it reports an error if it is missing */
            j->s->pair[j->s->count - 1].instances = pm_arena_printf(
                j->arena, "%s%s", folders.instances, map + strlen(maps));
    }
    if (maps)
        PM_TRY(tell_others(j, maps, used));
out:
    pm_sources_free(&files);
    return err;
}

/* Lists the pairs of a split that has its own folders; nothing if it has none. */
static int list_split(const struct job *j, const char *src, size_t k)
{
    const char *images, *root;

    for (const char *const *name = splits[k].names; *name; name++) {
        const char *sub = pm_arena_printf(j->arena, "/%s", *name);
        images = pm_arena_printf(j->arena, "%s/%s%s", src, j->cfg->images, sub);
        if (pm_is_folder(images))
            return list(j, images, map_folders(j, src, sub), k == 2);
        root = pm_arena_printf(j->arena, "%s%s", src, sub);
        images = pm_arena_printf(j->arena, "%s/%s", root, j->cfg->images);
        if (pm_is_folder(images))
            return list(j, images, map_folders(j, root, ""), k == 2);
    }
    return PM_OK;
}

/* Lists the pairs of all splits, or of folders without splits. */
static int list_all(struct job *j, const char *src)
{
    const char *images = pm_arena_printf(j->arena, "%s/%s", src, j->cfg->images);
    int err = PM_OK;

    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        PM_TRY(list_split(j, src, k));
        j->first[k + 1] = j->s->count;
    }
    if (j->s->count)
        goto out;
    if (!pm_is_folder(images))
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: no such folder, neither here nor below train, val or test; set images "
                       "to the folder of the pictures",
                       images));
    PM_TRY(list(j, images, map_folders(j, src, ""), false));
out:
    return err;
}

/* The classes that have instances, and how instances are numbered. */
static int learn_things(const struct job *j, struct pm_making *m)
{
    const struct pairs_cfg *cfg = j->cfg;
    struct pm_segmentation *s = j->s;
    bool *things = pm_arena_alloc(j->arena, 65536 * sizeof *things);
    int most = 0;

    if (cfg->instances && !cfg->things.count)
        return pm_fail(PM_ECONFIG,
                       "dataset convert pairs: instances=%s: also set things to the classes that "
                       "have instances",
                       cfg->instances);
    if (cfg->things.count && !cfg->instances && cfg->divide == 1)
        return pm_fail(PM_ECONFIG,
                       "dataset convert pairs: things needs instances=FOLDER, or divide if the "
                       "label maps contain instances");
    for (int i = 0; i < cfg->things.count; i++) {
        const int class = cfg->things.v[i];

        if (class >= s->num_classes || class == cfg->ignore_label)
            return pm_fail(
                PM_EDATA, "dataset convert pairs: things: %d is not one of the %d classes%s", class,
                s->num_classes, class == cfg->ignore_label ? ", but the ignore label" : "");
        things[class] = true;
        most = class > most ? class : most;
    }
    s->things = things;
    s->divisor = (most + 1) * PM_INSTANCE_DIVISOR <= 65536 ? PM_INSTANCE_DIVISOR : 256;
    s->instance_divide = cfg->instances ? cfg->instance_divide : cfg->divide;
    s->instance_first = cfg->instance_first;
    if (cfg->things.count)
        pm_making_things(m, cfg->things.v, cfg->things.count);
    return PM_OK;
}

/* Without a file of names, the number of classes is the largest label + 1. */
static int learn_classes(const struct job *j, const char *src, struct pm_making *m)
{
    const struct pairs_cfg *cfg = j->cfg;
    struct pm_segmentation *s = j->s;
    struct pm_colour *colours = NULL;
    const char **names = NULL;
    int err = PM_OK;

    if (cfg->colours) {
        PM_TRY(pm_colour_file(j->arena, cfg->colours, cfg->ignore_class, cfg->ignore_label,
                              &colours, &s->colours_count, &names, &s->num_classes));
        s->colours = colours;
        s->colours_always = true;
    } else if (cfg->ignore_class) {
        PM_TRY(pm_fail(PM_ECONFIG,
                       "dataset convert pairs: ignore_class=%s is the name of a class in the file "
                       "colours=FILE: set colours, too",
                       cfg->ignore_class));
    } else if (cfg->classes) {
        PM_TRY(pm_name_file(j->arena, cfg->classes, &names, &s->num_classes));
    } else {
        s->num_classes = pm_segmentation_most(s) + 1;
        if (s->num_classes == 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: its label maps have no other label than the ignore label",
                           src));
        names = pm_number_names(j->arena, s->num_classes);
    }
    PM_TRY(pm_making_labels(m, names, s->num_classes));
    pm_making_segmentation(m, cfg->ignore_label, cfg->colormap);
    PM_TRY(learn_things(j, m));
out:
    return err;
}

/* Pairs without split folders: val is a part of them, in an order that the seed shuffles. */
static int convert_whole(const struct job *j, const char *src, struct pm_making *m)
{
    struct pm_segmentation *s = j->s;
    uint32_t *order = NULL;
    int err = PM_OK;

    const size_t count = s->count, held_out = (size_t)((double)count * j->cfg->validation + 0.5);
    if (held_out >= count)
        PM_TRY(pm_fail(
            count ? PM_ECONFIG : PM_EDATA,
            "%s: validation=%g leaves none of the %zu pairs for training: set a smaller validation",
            src, j->cfg->validation, count));
    order = pm_malloc(count * sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)pm_permute((uint64_t)j->cfg->seed, 0, count, i);
    s->order = order;
    PM_TRY(pm_segmentation_part(m, "train", s, held_out, count - held_out, j->cfg->num_shards));
    PM_TRY(pm_segmentation_part(m, "val", s, 0, held_out, j->cfg->num_shards));
out:
    s->order = NULL;
    pm_free(order);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { config, pm_arena_create(), pm_segmentation_create(), { 0 } };
    uint16_t *meaning = NULL;
    int err = PM_OK;

    if (!pm_is_folder(src))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", src));
    j.s->ignore = j.cfg->ignore_label;
    j.s->bad = j.cfg->bad;
    if (j.cfg->divide > 1) {
        meaning = pm_malloc(65536 * sizeof *meaning);
        for (int i = 0; i < 65536; i++)
            meaning[i] = (uint16_t)(i / j.cfg->divide);
        j.s->meaning = meaning;
    }
    PM_TRY(list_all(&j, src));
    PM_TRY(learn_classes(&j, src, m));
    for (size_t k = 0; k < PM_COUNT(splits); k++)
        PM_TRY(pm_segmentation_part(m, splits[k].split, j.s, j.first[k],
                                    j.first[k + 1] - j.first[k], j.cfg->num_shards));
    if (j.first[PM_COUNT(splits)] == 0)
        PM_TRY(convert_whole(&j, src, m));
out:
    pm_free(meaning);
    pm_segmentation_destroy(&j.s);
    pm_arena_destroy(&j.arena);
    return err;
}

const struct pm_converter pm_converter_pairs = {
    .name = "pairs",
    .help = "folders of pictures and of label maps, matched by name",
    .layout =
        "SRC/images/{train,val,test}/NAME.jpg with SRC/labels/.../NAME.png, or "
        "SRC/{train,val,test}/images and\n"
        "labels; or SRC/images and SRC/labels; a part of these becomes val. Maps (labels, masks or "
        "annotations)\n"
        "are grey PNGs of 8 or 16 bits, palette PNGs (the index is the label), or, with "
        "colours=FILE, "
        "colour pictures.\n"
        "Splits train, val, test: train-00000-of-00004.tfrecord. Names: DST's own. With "
        "things=[CLASS, ...] records\n"
        "have maps of instances, too: instances=FOLDER has them, or the maps themselves "
        "(KITTI: labels=instance\n"
        "divide=256).",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct pairs_cfg),
    .convert = convert,
};
