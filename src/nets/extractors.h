/* extractors: the classifiers whose layers detectors build. An extractor builds all layers of the
 * classifier except its head, and names the nodes whose maps a detector reads. It is in the file of
 * its classifier. ssd.c sets net->prefix meanwhile, so variables have the names of TensorFlow's
 * Object Detection API: FeatureExtractor/MobilenetV2/... */
#ifndef PM_EXTRACTORS_H
#define PM_EXTRACTORS_H

#include "nets/nets.h"

/* A map. name: TensorFlow's, a part of the names of layers that are added after it. node: the node
 * that has it, without the prefix. */
struct pm_extractor_map { const char *name, *node; };

struct pm_extractor {
    const char *scope;   /* "MobilenetV2": layers that are added to it have this scope, too */
    int least;           /* least height and width of the images */
    /* Builds the layers and returns the last one. The options hold depth_multiplier, min_depth,
     * batch norm, conventions and the members that detectors set. */
    struct pm_node *(*build)(struct pm_net *net, struct pm_node *images,
                             const struct pm_nets_options *o);
    bool own_scale;            /* its batch norm has gamma and beta whatever hyperparams say */
    bool own_norm;             /* hyperparams do not set its batch norm's decay and epsilon */
    /* Maps at strides 16 and 32, to which ssd adds smaller ones. A pooling pyramid reads the
     * first. */
    const struct pm_extractor_map *maps;
    int count;
    /* Maps of the levels 2 to 5 of a feature pyramid, at strides 4 to 32; no names: no pyramid. */
    struct pm_extractor_map levels[4];
    const char *coarse;  /* beginning of the name of a convolution that makes level 6 or 7 */
    int first;           /* the number in the first one's name; 0: its input's level */
    /* The map that the first stage of Faster R-CNN reads and crops regions from; no name: the first
     * of `maps`. */
    struct pm_extractor_map crops;
    /* Builds on crops of this map the layers that follow it in the classifier: the second stage of
     * Faster R-CNN. NULL: no net has such a stage. */
    struct pm_node *(*second)(struct pm_net *net, struct pm_node *crops,
                              const struct pm_nets_options *o);
};

extern const struct pm_extractor pm_extractor_mobilenet_v1, pm_extractor_mobilenet_v2,
    pm_extractor_mobilenet_v3_large, pm_extractor_mobilenet_v3_small, pm_extractor_inception_v2,
    pm_extractor_inception_v3, pm_extractor_inception_resnet_v2, pm_extractor_resnet_v1_50,
    pm_extractor_resnet_v1_101, pm_extractor_resnet_v1_152;

#endif
