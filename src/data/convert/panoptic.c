/* panoptic: data in COCO's panoptic format, including that of Cityscapes. Each picture has a PNG
 * whose colours are segment ids, R + 256 G + 65536 B (0: no segment). A JSON file gives the
 * category of each segment. The classes are the categories in the order of that file. Segments of
 * things become instances, numbered from 1 within each class in the order of their ids. Crowds of
 * things have no number. Pixels without a segment and crowds of stuff are ignored.
 *
 * An instance is stored as class * 1000 + number if this fits 16 bits for all things; otherwise
 * (COCO has 80 things) as class * 256 + number. */
#include <inttypes.h>
#include <string.h>

#include "data/convert/pair_records.h"
#include "data/convert/panoptic_json.h"

enum { IGNORE = 255, SMALL_DIVISOR = 256 };
struct panoptic_cfg {
    const char *annotations, *maps, *images, *split;
    int num_shards, bad;
};

static const struct pm_opt opts[] = {
    PM_STRING(panoptic_cfg, annotations, NULL,
              "JSON file in SRC for another layout; needs maps and images, too"),
    PM_STRING(panoptic_cfg, maps, NULL, "folder of its PNGs, in SRC"),
    PM_STRING(panoptic_cfg, images, NULL, "folder of its pictures, in SRC"),
    PM_STRING(panoptic_cfg, split, "train", "name of that split"),
    PM_INT(panoptic_cfg, num_shards, 10, 1, 99999, "files of each split"),
    PM_OPT_BAD_PAIRS(panoptic_cfg),
    { 0 },
};

/* ---- pixels ------------------------------------------------------------------------------- */

/* What the pixels of a segment become. */
struct meaning {
    uint32_t id;
    uint16_t label, instance;
};

struct panoptic {
    const struct pm_panoptic_json *json;
    int divisor;
};

static int mean(const struct panoptic *p, const struct pm_panoptic_json_picture *from,
                const char *path, struct meaning *out)
{
    int numbers[PM_MOST_PANOPTIC_CLASSES] = { 0 };

    for (size_t i = 0; i < from->segments; i++) {
        const struct pm_panoptic_json_segment *s = &from->segment[i];
        const struct pm_panoptic_json_category *c = &p->json->category[s->label];

        out[i] = (struct meaning){ s->id, s->crowd && !c->thing ? IGNORE : s->label, 0 };
        if (!c->thing)
            continue;
        const int number = s->crowd ? 0 : ++numbers[s->label];
        if (number >= p->divisor)
            return pm_fail(PM_EDATA,
                           "%s: the picture has more than %d instances of %s, the limit of a "
                           "record; bad=skip skips such pictures",
                           path, p->divisor - 1, c->name);
        out[i].instance = (uint16_t)(s->label * p->divisor + number);
    }
    return PM_OK;
}

static const struct meaning *find(const struct meaning *m, size_t count, uint32_t id)
{
    size_t lo = 0, hi = count;

    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (m[mid].id == id)
            return &m[mid];
        if (m[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static int translate(const struct pm_image8 *im, const struct meaning *m, size_t count,
                     const char *path, struct pm_label *classes, struct pm_label *instances)
{
    static const struct meaning none = { 0, IGNORE, 0 };
    const size_t pixels = (size_t)im->height * (size_t)im->width;
    const struct meaning *s = &none;

    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *rgb = im->pixels + 3 * i;
        const uint32_t id = rgb[0] | (uint32_t)rgb[1] << 8 | (uint32_t)rgb[2] << 16;

        if (id != s->id) /* neighbours are mostly alike */
            s = id ? find(m, count, id) : &none;
        if (!s)
            return pm_fail(PM_EDATA,
                           "%s: the segment %u at row %zu, column %zu is not one of the %zu "
                           "segments in the annotations: are the map and the annotations of the "
                           "same data set? bad=skip skips such pictures",
                           path, id, i / (size_t)im->width, i % (size_t)im->width, count);
        classes->values[i] = s->label;
        instances->values[i] = s->instance;
    }
    return PM_OK;
}

/* pm_segmentation.read */
static int read_pair(void *ctx, const struct pm_pair *pair, struct pm_label *classes,
                     struct pm_label *instances)
{
    const struct panoptic *p = ctx;
    const struct pm_panoptic_json_picture *from = pair->of;
    struct meaning *m = pm_malloc((from->segments + 1) * sizeof *m);
    struct pm_image8 im = { 0 };
    char *data = NULL;
    size_t size = 0;
    int err = PM_OK;

    PM_TRY(pm_file_read(pair->label, &data, &size));
    if (size < 26 || memcmp(data + 1, "PNG", 3) || data[24] != 8 ||
        (data[25] != 2 && data[25] != 6))
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: panoptic maps are RGB PNGs of 8 bits, and this file is not; set "
                       "annotations, maps and images for another layout",
                       pair->label));
    PM_TRY(pm_image_decode(data, size, 3, 0, pair->label, &im));
    const size_t pixels = (size_t)im.height * (size_t)im.width;
    *classes =
        (struct pm_label){ im.height, im.width, pm_malloc(pixels * sizeof *classes->values) };
    *instances = (struct pm_label){ im.height, im.width,
                                    pm_malloc(pixels * sizeof *instances->values) };
    PM_TRY(mean(p, from, pair->label, m));
    PM_TRY(translate(&im, m, from->segments, pair->label, classes, instances));
out:
    pm_image_free(&im);
    pm_free(data);
    pm_free(m);
    return err;
}

