/* coco_json: reads the annotations of COCO in one pass with memory for what is kept. Members may
 * have any order; ids are matched afterwards. Corners of polygons are stored in the fifths of a
 * pixel in which they are drawn. */
#include "data/convert/coco_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/objects.h>

#include "data/coco_mask.h"
#include "data/convert/json_reader.h"
#include "data/inside.h"

static const int64_t most_id = (int64_t)1 << 53;
enum { MOST_PIXELS = 1 << 30 };
enum { MOST_SIDE = 1 << 20, MOST_POINTS = 1000 };
enum { MOST_TEXT = 64 << 20, MOST_NUMBERS = 1 << 24 }; /* of one mask, or one polygon */

struct file {
    struct pm_json_reader r;
    struct pm_arena *arena;
    struct pm_coco *out;
    bool shapes;
};

/* Reads each item of a list. */
static int read_list(struct file *f, void *ctx, int (*read)(struct file *f, void *ctx))
{
    size_t n = 0;
    int err = pm_json_enter(&f->r, '[');

    while (err == PM_OK && (err = pm_json_item(&f->r, &n)) == 1)
        err = read(f, ctx);
    return err;
}

/* ---- categories and images ------------------------------------------------------------------ */

struct names {
    const char **v; /* owned */
    size_t count, room;
};

static int read_name(struct file *f, const char **out)
{
    int err = PM_OK;

    PM_TRY(pm_json_string(&f->r));
    if (!f->r.text[0] || !pm_is_line(f->r.text))
        PM_TRY(pm_json_reader_fail(&f->r, "a name of one line, not \"%.200s\"", f->r.text));
    *out = pm_arena_strdup(f->arena, f->r.text);
out:
    return err;
}

static int read_point_name(struct file *f, void *ctx)
{
    struct names *names = ctx;

    if (names->count == MOST_POINTS)
        return pm_json_reader_fail(&f->r, "%d keypoints at most", MOST_POINTS);
    PM_GROW(names->v, names->count, names->room);
    return read_name(f, &names->v[names->count++]);
}

static int read_category(struct file *f, void *ctx)
{
    struct pm_json_reader *r = &f->r;
    struct pm_coco *out = f->out;
    struct pm_coco_category c = { .id = -1 };
    struct names points = { 0 };
    size_t n = 0;
    int err = PM_OK;

    (void)ctx;
    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "id"))
            PM_TRY(pm_json_whole(r, PM_MOST_LABEL_ID, &c.id));
        else if (!strcmp(r->text, "name"))
            PM_TRY(read_name(f, &c.name));
        else if (!strcmp(r->text, "keypoints") && pm_json_next(r) == '[')
            PM_TRY((points.count = 0, read_list(f, &points, read_point_name)));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    if (c.id < 0 || !c.name)
        PM_TRY(pm_json_reader_fail(r, "a category with id and name"));
    for (size_t i = 0; i < out->categories; i++)
        if (out->category[i].id == c.id)
            PM_TRY(pm_json_reader_fail(r,
                                       "a unique id for the category \"%s\": %" PRId64 " is "
                                       "\"%s\"",
                                       c.name, c.id, out->category[i].name));
    c.points_count = (int)points.count;
    if (points.count)
        c.points = pm_arena_copy(f->arena, points.v, points.count * sizeof *points.v);
    PM_GROW(out->category, out->categories, out->categories_room);
    out->category[out->categories++] = c;
out:
    pm_free(points.v);
    return err;
}

