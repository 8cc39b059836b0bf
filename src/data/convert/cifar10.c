/* cifar10: the "binary version", files of 3,073-byte records: label, then 1,024 bytes each of red,
 * green and blue, row by row. Files whose names start with "test" are the test split, all others
 * are train, in name order (data_batch_1.bin ... test_batch.bin). They may lie in
 * cifar-10-batches-bin/; a single file is a train split. Pictures become PNG records. Or folders of
 * pictures, SRC/train/CLASS/FILE and SRC/test/CLASS/FILE, with the same classes in the same order.
 * The files are stored untouched, unless EXIF data turns them, and shuffled as Python does with
 * seed 0, since they lie class by class. */
#include <string.h>

#include "data/convert/convert.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE };

struct cifar10_cfg {
    int validation, bad;
    bool png;
};

static const struct pm_opt opts[] = {
    PM_INT(cifar10_cfg, validation, 0, 0, 1 << 30,
           "number of training images, the last ones, that become the split validation"),
    PM_BOOL(
        cifar10_cfg, png, false,
        "store pictures from folders as PNG; otherwise unchanged, unless EXIF data rotates them"),
    PM_OPT_BAD(cifar10_cfg),
    { 0 },
};

static const char *const classes[] = { "airplane", "automobile", "bird",  "cat",  "deer",
                                       "dog",      "frog",       "horse", "ship", "truck" };

/* The records of one split: whole files, since all of CIFAR-10 is 180 MB. */
struct set {
    struct file {
        const char *path;
        char *data;
        size_t first, count;
    } * file;
    size_t files, capacity, count;
    size_t skip; /* records before the split being written */
};

static int add_file(struct set *s, const char *path)
{
    struct file f = { .path = path, .first = s->count };
    size_t size = 0;
    const int err = pm_file_read(path, &f.data, &size);

    if (err < 0)
        return err;
    if (size == 0 || size % RECORD) {
        pm_free(f.data);
        return pm_fail(PM_EDATA,
                       "%s: %zu bytes are not a multiple of the CIFAR-10 record size of %d", path,
                       size, RECORD);
    }
    f.count = size / RECORD;
    s->count += f.count;
    PM_GROW(s->file, s->files, s->capacity);
    s->file[s->files++] = f;
    return PM_OK;
}

static void free_set(struct set *s)
{
    for (size_t i = 0; i < s->files; i++)
        pm_free(s->file[i].data);
    pm_free(s->file);
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct set *s = ctx;
    const struct file *f = s->file;
    uint8_t pixels[3 * PLANE];
    const struct pm_image8 im = { SIDE, SIDE, 3, pixels };

    i += s->skip;
    while (i >= f->first + f->count)
        f++;
    const uint8_t *record = (const uint8_t *)f->data + (i - f->first) * RECORD;
    const int64_t label = record[0];
    if (label > 9)
        return pm_fail(PM_EDATA, "%s: record %zu has label %d; classes are 0..9", f->path,
                       i - f->first, (int)label);
    for (int k = 0; k < PLANE; k++)
        for (int c = 0; c < 3; c++)
            pixels[3 * k + c] = record[1 + c * PLANE + k];
    return pm_making_picture(b, &im, label);
}

static int find_files(struct pm_arena *a, const char *src, struct set *train, struct set *test)
{
    int err = PM_OK;
    char **paths = NULL;
    size_t count = 0;

    if (pm_file_exists(src)) {
        PM_TRY(add_file(train, src));
        goto out;
    }
    PM_TRY(pm_glob(a, pm_arena_printf(a, "%s/*.bin", src), &paths, &count));
    if (count == 0)
        PM_TRY(
            pm_glob(a, pm_arena_printf(a, "%s/cifar-10-batches-bin/*.bin", src), &paths, &count));
    if (count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: it has neither *.bin files of CIFAR-10's binary version "
                                 "nor train/CLASS/*", src));
    for (size_t i = 0; i < count; i++) {
        const char *name = strrchr(paths[i], '/') + 1;
        PM_TRY(add_file(strncmp(name, "test", 4) ? train : test, paths[i]));
    }
out:
    return err;
}

