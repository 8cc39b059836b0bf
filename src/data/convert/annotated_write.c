/* Writing annotated pictures as records of TensorFlow's Object Detection API. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/coco_mask.h"
#include "data/convert/annotated.h"
#include "data/convert/polygon_check.h"
#include "data/convert/shared_pictures.h"
#include "data/rotated_box.h"

/* One split while it is written; `split` is the first member, because fill gets its address. */
struct writing {
    struct pm_box_split split;
    const struct pm_annotations *s;
    size_t first, count;  /* pictures of the list */
    size_t begin;         /* shuffled: place of the first one in the order */
    bool shuffled;        /* the order is a permutation of all `count` pictures */
    _Atomic size_t sizes; /* pictures whose annotations state another size */
    _Atomic size_t flat;  /* pictures with boxes without an area */
    _Atomic size_t skewed; /* rotated boxes whose corners are no rectangle */
    struct pm_polygon_counts polygons;
    struct pm_shared_pictures *pictures; /* of tiles; owned */
};
enum { MOST_WARNINGS = 10 }; /* of a kind in a split */

/* ---- records -------------------------------------------------------------------------------- */

static void compare_size(struct writing *w, const struct pm_annotated *a, int height, int width)
{
    if (!a->height || !a->width || (a->height == height && a->width == width))
        return;
    if (++w->sizes <= MOST_WARNINGS)
        PM_WARN("data", "%s: states a size of %d x %d pixels, but %s has %d x %d; the picture's "
                "size counts", a->where, a->width, a->height, a->path, width, height);
}

static void add_keypoints(const struct pm_annotations *s, const float *from, int orientation,
                          struct pm_objects *o, struct pm_object *out)
{
    if (!from)
        return;
    out->keypoints = pm_objects_points(o);
    for (int k = 0; k < s->points; k++, from += 3) {
        double y = from[0], x = from[1];

        if (from[2] <= 0)
            continue;
        pm_turn_point(orientation, &y, &x);
        out->keypoints[k] = (struct pm_keypoint){ (float)y, (float)x, (int)from[2] };
    }
}

/* The rotated box of four corners, and the upright box around it. height, width: of the picture as
 * the annotations see it. */
static void add_corners(struct writing *w, const struct pm_annotated *a,
                        const struct pm_annotated_object *from, int orientation, int height,
                        int width, const struct pm_objects *o, struct pm_object *out)
{
    static const double most_off = 0.05;
    struct pm_rectangle r;
    double at[PM_CORNERS][2], around[4];

    for (int k = 0; k < PM_CORNERS; k++) {
        at[k][0] = from->corners[2 * k] / (w->s->unit ? 1 : height);
        at[k][1] = from->corners[2 * k + 1] / (w->s->unit ? 1 : width);
        pm_turn_point(orientation, &at[k][0], &at[k][1]);
        at[k][0] *= o->height;
        at[k][1] *= o->width;
    }
    const double off = pm_rectangle_of_corners(at, &r);

    pm_rectangle_to_box(&r, o->height, o->width, out->rotated);
    pm_rectangle_around(&r, around);
    for (int k = 0; k < 4; k++)
        out->box[k] = (float)(around[k] / (k % 2 ? o->width : o->height));
    if (off > most_off && ++w->skewed <= MOST_WARNINGS)
        PM_WARN("data", "%s:%u: the corners are %.1f %% off a rectangle; the smallest rectangle "
                "around them is used", a->where, from->line, 100 * off);
}

/* Refuses labels of a larger picture: more than half of the boxes lie outside of this one. */
static int check_inside(const struct writing *w, const struct pm_annotated *a,
                        const struct pm_objects *o)
{
    double reach[2] = { 0, 0 };
    size_t outside = 0;

    for (size_t i = 0; i < o->count; i++) {
        struct pm_rectangle r;
        double box[4];

        pm_rectangle_of_box(o->item[i].rotated, o->height, o->width, &r);
        pm_rectangle_around(&r, box);
        outside += box[0] >= o->height || box[1] >= o->width || box[2] <= 0 || box[3] <= 0;
        reach[0] = fmax(reach[0], box[2]);
        reach[1] = fmax(reach[1], box[3]);
    }
    if (2 * outside <= o->count)
        return PM_OK;
    return pm_fail(PM_EDATA,
                   "%s: %zu of %zu boxes are outside of %s, which has %d x %d pixels; the boxes "
                   "reach to x %.0f, y %.0f, so the labels are of another picture: %s",
                   a->where, outside, o->count, a->path, o->width, o->height, reach[1], reach[0],
                   w->s->too_large ? w->s->too_large : "use the picture that was labelled");
}

