/* import_ops: the builders that ops.def names, and what they share. */
#ifndef PM_ONNX_IMPORT_OPS_H
#define PM_ONNX_IMPORT_OPS_H

#include "onnx/import_private.h"

#define PM_ONNX_OP(op, build, backward, exported, note) int import_op_##build(struct import *m);
#include "onnx/ops.def"
#undef PM_ONNX_OP

/* " activation=relu" where a node that alone reads the value does what the layer can do itself; that
 * node then is the value. buf of 64 bytes. */
const char *import_activation(struct import *m, const char *output, char buf[64]);
/* The constant bias that an Add alone puts on the output, [channels]; NULL when there is none. */
struct value *import_bias(struct import *m, const char *output, int64_t channels);
/* Factors or summands that a layer need not have: absent, or numbers that were not learned, all of them
 * `idle`, as exporters write for a layer without. */
bool import_idle(struct import *m, struct value *v, double idle);

/* Kernel, stride, dilation and pads (top, left, bottom, right) of the current node; kernel: where it
 * has no kernel_shape. False when it was refused. */
struct import_window { int64_t kernel[2], stride[2], dilation[2], pad[4]; const char *padding; };
bool import_window(struct import *m, const struct view *x, const int64_t kernel[2],
                   struct import_window *w);
/* As a layer's options. */
void import_window_text(const struct import_window *w, bool dilation, struct pm_str *out);
/* Whether weights of the file get this shape by standing once for every image, which Expand makes a
 * layer of: a class token. */
bool import_repeats(const struct import *m, const struct value *v, int rank, const int64_t *dim);

#endif
