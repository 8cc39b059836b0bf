/* layer: a layer is a row: options, shape inference, and two functions that append kernel calls. A
 * node is a configured layer in a net. A new layer needs src/layers/NAME.c, its shaders, its cases
 * in tests/layers/NAME_test.c and one line in src/layers/layers.def. Its onnx() uses the functions
 * of src/onnx/export_nodes.h. */
#ifndef PUMICE_LAYER_H
#define PUMICE_LAYER_H

#include <pumice/kernel.h>
#include <pumice/options.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PM_MAX_INPUTS = 24, PM_MAX_NODE_OUTPUTS = 8, PM_MAX_VARS = 8, PM_MAX_SAVED = 12 };
enum { PM_MAX_JOINED = 8 }; /* most inputs of the layers concat and add */

/* ---- variables ------------------------------------------------------------------------- */

enum pm_init_kind {
    PM_INIT_CONSTANT,         /* a */
    PM_INIT_TRUNCATED,        /* truncated normal, stddev a */
    PM_INIT_NORMAL,           /* normal, stddev a */
    PM_INIT_XAVIER,           /* uniform +-sqrt(6 / (fan_in + fan_out)) */
    PM_INIT_VARIANCE_SCALING, /* truncated normal, stddev sqrt(1.3 * a / fan_in), a = 2 */
    PM_INIT_VARIANCE_FAN_OUT, /* the same over fan_out */
    PM_INIT_VARIANCE_UNIFORM, /* uniform +-sqrt(3 a / fan_in) */
    /* a times a random matrix of orthonormal columns or, if it is wider than high, rows. The matrix
     * is [all axes but the last][the last]. TensorFlow's orthogonal_initializer; a = 1 */
    PM_INIT_ORTHOGONAL,
    PM_INIT_GIVEN,            /* read(from, ...): values of a model file or of a list */
};
struct pm_init {
    enum pm_init_kind kind;
    float a;
    /* GIVEN: reads elements first..first+count-1 in the variable's own order. from is borrowed and
     * must outlive the variable's first use: values stay in their file until they are needed. */
    int (*read)(const void *from, size_t first, size_t count, float *out);
    const void *from;
    size_t count; /* GIVEN: how many values there are; 0: as many as the variable needs */
};
/* "truncated(0.1)", "xavier", "variance_scaling(2)", "constant(0.1)", "normal(0.01)",
 * "variance_scaling_fan_out(2)", "variance_scaling_uniform(1)", "orthogonal(1)",
 * "values(0,0.5,1)". values() lists all numbers of the variable in their order; the result borrows
 * its text. */
int pm_init_parse(const char *text, struct pm_init *out, const char *where);

struct pm_variable {
    const char *name;      /* TensorFlow's, "LeNet/conv1/weights" */
    struct pm_shape shape;
    struct pm_init init;
    int fan_in, fan_out;
    bool trainable;        /* has a gradient and slots; false for moving averages */
    bool regularize;       /* weight decay applies */
    /* If training starts from a checkpoint that lacks it, it silently keeps its initial value.
     * Example: a checkpoint of the same net without quantisation. */
    bool late;
    int index;             /* in the net's list */
};

/* ---- nodes ----------------------------------------------------------------------------- */

/* A node is a configured layer. For its readers it is also the layer's first output. If a layer has
 * several outputs, output k = 1, 2, ... is its own node NAME:k, whose one input is the layer's
 * node. So everything that takes a node takes any output: a layer's input, a head, a plan's output,
 * a name in a JSON list. Such a node makes no calls; the layer's functions do its work. */
struct pm_layer;
struct pm_net;

