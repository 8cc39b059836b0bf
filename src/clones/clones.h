/* clones: copies of one model on several devices, and one training step over them.
 *
 * An exchange (exchange.h) turns the clones' gradients into one update. One clone: forward,
 * backward and update are one program on its device. The results of a step are read when its ring
 * slot is used again. Several clones: each computes the gradients of its part of the batch. Their
 * sum updates a master copy once, and the new values go to every clone.
 *
 * A clone has one plan per size of training pictures (frames). All are made before the first step.
 * They share the variables and one block of activations, as large as the largest plan needs. Each
 * plan has host memory of its own for the inputs and outputs of every slot, so steps of different
 * sizes can be under way at once: a device runs them in order of submission, and a run's calls and
 * copies end before those of the next one begin.
 *
 * Clone 0 supplies batch norm's moving averages and the averages of those. The averages of
 * trainable variables are maintained beside the master copy. With batch_norm_update "all" or
 * "last", the host computes the moving averages after the step (moving.h), from every clone's or
 * from the last clone's, and sends them with the new values.
 *
 * Clones of several processes (replicas.h) train one model together. The exchange of each process
 * then also sums over the processes, and each makes the same update. The result has the same bits
 * as that of one process with all these clones if each process has one clone; with more, the sums
 * are sums of the processes' sums. The host computes the moving averages in every case.
 *
 * In asynchronous training each process makes steps of its own, whose gradients are sent to the
 * owners of the variables (remote.h). */
#ifndef PM_CLONES_H
#define PM_CLONES_H

#include "optim/optimizer.h"

#include <pumice/config.h>
#include <pumice/data.h>
#include <pumice/plan.h>
#include <pumice/report.h>

enum { PM_STEP_SLOTS = 3 }; /* most steps under way at once in training with one clone */

struct pm_clone_spec {
    struct pm_device_info info;
    double share;  /* of the batch, relative to the other clones; > 0 */
    int threads;   /* CPU only; 0 = all cores */
    int place;     /* index in the config's devices, for messages */
    double segment_ms; /* of its submissions; 0 = as in the options */
    /* For tests, as in struct pm_device_options; 0 = none. */
    double slow;
    int lose_at, lose_after, hang_at;
    int lose_times; /* a loss occurs only in the first lose_times openings */
    /* Maintained by trainer_loss.c. */
    int losses;       /* without LAPSE steps between them */
    int first_hangs;  /* hangs before any program ran on the opened device */
    uint64_t lost_at; /* step of the last loss */
};
/* How a clone failed: see pm_device_hung, pm_device_caught and pm_device_ran. */
struct pm_clone_failure {
    int clone; /* -1: none */
    bool hung, caught, ran;
};
struct pm_replicas;
struct pm_servers_link;
/* Where a process's clones stand among the clones of all processes that train together, in the
 * order of the processes' ranks. Pointers are borrowed. */
struct pm_clones_among {
    struct pm_replicas *replicas; /* NULL: this process trains alone; all but servers is then 0 */
    int count;         /* of all clones */
    int first;         /* index of this process's first clone */
    const double *shares; /* [count]. Replace those of this process's specs */
    const int *of_rank;   /* [ranks]: number of each process's clones */
    int wire;             /* enum pm_replica_wire (replicas.h) */
    /* Asynchronous training (remote.h): `batch` and all results are those of this process, and the
     * rest is 0. NULL: none. */
    struct pm_servers_link *servers;
};
/* What each process sends to all others in a step. */
struct pm_step_word {
    uint64_t step;         /* number of the step; all processes must have the same */
    uint64_t skipped;      /* damaged records that the process replaced in this batch */
    double waited;         /* seconds that the process waited for this batch */
    struct pm_step values; /* every process's update uses the rates of rank 0 */
    int32_t stop;          /* the signal that the process has received; 0: none */
    int32_t save;          /* rank 0: a checkpoint is due by the clock */
    int32_t lost;          /* 1: a device of the process was lost in this step */
};
struct pm_clones_options {
    const struct pm_clone_spec *specs;
    int count;
    struct pm_clones_among among;
    int batch;         /* whole batch of a step, over all processes */
    int micro_batches; /* number of micro-batches in each clone's part */
    enum pm_recompute recompute;
    int slots;         /* steps under way at once with one clone */
    struct pm_device_options device; /* per device; specs' own values and trace are filled in */
    bool verify;       /* compare the plans' kernels with the CPU before their first use
                        * (verified_plan.h) */
    const char *const *outputs; /* nodes whose values every step copies out; NULL: none */
    /* Nodes whose values an observed step also copies out, on clone 0. NULL: no step is observed.
     * Otherwise clone 0 has a second plan per frame, with memory of its own. */
    const char *const *observed;
    bool timed;        /* the plans measure every call's begin and end */
    bool timeable;     /* pm_clones_set_timed can turn that on and off */
    struct pm_phases *phases; /* borrowed, may be NULL: counts the waiting times of a step */
    int batch_norm_update; /* enum pm_batch_norm_update: clones whose batches the moving averages
                            * follow */
    bool sum_losses;   /* the losses of results are sums of the clones' mean losses */
    bool dry_run;      /* open devices and lay out plans; allocate and compile nothing */
    struct pm_update update; /* .layers is filled in */
    /* The sizes of the training pictures, all different. A step uses the plan of its batch's frame.
     * frames[0] is the largest: its net supplies the variables. */
    const struct pm_frame *frames;
    int frames_count;  /* at least 1 */
    /* Builds a net with its loss for this number of examples of height x width pixels. */
    int (*build)(void *ctx, int batch, int height, int width, struct pm_net **out);
    void *ctx;
    struct pm_clone_failure *failed; /* the clone that could not be made; may be NULL */
    const struct pm_field *fields; /* inputs of the net, as in the batches of frames[0] */
    int fields_count;
};
struct pm_step_result {
    double loss;        /* of the whole batch, without weight decay's part (options.sum_losses) */
    struct pm_loss_part *parts; /* per loss layer; valid until the slot's next step */
    int part_count;
    float l2;           /* weight decay's part of total_loss */
    float norm;         /* global norm of the gradients */
    bool finite;        /* false: no variable was updated */
    const float *norms; /* per trainable variable; valid until the slot's next step */
};

