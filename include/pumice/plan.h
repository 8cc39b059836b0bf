/* plan: one net on one device: an array of calls with addresses, memory laid out by lifetime. */
#ifndef PUMICE_PLAN_H
#define PUMICE_PLAN_H

#include <pumice/device.h>
#include <pumice/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- variables of one device ----------------------------------------------------------- */

/* Named weights, optimizer slots, gradients and moving averages, in blocks: trainable variables
 * first, each at a multiple of 256 bytes; a slot's and the gradient's block have the trainable
 * block's layout, the averages' that of all. */
enum { PM_MAX_SLOTS = 3 };
struct pm_variables {
    struct pm_device *device; /* borrowed */
    struct pm_arena *arena;   /* owned */
    struct pm_variable *list; /* copies, names in the arena */
    enum pm_conventions conventions; /* the net's, and its epsilon */
    float batch_norm_epsilon;
    int count;
    size_t *offset;           /* bytes in the block */
    size_t trainable_bytes;   /* the block's first part; a multiple of 256 */
    size_t bytes;
    size_t gradient_bytes;    /* trainable_bytes, or 0 without training */
    size_t average_bytes;     /* bytes, or 0 where no averages are kept */
    /* Made by pm_variables_allocate. */
    struct pm_buffer *values;            /* bytes */
    struct pm_buffer *grads;             /* gradient_bytes, zeroed once */
    struct pm_buffer *slots[PM_MAX_SLOTS]; /* trainable_bytes each */
    const char *slot_names[PM_MAX_SLOTS];  /* TensorFlow suffix: "Momentum", "RMSProp_1" */
    int slot_count;
    struct pm_buffer *averages;          /* average_bytes */
};
/* Lays the block out. grads and slot_names (NULL-terminated, may be NULL): what there will be
 * beside the values. Nothing is allocated before pm_variables_allocate; values are zero until
 * pm_variables_init or a load. */
int pm_variables_create(struct pm_device *d, const struct pm_net *net, bool grads,
                        const char *const *slot_names, struct pm_variables **out);
int pm_variables_allocate(struct pm_variables *v);
/* Before pm_variables_allocate: there will be an average of every variable. */
void pm_variables_keep_averages(struct pm_variables *v);
/* The averages become what the values are now; nothing where none are kept. */
int pm_variables_start_averages(struct pm_variables *v);
/* The same variables with the averages for values and nothing beside them: for plans. It lives as
 * long as v and is not destroyed. */
struct pm_variables pm_variables_averaged(const struct pm_variables *v);
void pm_variables_destroy(struct pm_variables **v);
/* Initial values by (seed, name, element); slots to slot_init[k] (NULL: zeros). */
int pm_variables_init(struct pm_variables *v, uint64_t seed, const float *slot_init);
/* One variable's initial values on the host: count floats. Fails only where they are read from a
 * file. */
int pm_variable_initial(const struct pm_variable *v, uint64_t seed, float *out);
int pm_variables_find(const struct pm_variables *v, const char *name); /* index or -1 */
/* One variable to or from the host. slot -1: the value. */
int pm_variables_read(struct pm_variables *v, int index, int slot, float *dst);
int pm_variables_write(struct pm_variables *v, int index, int slot, const float *src);
/* One variable's value from a reader of its elements, a few at a time: the host needs room for an
 * eighth of all variables at most. */
int pm_variables_fill(struct pm_variables *v, int index,
                      int (*read)(const void *from, size_t first, size_t count, float *out),
                      const void *from);

struct pm_calls;

/* ---- plans ----------------------------------------------------------------------------- */

enum pm_value_kind {
    PM_VALUE_ACTIVATION, /* planned by lifetime */
    PM_VALUE_SCRATCH,
    PM_VALUE_VARIABLE,   /* in the variables' block */
    PM_VALUE_GRADIENT,   /* in the gradient block */
    PM_VALUE_SLOT,
    PM_VALUE_AVERAGE,    /* in the averages' block */
    PM_VALUE_INPUT,      /* copied in every run */
    PM_VALUE_OUTPUT,     /* laid out to the end and copied out every run */
    PM_VALUE_CONSTANT,   /* written once when the plan is made */
};
struct pm_value {
    enum pm_value_kind kind;
    const char *name;
    struct pm_shape shape;
    enum pm_type type;
    size_t bytes;
    int variable;          /* VARIABLE, GRADIENT: index, -1: a part of the block, as of SLOT, AVERAGE */
    int slot;
    int first, last;       /* calls that use it first and last */
    int alias;             /* value whose storage it shares, or -1 */
    int micro_batch;       /* INPUT, OUTPUT: of which */
    bool loss;             /* OUTPUT: a scalar that joins total_loss */
    int block;             /* ACTIVATION, SCRATCH, INPUT, OUTPUT: which buffer of the class */
    size_t offset;         /* bytes in its class's block */
    const void *constant;  /* CONSTANT: contents, in the arena */
};
/* AGAIN: forward calls that run a second time, among those of the backward pass (recompute). */
enum pm_phase { PM_PHASE_FORWARD, PM_PHASE_AGAIN, PM_PHASE_BACKWARD, PM_PHASE_UPDATE, PM_PHASES };
extern const char *const pm_plan_phase_names[PM_PHASES]; /* "forward", "again", ... */
struct pm_planned_call {
    const struct pm_kernel *kernel;
    const char *label;
    enum pm_phase phase;
    size_t count;
    void *params;
    int buf[PM_MAX_BUFS]; /* values, -1 absent */
    int bufs;
};

