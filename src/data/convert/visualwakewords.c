/* visualwakewords: is there a person in the picture? Made from COCO's pictures and boxes like
 * TF-Slim's converter. The label is 1 if an object of the class covers more than the threshold
 * share of the picture, by the area in the annotation. The boxes of these objects are stored, too.
 * Records go to the files in turn. The annotations (hundreds of megabytes) are read in one pass
 * that keeps only the needed numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/convert.h"
#include "data/convert/json_reader.h"
#include "data/inside.h"

struct vww_cfg {
    const char *foreground_class, *train_directory, *validation_directory, *train_annotations,
        *validation_annotations;
    double small_object_area_threshold;
    int train_shards, validation_shards, bad;
};

static const struct pm_opt opts[] = {
    PM_STRING(vww_cfg, foreground_class, "person", "COCO category to look for"),
    PM_DOUBLE(vww_cfg, small_object_area_threshold, 0.005, 0, 1,
              "share of the picture that an object must exceed"),
    PM_STRING(vww_cfg, train_directory, NULL, "pictures; null = SRC/train2014 or SRC/train2017"),
    PM_STRING(vww_cfg, validation_directory, NULL, "null = SRC/val2014 or SRC/val2017"),
    PM_STRING(vww_cfg, train_annotations, NULL,
              "null = SRC/annotations/instances_train2014.json or _train2017.json"),
    PM_STRING(vww_cfg, validation_annotations, NULL,
              "null = SRC/annotations/instances_val2014.json or _val2017.json"),
    PM_INT(vww_cfg, train_shards, 100, 1, 99999, "files of the split train"),
    PM_INT(vww_cfg, validation_shards, 10, 1, 99999, "files of the split val"),
    PM_OPT_BAD(vww_cfg),
    { 0 },
};

struct image {
    int64_t id;
    const char *name; /* in the arena */
    int height, width;
    size_t first, count; /* its objects */
};

struct object {
    int64_t image, category; /* ids */
    double area, box[4];     /* x, y, width, height in pixels */
    size_t place;            /* in the file */
};

struct coco {
    struct pm_arena *arena;
    struct image *image; /* owned */
    size_t images, images_room;
    struct object *object; /* owned; finally only the objects that count, sorted by image */
    size_t objects, objects_room;
    int64_t category;
    bool found; /* the category */
    const char *folder;
    int bad;
};

/* ---- the annotations ------------------------------------------------------------------------ */

static const int64_t most_id = (int64_t)1 << 53;

static int read_image(struct pm_json_reader *r, struct coco *c)
{
    int err = PM_OK;
    struct image im = { .id = -1 };
    int64_t height = 0, width = 0;
    size_t n = 0;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "id")) {
            PM_TRY(pm_json_whole(r, most_id, &im.id));
        } else if (!strcmp(r->text, "height")) {
            PM_TRY(pm_json_whole(r, 1 << 20, &height));
        } else if (!strcmp(r->text, "width")) {
            PM_TRY(pm_json_whole(r, 1 << 20, &width));
        } else if (!strcmp(r->text, "file_name")) {
            PM_TRY(pm_json_string(r));
            im.name = pm_arena_strdup(c->arena, r->text);
        } else {
            PM_TRY(pm_json_skip(r));
        }
    }
    PM_TRY(err);
    if (im.id < 0 || height < 1 || width < 1 || !im.name)
        PM_TRY(pm_json_reader_fail(r, "an image with id, height, width and file_name"));
    if (!pm_is_inside(im.name))
        PM_TRY(pm_json_reader_fail(r, "a file_name within the folder, not \"%.200s\"", im.name));
    im.height = (int)height, im.width = (int)width;
    PM_GROW(c->image, c->images, c->images_room);
    c->image[c->images++] = im;
out:
    return err;
}

static int read_box(struct pm_json_reader *r, double box[4])
{
    int err = pm_json_enter(r, '[');
    size_t n = 0;

    while (err == PM_OK && (err = pm_json_item(r, &n)) == 1) {
        double v = 0;
        err = pm_json_number(r, &v);
        if (n <= 4)
            box[n - 1] = v;
    }
    return err == PM_OK && n != 4 ? pm_json_reader_fail(r, "a box of four numbers") : err;
}

static int read_object(struct pm_json_reader *r, struct coco *c)
{
    int err = PM_OK;
    struct object o = { .image = -1, .category = -1, .area = -1, .place = c->objects };
    bool boxed = false;
    size_t n = 0;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "image_id"))
            PM_TRY(pm_json_whole(r, most_id, &o.image));
        else if (!strcmp(r->text, "category_id"))
            PM_TRY(pm_json_whole(r, most_id, &o.category));
        else if (!strcmp(r->text, "area"))
            PM_TRY(pm_json_number(r, &o.area));
        else if (!strcmp(r->text, "bbox"))
            PM_TRY((boxed = true, read_box(r, o.box)));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    if (o.image < 0 || o.category < 0 || o.area < 0 || !boxed)
        PM_TRY(pm_json_reader_fail(r, "an annotation with image_id, category_id, area and bbox"));
    PM_GROW(c->object, c->objects, c->objects_room);
    c->object[c->objects++] = o;