static int convert_files(const struct cifar10_cfg *cfg, const char *src, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct set train = { 0 }, test = { 0 };
    const size_t held_out = (size_t)cfg->validation;

    PM_TRY(find_files(a, src, &train, &test));
    if (held_out && held_out >= train.count)
        PM_TRY(pm_fail(
            PM_ECONFIG,
            "validation=%zu leaves none of the %zu pictures for training: set a smaller validation",
            held_out, train.count));
    if (train.count)
        PM_TRY(pm_making_split(m, "train", train.count - held_out, NULL, fill, &train));
    train.skip = train.count - held_out;
    if (held_out)
        PM_TRY(pm_making_split(m, "validation", held_out, NULL, fill, &train));
    if (test.count)
        PM_TRY(pm_making_split(m, "test", test.count, NULL, fill, &test));
out:
    free_set(&train);
    free_set(&test);
    pm_arena_destroy(&a);
    return err;
}

/* ---- folders of pictures --------------------------------------------------------------------- */

struct folders {
    struct pm_sources list;
    uint32_t *order;
    const struct cifar10_cfg *cfg;
    size_t skip;
};

static int fill_picture(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct folders *f = ctx;
    const struct pm_source *it = &f->list.item[f->order[f->skip + i]];
    struct pm_picture p = { 0 };
    struct pm_image8 rgb = { 0 };
    int err = PM_OK;

    PM_TRY(pm_picture_read(it->path, &p));
    if (p.image.height != SIDE || p.image.width != SIDE)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the picture is %d x %d pixels; CIFAR-10 pictures must be %d x %d",
                       it->path, p.image.height, p.image.width, SIDE, SIDE));
    if (f->cfg->png && strcmp(p.format, "png")) {
        PM_TRY(pm_image_decode(p.data, p.size, 3, 0, it->path, &rgb));
        PM_TRY(pm_making_picture(b, &rgb, it->label));
    } else {
        pm_picture_add(b, &p, p.format, it->label);
    }
    err = 1;
out:
    pm_image_free(&rgb);
    pm_picture_free(&p);
    return pm_picture_failed(err, f->cfg->bad);
}

static int convert_folders(const struct cifar10_cfg *cfg, const char *src, struct pm_making *m)
{
    static const char *const splits[] = { "train", "test" };
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct folders f = { .cfg = cfg };

    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        const char *root = pm_arena_printf(a, "%s/%s", src, splits[k]);
        const size_t held_out = k == 0 ? (size_t)cfg->validation : 0;
        if (!pm_is_folder(root))
            continue;
        f.list.count = f.list.left_count = f.skip = 0;
        PM_TRY(pm_sources_classes(a, root, classes, 10, 0, &f.list));
        if (held_out && held_out >= f.list.count)
            PM_TRY(pm_fail(PM_ECONFIG,
                           "validation=%zu leaves none of the %zu pictures for training: set a "
                           "smaller validation",
                           held_out, f.list.count));
        f.order = pm_realloc(f.order, (f.list.count + 1) * sizeof *f.order);
        pm_python_shuffle(0, f.list.count, f.order);
        PM_TRY(pm_making_split(m, splits[k], f.list.count - held_out, NULL, fill_picture, &f));
        f.skip = f.list.count - held_out;
        if (held_out)
            PM_TRY(pm_making_split(m, "validation", held_out, NULL, fill_picture, &f));
    }
out:
    pm_free(f.order);
    pm_sources_free(&f.list);
    pm_arena_destroy(&a);
    return err;
}

static int convert(const void *cfg, const char *src, struct pm_making *m)
{
    struct pm_arena *a = pm_arena_create();
    const bool folders = pm_is_folder(pm_arena_printf(a, "%s/train", src)) ||
                         pm_is_folder(pm_arena_printf(a, "%s/test", src));

    int err = PM_OK;

    pm_arena_destroy(&a);
    PM_TRY(pm_making_labels(m, classes, 10));
    pm_making_size(m, SIDE, SIDE, 3);
    PM_TRY(folders ? convert_folders(cfg, src, m) : convert_files(cfg, src, m));
out:
    return err;
}

const struct pm_converter pm_converter_cifar10 = {
    .name = "cifar10",
    .help = "CIFAR-10's binary version, or folders of its pictures",
    .layout = "SRC/data_batch_1.bin ... test_batch.bin (or in "
              "SRC/cifar-10-batches-bin), each picture stored\n"
              "as PNG; or SRC/train/airplane/* ... SRC/test/truck/*, stored untouched\n"
              "unless EXIF data turns them.\n"
              "cifar10_train.tfrecord, cifar10_test.tfrecord.",
    .opts = opts,
    .cfg_size = sizeof(struct cifar10_cfg),
    .convert = convert,
};