/* ---- splits ------------------------------------------------------------------------------- */

/* The position of a split in a layout; %s is the year. */
static const struct place {
    const char *json, *maps[2], *images[2], *split, *colormap;
} places[] = {
    { "annotations/panoptic_train%s.json", { "annotations/panoptic_train%s", "panoptic_train%s" },
      { "train%s", "images/train%s" }, "train", NULL },
    { "annotations/panoptic_val%s.json", { "annotations/panoptic_val%s", "panoptic_val%s" },
      { "val%s", "images/val%s" }, "val", NULL },
    { "gtFine/cityscapes_panoptic_train%s.json", { "gtFine/cityscapes_panoptic_train%s" },
      { "leftImg8bit/train" }, "train_fine", "cityscapes" },
    { "gtFine/cityscapes_panoptic_val%s.json", { "gtFine/cityscapes_panoptic_val%s" },
      { "leftImg8bit/val" }, "val_fine", "cityscapes" },
};
static const char *const years[] = { "2017", "", "_trainId" };

/* "a%sb" with the year in its place, under src. */
static const char *with_year(struct pm_arena *a, const char *src, const char *text,
                             const char *year)
{
    const char *at = strstr(text, "%s");

    if (!at)
        return pm_arena_printf(a, "%s/%s", src, text);
    return pm_arena_printf(a, "%s/%.*s%s%s", src, (int)(at - text), text, year, at + 2);
}

static const char *first_folder(struct pm_arena *a, const char *src, const char *const names[2],
                                const char *year)
{
    const char *first = with_year(a, src, names[0], year);
    const char *second = names[1] ? with_year(a, src, names[1], year) : NULL;

    return second && !pm_is_folder(first) && pm_is_folder(second) ? second : first;
}

/* The picture under its name, or as in Cityscapes: in the folder of its city, without _gtFine. */
static const char *picture_path(struct pm_arena *a, const char *folder, const char *file)
{
    const char *plain = pm_arena_printf(a, "%s/%s", folder, file),
               *quality = strstr(file, "_gtFine");
    const size_t city = strcspn(file, "_");

    if (pm_file_exists(plain) || strchr(file, '/') || !file[city])
        return plain;
    const size_t head = quality ? (size_t)(quality - file) : strlen(file);
    const char *other = pm_arena_printf(a, "%s/%.*s/%.*s%s", folder, (int)city, file, (int)head,
                                        file, file + head + (quality ? strlen("_gtFine") : 0));
    return pm_file_exists(other) ? other : plain;
}

struct split {
    const char *path, *maps, *images, *name; /* path: of the annotations; in the arena */
    struct pm_panoptic_json json;            /* owned */
};
/* All are read before the first is written, which may take hours. */
struct job {
    const struct panoptic_cfg *cfg;
    struct pm_making *m;
    struct pm_arena *arena;
    struct split split[PM_COUNT(places)];
    int splits;
};

static const char *category_text(struct pm_arena *a, const struct pm_panoptic_json_category *c)
{
    return pm_arena_printf(a, "%" PRId64 " \"%s\" (%s)", c->id, c->name,
                           c->thing ? "things" : "stuff");
}

/* Checks that all splits have the same classes with the same names. */
static int compare_categories(struct pm_arena *a, const struct split *first, const struct split *s)
{
    static const char all[] =
        "all splits must have the same classes in the same order; annotations, maps "
        "and images convert a single split";

    if (first->json.categories != s->json.categories)
        return pm_fail(PM_EDATA, "%s: the number of categories is %d, in %s it is %d: %s", s->path,
                       s->json.categories, first->path, first->json.categories, all);
    for (int i = 0; i < s->json.categories; i++) {
        const struct pm_panoptic_json_category *was = &first->json.category[i],
                                               *is = &s->json.category[i];

        if (was->id != is->id || was->thing != is->thing || strcmp(was->name, is->name))
            return pm_fail(PM_EDATA, "%s: category %d of its list is %s, in %s it is %s: %s",
                           s->path, i + 1, category_text(a, is), first->path, category_text(a, was),
                           all);
    }
    return PM_OK;
}

static int read_split(struct job *j, struct split of)
{
    struct split *s = &j->split[j->splits++];
    int err = PM_OK;

    *s = of;
    if (!pm_is_folder(s->maps) || !pm_is_folder(s->images))
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: no such folder, but %s needs it; set annotations, maps and images for "
                       "another layout",
                       pm_is_folder(s->maps) ? s->images : s->maps, s->path));
    PM_TRY(pm_panoptic_json_read(s->path, j->arena, &s->json));
    PM_TRY(compare_categories(j->arena, &j->split[0], s));
out:
    return err;
}

