/* summaries: what TensorBoard shows of a run, in event files: RUN/events.out.tfevents.* of training
 * and RUN/eval/events.out.tfevents.* of its evaluations, whose curves it draws over each other.
 *
 * Every run.log_every_steps scalars; every run.summary_every_steps (and after the first step) also
 * histograms of the variables, of their gradients where run.summary_gradients asks for them, the
 * first pictures of the batch as the net sees them, and histograms of the layers' values where
 * run.summary_activations asks for them. Between those steps nothing is computed or copied.
 *
 * Metrics are not the model: what cannot be written costs one warning, and later values are tried
 * again. */
#ifndef PM_SUMMARIES_H
#define PM_SUMMARIES_H

#include "experiment/experiment.h"
#include "observers/loss_averages.h"
#include "checkpoints/state.h"
#include "observers/train_metrics.h"

#include <pumice/report.h>

struct pm_summaries;
/* step: updates done so far; what earlier files of the run say of later steps is hidden. evaluated:
 * the evaluation of this step stays, too; otherwise it is hidden and made again. */
struct pm_summaries *pm_summaries_open(struct pm_experiment *e, uint64_t step, bool evaluated);
void pm_summaries_close(struct pm_summaries **s, uint64_t step);

struct pm_summary_scalars {
    const struct pm_step_result *result;     /* of the whole batch, all clones */
    const struct pm_loss_averages *averages; /* up to it */
    double lr;
    struct pm_rates rates;
    double queue_fill;        /* of the ring of prepared batches, 0..1 */
    int queue;                /* its size */
    const double *clone_images_per_second; /* [clones] */
    int clones;
};
void pm_summaries_step(struct pm_summaries *s, uint64_t step, const struct pm_summary_scalars *v);
/* Joins what the next pm_summaries_step writes. */
void pm_summaries_train(struct pm_summaries *s, const struct pm_train_values *v);
/* What an evaluation by c found, as scalars of the next pm_events_write. */
struct pm_events;
void pm_summaries_metrics(struct pm_events *e, const struct pm_config *c, const struct cJSON *metrics);
void pm_summaries_evaluation(struct pm_summaries *s, uint64_t step, const struct cJSON *metrics);
void pm_summaries_saved(struct pm_summaries *s, uint64_t step);

/* Whether step is one with histograms and pictures. */
bool pm_summaries_due(const struct pm_summaries *s, uint64_t step);
/* Before that step: keeps the first pictures. */
void pm_summaries_batch(struct pm_summaries *s, const struct pm_batch *batch);
/* After it, nothing being under way: values holds the step's, master the gradients; device and
 * variables are clone 0's. Fails only where a device does. */
int pm_summaries_write(struct pm_summaries *s, uint64_t step, const struct pm_state *values,
                       struct pm_variables *master, struct pm_device *device,
                       struct pm_variables *variables);
/* Before devices are closed: lets go of the plan that gives the layers' values. */
void pm_summaries_leave(struct pm_summaries *s);

#endif