static int read_image(struct file *f, void *ctx)
{
    struct pm_json_reader *r = &f->r;
    struct pm_coco *out = f->out;
    struct pm_coco_image im = { .id = -1 };
    int64_t height = 0, width = 0;
    size_t n = 0;
    int err = PM_OK;

    (void)ctx;
    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "id"))
            PM_TRY(pm_json_whole(r, most_id, &im.id));
        else if (!strcmp(r->text, "height"))
            PM_TRY(pm_json_whole(r, MOST_SIDE, &height));
        else if (!strcmp(r->text, "width"))
            PM_TRY(pm_json_whole(r, MOST_SIDE, &width));
        else if (!strcmp(r->text, "file_name"))
            PM_TRY(read_name(f, &im.name));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    if (im.id < 0 || height < 1 || width < 1 || !im.name)
        PM_TRY(pm_json_reader_fail(r, "an image with id, height, width and file_name"));
    if (!pm_is_inside(im.name))
        PM_TRY(pm_json_reader_fail(r, "a file_name within the folder, not \"%.200s\"", im.name));
    im.height = (int)height, im.width = (int)width;
    PM_GROW(out->image, out->images, out->images_room);
    out->image[out->images++] = im;
out:
    return err;
}

/* ---- shapes --------------------------------------------------------------------------------- */

static void push_value(struct pm_coco *out, int32_t v)
{
    PM_GROW(out->value, out->values, out->values_room);
    out->value[out->values++] = v;
}

/* Counts the numbers of a list and refuses a list that is too long. */
static int count_number(struct file *f, size_t *count, size_t most)
{
    return ++*count <= most ? PM_OK
                            : pm_json_reader_fail(&f->r, "at most %zu numbers in a list", most);
}

static int read_corner(struct file *f, void *ctx)
{
    double v = 0;
    int32_t scaled = 0;
    int err = PM_OK;

    PM_TRY(count_number(f, ctx, MOST_NUMBERS));
    PM_TRY(pm_json_number(&f->r, &v));
    if (!pm_coco_scaled(v, &scaled))
        PM_TRY(pm_json_reader_fail(&f->r, "a coordinate in pixels, not %g", v));
    push_value(f->out, scaled);
out:
    return err;
}

static int read_polygon(struct file *f, void *ctx)
{
    struct pm_coco *out = f->out;
    const size_t begin = out->values;
    size_t numbers = 0;
    int err = PM_OK;

    (void)ctx;
    push_value(out, 0);
    PM_TRY(read_list(f, &numbers, read_corner));
    if (numbers % 2)
        PM_TRY(pm_json_reader_fail(&f->r, "a polygon of pairs x, y, not %zu numbers", numbers));
    out->value[begin] = (int32_t)(numbers / 2);
    if (numbers < 6) {
        out->values = begin;
        out->thin++;
    }
out:
    return err;
}

static int read_run(struct file *f, void *ctx)
{
    int64_t v = 0;
    int err = PM_OK;

    PM_TRY(count_number(f, ctx, MOST_NUMBERS));
    PM_TRY(pm_json_whole(&f->r, (int64_t)PM_COCO_PIXELS, &v));
    push_value(f->out, (int32_t)v);
out:
    return err;
}

static int read_side(struct file *f, void *ctx)
{
    struct pm_coco_object *o = ctx;
    int64_t v = 0;
    int err = PM_OK;

    PM_TRY(pm_json_whole(&f->r, MOST_SIDE, &v));
    if (o->width)
        PM_TRY(pm_json_reader_fail(&f->r, "a size of height and width"));
    if (o->height)
        o->width = (int)v;
    else
        o->height = (int)v;
out:
    return err;
}

/* Reads {"counts": list or text, "size": [height, width]}. */
static int read_runs(struct file *f, struct pm_coco_object *o)
{
    struct pm_json_reader *r = &f->r;
    struct pm_coco *out = f->out;
    size_t n = 0, runs = 0;
    int err = PM_OK;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "size")) {
            o->height = o->width = 0;
            PM_TRY(read_list(f, o, read_side));
        } else if (!strcmp(r->text, "counts") && pm_json_next(r) == '"') {
            o->shape = PM_COCO_TEXT;
            o->value = out->texts.length;
            PM_TRY(pm_json_long_string(r, MOST_TEXT, &out->texts));
            pm_str_bytes(&out->texts, "", 1);
        } else if (!strcmp(r->text, "counts")) {
            o->shape = PM_COCO_RUNS;
            o->value = out->values; /* also after a text */
            PM_TRY((runs = 0, read_list(f, &runs, read_run)));
        } else {
            PM_TRY(pm_json_skip(r));
        }
    }
    PM_TRY(err);
    if (o->shape == PM_COCO_NONE || !o->width)
        PM_TRY(pm_json_reader_fail(r, "a mask with counts and size"));
