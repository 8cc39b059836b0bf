/* folder: pictures in one folder a class, SRC/train/CLASS/FILE with SRC/validation (or val, valid)
 * and SRC/test beside it, or SRC/CLASS/FILE, of which a part becomes validation. Classes are
 * train's folder names in byte order, from 0. Files are stored untouched, in an order shuffled by
 * the seed, so that neighbours in a shard are of different classes. */
#include <string.h>
#include <strings.h>

#include <pumice/data.h>

struct folder_cfg {
    double validation;
    int64_t seed;
    int per_shard, bad;
};

enum { BAD_SKIP, BAD_ERROR };

static const struct pm_opt opts[] = {
    PM_DOUBLE(folder_cfg, validation, 0.1, 0, 0.9,
              "part of SRC/CLASS/* kept for the split validation; not read for SRC/train/CLASS/*"),
    PM_INT64(folder_cfg, seed, 0, 0, 9007199254740992, "of the records' order and the split"),
    PM_INT(folder_cfg, per_shard, 1000, 1, 1 << 30, "records a file"),
    PM_ENUM(folder_cfg, bad, BAD_SKIP, "skip|error", "what happens to files that do not decode"),
    { 0 },
};

struct item {
    const char *path, *name;
    int label;
};

struct list {
    struct item *item; /* owned */
    size_t count, capacity, others;
};

/* ---- finding -------------------------------------------------------------------------------- */

static bool is_image(const char *name)
{
    static const char *const endings[] = { ".jpg", ".jpeg", ".png", ".gif", ".bmp" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < PM_COUNT(endings); i++)
        if (!strcasecmp(dot, endings[i]))
            return true;
    return false;
}

static int class_names(struct pm_arena *a, const char *root, const char ***out, int *count)
{
    char **names = NULL;
    size_t n = 0;
    const int err = pm_list_folder(a, root, &names, &n);

    if (err < 0)
        return err;
    *out = pm_arena_alloc(a, (n + 1) * sizeof **out);
    *count = 0;
    for (size_t i = 0; i < n; i++)
        if (names[i][0] != '.' && pm_is_folder(pm_arena_printf(a, "%s/%s", root, names[i])))
            (*out)[(*count)++] = names[i];
    if (*count == 0)
        return pm_fail(PM_EDATA,
                       "%s: no class folders in it: SRC/CLASS/FILE or "
                       "SRC/train/CLASS/FILE is wanted",
                       root);
    return PM_OK;
}

static int label_of(const char *name, const char *const *classes, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(classes[i], name))
            return i;
    return -1;
}

static int list_images(struct pm_arena *a, const char *root, const char *const *classes, int count,
                       struct list *out)
{
    int err = PM_OK, own_count = 0;
    const char **own = NULL;

    PM_TRY(class_names(a, root, &own, &own_count));
    for (int k = 0; k < own_count; k++) {
        char **names = NULL;
        size_t n = 0;
        const char *folder = pm_arena_printf(a, "%s/%s", root, own[k]);
        const int label = label_of(own[k], classes, count);
        if (label < 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: class %s is not among the %d of the training set", root,
                           own[k], count));
        PM_TRY(pm_list_folder(a, folder, &names, &n));
        for (size_t i = 0; i < n; i++) {
            if (names[i][0] == '.')
                continue;
            if (!is_image(names[i])) {
                out->others++;
                continue;
            }
            PM_GROW(out->item, out->count, out->capacity);
            out->item[out->count++] =
                (struct item){ pm_arena_printf(a, "%s/%s", folder, names[i]), names[i], label };
        }
    }
    if (out->count == 0)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: no .jpg, .jpeg, .png, .gif or .bmp files in its %d class "
                       "folders",
                       root, own_count));
    if (out->others)
        PM_WARN("data", "%s: %zu files are no pictures by their names, passed over", root,
                out->others);
out:
    return err;
}

/* ---- writing -------------------------------------------------------------------------------- */

struct part {
    const struct list *list;
    const char *const *classes;
    uint64_t seed;
    size_t begin; /* of the shuffled list */
    int bad;
    size_t skipped;
};

