/* What the builders of named nets share. */
#ifndef PM_NETS_H
#define PM_NETS_H

#include <pumice/net.h>

/* False, with the net's error set to a line that names both sizes, when images are smaller than
 * min x min. */
bool pm_nets_fits(struct pm_net *net, const char *row, const struct pm_node *images, int min);

/* width rounded to the nearest multiple of `divisor`, at least divisor and at least nine tenths of
 * width: what the MobileNets of versions 2 and 3 do to scaled widths. */
int pm_nets_divisible(double width, int divisor);

/* ---- ends (heads.c) -------------------------------------------------------------------- */

/* A fully connected layer with relu, made as a kernel x kernel convolution (VALID), and dropout of
 * the same name with "dropout" for its letters: "vgg_16/fc6" is followed by "vgg_16/dropout6". */
struct pm_node *pm_nets_fc_conv(struct pm_net *net, const char *name, struct pm_node *x, int units,
                                int kernel, float keep, const char *init, const char *bias_init);
/* SCOPE/fc8: a 1x1 convolution to the classes; logits [batch, classes]. Without global_pool the map
 * must be down to one pixel, else the net's error names the remedy. */
struct pm_node *pm_nets_fc_scores(struct pm_net *net, const char *scope, struct pm_node *x,
                                  int num_classes, const char *init, bool global_pool);
/* The map's average: windows of at most kernel x kernel, VALID, or the whole map with global_pool.
 * More than one window left is an error that names the remedy. */
struct pm_node *pm_nets_average(struct pm_net *net, const char *row, const char *name,
                                struct pm_node *x, int kernel, bool global_pool);
/* NAME: a 1x1 convolution with bias to the classes, squeezed to [batch, classes]. */
struct pm_node *pm_nets_logits(struct pm_net *net, const char *name, struct pm_node *x,
                               int num_classes, const char *init);

/* ---- blocks of branches (branches.c) --------------------------------------------------- */

/* How the convolutions of an Inception net are made: each has batch norm and relu. */
struct pm_branches {
    struct pm_net *net;
    const char *scope;       /* "InceptionV3" */
    const char *weights_init;
    double batch_norm_decay;
    double multiplier;       /* of every width, cut to an integer and at least min_depth */
    int min_depth;
    bool regularize_bias;    /* biases have weight decay too */
};
/* A convolution with batch norm and relu, SCOPE/name. */
struct pm_node *pm_branches_conv(const struct pm_branches *b, const char *name, struct pm_node *x,
                                 int filters, int kernel_h, int kernel_w, int stride, bool valid,
                                 const char *weights_init);
/* "SCOPE/name": pooling. */
struct pm_node *pm_branches_pool(const struct pm_branches *b, const char *name, struct pm_node *x,
                                 const char *kind, int kernel, int stride, bool valid);
/* A block: branches side by side, all of x, joined along the channels as SCOPE/name. Each branch is
 * a text, NULL ends the list; branch i lies in SCOPE/name/Branch_i. A text is layers with a comma
 * between two:
 *     Conv2d_0b_1x7 192            a convolution; the kernel is the name's last part
 *     Conv2d_1a_1x1@3x3/2v 384     its real kernel behind @; /2 is the stride, v VALID padding
 *     Conv2d_0a_1x1 64 truncated(0.09)    other initial weights
 *     avg | max | max/2v           3x3 pooling, SAME with stride 1 unless said
 *     Conv2d_0b_1x3 384 & Conv2d_0b_3x1 384   both of what stands before, joined
 * An unparsable text is an assertion failure. */
struct pm_node *pm_branches_block(const struct pm_branches *b, const char *name, struct pm_node *x,
                                  const char *const *branches);
/* The auxiliary head of inception_v4 and inception_resnet_v2 on a map: 5x5 averages with stride 3,
 * 1x1, a convolution (SCOPE/conv) over the whole map that is left, and a fully connected layer
 * (SCOPE/logits). Weight decay of the logits' biases as the net's other biases have it. */
struct pm_node *pm_branches_auxiliary(const struct pm_branches *b, const char *conv,
                                      const char *logits, struct pm_node *x, int num_classes);
/* One branch's text on x; names begin with SCOPE/prefix. */
struct pm_node *pm_branches_chain(const struct pm_branches *b, const char *prefix,
                                  struct pm_node *x, const char *text);

#endif