/* A gradient of the net's variables is a place in one block, so an update works on whole blocks:
 * these make the tensors for its calls, inside pm_plan_options.update. Blocks are F32 [n] with the
 * layout of struct pm_variables' trainable part. */
const struct pm_variables *pm_calls_variables(const struct pm_calls *c);
/* Whether some call of this plan writes a variable's gradient; true in an update_only plan, whose
 * gradients come from elsewhere. A layer that does not lead to the loss has none. */
bool pm_calls_has_gradient(const struct pm_calls *c, int variable);
struct pm_tensor pm_calls_values_block(struct pm_calls *c);
struct pm_tensor pm_calls_gradient_block(struct pm_calls *c);
/* The bytes from .. to-1 of all gradients, of a slot, of all values, or of their averages. */
struct pm_tensor pm_calls_gradient_part(struct pm_calls *c, size_t from, size_t to);
struct pm_tensor pm_calls_slot_part(struct pm_calls *c, int slot, size_t from, size_t to);
struct pm_tensor pm_calls_values_part(struct pm_calls *c, size_t from, size_t to);
struct pm_tensor pm_calls_averages_part(struct pm_calls *c, size_t from, size_t to);
/* A value copied to the host in every run; found by its name with pm_plan_output. */
struct pm_tensor pm_calls_output(struct pm_calls *c, const char *name, struct pm_shape shape,
                                 enum pm_type type);
/* Every layer's update() (moving averages), conditional on flag. */
void pm_calls_layer_updates(struct pm_calls *c, struct pm_tensor flag);
/* Name that stands for later calls in prints, traces and errors. */
void pm_calls_label(struct pm_calls *c, const char *label);

/* A training step keeps values of the forward pass until the backward pass has used them: most
 * of its memory. Values may be dropped instead and computed again when the backward pass comes
 * to them, by the same kernels from the same inputs, so that gradients, losses and statistics
 * keep their bits. What costs little is dropped first; side effects (moving averages) happen
 * once. */
enum pm_recompute {
    PM_RECOMPUTE_OFF,
    PM_RECOMPUTE_AUTO, /* as much as it takes to fit into the device's memory; mostly nothing */
    PM_RECOMPUTE_HALF, /* down to half of the memory, or as near as it goes */
    PM_RECOMPUTE_MOST, /* as little memory as it goes */
};

/* Memory on the device for the activations of several plans, which use it one after the other: each
 * is as large as the largest of them needs. */
struct pm_shared_memory;
struct pm_shared_memory *pm_shared_memory_create(struct pm_device *d);
/* After the plans that use it. */
void pm_shared_memory_destroy(struct pm_shared_memory **a);
uint64_t pm_shared_memory_bytes(const struct pm_shared_memory *a);

struct pm_plan_options {
    bool train;             /* forward, loss, backward; else forward only */
    bool update_only;       /* neither: just the update (the host's, of several clones) */
    int first_example;      /* of this plan in the whole batch */
    float loss_share;       /* of the whole batch's loss; micro-batches divide it further */
    int micro_batches;      /* >= 1: the net's calls so many times, gradients added up */
    const char *const *outputs; /* names of nodes whose y is copied out; NULL-terminated or NULL */
    enum pm_recompute recompute;
    size_t bucket_bytes;    /* > 0: gradients are copied out in buckets of about this size */
    bool (*frozen)(const char *variable, void *ctx); /* NULL: none */
    void *frozen_ctx;
    /* Appends the update's calls after backward; NULL: gradients stay. */
    void (*update)(struct pm_calls *c, void *ctx);
    void *update_ctx;
    int slots;              /* ring slots of the program; 0 = 2 */
    bool timed;             /* every call's begin and end are taken: pm_plan_call_times */
    bool timeable;          /* pm_plan_set_timed can turn that on and off; costs nothing while off */
    const char *name;       /* "train", "eval"; for logs */
    /* Borrowed; NULL: the plan has memory of its own. A run ends before a run of another plan that
     * shares the memory is submitted. */
    struct pm_shared_memory *shared;
};

