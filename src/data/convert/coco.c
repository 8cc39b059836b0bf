/* coco: pictures with boxes, masks and keypoints from COCO's instances and person_keypoints files,
 * or from other files of that form.
 *
 * Boxes are x, y, width, height in pixels and become shares of the picture. The annotations refer
 * to a picture of the size in the file. A picture that EXIF turns is stored upright; annotations of
 * its stored pixels turn with it (pm_box_orientation). */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "data/coco_mask.h"
#include "data/convert/box_records.h"
#include "data/convert/coco_json.h"
#include "data/convert/polygon_check.h"
#include "data/mirrored_points.h"

struct coco_cfg {
    const char *annotations, *keypoints, *images, *split, *label_map;
    double min_side;
    bool strict;
    int masks, bad, num_shards, exif; /* masks: enum pm_mask_form */
};

static const struct pm_opt opts[] = {
    PM_STRING(coco_cfg, annotations, NULL,
              "JSON file in SRC for another layout; needs images, too"),
    PM_STRING(coco_cfg, images, NULL, "folder of its pictures, in SRC"),
    PM_STRING(coco_cfg, keypoints, NULL, "file in SRC with keypoints of its annotations"),
    PM_STRING(coco_cfg, split, "train", "name of that split"),
    PM_OPT_MASKS(coco_cfg, "polygons or runs"),
    PM_BOOL(coco_cfg, strict, false,
            "drop boxes that reach beyond the right or lower border, as TensorFlow's converter "
            "does; otherwise they are clipped"),
    PM_OPT_BOXES(coco_cfg),
    PM_OPT_BOX_EXIF(coco_cfg),
    { 0 },
};

enum { MOST_SPLITS = 4 };
struct split {
    const char *path, *points_path, *images, *name; /* points_path: or NULL; in the arena */
    struct pm_coco coco;
    const struct coco_cfg *cfg;
    _Atomic size_t bare; /* objects without a segmentation */
    struct pm_polygon_counts polygons;
    _Atomic size_t turned,
        unclear; /* pictures that EXIF turns: annotations turned; fit both ways */
};
/* All are read before the first is written. */
struct job {
    const struct coco_cfg *cfg;
    struct pm_making *m;
    struct pm_arena *arena;
    struct split split[MOST_SPLITS];
    int splits;
};

/* ---- orientation ---------------------------------------------------------------------------- */

/* Finds how the annotations must be turned to fit the upright picture. */
static int orientation_of(struct split *s, const struct pm_coco_image *im,
                          const struct pm_picture *p, const char *path)
{
    const int turn = pm_box_orientation(s->cfg->exif, p, im->height, im->width);
    const int height = turn >= 5 ? p->image.width : p->image.height;
    const int width = turn >= 5 ? p->image.height : p->image.width;

    if (height != im->height || width != im->width)
        return pm_fail(PM_EDATA,
                       "%s: the picture has %d x %d pixels (height x width)%s, its annotations are "
                       "for %d x %d: do both belong to one data set?",
                       path, height, width,
                       p->orientation == 1 ? ""
                       : turn == 1         ? " as EXIF turns it"
                                           : " before EXIF turns it",
                       im->height, im->width);
    s->turned += turn != 1;
    return turn;
}

/* ---- masks ---------------------------------------------------------------------------------- */

static int unite_polygons(struct split *s, const struct pm_coco_object *o, int height, int width,
                          const char *where, struct pm_runs *out)
{
    const int32_t *v = s->coco.value + o->value, *end = v + o->value_count;
    struct pm_runs part = { 0 };
    int err = PM_OK;

    for (; v < end; v += 1 + 2 * (size_t)v[0]) {
        pm_polygon_count(&s->polygons, v + 1, (size_t)v[0], height, width, where);
        PM_TRY(pm_runs_polygon(v + 1, (size_t)v[0], height, width, where, &part));
        if (out->run)
            pm_runs_unite(out, &part);
        else
            *out = part, part = (struct pm_runs){ 0 };
        pm_runs_free(&part);
    }
out:
    pm_runs_free(&part);
    return err;
}

