/* polygon_check, internal to data/convert: finds polygons that are probably mistakes of the
 * annotation. Converters write their masks nevertheless: each side of a polygon toggles inside and
 * outside, as in COCO's own program. */
#ifndef PUMICE_DATA_CONVERT_POLYGON_CHECK_H
#define PUMICE_DATA_CONVERT_POLYGON_CHECK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum pm_polygon_fault {
    PM_POLYGON_FLAT,    /* all corners are on one line: it has no area */
    PM_POLYGON_CROSSED, /* two of its sides cross; not checked above 10,000 corners */
    PM_POLYGON_OUTSIDE, /* all corners are beyond the same border of the picture, or on it */
    PM_POLYGON_FAULTS
};
/* Returns the faults as bits 1 << PM_POLYGON_.... xy: `points` pairs x, y in fifths of a pixel, as
 * for pm_runs_polygon. height, width: of the picture in pixels. */
unsigned pm_polygon_faults(const int32_t *xy, size_t points, int height, int width);

/* Counts of a split; begins as zeros. Any thread may add to them. */
struct pm_polygon_counts { _Atomic size_t count[PM_POLYGON_FAULTS]; };
/* Counts a polygon's faults, and warns about the first ten of each kind. where: names the
 * polygon. */
void pm_polygon_count(struct pm_polygon_counts *c, const int32_t *xy, size_t points, int height,
                      int width, const char *where);
/* For each kind with more than ten polygons, warns about their number. */
void pm_polygon_report(const struct pm_polygon_counts *c, const char *split);

#endif
