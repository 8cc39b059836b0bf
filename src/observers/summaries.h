/* summaries: TensorBoard's view of a run, in event files: RUN/events.out.tfevents.* for training
 * and RUN/eval/events.out.tfevents.* for its evaluations. TensorBoard draws both curves in one
 * chart.
 *
 * Every run.log_every_steps writes scalars. Every run.summary_every_steps (and the first step), or
 * every run.summary_every_secs, also writes histograms of the variables and the first pictures of
 * the batch as the net receives them. run.summary_gradients adds histograms of the gradients,
 * run.summary_activations histograms of the layers' values. Between those steps nothing is computed
 * or copied.
 *
 * Metrics are not essential to the model: a file that cannot be written costs one warning, and
 * later values are tried again. */
#ifndef PM_SUMMARIES_H
#define PM_SUMMARIES_H

#include "experiment/experiment.h"
#include "observers/loss_averages.h"
#include "checkpoints/state.h"
#include "observers/train_metrics.h"

#include <pumice/report.h>

struct pm_summaries;
/* step: updates done so far; entries of later steps in the run's earlier files are hidden.
 * evaluated: the evaluation of this step is kept; otherwise it is hidden and repeated. */
struct pm_summaries *pm_summaries_open(struct pm_experiment *e, uint64_t step, bool evaluated);
void pm_summaries_close(struct pm_summaries **s, uint64_t step);

struct pm_summary_scalars {
    const struct pm_step_result *result;     /* of the whole batch, all clones */
    const struct pm_loss_averages *averages; /* including this step */
    double lr;
    struct pm_rates rates;
    double queue_fill;        /* of the ring of prepared batches, 0..1 */
    int queue;                /* its number of slots */
    const double *clone_images_per_second; /* [clones] */
    int clones;
};
void pm_summaries_step(struct pm_summaries *s, uint64_t step, const struct pm_summary_scalars *v);
/* Adds these values to the next pm_summaries_step. */
void pm_summaries_train(struct pm_summaries *s, const struct pm_train_values *v);
void pm_summaries_scalar(struct pm_summaries *s, const char *tag, double value);
/* Adds the metrics of an evaluation by c as scalars of the next pm_events_write. */
struct pm_events;
void pm_summaries_metrics(struct pm_events *e, const struct pm_config *c,
                          const struct cJSON *metrics);
void pm_summaries_evaluation(struct pm_summaries *s, uint64_t step, const struct cJSON *metrics);
void pm_summaries_saved(struct pm_summaries *s, uint64_t step);

/* Decides whether this step, the next one to begin, writes histograms and pictures: every
 * run.summary_every_steps, or the next step if that one was not asked for. By time it is
 * the first step of the process, and the first that begins run.summary_every_secs after the last
 * such step. */
bool pm_summaries_choose(struct pm_summaries *s, uint64_t step);
/* Whether chosen steps are observed steps of the clones (pm_clones_observe), for activations of the
 * training pass. */
bool pm_summaries_observe(const struct pm_config *c);
/* Whether this step was chosen; in asynchronous training also if further updates were counted since
 * then. */
bool pm_summaries_due(const struct pm_summaries *s, uint64_t step);
/* Keeps the first pictures of the batch. Call it before that step. */
void pm_summaries_batch(struct pm_summaries *s, const struct pm_batch *batch);
/* Writes histograms and pictures. Call it after the step, with no step under way. values: of this
 * step. Fails only if a device fails. */
int pm_summaries_write(struct pm_summaries *s, uint64_t step, const struct pm_state *values,
                       const struct pm_clones *clones);
/* Destroys the plan that computes the layers' values. Call it before devices are closed. */
void pm_summaries_leave(struct pm_summaries *s);

#endif