out:
    return err;
}

static int read_shape(struct file *f, struct pm_coco_object *o)
{
    const int next = pm_json_next(&f->r);
    int err = PM_OK;

    if (!f->shapes || (next != '[' && next != '{'))
        return pm_json_skip(&f->r);
    o->shape = PM_COCO_NONE;
    o->value = f->out->values;
    if (next == '{') {
        PM_TRY(read_runs(f, o));
    } else {
        PM_TRY(read_list(f, NULL, read_polygon));
        o->shape = f->out->values > o->value ? PM_COCO_POLYGONS : PM_COCO_NONE;
    }
    o->value_count = o->shape == PM_COCO_TEXT ? 0 : f->out->values - o->value;
out:
    return err;
}

/* ---- annotations ---------------------------------------------------------------------------- */

struct box {
    double v[4];
    size_t count;
};

static int read_box_side(struct file *f, void *ctx)
{
    struct box *b = ctx;
    double v = 0;
    int err = PM_OK;

    PM_TRY(pm_json_number(&f->r, &v));
    if (b->count < 4)
        b->v[b->count] = v;
    b->count++;
out:
    return err;
}

/* Reads a number of pixels. Larger numbers would become infinite in a record. */
static int read_pixels(struct pm_json_reader *r, double *out)
{
    const int err = pm_json_number(r, out);

    if (err == PM_OK && !(fabs(*out) <= MOST_PIXELS))
        return pm_json_reader_fail(r, "a number of pixels, not %g", *out);
    return err;
}

static int read_coordinate(struct file *f, void *ctx)
{
    struct pm_coco *out = f->out;
    double v = 0;
    int err = PM_OK;

    PM_TRY(count_number(f, ctx, (size_t)3 * MOST_POINTS));
    PM_TRY(read_pixels(&f->r, &v));
    PM_GROW(out->point, out->points, out->points_room);
    out->point[out->points++] = v;
out:
    return err;
}

static int read_points(struct file *f, struct pm_coco_object *o)
{
    struct pm_coco *out = f->out;
    size_t numbers = 0;
    int err = PM_OK;

    o->point = out->points;
    PM_TRY(read_list(f, &numbers, read_coordinate));
    if (numbers % 3)
        PM_TRY(pm_json_reader_fail(&f->r, "keypoints x, y, visibility, not %zu numbers", numbers));
    for (size_t i = o->point + 2; i < out->points; i += 3)
        if (out->point[i] != 0 && out->point[i] != 1 && out->point[i] != 2)
            PM_TRY(pm_json_reader_fail(&f->r, "a keypoint's visibility of 0, 1 or 2, not %g",
                                       out->point[i]));
    o->point_count = (int)(numbers / 3);
    if (o->point_count > out->most_points)
        out->most_points = o->point_count;
out:
    return err;
}

static int read_crowd(struct pm_json_reader *r, struct pm_coco_object *o)
{
    int64_t crowd = 0;
    const int err = pm_json_whole(r, 1, &crowd);

    o->crowd = crowd != 0;
    return err;
}

static int read_object_member(struct file *f, struct pm_coco_object *o, struct box *box)
{
    struct pm_json_reader *r = &f->r;
    const char *key = r->text;

    if (!strcmp(key, "id"))
        return pm_json_whole(r, most_id, &o->id);
    if (!strcmp(key, "image_id"))
        return pm_json_whole(r, most_id, &o->image);
    if (!strcmp(key, "category_id"))
        return pm_json_whole(r, most_id, &o->category);
    if (!strcmp(key, "iscrowd"))
        return read_crowd(r, o);
    if (!strcmp(key, "area") && pm_json_next(r) != 'n')
        return read_pixels(r, &o->area);
    if (!strcmp(key, "bbox"))
        return box->count = 0, read_list(f, box, read_box_side);
    if (!strcmp(key, "segmentation"))
        return read_shape(f, o);
    if (!strcmp(key, "keypoints") && pm_json_next(r) == '[')
        return read_points(f, o);
    return pm_json_skip(r);
}

