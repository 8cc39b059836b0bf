/* Functions of one number by their definitions. The magnitude is that of the terms that the
 * formula adds in floats: e^x - 1 has the terms e^x and 1; e^(ax) inherits the rounding of ax. */
#include "check.h"

struct number { double y, mag; };

static struct number exact(double y) { return (struct number){ y, fabs(y) }; }

static double alpha_of(const struct ref *r, double otherwise)
{
    return ref_number(r, "alpha", otherwise);
}

static struct number f_elu(const struct ref *r, double x)
{
    const double a = alpha_of(r, 1);
    return x > 0 ? exact(x) : (struct number){ a * expm1(x), a * (exp(x) + 1) };
}

static struct number f_celu(const struct ref *r, double x)
{
    const double a = alpha_of(r, 1), e = exp(x / a);
    return x > 0 ? exact(x) : (struct number){ a * (e - 1), a * (e * (1 - x / a) + 1) };
}

static struct number f_selu(const struct ref *r, double x)
{
    const double a = alpha_of(r, 1.67326319), g = ref_number(r, "gamma", 1.05070102);
    return x > 0 ? exact(g * x) : (struct number){ g * a * expm1(x), g * a * (exp(x) + 1) };
}

/* The form with tanh is x / (1 + e^(-2 inner)). */
static struct number f_gelu(const struct ref *r, double x)
{
    const double inner = sqrt(2 / M_PI) * (x + 0.044715 * pow(x, 3)), share = erf(x * M_SQRT1_2);
    const double y = x / (1 + exp(-2 * inner));

    if (ref_says(r, "approximate", "tanh", "none"))
        return (struct number){ y, fabs(y) * (1 + fabs(2 * inner)) };
    return (struct number){ x / 2 * (1 + share), fabs(x) / 2 * (1 + fabs(share)) };
}

static struct number f_swish(const struct ref *r, double x)
{
    const double b = ref_number(r, "beta", 1), y = x / (1 + exp(-b * x));
    return (struct number){ y, fabs(y) * (1 + fabs(b * x)) };
}

static struct number f_affine(const struct ref *r, double x)
{
    const double a = ref_number(r, "scale", 1), b = ref_number(r, "shift", 0);
    return (struct number){ a * x + b, fabs(a * x) + fabs(b) };
}

static struct number f_power(const struct ref *r, double x)
{
    const double p = ref_number(r, "exponent", 2), y = pow(x, p);
    return (struct number){ y, fabs(y) * (1 + fabs(p * log(fabs(x)))) };
}

static struct number f_clip(const struct ref *r, double x)
{
    return exact(fmin(fmax(x, ref_number(r, "min", -3e38)), ref_number(r, "max", 3e38)));
}

static struct number f_thresholded_relu(const struct ref *r, double x)
{
    return exact(x > alpha_of(r, 1) ? x : 0);
}

static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

#define PLAIN(name, formula)                                                                       \
    static struct number f_##name(const struct ref *r, double x) { (void)r; return exact(formula); }
PLAIN(softplus, softplus(x))
PLAIN(softsign, x / (1 + fabs(x)))
PLAIN(exp, exp(x))
PLAIN(log, log(x))
PLAIN(sqrt, sqrt(x))
PLAIN(reciprocal, 1 / x)
PLAIN(abs, fabs(x))
PLAIN(neg, -x)
PLAIN(mish, x * tanh(softplus(x)))
PLAIN(erf, erf(x))
PLAIN(ceil, ceil(x))
PLAIN(floor, floor(x))
PLAIN(round, nearbyint(x))
PLAIN(sign, (x > 0) - (x < 0))

static void apply(struct ref *r, struct number (*f)(const struct ref *, double))
{
    ref_output(r, r->in[0].shape);
    for (size_t i = 0; i < r->y.count; i++) {
        const struct number v = f(r, r->in[0].v[i]);

        r->y.v[i] = v.y, r->y.mag[i] = v.mag;
    }
}

#define TEST(name, grad_tolerance, ...)                                                            \
    static void ref_##name(struct ref *r) { apply(r, f_##name); }                                  \
    static const struct check_case name##_cases[] = { __VA_ARGS__, { 0 } };                        \
    const struct pm_layer_test pm_test_##name = { name##_cases, ref_##name,                        \
                                                  .grad_ulps = grad_tolerance }
/* Sizes that are and are not multiples of 4; range: "@low..high" of the values. */
#define SIZES(layer, range)                                                                        \
    { layer, "2x5x7x3" range }, { layer, "4x8" range, .train = true }, { layer, "5x1001" range },  \
    { layer, "8x56x56x64" range, .large = true }

TEST(elu, 0, SIZES("elu", "@-6..3"), { "elu alpha=0.3", "33x18@-4..4" });
TEST(celu, 0, SIZES("celu", "@-6..3"), { "celu alpha=2.5", "33x18@-4..4" });
TEST(selu, 0, SIZES("selu", "@-6..3"), { "selu alpha=1.5 gamma=0.7", "33x18@-4..4" });
TEST(softplus, 0, SIZES("softplus", "@-30..30"));
TEST(softsign, 0, SIZES("softsign", "@-9..9"));
TEST(exp, 0, SIZES("exp", "@-20..6"));
TEST(log, 0, SIZES("log", "@0.01..40"), { "log", "5x40@0.9..1.1" },
     { "log", "4x50@1e-6..1e6", .no_gradient = 1 });
TEST(sqrt, 0, SIZES("sqrt", "@0.01..40"));
TEST(reciprocal, 0, SIZES("reciprocal", "@0.2..5"), { "reciprocal", "3x8@-4..-0.1" });
TEST(abs, 0, SIZES("abs", ""));
TEST(neg, 0, SIZES("neg", ""));
TEST(gelu, 0, SIZES("gelu", "@-6..6"), { "gelu approximate=tanh", "2x5x7x3@-6..6" },
     { "gelu approximate=tanh", "4x8" }, { "gelu", "5x1001@-0.5..0.5" });
TEST(swish, 0, SIZES("swish", "@-9..9"), { "swish beta=1.7", "33x18@-4..4" });
TEST(mish, 0, SIZES("mish", "@-9..30"));
TEST(clip, 0, SIZES("clip min=0 max=1", ""), { "clip min=-0.5", "3x18" },
     { "clip max=0.3", "3x18" }, { "clip", "3x18" });
TEST(thresholded_relu, 0, SIZES("thresholded_relu", ""), { "thresholded_relu alpha=0.2", "3x18" });
TEST(affine, 0, SIZES("affine scale=2 shift=-0.5", ""), { "affine shift=3", "3x18" });
TEST(power, 0, SIZES("power", ""), { "power exponent=3", "2x5x7x3" },
     { "power exponent=0.5", "3x8@0.1..9" }, { "power exponent=-1", "3x8@0.1..9" },
     { "power exponent=2.6", "3x18@0.1..9" }, { "power exponent=-0.5", "3x18@0.1..9" },
     { "power exponent=5", "3x18" }, { "power exponent=4", "3x20" }, { "power exponent=1", "3x20" },
     { "power exponent=0", "3x20" }, { "power exponent=-2", "3x18@-3..-0.2" });
TEST(erf, 0, SIZES("erf", "@-4..4"), { "erf", "4x50@-0.9..0.9" });
TEST(ceil, 0, SIZES("ceil", "@-9..9"));
TEST(floor, 0, SIZES("floor", "@-9..9"));
TEST(round, 0, SIZES("round", "@-9..9"));
TEST(sign, 0, SIZES("sign", ""));
