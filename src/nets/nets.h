/* nets: declarations shared by the builders of named nets. */
#ifndef PM_NETS_H
#define PM_NETS_H

#include <pumice/net.h>

/* ---- options ---------------------------------------------------------------------------- */

/* Settings of a detector that replace those of the classifier that it is based on. */
struct pm_nets_override {
    const char *init;       /* initial weights */
    const char *activation; /* where the net has its usual one */
    bool scale, center;     /* of batch norm */
};
/* Options of all named nets. Each net's table lists the options that it supports. */
struct pm_nets_options {
    float keep_prob;
    bool global_pool;
    double batch_norm_decay; /* double, because 1 - decay is used */
    float batch_norm_epsilon;
    int moving_variance;
    bool batch_norm_train;
    double depth_multiplier;
    int min_depth, divisible_by;
    bool scale_last;
    int output_stride; /* 0: the net's default */
    bool root_block, separable_conv, aux_head;
    int fc_conv_padding; /* enum: 0 valid, 1 same */
    double drop_path_keep; /* double, because 1 - keep is used */
    int drop_path_steps;   /* PM_UNSET: the steps of the run */
    int conventions; /* enum: 0 tensorflow, 1 torch */
    const char *init;        /* initial weights of convolutions; NULL: the net's own */
    const char *logits_init; /* of the last layer; NULL: init, or the net's own */
    /* Set by detectors; else zeros. */
    const struct pm_nets_override *override; /* NULL: the net's own settings */
    bool regularize_depthwise;  /* weight decay of depthwise weights */
    bool use_explicit_padding;  /* pad strided windows symmetrically */
    bool narrow_end;            /* the last layers are narrower: 512 and 256 channels */
    bool short_end;             /* no layers after the last map at stride 16 */
};

#define PM_NETS_KEEP_PROB(share)                                                                   \
    PM_FLOAT(pm_nets_options, keep_prob, share, 0.01, 1,                                           \
             "probability that dropout before the logits keeps a value")
#define PM_NETS_GLOBAL_POOL_HELP                                                                   \
    "average the whole last map, which allows images larger than the default"
#define PM_NETS_GLOBAL_POOL                                                                        \
    PM_BOOL(pm_nets_options, global_pool, false, PM_NETS_GLOBAL_POOL_HELP)
#define PM_NETS_BATCH_NORM(decay, epsilon)                                                         \
    PM_DOUBLE(pm_nets_options, batch_norm_decay, decay, 0, 1,                                      \
              "decay of batch norm's moving averages; use a lower value for short runs"),          \
    PM_FLOAT(pm_nets_options, batch_norm_epsilon, epsilon, 0, 1,                                   \
             "added to batch norm's variance; TensorFlow adds at least 1.001e-5"),                 \
    PM_ENUM(pm_nets_options, moving_variance, 0, "unbiased|biased",                                \
            "variance in batch norm's moving average: divided by n - 1 (unbiased) or by n"),       \
    PM_BOOL(pm_nets_options, batch_norm_train, true,                                               \
            "normalise with the statistics of the batch; false: with the moving averages, which "  \
            "then do not change (for small batches)")
/* which: default, 0 or 1. Nets with this option call pm_nets_begin first. */
#define PM_NETS_CONVENTIONS(which)                                                                 \
    PM_ENUM(pm_nets_options, conventions, which, "tensorflow|torch",                               \
            "padding, strides and normalisation: tensorflow for weights of TF-Slim, torch for "    \
            "weights of torchvision and timm")
#define PM_NETS_INIT                                                                               \
    PM_STRING(pm_nets_options, init, NULL,                                                         \
              "initial weights of convolutions, such as truncated(0.1), instead of the net's "     \
              "usual ones; layers for which the net states another value keep it"),                \
    PM_STRING(pm_nets_options, logits_init, NULL,                                                  \
              "initial weights of the last layer; null = those of model.init if the layer is a "   \
              "convolution, or the net's own")
#define PM_NETS_DEPTH(factor, min)                                                                 \
    PM_DOUBLE(pm_nets_options, depth_multiplier, factor, 0.01, 4, "factor for the width of "       \
                                                                  "every layer"),                  \
    PM_INT(pm_nets_options, min_depth, min, 1, 1 << 16, "smallest width of a scaled layer")
#define PM_NETS_DIVISIBLE                                                                          \
    PM_INT(pm_nets_options, divisible_by, 8, 1, 1024, "scaled widths are multiples of this")