static int read_object(struct file *f, void *ctx)
{
    struct pm_json_reader *r = &f->r;
    struct pm_coco *out = f->out;
    struct pm_coco_object o = {
        .id = -1, .image = -1, .category = -1, .area = -1, .place = out->objects
    };
    struct box box = { .count = 0 };
    size_t n = 0;
    int err = PM_OK;

    (void)ctx;
    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1)
        PM_TRY(read_object_member(f, &o, &box));
    PM_TRY(err);
    if (o.image < 0 || o.category < 0 || box.count != 4)
        PM_TRY(pm_json_reader_fail(
            r, "an annotation with image_id, category_id and a bbox of four numbers: is this a "
               "file of instances?"));
    memcpy(o.box, box.v, sizeof o.box);
    PM_GROW(out->object, out->objects, out->objects_room);
    out->object[out->objects++] = o;
out:
    return err;
}

/* ---- the file ------------------------------------------------------------------------------- */

static int read_all(struct file *f, const char *path)
{
    struct pm_json_reader *r = &f->r;
    size_t n = 0;
    int err = PM_OK;

    PM_TRY(pm_json_reader_open(path, r));
    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "categories"))
            PM_TRY(read_list(f, NULL, read_category));
        else if (!strcmp(r->text, "images"))
            PM_TRY(read_list(f, NULL, read_image));
        else if (!strcmp(r->text, "annotations"))
            PM_TRY(read_list(f, NULL, read_object));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    PM_TRY(pm_json_end(r));
    if (!f->out->images || !f->out->categories)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: has %zu images and %zu categories, and needs both: is this a "
                       "file of instances?",
                       path, f->out->images, f->out->categories));
out:
    pm_json_reader_close(r);
    return err;
}

static int compare_images(const void *x, const void *y)
{
    const int64_t a = (*(struct pm_coco_image *const *)x)->id;
    const int64_t b = (*(struct pm_coco_image *const *)y)->id;
    return a < b ? -1 : a > b;
}