static int runs_of(struct split *s, const struct pm_coco_object *o,
                   const struct pm_coco_image *im, const char *where, struct pm_runs *out)
{
    const struct pm_coco *c = &s->coco;

    if (o->shape == PM_COCO_POLYGONS)
        return unite_polygons(s, o, im->height, im->width, where, out);
    if (o->height != im->height || o->width != im->width)
        return pm_fail(PM_EDATA,
                       "%s: the mask's size is [%d, %d], the picture's %d x %d: the mask "
                       "belongs to another picture",
                       where, o->height, o->width, im->height, im->width);
    if (o->shape == PM_COCO_TEXT)
        return pm_runs_text(c->texts.text + o->value, o->height, o->width, where, out);
    return pm_runs_counts((const uint32_t *)c->value + o->value, o->value_count, o->height,
                          o->width, where, out);
}

/* Adds the mask; an object without a segmentation has an empty one. */
static int add_mask(struct split *s, const struct pm_coco_image *im,
                    const struct pm_coco_object *from, int orientation, const char *path,
                    struct pm_objects *objects, struct pm_object *o)
{
    struct pm_runs runs = { 0 };
    char where[1200];
    int err = PM_OK;

    snprintf(where, sizeof where, "%s: annotation %" PRId64, path, from->id);
    if (from->shape != PM_COCO_NONE)
        PM_TRY(runs_of(s, from, im, where, &runs));
    PM_TRY(pm_box_mask(&runs, im->height, im->width, orientation, path, objects, o));
out:
    pm_runs_free(&runs);
    return err;
}

/* ---- records -------------------------------------------------------------------------------- */

static void add_points(const struct split *s, const struct pm_coco_image *im,
                       const struct pm_coco_object *from, int orientation,
                       struct pm_objects *objects, struct pm_object *o)
{
    const double *v = s->coco.point + from->point;

    o->keypoints = pm_objects_points(objects);
    for (int k = 0; k < from->point_count; k++, v += 3) {
        double y = v[1] / im->height, x = v[0] / im->width;

        if (v[2] <= 0)
            continue;
        pm_turn_point(orientation, &y, &x);
        o->keypoints[k] = (struct pm_keypoint){ (float)y, (float)x, (int)v[2] };
    }
}

static int add_object(struct split *s, const struct pm_coco_image *im,
                      const struct pm_coco_object *from, int orientation, const char *path,
                      struct pm_objects *objects)
{
    const double *b = from->box;
    double box[4] = { b[1] / im->height, b[0] / im->width, (b[1] + b[3]) / im->height,
                      (b[0] + b[2]) / im->width };
    struct pm_object *o = pm_objects_add(objects);
    int err = PM_OK;

    if (b[2] <= 0 || b[3] <= 0) /* also where the corners differ by rounding */
        box[2] = box[0], box[3] = box[1];
    pm_turn_box(orientation, box);
    for (int k = 0; k < 4; k++)
        o->box[k] = (float)box[k];
    o->text = s->coco.category[from->kind].name;
    o->area = (float)(from->area >= 0 ? from->area : b[2] * b[3]);
    o->is_crowd = from->crowd;
    if (objects->points)
        add_points(s, im, from, orientation, objects, o);
    if (s->cfg->masks)
        PM_TRY(add_mask(s, im, from, orientation, path, objects, o));
    s->bare += s->cfg->masks && from->shape == PM_COCO_NONE;
out:
    return err;
}

