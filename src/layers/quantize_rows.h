/* quantize_rows: the kernel rows of fake quantisation. Numbers are rounded to those that eight bits
 * can represent, as in TensorFlow's fake_quant_with_min_max_vars; half a step rounds up.
 *
 * A range contains 0. Its 256 steps (255 if narrow: the lowest is left out) are shifted so that 0
 * is one of them. Values outside become the nearest end and get no gradient. A grid
 * (quantize.params.h) is the prepared form of a range. */
#ifndef PUMICE_QUANTIZE_ROWS_H
#define PUMICE_QUANTIZE_ROWS_H

#include <pumice/layer.h>
#include <pumice/tensor_file.h>

#include "quantize.params.h"

/* range [2]: min(x, 0) and max(x, 0) over all of x, if symmetric widened at one end, so that 0 is
 * its middle step. "r:x t:part w:range" */
extern const struct pm_kernel pm_row_quant_range;
/* Advances the range's averages by a step. Each is divided by 1 - decay^steps, so that the initial
 * 0 has no weight.
 * "r:range r:min_biased r:max_biased r:min_steps r:max_steps w:state" */
extern const struct pm_kernel pm_row_quant_track;
/* Makes the grid of a range. The range is the first numbers of low and high, or low's first two.
 * "r:low r?:high r:step w:grid" */
extern const struct pm_kernel pm_row_quant_grid;
/* Unless flag is 0, copies a state into the variables; with count 2 in struct quant_params only the
 * range.
 * "r:state r:flag u:low u:high u?:min_biased u?:max_biased u?:min_steps u?:max_steps" */
extern const struct pm_kernel pm_row_quant_keep;
/* "r:x r:grid w:y", with the variants of struct quant_params, and "r:x r:grid r:dy w:dx" */
extern const struct pm_kernel pm_row_quant_fwd, pm_row_quant_bwd;
/* folded = w gamma rstd per output channel. "r:w r?:gamma r:rstd w:folded" */
extern const struct pm_kernel pm_row_quant_fold;
/* dw += d gamma rstd, terms = d w rstd; the sums of terms over the rows are dgamma.
 * "r:d r:w r?:gamma r?:rstd u?:dw w?:terms" */
extern const struct pm_kernel pm_row_quant_fold_bwd;
/* center = mean gamma moving_rstd, scale = rstd / moving_rstd or 1, kept = variance. In steps after
 * `freeze`, which needs moving_mean, variance and step: center = moving_mean gamma moving_rstd,
 * scale = 1, kept = -1, with which pm_moving_average keeps its averages.
 * "r:mean r?:gamma r:moving_rstd r?:rstd r?:moving_mean r?:variance r?:step w:center w:scale
 * w?:kept" */
extern const struct pm_kernel pm_row_quant_center;
/* The bias of a convolution whose input and weights are numbers of steps. (sum - center) scale is
 * what integer arithmetic computes. scale is pm_quant_unit of the product of both steps, and center
 * is -pm_quant_bias_steps(add - mean gamma rstd). add: beta or the biases.
 * "r:input_grid r:weights_grid r?:add r?:mean r?:gamma r?:rstd w:center w:scale" */
extern const struct pm_kernel pm_row_quant_bias;
/* With sums = A, B of pm_row_batch_norm_sums: p = -A gamma rstd / n, q = -B rstd^2 / n,
 * dgamma += -A mean rstd. In steps after `freeze`: p = q = 0, dgamma += -A moving_mean moving_rstd.
 * "r:sums r:mean r:rstd r?:gamma r?:moving_mean r?:moving_rstd r?:step w?:p w?:q u?:dgamma" */
extern const struct pm_kernel pm_row_quant_sums;

/* How values are rounded to a grid. */
enum pm_quant_rounding {
    PM_QUANT_TRAINING, /* as TensorFlow's training: half a step rounds up */
    PM_QUANT_RUNTIME,  /* as ONNX's QuantizeLinear: half a step rounds to the even step */
};
/* Append calls: the range of x; the grid of a range; x rounded to the grid. pm_quant_integers gives
 * numbers of steps. narrow: the range has 255 steps. */
struct pm_tensor pm_quant_range(struct pm_calls *c, struct pm_tensor x, bool symmetric,
                                bool narrow);
struct pm_tensor pm_quant_grid(struct pm_calls *c, struct pm_tensor low, struct pm_tensor high,
                               bool narrow, int delay);
void pm_quant_forward(struct pm_calls *c, struct pm_tensor x, struct pm_tensor grid,
                      enum pm_quant_rounding how, struct pm_tensor y);
struct pm_tensor pm_quant_integers(struct pm_calls *c, struct pm_tensor x, struct pm_tensor grid,
                                   enum pm_quant_rounding how);
void pm_quant_backward(struct pm_calls *c, struct pm_tensor x, struct pm_tensor grid,
                       struct pm_tensor dy, struct pm_tensor dx);

/* The same on the host, for export. x is step * (q - zero); q is an integer in 0..255. */
struct pm_quant_steps {
    float step;
    int zero;
    bool narrow;
    float grid[GRID_SIZE];
};
void pm_quant_make_grid(float low, float high, bool narrow, float grid[GRID_SIZE]);
struct pm_quant_steps pm_quant_steps(float low, float high, bool narrow);
/* Returns the integer q of x, by the rule of training. If narrow, it is never 0. */
int pm_quant_integer(const struct pm_quant_steps *s, float x);
/* Returns the bias of a convolution after a batch norm is folded into it: add - mean factor. add:
 * beta; factor: gamma rstd. */
float pm_quant_folded_bias(float add, float mean, float factor);
/* Returns the step of the sums of a convolution. product: of the steps of its input and of its
 * weights. The step is at least LEAST_WIDTH. */
float pm_quant_unit(float product);
/* Returns a bias as a number of steps of pm_quant_unit(product). It is an integer of int32, as an
 * exported bias. Where product is below LEAST_WIDTH it is not rounded. */
float pm_quant_bias_steps(float bias, float product);

/* ---- ONNX ---------------------------------------------------------------------------------- */

/* Returns the fake_quant layer that rounds the values of n in evaluation: n itself, or a layer that
 * n copies values from. NULL: none. */
const struct pm_node *pm_quant_source(const struct pm_node *n);
/* Returns the grid of a source (pm_quant_source) in the plan that is being built. */
struct pm_tensor pm_quant_source_grid(const struct pm_node *source);
/* Gets the steps of the stored range if n is a fake_quant layer or copies the values of one.
 * Returns false if n is another layer, or after an error. */
bool pm_quant_range_steps(const struct pm_node *n, struct pm_export *g, struct pm_quant_steps *out);
/* Exports x through QuantizeLinear, to uint8, and DequantizeLinear. */
const char *pm_quant_export(struct pm_export *g, const char *x, const struct pm_quant_steps *s);
/* Exports integers of this type through DequantizeLinear. data is copied. */
const char *pm_quant_export_integers(struct pm_export *g, const char *suffix, enum pm_dtype type,
                                     int rank, const int64_t *dim, const void *data, float step,
                                     int zero);

#endif
