/* rotated_box, inside data/: boxes that are turned, and the ways in which others write them.
 *
 * Records and samples hold a rotated box as five numbers [cy, cx, h, w, angle]: the centre and the
 * sides as shares of the picture (cy and h of its height, cx and w of its width), and the angle in
 * radians. A positive angle turns clockwise on the screen, where y points down. w is the long side.
 * The angle is within a quarter turn, because a half turn gives the same box.
 *
 * Shares alone do not describe a rectangle: on a picture of unequal sides, turning a shape of equal
 * shares makes a parallelogram. Therefore the box is a rectangle in pixels, and every function that
 * computes with one takes the picture's size, or a struct pm_rectangle, which is in pixels. */
#ifndef PUMICE_DATA_ROTATED_BOX_H
#define PUMICE_DATA_ROTATED_BOX_H

#include <pumice/base.h>

/* A turned rectangle, in pixels. Its w axis points in the direction x = cos(angle), y = sin(angle);
 * the edge at its end, from the corner RT to RB, is the front edge. */
struct pm_rectangle {
    double cy, cx, h, w, angle;
};
/* Corners in the order of pm_rectangle_corners; each is y, x. LT is at the upper left if the angle
 * is 0. */
enum { PM_CORNER_LT, PM_CORNER_RT, PM_CORNER_RB, PM_CORNER_LB, PM_CORNERS };

/* The rectangle of five numbers that are in pixels already. */
static inline struct pm_rectangle pm_rectangle_of_pixels(const double v[5])
{
    return (struct pm_rectangle){ .cy = v[0], .cx = v[1], .h = v[2], .w = v[3], .angle = v[4] };
}

/* Conversions between five numbers and a rectangle. height, width: of the picture, at least 1. */
void pm_rectangle_of_box(const float box[5], int height, int width, struct pm_rectangle *out);
void pm_rectangle_to_box(const struct pm_rectangle *r, int height, int width, float box[5]);

/* Layers and matching need one unit along both axes (layers/rotated_overlap.h): shares of the
 * picture's height, so that x goes from 0 to width / height. These convert [count][5] boxes in
 * place from shares of both sides to that unit, and back. */
void pm_rotated_to_heights(float *boxes, size_t count, int height, int width);
void pm_rotated_to_shares(float *boxes, size_t count, int height, int width);

/* The same direction of an axis within -pi/2..pi/2: adds a multiple of pi. A quarter turn stays,
 * with its sign; also that of float32, which is 4e-8 above pi/2. */
double pm_angle_wrapped(double angle);
/* Makes w the long side, which changes the angle by a quarter turn, and wraps the angle. The angle
 * of a square has a meaning up to a quarter turn only; it becomes one within -pi/4..pi/4. The
 * rectangle stays the same set of pixels, but its front edge may become another edge. */
void pm_rectangle_normalise(struct pm_rectangle *r);

void pm_rectangle_corners(const struct pm_rectangle *r, double corner[PM_CORNERS][2]);
/* Writes the upright box around it: ymin, xmin, ymax, xmax, in pixels. */
void pm_rectangle_around(const struct pm_rectangle *r, double box[4]);
/* Returns the share of its area that is inside a picture of that size, 0..1; 0 if it has no area.
 * Exact up to rounding: its corners are clipped by the four borders. */
double pm_rectangle_inside(const struct pm_rectangle *r, double height, double width);
/* Returns the area of the part of b inside an upright window: ymin, xmin, ymax, xmax, in pixels;
 * *shared becomes the area of the part of it that is also inside a. Exact up to rounding. */
double pm_rectangle_in_window(const struct pm_rectangle *b, const double window[4],
                              const struct pm_rectangle *a, double *shared);
/* Whether all five numbers are finite, the sides are above 0 and no number is beyond 1e9. */
bool pm_rectangle_is_valid(const struct pm_rectangle *r);

/* Moves a rectangle by y' = map[0][0] * y + map[0][1] * x + map[0][2], and x' by map[1]. If the map
 * keeps right angles, the result is exact. Otherwise the rectangle would become a parallelogram.
 * Then the w axis keeps its place in it, and h is chosen so that the area is the parallelogram's.
 * This rule loses nothing: the inverse map brings the rectangle back. Nothing is normalised but the
 * angle's wrap. The map's determinant is not 0. */
void pm_rectangle_move(struct pm_rectangle *r, const double map[2][3]);

/* ---- other conventions ----------------------------------------------------------------------- */

/* Four corners: DOTA, YOLO's oriented boxes, ICDAR's quadrangles. Each is y, x in pixels; any order
 * is allowed. Writes the rectangle of the least area around them, normalised. If corners coincide
 * or are in a line, a side is 0. Returns by how much the rectangle's area is above that of the
 * corners' outline, as a share of the rectangle's: 0 for a rectangle, 0.05 if it is 5 % off, 0 if
 * it has no area. */
double pm_rectangle_of_corners(const double corner[PM_CORNERS][2], struct pm_rectangle *out);

/* HRSC's centre form: mbox_cx, mbox_cy, mbox_w, mbox_h in pixels and mbox_ang in radians, clockwise
 * on the screen. Normalised. pm_rectangle_to_hrsc writes the five numbers in that order. */
struct pm_rectangle pm_rectangle_of_hrsc(const double numbers[5]);
void pm_rectangle_to_hrsc(const struct pm_rectangle *r, double numbers[5]);

/* OpenCV's RotatedRect: centre x, centre y, width, height in pixels, and the angle in degrees,
 * clockwise on the screen. Versions differ in its range; any angle is read. Normalised.
 * pm_rectangle_to_opencv writes an angle above 0 and at most 90, as minAreaRect returns since
 * version 4.5.1; for that, width and height change places where needed. */
struct pm_rectangle pm_rectangle_of_opencv(const double numbers[5]);
void pm_rectangle_to_opencv(const struct pm_rectangle *r, double numbers[5]);

/* The same five numbers with the angle in degrees counter-clockwise on the screen. Normalised when
 * read; written within -90..90. */
struct pm_rectangle pm_rectangle_of_degrees(const double numbers[5]);
void pm_rectangle_to_degrees(const struct pm_rectangle *r, double numbers[5]);

#endif
