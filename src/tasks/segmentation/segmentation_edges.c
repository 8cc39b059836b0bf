/* segmentation_edges: nets that also predict edges (head "edge"): their labels and their loss,
 *     (1 - loss.edge_weight) cross entropy of the classes
 *     + loss.edge_weight cross entropy of the edges,
 * each divided by the number of its own pixels that count. Edge labels are computed from the
 * record's map at its own size, as in the original. Bands have the width data.edge_width in that
 * map. In training, resizing scales them with the picture. Padding has no edges. */
#include "tasks/segmentation/segmentation.h"

#include "data/edge_labels.h"

int pm_segmentation_edge_field(const struct pm_task *s, bool train)
{
    return 2 + (!s->pixels.instance.on ? 0 : train ? 5 : 1);
}

void pm_segmentation_edge_labels(const struct pm_task *s, const struct pm_label *labels,
                                 struct pm_label *out)
{
    pm_edge_labels(&(struct pm_edge_options){ s->pixels.edge_classes, s->pixels.edge_width,
                                              s->pixels.ignore_label }, labels, out);
}

float pm_segmentation_class_weight(const struct pm_task *s)
{
    return s->pixels.edge_classes && s->pixels.loss ? 1 - s->pixels.loss->edge_weight : 1;
}

void pm_segmentation_edge_loss(struct pm_net *net, struct pm_node *edge, const struct pm_task *s)
{
    struct pm_node *labels = pm_net_find(net, "edge_labels");
    const struct pm_shape size = labels->out_shape;

    edge = pm_segmentation_resized(net, pm_segmentation_own(net, "edge_loss_logits"), edge,
                                   size.dim[1], size.dim[2], "bilinear");
    pm_net_add_many(net, "edge_loss", (struct pm_node *[]){ edge, labels }, 2,
                    "softmax_cross_entropy weight=%.9g ignore_label=%d",
                    1 - (double)pm_segmentation_class_weight(s), PM_EDGE_IGNORE);
}

/* ---- outputs ----------------------------------------------------------------------------- */

void pm_segmentation_add_edges(struct pm_net *net, struct pm_node *edge, bool mirrored, int height,
                               int width, struct pm_node **sum)
{
    if (mirrored)
        edge = pm_net_add(net, pm_segmentation_own(net, "edges_mirrored_back"), edge, "flip");
    edge = pm_segmentation_resized(net, pm_segmentation_own(net, "edges_enlarged"), edge, height,
                                   width, "bilinear");
    edge = pm_net_add(net, pm_segmentation_own(net, "edge_probabilities"), edge, "softmax");
    *sum = *sum ? pm_net_add_many(net, pm_segmentation_own(net, "edge_sum"),
                                  (struct pm_node *[]){ *sum, edge }, 2, "add") : edge;
}

int pm_segmentation_edge_output(const struct pm_task *s)
{
    return s->pixels.instance.on ? 4 : 1;
}

void pm_segmentation_edge_outputs(struct pm_net *net, struct pm_node *sum, int modes,
                                  enum pm_use use, struct pm_outputs *out)
{
    const bool export = use == PM_USE_EXPORT;

    if (export)
        pm_outputs_add(net, out, pm_net_add(net, "EdgeProbabilities", sum, "affine scale=%.9g",
                                            modes ? 1.0 / modes : 1), PM_PLACES_NONE);
    pm_outputs_add(net, out, pm_net_add(net, export ? "EdgePredictions"
                                             : pm_segmentation_own(net, "edge_predictions"),
                                        sum, "argmax"), PM_PLACES_NONE);
}

void pm_segmentation_edge_paint(const struct pm_task *s, const struct pm_class_map *m, int height,
                                int width, struct pm_image8 *im)
{
    const size_t count = (size_t)height * (size_t)width;
    const int last = s->pixels.edge_classes - 1;
    int32_t *classes = pm_malloc(count * sizeof *classes);

    *im = (struct pm_image8){ height, width, 1, pm_malloc(count) };
    pm_segmentation_resize(m, height, width, classes);
    for (size_t i = 0; i < count; i++)
        im->pixels[i] = (uint8_t)(255 * (last - classes[i]) / last);
    pm_free(classes);
}
