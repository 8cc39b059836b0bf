/* Records of pictures with boxes, and the counts that a converter logs. Several threads make
 * records, so the counts are atomic; sums do not depend on the order. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/coco_mask.h"
#include "data/convert/box_records.h"
#include "data/picture.h"

enum { MOST_LISTED = 100 }; /* classes of a log line */

struct pm_box_counts {
    _Atomic size_t pictures, empty, boxes, crowds, degenerate, outside, small, clipped;
    _Atomic size_t per_class[];
};

/* ---- classes -------------------------------------------------------------------------------- */

/* Numbers the classes as given. The checks of label maps apply to the result. */
static int number_classes(struct pm_arena *a, const struct pm_label_item *classes, size_t count,
                          const char *where, struct pm_label_map *out)
{
    struct pm_label_item *item = pm_arena_alloc(a, (count + 1) * sizeof *item);

    for (size_t i = 0; i < count; i++) {
        item[i] = classes[i];
        item[i].id = classes[i].id ? classes[i].id : (int)i + 1;
    }
    *out = (struct pm_label_map){ item, (int)count };
    return pm_label_map_check(out, where);
}

int pm_box_classes(struct pm_arena *a, const char *path, const struct pm_label_item *classes,
                   size_t count, const char *where, struct pm_label_map *out)
{
    int err = PM_OK;

    if (!path)
        return number_classes(a, classes, count, where, out);
    PM_TRY(pm_label_map_read(a, path, out));
    for (size_t i = 0; i < count; i++) {
        const char *name = classes[i].name;
        const char *near = NULL;

        if (pm_label_map_find(out, name) > 0)
            continue;
        near = pm_label_map_nearest(out, name);
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: has no class \"%.200s\", which %s has%s%s%s: add it to the "
                       "label map",
                       path, name, where, near ? "; did you mean \"" : "", near ? near : "",
                       near ? "\"?" : ""));
    }
out:
    return err;
}

/* ---- EXIF ----------------------------------------------------------------------------------- */

int pm_box_orientation(int exif, const struct pm_picture *p, int height, int width)
{
    const bool clear = p->orientation >= 5 && p->image.height != p->image.width;
    const bool shown = exif == PM_EXIF_AUTO
                           ? clear && height == p->image.height && width == p->image.width
                           : exif == PM_EXIF_SHOWN;

    return shown ? 1 : p->orientation;
}

void pm_turn_point(int orientation, double *y, double *x)
{
    const double u = *x, v = *y;

    switch (orientation) {
    case 2: *x = 1 - u; break;
    case 3: *x = 1 - u, *y = 1 - v; break;
    case 4: *y = 1 - v; break;
    case 5: *x = v, *y = u; break;
    case 6: *x = 1 - v, *y = u; break;
    case 7: *x = 1 - v, *y = 1 - u; break;
    case 8: *x = v, *y = 1 - u; break;
    default: break;
    }
}

void pm_turn_box(int orientation, double box[4])
{
    double y[2] = { box[0], box[2] }, x[2] = { box[1], box[3] };
    const bool reversed_y = y[0] > y[1], reversed_x = x[0] > x[1];

    for (int k = 0; k < 2; k++)
        pm_turn_point(orientation, &y[k], &x[k]);
    const bool across = orientation >= 5;
    const bool swap_y = across ? reversed_x : reversed_y, swap_x = across ? reversed_y : reversed_x;
    box[swap_y ? 2 : 0] = fmin(y[0], y[1]);
    box[swap_y ? 0 : 2] = fmax(y[0], y[1]);
    box[swap_x ? 3 : 1] = fmin(x[0], x[1]);
    box[swap_x ? 1 : 3] = fmax(x[0], x[1]);
}

static void set_runs(const struct pm_runs *runs, struct pm_objects *o, struct pm_object *object)
{
    struct pm_str text = { 0 };

    pm_runs_print(runs, &text);
    object->mask = pm_arena_copy(o->arena, text.text, text.length);
    object->mask_size = text.length;
    pm_str_free(&text);
}

int pm_box_mask(const struct pm_runs *runs, int height, int width, int orientation,
                const char *path, struct pm_objects *o, struct pm_object *object)
{
    const struct pm_picture_file file = { .where = path, .kind = "mask" };

    if (o->has & PM_HAS_RLE && orientation == 1 && runs->run) {
        set_runs(runs, o, object);
        return PM_OK;
    }
    struct pm_image8 mask = { height, width, 1, pm_calloc((size_t)height, (size_t)width) };
    uint8_t *png = NULL;
    size_t size = 0;
    int err = PM_OK;

    if (runs->run)
        pm_runs_decode(runs, mask.pixels);
    PM_TRY(pm_picture_turn(&file, &mask, orientation));
    if (o->has & PM_HAS_RLE) {
        struct pm_runs turned;

        pm_runs_encode(mask.pixels, mask.height, mask.width, &turned);
        set_runs(&turned, o, object);
        pm_runs_free(&turned);
        goto out;
    }
    PM_TRY(pm_image_encode_png(&mask, &png, &size));
    object->mask = pm_arena_copy(o->arena, png, size);
    object->mask_size = size;
out:
    pm_free(png);
    pm_image_free(&mask);
    return err;
}