enum { PM_ROWS_MIXED = -2 }; /* of out_rows */
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
    struct pm_node *share;        /* node whose variables it uses, or NULL */
    int vars[PM_MAX_VARS];        /* variables, by index in the net */
    int var_count;
    struct pm_net *net;           /* its net, which owns it; borrowed */

    /* Set by infer(). */
    struct pm_shape out_shape;
    enum pm_type out_type;
    /* Rows of the output's first axis per example of the batch: 1, or P if an example has P
     * proposals. An example's rows are next to each other. 0: the rows belong to no example, as in
     * a parameter. PM_ROWS_MIXED: the first axis does not count the examples' rows, for example
     * after a transpose. infer() need not set it: by default the output has as many examples as the
     * first input that has rows. */
    int out_rows;

    /* Values of this plan. The planner sets them while forward() and backward() run. */
    struct pm_tensor x, dx;                   /* x = xs[0], dx = dxs[0] */
    union { struct pm_tensor y, ys[PM_MAX_NODE_OUTPUTS]; };   /* ys[k]: output k; y = ys[0] */
    /* Gradients of the outputs. dys[k].value < 0: output k is not needed, its gradient is zero. */
    union { struct pm_tensor dy, dys[PM_MAX_NODE_OUTPUTS]; };
    struct pm_tensor xs[PM_MAX_INPUTS], dxs[PM_MAX_INPUTS]; /* dxs[i].value < 0: not wanted */
    struct pm_tensor w[PM_MAX_VARS], dw[PM_MAX_VARS];       /* dw[i].value < 0: not wanted */
    struct pm_tensor saved[PM_MAX_SAVED];     /* forward() sets them for backward(), see pm_save */
    bool train;                               /* training plan: batch statistics, dropout on */
};

/* ---- calls: what forward() and backward() append to ------------------------------------ */

struct pm_calls;

/* Appends a call. count: work items. params is copied. bufs: in row order, PM_NO_TENSOR for absent
 * ones and for t: scratch, which the planner makes. */
void pm_call(struct pm_calls *c, const struct pm_kernel *k, size_t count, const void *params,
             int nbufs, const struct pm_tensor *bufs);
#define PM_BUFS(...)                                                                               \
    (int)(sizeof((struct pm_tensor[]){ __VA_ARGS__ }) / sizeof(struct pm_tensor)),                 \
        (const struct pm_tensor[]){ __VA_ARGS__ }
/* Makes a value that lives from the first call that writes it to the last call that reads it. */
struct pm_tensor pm_temp(struct pm_calls *c, struct pm_shape shape, enum pm_type type);
/* Like pm_temp, and stores the value in n->saved[i] for backward(). */
struct pm_tensor pm_save(struct pm_calls *c, struct pm_node *n, int i, struct pm_shape shape,
                         enum pm_type type);
/* Returns t under another shape of equal count, with the same storage. */
struct pm_tensor pm_view(struct pm_tensor t, struct pm_shape shape);
/* Makes a constant. Its contents are copied into the plan and written to the device once. */
struct pm_tensor pm_calls_constant(struct pm_calls *c, const char *name, const void *data,
                                   struct pm_shape shape, enum pm_type type);
/* Returns struct pm_step on the device as a U32 tensor of its words. */
struct pm_tensor pm_step_tensor(struct pm_calls *c);
/* Returns the index of the first row of n's output in this plan among the rows of the whole batch.
 * Random numbers that a layer draws by this row index do not depend on the clone or the
 * micro-batch. If the rows are PM_ROWS_MIXED, each micro-batch of each clone has indices of its
 * own. */
int pm_first_row(const struct pm_calls *c, const struct pm_node *n);
/* Returns the share of the whole batch's loss that this plan's examples carry. Losses and their
 * gradients are multiplied by it. */
float pm_loss_share(const struct pm_calls *c);
/* Makes a scalar that is added to total_loss; exactly one call writes it. */
struct pm_tensor pm_loss_scalar(struct pm_calls *c, const char *name);
/* Updates moving averages of a layer, all F32 [c]:
 *     moving_mean -= rate (moving_mean - mean)
 *     moving_variance -= rate (moving_variance - factor variance)
 * A channel whose variance is negative, because there were no values, keeps its averages.
 * update() calls it, at most once for each node and step. Make mean and variance with pm_save, and
 * pass them to no second call. The step updates the averages of all layers in one call, or, where
 * layers share variables, in one call for the first layer of each variable, one for the second, and
 * so on. */
void pm_moving_average(struct pm_calls *c, struct pm_tensor mean, struct pm_tensor variance,
                       struct pm_tensor moving_mean, struct pm_tensor moving_variance, float rate,
                       float factor);
/* Stores the low and high word of the node's random stream (pm_hash of its name). */
void pm_stream(const struct pm_node *n, uint32_t out[2]);

/* ---- layer rows ------------------------------------------------------------------------ */

/* Adds a variable to the node; infer() calls it in a fixed order: n->w[k] is the k-th. `suffix` is
 * appended to the node's scope ("weights"). Returns PM_ECONFIG if the net already has such a
 * variable, or if its shape differs from a shared one. */
