/* run_facts: the parts and the progress of a training run. src/train owns and writes it; observers
 * only read it. */
#ifndef PM_RUN_FACTS_H
#define PM_RUN_FACTS_H

#include "clones/clones.h"
#include "experiment/experiment.h"

struct cJSON;
struct pm_replicas;
struct pm_run_lock;
struct pm_run_facts {
    /* Readers borrow all pointers. */
    const struct pm_config *c;
    struct pm_experiment *e;
    struct pm_clone_spec *specs;
    int spec_count;
    struct pm_replicas *replicas; /* NULL: the process trains alone */
    const char **device_names;  /* of the clones of all processes; NULL: it trains alone */
    struct pm_clones *clones;   /* NULL after a device is lost, until the next try */
    struct pm_loader *loader;
    struct pm_run_lock *lock;   /* of the run folder */
    struct cJSON *changes;      /* of the config since the run began, for run.json: a list of step,
                                 * key, old, new; NULL: none */

    uint64_t step;              /* updates submitted */
    uint64_t collected;         /* updates whose results have been read */
    uint64_t before;            /* collected before the last own step */
    bool jumps;                 /* training is asynchronous: collected also counts updates of other
                                 * processes */
    uint64_t saved_step;        /* of the newest checkpoint; UINT64_MAX: none */
    uint64_t evaluated_step;    /* of the last evaluation written; UINT64_MAX: none */
};

#endif
