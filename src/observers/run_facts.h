/* run_facts: what a training run works with and how far it is. src/train owns and writes it;
 * observers only read it. */
#ifndef PM_RUN_FACTS_H
#define PM_RUN_FACTS_H

#include "clones/clones.h"
#include "experiment/experiment.h"

struct pm_run_lock;
struct pm_run_facts {
    /* All pointers are borrowed by readers. */
    const struct pm_config *c;
    struct pm_experiment *e;
    struct pm_clone_spec *specs;
    int spec_count;
    struct pm_clones *clones;   /* NULL between a loss and the next try */
    struct pm_loader *loader;
    struct pm_run_lock *lock;   /* of the run folder */

    uint64_t step;              /* updates submitted */
    uint64_t collected;         /* updates whose results were read */
    uint64_t saved_step;        /* of the newest checkpoint; UINT64_MAX: none */
    uint64_t evaluated_step;    /* of the last evaluation that was written; UINT64_MAX: none */
};

#endif
