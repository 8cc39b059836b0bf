/* run_page: the files of a run folder for report.html, and the page itself.
 *
 * run.json holds the run's settings, its progress, and the changes of its config (a list of step,
 * key, old and new value). The files of evaluations.h hold the results of
 * evaluations. All are JSON and rewritten as a whole. The page is made from them, metrics.jsonl,
 * config.json and log.txt (report.h). It is written at the start, after each evaluation, at the
 * end, and at most every ten seconds in between. If writing takes long, it is written less often,
 * so that it takes at most a hundredth of the time. A file that cannot be written costs one
 * warning. */
#ifndef PM_RUN_PAGE_H
#define PM_RUN_PAGE_H

#include "observers/evaluations.h"
#include "observers/run_facts.h"

struct pm_rank_rates;

/* Speeds, borrowed and read at every write. */
struct pm_page_rates {
    const double *clones; /* [PM_MAX_CLONES], images per second of each clone's part */
    const struct pm_rank_rates *ranks; /* NULL: the process trains alone */
};
struct pm_run_page;
struct pm_run_page *pm_run_page_open(const struct pm_run_facts *f, const struct pm_page_rates *r);
/* Call it after a step was logged. Writes if enough time has passed. */
void pm_run_page_step(struct pm_run_page *p, const struct pm_run_facts *f);
/* Writes evaluation.json for an evaluation of f->step over count pictures; detail: the
 * evaluator's. */
void pm_run_page_evaluation(struct pm_run_page *p, const struct pm_run_facts *f, uint64_t count,
                            const struct cJSON *metrics, const struct cJSON *detail);
/* Writes run.json and the page. */
void pm_run_page_now(struct pm_run_page *p, const struct pm_run_facts *f);
/* Writes the last page: the run ended with err, or was stopped before its last step. Keeps the
 * thread's error text. Frees p and sets it to NULL. */
void pm_run_page_end(struct pm_run_page **p, const struct pm_run_facts *f, int err, bool stopped);

/* For pumice eval of a checkpoint in run.folder. Writes the evaluation's file, and the page unless
 * a process trains in the folder. Does nothing if the folder is not a run's. */
void pm_run_page_evaluated(const struct pm_config *c, const struct pm_evaluated *e);

#endif
