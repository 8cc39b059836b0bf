/* plan: one net on one device: an array of calls with addresses, memory laid out by lifetime. */
#ifndef PUMICE_PLAN_H
#define PUMICE_PLAN_H

#include <pumice/device.h>
#include <pumice/net.h>

/* ---- variables of one device ----------------------------------------------------------- */

/* Named weights, optimizer slots and gradients, in blocks: trainable variables first, each at a
 * multiple of 256 bytes; a slot's and the gradient's block have the trainable block's layout. */
enum { PM_MAX_SLOTS = 3 };
struct pm_variables {
    struct pm_device *device; /* borrowed */
    struct pm_arena *arena;   /* owned */
    struct pm_variable *list; /* copies, names in the arena */
    int count;
    size_t *offset;           /* bytes in the block */
    size_t trainable_bytes;   /* the block's first part; a multiple of 256 */
    size_t bytes;
    struct pm_buffer *values;            /* bytes */
    struct pm_buffer *grads;             /* trainable_bytes, zeroed once; NULL without training */
    struct pm_buffer *slots[PM_MAX_SLOTS]; /* trainable_bytes each */
    const char *slot_names[PM_MAX_SLOTS];  /* TensorFlow suffix: "Momentum", "RMSProp_1" */
    int slot_count;
};
/* grads and slot_names (NULL-terminated, may be NULL): what to allocate. Values are undefined until
 * pm_variables_init or a load. */
int pm_variables_create(struct pm_device *d, const struct pm_net *net, bool grads,
                        const char *const *slot_names, struct pm_variables **out);
void pm_variables_destroy(struct pm_variables **v);
/* Initial values by (seed, name, element); slots to slot_init[k] (NULL: zeros). */
int pm_variables_init(struct pm_variables *v, uint64_t seed, const float *slot_init);
/* One variable's initial values on the host: count floats. */
void pm_variable_initial(const struct pm_variable *v, uint64_t seed, float *out);
int pm_variables_find(const struct pm_variables *v, const char *name); /* index or -1 */
/* One variable to or from the host. slot -1: the value. */
int pm_variables_read(struct pm_variables *v, int index, int slot, float *dst);
int pm_variables_write(struct pm_variables *v, int index, int slot, const float *src);

/* ---- plans ----------------------------------------------------------------------------- */

enum pm_value_kind {
    PM_VALUE_ACTIVATION, /* planned by lifetime */
    PM_VALUE_SCRATCH,
    PM_VALUE_VARIABLE,   /* in the variables' block */
    PM_VALUE_GRADIENT,   /* in the gradient block */
    PM_VALUE_SLOT,
    PM_VALUE_INPUT,      /* copied in every run */
    PM_VALUE_OUTPUT,     /* copied out every run */
    PM_VALUE_CONSTANT,   /* written once when the plan is made */
};
struct pm_value {
    enum pm_value_kind kind;
    const char *name;
    struct pm_shape shape;
    enum pm_type type;
    size_t bytes;
    int variable;          /* VARIABLE, GRADIENT: index; SLOT: -1 */
    int slot;
    int first, last;       /* calls that use it first and last */
    int alias;             /* value whose storage it shares, or -1 */
    size_t offset;         /* bytes in its class's block */
    const void *constant;  /* CONSTANT: contents, in the arena */
};
enum pm_phase { PM_PHASE_FORWARD, PM_PHASE_BACKWARD, PM_PHASE_UPDATE };
struct pm_planned_call {
    const struct pm_kernel *kernel;
    const char *label;
    enum pm_phase phase;
    size_t count;
    void *params;
    int buf[PM_MAX_BUFS]; /* values, -1 absent */
    int bufs;
};

struct pm_plan_options {
    bool train;             /* forward, loss, backward; else forward only */
    int first_example;      /* of this plan in the whole batch */
    float loss_share;
    int micro_batches;      /* >= 1: the net's calls so many times, gradients added up */
    const char *const *outputs; /* names of nodes whose y is copied out; NULL-terminated or NULL */
    int bucket_bytes;       /* > 0: gradients are copied out in buckets of about this size */
    bool (*frozen)(const char *variable, void *ctx); /* NULL: none */
    void *frozen_ctx;
    /* Appends the update's calls after backward (single clone); NULL: gradients stay. */
    void (*update)(struct pm_calls *c, void *ctx);
    void *update_ctx;
    int slots;              /* ring slots of the program; 0 = 2 */
};
struct pm_plan;
/* Lays out everything without allocating; pm_plan_print and pm_plan_check can follow. */
int pm_plan_create(struct pm_net *net, struct pm_device *d, struct pm_variables *v,
                   const struct pm_plan_options *o, struct pm_plan **out);
/* Allocates, compiles and records. Checks each limit first and names the layer, the number and the
 * remedy. */
int pm_plan_load(struct pm_plan *p);
void pm_plan_destroy(struct pm_plan **p);
/* Memory by class, calls, and (verbose) a line per call and value. */
void pm_plan_print(const struct pm_plan *p, FILE *f, bool verbose);

#endif
