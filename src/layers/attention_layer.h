/* attention_layer: what the files of the layers attention_decoder and attention_search share. */
#ifndef PUMICE_ATTENTION_LAYER_H
#define PUMICE_ATTENTION_LAYER_H

#include <limits.h>

#include "layers/attention.h"

/* Inputs, variables, and outputs of a search. */
enum { PM_ATTENTION_MEMORY, PM_ATTENTION_LABELS };
enum {
    PM_ATTENTION_KEY_KERNEL, PM_ATTENTION_QUERY_KERNEL, PM_ATTENTION_V, PM_ATTENTION_CELL_KERNEL,
    PM_ATTENTION_CELL_BIAS, PM_ATTENTION_DENSE_KERNEL, PM_ATTENTION_DENSE_BIAS,
};
enum {
    PM_ATTENTION_LOGITS, PM_ATTENTION_SYMBOLS, PM_ATTENTION_PARENTS, PM_ATTENTION_COLUMNS,
    PM_ATTENTION_TOTALS,
};

struct pm_attention_cfg {
    int classes, units, attention_units, steps, beam_width;
    float forget_bias;
    const char *kernel_init, *weights_init, *bias_init;
    bool regularize;
};
#define PM_ATTENTION_OPTIONS                                                                       \
    PM_INT(pm_attention_cfg, classes, 3, 3, 1 << 20, "start, end and letters"),                    \
        PM_INT(pm_attention_cfg, units, 256, 1, 1 << 14, "numbers of the cell's state"),           \
        PM_INT(pm_attention_cfg, attention_units, 128, 1, PM_ATTENTION_MOST,                       \
               "numbers that a query and a key have"),                                             \
        PM_FLOAT(pm_attention_cfg, forget_bias, 1, -100, 100, "added to the forget gate's sum"),   \
        PM_STRING(pm_attention_cfg, kernel_init, "orthogonal", "initial kernel of the cell"),      \
        PM_STRING(pm_attention_cfg, weights_init, "xavier", "initial values of other weights"),    \
        PM_STRING(pm_attention_cfg, bias_init, "constant(0)", "initial biases"),                   \
        PM_BOOL(pm_attention_cfg, regularize, true, "weight decay applies to the kernels")

extern const struct pm_layer pm_layer_attention_decoder, pm_layer_attention_search;

/* Params of the node's calls, with at = 0. */
struct attention_params pm_attention_params_of(const struct pm_node *n);
/* pm_layer.onnx of both: a search of one beam, with its steps one after the other. It refuses the
 * decoder and wider searches. */
const char *pm_attention_onnx(const struct pm_node *n, struct pm_export *g);

#endif
