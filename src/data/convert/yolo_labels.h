/* yolo_labels, internal to data/convert: label files of YOLO, a line per object:
 *     CLASS CX CY WIDTH HEIGHT                    a box
 *     CLASS X1 Y1 X2 Y2 X3 Y3 ...                 a polygon
 *     CLASS X1 Y1 X2 Y2 X3 Y3 X4 Y4               with pm_annotations.rotated: a rotated box
 *     CLASS CX CY WIDTH HEIGHT X1 Y1 [V1] ...     a box with keypoints
 * CLASS counts from 0; the other numbers are shares of the picture's width and height. */
#ifndef PUMICE_DATA_CONVERT_YOLO_LABELS_H
#define PUMICE_DATA_CONVERT_YOLO_LABELS_H

#include "data/convert/annotated.h"

struct pm_yolo_shape {
    int points, dims; /* keypoints of an object, numbers of each: 2 or 3; 0, 0: none */
};
/* Adds the objects of a file to the last picture. names: the file of the class names, for messages.
 * PM_EDATA with the line for: another count of numbers, a class that is none of the list's, a
 * number outside -1..2, a visibility other than 0, 1 and 2. */
int pm_yolo_labels(struct pm_annotations *s, const char *path, struct pm_yolo_shape shape,
                   const char *names);

#endif