/* Reads a trimap: its object's pixels, and their box in pixels. */
static int read_trimap(const char *path, int height, int width, struct pm_runs *runs, double box[4])
{
    char *data = NULL;
    size_t size = 0;
    struct pm_label map = { 0 };
    uint32_t at[4];
    int err = PM_OK;

    PM_TRY(pm_file_read(path, &data, &size));
    PM_TRY(pm_label_decode(data, size, 0, path, &map));
    if (map.height != height || map.width != width)
        PM_TRY(pm_fail(PM_EDATA, "%s: has %d x %d pixels, but its picture has %d x %d", path,
                       map.height, map.width, height, width));
    uint8_t *pixels = pm_malloc((size_t)height * (size_t)width);
    for (size_t i = 0; i < (size_t)height * (size_t)width; i++)
        pixels[i] = map.values[i] != PM_TRIMAP_GROUND;
    pm_runs_encode(pixels, height, width, runs);
    pm_free(pixels);
    pm_runs_box(runs, at);
    box[0] = at[1], box[1] = at[0], box[2] = at[1] + at[3], box[3] = at[0] + at[2];
out:
    pm_label_free(&map);
    pm_free(data);
    return err;
}

/* The mask and the area of an object: those of its outline, or of its box. height, width: of the
 * picture as the annotations see it. runs: the pixels of its trimap, or empty. */
static int add_mask(struct writing *w, const struct pm_annotated *a,
                    const struct pm_annotated_object *from, int orientation, int height, int width,
                    struct pm_runs *runs, struct pm_objects *o, struct pm_object *out)
{
    const size_t count = from->outline_count;
    int32_t *xy = pm_malloc((2 * count + 1) * sizeof *xy);
    int err = PM_OK;

    for (size_t i = 0; i < 2 * count; i++)
        if (!pm_coco_scaled((double)from->outline[i ^ 1] * (i % 2 ? height : width), &xy[i]))
            PM_TRY(pm_fail(PM_EDATA, "%s: corner %zu of a polygon is too far outside the picture",
                           a->where, i / 2 + 1));
    if (count) {
        pm_polygon_count(&w->polygons, xy, count, height, width, a->where);
        PM_TRY(pm_runs_polygon(xy, count, height, width, a->where, runs));
    }
    PM_TRY(pm_box_mask(runs, height, width, orientation, a->path, o, out));
    out->area = count || from->trimap
                    ? (float)pm_runs_area(runs)
                    : (out->box[2] - out->box[0]) * (out->box[3] - out->box[1]) * (float)height *
                          (float)width;
out:
    pm_free(xy);
    return err;
}

static int add_object(struct writing *w, const struct pm_annotated *a,
                      const struct pm_annotated_object *from, int orientation, int height,
                      int width, struct pm_objects *o)
{
    const struct pm_annotations *s = w->s;
    const struct pm_label_item *class = &s->item[from->class];
    struct pm_object *out = pm_objects_add(o);
    struct pm_runs runs = { 0 };
    double box[4];
    int err = PM_OK;

    memcpy(box, from->box, sizeof box);
    if (from->trimap)
        PM_TRY(read_trimap(from->trimap, height, width, &runs, box));
    for (int k = 0; k < 4 && (from->trimap || !s->unit); k++)
        box[k] /= k % 2 ? width : height;
    pm_turn_box(orientation, box);
    for (int k = 0; k < 4; k++)
        out->box[k] = (float)box[k];
    out->text = class->name;
    out->is_crowd = from->marks & PM_MARK_CROWD;
    out->difficult = from->marks & PM_MARK_DIFFICULT;
    out->group_of = from->marks & PM_MARK_GROUP_OF;
    out->truncated = from->marks & PM_MARK_TRUNCATED;
    out->view = from->view;
    add_keypoints(s, from->keypoints, orientation, o, out);
    if (from->corners)
        add_corners(w, a, from, orientation, height, width, o, out);
    if (s->masks)
        PM_TRY(add_mask(w, a, from, orientation, height, width, &runs, o, out));
out:
    pm_runs_free(&runs);
    return err;
}

