/* detection_outputs: the outputs of evaluation, prediction and export, and the losses of an
 * evaluation. */
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_rotated.h"

#include <string.h>

/* The nodes between heads and outputs. */
struct nodes {
    struct pm_detection_heads h;
    struct pm_node *boxes, *scores; /* before suppression */
    struct pm_node *kept;           /* the detections */
    struct pm_detection_shapes shapes; /* of these */
    struct pm_node *proposals;      /* of two stages: the layer suppress of the first */
    struct pm_detection_second second;
};

/* Adds inputs for the fields. */
static void add_fields(struct pm_net *net, const struct pm_task *t, const struct pm_shape images)
{
    const struct pm_frame frame = { images.dim[1], images.dim[2] };
    struct pm_field_list fields = { 0 };

    pm_detection_fields(t, false, frame, &fields);
    for (int i = 1; i < fields.count; i++) {
        if (strcmp(fields.list[i].name, "windows") == 0) /* an input already */
            continue;
        struct pm_shape s = { .rank = fields.list[i].shape.rank + 1, .dim = { images.dim[0] } };

        for (int k = 1; k < s.rank; k++)
            s.dim[k] = fields.list[i].shape.dim[k - 1];
        pm_net_input(net, fields.list[i].name, s, fields.list[i].type);
    }
    pm_free(fields.list);
}

/* Adds the losses, if the frame's truths are fields. */
static void add_losses(struct pm_net *net, const struct nodes *n, const struct pm_task *t,
                       const struct pm_shape images)
{
    add_fields(net, t, images);
    if (!pm_net_find(net, "matches"))
        return;
    pm_detection_add_anchor_loss(net, &n->h, t);
    if (t->stages == 2)
        pm_detection_evaluate_second(net, t, n->proposals, &n->second);
}

static void add_export(struct pm_net *net, struct pm_outputs *out, struct pm_node *node)
{
    pm_outputs_add(net, out, node, PM_PLACES_NONE);
}

/* Adds the proposals of two stages: the boxes if the config asks for them, and their number, which
 * also says which raw boxes are padding. */
static void add_proposals(struct pm_net *net, struct pm_outputs *out, const struct pm_task *t,
                          const struct nodes *n)
{
    if (t->export.proposals)
        pm_outputs_add(net, out, n->proposals, PM_PLACES_BOXES);
    if (t->export.proposals || !t->export.nms)
        add_export(net, out, pm_net_add(net, "num_proposals", n->proposals->out[PM_OUT_COUNT],
                                        "to_float"));
}

/* Adds the outputs of an exported model under TensorFlow's names. n->kept: NULL for those before
 * suppression only. */
static void add_exported(struct pm_net *net, struct pm_outputs *out, const struct pm_task *t,
                         const struct nodes *n)
{
    if (n->kept) {
        pm_outputs_add(net, out, n->kept, PM_PLACES_BOXES);
        add_export(net, out,
                   pm_net_add(net, "detection_scores", n->kept->out[PM_OUT_SCORES], "flatten"));
        add_export(net, out, pm_net_add(net, "detection_classes", n->kept->out[PM_OUT_CLASSES],
                                        "to_float add=1"));
        add_export(net, out,
                   pm_net_add(net, "num_detections", n->kept->out[PM_OUT_COUNT], "to_float"));
    }
    if (n->shapes.masks)
        pm_outputs_add(net, out, n->shapes.masks,
                       t->export.masks == PM_DETECTION_MASKS_PASTED ? PM_PLACES_MASKS
                                                                    : PM_PLACES_NONE);
    if (n->shapes.keypoints)
        pm_outputs_add(net, out, n->shapes.keypoints, PM_PLACES_POINTS);
    if (n->shapes.keypoints && t->point_scores)
        add_export(net, out, pm_net_add(net, "detection_keypoint_scores",
                                        n->shapes.keypoints->out[1], "reshape shape=[0,0,0]"));
    pm_outputs_add(net, out, n->boxes, PM_PLACES_BOXES);
    add_export(net, out, n->scores);
    if (t->stages == 2)
        add_proposals(net, out, t, n);
}

