/* box_voc: average precision by the rules of Pascal VOC and Open Images. */
#ifndef PM_BOX_VOC_H
#define PM_BOX_VOC_H

#include "tasks/detection/box_lists.h"

enum pm_box_rules { PM_BOX_VOC_RULES, PM_BOX_OPEN_IMAGES_RULES, PM_BOX_CHALLENGE_RULES };

/* The values of a class; PM_BOX_METRIC_NAMES describes them. NAN: the class has no true object that
 * counts (corloc: no picture). */
struct pm_box_voc { double map, map_07, precision_at_recall, corloc; };

/* Computes per_class [classes]. masks: the overlap is that of the masks; only with
 * PM_BOX_VOC_RULES. Returns the area under the curve of all classes' detections in one list:
 * weighted_map. Thread-safe. */
double pm_box_voc(const struct pm_box_lists *l, enum pm_box_rules rules, bool masks,
                  double recall_lower, double recall_upper, struct pm_box_voc *per_class);

#endif
