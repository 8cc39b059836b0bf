/* case_losses: adds the losses of the verification's cases. */
#include "verify/case_losses.h"

#include <string.h>

enum { CLASSES = 4 }; /* number of labels; every case's logits have at least as many columns */

static void add_loss(struct pm_net *net, const struct pm_verify_net *c, struct pm_node *logits)
{
    const char *layer = c->loss_layer ? c->loss_layer : "softmax_cross_entropy";
    const bool degrees = strcmp(layer, "matting_cross_entropy") == 0;
    struct pm_node *in[3] = { logits };
    struct pm_shape rows = logits->out_shape;

    rows.rank--;
    in[1] = pm_net_input(net, "labels", c->loss_layer && !degrees ? logits->out_shape : rows,
                         c->loss_layer ? PM_F32 : PM_I32);
    pm_net_set_values(in[1], (struct pm_values){ .high = c->loss_layer ? 1 : CLASSES - 1 });
    if (degrees)
        in[1] = pm_net_add(net, "degrees", in[1], "sigmoid");
    if (c->weights)
        in[2] = pm_net_input(net, "weights", rows, PM_F32);
    pm_net_add_many(net, "loss", in, c->weights ? 3 : 2, "%s %s", layer, c->loss);
}

enum { TRUTHS = 3 };
static const struct pm_values box_values = { .high = 1, .pattern = PM_PATTERN_BOXES };
static const struct pm_values rotated_values = { .low = 0.1, .high = 1 };
static const struct pm_values match_values = { .low = -2, .high = TRUTHS - 1 };
static const struct pm_values class_values = { .high = CLASSES - 1 };
static const struct pm_values weight_values = { .low = 0.5, .high = 2 };

static struct pm_node *add_input(struct pm_net *net, const char *name, struct pm_shape shape,
                                 enum pm_type type, struct pm_values values)
{
    struct pm_node *n = pm_net_input(net, name, shape, type);

    pm_net_set_values(n, values);
    return n;
}

/* Adds the true boxes of 4 or 5 numbers, their classes and their weights, for n pictures. */
static void add_truth(struct pm_net *net, int n, int numbers, struct pm_node *out[3])
{
    out[0] = add_input(net, "truth_boxes", PM_SHAPE3(n, TRUTHS, numbers), PM_F32,
                       numbers == 5 ? rotated_values : box_values);
    out[1] = add_input(net, "truth_classes", PM_SHAPE2(n, TRUTHS), PM_I32, class_values);
    out[2] = add_input(net, "truth_weights", PM_SHAPE2(n, TRUTHS), PM_F32, weight_values);
}

static void add_detection_loss(struct pm_net *net, const struct pm_verify_net *c)
{
    enum { INPUTS = 9 };
    static const char *const maps[] = { "boxes_1", "boxes_2", "classes_1", "classes_2", "anchors" };
    const int n = c->images.dim[0];
    struct pm_node *in[INPUTS];

    for (size_t i = 0; i < PM_COUNT(maps); i++)
        in[i] = pm_net_find(net, maps[i]);
    in[5] = add_input(net, "matches", PM_SHAPE2(n, in[4]->out_shape.dim[0]), PM_I32,
                      match_values);
    add_truth(net, n, in[4]->out_shape.dim[1], in + 6);
    pm_net_add_many(net, "loss", in, INPUTS, "%s %s", c->loss_layer, c->loss);
}

/* Samples as many proposals as the codes have rows. */
static void add_second_stage(struct pm_net *net, const struct pm_verify_net *c)
{
    enum { PROPOSALS = 60 };
    const int n = c->images.dim[0];
    struct pm_node *codes = pm_net_find(net, "codes"), *truth[3];
    struct pm_node *logits = pm_net_find(net, "logits");
    /* A code for each number of a box, for each class but the background. */
    const int numbers = codes->out_shape.dim[1] / (logits->out_shape.dim[1] - 1);
    struct pm_node *proposals =
        add_input(net, "proposals", PM_SHAPE3(n, PROPOSALS, numbers), PM_F32,
                  numbers == 5 ? rotated_values : box_values);
    struct pm_node *count = add_input(net, "count", PM_SHAPE1(n), PM_I32,
                                      (struct pm_values){ .low = 20, .high = PROPOSALS });

    add_truth(net, n, numbers, truth);
    struct pm_node *s = pm_net_add_many(
        net, "sampled", (struct pm_node *[]){ proposals, count, truth[0], truth[2] }, 4,
        "sample_proposals batch=%d iou_threshold=0.2 append_truth=true",
        codes->out_shape.dim[0] / n);
    if (net->error)
        return;
    pm_net_add_many(net, "loss",
                    (struct pm_node *[]){ codes, logits, s, s->out[1],
                                          s->out[2], truth[0], truth[1], truth[2] }, 8,
                    "%s %s", c->loss_layer, c->loss);
}

/* Sets the inputs logits, boxes and matches. An image has as many boxes as the logits have maps for
 * it. */
