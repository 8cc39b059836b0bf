/* folder: pictures in one folder per class: SRC/train/CLASS/FILE, optionally with SRC/validation
 * (or val, valid) and SRC/test; or SRC/CLASS/FILE, where a part becomes validation. The classes are
 * the names of the training folders in byte order, from 0. The converter stores a file unchanged if
 * every reader gets the same pixels from it (pm_picture_read). The seed chooses validation's part
 * of each class and shuffles the files, which mixes the classes within each shard. */
#include "data/convert/convert.h"
#include "data/convert/findings.h"

struct folder_cfg {
    double validation;
    int64_t seed;
    int per_shard, max_side, bad;
};

static const struct pm_opt opts[] = {
    PM_DOUBLE(folder_cfg, validation, 0.1, 0, 0.9,
              "share of each class of SRC/CLASS/* that becomes validation, at least one of two "
              "pictures; unused for SRC/train/CLASS/*"),
    PM_INT64(folder_cfg, seed, 0, 0, 9007199254740992, "seed of the record order and of the split"),
    PM_INT(folder_cfg, per_shard, 1000, 1, 1 << 30, "records per file"),
    PM_INT(folder_cfg, max_side, 0, 0, 1 << 20,
           "shrink pictures whose longer side has more pixels to this side; 0 = keep all sizes"),
    PM_OPT_BAD(folder_cfg),
    { 0 },
};

struct part {
    const char *split;
    const struct pm_sources *list;
    const char *const *classes;
    const struct folder_cfg *cfg;
    struct pm_findings *findings;
};

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct part *p = ctx;
    const struct pm_source *it =
        &p->list->item[pm_permute((uint64_t)p->cfg->seed, 0, p->list->count, i)];
    struct pm_picture picture = { 0 };
    int err = PM_OK;

    PM_TRY(pm_picture_read(it->path, &picture));
    if (p->cfg->max_side)
        PM_TRY(pm_picture_shrink(&picture, p->cfg->max_side));
    pm_findings_add(p->findings, p->split, p->classes[it->label], it->path, &picture);
    pm_picture_add(b, &picture, picture.format, it->label);
    pm_add_text(b, "image/filename", it->name);
    pm_add_text(b, "image/class/text", p->classes[it->label]);
    err = 1;
out:
    pm_picture_free(&picture);
    return pm_picture_failed(err, p->cfg->bad);
}

static int write_part(struct pm_making *m, const struct part *p)
{
    const struct pm_sharding sharding = { PM_CUT_SIZE, (size_t)p->cfg->per_shard, PM_NAMES_SLIM };

    return pm_making_split(m, p->split, p->list->count, &sharding, fill, (void *)(uintptr_t)p);
}

static const struct {
    const char *split, *names[5];
} splits[] = {
    { "train", { "train", "training", "Train", NULL } },
    { "validation", { "validation", "val", "valid", "Val", NULL } },
    { "test", { "test", "testing", "Test", NULL } },
};

struct job {
    const struct folder_cfg *cfg;
    const char *src;
    const char **classes;
    int count; /* of classes */
    struct pm_findings *findings;
    struct pm_making *making;
};

const char *pm_folder_root(struct pm_arena *a, const char *src)
{
    const char *train = pm_first_folder(a, src, splits[0].names);

    return train ? train : src;
}

static int write_list(const struct job *j, const char *split, const struct pm_sources *list)
{
    return write_part(j->making, &(struct part){ split, list, j->classes, j->cfg, j->findings });
}

/* PM_EDATA if a class has no picture in the list. */
static int check_classes(const struct job *j, const char *root, const struct pm_sources *list)
{
    int err = PM_OK;
    size_t *count = pm_calloc((size_t)j->count, sizeof *count);

    for (size_t i = 0; i < list->count; i++)
        count[list->item[i].label]++;
    for (int k = 0; k < j->count; k++)
        if (!count[k])
            PM_TRY(pm_fail(PM_EDATA, "%s/%s: this class has no pictures: add some, or remove the "
                           "folder", root, j->classes[k]));
out:
    pm_free(count);
    return err;
}

