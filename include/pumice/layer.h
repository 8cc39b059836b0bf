/* layer: a layer is a row: options, shape inference, and two functions that append kernel calls.
 * A node is a configured layer in a net. New layer: src/layers/NAME.c, its shaders, its cases in
 * tests/layers/NAME_test.c, one line in src/layers/layers.def. Its onnx() writes with what
 * src/onnx/export_nodes.h has. */
#ifndef PUMICE_LAYER_H
#define PUMICE_LAYER_H

#include <pumice/kernel.h>
#include <pumice/options.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PM_MAX_INPUTS = 8, PM_MAX_NODE_OUTPUTS = 8, PM_MAX_VARS = 8, PM_MAX_SAVED = 12 };

/* ---- variables ------------------------------------------------------------------------- */

enum pm_init_kind {
    PM_INIT_CONSTANT,         /* a */
    PM_INIT_TRUNCATED,        /* truncated normal, stddev a */
    PM_INIT_NORMAL,           /* normal, stddev a */
    PM_INIT_XAVIER,           /* uniform +-sqrt(6 / (fan_in + fan_out)) */
    PM_INIT_VARIANCE_SCALING, /* truncated normal, stddev sqrt(1.3 * a / fan_in), a = 2 */
    PM_INIT_VARIANCE_FAN_OUT, /* the same over fan_out */
    PM_INIT_VARIANCE_UNIFORM, /* uniform +-sqrt(3 a / fan_in) */
    PM_INIT_GIVEN,            /* read(from, ...): values of a model that was read */
};
struct pm_init {
    enum pm_init_kind kind;
    float a;
    /* GIVEN: elements first..first+count-1 in the variable's own order. from is borrowed and
     * outlives the variable's first use: values stay in the file that has them until they are asked
     * for. */
    int (*read)(const void *from, size_t first, size_t count, float *out);
    const void *from;
};
/* "truncated(0.1)", "xavier", "variance_scaling(2)", "constant(0.1)", "normal(0.01)",
 * "variance_scaling_fan_out(2)", "variance_scaling_uniform(1)". */
int pm_init_parse(const char *text, struct pm_init *out, const char *where);

struct pm_variable {
    const char *name;      /* TensorFlow's, "LeNet/conv1/weights" */
    struct pm_shape shape;
    struct pm_init init;
    int fan_in, fan_out;
    bool trainable;        /* has a gradient and slots; moving averages do not */
    bool regularize;       /* weight decay applies */
    bool late;             /* where training starts from a checkpoint that lacks it, as one of the same net
                            * without quantisation does, it keeps its initial value without a word */
    int index;             /* in the net's list */
};

/* ---- nodes ----------------------------------------------------------------------------- */

/* A node is a configured layer and, for its readers, the layer's first output. Each further output
 * k = 1, 2, ... of a layer with several is a node of its own, called NAME:k, whose one input is the
 * layer's node. So everything that takes a node (a layer's input, a head, a plan's output, a name
 * in a JSON list) takes any output. Such a node makes no calls: the layer's functions do its work.
 */
struct pm_layer;
struct pm_net;

struct pm_node {
    const struct pm_layer *layer;
    const char *name;             /* unique in the net */
    const char *scope;            /* beginning of its variables' names; at first the name */
    void *cfg;                    /* the layer's option struct, after parsing */
    int index;
    struct pm_node *in[PM_MAX_INPUTS]; /* borrowed */
    int inputs;
    /* out[0] is this node, out[k] the node of output k. Borrowed. */
    struct pm_node *out[PM_MAX_NODE_OUTPUTS];
    int outputs;                  /* at least 1 */
    int output;                   /* 0; k: this node stands for output k of in[0] */
    struct pm_node *share;        /* node whose variables are used, or NULL */
    int vars[PM_MAX_VARS];        /* variables, by index in the net */
    int var_count;
    struct pm_net *net;           /* owner, borrowed */

    /* Set by infer(). */
    struct pm_shape out_shape;
    enum pm_type out_type;
    /* Rows of the output's first axis for each example of the batch: 1, or P where an example has P
     * proposals. An example's rows are next to each other. 0: the rows belong to no example, as
     * those of a parameter. infer() need not set it: by default the output has as many examples as
     * the first input with rows. */
    int out_rows;

    /* Set for the time of forward() and backward() by the planner: values of this plan. */
    struct pm_tensor x, dx;                   /* x = xs[0], dx = dxs[0] */
    union { struct pm_tensor y, ys[PM_MAX_NODE_OUTPUTS]; };   /* ys[k]: output k; y = ys[0] */
    /* Gradients of the outputs; dys[k].value < 0: nobody needs output k, its gradient is zero. */
    union { struct pm_tensor dy, dys[PM_MAX_NODE_OUTPUTS]; };
    struct pm_tensor xs[PM_MAX_INPUTS], dxs[PM_MAX_INPUTS]; /* dxs[i].value < 0: not wanted */
    struct pm_tensor w[PM_MAX_VARS], dw[PM_MAX_VARS];       /* dw[i].value < 0: not wanted */
    struct pm_tensor saved[PM_MAX_SAVED];     /* made by forward() with pm_save, for backward() */
    bool train;                               /* training plan: batch statistics, dropout on */
};

/* ---- calls: what forward() and backward() append to ------------------------------------ */

struct pm_calls;

/* Appends a call. count: work items. params is copied. bufs in row order, PM_NO_TENSOR for absent
 * ones and for t: scratch (the planner makes those). */
void pm_call(struct pm_calls *c, const struct pm_kernel *k, size_t count, const void *params,
             int nbufs, const struct pm_tensor *bufs);