static void add_regions(struct pm_net *net, int n, struct pm_node *in[3])
{
    in[0] = pm_net_find(net, "logits");
    const int boxes = in[0]->out_shape.dim[0] / n;

    in[1] = add_input(net, "boxes", PM_SHAPE3(n, boxes, 4), PM_F32, box_values);
    in[2] = add_input(net, "matches", PM_SHAPE2(n, boxes), PM_I32, match_values);
}

static void add_mask_loss(struct pm_net *net, const struct pm_verify_net *c)
{
    const struct pm_values any = { .low = INT32_MIN, .high = INT32_MAX };
    const int n = c->images.dim[0];
    struct pm_node *in[6];

    add_regions(net, n, in);
    in[3] = add_input(net, "truth_masks", PM_SHAPE4(n, TRUTHS, 9, 2), PM_U32, any);
    in[4] = add_input(net, "truth_classes", PM_SHAPE2(n, TRUTHS), PM_I32, class_values);
    in[5] = add_input(net, "truth_mask_weights", PM_SHAPE2(n, TRUTHS), PM_F32, weight_values);
    pm_net_add_many(net, "loss", in, 6, "%s %s", c->loss_layer, c->loss);
}

static struct pm_node *add_keypoints(struct pm_net *net, int n, int points)
{
    return add_input(net, "truth_keypoints", PM_SHAPE4(n, TRUTHS, points, 2), PM_F32,
                     (struct pm_values){ .high = 1 });
}

static void add_keypoint_loss(struct pm_net *net, const struct pm_verify_net *c)
{
    const int n = c->images.dim[0];
    struct pm_node *in[4];

    add_regions(net, n, in);
    in[3] = add_keypoints(net, n, in[0]->out_shape.dim[3]);
    pm_net_add_many(net, "loss", in, 4, "%s %s", c->loss_layer, c->loss);
}

static void add_keypoint_code_loss(struct pm_net *net, const struct pm_verify_net *c)
{
    const int n = c->images.dim[0];
    struct pm_node *codes = pm_net_find(net, "codes");
    const int anchors = codes->out_shape.dim[1], points = codes->out_shape.dim[2] / 2;

    pm_net_add_many(net, "loss", (struct pm_node *[]){
        codes, pm_net_find(net, "anchors"),
        add_input(net, "matches", PM_SHAPE2(n, anchors), PM_I32, match_values),
        add_keypoints(net, n, points),
        add_input(net, "truth_weights", PM_SHAPE2(n, TRUTHS), PM_F32, weight_values) }, 5,
        "%s %s", c->loss_layer, c->loss);
}

/* The logits are those of sequences. */
static void add_ctc_loss(struct pm_net *net, const struct pm_verify_net *c)
{
    enum { SYMBOLS = 3 };
    struct pm_node *logits = pm_net_find(net, "logits");
    const struct pm_shape x = logits->out_shape;
    const struct pm_values length_values = { .low = 0, .high = SYMBOLS };
    const struct pm_values step_values = { .low = SYMBOLS - 1, .high = x.dim[x.rank - 2] };
    const struct pm_shape each = PM_SHAPE1(x.dim[0]);

    pm_net_add_many(net, "loss", (struct pm_node *[]){
        logits, add_input(net, "labels", PM_SHAPE2(x.dim[0], SYMBOLS), PM_I32, class_values),
        add_input(net, "label_lengths", each, PM_I32, length_values),
        add_input(net, "lengths", each, PM_I32, step_values) }, 4, "%s %s", c->loss_layer,
        c->loss);
}

/* The node "logits" is the sequence that a decoder with attention reads; some steps are padded. */
static void add_attention(struct pm_net *net, const struct pm_verify_net *c)
{
    enum { STEPS = 3 };
    struct pm_node *sequence = pm_net_find(net, "logits");
    const struct pm_values symbols = { .low = -1, .high = 8 };
    struct pm_node *in[2] = { sequence }, *loss[2];

    in[1] = loss[1] = add_input(net, "labels", PM_SHAPE2(sequence->out_shape.dim[0], STEPS),
                                PM_I32, symbols);
    loss[0] = pm_net_add_many(net, "decoder", in, 2, "%s %s", c->loss_layer, c->loss);
    pm_net_add_many(net, "loss", loss, 2, "softmax_cross_entropy ignore_label=-1 normalize=top_k");
}

void pm_verify_add_loss(struct pm_net *net, const struct pm_verify_net *c, struct pm_node *logits)
{
    static const struct {
        const char *layer;
        void (*add)(struct pm_net *net, const struct pm_verify_net *c);
    } of[] = {
        { "detection_loss", add_detection_loss },
        { "box_classifier_loss", add_second_stage },
        { "mask_loss", add_mask_loss },
        { "keypoint_loss", add_keypoint_loss },
        { "keypoint_code_loss", add_keypoint_code_loss },
        { "ctc_loss", add_ctc_loss },
        { "attention_decoder", add_attention },
    };

    for (size_t i = 0; i < PM_COUNT(of) && c->loss_layer; i++)
        if (strcmp(of[i].layer, c->loss_layer) == 0) {
            of[i].add(net, c);
            return;
        }
    if (!c->forward_only)
        add_loss(net, c, logits);
}
