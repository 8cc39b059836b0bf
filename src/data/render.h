/* render, inside data/: pictures carried through a geometry's moves, and their resizing. */
#ifndef PM_RENDER_H
#define PM_RENDER_H

#include <pumice/sample.h>

/* A rectangle of an 8-bit image, read where it lies. */
struct pm_view8 {
    const uint8_t *pixels; /* of the rectangle's first pixel */
    int height, width, channels;
    size_t stride; /* bytes from row to row */
};
struct pm_view8 pm_view8_of(const struct pm_image8 *im);
struct pm_view8 pm_view_crop(struct pm_view8 v, int y, int x, int height, int width);

/* Between the elements at offsets lo and hi, f of the way. Element i of a resized row lies at i *
 * step of the row of `in` elements, `stride` apart. */
struct pm_lerp {
    int lo, hi;
    float f;
};
struct pm_lerp pm_lerp_at(int i, float step, int in, int stride);
/* The step where corners are aligned. */
float pm_aligned_step(int in, int out);

/* A picture on its way: 8-bit, or values. */
struct pm_canvas {
    struct pm_view8 bytes; /* read where values is NULL */
    float *values;         /* [height][width][channels] */
    float *owned;          /* values, where they are to be freed; else NULL */
    int height, width, channels;
};
struct pm_canvas pm_canvas_of(struct pm_view8 picture);
/* Carries the canvas through moves begin..end - 1, which start at its size; afterwards it has
 * values. last: where values are written if that is possible; NULL: memory of the canvas. */
void pm_canvas_move(struct pm_canvas *c, const struct pm_geometry *g, int begin, int end,
                    float *last);
/* Frees the values unless they are somebody else's. */
void pm_canvas_free(struct pm_canvas *c);

/* ---- resizing by other means than two neighbours (resize.c) -------------------------------- */

/* out[height][width][channels] of bytes or, if values is not NULL, of values of the view's size. */
void pm_resize_taps(struct pm_view8 in, const float *values, enum pm_resize method, int height,
                    int width, float *out);
/* Pillow's: a window of rows x cols from (y, x) on of the picture resized to height x width. */
void pm_resize_antialias(struct pm_view8 in, int height, int width, int y, int x, int rows,
                         int cols, float *out);
/* Any method, of a whole picture. */
void pm_resize(struct pm_view8 in, enum pm_resize method, int height, int width, float *out);

#endif
