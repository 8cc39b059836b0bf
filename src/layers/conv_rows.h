/* conv_rows: the kernel rows of convolutions, and helpers shared by the layers that use them. A
 * transposed convolution uses the same rows with forward and data gradient exchanged. A fully
 * connected layer is a 1x1 convolution of 1x1 images. */
#ifndef PM_CONV_ROWS_H
#define PM_CONV_ROWS_H

#include <pumice/layer.h>

#include "bias_act.params.h"
#include "conv2d.params.h"
#include "layers/activation.h"

extern const struct pm_kernel pm_conv2d_fwd, pm_conv2d_bwd_data, pm_conv2d_bwd_filter;
extern const struct pm_kernel pm_depthwise_fwd, pm_depthwise_bwd_data, pm_depthwise_bwd_filter;
extern const struct pm_kernel pm_bias_act_fwd, pm_bias_act_bwd, pm_bias_grad;

/* Adds the sum of the rows of `from` to sum. A row has as many values as sum. */
void pm_add_rows(struct pm_calls *c, struct pm_tensor from, struct pm_tensor sum);
/* Appends the call of a convolution row. x, w and y are the convolution's tensors or their
 * gradients. */
void pm_conv_call(struct pm_calls *c, const struct pm_kernel *k, const struct conv2d_params *p,
                  struct pm_tensor x, struct pm_tensor w, struct pm_tensor y);

/* Options of the tail after the product, as fields of struct tag; per: "channel". */
#define CONV_TAIL_OPTIONS(tag, per)                                                                \
    PM_BOOL(tag, bias, true, "add a bias per " per),                                               \
    PM_ENUM(tag, activation, PM_ACT_NONE, PM_ACTIVATIONS_OF_Y, "applied last"),                    \
    PM_FLOAT(tag, slope, 0.2, 0, 1, "leaky_relu's slope for negative values"),                     \
    PM_STRING(tag, weights_init, "xavier", "initial weights"),                                     \
    PM_STRING(tag, bias_init, "constant(0)", "initial biases"),                                    \
    PM_BOOL(tag, regularize, true, "weight decay applies to the weights"),                         \
    PM_BOOL(tag, regularize_bias, false, "weight decay applies to the biases")
/* The tail of a layer with weights w[0] and, with bias, biases w[1]: z + b, then the activation. */
struct conv_tail {
    bool bias;
    int activation;
    float slope;
};
/* Returns the tensor for the sums: n->y itself if the layer has no tail. */
struct pm_tensor pm_conv_sums(const struct pm_node *n, struct pm_calls *c,
                              const struct conv_tail *t);
void pm_conv_tail_forward(const struct pm_node *n, struct pm_calls *c, const struct conv_tail *t,
                          struct pm_tensor z);
/* Returns the gradient of the sums. Also adds the bias gradient if it is needed. */
struct pm_tensor pm_conv_tail_backward(const struct pm_node *n, struct pm_calls *c,
                                       const struct conv_tail *t);

/* Declares weights and biases. suffix: "weights" or "depthwise_weights". */
int pm_conv_variables(struct pm_node *n, const char *suffix, struct pm_shape shape,
                      const char *weights_init, bool regularize, const struct conv_tail *t,
                      int channels, const char *bias_init, bool regularize_bias);

/* Options of a window: lists of one or two numbers (height, width). */
struct conv_window {
    struct pm_ints kernel, stride, dilation, pad;
    int padding; /* enum pm_padding */
};
#define CONV_PADDINGS "same|valid|explicit"
/* Fills all members of p except n, c, k, groups and accumulate, for inputs of h x w. Fails with the
 * names of the node and the option. */
int pm_conv_geometry(const struct pm_node *n, const struct conv_window *v, int h, int w,
                     struct conv2d_params *p);

#endif
