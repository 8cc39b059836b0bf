/* The inside of a training run, shared by trainer_open.c (start, snapshots, end), trainer.c (the
 * loop) and trainer_loss.c (after the loss of a device). */
#ifndef PM_TRAINER_H
#define PM_TRAINER_H

#include "clones/balancer.h"
#include "clones/clones.h"
#include "train/evaluator.h"
#include "observers/loss_averages.h"
#include "optim/schedule.h"
#include "checkpoints/state.h"
#include "observers/train_metrics.h"

#include <pumice/report.h>

enum { PM_TRAINER_SLOTS = 3 }; /* steps under way at once */

struct pm_trainer {
    const struct pm_config *c;
    struct pm_experiment *e;
    struct pm_clone_spec *specs;
    int spec_count;
    struct pm_balancer balance;
    double betas[2];
    struct pm_clones *clones;
    struct pm_evaluator *evaluator;
    struct pm_loader *loader;
    struct pm_sampler sampler;
    struct pm_schedule schedule;
    struct pm_run_lock *lock;
    struct pm_metrics *metrics; /* NULL: cannot be written */
    bool metrics_lost;          /* and that was told */
    bool per_class_lost;        /* eval/per_class.csv cannot be written, and that was told */
    struct pm_summaries *summaries; /* what TensorBoard shows */
    struct pm_train_metrics *train_metrics; /* NULL: none */
    struct pm_run_page *page;       /* run.json, evaluation.json, report.html */
    struct pm_progress *progress;
    const char *clone_names[PM_MAX_CLONES];
    double clone_rates[PM_MAX_CLONES]; /* images per second of its own part */
    struct pm_speed speed;
    struct pm_phases phases;
    FILE *log;
    char *data_json;            /* owned: what checkpoints keep of the data's classes */

    struct pm_state *snapshot;  /* host copy to go on from after a loss */
    struct pm_state *spare;     /* the next one: a loss while reading leaves the old one whole */
    uint64_t snapshot_step;
    struct pm_clone_failure failed; /* the clone that could not be made */
    char lost[256];             /* devices left out after a loss: "devices[1] (vulkan:0) at step 57" */

    uint64_t step;              /* updates submitted */
    uint64_t collected;         /* updates whose results were read */
    uint64_t saved_step;        /* UINT64_MAX: none */
    uint64_t evaluated_step;    /* last evaluation that was wholly written; UINT64_MAX: none */
    double saved_at, started_at, folder_checked_at; /* pm_seconds */
    uint64_t first_step;
    double loss, decay;         /* last collected total loss, and weight decay's part of it */
    uint64_t skipped;           /* damaged records passed over up to step, since the run began */
    uint64_t skipped_at[PM_TRAINER_SLOTS]; /* the same at each step under way */
    uint64_t snapshot_skipped;
    struct pm_loss_averages averages, snapshot_averages; /* up to collected; up to snapshot_step */
    bool tracing;               /* run.trace_steps: these steps are */
    uint64_t traced_from;       /* first of them */
    struct cJSON *eval_metrics; /* owned; of the last evaluation */
};

/* Zeroed but for c before. On failure close is still to be called. */
int pm_trainer_open(struct pm_trainer *t);
void pm_trainer_close(struct pm_trainer *t);
/* Devices, nets and plans by t->specs. */
int pm_trainer_clones(struct pm_trainer *t);
/* A loader that begins at t->step; the former one ends. */
int pm_trainer_loader(struct pm_trainer *t);
/* Host copy of all values and slots, and back: t->step becomes the copy's. */
int pm_trainer_snapshot(struct pm_trainer *t);
int pm_trainer_restore(struct pm_trainer *t);
/* trainer_loss.c, after PM_ELOST: opens the devices again, without the lost one if need be, and calls
 * `again` (clones, values, whatever else stood on them), until it does not fail with a loss. */
int pm_trainer_recover(struct pm_trainer *t, int (*again)(struct pm_trainer *t));
/* trace_steps.c, for run.trace_steps: whether a trace begins or ends before the next step; then, with
 * no step under way, that it does so. End: it ends with what it holds. */
bool pm_trace_steps_due(const struct pm_trainer *t);
void pm_trace_steps_switch(struct pm_trainer *t);
void pm_trace_steps_end(struct pm_trainer *t);
/* Which checkpoints stay. */
struct pm_keep pm_trainer_keep(const struct pm_config *c);
/* What a checkpoint's .json remembers of the run: seed, batch size, damaged records,
 * devices, losses of devices, loss averages, the data's classes. */
void pm_trainer_state(const struct pm_trainer *t, struct pm_str *json);

#endif