/* Adds what both stages give before suppression, in the order of the outputs of EVAL. */
static void add_stages(struct pm_net *net, const struct nodes *n, struct pm_outputs *out)
{
    pm_outputs_add(net, out, n->proposals->out[PM_OUT_BOXES], PM_PLACES_NONE);
    pm_outputs_add(net, out, n->proposals->out[PM_OUT_COUNT], PM_PLACES_NONE);
    pm_outputs_add(net, out, n->boxes, PM_PLACES_NONE);
    pm_outputs_add(net, out, n->scores, PM_PLACES_NONE);
}

/* Adds masks and keypoints, in the order of the outputs of EVAL and PREDICT. */
static void add_shapes(struct pm_net *net, const struct pm_task *t,
                       const struct pm_detection_shapes *s, struct pm_outputs *out)
{
    if (s->masks)
        pm_outputs_add(net, out, s->masks, PM_PLACES_NONE);
    if (s->keypoints)
        pm_outputs_add(net, out, s->keypoints, PM_PLACES_NONE);
    if (s->keypoints && t->point_scores)
        pm_outputs_add(net, out, s->keypoints->out[1], PM_PLACES_NONE);
}

static void one_stage(struct pm_net *net, const struct pm_task *t, struct nodes *n)
{
    n->boxes = pm_detection_decode(net, "raw_detection_boxes", &n->h, t, false);
    n->scores = pm_detection_scores(net, "raw_detection_scores", &n->h, &t->post, t, false);
}

/* Returns the number of valid boxes. */
static struct pm_node *two_stages(struct pm_net *net, const struct pm_net_maker *maker,
                                  const struct pm_task *t, struct pm_node *windows,
                                  struct nodes *n)
{
    struct pm_regions regions;

    n->proposals = pm_detection_propose(net, &n->h, t, false, windows);
    if (net->error)
        return NULL;
    regions = (struct pm_regions){ .boxes = n->proposals->out[PM_OUT_BOXES],
                                   .count = n->proposals->out[PM_OUT_COUNT] };
    pm_detection_build_second(net, maker, t, &regions, &n->second);
    n->boxes = pm_detection_second_boxes(net, "raw_detection_boxes", t, &n->second, &regions);
    n->scores = pm_detection_second_scores(net, "raw_detection_scores", t, &n->second, &regions);
    return regions.count;
}

int pm_detection_outputs(struct pm_net *net, struct pm_node *images,
                         const struct pm_net_maker *maker, const struct pm_task *t,
                         enum pm_use use, struct pm_outputs *out)
{
    struct pm_heads heads = { 0 };
    struct pm_node *windows = NULL, *count = NULL;
    struct nodes n = { 0 };
    int err = PM_OK;

    if (use == PM_USE_EXPORT)
        PM_TRY(pm_detection_check_rotated_export(t));
    PM_TRY(maker->heads(maker->ctx, net, images, &heads));
    PM_TRY(net->error);
    pm_detection_sort_heads(t, &heads, &n.h);
    pm_detection_split_codes(net, t, &n.h);
    if (t->pads && use != PM_USE_EXPORT) /* an exported model finds the picture's part itself */
        windows = pm_net_input(net, "windows", PM_SHAPE2(images->out_shape.dim[0], 4), PM_F32);
    if (t->stages == 2)
        count = two_stages(net, maker, t, windows, &n);
    else
        one_stage(net, t, &n);
    PM_TRY(net->error);
    if (use != PM_USE_EXPORT || t->export.nms)
        n.kept = pm_detection_suppress(net, "detection_boxes", &t->post, n.boxes, n.scores,
                                       windows, count);
    PM_TRY(net->error);
    if (n.kept)
        pm_detection_shapes(net, maker, t, &n.h, n.kept, &n.shapes);
    PM_TRY(net->error);
    if (use == PM_USE_EXPORT) {
        add_exported(net, out, t, &n);
        return net->error;
    }
    for (int k = PM_OUT_BOXES; k <= PM_OUT_COUNT; k++)
        pm_outputs_add(net, out, n.kept->out[k], PM_PLACES_NONE);
    if (use == PM_USE_EVAL && t->stages == 2)
        add_stages(net, &n, out);
    add_shapes(net, t, &n.shapes, out);
    if (use == PM_USE_EVAL)
        add_losses(net, &n, t, images->out_shape);
    err = net->error;
out:
    return err;
}
