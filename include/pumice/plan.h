/* plan: one net on one device, as an array of calls with addresses. Memory is laid out by the
 * lifetimes of values. */
#ifndef PUMICE_PLAN_H
#define PUMICE_PLAN_H

#include <pumice/device.h>
#include <pumice/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- variables of one device ----------------------------------------------------------- */

/* Named weights, optimizer slots, gradients and moving averages, in blocks. Trainable variables
 * come first, each at a multiple of 256 bytes. The blocks of the slots and of the gradients have
 * the trainable block's layout. The averages' block has the layout of all variables. */
enum { PM_MAX_SLOTS = 3 };
struct pm_variables {
    struct pm_device *device; /* borrowed */
    struct pm_arena *arena;   /* owned */
    struct pm_variable *list; /* copies, names in the arena */
    enum pm_conventions conventions; /* the net's, with its epsilon */
    float batch_norm_epsilon;
    int count;
    size_t *offset;           /* bytes in the block */
    size_t trainable_bytes;   /* the block's first part; a multiple of 256 */
    size_t late_at;           /* where the late variables begin, the last part; or `bytes` */
    size_t bytes;
    size_t gradient_bytes;    /* trainable_bytes, or 0 without training */
    size_t average_bytes;     /* bytes, or 0 if no averages are kept */
    /* Made by pm_variables_allocate. */
    struct pm_buffer *values;            /* bytes */
    struct pm_buffer *grads;             /* gradient_bytes, zeroed once */
    struct pm_buffer *slots[PM_MAX_SLOTS]; /* trainable_bytes each */
    const char *slot_names[PM_MAX_SLOTS];  /* TensorFlow suffix: "Momentum", "RMSProp_1" */
    int slot_count;
    struct pm_buffer *averages;          /* average_bytes */
};
/* Lays the block out. grads and slot_names (NULL-terminated, may be NULL) say what is kept beside
 * the values. Nothing is allocated before pm_variables_allocate. Values are zero until
 * pm_variables_init or a load. */
int pm_variables_create(struct pm_device *d, const struct pm_net *net, bool grads,
                        const char *const *slot_names, struct pm_variables **out);
int pm_variables_allocate(struct pm_variables *v);
/* Keeps a moving average of every variable. Call it before pm_variables_allocate. */
void pm_variables_keep_averages(struct pm_variables *v);
/* Sets the averages to the current values. Does nothing if no averages are kept. */
int pm_variables_start_averages(struct pm_variables *v);
/* Returns the same variables with the averages as values and without slots, gradients and averages;
 * for plans. The result is valid as long as v and must not be destroyed. */
struct pm_variables pm_variables_averaged(const struct pm_variables *v);
void pm_variables_destroy(struct pm_variables **v);
/* Sets initial values by (seed, name, element), and slot k to slot_init[k] (NULL: zeros). */
int pm_variables_init(struct pm_variables *v, uint64_t seed, const float *slot_init);
/* Computes one variable's initial values on the host: count floats. Fails only if they are read
 * from a file. */
int pm_variable_initial(const struct pm_variable *v, uint64_t seed, float *out);
int pm_variables_find(const struct pm_variables *v, const char *name); /* index or -1 */
/* Copies one variable to or from the host. slot -1: the value. */
int pm_variables_read(struct pm_variables *v, int index, int slot, float *dst);
int pm_variables_write(struct pm_variables *v, int index, int slot, const float *src);
/* Fills one variable's value from a reader that returns a few elements at a time. The host needs at
 * most an eighth of the memory of all variables. */
int pm_variables_fill(struct pm_variables *v, int index,
                      int (*read)(const void *from, size_t first, size_t count, float *out),
                      const void *from);

struct pm_calls;
struct cJSON;

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
    PM_VALUE_COUNTER,    /* zeroed once when the plan is made; of one call */
};
struct pm_value {
    enum pm_value_kind kind;
    const char *name;
    struct pm_shape shape;
    enum pm_type type;
    size_t bytes;
    int variable;          /* VARIABLE, GRADIENT: index; -1: part of the block, as SLOT, AVERAGE */
    int slot;
    int first, last;       /* index of the first and of the last call that uses it */
    int alias;             /* value whose storage it shares, or -1 */
    int within;            /* value whose storage it is a part of, from byte `at` on, or -1 */
    size_t at;
    int micro_batch;       /* INPUT, OUTPUT: index of its micro-batch */
    bool loss;             /* OUTPUT: a scalar that is added to total_loss */
    int block;             /* ACTIVATION, SCRATCH, INPUT, OUTPUT: which buffer of the class */
    size_t offset;         /* bytes in its class's block */
    const void *constant;  /* CONSTANT: contents, in the arena */
};
/* AGAIN: forward calls that run a second time, during the backward pass (recompute). */
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

/* Tensors for the calls that pm_plan_options.update appends. The gradients of the net's variables
 * lie in one block, so an update works on whole blocks. Blocks are F32 [n] with the layout of the
 * trainable part of struct pm_variables. */
