/* thin_plate: the constant matrix of a thin-plate spline between fixed points of a picture's
 * border. The layer thin_plate_sampler and the net that places its points share this header. */
#ifndef PUMICE_THIN_PLATE_H
#define PUMICE_THIN_PLATE_H

#include <pumice/base.h>

enum { PM_THIN_PLATE_LEAST = 4, PM_THIN_PLATE_MOST = 64 }; /* control points; an even number */
#define PM_THIN_PLATE_MARGIN 0.4 /* largest margin; at 0.5 the points of both rows are the same */

/* Fills out with x, y of `points` control points, in 0..1 of the output. The first half is on the
 * upper border, from left to right; the second half is on the lower border. margin_x: distance of
 * the outer points from the sides; margin_y: of both rows from the borders. */
void pm_thin_plate_points(int points, double margin_x, double margin_y, double *out);

/* Fills out[points][rows cols]. Sample s of an output of rows x cols, in row-major order, is at
 *     x(s) = sum over k of out[k][s] x_k
 * of the input, in 0..1, and y likewise. (x_k, y_k) is the input's control point k, which moves to
 * fixed point k of the output. Computed in double precision and rounded once. Source of
 * the rule: Bookstein, "Principal Warps", 1989, in the form of the text recognition fork of
 * TensorFlow's Object Detection API. */
void pm_thin_plate_matrix(int points, int rows, int cols, double margin_x, double margin_y,
                          float *out);

#endif
