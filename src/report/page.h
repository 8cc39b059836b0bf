/* page: internal declarations of report.html. A pm_report holds the contents of one run folder;
 * each part of the page appends a section. Every member may be missing or have a wrong type,
 * because files may be older, incomplete or foreign. */
#ifndef PM_PAGE_H
#define PM_PAGE_H

#include "report/chart.h"
#include "report/curves.h"
#include "report/html.h"

#include <pumice/report.h>

#include <cjson/cJSON.h>

enum { PM_MAX_EVALUATIONS = 33 };
struct pm_report {
    char *folder, *name;         /* owned; name: its last part */
    bool live;                   /* somebody trains in it now */
    cJSON *run, *config;         /* owned; NULL: no such file */
    cJSON *evaluations[PM_MAX_EVALUATIONS]; /* owned: that of training first, then the newest */
    int evaluation_count, own_evaluation; /* own: how many are of evaluation.json, 0 or 1 */
    struct pm_curves curves;
    char *log;                   /* owned: whole last lines of log.txt, or NULL */
};

/* The style sheet and the script, embedded when the program is built. */
extern const char pm_page_css[], pm_page_js[];
extern const unsigned char pm_page_js_sha256[32]; /* for the page's content security policy */

/* A member's number (NAN without) and text (NULL without). */
double pm_json_number_of(const cJSON *object, const char *name);
const char *pm_json_text_of(const cJSON *object, const char *name);

/* The last part of a folder's path. Free it with pm_free. */
char *pm_folder_name(const char *folder);
/* Number of completed steps according to the files. */
double pm_report_step(const struct pm_report *r);
/* "running", "finished", "stopped", "failed", "interrupted"; NULL: no run.json. */
const char *pm_report_state(const struct pm_report *r);
/* The split of the evaluations while training; NULL: not known. */
const char *pm_report_split(const struct pm_report *r);
/* Metrics: whether all values are fractions of 1; whether higher is better. */
bool pm_report_is_share(const struct pm_curve *c);
/* Whether a metric is a threshold, which is not better when it is higher or lower. */
bool pm_report_is_threshold(const char *metric);
bool pm_report_higher(const struct pm_report *r, const char *metric);
/* The main metric: that of run.json, else the first evaluated one; NULL: none yet. */
const char *pm_report_metric(const struct pm_report *r);
char *pm_report_value(double value, bool share, char buf[PM_TEXT]);

/* ---- sections; json collects the charts' objects ------------------------------------------- */
void pm_page_curves(struct pm_str *html, struct pm_str *json, const struct pm_report *r);
/* cells: receives JSON objects for reading values off the matrices; may stay empty. */
void pm_page_evaluation(struct pm_str *html, struct pm_str *json, struct pm_str *cells,
                        const struct pm_report *r);
void pm_page_devices(struct pm_str *html, const struct pm_report *r);
/* Writes nothing if one process trained alone. */
void pm_page_replicas(struct pm_str *html, const struct pm_report *r);
void pm_page_config(struct pm_str *html, const struct pm_report *r);
void pm_page_log(struct pm_str *html, const struct pm_report *r);

/* page_rates.c */
void pm_page_rates(struct pm_str *html, struct pm_str *json, const struct pm_rate_report *r);

void pm_page_compare_table(struct pm_str *html, struct pm_report *const *runs, int count);
void pm_page_compare_curves(struct pm_str *html, struct pm_str *json,
                            struct pm_report *const *runs, int count);
void pm_page_compare_config(struct pm_str *html, struct pm_report *const *runs, int count);

/* The heading of a column of a table that can be sorted. number: the cells' numbers sort it. first:
 * the order of the first click, "ascending" or "descending". The name is `of` and `name`. */
void pm_page_heading(struct pm_str *html, bool number, const char *first, const char *of,
                     const char *name);
/* Begins a cell with a number, which sorts it (NAN: none), or with a text. */
void pm_page_cell(struct pm_str *html, const char *of, const char *name, double value, bool number,
                  bool best);
/* A tile below the headline. */
void pm_page_tile(struct pm_str *html, const char *name, const char *value, const char *below);

/* ---- page_study.c -------------------------------------------------------------------------- */

/* The runs of a study that have a folder, those of the best points first. */
struct pm_study_runs {
    struct pm_report *list[PM_MAX_REPORTS];
    int count, all, training; /* opened; with a folder; in which a process trains */
};
void pm_study_runs_open(struct pm_study_runs *r, const struct pm_study_report *s,
                        bool (*is_training)(const char *run));
void pm_study_runs_close(struct pm_study_runs *r);
/* "running", "finished", "stopped" or "failed" (all runs with a result). */
const char *pm_study_state(const struct pm_study_report *s, const struct pm_study_runs *r,
                           bool live);
void pm_page_study_tiles(struct pm_str *html, const struct pm_study_report *s,
                         const struct pm_study_runs *r);
void pm_page_study_table(struct pm_str *html, const struct pm_study_report *s);
void pm_page_study_axes(struct pm_str *html, const struct pm_study_report *s);
void pm_page_study_curves(struct pm_str *html, struct pm_str *json, const struct pm_study_runs *r);
void pm_page_study_best(struct pm_str *html, const struct pm_study_report *s);

/* A config as dotted keys and their values as text. */
struct pm_flat {
    struct pm_flat_row { char *key, *value; } *rows; /* owned */
    int count, capacity;
};
void pm_flat_config(const cJSON *config, struct pm_flat *out);
void pm_flat_free(struct pm_flat *f);
const char *pm_flat_find(const struct pm_flat *f, const char *key);

#endif
