/* rotated_overlap: intersection and union of rotated boxes, for suppression, matching, metrics and
 * augmentation. shaders/lib/rotated_clip.h has the method; the shaders use the same text, so all
 * devices have the same bits.
 *
 * A rotated box is five numbers: cy, cx, h, w, angle. The angle is in radians, clockwise on the
 * screen (y points down): the side w lies along (cos angle, sin angle) in x and y. Both axes have
 * the same unit. Sides of 0 or below have no area. The overlap is intersection over union; it is 0
 * if a box has no area, and exactly 1 for equal boxes.
 *
 * Errors of the overlap: 1e-9 with doubles and 1e-5 with floats, for sides up to 1000 times as long
 * as the other, sizes from 1e-6 to 1e4, and angles up to 10 turns. All functions are
 * thread-safe. */
#ifndef PUMICE_ROTATED_OVERLAP_H
#define PUMICE_ROTATED_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>

enum { PM_ROTATED_BOX = 5 }; /* numbers of a rotated box */

/* The intersection of two boxes; *joined, if not NULL, becomes the area of their union. */
double pm_rotated_intersection(const double a[PM_ROTATED_BOX], const double b[PM_ROTATED_BOX],
                               double *joined);
/* Intersection over union. */
double pm_rotated_overlap(const double a[PM_ROTATED_BOX], const double b[PM_ROTATED_BOX]);

/* ---- many boxes of floats ------------------------------------------------------------------- */

/* Members of a prepared box: the centre, half sides, cosine and sine as high and low parts. */
enum pm_rotated_member {
    PM_ROTATED_Y, PM_ROTATED_X, PM_ROTATED_H, PM_ROTATED_W, PM_ROTATED_C, PM_ROTATED_C_LOW,
    PM_ROTATED_S, PM_ROTATED_S_LOW, PM_ROTATED_MEMBERS
};
enum { PM_ROTATED_BATCH = 16 }; /* boxes compared at once */

struct pm_rotated_one { float v[PM_ROTATED_MEMBERS]; };

/* Sine and cosine are the expensive part of an overlap, so a box is prepared once. */
void pm_rotated_prepare(const float box[PM_ROTATED_BOX], struct pm_rotated_one *out);
/* The same for count boxes, some ten times as fast for many. */
void pm_rotated_prepare_all(const float *boxes, size_t count, struct pm_rotated_one *out);
/* Whether all corners of a box are in 0..1 along y and in 0..width along x, or beyond by at most
 * `border`. The shaders have the same results. */
bool pm_rotated_is_inside(const float box[PM_ROTATED_BOX], float width, float border);
float pm_rotated_area_of(const struct pm_rotated_one *box);
/* The radius of a circle about the centre that contains the box. */
float pm_rotated_reach_of(const struct pm_rotated_one *box);
/* Whether the circles of two boxes are apart from each other, so that their overlap is 0. */
bool pm_rotated_are_apart(const struct pm_rotated_one *a, const struct pm_rotated_one *b);
/* Circles about boxes, by coordinate, and the boxes' areas. Their room is a multiple of
 * PM_ROTATED_BATCH; a radius of NAN marks places without a box. */
struct pm_rotated_circles { float *y, *x, *reach, *area; };

/* Writes the indices of those of the first `count` boxes that may overlap box a by more than limit,
 * 0 to 1, in rising order, to near [count]. Returns their number. The shaders leave out the same
 * boxes. */
int pm_rotated_near(const struct pm_rotated_one *a, struct pm_rotated_circles circles, int count,
                    float limit, int *near);
/* Writes intersection and union of box a and each of count <= PM_ROTATED_BATCH boxes b. All of
 * inner and joined is written; values from count on have no meaning. */
void pm_rotated_overlaps(const struct pm_rotated_one *a, const struct pm_rotated_one *const *b,
                         int count, float inner[PM_ROTATED_BATCH], float joined[PM_ROTATED_BATCH]);

#endif