/* Drops and clips boxes. The numbers of dropped and clipped ones remain in `counts`. */
static int filter(struct writing *w, const struct pm_annotated *a, struct pm_objects *o,
                  struct pm_object_counts *counts)
{
    const int err = pm_objects_filter(o, &w->split.filter, a->where, counts);

    counts->pictures = counts->empty = counts->boxes = counts->crowds = 0; /* counted later */
    if (w->s->rotated) /* still beyond the border, so these are counted later, too */
        counts->clipped = 0;
    if (counts->degenerate && ++w->flat <= MOST_WARNINGS)
        PM_WARN("data", "%s: dropped %zu box%s without an area of %s; set bad=error to refuse them",
                a->where, counts->degenerate, counts->degenerate > 1 ? "es" : "", a->path);
    return err;
}

static int add_record(struct writing *w, const struct pm_annotated *a, const struct pm_picture *p,
                      struct pm_example_builder *b)
{
    int err = PM_OK;
    const struct pm_annotations *s = w->s;
    const int orientation =
        a->window[2] ? 1 : pm_box_orientation(s->cfg->exif, p, a->height, a->width);
    const bool across = orientation >= 5;
    const int height = across ? p->image.width : p->image.height;
    const int width = across ? p->image.height : p->image.width;
    struct pm_object_counts counts = { 0 };
    struct pm_objects o;

    pm_objects_start(&o, p->image.height, p->image.width);
    o.has = s->has | PM_HAS_TEXT | PM_HAS_LABEL | pm_mask_lists(s->masks) |
            (s->masks ? PM_HAS_AREA : 0u) | (s->rotated ? PM_HAS_ROTATED : 0u);
    o.sensor = a->sensor;
    o.gsd = a->gsd;
    o.points = s->points;
    o.point_names = s->point_names;
    compare_size(w, a, height, width);
    for (size_t i = 0; i < a->count; i++)
        PM_TRY(add_object(w, a, &s->object[a->first + i], orientation, height, width, &o));
    if (s->rotated)
        PM_TRY(check_inside(w, a, &o));
    PM_TRY(filter(w, a, &o, &counts));
    PM_TRY(pm_box_record(&w->split, b, p, a->filename, NULL, &o, &counts));
out:
    pm_objects_free(&o);
    return err;
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    struct writing *w = ctx; /* its first member */
    const struct pm_annotations *s = w->s;
    const size_t at = w->shuffled
        ? pm_permute((uint64_t)s->cfg->seed, 0, w->count, w->begin + i) : w->begin + i;
    const struct pm_annotated *a = &s->picture[w->first + at];
    struct pm_picture p = { 0 };
    int err = PM_OK;

    err = a->window[2] ? pm_shared_pictures_crop(w->pictures, a->path, a->window, &p)
                       : pm_picture_read(a->path, &p);
    if (err < 0) {
        pm_picture_free(&p);
        return pm_picture_failed(err, s->cfg->bad);
    }
    err = add_record(w, a, &p, b);
    pm_picture_free(&p);
    return err;
}

/* ---- splits --------------------------------------------------------------------------------- */

static int write_part(struct writing *w, struct pm_making *m, const char *split, size_t begin,
                      size_t count)
{
    w->begin = begin;
    w->sizes = w->flat = w->skewed = 0;
    w->polygons = (struct pm_polygon_counts){ 0 };
    const int err = pm_box_split(m, split, count, &w->split, fill);
    pm_polygon_report(&w->polygons, split);
    if (w->sizes > MOST_WARNINGS)
        PM_WARN("data",
                "%s: the annotations of %zu %s state another size than the picture has; "
                "the size of the picture counts",
                split, (size_t)w->sizes, pm_plural((double)w->sizes, "picture", "pictures"));
    if (w->skewed > MOST_WARNINGS)
        PM_WARN("data", "%s: the corners of %zu boxes are more than 5 %% off a rectangle", split,
                (size_t)w->skewed);
    return err;
}

