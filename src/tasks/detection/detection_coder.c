/* detection_coder: model.box_coder, how boxes are coded relative to anchors: its options, the type
 * that a net's recipe chooses, and the options of layers that encode or decode. */
#include "tasks/detection/detection.h"

#include <cjson/cJSON.h>
#include <math.h>

const struct pm_opt pm_detection_coder_opts[] = {
    PM_ENUM(pm_detection_coder, type, PM_CODER_TYPE_AUTO,
            "auto|faster_rcnn|mean_stddev|square|corners|rotated|keypoint",
            "faster_rcnn = centre and logarithms of the sides, relative to the anchor's sides; "
            "mean_stddev = distances of the corners; square = centre and one side; corners = "
            "distances of the corners relative to the anchor's sides, as in keras-retinanet; "
            "keypoint = as faster_rcnn, and y and x of data.num_keypoints keypoints relative to "
            "the anchor's centre and sides (nets with one stage); rotated = centre along the "
            "anchor's sides, logarithms of the sides, and angle; always and only for "
            "model.boxes=rotated; auto = rotated for rotated boxes, corners for retinanet_50 and "
            "retinanet_101, faster_rcnn for other nets and lists of layers"),
    PM_FLOAT(pm_detection_coder, y_scale, 10, 1e-6, 1e6,
             "faster_rcnn, keypoint, square, rotated: factor of y of the centre and of keypoints"),
    PM_FLOAT(pm_detection_coder, x_scale, 10, 1e-6, 1e6,
             "faster_rcnn, keypoint, square, rotated: factor of x of the centre and of keypoints"),
    PM_FLOAT(pm_detection_coder, height_scale, 5, 1e-6, 1e6,
             "faster_rcnn, keypoint, rotated: factor of the height"),
    PM_FLOAT(pm_detection_coder, width_scale, 5, 1e-6, 1e6,
             "faster_rcnn, keypoint, rotated: factor of the width"),
    PM_FLOAT(pm_detection_coder, length_scale, 5, 1e-6, 1e6, "square: factor of the side"),
    PM_FLOAT(pm_detection_coder, angle_scale, 5, 1e-6, 1e6,
             "rotated: factor of the angle, in quarter turns"),
    PM_FLOAT(pm_detection_coder, stddev, NAN, 1e-6, 1e6,
             "mean_stddev, corners: divisor of the corners' distances; null = 0.01 for "
             "mean_stddev, 0.2 for corners"),
    PM_INT(pm_detection_coder, num_keypoints, 0, 0, 1000,
           "keypoint: number of keypoints; 0 = data.num_keypoints, which it must equal"),
    { 0 },
};

int pm_detection_read_coder(const struct pm_config *c, const struct cJSON *object, bool rotated,
                            struct pm_detection_coder *out)
{
    const char *own = pm_detection_of_net(c, "model.box_coder");
    struct pm_detection_coder named = { .type = PM_CODER_TYPE_FASTER_RCNN };
    int err = PM_OK;

    PM_TRY(pm_detection_read_object(c, "model.box_coder", object, pm_detection_coder_opts, out));
    if (out->type == PM_CODER_TYPE_AUTO && rotated)
        out->type = PM_CODER_TYPE_ROTATED;
    if (out->type == PM_CODER_TYPE_AUTO) {
        if (own)
            PM_TRY(pm_opts_parse_text(pm_detection_coder_opts, own, &named, c->arena,
                                      "model.box_coder of the net"));
        out->type = named.type;
    }
    if ((out->type == PM_CODER_TYPE_ROTATED) != rotated)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.type: %s, but model.boxes is %s: remove the member, or "
                       "change model.boxes", pm_detection_place(c, "model.box_coder"),
                       rotated ? "a coder of upright boxes" : "rotated",
                       rotated ? "rotated" : "upright"));
    if (isnan(out->stddev))
        out->stddev = out->type == PM_CODER_TYPE_CORNERS ? 0.2f : 0.01f;
out:
    return err;
}

static cJSON *numbers(const float *v, int count)
{
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)v[i]));
    return list;
}

void pm_detection_add_coder(const struct pm_task *t, struct cJSON *options)
{
    const struct pm_detection_coder *c = &t->coder;
    const struct { const char *name; int count; float scales[5]; } of[] = {
        [PM_CODER_TYPE_FASTER_RCNN] = { "faster_rcnn", 4, { c->y_scale, c->x_scale,
                                                            c->height_scale, c->width_scale } },
        [PM_CODER_TYPE_MEAN_STDDEV] = { "mean_stddev", 1, { c->stddev } },
        [PM_CODER_TYPE_SQUARE] = { "square", 3, { c->y_scale, c->x_scale, c->length_scale } },
        [PM_CODER_TYPE_CORNERS] = { "corners", 1, { c->stddev } },
        [PM_CODER_TYPE_ROTATED] = { "rotated", 5, { c->y_scale, c->x_scale, c->height_scale,
                                                    c->width_scale, c->angle_scale } },
    };
    /* Layers of boxes get the four codes of a box without those of its keypoints. */
    const int type = c->type == PM_CODER_TYPE_KEYPOINT ? PM_CODER_TYPE_FASTER_RCNN : c->type;

    cJSON_AddStringToObject(options, "coder", of[type].name);
    cJSON_AddItemToObject(options, "coder_scales", numbers(of[type].scales, of[type].count));
}
