/* label_reading, internal to data/: what the readers of label maps share. */
#ifndef PUMICE_DATA_LABEL_READING_H
#define PUMICE_DATA_LABEL_READING_H

#include <pumice/objects.h>

/* An item as in the file; the texts are in the arena. */
struct pm_label_raw {
    int64_t id;
    bool has_id;
    const char *name, *display_name;
    const char **points; /* [points_count] names by id; owned by the reading */
    size_t points_count, points_room;
    unsigned place; /* line of a text, or number of the item from 1 */
};
struct pm_label_reading {
    struct pm_arena *arena;
    const char *where;        /* file's name */
    bool lines;               /* places are lines; otherwise items */
    struct pm_label_raw *raw; /* owned */
    size_t count, capacity;
};
/* Fails with PM_EDATA: file, place and this text. */
int pm_label_fail(const struct pm_label_reading *r, unsigned place, const char *fmt, ...)
    PM_PRINTF(3, 4);
/* Adds an empty item and returns it. The pointer is valid until the next call. */
struct pm_label_raw *pm_label_add(struct pm_label_reading *r, unsigned place);
/* Names keypoint `id` of an item; ids are from 0. */
int pm_label_add_point(const struct pm_label_reading *r, struct pm_label_raw *item, int64_t id,
                       const char *name, unsigned place);
/* Checks the items and copies them to the arena: ids are unique and in range, names are unique
 * single lines. PM_EDATA. */
int pm_label_settle(struct pm_label_reading *r, struct pm_label_map *out);
void pm_label_reading_free(struct pm_label_reading *r);

/* ---- readers: they add the items, PM_EDATA ------------------------------------------------- */

/* Reads protobuf's text form. */
int pm_label_read_pbtxt(struct pm_label_reading *r, const char *text);
/* Reads JSON: a list of items, or an object with the list `item`. */
int pm_label_read_json(struct pm_label_reading *r, const char *text);
/* Reads a list of items; NULL or another value is refused. */
int pm_label_read_list(struct pm_label_reading *r, const struct cJSON *list);
/* Reads, checks and settles a list of items. where: its file, for messages. */
int pm_label_map_of_list(struct pm_arena *a, const struct cJSON *list, const char *where,
                         struct pm_label_map *out);

#endif