/* Whether TensorFlow's converter would drop a box because it reaches beyond the picture. */
static bool is_beyond(const struct pm_coco_object *o, const struct pm_coco_image *im)
{
    return o->box[2] > 0 && o->box[3] > 0 &&
           (o->box[0] + o->box[2] > im->width || o->box[1] + o->box[3] > im->height);
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    struct pm_box_split *box = ctx;
    struct split *s = box->ctx;
    const struct pm_coco_image *im = &s->coco.image[i];
    struct pm_object_counts dropped = { 0 };
    struct pm_objects objects = { 0 };
    struct pm_picture p = { 0 };
    struct pm_str path = { 0 };
    char id[24];
    int err = PM_OK, orientation = 1;

    pm_str_add(&path, "%s/%s", s->images, im->name);
    PM_TRY(pm_picture_read(path.text, &p));
    PM_TRY(orientation = orientation_of(s, im, &p, path.text));
    pm_objects_start(&objects, p.image.height, p.image.width);
    objects.has = PM_HAS_AREA | PM_HAS_CROWD | pm_mask_lists(s->cfg->masks) |
                  (s->coco.most_points ? PM_HAS_KEYPOINTS : 0);
    objects.points = s->coco.most_points;
    for (size_t k = im->first; k < im->first + im->count; k++) {
        const struct pm_coco_object *from = &s->coco.object[k];

        if (s->cfg->strict && is_beyond(from, im))
            dropped.outside++;
        else
            PM_TRY(add_object(s, im, from, orientation, path.text, &objects));
    }
    snprintf(id, sizeof id, "%" PRId64, im->id);
    PM_TRY(pm_box_record(box, b, &p, im->name, id, &objects, &dropped));
out:
    pm_objects_free(&objects);
    pm_str_free(&path);
    pm_picture_free(&p);
    return pm_picture_failed(err, box->bad);
}

/* ---- classes -------------------------------------------------------------------------------- */

/* Adds a split's categories to the list of all. An id must have one name. */
static int add_categories(const struct split *s, const char *first, struct pm_coco *all)
{
    for (size_t i = 0; i < s->coco.categories; i++) {
        const struct pm_coco_category *c = &s->coco.category[i];
        size_t k = 0;

        while (k < all->categories && all->category[k].id != c->id)
            k++;
        if (k == all->categories) {
            PM_GROW(all->category, all->categories, all->categories_room);
            all->category[all->categories++] = *c;
        } else if (strcmp(all->category[k].name, c->name) != 0) {
            return pm_fail(PM_EDATA,
                           "%s: the category %" PRId64 " is \"%s\", in %s it is \"%s\": "
                           "all splits must have the same categories",
                           s->path, c->id, c->name, first, all->category[k].name);
        } else if (c->points_count && !all->category[k].points_count) {
            all->category[k] = *c;
        }
    }
    return PM_OK;
}

/* Numbers of records begin at 1. Category ids that begin at 0 are moved up by one. */
static int number_from(const struct pm_coco *all)
{
    for (size_t i = 0; i < all->categories; i++)
        if (all->category[i].id == 0 && strcmp(all->category[i].name, "background") != 0)
            return 1;
    return 0;
}

/* Sets which keypoints are exchanged in mirrored pictures, if one category has all points. */
static void set_mirrored(struct job *j, const struct pm_coco *all)
{
    int most = 0;

    for (int i = 0; i < j->splits; i++)
        most = j->split[i].coco.most_points > most ? j->split[i].coco.most_points : most;
    for (size_t i = 0; most > 0 && i < all->categories; i++) {
        const struct pm_coco_category *c = &all->category[i];
        int *mirrored = pm_arena_alloc(j->arena, (size_t)most * sizeof *mirrored);

        if (c->points_count != most || !pm_mirrored_by_name(c->points, most, mirrored))
            continue;
        pm_making_mirrored_points(j->m, mirrored, most);
        return;
    }
}

