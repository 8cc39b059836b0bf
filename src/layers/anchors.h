/* anchors: the boxes that a detector's codes refer to. The anchor layers ssd_anchors,
 * multiscale_anchors, grid_anchors and flexible_grid_anchors make them from the sizes of the images
 * and maps alone. Their definitions are TensorFlow's Object Detection API's.
 *
 * Inputs of an anchor layer: the images [n,h,w,c], then the maps of levels 1 to L [n,h,w,c], of
 * which only the sizes matter. Output: [N,4] F32, a box each: ymin, xmin, ymax, xmax in 0..1 of the
 * images (pixels with normalize_coordinates=false), not clipped. The order is level, then row, then
 * column, then anchor of the cell; channel of a predictor = anchor of the cell * code size +
 * component.
 *
 * With the option angles, boxes are rotated: [N,5], cy, cx, h, w, angle in radians, clockwise on
 * the screen. A cell has each of its anchors at all angles, the angle fastest. Both axes then have
 * the same unit, the height of the images (pixels with normalize_coordinates=false); so x is in
 * 0..width / height.
 *
 * The output is a constant of the plan: no call writes it, and its rows belong to no
 * example (out_rows 0). */
#ifndef PUMICE_ANCHORS_H
#define PUMICE_ANCHORS_H

#include <pumice/layer.h>

enum { PM_MAX_LEVELS = 7 };

/* The anchors of one map. */
struct pm_anchor_level {
    int grid[2];         /* rows and columns of the map */
    double stride[2];    /* distance of neighbouring centres: y, x */
    double offset[2];    /* centre of the first cell: y, x */
    int count;           /* anchors of a cell */
    double (*size)[2];   /* [count]: height and width */
    float *angle;        /* [count]; NULL: upright boxes */
};
/* The first member of each anchor layer's option struct. infer() fills it, in the net's arena. */
struct pm_anchor_levels {
    int count;
    struct pm_anchor_level level[PM_MAX_LEVELS];
};

/* Returns whether the node is of an anchor layer. */
bool pm_is_anchors(const struct pm_node *n);
/* Returns the levels of an anchor node, or NULL if the net has an error. */
const struct pm_anchor_levels *pm_anchors_levels(const struct pm_node *n);
/* Returns the number of anchors of a cell. level: 1 to L, as in the names of heads. Returns 1 if
 * the net has an error, so builders need no check. */
int pm_anchors_per_cell(const struct pm_node *n, int level);
/* Numbers of a box: 4, or 5 for rotated ones. Returns 4 if the net has an error. */
int pm_anchors_numbers(const struct pm_node *n);
/* Writes the anchors, [N][4] or [N][5]. The net must have no error. Thread-safe. */
void pm_anchors_write(const struct pm_node *n, float *out);

/* ---- for the layers ------------------------------------------------------------------------ */

/* The option `angles`. */
#define PM_ANGLES_OPTION(tag)                                                                      \
    PM_FLOATS(tag, angles, "[]", -7, 7,                                                            \
              "rotated boxes: angles of each anchor in radians, clockwise; []: upright boxes")
/* The rest of infer(): checks inputs and counts, and sets the output. The levels' fields other than
 * grid must be set. normalized: y is in 0..1 of the images' height, and x of their width. */
int pm_anchors_infer(struct pm_node *n, struct pm_floats angles, bool normalized);
/* Begins infer(): sets count and the levels' grids from the inputs. */
int pm_anchors_begin(struct pm_node *n);
/* Makes room for the sizes of `count` anchors of a cell of level k (from 0). */
void pm_anchors_sizes(struct pm_node *n, int k, int count);
/* Reads strides or offsets in pixels, one number per map. Both lists must have a number per map, or
 * both be empty; then *given is false and out is not changed. */
int pm_anchors_pixels(const struct pm_node *n, const char *what, struct pm_floats height,
                      struct pm_floats width, bool *given, double out[PM_MAX_LEVELS][2]);
/* Divides everything by the height and width of the images. */
void pm_anchors_normalize(struct pm_node *n);
void pm_anchors_forward(struct pm_node *n, struct pm_calls *c);
const char *pm_anchors_onnx(const struct pm_node *n, struct pm_export *g);

#endif
