/* import_ops: the builders named in ops.def, and their shared functions. */
#ifndef PM_ONNX_IMPORT_OPS_H
#define PM_ONNX_IMPORT_OPS_H

#include "onnx/import_private.h"

#define PM_ONNX_OP(op, build, backward, exported, note) int import_op_##build(struct import *m);
#include "onnx/ops.def"
#undef PM_ONNX_OP

/* If the value's only reader is an activation that the layer can compute itself, returns "
 * activation=relu" or similar; otherwise "". The reader's output then is the layer's output. buf:
 * 64 bytes. */
const char *import_activation(struct import *m, const char *output, char buf[64]);
/* Returns the constant bias [channels] that an Add puts on the output, if the Add is its only
 * reader; otherwise NULL. */
struct value *import_bias(struct import *m, const char *output, int64_t channels);
/* Whether factors or summands can be omitted: they are absent, or are unlearned numbers that all
 * equal `idle`. Exporters write such numbers for a layer without them. */
bool import_idle(struct import *m, struct value *v, double idle);

/* Reads kernel, stride, dilation and pads (top, left, bottom, right) of the current node. kernel:
 * default if there is no kernel_shape. False if the node was refused. */
struct import_window { int64_t kernel[2], stride[2], dilation[2], pad[4]; const char *padding; };
bool import_window(struct import *m, const struct view *x, const int64_t kernel[2],
                   struct import_window *w);
/* Writes the window as options of a layer. */
void import_window_text(const struct import_window *w, bool dilation, struct pm_str *out);
/* Reads the limits of a Clip, the current node; none is +-3e38. False if the node was refused. */
bool import_clip_limits(struct import *m, double *low, double *high);
/* Whether expanding weights of the file to this shape only repeats them per image. Expand makes a
 * layer of this: a class token. */
bool import_repeats(const struct import *m, const struct value *v, int rank, const int64_t *dim);

#endif
