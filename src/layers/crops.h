/* crops: where the samples of boxes lie on a map. The layers crop_and_resize and sensitive_crops
 * share it. mask_loss uses only the places. rotated_crops uses the inputs, the parts of an axis and
 * the export.
 *
 * Inputs of the two layers: a map [n,H,W,..]; boxes [n,R,4], which are ymin, xmin, ymax, xmax in
 * 0..1 of the map, where 0 is the centre of the first row or column and 1 that of the last;
 * optional: count I32 [n], the number of valid boxes of each image. A box has rows x cols samples,
 * and along each axis they are divided into bins of equal size. A bin is an equal part of the box.
 * Its k-th of c samples is at
 *     s = low + (bin + k / (c - 1)) / bins * (high - low)    c = 1: (bin + 1/2) / bins
 * with low = ymin (H - 1) and high = ymax (H - 1), on columns likewise. So corners are aligned, and
 * with one bin this is the rule of TensorFlow's crop_and_resize. A sample outside 0..H-1 is 0. All
 * samples are 0 in boxes whose index is at least count, and in boxes with a corner that is NaN or
 * beyond +-1e30. Places are computed without fused products, so all devices choose the same cells.
 *
 * Two differences from TensorFlow's crop_and_resize:
 * - A sample is limited to low..high, so that rounding does not move the last sample of a box off
 *   the map. TensorFlow does not limit it, and such a sample has the extrapolation value there.
 * - A sample on the centre of a cell also reads the next cell, with the weight 0. If that value is
 *   infinite or NaN, the sample is NaN. TensorFlow reads one cell there. */
#ifndef PUMICE_CROPS_H
#define PUMICE_CROPS_H

#include <pumice/layer.h>

#include "crop.params.h"

enum { PM_CROP_MOST_SIDE = 1024 }; /* most samples of a box along an axis */

/* Checks the inputs of node n and its options. numbers: of a box. size: samples, height and width,
 * or one number for both. bins: likewise; NULL: one bin. Fills out; its c is the map's channels /
 * bins. Returns PM_ECONFIG with one line that names the node and the option. */
int pm_crops_read(const struct pm_node *n, int numbers, struct pm_ints size,
                  const struct pm_ints *bins, struct crop_params *out);
/* infer() of a layer of one bin: checks as above and sets the output, [n R, height, width,
 * channels]. */
int pm_crops_infer(struct pm_node *n, int numbers, struct pm_ints size);
/* Fills part[0..samples-1], the samples' places in the box along one axis: 0 is its low side, 1 its
 * high side. bins divides samples, which are at most PM_CROP_MOST_SIDE. */
void pm_crops_parts(int samples, int bins, float *part);
/* The input count of both layers; PM_NO_TENSOR: all boxes are valid. */
static inline struct pm_tensor pm_crops_count(const struct pm_node *n)
{
    return n->inputs > 2 ? n->xs[2] : PM_NO_TENSOR;
}
/* Appends the call that finds the places of the samples of boxes, and saves its results for
 * backward(). count as above, or PM_NO_TENSOR.
 * saved[0]: I32 [boxes, rows + cols], for each sample of a box, rows first, the cell before it, or
 *           -1 if the sample is outside the map;
 * saved[1]: F32, the same shape, the weight of the next cell in 0..1. The cell before has the
 *           weight 1 - this.
 * A sample on the last of several cells has the cell before it and the weight 1. An axis of one
 * cell has no next cell; the weight is 0 there. Samples outside have the weight 0. */
void pm_crops_places(struct pm_node *n, struct pm_calls *c, const struct crop_params *p,
                     struct pm_tensor boxes, struct pm_tensor count);

/* The weight of a cell in a sample with this place and weight. */
static inline float pm_crops_weight(int place, float weight, int cell)
{
    return place == cell ? 1 - weight : place + 1 == cell ? weight : 0;
}

/* Appends operators that compute all samples of node n. Returns [n * bins, c, R * tall, wide],
 * where a bin has tall x wide samples. A crop's rows follow those of the crop before it. */
const char *pm_crops_onnx(const struct pm_node *n, struct pm_export *g,
                          const struct crop_params *p);
/* Appends operators for [n,R,1]: whether a box is valid and its numbers are at most `most` in
 * magnitude. boxes [n,R,..] are the input of node n. */
const char *pm_crops_onnx_usable(const struct pm_node *n, struct pm_export *g, const char *boxes,
                                 float most);
/* Appends operators that turn crops below each other, [n,c,R rows,cols], into [n R,c,rows,cols]. */
const char *pm_crops_onnx_apart(struct pm_export *g, const char *y, int c, int per_image, int rows,
                                int cols);

#endif