static int convert_given(struct pm_arena *a, const struct job *j)
{
    int err = PM_OK;
    struct pm_sources list = { .deep = true };

    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        const char *root = pm_first_folder(a, j->src, splits[k].names);
        if (!root)
            continue;
        list.count = list.left_count = 0;
        PM_TRY(pm_sources_classes(a, root, j->classes, j->count, 0, &list));
        if (k == 0)
            PM_TRY(check_classes(j, root, &list));
        PM_TRY(write_list(j, splits[k].split, &list));
    }
out:
    pm_sources_free(&list);
    return err;
}

/* Number of a class's pictures that become validation: at least one of two, and not all. */
static size_t held_out(size_t count, double share)
{
    const size_t n = (size_t)((double)count * share + 0.5);

    if (share <= 0 || count < 2)
        return 0;
    return n < 1 ? 1 : n < count ? n : count - 1;
}

/* Divides the list, which is sorted by class, in the same shares for each class. */
static void divide(const struct pm_sources *all, const struct folder_cfg *cfg,
                   struct pm_sources *train, struct pm_sources *validation)
{
    for (size_t begin = 0, end; begin < all->count; begin = end) {
        const int label = all->item[begin].label;

        for (end = begin; end < all->count && all->item[end].label == label;)
            end++;
        const size_t n = end - begin, held = held_out(n, cfg->validation);
        for (size_t i = 0; i < n; i++) {
            const struct pm_source *s =
                &all->item[begin + pm_permute((uint64_t)cfg->seed, (uint64_t)label + 1, n, i)];
            pm_sources_add(i < held ? validation : train, s->path, s->name, s->label);
        }
    }
}

/* Names files beside the class folders: usually photos that nobody sorted. */
static int warn_beside(struct pm_arena *a, const char *src)
{
    struct pm_sources beside = { 0 };
    char **names = NULL;
    size_t n = 0;
    int err = PM_OK;

    PM_TRY(pm_list_folder(a, src, &names, &n));
    for (size_t i = 0; i < n; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", src, names[i]);
        if (names[i][0] != '.' && !pm_is_folder(path))
            pm_sources_leave(&beside, path, "it is not in the folder of a class");
    }
    pm_sources_warn(&beside);
out:
    pm_sources_free(&beside);
    return err;
}

static int convert_whole(struct pm_arena *a, const struct job *j)
{
    int err = PM_OK;
    struct pm_sources all = { .deep = true }, train = { 0 }, validation = { 0 };

    PM_TRY(pm_sources_classes(a, j->src, j->classes, j->count, 0, &all));
    PM_TRY(check_classes(j, j->src, &all));
    divide(&all, j->cfg, &train, &validation);
    PM_TRY(write_list(j, "train", &train));
    if (validation.count)
        PM_TRY(write_list(j, "validation", &validation));
    else if (j->cfg->validation > 0)
        PM_WARN("data", "%s: there is no validation split, because no class has two pictures",
                j->src);
out:
    pm_sources_free(&all);
    pm_sources_free(&train);
    pm_sources_free(&validation);
    return err;
}

static int convert(const void *cfg, const char *src, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct job j = { .cfg = cfg, .src = src, .findings = pm_findings_create(), .making = m };

    if (!pm_is_folder(src))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", src));
    const char *train = pm_first_folder(a, src, splits[0].names);
    PM_TRY(pm_class_folders(a, pm_folder_root(a, src), &j.classes, &j.count));
    PM_TRY(pm_making_labels(m, j.classes, j.count));
    PM_TRY(warn_beside(a, src));
    PM_TRY(train ? convert_given(a, &j) : convert_whole(a, &j));
    pm_findings_report(j.findings);
out:
    pm_findings_destroy(&j.findings);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_folder = {
    .name = "folder",
    .help = "pictures in one folder per class",
    .layout = "SRC/train/CLASS/*, optionally SRC/validation/CLASS/* and SRC/test/CLASS/*; "
              "or\n"
              "SRC/CLASS/*; a part of each class becomes validation. Pictures may be in subfolders "
              "of\na class. They are files that end in\n"
              PM_IMAGE_ENDINGS ".\n"
              "JPEG, PNG, GIF and BMP are stored unchanged, unless EXIF data rotates them.\n"
              "Classes are the folders in byte order, from 0. Files are named after DST.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct folder_cfg),
    .convert = convert,
};