static const char *format_of(const char *data, size_t size)
{
    if (size > 4 && !memcmp(data, "\x89PNG", 4))
        return "png";
    if (size > 4 && !memcmp(data, "GIF8", 4))
        return "gif";
    return size > 2 && !memcmp(data, "BM", 2) ? "bmp" : "jpeg";
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    struct part *p = ctx;
    const struct item *it = &p->list->item[pm_permute(p->seed, 0, p->list->count, p->begin + i)];
    struct pm_image8 im = { 0 };
    char *data = NULL;
    size_t size = 0;
    int err = pm_file_read(it->path, &data, &size);

    if (err == PM_OK)
        err = pm_image_decode(data, size, 0, 0, it->path, &im);
    if (err == PM_EDATA && p->bad == BAD_SKIP) {
        PM_DEBUG("data", "skipped %s", pm_error_text());
        __atomic_add_fetch(&p->skipped, 1, __ATOMIC_RELAXED);
        err = 0;
    } else if (err == PM_OK) {
        const int64_t label = it->label, height = im.height, width = im.width;
        const char *format = format_of(data, size), *text = p->classes[it->label];
        pm_example_add_bytes(b, "image/encoded", data, size);
        pm_example_add_bytes(b, "image/format", format, strlen(format));
        pm_example_add_bytes(b, "image/filename", it->name, strlen(it->name));
        pm_example_add_bytes(b, "image/class/text", text, strlen(text));
        pm_example_add_ints(b, "image/class/label", &label, 1);
        pm_example_add_ints(b, "image/height", &height, 1);
        pm_example_add_ints(b, "image/width", &width, 1);
        err = 1;
    }
    pm_image_free(&im);
    pm_free(data);
    return err;
}

static int write_part(struct pm_making *m, const char *split, const struct folder_cfg *cfg,
                      const struct list *list, const char *const *classes, size_t begin, size_t end)
{
    struct part p = { list, classes, (uint64_t)cfg->seed, begin, cfg->bad, 0 };
    const int err = pm_making_split(m, split, end - begin, (size_t)cfg->per_shard, fill, &p);

    if (err == PM_OK && p.skipped == end - begin)
        return pm_fail(PM_EDATA, "none of the %zu pictures of split %s decodes", p.skipped, split);
    if (err == PM_OK && p.skipped)
        PM_WARN("data",
                "split %s: %zu of %zu pictures do not decode, skipped (PM_LOG=data=debug "
                "lists them)",
                split, p.skipped, end - begin);
    return err;
}

/* The first of these folders under src, in the arena, or NULL. */
static const char *sub_folder(struct pm_arena *a, const char *src, const char *const *names)
{
    for (; *names; names++) {
        const char *path = pm_arena_printf(a, "%s/%s", src, *names);
        if (pm_is_folder(path))
            return path;
    }
    return NULL;
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
    struct list list = { 0 };

    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        const char *root = sub_folder(a, src, splits[k].names);
        if (!root)
            continue;
        list.count = list.others = 0;
        PM_TRY(list_images(a, root, classes, count, &list));
        PM_TRY(write_part(m, splits[k].split, cfg, &list, classes, 0, list.count));
    }
out:
    pm_free(list.item);
    return err;
}

static int convert_whole(struct pm_arena *a, const struct folder_cfg *cfg, const char *src,
                         const char *const *classes, int count, struct pm_making *m)
{
    int err = PM_OK;
    struct list list = { 0 };

    PM_TRY(list_images(a, src, classes, count, &list));
    const size_t kept = (size_t)((double)list.count * cfg->validation + 0.5);
    if (kept >= list.count)
        PM_TRY(pm_fail(PM_ECONFIG, "validation=%g leaves nothing of %zu pictures", cfg->validation,
                       list.count));
    PM_TRY(write_part(m, "train", cfg, &list, classes, kept, list.count));
    if (kept)
        PM_TRY(write_part(m, "validation", cfg, &list, classes, 0, kept));
out:
    pm_free(list.item);
    return err;
}

static int convert(const void *cfg, const char *src, struct pm_making *m)
{
    int err = PM_OK, count = 0;
    struct pm_arena *a = pm_arena_create();
    const char **classes = NULL;

    if (!pm_is_folder(src))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", src));
    const char *train = sub_folder(a, src, splits[0].names);
    PM_TRY(class_names(a, train ? train : src, &classes, &count));
    pm_making_labels(m, classes, count);
    PM_TRY(train ? convert_given(a, cfg, src, classes, count, m)
                 : convert_whole(a, cfg, src, classes, count, m));
out:
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_folder = {
    .name = "folder",
    .help = "pictures in one folder a class: SRC/train/CLASS/* or SRC/CLASS/*",
    .opts = opts,
    .cfg_size = sizeof(struct folder_cfg),
    .convert = convert,
};