int pm_node_variable(struct pm_node *n, const char *suffix, struct pm_shape shape,
                     struct pm_init init, int fan_in, int fan_out, bool trainable, bool regularize);
/* Adds the node's next output after the first, with the given shape and type; infer() calls it. The
 * first call makes output 1. The first output is described by out_shape and out_type. Returns
 * PM_ECONFIG beyond PM_MAX_NODE_OUTPUTS outputs, or if the net already has a node of that name. */
int pm_node_output(struct pm_node *n, struct pm_shape shape, enum pm_type type);
/* Marks variable k of the node as late (struct pm_variable). */
void pm_node_late(struct pm_node *n, int k);

struct pm_export;

struct pm_layer {
    const char *name, *help;
    const struct pm_opt *opts;
    size_t cfg_size;
    int min_inputs, max_inputs; /* 0, 0 means exactly one */
    bool view;                  /* y is x under another shape: no calls, no copy */
    bool copies_values;         /* in evaluation every value of y is a value of its one input */
    /* backward() passes each wanted dxs[i] to calls only as a u: buffer of a row with the member
     * `accumulate`. Then dxs[i] may hold the gradient from other readers of the input already, and
     * the calls add to it. */
    bool accumulates;
    /* A node of this layer may share the variables of a node of this layer or of this other one.
     * NULL: there is no other one. */
    const struct pm_layer *variables_of;
    bool loss;                  /* backward() starts here: there is no dy, and y is not used */
    /* Sets out_shape and out_type and adds variables. Its error names the node, the option, the
     * value and the allowed range. The inputs' out_shape are known. */
    int (*infer)(struct pm_node *n);
    /* Writes every output. If an output equals an input, it may set ys[k] to that xs[i] instead of
     * writing ys[k]. */
    void (*forward)(struct pm_node *n, struct pm_calls *c);
    /* Writes the wanted dxs[] wholly (accumulates: or adds to them) and adds to the wanted dw[].
     * dys[k] is the gradient of output k. dys[0] exists if the layer has one output; if it has
     * several, at least one dys[k] exists. If the gradient passes unchanged, it may set n->dxs[i]
     * to n->dy instead of writing it. NULL: no gradient (inputs). */
    void (*backward)(struct pm_node *n, struct pm_calls *c);
    /* Appends calls with side effects that run once per step, after the update's finite flag is
     * known, or passes moving averages to pm_moving_average. flag: a U32 scalar, non-zero if the
     * step is finite. NULL: none. */
    void (*update)(struct pm_node *n, struct pm_calls *c, struct pm_tensor flag);
    /* Decay of the moving averages that update() maintains. NULL: update() maintains other state,
     * which cannot be merged across devices or across the parts of a batch. */
    float (*moving_decay)(const struct pm_node *n);
    /* Appends the ONNX operators that compute y in evaluation. Returns the name of y's value in the
     * graph, which may be an input's. pm_export_output sets the values of further outputs. NULL in
     * losses only: losses are not exported. */
    const char *(*onnx)(const struct pm_node *n, struct pm_export *g);
    /* Whether evaluation begins with z = scale x + shift per channel, as in batch norm. Such a step
     * can be folded into the layer before it. Fills scale and shift. NULL: no. */
    bool (*affine)(const struct pm_node *n, struct pm_export *g, float *scale, float *shift);
};
int pm_infer_same(struct pm_node *n); /* output = first input's shape and type, no variables */

const struct pm_layer *pm_layer_find(const char *name); /* NULL when unknown */
const struct pm_layer *const *pm_layers(size_t *count); /* all, in layers.def's order */

/* ---- geometry shared by convolutions and pooling --------------------------------------- */

/* TensorFlow's rule. before = pixels added at the top or left. */
enum pm_padding { PM_PAD_SAME, PM_PAD_VALID, PM_PAD_EXPLICIT };
struct pm_axis { int in, out, before, after; };
/* Returns the geometry of one axis. kernel, stride and dilation are >= 1. With PM_PAD_EXPLICIT,
 * before and after are given. out < 1 if the window does not fit. */
struct pm_axis pm_axis_of(int in, int kernel, int stride, int dilation, enum pm_padding padding,
                          int before, int after);

#ifdef __cplusplus
}
#endif

#endif
