/* check: what a layer's test file says. It is the layer's cases, written as config text, and a
 * forward reference in double precision that shares no code with src/; all modes of `check` follow
 * from these (check.c lists them).
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
 * A reference is called many times with slightly changed inputs (central differences), so its
 * cases are small: up to some thousand values. `large` cases skip it. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <string.h>

#include <pumice/kernel.h>

/* The node under test has this name, so its variables are "layer/weights", ..., and its random
 * stream is pm_hash("layer"). Its plan's first example is CHECK_FIRST_EXAMPLE, its share of the
 * loss CHECK_SHARE, and struct pm_step holds CHECK_STEP, CHECK_SEED, and CHECK_LR. */
#define CHECK_NAME "layer"
#define CHECK_STEP 3u
#define CHECK_SEED 0x1234567890abcdefull
#define CHECK_FIRST_EXAMPLE 5
#define CHECK_SHARE 0.25
#define CHECK_LR 0.125

struct check_case {
    /* As for pm_net_add: "conv2d filters=4 kernel=[3,5] stride=2". NULL ends the list. */
    const char *options;
    /* Shapes of the inputs, space-separated, slowest axis first: "2x7x7x3 i32:2@0..9". A prefix
     * names another type than f32 (i32, u32, u8); @low..high is the range of the values, inclusive
     * for integers, at first -2..2, and 0..1 for integers. Floats of one input are all distinct, so
     * maxima have no ties; add `~` ("~8x8") for values that repeat (small integers). */
    const char *inputs;
    bool train;
    /* Ranges of variables where -1..1 does not fit: "gamma@0.5..1.5 moving_variance@0.1..2". */
    const char *variables;
    bool large;             /* parity and bench only: the reference is not run */
    unsigned no_gradient;   /* bit i: no gradient of input i is asked for (weights of a loss) */
    unsigned unread;        /* bit k: nobody reads output k, so that it has no gradient */
};

/* Values as a reference sees them, row-major; images are NHWC. mag[i] is the sum of the magnitudes
 * of the terms that v[i] was added up from: float32 arithmetic is allowed an error of `ulps` x
 * 2^-24 x mag[i]. NULL for inputs and variables. */
struct ref_array {
    struct pm_shape shape;
    size_t count;
    double *v, *mag;
};

struct ref {
    const char *options;    /* the case's text */
    bool train;
    int inputs, vars;
    struct ref_array in[8];    /* read; integers come as doubles */
    struct ref_array var[8];   /* read; in the order of the layer's pm_node_variable calls */
    /* Made by the reference: the output with ref_output. A loss writes its scalar there (shape of
     * rank 0) without CHECK_SHARE. Its shape must be the layer's, by the reference's own rule. */
    struct ref_array y;
    /* Several outputs, made with ref_outputs, lie behind one another in y.v; their shapes. */
    int outputs;
    struct pm_shape out[8];
    /* What update() leaves in variable k (batch norm's moving averages), made with ref_update;
     * count 0 for variables that stay as they are. */
    struct ref_array after[8];
};
/* Gives y its shape; v and mag are zero. */
void ref_output(struct ref *r, struct pm_shape shape);
/* Gives y room for outputs of these shapes; v and mag are zero. */
void ref_outputs(struct ref *r, int count, const struct pm_shape *shape);
/* Makes after[k] as var[k] is; v is a copy, mag is zero. */
void ref_update(struct ref *r, int k);

/* Options of the case's text. */
double ref_number(const struct ref *r, const char *key, double otherwise);
/* A list or one number (count 1); 0 when absent. */
int ref_numbers(const struct ref *r, const char *key, double *out, int max);
/* Whether option `key` stands there as `value`; when absent, whether otherwise is value. */
bool ref_says(const struct ref *r, const char *key, const char *value, const char *otherwise);
/* Element of a rank-4 array. */
static inline size_t ref_at(const struct ref_array *a, int n, int h, int w, int c)
{
    const int *d = a->shape.dim;
    return (((size_t)n * d[1] + h) * d[2] + w) * d[3] + c;
}
/* Window geometry by TensorFlow's rules: output size and the number of cells added before. padding
 * is option "padding" ("same", "valid", "explicit" with before and after). */
int ref_window(const struct ref *r, const char *otherwise, int in, int kernel, int stride,
               int dilation, int explicit_before, int explicit_after, int *before);

struct pm_layer_test {
    const struct check_case *cases;
    void (*reference)(struct ref *r);
    /* Allowed error of the output and of gradients in units of 2^-24 x mag; 0 = 16 and 64. */
    double ulps, grad_ulps;
    /* Allowed difference between two drivers in units of 2^-24 x the largest value of a buffer;
     * 0 = 64: sums of up to 10^5 terms of random sign in another order. */
    double parity_ulps;
    bool loss;              /* the result is pm_loss_scalar's, and there is no dy */
};

#endif