/* 1000 where the largest instance of the last class of things fits. */
static int divisor_of(const struct pm_panoptic_json *json)
{
    int last = 0;

    for (int i = 0; i < json->categories; i++)
        if (json->category[i].thing)
            last = i;
    return (last + 1) * PM_INSTANCE_DIVISOR <= 65536 ? PM_INSTANCE_DIVISOR : SMALL_DIVISOR;
}

static int write_classes(const struct job *j)
{
    const struct pm_panoptic_json *json = &j->split[0].json;
    const char *names[PM_MOST_PANOPTIC_CLASSES];
    int things[PM_MOST_PANOPTIC_CLASSES], count = 0, err = PM_OK;

    for (int i = 0; i < json->categories; i++) {
        names[i] = json->category[i].name;
        if (json->category[i].thing)
            things[count++] = i;
    }
    PM_TRY(pm_making_labels(j->m, names, json->categories));
    pm_making_things(j->m, things, count);
out:
    return err;
}

static int write_split(const struct job *j, const struct split *from)
{
    struct pm_segmentation *s = pm_segmentation_create();
    struct panoptic p = { &from->json, divisor_of(&from->json) };

    for (size_t i = 0; i < from->json.pictures; i++) {
        const struct pm_panoptic_json_picture *picture = &from->json.picture[i];
        const char *path = picture_path(j->arena, from->images, picture->file);

        pm_segmentation_add(s, path, pm_arena_printf(j->arena, "%s/%s", from->maps, picture->map),
                            strrchr(path, '/') + 1);
        s->pair[s->count - 1].of = picture;
    }
    s->read = read_pair;
    s->ctx = &p;
    s->divisor = p.divisor;
    s->num_classes = from->json.categories;
    s->ignore = IGNORE;
    s->bad = j->cfg->bad;
    const int err = pm_segmentation_split(j->m, from->name, s, j->cfg->num_shards);
    pm_segmentation_destroy(&s);
    return err;
}

static int read_usual(struct job *j, const char *src, const char **colormap)
{
    int err = PM_OK;

    for (size_t i = 0; i < PM_COUNT(places); i++)
        for (size_t k = 0; k < PM_COUNT(years); k++) {
            const char *path = with_year(j->arena, src, places[i].json, years[k]);

            if (!pm_file_exists(path))
                continue;
            PM_TRY(read_split(j, (struct split){
                .path = path, .maps = first_folder(j->arena, src, places[i].maps, years[k]),
                .images = first_folder(j->arena, src, places[i].images, years[k]),
                .name = places[i].split }));
            *colormap = places[i].colormap;
            break;
        }
    if (!j->splits)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the folder has neither annotations/panoptic_{train,val}2017.json nor "
                       "gtFine/cityscapes_panoptic_{train,val}.json; set annotations, maps and "
                       "images for another layout",
                       src));
out:
    return err;
}

static int read_named(struct job *j, const char *src)
{
    const struct panoptic_cfg *cfg = j->cfg;

    if (!cfg->annotations || !cfg->maps || !cfg->images)
        return pm_fail(PM_ECONFIG,
                       "dataset convert panoptic: annotations, maps and images must be set "
                       "together; %s is not set",
                       !cfg->annotations ? "annotations"
                       : !cfg->maps      ? "maps"
                                         : "images");
    return read_split(j, (struct split){
        .path = pm_arena_printf(j->arena, "%s/%s", src, cfg->annotations),
        .maps = pm_arena_printf(j->arena, "%s/%s", src, cfg->maps),
        .images = pm_arena_printf(j->arena, "%s/%s", src, cfg->images), .name = cfg->split });
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    const struct panoptic_cfg *cfg = config;
    struct job j = { .cfg = cfg, .m = m, .arena = pm_arena_create() };
    const char *colormap = NULL;
    int err = PM_OK;

    if (cfg->annotations || cfg->maps || cfg->images)
        PM_TRY(read_named(&j, src));
    else
        PM_TRY(read_usual(&j, src, &colormap));
    PM_TRY(write_classes(&j));
    pm_making_segmentation(m, IGNORE, colormap);
    for (int i = 0; i < j.splits; i++)
        PM_TRY(write_split(&j, &j.split[i]));
out:
    for (int i = 0; i < j.splits; i++)
        pm_panoptic_json_free(&j.split[i].json);
    pm_arena_destroy(&j.arena);
    return err;
}

const struct pm_converter pm_converter_panoptic = {
    .name = "panoptic",
    .help = "COCO's or Cityscapes' panoptic data: classes and instances",
    .layout =
        "SRC/annotations/panoptic_{train,val}2017.json, folders of the same names with the maps, "
        "SRC/{train,val}2017/*\n"
        "with the pictures; or SRC/gtFine/cityscapes_panoptic_{train,val}.json and "
        "SRC/leftImg8bit. "
        "A map is a PNG whose\n"
        "colours are segment ids, R + 256 G + 65536 B (0: none). Splits train and val (train_fine, "
        "val_fine):\n"
        "train-00000-of-00010.tfrecord. Classes are the categories in their order; 255 is ignored.",
    .opts = opts,
    .cfg_size = sizeof(struct panoptic_cfg),
    .convert = convert,
};
