/* export_nodes: functions that a layer's onnx() calls to write its operators; implemented in
 * src/onnx/export_nodes.c.
 *
 * A value is represented by its name in the ONNX graph. Values of rank 4 are NCHW in the graph; all
 * others keep their axes. Weights of convolutions are OIHW. If ONNX lacks an operator for the
 * options, call pm_export_refuse; the export then fails at its end. Until then, the functions may
 * be called without checks. */
#ifndef PM_EXPORT_NODES_H
#define PM_EXPORT_NODES_H

#include <pumice/layer.h>
#include <pumice/tensor_file.h>

/* Whether layers are exported as training runs them. */
bool pm_export_is_training(const struct pm_export *g);
/* Returns the value of the node's input i. */
const char *pm_export_x(const struct pm_export *g, const struct pm_node *n, int i);

/* Appends an operator with these inputs and returns its output. Trailing inputs may be NULL
 * (absent). Attributes set afterwards belong to this operator. */
#define PM_VALUES(...) ((const char *const[]){ __VA_ARGS__, NULL })
const char *pm_export_op(struct pm_export *g, const char *op, const char *const *in);
/* The same for an operator with two inputs. */
const char *pm_export_op2(struct pm_export *g, const char *op, const char *a, const char *b);
/* Appends Cast. Types by their numbers in ONNX's TensorProto.DataType. */
enum pm_export_type {
    PM_EXPORT_FLOAT = 1, PM_EXPORT_UINT8 = 2, PM_EXPORT_INT32 = 6, PM_EXPORT_INT64 = 7
};
const char *pm_export_cast(struct pm_export *g, const char *x, enum pm_export_type type);
/* Appends Unsqueeze: inserts an axis of size 1. */
const char *pm_export_unsqueeze(struct pm_export *g, const char *x, int64_t axis);
/* Appends Reshape to these constant sizes, in the graph's order of axes; 0 keeps the input's size,
 * one -1 is inferred. */
const char *pm_export_view(struct pm_export *g, const char *x, int rank, const int64_t *dim);
/* Like pm_export_op, for an operator with count outputs, whose names are stored in out. */
void pm_export_op_outputs(struct pm_export *g, const char *op, const char *const *in, int count,
                          const char **out);
/* Whether another layer or the model's outputs read the node's output k. If not, onnx() need not
 * set its value. */
bool pm_export_is_read(const struct pm_export *g, const struct pm_node *n, int k);
/* Sets the value of the node's output k > 0. */
void pm_export_output(struct pm_export *g, const struct pm_node *n, int k, const char *value);
void pm_export_int(struct pm_export *g, const char *attr, int64_t v);
void pm_export_float(struct pm_export *g, const char *attr, float v);
void pm_export_text(struct pm_export *g, const char *attr, const char *v);
void pm_export_ints(struct pm_export *g, const char *attr, int count, const int64_t *v);
#define PM_INT64S(...)                                                                             \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[]){ __VA_ARGS__ }

/* ---- constants and variables ------------------------------------------------------------ */

const char *pm_export_number(struct pm_export *g, float v);                     /* a scalar */
const char *pm_export_numbers(struct pm_export *g, int count, const float *v);  /* a vector */
const char *pm_export_integers(struct pm_export *g, int count, const int64_t *v);
/* Adds a constant of any type and shape, named "NODE:SUFFIX"; data is copied. */
const char *pm_export_tensor(struct pm_export *g, const char *suffix, enum pm_dtype type, int rank,
                             const int64_t *dim, const void *data);
/* Returns the node's variable k, unchanged. */
const char *pm_export_variable(struct pm_export *g, const struct pm_node *n, int k);
/* Returns variable k for broadcasting along the leading axes of a value of this rank. */
const char *pm_export_trailing(struct pm_export *g, const struct pm_node *n, int k, int rank);
/* Reads the values of variable k; returns false after an error. */
bool pm_export_read(struct pm_export *g, const struct pm_node *n, int k, float *data);

/* Returns x / keep * floor(keep + U): elements become 0, or x / keep with probability keep. U:
 * random numbers in [0, 1) with the shape of `like`, which broadcasts to x. The operator Dropout is
 * no alternative: onnxruntime 1.32 removes it, although its input training_mode is true. */
const char *pm_export_dropped(struct pm_export *g, const char *x, const char *like, float keep);

/* ---- shared by layers with weights ------------------------------------------------------ */

/* Whether the only reader of the node's sums is folded into the node. pm_export_weights and
 * pm_export_bias then apply the folding. Call this once, before them, when y holds the sums. */
bool pm_export_fold(struct pm_export *g, const struct pm_node *n);
/* Whether this node was folded into the node of its input 0. */
bool pm_export_was_folded(const struct pm_export *g, const struct pm_node *n);
/* Returns variable 0 in ONNX's layout: [h][w][i][o] becomes [o][i][h][w]; depthwise [h][w][c][m]
 * becomes [c m][1][h][w]; a matrix is unchanged. */
const char *pm_export_weights(struct pm_export *g, const struct pm_node *n, bool depthwise);
/* Returns the bias, one value per output channel: variable 1 if `has`, changed by folding. NULL: no
 * bias. */
const char *pm_export_bias(struct pm_export *g, const struct pm_node *n, bool has);

/* ---- shapes ------------------------------------------------------------------------------ */

/* Converts an axis of a value of this rank to the graph's axis. */
int pm_export_axis(int rank, int axis);
/* Returns a shape as integers with the graph's order of axes, for operators that take one. A
 * dynamic batch is read from the value x. */
const char *pm_export_shape(struct pm_export *g, const char *x, struct pm_shape s);
/* Returns booleans of this rank: whether the index along `axis` is below the image's count. count:
 * a value [n] of 32-bit integers. The first axis has size n, `axis` the given size, others 1. */
const char *pm_export_below(struct pm_export *g, const char *count, int rank, int axis, int size);
/* Reshapes a value from shape `from` to shape `to`. */
const char *pm_export_reshape(struct pm_export *g, const char *x, struct pm_shape from,
                              struct pm_shape to);
/* pm_export_nhwc transposes a value from the graph's axes to NHWC; pm_export_nchw transposes it
 * back. */
const char *pm_export_nhwc(struct pm_export *g, const char *x, struct pm_shape s);
const char *pm_export_nchw(struct pm_export *g, const char *x, struct pm_shape s);
/* Sets the last operator's attributes for a window: kernel_shape, strides, dilations (if dilated)
 * and pads. kernel, stride and so on are {h, w}. x: the input's shape. */
struct pm_export_window {
    int kernel[2], stride[2], dilation[2];
    enum pm_padding padding;
    int before[2], after[2]; /* explicit */
};
void pm_export_window(struct pm_export *g, struct pm_shape x, const struct pm_export_window *w);

/* ---- the rest ---------------------------------------------------------------------------- */

/* Adds an activation. kind: its place in PM_ACTIVATIONS (layers/activation.h). */
const char *pm_export_activation(struct pm_export *g, const char *x, int kind, float slope);
/* Reports why this node cannot be exported. The message begins with "node: ...". */
void pm_export_refuse(struct pm_export *g, const char *format, ...) PM_PRINTF(2, 3);

#endif