const struct pm_variables *pm_calls_variables(const struct pm_calls *c);
/* Whether some call of this plan writes a variable's gradient. A layer that does not lead to the
 * loss has no gradient. Always true in an update_only plan, whose gradients come from other
 * plans. */
bool pm_calls_has_gradient(const struct pm_calls *c, int variable);
struct pm_tensor pm_calls_values_block(struct pm_calls *c);
struct pm_tensor pm_calls_gradient_block(struct pm_calls *c);
/* Returns the bytes from .. to-1 of all gradients, of a slot, of all values, or of their
 * averages. */
struct pm_tensor pm_calls_gradient_part(struct pm_calls *c, size_t from, size_t to);
struct pm_tensor pm_calls_slot_part(struct pm_calls *c, int slot, size_t from, size_t to);
struct pm_tensor pm_calls_values_part(struct pm_calls *c, size_t from, size_t to);
struct pm_tensor pm_calls_averages_part(struct pm_calls *c, size_t from, size_t to);
/* Adds a value that every run copies to the host. pm_plan_output finds it by its name. */
struct pm_tensor pm_calls_output(struct pm_calls *c, const char *name, struct pm_shape shape,
                                 enum pm_type type);
/* Appends every layer's update() (moving averages), conditional on flag. */
void pm_calls_layer_updates(struct pm_calls *c, struct pm_tensor flag);
/* Sets the name of later calls in prints, traces and errors. */
void pm_calls_label(struct pm_calls *c, const char *label);

/* A training step keeps values of the forward pass until the backward pass has used them; they take
 * most of its memory. The plan can drop values and compute them again when the backward pass needs
 * them. The same kernels then run on the same inputs, so gradients, losses and statistics are
 * bit-identical. The cheapest values are dropped first. Side effects (moving averages) happen
 * once. */
enum pm_recompute {
    PM_RECOMPUTE_OFF,
    PM_RECOMPUTE_AUTO, /* only as much as needed to fit into the device's memory; usually nothing */
    PM_RECOMPUTE_HALF, /* until memory is halved, or as close as possible */
    PM_RECOMPUTE_MOST, /* until memory is as small as possible */
};

/* Device memory for the activations of several plans that run one after the other. Its size is that
 * of the largest plan. */
struct pm_shared_memory;
struct pm_shared_memory *pm_shared_memory_create(struct pm_device *d);
/* Call it after destroying the plans that use it. */
void pm_shared_memory_destroy(struct pm_shared_memory **a);
uint64_t pm_shared_memory_bytes(const struct pm_shared_memory *a);

struct pm_plan_options {
    bool train;             /* forward, loss, backward; else forward only */
    bool update_only;       /* only the update, no passes (the host's, of several clones) */
    int first_example;      /* index of this plan's first example in the whole batch */
    float loss_share;       /* share of the whole batch's loss; micro-batches split it further */
    int micro_batches;      /* >= 1: number of times the net's calls run; gradients are added up */
    /* Names of nodes whose y is copied out; NULL-terminated or NULL; pm_plan_create copies them. A
     * plan leaves out the nodes that no output, no loss and, in training, no layer with an update
     * reads. A plan with none of these has all nodes. */
    const char *const *outputs;
    enum pm_recompute recompute;
    bool no_copies;         /* no transposed copies of weights, as in plans that save memory */
    size_t bucket_bytes;    /* > 0: gradients are copied out in buckets of about this size */
    bool (*frozen)(const char *variable, void *ctx); /* NULL: none */
    void *frozen_ctx;
    /* Appends the update's calls after the backward pass. NULL: gradients are kept. */
    void (*update)(struct pm_calls *c, void *ctx);
    void *update_ctx;
    int slots;              /* ring slots of the program; 0 = 2 */
    bool timed;             /* the begin and end of every call are measured: pm_plan_call_times */
    bool timeable;          /* pm_plan_set_timed can turn that on and off; no cost while off */
    const char *name;       /* "train", "eval"; for logs */
    /* Borrowed. NULL: the plan has its own memory. A run of another plan that shares the memory may
     * be submitted before this plan's run ends: a device runs them in order (pm_program_submit). */
    struct pm_shared_memory *shared;
};

struct pm_plan;
/* Lays everything out without allocating; pm_plan_print and checks can follow. The net must outlive
 * the plan. v may be NULL for a dry run that is never loaded. */
int pm_plan_create(struct pm_net *net, struct pm_device *d, struct pm_variables *v,
                   const struct pm_plan_options *o, struct pm_plan **out);
/* Checks each limit, then allocates, compiles and records. Errors name the layer, the number and
 * the remedy. */
int pm_plan_load(struct pm_plan *p);
/* Makes the shared memory large enough for the plan, which need not be loaded. If the memory grows,
 * it moves: call pm_plan_refresh for each plan that shares it before its next run. No run may be
 * under way. */
int pm_shared_memory_reserve(struct pm_shared_memory *a, const struct pm_plan *p);
/* Loads a plan that is not loaded, or records it again if its shared memory has moved. Otherwise
 * does nothing. After an error it may be called again. Pointers that pm_plan_input and others
 * returned before may become invalid. */
