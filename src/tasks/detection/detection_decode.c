/* detection_decode: nodes from heads to detections: boxes from codes, scores from logits, and
 * non-maximum suppression. */
#include "tasks/detection/detection_rotated.h"

#include <cjson/cJSON.h>

struct pm_node *pm_detection_decode(struct pm_net *net, const char *name,
                                    const struct pm_detection_heads *h, const struct pm_task *t,
                                    bool train)
{
    struct pm_node *in[PM_DETECTION_LEVELS + 1], *out;
    cJSON *options = cJSON_CreateObject();

    for (int l = 0; l < h->levels; l++)
        in[l] = h->boxes[l];
    in[h->levels] = pm_detection_anchor_boxes(net, h, t, train);
    pm_detection_add_coder(t, options);
    out = pm_net_add_json(net, name, in, h->levels + 1, "decode_boxes", options, NULL, name);
    cJSON_Delete(options);
    return out;
}

static const char *const converters[] = { "", "identity", "sigmoid", "softmax" };

/* Training proposes no box from a pruned anchor. An evaluation clips the anchor instead. Rotated
 * anchors are not clipped, so an evaluation leaves them out as training does: the first stage has
 * learnt nothing about those that are longer than the images. */
static bool prunes(const struct pm_task *t, bool train)
{
    return t->anchors_outside == PM_OUTSIDE_PRUNE && (t->rotated || train);
}

struct pm_node *pm_detection_scores(struct pm_net *net, const char *name,
                                    const struct pm_detection_heads *h,
                                    const struct pm_detection_post *p, const struct pm_task *t,
                                    bool train)
{
    const bool prune = prunes(t, train);
    const struct pm_shape images = h->anchors->in[0]->out_shape;
    struct pm_node *in[PM_DETECTION_LEVELS + 1];

    for (int l = 0; l < h->levels; l++)
        in[l] = h->classes[l];
    in[h->levels] = h->anchors;
    return pm_net_add_many(net, name, in, h->levels + prune,
                           "class_scores classes=%d converter=%s logit_scale=%.9g background=%s "
                           "prune_outside=%s width=%.9g", pm_detection_anchor_classes(t),
                           converters[p->score_converter], (double)p->logit_scale,
                           h->background ? "true" : "false", prune ? "true" : "false",
                           t->rotated ? (double)images.dim[2] / images.dim[1] : 1);
}

struct pm_node *pm_detection_suppress(struct pm_net *net, const char *name,
                                      const struct pm_detection_post *p, struct pm_node *boxes,
                                      struct pm_node *scores, struct pm_node *windows,
                                      struct pm_node *count)
{
    struct pm_node *in[4] = { boxes, scores };
    int n = 2;

    if (windows)
        in[n++] = windows;
    if (count)
        in[n++] = count;
    return pm_net_add_many(net, name, in, n,
                           "suppress score_threshold=%.9g iou_threshold=%.9g "
                           "max_detections_per_class=%d max_total_detections=%d "
                           "use_class_agnostic_nms=%s max_classes_per_detection=%d "
                           "soft_nms_sigma=%.9g change_coordinate_frame=false",
                           (double)p->score_threshold, (double)p->iou_threshold,
                           p->max_detections_per_class, p->max_total_detections,
                           p->use_class_agnostic_nms ? "true" : "false",
                           p->max_classes_per_detection, (double)p->soft_nms_sigma);
}

struct pm_node *pm_detection_second_boxes(struct pm_net *net, const char *name,
                                          const struct pm_task *t,
                                          const struct pm_detection_second *second,
                                          const struct pm_regions *regions)
{
    cJSON *options = cJSON_CreateObject();
    struct pm_node *out;

    pm_detection_add_coder(t, options);
    out = pm_net_add_json(net, name, (struct pm_node *[]){ second->codes, regions->boxes }, 2,
                          "decode_boxes", options, NULL, name);
    cJSON_Delete(options);
    return out;
}

struct pm_node *pm_detection_second_scores(struct pm_net *net, const char *name,
                                           const struct pm_task *t,
                                           const struct pm_detection_second *second,
                                           const struct pm_regions *regions)
{
    const int classes = t->facts.num_classes, rows = regions->boxes->out_shape.dim[1];
    struct pm_node *logits = pm_net_add(net, "second_stage/logits", second->classes,
                                        "reshape shape=[-1,%d,1,%d]", rows, classes + 1);

    return pm_net_add(net, name, logits, "class_scores classes=%d converter=%s logit_scale=%.9g",
                      classes, converters[t->post.score_converter], (double)t->post.logit_scale);
}
