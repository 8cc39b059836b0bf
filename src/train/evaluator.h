/* evaluator: the net without its loss, on one device, over one pass of the evaluation split. */
#ifndef PM_EVALUATOR_H
#define PM_EVALUATOR_H

#include "experiment/experiment.h"

struct pm_evaluator;
/* v: values on d, borrowed (a training clone's, or loaded from a checkpoint). */
int pm_evaluator_create(struct pm_experiment *e, struct pm_device *d, struct pm_variables *v,
                        struct pm_evaluator **out);
void pm_evaluator_destroy(struct pm_evaluator **ev);
/* Exactly one pass (or eval.max_batches): metrics into object, the number of examples too, and that
 * of damaged records that were left out (data.on_corrupt). detail (may be NULL): gets what report.html
 * shows besides, sample pictures among it. */
int pm_evaluator_run(struct pm_evaluator *ev, struct cJSON *metrics, struct cJSON *detail,
                     uint64_t *count, uint64_t *skipped);

#endif