#define PM_NETS_SCALE_LAST(yes)                                                                    \
    PM_BOOL(pm_nets_options, scale_last, yes,                                                      \
            "a multiplier below 1 also scales the last convolution")
#define PM_NETS_OUTPUT_STRIDE                                                                      \
    PM_INT(pm_nets_options, output_stride, 0, 0, 32,                                               \
           "image size divided by the size of the last map, a power of 2 up to 32; layers "        \
           "beyond it use dilation instead of stride; 0: 32, the net's own")
#define PM_NETS_AUX_HEAD                                                                           \
    PM_BOOL(pm_nets_options, aux_head, true, "add an auxiliary head with its own loss in the "     \
                                             "middle of the net")
#define PM_NETS_DROP_PATH_KEEP(keep)                                                               \
    PM_DOUBLE(pm_nets_options, drop_path_keep, keep, 0.01, 1,                                      \
              "final probability that a path of the last cell is kept; earlier cells keep more")
#define PM_NETS_DROP_PATH(keep, steps)                                                             \
    PM_NETS_DROP_PATH_KEEP(keep),                                                                  \
    PM_INT(pm_nets_options, drop_path_steps, steps, 0, 1 << 30,                                    \
           "steps over which that probability falls from 1; 0: constant from the start")

/* Records in the net which conventions it follows. */
void pm_nets_begin(struct pm_net *net, const struct pm_nets_options *o);

/* Replaces strides by dilation. A net asks for each layer's stride and rate. */
struct pm_nets_atrous {
    int limit;        /* output_stride; 0: none */
    int stride, rate; /* reached so far; start with 1 */
};
/* Reads output_stride from the options. Returns false and sets the net's error if it is not a power
 * of 2 from min to max. */
bool pm_nets_atrous_begin(struct pm_net *net, const char *row, const struct pm_nets_options *o,
                          int min, int max, struct pm_nets_atrous *a);
/* Builds the MobileNets' first layer: calls pm_nets_atrous_begin, then adds a 3x3 convolution with
 * stride 2, batch norm and an activation. */
struct pm_node *pm_nets_mobile_begin(struct pm_net *net, const char *row,
                                     const struct pm_nets_options *o, const char *name,
                                     struct pm_node *images, int filters, const char *activation,
                                     struct pm_nets_atrous *a);
/* *stride is the layer's stride in the net's table. Once the limit is reached, it becomes 1 and the
 * *rate of later layers grows instead. */
void pm_nets_atrous_step(struct pm_nets_atrous *a, int *stride, int *rate);

/* Returns the initial weights of a convolution: the override's, or model.init, or `own`. Call it
 * where `own` is the net's usual value, not one for a single layer. Sets the net's error if
 * model.init is not an initializer. */
const char *pm_nets_init(struct pm_net *net, const struct pm_nets_options *o, const char *own);
/* Returns the initial weights of the last layer: model.logits_init, or `own`. */
const char *pm_nets_logits_init(struct pm_net *net, const struct pm_nets_options *o,
                                const char *own);
/* Returns the override's activation; without one `own`. */
const char *pm_nets_activation(const struct pm_nets_options *o, const char *own);

/* ---- layers (units.c) -------------------------------------------------------------------- */

/* Builds batch norm as the options request. rest: its further options, "scale=false
 * activation=relu"; with an override, neither scale nor center. residual is added before the
 * activation; may be NULL. net->valid_rows becomes its input `count`, unless it is frozen. */
struct pm_node *pm_nets_batch_norm(struct pm_net *net, const struct pm_nets_options *o,
                                   const char *name, struct pm_node *x, struct pm_node *residual,
                                   const char *rest);
/* Builds a convolution without bias from its spec, as in pm_net_add, followed by NAME/BatchNorm. */
struct pm_node *pm_nets_conv_bn(struct pm_net *net, const struct pm_nets_options *o,
                                const char *name, struct pm_node *x, const char *rest,
                                const char *spec, ...) PM_PRINTF(6, 7);
/* Builds a depthwise convolution of the MobileNets, followed by NAME/BatchNorm with an
 * activation. */
struct pm_node *pm_nets_depthwise_bn(struct pm_net *net, const struct pm_nets_options *o,
                                     const char *name, struct pm_node *x, int kernel, int stride,
                                     int rate, const char *activation);