out:
    return err;
}

static int read_category(struct pm_json_reader *r, struct coco *c, const char *wanted)
{
    int err = PM_OK;
    int64_t id = -1;
    bool this_one = false;
    size_t n = 0;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "id")) {
            PM_TRY(pm_json_whole(r, most_id, &id));
        } else if (!strcmp(r->text, "name")) {
            PM_TRY(pm_json_string(r));
            this_one = !strcmp(r->text, wanted);
        } else {
            PM_TRY(pm_json_skip(r));
        }
    }
    PM_TRY(err);
    if (this_one) {
        c->category = id;
        c->found = true;
    }
out:
    return err;
}

static int read_list(struct pm_json_reader *r, struct coco *c, const char *key, const char *wanted)
{
    const int which = !strcmp(key, "images") ? 0 : !strcmp(key, "annotations") ? 1 : 2;
    size_t n = 0;
    int err = pm_json_enter(r, '[');

    while (err == PM_OK && (err = pm_json_item(r, &n)) == 1)
        err = which == 0 ? read_image(r, c) : which == 1 ? read_object(r, c)
                                                         : read_category(r, c, wanted);
    return err;
}

static int read_annotations(const char *path, const char *wanted, struct coco *c)
{
    int err = PM_OK;
    struct pm_json_reader r;
    size_t n = 0;

    r.f = NULL;
    PM_TRY(pm_json_reader_open(path, &r));
    PM_TRY(pm_json_enter(&r, '{'));
    while ((err = pm_json_member(&r, &n)) == 1) {
        if (!strcmp(r.text, "images") || !strcmp(r.text, "annotations") ||
            !strcmp(r.text, "categories"))
            PM_TRY(read_list(&r, c, r.text, wanted));
        else
            PM_TRY(pm_json_skip(&r));
    }
    PM_TRY(err);
    PM_TRY(pm_json_end(&r));
    if (!c->found)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: there is no category \"%s\": set foreground_class to a category of this file",
            path, wanted));
    if (c->images == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: the file lists no images", path));
out:
    pm_json_reader_close(&r);
    return err;
}

/* ---- which objects count -------------------------------------------------------------------- */

static int compare_ids(const void *x, const void *y)
{
    const int64_t a = (*(struct image *const *)x)->id, b = (*(struct image *const *)y)->id;
    return a < b ? -1 : a > b;
}

static int compare_objects(const void *x, const void *y)
{
    const struct object *a = x, *b = y;
    if (a->image != b->image)
        return a->image < b->image ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Keeps the objects of the class that are large enough, sorted by image, and gives each image its
 * own. */
static int choose_objects(struct coco *c, double threshold, const char *path)
{
    int err = PM_OK;
    struct image **by_id = pm_malloc((c->images + 1) * sizeof *by_id);
    size_t left = 0;

    for (size_t i = 0; i < c->images; i++)
        by_id[i] = &c->image[i];
    qsort(by_id, c->images, sizeof *by_id, compare_ids);
    for (size_t i = 1; i < c->images; i++)
        if (by_id[i]->id == by_id[i - 1]->id)
            PM_TRY(pm_fail(PM_EDATA, "%s: two images have the id %" PRId64, path, by_id[i]->id));
    for (size_t i = 0; i < c->objects; i++) {
        const struct object *o = &c->object[i];
        const struct image key = { .id = o->image }, *wanted = &key;
        struct image **at = bsearch(&wanted, by_id, c->images, sizeof *by_id, compare_ids);
        if (at && o->category == c->category &&
            o->area / ((double)(*at)->height * (*at)->width) > threshold)
            c->object[left++] = *o;
    }
    c->objects = left;
    if (left)
        qsort(c->object, left, sizeof *c->object, compare_objects);
    for (size_t i = 0, k = 0; i < c->images; i++) {
        while (k < left && c->object[k].image < by_id[i]->id)
            k++;
        by_id[i]->first = k;
        while (k < left && c->object[k].image == by_id[i]->id)
            k++;
        by_id[i]->count = k - by_id[i]->first;
    }
out:
    pm_free(by_id);
    return err;
}

/* ---- records -------------------------------------------------------------------------------- */

static void add_boxes(struct pm_example_builder *b, const struct coco *c, const struct image *im)
{
    static const char *const keys[] = { "image/object/bbox/xmin", "image/object/bbox/xmax",
                                        "image/object/bbox/ymin", "image/object/bbox/ymax",
                                        "image/object/area" };
    float *v = pm_malloc((im->count + 1) * sizeof *v);

    for (int k = 0; k < 5; k++) {
        for (size_t i = 0; i < im->count; i++) {
            const struct object *o = &c->object[im->first + i];
            const double values[5] = { o->box[0] / im->width, (o->box[0] + o->box[2]) / im->width,
                                       o->box[1] / im->height,
                                       (o->box[1] + o->box[3]) / im->height, o->area };
            v[i] = (float)values[k];
        }
        pm_example_add_floats(b, keys[k], v, im->count);
    }
    pm_free(v);
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct coco *c = ctx;
    const struct image *im = &c->image[i];
    struct pm_picture p = { 0 };
    struct pm_sha256 hash;
    struct pm_str path = { 0 };
    char hex[65], id[24];
    int err = PM_OK;

    pm_str_add(&path, "%s/%s", c->folder, im->name);
    PM_TRY(pm_picture_read(path.text, &p));
    if (p.image.height != im->height || p.image.width != im->width)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the picture is %d x %d pixels, but its annotations give %d x %d",
                       path.text, p.image.height, p.image.width, im->height, im->width));
    pm_picture_add(b, &p, p.format, im->count > 0);
    pm_sha256_start(&hash);
    pm_sha256_add(&hash, p.data, p.size);
    pm_sha256_end(&hash, hex);
    snprintf(id, sizeof id, "%" PRId64, im->id);
    pm_add_text(b, "image/filename", im->name);
    pm_add_text(b, "image/source_id", id);
    pm_add_text(b, "image/key/sha256", hex);
    add_boxes(b, c, im);
    err = 1;
