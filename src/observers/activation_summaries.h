/* activation_summaries: the layers' values for a few pictures, by a separate forward plan on one
 * device. It runs as in evaluation: moving averages in batch norm, no dropout. */
#ifndef PM_ACTIVATION_SUMMARIES_H
#define PM_ACTIVATION_SUMMARIES_H

#include "experiment/experiment.h"

#include <pumice/plan.h>

struct pm_named_floats {
    const char *name; /* borrowed */
    const float *v;
    size_t count;
    struct pm_shape shape;
};

struct pm_activations;
/* batch: number of pictures. frame: of the pictures to begin with, one of the training sizes. The
 * plans of several sizes share their memory. v: values on d, borrowed. heads: list only the heads,
 * the logits first. */
int pm_activations_create(struct pm_experiment *e, struct pm_frame frame, int batch, bool heads,
                          struct pm_device *d, struct pm_variables *v,
                          struct pm_activations **out);
void pm_activations_destroy(struct pm_activations **a);
/* Runs the plan of this frame, which is made at its first use. values: of a batch's fields, in the
 * order of the training fields, for at least as many examples as there are pictures. Nets may read
 * labels, too: a decoder reads the letter before. The list has one entry per layer, in the net's
 * order, and is valid until the next run. Losses, views, and layers followed by a batch norm are
 * omitted. The rest are TF-Slim's end points. */
int pm_activations_run(struct pm_activations *a, struct pm_frame frame, const char *const *values,
                       const struct pm_named_floats **list, int *count);

/* Sets *out to the names of the same layers of the training net, and of the nodes that every step
 * copies out; NULL-terminated, in the experiment's arena. For pm_clones_options.observed. */
int pm_activations_observed(struct pm_experiment *e, const char *const **out);

#endif
