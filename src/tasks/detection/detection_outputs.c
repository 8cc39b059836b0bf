/* detection_outputs: the nodes after the heads in evaluation, prediction and export: boxes from
 * codes, scores from logits, and non-maximum suppression. */
#include "tasks/detection/detection.h"

#include <cjson/cJSON.h>
#include <string.h>

static struct pm_node *decode(struct pm_net *net, const char *name,
                              const struct pm_detection_heads *h, const struct pm_task *t)
{
    struct pm_node *in[PM_DETECTION_LEVELS + 1], *out;
    cJSON *options = cJSON_CreateObject();

    for (int l = 0; l < h->levels; l++)
        in[l] = h->boxes[l];
    in[h->levels] = pm_detection_anchor_boxes(net, h, t, false);
    pm_detection_add_coder(t, options);
    out = pm_net_add_json(net, name, in, h->levels + 1, "decode_boxes", options, NULL, name);
    cJSON_Delete(options);
    return out;
}

static struct pm_node *scores(struct pm_net *net, const char *name,
                              const struct pm_detection_heads *h, const struct pm_task *t)
{
    static const char *const converters[] = { "", "identity", "sigmoid", "softmax" };
    struct pm_node *in[PM_DETECTION_LEVELS];

    for (int l = 0; l < h->levels; l++)
        in[l] = h->classes[l];
    return pm_net_add_many(net, name, in, h->levels,
                           "class_scores classes=%d converter=%s logit_scale=%.9g background=%s",
                           t->facts.num_classes, converters[t->post.score_converter],
                           (double)t->post.logit_scale, h->background ? "true" : "false");
}

/* windows: NULL: the picture fills the input. */
static struct pm_node *suppress(struct pm_net *net, const char *name, struct pm_node *boxes,
                                struct pm_node *of, struct pm_node *windows,
                                const struct pm_task *t)
{
    const struct pm_detection_post *p = &t->post;

    return pm_net_add_many(net, name, (struct pm_node *[]){ boxes, of, windows }, windows ? 3 : 2,
                           "suppress score_threshold=%.9g iou_threshold=%.9g "
                           "max_detections_per_class=%d max_total_detections=%d "
                           "use_class_agnostic_nms=%s max_classes_per_detection=%d "
                           "soft_nms_sigma=%.9g change_coordinate_frame=false",
                           (double)p->score_threshold, (double)p->iou_threshold,
                           p->max_detections_per_class, p->max_total_detections,
                           p->use_class_agnostic_nms ? "true" : "false",
                           p->max_classes_per_detection, (double)p->soft_nms_sigma);
}

/* Adds inputs for the fields and the loss layer. */
static void add_loss(struct pm_net *net, const struct pm_heads *heads, const struct pm_task *t,
                     const struct pm_shape images)
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
    if (pm_net_find(net, "matches"))
        pm_detection_add_loss(net, heads, t);
    pm_free(fields.list);
}

/* Adds the outputs of an exported model under TensorFlow's names. kept: NULL for those before
 * suppression only. */
static void add_exported(struct pm_net *net, struct pm_outputs *out, struct pm_node *kept,
                         struct pm_node *boxes, struct pm_node *of)
{
    if (kept) {
        pm_outputs_add(net, out, kept, false);
        pm_outputs_add(net, out,
                       pm_net_add(net, "detection_scores", kept->out[PM_OUT_SCORES], "flatten"),
                       false);
        pm_outputs_add(net, out,
                       pm_net_add(net, "detection_classes", kept->out[PM_OUT_CLASSES],
                                  "to_float add=1"),
                       false);
        pm_outputs_add(net, out,
                       pm_net_add(net, "num_detections", kept->out[PM_OUT_COUNT], "to_float"),
                       false);
    }
    pm_outputs_add(net, out, boxes, false);
    pm_outputs_add(net, out, of, false);
}

int pm_detection_outputs(struct pm_net *net, struct pm_node *images,
                         const struct pm_net_maker *maker, const struct pm_task *t,
                         enum pm_use use, struct pm_outputs *out)
{
    struct pm_heads heads = { 0 };
    struct pm_detection_heads h;
    struct pm_node *boxes, *of, *kept, *windows = NULL;
    int err = PM_OK;

    PM_TRY(maker->heads(maker->ctx, net, images, &heads));
    PM_TRY(net->error);
    pm_detection_sort_heads(t, &heads, &h);
    boxes = decode(net, "raw_detection_boxes", &h, t);
    of = scores(net, "raw_detection_scores", &h, t);
    PM_TRY(net->error);
    if (use == PM_USE_EXPORT && !t->export.nms) {
        add_exported(net, out, NULL, boxes, of);
        return net->error;
    }
    if (t->pads && use != PM_USE_EXPORT) /* an exported model's boxes are those of the picture */
        windows = pm_net_input(net, "windows", PM_SHAPE2(images->out_shape.dim[0], 4), PM_F32);
    kept = suppress(net, "detection_boxes", boxes, of, windows, t);
    PM_TRY(net->error);
    if (use == PM_USE_EXPORT) {
        add_exported(net, out, kept, boxes, of);
        return net->error;
    }
    for (int k = PM_OUT_BOXES; k <= PM_OUT_COUNT; k++)
        pm_outputs_add(net, out, kept->out[k], false);
    if (use == PM_USE_EVAL)
        add_loss(net, &heads, t, images->out_shape);
    err = net->error;
out:
    return err;
}

int pm_detection_read(const struct pm_task *t, struct pm_frame frame, int height, int width,
                      const void *const *outputs, int i, struct pm_box_detection **out, int *count)
{
    const size_t first = (size_t)i * (size_t)t->post.max_total_detections;
    const float *boxes = (const float *)outputs[PM_OUT_BOXES] + 4 * first;
    const float *scores = (const float *)outputs[PM_OUT_SCORES] + first;
    const int32_t *classes = (const int32_t *)outputs[PM_OUT_CLASSES] + first;
    const int all = ((const int32_t *)outputs[PM_OUT_COUNT])[i];
    struct pm_box *pixels = pm_malloc(((size_t)all + 1) * sizeof *pixels);
    int err = PM_OK;

    *out = pm_malloc(((size_t)all + 1) * sizeof **out);
    *count = 0;
    PM_TRY(pm_detection_to_pixels(t, frame, height, width, boxes, all, pixels));
    for (int k = 0; k < all; k++)
        if (pixels[k].v[2] > pixels[k].v[0] && pixels[k].v[3] > pixels[k].v[1])
            (*out)[(*count)++] =
                (struct pm_box_detection){ pixels[k], (double)scores[k], classes[k] };
out:
    pm_free(pixels);
    return err;
}