/* ---- records -------------------------------------------------------------------------------- */

static void count(struct pm_box_split *s, const struct pm_objects *o,
                  const struct pm_object_counts *c)
{
    struct pm_box_counts *to = s->counts;

    to->pictures += c->pictures;
    to->empty += c->empty;
    to->boxes += c->boxes;
    to->crowds += c->crowds;
    to->degenerate += c->degenerate;
    to->outside += c->outside;
    to->small += c->small;
    to->clipped += c->clipped;
    for (size_t i = 0; i < o->count; i++)
        for (int k = 0; k < s->map->count; k++)
            to->per_class[k] += s->map->item[k].id == o->item[i].label;
}

static void add_picture(struct pm_example_builder *b, const struct pm_picture *p, const char *name,
                        const char *id)
{
    const int64_t height = p->image.height, width = p->image.width;
    struct pm_sha256 hash;
    char hex[65];

    pm_sha256_start(&hash);
    pm_sha256_add(&hash, p->data, p->size);
    pm_sha256_end(&hash, hex);
    pm_example_add_bytes(b, "image/encoded", p->data, p->size);
    pm_add_text(b, "image/format", p->format);
    pm_example_add_ints(b, "image/height", &height, 1);
    pm_example_add_ints(b, "image/width", &width, 1);
    pm_add_text(b, "image/filename", name);
    pm_add_text(b, "image/source_id", id ? id : name);
    pm_add_text(b, "image/key/sha256", hex);
}

int pm_box_record(struct pm_box_split *s, struct pm_example_builder *b, const struct pm_picture *p,
                  const char *name, const char *id, struct pm_objects *o,
                  const struct pm_object_counts *dropped)
{
    struct pm_object_counts c = { 0 };
    int err = PM_OK;

    if (dropped)
        c = *dropped;
    PM_TRY(pm_objects_filter(o, &s->filter, name, &c));
    PM_TRY(pm_objects_resolve(o, s->map, name));
    o->has |= PM_HAS_TEXT | PM_HAS_LABEL;
    add_picture(b, p, name, id);
    pm_objects_write(o, b);
    count(s, o, &c);
    err = 1;
out:
    return err;
}

/* ---- splits --------------------------------------------------------------------------------- */

struct used {
    const char *name;
    size_t count;
    int place;
};

static int by_count(const void *x, const void *y)
{
    const struct used *a = x, *b = y;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : a->place - b->place;
}

/* Logs the boxes per class, the most frequent class first. */
static void log_classes(const char *split, const struct pm_box_split *s)
{
    struct used *list = pm_malloc(((size_t)s->map->count + 1) * sizeof *list);
    struct pm_str text = { 0 };
    int used = 0;

    for (int k = 0; k < s->map->count; k++) {
        const struct pm_label_item *item = &s->map->item[k];
        const char *name = item->display_name ? item->display_name : item->name;

        if (s->counts->per_class[k])
            list[used++] = (struct used){ name, s->counts->per_class[k], k };
    }
    qsort(list, (size_t)used, sizeof *list, by_count);
    for (int k = 0; k < used && k < MOST_LISTED; k++)
        pm_str_add(&text, "%s%s %zu", k ? ", " : "", list[k].name, list[k].count);
    if (used)
        PM_INFO("data", "%s: %d of %d classes have boxes: %s%s", split, used, s->map->count,
                text.text, used > MOST_LISTED ? ", ..." : "");
    pm_str_free(&text);
    pm_free(list);
}

static void log_counts(const char *split, const struct pm_box_split *s)
{
    const struct pm_box_counts *c = s->counts;
    const struct pm_object_counts all = { c->pictures,   c->empty,   c->boxes, c->crowds,
                                          c->degenerate, c->outside, c->small, c->clipped };
    struct pm_str text = { 0 };

    pm_object_counts_print(&all, &text);
    PM_INFO("data", "%s: %s", split, text.text);
    pm_str_free(&text);
    log_classes(split, s);
}

int pm_box_split(struct pm_making *m, const char *split, size_t count, struct pm_box_split *s,
                 int (*fill)(void *ctx, size_t i, struct pm_example_builder *b))
{
    const size_t most = count ? count : 1, wanted = (size_t)s->num_shards;
    const struct pm_sharding sharding = { PM_CUT_DEAL, wanted < most ? wanted : most,
                                          PM_NAMES_RECORD };
    struct pm_box_counts *c =
        pm_calloc(1, sizeof *c + (size_t)s->map->count * sizeof *c->per_class);
    int err = PM_OK;

    s->counts = c;
    s->filter.error = s->bad == PM_BAD_ERROR;
    PM_TRY(pm_making_split(m, split, count, &sharding, fill, s));
    log_counts(split, s);
out:
    s->counts = NULL;
    pm_free(c);
    return err;
}
