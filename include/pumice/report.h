/* report: what a person sees of a run: a progress line, metrics.jsonl for plots, and
 * report.html. */
#ifndef PUMICE_REPORT_H
#define PUMICE_REPORT_H

#include <pumice/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* ---- metrics.jsonl --------------------------------------------------------------------- */

/* One JSON object per line: {"kind": "train", "step": 120, "loss": 0.43, ...}. step is the number
 * of updates, including that of the line. Each (kind, step) occurs once, also after a resume.
 *
 * "train": loss (the total), loss_average (smoothed, as the Inception trainer did), l2 (weight
 * decay's part), main_loss and, if the net has further loss layers, the loss of each by the
 * layer's name, such as aux_loss; lr, gradient_norm, images_per_second,
 * seconds_per_step, wait_share, queue_fill (of the ring of prepared batches), seconds_... (below),
 * skipped (damaged records, where data.on_corrupt passes over them), and with run.train_metrics
 * the metrics of the task's pm_train_output, over all logged steps so far or of the last one.
 * "eval": the task's metrics. */
struct pm_metric {
    const char *name; /* borrowed */
    double value;     /* written with enough digits to read it back exactly; null if not finite */
};
struct pm_metrics;
/* Opens RUN/metrics.jsonl for appending. Removes lines of steps after resumed_step and an
 * incomplete last line; with resumed_step 0, all lines. */
int pm_metrics_open(const char *run, uint64_t resumed_step, struct pm_metrics **out);
void pm_metrics_close(struct pm_metrics **m);
/* Step of the last "eval" line that pm_metrics_open found and kept; UINT64_MAX: none. */
uint64_t pm_metrics_evaluated(const struct pm_metrics *m);
/* Syncs the file to the disk. PM_EFAIL. */
int pm_metrics_sync(struct pm_metrics *m);
/* Appends one line in one write. kind: "train", "eval". */
int pm_metrics_add(struct pm_metrics *m, const char *kind, uint64_t step,
                   const struct pm_metric *list, size_t count);

/* ---- speed ----------------------------------------------------------------------------- */

/* Work since the last pm_speed_take. */
struct pm_speed {
    double since;  /* pm_seconds at the last take */
    double waited; /* seconds waited for data until then */
    uint64_t steps, images;
};
/* waited: seconds waited since the start (pm_loader_waited). pm_speed_take starts the next
 * interval. */
void pm_speed_start(struct pm_speed *s, double waited);
void pm_speed_step(struct pm_speed *s, uint64_t images);
struct pm_rates pm_speed_take(struct pm_speed *s, double waited);

/* ---- where the time goes ---------------------------------------------------------------- */

/* What the main thread of a run is doing: always exactly one phase, so that the phases add up to
 * the elapsed time. Train lines of metrics.jsonl have the seconds since the previous line as
 * "seconds_data", "seconds_device" and so on. */
enum pm_phase_of_run {
    PM_RUN_OTHER,      /* everything else: filling inputs, logging, restarting */
    PM_RUN_DATA,       /* waiting for the loader's next batch */
    PM_RUN_DEVICE,     /* waiting for forward and backward passes; with one clone also the update */
    PM_RUN_AVERAGE,    /* adding up the gradients of several clones */
    PM_RUN_EXCHANGE,   /* waiting for the gradients of other processes */
    PM_RUN_UPDATE,    /* several clones: the optimizer on the host, copying values to the devices */
    PM_RUN_SAVING,     /* host snapshots and checkpoints */
    PM_RUN_EVALUATING,
    PM_RUN_PHASES
};
struct pm_phases {
    double seconds[PM_RUN_PHASES]; /* since the start, or the last take */
    enum pm_phase_of_run now;
    double since;                  /* time at which `now` was last added up */
    int lane;                      /* "trainer" of group "host" in traces */
};
/* "data", "device", ...: what follows "seconds_" in metrics.jsonl. */
extern const char *const pm_phase_names[PM_RUN_PHASES];
void pm_phases_start(struct pm_phases *p);
/* Switches to another phase. Returns the previous phase, to switch back. p may be NULL. */
enum pm_phase_of_run pm_phases_enter(struct pm_phases *p, enum pm_phase_of_run phase);
/* Seconds of each phase since the start or the last take. */
void pm_phases_take(struct pm_phases *p, double seconds[PM_RUN_PHASES]);

/* ---- a learning rate range test ---------------------------------------------------------- */

