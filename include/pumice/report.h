/* report: what a person sees of a run: a progress line, and metrics.jsonl for plots. */
#ifndef PUMICE_REPORT_H
#define PUMICE_REPORT_H

#include <pumice/base.h>

/* ---- metrics.jsonl --------------------------------------------------------------------- */

/* One JSON object a line: {"kind": "train", "step": 120, "loss": 0.43, ...}. step is the number of
 * updates done, that of the line included. Each (kind, step) occurs once, also over resumes. */
struct pm_metric {
    const char *name; /* borrowed */
    double value;     /* written so that it reads back exactly; null when not finite */
};
struct pm_metrics;
/* Opens RUN/metrics.jsonl for appending. Lines of steps beyond resumed_step, and a line cut off by a
 * kill, are dropped; with resumed_step 0 all are. */
int pm_metrics_open(const char *run, uint64_t resumed_step, struct pm_metrics **out);
void pm_metrics_close(struct pm_metrics **m);
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
struct pm_rates {
    double images_per_second, seconds_per_step;
    double wait_share; /* of the time, 0..1: waiting for data; < 0: not known */
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
};
/* "data", "device", ...: what follows "seconds_" in metrics.jsonl. */
extern const char *const pm_phase_names[PM_RUN_PHASES];
void pm_phases_start(struct pm_phases *p);
/* From now on the time is another phase's; returns the one before, to go back to. p may be NULL. */
enum pm_phase_of_run pm_phases_enter(struct pm_phases *p, enum pm_phase_of_run phase);
/* Seconds of each phase since the start or the last take. */
void pm_phases_take(struct pm_phases *p, double seconds[PM_RUN_PHASES]);

/* ---- progress -------------------------------------------------------------------------- */

/* On a terminal one line that is rewritten, below the log's lines; elsewhere (and with TERM=dumb) a
 * log line per point. NO_COLOR: no colours, and no escape codes at all. */
enum { PM_MAX_CLONES = 16 };
struct pm_progress_options {
    const char *what;         /* "train", "eval": the log's subsystem. Borrowed */
    const char *unit;         /* "step", "batch" */
    uint64_t first, last;     /* units done at the start, at the end (0 = not known) */
    bool loss;                /* points have a loss and a rate */
    const char *const *clones;/* names ("vulkan:0"), borrowed; shown when there are several */
    int clone_count;          /* at most PM_MAX_CLONES are shown */
};
struct pm_progress_point {
    uint64_t done;            /* units so far */
    double loss, lr;
    struct pm_rates rates;
    const double *clone_images_per_second; /* [clone_count] or NULL */
};
struct pm_progress;
/* Writes to standard error. One that is started before another has ended takes its place on the
 * terminal until it ends itself. */
struct pm_progress *pm_progress_start(const struct pm_progress_options *o);
/* New numbers, every run.log_every_steps: prints or redraws. */
void pm_progress_point(struct pm_progress *p, const struct pm_progress_point *point);
/* Moves the terminal's line on, at most ten times a second; nothing elsewhere. */
void pm_progress_step(struct pm_progress *p, uint64_t done);
/* For what has no points: units done and images so far, seconds waited for data (< 0: not told). The
 * speed is that since the start. Elsewhere a line every ten seconds. */
void pm_progress_count(struct pm_progress *p, uint64_t done, uint64_t images, double waited);
/* Ends the line and leaves NULL. */
void pm_progress_end(struct pm_progress **p);

/* The line's text in at most width columns, less important parts left out first; width < 0: all of it
 * but the bar. seconds_left < 0: not known. Returns buf. */
char *pm_progress_text(const struct pm_progress_options *o, const struct pm_progress_point *point,
                       double seconds_left, int width, char *buf, size_t size);

#endif