/* Builds a recurrent layer of a net for words: an LSTM layer of 256 units (at depth 1) in both
 * directions, SCOPE/forward and SCOPE/backward, joined as SCOPE/concat. The kernels begin
 * orthogonal. dense: SCOPE/fc follows, a layer with relu and as many outputs as units. Returns
 * [.., t, 2 units], or [.., t, units] if dense. */
struct pm_node *pm_nets_recurrent(struct pm_net *net, const struct pm_nets_options *o,
                                  const char *scope, struct pm_node *x, bool dense);
/* Returns the spec of a window whose output is ceil(in / stride) for every input and starts at
 * pixel 0: "kernel= stride= dilation= padding= ". */
const char *pm_nets_window_same(struct pm_arena *a, int kernel, int stride, int rate);
/* Returns pm_nets_window_same with PyTorch's conventions, TensorFlow's SAME with TensorFlow's. */
const char *pm_nets_window(struct pm_arena *a, const struct pm_nets_options *o, int kernel,
                           int stride, int rate);

/* ---- sizes ------------------------------------------------------------------------------- */

/* Whether images are at least min x min. If not, sets the net's error to a line with both sizes. */
bool pm_nets_fits(struct pm_net *net, const char *row, const struct pm_node *images, int min);

/* Whether images have 32 rows. Nets for words reduce these to one. If not, sets the net's error to
 * a line with the remedy. */
bool pm_nets_fits_text(struct pm_net *net, const char *row, const struct pm_node *images);

/* Returns width rounded to the nearest multiple of `divisor`, at least min and at least nine tenths
 * of width. MobileNets of versions 2 and 3 round scaled widths this way. */
int pm_nets_divisible(double width, int divisor, int min);
/* Returns width x depth_multiplier, rounded as the options request. */
int pm_nets_depth(const struct pm_nets_options *o, int width);
/* Returns the last layer's width. A multiplier below 1 scales it only with scale_last. */
int pm_nets_last_depth(const struct pm_nets_options *o, int width);

/* ---- ends (heads.c) -------------------------------------------------------------------- */

/* Ends a net for words. x: features [batch, 1, t, c]. Adds the head "sequence" with x if the task
 * adds the last layers (pm_net_ends.sequence), else the head "logits", a layer NAME. */
void pm_nets_text_end(struct pm_net *net, const struct pm_nets_options *o, const char *name,
                      struct pm_node *x, int num_classes, struct pm_heads *heads);

/* Builds a fully connected layer with relu as a kernel x kernel convolution (VALID, or SAME with
 * fc_conv_padding), then dropout. The dropout's name replaces the letters by "dropout":
 * "vgg_16/fc6" is followed by "vgg_16/dropout6". */
struct pm_node *pm_nets_fc_conv(struct pm_net *net, const struct pm_nets_options *o,
                                const char *name, struct pm_node *x, int units, int kernel,
                                const char *init, const char *bias_init);
/* Builds SCOPE/fc8: a 1x1 convolution to the classes; logits [batch, classes]. Without global_pool
 * the map must have one pixel, otherwise the net's error states the remedy. */
struct pm_node *pm_nets_fc_scores(struct pm_net *net, const char *scope, struct pm_node *x,
                                  int num_classes, const char *init, bool global_pool);
/* The end of a net that averages its last map: the average, dropout, logits. The average has
 * windows of at most kernel x kernel, VALID, or covers the whole map with global_pool. More than
 * one remaining window is an error that states the remedy. */
struct pm_nets_end {
    const char *average, *dropout, *logits; /* names of the layers */
    const char *init;                       /* initial values of the logits' weights */
    int kernel, stride;                     /* window of the average */
};
struct pm_node *pm_nets_average_end(struct pm_net *net, const struct pm_nets_options *o,
                                    const char *row, const struct pm_nets_end *end,
                                    struct pm_node *x, int num_classes);
/* Builds NAME: a 1x1 convolution with bias to the classes, squeezed to [batch, classes]. */
struct pm_node *pm_nets_logits(struct pm_net *net, const char *name, struct pm_node *x,
                               int num_classes, const char *init);
/* Adds the head "aux_logits", whose loss weighs 0.4. */
void pm_nets_add_auxiliary(struct pm_net *net, struct pm_heads *heads, struct pm_node *x);

/* ---- blocks of branches (branches.c) --------------------------------------------------- */

