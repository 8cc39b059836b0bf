/* optimizer: a row per optimizer, and the calls that end a training step on the device that updates
 * the variables: weight decay and multipliers, norms and the finite flag, clipping, the optimizer
 * over the whole block, and the moving averages of the layers and the variables. A new optimizer
 * needs src/optim/optimizer_NAME.c, its shader and one line in optimizers.def. */
#ifndef PM_OPTIMIZER_H
#define PM_OPTIMIZER_H

#include <pumice/options.h>
#include <pumice/plan.h>

/* The tensors that an optimizer's calls use. A block is 64 floats of one variable. chunks, vars:
 * tables of update.params.h. */
struct pm_update_parts {
    struct pm_tensor g, owner, scale, result, flag, step, w, slot[PM_MAX_SLOTS];
    struct pm_tensor chunks, vars;
    struct pm_tensor decay; /* decoupled: [vars][2]: weight decay (0: frozen); 1: regularised, -1:
                             * frozen */
    int floats, chunk_count, var_count;
};

struct pm_optimizer {
    const char *name, *help;
    const struct pm_opt *opts;
    size_t cfg_size;
    const char *slots[PM_MAX_SLOTS + 1]; /* checkpoint suffixes of the slots, NULL-terminated */
    /* Returns the slots if they depend on cfg; NULL-terminated too. */
    const char *const *(*slots_of)(const void *cfg);
    /* Fills init with the slots' start values for cfg; init is zeros before. NULL: slots start at
     * zero. */
    void (*slot_init)(const void *cfg, float init[PM_MAX_SLOTS]);
    /* "r:g r:owner r:scale r:result r:flag r:step u:w u:slot...". An element of block i uses g *
     * scale[owner[i / 64]] * result[PM_RESULT_CLIP]. Nothing changes while flag is 0. */
    const struct pm_kernel *kernel;
    /* Fills the kernel's params from cfg. */
    void (*params)(const void *cfg, int count, void *params);
    /* Replaces kernel and params, for other buffers or several calls. */
    void (*append)(struct pm_calls *c, const void *cfg, const struct pm_update_parts *u);
    /* The optimizer applies weight decay itself (parts.decay); it is not in the gradient or the
     * loss. */
    bool decoupled;
    bool whole; /* append works on the whole block at once and skips frozen variables itself */
    const char *other; /* options that use other kernels than the defaults do; NULL: none */
    /* Stores the decays whose powers pm_step carries (Adam); 0 if unused. */
    void (*betas)(const void *cfg, double *beta1, double *beta2);
};
const struct pm_optimizer *pm_optimizer_find(const char *name);
const struct pm_optimizer *const *pm_optimizers(size_t *count);
/* Returns the checkpoint suffixes of the optimizer's slots, NULL-terminated. */
const char *const *pm_optimizer_slots(const struct pm_optimizer *o, const void *cfg);
/* Sets values and slots to their state at the start of a run: values by seed, slots by the
 * optimizer. */
int pm_optimizer_init(const struct pm_optimizer *o, const void *cfg, struct pm_variables *v,
                      uint64_t seed);

/* Floats of result[]. */
enum {
    PM_RESULT_NORM,  /* global norm of the gradients after multipliers and per-variable clipping */
    PM_RESULT_L2,    /* sum of weight_decay / 2 * |w|^2 over regularised variables */
    PM_RESULT_CLIP,  /* factor of the global clipping */
    PM_RESULT_COUNT
};

/* What happens to the gradients, and how weights are updated. */
struct pm_update {
    const struct pm_optimizer *optimizer; /* borrowed */
    const void *cfg;                      /* its options, borrowed */
    float weight_decay;                   /* for regularised variables */
    float clip_norm;                      /* limit of the global norm, 0 = off */
    float clip_variable_norm;             /* limit of each variable's norm, 0 = off */
    /* Returns the factor of a variable's gradient, 0 = frozen. */
    float (*multiplier)(const char *variable, void *ctx);
    void *ctx;
    bool layers;   /* the plan updates the layers' moving averages */
    bool all;      /* the host computes them from the clones' results and averages those
                    * (moving.h) */
    bool averages; /* the plan keeps the variables' averages (averages.h) */
    /* every > 0: only the variables first, first + every, first + 2 every, ... are updated. */
    int first, every;
};
/* pm_plan_options.update for a plan that holds variables, gradients and slots. Outputs: "result"
 * (F32), "norms" (F32, per trainable variable in block order) and "flag" (U32). */
void pm_update_append(struct pm_calls *c, void *update);
/* The two parts of pm_update_append, for plans in different processes. prepare: weight decay and
 * multipliers; the outputs are those of pm_update_append, and "scale" (F32, per trainable
 * variable). A gradient g then becomes g * scale * result[PM_RESULT_CLIP]. apply: the optimizer and
 * the averages, with gradients that are ready and finite. */
void pm_update_prepare_append(struct pm_calls *c, void *update);
void pm_update_apply_append(struct pm_calls *c, void *update);
/* Whether the update changes this variable of the list. */
bool pm_update_changes(const struct pm_update *u, const struct pm_variables *v, int variable);
/* pm_plan_options.update for a clone whose update runs elsewhere. Appends only the layers' moving
 * averages and, unless `all`, the averages of these. These calls do not depend on the finite flag.
 * update: a struct pm_update. */
void pm_update_layers_only(struct pm_calls *c, void *update);
/* pm_plan_options.frozen of such plans; update: a struct pm_update. */
bool pm_update_frozen(const char *variable, void *update);
/* Returns the variable's index for an index among the trainable variables (block order); -1 past
 * the end. */
int pm_update_variable(const struct pm_variables *v, int trainable);

#endif
