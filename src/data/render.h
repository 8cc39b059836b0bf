/* render, inside data/: applies a geometry's moves to pictures, and resizes them. */
#ifndef PM_RENDER_H
#define PM_RENDER_H

#include <pumice/sample.h>

/* A rectangle of an 8-bit image, read in place. */
struct pm_view8 {
    const uint8_t *pixels; /* of the rectangle's first pixel */
    int height, width, channels;
    size_t stride; /* bytes per row of the image */
};
struct pm_view8 pm_view8_of(const struct pm_image8 *im);
struct pm_view8 pm_view_crop(struct pm_view8 v, int y, int x, int height, int width);

/* Interpolation between the elements at offsets lo and hi, with weight f for hi. Element i of a
 * resized row is at i * step of the source row, which has `in` elements, `stride` apart. */
struct pm_lerp {
    int lo, hi;
    float f;
};
struct pm_lerp pm_lerp_at(int i, float step, int in, int stride);

/* Returns the pixel before a warp for pixel y, x after it: false, and -1, -1, in the padding. */
bool pm_warp_origin(const struct pm_move *m, int y, int x, int *from_y, int *from_x);

/* A picture between moves: 8-bit, or float values. */
struct pm_canvas {
    struct pm_view8 bytes; /* used if values is NULL */
    float *values;         /* [height][width][channels] */
    float *owned;          /* same as values if they must be freed; else NULL */
    int height, width, channels;
};
struct pm_canvas pm_canvas_of(struct pm_view8 picture);
/* Applies moves begin..end - 1, which start at the canvas's size. Afterwards the canvas has values.
 * last: destination of the values if possible; NULL: the canvas allocates. */
void pm_canvas_move(struct pm_canvas *c, const struct pm_geometry *g, int begin, int end,
                    float *last);
/* Applies a warp to the canvas's values: out[height][width][channels], not the same memory. */
void pm_warp_pixels(const struct pm_canvas *c, const struct pm_move *m, float *out);
/* Frees the values if the canvas owns them. */
void pm_canvas_free(struct pm_canvas *c);

/* ---- resizing (resize.c) ------------------------------------------------------------------ */

/* Returns the step between source coordinates if the corners are aligned. */
float pm_aligned_step(int in, int out);
/* Resizes to out[height][width][channels]. Source: the view's bytes, or `values` of the view's size
 * if not NULL. */
void pm_resize_taps(struct pm_view8 in, const float *values, enum pm_resize method, int height,
                    int width, float *out);
/* Pillow's resize to height x width; writes the window of rows x cols at (y, x). */
void pm_resize_antialias(struct pm_view8 in, int height, int width, int y, int x, int rows,
                         int cols, float *out);

/* ---- resizing (render.c) ------------------------------------------------------------------ */

/* Resizes a whole picture with any method. */
void pm_resize(struct pm_view8 in, enum pm_resize method, int height, int width, float *out);

#endif
