/* imagenet: ILSVRC 2012 as the Inception trainer's and TF-Slim's builder leaves it. Classes are
 * synsets, in the order of a list, from 1; 0 is the background, so that there are 1001. Validation
 * pictures lie in folders by synset too, or all in one with a file of their synsets in the order of
 * the pictures' names. Boxes come from a CSV file, FILE,xmin,ymin,xmax,ymax of 0..1, and are
 * clamped. The one PNG with a JPEG's name and the JPEGs of four colours become RGB JPEGs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/convert.h"

struct imagenet_cfg {
    const char *train_directory, *validation_directory, *labels_file, *imagenet_metadata_file,
        *bounding_box_file, *validation_labels;
    int train_shards, validation_shards, bad;
    int64_t seed;
};

static const struct pm_opt opts[] = {
    PM_STRING(imagenet_cfg, train_directory, NULL, "folders by synset; null = SRC/train"),
    PM_STRING(imagenet_cfg, validation_directory, NULL,
              "folders by synset, or pictures; null = SRC/validation, if it exists"),
    PM_STRING(imagenet_cfg, labels_file, NULL,
              "synsets in label order, one a line; null = "
              "SRC/imagenet_lsvrc_2015_synsets.txt, else "
              "the training folders"),
    PM_STRING(
        imagenet_cfg, imagenet_metadata_file, NULL,
        "synset, tab, words; null = SRC/imagenet_metadata.txt, else the synsets are the names"),
    PM_STRING(imagenet_cfg, bounding_box_file, NULL,
              "FILE,xmin,ymin,xmax,ymax; null = "
              "SRC/imagenet_2012_bounding_boxes.csv, where there is "
              "one"),
    PM_STRING(imagenet_cfg, validation_labels, NULL,
              "the synset of each validation picture, by name order, where they lie in one folder; "
              "null = SRC/imagenet_2012_validation_synset_labels.txt"),
    PM_INT(imagenet_cfg, train_shards, 1024, 1, 99999, "files of the split train"),
    PM_INT(imagenet_cfg, validation_shards, 128, 1, 99999, "files of the split validation"),
    PM_INT64(imagenet_cfg, seed, 12345, 0, 9007199254740992, "of Python's shuffle, of each split"),
    PM_OPT_BAD(imagenet_cfg),
    { 0 },
};

/* ---- synsets and their words ---------------------------------------------------------------- */

struct classes {
    const char **synsets, **words; /* [count], 0 = background */
    int count;
};

/* Without a list of words, each synset is its own name. */
static int read_synsets(struct pm_arena *a, const char *path, const char *train,
                        struct classes *out)
{
    int err = PM_OK;

    PM_TRY(pm_class_list(a, path, train, &out->synsets, &out->count));
    const size_t size = (size_t)out->count * sizeof *out->words;
    out->words = memcpy(pm_arena_alloc(a, size), out->synsets, size);
out:
    return err;
}

static int label_of(const struct classes *c, const char *synset)
{
    for (int i = 1; i < c->count; i++)
        if (!strcmp(c->synsets[i], synset))
            return i;
    return -1;
}

/* Each line is a synset, a tab, its words. The file may list more synsets than the data set
 * uses. */
static int read_words(struct pm_arena *a, const char *path, struct classes *c)
{
    int err = PM_OK, found = 1;
    char **lines = NULL;
    size_t count = 0;

    PM_TRY(pm_file_lines(a, path, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        char *tab = strchr(lines[i], '\t');
        if (!tab)
            PM_TRY(pm_fail(PM_EDATA, "%s:%zu: \"%.60s\" must be a synset, a tab and words", path,
                           i + 1, lines[i]));
        *tab = '\0';
        const int label = label_of(c, lines[i]);
        if (label < 0)
            continue;
        found += c->words[label] == c->synsets[label];
        c->words[label] = tab + 1;
    }
    for (int k = 1; k < c->count && found < c->count; k++)
        if (c->words[k] == c->synsets[k])
            PM_TRY(pm_fail(PM_EDATA, "%s: there is no line for synset %s", path, c->synsets[k]));
out:
    return err;
}

/* ---- boxes ---------------------------------------------------------------------------------- */

struct box {
    const char *name;
    float v[4];
    size_t line; /* keeps the file's order among a picture's */
};

struct boxes {
    struct box *box; /* owned, by name */
    float *v;        /* owned: [count][4] */
    size_t count, capacity;
};

static int compare_boxes(const void *x, const void *y)
{
    const struct box *a = x, *b = y;
    const int c = strcmp(a->name, b->name);
    return c ? c : a->line < b->line ? -1 : 1;
}

static float clamped(double v)
{
    return (float)(v < 0 ? 0 : v > 1 ? 1 : v);
}

/* "FILE,xmin,ymin,xmax,ymax", the numbers in either order of smaller and larger. */
static bool parse_box(char *line, struct box *out)
{
    double v[4];
    char *p = strchr(line, ',');

    if (!p || p == line)
        return false;
    *p++ = '\0';
    for (int k = 0; k < 4; k++) {
        char *end = NULL;
        v[k] = strtod(p, &end);
        if (end == p || !isfinite(v[k]) || *end != (k < 3 ? ',' : '\0'))
            return false;
        p = end + 1;
    }
    out->name = line;
    out->v[0] = clamped(fmin(v[1], v[3])), out->v[1] = clamped(fmin(v[0], v[2]));
    out->v[2] = clamped(fmax(v[1], v[3])), out->v[3] = clamped(fmax(v[0], v[2]));
    return true;
}

static int read_boxes(struct pm_arena *a, const char *path, struct boxes *out)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;

    PM_TRY(pm_file_lines(a, path, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        struct box b = { .line = i };
        if (!parse_box(lines[i], &b))
            PM_TRY(pm_fail(PM_EDATA, "%s:%zu: \"%.60s\" must be FILE,xmin,ymin,xmax,ymax", path,
                           i + 1, lines[i]));
        PM_GROW(out->box, out->count, out->capacity);
        out->box[out->count++] = b;
    }
    if (out->count)
        qsort(out->box, out->count, sizeof *out->box, compare_boxes);
    out->v = pm_malloc((out->count + 1) * sizeof out->box->v);
    for (size_t i = 0; i < out->count; i++)
        memcpy(out->v + 4 * i, out->box[i].v, sizeof out->box[i].v);
out:
    return err;
}

static struct pm_boxes boxes_of(void *ctx, const char *name)
{
    const struct boxes *b = ctx;
    size_t lo = 0, hi = b->count, n = 0;

    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (strcmp(b->box[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    while (lo + n < b->count && !strcmp(b->box[lo + n].name, name))
        n++;
    return (struct pm_boxes){ b->v + 4 * lo, n };
}

/* ---- splits --------------------------------------------------------------------------------- */

/* Pictures in one folder. A file lists their synsets in the order of the picture names. */
static int list_flat(struct pm_arena *a, const char *root, const char *labels,
                     const struct classes *c, struct pm_sources *out)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;

    if (!labels)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the folder has pictures but no synset folders: set validation_labels "
                       "to the file of their synsets",
                       root));
    PM_TRY(pm_file_lines(a, labels, &lines, &count));
    if (count != out->count)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s has %zu pictures, but %s has %zu synsets: there must be one synset per picture",
            root, out->count, labels, count));
    for (size_t i = 0; i < count; i++) {
        out->item[i].label = label_of(c, lines[i]);
        if (out->item[i].label < 0)
            PM_TRY(pm_fail(PM_EDATA, "%s:%zu: \"%.40s\" is not one of the %d synsets", labels,
                           i + 1, lines[i], c->count - 1));
    }
