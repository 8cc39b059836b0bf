/* init_rules: which variables of a detector a checkpoint supplies, and under which names, by the
 * rules of TensorFlow's Object Detection API (restore_map of its meta-architectures). */
#ifndef PM_INIT_RULES_H
#define PM_INIT_RULES_H

#include <pumice/config.h>
#include <pumice/plan.h>

/* Returns for each variable of v the name under which it is looked up, NULL if it keeps its initial
 * value. type: enum pm_init_type; all: init.load_all, which only a detector's checkpoint heeds. The
 * API restores what fits and warns of the rest: missing variables of such a net are no error. The
 * list and its names lie in the arena. Returns NULL if no rule is for this net: every variable is
 * looked up under its own name. A net is recognised by its variables' scopes: "FeatureExtractor" of
 * SSD, "FirstStageFeatureExtractor" of Faster R-CNN, "Retina_FPN". No name is in the list twice: of
 * variables of both stages that would have the same one, the last has it. */
const char *const *pm_init_names(const struct pm_variables *v, int type, bool all,
                                 struct pm_arena *a);

#endif
