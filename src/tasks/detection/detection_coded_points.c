/* detection_coded_points: keypoints that a detector with one stage regresses together with its
 * boxes, as the keypoint box coder of TensorFlow's Object Detection API. A box has 4 + 2 K codes.
 * The net's maps are split: layers of boxes get the first four codes of each anchor, and layers of
 * keypoints get the others. */
#include "tasks/detection/detection_points.h"

enum { OUT_ANCHORS = 4 }; /* output of suppress */

int pm_detection_coded_points(const struct pm_task *t)
{
    return t->coder.type == PM_CODER_TYPE_KEYPOINT ? t->coder.num_keypoints : 0;
}

static int check_losses(const struct pm_config *c, const struct pm_task *t)
{
    if (t->box_loss.type == PM_BOX_IOU || t->box_loss.type == PM_BOX_GIOU)
        return pm_fail(PM_ECONFIG, "%s.type: %s compares decoded boxes, which have no keypoints "
                       "(model.box_coder.type=keypoint): choose weighted_smooth_l1 or weighted_l2",
                       pm_detection_place(c, "loss.localization"),
                       t->box_loss.type == PM_BOX_IOU ? "weighted_iou" : "weighted_giou");
    if (t->miner.on)
        return pm_fail(PM_ECONFIG, "%s: not together with model.box_coder.type=keypoint, because "
                       "the miner does not choose the anchors of keypoints: remove the key",
                       pm_detection_place(c, "loss.hard_example_miner"));
    return PM_OK;
}

int pm_detection_check_coded_points(const struct pm_config *c, struct pm_task *t)
{
    const int points = t->data.num_keypoints, own = t->coder.num_keypoints;
    const char *place = pm_detection_place(c, "model.box_coder");

    if (t->coder.type != PM_CODER_TYPE_KEYPOINT)
        return PM_OK;
    if (pm_detection_has_stages(c))
        return pm_fail(PM_ECONFIG, "%s.type: faster_rcnn nets do not code keypoints with boxes: "
                       "use faster_rcnn, and set predict_keypoints=true in "
                       "model.second_stage_box_predictor", place);
    if (points == 0)
        return pm_fail(PM_ECONFIG, "%s.type: keypoint needs the number of keypoints of an object: "
                       "set data.num_keypoints", place);
    if (own && own != points)
        return pm_fail(PM_ECONFIG, "%s.num_keypoints: %d, but data.num_keypoints is %d: remove the "
                       "member, or correct one of the two", place, own, points);
    t->coder.num_keypoints = points;
    return check_losses(c, t);
}

/* Splits the codes of level l. Returns those of its keypoints, [n, anchors, 2 K]. */
static struct pm_node *split_level(struct pm_net *net, const struct pm_task *t,
                                   struct pm_detection_heads *h, int l)
{
    const int codes = pm_detection_code_size(t);
    struct pm_node *whole = h->boxes[l], *rows, *boxes;
    const int *dim = whole->out_shape.dim;
    const char *name = pm_arena_printf(net->arena, "codes_%d", l + 1);

    rows = pm_net_add(net, name, whole, "reshape shape=[0,-1,%d]", codes);
    boxes = pm_net_add(net, pm_arena_printf(net->arena, "%s/boxes", name), rows,
                       "slice size=[-1,-1,4]");
    h->boxes[l] = pm_net_add(net, pm_arena_printf(net->arena, "%s/map", name), boxes,
                             "reshape shape=[0,%d,%d,%d]", dim[1], dim[2], dim[3] / codes * 4);
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/keypoints", name), rows,
                      "slice begin=[0,0,4] size=[-1,-1,%d]", codes - 4);
}

void pm_detection_split_codes(struct pm_net *net, const struct pm_task *t,
                              struct pm_detection_heads *h)
{
    struct pm_node *points[PM_DETECTION_LEVELS];

    h->points = NULL;
    if (!pm_detection_coded_points(t) || net->error)
        return;
    for (int l = 0; l < h->levels; l++)
        points[l] = split_level(net, t, h, l);
    h->points = h->levels == 1 ? points[0]
                               : pm_net_add_many(net, "codes/keypoints", points, h->levels,
                                                 "concat axis=1");
}

void pm_detection_add_code_loss(struct pm_net *net, const struct pm_task *t,
                                const struct pm_detection_heads *h)
{
    const struct pm_detection_box_loss *b = &t->box_loss;
    struct pm_node *in[6];
    int n = 0;

    if (!h->points || net->error)
        return;
    in[n++] = h->points;
    in[n++] = pm_detection_anchor_boxes(net, h, t, true);
    in[n++] = pm_net_find(net, "matches");
    in[n++] = pm_net_find(net, "truth_keypoints");
    in[n++] = pm_net_find(net, "truth_weights");
    if (pm_detection_has_normalizer(t))
        in[n++] = pm_net_find(net, "normalizer");
    pm_net_add_many(net, "keypoint_loss", in, n,
                    "keypoint_code_loss scales=[%.9g,%.9g] localization=%s delta=%.9g weight=%.9g "
                    "normalize_by_matches=%s normalize_per_image=%s", (double)t->coder.y_scale,
                    (double)t->coder.x_scale,
                    b->type == PM_BOX_L2 ? "weighted_l2" : "weighted_smooth_l1", (double)b->delta,
                    (double)b->weight /
                        (t->loss.normalize_loc_by_codesize ? pm_detection_code_size(t) : 1),
                    t->loss.normalize_by_matches ? "true" : "false",
                    t->minibatch.on ? "true" : "false");
}

struct pm_node *pm_detection_decode_points(struct pm_net *net, const struct pm_task *t,
                                           const struct pm_detection_heads *h,
                                           struct pm_node *kept)
{
    struct pm_node *in[] = { h->points, pm_detection_anchor_boxes(net, h, t, false),
                             kept->out[OUT_ANCHORS], kept->out[PM_OUT_COUNT] };

    return pm_net_add_many(net, "detection_keypoints", in, PM_COUNT(in),
                           "decode_keypoints scales=[%.9g,%.9g]", (double)t->coder.y_scale,
                           (double)t->coder.x_scale);
}