struct pm_plan;
/* Lays out everything without allocating; print and check can follow. The net must outlive the
 * plan. v may be NULL for a dry run that is never loaded. */
int pm_plan_create(struct pm_net *net, struct pm_device *d, struct pm_variables *v,
                   const struct pm_plan_options *o, struct pm_plan **out);
/* Checks each limit and names the layer, the number and the remedy; then allocates, compiles and
 * records. */
int pm_plan_load(struct pm_plan *p);
/* Makes the shared memory large enough for the plan, which need not be loaded. Where it is not
 * yet, it moves: pm_plan_refresh each plan that shares it before its next run. No run may be
 * under way. */
int pm_shared_memory_reserve(struct pm_shared_memory *a, const struct pm_plan *p);
/* Loads a plan that is not loaded, or records it again when its shared memory has moved; else it
 * does nothing. What pm_plan_input and others returned before may be gone. */
int pm_plan_refresh(struct pm_plan *p);
void pm_plan_destroy(struct pm_plan **p);
/* Memory by class, calls, and (verbose) a line per call and value. */
void pm_plan_print(const struct pm_plan *p, FILE *f, bool verbose);

struct pm_plan_memory {
    uint64_t activations; /* laid out, bytes */
    uint64_t peak_live;   /* largest sum of live values at any call: what no layout can beat */
    uint64_t constants, variables, gradients, slots, averages, staging;
    uint64_t workspace;   /* of activations: the largest scratch of one call */
    uint64_t total;       /* on the device: all but staging, which is the host's */
    int calls, values;
    /* Recomputing; 0 when off. */
    uint64_t live_without_recompute; /* peak_live if no call ran twice */
    int again;            /* calls that run a second time */
    double again_work;    /* what they cost, as an estimated share of forward and backward pass */
};
struct pm_plan_memory pm_plan_memory(const struct pm_plan *p);

/* ---- running a loaded plan ------------------------------------------------------------- */

/* Host memory of an input of micro-batch m; asserts that the name exists. */
void *pm_plan_input(struct pm_plan *p, int slot, const char *name, int m);
struct pm_step *pm_plan_step(struct pm_plan *p, int slot);
int pm_plan_submit(struct pm_plan *p, int slot);
int pm_plan_wait(struct pm_plan *p, int slot);
/* After pm_plan_wait: an output's host memory, of micro-batch m. NULL when there is none. */
const void *pm_plan_output(const struct pm_plan *p, int slot, const char *name, int m);
/* Sum of all loss scalars (their shares of the batch's loss), in double. */
double pm_plan_loss(const struct pm_plan *p, int slot);
/* The same by loss layer, in the net's order, over all micro-batches. Beyond PM_MAX_LOSSES there is
 * only the sum. Returns their number. */
enum { PM_MAX_LOSSES = 8 };
struct pm_loss_part {
    const char *name; /* the layer's; lives as long as the plan */
    double value;
};
int pm_plan_losses(const struct pm_plan *p, int slot, struct pm_loss_part out[PM_MAX_LOSSES]);
/* Gradient buckets: ranges of the gradient block in the order they become ready. */
size_t pm_plan_buckets(const struct pm_plan *p);
void pm_plan_bucket(const struct pm_plan *p, size_t i, size_t *offset, size_t *size);
/* Waits for the bucket of the slot's run; the pointer is good until the slot's next submit. */
int pm_plan_wait_bucket(struct pm_plan *p, int slot, size_t i, const float **out);
/* Seconds the slot's last run took on the device; after pm_plan_wait. */
double pm_plan_seconds(const struct pm_plan *p, int slot);
/* pm_seconds when the slot's last run began, and when each of its calls began and ended, in seconds
 * since then: pm_program_begun and pm_program_call_times, which see. */
double pm_plan_begun(const struct pm_plan *p, int slot);
int pm_plan_call_times(const struct pm_plan *p, int slot, double *begin, double *end);
/* Turns the times of calls on or off in a plan made timeable. No run may be under way. On Vulkan
 * another recording of the same calls runs then, with the same results, made when the plan was. */
void pm_plan_set_timed(struct pm_plan *p, bool on);
/* The list of calls, for checks, bench and profile. */
const struct pm_planned_call *pm_plan_calls(const struct pm_plan *p, size_t *count);
const struct pm_value *pm_plan_values(const struct pm_plan *p, size_t *count);
const char *pm_plan_variant(const struct pm_plan *p, size_t call);
struct pm_device *pm_plan_device(const struct pm_plan *p);

#ifdef __cplusplus
}
#endif

#endif
