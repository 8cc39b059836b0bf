/* check_findings: what `config check` looks for beyond the config's own rules: settings that do not
 * fit the data, and settings that train but probably give a bad result.
 *
 * A finding is a row: a function, and a line in check_findings.def. The rows run in the order of
 * that list. If training would fail, the function returns an error (pm_fail), which ends the check:
 * PM_ECONFIG if the config must change, PM_EDATA if the data must. Otherwise it calls pm_check_add:
 * with a warning if the run probably disappoints, with a note if a setting has an effect that is
 * easily overlooked. Warnings and notes do not change the exit code, because such a run may be
 * what the user wants. */
#ifndef PM_CHECK_FINDINGS_H
#define PM_CHECK_FINDINGS_H

#include "experiment/experiment.h"

struct cJSON;
struct pm_published;

/* What a row may look at. */
struct pm_check {
    const struct pm_config *config; /* borrowed */
    struct pm_experiment *e;        /* opened for training; NULL: data.folder is not there */
    /* Of the training split, filled in by the row `classes`: the number of records with each class,
     * as numbered in the data. NULL: not counted. Owned. */
    uint64_t *class_records;
    int class_count;
    struct cJSON *list;             /* objects with level, key and text; borrowed */
};
enum pm_check_level { PM_CHECK_NOTE, PM_CHECK_WARNING };
/* Adds a finding. key: the key to change, for programs that read the JSON. The text is one or more
 * whole sentences, without a newline at the end. Returns the finding, to which members may be
 * added; k->list owns it. */
PM_PRINTF(4, 5)
struct cJSON *pm_check_add(struct pm_check *k, enum pm_check_level level, const char *key,
                           const char *format, ...);
/* Returns published weights that a new run on these pictures may start from, or NULL. Needs the
 * data. */
const struct pm_published *pm_check_published(const struct pm_check *k);
/* Whether the row few_photos proposes a recipe for this training. Needs the data. */
bool pm_check_few_photos(const struct pm_check *k);
/* Finds whether the optimizer's steps are gradients times the rate, with momentum or without: those
 * of sgd and momentum, and of others whose epsilon is so large that they do not divide. Fails with
 * PM_ECONFIG if its options are wrong. */
int pm_check_plain_steps(const struct pm_config *c, bool *plain);
/* Returns the schedule's largest rate. */
double pm_check_largest_rate(const struct pm_config_schedule *s);

/* A row. */
struct pm_check_finding {
    bool data; /* needs the data: k->e is not NULL */
    int (*run)(struct pm_check *k);
};
/* Runs all rows. After an error the findings so far are in k->list. */
int pm_check_findings_run(struct pm_check *k);

#define PM_CHECK_FINDING(name) extern const struct pm_check_finding pm_check_finding_##name;
#include "jobs/check_findings.def"
#undef PM_CHECK_FINDING

#endif
