/* label_reading: the items of a label map while it is read. All readers add them here; then one set
 * of checks follows. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "data/label_reading.h"

enum { MOST_POINTS = 1000 };

int pm_label_fail(const struct pm_label_reading *r, unsigned place, const char *fmt, ...)
{
    struct pm_str text = { 0 };
    va_list args;

    va_start(args, fmt);
    pm_str_add_args(&text, fmt, args);
    va_end(args);
    const int err =
        pm_fail(PM_EDATA, "%s%s%u: %s", r->where, r->lines ? ":" : ": item ", place, text.text);
    pm_str_free(&text);
    return err;
}

struct pm_label_raw *pm_label_add(struct pm_label_reading *r, unsigned place)
{
    PM_GROW(r->raw, r->count, r->capacity);
    r->raw[r->count] = (struct pm_label_raw){ .place = place };
    return &r->raw[r->count++];
}

int pm_label_add_point(const struct pm_label_reading *r, struct pm_label_raw *item, int64_t id,
                       const char *name, unsigned place)
{
    if (id < 0 || id >= MOST_POINTS)
        return pm_label_fail(r, place, "the keypoint has the id %" PRId64 ", outside 0..%d", id,
                             MOST_POINTS - 1);
    while (item->points_count <= (size_t)id) {
        PM_GROW(item->points, item->points_count, item->points_room);
        item->points[item->points_count++] = NULL;
    }
    if (item->points[id])
        return pm_label_fail(r, place, "two keypoints have the id %" PRId64 ": ids must be unique",
                             id);
    item->points[id] = name;
    return PM_OK;
}

/* ---- checks --------------------------------------------------------------------------------- */

static bool is_background(const struct pm_label_raw *item)
{
    return !strcmp(item->name, "background") ||
           (item->display_name && !strcmp(item->display_name, "background"));
}

static int check_item(const struct pm_label_reading *r, const struct pm_label_raw *item)
{
    if (!item->name || !item->name[0])
        return pm_label_fail(r, item->place, "the item has no name: add name: \"...\"");
    if (!item->has_id)
        return pm_label_fail(r, item->place, "\"%.200s\" has no id: add id: with a number from 1",
                             item->name);
    if (!pm_is_line(item->name) || (item->display_name && !pm_is_line(item->display_name)))
        return pm_label_fail(r, item->place,
                             "\"%.200s\": a name is one line without control characters: "
                             "rename it",
                             pm_is_line(item->name) ? item->display_name : item->name);
    if (item->id < 0 || item->id > PM_MOST_LABEL_ID)
        return pm_label_fail(r, item->place, "\"%.200s\" has the id %" PRId64 ", outside 1..%d",
                             item->name, item->id, PM_MOST_LABEL_ID);
    if (item->id == 0 && !is_background(item))
        return pm_label_fail(r, item->place,
                             "\"%.200s\" has the id 0, which is the background's: number "
                             "classes from 1",
                             item->name);
    for (size_t k = 0; k < item->points_count; k++)
        if (item->points[k] && !pm_is_line(item->points[k]))
            return pm_label_fail(r, item->place,
                                 "keypoint \"%.200s\": a name is one line without control "
                                 "characters: rename it",
                                 item->points[k]);
    return PM_OK;
}

static int by_id(const void *x, const void *y)
{
    const struct pm_label_raw *a = *(struct pm_label_raw *const *)x,
                              *b = *(struct pm_label_raw *const *)y;
    return a->id != b->id        ? (a->id < b->id ? -1 : 1)
           : a->place < b->place ? -1
                                 : a->place > b->place;
}

static int by_name(const void *x, const void *y)
{
    const struct pm_label_raw *a = *(struct pm_label_raw *const *)x,
                              *b = *(struct pm_label_raw *const *)y;
    const int c = strcmp(a->name, b->name);
    return c ? c : a->place < b->place ? -1 : a->place > b->place;
}

/* Checks that ids and names are unique. */
static int check_unique(const struct pm_label_reading *r)
{
    const struct pm_label_raw **order = pm_malloc((r->count + 1) * sizeof *order);
    int err = PM_OK;

    for (size_t i = 0; i < r->count; i++)
        order[i] = &r->raw[i];
    qsort(order, r->count, sizeof *order, by_id);
    for (size_t i = 1; i < r->count; i++)
        if (order[i]->id == order[i - 1]->id)
            PM_TRY(pm_label_fail(r, order[i]->place,
                                 "\"%.200s\" has the id %" PRId64 ", which \"%.200s\" "
                                 "(%s %u) has, too: ids must be unique",
                                 order[i]->name, order[i]->id, order[i - 1]->name,
                                 r->lines ? "line" : "item", order[i - 1]->place));
    qsort(order, r->count, sizeof *order, by_name);
    for (size_t i = 1; i < r->count; i++)
        if (!strcmp(order[i]->name, order[i - 1]->name))
            PM_TRY(pm_label_fail(r, order[i]->place,
                                 "a second item has the name \"%.200s\" (%s %u): "
                                 "names must be unique",
                                 order[i]->name, r->lines ? "line" : "item", order[i - 1]->place));
out:
    pm_free(order);
    return err;
}

int pm_label_settle(struct pm_label_reading *r, struct pm_label_map *out)
{
    struct pm_label_item *item = pm_arena_alloc(r->arena, (r->count + 1) * sizeof *item);
    int err = PM_OK;

    if (r->count == 0 || r->count > PM_MOST_LABEL_ID + 1)
        PM_TRY(pm_fail(PM_EDATA, "%s: has %zu items; a label map has 1..%d", r->where, r->count,
                       PM_MOST_LABEL_ID + 1));
    for (size_t i = 0; i < r->count; i++) {
        const struct pm_label_raw *from = &r->raw[i];

        PM_TRY(check_item(r, from));
        item[i] = (struct pm_label_item){ (int)from->id, from->name, from->display_name, NULL,
                                          (int)from->points_count };
        if (from->points_count)
            item[i].points =
                pm_arena_copy(r->arena, from->points, from->points_count * sizeof *from->points);
    }
    PM_TRY(check_unique(r));
    *out = (struct pm_label_map){ item, (int)r->count };
out:
    return err;
}

void pm_label_reading_free(struct pm_label_reading *r)
{
    for (size_t i = 0; i < r->count; i++)
        pm_free(r->raw[i].points);
    pm_free(r->raw);
}