out:
    pm_str_free(&path);
    pm_picture_free(&p);
    return pm_picture_failed(err, c->bad);
}

/* The path that an option names, else SRC/NAME2014, else SRC/NAME2017. */
static const char *place(struct pm_arena *a, const char *given, const char *src, const char *name,
                         const char *ending)
{
    const char *old = pm_arena_printf(a, "%s/%s2014%s", src, name, ending);
    const char *newer = pm_arena_printf(a, "%s/%s2017%s", src, name, ending);
    const bool folder = !ending[0];

    if (given)
        return given;
    return (folder ? pm_is_folder(newer) && !pm_is_folder(old)
                   : pm_file_exists(newer) && !pm_file_exists(old)) ? newer : old;
}

static int write_split(const struct vww_cfg *cfg, bool train, const char *annotations,
                       const char *folder, struct pm_making *m)
{
    int err = PM_OK;
    struct coco c = { .arena = pm_arena_create(), .folder = folder, .bad = cfg->bad };
    const struct pm_sharding sharding = {
        PM_CUT_DEAL, (size_t)(train ? cfg->train_shards : cfg->validation_shards), PM_NAMES_RECORD
    };

    if (!pm_is_folder(folder))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", folder));
    PM_TRY(read_annotations(annotations, cfg->foreground_class, &c));
    PM_TRY(choose_objects(&c, cfg->small_object_area_threshold, annotations));
    PM_TRY(pm_making_split(m, train ? "train" : "val", c.images, &sharding, fill, &c));
out:
    pm_free(c.image);
    pm_free(c.object);
    pm_arena_destroy(&c.arena);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    int err = PM_OK;
    const struct vww_cfg *cfg = config;
    struct pm_arena *a = pm_arena_create();
    static const char *const inside[] = { "coco_dataset", NULL };
    const char *packed = pm_first_folder(a, src, inside);

    src = packed ? packed : src;
    PM_TRY(pm_making_labels(m, (const char *[]){ "background", cfg->foreground_class }, 2));
    PM_TRY(write_split(
        cfg, true, place(a, cfg->train_annotations, src, "annotations/instances_train", ".json"),
        place(a, cfg->train_directory, src, "train", ""), m));
    PM_TRY(write_split(cfg, false,
                       place(a, cfg->validation_annotations, src, "annotations/instances_val",
                             ".json"),
                       place(a, cfg->validation_directory, src, "val", ""), m));
out:
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_visualwakewords = {
    .name = "visualwakewords",
    .help = "COCO's pictures: is a person there?",
    .layout = "SRC/annotations/instances_train2014.json, instances_val2014.json, SRC/train2014/*,\n"
              "SRC/val2014/* (or 2017; or all of it in SRC/coco_dataset). Label 1 "
              "if an object of the\n"
              "class covers more than the threshold. train.record-00000-of-00100, "
              "val.record-00000-of-00010.",
    .opts = opts,
    .cfg_size = sizeof(struct vww_cfg),
    .convert = convert,
};
