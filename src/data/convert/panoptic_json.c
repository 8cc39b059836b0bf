/* panoptic_json: reads the file in one pass; members may have any order, and ids are matched
 * afterwards. The id of a picture is a number or a text (Cityscapes). */
#include "data/convert/panoptic_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/json_reader.h"
#include "data/inside.h"

static const int64_t most_id = (int64_t)1 << 53;
enum { MOST_SEGMENT = (1 << 24) - 1 };

struct image {
    const char *id, *file;
};
/* A segment as in the file. */
struct raw {
    int64_t id, category;
    bool crowd;
};
struct annotation {
    const char *image, *map;
    size_t first, count; /* its segments */
};
struct file {
    const char *path;
    struct pm_arena *arena;
    struct pm_panoptic_json *out;
    struct image *image; /* owned, as the next two */
    size_t images, images_room;
    struct raw *raw;
    size_t raws, raws_room;
    struct annotation *annotation;
    size_t annotations, annotations_room;
};

/* ---- the file ----------------------------------------------------------------------------- */

/* A file's name, which must lie in the folder. */
static int read_name(struct pm_json_reader *r, struct file *f, const char **out)
{
    int err = PM_OK;

    PM_TRY(pm_json_string(r));
    if (!pm_is_inside(r->text))
        PM_TRY(pm_json_reader_fail(r, "a file_name within the folder, not \"%.200s\"", r->text));
    *out = pm_arena_strdup(f->arena, r->text);
out:
    return err;
}

static int read_category(struct pm_json_reader *r, struct file *f)
{
    struct pm_panoptic_json_category c = { .id = -1 };
    struct pm_panoptic_json *out = f->out;
    int64_t thing = -1;
    size_t n = 0;
    int err = PM_OK;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "id"))
            PM_TRY(pm_json_whole(r, most_id, &c.id));
        else if (!strcmp(r->text, "isthing"))
            PM_TRY(pm_json_whole(r, 1, &thing));
        else if (!strcmp(r->text, "name"))
            PM_TRY((err = pm_json_string(r), c.name = pm_arena_strdup(f->arena, r->text), err));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    if (c.id < 0 || !c.name || thing < 0)
        PM_TRY(pm_json_reader_fail(
            r, "a category with id, name and isthing: is this a file of panoptic "
               "annotations?"));
    if (!c.name[0] || !pm_is_line(c.name))
        PM_TRY(pm_json_reader_fail(
            r, "a name of one line for the category %" PRId64 ", not \"%.200s\"", c.id, c.name));
    if (out->categories == PM_MOST_PANOPTIC_CLASSES)
        PM_TRY(pm_json_reader_fail(r, "at most %d categories", PM_MOST_PANOPTIC_CLASSES));
    for (int i = 0; i < out->categories; i++)
        if (out->category[i].id == c.id)
            PM_TRY(pm_json_reader_fail(
                r, "a unique id for the category \"%s\": %" PRIu64 " is the id of \"%s\"", c.name,
                c.id, out->category[i].name));
    c.thing = thing != 0;
    PM_GROW(out->category, out->categories, out->categories_room);
    out->category[out->categories++] = c;
out:
    return err;
}

static int read_image(struct pm_json_reader *r, struct file *f)
{
    struct image im = { NULL, NULL };
    size_t n = 0;
    int err = PM_OK;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "id"))
            PM_TRY((err = pm_json_text(r), im.id = pm_arena_strdup(f->arena, r->text), err));
        else if (!strcmp(r->text, "file_name"))
            PM_TRY(read_name(r, f, &im.file));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    if (!im.id || !im.file)
        PM_TRY(pm_json_reader_fail(r, "an image with id and file_name"));
    PM_GROW(f->image, f->images, f->images_room);
    f->image[f->images++] = im;
out:
    return err;
}

static int read_segment(struct pm_json_reader *r, struct file *f)
{
    struct raw s = { -1, -1, false };
    int64_t crowd = 0;
    size_t n = 0;
    int err = PM_OK;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "id"))
            PM_TRY(pm_json_whole(r, most_id, &s.id));
        else if (!strcmp(r->text, "category_id"))
            PM_TRY(pm_json_whole(r, most_id, &s.category));
        else if (!strcmp(r->text, "iscrowd"))
            PM_TRY(pm_json_whole(r, 1, &crowd));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    if (s.id < 1 || s.id > MOST_SEGMENT || s.category < 0)
        PM_TRY(pm_json_reader_fail(
            r,
            "a segment with an id of 1..%d, a pixel's R + 256 G + 65536 B, and a "
            "category_id",
            MOST_SEGMENT));
    s.crowd = crowd != 0;
    PM_GROW(f->raw, f->raws, f->raws_room);
    f->raw[f->raws++] = s;
out:
    return err;
}

static int read_list(struct pm_json_reader *r, struct file *f,
                     int (*read)(struct pm_json_reader *r, struct file *f))
{
    size_t n = 0;
    int err = pm_json_enter(r, '[');

    while (err == PM_OK && (err = pm_json_item(r, &n)) == 1)
        err = read(r, f);
    return err;
}

