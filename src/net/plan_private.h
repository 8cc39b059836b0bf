/* The private struct of a plan, shared by plan.c (layout), plan_program.c (the program's
 * description), plan_run.c (loading and running) and plan_print.c. */
#ifndef PM_PLAN_PRIVATE_H
#define PM_PLAN_PRIVATE_H

#include "net/calls.h"
#include "net/recompute.h"

enum { PM_MAX_BLOCKS = 64 };

struct pm_plan {
    struct pm_arena *arena;         /* owned */
    struct pm_net *net;             /* borrowed */
    struct pm_device *device;       /* borrowed */
    struct pm_variables *variables; /* borrowed; NULL in a dry run */
    struct pm_plan_options options;
    struct pm_calls *calls;         /* in the arena; owns its arrays */

    size_t block_bytes[PM_MAX_BLOCKS]; /* bytes of activations, scratch, inputs and outputs */
    int blocks;
    size_t constant_bytes, counter_bytes;
    size_t peak_live;
    bool transposes;                   /* the calls use transposed copies of weights */
    struct pm_recomputed recomputed;   /* zeros if recomputing is off */

    int *inputs, *outputs;      /* value indices, in the program's order */
    size_t input_count, output_count;
    const char **loss_names;    /* in the order of the net's loss layers */
    int *loss_of;               /* per output: index of its loss layer; -1: no loss */
    int loss_count;
    struct pm_plan_bucket {
        size_t offset, bytes, after; /* range in the gradient block; number of calls done */
    } *buckets;                 /* follow the outputs in the program's order */
    size_t bucket_count;

    bool loaded; /* the programs are missing if a refresh has failed */
    /* Created by pm_plan_load. block is borrowed if activations are shared. */
    struct pm_buffer *block[PM_MAX_BLOCKS], *constants, *counters;
    struct pm_program *program;
    struct pm_program *other;   /* timeable, GPUs: the other of the two, timed or untimed */
    bool is_timed;              /* program records times */
    uint64_t moves; /* count of moves of the shared memory when the plan was recorded */
};

/* ---- plan_program.c ---- */

/* Lists inputs, outputs, losses and buckets; they belong to the plan. */
void pm_plan_list_transfers(struct pm_plan *p);
/* A plan's program and the arrays that it points to; pm_plan_program_free frees them. Before the
 * plan is loaded, its buffers are placeholders. */
struct pm_plan_program {
    struct pm_bound_call *calls;
    struct pm_place *in, *out;
    size_t *after;
    struct pm_program_desc desc;
};
void pm_plan_describe(const struct pm_plan *p, struct pm_plan_program *out);
void pm_plan_program_free(struct pm_plan_program *p);

/* Frees everything that pm_plan_load created. */
void pm_plan_unload(struct pm_plan *p);

struct pm_shared_memory {
    struct pm_device *device;
    struct pm_buffer *block[PM_MAX_BLOCKS]; /* owned */
    size_t bytes[PM_MAX_BLOCKS];
    uint64_t moves;
};

#endif
