/* activation_summaries: the layers' values for a few pictures, by a forward plan of their own on one device.
 * It sees what evaluation sees: moving averages in batch norm, no dropout. */
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
/* batch: pictures of the training size. v: values on d, borrowed. heads: the list has these alone, the
 * logits first. */
int pm_activations_create(struct pm_experiment *e, int batch, bool heads, struct pm_device *d,
                          struct pm_variables *v, struct pm_activations **out);
void pm_activations_destroy(struct pm_activations **a);
/* The list, one entry a layer in the net's order, is good until the next run. A layer that batch
 * norm follows is left out, as are losses and mere views: TF-Slim's end points. */
int pm_activations_run(struct pm_activations *a, const float *pictures,
                       const struct pm_named_floats **list, int *count);

#endif
