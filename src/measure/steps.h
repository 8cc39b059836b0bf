/* steps: training steps as in `train`, for measurements: with its clones, ring and loader, but
 * without run folder, checkpoints and log. Values come from the seed. The learning rate is small
 * unless the caller sets another, so that training on random data does not diverge. */
#ifndef PM_STEPS_H
#define PM_STEPS_H

#include "clones/clones.h"
#include "experiment/experiment.h"

/* The host's phases in a step, in the order of reports. AVERAGE and UPDATE exist only with several
 * clones. */
enum { PM_STEPS_HOST = 5 };
extern const enum pm_phase_of_run pm_steps_host[PM_STEPS_HOST];

struct pm_steps {
    const struct pm_config *c;     /* borrowed */
    struct pm_experiment *e;       /* owned */
    struct pm_clone_spec *specs;
    int count;                     /* number of clones */
    struct pm_clones_among among;  /* zero: this process trains alone. Set it, and the specs of this
                                    * process, before pm_steps_clones. Then each process must take
                                    * the same steps */
    struct pm_clones *clones;      /* owned; NULL before pm_steps_clones */
    struct pm_loader *loader;      /* owned; NULL: synthetic data, the batch in memory */
    struct pm_sampler sampler;
    struct pm_batch batch;         /* synthetic: random values; its arrays are owned */
    bool synthetic;
    double betas[2];
    struct pm_phases phases;       /* of the calling thread */
    uint64_t step, collected;
    bool finite;                   /* whether all steps so far were finite */
    float rate;                    /* of the next steps; at first a hundredth of the config's */
    struct pm_step_result last;    /* of the last collected step; its pointers are valid until
                                    * that step's slot is used again */
};
/* Opens the experiment. Data are opened if they exist, and must exist unless synthetic. After a
 * failure close must still be called. */
int pm_steps_open(struct pm_steps *s, const struct pm_config *c, bool synthetic);
void pm_steps_close(struct pm_steps *s);
/* Takes only the largest of several sizes of pictures (input.buckets). Call it before
 * pm_steps_clones. */
void pm_steps_one_size(struct pm_steps *s);
/* Makes clones with initial values, at step 0; ends former clones. */
int pm_steps_clones(struct pm_steps *s, bool timed);
/* Sets the values with which a new run would start: those of init.checkpoint, if it is set. With
 * init.restore "all" also slots, averages and the step. Call it after pm_steps_clones. */
int pm_steps_start(struct pm_steps *s);
/* Starts the loader, unless synthetic. */
int pm_steps_loader(struct pm_steps *s);
int pm_steps_submit(struct pm_steps *s);
int pm_steps_collect(struct pm_steps *s);
/* Runs one turn of the trainer's loop. With several clones no step is under way when it returns. */
int pm_steps_turn(struct pm_steps *s);
/* Runs so many turns. No step is under way when it returns. */
int pm_steps_take(struct pm_steps *s, int count);

#endif