#define PM_BUFS(...)                                                                               \
    (int)(sizeof((struct pm_tensor[]){ __VA_ARGS__ }) / sizeof(struct pm_tensor)),                 \
        (const struct pm_tensor[]){ __VA_ARGS__ }
/* A value that lives from its first writing call to its last reading one. */
struct pm_tensor pm_temp(struct pm_calls *c, struct pm_shape shape, enum pm_type type);
/* The same, remembered in n->saved[i] for backward(). */
struct pm_tensor pm_save(struct pm_calls *c, struct pm_node *n, int i, struct pm_shape shape,
                         enum pm_type type);
/* t under another shape of equal count: same storage. */
struct pm_tensor pm_view(struct pm_tensor t, struct pm_shape shape);
/* Contents are copied into the plan and written to the device once. */
struct pm_tensor pm_calls_constant(struct pm_calls *c, const char *name, const void *data,
                                   struct pm_shape shape, enum pm_type type);
/* struct pm_step on the device, a U32 tensor of its words. */
struct pm_tensor pm_step_tensor(struct pm_calls *c);
/* Index of the first row of n's output in this plan among the rows of the whole batch. A random
 * number that is drawn for a row by this index does not depend on the clone or the micro-batch. */
int pm_first_row(const struct pm_calls *c, const struct pm_node *n);
/* Share of the whole batch's loss that this plan's examples carry; losses and their gradients are
 * multiplied by it. */
float pm_loss_share(const struct pm_calls *c);
/* A scalar that joins total_loss; written by exactly one call. */
struct pm_tensor pm_loss_scalar(struct pm_calls *c, const char *name);
/* Low and high word of the node's random stream (pm_hash of its name). */
void pm_stream(const struct pm_node *n, uint32_t out[2]);

/* ---- layer rows ------------------------------------------------------------------------ */

/* Used by infer() to add the node's variables, in a fixed order: n->w[k] is the k-th. `suffix` is
 * appended to the node's scope ("weights"). Returns PM_ECONFIG when the net has such a variable, or
 * on a clash of shapes with a shared one. */
int pm_node_variable(struct pm_node *n, const char *suffix, struct pm_shape shape,
                     struct pm_init init, int fan_in, int fan_out, bool trainable, bool regularize);
/* Used by infer(): adds the node's next output after the first, which out_shape and out_type
 * describe; the first call makes output 1. Returns PM_ECONFIG beyond PM_MAX_NODE_OUTPUTS outputs,
 * or when the net has a node of its name. */
int pm_node_output(struct pm_node *n, struct pm_shape shape, enum pm_type type);
/* Makes variable k of the node a late one. */
void pm_node_late(struct pm_node *n, int k);

struct pm_export;

struct pm_layer {
    const char *name, *help;
    const struct pm_opt *opts;
    size_t cfg_size;
    int min_inputs, max_inputs; /* 0, 0 means exactly one */
    bool view;                  /* y is x under another shape: no calls, no copy */
    bool copies_values;         /* in evaluation every value of y is a value of its one input */
    bool loss;                  /* backward() starts here: there is no dy, y is not used */
    /* Sets out_shape and out_type, adds variables; fails with a line naming the node, the option,
     * the value and the allowed range. Inputs' out_shape are known. */
    int (*infer)(struct pm_node *n);
    /* Writes every output. Where the values of an output are those of an input, ys[k] may be set to
     * that xs[i] instead of being written. */
    void (*forward)(struct pm_node *n, struct pm_calls *c);
    /* dys[k] is the gradient of output k; writes the wanted dxs[] wholly, adds to the wanted dw[].
     * dys[0] exists where the layer has one output; of several outputs at least one does. Where the
     * gradient passes unchanged, n->dxs[i] may be set to n->dy instead of being written. NULL: no
     * gradient (inputs). */
    void (*backward)(struct pm_node *n, struct pm_calls *c);
    /* Calls with side effects, once per step, after the update's finite flag is known: batch-norm
     * moving averages. flag: a U32 scalar, non-zero when the step is finite. NULL: none. */
    void (*update)(struct pm_node *n, struct pm_calls *c, struct pm_tensor flag);
    /* Decay of the moving averages that update() maintains. NULL: update() maintains other state,
     * which cannot be merged across devices or across the parts of a batch. */
    float (*moving_decay)(const struct pm_node *n);
    /* Appends the ONNX operators that compute y in evaluation; returns y's value there, which may
     * be an input's. pm_export_output sets the values of further outputs. NULL in losses only:
     * nothing of them is exported. */
    const char *(*onnx)(const struct pm_node *n, struct pm_export *g);
    /* Whether evaluation begins with z = scale x + shift per channel, as batch norm's does, which
     * can then be folded into the layer before it; fills both. NULL: no. */
    bool (*affine)(const struct pm_node *n, struct pm_export *g, float *scale, float *shift);
};
int pm_infer_same(struct pm_node *n); /* output = first input's shape and type, no variables */

const struct pm_layer *pm_layer_find(const char *name); /* NULL when unknown */
const struct pm_layer *const *pm_layers(size_t *count); /* all, in layers.def's order */

/* ---- geometry shared by convolutions and pooling --------------------------------------- */

/* TensorFlow's rule. before = pixels added at the top or left. */
enum pm_padding { PM_PAD_SAME, PM_PAD_VALID, PM_PAD_EXPLICIT };
struct pm_axis { int in, out, before, after; };
/* kernel, stride, dilation >= 1; with PM_PAD_EXPLICIT before/after are given. out < 1 when the
 * window does not fit. */
struct pm_axis pm_axis_of(int in, int kernel, int stride, int dilation, enum pm_padding padding,
                          int before, int after);

#ifdef __cplusplus
}
#endif

#endif