static int read_annotation(struct pm_json_reader *r, struct file *f)
{
    struct annotation s = { .first = f->raws };
    bool listed = false;
    size_t n = 0;
    int err = PM_OK;

    PM_TRY(pm_json_enter(r, '{'));
    while ((err = pm_json_member(r, &n)) == 1) {
        if (!strcmp(r->text, "image_id"))
            PM_TRY((err = pm_json_text(r), s.image = pm_arena_strdup(f->arena, r->text), err));
        else if (!strcmp(r->text, "file_name"))
            PM_TRY(read_name(r, f, &s.map));
        else if (!strcmp(r->text, "segments_info") && !listed)
            PM_TRY((listed = true, read_list(r, f, read_segment)));
        else
            PM_TRY(pm_json_skip(r));
    }
    PM_TRY(err);
    if (!s.image || !s.map || !listed)
        PM_TRY(pm_json_reader_fail(
            r, "an annotation with image_id, file_name and segments_info: is this a "
               "file of panoptic annotations?"));
    s.count = f->raws - s.first;
    PM_GROW(f->annotation, f->annotations, f->annotations_room);
    f->annotation[f->annotations++] = s;
out:
    return err;
}

static int read_all(struct file *f)
{
    struct pm_json_reader r = { .f = NULL };
    size_t n = 0;
    int err = PM_OK;

    PM_TRY(pm_json_reader_open(f->path, &r));
    PM_TRY(pm_json_enter(&r, '{'));
    while ((err = pm_json_member(&r, &n)) == 1) {
        if (!strcmp(r.text, "categories"))
            PM_TRY(read_list(&r, f, read_category));
        else if (!strcmp(r.text, "images"))
            PM_TRY(read_list(&r, f, read_image));
        else if (!strcmp(r.text, "annotations"))
            PM_TRY(read_list(&r, f, read_annotation));
        else
            PM_TRY(pm_json_skip(&r));
    }
    PM_TRY(err);
    PM_TRY(pm_json_end(&r));
    if (!f->out->categories || !f->images || !f->annotations)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the file has %d categories, %zu images and %zu annotations, but each "
                       "list needs an entry: is this a file of panoptic annotations?",
                       f->path, f->out->categories, f->images, f->annotations));
out:
    pm_json_reader_close(&r);
    return err;
}

/* ---- what belongs together ---------------------------------------------------------------- */

static int compare_images(const void *x, const void *y)
{
    return strcmp(((const struct image *)x)->id, ((const struct image *)y)->id);
}

static int compare_segments(const void *x, const void *y)
{
    const uint32_t a = ((const struct pm_panoptic_json_segment *)x)->id;
    const uint32_t b = ((const struct pm_panoptic_json_segment *)y)->id;
    return a < b ? -1 : a > b;
}

static int label_of(const struct file *f, const struct annotation *s, const struct raw *raw)
{
    for (int k = 0; k < f->out->categories; k++)
        if (f->out->category[k].id == raw->category)
            return k;
    return pm_fail(PM_EDATA,
                   "%s: segment %" PRId64 " of %s has category %" PRId64
                   ", which is not in the list of "
                   "%d categories: add it to the list",
                   f->path, raw->id, s->map, raw->category, f->out->categories);
}

static int join_segments(struct file *f, const struct annotation *s)
{
    struct pm_panoptic_json_segment *to = f->out->segment + s->first;
    int err = PM_OK;

    for (size_t i = 0; i < s->count; i++) {
        const struct raw *raw = &f->raw[s->first + i];
        const int label = label_of(f, s, raw);

        PM_TRY(label);
        to[i] = (struct pm_panoptic_json_segment){ (uint32_t)raw->id, (uint16_t)label, raw->crowd };
    }
    err = PM_OK;
    if (s->count)
        qsort(to, s->count, sizeof *to, compare_segments);
    for (size_t i = 1; i < s->count; i++)
        if (to[i].id == to[i - 1].id)
            PM_TRY(pm_fail(PM_EDATA, "%s: two segments of %s have the id %u: ids must be unique",
                           f->path, s->map, to[i].id));
out:
    return err;
}

static int join(struct file *f)
{
    struct pm_panoptic_json *out = f->out;
    int err = PM_OK;

    qsort(f->image, f->images, sizeof *f->image, compare_images);
    for (size_t i = 1; i < f->images; i++)
        if (!strcmp(f->image[i].id, f->image[i - 1].id))
            PM_TRY(pm_fail(PM_EDATA, "%s: two images have the id %s: ids must be unique", f->path,
                           f->image[i].id));
    out->segment = pm_malloc((f->raws + 1) * sizeof *out->segment);
    for (size_t i = 0; i < f->annotations; i++) {
        const struct annotation *s = &f->annotation[i];
        const struct image *im = bsearch(&(struct image){ s->image, NULL }, f->image, f->images,
                                         sizeof *f->image, compare_images);

        if (!im)
            PM_TRY(pm_fail(
                PM_EDATA,
                "%s: %s belongs to image %s, which is not in the list of %zu images: add it to "
                "the list",
                f->path, s->map, s->image, f->images));
        PM_TRY(join_segments(f, s));
        PM_GROW(out->picture, out->pictures, out->pictures_room);
        out->picture[out->pictures++] = (struct pm_panoptic_json_picture){
            im->file, s->map, out->segment + s->first, s->count };
    }
out:
    return err;
}

int pm_panoptic_json_read(const char *path, struct pm_arena *a, struct pm_panoptic_json *out)
{
    struct file f = { .path = path, .arena = a, .out = out };
    int err = PM_OK;

    *out = (struct pm_panoptic_json){ 0 };
    PM_TRY(read_all(&f));
    PM_TRY(join(&f));
out:
    pm_free(f.image);
    pm_free(f.raw);
    pm_free(f.annotation);
    if (err < 0)
        pm_panoptic_json_free(out);
    return err;
}

void pm_panoptic_json_free(struct pm_panoptic_json *p)
{
    pm_free(p->category);
    pm_free(p->picture);
    pm_free(p->segment);
    *p = (struct pm_panoptic_json){ 0 };
}
