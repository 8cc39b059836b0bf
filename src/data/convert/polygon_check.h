/* polygon_check, internal to data/convert: finds polygons that are probably mistakes of the
 * annotation. Their masks are written all the same: each side of a polygon toggles inside and
 * outside, as in COCO's own program. */
#ifndef PUMICE_DATA_CONVERT_POLYGON_CHECK_H
#define PUMICE_DATA_CONVERT_POLYGON_CHECK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum pm_polygon_fault {
    PM_POLYGON_FLAT,    /* all corners are on one line: it has no area */
    PM_POLYGON_CROSSED, /* two of its sides cross; not checked above 10,000 corners */
    PM_POLYGON_OUTSIDE, /* no part of it is in the picture */
    PM_POLYGON_FAULTS
};
/* Returns the faults as bits 1 << PM_POLYGON_.... xy: `points` pairs x, y in fifths of a pixel, as
 * for pm_runs_polygon. height, width: of the picture in pixels. */
unsigned pm_polygon_faults(const int32_t *xy, size_t points, int height, int width);

/* Counts of a split; begins as zeros. Any thread may add to them. */
struct pm_polygon_counts { _Atomic size_t count[PM_POLYGON_FAULTS]; };
/* Counts a polygon's faults, and warns of the first ten of each kind. where: names the polygon. */
void pm_polygon_count(struct pm_polygon_counts *c, const int32_t *xy, size_t points, int height,
                      int width, const char *where);
/* Warns of the numbers of those kinds that have more than ten. */
void pm_polygon_report(const struct pm_polygon_counts *c, const char *split);

#endif
