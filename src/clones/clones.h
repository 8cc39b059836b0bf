/* clones: copies of one model on several devices, and one training step over them.
 *
 * How the clones' gradients become one update is an exchange (exchange.h). One clone: forward,
 * backward and update are one program on its device, and a step's results are read when its ring
 * slot comes up again. Several: each computes the gradients of its part of the batch, their sum
 * updates a master copy once, and the new values go to every clone.
 *
 * Batch norm's moving averages, and their own averages, come from clone 0. The averages of
 * trainable variables are maintained beside the master copy. With batch_norm_all, the host merges
 * every clone's moving averages after the step (moving.h) and sends them with the new values. */
#ifndef PM_CLONES_H
#define PM_CLONES_H

#include "optim/optimizer.h"

#include <pumice/data.h>
#include <pumice/plan.h>
#include <pumice/report.h>

enum { PM_STEP_SLOTS = 3 }; /* steps under way at once in training with one clone */

struct pm_clone_spec {
    struct pm_device_info info;
    double share;  /* of the batch, relative to the others'; > 0 */
    int threads;   /* CPU: 0 = all cores */
    int place;     /* in the config's devices, for messages */
    double segment_ms; /* of its submissions; 0 = as the options say */
    /* For tests, as in struct pm_device_options; 0 = none. */
    double slow;
    int lose_at, lose_times, hang_at; /* lost in the first lose_times openings */
    /* Kept by trainer_loss.c. */
    int losses;       /* without LOSSES_LAPSE steps between them */
    int first_hangs;  /* openings that hung before anything ran on them */
    uint64_t lost_at; /* step of the last one */
};
/* How a clone failed: see pm_device_hung, _caught and _ran. */
struct pm_clone_failure {
    int clone; /* -1: none */
    bool hung, caught, ran;
};
struct pm_clones_options {
    const struct pm_clone_spec *specs;
    int count;
    int batch;         /* whole batch of a step, over all processes */
    int micro_batches; /* each clone's part is cut into so many */
    enum pm_recompute recompute;
    int slots;         /* steps under way at once with one clone */
    struct pm_device_options device; /* of each; the specs' own and trace are set as needed */
    bool verify;       /* plans' kernels against the CPU before their first use (verified_plan.h) */
    const char *const *outputs; /* nodes whose values are copied out in every step; NULL: none */
    bool timed;        /* the plans take every call's begin and end */
    bool timeable;     /* pm_clones_set_timed can turn that on and off */
    struct pm_phases *phases; /* borrowed, may be NULL: counts what a step waits for */
    bool batch_norm_all; /* moving averages follow every clone's batch, not the first's alone */
    bool dry_run;      /* devices are opened and plans laid out, nothing is allocated or compiled */
    struct pm_update update; /* .layers is set as needed */
    /* A net with its loss for this many examples. */
    int (*build)(void *ctx, int batch, struct pm_net **out);
    void *ctx;
    struct pm_clone_failure *failed; /* the clone that could not be made; may be NULL */
    const struct pm_field *fields; /* inputs of the net, as in the batches */
    int fields_count;
};
struct pm_step_result {
    double loss;        /* of the whole batch, without weight decay's part */
    struct pm_loss_part parts[PM_MAX_LOSSES]; /* what it is made of: a loss layer each */
    int part_count;
    float l2;           /* weight decay's part of total_loss */
    float norm;         /* global norm of the gradients */
    bool finite;        /* false: nothing was updated */
    const float *norms; /* per trainable variable; good until the slot's next step */
};

struct pm_clones;
int pm_clones_create(const struct pm_clones_options *o, struct pm_clones **out);
void pm_clones_destroy(struct pm_clones **c);
/* The first clone whose device was lost; none: it was the host's own update. */
struct pm_clone_failure pm_clones_lost(const struct pm_clones *c);
/* The examples of the whole batch that this process computes: what batches hold. */
struct pm_batch_slice pm_clones_slice(const struct pm_clones *c);
/* pm_clones_step waits for the clones: no step is under way after it. */
bool pm_clones_wait(const struct pm_clones *c);
/* Examples of clone i, its device, its plan (for printing). */
int pm_clones_examples(const struct pm_clones *c, int i);
struct pm_device *pm_clones_device(const struct pm_clones *c, int i);
struct pm_plan *pm_clones_plan(const struct pm_clones *c, int i);
struct pm_variables *pm_clones_variables(const struct pm_clones *c, int i);
/* Of all plans; none may be under way. */
void pm_clones_set_timed(struct pm_clones *c, bool on);
/* Several clones: the optimizer's plan on the host (slot 0); else NULL. */
struct pm_plan *pm_clones_update_plan(const struct pm_clones *c);
/* The master copy: values, slots, averages. After steps of several clones, pm_clones_gather brings
 * clone 0's moving averages into it. */
struct pm_variables *pm_clones_master(const struct pm_clones *c);
int pm_clones_gather(struct pm_clones *c);
/* The master's values to every clone: after loading or initialising them. */
int pm_clones_scatter(struct pm_clones *c);
/* Where averages are kept: clone 0's variables with them for values; borrowed. Several clones: as
 * they are now, until it is asked for again. No step may be under way. */
int pm_clones_averaged(struct pm_clones *c, struct pm_variables **out);
/* One step: copies the batch into slot, runs. Slot: 0 .. slots-1; its former step must have been
 * collected. */
int pm_clones_step(struct pm_clones *c, int slot, const struct pm_batch *batch,
                   const struct pm_step *step);
int pm_clones_collect(struct pm_clones *c, int slot, struct pm_step_result *out);
/* The batch's parts in order, a clone's micro-batches one after the other: examples of part i, 0 behind
 * the last; what a node of options.outputs gave for it in the last collected step of this slot, good until
 * the slot's next one. */
int pm_clones_part(const struct pm_clones *c, int i);
const void *pm_clones_output(const struct pm_clones *c, int i, int slot, const char *node);
/* Seconds clone i took for its part of the last collected step, as its device measured them. */
double pm_clones_seconds(const struct pm_clones *c, int i);

#endif