static int compare_objects(const void *x, const void *y)
{
    const struct pm_coco_object *a = x, *b = y;
    if (a->image != b->image)
        return a->image < b->image ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int find_category(const struct pm_coco *c, int64_t id)
{
    for (size_t k = 0; k < c->categories; k++)
        if (c->category[k].id == id)
            return (int)k;
    return -1;
}

/* Sorts the objects by image and gives each image its own. */
static int settle(struct pm_coco *c, const char *path)
{
    struct pm_coco_image **by_id = pm_malloc((c->images + 1) * sizeof *by_id);
    size_t k = 0;
    int err = PM_OK;

    for (size_t i = 0; i < c->images; i++)
        by_id[i] = &c->image[i];
    qsort(by_id, c->images, sizeof *by_id, compare_images);
    for (size_t i = 1; i < c->images; i++)
        if (by_id[i]->id == by_id[i - 1]->id)
            PM_TRY(pm_fail(PM_EDATA, "%s: two images have the id %" PRId64 ": ids must be unique",
                           path, by_id[i]->id));
    if (c->objects)
        qsort(c->object, c->objects, sizeof *c->object, compare_objects);
    for (size_t i = 0; i < c->objects; i++)
        c->object[i].kind = find_category(c, c->object[i].category);
    for (size_t i = 0; i < c->images; i++) {
        for (; k < c->objects && c->object[k].image < by_id[i]->id; k++)
            c->strays++;
        by_id[i]->first = k;
        while (k < c->objects && c->object[k].image == by_id[i]->id)
            k++;
        by_id[i]->count = k - by_id[i]->first;
    }
    c->strays += c->objects - k;
out:
    pm_free(by_id);
    return err;
}

int pm_coco_read(const char *path, bool shapes, struct pm_arena *a, struct pm_coco *out)
{
    struct file f = { .r = { .f = NULL }, .arena = a, .out = out, .shapes = shapes };
    int err = PM_OK;

    *out = (struct pm_coco){ 0 };
    PM_TRY(read_all(&f, path));
    PM_TRY(settle(out, path));
out:
    return err;
}

int pm_coco_check_kinds(const struct pm_coco *c, const char *path)
{
    for (size_t i = 0; i < c->objects; i++) {
        const struct pm_coco_object *o = &c->object[i];

        if (o->kind < 0)
            return pm_fail(PM_EDATA,
                           "%s: annotation %" PRId64 " (place %zu in the list) has the category id "
                           "%" PRId64 ", which is not in the list of %zu categories: add it to the "
                           "list", path, o->id, o->place + 1, o->category, c->categories);
    }
    return PM_OK;
}

void pm_coco_free(struct pm_coco *c)
{
    pm_free(c->category);
    pm_free(c->image);
    pm_free(c->object);
    pm_free(c->value);
    pm_free(c->point);
    pm_str_free(&c->texts);
    *c = (struct pm_coco){ 0 };
}

/* ---- keypoints of another file -------------------------------------------------------------- */

static int compare_ids(const void *x, const void *y)
{
    const int64_t a = (*(struct pm_coco_object *const *)x)->id;
    const int64_t b = (*(struct pm_coco_object *const *)y)->id;
    return a < b ? -1 : a > b;
}

/* The objects of a file by id; the caller frees the list. */
static int list_by_id(const struct pm_coco *c, const char *path, struct pm_coco_object ***out)
{
    struct pm_coco_object **list = pm_malloc((c->objects + 1) * sizeof *list);
    int err = PM_OK;

    *out = list;
    for (size_t i = 0; i < c->objects; i++)
        list[i] = &c->object[i];
    if (c->objects)
        qsort(list, c->objects, sizeof *list, compare_ids);
    for (size_t i = 1; i < c->objects; i++)
        if (list[i]->id == list[i - 1]->id)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: two annotations have the id %" PRId64 " (-1: none): "
                           "keypoints are matched by ids, which must be unique",
                           path, list[i]->id));
out:
    return err;
}

static void move_names(struct pm_coco *to, const struct pm_coco *from)
{
    for (size_t i = 0; i < to->categories; i++)
        for (size_t k = 0; k < from->categories; k++)
            if (from->category[k].id == to->category[i].id && from->category[k].points_count) {
                to->category[i].points = from->category[k].points;
                to->category[i].points_count = from->category[k].points_count;
            }
}

int pm_coco_merge_points(struct pm_coco *to, const char *to_path, const struct pm_coco *from,
                         const char *from_path, size_t *unknown)
{
    struct pm_coco_object **have = NULL, **come = NULL;
    size_t i = 0;
    int err = PM_OK;

    *unknown = 0;
    PM_TRY(list_by_id(to, to_path, &have));
    PM_TRY(list_by_id(from, from_path, &come));
    move_names(to, from);
    pm_free(to->point);
    to->point = pm_malloc((from->points + 1) * sizeof *to->point);
    to->points = to->points_room = from->points;
    to->most_points = from->most_points;
    if (from->points)
        memcpy(to->point, from->point, from->points * sizeof *to->point);
    for (size_t k = 0; k < to->objects; k++)
        to->object[k].point_count = 0;
    for (size_t k = 0; k < from->objects; k++) {
        while (i < to->objects && have[i]->id < come[k]->id)
            i++;
        if (i == to->objects || have[i]->id != come[k]->id) {
            ++*unknown;
            continue;
        }
        have[i]->point = come[k]->point;
        have[i]->point_count = come[k]->point_count;
    }
out:
    pm_free(have);
    pm_free(come);
    return err;
}
