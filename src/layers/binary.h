/* binary: element-wise functions of two inputs. Their shapes may differ as in ONNX and numpy:
 * shapes are aligned at their last axes, and an axis of size 1 (or a missing axis) repeats. add and
 * multiply have their own rows for equal shapes and gates. They use these rows for other shapes. */
#ifndef PUMICE_BINARY_H
#define PUMICE_BINARY_H

#include <pumice/layer.h>

enum pm_binary {
    PM_BINARY_ADD,
    PM_BINARY_SUBTRACT,
    PM_BINARY_MULTIPLY,
    PM_BINARY_DIVIDE,
    PM_BINARY_MINIMUM,
    PM_BINARY_MAXIMUM,
};

/* Sets the output's shape. Fails with both shapes if they are incompatible. */
int pm_binary_infer(struct pm_node *n);
void pm_binary_forward(struct pm_node *n, struct pm_calls *c, enum pm_binary kind);
void pm_binary_backward(struct pm_node *n, struct pm_calls *c, enum pm_binary kind);
/* Exports input i with as many axes as the output. */
const char *pm_binary_export(const struct pm_node *n, struct pm_export *g, int i);

#endif
