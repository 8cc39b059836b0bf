/* steps: training steps as `train` takes them, for measuring: its clones, ring and loader, but no run
 * folder, checkpoints or log. Values come from the seed; the rate is small, so that random data do
 * not diverge. */
#ifndef PM_STEPS_H
#define PM_STEPS_H

#include "clones/clones.h"
#include "experiment/experiment.h"

/* The host's phases in a step, in the order of reports; AVERAGE and UPDATE are several clones'. */
enum { PM_STEPS_HOST = 5 };
extern const enum pm_phase_of_run pm_steps_host[PM_STEPS_HOST];

struct pm_steps {
    const struct pm_config *c;     /* borrowed */
    struct pm_experiment *e;       /* owned */
    struct pm_clone_spec *specs;
    int count;                     /* of clones */
    struct pm_clones *clones;      /* owned; NULL before pm_steps_clones */
    struct pm_loader *loader;      /* owned; NULL: the batch in memory */
    struct pm_sampler sampler;
    struct pm_batch batch;         /* synthetic: random values, its arrays are owned */
    bool synthetic;
    double betas[2];
    struct pm_phases phases;       /* of the calling thread */
    uint64_t step, collected;
    bool finite;                   /* all steps so far were */
};
/* Data are opened when they are there, or must be: not synthetic. On failure close is still to be
 * called. */
int pm_steps_open(struct pm_steps *s, const struct pm_config *c, bool synthetic);
void pm_steps_close(struct pm_steps *s);
/* Clones with initial values, at step 0; former ones end. */
int pm_steps_clones(struct pm_steps *s, bool timed);
/* Data from now on, unless synthetic. */
int pm_steps_loader(struct pm_steps *s);
int pm_steps_submit(struct pm_steps *s);
int pm_steps_collect(struct pm_steps *s);
/* One turn of the trainer's loop: with several clones nothing is under way when it returns. */
int pm_steps_turn(struct pm_steps *s);

#endif