static int write_split(struct writing *w, struct pm_making *m, const char *name)
{
    int err = PM_OK;

    if (w->count == 0) {
        if (name)
            PM_WARN("data", "%s: no pictures; the split is skipped", name);
        return PM_OK;
    }
    w->shuffled = !name;
    if (name)
        return write_part(w, m, name, 0, w->count);
    const size_t held_out = (size_t)((double)w->count * w->s->cfg->validation + 0.5);
    if (held_out >= w->count)
        PM_TRY(pm_fail(PM_ECONFIG, "validation=%g leaves none of the %zu pictures for training: "
                       "set a smaller validation",
                       w->s->cfg->validation, w->count));
    PM_TRY(write_part(w, m, "train", held_out, w->count - held_out));
    if (held_out)
        PM_TRY(write_part(w, m, "validation", 0, held_out));
out:
    return err;
}

static int compare_names(const void *x, const void *y)
{
    const struct pm_label_item *const *a = x, *const *b = y;
    return strcmp((*a)->name, (*b)->name);
}

/* The label map of the classes: as given, or in the byte order of their names from 1. */
static int number_classes(const struct pm_annotations *s, struct pm_label_map *out)
{
    const size_t count = (size_t)s->map.count;
    const struct pm_label_item **sorted = pm_malloc((count + 1) * sizeof *sorted);
    struct pm_label_item *item = pm_malloc((count + 1) * sizeof *item);

    for (size_t i = 0; i < count; i++)
        sorted[i] = &s->item[i];
    if (!s->fixed && count)
        qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count; i++)
        item[i] = *sorted[i];
    const int err = pm_box_classes(s->arena, NULL, item, count,
                                   s->fixed ? s->classes_from : s->picture[0].where, out);
    pm_free(item);
    pm_free(sorted);
    return err;
}

/* Pictures without annotations are often a wrong path. */
static int check_missing(const struct pm_annotations *s)
{
    const bool skipped = s->cfg->unannotated == PM_UNANNOTATED_SKIP;
    const size_t all = s->photos ? s->photos : s->pictures + (skipped ? s->missing : 0);
    const char *what = s->photos ? "photos" : "pictures";

    if (s->missing == 0)
        return PM_OK;
    if (s->missing == all)
        return pm_fail(PM_EDATA, "none of the %zu %s has annotations: %s", all, what,
                       s->first_missing);
    PM_WARN("data", "%zu of %zu %s %s no annotations and %s %s; the first one: %s",
            s->missing, all, what, pm_plural((double)s->missing, "has", "have"),
            pm_plural((double)s->missing, "is", "are"),
            skipped ? "skipped" : s->photos ? "cut into tiles without objects"
                                            : "kept without objects",
            s->first_missing);
    return PM_OK;
}

int pm_annotations_write(struct pm_annotations *s, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_label_map map;
    struct writing w = {
        .split = { .map = &map, .filter = { .min_side = s->cfg->min_side }, .bad = s->cfg->bad,
                   .num_shards = s->cfg->num_shards },
        .s = s,
        .pictures = pm_shared_pictures_create(),
    };

    PM_TRY(check_missing(s));
    if (s->map.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "none of the %zu pictures has an object: set label_map=FILE to "
                       "name the classes", s->pictures));
    PM_TRY(number_classes(s, &map));
    pm_making_box_labels(m, &map);
    if (s->mirrored)
        pm_making_mirrored_points(m, s->mirrored, s->points);
    for (size_t k = 0; k < s->splits; k++) {
        const size_t end = k + 1 < s->splits ? s->split[k + 1].first : s->pictures;

        w.first = s->split[k].first;
        w.count = end - w.first;
        PM_TRY(write_split(&w, m, s->split[k].name));
    }
out:
    pm_shared_pictures_destroy(&w.pictures);
    return err;
}

int pm_annotations_convert(struct pm_annotations *s, const struct pm_detection_cfg *cfg,
                           const char *src, int (*add)(void *ctx, const char *src), void *ctx,
                           struct pm_making *m)
{
    int err = PM_OK;

    PM_TRY(pm_annotations_start(s, cfg));
    if (!pm_is_folder(src))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", src));
    PM_TRY(add(ctx, src));
    PM_TRY(pm_annotations_write(s, m));
out:
    pm_annotations_free(s);
    return err;
}
