/* flowers: one folder of JPEGs per class (flower_photos/daisy/..., as in its tar file), converted
 * like TF-Slim's converter or, by options, like the Inception trainer's script. All files, sorted
 * by bytes of their names, are shuffled as Python does. The first become validation, the others
 * train, in files of ceil(n / shards) records. Pictures are stored unchanged, unless EXIF data
 * rotates them. Slim shuffles the order in which the file system lists the files, so its split
 * differs between machines; this one does not. */
#include <string.h>

#include "data/convert/convert.h"

struct flowers_cfg {
    int validation, validation_per_class, shards, bad;
    int64_t seed;
    bool background;
};

static const struct pm_opt opts[] = {
    PM_INT(flowers_cfg, validation, 350, 0, 1 << 30, "pictures of the split validation"),
    PM_INT(flowers_cfg, validation_per_class, 0, 0, 1 << 30,
           "pictures per class in validation instead (Inception trainer: 100); 0 = off"),
    PM_INT(flowers_cfg, shards, 5, 1, 10000, "files of each split (Inception trainer: 2)"),
    PM_BOOL(flowers_cfg, background, false,
            "labels from 1 (0 is the background), records and file names (train-00000-of-00002) "
            "like the Inception trainer's"),
    PM_INT64(flowers_cfg, seed, 0, 0, 9007199254740992, "of Python's shuffle"),
    PM_OPT_BAD(flowers_cfg),
    { 0 },
};

/* Slim's record: a picture and its label. */
static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct pm_built *s = ctx;
    const struct pm_source *it = &s->sources->item[s->order[i]];
    struct pm_picture p = { 0 };
    int err = PM_OK;

    PM_TRY(pm_picture_read(it->path, &p));
    pm_picture_add(b, &p, strcmp(p.format, "jpeg") ? p.format : "jpg", it->label);
    err = 1;
out:
    pm_picture_free(&p);
    return pm_picture_failed(err, s->bad);
}

/* Moves the given number of pictures of each class, the first in shuffled order, to the front. The
 * rest keeps its order. Returns the number of pictures moved. */
static size_t take_per_class(const struct pm_sources *list, int classes, size_t each,
                             uint32_t *order)
{
    size_t *taken = pm_calloc((size_t)classes + 1, sizeof *taken), front = 0, back = 0;
    uint32_t *rest = pm_malloc((list->count + 1) * sizeof *rest);

    for (size_t i = 0; i < list->count; i++) {
        const int label = list->item[order[i]].label;
        if (taken[label]++ < each)
            order[front++] = order[i];
        else
            rest[back++] = order[i];
    }
    memcpy(order + front, rest, back * sizeof *rest);
    pm_free(rest);
    pm_free(taken);
    return front;
}

static int write_splits(const struct flowers_cfg *cfg, const struct pm_sources *list,
                        const char *const *labels, int classes, struct pm_making *m)
{
    int err = PM_OK;
    uint32_t *order = pm_malloc((list->count + 1) * sizeof *order);
    const struct pm_sharding sharding = { PM_CUT_CEIL, (size_t)cfg->shards,
                                          cfg->background ? PM_NAMES_PLAIN : PM_NAMES_SLIM };
    struct pm_built built = { .sources = list, .texts = labels, .bad = cfg->bad };
    int (*const make)(void *, size_t, struct pm_example_builder *) =
        cfg->background ? pm_built_fill : fill;

    pm_python_shuffle((uint64_t)cfg->seed, list->count, order);
    const size_t held_out = cfg->validation_per_class
        ? take_per_class(list, classes, (size_t)cfg->validation_per_class, order)
        : (size_t)cfg->validation;
    if (held_out >= list->count)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "validation takes %zu pictures and leaves none of the %zu pictures for "
                       "training: set a smaller validation",
                       held_out, list->count));
    built.order = order + held_out;
    PM_TRY(pm_making_split(m, "train", list->count - held_out, &sharding, make, &built));
    built.order = order;
    if (held_out)
        PM_TRY(pm_making_split(m, "validation", held_out, &sharding, make, &built));
out:
    pm_free(order);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    int err = PM_OK, count = 0;
    const struct flowers_cfg *cfg = config;
    const int first = cfg->background;
    struct pm_arena *a = pm_arena_create();
    struct pm_sources list = { 0 };
    const char **names = NULL;
    static const char *const inside[] = { "flower_photos", NULL };

    if (!pm_is_folder(src))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", src));
    const char *packed = pm_first_folder(a, src, inside);
    src = packed ? packed : src;
    PM_TRY(pm_class_list(a, NULL, src, &names, &count));
    const char **labels = names + 1 - first;
    const int label_count = count - 1 + first;
    PM_TRY(pm_making_labels(m, labels, label_count));
    PM_TRY(pm_sources_classes(a, src, names + 1, count - 1, first, &list));
    PM_TRY(write_splits(cfg, &list, labels, label_count, m));
out:
    pm_sources_free(&list);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_flowers = {
    .name = "flowers",
    .help = "photos in one folder per class, split and named like TF-Slim's flowers",
    .layout = "SRC/CLASS/*.jpg (or SRC/flower_photos/CLASS/*.jpg), for flowers "
              "daisy, dandelion, roses,\n"
              "sunflowers, tulips. flowers_train_00000-of-00005.tfrecord, ..., "
              "flowers_validation_...; JPEGs\n"
              "unchanged, unless EXIF data rotates them. Like the Inception trainer's:\n"
              "background=true "
              "validation_per_class=100 shards=2.",
    .opts = opts,
    .cfg_size = sizeof(struct flowers_cfg),
    .convert = convert,
};
