/* dataset_boxes: draws the objects of records. Colours belong to classes, so that a wrong class
 * shows; without a class number the name chooses the colour. */
#include "app/dataset_boxes.h"
#include "app/dataset_words.h"

#include <stdlib.h>
#include <string.h>

enum { CANVAS = 600 }; /* pixels: smaller pictures are enlarged, so that captions fit */

int app_object_class(const struct pm_object *o, const struct pm_label_map *map)
{
    const int id = o->text ? pm_label_map_find(map, o->text) : -1;

    if (id > 0)
        return id;
    if (o->text && map->count)
        return 0;
    return o->label > 0 && o->label <= PM_MOST_LABEL_ID ? (int)o->label : 0;
}

const char *app_object_name(const struct pm_object *o, const struct pm_label_map *map, char *buf,
                            size_t size)
{
    const struct pm_label_item *item = pm_label_map_item(map, app_object_class(o, map));

    if (item)
        return item->display_name ? item->display_name : item->name;
    if (o->text)
        return o->text;
    snprintf(buf, size, "class %lld", (long long)o->label);
    return buf;
}

static struct pm_color color_of(const struct pm_object *o, const struct pm_label_map *map)
{
    const int id = app_object_class(o, map);

    return pm_draw_color(id > 0 ? (size_t)id - 1 : o->text ? pm_hash(o->text) : 0);
}

/* Returns the caption: the name and the marks of the object. Letters beyond ASCII cannot be drawn,
 * so the number of the class stands before such a name. */
static const char *caption(struct pm_arena *a, const struct pm_object *o,
                           const struct pm_label_map *map)
{
    char buf[40];
    const char *name = app_object_name(o, map, buf, sizeof buf);
    bool ascii = true;

    for (const char *p = name; *p; p++)
        ascii &= (unsigned char)*p < 0x80;
    return pm_arena_printf(a, "%s%s%s%s%s",
                           ascii ? "" : pm_arena_printf(a, "#%d ", app_object_class(o, map)), name,
                           o->is_crowd ? " (crowd)" : "", o->group_of ? " (group)" : "",
                           o->difficult ? " (difficult)" : "");
}

/* Draws the masks; objects without one are left out. */
static int draw_masks(const struct pm_objects *o, const struct pm_label_map *map, const char *where,
                      struct pm_image8 *im)
{
    uint8_t *mask = pm_malloc((size_t)o->height * (size_t)o->width);
    int err = PM_OK;

    for (size_t i = 0; i < o->count; i++) {
        if (!pm_object_has_mask(&o->item[i]))
            continue;
        PM_TRY(pm_objects_mask(o, i, where, mask));
        pm_draw_mask(im, mask, o->height, o->width, color_of(&o->item[i], map));
    }
out:
    pm_free(mask);
    return err;
}

static void draw_points(const struct pm_objects *o, struct pm_image8 *im)
{
    for (size_t i = 0; i < o->count; i++)
        for (int k = 0; o->item[i].keypoints && k < o->points; k++) {
            const struct pm_keypoint *p = &o->item[i].keypoints[k];

            if (p->visibility > 0)
                pm_draw_point(im, (double)p->y, (double)p->x, pm_draw_color((size_t)k),
                              p->visibility == 1);
        }
}

static void draw_boxes(const struct pm_objects *o, const struct pm_label_map *map,
                       struct pm_image8 *im)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_marked_box *box = pm_calloc(o->count + 1, sizeof *box);

    for (size_t i = 0; i < o->count; i++) {
        const struct pm_object *one = &o->item[i];

        memcpy(box[i].box, one->box, sizeof one->box);
        memcpy(box[i].rotated, one->rotated, sizeof one->rotated);
        box[i].turned = o->has & PM_HAS_ROTATED;
        box[i].text = caption(a, one, map);
        box[i].color = color_of(one, map);
        box[i].dashed = one->is_crowd || one->group_of;
    }
    pm_draw_boxes(im, box, o->count);
    pm_free(box);
    pm_arena_destroy(&a);
}

/* Whether the record has a list of boxes, even an empty one. */
static bool has_boxes(const struct pm_example *e)
{
    const char *kind = NULL;
    size_t values = 0;

    for (size_t i = 0; i < pm_example_count(e); i++) {
        const char *key = pm_example_key(e, i, &kind, &values);

        if (!strcmp(key, "image/object/bbox/xmin") || !strcmp(key, "image/object/rbbox/cx"))
            return true;
    }
    return false;
}

int app_draw_objects(const struct pm_example *e, const struct pm_label_map *map, const char *where,
                     struct pm_image8 *out)
{
    const uint8_t *data = NULL;
    size_t size = 0;
    struct pm_image8 im = { 0 };
    struct pm_objects o = { 0 };
    int err = PM_OK, found = 0;

    *out = (struct pm_image8){ 0 };
    PM_TRY(found = pm_example_bytes(e, "image/encoded", &data, &size));
    if (!found || !has_boxes(e))
        return 0;
    PM_TRY(pm_objects_parse(e, true, where, &o));
    PM_TRY(pm_image_decode(data, size, 3, 0, where, &im));
    if (!o.height || !o.width)
        o.height = im.height, o.width = im.width;
    pm_draw_canvas(&im, CANVAS, out);
    PM_TRY(draw_masks(&o, map, where, out));
    draw_boxes(&o, map, out);
    draw_points(&o, out);
    err = 1;
out:
    if (err < 0)
        pm_image_free(out);
    pm_objects_free(&o);
    pm_image_free(&im);
    return err;
}

int app_save_drawn(const struct pm_example *e, const struct pm_label_map *map, const char *where,
                   const char *folder, const char *path)
{
    int err = PM_OK, found = 0;
    struct pm_image8 im = { 0 };
    uint8_t *png = NULL;
    size_t size = 0;

    if (!folder)
        return PM_OK;
    PM_TRY(pm_make_folders(folder));
    PM_TRY(found = app_draw_objects(e, map, where, &im));
    if (!found)
        PM_TRY(found = app_draw_word(e, where, &im));
    if (!found)
        return PM_OK;
    PM_TRY(pm_image_encode_png(&im, &png, &size));
    PM_TRY(pm_file_write(path, png, size));
out:
    pm_free(png);
    pm_image_free(&im);
    return err < 0 ? err : PM_OK;
}
