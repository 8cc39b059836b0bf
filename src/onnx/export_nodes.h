/* export_nodes: what a layer's onnx() writes with; src/onnx/export_nodes.c does it.
 *
 * A value is its name in the ONNX graph. Values of rank 4 are NCHW there, all others as here; weights
 * of convolutions are OIHW. A mistake (an operator that ONNX lacks for these options) is reported
 * by pm_export_refuse and ends the export; hooks continue meanwhile and need no checks. */
#ifndef PM_EXPORT_NODES_H
#define PM_EXPORT_NODES_H

#include <pumice/layer.h>
#include <pumice/tensor_file.h>

/* Input i of the node. */
const char *pm_export_x(const struct pm_export *g, const struct pm_node *n, int i);

/* Appends an operator with these inputs, of which the last ones may be NULL (absent); returns its
 * output. The attributes set after it are its. */
#define PM_VALUES(...) ((const char *const[]){ __VA_ARGS__, NULL })
const char *pm_export_op(struct pm_export *g, const char *op, const char *const *in);
/* The same for an operator with count outputs, whose names go to out. */
void pm_export_op_outputs(struct pm_export *g, const char *op, const char *const *in, int count,
                          const char **out);
/* Sets the value of output k > 0 of the node. */
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
/* Any; data is copied. "NODE:SUFFIX" is its name. */
const char *pm_export_tensor(struct pm_export *g, const char *suffix, enum pm_dtype type, int rank,
                             const int64_t *dim, const void *data);
/* Variable k of the node as it is. */
const char *pm_export_variable(struct pm_export *g, const struct pm_node *n, int k);
/* The same where it repeats along the leading axes of a value of this rank. */
const char *pm_export_trailing(struct pm_export *g, const struct pm_node *n, int k, int rank);
/* Its values; false after a mistake. */
bool pm_export_read(struct pm_export *g, const struct pm_node *n, int k, float *data);

/* ---- what is common to layers with weights ---------------------------------------------- */

/* Whether the one reader of the node's sums is to be folded into it, as pm_export_weights and
 * pm_export_bias then do; asked once, before them, where y is the sums. */
bool pm_export_fold(struct pm_export *g, const struct pm_node *n);
/* Whether input 0 was folded so. */
bool pm_export_was_folded(const struct pm_export *g, const struct pm_node *n);
/* Variable 0: [h][w][i][o] as [o][i][h][w], depthwise [h][w][c][m] as [c m][1][h][w]; a matrix as it
 * is. */
const char *pm_export_weights(struct pm_export *g, const struct pm_node *n, bool depthwise);
/* A value per output channel to be added: variable 1 where has is true. NULL: none. */
const char *pm_export_bias(struct pm_export *g, const struct pm_node *n, bool has);

/* ---- shapes ------------------------------------------------------------------------------ */

/* An axis of a value of this rank in the graph. */
int pm_export_axis(int rank, int axis);
/* The numbers of a shape with its axes as in the graph, for an operator that takes them; a batch of any
 * size is that of the value x. */
const char *pm_export_shape(struct pm_export *g, const char *x, struct pm_shape s);
/* The value of shape `from` under shape `to`. */
const char *pm_export_reshape(struct pm_export *g, const char *x, struct pm_shape from,
                              struct pm_shape to);
/* The value with its axes as here, and a value that has them so as in the graph. */
const char *pm_export_nhwc(struct pm_export *g, const char *x, struct pm_shape s);
const char *pm_export_nchw(struct pm_export *g, const char *x, struct pm_shape s);
/* Attributes of the last operator: kernel_shape, strides, dilations (where dilated) and pads of a
 * window; kernel and so on are {h, w}. x: the input's shape. */
struct pm_export_window {
    int kernel[2], stride[2], dilation[2];
    enum pm_padding padding;
    int before[2], after[2]; /* explicit */
};
void pm_export_window(struct pm_export *g, struct pm_shape x, const struct pm_export_window *w);

/* ---- the rest ---------------------------------------------------------------------------- */

/* An activation by its place in PM_ACTIVATIONS (layers/activation.h). */
const char *pm_export_activation(struct pm_export *g, const char *x, int kind, float slope);
/* Why this node cannot be exported: "node: ..." is put before it. */
void pm_export_refuse(struct pm_export *g, const char *format, ...) PM_PRINTF(2, 3);

#endif
