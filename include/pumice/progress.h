/* progress: the progress line of long operations. */
#ifndef PUMICE_PROGRESS_H
#define PUMICE_PROGRESS_H

#include <pumice/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether standard error is a terminal that can rewrite lines (TERM is neither empty nor dumb). */
bool pm_is_terminal(void);
/* Columns of it that a line may fill: one less than it has. 79 if that is not known. */
int pm_terminal_width(void);

struct pm_rates {
    double images_per_second, seconds_per_step;
    double wait_share; /* share of the time spent waiting for data, 0..1; < 0: unknown */
};

/* On a terminal, one line below the log that is rewritten. Otherwise (and with TERM=dumb), one log
 * line per point. With NO_COLOR neither colours nor other escape codes are used. */
enum { PM_MAX_CLONES = 16 };
struct pm_progress_options {
    const char *what;         /* "train", "eval": the log's subsystem. Borrowed */
    const char *unit;         /* "step", "batch" */
    const char *speed;        /* what the speed counts per second; NULL = "images" */
    uint64_t first, last;     /* units done at the start and at the end (0 = unknown) */
    bool loss;                /* points have a loss and a rate */
    const char *const *clones;/* names ("vulkan:0"), borrowed; shown when there are several */
    int clone_count;          /* at most PM_MAX_CLONES are shown */
};
struct pm_progress_point {
    uint64_t done;            /* units so far */
    double loss;              /* without weight decay */
    double decay;             /* the part of weight decay, shown beside it; 0 = none */
    double lr;
    const char *more;         /* text after the loss: "miou 0.43", or NULL */
    struct pm_rates rates;
    const double *clone_images_per_second; /* [clone_count] or NULL */
};
struct pm_progress;
/* Starts a progress line on standard error. It replaces the line of a running one until it ends. */
struct pm_progress *pm_progress_start(const struct pm_progress_options *o);
/* Shows new numbers, every run.log_every_steps. */
void pm_progress_point(struct pm_progress *p, const struct pm_progress_point *point);
/* Updates the terminal's line, at most ten times a second. Does nothing without a terminal. */
void pm_progress_step(struct pm_progress *p, uint64_t done);
/* For operations without points: units done, images, and seconds waited for data (< 0: unknown),
 * all since the start, as is the speed. Without a terminal, one line every ten seconds. */
void pm_progress_count(struct pm_progress *p, uint64_t done, uint64_t images, double waited);
/* Shows the last numbers, ends the line and leaves NULL. */
void pm_progress_end(struct pm_progress **p);

/* Formats the line for at most `width` columns; leaves out less important parts first. width < 0:
 * all parts except the bar. seconds_left < 0: unknown. Returns buf. */
char *pm_progress_text(const struct pm_progress_options *o, const struct pm_progress_point *point,
                       double seconds_left, int width, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
