/* seen_pictures: the pictures of an evaluation that a report can show: those with the most wrong
 * pixels, and some selected by their records' hashes. Of a picture's prediction only every n-th row
 * and column is stored. */
#ifndef PM_SEEN_PICTURES_H
#define PM_SEEN_PICTURES_H

#include "tasks/segmentation/instance_group.h"

#include <pumice/task.h>

struct pm_unpack;

enum { PM_SEEN_WORST = PM_MAX_SAMPLES * 2 / 3 };

struct pm_seen {
    double key; /* the list is in ascending order of it, then of the record */
    uint64_t record;
    double accuracy;       /* NAN: every pixel is ignored */
    struct pm_frame frame; /* of the net */
    int step;              /* every step-th row and column is stored */
    int rows, columns;     /* of the stored ones, at most 256 */
    uint16_t *classes;     /* [rows][columns], owned */
    int32_t *ids;          /* [rows][columns] of segments, owned; NULL without instances */
};
/* The first pictures by key, then by record. */
struct pm_seen_list {
    struct pm_seen list[PM_MAX_SAMPLES];
    int count, most;
};
struct pm_seen_pictures {
    struct pm_seen_list worst, chance; /* a picture can be in both */
};
void pm_seen_create(struct pm_seen_pictures *p);
void pm_seen_free(struct pm_seen_pictures *p);
/* Adds a picture. classes: [frame.height][frame.width]. said: segments of the picture's part of the
 * frame; NULL without instances. */
void pm_seen_add(struct pm_seen_pictures *p, uint64_t record, double accuracy,
                 struct pm_frame frame, const int32_t *classes, const struct pm_segment_map *said);
/* Lists the selected pictures, the worst first; borrowed. Returns their number. The selection does
 * not depend on the order in which pictures were added. */
int pm_seen_select(const struct pm_seen_pictures *p, const struct pm_seen *out[PM_MAX_SAMPLES]);

/* Appends all pictures, for pm_seen_merge. */
void pm_seen_pack(const struct pm_seen_pictures *p, struct pm_str *out);
/* Adds packed pictures. Their classes are below `classes`. Ids are PM_VOID or below `ids`; 0: the
 * net has no instances. If u->damaged is set, a part may have been added. */
void pm_seen_merge(struct pm_seen_pictures *p, int classes, int64_t ids, struct pm_unpack *u);

#endif