static int make_classes(struct job *j, struct pm_label_map *map)
{
    struct pm_coco all = { 0 };
    struct pm_label_item *item = NULL;
    int err = PM_OK;

    for (int i = 0; i < j->splits; i++)
        PM_TRY(add_categories(&j->split[i], j->split[0].path, &all));
    const int offset = number_from(&all);
    if (offset && !j->cfg->label_map)
        PM_INFO("data",
                "%s: category ids begin at 0: class numbers in records are one higher, "
                "because 0 is the background",
                j->split[0].path);
    item = pm_arena_alloc(j->arena, (all.categories + 1) * sizeof *item);
    for (size_t i = 0; i < all.categories; i++)
        item[i] =
            (struct pm_label_item){ (int)all.category[i].id + offset, all.category[i].name, NULL,
                                    all.category[i].points, all.category[i].points_count };
    PM_TRY(
        pm_box_classes(j->arena, j->cfg->label_map, item, all.categories, j->split[0].path, map));
    pm_making_box_labels(j->m, map);
    set_mirrored(j, &all);
out:
    pm_coco_free(&all);
    return err;
}

/* ---- splits --------------------------------------------------------------------------------- */

static int read_points(struct job *j, struct split *s)
{
    struct pm_coco points;
    size_t unknown = 0;
    int err = PM_OK;

    PM_TRY(pm_coco_read(s->points_path, false, j->arena, &points));
    PM_TRY(pm_coco_merge_points(&s->coco, s->path, &points, s->points_path, &unknown));
    if (unknown)
        PM_WARN("data", "%s: %zu annotations are not in %s and are left out", s->points_path,
                unknown, s->path);
out:
    pm_coco_free(&points);
    return err;
}

static int read_split(struct job *j, const char *path, const char *points, const char *images,
                      const char *name)
{
    struct split *s = &j->split[j->splits++];
    int err = PM_OK;

    *s = (struct split){
        .path = path, .points_path = points, .images = images, .name = name, .cfg = j->cfg
    };
    if (!pm_is_folder(images))
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: no such folder, but %s needs it; set annotations=FILE and "
                       "images=FOLDER",
                       images, path));
    PM_TRY(pm_coco_read(path, j->cfg->masks != PM_MASKS_NONE, j->arena, &s->coco));
    PM_TRY(pm_coco_check_kinds(&s->coco, path));
    if (points)
        PM_TRY(read_points(j, s));
    if (s->coco.strays)
        PM_WARN("data",
                "%s: %zu annotations belong to images that it does not list and are left "
                "out",
                path, s->coco.strays);
    if (s->coco.thin)
        PM_WARN("data", "%s: %zu %s left out", path, s->coco.thin,
                pm_plural((double)s->coco.thin, "polygon of fewer than three corners is",
                          "polygons of fewer than three corners are"));
out:
    return err;
}

/* The file KIND_SPLIT2017.json, or with 2014 or without a year, or NULL. */
static const char *find_file(struct pm_arena *a, const char *src, const char *kind,
                             const char *split, const char *year)
{
    const char *path = pm_arena_printf(a, "%s/annotations/%s_%s%s.json", src, kind, split, year);
    return pm_file_exists(path) ? path : NULL;
}

static const char *find_images(struct pm_arena *a, const char *src, const char *split,
                               const char *year)
{
    const char *names[] = { pm_arena_printf(a, "%s%s", split, year),
                            pm_arena_printf(a, "images/%s%s", split, year), NULL };
    const char *found = pm_first_folder(a, src, names);
    return found ? found : pm_arena_printf(a, "%s/%s", src, names[0]);
}

/* Reads Roboflow's layout, with each split's file beside its pictures. */
static int read_beside(struct job *j, const char *src)
{
    static const char *const folders[MOST_SPLITS] = { "train", "valid", "val", "test" };
    static const char *const names[MOST_SPLITS] = { "train", "val", "val", "test" };
    int err = PM_OK;

    for (size_t i = 0; i < MOST_SPLITS; i++) {
        const char *images = pm_arena_printf(j->arena, "%s/%s", src, folders[i]);
        const char *path = pm_arena_printf(j->arena, "%s/_annotations.coco.json", images);

        if (pm_file_exists(path))
            PM_TRY(read_split(j, path, NULL, images, names[i]));
    }
out:
    return err;
}

