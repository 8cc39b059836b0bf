/* report: what a person sees of a run: a progress line, metrics.jsonl for plots, and report.html. */
#ifndef PUMICE_REPORT_H
#define PUMICE_REPORT_H

#include <pumice/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- metrics.jsonl --------------------------------------------------------------------- */

/* One JSON object a line: {"kind": "train", "step": 120, "loss": 0.43, ...}. step is the number of
 * updates done, that of the line included. Each (kind, step) occurs once, also over resumes.
 *
 * "train": loss (the total), loss_average (smoothed, as the Inception trainer did), l2 (weight decay's
 * part), main_loss and, where there are such, aux_loss, edge_loss, loss_center, loss_offset (of the
 * heads; any other loss by its layer's name), lr, gradient_norm, images_per_second, seconds_per_step,
 * wait_share, queue_fill (of the ring of prepared batches), seconds_... (below), skipped (damaged
 * records, where data.on_corrupt passes over them), and with run.train_metrics miou, pixel_accuracy (of
 * the logged steps so far), batch_miou, batch_pixel_accuracy. "eval": the task's metrics. */
struct pm_metric {
    const char *name; /* borrowed */
    double value;     /* written so that it reads back exactly; null when not finite */
};
struct pm_metrics;
/* Opens RUN/metrics.jsonl for appending. Lines of steps beyond resumed_step, and a line cut off by a
 * kill, are dropped; with resumed_step 0 all are. */
int pm_metrics_open(const char *run, uint64_t resumed_step, struct pm_metrics **out);
void pm_metrics_close(struct pm_metrics **m);
/* Step of the last "eval" line that pm_metrics_open found and kept; UINT64_MAX: none. */
uint64_t pm_metrics_evaluated(const struct pm_metrics *m);
/* All lines reach the disk. PM_EFAIL where they do not. */
int pm_metrics_sync(struct pm_metrics *m);
/* Appends one line in one write. kind: "train", "eval". */
int pm_metrics_add(struct pm_metrics *m, const char *kind, uint64_t step,
                   const struct pm_metric *list, size_t count);

/* ---- speed ----------------------------------------------------------------------------- */

/* What was done since the last pm_speed_take. */
struct pm_speed {
    double since;  /* pm_seconds at the last take */
    double waited; /* seconds waited for data, as of then */
    uint64_t steps, images;
};
/* waited: seconds so far (pm_loader_waited). Take starts the next stretch. */
void pm_speed_start(struct pm_speed *s, double waited);
void pm_speed_step(struct pm_speed *s, uint64_t images);
struct pm_rates pm_speed_take(struct pm_speed *s, double waited);

/* ---- where the time goes ---------------------------------------------------------------- */

/* What the thread that drives a run is doing: always exactly one of these, so that they add up to the
 * time on the clock. Train lines of metrics.jsonl carry the seconds since the line before, as
 * "seconds_data", "seconds_device" and so on. */
enum pm_phase_of_run {
    PM_RUN_OTHER,      /* none of the below: filling inputs, logging, starting again */
    PM_RUN_DATA,       /* waiting for the loader's next batch */
    PM_RUN_DEVICE,     /* waiting for forward and backward passes; with one clone the update too */
    PM_RUN_AVERAGE,    /* adding up the gradients of several clones */
    PM_RUN_UPDATE,     /* several clones: the optimizer on the host, the values' way back */
    PM_RUN_SAVING,     /* host snapshots and checkpoints */
    PM_RUN_EVALUATING,
    PM_RUN_PHASES
};
struct pm_phases {
    double seconds[PM_RUN_PHASES]; /* since start, or the last take */
    enum pm_phase_of_run now;
    double since;                  /* when `now` was counted last */
    int lane;                      /* "trainer" of group "host" in traces */
};
/* "data", "device", ...: what follows "seconds_" in metrics.jsonl. */
extern const char *const pm_phase_names[PM_RUN_PHASES];
void pm_phases_start(struct pm_phases *p);
/* From now on the time is another phase's; returns the one before, to go back to. p may be NULL. */
enum pm_phase_of_run pm_phases_enter(struct pm_phases *p, enum pm_phase_of_run phase);
/* Seconds of each phase since the start or the last take. */
void pm_phases_take(struct pm_phases *p, double seconds[PM_RUN_PHASES]);

/* ---- report.html ----------------------------------------------------------------------- */

/* What pumice eval saw lies in RUN/eval_SPLIT/evaluation-....json, a file for each checkpoint, data folder and
 * split; what the last evaluation while training saw in RUN/evaluation.json. */
#define PM_EVALUATIONS_OF "eval_"
#define PM_EVALUATION_NAME "evaluation-"
/* The paths below run of such files of pumice eval, sorted, in the arena; returns how many. */
size_t pm_report_evaluations(struct pm_arena *a, const char *run, const char ***paths);
/* What a run folder says, read from run.json, config.json, metrics.jsonl, the files of evaluations and
 * log.txt, each of which may be missing. live: a process trains in it now. */
struct pm_report;
struct pm_report *pm_report_open(const char *folder, bool live);
/* Reads what is new since. */
void pm_report_refresh(struct pm_report *r);
/* Frees what the next refresh reads as a whole; the curves stay. */
void pm_report_rest(struct pm_report *r);
/* Whether the folder holds nothing that a run leaves. */
bool pm_report_empty(const struct pm_report *r);
void pm_report_close(struct pm_report **r);
/* One self-contained page about a run, or a comparison of several. Freed with pm_str_free. */
enum { PM_MAX_REPORTS = 32 };
void pm_report_page(struct pm_report *const *runs, int count, struct pm_str *out);

#ifdef __cplusplus
}
#endif

#endif
