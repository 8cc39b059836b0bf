/* cifar10: the "binary version", files of 3,073-byte records: label, then 1,024 each of red, green
 * and blue, row by row. Files whose name starts with "test" are the test split, all others train,
 * in name order (data_batch_1.bin ... test_batch.bin); they may lie in cifar-10-batches-bin/, and a
 * single file is a train split. Pictures become PNG records. */
#include <string.h>

#include <pumice/data.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE };

struct cifar10_cfg {
    int validation;
};

static const struct pm_opt opts[] = {
    PM_INT(cifar10_cfg, validation, 0, 0, 1 << 30,
           "training images, the last ones, kept for the split validation"),
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
        return pm_fail(PM_EDATA, "%s: %zu bytes are no whole number of CIFAR-10 records of %d",
                       path, size, RECORD);
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
        PM_TRY(pm_fail(PM_EDATA, "%s: no *.bin files of CIFAR-10's binary version in it", src));
    for (size_t i = 0; i < count; i++) {
        const char *name = strrchr(paths[i], '/') + 1;
        PM_TRY(add_file(strncmp(name, "test", 4) ? train : test, paths[i]));
    }
out:
    return err;
}

static int convert(const void *cfg, const char *src, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct set train = { 0 }, test = { 0 };
    const size_t kept = (size_t)((const struct cifar10_cfg *)cfg)->validation;

    PM_TRY(find_files(a, src, &train, &test));
    if (kept && kept >= train.count)
        PM_TRY(pm_fail(PM_ECONFIG, "validation=%zu leaves nothing of %zu training images", kept,
                       train.count));
    pm_making_labels(m, classes, 10);
    pm_making_size(m, SIDE, SIDE, 3);
    if (train.count)
        PM_TRY(pm_making_split(m, "train", train.count - kept, 0, fill, &train));
    train.skip = train.count - kept;
    if (kept)
        PM_TRY(pm_making_split(m, "validation", kept, 0, fill, &train));
    if (test.count)
        PM_TRY(pm_making_split(m, "test", test.count, 0, fill, &test));
out:
    free_set(&train);
    free_set(&test);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_cifar10 = {
    .name = "cifar10",
    .help = "CIFAR-10's binary version (data_batch_1.bin and the like)",
    .opts = opts,
    .cfg_size = sizeof(struct cifar10_cfg),
    .convert = convert,
};
