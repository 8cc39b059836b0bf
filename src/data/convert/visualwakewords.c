/* visualwakewords: is there a person in the picture? Made from COCO's pictures and boxes like
 * TF-Slim's converter. The label is 1 if an object of the class covers more than the threshold
 * share of the picture, by the area in the annotation. The boxes of these objects are stored, too.
 * Records go to the files in turn. */
#include <inttypes.h>
#include <string.h>

#include "data/convert/coco_json.h"
#include "data/convert/convert.h"

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

struct split {
    struct pm_coco coco;
    int kind; /* index of the category */
    double threshold;
    const char *folder;
    int bad;
};

/* ---- the annotations ------------------------------------------------------------------------ */

static int read_annotations(struct pm_arena *a, const char *path, const char *wanted,
                            struct split *s)
{
    struct pm_coco *c = &s->coco;
    int err = PM_OK;

    PM_TRY(pm_coco_read(path, false, a, c));
    s->kind = -1;
    for (size_t k = 0; k < c->categories; k++)
        if (!strcmp(c->category[k].name, wanted))
            s->kind = (int)k;
    if (s->kind < 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: no category \"%s\": set foreground_class", path, wanted));
    for (size_t i = 0; i < c->objects; i++)
        if (c->object[i].area < 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: annotation %" PRId64 " (place %zu in the list) has no "
                           "area of 0 or more: add it", path, c->object[i].id,
                           c->object[i].place + 1));
out:
    return err;
}

/* Whether an object is of the class and large enough. */
static bool counts(const struct split *s, const struct pm_coco_object *o,
                   const struct pm_coco_image *im)
{
    return o->kind == s->kind && o->area / ((double)im->height * im->width) > s->threshold;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Adds the boxes that count. */
static void add_boxes(struct pm_example_builder *b, const struct split *s,
                      const struct pm_coco_image *im)
{
    static const char *const keys[] = { "image/object/bbox/xmin", "image/object/bbox/xmax",
                                        "image/object/bbox/ymin", "image/object/bbox/ymax",
                                        "image/object/area" };
    float *v = pm_malloc((im->count + 1) * sizeof *v);

    for (int k = 0; k < 5; k++) {
        size_t n = 0;
        for (size_t i = im->first; i < im->first + im->count; i++) {
            const struct pm_coco_object *o = &s->coco.object[i];
            const double values[5] = { o->box[0] / im->width, (o->box[0] + o->box[2]) / im->width,
                                       o->box[1] / im->height,
                                       (o->box[1] + o->box[3]) / im->height, o->area };
            if (counts(s, o, im))
                v[n++] = (float)values[k];
        }
        pm_example_add_floats(b, keys[k], v, n);
    }
    pm_free(v);
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct split *s = ctx;
    const struct pm_coco_image *im = &s->coco.image[i];
    struct pm_picture p = { 0 };
    struct pm_sha256 hash;
    struct pm_str path = { 0 };
    char hex[65], id[24];
    bool found = false;
    int err = PM_OK;

    pm_str_add(&path, "%s/%s", s->folder, im->name);
    PM_TRY(pm_picture_read(path.text, &p));
    if (p.image.height != im->height || p.image.width != im->width)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the picture is %d x %d pixels, but its annotations give %d x %d",
                       path.text, p.image.height, p.image.width, im->height, im->width));
    for (size_t k = im->first; k < im->first + im->count; k++)
        found |= counts(s, &s->coco.object[k], im);
    pm_picture_add(b, &p, p.format, found);
    pm_sha256_start(&hash);
    pm_sha256_add(&hash, p.data, p.size);
    pm_sha256_end(&hash, hex);
    snprintf(id, sizeof id, "%" PRId64, im->id);
    pm_add_text(b, "image/filename", im->name);
    pm_add_text(b, "image/source_id", id);
    pm_add_text(b, "image/key/sha256", hex);
    add_boxes(b, s, im);
    err = 1;
out:
    pm_str_free(&path);
    pm_picture_free(&p);
    return pm_picture_failed(err, s->bad);
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
    struct pm_arena *a = pm_arena_create();
    struct split s = { .threshold = cfg->small_object_area_threshold, .folder = folder,
                       .bad = cfg->bad };
    const struct pm_sharding sharding = {
        PM_CUT_DEAL, (size_t)(train ? cfg->train_shards : cfg->validation_shards), PM_NAMES_RECORD
    };

    if (!pm_is_folder(folder))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", folder));
    PM_TRY(read_annotations(a, annotations, cfg->foreground_class, &s));
    PM_TRY(pm_making_split(m, train ? "train" : "val", s.coco.images, &sharding, fill, &s));
out:
    pm_coco_free(&s.coco);
    pm_arena_destroy(&a);
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