out:
    return err;
}

static int write_split(struct pm_arena *a, const struct imagenet_cfg *cfg, bool train,
                       const char *root, const char *labels, const struct classes *c,
                       struct boxes *boxes, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_sources list = { 0 };
    struct pm_built built = { .sources = &list, .texts = c->words, .synsets = c->synsets,
                              .boxes = boxes->v ? boxes_of : NULL, .ctx = boxes, .bad = cfg->bad };

    if (!train)
        PM_TRY(pm_sources_folder(a, root, 0, &list));
    list.left_count = 0; /* these are the synset folders */
    if (list.count)
        PM_TRY(list_flat(a, root, labels, c, &list));
    else
        PM_TRY(pm_sources_classes(a, root, c->synsets + 1, c->count - 1, 1, &list));
    PM_TRY(pm_built_split(m, train ? "train" : "validation", &built, (uint64_t)cfg->seed,
                          (size_t)(train ? cfg->train_shards : cfg->validation_shards)));
out:
    pm_sources_free(&list);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    int err = PM_OK;
    const struct imagenet_cfg *cfg = config;
    struct pm_arena *a = pm_arena_create();
    struct classes c = { 0 };
    struct boxes boxes = { 0 };
    const char *synsets = pm_usual_file(a, cfg->labels_file, src,
                                        "imagenet_lsvrc_2015_synsets.txt");
    const char *words = pm_usual_file(a, cfg->imagenet_metadata_file, src, "imagenet_metadata.txt");
    const char *csv = pm_usual_file(a, cfg->bounding_box_file, src,
                                    "imagenet_2012_bounding_boxes.csv");
    const char *flat = pm_usual_file(a, cfg->validation_labels, src,
                                     "imagenet_2012_validation_synset_labels.txt");
    static const char *const validations[] = { "validation", "val", NULL };
    const char *train = cfg->train_directory ? cfg->train_directory
                                             : pm_arena_printf(a, "%s/train", src);
    const char *validation = cfg->validation_directory ? cfg->validation_directory
                                                       : pm_first_folder(a, src, validations);

    if (!pm_is_folder(train))
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: no such folder; set train_directory to the folder of the training pictures",
            train));
    PM_TRY(read_synsets(a, synsets, train, &c));
    if (words)
        PM_TRY(read_words(a, words, &c));
    if (csv)
        PM_TRY(read_boxes(a, csv, &boxes));
    PM_TRY(pm_making_labels(m, c.words, c.count));
    PM_TRY(write_split(a, cfg, true, train, NULL, &c, &boxes, m));
    if (validation)
        PM_TRY(write_split(a, cfg, false, validation, flat, &c, &boxes, m));
out:
    pm_free(boxes.box);
    pm_free(boxes.v);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_imagenet = {
    .name = "imagenet",
    .help = "ILSVRC 2012: synset folders, words, boxes",
    .layout = "SRC/train/SYNSET/*.JPEG; SRC/validation/SYNSET/*.JPEG, or "
              "SRC/validation/*.JPEG with a file of\n"
              "their synsets; lists, words and boxes by the options below. Labels "
              "from 1, 0 = background.\n"
              "train-00000-of-01024, validation-00000-of-00128 with "
              "image/class/synset, image/class/text and\n"
              "image/object/bbox/*. A PNG and JPEGs of four colours become RGB JPEGs.",
    .opts = opts,
    .cfg_size = sizeof(struct imagenet_cfg),
    .convert = convert,
};
