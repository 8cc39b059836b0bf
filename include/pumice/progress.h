/* progress: the line a person watches, of whatever takes long. */
#ifndef PUMICE_PROGRESS_H
#define PUMICE_PROGRESS_H

#include <pumice/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pm_rates {
    double images_per_second, seconds_per_step;
    double wait_share; /* of the time, 0..1: waiting for data; < 0: not known */
};

/* On a terminal one line that is rewritten, below the log's lines; elsewhere (and with TERM=dumb) a
 * log line per point. NO_COLOR: no colours, and no escape codes at all. */
enum { PM_MAX_CLONES = 16 };
struct pm_progress_options {
    const char *what;         /* "train", "eval": the log's subsystem. Borrowed */
    const char *unit;         /* "step", "batch" */
    const char *speed;        /* what is counted a second; NULL = "images" */
    uint64_t first, last;     /* units done at the start, at the end (0 = not known) */
    bool loss;                /* points have a loss and a rate */
    const char *const *clones;/* names ("vulkan:0"), borrowed; shown when there are several */
    int clone_count;          /* at most PM_MAX_CLONES are shown */
};
struct pm_progress_point {
    uint64_t done;            /* units so far */
    double loss;              /* of the data: without weight decay, */
    double decay;             /* whose part is shown beside it; 0 = there is none */
    double lr;
    const char *more;         /* numbers to follow the loss: "miou 0.43", or NULL */
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

#ifdef __cplusplus
}
#endif

#endif
