/* box_report: what report.html shows of an evaluation of boxes, as members of evaluation.json. */
#ifndef PM_BOX_REPORT_H
#define PM_BOX_REPORT_H

#include "tasks/detection/box_metrics.h"

struct cJSON;

/* Adds to a detail: of "boxes"; threshold; errors { right: 12, loose: 3, ... } above it; per_class
 * { count, predicted, right (above the threshold, without ignored ones), ap, ap_50, best_f1,
 * best_score }; confusion [ label, predicted, times, ... ] where the number of classes is the
 * background; curves { all [101], per_class [ [101] or null, ... ] }, precision at recalls of 0,
 * 0.01 ... 1. A class without true objects has null. */
void pm_box_report_detail(const struct pm_box_metrics *m, double threshold, struct cJSON *object);
/* Adds to a picture's sample: right (no error), errors (their number), truth [ { box, label, kind }
 * ] and found [ { box, label, kind, score } ] with scores above the threshold, each at most
 * PM_BOX_REPORT_BOXES: errors first. box: ymin, xmin, ymax, xmax as shares of the picture's height
 * and width. Rotated boxes also have rotated: cy, cx, h, w as such shares and the angle in radians,
 * clockwise. kind: pm_box_kind_names. Returns false if the record was not evaluated. */
enum { PM_BOX_REPORT_BOXES = 100 };
bool pm_box_report_sample(const struct pm_box_metrics *m, uint64_t record, double threshold,
                          int height, int width, struct cJSON *object);
/* Adds the metrics best_f1 and best_score, of the detections of all classes in one list, and the
 * lists per_class_best_f1 and per_class_best_score. */
void pm_box_report_best(const struct pm_box_metrics *m, struct cJSON *object);

#endif
