/* detection_rotated: what model.boxes=rotated means for the task. A rotated box is cy, cx, h, w,
 * angle. Three units occur: records and samples have shares of both sides of the picture
 * (data/rotated_box.h); fields, anchors and the net's outputs have the height of the net's input
 * for both axes (layers/rotated_overlap.h); metrics and predictions have pixels of the file. All
 * functions are thread-safe. */
#ifndef PM_DETECTION_ROTATED_H
#define PM_DETECTION_ROTATED_H

#include "data/rotated_box.h"
#include "tasks/detection/detection.h"

struct pm_marked_box; /* pumice/draw.h */

/* model.boxes */
enum pm_box_form { PM_BOXES_UPRIGHT, PM_BOXES_ROTATED };

/* For the metadata of an exported model. */
#define PM_DETECTION_ROTATED_UNITS                                                                 \
    "cy, cx, h, w, angle: the first four in heights of the model's input, so cx goes from 0 to "   \
    "width / height; the angle in radians, clockwise on the screen"
#define PM_DETECTION_ROTATED_RULE                                                                  \
    "for each class: of the boxes with a score above score_threshold take the one with the "       \
    "highest score, drop those whose intersection over union with it is above iou_threshold, "     \
    "repeat; at most max_detections_per_class. Then keep the max_total_detections highest scores " \
    "of all classes. With use_class_agnostic_nms once for all classes, by each box's best score, " \
    "up to max_total_detections; a kept box then counts for its max_classes_per_detection best "   \
    "classes above score_threshold. With soft_nms_sigma above 0 also multiply the scores of boxes "\
    "that are not dropped by exp(-iou^2 / (2 soft_nms_sigma)) each time"

/* Returns the numbers of a box: 4, or 5 of rotated ones. */
int pm_detection_box_numbers(const struct pm_task *t);
/* Checks that the other options of the task fit model.boxes=rotated. t has all of the config's
 * sections but export. PM_ECONFIG. */
int pm_detection_check_rotated(const struct pm_config *c, const struct pm_task *t);
/* Checks that a net of rotated boxes can be exported: one with one stage. PM_ECONFIG. */
int pm_detection_check_rotated_export(const struct pm_task *t);
/* Checks that a record has rotated boxes if model.boxes asks for these. PM_ECONFIG. */
int pm_detection_check_record(const struct pm_task *t, const struct pm_objects *o,
                              const char *where);

/* Sets box and rotated of a true or detected object to a rectangle in pixels of a picture. box is
 * the upright box around it, cut at the picture's border. Returns false, and sets nothing, if a
 * number is not finite, a side is 0, or no part of it is inside the picture. */
bool pm_detection_set_rotated(const struct pm_rectangle *r, int height, int width,
                              struct pm_box *box, double rotated[5]);
/* Places a picture of height x width pixels in a frame of the net's input, as evaluation and
 * prediction do, to bring boxes back. PM_EDATA if it cannot be placed. detection_samples.c */
int pm_detection_place_back(const struct pm_task *t, struct pm_frame frame, int height, int width,
                            struct pm_placed *out);
/* Brings rotated boxes of the net's input [count][5], for a picture of height x width pixels in a
 * frame, back to the picture: rectangles in pixels, not clipped. Their w is the long side. PM_EDATA
 * if the picture cannot be placed. */
int pm_detection_rotated_back(const struct pm_task *t, struct pm_frame frame, int height, int width,
                              const float *boxes, int count, struct pm_rectangle *out);
/* Sets box and rotated of a box to draw, and that it is turned. r: in pixels of a picture. */
void pm_detection_mark_rotated(const struct pm_rectangle *r, int height, int width,
                               struct pm_marked_box *out);

#endif
