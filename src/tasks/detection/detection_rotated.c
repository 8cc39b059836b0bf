/* detection_rotated: see detection_rotated.h. */
#include "tasks/detection/detection_rotated.h"

#include <pumice/draw.h>

#include <math.h>
#include <string.h>

/* ---- options ------------------------------------------------------------------------------- */

int pm_detection_box_numbers(const struct pm_task *t)
{
    return t->rotated ? 5 : 4;
}

static int check_members(const struct pm_config *c, const struct pm_task *t)
{
    if (t->data.instance_masks)
        return pm_fail(PM_ECONFIG, "%s: true, but nets with model.boxes=rotated predict no masks: "
                       "remove the key", pm_detection_place(c, "data.instance_masks"));
    if (t->data.num_keypoints)
        return pm_fail(PM_ECONFIG, "%s: %d, but nets with model.boxes=rotated predict no "
                       "keypoints: remove the key", pm_detection_place(c, "data.num_keypoints"),
                       t->data.num_keypoints);
    return PM_OK;
}

int pm_detection_check_rotated(const struct pm_config *c, const struct pm_task *t)
{
    int err = PM_OK;

    if (!t->rotated)
        return PM_OK;
    PM_TRY(check_members(c, t));
    if (t->anchors_outside == PM_OUTSIDE_CLIP)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: clip, but a rotated anchor that is clipped is no rectangle "
                       "(model.boxes=rotated): choose keep or prune",
                       pm_detection_place(c, "model.anchors_outside")));
    if (t->matcher.similarity == PM_NEG_SQ_DIST)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.similarity: neg_sq_dist compares the corners of upright "
                       "boxes (model.boxes=rotated): choose iou, ioa or thresholded_iou",
                       pm_detection_place(c, "model.matcher")));
    if (t->box_loss.type == PM_BOX_IOU || t->box_loss.type == PM_BOX_GIOU)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.type: %s compares upright boxes (model.boxes=rotated): "
                       "choose weighted_smooth_l1 or weighted_l2",
                       pm_detection_place(c, "loss.localization"),
                       t->box_loss.type == PM_BOX_IOU ? "weighted_iou" : "weighted_giou"));
out:
    return err;
}

int pm_detection_check_rotated_export(const struct pm_task *t)
{
    if (!t->rotated || t->stages == 1)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: rotated, but a net of two stages suppresses proposals between "
                   "them, and ONNX has no suppression of rotated boxes: set "
                   "model.number_of_stages=1, export an ssd or retinanet net, or use pumice "
                   "predict",
                   pm_detection_place(t->facts.config, "model.boxes"));
}

int pm_detection_check_record(const struct pm_task *t, const struct pm_objects *o,
                              const char *where)
{
    if (!t->rotated || o->count == 0 || (o->has & PM_HAS_ROTATED))
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: the record has upright boxes only, but model.boxes is rotated: "
                   "set model.boxes=upright, or convert the data with a format of rotated boxes "
                   "(dota, hrsc, icdar, or yolo with boxes=rotated)", where);
}

/* ---- pixels of the file -------------------------------------------------------------------- */

/* The upright box around a rectangle, cut at the border of the picture. */
static void around(const struct pm_rectangle *r, int height, int width, double box[4])
{
    pm_rectangle_around(r, box);
    for (int k = 0; k < 4; k++)
        box[k] = fmin(fmax(box[k], 0), k % 2 ? width : height);
}

bool pm_detection_set_rotated(const struct pm_rectangle *r, int height, int width,
                              struct pm_box *box, double rotated[5])
{
    const double numbers[5] = { r->cy, r->cx, r->h, r->w, r->angle };
    struct pm_box upright;

    if (!pm_rectangle_is_valid(r) || !(pm_rectangle_inside(r, height, width) > 0))
        return false;
    around(r, height, width, upright.v);
    /* The part inside may be thinner than a rounding of a coordinate. */
    if (!(upright.v[2] > upright.v[0] && upright.v[3] > upright.v[1]))
        return false;
    *box = upright;
    memcpy(rotated, numbers, sizeof numbers);
    return true;
}

int pm_detection_rotated_back(const struct pm_task *t, struct pm_frame frame, int height, int width,
                              const float *boxes, int count, struct pm_rectangle *out)
{
    float *back = pm_malloc(((size_t)count * 5 + 1) * sizeof *back);
    struct pm_placed placed;
    int err = PM_OK;

    PM_TRY(pm_detection_place_back(t, frame, height, width, &placed));
    memcpy(back, boxes, (size_t)count * 5 * sizeof *back);
    pm_rotated_to_shares(back, (size_t)count, frame.height, frame.width);
    pm_geometry_rotated_back(&placed.geometry, back, (size_t)count);
    for (int i = 0; i < count; i++) {
        pm_rectangle_of_box(back + 5 * (size_t)i, height, width, &out[i]);
        if (pm_rectangle_is_valid(&out[i]))
            pm_rectangle_normalise(&out[i]);
    }
out:
    pm_free(back);
    return err;
}

void pm_detection_mark_rotated(const struct pm_rectangle *r, int height, int width,
                               struct pm_marked_box *out)
{
    double box[4];

    pm_rectangle_around(r, box);
    for (int k = 0; k < 4; k++)
        out->box[k] = (float)(box[k] / (k % 2 ? width : height));
    pm_rectangle_to_box(r, height, width, out->rotated);
    out->turned = true;
}
