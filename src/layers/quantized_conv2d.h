/* quantized_conv2d: declarations shared by its calls and its ONNX operators
 * (quantized_conv2d_onnx.c). */
#ifndef PM_QUANTIZED_CONV2D_H
#define PM_QUANTIZED_CONV2D_H

#include "layers/conv_rows.h"

/* The layer's options. */
struct pm_quantized {
    int filters, groups, multiplier, padding, activation, delay;
    struct pm_ints kernel, stride, dilation, pad;
    bool flat, bias, regularize, regularize_bias;
    float slope;
    const char *weights_init, *bias_init;
    bool batch_norm, scale, center, frozen;
    double decay;
    float epsilon;
    int moving_variance, freeze;
    bool symmetric;
    float input_step;
};

/* Indices in n->w, -1 if absent. They are the same in n->dw. */
struct pm_quantized_places {
    int beta, gamma, mean, variance, min, max;
};
struct pm_quantized_places pm_quantized_places(const struct pm_quantized *cfg);
/* Whether evaluation rounds the input to multiples of input_step: it does if no fake_quant layer
 * rounds the input. */
bool pm_quantized_rounds_input(const struct pm_node *n);
/* Fills params from the node's input and options. */
int pm_quantized_params(const struct pm_node *n, struct conv2d_params *p);
const char *pm_quantized_onnx(const struct pm_node *n, struct pm_export *g);

#endif