static int read_usual(struct job *j, const char *src)
{
    static const char *const names[] = { "train", "val", "test" };
    static const char *const years[] = { "2017", "2014", "" };
    int err = PM_OK;

    for (size_t i = 0; i < PM_COUNT(names); i++)
        for (size_t k = 0; k < PM_COUNT(years); k++) {
            const char *things = find_file(j->arena, src, "instances", names[i], years[k]);
            const char *points = find_file(j->arena, src, "person_keypoints", names[i], years[k]);

            if (!things && !points)
                continue;
            PM_TRY(read_split(j, things ? things : points, things ? points : NULL,
                              find_images(j->arena, src, names[i], years[k]), names[i]));
            break;
        }
    if (!j->splits)
        PM_TRY(read_beside(j, src));
    if (!j->splits)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: has neither annotations/instances_{train,val}2017.json nor "
                       "person_keypoints_{train,val}2017.json nor train/_annotations.coco.json: "
                       "give annotations and images",
                       src));
out:
    return err;
}

static int read_named(struct job *j, const char *src)
{
    const struct coco_cfg *cfg = j->cfg;

    if (!cfg->annotations || !cfg->images)
        return pm_fail(PM_ECONFIG,
                       "coco: annotations and images are needed together, %s is not "
                       "given",
                       cfg->annotations ? "images" : "annotations");
    return read_split(j, pm_arena_printf(j->arena, "%s/%s", src, cfg->annotations),
                      cfg->keypoints ? pm_arena_printf(j->arena, "%s/%s", src, cfg->keypoints)
                                     : NULL,
                      pm_arena_printf(j->arena, "%s/%s", src, cfg->images), cfg->split);
}

static int write_split(struct job *j, struct split *s, const struct pm_label_map *map)
{
    struct pm_box_split box = { .map = map,
                                .filter = { .min_side = j->cfg->min_side },
                                .bad = j->cfg->bad,
                                .num_shards = j->cfg->num_shards,
                                .ctx = s };
    int err = PM_OK;

    PM_TRY(pm_box_split(j->m, s->name, s->coco.images, &box, fill));
    if (s->bare)
        PM_WARN("data", "%s: %zu %s no segmentation; their masks are empty", s->name, s->bare,
                pm_plural((double)s->bare, "box has", "boxes have"));
    pm_polygon_report(&s->polygons, s->name);
    if (s->turned)
        PM_INFO("data", "%s: the annotations of %zu %s are turned as EXIF turns the picture",
                s->name, s->turned, pm_plural((double)s->turned, "picture", "pictures"));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    const struct coco_cfg *cfg = config;
    struct job j = { .cfg = cfg, .m = m, .arena = pm_arena_create() };
    struct pm_label_map map;
    int err = PM_OK;

    if (cfg->label_map) /* a mistake in it shows before the large files are read */
        PM_TRY(pm_label_map_read(j.arena, cfg->label_map, &map));
    PM_TRY(cfg->annotations || cfg->images || cfg->keypoints ? read_named(&j, src)
                                                             : read_usual(&j, src));
    PM_TRY(make_classes(&j, &map));
    for (int i = 0; i < j.splits; i++)
        PM_TRY(write_split(&j, &j.split[i], &map));
out:
    for (int i = 0; i < j.splits; i++)
        pm_coco_free(&j.split[i].coco);
    pm_arena_destroy(&j.arena);
    return err;
}

const struct pm_converter pm_converter_coco = {
    .name = "coco",
    .help = "COCO's boxes, masks and keypoints",
    .layout = "SRC/annotations/instances_{train,val}2017.json and SRC/{train,val}2017/* (or 2014, "
              "or without a\n"
              "year; pictures also in SRC/images/), and person_keypoints_*.json beside it; or "
              "Roboflow's\n"
              "SRC/{train,valid,test}/_annotations.coco.json beside the pictures. Other files of "
              "this form by\n"
              "annotations and images. Records for TensorFlow's Object Detection API, "
              "train.record-00000-\n"
              "of-00010; class numbers are the category ids. label_map.pbtxt has their names.",
    .opts = opts,
    .cfg_size = sizeof(struct coco_cfg),
    .convert = convert,
};
