/* The activations by their definitions. The code computes some derivatives from y, and so
 * inherits y's rounding error: 1 - y (sigmoid) and 1 - y^2 (tanh) are smaller than y by up to
 * e^x. Their gradients are allowed 4 ulps x e^3 (x <= 3) and 4 ulps x 2 / (1 - tanh(2)^2). */
#include "check.h"

static double slope_of(const struct ref *r)
{
    return ref_number(r, "slope", 0.01);
}

static double f_relu(const struct ref *r, double x) { (void)r; return fmax(x, 0); }
static double f_relu6(const struct ref *r, double x) { (void)r; return fmin(fmax(x, 0), 6); }
static double f_leaky_relu(const struct ref *r, double x) { return x > 0 ? x : slope_of(r) * x; }
static double f_sigmoid(const struct ref *r, double x) { (void)r; return 1 / (1 + exp(-x)); }
static double f_tanh(const struct ref *r, double x) { (void)r; return tanh(x); }
static double f_hard_sigmoid(const struct ref *r, double x) { return f_relu6(r, x + 3) / 6; }
static double f_hard_swish(const struct ref *r, double x) { return x * f_relu6(r, x + 3) / 6; }

/* Each function takes a few steps from y, each with a relative error. Only x + 3 has a rounding
 * error of the size of its terms. */
static void apply(struct ref *r, double (*f)(const struct ref *, double), double mag_of_sum)
{
    ref_output(r, r->in[0].shape);
    for (size_t i = 0; i < r->y.count; i++) {
        const double x = r->in[0].v[i];

        r->y.v[i] = f(r, x);
        r->y.mag[i] = fabs(r->y.v[i]) + mag_of_sum * (fabs(x) + 3) / 6 * fmax(fabs(x), 1);
    }
}

#define ACTIVATION(name, exact, tolerance, grad_tolerance, ...)                                    \
    static void ref_##name(struct ref *r)                                                          \
    {                                                                                              \
        apply(r, f_##name, exact);                                                                 \
    }                                                                                              \
    static const struct check_case name##_cases[] = { __VA_ARGS__, { 0 } };                        \
    const struct pm_layer_test pm_test_##name = { name##_cases, ref_##name, .ulps = tolerance,     \
                                                  .grad_ulps = grad_tolerance }

#define SIZES(layer)                                                             \
    { layer, "2x5x7x3" }, { layer, "4x8@-8..8", .train = true }, { layer, "1" }, \
        { layer, "3x1x2" }, { layer, "5x1000@-9..9" },                           \
    {                                                                            \
        layer, "8x56x56x64", .large = true                                       \
    }

ACTIVATION(relu, 0, 0, 0, SIZES("relu"), { "relu", "5x1000001", .large = true });
ACTIVATION(relu6, 0, 0, 0, SIZES("relu6"));
ACTIVATION(leaky_relu, 0, 0, 0, SIZES("leaky_relu"), { "leaky_relu slope=0.2", "33x18@-4..4" });
ACTIVATION(hard_sigmoid, 1, 0, 0, SIZES("hard_sigmoid"));
ACTIVATION(hard_swish, 1, 0, 0, SIZES("hard_swish"));
ACTIVATION(sigmoid, 0, 0, 80, { "sigmoid", "2x5x7x3" }, { "sigmoid", "4x8@-3..3" },
           { "sigmoid", "100x11@-80..88", .no_gradient = 1 }, { "sigmoid", "7x1001@-3..3" },
           { "sigmoid", "8x56x56x64", .large = true });
ACTIVATION(tanh, 0, 0, 120, { "tanh", "2x5x7x3" }, { "tanh", "4x8@-0.35..0.35" },
           { "tanh", "100x11@-60..60", .no_gradient = 1 }, { "tanh", "7x1001" },
           { "tanh", "8x56x56x64", .large = true });
