/* label_map_items: the items of a label map while it is read. Both readers add them here. */
#include <inttypes.h>
#include <stdarg.h>

#include "data/label_map.h"

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