/* Options of the convolutions of an Inception net. Each has batch norm and relu. */
struct pm_branches {
    struct pm_net *net;
    const struct pm_nets_options *options;
    const char *scope;       /* "InceptionV3" */
    const char *weights_init;
    bool regularize_bias;    /* biases have weight decay too */
    bool aligned;            /* pads SAME also where the net has VALID */
    bool unstrided;          /* strides are 1 */
    int rate;                /* dilation of convolutions; 0 is 1 */
};
/* Returns a layer's width: filters, or with a depth_multiplier the product truncated to an integer
 * and at least min_depth. */
int pm_branches_depth(const struct pm_branches *b, int filters);
/* Builds the stem of inception_v3 and inception_resnet_v2, from 299x299 down to 35x35. */
struct pm_node *pm_branches_stem(const struct pm_branches *b, struct pm_node *images);
/* Builds a convolution with batch norm and relu, SCOPE/name. */
struct pm_node *pm_branches_conv(const struct pm_branches *b, const char *name, struct pm_node *x,
                                 int filters, int kernel_h, int kernel_w, int stride, bool valid,
                                 const char *weights_init);
/* Builds a pooling, "SCOPE/name". */
struct pm_node *pm_branches_pool(const struct pm_branches *b, const char *name, struct pm_node *x,
                                 const char *kind, int kernel, int stride, bool valid);
/* Builds a block: parallel branches on x, joined along the channels as SCOPE/name. Each branch is a
 * text; NULL ends the list. Branch i is in SCOPE/name/Branch_i. A text is a list of layers
 * separated by commas:
 *     Conv2d_0b_1x7 192            a convolution; the kernel is the name's last part
 *     Conv2d_1a_1x1@3x3/2v 384     its real kernel after @; /2 is the stride, v VALID padding
 *     Conv2d_0a_1x1 64 truncated(0.09)    other initial weights
 *     avg | max | max/2v           3x3 pooling, SAME with stride 1 by default
 *     Conv2d_0b_1x3 384 & Conv2d_0b_3x1 384   both read the layer before, then are joined
 * An unparsable text is an assertion failure. */
struct pm_node *pm_branches_block(const struct pm_branches *b, const char *name, struct pm_node *x,
                                  const char *const *branches);
/* Builds the auxiliary head of inception_v4 and inception_resnet_v2 on a map: 5x5 averages with
 * stride 3, 1x1, a convolution (SCOPE/conv) over the whole remaining map, and a fully connected
 * layer (SCOPE/logits). The logits' biases have the same weight decay as the net's other biases. */
struct pm_node *pm_branches_auxiliary(const struct pm_branches *b, const char *conv,
                                      const char *logits, struct pm_node *x, int num_classes);
/* Builds one branch's text on x. Names start with SCOPE/prefix. */
struct pm_node *pm_branches_chain(const struct pm_branches *b, const char *prefix,
                                  struct pm_node *x, const char *text);

/* ---- nets of searched cells (nasnet_cells.c) -------------------------------------------- */

/* A cell has five pairs of operations. Their sums are its states 2 to 6. "sep5 0 + max3 1" is a
 * separable 5x5 convolution (two of them) of state 0 and a 3x3 maximum of state 1. "avg3" averages,
 * "id0" is the state itself, "atr5" a 5x5 convolution dilated by 2. State 0 is made from the map
 * before the cell, state 1 from the one before that. used: states that are not joined in the cell's
 * output. */
struct pm_nas_cell {
    const char *pairs[5];
    bool used[7];
};
struct pm_nas {
    const char *name;
    struct pm_nas_cell cells[2]; /* the normal cell and the cell that halves the map */
    bool apart;   /* the halving cell stands before a normal one, else it replaces one */
    int count;    /* number of normal cells */
    int filters;  /* width of the first cells; doubles at each reduction */
    int stem;     /* filters of the first layer, stride 2, before two reductions; 0: 32x32 images */
    bool far;     /* after a reduction, state 1 is made of the map before the reduction's input */
    bool dense;   /* for DeepLab: resizes maps of other sizes, pads strides symmetrically, starts
                   * with uniform weights; deeplab_nas.c builds the layers before and after the
                   * cells */
};
void pm_nas_build(const struct pm_nas *n, struct pm_net *net, struct pm_node *images, int classes,
                  const struct pm_nets_options *o, struct pm_heads *heads);
/* Builds cell `number`, SCOPE, on x and the map before it. stride 2 halves the map. */
struct pm_node *pm_nas_cell(const struct pm_nas *n, struct pm_net *net, const char *scope,
                            int number, int filters, int stride, struct pm_node *x,
                            struct pm_node *before, const struct pm_nets_options *o);

#endif
