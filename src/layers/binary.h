/* binary: element-wise functions of two inputs whose shapes may differ as ONNX and numpy allow:
 * shapes are aligned at their last axes, an axis of size 1 (or none) repeats. add and multiply have
 * rows of their own for equal shapes and gates, and come here for the others. */
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

/* Sets the output's shape, or fails naming both. */
int pm_binary_infer(struct pm_node *n);
void pm_binary_forward(struct pm_node *n, struct pm_calls *c, enum pm_binary kind);
void pm_binary_backward(struct pm_node *n, struct pm_calls *c, enum pm_binary kind);
/* Input i with as many axes as the output. */
const char *pm_binary_export(const struct pm_node *n, struct pm_export *g, int i);

#endif