struct pm_clones;
int pm_clones_create(const struct pm_clones_options *o, struct pm_clones **out);
void pm_clones_destroy(struct pm_clones **c);
/* Returns the first clone whose device was lost, or clone -1 if the host's own update failed. */
struct pm_clone_failure pm_clones_lost(const struct pm_clones *c);
/* Returns the first process that lost a device in the last step, or -1. pm_clones_step then fails
 * with PM_ELOST in all processes, and none may use its values: those of an earlier step must be
 * restored in all. */
int pm_clones_lost_rank(const struct pm_clones *c);
/* Returns the slice of the whole batch that this process computes: the content of its batches. */
struct pm_batch_slice pm_clones_slice(const struct pm_clones *c);
/* Whether pm_clones_step waits for the clones: no step is under way after it. */
bool pm_clones_wait(const struct pm_clones *c);
/* Clone i's number of examples, its device, its plan for frames[frame]. */
int pm_clones_examples(const struct pm_clones *c, int i);
/* The number of clones of all processes; the examples of clone i of these. */
int pm_clones_count(const struct pm_clones *c);
int pm_clones_examples_of(const struct pm_clones *c, int i);
/* The number of clones of a process. */
int pm_clones_of_rank(const struct pm_clones *c, int rank);
struct pm_device *pm_clones_device(const struct pm_clones *c, int i);
struct pm_plan *pm_clones_plan(const struct pm_clones *c, int i, int frame);
/* Returns the plan of clone i that runs, or ran last, the step of this slot. */
struct pm_plan *pm_clones_slot_plan(const struct pm_clones *c, int i, int slot);
/* Returns the memory of clone i: activations are the block that its plans share, as large as the
 * largest needs; constants and staging are those of all plans. The rest is that of frames[0]. */
struct pm_plan_memory pm_clones_memory(const struct pm_clones *c, int i);
/* Returns the number of frames; pm_clones_frame returns one of them. */
int pm_clones_frames(const struct pm_clones *c);
struct pm_frame pm_clones_frame(const struct pm_clones *c, int frame);
struct pm_variables *pm_clones_variables(const struct pm_clones *c, int i);
/* Turns the times of calls on or off in all plans. No step may be under way. */
void pm_clones_set_timed(struct pm_clones *c, bool on);
/* Returns the optimizer's plan on the host (slot 0) with several clones; else NULL. */
struct pm_plan *pm_clones_update_plan(const struct pm_clones *c);
/* Returns the master copy: values, slots, averages. After steps of several clones, pm_clones_gather
 * copies clone 0's moving averages into it. In asynchronous training it copies everything from the
 * owners, and the values also to the clones. */
struct pm_variables *pm_clones_master(const struct pm_clones *c);
int pm_clones_gather(struct pm_clones *c);
/* Copies the master's values to every clone. Call it after loading or initialising them. */
int pm_clones_scatter(struct pm_clones *c);
/* Returns clone 0's variables with the averages as values; borrowed. Only if averages are kept.
 * With several clones they are a copy of the current averages, valid until the next call. No step
 * may be under way. */
int pm_clones_averaged(struct pm_clones *c, struct pm_variables **out);
/* Returns the word of this process for the next step, to be filled in. Only with several
 * processes. */
struct pm_step_word *pm_clones_word(struct pm_clones *c);
/* Returns the word of a rank in the last step. */
const struct pm_step_word *pm_clones_word_of(const struct pm_clones *c, int rank);
/* Runs one step: copies the batch into the slot and submits it. batch->frame is one of the options'
 * frames. Slot: 0 .. slots-1; its former step must have been collected. */
int pm_clones_step(struct pm_clones *c, int slot, const struct pm_batch *batch,
                   const struct pm_step *step);
int pm_clones_collect(struct pm_clones *c, int slot, struct pm_step_result *out);
/* pm_clones_observe: the next step is observed. pm_clones_observed returns the values of a node of
 * options.observed in the last observed step, of clone 0's first micro-batch, and their shape.
 * NULL: the node's values are those of its input. Call it after the step was collected; valid until
 * the next step. Observed steps give the same bits as others. */
void pm_clones_observe(struct pm_clones *c);
const float *pm_clones_observed(const struct pm_clones *c, const char *node,
                                struct pm_shape *shape);
/* pm_clones_part returns the number of examples of part i, 0 after the last. Parts are the clones'
 * micro-batches, in the order of the batch. pm_clones_output returns the value of a node of
 * options.outputs for part i in the last collected step of this slot. It is valid until the slot's
 * next step. */
int pm_clones_part(const struct pm_clones *c, int i);
const void *pm_clones_output(const struct pm_clones *c, int i, int slot, const char *node);
/* Returns the seconds that clone i took for its part of the last collected step, as measured by its
 * device. */
double pm_clones_seconds(const struct pm_clones *c, int i);
/* The same of clone i of all processes. With several processes, the seconds in which the clone's
 * process waited for its data are added. */
double pm_clones_seconds_of(const struct pm_clones *c, int i);

#endif
