/* folder: pictures in one folder per class: SRC/train/CLASS/FILE, optionally with SRC/validation
 * (or val, valid) and SRC/test; or SRC/CLASS/FILE, where a part becomes validation. The classes are
 * the names of the training folders in byte order, from 0. The converter stores a file unchanged if
 * every reader gets the same pixels from it (pm_picture_read). The seed shuffles the files, which
 * mixes the classes within each shard. */
#include "data/convert/convert.h"

struct folder_cfg {
    double validation;
    int64_t seed;
    int per_shard, bad;
};

static const struct pm_opt opts[] = {
    PM_DOUBLE(folder_cfg, validation, 0.1, 0, 0.9,
              "share of SRC/CLASS/* that becomes validation; unused for SRC/train/CLASS/*"),
    PM_INT64(folder_cfg, seed, 0, 0, 9007199254740992, "seed of the record order and of the split"),
    PM_INT(folder_cfg, per_shard, 1000, 1, 1 << 30, "records per file"),
    PM_OPT_BAD(folder_cfg),
    { 0 },
};

struct part {
    const struct pm_sources *list;
    const char *const *classes;
    uint64_t seed;
    size_t begin; /* of the shuffled list */
    int bad;
};

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct part *p = ctx;
    const struct pm_source *it =
        &p->list->item[pm_permute(p->seed, 0, p->list->count, p->begin + i)];
    struct pm_picture picture = { 0 };
    int err = PM_OK;

    PM_TRY(pm_picture_read(it->path, &picture));
    pm_picture_add(b, &picture, picture.format, it->label);
    pm_add_text(b, "image/filename", it->name);
    pm_add_text(b, "image/class/text", p->classes[it->label]);
    err = 1;
out:
    pm_picture_free(&picture);
    return pm_picture_failed(err, p->bad);
}

static int write_part(struct pm_making *m, const char *split, const struct folder_cfg *cfg,
                      const struct pm_sources *list, const char *const *classes, size_t begin,
                      size_t end)
{
    struct part p = { list, classes, (uint64_t)cfg->seed, begin, cfg->bad };
    const struct pm_sharding sharding = { PM_CUT_SIZE, (size_t)cfg->per_shard, PM_NAMES_SLIM };

    return pm_making_split(m, split, end - begin, &sharding, fill, &p);
}

static const struct {
    const char *split, *names[5];
} splits[] = {
    { "train", { "train", "training", "Train", NULL } },
    { "validation", { "validation", "val", "valid", "Val", NULL } },
    { "test", { "test", "testing", "Test", NULL } },
};

static int convert_given(struct pm_arena *a, const struct folder_cfg *cfg, const char *src,
                         const char *const *classes, int count, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_sources list = { 0 };

    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        const char *root = pm_first_folder(a, src, splits[k].names);
        if (!root)
            continue;
        list.count = list.others = 0;
        PM_TRY(pm_sources_classes(a, root, classes, count, 0, &list));
        PM_TRY(write_part(m, splits[k].split, cfg, &list, classes, 0, list.count));
    }
out:
    pm_sources_free(&list);
    return err;
}

static int convert_whole(struct pm_arena *a, const struct folder_cfg *cfg, const char *src,
                         const char *const *classes, int count, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_sources list = { 0 };

    PM_TRY(pm_sources_classes(a, src, classes, count, 0, &list));
    const size_t held_out = (size_t)((double)list.count * cfg->validation + 0.5);
    if (held_out >= list.count)
        PM_TRY(pm_fail(
            PM_ECONFIG,
            "validation=%g leaves none of the %zu pictures for training: set a smaller validation",
            cfg->validation, list.count));
    PM_TRY(write_part(m, "train", cfg, &list, classes, held_out, list.count));
    if (held_out)
        PM_TRY(write_part(m, "validation", cfg, &list, classes, 0, held_out));
out:
    pm_sources_free(&list);
    return err;
}

static int convert(const void *cfg, const char *src, struct pm_making *m)
{
    int err = PM_OK, count = 0;
    struct pm_arena *a = pm_arena_create();
    const char **classes = NULL;

    if (!pm_is_folder(src))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", src));
    const char *train = pm_first_folder(a, src, splits[0].names);
    PM_TRY(pm_class_folders(a, train ? train : src, &classes, &count));
    PM_TRY(pm_making_labels(m, classes, count));
    PM_TRY(train ? convert_given(a, cfg, src, classes, count, m)
                 : convert_whole(a, cfg, src, classes, count, m));
out:
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_folder = {
    .name = "folder",
    .help = "pictures in one folder per class",
    .layout = "SRC/train/CLASS/*, optionally SRC/validation/CLASS/* and SRC/test/CLASS/*; "
              "or\n"
              "SRC/CLASS/*; a part of these becomes validation. Pictures are files that end in\n"
              PM_IMAGE_ENDINGS ".\n"
              "JPEG, PNG, GIF and BMP are stored unchanged, unless EXIF data rotates them.\n"
              "Classes are the folders in byte order, from 0. Files are named after DST.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct folder_cfg),
    .convert = convert,
};
