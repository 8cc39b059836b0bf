/* run_page: what a run folder keeps for report.html, and the page itself.
 *
 * run.json says what is trained on what, and how far; the files of evaluations.h what evaluations saw;
 * all are JSON, rewritten as a whole. The page is made of them, metrics.jsonl, config.json and log.txt
 * (report.h) at the start, after each evaluation, at the end and at most every ten seconds between,
 * less often where writing takes long: it never takes more than a hundredth of the time. What cannot
 * be written costs one warning. */
#ifndef PM_RUN_PAGE_H
#define PM_RUN_PAGE_H

#include "observers/evaluations.h"
#include "observers/run_facts.h"

struct pm_run_page;
/* clone_rates: [PM_MAX_CLONES], images per second of each clone's part; borrowed, read at every
 * write. */
struct pm_run_page *pm_run_page_open(const struct pm_run_facts *f, const double *clone_rates);
/* A step was logged: writes when it is time. */
void pm_run_page_step(struct pm_run_page *p, const struct pm_run_facts *f);
/* An evaluation of f->step over count pictures; detail: the evaluator's. Writes evaluation.json. */
void pm_run_page_evaluation(struct pm_run_page *p, const struct pm_run_facts *f, uint64_t count,
                            const struct cJSON *metrics, const struct cJSON *detail);
/* Writes run.json and the page. */
void pm_run_page_now(struct pm_run_page *p, const struct pm_run_facts *f);
/* The last page: the run ended with err, or by a signal (0: none). The thread's error text stays what
 * it was. Frees p and leaves NULL. */
void pm_run_page_end(struct pm_run_page **p, const struct pm_run_facts *f, int err,
                     int signal_number);

/* For pumice eval of a checkpoint in run.folder: the evaluation's file, and the page where nobody trains in
 * the folder. Nothing is done where the folder is not a run's. */
void pm_run_page_evaluated(const struct pm_config *c, const struct pm_evaluated *e);

#endif