/* A step: its rate (> 0), the batch's loss before the step, and the mean of the losses around. */
struct pm_rate_point {
    double rate, loss, smooth;
};
struct pm_rate_report {
    const char *name;                   /* of the config; borrowed */
    const struct pm_rate_point *points; /* [count], by rising rate; borrowed */
    int count;
    double proposal;                    /* rate; NAN: none */
    const char *text;                   /* what the test found; borrowed */
};
/* Writes a self-contained page with the curve of the loss over the rate. Free out with
 * pm_str_free. */
void pm_report_rates(const struct pm_rate_report *r, struct pm_str *out);

/* ---- report.html ----------------------------------------------------------------------- */

/* pumice eval writes RUN/eval_SPLIT/evaluation-....json, one file for each checkpoint, data folder
 * and split. RUN/evaluation.json is the last evaluation while training. */
#define PM_EVALUATIONS_OF "eval_"
#define PM_EVALUATION_NAME "evaluation-"
/* Lists such files of pumice eval, as sorted paths relative to run, in the arena. Returns their
 * number. */
size_t pm_report_evaluations(struct pm_arena *a, const char *run, const char ***paths);
/* The content of a run folder: run.json, config.json, metrics.jsonl, the files of evaluations and
 * log.txt. Each file may be missing. live: a process trains in the folder now. */
struct pm_report;
struct pm_report *pm_report_open(const char *folder, bool live);
/* Reads what has changed since the last call. */
void pm_report_refresh(struct pm_report *r);
/* Frees the data that the next refresh reads completely. Keeps the curves. */
void pm_report_rest(struct pm_report *r);
/* Whether the folder has no file of a run. */
bool pm_report_empty(const struct pm_report *r);
void pm_report_close(struct pm_report **r);
/* Writes one self-contained page about a run, or a comparison of several. Free out with
 * pm_str_free. */
enum { PM_MAX_REPORTS = 32 };
void pm_report_page(struct pm_report *const *runs, int count, struct pm_str *out);

/* ---- a study ----------------------------------------------------------------------------- */

/* A point of a study and how far its runs came. */
struct pm_study_row {
    const char *name;            /* "lr=0.01,optim=adamw"; borrowed from the study */
    int point;                   /* from 0, in the order of study.json */
    const struct cJSON *values;  /* a member for each key that varies; NULL: damaged */
    int64_t step;                /* to which its runs were trained last; 0: their end; -1: none */
    double mean, spread;         /* of the metric at that step, see pm_mean_spread */
    int runs, failed;            /* results at that step */
    const char *message;         /* why the last of them failed, or NULL */
};
/* The content of a study's folder: study.json and the complete lines of study.jsonl. Members that
 * are missing or have a wrong type, and lines of no point, are passed over. */
struct pm_study_report {
    char *folder, *name;         /* owned; name: its last part */
    struct cJSON *study;         /* owned: study.json */
    struct cJSON *results;       /* owned: a list of the lines */
    const char *metric;          /* "" if study.json has none */
    bool higher_is_better;
    int repeats;                 /* at least 1 */
    int64_t seed;                /* of the first repeat */
    struct pm_study_row *rows;   /* owned: [points], the best first: those that were trained
                                  * furthest, of these by mean, of equal ones by number */
    int points;
    int runs_done, runs_failed;  /* runs with a result, and those whose last one is a failure */
    double seconds;              /* of all results */
};
/* Whether a folder has a study.json. */
bool pm_is_study(const char *folder);
/* Reads a study. PM_EDATA: study.json cannot be read, or is no JSON object. */
int pm_study_report_open(const char *folder, struct pm_study_report **out);
void pm_study_report_close(struct pm_study_report **s);
/* Name of the run folder of a repeat, in the arena: the point's name, with ",seed=N" if there are
 * repeats. */
const char *pm_study_folder_of(struct pm_arena *a, const char *point, int repeats, int64_t seed,
                               int repeat);
/* Mean and standard deviation (0 for one value) of the values that are finite. Returns their
 * number; 0: both are NAN. */
int pm_mean_spread(const double *values, int count, double *mean, double *spread);
/* Writes one self-contained page about a study. live: a sweep works on it now. is_training: whether
 * a process trains in a run folder; NULL: none does. Free out with pm_str_free. */
void pm_study_page(const struct pm_study_report *s, bool live, bool (*is_training)(const char *run),
                   struct pm_str *out);

#ifdef __cplusplus
}
#endif

#endif
