/* activation: the element-wise functions that layers apply by themselves or as the last thing of a
 * fused call. shaders/lib/activation.glsl is the twin.
 *
 * Written so that a value that is not a number stays one: a comparison that is false picks the side
 * that keeps it. The derivative is a function of y = f(z), which is kept in memory anyway and lets
 * the forward call run in place; only hard_swish, which is not monotonic, needs z. */
#ifndef PUMICE_ACTIVATION_H
#define PUMICE_ACTIVATION_H

#include "layers/vmath.h"

/* The order of PM_ACTIVATIONS, the choices of an option. */
enum pm_activation {
    PM_ACT_NONE,
    PM_ACT_RELU,
    PM_ACT_RELU6,
    PM_ACT_LEAKY_RELU, /* slope for z <= 0; slope > 0 */
    PM_ACT_SIGMOID,
    PM_ACT_TANH,
    PM_ACT_HARD_SIGMOID, /* relu6(z + 3) / 6 */
    PM_ACT_HARD_SWISH,   /* z * relu6(z + 3) / 6 */
    PM_ACT_KINDS
};
#define PM_ACTIVATIONS "none|relu|relu6|leaky_relu|sigmoid|tanh|hard_sigmoid|hard_swish"

PM_INLINE float pm_sigmoid(float z)
{
    return 1.0f / (1.0f + pm_expf(-z));
}

/* Near 0 the formula with exp cancels; there the odd series to z^9 leaves 5e-8 of z at 0.3. */
PM_INLINE float pm_tanh(float z)
{
    float a = z < 0 ? -z : z, s = z * z;
    float far = 1.0f - 2.0f / (pm_expf(2.0f * a) + 1.0f);
    float near = z + z * s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835))));

    return a < 0.3f ? near : z < 0 ? -far : far;
}

PM_INLINE float pm_act(int kind, float slope, float z)
{
    float t;

    switch (kind) {
    case PM_ACT_RELU:
        return z < 0 ? 0 : z;
    case PM_ACT_RELU6:
        t = z < 0 ? 0 : z;
        return t > 6 ? 6 : t;
    case PM_ACT_LEAKY_RELU:
        return z > 0 ? z : slope * z;
    case PM_ACT_SIGMOID:
        return pm_sigmoid(z);
    case PM_ACT_TANH:
        return pm_tanh(z);
    case PM_ACT_HARD_SIGMOID:
    case PM_ACT_HARD_SWISH:
        t = z + 3 < 0 ? 0 : z + 3;
        t = (t > 6 ? 6 : t) * (1.0f / 6);
        return kind == PM_ACT_HARD_SWISH ? z * t : t;
    default:
        return z;
    }
}

/* Whether pm_act_slope takes z instead of y. */
PM_INLINE int pm_act_wants_z(int kind)
{
    return kind == PM_ACT_HARD_SWISH;
}

/* Whether z does as well as y: a value or two part the slopes, and lie where they do in y. */
PM_INLINE int pm_act_is_cut(int kind)
{
    return kind == PM_ACT_RELU || kind == PM_ACT_RELU6 || kind == PM_ACT_LEAKY_RELU;
}

/* dy/dz where y = v (z = v for hard_swish). At a corner the flat side. */
PM_INLINE float pm_act_slope(int kind, float slope, float v)
{
    switch (kind) {
    case PM_ACT_RELU:
        return v > 0 ? 1 : 0;
    case PM_ACT_RELU6:
        return (v > 0) & (v < 6) ? 1 : 0;
    case PM_ACT_LEAKY_RELU:
        return v > 0 ? 1 : slope;
    case PM_ACT_SIGMOID:
        return v * (1 - v);
    case PM_ACT_TANH:
        return 1 - v * v;
    case PM_ACT_HARD_SIGMOID:
        return (v > 0) & (v < 1) ? 1.0f / 6 : 0;
    case PM_ACT_HARD_SWISH:
        return v <= -3 ? 0 : v >= 3 ? 1 : v * (1.0f / 3) + 0.5f;
    default:
        return 1;
    }
}

/* Runs CALL(kind) with kind as a constant, so that the loop in it is compiled for that one kind. */
#define PM_ACT_SWITCH(kind, CALL)                                                                  \
    switch (kind) {                                                                                \
    case PM_ACT_RELU: CALL(PM_ACT_RELU); break;                                                    \
    case PM_ACT_RELU6: CALL(PM_ACT_RELU6); break;                                                  \
    case PM_ACT_LEAKY_RELU: CALL(PM_ACT_LEAKY_RELU); break;                                        \
    case PM_ACT_SIGMOID: CALL(PM_ACT_SIGMOID); break;                                              \
    case PM_ACT_TANH: CALL(PM_ACT_TANH); break;                                                    \
    case PM_ACT_HARD_SIGMOID: CALL(PM_ACT_HARD_SIGMOID); break;                                    \
    case PM_ACT_HARD_SWISH: CALL(PM_ACT_HARD_SWISH); break;                                        \
    default: CALL(PM_ACT_NONE); break;                                                             \
    }

#endif
