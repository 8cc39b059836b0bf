/* check: the contents of a layer's test file. It holds the layer's cases, written as config
 * text, and a forward reference in double precision that shares no code with src/. All modes of
 * `check` use these two (check.c lists the modes).
 *
 *     static void leaky_relu(struct ref *r)
 *     {
 *         double slope = ref_number(r, "slope", 0.01);
 *
 *         ref_output(r, r->in[0].shape);
 *         for (size_t i = 0; i < r->y.count; i++) {
 *             double x = r->in[0].v[i];
 *             r->y.v[i] = x > 0 ? x : slope * x;
 *             r->y.mag[i] = fabs(x);
 *         }
 *     }
 *     static const struct check_case cases[] = {
 *         { "leaky_relu", "2x5x7x3" },
 *         { "leaky_relu slope=0.2", "33x17@-4..4", .train = true },
 *         { 0 },
 *     };
 *     const struct pm_layer_test pm_test_leaky_relu = { cases, leaky_relu };
 *
 * Central differences call a reference many times with slightly changed inputs, so its cases are
 * small: up to some thousand values. Cases marked `large` do not call it. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <string.h>

#include <pumice/kernel.h>

/* Name of the node under test. Its variables are "layer/weights", ..., its random stream is
 * pm_hash("layer"). The plan's first example is CHECK_FIRST_EXAMPLE, its share of the loss
 * CHECK_SHARE, and struct pm_step holds CHECK_STEP, CHECK_SEED and CHECK_LR. */
#define CHECK_NAME "layer"
#define CHECK_STEP 3u
#define CHECK_SEED 0x1234567890abcdefull
#define CHECK_FIRST_EXAMPLE 5
#define CHECK_SHARE 0.25
#define CHECK_LR 0.125

struct check_case {
    /* Options as for pm_net_add: "conv2d filters=4 kernel=[3,5] stride=2". NULL ends the list. */
    const char *options;
    /* Shapes of the inputs, separated by blanks, slowest axis first: "2x7x7x3 i32:2@0..9". A
     * prefix names a type other than f32 (i32, u32, u8). @low..high is the range of the values,
     * inclusive for integers; default -2..2, for integers 0..1. The floats of one input are all
     * distinct, so maxima have no ties. `~` ("~8x8") asks for values that repeat (small
     * integers). */
    const char *inputs;
    bool train;
    /* Ranges of variables other than -1..1: "gamma@0.5..1.5 moving_variance@0.1..2". */
    const char *variables;
    bool large;             /* parity and bench only: the reference is not run */
    unsigned no_gradient;   /* bit i: input i gets no gradient (weights of a loss) */
    unsigned unread;        /* bit k: output k has no reader and so no gradient */
    bool transposes;        /* as a plan for shaders: data gradients read transposed weights, which
                             * the list's first call makes */
    bool no_onnx;           /* ONNX cannot express it, and the export says so */
};

/* An array as references see it, row-major; images are NHWC. mag[i] is the sum of the magnitudes
 * of the terms of v[i]: float32 arithmetic may have an error of `ulps` x 2^-24 x mag[i]. mag is
 * NULL for inputs and variables. */
struct ref_array {
    struct pm_shape shape;
    size_t count;
    double *v, *mag;
};

struct ref {
    const char *options;    /* the case's text */
    bool train;
    int inputs, vars;
    struct ref_array in[24];   /* read only; integers as doubles */
    struct ref_array var[8];   /* read only; in the order of the layer's pm_node_variable calls */
    /* Set by the reference with ref_output. A loss writes its scalar here (shape of rank 0), or its
     * scalars in the order of its pm_loss_scalar calls, without CHECK_SHARE. The reference computes
     * the shape by its own rule; it must equal the layer's. */
    struct ref_array y;
    /* Number of outputs and their shapes, set with ref_outputs. They follow each other in y.v. */
    int outputs;
    struct pm_shape out[8];
    /* Variable k after update() (moving averages of batch norm), set with ref_update; count 0
     * for variables that do not change. */
    struct ref_array after[8];
};
/* Sets the shape of y; v and mag become zero. */
void ref_output(struct ref *r, struct pm_shape shape);
/* Gives y room for outputs of these shapes; v and mag become zero. */
void ref_outputs(struct ref *r, int count, const struct pm_shape *shape);
/* Sets after[k] to a copy of var[k]; mag becomes zero. */
void ref_update(struct ref *r, int k);

/* Options of the case's text. */
double ref_number(const struct ref *r, const char *key, double otherwise);
/* A list of numbers or one number (count 1). Returns the count; 0 when the option is absent. */
int ref_numbers(const struct ref *r, const char *key, double *out, int max);
/* True when option `key` has this value. An absent option has the value `otherwise`. */
bool ref_says(const struct ref *r, const char *key, const char *value, const char *otherwise);
/* Element of a rank-4 array. */
static inline size_t ref_at(const struct ref_array *a, int n, int h, int w, int c)
{
    const int *d = a->shape.dim;
    return (((size_t)n * d[1] + h) * d[2] + w) * d[3] + c;
}
/* Geometry of a window by TensorFlow's rules: output size and number of cells added before.
 * padding is the option "padding" ("same", "valid", "explicit" with before and after). */
int ref_window(const struct ref *r, const char *otherwise, int in, int kernel, int stride,
               int dilation, int explicit_before, int explicit_after, int *before);

struct pm_layer_test {
    const struct check_case *cases;
    void (*reference)(struct ref *r);
    /* Allowed error of the output and of gradients in units of 2^-24 x mag; 0 = 16 and 64. */
    double ulps, grad_ulps;
    /* Allowed difference between two drivers in units of 2^-24 x the largest value of a buffer.
     * 0 = 64, for sums of up to 10^5 terms of random sign in different orders. */
    double parity_ulps;
    /* Changes the values of a float input after they are drawn, to make them valid (boxes). NULL:
     * none. */
    void (*arrange)(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v);
    bool loss;              /* the result is pm_loss_scalar's, and there is no dy */
};

#endif