int pm_plan_refresh(struct pm_plan *p);
void pm_plan_destroy(struct pm_plan **p);
/* Prints memory by class, calls, and (verbose) a line per call and value. If the counts cannot be
 * computed, it prints the rest. */
void pm_plan_print(const struct pm_plan *p, FILE *f, bool verbose);

struct pm_plan_memory {
    uint64_t activations; /* laid out, bytes */
    uint64_t peak_live;   /* largest sum of live values at any call: a lower bound for any layout */
    uint64_t constants;   /* with the calls' counters */
    uint64_t variables, gradients, slots, averages, staging;
    uint64_t workspace;   /* part of activations: the largest scratch of one call */
    uint64_t total;       /* on the device: all except staging, which is in host memory */
    int calls, values;
    /* Recomputing; 0 when off. */
    uint64_t live_without_recompute; /* peak_live if no call ran twice */
    int again;            /* calls that run a second time */
    double again_work;    /* their cost, as an estimated share of forward and backward pass */
};
struct pm_plan_memory pm_plan_memory(const struct pm_plan *p);
/* Whether data gradients read transposed copies of weights. False on devices that run no shaders,
 * with no_copies or recompute of half or most, and where the copies would not fit into the memory:
 * there, each data gradient transposes its weights itself. */
bool pm_plan_keeps_copies(const struct pm_plan *p);
/* Counts what one run does on the plan's device. Before the plan is loaded, nothing is compiled
 * (pm_program_count). The update of several clones, which runs on the host, is not included. */
int pm_plan_counts(const struct pm_plan *p, struct pm_counts *out);
/* Adds the counts to a JSON object. Counts that do not apply to the device are left out. */
int pm_plan_counts_json(const struct pm_plan *p, struct cJSON *o);
/* Returns the bytes_moved of one call (pm_call_bytes). */
uint64_t pm_plan_call_bytes(const struct pm_plan *p, size_t call);

/* ---- running a loaded plan ------------------------------------------------------------- */

/* Returns host memory of an input of micro-batch m; asserts that the name exists. */
void *pm_plan_input(struct pm_plan *p, int slot, const char *name, int m);
struct pm_step *pm_plan_step(struct pm_plan *p, int slot);
int pm_plan_submit(struct pm_plan *p, int slot);
int pm_plan_wait(struct pm_plan *p, int slot);
/* Returns an output's host memory, of micro-batch m, or NULL if there is none. Call it after
 * pm_plan_wait. A node whose value is a constant of the plan, such as anchors, is no transfer: all
 * micro-batches share its memory. */
const void *pm_plan_output(const struct pm_plan *p, int slot, const char *name, int m);
/* Returns the sum of all loss scalars (their shares of the batch's loss), in double. */
double pm_plan_loss(const struct pm_plan *p, int slot);
/* The loss of one layer. */
struct pm_loss_part {
    const char *name; /* the layer's; lives as long as the plan */
    double value;
};
/* Returns the number of loss layers of a loaded plan. */
int pm_plan_loss_count(const struct pm_plan *p);
/* Writes the loss of each loss layer, in the net's order, summed over all micro-batches. out has
 * pm_plan_loss_count entries. */
void pm_plan_losses(const struct pm_plan *p, int slot, struct pm_loss_part *out);
/* Gradient buckets: ranges of the gradient block in the order they become ready. */
size_t pm_plan_buckets(const struct pm_plan *p);
void pm_plan_bucket(const struct pm_plan *p, size_t i, size_t *offset, size_t *size);
/* Waits for the bucket of the slot's run; the pointer is valid until the slot's next submit. */
int pm_plan_wait_bucket(struct pm_plan *p, int slot, size_t i, const float **out);
/* Returns the seconds that the slot's last run took on the device; after pm_plan_wait. */
double pm_plan_seconds(const struct pm_plan *p, int slot);
/* pm_plan_begun returns pm_seconds at the begin of the slot's last run. pm_plan_call_times writes
 * the begin and end of each of its calls, in seconds since then. See pm_program_begun and
 * pm_program_call_times. */
double pm_plan_begun(const struct pm_plan *p, int slot);
int pm_plan_call_times(const struct pm_plan *p, int slot, double *begin, double *end);
/* Turns the times of calls on or off in a plan created as timeable. No run may be under way. On
 * GPUs a second program of the same calls then runs, with the same results. It is created with the
 * plan. */
void pm_plan_set_timed(struct pm_plan *p, bool on);
/* The list of calls, for checks, benchmarks and profiles. */
const struct pm_planned_call *pm_plan_calls(const struct pm_plan *p, size_t *count);
const struct pm_value *pm_plan_values(const struct pm_plan *p, size_t *count);
const char *pm_plan_variant(const struct pm_plan *p, size_t call);
struct pm_device *pm_plan_device(const struct pm_plan *p);

#ifdef __cplusplus
}
#endif

#endif
