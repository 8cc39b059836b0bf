/* case_losses: the nets of the verification's cases, and their losses. */
#ifndef PM_CASE_LOSSES_H
#define PM_CASE_LOSSES_H

#include <pumice/net.h>

/* The net of a case. */
struct pm_verify_net {
    const char *name;
    struct pm_shape images; /* n x h x w x c; rank 2: n x c */
    const char *loss;       /* options of the loss on the last layer's output */
    bool weights;           /* the loss has weights */
    const char *layers;     /* JSON with ' instead of " */
    bool forward_only;
    const char *loss_layer; /* NULL: softmax_cross_entropy. detection_loss reads the nodes boxes_1,
                             * boxes_2, classes_1, classes_2 and anchors, box_classifier_loss codes
                             * and logits, mask_loss, keypoint_loss, ctc_loss and attention_decoder
                             * logits, keypoint_code_loss codes and anchors. Others have float
                             * targets: degrees of two classes, or values like the output's. */
};
/* Adds the case's loss and its inputs; nothing to a net that only runs forward. logits: the last
 * layer's output. */
void pm_verify_add_loss(struct pm_net *net, const struct pm_verify_net *c, struct pm_node *logits);

#endif
